//! Measures how both strategies grow with the group: leader CPU, bytes, airtime.

mod figures;

use quiver_ainq::{Batch, Ristretto255, Slot};
use quiver_report::{Experiment, Observer, Unit};
use quiver_world::radio::{Cast, Loss, Preset, Profile};
use rand_chacha::ChaCha20Rng;
use rand_core::RngCore;

use super::group::{Follower, LeaderMessages, MeasuredGroup, Strategy};
use super::plan::AinqPlan;
use super::strategies::{PerStrategy, STRATEGIES};
use super::swarm::{Enrolled, LabSwarm, Members};
use crate::measure::{Effort, Timing, clocked, repeat_on};
use crate::{LabError, Result};

type S = Ristretto255;

/// Greatest number of path messages that are made to measure the costs of all.
const MOST_PATHS: usize = 20_000;

/// An event of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GrowthEvent {
    Expiry,
    Leave,
    Join,
    Open,
}

impl GrowthEvent {
    pub(super) const ALL: [Self; 4] = [Self::Expiry, Self::Leave, Self::Join, Self::Open];

    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Expiry => "expiry",
            Self::Leave => "leave",
            Self::Join => "join",
            Self::Open => "open",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Expiry => "the key expires",
            Self::Leave => "one drone leaves",
            Self::Join => "one drone joins",
            Self::Open => "a term opens",
        }
    }
}

/// Costs of the leader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) cpu: Timing,
    /// Header, wraps and path messages.
    pub(super) bytes: f64,
    /// Seconds in which the channel carries a signal.
    pub(super) airtime: f64,
}

/// All costs in a group of so many.
pub(super) struct GroupCosts {
    pub(super) drones: u32,
    pub(super) costs: PerStrategy<Costs>,
}

/// All costs under one strategy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Costs in the order of [`GrowthEvent::ALL`].
    events: [Cost; 4],
    /// Work that an expiry leaves for after the broadcast.
    pub(super) afterwards: Timing,
    /// The path messages to all members after a term has opened, under the tree.
    pub(super) paths: Option<Cost>,
}

impl Costs {
    pub(super) const fn of(&self, event: GrowthEvent) -> Cost {
        self.events[event as usize]
    }
}

pub(super) fn measure(plan: &AinqPlan, observer: &mut dyn Observer) -> Result<Experiment> {
    let mut sizes = Vec::new();
    for &drones in &plan.growth {
        sizes.push(size(plan, drones, observer)?);
    }
    Ok(figures::experiment(plan, &sizes))
}

/// All events in a group of so many.
fn size(plan: &AinqPlan, drones: u32, observer: &mut dyn Observer) -> Result<GroupCosts> {
    let effort = effort(plan);
    let mut swarm = LabSwarm::<S>::new(plan.seed)?;
    let shown = Unit::Count.show(f64::from(drones));
    observer.begin(&format!("{shown} keys"), LabSwarm::<S>::chunks(drones));
    let mut members = swarm.members(drones, observer)?;
    members.roster.prepare(&swarm.deployment);
    let newcomers = swarm.enrolled(u32::try_from(effort.most + 1).unwrap_or(u32::MAX))?;
    observer.begin(&format!("{shown} drones"), STRATEGIES.len() * 4);
    let mut radio = RadioChannel::new(plan.seed);
    let costs = PerStrategy::try_of(|strategy| {
        let (swarm, radio, members, newcomers) = (&mut swarm, &mut radio, &members, &newcomers);
        let choices = LabSwarm::<S>::randomness(plan.seed);
        GrowthRun { swarm, radio, members, newcomers, choices, effort }.costs(strategy, observer)
    })?;
    Ok(GroupCosts { drones, costs })
}

/// Large groups are measured less often, and their openings, which take seconds, once if need be.
fn effort(plan: &AinqPlan) -> Effort {
    Effort { least: plan.effort.least.min(3), ..plan.effort }
}

/// Measures the events of one group.
struct GrowthRun<'a> {
    swarm: &'a mut LabSwarm<S>,
    radio: &'a mut RadioChannel,
    members: &'a Members<S>,
    newcomers: &'a [Enrolled<S>],
    /// Randomness that chooses who leaves: the same for every repetition.
    choices: ChaCha20Rng,
    effort: Effort,
}

impl GrowthRun<'_> {
    fn costs(&mut self, strategy: Strategy, observer: &mut dyn Observer) -> Result<Costs> {
        let opening = self.opening(strategy)?;
        observer.advance(1);
        let (mut group, sent) = self.swarm.open(strategy, self.members.clone())?;
        let open = self.cost(opening, &sent);
        drop(sent);
        let paths = if strategy == Strategy::Tree { Some(self.paths(&mut group)?) } else { None };
        observer.advance(1);
        let (expiry, afterwards) = self.expiry(&mut group)?;
        let (leave, join) = self.leave_and_join(&mut group)?;
        observer.advance(1);
        self.check_follower(&mut group)?;
        observer.advance(1);
        Ok(Costs { events: [expiry, leave, join, open], afterwards, paths })
    }

    /// The members' Y are known, as they are to a leader that has led them before.
    fn opening(&mut self, strategy: Strategy) -> Result<Timing> {
        let members = self.members;
        let least = if members.roster.len() >= 500_000 { 1 } else { self.effort.least };
        let effort = Effort { least, ..self.effort };
        let prepare = |_: &mut &mut LabSwarm<S>| Ok(members.clone());
        repeat_on(effort, &mut self.swarm, prepare, |swarm, members| swarm.open(strategy, members))
    }

    /// A path message for every member; beyond [`MOST_PATHS`], so many are made and the others are like
    /// them.
    fn paths(&mut self, group: &mut MeasuredGroup<S>) -> Result<Cost> {
        let slots: Vec<Slot> = group.leadership.roster().iter().map(|(slot, _)| slot).collect();
        let made = &slots[..slots.len().min(MOST_PATHS)];
        let swarm = &mut *self.swarm;
        let path = |slot: &Slot| group.path(swarm, *slot).map(|path| path.encode().len());
        let (lengths, taken) = clocked(|| made.iter().map(path).collect::<Result<Vec<usize>>>());
        let lengths = lengths?;
        let share = slots.len() as f64 / made.len().max(1) as f64;
        let airtime: f64 = lengths.iter().map(|length| self.radio.airtime(*length, Cast::Unicast)).sum();
        Ok(Cost {
            cpu: Timing { median: taken * share, samples: made.len() },
            bytes: lengths.iter().sum::<usize>() as f64 * share,
            airtime: airtime * share,
        })
    }

    /// The re-key, and the work it leaves for afterwards.
    fn expiry(&mut self, group: &mut MeasuredGroup<S>) -> Result<(Cost, Timing)> {
        let mut afterwards = Vec::new();
        let mut state = (&mut *self.swarm, &mut *group);
        let cpu = repeat_on(
            self.effort,
            &mut state,
            |(_, group)| {
                afterwards.push(clocked(|| group.leadership.settle()).1);
                Ok(())
            },
            |(swarm, group), ()| group.rekey(swarm, Batch::default()),
        )?;
        let sent = group.rekey(self.swarm, Batch::default())?;
        afterwards.push(clocked(|| group.leadership.settle()).1);
        // Work deferred before the first re-key does not belong to it.
        let afterwards = afterwards.split_off(1);
        Ok((self.cost(cpu, &sent), Timing::of(afterwards)))
    }

    /// One leaves, another joins, so that the group stays as large as it is.
    fn leave_and_join(&mut self, group: &mut MeasuredGroup<S>) -> Result<(Cost, Cost)> {
        let (mut leaves, mut joins) = (Vec::new(), Vec::new());
        for newcomer in self.newcomers.chunks(1) {
            let slot = self.any_member(group)?;
            group.leadership.settle();
            let (left, leaving) = clocked(|| group.dismiss(self.swarm, vec![slot]));
            group.leadership.settle();
            let (joined, joining) = clocked(|| group.admit(self.swarm, newcomer));
            leaves.push((leaving, left?.bytes(self.swarm)));
            joins.push((joining, joined?.bytes(self.swarm)));
            let spent: f64 = leaves.iter().chain(&joins).map(|(taken, _)| taken).sum();
            if leaves.len() > self.effort.least && spent > 2.0 * self.effort.budget.as_secs_f64() {
                break;
            }
        }
        Ok((self.cost_of(&leaves), self.cost_of(&joins)))
    }

    /// The cost of an event that was measured in several rounds, of which the first warms up. How many rounds
    /// there are depends on the machine, so the bytes are those of the rounds that are always there.
    fn cost_of(&mut self, rounds: &[(f64, usize)]) -> Cost {
        let cpu = Timing::of(rounds.iter().skip(1).map(|(taken, _)| *taken).collect());
        let mut bytes: Vec<usize> =
            rounds.iter().take(self.effort.least + 1).map(|(_, bytes)| *bytes).collect();
        bytes.sort_unstable();
        let bytes = bytes.get(bytes.len() / 2).copied().unwrap_or(0);
        Cost { cpu, bytes: bytes as f64, airtime: self.radio.airtime(bytes, Cast::Broadcast) }
    }

    /// A member's slot, any.
    fn any_member(&mut self, group: &MeasuredGroup<S>) -> Result<Slot> {
        let slots = u32::try_from(group.leadership.roster().len()).unwrap_or(u32::MAX);
        let start = self.choices.next_u32() % slots.max(1);
        let taken = |slot: &Slot| group.leadership.roster().get(*slot).is_some();
        (start..slots).chain(0..start).find(taken).ok_or(LabError::WrongKey("nobody is there"))
    }

    /// A drone joins and follows through everything that was measured, and holds the leader's key each time.
    fn check_follower(&mut self, group: &mut MeasuredGroup<S>) -> Result<()> {
        let (mut follower, _) = Follower::enter(self.swarm, group)?;
        let expiry = group.rekey(self.swarm, Batch::default())?;
        follower.follow(self.swarm, group, &expiry)?;
        let slot = self.any_member(group)?;
        if slot != follower.slot() {
            let leave = group.dismiss(self.swarm, vec![slot])?;
            follower.follow(self.swarm, group, &leave)?;
        }
        Ok(())
    }

    fn cost(&mut self, cpu: Timing, sent: &LeaderMessages<S>) -> Cost {
        let bytes = sent.bytes(self.swarm);
        Cost { cpu, bytes: bytes as f64, airtime: self.radio.airtime(bytes, Cast::Broadcast) }
    }
}

/// An IEEE 802.15.4 channel.
struct RadioChannel {
    profile: Profile,
    rng: ChaCha20Rng,
}

impl RadioChannel {
    fn new(seed: u64) -> Self {
        Self { profile: Preset::Ieee802154.profile(), rng: LabSwarm::<S>::randomness(seed) }
    }

    /// Time on the channel of so many bytes, with nothing lost.
    fn airtime(&mut self, bytes: usize, cast: Cast) -> f64 {
        let mut lossless = Loss::None.link(&mut self.rng);
        let sent = self.profile.send(bytes, cast, &mut lossless, &mut self.rng);
        sent.on_air.as_secs_f64()
    }
}
