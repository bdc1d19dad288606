//! Reports events and counters on the console and to the gateway. Never a secret.

use alloc::vec::Vec;
use core::fmt::{self, Arguments, Display, Write};
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_crypto::Hex;
use quiver_group::MessageOrigin;
use quiver_group::edge::{EdgeEvent, RestoreError};
use quiver_link::{BoardReport, Counter, Destination as LinkDestination, ToGateway};
use quiver_machine::{Destination, Peer};
use rand_core::CryptoRngCore;

use super::BoardEdgeNode;
use crate::{Hooks, ResetCause, StorageError};

/// Bytes of text that may wait for the console.
const MAX_OUT: usize = 8 * 1024;

/// Shows bytes as text: printable ASCII but for the backslash as it is, all else as `\x` and two digits.
pub(super) struct Escaped<'a>(pub(super) &'a [u8]);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| match byte {
            b' '..=b'[' | b']'..=b'~' => f.write_char(char::from(*byte)),
            byte => write!(f, "\\x{}", Hex(&[*byte])),
        })
    }
}

impl<F: MultiwriteNorFlash, R: CryptoRngCore> BoardEdgeNode<F, R> {
    /// Prints one line on the console, unless nobody reads there.
    pub(super) fn print_line(&mut self, line: Arguments<'_>) {
        if self.out.len() < MAX_OUT {
            // Writing to a string does not fail.
            let _ = writeln!(self.out, "{line}");
        }
    }

    pub(super) fn started(&mut self) {
        match self.about.reset {
            ResetCause::Watchdog => self.report.add(Counter::WatchdogResets),
            ResetCause::Power => self.report.add(Counter::BrownOuts),
            _ => {}
        }
        let about = self.about;
        self.print_line(format_args!(
            "start board {} mcu {} reset {}",
            about.name,
            about.mcu,
            about.reset.as_str()
        ));
    }

    /// Prints an event of the machine.
    pub(super) fn print_event(&mut self, event: EdgeEvent) {
        match event {
            EdgeEvent::Enrolled { name } => self.print_line(format_args!("enrolled {name}")),
            EdgeEvent::KeyActivated { epoch, digest, slot } => {
                let (term, counter, digest) = (epoch.term, epoch.counter, Hex(&digest));
                self.print_line(format_args!("key {term}.{counter} slot {slot} digest {digest}"));
            }
            EdgeEvent::Message { channel, data, source } => {
                let text = Escaped(&data);
                match source {
                    MessageOrigin::Unauthenticated { slot } => {
                        self.print_line(format_args!("message {channel} slot:{slot} {text}"));
                    }
                    MessageOrigin::Signed { name, .. } => {
                        self.print_line(format_args!("message {channel} {name} {text}"));
                    }
                }
            }
            EdgeEvent::SendFailed(reason) => self.print_line(format_args!("unsent {reason}")),
            EdgeEvent::Left => self.print_line(format_args!("left")),
            EdgeEvent::Evicted => self.print_line(format_args!("evicted")),
            EdgeEvent::Refused(reason) => self.print_line(format_args!("refused {reason:?}")),
            // Without the feature there is no quorum to have trouble with, and its texts stay out of the
            // image.
            EdgeEvent::EnrolmentTrouble(trouble) if cfg!(feature = "quorum") => {
                self.print_line(format_args!("trouble {trouble:?}"));
            }
            EdgeEvent::RevocationList { number } => {
                self.group_datagrams.list_changed();
                self.print_line(format_args!("revocations {number}"));
            }
            EdgeEvent::MembershipDropped { error } => {
                self.print_line(format_args!("fault membership dropped: {error}"));
            }
            EdgeEvent::Equivocation { leader, epoch } => {
                let (term, counter) = (epoch.term, epoch.counter);
                self.print_line(format_args!("equivocation {leader} {term}.{counter}"));
            }
            EdgeEvent::KemDiffers { own, leader } => {
                self.print_line(format_args!("kem differs: {own} here, {leader} at the leader"));
            }
            EdgeEvent::Blamed { peer, offence } => {
                self.report.add(Counter::Offences);
                #[cfg(feature = "envelopes")]
                if matches!(
                    offence,
                    quiver_machine::Offence::Feature { feature: quiver_envelope::FEATURE, .. }
                ) {
                    self.report.add(Counter::BadEnvelopes);
                }
                self.print_line(format_args!("blamed {} {offence}", peer.0));
            }
            // Trouble of a quorum that this image does not know, age of lists, and what hosts alone report.
            _ => {}
        }
    }

    pub(super) fn report_storage_error(&mut self, error: &StorageError) {
        if matches!(error, StorageError::Full { .. }) {
            self.report.add(Counter::FlashFull);
        } else {
            self.report.add(Counter::FlashFailures);
        }
        self.print_line(format_args!("fault {error}"));
    }

    pub(super) fn report_restore_error(&mut self, error: &RestoreError) {
        self.report.add(Counter::StateDamaged);
        self.print_line(format_args!("fault {error}: wipe, then provision with a fresh token"));
    }

    pub(super) fn report_randomness(&mut self, healthy: bool) {
        self.print_line(match healthy {
            true => format_args!("randomness is back"),
            false => format_args!("fault randomness fails its test: no cryptography until it is back"),
        });
    }

    /// Sends a message of the machine.
    pub(super) fn transmit(&mut self, to: Destination, payload: Vec<u8>) {
        let to = match to {
            Destination::Group => Some(LinkDestination::Group),
            Destination::Peer(peer) => self.connections.number(peer).map(LinkDestination::Peer),
        };
        if let Some(to) = to {
            // A message that cannot be sent is lost, which the machine expects; the endpoint counts it.
            let _ = self.endpoint.send(&ToGateway::Transmit { to, payload });
        }
    }

    pub(super) fn block(&mut self, peer: Peer) {
        if let Some(peer) = self.connections.number(peer) {
            let _ = self.endpoint.send(&ToGateway::Block { peer });
        }
    }

    pub(super) fn send_report(&mut self, now: Duration, hooks: &impl Hooks) {
        let report = self.counted(now, hooks);
        let _ = self.endpoint.send(&ToGateway::Report(report));
    }

    /// Report of all counts.
    fn counted(&self, now: Duration, hooks: &impl Hooks) -> BoardReport {
        let (pipe, line, memory) = (self.endpoint.counters(), self.frame_errors, hooks.memory());
        let (stored, faults) = (self.storage.counters(), hooks.fault_counters());
        let mut report = self.report;
        let more =
            |report: &BoardReport, counter, count: u32| u64::from(report.value(counter)) + u64::from(count);
        let values = [
            (Counter::Uptime, now.as_secs()),
            (Counter::Starts, self.status().map_or(0, |status| status.boot_no.into())),
            (Counter::TooLong, u64::from(line.too_long) + pipe.too_long),
            (Counter::BadFrames, u64::from(line.bad_crc) + u64::from(line.garbled) + pipe.bad_checksum),
            (Counter::WrongVersion, line.wrong_version.into()),
            (Counter::Malformed, pipe.malformed),
            (Counter::Sent, pipe.sent),
            (Counter::Received, pipe.received),
            (Counter::Repeated, pipe.repeated),
            (Counter::GivenUp, pipe.given_up),
            (Counter::Dropped, pipe.dropped),
            (Counter::SessionsLost, pipe.sessions_lost),
            (Counter::StateDamaged, more(&report, Counter::StateDamaged, stored.damaged)),
            (Counter::FlashFailures, more(&report, Counter::FlashFailures, stored.failures)),
            (Counter::RandomFailures, self.random.faults().into()),
            (Counter::HeapPeak, memory.heap_peak.unwrap_or(0).into()),
            (Counter::StackPeak, memory.stack_peak.unwrap_or(0).into()),
            (Counter::SupplyWarnings, faults.supply_warnings.into()),
            (Counter::Overruns, faults.overruns.into()),
        ];
        values.into_iter().for_each(|(counter, value)| report.set(counter, value));
        report
    }

    /// The answer to `status`.
    pub(super) fn print_status(&mut self, now: Duration, hooks: &impl Hooks) {
        let about = self.about;
        self.print_line(format_args!("board {} mcu {} clock {} Hz", about.name, about.mcu, about.clock_hz));
        let state = self.state(now);
        self.print_line(format_args!("state {state:?} gateway {}", self.endpoint.has_session()));
        self.print_line(format_args!("time {} reset {}", self.clock.unix(now), about.reset.as_str()));
        if let Some(settings) = &self.settings {
            let (deployment, fingerprint) =
                (settings.deployment.name().clone(), settings.deployment.fingerprint());
            let radio = settings.radio;
            self.print_line(format_args!("deployment {deployment} fingerprint {}", Hex(&fingerprint)));
            if let Some(radio) = radio {
                self.print_line(format_args!("radio {radio}"));
            }
        }
        if let Some(status) = self.status() {
            let text =
                |name: Option<quiver_ainq::Name>| name.map_or("-".into(), |name| alloc::format!("{name}"));
            let (name, group) = (text(status.name), text(status.group));
            self.print_line(format_args!(
                "name {name} group {group} synced {} start {}",
                status.synced, status.boot_no
            ));
            if let Some(at) = status.answered {
                self.print_line(format_args!("leader answered {} s ago", now.saturating_sub(at).as_secs()));
            }
            if let (Some(epoch), Some(slot), Some(digest)) = (status.epoch, status.slot, status.digest) {
                let (term, counter, digest) = (epoch.term, epoch.counter, Hex(&digest));
                self.print_line(format_args!("key {term}.{counter} slot {slot} digest {digest}"));
            }
        }
        self.print_datagrams();
        self.print_broadcasts();
        let stored = self.storage.counters();
        self.print_line(format_args!("flash stored {} erased {}", stored.stored, stored.erased));
        let memory = hooks.memory();
        let figures = [
            ("heap", memory.heap),
            ("heap-peak", memory.heap_peak),
            ("heap-size", memory.heap_size),
            ("stack-peak", memory.stack_peak),
            ("stack-size", memory.stack_size),
        ];
        for (name, bytes) in figures {
            if let Some(bytes) = bytes {
                self.print_line(format_args!("memory {name} {bytes}"));
            }
        }
        let report = self.counted(now, hooks);
        self.print_line(format_args!("counters {report}"));
        self.print_line(format_args!("end"));
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::Escaped;

    #[test]
    fn text_is_shown_as_it_is_and_nothing_else_reaches_a_terminal() {
        assert_eq!(Escaped(b"it's \"five\" ~ [ok]").to_string(), "it's \"five\" ~ [ok]");
        assert_eq!(Escaped(b"a\\b\n\x1b[0m\xff\x7f").to_string(), "a\\x5cb\\x0a\\x1b[0m\\xff\\x7f");
        assert_eq!(Escaped(&[]).to_string(), "");
    }
}
