//! Restarts, rolled-back storage and copies: no key and nonce repeat, and no replay is received.

use std::collections::BTreeSet;

use quiver_ainq::traffic::Start;
use quiver_datagram::{Config, Suspicion};
use rand_chacha::rand_core::RngCore;

use crate::swarm::Swarm;

/// Records under which key and nonce each datagram was sealed, from what is on the air.
#[derive(Default)]
struct Recorder {
    /// Slot, start and epoch; then number and whether it is signed, or an announcement.
    used: BTreeSet<(u32, u32, [u8; 8], u64, u8, u32)>,
    /// The newest start of the sender observed, and the numbers that its datagrams are at.
    start: Option<Start>,
    numbers: [u32; 2],
}

impl Recorder {
    fn record(&mut self, epoch: u64, datagram: &[u8]) {
        let kind = datagram[0] >> 3 & 7;
        // One byte of slot in this test.
        let slot = u32::from(datagram[1]);
        let (class, number) = if kind == 7 {
            let boot_no = u32::from_be_bytes(datagram[2..6].try_into().unwrap());
            let salt = datagram[6..14].try_into().unwrap();
            let start = Start { slot, boot_no, salt };
            if self.start != Some(start) {
                (self.start, self.numbers) = (Some(start), [0; 2]);
            }
            (2, u32::from_be_bytes(datagram[14..18].try_into().unwrap()))
        } else {
            let signed = [2, 3, 5, 6].contains(&kind);
            (u8::from(signed), u32::from(u16::from_be_bytes([datagram[2], datagram[3]])))
        };
        let Start { boot_no, salt, .. } = self.start.expect("an announcement comes first");
        assert!(
            self.used.insert((slot, boot_no, salt, epoch, class, number)),
            "boot {boot_no}, epoch {epoch}, class {class}, number {number} again"
        );
    }
}

#[test]
fn thousands_of_restarts_repeat_no_key_and_nonce_even_with_storage_rolled_back() {
    let config = Config::default();
    let mut swarm = Swarm::closed(2, config);
    let mut recorder = Recorder::default();
    for _ in 0..4_000 {
        let chance = swarm.rng.next_u32();
        swarm.restart(1, config);
        // In one of four restarts the storage is one of some starts before.
        if chance & 3 == 0 {
            swarm.nodes[1].boot_no = swarm.nodes[1].boot_no.saturating_sub(chance >> 8 & 7).max(1);
        }
        swarm.open(1, None);
        for round in 0..chance >> 16 & 7 {
            swarm.telemetry(1, b"telemetry");
            swarm.command(1, b"command", round & 1 == 0);
            let epoch = swarm.epoch.counter;
            for datagram in swarm.take(1) {
                recorder.record(epoch, &datagram);
            }
            // The key changes now and then, or is lost and comes back.
            match swarm.rng.next_u32() % 8 {
                0 => swarm.rekey([1], false),
                1 => swarm.nodes[1].datagrams.close(),
                _ => {}
            }
            swarm.open(1, None);
        }
    }
    assert!(recorder.used.len() > 10_000);
}

#[test]
fn a_restarted_sender_is_heard_at_once_and_its_earlier_datagrams_no_more() {
    let config = Config::default();
    for sign in [false, true] {
        let mut swarm = Swarm::new(2, config);
        swarm.nodes[1].signs = sign;
        swarm.command(1, b"one", sign);
        swarm.settle();
        swarm.command(1, b"two", sign);
        let before = swarm.take(1);
        swarm.restart(1, config);
        swarm.open(1, None);
        swarm.command(1, b"three", sign);
        swarm.settle();
        before.iter().for_each(|datagram| swarm.deliver(0, datagram));
        for (_, datagram) in swarm.air.clone() {
            swarm.deliver(0, &datagram);
        }
        assert_eq!(swarm.nodes[0].payloads(), [&b"one"[..], b"three"], "signed: {sign}");
    }
}

#[test]
fn a_sender_whose_storage_was_rolled_back_is_not_heard_until_the_next_epoch() {
    let config = Config::default();
    let mut swarm = Swarm::new(2, config);
    swarm.nodes[1].boot_no = 5;
    swarm.open(1, None);
    swarm.telemetry(1, b"one");
    swarm.settle();
    swarm.restart(1, config);
    swarm.nodes[1].boot_no = 5;
    swarm.open(1, None);
    swarm.telemetry(1, b"two");
    swarm.settle();
    assert_eq!(swarm.nodes[0].payloads(), [b"one"]);
    swarm.rekey([0, 1], false);
    swarm.telemetry(1, b"three");
    swarm.settle();
    swarm.run_for(std::time::Duration::from_secs(1), std::time::Duration::from_millis(50));
    assert_eq!(swarm.nodes[0].payloads(), [&b"one"[..], b"three"]);
}

#[test]
fn a_copy_of_a_running_sender_is_noticed_by_whichever_of_the_two_hears_the_other() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.telemetry(1, b"one");
    let sent = swarm.take(1);
    // Its own datagrams come back to it, as over multicast: that is no copy.
    sent.iter().for_each(|datagram| swarm.deliver(1, datagram));
    assert_eq!(swarm.nodes[1].impostors, []);
    assert_eq!(swarm.nodes[1].datagrams.counters().own, 2);
    // A copy of a machine sends the number that the machine sends next.
    let mut copy = Swarm::new(2, Config::default());
    copy.telemetry(1, b"one");
    copy.take(1);
    copy.telemetry(1, b"copied");
    let copied = copy.take(1);
    copied.iter().for_each(|datagram| swarm.deliver(1, datagram));
    assert_eq!(swarm.nodes[1].impostors, [(1, Suspicion::Own)]);
}
