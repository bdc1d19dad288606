//! Actions: what operators, applications, faults and the adversary do, at a time.

use std::fmt;
use std::time::Duration;

use quiver_ainq::KgcId;

use crate::admission::CertifiedFields;
use crate::{AirSetup, DiskState, LinkFaults, NodeId, Partition};

/// A forged message, made without an identity or by a member that uses none of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, derive_more::Display)]
pub enum Forgery {
    /// Asks the whole group for its revocation list, and every leader several times.
    #[display("asks everybody for a revocation list")]
    RevocationQuery,
    /// Publishes a header of the group that it received, and nothing with it.
    #[display("publishes a header that it received")]
    KnownHeader,
    /// Publishes the opening of a term that it received, with an entry for a member that names a spare point
    /// that never was (q = 0) or is gone.
    #[display("publishes a header that it received, with a forged entry")]
    Entry,
    /// Publishes a message that it received, with some of its last bytes altered: wraps, ciphertexts,
    /// signatures.
    #[display("publishes a message that it received, altered")]
    Altered,
    /// Publishes a message to the group in a member's name, with a signature that is another's.
    #[display("publishes a message in a member's name")]
    SignedMessage,
    /// Asks to join in a member's name, with signatures that are another's.
    #[display("asks to join in a member's name")]
    JoinRequest,
    /// Asks leaders which epoch they are in, in the names of many members.
    #[display("asks for the newest epoch in the names of members")]
    CatchUps,
}

impl Forgery {
    /// All there are.
    pub const ALL: [Self; 7] = [
        Self::RevocationQuery,
        Self::KnownHeader,
        Self::Entry,
        Self::Altered,
        Self::SignedMessage,
        Self::JoinRequest,
        Self::CatchUps,
    ];
}

/// Action on the world at a time.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Switch a node on, if it is off.
    Start(NodeId),
    /// Switch a node off: state that is not durable is lost.
    Stop(NodeId),
    /// The node dies after so many more outputs (none: before its next one), and is started again after a
    /// while.
    Crash {
        /// The node.
        node: NodeId,
        /// Outputs it still brings about.
        after: u32,
        /// Time from its crash until it is started again.
        down_for: Duration,
    },
    /// The application at an edge wants into the group.
    Join(u32),
    /// The application at an edge wants out.
    Leave(u32),
    /// The operator commands the leaders to evict an edge.
    Evict(u32),
    /// The operator commands the KGC to revoke an edge.
    Revoke(u32),
    /// The operator commands the leaders to make a new group key.
    Rekey,
    /// The operator renews κ with this edge, or with all.
    RenewKem(Option<u32>),
    /// The operator certifies fields of an anonymous drone from now on: it proves them when it applies next.
    Certify {
        /// The drone.
        edge: u32,
        /// The fields.
        fields: CertifiedFields,
    },
    /// The operator revokes the certificate of an anonymous drone: it gets no credential from the next period
    /// on.
    Decertify(u32),
    /// A node sends a message to the group.
    Talk {
        /// The sender.
        node: NodeId,
        /// The content: a number that receivers are checked for.
        number: u32,
        /// True if an edge signs it; leaders always do.
        signed: bool,
    },
    /// Set the faults of all links.
    Links(LinkFaults),
    /// Set the faults of one node's links; `None`: those of all others.
    LinksOf(NodeId, Option<LinkFaults>),
    /// Change the radio, in a world that has one.
    Radio(Box<AirSetup>),
    /// Partition the network, until the world is healed.
    Part(Partition),
    /// End all partitions.
    Heal,
    /// A node's wall clock is wrong by so many seconds from now on.
    Skew {
        /// The node.
        node: NodeId,
        /// Seconds ahead; negative for behind.
        seconds: i64,
    },
    /// A node's disk does this from now on.
    Disk(NodeId, DiskState),
    /// End all faults, correct the clocks, and switch on every node that is off.
    Calm,
    /// The adversary copies all state of a drone; the drone goes on.
    Capture(u32),
    /// The adversary copies all state of a KGC; the KGC goes on.
    Seize(KgcId),
    /// A KGC begins, or ceases, to hand out wrong shares.
    Lie {
        /// The KGC.
        kgc: KgcId,
        /// True if it lies.
        lies: bool,
    },
    /// A relay becomes hostile: it drops, repeats, swaps, withholds and alters what it passes on. Or an honest one takes
    /// its place.
    Subvert {
        /// The relay.
        relay: u16,
        /// True if it is hostile.
        hostile: bool,
    },
    /// The leader seals an order to the mission's second phase and hands it on to the group.
    Order(u32),
    /// The operator of a KGC approves that the second phase has begun.
    Approve(KgcId),
    /// The adversary repeats one of the messages sent so far to a node.
    Replay {
        /// Number of the message, counted from the first one, wrapping.
        pick: u64,
        /// The receiver.
        to: NodeId,
    },
    /// The adversary sends a header for the next term signed with the keys of a captured or hostile drone,
    /// which is no leader of the group.
    Usurp {
        /// The edge whose keys are used.
        edge: u32,
        /// Number of rounds by which its term claims to be newer than the newest.
        rounds: u32,
    },
    /// A node connected to leaders sends forged messages, without use of any identity.
    Forge {
        /// The edge over whose connections they are sent.
        by: u32,
        /// Kind of forgery.
        what: Forgery,
        /// Seed of its random choices.
        pick: u64,
    },
    /// A leader that has two keys under one serial opens one term under each of them. Some members get the
    /// one and some the other; later everybody is handed both headers.
    DoubleTerm {
        /// Number of rounds by which the term is newer than the newest.
        rounds: u32,
        /// Bit by bit, who gets which.
        split: u64,
        /// Time until every node receives both.
        crossing: Duration,
    },
}

impl Action {
    /// Name of its kind, for counts.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Start(_) => "start",
            Self::Stop(_) => "stop",
            Self::Crash { .. } => "crash",
            Self::Join(_) => "join",
            Self::Leave(_) => "leave",
            Self::Evict(_) => "eviction",
            Self::Revoke(_) => "revocation",
            Self::Rekey => "re-key",
            Self::RenewKem(_) => "renewal of second factors",
            Self::Certify { .. } => "certification",
            Self::Decertify(_) => "withdrawn certification",
            Self::Talk { .. } => "message",
            Self::Links(_) | Self::LinksOf(..) => "faults of links",
            Self::Radio(_) => "change of the radio",
            Self::Part(_) => "partition",
            Self::Heal => "end of partitions",
            Self::Skew { .. } => "wrong clock",
            Self::Disk(..) => "fault of a disk",
            Self::Calm => "end of all faults",
            Self::Capture(_) => "captured drone",
            Self::Seize(_) => "captured KGC",
            Self::Lie { .. } => "lying KGC",
            Self::Subvert { .. } => "hostile relay",
            Self::Order(_) => "order to a condition",
            Self::Approve(_) => "approval",
            Self::Replay { .. } => "replay",
            Self::Usurp { .. } => "usurper",
            Self::Forge { .. } => "forgery",
            Self::DoubleTerm { .. } => "equivocation",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(node) => write!(f, "{node} is switched on"),
            Self::Stop(node) => write!(f, "{node} is switched off"),
            Self::Crash { node, after, down_for } => {
                write!(f, "{node} crashes after {after} more outputs and restarts {down_for:?} later")
            }
            Self::Join(edge) => write!(f, "edge-{edge} asks to join the group"),
            Self::Leave(edge) => write!(f, "edge-{edge} leaves the group"),
            Self::Evict(edge) => write!(f, "the operator evicts edge-{edge}"),
            Self::Revoke(edge) => write!(f, "the operator revokes edge-{edge}"),
            Self::Certify { edge, fields } => write!(f, "the operator certifies {fields} for edge-{edge}"),
            Self::Decertify(edge) => write!(f, "the operator withdraws the certification of edge-{edge}"),
            Self::Rekey => write!(f, "the operator commands a re-key"),
            Self::RenewKem(None) => write!(f, "the operator renews all second factors"),
            Self::RenewKem(Some(edge)) => write!(f, "the operator renews the second factor with edge-{edge}"),
            Self::Talk { node, number, signed } => {
                write!(f, "{node} sends message {number}{}", if *signed { ", signed" } else { "" })
            }
            Self::Links(faults) => write!(f, "links: {faults}"),
            Self::LinksOf(node, Some(faults)) => write!(f, "links of {node}: {faults}"),
            Self::LinksOf(node, None) => write!(f, "links of {node}: as those of all others"),
            Self::Radio(air) => write!(f, "radio: {}", air.profile.preset()),
            Self::Part(partition) => write!(f, "partition: {partition}"),
            Self::Heal => write!(f, "all partitions end"),
            Self::Skew { node, seconds } => write!(f, "{node}'s wall clock is {seconds:+} s wrong"),
            Self::Disk(node, state) => write!(f, "{node}'s disk: {state}"),
            Self::Calm => f.write_str("all faults end"),
            Self::Capture(edge) => write!(f, "the adversary captures edge-{edge}"),
            Self::Seize(kgc) => write!(f, "the adversary takes all that kgc-{kgc} has"),
            Self::Lie { kgc, lies: true } => write!(f, "kgc-{kgc} begins to lie"),
            Self::Lie { kgc, lies: false } => write!(f, "kgc-{kgc} ceases to lie"),
            Self::Subvert { relay, hostile: true } => write!(f, "relay-{relay} becomes hostile"),
            Self::Subvert { relay, hostile: false } => {
                write!(f, "relay-{relay} is replaced by an honest one")
            }
            Self::Order(number) => write!(f, "the leader hands on order {number}, sealed to phase 2"),
            Self::Approve(kgc) => write!(f, "the operator of kgc-{kgc} approves phase 2"),
            Self::Replay { pick, to } => write!(f, "the adversary repeats message {pick} to {to}"),
            Self::Forge { by, what, .. } => write!(f, "somebody on edge-{by}'s connections {what}"),
            Self::DoubleTerm { rounds, crossing, .. } => write!(
                f,
                "a leader with two keys opens a term twice, {rounds} rounds ahead; {crossing:?} later both are known"
            ),
            Self::Usurp { edge, rounds } => {
                write!(f, "the adversary opens a term with edge-{edge}'s keys, {rounds} rounds ahead")
            }
        }
    }
}
