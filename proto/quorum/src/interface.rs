//! Configuration, commands, records and events of a quorum's member.

use alloc::vec::Vec;

use quiver_ainq::{Handle, KgcId, Name, Purpose, Revoked, UnixTime};
use quiver_crypto::Hasher;
use quiver_crypto::canonical::Reader;
use quiver_machine::{Offence, Peer, Snapshot};
use quiver_message::quorum::{CeremonyKind, SignRefusalReason};
use quiver_quorum::PublicShares;

use super::{Ibe, QuorumMembership};

/// Configuration of a member of a quorum.
#[derive(Clone, Debug)]
pub struct QuorumConfig {
    /// The membership that all members have pinned.
    pub membership: QuorumMembership,
    /// Identifier of this member.
    pub id: KgcId,
    /// Time for which a revocation list counts as fresh, in seconds: the same at every member.
    pub revocation_validity: u64,
    /// Statements about identity-based encryption that this member signs without an operator's approval; `None` for a
    /// program that has no such scheme, and cannot tell what it would sign.
    pub ibe_statements: Option<IbeStatements>,
}

/// Form of the statements about identity-based encryption.
#[derive(Clone, Copy, Debug)]
pub struct IbeStatements {
    /// The scheme that they name.
    pub scheme: &'static str,
    /// Encodes the public shares in the statement about the authority, as
    /// [`AuthorityStatement::parameters`](quiver_ainq::AuthorityStatement::parameters). [`PublicShares::encode`]
    /// unless the scheme has an encoding of its own.
    pub parameters: fn(&PublicShares<Ibe>) -> Vec<u8>,
}

/// Commands of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuorumCommand {
    /// Take part in making both keys, with all members. Given at every member.
    Generate,
    /// Make new shares of both keys, with all members. Given at one; the others join.
    Refresh,
    /// Leave a ceremony that has not come to new shares. If it has, they are kept, but another ceremony may
    /// begin although not all members have confirmed theirs.
    Abandon,
    /// Put new shares in force, and erase the old ones, although not all members have confirmed theirs. For
    /// an operator who knows that the others have theirs in force.
    Adopt,
    /// The shares are lost: ask the other members for them.
    Recover,
    /// Help this member to recover its shares, once. Given at t members at least, within an hour, by
    /// operators who know that the peer behind this member is now the right one.
    HelpRecover(KgcId),
    /// Have these revoked. They are as soon as t operators want it.
    Revoke(Vec<Revoked>),
    /// A revocation list that the quorum has signed, from a source outside it: kept if it is valid and newer.
    TakeRevocations(Vec<u8>),
    /// A leader shall be revoked that signed two headers for one epoch: an encoded
    /// [`Message::EquivocationProof`](quiver_message::Message::EquivocationProof). Needs no operator.
    Prove(Vec<u8>),
    /// Sign the statement with this digest, if it is proposed: see [`approval`].
    Approve([u8; 32]),
    /// Sign no such statement any more.
    Withdraw([u8; 32]),
    /// Have this signed, a statement about an authority or a policy of admission: approved here, and wherever
    /// it is approved.
    Propose(Vec<u8>),
}

/// Digest by which operators approve the statement with this body: H("quiver/1 quorum approval", purpose,
/// body). 32 bytes.
#[must_use]
pub fn approval(body: &[u8]) -> [u8; 32] {
    Hasher::new("quiver/1 quorum approval").lp(proposed(body).as_str().as_bytes()).lp(body).finish()
}

/// The purpose of a statement that operators propose and approve: its first word distinguishes a policy of
/// admission from a statement about an authority.
pub(super) fn proposed(body: &[u8]) -> Purpose {
    let policy = Purpose::AbkePolicy;
    match Reader::new(body).lp(body.len()) {
        Ok(word) if word == policy.as_str().as_bytes() => policy,
        _ => Purpose::Parameters,
    }
}

/// Events of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuorumEvent {
    /// A member has begun a ceremony in which this one does not take part.
    Invited {
        /// The member.
        by: KgcId,
        /// The purpose.
        kind: CeremonyKind,
    },
    /// All members are there; the rounds begin.
    SessionBegun {
        /// The purpose.
        kind: CeremonyKind,
    },
    /// The new shares are durable. They are in force once all members have confirmed theirs.
    SharesMade {
        /// The purpose.
        kind: CeremonyKind,
        /// Version of the shares.
        version: u32,
    },
    /// Shares are in force, and older ones are erased.
    SharesInForce {
        /// Version of the shares.
        version: u32,
    },
    /// A ceremony ended without result. Shares that were in force still are.
    Aborted {
        /// The purpose.
        kind: CeremonyKind,
        /// Reason.
        cause: AbortCause,
    },
    /// A command that makes no sense now.
    Refused(&'static str),
    /// A member asks for help because its shares are lost, and no operator has approved it.
    HelpWanted {
        /// The member.
        by: KgcId,
    },
    /// A member asks for help once more: what its operator approved was a repair before.
    HelpWantedAgain {
        /// The member.
        by: KgcId,
    },
    /// This member has done its part to give another its shares back.
    Helped {
        /// The member.
        member: KgcId,
    },
    /// Shares are back.
    Recovered {
        /// Version of the shares.
        version: u32,
    },
    /// The helpers' answers do not make the lost shares. Tried again without those to blame.
    RecoveryFailed {
        /// The helpers.
        helpers: Vec<KgcId>,
        /// The helpers to blame, as far as they can be determined.
        culprits: Vec<KgcId>,
    },
    /// The quorum has signed a revocation list, and this member holds it.
    RevocationList {
        /// Number of the list.
        number: u64,
    },
    /// The quorum has signed its statement about the shares in force, and this member holds it.
    QuorumStatement {
        /// Version of the shares.
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
        /// The purpose.
        purpose: Purpose,
        /// Members that would have signed, this one among them.
        willing: Vec<KgcId>,
        /// Members that refused, and their reasons.
        unwilling: Vec<(KgcId, SignRefusalReason)>,
        /// Members that have not answered.
        silent: Vec<KgcId>,
    },
    /// A member sent a share of a signature that does not verify. It is left out of the next attempts.
    WrongShare {
        /// The member.
        by: KgcId,
    },
    /// A revocation of more drones than can be signed, or proposed at one time.
    TooMany,
    /// A leader has signed two headers for one epoch: it will be revoked.
    Equivocation {
        /// Name of the drone.
        name: Name,
        /// Key of the drone.
        handle: Handle,
    },
    /// A member did something wrong.
    Blamed {
        /// The member.
        member: KgcId,
        /// The offence.
        offence: Offence,
    },
    /// A peer that is no member sent a message that is for members alone.
    Stranger(Peer),
}

/// Reason why a ceremony ended without result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbortCause {
    /// A member sent an invalid message.
    Fault {
        /// The member.
        culprit: KgcId,
        /// The fault.
        fault: &'static str,
    },
    /// A member reports other commitments of a sender than were received here: one of the two lies.
    Transcript {
        /// The member whose commitments differ.
        sender: KgcId,
        /// The member that reports it.
        reporter: KgcId,
    },
    /// A member has left.
    Left {
        /// The member.
        member: KgcId,
        /// The member that it blames.
        blames: Option<KgcId>,
    },
    /// A member has begun anew.
    Restarted {
        /// The member.
        member: KgcId,
    },
    /// Abandoned by this member's operator.
    Abandoned,
    /// New shares that had been waiting for confirmation came into force.
    Superseded,
    /// Failed, because this member cannot do its part.
    Internal(&'static str),
}

/// Durable record of a member. Of each kind the newest counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuorumRecord {
    /// The shares in force. Secret.
    Keys(Snapshot),
    /// The ceremony under way, and what was made in it. Secret.
    Ceremony(Snapshot),
    /// The operator's proposals, and the statements that bind this member because it has signed them.
    Statements(Vec<u8>),
    /// The newest revocation list.
    RevocationList {
        /// Number of the list.
        number: u64,
        /// The signed list, encoded.
        list: Vec<u8>,
    },
    /// The quorum's statement about the shares in force: an encoded
    /// [`QuorumStatement`](quiver_ainq::QuorumStatement).
    QuorumStatement(Vec<u8>),
}

/// Status of a member, for its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumView {
    /// Version of the shares in force.
    pub version: Option<u32>,
    /// Number of the newest revocation list; 0 for none.
    pub list: u64,
    /// True if the quorum's statement about the shares in force is held.
    pub statement: bool,
    /// The ceremony under way.
    pub ceremony: Option<CeremonyView>,
    /// True if the shares are being asked for.
    pub recovering: bool,
    /// The other members.
    pub members: Vec<MemberView>,
    /// Number of drones that this member's operator wants revoked and the list does not name yet.
    pub proposed: usize,
}

/// A ceremony under way, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CeremonyView {
    /// The purpose.
    pub kind: CeremonyKind,
    /// The stage.
    pub stage: CeremonyStage,
    /// Members that it waits for.
    pub waits_for: Vec<KgcId>,
}

/// Stage of a ceremony.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CeremonyStage {
    /// Waits until all members take part.
    Gathering,
    /// Waits until all have committed.
    Committing,
    /// Waits until all have the same commitments.
    Echoing,
    /// Waits until all have sent their shares.
    Sharing,
    /// Waits until all new shares are durable.
    Confirming,
}

/// Another member, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// The member.
    pub id: KgcId,
    /// True if there is a connection.
    pub connected: bool,
    /// Version of its shares in force, as it reported.
    pub version: Option<u32>,
    /// True if the member is of the same quorum and version as this one.
    pub agrees: bool,
    /// True if its last message was of another membership than the one pinned here.
    pub foreign: bool,
}

/// Time from which on a list is renewed: a quarter of its life before it ends, so that readers have the next
/// one in time.
pub(super) const fn renewal_time(next_update: UnixTime, validity: u64) -> UnixTime {
    next_update.saturating_sub(validity / 4)
}

/// The purpose with this tag, among those that a quorum signs as statements.
pub(super) fn purpose(tag: &Name) -> Option<Purpose> {
    let signed = [Purpose::Quorum, Purpose::Revocation, Purpose::Parameters, Purpose::AbkePolicy];
    signed.into_iter().find(|purpose| purpose.as_str() == tag.as_str())
}

/// The tag as a message carries it.
pub(super) fn tag(purpose: Purpose) -> Option<Name> {
    Name::new(purpose.as_str()).ok()
}
