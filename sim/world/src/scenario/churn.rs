//! Churn: edges that leave, come back and die at random.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use quiver_scenario_format::Churn;
use rand::{Rng, RngCore};
use toml::Spanned;

use super::ScenarioError;
use super::error::SourceText;
use super::script::{ScriptLimits, too_many};
use super::settings::time;
use crate::{Action, NodeId};

/// Events of one kind per minute at most.
const MAX_RATE: f64 = 100_000.0;

/// Adds churn of the edges between the two times. Each kind comes at its rate, each time somewhere within its
/// share of the minute; who leaves is drawn from those who are in, who joins from those who left.
pub(super) fn plan(
    source: &SourceText<'_>,
    table: &Spanned<Churn>,
    limits: ScriptLimits,
    rng: &mut impl RngCore,
) -> Result<Vec<(Duration, Action)>, ScenarioError> {
    let (churn, ScriptLimits { census, duration, actions }) = (table.get_ref(), limits);
    let from = time(source, &churn.from, Duration::ZERO..=duration)?;
    let until = time(source, &churn.until, from..=duration)?;
    let edges: Vec<u32> = census.edges(source, &churn.edges)?.into_iter().collect();
    let rate = |rate: &Option<Spanned<f64>>| match rate.as_ref().map(|rate| (rate.span(), *rate.get_ref())) {
        None => Ok(0.0),
        Some((_, rate)) if (0.0..=MAX_RATE).contains(&rate) => Ok(rate),
        Some((place, rate)) => Err(source.at(place, format!("{rate} is not in 0 to {MAX_RATE}"))),
    };
    let down = churn
        .down
        .as_ref()
        .map_or(Ok(Duration::from_secs(3)), |down| time(source, down, Duration::ZERO..=duration))?;
    let rates = [
        (ChurnKind::Leave, rate(&churn.leaves_per_minute)?),
        (ChurnKind::Join, rate(&churn.joins_per_minute)?),
        (ChurnKind::Crash, rate(&churn.crashes_per_minute)?),
    ];
    // Their number comes from the file: it is checked before there are as many.
    let planned = rates.iter().map(|(_, rate)| TimeIntervals::of(&(from..until), *rate).count);
    if planned.fold(0_u64, u64::saturating_add) > actions as u64 {
        return Err(source.at(table.span(), too_many()));
    }
    let mut moments = Vec::new();
    for (kind, rate) in rates {
        moments.extend(times(from..until, rate, rng).into_iter().map(|at| (at, kind)));
    }
    moments.sort();
    let mut swarm = ChurnState { inside: edges.into_iter().collect(), outside: BTreeSet::new(), down };
    Ok(moments.into_iter().filter_map(|(at, kind)| Some((at, swarm.act(kind, rng)?))).collect())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChurnKind {
    Leave,
    Join,
    Crash,
}

/// Equal parts of a time, each with one moment.
struct TimeIntervals {
    /// Nanoseconds of one.
    length: u64,
    /// Number of whole ones.
    count: u64,
}

impl TimeIntervals {
    fn of(range: &Range<Duration>, per_minute: f64) -> Self {
        if per_minute <= 0.0 {
            return Self { length: 1, count: 0 };
        }
        let part = (6e10 / per_minute) as u64;
        let length = (range.end - range.start).as_nanos() as u64;
        Self { length: part, count: length / part.max(1) }
    }
}

/// Draws `per_minute` moments per minute, one in each equal part of the time.
fn times(range: Range<Duration>, per_minute: f64, rng: &mut impl RngCore) -> Vec<Duration> {
    let TimeIntervals { length: part, count } = TimeIntervals::of(&range, per_minute);
    let starts = (0..count).map(|index| index * part);
    starts.map(|start| range.start + Duration::from_nanos(start + rng.gen_range(0..part.max(1)))).collect()
}

/// Members and others, as far as the churn knows.
struct ChurnState {
    inside: BTreeSet<u32>,
    outside: BTreeSet<u32>,
    down: Duration,
}

impl ChurnState {
    /// `None` if no edge is left to do it.
    fn act(&mut self, kind: ChurnKind, rng: &mut impl RngCore) -> Option<Action> {
        let from = if kind == ChurnKind::Join { &mut self.outside } else { &mut self.inside };
        if from.is_empty() {
            return None;
        }
        let edge = from.iter().copied().nth(rng.gen_range(0..from.len()))?;
        match kind {
            ChurnKind::Leave => {
                self.inside.remove(&edge);
                self.outside.insert(edge);
                Some(Action::Leave(edge))
            }
            ChurnKind::Join => {
                self.outside.remove(&edge);
                self.inside.insert(edge);
                Some(Action::Join(edge))
            }
            ChurnKind::Crash => Some(Action::Crash {
                node: NodeId::Edge(edge),
                after: rng.gen_range(0..4),
                down_for: self.down,
            }),
        }
    }
}
