//! Configuration, commands, records and events of a quorum's member.

use alloc::vec::Vec;

use quiver_ainq::{Handle, KgcId, Name, Purpose, Revoked, UnixTime};
use quiver_crypto::Hasher;
use quiver_crypto::canonical::Reader;
use quiver_machine::{Offence, Peer, Snapshot};
use quiver_message::quorum::{CeremonyKind, SignRefusalReason};
use quiver_quorum::PublicShares;

use super::{Ibe, QuorumMembership};

/// What a member of a quorum is set up with.
#[derive(Clone, Debug)]
pub struct QuorumConfig {
    /// What all members have pinned.
    pub membership: QuorumMembership,
    /// Which of them this is.
    pub id: KgcId,
    /// For how long a revocation list counts as fresh, in seconds: the same at every member.
    pub revocation_validity: u64,
    /// How the public shares of identity-based encryption stand in a member's statement about its part in it, as
    /// [`AuthorityStatement::parameters`](quiver_ainq::AuthorityStatement::parameters): members sign such a statement without
    /// an operator's word. [`PublicShares::encode`] unless the scheme has an encoding of its own.
    pub ibe_parameters: fn(&PublicShares<Ibe>) -> Vec<u8>,
}

/// What the operator asks of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuorumCommand {
    /// Take part in making both keys, with all members. Given at every member.
    Generate,
    /// Make new shares of both keys, with all members. Given at one; the others join.
    Refresh,
    /// Leave a ceremony that has not come to new shares. If it has, they are kept, but another ceremony may begin although
    /// not all members have confirmed theirs.
    Abandon,
    /// Put new shares in force, and erase the old ones, although not all members have confirmed theirs. For an operator
    /// who knows that the others have theirs in force.
    Adopt,
    /// The shares are lost: ask the other members for them.
    Recover,
    /// Help this member to its shares. Given at t members at least, within an hour, by operators who know that whoever
    /// answers for this member now is the right one.
    HelpRecover(KgcId),
    /// Have these revoked. They are as soon as t operators want it.
    Revoke(Vec<Revoked>),
    /// A revocation list that the quorum has signed, from somebody who is no member: kept if it holds and is newer.
    TakeRevocations(Vec<u8>),
    /// A leader shall be revoked that signed two headers for one epoch: an encoded
    /// [`Message::EquivocationProof`](quiver_message::Message::EquivocationProof). Needs no operator.
    Prove(Vec<u8>),
    /// Sign the statement with this digest, if somebody proposes it: see [`approval`].
    Approve([u8; 32]),
    /// Sign no such statement any more.
    Withdraw([u8; 32]),
    /// Have this signed, a statement about an authority or a policy of admission: approved here, and wherever it is approved.
    Propose(Vec<u8>),
}

/// What names the statement with this body to those who approve it: H("quiver/1 quorum approval", purpose, body). 32 bytes.
#[must_use]
pub fn approval(body: &[u8]) -> [u8; 32] {
    Hasher::new("quiver/1 quorum approval").lp(proposed(body).as_str().as_bytes()).lp(body).finish()
}

/// The purpose of a statement that operators propose and approve: its first word says whether it is a policy of admission or about
/// an authority.
pub(super) fn proposed(body: &[u8]) -> Purpose {
    let policy = Purpose::AbkePolicy;
    match Reader::new(body).lp(body.len()) {
        Ok(word) if word == policy.as_str().as_bytes() => policy,
        _ => Purpose::Parameters,
    }
}

/// What a member reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuorumEvent {
    /// A member has begun a ceremony in which this one does not take part.
    Invited {
        /// Who.
        by: KgcId,
        /// What for.
        kind: CeremonyKind,
    },
    /// All members are there; the rounds begin.
    SessionBegun {
        /// What for.
        kind: CeremonyKind,
    },
    /// The new shares are durable. They are in force once all members have confirmed theirs.
    SharesMade {
        /// What for.
        kind: CeremonyKind,
        /// Of the shares.
        version: u32,
    },
    /// Shares are in force, and older ones are erased.
    SharesInForce {
        /// Of the shares.
        version: u32,
    },
    /// A ceremony ended without result. Shares that were in force still are.
    Aborted {
        /// What for.
        kind: CeremonyKind,
        /// Why.
        cause: AbortCause,
    },
    /// A command that makes no sense now.
    Refused(&'static str),
    /// A member asks for help because its shares are lost, and no operator has said to help it.
    HelpWanted {
        /// Who.
        by: KgcId,
    },
    /// This member has done its part to give another its shares back.
    Helped {
        /// Who.
        member: KgcId,
    },
    /// Shares are back.
    Recovered {
        /// Of the shares.
        version: u32,
    },
    /// What came from helpers does not make the shares that are lost. Tried again without those to blame.
    RecoveryFailed {
        /// Who helped.
        helpers: Vec<KgcId>,
        /// Who is to blame, as far as it can be told.
        culprits: Vec<KgcId>,
    },
    /// The quorum has signed a revocation list, and this member holds it.
    RevocationList {
        /// Its number.
        number: u64,
    },
    /// The quorum has signed its statement about the shares in force, and this member holds it.
    QuorumStatement {
        /// Of the shares.
        version: u32,
    },
    /// The quorum has signed what was proposed here.
    Signed {
        /// The statement's body.
        body: Vec<u8>,
        /// The encoded signature.
        signature: Vec<u8>,
    },
    /// A statement could not be signed for now.
    NotSigned {
        /// What about.
        purpose: Purpose,
        /// Who would have signed, this member among them.
        willing: Vec<KgcId>,
        /// Who would not, and why.
        unwilling: Vec<(KgcId, SignRefusalReason)>,
        /// Who has not answered.
        silent: Vec<KgcId>,
    },
    /// A member sent a share of a signature that does not verify. It is left out of the next attempts.
    WrongShare {
        /// Who.
        by: KgcId,
    },
    /// A list of what to revoke that is too long to be signed, or to be wished for at one time.
    TooMany,
    /// A leader has signed two headers for one epoch: it will be revoked.
    Equivocation {
        /// Its name.
        name: Name,
        /// Its key.
        handle: Handle,
    },
    /// A member did something wrong.
    Blamed {
        /// Who.
        member: KgcId,
        /// What.
        offence: Offence,
    },
    /// Somebody who is no member sent a message that is for members alone.
    Stranger(Peer),
}

/// Why a ceremony ended without result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbortCause {
    /// A member sent what it must not.
    Fault {
        /// Who.
        culprit: KgcId,
        /// What.
        fault: &'static str,
    },
    /// A member says that another sent it other commitments than were sent here: one of the two lies.
    Transcript {
        /// Whose commitments differ.
        sender: KgcId,
        /// Who says so.
        reporter: KgcId,
    },
    /// A member has left.
    Left {
        /// Who.
        member: KgcId,
        /// Whom it blames.
        blames: Option<KgcId>,
    },
    /// A member has begun anew.
    Restarted {
        /// Who.
        member: KgcId,
    },
    /// This member's operator.
    Abandoned,
    /// New shares that had been waiting for confirmation came into force.
    Superseded,
    /// This member cannot do its part.
    Internal(&'static str),
}

/// What a member must not forget. Of each kind the newest counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuorumRecord {
    /// The shares in force. Secret.
    Keys(Snapshot),
    /// The ceremony under way, and what was made in it. Secret.
    Ceremony(Snapshot),
    /// What the operator wants, and what this member is bound by because it has signed it.
    Statements(Vec<u8>),
    /// The newest revocation list.
    RevocationList {
        /// Its number.
        number: u64,
        /// The signed list, encoded.
        list: Vec<u8>,
    },
    /// The quorum's statement about the shares in force: an encoded [`QuorumStatement`](quiver_ainq::QuorumStatement).
    QuorumStatement(Vec<u8>),
}

/// Where a member stands, for its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumView {
    /// Of the shares in force.
    pub version: Option<u32>,
    /// Of the newest revocation list; 0 for none.
    pub list: u64,
    /// Whether the quorum's statement about the shares in force is held.
    pub statement: bool,
    /// The ceremony under way.
    pub ceremony: Option<CeremonyView>,
    /// Whether the shares are being asked for.
    pub recovering: bool,
    /// The other members.
    pub members: Vec<MemberView>,
    /// How many drones this member's operator wants revoked that the list does not name yet.
    pub wishes: usize,
}

/// A ceremony under way, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CeremonyView {
    /// What for.
    pub kind: CeremonyKind,
    /// How far.
    pub stage: Stage,
    /// Whom it waits for.
    pub waits_for: Vec<KgcId>,
}

/// How far a ceremony is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Until all members take part.
    Gathering,
    /// Until all have committed.
    Committing,
    /// Until all have the same commitments.
    Echoing,
    /// Until all have sent their shares.
    Sharing,
    /// Until all new shares are durable.
    Confirming,
}

/// Another member, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// Who.
    pub id: KgcId,
    /// Whether there is a connection.
    pub connected: bool,
    /// Of its shares in force, as it said.
    pub version: Option<u32>,
    /// Whether these are of the same quorum and version as ours.
    pub agrees: bool,
}

/// Whether and how a list must be renewed: a quarter of its life before it ends.
pub(super) const fn renewal_time(next_update: UnixTime, validity: u64) -> UnixTime {
    next_update.saturating_sub(validity / 4)
}

/// The purpose that has this tag, among those that a quorum signs as statements.
pub(super) fn purpose(tag: &Name) -> Option<Purpose> {
    let signed = [Purpose::Quorum, Purpose::Revocation, Purpose::Parameters, Purpose::AbkePolicy];
    signed.into_iter().find(|purpose| purpose.as_str() == tag.as_str())
}

/// The tag as a message carries it.
pub(super) fn tag(purpose: Purpose) -> Option<Name> {
    Name::new(purpose.as_str()).ok()
}
