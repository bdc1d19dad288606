//! A step of the world: its cause, its effects, and the faults of the node's driver.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::KgcId;
use quiver_enrolment::{EnrolmentTrouble, KgcEvent};
use quiver_group::{EdgeEvent, LeaderEvent};
use quiver_machine::{Destination, Either, Machine, Misdeed, Peer};
use quiver_testbed::{Disk, Keep, OutputSink, matching};
use sha2::{Digest, Sha256};

use crate::NodeId;
use crate::feature_event::{AnyFeatureEvent, FeatureEvent};
use crate::record::Record;

/// Cause of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The node was started.
    Start,
    /// A deadline of the node came.
    Deadline,
    /// A connection is up.
    Connected(NodeId),
    /// A connection is gone.
    Disconnected(NodeId),
    /// A message came.
    Message {
        /// The neighbour that handed it over.
        via: NodeId,
        /// True if it was published to the group, not sent to this node alone.
        by_group: bool,
        /// The message.
        payload: Arc<[u8]>,
    },
    /// The operator or the application asked for something.
    Command(&'static str),
}

/// An event of a node, whichever its role.
#[derive(Clone, derive_more::Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// The KGC.
    Kgc(KgcEvent),
    /// A leader.
    Leader(LeaderEvent),
    /// An edge.
    Edge(EdgeEvent),
    /// A machine or a part of a feature.
    #[debug("{_0:?}")]
    Feature(AnyFeatureEvent),
}

impl NodeEvent {
    /// The event of a feature, if it is of this type.
    pub fn of_feature<E: FeatureEvent>(&self) -> Option<&E> {
        match self {
            Self::Feature(event) => event.read(),
            Self::Kgc(_) | Self::Leader(_) | Self::Edge(_) => None,
        }
    }

    /// The KGC that sent a wrong share, if that is what the event reports.
    pub(crate) fn culprit(&self) -> Option<KgcId> {
        match self {
            Self::Edge(EdgeEvent::EnrolmentTrouble(EnrolmentTrouble::WrongShare { kgc, .. }))
            | Self::Leader(LeaderEvent::EnrolmentTrouble(EnrolmentTrouble::WrongShare { kgc, .. })) => {
                Some(*kgc)
            }
            Self::Feature(event) => event.culprit(),
            Self::Kgc(_) | Self::Leader(_) | Self::Edge(_) => None,
        }
    }
}

/// An effect of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The node sent a message.
    Sent {
        /// The receiver.
        to: Destination,
        /// The message.
        payload: Arc<[u8]>,
    },
    /// A record became durable.
    Persisted {
        /// Bytes of the record.
        bytes: usize,
    },
    /// The node reported an event.
    Reported(Box<NodeEvent>),
    /// The node cut a connection for good.
    Blocked(Peer),
    /// The node cut a connection for a while.
    Penalized(Peer),
    /// The node ended a connection.
    Disconnected(Peer),
    /// The node begins or ends relaying a peer's group messages.
    Relayed {
        /// The peer.
        peer: Peer,
        /// True if it begins.
        allowed: bool,
    },
    /// The node's disk refused a record: it waits until the disk takes it.
    Stalled,
    /// The node died before its next output.
    Died,
    /// The node's durable state does not restore it: it stays off.
    Broken,
}

/// A step of the world: an input of one node and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Time since the world began.
    pub at: Duration,
    /// The node.
    pub node: NodeId,
    /// Cause of the step.
    pub cause: Cause,
    /// Effects of the step, in order.
    pub effects: Vec<Effect>,
    /// CPU time the step took, if it was measured.
    pub cpu: Duration,
    /// SHA-256 over time, node, input and outputs, if the world is traced.
    pub digest: Option<[u8; 32]>,
    /// Account of a step that another [rank](crate::ranks) took: cause and events stay there.
    #[doc(hidden)]
    pub account: Option<Box<StepAccount>>,
}

/// Results of a step's cause and events that concern other nodes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepAccount {
    /// CPU cycles of the step on a drone, and whether it was about an epoch.
    pub(crate) cycles: u64,
    pub(crate) about_an_epoch: bool,
    /// Progress of the machine that stands in for an edge, if one does.
    pub(crate) stand_in: StandInAccount,
}

/// Progress of a machine that stands in for an edge, in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StandInAccount {
    /// True if the drone was admitted.
    pub(crate) admitted: bool,
    /// End of the machine, if it ended.
    pub(crate) end: Option<MachineEnd>,
}

/// Progress of a machine that stands in for an edge, as an event reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandInProgress {
    /// The drone is a member.
    Admitted,
    /// The machine is over.
    Ended(MachineEnd),
}

/// End of a machine that stands in for an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineEnd {
    /// The drone left on command.
    Left,
    /// The same credential would end the same way again.
    Final,
    /// The drone may try again.
    Passing,
}

impl Step {
    /// The events of the step.
    pub fn events(&self) -> impl Iterator<Item = &NodeEvent> {
        self.effects.iter().filter_map(matching!(Effect::Reported(event) => &**event))
    }

    /// Progress of the machine that stands in for an edge, if one does.
    pub(crate) fn stand_in(&self) -> StandInAccount {
        if let Some(account) = &self.account {
            return account.stand_in;
        }
        let mut account = StandInAccount::default();
        for event in self.events().filter_map(matching!(NodeEvent::Feature(event) => event)) {
            match event.progress() {
                Some(StandInProgress::Admitted) => account.admitted = true,
                Some(StandInProgress::Ended(end)) => account.end = Some(end),
                None => {}
            }
        }
        account
    }
}

/// Breaks the driver's rules on purpose, to see whether the invariants notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// Keep to the rules.
    #[default]
    None,
    /// Transmit although the record before it is not durable: records take effect only when the outputs are
    /// drained.
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
    /// Found a quorum whose polynomial has a lower degree than stated: one KGC fewer suffices.
    LowDegree,
    /// Let every KGC release the keys of conditions that no operator has approved.
    EarlyRelease,
    /// Tell machines that what was published to the group was sent to them alone.
    HideGroup,
    /// Transmit no proof against a leader.
    KeepProofs,
    /// Let the datagrams' former key go on opening after a re-key that removed somebody.
    KeepDatagramKey,
    /// Let a leader forget at each step which datagrams it has opened.
    ForgetDatagrams,
    /// Let relays keep the connections of their drones when they lose their leader.
    KeepDrones,
    /// Start nodes without the second factor that the deployment says.
    LeaveOutKem,
    /// Leave every state of a drone on its disk, where the next takes the place of the last.
    KeepStates,
    /// Write the second factor of each anonymous run into the drone's log, which the adversary reads.
    LogRunKem,
}

/// Collects the effects of a step, and writes records as the sabotage has it.
pub(crate) struct StepEffects<R> {
    pub(crate) effects: Vec<Effect>,
    /// Digest of the records, if the world is traced.
    pub(crate) records: Option<Sha256>,
    sabotage: Sabotage,
    /// Sabotage: records that become durable after everything has been transmitted.
    late: Vec<R>,
}

impl<R: Record> StepEffects<R> {
    pub(crate) fn new(sabotage: Sabotage, traced: bool) -> Self {
        Self { effects: Vec::new(), records: traced.then(Sha256::new), sabotage, late: Vec::new() }
    }

    fn write(&mut self, disk: &mut Disk<R>, record: R) -> Result<(), R> {
        match self.sabotage {
            Sabotage::TransmitBeforePersist => self.late.push(record),
            Sabotage::LoseRecords if record.bytes().is_multiple_of(2) => {}
            Sabotage::ForgetPins if record.is_pin() => {}
            _ => write(disk, record)?,
        }
        Ok(())
    }
}

/// Writes a record in no more memory than it needs.
fn write<R: Record>(disk: &mut Disk<R>, record: R) -> Result<(), R> {
    disk.write(if disk.keep == Keep::Nothing { record } else { record.compact() })
}

impl<M: Machine<Record: Record>> OutputSink<M> for StepEffects<M::Record>
where
    NodeEvent: From<M::Event>,
{
    fn persist(
        &mut self,
        disk: &mut Disk<M::Record>,
        record: M::Record,
        retried: bool,
    ) -> Result<(), M::Record> {
        let bytes = record.bytes();
        if retried {
            write(disk, record)?;
        } else {
            if let Some(hash) = &mut self.records {
                record.digest(&mut |bytes| hash.update(bytes));
            }
            self.write(disk, record)?;
        }
        self.effects.push(Effect::Persisted { bytes });
        Ok(())
    }

    fn transmit(&mut self, to: Destination, payload: Vec<u8>) {
        self.effects.push(Effect::Sent { to, payload: payload.into() });
    }

    fn report(&mut self, event: M::Event) {
        self.effects.push(Effect::Reported(Box::new(event.into())));
    }

    fn block(&mut self, peer: Peer) {
        self.effects.push(Effect::Blocked(peer));
    }

    fn disconnect(&mut self, peer: Peer) {
        if self.sabotage != Sabotage::KeepDrones {
            self.effects.push(Effect::Disconnected(peer));
        }
    }

    fn penalize(&mut self, peer: Peer, _: Misdeed) {
        self.effects.push(Effect::Penalized(peer));
    }

    fn relay(&mut self, peer: Peer, allowed: bool) {
        self.effects.push(Effect::Relayed { peer, allowed });
    }

    fn drained(&mut self, disk: &mut Disk<M::Record>) {
        for record in self.late.drain(..) {
            let _ = write(disk, record);
        }
    }

    fn stalled(&mut self) {
        self.effects.push(Effect::Stalled);
    }

    fn crashed(&mut self) {
        self.effects.push(Effect::Died);
    }
}

impl From<KgcEvent> for NodeEvent {
    fn from(event: KgcEvent) -> Self {
        Self::Kgc(event)
    }
}

impl<E: FeatureEvent> From<E> for NodeEvent {
    fn from(event: E) -> Self {
        Self::Feature(event.into())
    }
}

/// Events of a role and of the features' parts beside it.
impl<E> From<Either<E, Self>> for NodeEvent
where
    Self: From<E>,
{
    fn from(event: Either<E, Self>) -> Self {
        match event {
            Either::Left(event) => event.into(),
            Either::Right(event) => event,
        }
    }
}
