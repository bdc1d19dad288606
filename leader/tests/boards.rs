//! `leader serve --serial`: boards on lines enrol, join, follow and speak through a gateway that is trusted
//! with nothing.

#[path = "boards/bench.rs"]
mod bench;
#[path = "boards/board.rs"]
mod board;
#[path = "boards/deeds.rs"]
mod deeds;
#[path = "boards/flood.rs"]
mod flood;
#[path = "boards/hostile.rs"]
mod hostile;
#[path = "boards/noise.rs"]
mod noise;
#[path = "boards/partners.rs"]
mod partners;
#[path = "boards/stream.rs"]
mod stream;
#[path = "boards/tty.rs"]
mod tty;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quiver_link::encode_line;
use quiver_service_testing::{eventually, now};

use self::bench::Bench;
use self::board::{Board, Parts, TimeLimit};
use self::hostile::{Conduct, Hostile};
use self::noise::Cable;
use self::tty::Tty;

/// A board with a token of its own.
fn board(bench: &Bench, name: &str) -> Board {
    board_with_patience(bench, name, TimeLimit::LONG)
}

fn board_with_patience(bench: &Bench, name: &str, patience: TimeLimit) -> Board {
    let floor = quiver_service::clock::unix_now() - 60;
    let token = bench.token(name).encode().to_vec();
    Board::new(Parts {
        deployment: bench.deployment(),
        kem: bench.kem(),
        token,
        group: "alpha",
        floor,
        patience,
    })
}

/// Makes an epoch and waits until the boards hold it.
fn follow(bench: &Bench, boards: &[&Board]) {
    let (before, _) = bench.epoch(boards.len() as u64);
    bench.rekey();
    let (after, digest) = bench.epoch(boards.len() as u64);
    assert!(after > before, "{after:?} after {before:?}");
    for board in boards {
        let held = board.synced(after);
        let epoch = held.epoch.expect("an epoch");
        if (epoch.term, epoch.counter) == after {
            let held = hex::encode(held.digest.expect("a digest"));
            assert!(held.starts_with(&digest), "{held} is not {digest}");
        }
    }
}

#[test]
fn boards_enrol_join_follow_and_speak_through_the_gateway() {
    let started = quiver_service::clock::unix_now();
    let bench = Bench::new();
    let boards = [board(&bench, "board-1"), board(&bench, "board-2")];
    let [one, two] = &boards;
    let leader = bench.leader(&[&one.line, &two.line]);
    let (epoch, _) = bench.epoch(2);
    boards.iter().for_each(|board| drop(board.synced(epoch)));
    assert_eq!(one.synced(epoch).name.expect("enrolled").to_string(), "board-1");
    for _ in 0..3 {
        follow(&bench, &[one, two]);
    }
    bench.ok("leader", &["send", "--channel", "orders", "return to base"]);
    boards.iter().for_each(|board| board.hears("return to base"));
    one.say("on my way");
    two.hears("on my way");
    leader.line("on my way");
    assert_eq!((one.seen().offences, two.seen().offences), (0, 0));
    assert!(one.seen().time >= started, "told what time it is");
    leader.logged_times("board connected", 2);
    assert_eq!(leader.terminate().code(), Some(0));
}

#[test]
fn board_goes_on_after_resets_of_either_side_and_a_line_that_was_dropped() {
    let bench = Bench::new();
    let mut board = board(&bench, "board-1");
    let mut leader = bench.leader(&[&board.line]);
    board.synced(bench.epoch(1).0);

    board.power_off();
    bench.ok("leader", &["rekey"]);
    board.power_on();
    let (epoch, _) = bench.epoch(1);
    board.synced(epoch);
    assert!(board.seen().status.as_ref().expect("status").boot_no > 1, "it was another start");
    follow(&bench, &[&board]);

    let sessions = board.seen().sessions;
    board.hang_up();
    follow(&bench, &[&board]);
    assert_eq!(board.seen().sessions, sessions, "the session outlives the line");

    leader.kill();
    leader = bench.leader(&[&board.line]);
    let (after, _) = bench.epoch(1);
    assert!(after > epoch, "the restarted leader opened a term");
    board.synced(after);
    board.say("still here");
    leader.line("still here");
    let drones = bench.ok("kgc", &["drone", "list", "--json"]);
    assert_eq!(drones.matches("\"name\"").count(), 2, "nobody enrolled anew: {drones}");
}

#[test]
fn boards_on_a_shared_medium_follow_a_tree_by_what_goes_out_for_all() {
    let bench = Bench::new();
    let boards = [board(&bench, "board-1"), board(&bench, "board-2"), board(&bench, "board-3")];
    let [one, two, three] = &boards;
    let (lines, options) = ([&*one.line, &two.line, &three.line], ["--strategy", "tree", "--shared-medium"]);
    let mut leader = bench.leader_with(&lines, &options);
    follow(&bench, &[one, two, three]);
    let (before, _) = bench.epoch(3);
    leader.kill();
    leader = bench.leader_with(&lines, &options);
    let (after, _) = bench.epoch(3);
    assert!(after.0 > before.0, "the restarted leader opened a term");
    follow(&bench, &[one, two, three]);
    bench.ok("leader", &["send", "--channel", "orders", "heard once"]);
    boards.iter().for_each(|board| board.hears("heard once"));
    assert!(boards.iter().all(|board| board.seen().offences == 0));
    assert_eq!(leader.terminate().code(), Some(0));
}

#[test]
fn board_on_a_serial_device_works_and_outlives_its_being_unplugged() {
    let bench = Bench::new();
    let board = board(&bench, "board-1");
    let mut device = Tty::to(&board.line);
    let path = device.path.to_str().expect("utf-8").to_string();
    let mut leader = bench.leader(&[&path]);
    leader.logged("no line");
    device.plug();
    board.synced(bench.epoch(1).0);
    for number in 0..3 {
        follow(&bench, &[&board]);
        let words = format!("over a terminal {number}");
        bench.ok("leader", &["send", "--channel", "orders", &words]);
        board.hears(&words);
        board.say(&format!("heard {number}"));
        leader.line(&format!("heard {number}"));
    }
    let refused = board.seen().frames_refused;
    assert_eq!((refused, board.seen().offences), (0, 0), "every byte is as it was");

    device.unplug();
    leader.logged_times("no line", 2);
    bench.ok("leader", &["rekey"]);
    device.plug();
    follow(&bench, &[&board]);

    leader.kill();
    leader = bench.leader(&[&path]);
    follow(&bench, &[&board]);
    board.say("still here");
    leader.line("still here");
}

#[test]
fn boards_are_not_sent_the_table_of_system_ids() {
    let bench = Bench::new();
    let board = board(&bench, "board-1");
    let grants = ["--system-id", "board-1=70000", "--system-id", "leader-1=254"];
    let leader = bench.leader_with(&[&board.line], &grants);
    board.synced(bench.epoch(1).0);
    // Spread within half a second of each of these, and then repeated.
    for number in 0..3 {
        follow(&bench, &[&board]);
        for part in 0..3 {
            let words = format!("order {number}.{part}");
            bench.ok("leader", &["send", "--channel", "orders", &words]);
            board.hears(&words);
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    let heard = board.seen().heard.clone();
    assert!(heard.len() == 9 && heard.iter().all(|(_, words)| words.starts_with("order ")), "{heard:?}");
    assert_eq!(leader.terminate().code(), Some(0));
}

/// A call that waits for a held line takes half a minute; on a busy machine every other takes some seconds.
const HANGS: Duration = Duration::from_secs(25);

#[test]
fn a_line_whose_transmitter_is_held_stops_its_own_board_and_nothing_else() {
    let bench = Bench::new();
    let [held, other] = &[board(&bench, "board-1"), board(&bench, "board-2")];
    let mut device = Tty::to(&held.line);
    device.plug();
    let path = device.path.to_str().expect("utf-8").to_string();
    let leader = bench.leader(&[&path, &other.line]);
    bench.epoch(2);
    follow(&bench, &[held, other]);

    device.hold();
    // Each question about a session that the gateway does not know has an answer, so that the device fills up.
    let question = encode_line(9, &[3, 1, 2, 3, 4]).expect("a ping");
    let (filling, rest) = (AtomicBool::new(true), Duration::from_millis(1));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while filling.load(Ordering::Relaxed) {
                device.say(&question);
                std::thread::sleep(rest);
            }
        });
        let ends = Ends(&filling);
        for round in 0..4 {
            // By then some of it has been found to take nothing.
            if round == 3 {
                leader.logged("the line takes nothing");
            }
            let before = now();
            let status = bench.leader_status().expect("a status");
            assert!(before.elapsed() < HANGS, "status took {:?}", before.elapsed());
            let epoch =
                (status["term"].as_u64().expect("term"), status["counter"].as_u64().expect("counter"));
            bench.rekey();
            other.synced((epoch.0, epoch.1 + 1));
            let words = format!("order {round}");
            bench.ok("leader", &["send", "--channel", "orders", &words]);
            other.hears(&words);
            other.say(&format!("report {round}"));
            leader.line(&format!("report {round}"));
        }
        let before = now();
        assert_eq!(leader.terminate().code(), Some(0));
        assert!(before.elapsed() < HANGS, "SIGTERM took {:?}", before.elapsed());
        drop(ends);
    });
}

/// Ends a thread also if the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
fn garbage_on_the_line_at_every_point_costs_time_and_nothing_else() {
    let bench = Bench::new();
    let board = board_with_patience(&bench, "board-1", TimeLimit::NOISY);
    let cable = Cable::to(&board.line, 7);
    let leader = bench.leader(&[&cable.line]);
    board.synced(bench.epoch(1).0);
    for number in 0..3 {
        follow(&bench, &[&board]);
        let words = format!("through the noise {number}");
        bench.ok("leader", &["send", "--channel", "orders", &words]);
        board.hears(&words);
    }
    leader.logged("frames refused");
    cable.bad.store(false, Ordering::Relaxed);
    follow(&bench, &[&board]);
    let seen = board.seen();
    assert!(seen.frames_refused > 0, "the cable was bad");
    assert_eq!(seen.offences, 0, "no altered message came through");
    let mut heard = seen.heard.clone();
    heard.dedup();
    assert_eq!(heard, seen.heard, "nothing was heard twice");
}

#[test]
fn hostile_gateway_delays_and_drops_and_no_more() {
    let bench = Bench::new();
    let victim = &board_with_patience(&bench, "board-1", TimeLimit::SHORT);
    let witness = &board(&bench, "board-2");
    let gateway = Hostile::between(&victim.line, bench.deployment(), Conduct::Hostile, 11);
    let _leader = bench.leader(&[&gateway.line, &witness.line]);
    witness.synced((0, 0));
    let mut said = Vec::new();
    // First it is in the way of the enrolment, then of a member.
    for (round, afterwards) in [(1, Conduct::Replaced), (2, Conduct::Reformed)] {
        gateway.behave(Conduct::Hostile);
        suffer(&bench, &gateway, victim, round, &mut said);
        accepted_nothing_wrong(victim, witness, &said);

        let sessions = victim.seen().sessions;
        gateway.behave(afterwards);
        eventually("another session", || (victim.seen().sessions > sessions).then_some(()));
        victim.synced(bench.epoch(2).0);
        follow(&bench, &[victim, witness]);
        let words = format!("all is well {round}");
        bench.ok("leader", &["send", "--channel", "orders", &words]);
        victim.hears(&words);
        victim.say(&format!("so it is {round}"));
        witness.hears(&format!("so it is {round}"));
        said.push(words);
        accepted_nothing_wrong(victim, witness, &said);
    }
    assert!(victim.seen().offences > 0, "what it altered has reached the victim");
    let honest = witness.digests();
    assert!(victim.digests().keys().any(|epoch| honest.contains_key(epoch)), "epochs were compared");
}

#[test]
fn gateway_brings_no_board_in_without_the_second_factor_nor_with_a_smaller_set() {
    use quiver_service::deployment_file::KemSetting::{MlKem768, MlKem1024, None};
    for other in [None, MlKem768] {
        let bench = Bench::with_kem(MlKem1024);
        let victim = &board_with_patience(&bench, "board-1", TimeLimit::SHORT);
        let gateway = Hostile::between(&victim.line, bench.deployment(), Conduct::Downgrading(other), 12);
        let leader = bench.leader(&[&gateway.line]);
        // The board asks for nothing where the challenge names another set.
        eventually("a challenge was changed", || gateway.downgraded().contains("challenge").then_some(()));
        leader.logged(&format!("`kem` is \"{other}\" there and \"{MlKem1024}\" here"));
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(bench.leader_status().expect("status")["members"], 0, "{other}");
        gateway.behave(Conduct::Replaced);
        let (epoch, _) = bench.epoch(1);
        victim.synced(epoch);
        // A member follows no header that was changed so.
        gateway.behave(Conduct::Downgrading(other));
        bench.rekey();
        eventually("a header was changed", || gateway.downgraded().contains("header").then_some(()));
        std::thread::sleep(Duration::from_secs(1));
        let status = bench.leader_status().expect("status");
        assert_eq!(status["acknowledged"], 0, "{other}");
        assert_eq!(status["roster"][0]["kem"]["set"], MlKem1024.to_string(), "{other}");
        gateway.behave(Conduct::Replaced);
        let (epoch, digest) = bench.epoch(1);
        let held = victim.synced(epoch);
        assert!(hex::encode(held.digest.expect("a digest")).starts_with(&digest), "{other}");
        assert!(victim.seen().offences > 0, "what it changed was noticed");
    }
}

/// Goes on for a few steps, and until each deed was done so often to either side. The second time an altered message
/// has also been found out: not each is one that the board reads.
fn suffer(bench: &Bench, gateway: &Hostile, victim: &Board, times: usize, said: &mut Vec<String>) {
    let deadline = now() + Duration::from_secs(120);
    for step in 0.. {
        if step >= 8 && gateway.has_done(times) && (times == 1 || victim.seen().offences > 0) {
            return;
        }
        assert!(now() < deadline, "{times} of each are too many: {:?}", gateway.deeds());
        bench.rekey();
        let words = format!("order {}", said.len());
        bench.ok("leader", &["send", "--channel", "orders", &words]);
        victim.say(&format!("report {}", said.len()));
        said.push(words);
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// The victim holds no key that the witness, whose gateway is honest, does not hold for the same epoch;
/// epochs never went back; and it heard only what was said, at most once in each start.
fn accepted_nothing_wrong(victim: &Board, witness: &Board, said: &[String]) {
    let honest = witness.digests();
    for (epoch, digest) in victim.digests() {
        // A witness that is away for a moment may miss one.
        if let Some(expected) = honest.get(&epoch) {
            assert_eq!(&digest, expected, "two keys for {epoch:?}");
        }
    }
    let seen = victim.seen();
    assert!(seen.keys.is_sorted_by(|(a, _), (b, _)| a <= b), "epochs went back: {:?}", seen.keys);
    let mut heard = seen.heard.clone();
    for (_, words) in &heard {
        assert!(said.contains(words), "never said: {words}");
    }
    heard.sort();
    let all = heard.len();
    heard.dedup();
    assert_eq!(heard.len(), all, "something was heard twice");
}
