//! A drone's key, its signatures, and its pairwise secret with the leader.

use alloc::format;
use alloc::vec::Vec;

use quiver_ainq::{
    Deployment, DroneKeypair, Element, Identity, Label, MasterSecret, Name, Ristretto255, Role, SecretScalar,
    SecretValue, Suite, UnverifiedPartialKey,
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::Host;
use crate::course::{Course, Subject};
use crate::error::{BenchError, Result};

type S = Ristretto255;

/// Bytes that are signed.
const MESSAGE: [u8; 256] = [1; 256];

/// A KGC, and a drone that enrolled with it.
struct Site {
    rng: ChaCha20Rng,
    deployment: Deployment<S>,
    identity: Identity,
    secret: SecretValue<S>,
    partial: UnverifiedPartialKey<S>,
}

impl Site {
    fn new() -> Option<Self> {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(Name::new("bench").ok()?, master.public());
        let identity = Identity {
            serial: [1; 16],
            name: Name::new("drone-1").ok()?,
            role: Role::Edge,
            groups: Vec::from([Name::new("alpha").ok()?]),
            not_after: u64::MAX,
        };
        let secret = SecretValue::generate(&mut rng);
        let partial = master.issue_partial_key(&deployment, &identity, &secret.public(), &mut rng);
        Some(Self { rng, deployment, identity, secret, partial })
    }

    /// The partial key, which its verification takes.
    fn partial(&self) -> Result<UnverifiedPartialKey<S>, quiver_ainq::Error> {
        UnverifiedPartialKey::decode(&self.partial.encode())
    }

    fn keypair(&self) -> Result<DroneKeypair<S>, quiver_ainq::Error> {
        self.partial()?.verify(&self.deployment, &self.identity, &self.secret)
    }
}

const SITE: BenchError = BenchError::Failed("the drone's key");

/// One of `secret`, `keygen`, `partial-key`, `sign` and `verify`.
pub(super) async fn measure<H: Host>(course: &mut Course<'_, '_, H>, operation: &'static str) -> Result<()> {
    let benchmark = format!("ainq {operation}");
    let subject = Subject { benchmark: &benchmark, parameters: S::ID };
    let mut site = Site::new().ok_or(SITE)?;
    match operation {
        "secret" => secret(course, subject, &mut site).await,
        "keygen" => course.repeat(subject, || SecretValue::<S>::generate(&mut site.rng)).await,
        "partial-key" => partial_key(course, subject, &site).await,
        _ => signature(course, Subject { parameters: "256 bytes", ..subject }, operation, &mut site).await,
    }
}

async fn secret<H: Host>(
    course: &mut Course<'_, '_, H>,
    subject: Subject<'_>,
    site: &mut Site,
) -> Result<()> {
    let scalar = SecretScalar::<S>::generate(&mut site.rng);
    let point: Element<S> = site.secret.public();
    course.try_repeat(subject, "the secret", || S::agree(scalar.expose(), &point)).await
}

async fn partial_key<H: Host>(
    course: &mut Course<'_, '_, H>,
    subject: Subject<'_>,
    site: &Site,
) -> Result<()> {
    let iteration = |probe: &mut crate::course::Probe<'_, H>| {
        let partial = site.partial().map_err(|_| SITE)?;
        let (keypair, sample) = probe.time(|| partial.verify(&site.deployment, &site.identity, &site.secret));
        keypair.map(|_| sample).map_err(|_| SITE)
    };
    course.measure(subject, iteration).await
}

async fn signature<H: Host>(
    course: &mut Course<'_, '_, H>,
    subject: Subject<'_>,
    operation: &str,
    site: &mut Site,
) -> Result<()> {
    let keypair = site.keypair().map_err(|_| SITE)?;
    let (deployment, rng) = (&site.deployment, &mut site.rng);
    if operation == "sign" {
        return course.repeat(subject, || keypair.sign(deployment, Label::Envelope, &MESSAGE, rng)).await;
    }
    let signature = keypair.sign(deployment, Label::Envelope, &MESSAGE, rng);
    let verify = || signature.verify(deployment, keypair.public(), Label::Envelope, &MESSAGE);
    course.try_repeat(subject, "the signature", verify).await
}
