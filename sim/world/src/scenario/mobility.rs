//! Mobility: edges fly from one random point of a square to the next; beyond a distance from its middle they
//! are out of range.

use std::time::Duration;

use quiver_scenario_format::Mobility;
use rand::{Rng, RngCore};
use toml::Spanned;

use super::ScenarioError;
use super::error::SourceText;
use super::script::ScriptLimits;
use super::settings::time;
use crate::trace::{DronePaths, DronePosition};
use crate::{Action, LinkFaults, NodeId};

/// The random waypoint model (Johnson and Maltz, *Dynamic source routing in ad hoc wireless networks*, 1996)
/// without pauses. Leaders and KGC are in the middle of the square. Beyond the range every message is lost,
/// within it links are as all others; when the time is over, everybody is heard again.
pub(super) fn plan(
    source: &SourceText<'_>,
    table: &Spanned<Mobility>,
    limits: ScriptLimits,
    rng: &mut impl RngCore,
) -> Result<(Vec<(Duration, Action)>, DronePaths), ScenarioError> {
    let (mobility, ScriptLimits { census, duration, actions }) = (table.get_ref(), limits);
    let from = time(source, &mobility.from, Duration::ZERO..=duration)?;
    let until = time(source, &mobility.until, from..=duration)?;
    let second = Duration::from_secs(1);
    let step = mobility
        .step
        .as_ref()
        .map_or(Ok(second), |step| time(source, step, Duration::from_millis(10)..=Duration::from_secs(60)))?;
    let positive = |value: &Spanned<f64>| match *value.get_ref() {
        metres if metres > 0.0 && metres <= 1e6 => Ok(metres),
        metres => Err(source.at(value.span(), format!("{metres} is not in 0 to 1000000"))),
    };
    let air = Air {
        side: positive(&mobility.side_metres)?,
        range: positive(&mobility.range_metres)?,
        stride: positive(&mobility.metres_per_second)? * step.as_secs_f64(),
    };
    let edges = census.edges(source, &mobility.edges)?;
    // Each step may end in two places and in an action.
    let steps = (until - from).as_nanos().div_ceil(step.as_nanos());
    if steps.saturating_mul(edges.len() as u128) > actions as u128 {
        let what = format!(
            "moves {} drones {steps} times: at most {actions} steps; give a longer step",
            edges.len()
        );
        return Err(source.at(table.span(), what));
    }
    let mut actions = Vec::new();
    let mut places = DronePaths::new(air.side / 2.0, Some(air.range), census.edges);
    for edge in edges {
        let mut drone = MovingDrone { at: air.point(rng), to: air.point(rng), heard: true };
        let mut now = from;
        places.stand(edge, place(now, drone.at));
        while now < until {
            let heard = air.reaches(drone.at);
            if heard != drone.heard {
                actions.push((now, links(edge, heard)));
                drone.heard = heard;
            }
            let before = place(now, drone.at);
            now += step;
            if drone.fly(&air, rng) {
                // Its last step is shorter than the others.
                places.stand(edge, before);
                places.stand(edge, place(now, drone.at));
            }
        }
        places.stand(edge, place(now, drone.at));
        if !drone.heard {
            actions.push((until, links(edge, true)));
        }
    }
    Ok((actions, places))
}

fn place(at: Duration, (x, y): PlanePoint) -> DronePosition {
    DronePosition { at, x, y }
}

fn links(edge: u32, heard: bool) -> Action {
    let silence = LinkFaults { loss: 1.0, ..LinkFaults::SOUND };
    Action::LinksOf(NodeId::Edge(edge), (!heard).then_some(silence))
}

type PlanePoint = (f64, f64);

struct Air {
    side: f64,
    range: f64,
    /// Metres per step.
    stride: f64,
}

impl Air {
    /// Anywhere in the square around the origin.
    fn point(&self, rng: &mut impl RngCore) -> PlanePoint {
        let mut coordinate = || (rng.gen_range(0.0..1.0) - 0.5) * self.side;
        (coordinate(), coordinate())
    }

    fn reaches(&self, (x, y): PlanePoint) -> bool {
        x * x + y * y <= self.range * self.range
    }
}

struct MovingDrone {
    at: PlanePoint,
    to: PlanePoint,
    heard: bool,
}

impl MovingDrone {
    /// A step towards the next point; a step that reaches it ends there. Returns whether it did.
    fn fly(&mut self, air: &Air, rng: &mut impl RngCore) -> bool {
        let (dx, dy) = (self.to.0 - self.at.0, self.to.1 - self.at.1);
        let distance = (dx * dx + dy * dy).sqrt();
        let arrives = distance <= air.stride;
        if arrives {
            (self.at, self.to) = (self.to, air.point(rng));
        } else {
            let part = air.stride / distance;
            self.at = (self.at.0 + dx * part, self.at.1 + dy * part);
        }
        arrives
    }
}
