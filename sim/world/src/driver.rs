//! Drives one machine: makes records durable before what follows is transmitted, and collects what it did.

use std::sync::Arc;
use std::time::Duration;

use quiver_role::release::{CollectEvent, ReleaseEvent};
use quiver_role::{Destination, EdgeEvent, Input, KgcEvent, LeaderEvent, Machine, Now, Output, Peer};
use rand_core::CryptoRngCore;
use sha2::{Digest, Sha256};

use crate::NodeId;
use crate::disk::{Disk, Stored};

/// What made a node act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It was started.
    Start,
    /// Its deadline came.
    Deadline,
    /// A connection stands.
    Connected(NodeId),
    /// A connection is gone.
    Disconnected(NodeId),
    /// A message came.
    Message {
        /// Who handed it over.
        via: NodeId,
        /// Whether it was published to the group, not sent to this node alone.
        by_group: bool,
        /// The message.
        payload: Arc<[u8]>,
    },
    /// The operator or the application asked for something.
    Command(&'static str),
}

/// What a node reports, whichever its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// The KGC.
    Kgc(KgcEvent),
    /// A leader.
    Leader(LeaderEvent),
    /// An edge.
    Edge(EdgeEvent),
    /// The office of a KGC that releases keys of conditions.
    Release(ReleaseEvent),
    /// The part of a drone that collects them.
    Collector(CollectEvent),
    /// A drone has opened an order that waited for its condition: its text.
    Opened(Vec<u8>),
}

/// What a node did, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It sent a message.
    Sent {
        /// To whom.
        to: Destination,
        /// The message.
        payload: Arc<[u8]>,
    },
    /// A record became durable.
    Persisted {
        /// Its bytes.
        bytes: usize,
    },
    /// It reported something.
    Reported(Box<NodeEvent>),
    /// It cut a connection for good.
    Blocked(Peer),
    /// It cut a connection for a while.
    Penalized(Peer),
    /// It passes on a peer's group messages from now on, or no more.
    Relayed {
        /// Whose.
        peer: Peer,
        /// Whether it does.
        allowed: bool,
    },
    /// Its disk took a record not: it stands still until it does.
    Stalled,
    /// It died before its next output.
    Died,
    /// What it had made durable does not restore it: it stays off.
    Broken,
}

/// One step of the world: an input of one node and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, since the world began.
    pub at: Duration,
    /// Who.
    pub node: NodeId,
    /// Why.
    pub cause: Cause,
    /// What it did.
    pub effects: Vec<Effect>,
    /// CPU time the step took, if it was measured.
    pub cpu: Duration,
    /// SHA-256 over time, node, input and outputs, if the world is traced.
    pub digest: Option<[u8; 32]>,
}

impl Step {
    /// What the node reported.
    pub fn events(&self) -> impl Iterator<Item = &NodeEvent> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Reported(event) => Some(&**event),
            _ => None,
        })
    }
}

/// What comes of a step.
#[derive(Debug, Default)]
pub(crate) struct StepOutcome {
    pub(crate) effects: Vec<Effect>,
    /// Over the records, if the world is traced.
    pub(crate) records: Option<Sha256>,
}

impl StepOutcome {
    pub(crate) fn print(&mut self, record: &impl Stored) {
        if let Some(hash) = &mut self.records {
            record.digest(&mut |bytes| hash.update(bytes));
        }
    }
}

/// Where draining a machine ended.
#[derive(Debug)]
pub(crate) enum DrainEnd<R> {
    /// It wants to be woken then (on its own clock).
    Rest(Option<Duration>),
    /// The disk did not take this record.
    Stalled(R),
    /// Its time had come.
    Died,
}

/// Breaks the driver's rules on purpose, to see whether the invariants notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// Keep to the rules.
    #[default]
    None,
    /// Transmit although the record before it is not durable: records take effect only when the outputs are drained.
    TransmitBeforePersist,
    /// Say that records are durable and forget every second one.
    LoseRecords,
    /// Start edges from the record before the last one.
    StaleState,
    /// Give a node that was restarted the randomness it had before.
    SameDice,
    /// Never wake a node at its deadline once the world is a minute old.
    MissDeadlines,
    /// Forget which key a token was bound to.
    ForgetPins,
    /// Found a quorum whose shares give the secret away to one KGC less than is said.
    LowDegree,
    /// Let every KGC release the keys of conditions that no operator has approved.
    EarlyRelease,
    /// Tell machines that what was published to the group was sent to them alone.
    HideGroup,
    /// Transmit no proof against a leader.
    KeepProofs,
}

/// A machine's outputs on their way to the world.
pub(crate) struct Drain<'a, M: Machine> {
    pub(crate) machine: &'a mut M,
    pub(crate) disk: &'a mut Disk<M::Record>,
    /// How many more outputs until the node dies.
    pub(crate) crash_after: &'a mut Option<u32>,
    pub(crate) sabotage: Sabotage,
    pub(crate) outcome: &'a mut StepOutcome,
}

impl<M: Machine> Drain<'_, M>
where
    M::Record: Stored,
    NodeEvent: From<M::Event>,
{
    /// Feeds an input and carries out what the machine wants.
    pub(crate) fn feed(
        &mut self,
        now: Now,
        input: Input<'_, M::Command>,
        rng: &mut dyn CryptoRngCore,
    ) -> DrainEnd<M::Record> {
        self.machine.handle_input(now, input, rng);
        self.drain()
    }

    /// Carries out what the machine wants, until it rests, stalls or dies.
    pub(crate) fn drain(&mut self) -> DrainEnd<M::Record> {
        let mut late = Vec::new();
        let ending = loop {
            let output = match self.machine.poll_output() {
                Output::Timeout(deadline) => break DrainEnd::Rest(deadline),
                output => output,
            };
            if let Some(left) = self.crash_after {
                if *left == 0 {
                    self.outcome.effects.push(Effect::Died);
                    return DrainEnd::Died;
                }
                *left -= 1;
            }
            if let Err(record) = self.carry_out(output, &mut late) {
                self.outcome.effects.push(Effect::Stalled);
                break DrainEnd::Stalled(record);
            }
        };
        for record in late {
            // Sabotage: by now everything has been transmitted.
            let _ = self.disk.write(record);
        }
        ending
    }

    fn carry_out(
        &mut self,
        output: Output<M::Event, M::Record>,
        late: &mut Vec<M::Record>,
    ) -> Result<(), M::Record> {
        let effect = match output {
            Output::Persist(record) => {
                let bytes = record.bytes();
                self.outcome.print(&record);
                match self.sabotage {
                    Sabotage::TransmitBeforePersist => late.push(record),
                    Sabotage::LoseRecords if bytes % 2 == 0 => {}
                    Sabotage::ForgetPins if record.is_pin() => {}
                    _ => self.disk.write(record)?,
                }
                Effect::Persisted { bytes }
            }
            Output::Transmit { to, payload } => Effect::Sent { to, payload: payload.into() },
            Output::Event(event) => Effect::Reported(Box::new(event.into())),
            Output::Block(peer) => Effect::Blocked(peer),
            Output::Penalize { peer, .. } => Effect::Penalized(peer),
            Output::Relay { peer, allowed } => Effect::Relayed { peer, allowed },
            Output::Timeout(_) => return Ok(()),
        };
        self.outcome.effects.push(effect);
        Ok(())
    }
}

impl From<LeaderEvent> for NodeEvent {
    fn from(event: LeaderEvent) -> Self {
        Self::Leader(event)
    }
}

impl From<EdgeEvent> for NodeEvent {
    fn from(event: EdgeEvent) -> Self {
        Self::Edge(event)
    }
}
