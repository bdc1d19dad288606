//! A master key that several KGCs share, so that none has it.

use std::collections::BTreeMap;

use quiver_ainq::{
    Deployment, Element, Identity, KgcId, Name, Purpose, QuorumStatement, StatementSignature,
    UnverifiedPartialKey, identity_statement,
};
use quiver_crypto::{Digest, Hasher};
use quiver_enrolment::{KgcSigningKey, Kgcs, MasterShare};
use quiver_quorum::dkg::Dealing;
use quiver_quorum::{
    Error, PublicShares, QuorumParameters, QuorumSuite, RefusedStep, SecretShare, SignatureShare,
    SigningPackage,
};
use rand_chacha::ChaCha8Rng;
use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use crate::fleet::{DEPLOYMENT, name};
use crate::master_key::{MasterKey, MasterKeySuite, SingleMasterKey};
use crate::{Sabotage, Setup, WorldError};

/// Result of a key generation.
pub type Generated<S> = (Vec<SecretShare<S>>, PublicShares<S>);

/// Lets KGCs make a master secret together, as `quiver-quorum` has it: every message of the ceremony,
/// delivered at once.
///
/// # Errors
/// [`Error`], never among KGCs that are all honest.
pub fn generate<S: QuorumSuite>(
    parameters: QuorumParameters,
    context: Digest,
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<Generated<S>, Error> {
    let mut dealing = Vec::new();
    for kgc in parameters.kgcs() {
        dealing.push((kgc, Dealing::<S>::generate(parameters, kgc, context, rng)?));
    }
    let packages: Vec<_> = dealing.iter().map(|(kgc, state)| (*kgc, state.package().to_vec())).collect();
    let mut echoing = Vec::new();
    for (kgc, mut state) in dealing {
        for (from, package) in packages.iter().filter(|(from, _)| *from != kgc) {
            state.receive(*from, package)?;
        }
        echoing.push((kgc, state.advance().map_err(error)?));
    }
    let echoes: Vec<_> = echoing.iter().map(|(kgc, state)| (*kgc, state.echo())).collect();
    let mut sharing = Vec::new();
    for (kgc, mut state) in echoing {
        for (from, echo) in echoes.iter().filter(|(from, _)| *from != kgc) {
            state.receive(*from, echo)?;
        }
        sharing.push((kgc, state.advance().map_err(error)?));
    }
    share_out(parameters, sharing)
}

fn share_out<S: QuorumSuite>(
    parameters: QuorumParameters,
    mut sharing: Vec<(KgcId, quiver_quorum::dkg::Sharing<S>)>,
) -> Result<Generated<S>, Error> {
    let mut sent = Vec::new();
    for (from, state) in &sharing {
        for to in parameters.others(*from) {
            sent.push((*from, to, state.share_for(to)?));
        }
    }
    for (kgc, state) in &mut sharing {
        for (from, _, share) in sent.iter().filter(|(_, to, _)| to == kgc) {
            state.receive(*from, share)?;
        }
    }
    let mut shares = Vec::new();
    let mut known: Option<PublicShares<S>> = None;
    for (_, state) in sharing {
        let (share, public) = state.finish().map_err(error)?;
        if known.replace(public.clone()).is_some_and(|before| before != public) {
            return Err(Error::WrongQuorum);
        }
        shares.push(share);
    }
    known.map(|public| (shares, public)).ok_or(Error::WrongQuorum)
}

fn error<T>(refused: RefusedStep<T>) -> Error {
    refused.error
}

/// A secret that KGCs have made together, in the bytes of its group.
pub struct SharedSecret {
    /// KGCs that it takes to use it.
    pub threshold: u16,
    /// Share of each KGC, as a little-endian scalar.
    pub shares: Vec<(KgcId, Zeroizing<Vec<u8>>)>,
    /// Public counterpart of the secret.
    pub public: Vec<u8>,
    /// Public counterparts of the shares.
    pub public_shares: Vec<(KgcId, Vec<u8>)>,
}

impl SharedSecret {
    /// Lets so many KGCs make a secret together.
    ///
    /// # Errors
    /// [`WorldError::Quorum`] for numbers that make no quorum.
    pub fn generate<S: QuorumSuite>(
        kgcs: u16,
        threshold: u16,
        context: Digest,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Self, WorldError> {
        let made = QuorumParameters::new(kgcs, threshold)
            .and_then(|parameters| generate::<S>(parameters, context, rng));
        made.map(|made| Self::from(&made)).map_err(|error| WorldError::Quorum(error.to_string()))
    }
}

impl<S: QuorumSuite> From<&Generated<S>> for SharedSecret {
    fn from((shares, public): &Generated<S>) -> Self {
        Self {
            threshold: public.parameters().threshold(),
            shares: shares.iter().map(|share| (share.kgc(), share.expose())).collect(),
            public: public.master().as_bytes().to_vec(),
            public_shares: public.shares().map(|(kgc, share)| (kgc, share.as_bytes().to_vec())).collect(),
        }
    }
}

/// A signature in progress: the package, and every KGC's share.
type Signed<S> = (SigningPackage<S>, BTreeMap<KgcId, SignatureShare<S>>);

/// Lets so many KGCs as it takes sign a message.
fn package<S: QuorumSuite>(
    (shares, public): (&[SecretShare<S>], &PublicShares<S>),
    message: Vec<u8>,
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<Signed<S>, Error> {
    let mut committed = Vec::new();
    for share in shares.iter().take(usize::from(public.parameters().threshold())) {
        committed.push((share, share.commit(rng)?));
    }
    let commitments = committed.iter().map(|(share, (_, commitment))| (share.kgc(), *commitment));
    let package = SigningPackage::new(public.version(), message, commitments)?;
    let signed =
        committed.into_iter().map(|(share, (nonces, _))| Ok((share.kgc(), share.sign(nonces, &package)?)));
    let signed = signed.collect::<Result<_, Error>>()?;
    Ok((package, signed))
}

impl<S: QuorumSuite> MasterKeySuite for S {
    fn found_master_key(setup: &Setup, rng: &mut ChaCha8Rng) -> Result<Box<dyn MasterKey<Self>>, WorldError> {
        check_quorum(setup.kgcs, setup.threshold).map_err(WorldError::Quorum)?;
        if setup.kgcs == 1 {
            return Ok(Box::new(SingleMasterKey::found::<S>(rng)));
        }
        let low = u16::from(setup.sabotage == Sabotage::LowDegree);
        let founded = QuorumParameters::new(setup.kgcs, setup.threshold - low)
            .and_then(|parameters| Threshold::<S>::found(name(DEPLOYMENT), parameters, rng));
        Ok(Box::new(founded.map_err(|error| WorldError::Quorum(error.to_string()))?))
    }
}

/// Refuses numbers of KGCs that make no quorum, in words.
pub(crate) fn check_quorum(kgcs: u16, threshold: u16) -> Result<(), String> {
    match (kgcs, threshold) {
        (1, 1) => Ok(()),
        (1, _) => Err("a single KGC issues keys alone: the threshold is 1".into()),
        _ => QuorumParameters::new(kgcs, threshold).map(drop).map_err(|error| error.to_string()),
    }
}

/// A quorum: shares, their public counterparts, and the quorum's signed statement of them.
pub struct Threshold<S: QuorumSuite> {
    shares: Vec<SecretShare<S>>,
    public: PublicShares<S>,
    statement: QuorumStatement<S>,
}

impl<S: QuorumSuite> Threshold<S> {
    /// Founds a quorum of the deployment with this name.
    ///
    /// # Errors
    /// [`Error`], never among KGCs that are all honest.
    pub fn found(
        name: Name,
        parameters: QuorumParameters,
        rng: &mut impl CryptoRngCore,
    ) -> Result<Self, Error> {
        let context = Hasher::new("quiver/1 world quorum").lp(name.as_bytes()).finish();
        let (shares, public) = generate::<S>(parameters, context, rng)?;
        let deployment = Deployment::new(name, *public.master());
        let body = public.encode();
        let signature = statement((&shares, &public), &deployment, Purpose::Quorum, &body, rng)?;
        let statement = QuorumStatement::new(body, signature).map_err(|_| Error::WrongQuorum)?;
        Ok(Self::of((shares, public), statement))
    }

    /// The shares that KGCs have made, and what they signed about them.
    #[must_use]
    pub fn of((shares, public): Generated<S>, statement: QuorumStatement<S>) -> Self {
        Self { shares, public, statement }
    }

    fn keys(&self) -> (&[SecretShare<S>], &PublicShares<S>) {
        (&self.shares, &self.public)
    }

    fn share(&self, kgc: KgcId) -> Option<&SecretShare<S>> {
        self.shares.iter().find(|share| share.kgc() == kgc)
    }
}

fn statement<S: QuorumSuite>(
    keys: (&[SecretShare<S>], &PublicShares<S>),
    deployment: &Deployment<S>,
    purpose: Purpose,
    body: &[u8],
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<StatementSignature<S>, Error> {
    let (package, signed) = package(keys, purpose.message(deployment, body), rng)?;
    keys.1.aggregate_statement(&package, &signed)
}

impl<S: QuorumSuite> MasterKey<S> for Threshold<S> {
    fn public(&self) -> Element<S> {
        *self.public.master()
    }

    fn master(&self, deployment: &Deployment<S>, kgc: KgcId) -> KgcSigningKey<S> {
        let share = self.share(kgc).and_then(|share| SecretShare::decode(&share.encode()).ok());
        let share = share.expect("there are as many shares as KGCs");
        MasterShare::new(deployment, share, &self.statement).expect("made together").into()
    }

    fn kgcs(&self) -> Kgcs<S> {
        Kgcs::quorum(self.public.parameters().kgcs().collect())
    }

    fn issue(
        &self,
        deployment: &Deployment<S>,
        identity: &Identity,
        value: &Element<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> UnverifiedPartialKey<S> {
        let message = identity_statement(deployment, &identity.encode(), value);
        let made = package(self.keys(), message, rng);
        let key = made.and_then(|(package, signed)| self.public.aggregate_partial_key(&package, &signed));
        key.expect("all KGCs are honest here")
    }

    fn sign(
        &self,
        deployment: &Deployment<S>,
        purpose: Purpose,
        body: &[u8],
        rng: &mut dyn CryptoRngCore,
    ) -> StatementSignature<S> {
        statement(self.keys(), deployment, purpose, body, rng).expect("all KGCs are honest here")
    }

    fn secret(&self, kgc: KgcId) -> Option<Zeroizing<Vec<u8>>> {
        self.share(kgc).map(SecretShare::expose)
    }
}
