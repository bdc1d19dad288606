//! Sets up an authority, a leader and a drone whose attributes satisfy the leader's policy, and runs the
//! exchange.

use std::sync::Arc;

use quiver_abke::{Authority, Client, Credential, ExchangeTerms, Hello, PolicyCircuit, Verifier};
use quiver_ainq::{Deployment, DroneKeypair, Label, Ristretto255, Signature};
use quiver_crypto::Secret;
use quiver_garble::{Circuit, Gate};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::plan::PolicySize;
use super::step::ExchangeStep;
use crate::ainq::swarm::LabSwarm;
use crate::measure::{Effort, Timing, clocked, repeat_on};
use crate::{LabError, Result};

/// Name of the policy. Any will do: its content does not count.
const POLICY: [u8; 32] = [1; 32];
const CHANNEL: &[u8] = b"a nonce and a cookie: 48 bytes as in an admission";

/// Participants of an exchange.
pub(super) struct ExchangeSetup {
    pub(super) size: PolicySize,
    pub(super) policy: Arc<PolicyCircuit>,
    pub(super) authority: Authority,
    pub(super) verifier: Verifier,
    pub(super) credential: Credential,
    deployment: Deployment<Ristretto255>,
    leader: DroneKeypair<Ristretto255>,
    server: Vec<u8>,
    seed: u64,
}

/// Times of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pass {
    /// Seconds, by step.
    pub(super) seconds: [f64; ExchangeStep::COUNT],
    pub(super) lengths: Lengths,
}

/// Bytes of each message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) hello: usize,
    pub(super) offer: usize,
    pub(super) tables: usize,
    pub(super) commitment: usize,
    pub(super) seeds: usize,
    pub(super) opening: usize,
    pub(super) confirmation: usize,
}

impl Pass {
    fn time<T>(
        &mut self,
        step: ExchangeStep,
        work: impl FnOnce() -> Result<T, quiver_abke::Error>,
    ) -> Result<T> {
        let (done, seconds) = clocked(work);
        self.seconds[step as usize] += seconds;
        Ok(done?)
    }
}

impl ExchangeSetup {
    /// A policy of this size.
    pub(super) fn of(size: PolicySize, seed: u64) -> Result<Self> {
        let attributes: Vec<bool> = (0..size.attributes).map(|at| at.is_multiple_of(3)).collect();
        Self::new(&circuit(size, &attributes)?, &attributes, seed)
    }

    /// Any policy with one output, and attributes that satisfy it.
    pub(super) fn new(circuit: &Circuit, attributes: &[bool], seed: u64) -> Result<Self> {
        let mut rng = seeded(seed);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let size = PolicySize { gates: count(circuit.statistics().and), attributes: count(attributes.len()) };
        let policy = Arc::new(PolicyCircuit::new(circuit)?);
        let authority = Authority::derive(&Secret::random(&mut rng), 1, attributes.len())?;
        let verifier = Verifier::new(authority.key().clone());
        let credential = authority.certify(attributes, &mut rng)?;
        let LabSwarm { deployment, leader, .. } = LabSwarm::new(seed)?;
        let server = leader.public().encode();
        Ok(Self { size, policy, authority, verifier, credential, deployment, leader, server, seed })
    }

    fn terms(&self) -> ExchangeTerms<'_> {
        ExchangeTerms { policy: &POLICY, server: &self.server, channel: CHANNEL }
    }

    /// Randomness of the next operation; the same at every call.
    pub(super) fn rng(&self) -> ChaCha20Rng {
        seeded(self.seed)
    }

    fn is_signed(&self, context: &[u8; 32], signature: &[u8]) -> bool {
        let (leader, signature) = (self.leader.public(), Signature::decode(signature));
        signature.is_ok_and(|it| it.verify(&self.deployment, leader, Label::Abke, context).is_ok())
    }

    /// One whole run, of which every step is timed.
    pub(super) fn pass(&self, rng: &mut ChaCha20Rng) -> Result<Pass> {
        let (terms, mut pass, mut signing) = (self.terms(), Pass::default(), self.rng());
        let key = pass.time(ExchangeStep::Unlink, || Ok(self.credential.unlink(rng)))?;
        let start = || Client::start(&terms, Arc::clone(&self.policy), key, rng);
        let (client, hello) = pass.time(ExchangeStep::Hello, start)?;

        let verified =
            pass.time(ExchangeStep::Verify, || self.decode(&hello)?.verify(&self.verifier, rng))?;
        let sign = |context: &[u8; 32]| {
            self.leader.sign(&self.deployment, Label::Abke, context, &mut signing).encode()
        };
        let offer = || verified.offer(&terms, Arc::clone(&self.policy), rng, sign);
        let (mut server, offer) = pass.time(ExchangeStep::Offer, offer)?;

        let read = || client.offer(&offer, |context, signature| self.is_signed(context, signature));
        let mut client = pass.time(ExchangeStep::Decrypt, read)?;
        while let Some(tables) = pass.time(ExchangeStep::Garble, || server.next_tables())? {
            pass.lengths.tables += tables.len();
            pass.time(ExchangeStep::Evaluate, || client.tables(&tables))?;
        }
        let (client, commitment) = pass.time(ExchangeStep::Commit, || client.commit(rng))?;
        let server = pass.time(ExchangeStep::Garble, || server.finish())?;
        let (server, seeds) = pass.time(ExchangeStep::Seeds, || server.commitment(&commitment))?;
        let (client, opening) = pass.time(ExchangeStep::Check, || client.open(&seeds, rng))?;
        let (server, confirmation) = pass.time(ExchangeStep::Opening, || server.opening(&opening))?;
        let client = pass.time(ExchangeStep::Confirm, || client.confirm(&confirmation))?;
        if client.key() != server.key() {
            return Err(LabError::WrongKey("attribute-based key exchange"));
        }
        pass.lengths = Lengths {
            hello: hello.len(),
            offer: offer.len(),
            commitment: commitment.len(),
            seeds: seeds.len(),
            opening: opening.len(),
            confirmation: confirmation.len(),
            ..pass.lengths
        };
        Ok(pass)
    }

    /// The hellos of so many clients.
    pub(super) fn hellos(&self, count: usize) -> Result<Vec<Vec<u8>>> {
        let mut rng = self.rng();
        let hello = |_| {
            let key = self.credential.unlink(&mut rng);
            Ok(Client::start(&self.terms(), Arc::clone(&self.policy), key, &mut rng)?.1)
        };
        (0..count).map(hello).collect()
    }

    pub(super) fn decode(&self, hello: &[u8]) -> Result<Hello, quiver_abke::Error> {
        Hello::decode(hello, self.policy.attributes())
    }

    /// Decoding and verifying all of these at once.
    pub(super) fn verify(&self, hellos: &[Vec<u8>], effort: Effort) -> Result<Timing> {
        let mut rng = self.rng();
        repeat_on(
            effort,
            &mut rng,
            |_| Ok(()),
            |rng, ()| {
                let decoded = hellos.iter().map(|hello| self.decode(hello)).collect::<Result<_, _>>()?;
                let verdicts = Hello::verify_batch(decoded, &self.verifier, rng);
                Ok(verdicts.into_iter().collect::<Result<Vec<_>, _>>()?)
            },
        )
    }
}

/// Randomness that follows from a seed.
pub(super) fn seeded(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// A circuit of so many ANDs and as many XORs, of moderate depth, whose output is true for the attributes.
pub(super) fn circuit(size: PolicySize, attributes: &[bool]) -> Result<Circuit> {
    let (inputs, mut gates) = (size.attributes, Vec::new());
    let wires = |gates: &Vec<Gate>| inputs + u32::try_from(gates.len()).unwrap_or(u32::MAX);
    for at in 0..size.gates {
        let (next, window) = (wires(&gates), wires(&gates).min(256));
        gates.push(Gate::Xor(next - 1 - at % window, next - window));
        gates.push(Gate::And(next, next - 1 - (at * 7) % window));
    }
    // All are needed: their sum is the output.
    let mut sum = inputs + 1;
    for at in 1..size.gates {
        gates.push(Gate::Xor(sum, inputs + 2 * at + 1));
        sum = wires(&gates) - 1;
    }
    let circuit = Circuit::new(attributes.len(), gates, vec![sum])?;
    if circuit.evaluate(attributes)? == [true] {
        return Ok(circuit);
    }
    let mut gates = circuit.gates().to_vec();
    gates.push(Gate::Not(sum));
    sum = wires(&gates) - 1;
    Ok(Circuit::new(attributes.len(), gates, vec![sum])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circuits_have_as_many_gates_as_they_shall_and_are_satisfied() {
        for size in [
            PolicySize { gates: 1000, attributes: 10 },
            PolicySize { gates: 3, attributes: 1 },
            PolicySize { gates: 5000, attributes: 300 },
        ] {
            let attributes: Vec<bool> = (0..size.attributes).map(|at| at % 2 == 0).collect();
            let circuit = circuit(size, &attributes).unwrap();
            assert_eq!(circuit.statistics().and, size.gates as usize);
            assert_eq!(circuit.evaluate(&attributes).unwrap(), [true]);
        }
    }

    #[test]
    fn every_step_of_a_run_is_timed_and_every_message_counted() {
        let exchange_setup = ExchangeSetup::of(PolicySize { gates: 50, attributes: 4 }, 1).unwrap();
        let pass = exchange_setup.pass(&mut exchange_setup.rng()).unwrap();
        assert!(pass.seconds.iter().all(|seconds| *seconds > 0.0), "{pass:?}");
        let Lengths { hello, tables, commitment, seeds, opening, confirmation, offer } = pass.lengths;
        assert_eq!((hello, tables), (33 + 96 * 14, 16 * 50));
        assert_eq!((commitment, seeds, opening, confirmation), (33, 65, 81, 33));
        assert_eq!(offer, 69 + 64 + 96 * 10 + 16 + 32 * 4);
    }
}
