//! Finished quorums, and their users.

use std::collections::BTreeMap;

use quiver_ainq::{Deployment, Identity, KgcId, Name, Role, SecretValue};
use quiver_quorum::dkg::{CeremonyOutcome, Dealing, Echoing, Sharing};
use quiver_quorum::{
    PublicShares, QuorumParameters, QuorumSuite, SecretShare, SignatureShare, SigningPackage,
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

pub(crate) const CONTEXT: [u8; 32] = [7; 32];

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub(crate) fn three_of_five() -> QuorumParameters {
    QuorumParameters::new(5, 3).unwrap()
}

pub(crate) fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

pub(crate) fn identity(serial: u8) -> Identity {
    Identity {
        serial: [serial; 16],
        name: name(&format!("drone-{serial}")),
        role: Role::Edge,
        groups: vec![name("alpha")],
        not_after: 1_900_000_000,
    }
}

/// A quorum by a dealer, the deployment under its key, and a generator.
pub(crate) struct World<S: QuorumSuite> {
    pub(crate) shares: Vec<SecretShare<S>>,
    pub(crate) public: PublicShares<S>,
    pub(crate) deployment: Deployment<S>,
    pub(crate) rng: ChaCha20Rng,
}

impl<S: QuorumSuite> World<S> {
    pub(crate) fn new(seed: u64, parameters: QuorumParameters) -> Self {
        let mut rng = rng(seed);
        let (shares, public) = quiver_quorum::dealer::deal(parameters, &mut rng).unwrap();
        Self::of(shares, public, rng)
    }

    pub(crate) fn of(shares: Vec<SecretShare<S>>, public: PublicShares<S>, rng: ChaCha20Rng) -> Self {
        let deployment = Deployment::new(name("harbour"), *public.master());
        Self { shares, public, deployment, rng }
    }

    pub(crate) fn share(&self, kgc: KgcId) -> &SecretShare<S> {
        &self.shares[usize::from(kgc) - 1]
    }

    /// Runs both rounds of signing by these KGCs.
    pub(crate) fn sign(
        &mut self,
        message: &[u8],
        kgcs: &[KgcId],
    ) -> (SigningPackage<S>, BTreeMap<KgcId, SignatureShare<S>>) {
        let (mut nonces, mut commitments) = (Vec::new(), Vec::new());
        for kgc in kgcs {
            let (nonce, commitment) = self.shares[usize::from(*kgc) - 1].commit(&mut self.rng).unwrap();
            nonces.push((*kgc, nonce));
            commitments.push((*kgc, commitment));
        }
        let package = SigningPackage::new(self.public.version(), message.to_vec(), commitments).unwrap();
        let shares =
            nonces.into_iter().map(|(kgc, nonce)| (kgc, self.share(kgc).sign(nonce, &package).unwrap()));
        let shares = shares.collect();
        (package, shares)
    }

    pub(crate) fn secret_value(&mut self) -> SecretValue<S> {
        SecretValue::generate(&mut self.rng)
    }
}

pub(crate) fn deal_all<S: QuorumSuite>(dealing: &mut [Dealing<S>]) {
    let packages: Vec<Vec<u8>> = dealing.iter().map(|one| one.package().to_vec()).collect();
    for (to, one) in (1..).zip(dealing) {
        for (from, package) in (1..).zip(&packages).filter(|(from, _)| *from != to) {
            one.receive(from, package).unwrap();
        }
    }
}

pub(crate) fn echo_all<S: QuorumSuite>(dealing: Vec<Dealing<S>>) -> Vec<Echoing<S>> {
    let mut echoing: Vec<_> = dealing.into_iter().map(|one| one.advance().unwrap()).collect();
    let echoes: Vec<_> = echoing.iter().map(Echoing::echo).collect();
    for (to, one) in (1..).zip(&mut echoing) {
        for (from, echo) in (1..).zip(&echoes).filter(|(from, _)| *from != to) {
            one.receive(from, echo).unwrap();
        }
    }
    echoing
}

pub(crate) fn share_all<S: QuorumSuite>(echoing: Vec<Echoing<S>>) -> Vec<Sharing<S>> {
    let mut sharing: Vec<_> = echoing.into_iter().map(|one| one.advance().unwrap()).collect();
    let n = KgcId::try_from(sharing.len()).unwrap();
    for from in 1..=n {
        for to in (1..=n).filter(|to| *to != from) {
            let share = sharing[usize::from(from) - 1].share_for(to).unwrap();
            sharing[usize::from(to) - 1].receive(from, &share).unwrap();
        }
    }
    sharing
}

/// Runs the ceremony after the first messages, among honest KGCs.
pub(crate) fn run<S: QuorumSuite>(mut dealing: Vec<Dealing<S>>) -> Vec<CeremonyOutcome<S>> {
    deal_all(&mut dealing);
    share_all(echo_all(dealing)).into_iter().map(|one| one.finish().unwrap()).collect()
}

pub(crate) fn generating<S: QuorumSuite>(
    parameters: QuorumParameters,
    rng: &mut ChaCha20Rng,
) -> Vec<Dealing<S>> {
    parameters.kgcs().map(|kgc| Dealing::generate(parameters, kgc, CONTEXT, rng).unwrap()).collect()
}

/// The shares, and the public shares on which all agree.
pub(crate) fn agreed<S: QuorumSuite>(
    outcomes: Vec<CeremonyOutcome<S>>,
) -> (Vec<SecretShare<S>>, PublicShares<S>) {
    let public = outcomes[0].1.clone();
    assert!(outcomes.iter().all(|(share, theirs)| *theirs == public && share.matches(&public).is_ok()));
    (outcomes.into_iter().map(|(share, _)| share).collect(), public)
}
