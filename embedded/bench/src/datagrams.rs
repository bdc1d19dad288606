//! The group's datagrams (docs/protocol.md, section 20): what one costs its sender and its receiver.
//!
//! | operation | what is measured |
//! |---|---|
//! | `seal` | from a payload to the datagram for the carrier |
//! | `open` | from the datagram to the receiver's event |
//! | `seal-signed`, `open-signed` | the same, signed and verified |
//! | `announcement` | a sender's start, without its key, believed |
//! | `announcement-signed` | the same with its key: decoding the key, deriving the KGC's part of it, the signature |
//!
//! The sender is an edge with its first key in the group of [`FLAT`]; the receiver has another slot there.
//! Nothing waits for a carrier: its bit rate is not measured here.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Deployment, EpochKeys, Ristretto255};
use quiver_datagram::{Config, Datagrams, Event, Payload, Priority};
use quiver_group::Edge;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::BenchTarget;
use crate::ainq::{FLAT, Script, member};
use crate::arguments::{Arguments, Bounds};
use crate::error::{BenchError, Result};
use crate::runner::{Probe, Runner, Subject};
use crate::statistics::Sample;

type S = Ristretto255;

/// More heap than an edge, two ends and a few datagrams take.
const HEAP: usize = 16 * 1024;

/// Payloads that fit a datagram of a board, signed ones with the bytes that a command may need besides.
const BYTES: Bounds = Bounds { what: "bytes", least: 1, most: 170 };

/// Time at which the sender announces its start.
const START: Duration = Duration::from_secs(1);
/// Time at which it announces its key, and of everything after that: nothing else becomes due.
const NOW: Duration = Duration::from_secs(2);

const SENDER: BenchError = BenchError::Failed("the sender");
const RECEIVER: BenchError = BenchError::Failed("a datagram is not received");

/// `datagram <iterations> [bytes]`.
pub(crate) async fn datagram<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    mut words: Arguments<'_>,
) -> Result<()> {
    let length = words.number_or(40, BYTES)? as usize;
    words.end()?;
    runner.needs(HEAP)?;
    let mut pair = DatagramPair::new(length)?;
    let parameters = format!("AES-128-CCM, {length} bytes");
    let subject = |benchmark| Subject { benchmark, parameters: &parameters };
    runner.measure(subject("datagram seal"), |probe| pair.seal(probe, false)).await?;
    runner.measure(subject("datagram open"), |probe| pair.open(probe, false)).await?;
    runner.measure(subject("datagram seal-signed"), |probe| pair.seal(probe, true)).await?;
    runner.measure(subject("datagram open-signed"), |probe| pair.open(probe, true)).await?;
    let subject = |benchmark| Subject { benchmark, parameters: "AES-128-CCM" };
    runner.measure(subject("datagram announcement"), |probe| pair.announcement(probe, false)).await?;
    runner.measure(subject("datagram announcement-signed"), |probe| pair.announcement(probe, true)).await
}

/// A sender, its edge, and a receiver that knows it.
struct DatagramPair {
    edge: Edge<S>,
    deployment: Deployment<S>,
    keys: EpochKeys<S>,
    rng: ChaCha20Rng,
    sender: Datagrams<S>,
    receiver: Datagrams<S>,
    /// The sender's announcements: without its key, and with it.
    announcements: [Vec<u8>; 2],
    length: usize,
}

impl DatagramPair {
    fn new(length: usize) -> Result<Self> {
        let script = Script::decode(FLAT).map_err(|_| BenchError::Failed("the script"))?;
        let (edge, now) = member(&script)?;
        let keys = edge.epoch_keys(now).ok_or(SENDER)?;
        let deployment = script.deployment;
        let mut rng = ChaCha20Rng::seed_from_u64(script.seed);
        let mut sender = end(&deployment);
        sender.set_epoch(START, keys.clone(), &mut rng);
        let receiver = end(&deployment);
        let announcements = [Vec::new(), Vec::new()];
        let mut pair = Self { edge, deployment, keys, rng, sender, receiver, announcements, length };
        pair.receiver = pair.stranger();
        pair.introduce()?;
        Ok(pair)
    }

    /// A receiver in the next slot that has heard nothing yet.
    fn stranger(&mut self) -> Datagrams<S> {
        let mut receiver = end(&self.deployment);
        let slot = (self.keys.slot + 1) % self.keys.slots.max(1);
        receiver.set_epoch(NOW, EpochKeys { slot, ..self.keys.clone() }, &mut self.rng);
        receiver
    }

    /// Announces the sender to the receiver: its start before its first datagram, then its key.
    fn introduce(&mut self) -> Result<()> {
        let mut all = Vec::new();
        for (now, sign) in [(START, false), (NOW, true)] {
            self.sender.send(now, self.payload(sign)).map_err(|_| SENDER)?;
            self.sign();
            while let Some(datagram) = self.sender.poll_datagram(now) {
                self.receiver.handle_datagram(NOW, &datagram);
                allow(&mut self.receiver);
                all.push(datagram);
                self.sign();
            }
        }
        let [start, _, key, _] = <[Vec<u8>; 4]>::try_from(all).map_err(|_| SENDER)?;
        self.announcements = [start, key];
        Ok(())
    }

    fn payload(&self, sign: bool) -> Payload {
        let priority = if sign { Priority::Command } else { Priority::Telemetry };
        Payload { bytes: vec![7; self.length], priority, sign }
    }

    /// Signs what the sender wants signed.
    fn sign(&mut self) {
        while let Some(event) = self.sender.poll_event() {
            if let Event::SignatureWanted(request) = event
                && let Some(signature) = self.edge.sign_datagram(&request.statement, &mut self.rng)
            {
                self.sender.provide_signature(NOW, request.id, &signature);
            }
        }
    }

    fn datagram(&mut self, payload: Payload) -> Option<Vec<u8>> {
        let sign = payload.sign;
        self.sender.send(NOW, payload).ok()?;
        if sign {
            self.sign();
        }
        self.sender.poll_datagram(NOW)
    }

    fn seal<H: BenchTarget>(&mut self, probe: &mut Probe<'_, H>, sign: bool) -> Result<Sample> {
        let payload = self.payload(sign);
        let (datagram, sample) = probe.time(|| self.datagram(payload));
        datagram.map(|_| sample).ok_or(SENDER)
    }

    fn open<H: BenchTarget>(&mut self, probe: &mut Probe<'_, H>, sign: bool) -> Result<Sample> {
        let payload = self.payload(sign);
        let datagram = self.datagram(payload).ok_or(SENDER)?;
        let (event, sample) = probe.time(|| {
            self.receiver.handle_datagram(NOW, &datagram);
            self.receiver.poll_event()
        });
        match event {
            Some(Event::Received { bytes, .. }) if bytes.len() == self.length => Ok(sample),
            _ => Err(RECEIVER),
        }
    }

    fn announcement<H: BenchTarget>(&mut self, probe: &mut Probe<'_, H>, signed: bool) -> Result<Sample> {
        let mut receiver = self.stranger();
        let [start, key] = &self.announcements;
        let announcement = if signed { key } else { start };
        let ((), sample) = probe.time(|| receiver.handle_datagram(NOW, announcement));
        let taken = receiver.counters().announcements == 1 && allow(&mut receiver) == signed;
        if taken { Ok(sample) } else { Err(RECEIVER) }
    }
}

fn end(deployment: &Deployment<S>) -> Datagrams<S> {
    let hour = Duration::from_secs(3_600);
    let config = Config { bit_rate: None, announce_every: hour, ..Config::board() };
    Datagrams::new(config, deployment.clone())
}

/// Allows every signer that announces itself; whether there was one.
fn allow(receiver: &mut Datagrams<S>) -> bool {
    let mut any = false;
    while let Some(event) = receiver.poll_event() {
        if let Event::SignerAnnounced { slot, drone } = event {
            receiver.allow_signer(NOW, slot, &drone.handle());
            any = true;
        }
    }
    any
}
