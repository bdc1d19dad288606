//! Counters for the gateway, and the answer to `status`. Never a secret.

use core::fmt::Arguments;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_crypto::Hex;
use quiver_link::{BoardReport, Counter, ToGateway};
use rand_core::CryptoRngCore;

use super::BoardEdgeNode;
use crate::Hooks;
use crate::parts::BoardPart;

impl<F: MultiwriteNorFlash, R: CryptoRngCore, P: BoardPart> BoardEdgeNode<F, R, P> {
    /// Prints one line on the console. Called so often that a call with the node alone makes the image smaller.
    #[inline(never)]
    pub(super) fn print_line(&mut self, line: Arguments<'_>) {
        self.board.console.print_line(line);
    }

    pub(super) fn send_report(&mut self, now: Duration, hooks: &impl Hooks) {
        let report = self.counted(now, hooks);
        let _ = self.board.gateway.endpoint.send(&ToGateway::Report(report));
    }

    /// Report of all counts.
    fn counted(&self, now: Duration, hooks: &impl Hooks) -> BoardReport {
        let (pipe, line, memory) =
            (self.board.gateway.endpoint.counters(), self.frame_errors, hooks.memory());
        let (stored, faults) = (self.store.counters(), hooks.fault_counters());
        let mut report = self.board.report;
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
            (Counter::RandomFailures, self.board.random.faults().into()),
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
        let about = self.board.about;
        self.print_line(format_args!("board {} mcu {} clock {} Hz", about.name, about.mcu, about.clock_hz));
        let state = self.state(now);
        self.print_line(format_args!(
            "state {state:?} gateway {}",
            self.board.gateway.endpoint.has_session()
        ));
        self.print_line(format_args!("time {} reset {}", self.board.clock.unix(now), about.reset.as_str()));
        if let Some(settings) = &self.board.settings {
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
        self.parts.print_status(&mut self.board.console);
        let stored = self.store.counters();
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
