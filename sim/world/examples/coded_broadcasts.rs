//! One of many drones leaves, over IEEE 802.15.4 with losses, with parity frames and without: how many have
//! the broadcast at once, what is sent again or asked for, and what it takes.
//!
//!     cargo run --release -p quiver-world --example coded_broadcasts -- 2000

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_group::LeaderEvent;
use quiver_world::radio::cycles::Arithmetic;
use quiver_world::radio::{Cast, Coding, Loss, Preset};
use quiver_world::{Action, AirSetup, Hop, InsecureToy, NodeEvent, NodeId, Setup, Step, StepObserver, World};

/// Field numbers of `quiver.v1.Message`, behind the fingerprint of ten bytes.
const REKEY: u8 = 12;
const CATCH_UP_REQUEST: u8 = 13;

/// What becomes of a re-key.
#[derive(Default)]
struct Count {
    members: usize,
    /// Whether the leader made an epoch since.
    made: bool,
    /// The broadcast, and those it was for.
    rekey: Option<(Duration, Arc<[u8]>)>,
    receivers: BTreeSet<NodeId>,
    reached: BTreeSet<NodeId>,
    /// Re-keys of one time, until there are so many that they are a broadcast.
    candidates: Vec<Hop>,
    sent_again: u64,
    asked: BTreeSet<NodeId>,
}

impl Count {
    fn rekey(&mut self, hop: &Hop) {
        match &self.rekey {
            Some((sent, payload)) if *payload == hop.payload => {
                if *sent == hop.sent {
                    self.receivers.insert(hop.to);
                    self.reached.extend(hop.arrives.map(|_| hop.to));
                } else {
                    self.sent_again += 1;
                }
            }
            Some(_) => {}
            None => {
                self.candidates.retain(|other| other.sent == hop.sent && other.payload == hop.payload);
                self.candidates.push(hop.clone());
                if self.candidates.len() * 2 > self.members {
                    self.rekey = Some((hop.sent, hop.payload.clone()));
                    std::mem::take(&mut self.candidates).iter().for_each(|hop| self.rekey(hop));
                }
            }
        }
    }
}

impl StepObserver<InsecureToy> for Count {
    fn on_step(&mut self, _: &World<InsecureToy>, step: &Step) {
        let made = |event: &NodeEvent| matches!(event, NodeEvent::Leader(LeaderEvent::EpochActivated { .. }));
        self.made |= step.events().into_iter().any(made);
    }

    fn on_hop(&mut self, hop: &Hop) {
        match (hop.payload.get(10).map_or(0, |tag| tag >> 3), hop.from) {
            (REKEY, NodeId::Leader(_)) if self.made => self.rekey(hop),
            (CATCH_UP_REQUEST, NodeId::Edge(_)) => {
                self.asked.insert(hop.from);
            }
            _ => {}
        }
    }
}

fn main() {
    let members: u32 = std::env::args().nth(1).map_or(2_000, |drones| drones.parse().expect("a number"));
    for loss in [0.1, 0.3] {
        for coded in [false, true] {
            let profile = Preset::Ieee802154.profile();
            let profile = if coded { profile.with_coding() } else { profile };
            let loss = Loss::independent(loss).expect("a probability");
            let air = Some(AirSetup { profile, loss, arithmetic: Arithmetic::Portable });
            let strategy = StrategyKind::Tree;
            let setup = Setup { members, strategy, air, hops: true, shared_medium: true, ..Setup::default() };
            let mut world = World::<InsecureToy>::new(setup).expect("a world");
            world.start_everyone();
            for edge in 0..members {
                world.schedule(Duration::from_secs(10), Action::Join(edge));
            }
            for _ in 0..200 {
                world.run_for(Duration::from_secs(10), &mut Count::default());
                if world.leader(0).is_some_and(|leader| {
                    let status = leader.status();
                    status.members == members as usize && status.acknowledged == status.members
                }) {
                    break;
                }
            }
            world.run_for(Duration::from_secs(60), &mut Count::default());
            let joined = world.leader(0).map_or(0, |leader| leader.status().members);
            world.schedule(world.time(), Action::Leave(1));
            if joined != members as usize {
                println!("only {joined} of {members} drones joined");
                continue;
            }
            let mut count = Count { members: members as usize, ..Count::default() };
            world.run_for(Duration::from_secs(120), &mut count);
            let air = world.air().expect("a radio");
            let (_, rekey) = air.ledger().rekeys().last().expect("a re-key");
            let (_, payload) = count.rekey.expect("a broadcast");
            let seen = air.observed_loss(NodeId::Leader(0));
            let parity = air.profile().coding(payload.len(), seen).map_or(0, Coding::frames);
            println!(
                "{:.0} % lost ({:.1} % seen), {joined} members: {} bytes in {} + {parity} frames reach {} of {} ({:.2} %); sent again {}, asked {}; re-key: {} frames, {:.0} ms on air, {:.1} J",
                loss.stationary() * 100.0,
                seen * 100.0,
                payload.len(),
                air.profile().frames(payload.len(), Cast::Broadcast),
                count.reached.len(),
                count.receivers.len(),
                100.0 * count.reached.len() as f64 / count.receivers.len() as f64,
                count.sent_again,
                count.asked.len(),
                rekey.frames + rekey.retransmissions,
                rekey.airtime.as_secs_f64() * 1e3,
                rekey.energy().picojoules() as f64 / 1e12,
            );
        }
    }
}
