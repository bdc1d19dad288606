//! Key generation and refresh.

use alloc::vec::Vec;

use quiver_ainq::KgcId;

use super::{Both, MAX_MEMBERS, SecretBytes, kgc, optional};
use crate::{MessageError, field, wire};

/// Greatest length of one member's commitments to one key, with their proof of knowledge: 64 points of 48
/// bytes and a signature, with room for framing.
pub const MAX_COMMITMENTS_LEN: usize = 4096;

/// Purpose of a ceremony.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CeremonyKind {
    /// Makes both keys.
    Generation,
    /// Makes new shares of the keys there are.
    Refresh,
}

/// All that a member has to say to another about a ceremony.
///
/// A later message takes nothing back, so that losing, repeating and reordering them does no harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ceremony {
    /// Purpose of the ceremony.
    pub kind: CeremonyKind,
    /// Rises with every nonce of this member.
    pub attempt: u64,
    /// The member's part of the session's name.
    pub nonce: [u8; 32],
    /// H(public shares of both keys in force); `None` without any.
    pub keys: Option<[u8; 32]>,
    /// The sender waits for something of the receiver.
    pub asks: bool,
    /// The sender's messages in the session; `None` before it knows all nonces.
    pub rounds: Option<Rounds>,
}

/// A member's messages in a session so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// H(quorum, kind, keys, all attempts and nonces).
    pub session: [u8; 32],
    /// The sender's commitments and proofs of knowledge; at most [`MAX_COMMITMENTS_LEN`] bytes each.
    pub commitments: Option<Both<Vec<u8>>>,
    /// Digests of the commitments that the sender has received.
    pub echo: Option<Echo>,
    /// The receiver's shares of the sender's polynomials; at most 128 bytes each.
    pub share: Option<Both<SecretBytes>>,
    /// H(public shares of both keys): the sender's new shares are durable.
    pub confirmation: Option<[u8; 32]>,
}

/// A member's digests of all commitments, for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Hashes of all commitments to either key.
    pub hashes: Both<[u8; 32]>,
    /// Digest of each member's commitments, in the order of the members, 1 to [`MAX_MEMBERS`]: identifies the
    /// members whose commitments differ.
    pub digests: Vec<[u8; 32]>,
}

/// The sender has left the session for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CeremonyAbort {
    /// The session.
    pub session: [u8; 32],
    /// The member that it blames.
    pub culprit: Option<KgcId>,
}

impl Ceremony {
    pub(super) fn from_wire(wire: wire::Ceremony) -> Result<Self, MessageError> {
        let kind = match wire.kind {
            1 => CeremonyKind::Generation,
            2 => CeremonyKind::Refresh,
            _ => return Err(MessageError::Invalid("kind")),
        };
        let keys = optional("keys", &wire.keys)?;
        if keys.is_some() != (kind == CeremonyKind::Refresh) {
            return Err(MessageError::Invalid("keys"));
        }
        Ok(Self {
            kind,
            attempt: wire.attempt,
            nonce: field::array("nonce", &wire.nonce)?,
            keys,
            asks: wire.asks,
            rounds: wire.rounds.map(Rounds::from_wire).transpose()?,
        })
    }

    pub(super) fn to_wire(&self) -> wire::Ceremony {
        wire::Ceremony {
            kind: match self.kind {
                CeremonyKind::Generation => 1,
                CeremonyKind::Refresh => 2,
            },
            attempt: self.attempt,
            nonce: self.nonce.to_vec(),
            keys: self.keys.map(|keys| keys.to_vec()).unwrap_or_default(),
            asks: self.asks,
            rounds: self.rounds.as_ref().map(Rounds::to_wire),
        }
    }
}

impl Rounds {
    fn from_wire(wire: wire::Rounds) -> Result<Self, MessageError> {
        let commitments = |wire| Both::from_wire("commitments", wire, MAX_COMMITMENTS_LEN);
        Ok(Self {
            session: field::array("session", &wire.session)?,
            commitments: wire.commitments.map(commitments).transpose()?,
            echo: wire.echo.map(|wire| Echo::from_wire(&wire)).transpose()?,
            share: wire.share.map(|wire| Both::secret_from_wire("share", wire)).transpose()?,
            confirmation: optional("confirmation", &wire.confirmation)?,
        })
    }

    fn to_wire(&self) -> wire::Rounds {
        wire::Rounds {
            session: self.session.to_vec(),
            commitments: self.commitments.as_ref().map(Both::to_wire),
            echo: self.echo.as_ref().map(Echo::to_wire),
            share: self.share.as_ref().map(Both::secret_to_wire),
            confirmation: self.confirmation.map(|digest| digest.to_vec()).unwrap_or_default(),
        }
    }
}

impl Echo {
    fn from_wire(wire: &wire::Echo) -> Result<Self, MessageError> {
        let hashes = field::present("hashes", wire.hashes.as_ref())?;
        let hashes =
            Both { ainq: field::array("hashes", &hashes.ainq)?, ibe: field::array("hashes", &hashes.ibe)? };
        let (digests, rest) = wire.digests.as_chunks::<32>();
        // §5.2: one digest per member.
        if !(1..=MAX_MEMBERS).contains(&digests.len()) || !rest.is_empty() {
            return Err(MessageError::Invalid("digests"));
        }
        Ok(Self { hashes, digests: digests.to_vec() })
    }

    fn to_wire(&self) -> wire::Echo {
        let Both { ainq, ibe } = &self.hashes;
        wire::Echo {
            hashes: Some(wire::BothKeys { ainq: ainq.to_vec(), ibe: ibe.to_vec() }),
            digests: self.digests.concat(),
        }
    }
}

impl CeremonyAbort {
    pub(super) fn from_wire(wire: &wire::CeremonyAbort) -> Result<Self, MessageError> {
        let culprit = if wire.culprit == 0 { None } else { Some(kgc("culprit", wire.culprit)?) };
        Ok(Self { session: field::array("session", &wire.session)?, culprit })
    }

    pub(super) fn to_wire(&self) -> wire::CeremonyAbort {
        wire::CeremonyAbort {
            session: self.session.to_vec(),
            culprit: self.culprit.map(u32::from).unwrap_or_default(),
        }
    }
}
