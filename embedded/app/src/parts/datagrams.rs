//! The group's datagrams (docs/protocol.md, section 20) on the board's medium, beside what it exchanges with
//! its gateway: small, unreliable, to everybody who listens.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt::Write;
use core::time::Duration;

use quiver_ainq::{DronePublicKey, EpochKeys, Handle, Slot};
use quiver_crypto::Digest;
use quiver_datagram::{Config, Datagrams, Event, Payload, PayloadOrigin, Priority};
use quiver_group::edge::{EdgeCommand, EdgeEvent};
use quiver_machine::Either;
use rand_core::CryptoRngCore;

use super::{BoardPart, CommandAnswer, PartContext, PartRequest};
use crate::console::{ConsoleLine, ConsoleOutput, Escaped};
use crate::node::{BoardState, S};

/// Help for the console commands.
const HELP: &str = "\
datagram <text>      say something to whoever of the group is in range, unsigned
datagram-signed <text>
                     the same, signed
";
/// Senders whose windows the board keeps in an epoch, 600 bytes each, twice that while the epoch before is
/// still received; of eight times as many it remembers the last numbers.
const SENDERS: usize = 16;
/// Bytes that a frame of radio adds; a line's adds fewer.
const FRAMING: usize = 17;

/// Names an epoch and a start of the board in it.
type InUse = (Digest, Slot, u32);

/// The board's datagrams.
pub(super) struct DatagramPart {
    /// Datagrams of the group, from the first key on. They outlive the machine: what was received is not
    /// received again.
    datagrams: Option<Box<Datagrams<S>>>,
    /// The keys in use.
    in_use: Option<InUse>,
    /// True if the machine may have other keys by now.
    is_outdated: bool,
    /// True if the leader is to be asked for a newer epoch.
    wants_epoch: bool,
    /// True if there is a newer list of those who may not sign.
    has_newer_list: bool,
}

/// Console command: text for the group.
#[derive(Debug, PartialEq, Eq)]
struct DatagramCommand<'a> {
    text: &'a str,
    sign: bool,
}

impl<'a> DatagramCommand<'a> {
    /// Reads a line; `None` if its word is none of datagrams.
    ///
    /// # Errors
    /// Description of the mistake for the operator.
    fn read(line: &ConsoleLine<'a>) -> Result<Option<Self>, &'static str> {
        let sign = match line.word {
            "datagram" => false,
            "datagram-signed" => true,
            _ => return Ok(None),
        };
        Ok(Some(Self { text: line.arguments()?, sign }))
    }
}

impl BoardPart for DatagramPart {
    type Beside = ();

    fn beside() {}

    fn is_heard(datagram: &[u8], _: bool) -> bool {
        quiver_link::is_of_group(datagram)
    }

    /// Takes a datagram from the medium if it is the group's.
    fn handle_datagram<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, datagram: &[u8]) -> bool {
        let is_ours = quiver_link::is_of_group(datagram);
        if let Some(datagrams) = self.datagrams.as_mut().filter(|_| is_ours) {
            datagrams.handle_datagram(cx.now, datagram);
        }
        is_ours
    }

    fn poll_broadcast(&mut self, clock: fn() -> Duration) -> Option<Vec<u8>> {
        self.datagrams.as_mut()?.poll_datagram(clock())
    }

    /// §20.8: asks the leader for a newer epoch.
    fn poll_request<R: CryptoRngCore>(
        &mut self,
        _: &mut PartContext<'_, R>,
    ) -> Option<PartRequest<Infallible>> {
        let wants_epoch = core::mem::replace(&mut self.wants_epoch, false);
        wants_epoch.then_some(PartRequest::Command(Either::Left(EdgeCommand::CatchUp)))
    }

    /// Follows the machine's keys, does what is due, and handles what was received.
    #[inline(never)]
    fn step<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>) {
        if core::mem::take(&mut self.is_outdated) {
            self.follow_epoch(cx);
        }
        if core::mem::take(&mut self.has_newer_list) {
            self.forbid_refused_signers(cx);
        }
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.handle_timeout(cx.now);
        }
        while let Some(event) = self.poll_event() {
            self.handle_event(cx, event);
        }
    }

    fn due<R: CryptoRngCore>(&self, cx: &PartContext<'_, R>) -> Option<Duration> {
        if self.wants_epoch && cx.is_ready {
            return Some(Duration::ZERO);
        }
        self.datagrams.as_ref()?.timeout()
    }

    fn machine_changed(&mut self) {
        self.is_outdated = true;
    }

    fn edge_event<R>(&mut self, _: &mut BoardState<R>, event: &EdgeEvent) {
        if matches!(event, EdgeEvent::RevocationList { .. }) {
            self.has_newer_list = true;
        }
    }

    fn medium_changed(&mut self) {
        *self = Self::new();
    }

    fn discard_state(&mut self) {
        self.is_outdated = true;
    }

    fn wipe(&mut self) {
        *self = Self::new();
    }

    fn command<R: CryptoRngCore>(
        &mut self,
        cx: &mut PartContext<'_, R>,
        line: &ConsoleLine<'_>,
    ) -> CommandAnswer<Infallible> {
        match DatagramCommand::read(line) {
            Ok(None) => return CommandAnswer::Unknown,
            Ok(Some(command)) => self.send(cx, &command),
            Err(reason) => return CommandAnswer::Malformed(reason),
        }
        CommandAnswer::Done
    }

    fn print_help(console: &mut ConsoleOutput) {
        console.print_text(HELP);
    }

    /// Prints what became of datagrams, by reason: what never happened is left out.
    fn print_status(&self, console: &mut ConsoleOutput) {
        let Some(datagrams) = &self.datagrams else { return };
        let mut line =
            alloc::format!("datagrams open={} senders={}", datagrams.is_open(), datagrams.senders().count());
        for (name, count) in datagrams.counters().iter().filter(|(_, count)| *count > 0) {
            // Writing to a string does not fail.
            let _ = write!(line, " {name}={count}");
        }
        console.print_line(format_args!("{line}"));
    }
}

impl DatagramPart {
    pub(super) const fn new() -> Self {
        Self { datagrams: None, in_use: None, is_outdated: true, wants_epoch: false, has_newer_list: false }
    }

    /// Closes the group's datagrams: nothing passes, and all secrets are erased.
    fn close(&mut self) {
        self.in_use = None;
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.close();
        }
    }

    /// Sends text to the group.
    fn send<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, command: &DatagramCommand<'_>) {
        let sign = command.sign;
        let priority = if sign { Priority::Command } else { Priority::Telemetry };
        let payload = Payload { bytes: command.text.into(), priority, sign };
        match self.datagrams.as_mut().map(|datagrams| datagrams.send(cx.now, payload)) {
            None => cx.print_line(format_args!("error not in step with a group")),
            Some(Err(refusal)) => cx.print_line(format_args!("error {refusal}")),
            Some(Ok(())) => cx.print_line(format_args!("ok")),
        }
    }

    fn poll_event(&mut self) -> Option<Event<S>> {
        self.datagrams.as_mut()?.poll_event()
    }

    /// §20.2: takes the machine's epoch into use once the start in it is durable, and none that it no longer
    /// holds.
    fn follow_epoch<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>) {
        let keys = cx.edge.and_then(|edge| edge.epoch_keys(cx.times()));
        if !cx.is_ready {
            self.is_outdated = true;
        }
        let newest: Option<InUse> = keys.as_ref().map(|keys| (keys.digest, keys.slot, keys.boot_no));
        let is_open = self.datagrams.as_ref().is_some_and(|datagrams| datagrams.is_open());
        if newest == self.in_use && is_open == self.in_use.is_some() {
            return;
        }
        match keys.filter(|_| cx.is_ready) {
            Some(keys) => self.use_epoch(cx, keys),
            None => self.close(),
        }
    }

    fn use_epoch<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, keys: EpochKeys<S>) {
        let mtu = cx.board.gateway.mtu;
        // Without randomness there is no salt, and so no key: once it is back.
        let (Some(settings), Some(rng)) = (&cx.board.settings, cx.board.random.generator(cx.now)) else {
            self.is_outdated = true;
            return self.close();
        };
        self.in_use = Some((keys.digest, keys.slot, keys.boot_no));
        let datagrams = self.datagrams.get_or_insert_with(|| {
            let board = Config::board();
            let mtu = mtu.min(board.mtu);
            let config = Config { mtu, framing: FRAMING, max_senders: SENDERS, ..board };
            Box::new(Datagrams::new(config, settings.deployment.clone()))
        });
        datagrams.set_epoch(cx.now, keys, rng);
    }

    fn forbid_refused_signers<R: CryptoRngCore>(&mut self, cx: &PartContext<'_, R>) {
        let Some(datagrams) = &mut self.datagrams else { return };
        let refused: Vec<Handle> = datagrams
            .signers()
            .filter(|(slot, drone)| !may_sign(cx, *slot, drone))
            .map(|(_, drone)| drone.handle())
            .collect();
        refused.iter().for_each(|handle| datagrams.forbid_signer(handle));
    }

    fn handle_event<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, event: Event<S>) {
        match event {
            Event::Received { slot, bytes, source } => {
                let text = Escaped(&bytes);
                match source {
                    PayloadOrigin::Member => cx.print_line(format_args!("datagram slot:{slot} {text}")),
                    PayloadOrigin::Signed { name, .. } => {
                        cx.print_line(format_args!("datagram {name} {text}"));
                    }
                }
            }
            Event::SignatureWanted(request) => {
                // Without a key or randomness none comes, and what waits for it is given up.
                let (Some(edge), Some(rng)) = (cx.edge, cx.board.random.generator(cx.now)) else { return };
                let signature = edge.sign_datagram(&request.statement, rng);
                if let (Some(datagrams), Some(signature)) = (&mut self.datagrams, signature) {
                    datagrams.provide_signature(cx.now, request.id, &signature);
                }
            }
            Event::SignerAnnounced { slot, drone } => {
                // Without datagrams there are no events of theirs.
                let Some(datagrams) = &mut self.datagrams else { return };
                let handle = drone.handle();
                if may_sign(cx, slot, &drone) {
                    datagrams.allow_signer(cx.now, slot, &handle);
                } else {
                    datagrams.forbid_signer(&handle);
                }
            }
            // §20.8: what comes is under a key that this board has not got.
            Event::EpochWanted => self.wants_epoch = true,
            // The leader hears the same, and is to make a new key.
            Event::TooManyForgeries { count } => cx.print_line(format_args!("forgeries {count}")),
            Event::Impostor { slot, suspicion } => {
                cx.print_line(format_args!("impostor slot:{slot} {suspicion:?}"));
            }
        }
    }
}

fn may_sign<R: CryptoRngCore>(cx: &PartContext<'_, R>, slot: Slot, drone: &DronePublicKey<S>) -> bool {
    cx.edge.is_some_and(|edge| edge.may_sign_datagrams(cx.times(), slot, drone).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[u8]) -> Result<DatagramCommand<'_>, &'static str> {
        DatagramCommand::read(&ConsoleLine::parse(line)?)?.ok_or("no such command")
    }

    #[test]
    fn datagrams_take_all_of_the_text() {
        assert_eq!(parse(b"datagram  two  words "), Ok(DatagramCommand { text: "two  words", sign: false }));
        assert_eq!(parse(b"datagram-signed go"), Ok(DatagramCommand { text: "go", sign: true }));
        for wrong in [&b"datagram"[..], b"datagram-signed ", b"datagrams x", b"datagram-unsigned x"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
