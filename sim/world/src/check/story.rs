//! Records the last steps before a violation, for people.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

use quiver_ainq::{Deployment, Suite};
use quiver_enrolment::threshold::EnrolmentMessage;
use quiver_machine::Destination;
use quiver_message::Message;

use super::{ActionPlan, Base, ConvergenceChecker, run_to_convergence};
use crate::{
    Action, Cause, Effect, Invariants, MasterKeySuite, NodeEvent, Step, StepObserver, Violation, World,
    WorldError,
};
use crate::{admission, envelopes, relays};

/// Greatest number of steps printed.
const MAX_STEPS: usize = 48000;

/// Runs a plan once more and returns the last steps before the violation, as text.
///
/// # Errors
/// Errors of [`World::new`].
pub fn story<S: MasterKeySuite>(
    base: &Base<S>,
    plan: &ActionPlan,
) -> Result<(Option<Violation>, Vec<String>), WorldError> {
    let mut world = base.world(plan)?;
    let mut recorder = StoryRecorder { invariants: base.invariants(&world, plan), steps: VecDeque::new() };
    run_to_convergence(&mut world, plan, &mut recorder);
    let violation = recorder.invariants.violations().first().cloned();
    Ok((violation, recorder.steps.into()))
}

/// Remembers the last steps.
struct StoryRecorder<S: Suite> {
    invariants: Invariants<S>,
    steps: VecDeque<String>,
}

impl<S: Suite> StoryRecorder<S> {
    fn push(&mut self, line: String) {
        if self.steps.len() == MAX_STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(line);
    }
}

impl<S: Suite> StepObserver<S> for StoryRecorder<S> {
    fn on_step(&mut self, world: &World<S>, step: &Step) {
        self.invariants.on_step(world, step);
        if !is_uneventful(step) {
            let line = describe(world, step);
            self.push(line);
        }
    }

    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action) {
        self.invariants.on_action(world, at, action);
        self.push(format!("{:>9.4} s  * {action}", at.as_secs_f64()));
    }

    fn stops(&self) -> bool {
        self.invariants.stops()
    }
}

impl<S: Suite> ConvergenceChecker<S> for StoryRecorder<S> {
    fn has_converged(&self, world: &World<S>) -> bool {
        self.invariants.stragglers(world).is_empty()
    }

    fn check_convergence(&mut self, world: &World<S>) {
        self.invariants.demand_convergence(world);
    }
}

/// Early deadlines, and inputs without a consequence.
fn is_uneventful(step: &Step) -> bool {
    step.effects.is_empty() && matches!(step.cause, Cause::Deadline | Cause::Message { .. })
}

/// A step as a line.
fn describe<S: Suite>(world: &World<S>, step: &Step) -> String {
    let nodes = world.index();
    let deployment = world.fleet().deployment();
    let mut line = format!("{:>9.4} s  {}", step.at.as_secs_f64(), step.node);
    let cause = match &step.cause {
        Cause::Start => " starts".into(),
        Cause::Deadline => ": deadline".into(),
        Cause::Connected(other) => format!(" connects to {other}"),
        Cause::Disconnected(other) => format!(" loses its connection to {other}"),
        Cause::Message { via, by_group, payload } => {
            let way = if *by_group { "by the group, over" } else { "from" };
            format!(" receives {} {way} {via}", kind(deployment, payload))
        }
        Cause::Command(word) => format!(" is commanded to {word}"),
    };
    line.push_str(&cause);
    for effect in &step.effects {
        // Writing to a string has no way to fail.
        let _ = match effect {
            Effect::Sent { to: Destination::Group, payload } => {
                write!(line, "; {} to all", kind(deployment, payload))
            }
            Effect::Sent { to: Destination::Peer(peer), payload } => {
                write!(line, "; {} to {}", kind(deployment, payload), nodes.behind(*peer).0)
            }
            Effect::Persisted { bytes } => write!(line, "; stores {bytes} bytes"),
            Effect::Reported(event) => write!(line, "; “{}”", report(event)),
            Effect::Blocked(peer) => write!(line, "; blocks {}", nodes.behind(*peer).0),
            Effect::Disconnected(peer) => write!(line, "; disconnects {}", nodes.behind(*peer).0),
            Effect::Penalized(peer) => write!(line, "; refuses {} for a while", nodes.behind(*peer).0),
            Effect::Relayed { peer, allowed } => {
                let relays = if *allowed { "relays for" } else { "relays no more for" };
                write!(line, "; {relays} {}", nodes.behind(*peer).0)
            }
            Effect::Stalled => write!(line, "; its disk is full"),
            Effect::Died => write!(line, "; crashes"),
            Effect::Broken => write!(line, " and cannot be restored"),
        };
    }
    line
}

/// Kind of a message, in a word; of a relay's batch, of all that it carries.
fn kind<S: Suite>(deployment: &Deployment<S>, payload: &[u8]) -> String {
    match Message::<S>::decode(deployment, payload) {
        Err(_) => relays::described_batch(payload, |carried| kind(deployment, carried))
            .unwrap_or_else(|| format!("{} bytes of noise", payload.len())),
        Ok(message) => {
            let text = described(&message);
            text.split(['(', ' ', '{']).next().unwrap_or_default().to_string()
        }
    }
}

/// A message in full, by the feature that knows it.
fn described<S: Suite>(message: &Message<S>) -> String {
    if let Some(Ok(read)) = message.extension::<EnrolmentMessage>() {
        return format!("{read:?}");
    }
    let of_feature = admission::described(message).or_else(|| envelopes::described(message));
    of_feature.unwrap_or_else(|| format!("{message:?}"))
}

fn report(event: &NodeEvent) -> String {
    let text = match event {
        NodeEvent::Kgc(event) => format!("{event:?}"),
        NodeEvent::Leader(event) => format!("{event:?}"),
        NodeEvent::Edge(event) => format!("{event:?}"),
        NodeEvent::Feature(event) => format!("{event:?}"),
    };
    text.chars().take(160).collect()
}
