//! The settings of a scenario: nodes, group size, timing, radio, duration.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use quiver_group::edge::EdgeTiming;
use quiver_group::leader::LeaderTiming;
use quiver_scenario_format::{self as format, DurationText};
use toml::Spanned;

use super::error::SourceText;
use super::expect::ExpectedTelemetry;
use super::names::Census;
use super::{Expectations, RadioPlan, ReadOptions, ScenarioError, links};
use crate::admission::{CertifiedFields, FENCE, MAX_PERIOD, MIN_PERIOD, Rules, check};
use crate::boards::Repeats;
use crate::mavlink::stations::MAX_STATIONS;
use crate::quorum::master_key::check_quorum;
use crate::radio::cycles::Arithmetic;
use crate::radio::{Cast, Preset};
use crate::{MavlinkSetup, TwoHops};

/// The most members a group may have, and leaders a world may have.
const MAX_MEMBERS: u64 = 1 << 20;
const MAX_LEADERS: u64 = 16;

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Default silence of an active leader before a deputy takes over.
const SILENCE: Duration = Duration::from_secs(10);

type SettingsResult<T> = Result<T, ScenarioError>;

/// The title, which must not be empty.
pub(super) fn title(source: &SourceText<'_>, title: &Spanned<String>) -> SettingsResult<String> {
    match title.get_ref().trim() {
        "" => Err(source.at(title.span(), "is empty")),
        text => Ok(text.to_owned()),
    }
}

/// Numbers of members, strangers and leaders, if the machine can carry them.
pub(super) fn population(
    source: &SourceText<'_>,
    fleet: &format::ScenarioFleet,
    reading: ReadOptions,
) -> SettingsResult<(u32, u32, u16)> {
    let within = |value: &Spanned<u64>, bounds: Range<u64>| match *value.get_ref() {
        count if bounds.contains(&count) => Ok(count),
        count => {
            Err(source.at(value.span(), format!("{count} is not in {} to {}", bounds.start, bounds.end - 1)))
        }
    };
    let members = within(&fleet.members, 1..MAX_MEMBERS + 1)?;
    let strangers = fleet.strangers.as_ref().map_or(Ok(0), |value| within(value, 0..MAX_MEMBERS + 1))?;
    let leaders = fleet.leaders.as_ref().map_or(Ok(1), |value| within(value, 1..MAX_LEADERS + 1))?;
    let needed = (members + strangers) * (BYTES_PER_EDGE + leaders * BYTES_PER_LINK);
    if let Some(memory) = reading.memory.filter(|memory| needed > *memory) {
        let what = format!(
            "{} drones need about {} MB of memory; there are {} MB",
            members + strangers,
            needed >> 20,
            memory >> 20
        );
        return Err(source.at(fleet.members.span(), what));
    }
    Ok((members as u32, strangers as u32, leaders as u16))
}

/// Number of KGCs, and their threshold.
pub(super) fn quorum(source: &SourceText<'_>, fleet: &format::ScenarioFleet) -> SettingsResult<(u16, u16)> {
    let kgcs = fleet.kgcs.as_ref().map_or(1, |kgcs| *kgcs.get_ref());
    let threshold = fleet.threshold.as_ref().map_or(kgcs / 2 + 1, |threshold| *threshold.get_ref());
    let span = [&fleet.threshold, &fleet.kgcs].into_iter().flatten().next().map(Spanned::span);
    match (check_quorum(kgcs, threshold), span) {
        (Err(what), Some(span)) => Err(source.at(span, what)),
        _ => Ok((kgcs, threshold)),
    }
}

/// The strangers that race for one token.
pub(super) fn one_token(
    source: &SourceText<'_>,
    fleet: &format::ScenarioFleet,
    census: Census,
    members: u32,
) -> SettingsResult<Vec<u32>> {
    let Some(names) = &fleet.one_token else { return Ok(Vec::new()) };
    let edges = census.edges(source, names)?;
    match edges.first() {
        Some(first) if *first >= members => Ok(edges.into_iter().collect()),
        _ => Err(source.at(
            names.span(),
            format!("only strangers race for one token: they are numbered from {members}"),
        )),
    }
}

/// Memory of a drone and its place in the tables, rounded up.
const BYTES_PER_EDGE: u64 = 6 << 10;
/// Memory of a drone at each leader: its record, keys and link.
const BYTES_PER_LINK: u64 = 1 << 10;

/// A length of time within bounds.
pub(super) fn time(
    source: &SourceText<'_>,
    span: &Spanned<DurationText>,
    bounds: RangeInclusive<Duration>,
) -> SettingsResult<Duration> {
    let DurationText(time) = *span.get_ref();
    if bounds.contains(&time) {
        return Ok(time);
    }
    Err(source.at(
        span.span(),
        format!("{} is not in {} to {}", shown(time), shown(*bounds.start()), shown(*bounds.end())),
    ))
}

/// A length of time as people write it, with days as the largest unit: months and years have no fixed length.
pub(super) fn shown(time: Duration) -> String {
    let days = time.as_secs() / DAY;
    let rest = Duration::new(time.as_secs() % DAY, time.subsec_nanos());
    let days = match days {
        0 => return humantime::format_duration(rest).to_string(),
        1 => "1day".into(),
        days => format!("{days}days"),
    };
    if rest.is_zero() { days } else { format!("{days} {}", humantime::format_duration(rest)) }
}

/// A length of time from a millisecond to a day, if the file gives one.
fn set(
    source: &SourceText<'_>,
    span: &Option<Spanned<DurationText>>,
    timing: &mut Duration,
) -> SettingsResult<()> {
    if let Some(span) = span {
        *timing = time(source, span, Duration::from_millis(1)..=Duration::from_secs(86_400))?;
    }
    Ok(())
}

/// Timing of leaders; a single leader waits for no other.
pub(super) fn leader_timing(
    source: &SourceText<'_>,
    table: &format::LeaderTable,
    leaders: u16,
) -> SettingsResult<LeaderTiming> {
    let mut timing = LeaderTiming::default();
    set(source, &table.validity, &mut timing.validity)?;
    set(source, &table.batching, &mut timing.batching)?;
    set(source, &table.batching_max, &mut timing.batching_max)?;
    set(source, &table.resend, &mut timing.resend)?;
    set(source, &table.challenge, &mut timing.challenge)?;
    set(source, &table.absence, &mut timing.absence)?;
    let mut silence = SILENCE;
    set(source, &table.silence, &mut silence)?;
    timing.silence = (leaders > 1).then_some(silence);
    Ok(timing)
}

/// Timing of edges.
pub(super) fn edge_timing(source: &SourceText<'_>, table: &format::EdgeTable) -> SettingsResult<EdgeTiming> {
    let mut timing = EdgeTiming::default();
    set(source, &table.retry, &mut timing.retry)?;
    set(source, &table.retry_max, &mut timing.retry_max)?;
    set(source, &table.admission, &mut timing.admission)?;
    set(source, &table.overlap, &mut timing.overlap)?;
    Ok(timing)
}

/// Reads the radio over which they talk.
pub(super) fn radio(
    source: &SourceText<'_>,
    table: Option<&Spanned<format::RadioTable>>,
) -> SettingsResult<RadioPlan> {
    let Some(table) = table.map(Spanned::get_ref) else {
        return Ok(RadioPlan { rounds: 1, ..RadioPlan::default() });
    };
    let preset: Preset =
        table.preset.get_ref().parse().map_err(|error| source.at(table.preset.span(), format!("{error}")))?;
    let rounds = match table.rounds.as_ref().map(|rounds| (rounds, *rounds.get_ref())) {
        None => 1,
        Some((_, rounds @ 1..=16)) => rounds,
        Some((place, rounds)) => return Err(source.at(place.span(), format!("{rounds} is not in 1 to 16"))),
    };
    let loss = links::radio_loss(source, table)?;
    let arithmetic = match table.arithmetic {
        format::ArithmeticWord::Portable => Arithmetic::Portable,
        format::ArithmeticWord::Assembly => Arithmetic::Assembly,
    };
    let coding = table.coding.unwrap_or(true);
    Ok(RadioPlan { preset, loss, rounds, coding, ignore_duty_cycle: table.ignore_duty_cycle, arithmetic })
}

/// Members out of the leader's range.
pub(super) fn two_hops(
    source: &SourceText<'_>,
    table: Option<&Spanned<format::RadioTable>>,
    telemetry: bool,
) -> SettingsResult<Option<TwoHops>> {
    let Some(radio) = table.map(Spanned::get_ref) else { return Ok(None) };
    let Some(spread) = &radio.spread else {
        return match &radio.repeats {
            Some(repeats) => Err(source.at(repeats.span(), "nobody is out of range without `spread`")),
            None => Ok(None),
        };
    };
    if telemetry {
        return Err(source.at(spread.span(), "nobody passes telemetry on to members out of range"));
    }
    let repeats = radio.repeats.as_ref().map(|table| {
        Repeats::read(*table.get_ref()).map_err(|error| source.at(table.span(), error.to_string()))
    });
    match *spread.get_ref() {
        ranges if (1.0..=2.0).contains(&ranges) => {
            Ok(Some(TwoHops { spread: ranges, repeats: repeats.transpose()?, hostile: radio.hostile }))
        }
        ranges => Err(source.at(spread.span(), format!("{ranges} is not in 1 to 2"))),
    }
}

/// The shortest and the longest time from one frame to the next.
const FRAMES_PER_SECOND: RangeInclusive<f64> = 0.01..=1_000.0;
/// Most frames of a stream before it begins again.
const MAX_FRAMES: usize = 64;
/// Bytes that a datagram of a lone frame may have more than the frame: 14 of header and tag, less 3.
const AROUND_FRAME: usize = 11;

/// Telemetry of the drones: of vehicles with names and system ids, over a radio whose frames take theirs.
pub(super) fn mavlink(
    source: &SourceText<'_>,
    raw: &format::File,
    systems: u64,
    radio: RadioPlan,
) -> SettingsResult<Option<MavlinkSetup>> {
    let Some(spanned) = &raw.mavlink else { return Ok(None) };
    let table = spanned.get_ref();
    if systems > MAX_STATIONS as u64 {
        let what = format!("{systems} edges and leaders: MAVLink has {MAX_STATIONS} system ids");
        return Err(source.at(spanned.span(), what));
    }
    if raw.admission.is_some() {
        return Err(source.at(spanned.span(), "drones that join anonymously have no system ids"));
    }
    let mut setup = MavlinkSetup::default();
    if let Some(rate) = &table.frames_per_second {
        let frames = *rate.get_ref();
        if !FRAMES_PER_SECOND.contains(&frames) {
            return Err(source.at(rate.span(), format!("{frames} is not in 0.01 to 1000")));
        }
        setup.frame_every = Duration::from_secs_f64(1.0 / frames);
    }
    if let Some(bytes) = &table.frame_bytes {
        let lens = bytes.get_ref();
        let (least, most) = (MavlinkSetup::MIN_FRAME, MavlinkSetup::MAX_FRAME);
        if lens.is_empty() || lens.len() > MAX_FRAMES || !lens.iter().all(|len| (least..=most).contains(len))
        {
            let what = format!("are not 1 to {MAX_FRAMES} lengths from {least} to {most}");
            return Err(source.at(bytes.span(), what));
        }
        setup.frame_bytes.clone_from(lens);
    }
    let (capacity, longest) = (
        radio.preset.profile().capacity(Cast::Broadcast).0,
        setup.frame_bytes.iter().copied().max().unwrap_or_default(),
    );
    if capacity < longest + AROUND_FRAME {
        let what = format!(
            "{} carries {capacity} bytes in a frame; the longest of these in a datagram has {}",
            radio.preset,
            longest + AROUND_FRAME
        );
        let place = table.frame_bytes.as_ref().map_or(spanned.span(), Spanned::span);
        return Err(source.at(place, what));
    }
    setup.bit_rate = match table.bit_rate.as_ref().map(|rate| (rate, *rate.get_ref())) {
        None => None,
        Some((_, rate @ 100..=1_000_000_000)) => Some(rate),
        Some((place, rate)) => {
            return Err(source.at(place.span(), format!("{rate} is not in 100 to 1000000000")));
        }
    };
    Ok(Some(setup))
}

/// Bounds of what becomes of telemetry.
fn expected_telemetry(
    source: &SourceText<'_>,
    table: &format::ExpectMavlink,
) -> SettingsResult<ExpectedTelemetry> {
    let share = |value: &Option<Spanned<f64>>| {
        value.as_ref().map(|value| links::probability(source, value)).transpose()
    };
    let bounds = Duration::from_millis(1)..=Duration::from_secs(86_400);
    let outage = table.max_outage_at_removal.as_ref().map(|span| time(source, span, bounds)).transpose()?;
    Ok(ExpectedTelemetry {
        min_delivered: share(&table.min_delivered)?,
        max_unopened: table.max_unopened,
        max_unopened_at_removal: share(&table.max_unopened_at_removal)?,
        max_outage_at_removal: outage,
        max_shaped: table.max_shaped,
        max_added_bytes: table.max_added_bytes,
        max_air: share(&table.max_air)?,
        min_hostile: table.min_hostile,
        min_refused: table.min_refused,
    })
}

/// Policy and terms of anonymous admission.
pub(super) fn admission(
    source: &SourceText<'_>,
    table: Option<&Spanned<format::AdmissionTable>>,
) -> SettingsResult<Option<Rules>> {
    let Some(table) = table.map(Spanned::get_ref) else { return Ok(None) };
    let mut rules = Rules::of(FENCE);
    if let Some(policy) = &table.policy {
        check(policy.get_ref()).map_err(|error| source.at(policy.span(), error.to_string()))?;
        rules.policy.clone_from(policy.get_ref());
    }
    if let Some(period) = &table.period {
        rules.period = time(source, period, MIN_PERIOD..=MAX_PERIOD)?;
    }
    rules.answers = table.answers.unwrap_or(rules.answers);
    Ok(Some(rules))
}

/// Certified fields.
pub(super) fn fields(source: &SourceText<'_>, certify: &format::Certify) -> SettingsResult<CertifiedFields> {
    let format::Certify { x, y, battery, .. } = certify;
    match *battery.get_ref() {
        battery @ 0..=100 => Ok(CertifiedFields { x: *x, y: *y, battery }),
        other => Err(source.at(battery.span(), format!("{other} is not in 0 to 100"))),
    }
}

/// Expectations of the end.
pub(super) fn expectations(
    source: &SourceText<'_>,
    table: &format::Expect,
    census: Census,
    has_mavlink: bool,
) -> SettingsResult<Expectations> {
    let outside = table.outside.as_ref().map_or(Ok(BTreeSet::new()), |names| census.edges(source, names))?;
    let liars = table.liars.as_ref().map(|names| match names.get_ref().is_empty() {
        true => Ok(BTreeSet::new()),
        false => census.kgcs(source, names),
    });
    let mavlink = match &table.mavlink {
        None => None,
        Some(bounds) if !has_mavlink => {
            return Err(source.at(bounds.span(), "there is no table [mavlink]"));
        }
        Some(bounds) => Some(expected_telemetry(source, bounds.get_ref())?),
    };
    Ok(Expectations {
        mavlink,
        members: table.members,
        enrolled: table.enrolled,
        opened: table.opened,
        liars: liars.transpose()?,
        outside,
        min_terms: table.min_terms,
        min_epochs: table.min_epochs,
        min_admitted: table.min_admitted,
        min_crashes: table.min_crashes,
        min_stalls: table.min_stalls,
        min_lost: table.min_lost,
        min_blamed: table.min_blamed,
    })
}
