//! A group's life in a world without faults.

use std::time::Duration;

use quiver_ainq::{EpochKind, EpochPart, Name, Ristretto255, StrategyKind, Suite};
use quiver_kem::KemSetting;
use quiver_message::Message;
use quiver_world::check::{ActionPlan, Base, CheckSetup, StartState};
use quiver_world::{
    Action, Effect, InsecureToy, MasterKeySuite, NoObserver, NodeId, Setup, Step, StepObserver, World,
};

fn keys<S: Suite>(world: &World<S>) -> Vec<Option<Vec<u8>>> {
    let name = Name::new("test").unwrap();
    let key = |edge| Some(world.edge(edge)?.export(&name)?.expose().to_vec());
    (0..world.edge_count()).map(key).collect()
}

fn lives<S: MasterKeySuite>(parallel: bool) {
    let setup = Setup { members: 6, strangers: 1, parallel, ..Setup::default() };
    let mut world = World::<S>::new(setup).unwrap();
    world.start_everyone();
    world.run_until(Duration::from_secs(5), &mut NoObserver);
    assert_eq!(world.kgc(1).unwrap().issued(), 8);
    for edge in 0..7 {
        world.schedule(world.time(), Action::Join(edge));
    }
    world.run_until(Duration::from_secs(10), &mut NoObserver);
    let leader = |world: &World<S>| {
        let key = world.leader(0).unwrap().export(&Name::new("test").unwrap());
        Some(key.unwrap().expose().to_vec())
    };
    let joined = keys(&world);
    assert!(joined[..6].iter().all(|key| *key == leader(&world) && key.is_some()));
    assert_eq!(joined[6], None, "a stranger got in");
    world.schedule(world.time(), Action::Leave(0));
    world.schedule(world.time(), Action::Evict(1));
    world.run_for(Duration::from_secs(5), &mut NoObserver);
    let after = keys(&world);
    assert_eq!(after[..2], [None, None]);
    assert!(after[2..6].iter().all(|key| *key == leader(&world)));
    assert_ne!(after[2], joined[2]);
    world.schedule(world.time(), Action::Stop(NodeId::Leader(0)));
    world.schedule(world.time() + Duration::from_secs(1), Action::Start(NodeId::Leader(0)));
    world.run_for(Duration::from_secs(10), &mut NoObserver);
    let again = keys(&world);
    assert!(again[2..6].iter().all(|key| *key == leader(&world)));
    assert_ne!(again[2], after[2]);
}

#[test]
fn a_group_lives_on_every_suite() {
    lives::<InsecureToy>(false);
    lives::<Ristretto255>(false);
}

#[test]
fn a_group_lives_when_steps_are_taken_on_all_cores() {
    lives::<InsecureToy>(true);
}

/// Openings that the leader sends: with wraps for all members, and with parts for one.
#[derive(Debug, Default)]
struct Openings {
    for_all: usize,
    for_one: usize,
}

impl StepObserver<InsecureToy> for Openings {
    fn on_step(&mut self, world: &World<InsecureToy>, step: &Step) {
        for effect in &step.effects {
            let (NodeId::Leader(_), Effect::Sent { payload, .. }) = (step.node, effect) else { continue };
            let Ok(Message::Rekey(rekey)) = Message::decode(world.fleet().deployment(), payload) else {
                continue;
            };
            match rekey.part {
                Some(_) if rekey.header.core.kind != EpochKind::Open => {}
                Some(EpochPart::Delta(_)) => self.for_all += 1,
                Some(EpochPart::Entry(_) | EpochPart::Path(_)) => self.for_one += 1,
                None => {}
            }
        }
    }
}

/// Under tree an opening is broadcast over a shared medium, and not over links (docs/protocol.md, §7.5).
#[test]
fn every_second_seed_lives_over_links_whatever_it_begins_with() {
    let setup = CheckSetup { strategy: StrategyKind::Tree, ..CheckSetup::default() };
    let base = Base::<InsecureToy>::new(setup, KemSetting::None).unwrap();
    for beginning in [StartState::Nothing, StartState::Enrolled, StartState::Formed] {
        for seed in [2, 3] {
            let joins = (0..setup.edges).map(|edge| (Duration::from_secs(5), Action::Join(edge)));
            let restart = [Action::Stop(NodeId::Leader(0)), Action::Start(NodeId::Leader(0))];
            let actions = joins.chain((10..).map(Duration::from_secs).zip(restart)).collect();
            let plan = ActionPlan { seed, beginning, actions, calm: Duration::from_secs(20) };
            let mut openings = Openings::default();
            assert_eq!(base.watch(&plan, &mut openings).unwrap(), None);
            // Over a shared medium, too, a member that asks is sent a part for it alone.
            let Openings { for_all, for_one } = openings;
            let expected = if seed == 2 { for_all > 0 } else { for_all == 0 && for_one >= 20 };
            assert!(expected, "{beginning:?}, seed {seed}: {openings:?}");
        }
    }
}

#[test]
fn a_node_that_is_down_for_longer_than_any_world_lives_does_not_return() {
    let setup = Setup { members: 3, ..Setup::default() };
    let mut world = World::<InsecureToy>::new(setup).unwrap();
    world.start_everyone();
    world.run_until(Duration::from_secs(2), &mut NoObserver);
    for (edge, down_for) in [(0, Duration::MAX), (1, Duration::from_secs(3))] {
        world.schedule(world.time(), Action::Crash { node: NodeId::Edge(edge), after: 0, down_for });
        world.schedule(world.time(), Action::Join(edge));
    }
    world.run_for(Duration::from_secs(1), &mut NoObserver);
    assert!(!world.alive(NodeId::Edge(0)) && !world.alive(NodeId::Edge(1)));
    world.run_for(Duration::from_secs(60), &mut NoObserver);
    assert!(!world.alive(NodeId::Edge(0)) && world.alive(NodeId::Edge(1)));
}
