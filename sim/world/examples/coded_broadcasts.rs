//! One of many drones leaves, over IEEE 802.15.4 with losses, with parity frames and without: how many have
//! the broadcast at once, what is sent again or asked for, and what it takes.
//!
//!     cargo run --release -p quiver-world --example coded_broadcasts -- 2000      # and the number of seeds

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_group::LeaderEvent;
use quiver_group::edge::EdgeTiming;
use quiver_group::leader::LeaderTiming;
use quiver_link::TrickleConfig;
use quiver_world::boards::{Coding, Repeats};
use quiver_world::radio::cycles::Arithmetic;
use quiver_world::radio::{Cast, Loss, Preset};
use quiver_world::{
    Action, AirSetup, Hop, InsecureToy, NoObserver, NodeEvent, NodeId, Setup, Step, StepObserver, TwoHops,
    TwoHopsReport, World,
};

/// Field numbers of `quiver.v1.Message`, behind the fingerprint of ten bytes.
const REKEY: u8 = 12;
const CATCH_UP_REQUEST: u8 = 13;

/// Outcome of a re-key.
#[derive(Default)]
struct Count {
    members: usize,
    /// True if the leader made an epoch since.
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

/// Time for one drone to enrol and to join: the channel needs half of it.
const PACE: Duration = Duration::from_millis(300);

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let members = arguments.next().unwrap_or(2_000);
    let seeds = arguments.next().unwrap_or(1);
    for loss in [0.1, 0.3] {
        for coded in [false, true] {
            for seed in 1..=u64::from(seeds) {
                one_leaves(members, loss, coded, None, seed);
            }
        }
        let trickle = TrickleConfig::new(Duration::from_secs(2), 2, 2).expect("bounded");
        let repeats = Some(Repeats { trickle, intervals: 3 });
        for (repeats, hostile) in [(None, 0), (repeats, 0), (repeats, members / 20)] {
            let two_hops = TwoHops { spread: 1.5, repeats, hostile };
            one_leaves(members, loss, true, Some(two_hops), 1);
        }
    }
}

/// One of `members` leaves a group over IEEE 802.15.4. Nothing is lost until it has formed; then another one
/// leaves, so that the leader sees what is.
fn one_leaves(members: u32, loss: f64, coded: bool, two_hops: Option<TwoHops>, seed: u64) {
    let profile = Preset::Ieee802154.profile();
    let profile = if coded { profile.with_coding() } else { profile };
    let air = AirSetup { profile, loss: Loss::None, arithmetic: Arithmetic::Portable };
    let mut world = World::<InsecureToy>::new(Setup {
        seed,
        members,
        strategy: StrategyKind::Tree,
        shared_medium: true,
        air: Some(air.clone()),
        two_hops,
        // Drones join one after the other, and make few epochs; who waits for the channel is not asked again.
        leader_timing: LeaderTiming {
            validity: Duration::from_secs(86_400),
            batching: PACE * 8,
            batching_max: PACE * members,
            resend: (PACE * members / 4).max(Duration::from_secs(5)),
            ..LeaderTiming::default()
        },
        edge_timing: EdgeTiming {
            retry: (PACE * members / 8).max(Duration::from_secs(2)),
            retry_max: PACE * members,
            admission: PACE * members * 2,
            ..EdgeTiming::default()
        },
        hops: true,
        ..Setup::default()
    })
    .expect("a world");
    let hubs = [NodeId::Kgc(1), NodeId::Leader(0)];
    hubs.into_iter().for_each(|hub| world.schedule(Duration::ZERO, Action::Start(hub)));
    for edge in 0..members {
        world.schedule(PACE * edge, Action::Start(NodeId::Edge(edge)));
        world.schedule(PACE * (members + edge), Action::Join(edge));
    }
    world.run_for(PACE * members * 3, &mut NoObserver);
    if !settle(&mut world, members, &mut NoObserver) {
        println!("only {} of {members} drones joined", standing(&world).0);
        return;
    }
    let loss = Loss::independent(loss).expect("a probability");
    world.schedule(world.time(), Action::Radio(Box::new(AirSetup { loss, ..air })));
    let (mut count, mut before) = (Count::default(), TwoHopsReport::default());
    for (leaver, left) in [(2, 1), (1, 2)] {
        world.schedule(world.time(), Action::Leave(leaver));
        before = world.two_hops().unwrap_or_default();
        count = Count { members: members as usize, ..Count::default() };
        world.run_for(Duration::from_secs(30), &mut count);
        settle(&mut world, members - left, &mut count);
    }
    report(&world, &count);
    let Some(after) = world.two_hops() else { return };
    let hostile = two_hops.map_or(0, |two_hops| two_hops.hostile);
    println!(
        "    {} out of range, {hostile} repeat false frames: {} have it from the leader, {} from members; {} repetitions and \
         {} false ones, {} frames, {:.2} s on air",
        after.out_of_range,
        after.from_leader - before.from_leader,
        after.from_members - before.from_members,
        after.repetitions - before.repetitions,
        after.false_repetitions - before.false_repetitions,
        after.frames - before.frames,
        (after.airtime - before.airtime).as_secs_f64(),
    );
}

/// Members, and how many of them acknowledged the newest epoch.
fn standing(world: &World<InsecureToy>) -> (u32, u32) {
    let status = world.leader(0).map(|leader| leader.status());
    status.map_or((0, 0), |status| (status.members as u32, status.acknowledged as u32))
}

/// Lets the world run until so many are members and all have acknowledged, for two hours at most.
fn settle(
    world: &mut World<InsecureToy>,
    members: u32,
    observer: &mut dyn StepObserver<InsecureToy>,
) -> bool {
    for _ in 0..720 {
        if standing(world) == (members, members) {
            return true;
        }
        world.run_for(Duration::from_secs(10), observer);
    }
    false
}

fn report(world: &World<InsecureToy>, count: &Count) {
    let air = world.air().expect("a radio");
    let (_, rekey) = air.ledger().rekeys().last().expect("a re-key");
    let (_, payload) = count.rekey.as_ref().expect("a broadcast");
    let seen = air.observed_loss(NodeId::Leader(0));
    let parity = air.profile().coding(payload.len(), seen).map_or(0, Coding::frames);
    println!(
        "{:.1} % lost seen: {} bytes in {} + {parity} frames reach {} of {} ({:.2} %); sent again {}, asked {}; re-key: \
         {} frames, {:.2} s on air, {:.2} J of radios",
        seen * 100.0,
        payload.len(),
        air.profile().frames(payload.len(), Cast::Broadcast),
        count.reached.len(),
        count.receivers.len(),
        100.0 * count.reached.len() as f64 / count.receivers.len() as f64,
        count.sent_again,
        count.asked.len(),
        rekey.frames + rekey.retransmissions,
        rekey.airtime.as_secs_f64(),
        rekey.radio().picojoules() as f64 / 1e12,
    );
}
