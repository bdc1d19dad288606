//! Quorums over the toy group.

use quiver_quorum::QuorumSuite;
use quiver_quorum::suite::generic::Over;

use crate::InsecureToy;

impl QuorumSuite for InsecureToy {
    type Frost = Over<Self>;
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{Deployment, Name, Purpose};
    use quiver_quorum::dkg::{CeremonyOutcome, Dealing};
    use quiver_quorum::{QuorumParameters, SigningPackage};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    use super::*;

    /// Two KGCs make a key.
    fn made_by_two(rng: &mut ChaCha20Rng) -> [CeremonyOutcome<InsecureToy>; 2] {
        let parameters = QuorumParameters::new(2, 2).unwrap();
        let mut dealing = [1, 2].map(|kgc| Dealing::generate(parameters, kgc, [0; 32], rng).unwrap());
        let packages = [1, 0].map(|i: usize| dealing[i].package().to_vec());
        let mut echoing = [2, 1].into_iter().zip(&mut dealing).zip(packages);
        echoing.try_for_each(|((from, one), package)| one.receive(from, &package)).unwrap();
        let mut echoing = dealing.map(|one| one.advance().unwrap());
        let echo = echoing[0].echo();
        [2, 1].into_iter().zip(&mut echoing).try_for_each(|(from, one)| one.receive(from, &echo)).unwrap();
        let mut sharing = echoing.map(|one| one.advance().unwrap());
        let shares = [sharing[1].share_for(1).unwrap(), sharing[0].share_for(2).unwrap()];
        let mut pairs = [2, 1].into_iter().zip(&mut sharing).zip(shares);
        pairs.try_for_each(|((from, one), share)| one.receive(from, &share)).unwrap();
        sharing.map(|one| one.finish().unwrap())
    }

    #[test]
    fn a_quorum_works_over_the_toy_group() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let made = made_by_two(&mut rng);
        let public = &made[0].1;
        assert_eq!(*public, made[1].1);
        let deployment = Deployment::new(Name::new("harbour").unwrap(), *public.master());
        let message = Purpose::Parameters.message(&deployment, b"body");
        let [one, two] = [0, 1].map(|i: usize| made[i].0.commit(&mut rng).unwrap());
        let package = SigningPackage::new(0, message, [(1, one.1), (2, two.1)]).unwrap();
        let shares = [(1, made[0].0.sign(one.0, &package)), (2, made[1].0.sign(two.0, &package))];
        let shares = shares.map(|(kgc, share)| (kgc, share.unwrap())).into();
        let statement = public.aggregate_statement(&package, &shares).unwrap();
        statement.verify(&deployment, Purpose::Parameters, b"body").unwrap();
    }
}
