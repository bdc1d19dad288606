//! State of the node that its parts use as well: console, gateway, clock, randomness, settings, counters.

use core::time::Duration;

use quiver_crypto::Hex;
use quiver_group::MessageOrigin;
use quiver_group::edge::{EdgeEvent, Provisioning, RestoreError};
use quiver_link::{BoardReport, Counter};
use quiver_machine::Now;
use rand_core::CryptoRngCore;

use super::S;
use super::gateway::GatewayLink;
use crate::clock::GatewayClock;
use crate::console::{ConsoleOutput, Escaped};
use crate::randomness::Randomness;
use crate::{About, ResetCause, StorageError};

/// See the [module](self).
pub(crate) struct BoardState<R> {
    pub(crate) about: About,
    pub(crate) console: ConsoleOutput,
    pub(crate) gateway: GatewayLink,
    pub(crate) clock: GatewayClock,
    pub(crate) random: Randomness<R>,
    /// True if the console knows that randomness fails.
    reported_faulty: bool,
    /// Settings, once the board is provisioned.
    pub(crate) settings: Option<Provisioning<S>>,
    /// Counters that nothing else keeps.
    pub(crate) report: BoardReport,
}

impl<R: CryptoRngCore> BoardState<R> {
    /// Makes the state of a board at its start, and reports the start.
    pub(super) fn new(about: About, mut random: Randomness<R>, mtu: usize) -> Self {
        let gateway = GatewayLink::new(mtu, random.number());
        let mut board = Self {
            about,
            console: ConsoleOutput::default(),
            gateway,
            clock: GatewayClock::default(),
            random,
            reported_faulty: false,
            settings: None,
            report: BoardReport::default(),
        };
        board.report_start();
        board
    }

    fn report_start(&mut self) {
        match self.about.reset {
            ResetCause::Watchdog => self.report.add(Counter::WatchdogResets),
            ResetCause::Power => self.report.add(Counter::BrownOuts),
            _ => {}
        }
        let About { name, mcu, reset, .. } = self.about;
        let reset = reset.as_str();
        self.console.print_line(format_args!("start board {name} mcu {mcu} reset {reset}"));
    }

    /// The machine's clocks.
    pub(crate) fn times(&self, now: Duration) -> Now {
        Now { monotonic: now, unix: self.clock.unix(now) }
    }

    /// Returns true if there is randomness. Reports when that changes.
    pub(super) fn check_randomness(&mut self, now: Duration) -> bool {
        let healthy = self.random.generator(now).is_some();
        if self.reported_faulty == healthy {
            self.reported_faulty = !healthy;
            self.console.print_line(match healthy {
                true => format_args!("randomness is back"),
                false => format_args!("fault randomness fails its test: no cryptography until it is back"),
            });
        }
        healthy
    }

    /// Reports that the flash could not be read or written.
    pub(super) fn report_storage_error(&mut self, error: &StorageError) {
        if matches!(error, StorageError::Full { .. }) {
            self.report.add(Counter::FlashFull);
        } else {
            self.report.add(Counter::FlashFailures);
        }
        self.console.print_line(format_args!("fault {error}"));
    }

    /// Reports that the stored state makes no machine.
    pub(super) fn report_restore_error(&mut self, error: &RestoreError) {
        self.report.add(Counter::StateDamaged);
        self.console.print_line(format_args!("fault {error}: wipe, then provision with a fresh token"));
    }

    /// Reports an event of the edge.
    pub(super) fn report_event(&mut self, event: EdgeEvent) {
        match event {
            EdgeEvent::Enrolled { name } => self.console.print_line(format_args!("enrolled {name}")),
            EdgeEvent::KeyActivated { epoch, digest, slot } => {
                let (term, counter, digest) = (epoch.term, epoch.counter, Hex(&digest));
                self.console.print_line(format_args!("key {term}.{counter} slot {slot} digest {digest}"));
            }
            EdgeEvent::Message { channel, data, source } => {
                let text = Escaped(&data);
                match source {
                    MessageOrigin::Unauthenticated { slot } => {
                        self.console.print_line(format_args!("message {channel} slot:{slot} {text}"));
                    }
                    MessageOrigin::Signed { name, .. } => {
                        self.console.print_line(format_args!("message {channel} {name} {text}"));
                    }
                }
            }
            EdgeEvent::SendFailed(reason) => self.console.print_line(format_args!("unsent {reason}")),
            EdgeEvent::Left => self.console.print_line(format_args!("left")),
            EdgeEvent::Evicted => self.console.print_line(format_args!("evicted")),
            EdgeEvent::Refused(reason) => self.console.print_line(format_args!("refused {reason:?}")),
            EdgeEvent::RevocationList { number } => {
                self.console.print_line(format_args!("revocations {number}"));
            }
            EdgeEvent::MembershipDropped { error } => {
                self.console.print_line(format_args!("fault membership dropped: {error}"));
            }
            EdgeEvent::Equivocation { leader, epoch } => {
                let (term, counter) = (epoch.term, epoch.counter);
                self.console.print_line(format_args!("equivocation {leader} {term}.{counter}"));
            }
            EdgeEvent::KemDiffers { own, leader } => {
                self.console.print_line(format_args!("kem differs: {own} here, {leader} at the leader"));
            }
            EdgeEvent::Blamed { peer, offence } => {
                self.report.add(Counter::Offences);
                self.console.print_line(format_args!("blamed {} {offence}", peer.0));
            }
            // Trouble of a quorum, which a part reports, age of lists, and what hosts alone report.
            _ => {}
        }
    }
}
