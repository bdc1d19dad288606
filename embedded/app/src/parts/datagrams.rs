//! The group's datagrams (docs/protocol.md, section 20) on the board's medium, beside what it exchanges with
//! its gateway: small, unreliable, to everybody who listens.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Write;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_ainq::{DronePublicKey, EpochKeys, Handle, Slot};
use quiver_crypto::Digest;
use quiver_datagram::{Config, Datagrams, Event, Payload, PayloadOrigin, Priority};
use quiver_machine::Now;
use rand_core::CryptoRngCore;

use super::reports::Escaped;
use super::{BoardEdgeNode, S};

/// Senders whose windows the board keeps in an epoch, 600 bytes each, twice that while the epoch before is
/// still received; of eight times as many it remembers the last numbers.
const SENDERS: usize = 16;
/// Bytes that a frame of radio adds; a line's adds fewer.
const FRAMING: usize = 17;

/// Names an epoch and a start of the board in it.
type InUse = (Digest, Slot, u32);

/// The board's datagrams.
pub(super) struct GroupDatagrams {
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

impl GroupDatagrams {
    pub(super) const fn none() -> Self {
        Self { datagrams: None, in_use: None, is_outdated: true, wants_epoch: false, has_newer_list: false }
    }

    /// The machine took an input, or there is another machine, or none.
    pub(super) const fn machine_changed(&mut self) {
        self.is_outdated = true;
    }

    /// Closes the group's datagrams: nothing passes, and all secrets are erased.
    fn close(&mut self) {
        self.in_use = None;
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.close();
        }
    }

    pub(super) const fn list_changed(&mut self) {
        self.has_newer_list = true;
    }

    /// §20.8: whether the leader is to be asked for a newer epoch. True once.
    pub(super) const fn take_question(&mut self) -> bool {
        core::mem::replace(&mut self.wants_epoch, false)
    }

    pub(super) fn due(&self) -> Option<Duration> {
        if self.wants_epoch {
            return Some(Duration::ZERO);
        }
        self.datagrams.as_ref()?.timeout()
    }
}

impl<F: MultiwriteNorFlash, R: CryptoRngCore> BoardEdgeNode<F, R> {
    /// Takes a datagram from the medium if it is the group's.
    pub(super) fn take_group_datagram(&mut self, now: Duration, datagram: &[u8]) -> bool {
        let is_ours = quiver_link::is_of_group(datagram);
        if let Some(datagrams) = self.group_datagrams.datagrams.as_mut().filter(|_| is_ours) {
            datagrams.handle_datagram(now, datagram);
        }
        is_ours
    }

    /// The next datagram for everybody on the medium.
    pub(crate) fn poll_group_datagram(&mut self, now: Duration) -> Option<Vec<u8>> {
        self.group_datagrams.datagrams.as_mut()?.poll_datagram(now)
    }

    /// Sends text to the group.
    pub(super) fn send_datagram(&mut self, now: Duration, text: &str, sign: bool) {
        let priority = if sign { Priority::Command } else { Priority::Telemetry };
        let payload = Payload { bytes: text.into(), priority, sign };
        match self.group_datagrams.datagrams.as_mut().map(|datagrams| datagrams.send(now, payload)) {
            None => self.print_line(format_args!("error not in step with a group")),
            Some(Err(refusal)) => self.print_line(format_args!("error {refusal}")),
            Some(Ok(())) => self.print_line(format_args!("ok")),
        }
    }

    /// Follows the machine's keys, does what is due, and handles what was received.
    #[inline(never)]
    pub(super) fn step_group_datagrams(&mut self, now: Duration) {
        if core::mem::take(&mut self.group_datagrams.is_outdated) {
            self.follow_epoch(now);
        }
        if core::mem::take(&mut self.group_datagrams.has_newer_list) {
            self.forbid_refused_signers(now);
        }
        if let Some(datagrams) = &mut self.group_datagrams.datagrams {
            datagrams.handle_timeout(now);
        }
        while let Some(event) = self.poll_datagram_event() {
            self.handle_datagram_event(now, event);
        }
    }

    fn poll_datagram_event(&mut self) -> Option<Event<S>> {
        self.group_datagrams.datagrams.as_mut()?.poll_event()
    }

    /// §20.2: takes the machine's epoch into use once the start in it is durable, and none that it no longer
    /// holds.
    fn follow_epoch(&mut self, now: Duration) {
        let keys = self.machine.as_deref().and_then(|machine| machine.epoch_keys(self.times(now)));
        let is_durable = self.unsaved.is_none() && self.held.is_none();
        if !is_durable {
            self.group_datagrams.machine_changed();
        }
        let newest: Option<InUse> = keys.as_ref().map(|keys| (keys.digest, keys.slot, keys.boot_no));
        let known = self.group_datagrams.in_use;
        let is_open = self.group_datagrams.datagrams.as_ref().is_some_and(|datagrams| datagrams.is_open());
        if newest == known && is_open == known.is_some() {
            return;
        }
        match keys.filter(|_| is_durable) {
            Some(keys) => self.use_epoch(now, keys),
            None => self.group_datagrams.close(),
        }
    }

    fn use_epoch(&mut self, now: Duration, keys: EpochKeys<S>) {
        let (mtu, group) = (self.mtu, &mut self.group_datagrams);
        // Without randomness there is no salt, and so no key: once it is back.
        let (Some(settings), Some(rng)) = (&self.settings, self.random.generator(now)) else {
            group.machine_changed();
            return group.close();
        };
        group.in_use = Some((keys.digest, keys.slot, keys.boot_no));
        let datagrams = group.datagrams.get_or_insert_with(|| {
            let board = Config::board();
            let mtu = mtu.min(board.mtu);
            let config = Config { mtu, framing: FRAMING, max_senders: SENDERS, ..board };
            Box::new(Datagrams::new(config, settings.deployment.clone()))
        });
        datagrams.set_epoch(now, keys, rng);
    }

    fn times(&self, now: Duration) -> Now {
        Now { monotonic: now, unix: self.clock.unix(now) }
    }

    fn may_sign(&self, now: Duration, slot: Slot, drone: &DronePublicKey<S>) -> bool {
        let machine = self.machine.as_deref();
        machine.is_some_and(|machine| machine.may_sign_datagrams(self.times(now), slot, drone).is_ok())
    }

    fn forbid_refused_signers(&mut self, now: Duration) {
        let signers = self.group_datagrams.datagrams.iter().flat_map(|datagrams| datagrams.signers());
        let refused: Vec<Handle> = signers
            .filter(|(slot, drone)| !self.may_sign(now, *slot, drone))
            .map(|(_, drone)| drone.handle())
            .collect();
        if let Some(datagrams) = &mut self.group_datagrams.datagrams {
            refused.iter().for_each(|handle| datagrams.forbid_signer(handle));
        }
    }

    fn handle_datagram_event(&mut self, now: Duration, event: Event<S>) {
        match event {
            Event::Received { slot, bytes, source } => {
                let text = Escaped(&bytes);
                match source {
                    PayloadOrigin::Member => self.print_line(format_args!("datagram slot:{slot} {text}")),
                    PayloadOrigin::Signed { name, .. } => {
                        self.print_line(format_args!("datagram {name} {text}"))
                    }
                }
            }
            Event::SignatureWanted(request) => {
                // Without a key or randomness none comes, and what waits for it is given up.
                let (Some(machine), Some(rng)) = (&self.machine, self.random.generator(now)) else { return };
                let signature = machine.sign_datagram(&request.statement, rng);
                if let (Some(datagrams), Some(signature)) = (&mut self.group_datagrams.datagrams, signature) {
                    datagrams.provide_signature(now, request.id, &signature);
                }
            }
            Event::SignerAnnounced { slot, drone } => {
                let (may, handle) = (self.may_sign(now, slot, &drone), drone.handle());
                let Some(datagrams) = &mut self.group_datagrams.datagrams else { return };
                if may {
                    datagrams.allow_signer(now, slot, &handle);
                } else {
                    datagrams.forbid_signer(&handle);
                }
            }
            // §20.8: what comes is under a key that this board has not got.
            Event::EpochWanted => self.group_datagrams.wants_epoch = true,
            // The leader hears the same, and is to make a new key.
            Event::TooManyForgeries { count } => self.print_line(format_args!("forgeries {count}")),
            Event::Impostor { slot, suspicion } => {
                self.print_line(format_args!("impostor slot:{slot} {suspicion:?}"));
            }
        }
    }

    /// Prints what became of datagrams, by reason: what never happened is left out.
    pub(super) fn print_datagrams(&mut self) {
        let Some(datagrams) = &self.group_datagrams.datagrams else { return };
        let mut line =
            alloc::format!("datagrams open={} senders={}", datagrams.is_open(), datagrams.senders().count());
        for (name, count) in datagrams.counters().iter().filter(|(_, count)| *count > 0) {
            // Writing to a string does not fail.
            let _ = write!(line, " {name}={count}");
        }
        self.print_line(format_args!("{line}"));
    }
}
