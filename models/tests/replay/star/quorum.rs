//! A quorum of KGCs in the place of one, whose keys a dealer makes.

use quiver_ainq::{Deployment, MasterSecret, Purpose, QuorumStatement, Ristretto255};
use quiver_enrolment::{KgcSigningKey, MasterShare};
use quiver_quorum::{PublicShares, QuorumParameters, QuorumSuite, SecretShare, SigningPackage};
use rand_chacha::ChaCha20Rng;

use super::{KGCS, S, THRESHOLD};

impl QuorumSuite for S {
    type Frost = <Ristretto255 as QuorumSuite>::Frost;
}

/// The keys of the KGCs, by their numbers: shares of a master secret.
pub(super) fn signing_keys(
    deployment: &Deployment<S>,
    master: &MasterSecret<S>,
    rng: &mut ChaCha20Rng,
) -> Vec<KgcSigningKey<S>> {
    let (shares, statement) = deal(deployment, master, rng);
    let key = |share| MasterShare::new(deployment, share, &statement).unwrap().into();
    shares.into_iter().map(key).collect()
}

/// Shares of a master secret, and the statement about them that its holders sign.
fn deal(
    deployment: &Deployment<S>,
    master: &MasterSecret<S>,
    rng: &mut ChaCha20Rng,
) -> (Vec<SecretShare<S>>, QuorumStatement<S>) {
    let parameters = QuorumParameters::new(KGCS.len() as u16, THRESHOLD as u16).unwrap();
    let (shares, public): (Vec<SecretShare<S>>, PublicShares<S>) =
        quiver_quorum::dealer::split(master, parameters, rng).unwrap();
    let signers = &shares[..THRESHOLD];
    let drawn: Vec<_> = signers.iter().map(|share| share.commit(rng).unwrap()).collect();
    let commitments = signers.iter().zip(&drawn).map(|(share, (_, commitment))| (share.kgc(), *commitment));
    let message = Purpose::Quorum.message(deployment, &public.encode());
    let package = SigningPackage::new(public.version(), message, commitments).unwrap();
    let parts = signers.iter().zip(drawn);
    let parts = parts.map(|(share, (nonces, _))| (share.kgc(), share.sign(nonces, &package).unwrap()));
    let signature = public.aggregate_statement(&package, &parts.collect()).unwrap();
    let statement = QuorumStatement::new(public.encode(), signature).unwrap();
    (shares, statement)
}
