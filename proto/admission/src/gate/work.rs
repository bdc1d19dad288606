//! The expensive work of a gate: curve arithmetic, one piece at a time.
//!
//! A piece contains all its inputs and its own randomness, drawn by the gate when it was cut. So a gate
//! without workers delays other inputs by one piece at most, and the result does not depend on the thread or
//! the time.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_abke::exchange::{Garbling, Hello, Policy, Terms, VerifiedHello};
use quiver_abke::{Error as AbkeError, Verifier};
use quiver_ainq::{Label, Suite, UnixTime};
use quiver_crypto::{Digest, Secret};
use quiver_message::{COOKIE_LEN, Nonce};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::super::WINDOW;
use super::{GateConfig, Stage};
use quiver_machine::Peer;

/// The run that a piece of work belongs to, and the binding of the run to its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
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
pub(super) struct Waiting {
    pub(super) place: Place,
    /// The first step, of the length that it must have.
    pub(super) hello: Vec<u8>,
}

/// A piece of work.
#[derive(Debug)]
pub(super) enum Work {
    /// Keys to be decoded and verified, in one product if all are good.
    Verify(Arc<Verifier>, Vec<Waiting>),
    /// An offer to be made, with the first tables.
    Offer(Place, Box<VerifiedHello>),
    /// The next tables.
    Garble(Place, Box<Garbling>),
}

/// The next stage of a run after a window of gates, and the steps to send to the drone.
type Garbled = Box<(Stage, Vec<Vec<u8>>)>;

/// Result of a piece of work.
#[derive(Debug)]
pub(super) enum Done {
    Verified(Vec<(Place, Result<VerifiedHello, AbkeError>)>),
    /// The next stage of the run, and the steps to send to the drone.
    Garbled(Place, Result<Garbled, AbkeError>),
}

impl Work {
    /// The runs that this work belongs to.
    pub(super) fn places(&self) -> Vec<Place> {
        match self {
            Self::Verify(_, waiting) => waiting.iter().map(|one| one.place).collect(),
            Self::Offer(place, _) | Self::Garble(place, _) => [*place].into(),
        }
    }

    /// Does it.
    pub(super) fn run<S: Suite>(
        self,
        config: &GateConfig<S>,
        policy: &Arc<Policy>,
        seed: &Secret<32>,
    ) -> Done {
        let mut rng = ChaCha20Rng::from_seed(*seed.expose());
        match self {
            Self::Verify(verifier, waiting) => Done::Verified(verify(&verifier, policy, waiting, &mut rng)),
            Self::Offer(place, hello) => {
                let offered = offer(config, policy, &place, *hello, &mut rng);
                Done::Garbled(place, offered.and_then(|(garbling, offer)| garble(garbling, [offer].into())))
            }
            Self::Garble(place, garbling) => Done::Garbled(place, garble(garbling, Vec::new())),
        }
    }
}

fn verify(
    verifier: &Verifier,
    policy: &Policy,
    waiting: Vec<Waiting>,
    rng: &mut ChaCha20Rng,
) -> Vec<(Place, Result<VerifiedHello, AbkeError>)> {
    let (mut places, mut hellos, mut verdicts) = (Vec::new(), Vec::new(), Vec::new());
    for Waiting { place, hello } in waiting {
        // §A8: points are decoded where the work is done, not in the leader's loop.
        match Hello::decode(&hello, policy.attributes()) {
            Err(error) => verdicts.push((place, Err(error))),
            Ok(hello) => {
                places.push(place);
                hellos.push(hello);
            }
        }
    }
    // §A8: all in one product; forged keys are found by their first three slots.
    verdicts.extend(places.into_iter().zip(Hello::verify_batch(hellos, verifier, rng)));
    verdicts
}

fn offer<S: Suite>(
    config: &GateConfig<S>,
    policy: &Arc<Policy>,
    place: &Place,
    hello: VerifiedHello,
    rng: &mut ChaCha20Rng,
) -> Result<(Box<Garbling>, Vec<u8>), AbkeError> {
    // §A4.2: the context: the policy's id, the leader's public key, nonce ‖ c.
    let server = config.keypair.public().encode();
    let channel = [place.nonce.as_slice(), &place.cookie].concat();
    let terms = Terms { policy: config.policy.id(), server: &server, channel: &channel };
    let mut coins = *Secret::<32>::random(rng).expose();
    let mut signing = ChaCha20Rng::from_seed(coins);
    zeroize::Zeroize::zeroize(&mut coins);
    // §A4.1: signed `abke` over the run's context.
    let sign = |context: &Digest| {
        config.keypair.sign(&config.deployment, Label::Abke, context, &mut signing).encode()
    };
    let (garbling, offer) = hello.offer(&terms, Arc::clone(policy), rng, sign)?;
    Ok((Box::new(garbling), offer))
}

/// Makes the next tables, after what else there is to send, and waits for the drone to ask for more or, if
/// that was all, to commit itself.
fn garble(mut garbling: Box<Garbling>, mut steps: Vec<Vec<u8>>) -> Result<Garbled, AbkeError> {
    // §A4.1: four pieces of 64 KiB, then more when the drone asks.
    for _ in 0..WINDOW {
        match garbling.next_tables()? {
            Some(tables) => steps.push(tables),
            None => return Ok(Box::new((Stage::Awaiting(garbling.finish()?), steps))),
        }
    }
    Ok(Box::new((Stage::Garbling(garbling), steps)))
}
