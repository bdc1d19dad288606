//! Telling what happened, for people.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

use quiver_ainq::{Deployment, Suite};
use quiver_message::Message;
use quiver_quorum::QuorumSuite;
use quiver_role::Destination;

use super::{Base, Judge, Plan, play};
use crate::node::Row;
use crate::{Action, Cause, Effect, Invariants, NodeEvent, Turn, Violation, Witness, World, WorldError};

/// How many steps are told.
const TOLD: usize = 48000;

/// Lives through a plan once more and tells the last steps before an invariant broke.
///
/// # Errors
/// As for [`World::new`].
pub fn story<S: QuorumSuite>(
    base: &Base<S>,
    plan: &Plan,
) -> Result<(Option<Violation>, Vec<String>), WorldError> {
    let mut world = base.world(plan)?;
    let mut teller = Teller { invariants: Invariants::new(&world, true), told: VecDeque::new() };
    play(&mut world, plan, &mut teller);
    let violation = teller.invariants.violations().first().cloned();
    Ok((violation, teller.told.into()))
}

/// Remembers the last steps.
struct Teller<S: Suite> {
    invariants: Invariants<S>,
    told: VecDeque<String>,
}

impl<S: Suite> Teller<S> {
    fn tell(&mut self, line: String) {
        if self.told.len() == TOLD {
            self.told.pop_front();
        }
        self.told.push_back(line);
    }
}

impl<S: Suite> Witness<S> for Teller<S> {
    fn saw(&mut self, world: &World<S>, turn: &Turn) {
        self.invariants.saw(world, turn);
        if !is_dull(turn) {
            let line = told(world, turn);
            self.tell(line);
        }
    }

    fn acted(&mut self, world: &World<S>, at: Duration, action: &Action) {
        self.invariants.acted(world, at, action);
        self.tell(format!("{:>9.4} s  * {action}", at.as_secs_f64()));
    }

    fn stops(&self) -> bool {
        self.invariants.stops()
    }
}

impl<S: Suite> Judge<S> for Teller<S> {
    fn everybody_is_there(&self, world: &World<S>) -> bool {
        self.invariants.stragglers(world).is_empty()
    }

    fn time_is_up(&mut self, world: &World<S>) {
        self.invariants.demand_convergence(world);
    }
}

/// Deadlines that came too early, and what is heard without a consequence.
fn is_dull(turn: &Turn) -> bool {
    turn.effects.is_empty() && matches!(turn.cause, Cause::Deadline | Cause::Message { .. })
}

/// One step as a line.
fn told<S: Suite>(world: &World<S>, turn: &Turn) -> String {
    let row = Row { kgcs: world.kgc_count(), leaders: world.leader_count() };
    let deployment = world.fleet().deployment();
    let mut line = format!("{:>9.4} s  {}", turn.at.as_secs_f64(), turn.node);
    let cause = match &turn.cause {
        Cause::Start => " starts".into(),
        Cause::Deadline => ": deadline".into(),
        Cause::Connected(other) => format!(" meets {other}"),
        Cause::Disconnected(other) => format!(" loses {other}"),
        Cause::Message { via, by_group, payload } => {
            let way = if *by_group { "by the group, over" } else { "from" };
            format!(" hears {} {way} {via}", kind(deployment, payload))
        }
        Cause::Command(word) => format!(" is told to {word}"),
    };
    line.push_str(&cause);
    for effect in &turn.effects {
        // Writing to a string has no way to fail.
        let _ = match effect {
            Effect::Sent { to: Destination::Group, payload } => {
                write!(line, "; {} to all", kind(deployment, payload))
            }
            Effect::Sent { to: Destination::Peer(peer), payload } => {
                write!(line, "; {} to {}", kind(deployment, payload), row.behind(*peer).0)
            }
            Effect::Persisted { bytes } => write!(line, "; stores {bytes} bytes"),
            Effect::Reported(event) => write!(line, "; “{}”", report(event)),
            Effect::Blocked(peer) => write!(line, "; blocks {}", row.behind(*peer).0),
            Effect::Penalized(peer) => write!(line, "; refuses {} for a while", row.behind(*peer).0),
            Effect::Relayed { peer, allowed } => {
                let relays = if *allowed { "relays for" } else { "relays no more for" };
                write!(line, "; {relays} {}", row.behind(*peer).0)
            }
            Effect::Stalled => write!(line, "; its disk is full"),
            Effect::Died => write!(line, "; dies"),
            Effect::Broken => write!(line, " and cannot be restored"),
        };
    }
    line
}

/// What a message is, in a word.
fn kind<S: Suite>(deployment: &Deployment<S>, payload: &[u8]) -> String {
    match Message::<S>::decode(deployment, payload) {
        Err(_) => format!("{} bytes of noise", payload.len()),
        Ok(message) => {
            let text = format!("{message:?}");
            text.split(['(', ' ', '{']).next().unwrap_or_default().to_string()
        }
    }
}

fn report(event: &NodeEvent) -> String {
    let text = match event {
        NodeEvent::Kgc(event) => format!("{event:?}"),
        NodeEvent::Leader(event) => format!("{event:?}"),
        NodeEvent::Edge(event) => format!("{event:?}"),
        event => format!("{event:?}"),
    };
    text.chars().take(160).collect()
}
