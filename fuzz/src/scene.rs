//! A deployment with tokens and keys, the same in every run.

use core::cell::OnceCell;
use std::time::Duration;

use quiver_ainq::{
    Bls12381G1, Deployment, DroneKeypair, EnrolmentRequest, IssuedToken, MasterSecret, OperatorSecretKey,
    PendingEnrolment, Ristretto255, Role, SealedReply, Suite,
};
use quiver_machine::{Input, Machine, Now, Peer, Via};
pub use quiver_testbed::{EPOCH_START as START, name};
use quiver_testbed::{Outputs, token_grant};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::decoders::seeds::Honest;
use crate::decoders::tree::TreeMember;

/// The group of the scene.
pub const GROUP: &str = "alpha";

/// A decoded value must encode to the bytes it came from.
pub(crate) fn canonical<T, E>(
    bytes: &[u8],
    decoded: Result<T, E>,
    encode: impl FnOnce(&T) -> Vec<u8>,
) -> Option<T> {
    let value = decoded.ok()?;
    assert_eq!(encode(&value), bytes, "two encodings of one value");
    Some(value)
}

/// Random numbers that are the same in every run.
pub fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// Time at which two machines talk through a fuzzer.
pub(crate) const NOW: Now = Now { monotonic: Duration::from_secs(10), unix: START };
/// Handle under which each knows the other.
pub(crate) const PEER: Peer = Peer(1);

/// Drains the messages and events of a machine.
pub(crate) fn drain<M: Machine>(machine: &mut M) -> (Vec<Vec<u8>>, Vec<M::Event>) {
    let outputs = Outputs::of(machine);
    (outputs.effects.sent.into_iter().map(|(_, bytes)| bytes).collect(), outputs.events)
}

/// The same when it was fed with one message.
pub(crate) fn feed<M: Machine>(machine: &mut M, bytes: &[u8]) -> (Vec<Vec<u8>>, Vec<M::Event>) {
    machine.handle_input(NOW, Input::Received { from: PEER, via: Via::Peer, bytes }, &mut rng(71));
    drain(machine)
}

/// A suite with a scene, built once per thread.
pub trait Staged: Suite {
    /// The scene.
    fn scene() -> &'static Scene<Self>;
}

macro_rules! staged {
    ($($suite:ty),*) => {
        $(impl Staged for $suite {
            fn scene() -> &'static Scene<Self> {
                thread_local!(static SCENE: &'static Scene<$suite> = Box::leak(Box::new(Scene::new())));
                SCENE.with(|scene| *scene)
            }
        })*
    };
}

staged!(Ristretto255, Bls12381G1);

/// A deployment with its operator, and keys and tokens of honest drones.
#[derive(Debug)]
pub struct Scene<S: Suite> {
    /// The deployment.
    pub deployment: Deployment<S>,
    /// The KGC's master secret.
    pub master: MasterSecret<S>,
    /// The operator.
    pub operator: OperatorSecretKey<S>,
    honest: OnceCell<Honest<S>>,
    tree: OnceCell<TreeMember<S>>,
}

/// A drone that has enrolled, and its keys.
#[derive(Debug)]
pub struct Enrolled<S: Suite> {
    /// Token of the drone.
    pub token: IssuedToken<S>,
    /// State of the drone until the reply arrived.
    pub pending: PendingEnrolment<S>,
    /// The reply.
    pub reply: SealedReply<S>,
    /// Key of the drone.
    pub keypair: DroneKeypair<S>,
}

impl<S: Suite> Scene<S> {
    fn new() -> Self {
        let mut rng = rng(1);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("fuzz"), master.public());
        let operator = OperatorSecretKey::generate(&mut rng);
        Self { deployment, master, operator, honest: OnceCell::new(), tree: OnceCell::new() }
    }

    /// Keys of the honest drones in this scene.
    pub fn honest(&self) -> &Honest<S> {
        self.honest.get_or_init(|| Honest::new(self))
    }

    /// A member of a tree, and the epoch that follows.
    pub fn tree(&self) -> &TreeMember<S> {
        self.tree.get_or_init(|| TreeMember::new(self))
    }

    /// A token, the same in every run.
    ///
    /// # Panics
    /// Never: the grant is well-formed.
    pub fn token(&self, holder: &str, role: Role) -> IssuedToken<S> {
        let seed = holder.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let grant = token_grant(holder, role, GROUP);
        self.operator.issue(&self.deployment, grant, &mut rng(seed)).expect("a well-formed grant")
    }

    /// The role of the scene's leader.
    pub fn leader_role() -> Role {
        Role::Leader { group: name(GROUP), ordinal: 0 }
    }

    /// Enrols a drone without messages.
    ///
    /// # Panics
    /// Never: the enrolment is honest.
    pub fn enrol(&self, holder: &str, role: Role) -> Enrolled<S> {
        let mut rng = rng(holder.len() as u64);
        let token = self.token(holder, role);
        let (request, pending) =
            EnrolmentRequest::create(&self.deployment, &token, &[1], [9; 16], &mut rng).expect("a request");
        let verified =
            request.verify(&self.deployment, &[self.operator.public()], 1, START).expect("a valid request");
        let (reply, _) = SealedReply::issue(&self.master, &self.deployment, &verified, 1, &mut rng);
        let keypair = pending.open(&self.deployment, &reply).expect("the reply");
        Enrolled { token, pending, reply, keypair }
    }
}
