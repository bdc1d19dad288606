//! Contract between a group-keying scheme and the arena: a factory of machines, commands, and the key that each holds.
//!
//! A scheme with a delivery of its own implements [`Contender`] over machines of its own. Every other implements
//! [`KeyScheme`](crate::scheme::KeyScheme) and [`KeyHolder`](crate::scheme::KeyHolder), which the crate's machines put
//! behind fragments, acknowledgements and retransmissions.

use std::convert::Infallible;
use std::time::Duration;

use quiver_crypto::{Digest, Hasher, Secret};
use quiver_machine::{Machine, Peer};

/// Number of a member, from 0.
pub type MemberId = u32;

/// Handle of the controller in every member's machine.
pub const CONTROLLER: Peer = Peer(0);

/// Handle of a member in the controller's machine.
#[must_use]
pub const fn peer_of(member: MemberId) -> Peer {
    Peer(member as u64 + 1)
}

/// Member behind a handle; `None` for the controller's.
#[must_use]
pub fn member_of(peer: Peer) -> Option<MemberId> {
    u32::try_from(peer.0.checked_sub(1)?).ok()
}

/// Command of the operator. To a controller, each is one new key: the arena sees the key held after an input, so that
/// what a controller makes and replaces within one input is foreign to it. A removed member must open none of
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Order to the controller: admit these members and make a new key. The first of these commands forms the
    /// group.
    Admit(Vec<MemberId>),
    /// Order to the controller: remove these members and make a new key.
    Remove(Vec<MemberId>),
    /// Order to the controller: the key has expired; make a new one for the same members.
    Expire,
    /// Order to a member: the controller will admit it.
    Join,
}

/// Name of a key that tells nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub Digest);

impl Fingerprint {
    /// Fingerprint of a group key.
    #[must_use]
    pub fn of(key: &Secret<32>) -> Self {
        Self(Hasher::new("contenders key").fixed(key.expose()).finish())
    }
}

/// Key that a node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyState {
    /// Epoch, which grows with every new key.
    pub epoch: u64,
    /// Fingerprint of the key.
    pub key: Fingerprint,
}

/// Machine of a controller or a member, with the key that it holds. Its events say, for people, what went
/// wrong. A scheme keeps its own stored state.
pub trait Participant: Machine<Command = Command, Event = String, Record = Infallible> {
    /// Epoch and fingerprint of the key held; `None` without one.
    fn key_state(&self) -> Option<KeyState>;

    /// The key itself, for an adversary that captured the node; `None` if the scheme does not give it away.
    fn captured_key(&self) -> Option<Secret<32>> {
        None
    }
}

/// The radio as a scheme needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Payload bytes of a frame.
    pub capacity: usize,
    /// Time of a full frame of a member, with access to the channel, acknowledgement and duty cycle.
    pub frame: Duration,
    /// The same of the controller's.
    pub controller_frame: Duration,
}

/// Properties that no figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Answer to whether one node must be there for every new key.
    pub needs_leader: &'static str,
    /// Answer to whether the group recovers from the capture of one member's state, and how.
    pub heals: &'static str,
    /// Proof of the scheme's security.
    pub proof: &'static str,
    /// Standard that describes it.
    pub standard: &'static str,
    /// Answer to whether recordings stay closed to a quantum computer.
    pub quantum: &'static str,
    /// Notes on how it runs here, and how that differs from its description.
    pub notes: &'static str,
}

/// Origin of the secrets of a controller's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretsOrigin {
    /// Secrets of the group's controller.
    Genuine,
    /// No secrets, but public values alone: the machine of a usurper.
    Public,
}

/// Reason why a scheme cannot take part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContenderError {
    /// The scheme could not be set up or refused a step.
    #[error("{scheme}: {what}")]
    Scheme {
        /// The scheme.
        scheme: &'static str,
        /// The reason.
        what: String,
    },
    /// The arena was asked for more members than it takes, or for fewer than an event needs.
    #[error("{0} members: 2 to 100000 can be compared")]
    Members(u32),
}

/// A group-keying scheme: set up for a number of members, it makes their machines.
pub trait Contender {
    /// Name of the contender for people.
    fn name(&self) -> &'static str;

    /// Properties that no figure shows.
    fn facts(&self) -> Facts;

    /// Machine of a controller. Called again for one that starts anew, and for a usurper.
    ///
    /// # Errors
    /// [`ContenderError::Scheme`].
    fn controller(&mut self, authority: SecretsOrigin) -> Result<Box<dyn Participant>, ContenderError>;

    /// Machine of a member with its long-term secrets and nothing else. The same secrets whenever it is called.
    ///
    /// # Errors
    /// [`ContenderError::Scheme`].
    fn member(&mut self, id: MemberId) -> Result<Box<dyn Participant>, ContenderError>;

    /// Returns true if this member computes in full, so that its processor time and its key mean something.
    /// Others take the same bytes over the radio and answer in the same way.
    fn is_whole(&self, _member: MemberId) -> bool {
        true
    }

    /// Time between the first words of members that come together; zero: all at once. A scheme whose newcomers speak first
    /// needs it on a slow channel, because requests that queue for longer than their senders wait are sent again. It
    /// counts in the time of the event.
    fn pace_of_newcomers(&self) -> Duration {
        Duration::ZERO
    }
}
