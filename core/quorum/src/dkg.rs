//! Distributed generation of the master secret, and refresh of its shares (§5.2).
//!
//! Source: Komlo, Goldberg, *FROST*, SAC 2020, figure 1 (Pedersen's key generation with proofs of knowledge),
//! as `frost-core` has it in `keys::dkg` and `keys::refresh`; between its two rounds all compare what they
//! received, because the proof assumes a broadcast channel.
//!
//! ```text
//! Dealing    every KGC → all      the commitments to its polynomial f_j, and a proof that it knows f_j(0)
//! Echoing    every KGC → all      a hash of all that was dealt
//! Sharing    KGC j → KGC i        f_j(i), over a channel nobody else reads
//! finish     x_i = Σ f_j(i)  (refreshing: the old x_i + Σ f_j(i), where every f_j(0) = 0)
//! ```
//!
//! Every message is checked as it arrives. One that is refused changes nothing, and the error names its
//! sender; the caller then ends the ceremony, because no key can be made without one of the n. Receiving the
//! same message again is fine. Senders are authenticated by the channel.
//!
//! A state can be stored, encrypted, and read back after a crash; it then sends the same bytes again. All
//! randomness of a KGC comes from one seed, so the seed is what is stored. The seed and the shares that the
//! KGC received give its new share: erase the seed once the ceremony is over.
//!
//! As with every key generation of Pedersen's kind, the last to deal can bias P_pub a little (Gennaro et al.,
//! J. Cryptology 2007); what it cannot do is know x.

mod message;
mod plan;
mod record;

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_ainq::KgcId;
use quiver_crypto::{Digest, Secret, Zeroizing};
use rand_core::CryptoRngCore;

pub use self::message::{ECHO_LEN, SHARE_LEN, package_len};
use self::plan::{CeremonyPlan, Dealt, Old};
use self::record::{CeremonyRecord, DkgRound};
use crate::{Error, PublicShares, QuorumParameters, QuorumSuite, RefusedStep, SecretShare};

/// Result of a ceremony: this KGC's share, and the public shares.
pub type CeremonyOutcome<S> = (SecretShare<S>, PublicShares<S>);

/// Round 1: every KGC commits to a polynomial.
#[derive(derive_more::Debug)]
#[debug("Dealing({_0:?})")]
pub struct Dealing<S: QuorumSuite>(Box<CeremonyRecord<S>>);

/// State between the rounds: all compare what was dealt.
#[derive(derive_more::Debug)]
#[debug("Echoing({_0:?})")]
pub struct Echoing<S: QuorumSuite>(Box<CeremonyRecord<S>>);

/// Round 2: every KGC hands every other its share of its polynomial.
#[derive(derive_more::Debug)]
#[debug("Sharing({record:?})")]
pub struct Sharing<S: QuorumSuite> {
    record: Box<CeremonyRecord<S>>,
    dealt: Box<Dealt<S>>,
}

/// A ceremony that was read back from storage, in the round in which it was stored.
#[derive(Debug)]
pub enum Resumed<S: QuorumSuite> {
    /// Round 1.
    Dealing(Dealing<S>),
    /// The state between the rounds.
    Echoing(Echoing<S>),
    /// Round 2.
    Sharing(Sharing<S>),
}

impl<S: QuorumSuite> Dealing<S> {
    /// Starts to make a master secret.
    ///
    /// `context` is a hash of what all must agree on before they start: the deployment, the identifiers of
    /// the KGCs, the attempt. Messages of another context do not pass the echo round.
    ///
    /// # Errors
    /// [`Error::UnknownKgc`].
    pub fn generate(
        parameters: QuorumParameters,
        kgc: KgcId,
        context: Digest,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Self, Error> {
        // §5.2: everything that this KGC draws follows from one seed, which is stored.
        Self::start(CeremonyPlan { parameters, kgc, context, seed: Secret::random(rng), old: None })
    }

    /// Starts to refresh the shares of a quorum. An attacker who stole fewer than t of the old ones has
    /// nothing afterwards. All n KGCs must take part; one that lost its share is [repaired](crate::repair)
    /// first.
    ///
    /// The old share keeps working until all have finished, and is then to be erased.
    ///
    /// # Errors
    /// [`Error::WrongVersion`] or [`Error::WrongQuorum`] if share and public shares do not belong together,
    /// and [`Error::WrongVersion`] after 2^32 − 1 refreshes.
    pub fn refresh(
        share: &SecretShare<S>,
        public: &PublicShares<S>,
        context: Digest,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Self, Error> {
        // A copy of the old share: refreshing adds a sharing of zero to it.
        let old = Old::new(SecretShare::decode(&share.encode())?, public.clone())?;
        let (parameters, kgc) = (share.parameters(), share.kgc());
        Self::start(CeremonyPlan { parameters, kgc, context, seed: Secret::random(rng), old: Some(old) })
    }

    fn start(plan: CeremonyPlan<S>) -> Result<Self, Error> {
        plan.parameters.check(plan.kgc)?;
        // Komlo, Goldberg, figure 1, round 1: polynomial, commitments, proof.
        CeremonyRecord::new(plan).map(Box::new).map(Self)
    }

    /// Message of this KGC to all others: [`package_len`] bytes, public.
    #[must_use]
    pub fn package(&self) -> &[u8] {
        self.0.own_package()
    }

    /// Takes what KGC `from` dealt.
    ///
    /// # Errors
    /// [`Error::UnknownKgc`], [`Error::InvalidMessage`], [`Error::InvalidProof`] or [`Error::Contradiction`].
    pub fn receive(&mut self, from: KgcId, package: &[u8]) -> Result<(), Error> {
        self.0.receive_package(from, package)
    }

    /// KGCs whose packages are missing.
    #[must_use]
    pub fn missing(&self) -> Vec<KgcId> {
        self.0.missing_packages()
    }

    /// Goes on once every KGC has dealt.
    ///
    /// # Errors
    /// [`Error::Incomplete`].
    pub fn advance(self) -> Result<Echoing<S>, RefusedStep<Self>> {
        // §5.2: from committing to echoing, once all n have dealt.
        match self.missing() {
            missing if missing.is_empty() => Ok(Echoing(self.0)),
            missing => Err(RefusedStep { state: self, error: Error::Incomplete { missing } }),
        }
    }

    /// The state as bytes, secret, for encrypted storage.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        self.0.encode(DkgRound::Dealing)
    }
}

impl<S: QuorumSuite> Echoing<S> {
    /// Message of this KGC to all others, and theirs to it: a hash of the context and of all packages.
    #[must_use]
    pub fn echo(&self) -> Digest {
        self.0.echo()
    }

    /// Package of this KGC, for KGCs without it.
    #[must_use]
    pub fn package(&self) -> &[u8] {
        self.0.own_package()
    }

    /// Takes the hash that KGC `from` has.
    ///
    /// # Errors
    /// [`Error::UnknownKgc`], [`Error::InvalidMessage`] or [`Error::EchoMismatch`]. After a mismatch the
    /// ceremony is over: whether `from` lies, or a third KGC told two different things, is for people to find
    /// out.
    pub fn receive(&mut self, from: KgcId, echo: &[u8]) -> Result<(), Error> {
        self.0.receive_echo(from, echo)
    }

    /// KGCs whose hashes are missing.
    #[must_use]
    pub fn missing(&self) -> Vec<KgcId> {
        self.0.missing_echoes()
    }

    /// Goes on once all KGCs have the same.
    ///
    /// # Errors
    /// [`Error::Incomplete`].
    pub fn advance(self) -> Result<Sharing<S>, RefusedStep<Self>> {
        let missing = self.missing();
        if !missing.is_empty() {
            return Err(RefusedStep { state: self, error: Error::Incomplete { missing } });
        }
        // §5.2: from echoing to sharing: shares leave only after all have the same packages.
        match self.0.deal() {
            Ok(dealt) => Ok(Sharing { record: self.0, dealt: Box::new(dealt) }),
            Err(error) => Err(RefusedStep { state: self, error }),
        }
    }

    /// The state as bytes, secret, for encrypted storage.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        self.0.encode(DkgRound::Echoing)
    }
}

impl<S: QuorumSuite> Sharing<S> {
    /// Share of this KGC for KGC `to` alone: [`SHARE_LEN`] bytes, secret.
    ///
    /// # Errors
    /// [`Error::UnknownKgc`].
    pub fn share_for(&self, to: KgcId) -> Result<Zeroizing<Vec<u8>>, Error> {
        self.dealt.share_for(to)
    }

    /// The hash of all packages, for KGCs without it.
    #[must_use]
    pub fn echo(&self) -> Digest {
        self.record.echo()
    }

    /// Package of this KGC, for KGCs without it.
    #[must_use]
    pub fn package(&self) -> &[u8] {
        self.record.own_package()
    }

    /// Takes the share of KGC `from` for this one.
    ///
    /// # Errors
    /// [`Error::UnknownKgc`], [`Error::InvalidMessage`], [`Error::InvalidShare`] if it does not fit what
    /// `from` dealt, or [`Error::Contradiction`].
    pub fn receive(&mut self, from: KgcId, share: &[u8]) -> Result<(), Error> {
        self.record.receive_share(from, share)
    }

    /// KGCs whose shares are missing.
    #[must_use]
    pub fn missing(&self) -> Vec<KgcId> {
        self.record.missing_shares()
    }

    /// Ends the ceremony once every KGC has shared. All KGCs have the same public shares then.
    ///
    /// # Errors
    /// [`Error::Incomplete`].
    pub fn finish(self) -> Result<CeremonyOutcome<S>, RefusedStep<Self>> {
        let missing = self.missing();
        if !missing.is_empty() {
            return Err(RefusedStep { state: self, error: Error::Incomplete { missing } });
        }
        // Komlo, Goldberg, figure 1, round 2: x_i = Σ f_j(i).
        match self.record.finish(&self.dealt) {
            Ok(outcome) => Ok(outcome),
            Err(error) => Err(RefusedStep { state: self, error }),
        }
    }

    /// The state as bytes, secret, for encrypted storage.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        self.record.encode(DkgRound::Sharing)
    }
}

impl<S: QuorumSuite> Resumed<S> {
    /// Reads what an `encode` of one of the three states wrote.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::WrongQuorum`] and the like if it is anything else.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let (stage, record) = CeremonyRecord::decode(bytes)?;
        // Boxed, so that going on moves no secret about in memory.
        let record = Box::new(record);
        Ok(match stage {
            DkgRound::Dealing => Self::Dealing(Dealing(record)),
            DkgRound::Echoing => Self::Echoing(Echoing(record)),
            DkgRound::Sharing => Self::Sharing(Sharing { dealt: Box::new(record.deal()?), record }),
        })
    }
}
