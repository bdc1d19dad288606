//! Interface of features that stand before a leader: gates, which say who is admitted.

use std::fmt;
use std::ops::Deref;
use std::pin::Pin;

use quiver_ainq::{Name, Ristretto255};
use quiver_group::{Leader, LeaderCommand, LeaderEvent, LeaderRecord};
use quiver_machine::{Input, Machine, Now, Output, Peer, Primary, forward_jobs, forward_primary};
use rand_core::CryptoRngCore;

use super::PartCommand;
use crate::drone::keys::Keys;
use crate::drone::{Result, RunningDrone};

/// A gate that a feature puts before a leader.
pub trait LeaderGate: Sync {
    /// Returns true if the gate needs authorities that the KGC has not named to this drone yet. Called before the
    /// leader is of use to anybody, so that wrong settings are refused at once.
    ///
    /// # Errors
    /// Errors of the gate's settings, for the leader of this group.
    fn lacks_authorities(&self, group: &Name, keys: &Keys) -> Result<bool>;

    /// Puts the gate before a leader.
    ///
    /// # Errors
    /// Errors of the gate's settings, and of authorities that the KGC does not name.
    fn put_before(&self, leader: Leader<Ristretto255>, keys: &Keys) -> Result<LeaderBehindGate>;
}

/// A leader with a gate before it, and the task beside its machine.
pub struct LeaderBehindGate {
    /// The machine.
    pub machine: Box<dyn GatedLeader>,
    /// Task beside it, which also fetches what the KGC grants this leader; `None` if the gate needs none.
    pub task: Option<GateTask>,
}

impl fmt::Debug for LeaderBehindGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderBehindGate").field("machine", &self.machine).finish_non_exhaustive()
    }
}

/// Task beside the machine of a leader with a gate before it.
pub type GateTask = Box<dyn FnOnce(RunningDrone<GroupLeader>) -> Pin<Box<dyn Future<Output = ()> + Send>>>;

/// The machine of a leader with a gate before it.
pub trait GatedLeader:
    Primary<
        Suite = Ristretto255,
        Command = GroupLeaderCommand,
        Event = GroupLeaderEvent,
        Record = LeaderRecord,
    > + fmt::Debug
    + Send
    + Sync
{
    /// The leader behind the gate.
    fn leader(&self) -> &Leader<Ristretto255>;
}

/// Command to a leader.
#[derive(Clone, Debug)]
pub enum GroupLeaderCommand {
    /// Command that every leader carries out.
    Leader(LeaderCommand),
    /// Command to the gate before it.
    Gate(PartCommand),
}

impl From<LeaderCommand> for GroupLeaderCommand {
    fn from(command: LeaderCommand) -> Self {
        Self::Leader(command)
    }
}

/// Event of a leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupLeaderEvent {
    /// Event that every leader reports.
    Leader(LeaderEvent),
    /// The gate did not let a drone in. The drone does not learn the reason.
    Denied {
        /// Connection of the drone.
        peer: Peer,
        /// The reason, for people.
        why: String,
    },
}

/// A leader, with a gate of a feature before it or without.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per process")]
pub enum GroupLeader {
    /// A leader without a gate.
    Open(Leader<Ristretto255>),
    /// A leader behind a gate.
    Gated(Box<dyn GatedLeader>),
}

impl From<Leader<Ristretto255>> for GroupLeader {
    fn from(leader: Leader<Ristretto255>) -> Self {
        Self::Open(leader)
    }
}

impl Deref for GroupLeader {
    type Target = Leader<Ristretto255>;

    /// Dereferences to the leader itself, whose state is read the same with a gate and without.
    fn deref(&self) -> &Leader<Ristretto255> {
        match self {
            Self::Open(leader) => leader,
            Self::Gated(machine) => machine.leader(),
        }
    }
}

impl Machine for GroupLeader {
    type Command = GroupLeaderCommand;
    type Event = GroupLeaderEvent;
    type Record = LeaderRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, GroupLeaderCommand>, rng: &mut dyn CryptoRngCore) {
        let leader = match self {
            Self::Open(leader) => leader,
            Self::Gated(machine) => return machine.handle_input(now, input, rng),
        };
        let own = input.filter_map(|command| match command {
            GroupLeaderCommand::Leader(command) => Some(command),
            GroupLeaderCommand::Gate(_) => None,
        });
        match own {
            Some(input) => leader.handle_input(now, input, rng),
            None => leader.wake(now, rng),
        }
    }

    fn poll_output(&mut self) -> Output<GroupLeaderEvent, LeaderRecord> {
        match self {
            Self::Open(leader) => leader.poll_output().map(GroupLeaderEvent::Leader, |record| record),
            Self::Gated(machine) => machine.poll_output(),
        }
    }

    forward_jobs! {
        Self::Open(leader) => leader,
        Self::Gated(machine) => machine,
    }
}

forward_primary! {
    impl Primary<Suite = Ristretto255> for GroupLeader {
        Self::Open(leader) => leader,
        Self::Gated(machine) => machine,
    }
}
