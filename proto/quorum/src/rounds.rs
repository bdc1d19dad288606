//! The rounds of a ceremony for both keys in step: what `quiver-quorum` computes, twice.

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_ainq::KgcId;
use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_message::quorum::{Both, SecretBytes};
use quiver_quorum::dkg::{Dealing, Echoing, Resumed, Sharing};
use quiver_quorum::{Error, QuorumParameters, QuorumSuite};
use rand_core::CryptoRngCore;

use super::keys::{Ibe, QuorumKeyShare, QuorumKeys};

/// Bytes that the stored rounds of one key may have: 64 packages of up to 4 kB, with room.
const MAX_STORED_LEN: usize = 1 << 20;

/// Round of both keys.
#[derive(Debug)]
pub(super) enum CeremonyRound<S: QuorumSuite> {
    Dealing(Dealing<S>, Dealing<Ibe>),
    Echoing(Echoing<S>, Echoing<Ibe>),
    Sharing(Sharing<S>, Sharing<Ibe>),
}

/// Result of a round.
pub(super) enum Advanced<S: QuorumSuite> {
    Next(CeremonyRound<S>),
    Finished(Box<QuorumKeys<S>>),
}

impl<S: QuorumSuite> CeremonyRound<S> {
    /// Starts to make both keys, or to refresh their shares.
    pub(super) fn begin(
        parameters: QuorumParameters,
        kgc: KgcId,
        refreshed: Option<&QuorumKeys<S>>,
        session: [u8; 32],
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Self, Error> {
        Ok(match refreshed {
            // §5.2: AinQ's key and the key of encryption to conditions go through the same rounds.
            None => Self::Dealing(
                Dealing::generate(parameters, kgc, session, rng)?,
                Dealing::generate(parameters, kgc, session, rng)?,
            ),
            Some(keys) => Self::Dealing(
                // §5.2: a refresh deals shares of zero: the keys stay.
                Dealing::refresh(keys.ainq().share(), keys.ainq().public(), session, rng)?,
                Dealing::refresh(keys.ibe().share(), keys.ibe().public(), session, rng)?,
            ),
        })
    }

    /// Commitments of this member.
    pub(super) fn commitments(&self) -> Both<Vec<u8>> {
        let (ainq, ibe) = match self {
            Self::Dealing(ainq, ibe) => (ainq.package(), ibe.package()),
            Self::Echoing(ainq, ibe) => (ainq.package(), ibe.package()),
            Self::Sharing(ainq, ibe) => (ainq.package(), ibe.package()),
        };
        Both { ainq: ainq.to_vec(), ibe: ibe.to_vec() }
    }

    /// The hashes to compare, once all have dealt.
    pub(super) fn echo(&self) -> Option<Both<[u8; 32]>> {
        match self {
            Self::Dealing(..) => None,
            Self::Echoing(ainq, ibe) => Some(Both { ainq: ainq.echo(), ibe: ibe.echo() }),
            Self::Sharing(ainq, ibe) => Some(Both { ainq: ainq.echo(), ibe: ibe.echo() }),
        }
    }

    /// The shares for one member alone, once all have the same commitments.
    pub(super) fn share_for(&self, to: KgcId) -> Option<Both<SecretBytes>> {
        // §5.2: f(i) leaves only after all echoes are the same.
        let Self::Sharing(ainq, ibe) = self else { return None };
        let (ainq, ibe) = (ainq.share_for(to).ok()?, ibe.share_for(to).ok()?);
        Some(Both { ainq: SecretBytes::new(ainq), ibe: SecretBytes::new(ibe) })
    }

    /// Members whose messages of this round are missing.
    pub(super) fn missing(&self) -> Vec<KgcId> {
        let (ainq, ibe) = match self {
            Self::Dealing(ainq, ibe) => (ainq.missing(), ibe.missing()),
            Self::Echoing(ainq, ibe) => (ainq.missing(), ibe.missing()),
            Self::Sharing(ainq, ibe) => (ainq.missing(), ibe.missing()),
        };
        let mut all = [ainq, ibe].concat();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Takes a member's commitments.
    pub(super) fn take_commitments(&mut self, from: KgcId, dealt: &Both<Vec<u8>>) -> Result<(), Error> {
        let Self::Dealing(ainq, ibe) = self else { return Ok(()) };
        ainq.receive(from, &dealt.ainq)?;
        ibe.receive(from, &dealt.ibe)
    }

    /// Takes the hashes that a member has.
    pub(super) fn take_echo(&mut self, from: KgcId, hashes: &Both<[u8; 32]>) -> Result<(), Error> {
        let Self::Echoing(ainq, ibe) = self else { return Ok(()) };
        ainq.receive(from, &hashes.ainq)?;
        ibe.receive(from, &hashes.ibe)
    }

    /// Takes a member's shares for this one.
    pub(super) fn take_share(&mut self, from: KgcId, share: &Both<SecretBytes>) -> Result<(), Error> {
        let Self::Sharing(ainq, ibe) = self else { return Ok(()) };
        ainq.receive(from, share.ainq.expose())?;
        ibe.receive(from, share.ibe.expose())
    }

    /// Goes on once nothing is missing.
    pub(super) fn advance(self) -> Result<Advanced<S>, Error> {
        Ok(match self {
            // §5.2: committing → echoing, with all commitments there.
            Self::Dealing(ainq, ibe) => {
                let ainq = ainq.advance().map_err(|refused| refused.error)?;
                Advanced::Next(Self::Echoing(ainq, ibe.advance().map_err(|refused| refused.error)?))
            }
            // §5.2: echoing → sharing, with all echoes equal.
            Self::Echoing(ainq, ibe) => {
                let ainq = ainq.advance().map_err(|refused| refused.error)?;
                Advanced::Next(Self::Sharing(ainq, ibe.advance().map_err(|refused| refused.error)?))
            }
            // §5.2: sharing → confirming: x_j is the sum of what was dealt.
            Self::Sharing(ainq, ibe) => {
                let (share, public) = ainq.finish().map_err(|refused| refused.error)?;
                let ainq = QuorumKeyShare::new(share, public)?;
                let (share, public) = ibe.finish().map_err(|refused| refused.error)?;
                Advanced::Finished(Box::new(QuorumKeys::new(ainq, QuorumKeyShare::new(share, public)?)?))
            }
        })
    }

    /// Encodes both states, which are secret.
    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let (ainq, ibe) = match self {
            Self::Dealing(ainq, ibe) => (ainq.encode(), ibe.encode()),
            Self::Echoing(ainq, ibe) => (ainq.encode(), ibe.encode()),
            Self::Sharing(ainq, ibe) => (ainq.encode(), ibe.encode()),
        };
        let mut writer = Writer::with_capacity(8 + ainq.len() + ibe.len());
        Zeroizing::new(writer.lp(&ainq).lp(&ibe).finish())
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let ainq = Resumed::<S>::decode(reader.lp(MAX_STORED_LEN)?)?;
        let ibe = Resumed::<Ibe>::decode(reader.lp(MAX_STORED_LEN)?)?;
        reader.end()?;
        Ok(match (ainq, ibe) {
            (Resumed::Dealing(ainq), Resumed::Dealing(ibe)) => Self::Dealing(ainq, ibe),
            (Resumed::Echoing(ainq), Resumed::Echoing(ibe)) => Self::Echoing(ainq, ibe),
            (Resumed::Sharing(ainq), Resumed::Sharing(ibe)) => Self::Sharing(ainq, ibe),
            _ => return Err(Error::Malformed("two keys out of step")),
        })
    }
}
