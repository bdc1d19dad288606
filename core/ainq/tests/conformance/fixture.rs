//! A deployment with its KGC, an operator, and drones.

use quiver_ainq::{
    Deployment, DroneKeypair, EnrolmentRequest, Identity, IssuedToken, MasterSecret, Name, OperatorSecretKey,
    PendingEnrolment, Role, SecretValue, Suite, TokenGrant, UnixTime,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// A time at which everything of the fixture is valid.
pub(crate) const NOW: UnixTime = 1_900_000_000;

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub(crate) fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

pub(crate) struct World<S: Suite> {
    pub(crate) master: MasterSecret<S>,
    pub(crate) deployment: Deployment<S>,
    pub(crate) operator: OperatorSecretKey<S>,
    pub(crate) rng: ChaCha20Rng,
}

impl<S: Suite> World<S> {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = rng(seed);
        let master = MasterSecret::generate(&mut rng);
        let deployment = Deployment::new(name("harbour"), master.public());
        Self { deployment, operator: OperatorSecretKey::generate(&mut rng), master, rng }
    }

    pub(crate) fn identity(serial: u8) -> Identity {
        Identity {
            serial: [serial; 16],
            name: name(&format!("drone-{serial}")),
            role: Role::Leader { group: name("alpha"), ordinal: 3 },
            groups: vec![name("alpha"), name("bravo")],
            not_after: NOW + 1000,
        }
    }

    pub(crate) fn drone(&mut self, serial: u8) -> DroneKeypair<S> {
        let identity = Self::identity(serial);
        let value = SecretValue::generate(&mut self.rng);
        self.master
            .issue_partial_key(&self.deployment, &identity, &value.public(), &mut self.rng)
            .verify(&self.deployment, &identity, &value)
            .unwrap()
    }

    pub(crate) fn grant() -> TokenGrant {
        TokenGrant {
            name: name("drone-1"),
            role: Role::Edge,
            groups: vec![name("bravo"), name("alpha"), name("bravo")],
            not_after: NOW + 1000,
            expiry: NOW + 100,
        }
    }

    pub(crate) fn token(&mut self) -> IssuedToken<S> {
        self.operator.issue(&self.deployment, Self::grant(), &mut self.rng).unwrap()
    }

    pub(crate) fn request(&mut self) -> (EnrolmentRequest<S>, PendingEnrolment<S>) {
        let token = self.token();
        EnrolmentRequest::create(&self.deployment, &token, &[1], [9; 16], &mut self.rng).unwrap()
    }
}
