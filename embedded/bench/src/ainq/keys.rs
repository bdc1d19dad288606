//! A drone's key, its signatures, and its pairwise secret with the leader.

use alloc::format;
use alloc::vec::Vec;

use quiver_ainq::{
    Deployment, DroneKeypair, Element, Identity, Label, MasterSecret, Name, Ristretto255, Role, SecretValue,
    Suite, UnverifiedPartialKey,
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::BenchTarget;
use crate::error::{BenchError, Result};
use crate::runner::{Runner, Subject};

type S = Ristretto255;

/// Bytes that are signed.
const MESSAGE: [u8; 256] = [1; 256];

/// The vectors for the pairwise secret on ristretto255, `core/ainq/tests/vectors/pairwise-secret.json`: y, e,
/// V and T of each.
const VECTORS: &[u8] = include_bytes!("../../fixtures/pairwise-secret.bin");
/// Bytes of a vector.
const VECTOR_LEN: usize = 4 * 32;

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
pub(super) async fn measure<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    operation: &'static str,
) -> Result<()> {
    let benchmark = format!("ainq {operation}");
    let subject = Subject { benchmark: &benchmark, parameters: S::ID };
    let mut site = Site::new().ok_or(SITE)?;
    match operation {
        "secret" => secret(runner, subject).await,
        "keygen" => runner.repeat(subject, || SecretValue::<S>::generate(&mut site.rng)).await,
        "partial-key" => partial_key(runner, subject, &site).await,
        _ => signature(runner, Subject { parameters: "256 bytes", ..subject }, operation, &mut site).await,
    }
}

/// Every vector must come out first, on this processor and by the ladder that this image has.
async fn secret<H: BenchTarget>(runner: &mut Runner<'_, '_, H>, subject: Subject<'_>) -> Result<()> {
    const WRONG: BenchError = BenchError::Failed("a secret is not the vector's");
    let mut first = None;
    for vector in VECTORS.as_chunks::<VECTOR_LEN>().0 {
        let (key, point, expected) = pair(vector).ok_or(WRONG)?;
        let secret = S::agree(&key, &point).map_err(|_| WRONG)?;
        if secret.expose() != expected {
            return Err(WRONG);
        }
        first.get_or_insert((key, point));
    }
    let (key, point) = first.ok_or(WRONG)?;
    runner.try_repeat(subject, "the secret", || S::agree(&key, &point)).await
}

/// y + e, V and T of a vector.
fn pair(vector: &[u8; VECTOR_LEN]) -> Option<(<S as Suite>::Scalar, Element<S>, &[u8; 32])> {
    let ([y, e, point, secret], _) = vector.as_chunks::<32>() else { return None };
    let key = S::scalar_decode(y)? + S::scalar_decode(e)?;
    Some((key, Element::decode(point).ok()?, secret))
}

async fn partial_key<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    subject: Subject<'_>,
    site: &Site,
) -> Result<()> {
    let iteration = |probe: &mut crate::runner::Probe<'_, H>| {
        let partial = site.partial().map_err(|_| SITE)?;
        let (keypair, sample) = probe.time(|| partial.verify(&site.deployment, &site.identity, &site.secret));
        keypair.map(|_| sample).map_err(|_| SITE)
    };
    runner.measure(subject, iteration).await
}

async fn signature<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    subject: Subject<'_>,
    operation: &str,
    site: &mut Site,
) -> Result<()> {
    let keypair = site.keypair().map_err(|_| SITE)?;
    let (deployment, rng) = (&site.deployment, &mut site.rng);
    if operation == "sign" {
        return runner.repeat(subject, || keypair.sign(deployment, Label::Envelope, &MESSAGE, rng)).await;
    }
    let signature = keypair.sign(deployment, Label::Envelope, &MESSAGE, rng);
    let verify = || signature.verify(deployment, keypair.public(), Label::Envelope, &MESSAGE);
    runner.try_repeat(subject, "the signature", verify).await
}
