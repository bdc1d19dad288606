//! Configuration, commands, records and events of the KGC.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{
    Deployment, Epoch, Error, Handle, KgcId, MasterSecret, Name, OperatorPublicKey, RevocationStatement,
    Revoked, Suite, UnixTime,
};
use quiver_crypto::Secret;
use quiver_machine::{Offence, Peer};
use quiver_message::RefusalReason;

use super::KgcSigningKey;

/// Configuration of a KGC.
#[derive(Debug)]
pub struct KgcConfig<S: Suite> {
    /// The deployment it issues keys for.
    pub deployment: Deployment<S>,
    /// The master secret x, or a share of it.
    pub master: KgcSigningKey<S>,
    /// FROST identifier of the KGC; 1 for a single KGC, that of its share in a quorum.
    pub id: KgcId,
    /// Public keys of the operators whose tokens it accepts.
    pub operators: Vec<OperatorPublicKey<S>>,
    /// Key of the stateless cookies; random at every start.
    pub cookie_key: Secret<32>,
    /// Time for which a revocation list counts as fresh, in seconds.
    pub revocation_validity: u64,
}

impl<S: Suite> KgcConfig<S> {
    /// A single KGC, whose revocation lists count as fresh for a day.
    pub fn single(
        deployment: Deployment<S>,
        master: MasterSecret<S>,
        operators: Vec<OperatorPublicKey<S>>,
        cookie_key: Secret<32>,
    ) -> Self {
        let master = master.into();
        Self { deployment, master, id: 1, operators, cookie_key, revocation_validity: 86_400 }
    }
}

/// Commands of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KgcCommand {
    /// Sign and distribute a revocation list that also names these. Of those that were enrolled here the KGC
    /// uses its own records. Drones that wait for a signature are not durable: the caller stores them, and
    /// gives them again after a start.
    RevokeDrones(Vec<Revoked>),
    /// A revocation list that the quorum signed, encoded: kept and spread if it holds and is newer.
    TakeRevocations(Vec<u8>),
    /// Honour these tokens no longer. The caller has made it durable.
    RevokeTokens(Vec<[u8; 16]>),
}

/// Events of a KGC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KgcEvent {
    /// A partial key was issued.
    Issued {
        /// The token's id, which is the identity's serial.
        token_id: [u8; 16],
        /// The drone's name.
        name: Name,
        /// The handle of its public key.
        handle: Handle,
    },
    /// A KGC of a quorum bound a token to the request it has seen first.
    Pinned {
        /// The token's id, which is the identity's serial.
        token_id: [u8; 16],
        /// The drone's name.
        name: Name,
    },
    /// A KGC of a quorum contributed to the signature that makes this a drone's key, if t of them do.
    Contributed {
        /// The token's id.
        token_id: [u8; 16],
        /// The drone's name.
        name: Name,
        /// The handle of the public key to come.
        handle: Handle,
    },
    /// A drone proved to a KGC of a quorum that it holds a key: its token is good for no more shares.
    Enrolled {
        /// The token's id.
        token_id: [u8; 16],
        /// The handle of the public key it holds.
        handle: Handle,
    },
    /// A byte-identical request got the stored reply again.
    Repeated {
        /// The token's id.
        token_id: [u8; 16],
    },
    /// A request was refused.
    Refused {
        /// The peer that asked.
        peer: Peer,
        /// The token's id, if it could be read.
        token_id: Option<[u8; 16]>,
        /// Reason.
        reason: RefusalReason,
    },
    /// A revocation list was signed.
    RevocationListSigned {
        /// Number of the list.
        number: u64,
    },
    /// A peer claims to hold a list with a number above this KGC's own, as if this KGC had been put back from
    /// a backup: the peer is asked for it.
    RevocationListClaimed {
        /// The peer.
        peer: Peer,
        /// Number of the list that it claims to hold.
        claimed: u64,
        /// Number of the list held here.
        held: u64,
    },
    /// A peer had a newer list that this KGC, or its quorum, once signed: it is in force here again.
    RevocationListAdopted {
        /// Number of the list.
        number: u64,
    },
    /// Revocations are not signed for now, because a peer claims to hold a newer list; in this time at the
    /// latest they are.
    RevocationDeferred {
        /// Length of the wait.
        wait: Duration,
    },
    /// The newest list takes four fifths of its limit, or of the limit of boards.
    RevocationListFills {
        /// Limit that the list nears.
        what: &'static str,
        /// Bytes.
        len: usize,
        /// Bytes it may have.
        limit: usize,
    },
    /// A revocation list that only the quorum can sign; it returns by [`KgcCommand::TakeRevocations`].
    RevocationListWanted(RevocationStatement),
    /// A revocation list could not be signed: it names too many.
    RevocationFailed(Error),
    /// A leader signed two different headers for one epoch: the drone is revoked.
    Equivocation {
        /// Name of the drone.
        name: Name,
        /// Key of the drone.
        handle: Handle,
        /// The epoch.
        epoch: Epoch,
    },
    /// A peer did something wrong.
    Blamed {
        /// The peer.
        peer: Peer,
        /// The offence.
        offence: Offence,
    },
}

/// Durable record of a KGC. On start it is rebuilt from all records, in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KgcRecord {
    /// A token is bound to one key for ever, and this is the reply.
    Issued {
        /// The token's id, which is the identity's serial.
        token_id: [u8; 16],
        /// The drone's name.
        name: String,
        /// The encoded identity.
        identity: Vec<u8>,
        /// The handle of the public key issued.
        handle: [u8; 32],
        /// H(D_i, P_i).
        pin: [u8; 32],
        /// Digest of the request answered.
        request: [u8; 32],
        /// The encoded sealed reply.
        reply: Vec<u8>,
        /// Time of the event.
        at: UnixTime,
    },
    /// A token is bound to one request for ever, at a KGC of a quorum.
    Pinned {
        /// The token's id, which is the identity's serial.
        token_id: [u8; 16],
        /// The drone's name.
        name: String,
        /// The encoded identity.
        identity: Vec<u8>,
        /// H(D_i, P_i).
        pin: [u8; 32],
        /// Digest of the request.
        request: [u8; 32],
        /// Time of the event.
        at: UnixTime,
    },
    /// A KGC of a quorum contributed to a signature for a token that it had pinned. There are a few for one
    /// token at most, of which the drone uses one: each round gives another R.
    Contributed {
        /// The token's id.
        token_id: [u8; 16],
        /// The handle of the public key to come.
        handle: [u8; 32],
        /// Time of the event.
        at: UnixTime,
    },
    /// A drone proved to a KGC of a quorum that it holds a key.
    Enrolled {
        /// The token's id.
        token_id: [u8; 16],
        /// The handle of the public key it holds.
        handle: [u8; 32],
        /// Time of the event.
        at: UnixTime,
    },
    /// The newest revocation list.
    RevocationList {
        /// Number of the list.
        number: u64,
        /// The signed list, encoded.
        list: Vec<u8>,
    },
    /// A token was revoked before it was used (made durable by the caller of the command).
    TokenRevoked {
        /// The token's id.
        token_id: [u8; 16],
    },
}
