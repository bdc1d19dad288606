//! Commands, events and configuration of a leader.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{
    Deployment, Epoch, EpochKind, Error, Handle, IssuedToken, Name, Pseudonym, Serial, Slot, StrategyKind,
    Suite, UnixTime,
};
use quiver_kem::KemSetting;
use quiver_message::RefusalReason;
use zeroize::Zeroizing;

use crate::MessageOrigin;
use quiver_enrolment::{EnrolmentTrouble, Kgcs};
use quiver_machine::{Offence, Peer, Snapshot};

/// Request of a member without a name to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnonymousLeave {
    /// The group.
    pub group: Name,
    /// The member's slot.
    pub slot: Slot,
    /// D held.
    pub held: [u8; 32],
    /// [`leave_tag`](quiver_ainq::leave_tag) over it.
    pub tag: [u8; 32],
}

/// Configuration of a leader.
#[derive(Debug)]
pub struct LeaderConfig<S: Suite> {
    /// The deployment it belongs to.
    pub deployment: Deployment<S>,
    /// The group it leads; must be the one in its identity.
    pub group: Name,
    /// The token to enrol with, if it has not enrolled yet.
    pub token: Option<IssuedToken<S>>,
    /// The KGCs to enrol with.
    pub kgcs: Kgcs<S>,
    /// Drones that may join although their identity does not list the group, by serial: a drone that enrols
    /// later under the name of a revoked one is not meant.
    pub allow: BTreeSet<Serial>,
    /// The most members, at most 2^20.
    pub max_members: u32,
    /// Re-key strategy, from the next opening of a term on. Members follow either.
    pub strategy: StrategyKind,
    /// True if one transmission reaches all members, as over radio. Then the wraps of a tree go out once for
    /// all, however many they are. Otherwise every member has a link of its own, over which it is sent its
    /// path where that is less.
    pub shared_medium: bool,
    /// Times of the leader.
    pub timing: LeaderTiming,
}

impl<S: Suite> LeaderConfig<S> {
    /// A leader of at most 4,096 members, whose keys travel [flat](StrategyKind::Flat), in a deployment of
    /// one KGC.
    pub fn new(deployment: Deployment<S>, group: Name, token: Option<IssuedToken<S>>) -> Self {
        Self {
            deployment,
            group,
            token,
            kgcs: Kgcs::single(),
            allow: BTreeSet::new(),
            max_members: 4096,
            strategy: StrategyKind::default(),
            shared_medium: false,
            timing: LeaderTiming::default(),
        }
    }
}

/// Times of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderTiming {
    /// Validity of a group key. A new one is made when four fifths have passed.
    pub validity: Duration,
    /// Time for which a join or leave waits for another. Twice as long, and so on up to `batching_max`, while
    /// each soon follows the epoch of the one before.
    pub batching: Duration,
    /// Maximum of that time, however many arrive; [`ARRIVING`](Self::ARRIVING) times as long while the epoch
    /// before is still on its way to most of a large group.
    pub batching_max: Duration,
    /// Time to wait for acknowledgements before an epoch is sent again.
    pub resend: Duration,
    /// Lifetime of a challenge for drones that ask to join or to stand by; an hour at most. Over a radio with
    /// a duty cycle, the answer to one of hundreds of drones takes its time. Every request is remembered for
    /// as long.
    pub challenge: Duration,
    /// Time for which a member is kept that was never active in a term: it neither acknowledged an epoch nor
    /// is connected. It may join again. So a member that left just before its leader was lost, and is still
    /// on the copy that a deputy took over from, does not stay until its identity ends.
    pub absence: Duration,
    /// Silence of the leader in office after which another opens a term, if the group has other leaders.
    /// Those with higher ordinals wait longer by half of it each. Such a leader also waits for as long after
    /// a start before it leads. `None` for a single leader: it opens a term as soon as it starts.
    pub silence: Option<Duration>,
}

impl LeaderTiming {
    /// The longest life of a challenge.
    pub const MAX_CHALLENGE: Duration = Duration::from_secs(3600);
    /// Maximum wait of the first join or leave for the epoch before to arrive, in multiples of
    /// `batching_max`.
    pub const ARRIVING: u32 = 8;

    pub(crate) fn challenge_lifetime(&self) -> Duration {
        self.challenge.min(Self::MAX_CHALLENGE)
    }
}

impl Default for LeaderTiming {
    fn default() -> Self {
        Self {
            validity: Duration::from_secs(600),
            batching: Duration::from_millis(250),
            batching_max: Duration::from_secs(4),
            resend: Duration::from_secs(5),
            challenge: Duration::from_secs(120),
            absence: Duration::from_secs(86_400),
            silence: None,
        }
    }
}

/// Command of the operator to a leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderCommand {
    /// Make a new group key now, as on expiry.
    Rekey,
    /// Remove this drone now and keep it out.
    Evict(Name),
    /// Remove the holder of this slot. A member by name stays evicted, as with [`Evict`](Self::Evict); an
    /// anonymous one cannot: its credential can be shown again.
    EvictSlot(Slot),
    /// Renew κ (§24.5) with this member, or with all drones: it is forgotten, and the term that opens then
    /// lists those that have none as absent, so that they join again and make one.
    RenewKem(Option<Name>),
    /// Let this drone join although its identity does not list the group.
    Allow(Serial),
    /// Say something to the group, signed.
    Send {
        /// The application's channel.
        channel: Name,
        /// Content of at most 65,536 bytes.
        data: Vec<u8>,
    },
    /// Confirms that this machine's clock is right, because most of the nodes asked have the same time, or
    /// withdraws that. Before the first confirmation, a leader assumes that its clock may be wrong.
    ClockConfirmed(bool),
}

/// Event of a leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderEvent {
    /// The KGC issued the leader's key.
    Enrolled {
        /// The leader's name.
        name: Name,
    },
    /// A new epoch began.
    EpochActivated {
        /// The epoch.
        epoch: Epoch,
        /// The cause of the epoch.
        kind: EpochKind,
        /// Members now.
        members: usize,
        /// Members added.
        added: usize,
        /// Members removed.
        removed: usize,
    },
    /// Every member has acknowledged this epoch.
    Delivered {
        /// The epoch.
        epoch: Epoch,
        /// Number of members.
        members: usize,
    },
    /// A drone joined.
    Joined {
        /// The drone.
        name: Name,
        /// Slot of the member.
        slot: Slot,
    },
    /// An anonymous drone joined: it has shown that it satisfies the policy.
    Admitted {
        /// Pseudonym of the drone.
        pseudonym: Pseudonym,
        /// The slot.
        slot: Slot,
        /// End of this membership.
        until: UnixTime,
    },
    /// An anonymous member is out: it left, was evicted, or its time was over.
    Parted {
        /// Pseudonym of the drone.
        pseudonym: Pseudonym,
        /// The former slot.
        slot: Slot,
    },
    /// A member left or was removed.
    Removed {
        /// The member.
        name: Name,
        /// Former slot of the member.
        slot: Slot,
        /// True if it was evicted (otherwise it left).
        evicted: bool,
        /// True if that is because a revocation list names it.
        revoked: bool,
    },
    /// A drone that had lost its slot because it was away was evicted.
    Barred(Name),
    /// The name is not a member's, nor of one that is away.
    NoSuchMember(Name),
    /// No member has this slot.
    NobodyInSlot(Slot),
    /// κ was forgotten on command. The term that opened for it is durable, unless there was no κ.
    KemForgotten {
        /// Number of drones that make another.
        keys: usize,
    },
    /// Only the leader in office makes epochs: this one does not lead, or not yet. Nothing was done.
    NotLeading,
    /// A request was refused.
    Refused {
        /// The peer that asked.
        peer: Peer,
        /// Reason.
        reason: RefusalReason,
    },
    /// The KGC refuses to enrol this leader.
    EnrolmentRefused(RefusalReason),
    /// KGCs of a quorum do not do their part; enrolment goes on.
    EnrolmentTrouble(EnrolmentTrouble),
    /// A message to the group.
    Message {
        /// The application's channel.
        channel: Name,
        /// The plaintext.
        data: Zeroizing<Vec<u8>>,
        /// The sender.
        source: MessageOrigin,
    },
    /// A message could not be sent.
    SendFailed(&'static str),
    /// A second key of one identity signed validly, and was refused. The key first seen stays in force.
    SecondKey {
        /// The identity's name.
        name: Name,
        /// The second key.
        handle: Handle,
        /// True if that is evidence against the KGC, which was kept: where a quorum issues, a drone can make
        /// itself several keys.
        evident: bool,
    },
    /// A new epoch could not be made; the old one stays in force.
    RekeyFailed(Error),
    /// A newer revocation list is in force.
    RevocationList {
        /// Number of the list.
        number: u64,
    },
    /// Another leader opened a higher term: this one no longer leads.
    SteppedDown {
        /// The term seen.
        term: u64,
    },
    /// A leader that does not lead, this one, holds another's group on its disk, as of this epoch.
    StandingBy {
        /// The leader in office.
        leader: Name,
        /// The epoch whose roster is held.
        epoch: Epoch,
        /// Number of its members.
        members: usize,
    },
    /// The leader has been silent for too long: this one opens a term.
    TookOver {
        /// The newest epoch known before, if any.
        from: Option<Epoch>,
        /// Time without an answer until then, or since this leader started or was overruled.
        silent: Duration,
    },
    /// A deputy confirmed that it has these evictions on its disk: they outlive this leader.
    Replicated {
        /// The epoch from which on they are out.
        epoch: Epoch,
        /// The evicted drones.
        names: Vec<Name>,
        /// The deputy.
        deputy: Option<Name>,
    },
    /// A leader signed two different headers for one epoch. It is refused for good.
    Equivocation {
        /// The leader.
        leader: Name,
        /// Epoch of the two headers.
        epoch: Epoch,
    },
    /// A valid header of this leader's own, of an epoch that it does not remember: another process leads with
    /// a copy of its state, or that state is older than its group. It opens the next term.
    OwnHeader {
        /// The epoch.
        epoch: Epoch,
    },
    /// The deployment of a drone or of another leader says another parameter set of ML-KEM, or none. No
    /// drone joins so; another leader stands by all the same.
    KemDiffers {
        /// The peer.
        peer: Peer,
        /// Setting of this leader's deployment.
        own: KemSetting,
        /// Setting of the other's.
        other: KemSetting,
    },
    /// A peer did something wrong.
    Blamed {
        /// The peer.
        peer: Peer,
        /// The offence.
        offence: Offence,
    },
}

/// A change of what a leader must not forget. On start it is rebuilt from all records in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderRecord {
    pub(crate) state: Snapshot,
    /// True if it makes a secret of earlier records void.
    pub(crate) erases: bool,
}

impl LeaderRecord {
    /// A stored record.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { state: Snapshot::new(bytes), erases: false }
    }

    /// Returns true if it makes a secret void that earlier records have, so that the machine's
    /// [checkpoint](super::Leader::checkpoint) is to take the place of all of them before anything that
    /// follows is sent.
    #[must_use]
    pub const fn erases(&self) -> bool {
        self.erases
    }

    /// The bytes to store: they may hold secret keys.
    pub fn as_bytes(&self) -> &[u8] {
        self.state.as_bytes()
    }
}
