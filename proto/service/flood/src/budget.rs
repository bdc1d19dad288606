//! Bounds of the costs of an attack to a service, and of its effects on drones.

use std::time::Duration;

use crate::attack::{Attack, AttackRun, AttackedService};
use crate::measurement::Measurement;
use crate::site::MEMBERS;

const MIB: u64 = 1 << 20;
/// Bytes that came from strangers and that nobody has read, of all of them together (`UnreadLimits::strangers`).
const UNREAD: u64 = 8 * MIB;
/// Bytes of a connection: what it may have unread beside (16 KiB), buffers of Noise and yamux, streams, its task.
const CONNECTION: u64 = 128 << 10;
/// Connections in their handshake, or being closed, at a moment.
const IN_PASSING: u64 = 64;
/// Bytes of a handshake of which nothing came: its socket and its task.
const HANDSHAKE: u64 = 8 << 10;
/// Memory that need not come back, after all attacks of a run together: the C library keeps free pages below one that is in
/// use, in an arena for each thread. A leak in each attack exceeds it after some of them.
const KEPT: u64 = 16 * MIB;
/// The same for each handshake that may go on at a time.
const KEPT_OF_HANDSHAKE: u64 = 4 << 10;
/// Time in which the rest has come back: a stranger is closed after 60 s, and what its group messages took is forgotten
/// after 10 s.
pub(crate) const RETURN: Duration = Duration::from_secs(90);
/// Some ten places of a program that write thirty lines a minute each.
const LOG: u64 = 64 << 10;
/// Processor time for each byte: decryption, and a group message for each 35 of them.
const PER_BYTE: Duration = Duration::from_nanos(400);
/// Processor time for each connection: Noise's handshake, a proof of the identity, streams of identify and clock, the end.
const PER_CONNECTION: Duration = Duration::from_millis(5);
/// Share of one processor, in hundredths, that everything beside may take: sockets that are polled, timers.
const SHARE: u32 = 5;
/// Growth of the 99th percentile of re-keys, and what it may grow by anyway: the pause in which a leader gathers (50 ms)
/// passes once more if a command comes just behind another, and the processors that attackers, drones and services share
/// give each its turn within as much again.
const GROWTH: u32 = 2;
const FLOOR: Duration = Duration::from_millis(100);
/// Time until an eviction is in force, or a drone that was restarted follows again.
const SOON: Duration = Duration::from_secs(10);
/// Time until a new drone has enrolled and joined, from an address that strangers share: it may have to wait until a
/// stranger's place is free, which is for 5 s its own, and to dial some times.
const ENROLLED: Duration = Duration::from_secs(40);

/// Bounds of what an attack costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) memory: u64,
    pub(crate) memory_kept: u64,
    pub(crate) descriptors: u64,
    pub(crate) log: u64,
    pub(crate) processor: Duration,
    pub(crate) rekeys: Duration,
    pub(crate) returned: Duration,
}

impl Budget {
    /// Bounds for what this attack sent in this time, where the 99th percentile of re-keys is so long when it is quiet.
    pub(crate) fn of(measured: &Measurement, quiet: Duration) -> Self {
        let places = places(measured.run);
        let bytes = u32::try_from(measured.sent).unwrap_or(u32::MAX);
        let connections = u32::try_from(measured.connections).unwrap_or(u32::MAX);
        Self {
            memory: match measured.run.attack {
                Attack::Mute => UNREAD + u64::from(measured.run.target.handshakes()) * HANDSHAKE,
                _ => UNREAD + places * CONNECTION,
            },
            memory_kept: kept(measured.run.target),
            // A handshake takes one, whether there is a place behind it or not.
            descriptors: measured.run.strangers() + IN_PASSING,
            log: LOG,
            processor: PER_BYTE * bytes + PER_CONNECTION * connections + measured.time * SHARE / 100,
            rekeys: quiet * GROWTH + FLOOR,
            returned: if measured.run.target == AttackedService::Kgc { ENROLLED } else { SOON },
        }
    }

    /// Lists the bounds that were exceeded, each with the figure.
    pub(crate) fn passed(&self, measured: &Measurement, optimised: bool) -> Vec<String> {
        let mut passed = Vec::new();
        let mut check = |what: &str, figure: f64, bound: f64, unit: &str| {
            if figure > bound {
                passed.push(format!("{what}: {figure:.1} {unit} of {bound:.1}"));
            }
        };
        let mib = |bytes: u64| count(bytes) / count(MIB);
        let seconds = |time: Option<Duration>| time.map_or(f64::INFINITY, |time| time.as_secs_f64());
        check("memory", mib(measured.memory), mib(self.memory), "MiB");
        check("memory afterwards", mib(measured.memory_kept), mib(self.memory_kept), "MiB");
        check("descriptors", count(measured.descriptors), count(self.descriptors), "descriptors");
        check("log", count(measured.log), count(self.log), "bytes");
        if optimised {
            let processor = measured.processor.as_secs_f64();
            check("processor time", processor, self.processor.as_secs_f64(), "s");
        }
        let rekeys = measured.rekeys.percentile(99).as_secs_f64() * 1000.0;
        check("99 of 100 re-keys", rekeys, self.rekeys.as_secs_f64() * 1000.0, "ms");
        check("an eviction", seconds(measured.evicted), SOON.as_secs_f64(), "s");
        check("a drone's return", seconds(measured.returned), self.returned.as_secs_f64(), "s");
        check("keys that drones did not get", count(measured.rekeys.missing), 0.0, "keys");
        check("commands that the leader did not confirm", count(measured.rekeys.refused), 0.0, "commands");
        if !measured.is_whole {
            passed.push("a program has ended".into());
        }
        if measured.connections == 0 {
            passed.push("no stranger ever connected: nothing was attacked".into());
        }
        passed
    }
}

/// Memory that a service may keep after attacks.
pub(crate) fn kept(target: AttackedService) -> u64 {
    KEPT + u64::from(target.handshakes()) * KEPT_OF_HANDSHAKE
}

/// Connections of this attack's strangers that a service keeps at a time, and those in passing.
fn places(run: AttackRun) -> u64 {
    let strangers = run.strangers();
    // `NodeLimits::served`; a KGC has places for 4,096 drones.
    let inbound = match run.target {
        AttackedService::Kgc => u64::MAX,
        AttackedService::Leader | AttackedService::Relay => u64::from(MEMBERS) * 3 / 2 + 16,
    };
    strangers.min(inbound) + IN_PASSING
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(crate) fn count(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::Rekeys;

    fn measured() -> Measurement {
        Measurement {
            run: AttackRun { target: AttackedService::Leader, attack: Attack::Own, number: 0 },
            sent: 10 * MIB,
            connections: 8,
            connected: 8,
            time: Duration::from_secs(20),
            memory: MIB,
            memory_kept: MIB,
            descriptors: 8,
            log: 1000,
            processor: Duration::from_secs(2),
            rekeys: Rekeys::of(vec![Duration::from_millis(100)]),
            evicted: Some(Duration::from_secs(1)),
            returned: Some(Duration::from_secs(1)),
            is_whole: true,
        }
    }

    fn passed(change: impl FnOnce(&mut Measurement)) -> Vec<String> {
        let mut measured = measured();
        change(&mut measured);
        Budget::of(&measured, Duration::from_millis(100)).passed(&measured, true)
    }

    /// A change of one figure of a measurement.
    type Change = fn(&mut Measurement);

    #[test]
    fn each_budget_that_is_passed_is_named_alone() {
        assert_eq!(passed(|_| {}), Vec::<String>::new());
        let cases: [(&str, Change); 11] = [
            ("memory:", |m| m.memory = 100 * MIB),
            ("memory afterwards:", |m| m.memory_kept = 19 * MIB),
            ("descriptors:", |m| m.descriptors = 200),
            ("log:", |m| m.log = MIB),
            ("processor time:", |m| m.processor = Duration::from_secs(20)),
            ("99 of 100 re-keys:", |m| m.rekeys = Rekeys::of(vec![Duration::from_millis(301)])),
            ("an eviction:", |m| m.evicted = None),
            ("a drone's return:", |m| m.returned = Some(Duration::from_secs(11))),
            ("keys that drones", |m| m.rekeys.missing = 1),
            ("a program has ended", |m| m.is_whole = false),
            ("no stranger", |m| m.connections = 0),
        ];
        for (what, change) in cases {
            let passed = passed(change);
            assert!(matches!(&passed[..], [only] if only.starts_with(what)), "{what} {passed:?}");
        }
    }
}
