//! The expensive work of a gate: curve arithmetic, one piece at a time.
//!
//! A piece contains all its inputs and its own randomness, drawn by the gate when it was cut. So a gate
//! without workers delays other inputs by one piece at most, and the result does not depend on the thread or
//! the time.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_abke::exchange::{ExchangeTerms, Garbling, Hello, PolicyCircuit, VerifiedHello};
use quiver_abke::{Error as AbkeError, Verifier};
use quiver_ainq::{KemKey, Label, Suite, UnixTime};
use quiver_crypto::{Digest, Secret};
use quiver_message::{COOKIE_LEN, Nonce};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::super::kem::{RunParties, channel, statement};
use super::super::{AdmissionError, WINDOW};
use super::{GateConfig, GateStage};
use quiver_machine::Peer;

/// The run that a piece of work belongs to, and the binding of the run to its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunId {
    pub(super) peer: Peer,
    pub(super) nonce: Nonce,
    pub(super) cookie: [u8; COOKIE_LEN],
    /// Time on the monotonic clock by which the run must end.
    pub(super) until: Duration,
    /// End of the period of the credential shown.
    pub(super) ends: UnixTime,
}

/// A key that waits to be verified.
#[derive(Debug)]
pub(super) struct PendingKeyCheck {
    pub(super) run_id: RunId,
    /// The first step, of the length that it must have.
    pub(super) hello: Vec<u8>,
    /// The encapsulation key of the run, of the term's set; empty if the term has no second factor.
    pub(super) kem: Vec<u8>,
}

/// A key that the authority signed, and the encapsulation key of its run.
#[derive(Debug)]
pub(super) struct Proven {
    pub(super) run_id: RunId,
    pub(super) hello: Box<VerifiedHello>,
    pub(super) kem: Vec<u8>,
}

/// A run that makes tables, and κ, if the term has a second factor.
#[derive(Debug)]
pub(super) struct GarblingRun<S: Suite> {
    pub(super) run_id: RunId,
    pub(super) garbling: Box<Garbling>,
    pub(super) kem: Option<KemKey<S>>,
}

/// A piece of work.
#[derive(Debug)]
pub(super) enum Work<S: Suite> {
    /// Keys to be decoded and verified, in one product if all are good.
    Verify(Arc<Verifier>, Vec<PendingKeyCheck>),
    /// An offer to be made, with the first tables.
    Offer(Proven),
    /// The next tables.
    Garble(GarblingRun<S>),
}

/// A run after a window of gates.
#[derive(Debug)]
pub(super) struct Garbled<S: Suite> {
    pub(super) stage: GateStage,
    pub(super) kem: Option<KemKey<S>>,
    /// Steps to send to the drone.
    pub(super) steps: Vec<Vec<u8>>,
    /// The ciphertext that goes with the first of them, if there is one.
    pub(super) ciphertext: Vec<u8>,
}

/// Result of a piece of work.
#[derive(Debug)]
pub(super) enum WorkResult<S: Suite> {
    Verified(Vec<(RunId, Result<Proven, AbkeError>)>),
    Garbled(RunId, Result<Box<Garbled<S>>, AdmissionError>),
}

impl<S: Suite> Work<S> {
    /// The runs that this work belongs to.
    pub(super) fn run_ids(&self) -> Vec<RunId> {
        match self {
            Self::Verify(_, waiting) => waiting.iter().map(|one| one.run_id).collect(),
            Self::Offer(Proven { run_id, .. }) | Self::Garble(GarblingRun { run_id, .. }) => [*run_id].into(),
        }
    }

    /// Does it.
    pub(super) fn run(
        self,
        config: &GateConfig<S>,
        policy: &Arc<PolicyCircuit>,
        seed: &Secret<32>,
    ) -> WorkResult<S> {
        let mut rng = ChaCha20Rng::from_seed(*seed.expose());
        match self {
            Self::Verify(verifier, waiting) => {
                WorkResult::Verified(verify(&verifier, policy, waiting, &mut rng))
            }
            Self::Offer(proven) => {
                let (run_id, offered) = (proven.run_id, offer(config, policy, proven, &mut rng));
                let garbled = offered.and_then(|offered| {
                    let OfferedRun { tables, offer, ciphertext } = offered;
                    garble(tables, [offer].into()).map(|garbled| Garbled { ciphertext, ..garbled })
                });
                WorkResult::Garbled(run_id, garbled.map(Box::new))
            }
            Self::Garble(tables) => {
                WorkResult::Garbled(tables.run_id, garble(tables, Vec::new()).map(Box::new))
            }
        }
    }
}

fn verify(
    verifier: &Verifier,
    policy: &PolicyCircuit,
    waiting: Vec<PendingKeyCheck>,
    rng: &mut ChaCha20Rng,
) -> Vec<(RunId, Result<Proven, AbkeError>)> {
    let (mut run_ids, mut hellos, mut verdicts) = (Vec::new(), Vec::new(), Vec::new());
    for PendingKeyCheck { run_id, hello, kem } in waiting {
        // §A8: points are decoded where the work is done, not in the leader's loop.
        match Hello::decode(&hello, policy.attributes()) {
            Err(error) => verdicts.push((run_id, Err(error))),
            Ok(hello) => {
                run_ids.push((run_id, kem));
                hellos.push(hello);
            }
        }
    }
    // §A8: all in one product; forged keys are found by their first three slots.
    let verified = run_ids.into_iter().zip(Hello::verify_batch(hellos, verifier, rng));
    verdicts.extend(verified.map(|((run_id, kem), verdict)| {
        (run_id, verdict.map(|hello| Proven { run_id, hello: Box::new(hello), kem }))
    }));
    verdicts
}

/// An offer, and what goes on from there.
struct OfferedRun<S: Suite> {
    tables: GarblingRun<S>,
    offer: Vec<u8>,
    ciphertext: Vec<u8>,
}

fn offer<S: Suite>(
    config: &GateConfig<S>,
    policy: &Arc<PolicyCircuit>,
    proven: Proven,
    rng: &mut ChaCha20Rng,
) -> Result<OfferedRun<S>, AdmissionError> {
    let Proven { run_id, hello, kem: key } = proven;
    // §A4.2: the context: the policy's id, the leader's public key, nonce ‖ c; §A4.3: … and the encapsulation
    // key.
    let server = config.keypair.public().encode();
    let offered = config.kem.map(|term| (term, &key[..]));
    let channel = channel(&run_id.nonce, &run_id.cookie, offered);
    let (deployment, group, leader) = (&config.deployment, &config.group, &config.keypair.public().handle());
    let parties = RunParties { deployment, group, leader, channel: &channel };
    // §A4.3: once for a key that the authority signed, and for nobody else.
    let made = offered.map(|offered| parties.encapsulate(offered, rng)).transpose()?;
    let (kem, ciphertext) = made.map_or((None, Vec::new()), |(kem, ciphertext)| (Some(kem), ciphertext));
    let terms = ExchangeTerms { policy: config.policy.id(), server: &server, channel: &channel };
    let mut coins = *Secret::<32>::random(rng).expose();
    let mut signing = ChaCha20Rng::from_seed(coins);
    zeroize::Zeroize::zeroize(&mut coins);
    // §A4.1: signed `abke` over the run's context.
    let sign = |context: &Digest| {
        let statement = statement(context, &ciphertext);
        config.keypair.sign(&config.deployment, Label::Abke, &statement, &mut signing).encode()
    };
    let (garbling, offer) = hello.offer(&terms, Arc::clone(policy), rng, sign)?;
    Ok(OfferedRun { tables: GarblingRun { run_id, garbling: Box::new(garbling), kem }, offer, ciphertext })
}

/// Makes the next tables, after what else there is to send, and waits for the drone to ask for more or, if
/// that was all, to commit itself.
fn garble<S: Suite>(tables: GarblingRun<S>, mut steps: Vec<Vec<u8>>) -> Result<Garbled<S>, AdmissionError> {
    let GarblingRun { mut garbling, kem, .. } = tables;
    // §A4.1: four pieces of 64 KiB, then more when the drone asks.
    for _ in 0..WINDOW {
        match garbling.next_tables()? {
            Some(tables) => steps.push(tables),
            None => {
                let stage = GateStage::Awaiting(garbling.finish()?);
                return Ok(Garbled { stage, kem, steps, ciphertext: Vec::new() });
            }
        }
    }
    Ok(Garbled { stage: GateStage::Garbling(garbling), kem, steps, ciphertext: Vec::new() })
}
