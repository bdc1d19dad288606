//! A soak test of the image as it is flashed: hour after hour it follows every key and exchanges every
//! message, on a line that changes, loses and adds bytes and is cut for minutes. In its first hour it is
//! reset in every way there is, and starts again with its state; from then on neither its heap nor its stack
//! grow, its watchdog is fed, its clock is right, and its flash wears evenly.
//!
//! The chip and everybody it meets (a KGC, a leader, a gateway, other drones: the machines of the services,
//! without their network) are on one virtual time, and idle time is skipped. CI takes the short form,
//! `QUIVER_SOAK_HOURS` says otherwise; the long form, which is ignored by default, is a day.

#[path = "soak/virtual_board.rs"]
pub(crate) mod virtual_board;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use quiver_emulation::wire::{End, LinkFaults};
use quiver_group::{LeaderCommand, LeaderEvent};
use quiver_test_network::name;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use self::virtual_board::VirtualBoard;
use crate::member_board::NAME;

const MINUTE: Duration = Duration::from_secs(60);
/// One byte in so many is changed, another lost, and garbage comes before a third.
const BAD: LinkFaults = LinkFaults { cut: false, garbage: 20_000, errors: 20_000, losses: 20_000 };
/// Other drones in the group.
const COMPANIONS: usize = 3;
/// Minute of the first hour and cause of each reset.
const RESETS: [(u64, &str); 4] = [(32, "pin"), (38, "software"), (44, "watchdog"), (50, "power")];
/// Pages of flash that hold the state: two for keys, the others a ring.
const STATE: std::ops::Range<usize> = 0xF6..0x100;
const RING: std::ops::Range<usize> = 0xF8..0x100;

#[test]
fn some_hours_of_the_image_pass_without_growth_uneven_wear_or_a_missed_key() {
    let hours = std::env::var("QUIVER_SOAK_HOURS").ok().and_then(|hours| hours.parse().ok());
    soak(hours.unwrap_or(2));
}

#[test]
#[ignore = "takes minutes: the same for a day"]
fn a_day_of_the_image_passes_without_growth_uneven_wear_or_a_missed_key() {
    soak(24);
}

#[test]
fn one_seed_gives_one_course() {
    let run = || {
        let mut run = SoakRun::new(2);
        run.board.join(0);
        run.board.faults.current = BAD;
        run.exchange_messages();
        run.garbage(run.board.now);
        (run.board.now, run.board.said, run.board.network.sent)
    };
    let first = run();
    assert!(first.1.len() > 5 && first == run());
}

#[expect(clippy::print_stdout, reason = "a measurement prints what it measured")]
fn soak(hours: u64) {
    let mut run = SoakRun::new(1);
    run.board.join(COMPANIONS);
    run.board.faults.current = BAD;
    println!("{}", run.hour(0));
    // The first whole hour since the last reset, with which the others are compared.
    let first = run.hour(1);
    println!("{first}");
    for hour in 2..hours {
        let figures = run.hour(hour);
        println!("{figures}");
        figures.compare(&first);
    }
    run.start_again("power");
    run.follow();
    run.exchange_messages();
}

/// State of a soak test.
struct SoakRun {
    board: VirtualBoard,
    chance: ChaCha8Rng,
    /// Messages sent, to the board and by it.
    orders: usize,
    reports: usize,
    /// Time at which the board started last.
    started: Duration,
    resets: usize,
    /// Keys on the KGC's list of revoked ones.
    revoked: u64,
    /// The longest that it took to get the leader's key, from when it was looked for.
    behind: Duration,
}

impl SoakRun {
    fn new(seed: u64) -> Self {
        let chance = ChaCha8Rng::seed_from_u64(seed);
        let (started, behind) = (Duration::ZERO, Duration::ZERO);
        let board = VirtualBoard::new(seed);
        Self { board, chance, orders: 0, reports: 0, started, resets: 0, revoked: 0, behind }
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.chance.next_u64() % (most - least + 1)
    }

    /// Runs an hour: seven or eight keys; messages; an outage; garbage; a restart of gateway or leader, or
    /// revocations; in the first hour, resets.
    fn hour(&mut self, hour: u64) -> Figures {
        let start = self.board.now;
        let cut = self.between(8, 15);
        let mended = cut + self.between(1, 15);
        for minute in 0..60 {
            let at = start + MINUTE * minute as u32;
            if minute == cut {
                self.board.faults.current = LinkFaults { cut: true, ..BAD };
            }
            if minute == mended {
                self.board.faults.current = BAD;
            }
            if !(cut..mended).contains(&minute) {
                self.follow();
                if minute % 10 == 5 {
                    self.exchange_messages();
                }
            }
            if minute == 35 {
                self.trouble_on_the_ground(hour);
            }
            for (_, cause) in RESETS.iter().filter(|(when, _)| hour == 0 && minute == *when) {
                self.start_again(cause);
            }
            self.garbage(at);
            self.board.run_to(at + MINUTE);
        }
        self.follow();
        self.figures(hour + 1)
    }

    /// The board is connected and has the leader's key, or soon is and gets it.
    fn follow(&mut self) {
        let since = self.board.now;
        self.board.until("agreement", |board| board.in_session() && board.agree());
        self.behind = self.behind.max(self.board.now - since);
    }

    /// Sends a message to the board and one from it; each arrives once.
    fn exchange_messages(&mut self) {
        self.orders += 1;
        self.reports += 1;
        let (order, report) = (format!("order {}", self.orders), format!("report {}", self.reports));
        self.board.network.lead(LeaderCommand::Send { channel: name("orders"), data: order.into() });
        self.board.type_line(&format!("send {report}"));
        let (orders, reports) = (self.orders, self.reports);
        self.board
            .until("both messages", |board| heard(board) >= reports && board.count("message ") >= orders);
        let order = format!("message orders leader order {orders}");
        assert_eq!(self.board.heard_line("message "), Some(&*order));
        assert_eq!(
            (heard(&self.board), self.board.count("message ")),
            (reports, orders),
            "each arrives once"
        );
    }

    fn start_again(&mut self, cause: &str) {
        let starts = self.board.count("start board ");
        match cause {
            "pin" => drop(self.board.chip.control.command("reset")),
            "software" => self.board.type_line("reset"),
            // The program hangs.
            "watchdog" => drop(self.board.chip.control.command("freeze")),
            _ => drop(self.board.chip.control.command("power-cycle")),
        }
        self.board.until("another start", |board| board.count("start board ") > starts);
        self.started = self.board.now;
        self.resets += 1;
        let line = self.board.heard_line("start board ").expect("a start");
        assert!(line.ends_with(&format!("reset {cause}")), "{cause}: {line}");
        let keys = self.board.count("key ");
        self.board.until("its key", |board| board.count("key ") > keys && board.agree());
        assert_eq!(self.board.network.keys_issued(), 2 + COMPANIONS, "nobody enrolled anew");
    }

    /// Another leader's term, another gateway, or a longer list of revoked keys.
    fn trouble_on_the_ground(&mut self, hour: u64) {
        match hour % 3 {
            0 => self.board.network.restart_gateway(),
            1 => self.board.network.restart_leader(),
            _ => {
                self.board.network.revoke(hour as u8);
                self.revoked = hour;
            }
        }
    }

    /// Injects garbage at any moment of the minute after `start`, once in four minutes, for either end.
    fn garbage(&mut self, start: Duration) {
        if self.between(0, 3) > 0 {
            return;
        }
        let at = start + Duration::from_millis(self.between(0, 50_000));
        self.board.run_to(at);
        let mut garbage = vec![0; self.between(1, 3_000) as usize];
        self.chance.fill_bytes(&mut garbage);
        let towards = if self.between(0, 1) == 0 { End::Board } else { End::Gateway };
        self.board.inject(towards, &garbage);
    }

    fn figures(&mut self, hour: u64) -> Figures {
        let status = self.board.status();
        let alive = (self.board.now - self.started).as_secs();
        let uptime = status.number("uptime_s=");
        assert!(
            alive.abs_diff(uptime) <= 2,
            "its clock says {uptime} s since the start, and it were {alive}"
        );
        assert_eq!(status.number(" start "), 1 + self.resets as u64, "each start was counted, and kept");
        let faults = self.board.count("fault") + self.board.count("crash") + self.board.count("randomness");
        assert_eq!(faults, 0, "{:?}", self.board.said);
        let control = &mut self.board.chip.control;
        let wear = control.command("wear");
        let wear = wear.split(' ').filter_map(|page| page.split_once(':'));
        let wear = wear.map(|(page, count)| (page.parse().expect("a page"), count.parse().expect("a count")));
        Figures {
            hour,
            fed: control.status("watchdog-feeds"),
            unfed: control.status("watchdog-longest"),
            overruns: control.status("overruns"),
            behind: self.behind,
            wear: wear.collect(),
            epochs: self.board.network.leader_events().iter().filter(|event| is_epoch(event)).count(),
            keys: self.board.keys().len(),
            heard: self.board.count("message "),
            said: heard(&self.board),
            starts: 1 + self.resets,
            revoked: self.revoked,
            heap: status.number("memory heap "),
            heap_peak: status.number("memory heap-peak "),
            stack_peak: status.number("memory stack-peak "),
        }
    }
}

fn is_epoch(event: &LeaderEvent) -> bool {
    matches!(event, LeaderEvent::EpochActivated { .. })
}

/// Messages of the board that the leader has received.
fn heard(board: &VirtualBoard) -> usize {
    let ours = |event: &&LeaderEvent| match event {
        LeaderEvent::Message { data, source: quiver_group::MessageOrigin::Signed { name, .. }, .. } => {
            name.as_str() == NAME && data.starts_with(b"report ")
        }
        _ => false,
    };
    board.network.leader_events().iter().filter(ours).count()
}

/// State of a board after an hour.
struct Figures {
    hour: u64,
    /// Epochs of the leader and those whose key the board held, messages received and sent, since the
    /// beginning. During an outage the board misses some, and gets the last one's key.
    epochs: usize,
    keys: usize,
    heard: usize,
    said: usize,
    starts: usize,
    revoked: u64,
    /// Bytes of memory; the peaks are since the last start.
    heap: u64,
    heap_peak: u64,
    stack_peak: u64,
    /// Number of watchdog feeds since the beginning, and the longest interval between two, in ms.
    fed: u64,
    unfed: u64,
    /// Bytes that came over a line and were lost in the chip.
    overruns: u64,
    /// The longest that the board took to get a key that it had missed.
    behind: Duration,
    /// Erasures of each page since the beginning.
    wear: BTreeMap<usize, u32>,
}

impl Figures {
    /// Asserts that nothing grows but by the list of revoked keys, which has 32 bytes for each, exists twice
    /// and may have room for as many again, and by what the message that brings it takes for a moment. The
    /// stack's deepest moment may come late by chance.
    fn compare(&self, first: &Self) {
        for (what, now, then, growth) in [
            ("heap", self.heap, first.heap, 512 + 128 * self.revoked),
            ("most heap", self.heap_peak, first.heap_peak, 1_024 + 192 * self.revoked),
            ("most stack", self.stack_peak, first.stack_peak, 1_024),
        ] {
            assert!(now <= then + growth, "the {what} grew from {then} to {now} bytes");
        }
        assert_eq!(self.overruns, 0, "bytes were lost because nobody took them");
        assert!(self.unfed < 4_000, "the watchdog, which waits 8 s, was not fed for {} ms", self.unfed);
        assert!(self.wear.keys().all(|page| STATE.contains(page)), "{:?}", self.wear);
        let ring = RING.map(|page| self.wear.get(&page).copied().unwrap_or(0));
        let (least, most) = (ring.clone().min(), ring.max());
        assert!(most <= least.map(|least| least + 2), "{:?}", self.wear);
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hour, epochs, keys, heard, said, starts, behind, overruns, .. } = self;
        let Self { heap, heap_peak, stack_peak, fed, unfed, wear, .. } = self;
        write!(
            f,
            "{hour} h: {keys} keys of {epochs} epochs, {heard} messages heard, {said} said, {starts} starts, "
        )?;
        write!(f, "at most {behind:.1?} behind, {overruns} overruns; ")?;
        write!(f, "heap {heap}, at most {heap_peak}, stack at most {stack_peak} bytes; ")?;
        write!(f, "watchdog fed {fed} times, {unfed} ms apart at most; erasures by page {wear:?}")
    }
}
