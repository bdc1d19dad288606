//! Compiles a scenario file to a timed list of actions, and checks every value.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use quiver_ainq::KgcId;
use quiver_scenario_format::{self as format, Names, Repeat};
use rand::Rng;
use toml::Spanned;

use super::error::SourceText;
use super::names::Census;
use super::settings::{self, time};
use super::{ReadOptions, Scenario, ScenarioError, churn, links, mobility, stem};
use crate::rng_stream::{self, RngStream};
use crate::{Action, DiskState, NodeId, NodeSet, Partition, Setup, bound};

/// The most actions a file may ask for.
const MAX_ACTIONS: usize = 5_000_000;
/// Shortest interval between repetitions of an event.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
/// Longest duration of a scenario.
const MAX_DURATION: Duration = Duration::from_secs(30 * 86_400);

type ScriptResult<T> = Result<T, ScenarioError>;
type Timed = (Duration, Action);

/// Turns a file into a scenario.
pub(super) fn read(
    source: &SourceText<'_>,
    raw: &format::File,
    reading: ReadOptions,
) -> ScriptResult<Scenario> {
    let duration = time(source, &raw.duration, Duration::from_secs(1)..=MAX_DURATION)?;
    let edge_timing = settings::edge_timing(source, &raw.edge)?;
    let settle = match &raw.settle {
        Some(settle) => time(source, settle, Duration::from_secs(1)..=MAX_DURATION)?,
        None => bound(&edge_timing),
    };
    let (members, strangers, leaders) = settings::population(source, &raw.fleet, reading)?;
    let (kgcs, threshold) = settings::quorum(source, &raw.fleet)?;
    let census = Census { kgcs, leaders, edges: members + strangers };
    let seed = reading.seed.unwrap_or(raw.seed);
    let faults = links::read(source, &raw.links)?;
    let mut scripter = Scripter { source, census, duration, seed, actions: Vec::new(), said: 0 };
    scripter.beginning(&raw.fleet, members)?;
    for event in &raw.event {
        scripter.event(event)?;
    }
    let mut rng = rng_stream::generator(seed, RngStream::Planner);
    if let Some(table) = &raw.churn {
        let planned = churn::plan(source, table, scripter.limits(), &mut rng)?;
        scripter.extend(table.span(), planned)?;
    }
    let mut places = None;
    if let Some(table) = &raw.mobility {
        let (planned, flown) = mobility::plan(source, table, scripter.limits(), &mut rng)?;
        scripter.extend(table.span(), planned)?;
        places = Some(flown);
    }
    let mut script = scripter.actions;
    script.sort_by_key(|(at, _)| *at);
    let orders = script.iter().any(|(_, action)| matches!(action, Action::Order(_) | Action::Approve(_)));
    let one_token = settings::one_token(source, &raw.fleet, census, members)?;
    let title = settings::title(source, &raw.title)?;
    let admission = settings::admission(source, raw.admission.as_ref())?;
    let leader_timing = settings::leader_timing(source, &raw.leader, leaders)?;
    let radio = settings::radio(source, raw.radio.as_ref())?;
    let systems = u64::from(members) + u64::from(strangers) + u64::from(leaders);
    let mavlink = settings::mavlink(source, raw, systems, radio)?;
    let two_hops = settings::two_hops(source, raw.radio.as_ref(), mavlink.is_some())?;
    let expect = settings::expectations(source, &raw.expect, census, mavlink.is_some())?;
    let setup = Setup {
        seed,
        members,
        strangers,
        kgcs,
        threshold,
        orders,
        admission,
        one_token,
        leaders,
        strategy: raw.fleet.strategy,
        kem: raw.fleet.kem,
        shared_medium: raw.radio.is_some(),
        leader_timing,
        edge_timing,
        faults,
        air: Some(radio.air()),
        two_hops,
        mavlink,
        traced: true,
        recording: true,
        ..Setup::default()
    };
    Ok(Scenario {
        name: stem(source.file),
        title,
        about: raw.about.trim().to_owned(),
        setup,
        radio,
        script,
        places,
        duration,
        settle,
        expect,
    })
}

/// Limits of what a table plans.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScriptLimits {
    /// The nodes there are.
    pub(super) census: Census,
    /// Duration of the scenario.
    pub(super) duration: Duration,
    /// Number of actions that a table may still plan.
    pub(super) actions: usize,
}

/// Collects actions.
struct Scripter<'a> {
    source: &'a SourceText<'a>,
    census: Census,
    duration: Duration,
    seed: u64,
    actions: Vec<Timed>,
    /// Number of messages so far: gives every message a number of its own.
    said: u32,
}

impl Scripter<'_> {
    fn limits(&self) -> ScriptLimits {
        ScriptLimits { census: self.census, duration: self.duration, actions: self.room() }
    }

    /// Number of actions for which there is room.
    fn room(&self) -> usize {
        MAX_ACTIONS.saturating_sub(self.actions.len())
    }

    /// Refuses more actions than there is room for, before they are made: their number comes from the file.
    fn make_room(&self, place: Range<usize>, actions: u64) -> ScriptResult<()> {
        if actions > self.room() as u64 {
            return Err(self.source.at(place, too_many()));
        }
        Ok(())
    }

    /// Switches all nodes on, and makes the members join.
    fn beginning(&mut self, fleet: &format::ScenarioFleet, members: u32) -> ScriptResult<()> {
        let listed = |names: &Option<Names>| match names {
            None => Ok(BTreeSet::new()),
            Some(names) => self.census.nodes(self.source, names),
        };
        let (off, out) = (listed(&fleet.off)?, listed(&fleet.stay_out)?);
        let whole = Duration::ZERO..=self.duration;
        let time_or = |value: &Option<Spanned<format::DurationText>>, usual: Duration| {
            value.as_ref().map_or(Ok(usual), |value| time(self.source, value, whole.clone()))
        };
        let start_over = time_or(&fleet.start_over, Duration::ZERO)?;
        let at = time_or(&fleet.join_at, start_over + Duration::from_secs(2))?;
        let over = time_or(&fleet.join_over, Duration::from_secs(2))?;
        let nodes = self.census.index();
        let hubs = nodes.kgcs().chain(nodes.leaders());
        let edges = (0..self.census.edges).zip(spread(self.census.edges as usize, start_over));
        let everyone =
            hubs.map(|hub| (Duration::ZERO, hub)).chain(edges.map(|(edge, at)| (at, NodeId::Edge(edge))));
        let on = everyone.filter(|(_, node)| !off.contains(node)).map(|(at, node)| (at, Action::Start(node)));
        self.actions.extend(on);
        let joiners: Vec<u32> = (0..members)
            .filter(|edge| !out.contains(&NodeId::Edge(*edge)) && !off.contains(&NodeId::Edge(*edge)))
            .collect();
        for (edge, after) in joiners.iter().zip(spread(joiners.len(), over)) {
            self.actions.push((at + after, Action::Join(*edge)));
        }
        Ok(())
    }

    /// Actions that were planned elsewhere.
    fn extend(&mut self, place: Range<usize>, actions: Vec<Timed>) -> ScriptResult<()> {
        self.make_room(place, actions.len() as u64)?;
        self.actions.extend(actions);
        Ok(())
    }

    /// An `[[event]]`, as often as it repeats.
    fn event(&mut self, event: &Spanned<format::EventTable>) -> ScriptResult<()> {
        let table = event.get_ref();
        let at = time(self.source, &table.at, Duration::ZERO..=self.duration)?;
        let (every, times) = match &table.repeat {
            None => (Duration::ZERO, 1),
            Some(repeat) if repeat.get_ref().times == 0 => {
                return Err(self.source.at(repeat.span(), "repeats 0 times"));
            }
            Some(repeat) => {
                let Repeat { every, times } = repeat.get_ref();
                let shortest = if *times > 1 { SHORTEST_INTERVAL } else { Duration::ZERO };
                (time(self.source, every, shortest..=self.duration)?, *times)
            }
        };
        let over = table
            .over
            .as_ref()
            .map_or(Ok(Duration::ZERO), |over| time(self.source, over, Duration::ZERO..=self.duration))?;
        let last = every.checked_mul(times - 1).and_then(|last| last.checked_add(at + over));
        if last.is_none_or(|last| last > self.duration) {
            let what = format!("continues after the duration of {}", settings::shown(self.duration));
            return Err(self.source.at(table.repeat.as_ref().map_or(table.at.span(), Spanned::span), what));
        }
        for time in 0..times {
            let actions = self.actions_of(event)?;
            if time == 0 {
                self.make_room(event.span(), (actions.len() as u64).saturating_mul(times.into()))?;
            }
            let offsets: Vec<Duration> = spread(actions.len(), over).collect();
            let timed =
                actions.into_iter().zip(offsets).map(|(action, after)| (at + every * time + after, action));
            let timed = timed.collect();
            self.extend(event.span(), timed)?;
        }
        Ok(())
    }

    /// Actions of an event: exactly one kind, of one or many nodes.
    fn actions_of(&mut self, event: &Spanned<format::EventTable>) -> ScriptResult<Vec<Action>> {
        let table = event.get_ref();
        let found = [
            self.about_edges(table)?,
            self.about_nodes(table)?,
            self.about_links(table)?,
            self.about_adversary(table)?,
            self.about_kgcs(table)?,
            set(table.rekey.as_ref()).then(|| vec![Action::Rekey]),
            self.about_orders(table),
        ];
        let mut found: Vec<Vec<Action>> = found.into_iter().flatten().collect();
        match (found.pop(), found.is_empty(), count_actions(table)) {
            (Some(actions), true, 1) => Ok(actions),
            (None, ..) => {
                Err(self.source.at(event.span(), "does nothing: name an action, such as rekey = true"))
            }
            _ => Err(self.source.at(event.span(), "does several things: give each an event of its own")),
        }
    }

    fn about_edges(&self, table: &format::EventTable) -> ScriptResult<Option<Vec<Action>>> {
        if let Some(certify) = table.certify.as_ref().map(Spanned::get_ref) {
            let fields = settings::fields(self.source, certify)?;
            let edges = self.census.edges(self.source, &certify.edges)?;
            return Ok(Some(edges.into_iter().map(|edge| Action::Certify { edge, fields }).collect()));
        }
        let kinds = [
            (&table.join, Action::Join as fn(u32) -> Action),
            (&table.leave, Action::Leave),
            (&table.evict, Action::Evict),
            (&table.revoke, Action::Revoke),
            (&table.capture, Action::Capture),
            (&table.decertify, Action::Decertify),
            (&table.renew_kem, |edge| Action::RenewKem(Some(edge))),
        ];
        let Some((names, action)) = kinds.iter().find_map(|(names, action)| Some((names.as_ref()?, action)))
        else {
            return Ok(None);
        };
        Ok(Some(self.census.edges(self.source, names)?.into_iter().map(action).collect()))
    }

    fn about_nodes(&mut self, table: &format::EventTable) -> ScriptResult<Option<Vec<Action>>> {
        let nodes = |names: &Names| self.census.nodes(self.source, names);
        let actions = if let Some(names) = &table.start {
            nodes(names)?.into_iter().map(Action::Start).collect()
        } else if let Some(names) = &table.stop {
            nodes(names)?.into_iter().map(Action::Stop).collect()
        } else if let Some(crash) = table.crash.as_ref().map(Spanned::get_ref) {
            let down_for = time(self.source, &crash.down, Duration::ZERO..=MAX_DURATION)?;
            let one = |node| Action::Crash { node, after: crash.after, down_for };
            nodes(&crash.nodes)?.into_iter().map(one).collect()
        } else if let Some(skew) = table.skew.as_ref().map(Spanned::get_ref) {
            let one = |node| Action::Skew { node, seconds: skew.seconds };
            nodes(&skew.nodes)?.into_iter().map(one).collect()
        } else if let Some(disk) = table.disk.as_ref().map(Spanned::get_ref) {
            let state = disk_state(self.source, disk)?;
            nodes(&disk.nodes)?.into_iter().map(|node| Action::Disk(node, state)).collect()
        } else if let Some(talk) = table.talk.as_ref().map(Spanned::get_ref) {
            let speakers = nodes(&talk.nodes)?;
            let first = self.said;
            self.said += speakers.len() as u32;
            let numbered = speakers.into_iter().zip(first..);
            numbered.map(|(node, number)| Action::Talk { node, number, signed: talk.signed }).collect()
        } else {
            return Ok(None);
        };
        Ok(Some(actions))
    }

    fn about_links(&self, table: &format::EventTable) -> ScriptResult<Option<Vec<Action>>> {
        if let Some(faults) = &table.links {
            return Ok(Some(vec![Action::Links(links::read(self.source, faults.get_ref())?)]));
        }
        if let Some(of) = table.links_of.as_ref().map(Spanned::get_ref) {
            let faults =
                of.faults.as_ref().map(|faults| links::read(self.source, faults.get_ref())).transpose()?;
            let nodes = self.census.nodes(self.source, &of.nodes)?;
            return Ok(Some(nodes.into_iter().map(|node| Action::LinksOf(node, faults)).collect()));
        }
        if let Some(radio) = &table.radio {
            if let Some(spread) = &radio.get_ref().spread {
                return Err(self.source.at(spread.span(), "members stay where they are"));
            }
            let air = settings::radio(self.source, Some(radio))?.air();
            return Ok(Some(vec![Action::Radio(Box::new(air))]));
        }
        if let Some(part) = table.part.as_ref().map(Spanned::get_ref) {
            let these = self.census.nodes(self.source, &part.these)?;
            let others = match &part.from {
                Some(names) => NodeSet::Only(self.census.nodes(self.source, names)?),
                None => NodeSet::AllBut(these.clone()),
            };
            let make = if part.one_way { Partition::one_way } else { Partition::both_ways };
            return Ok(Some(vec![Action::Part(make(NodeSet::Only(these), others))]));
        }
        Ok(set(table.heal.as_ref()).then(|| vec![Action::Heal]))
    }

    fn about_kgcs(&self, table: &format::EventTable) -> ScriptResult<Option<Vec<Action>>> {
        let kinds = [
            (&table.lie, (|kgc| Action::Lie { kgc, lies: true }) as fn(KgcId) -> Action),
            (&table.repent, |kgc| Action::Lie { kgc, lies: false }),
            (&table.seize, Action::Seize),
            (&table.approve, Action::Approve),
        ];
        let Some((names, action)) = kinds.iter().find_map(|(names, action)| Some((names.as_ref()?, action)))
        else {
            return Ok(None);
        };
        Ok(Some(self.census.kgcs(self.source, names)?.into_iter().map(action).collect()))
    }

    fn about_orders(&mut self, table: &format::EventTable) -> Option<Vec<Action>> {
        set(table.order.as_ref()).then(|| {
            self.said += 1;
            vec![Action::Order(self.said - 1)]
        })
    }

    fn about_adversary(&self, table: &format::EventTable) -> ScriptResult<Option<Vec<Action>>> {
        if let Some(replay) = table.replay.as_ref().map(Spanned::get_ref) {
            let mut rng = rng_stream::generator(self.seed ^ self.actions.len() as u64, RngStream::Adversary);
            let nodes = self.census.nodes(self.source, &replay.nodes)?;
            let messages = (nodes.len() as u64).saturating_mul(replay.messages.into());
            self.make_room(table.replay.as_ref().map_or(0..0, Spanned::span), messages)?;
            let picks = nodes.into_iter().flat_map(|to| std::iter::repeat_n(to, replay.messages as usize));
            return Ok(Some(picks.map(|to| Action::Replay { pick: rng.gen_range(0..4096), to }).collect()));
        }
        let Some(usurp) = table.usurp.as_ref().map(Spanned::get_ref) else { return Ok(None) };
        let names = Spanned::new(usurp.edge.span(), vec![usurp.edge.clone()]);
        let edges = self.census.edges(self.source, &names)?;
        Ok(Some(edges.into_iter().map(|edge| Action::Usurp { edge, rounds: usurp.rounds }).collect()))
    }
}

fn disk_state(source: &SourceText<'_>, disk: &format::DiskTable) -> ScriptResult<DiskState> {
    match (*disk.state.get_ref(), &disk.writes) {
        (format::DiskWord::Sound, None) => Ok(DiskState::Sound),
        (format::DiskWord::Full, None) => Ok(DiskState::Full),
        (format::DiskWord::Failing, Some(writes)) if *writes.get_ref() > 0 => {
            Ok(DiskState::Failing(*writes.get_ref()))
        }
        (format::DiskWord::Failing, _) => {
            Err(source.at(disk.state.span(), "how many writes fail? say writes = 3"))
        }
        (_, Some(writes)) => Err(source.at(writes.span(), "only a failing disk counts its writes")),
    }
}

/// The refusal of a table that plans more actions than a file may ask for.
pub(super) fn too_many() -> String {
    format!("makes more than {MAX_ACTIONS} actions, the most of a file")
}

fn set(flag: Option<&Spanned<bool>>) -> bool {
    flag.is_some_and(|flag| *flag.get_ref())
}

/// Number of actions that an event names.
fn count_actions(table: &format::EventTable) -> usize {
    let named = [
        table.start.is_some(),
        table.stop.is_some(),
        table.crash.is_some(),
        table.join.is_some(),
        table.leave.is_some(),
        table.evict.is_some(),
        table.revoke.is_some(),
        table.capture.is_some(),
        table.certify.is_some(),
        table.decertify.is_some(),
        table.rekey.is_some(),
        table.renew_kem.is_some(),
        table.talk.is_some(),
        table.links.is_some(),
        table.links_of.is_some(),
        table.radio.is_some(),
        table.part.is_some(),
        table.heal.is_some(),
        table.skew.is_some(),
        table.disk.is_some(),
        table.replay.is_some(),
        table.usurp.is_some(),
        table.lie.is_some(),
        table.repent.is_some(),
        table.seize.is_some(),
        table.order.is_some(),
        table.approve.is_some(),
    ];
    named.into_iter().filter(|named| *named).count()
}

/// Spreads `count` moments evenly over a time, from its beginning.
fn spread(count: usize, over: Duration) -> impl Iterator<Item = Duration> {
    (0..count as u32).map(move |index| over * index / (count as u32).max(1))
}
