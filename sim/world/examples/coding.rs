//! One of many drones leaves, over IEEE 802.15.4 with losses, with parity frames and without: how many have
//! the broadcast at once, what is sent again or asked for, and what it takes.
//!
//!     cargo run --release -p quiver-world --example coding -- 2000

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_world::radio::cycles::Arithmetic;
use quiver_world::radio::{Loss, Preset};
use quiver_world::{Action, AirSetup, Hop, InsecureToy, NodeId, Setup, Step, StepObserver, World};

/// Field numbers of `quiver.v1.Message`, behind the fingerprint of ten bytes.
const REKEY: u8 = 12;
const CATCH_UP_REQUEST: u8 = 13;

#[derive(Default)]
struct Count {
    first: Option<Duration>,
    reached: BTreeSet<NodeId>,
    sent_again: u64,
    asked: BTreeSet<NodeId>,
    bytes: usize,
}

impl StepObserver<InsecureToy> for Count {
    fn on_step(&mut self, _: &World<InsecureToy>, _: &Step) {}

    fn on_hop(&mut self, hop: &Hop) {
        match (hop.payload.get(10).map_or(0, |tag| tag >> 3), hop.from) {
            (REKEY, NodeId::Leader(_)) if *self.first.get_or_insert(hop.sent) == hop.sent => {
                self.bytes = hop.payload.len();
                self.reached.extend(hop.arrives.map(|_| hop.to));
            }
            (REKEY, NodeId::Leader(_)) => self.sent_again += 1,
            (CATCH_UP_REQUEST, NodeId::Edge(_)) => {
                self.asked.insert(hop.from);
            }
            _ => {}
        }
    }
}

fn main() {
    let members: u32 = std::env::args().nth(1).map_or(2_000, |drones| drones.parse().expect("a number"));
    println!(
        "loss  parity  members  bytes  frames sent  have it at once  sent again  asked  airtime of the re-key  energy of all"
    );
    for loss in [0.1, 0.3] {
        for coded in [false, true] {
            let profile = Preset::Ieee802154.profile();
            let profile = if coded { profile.with_coding() } else { profile };
            let loss = Loss::independent(loss).expect("a probability");
            let air = Some(AirSetup { profile, loss, arithmetic: Arithmetic::Portable });
            let strategy = StrategyKind::Tree;
            let setup = Setup { members, strategy, air, hops: true, ..Setup::default() };
            let mut world = World::<InsecureToy>::new(setup).expect("a world");
            world.start_everyone();
            for edge in 0..members {
                world.schedule(Duration::from_secs(10), Action::Join(edge));
            }
            for _ in 0..200 {
                world.run_for(Duration::from_secs(10), &mut Count::default());
                if world.leader(0).is_some_and(|leader| leader.status().members == members as usize) {
                    break;
                }
            }
            world.run_for(Duration::from_secs(60), &mut Count::default());
            let joined = world.leader(0).map_or(0, |leader| leader.status().members);
            world.schedule(world.time(), Action::Leave(1));
            let mut count = Count::default();
            world.run_for(Duration::from_secs(60), &mut count);
            let ledger = world.air().expect("a radio").ledger();
            let (_, rekey) = ledger.rekeys().last().expect("a re-key");
            println!(
                "{:.0} %  {}  {joined}  {}  {}  {} ({:.2} %)  {}  {}  {:.0} ms  {:.1} J",
                loss.stationary() * 100.0,
                if coded { "yes" } else { "no" },
                count.bytes,
                rekey.frames,
                count.reached.len(),
                100.0 * count.reached.len() as f64 / (joined.max(2) - 1) as f64,
                count.sent_again,
                count.asked.len(),
                rekey.airtime.as_secs_f64() * 1e3,
                rekey.energy().picojoules() as f64 / 1e12,
            );
        }
    }
}
