//! Several KGCs: a token gives one identity, and the adversary with all that fewer KGCs have than it takes
//! has nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::{Bls12381G1, Element, KgcId, Suite};
use quiver_group::EdgeEvent;
use zeroize::Zeroizing;

use crate::invariants::{Evidence, Findings, Invariant, InvariantCheck};
use crate::{Action, NodeEvent, NodeId, Step, World};

/// State of tokens and KGCs.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuorumEvidence {
    /// P and number of the drone that has a key, by token.
    identities: BTreeMap<[u8; 16], (Vec<u8>, u32)>,
    /// The shares that the adversary took: of the KGCs' key, and of the key of conditions.
    seized: BTreeMap<KgcId, Shares>,
}

#[derive(Clone, Debug)]
struct Shares {
    issuing: Zeroizing<Vec<u8>>,
    release: Option<Zeroizing<Vec<u8>>>,
}

impl<S: Suite> InvariantCheck<S> for QuorumEvidence {
    fn on_step(&mut self, world: &World<S>, step: &Step, evidence: &mut Evidence) {
        let NodeId::Edge(number) = step.node else { return };
        if !step.events().any(|event| matches!(event, NodeEvent::Edge(EdgeEvent::Enrolled { .. }))) {
            return;
        }
        let Some(keypair) = world.edge(number).and_then(|edge| edge.keypair()) else { return };
        let (token, value) = (keypair.public().identity.serial, keypair.public().p().to_vec());
        let first = self.identities.entry(token).or_insert_with(|| (value.clone(), number)).clone();
        evidence.findings.require(Invariant::OneIdentityPerToken, step, first.0 == value, || {
            format!("has a key for the token of which edge-{} has another", first.1)
        });
    }

    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action, evidence: &mut Evidence) {
        if let Action::Seize(kgc) = action {
            self.seize(world, at, *kgc, &mut evidence.findings);
        }
    }
}

impl QuorumEvidence {
    /// Number of drones that enrolled, each counted once.
    pub(crate) fn enrolled(&self) -> usize {
        self.identities.len()
    }

    /// Adds the state of a KGC to what the adversary has, and checks it.
    fn seize<S: Suite>(&mut self, world: &World<S>, at: Duration, kgc: KgcId, findings: &mut Findings) {
        let Some(issuing) = world.fleet().master_key().secret(kgc) else { return };
        let release = world.fleet().archive().and_then(|archive| {
            // The index, and a scalar, big-endian there and little-endian here.
            let mut scalar = Zeroizing::new(archive.share(kgc).ok()?.encode().get(2..)?.to_vec());
            scalar.reverse();
            Some(scalar)
        });
        self.seized.insert(kgc, Shares { issuing, release });
        let issuing = self.seized.iter().map(|(kgc, shares)| (*kgc, &shares.issuing));
        let mints = gives_away::<S>(issuing, world.fleet().deployment().master());
        self.judge(world, at, mints, "mint a key for anybody", findings);
        let release: Option<Vec<_>> =
            self.seized.iter().map(|(kgc, shares)| Some((*kgc, shares.release.as_ref()?))).collect();
        let master = world.fleet().archive().map(|archive| archive.authority().master().encode());
        let master = master.and_then(|bytes| Element::<Bls12381G1>::decode(&bytes).ok());
        if let Some((shares, master)) = release.zip(master) {
            let opens = gives_away::<Bls12381G1>(shares.into_iter(), &master);
            self.judge(world, at, opens, "open every order there is", findings);
        }
    }

    /// Judges an attempt of the adversary: with the shares of fewer KGCs than the threshold it can do
    /// nothing. With those of more it can: otherwise its failure with fewer would prove nothing.
    fn judge<S: Suite>(
        &self,
        world: &World<S>,
        at: Duration,
        can: bool,
        what: &str,
        findings: &mut Findings,
    ) {
        let few = self.seized.len() < usize::from(world.setup().threshold);
        findings.checks += 1;
        if few == can {
            let who: Vec<String> = self.seized.keys().map(|kgc| format!("kgc-{kgc}")).collect();
            let detail = format!(
                "with all that {} have the adversary {} {what}",
                who.join(", "),
                if can { "can" } else { "cannot" }
            );
            findings.violate(Invariant::FewKgcsKnowNothing, at, None, detail);
        }
    }
}

/// Returns true if shares x_j of a polynomial give away its value at zero: Σ λ_j·x_j·P = x·P, where λ_j = Π m
/// / (m − j) over all other m. A suite has no division, so both sides are multiplied by all denominators.
fn gives_away<'a, S: Suite>(
    shares: impl Iterator<Item = (KgcId, &'a Zeroizing<Vec<u8>>)>,
    public: &Element<S>,
) -> bool {
    let scalar = |kgc: KgcId| S::scalar_from_u128(u128::from(kgc));
    let decode = |(kgc, bytes): (KgcId, &Zeroizing<Vec<u8>>)| Some((kgc, S::scalar_decode(bytes)?));
    let Some(shares) = shares.map(decode).collect::<Option<Vec<_>>>() else { return false };
    let others = |kgc: KgcId| shares.iter().map(|(other, _)| *other).filter(move |other| *other != kgc);
    let one = S::scalar_from_u128(1);
    let below = |kgc: KgcId| others(kgc).fold(one, |product, m| product * (scalar(m) - scalar(kgc)));
    let above = |kgc: KgcId| others(kgc).fold(one, |product, m| product * scalar(m));
    let mut sum = S::scalar_from_u128(0);
    for (kgc, share) in &shares {
        sum = sum + others(*kgc).fold(above(*kgc) * *share, |product, m| product * below(m));
    }
    let all = shares.iter().fold(one, |product, (kgc, _)| product * below(*kgc));
    S::mul_base(&sum) == S::mul(&all, public.point())
}

#[cfg(test)]
mod tests {
    use quiver_ainq::Ristretto255;
    use quiver_quorum::QuorumParameters;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    use super::*;
    use crate::{InsecureToy, generate};

    fn checked<S: quiver_quorum::QuorumSuite>() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (shares, public) =
            generate::<S>(QuorumParameters::new(5, 3).unwrap(), [0; 32], &mut rng).unwrap();
        let fault_injection: Vec<_> = shares.iter().map(|share| (share.kgc(), share.expose())).collect();
        let tell = |places: &[usize]| {
            let shares = places.iter().map(|place| (fault_injection[*place].0, &fault_injection[*place].1));
            gives_away::<S>(shares, public.master())
        };
        for enough in [&[0, 1, 2][..], &[4, 2, 0], &[0, 1, 2, 3, 4]] {
            assert!(tell(enough), "{enough:?}");
        }
        for few in [&[0][..], &[4], &[0, 1], &[3, 4]] {
            assert!(!tell(few), "{few:?}");
        }
    }

    #[test]
    fn enough_shares_give_the_secret_away_and_fewer_do_not() {
        checked::<InsecureToy>();
        checked::<Ristretto255>();
        checked::<Bls12381G1>();
    }
}
