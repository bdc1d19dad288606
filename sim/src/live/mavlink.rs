//! The phase of MAVLink: telemetry of vehicles and commands of a ground station in the group's datagrams.
//!
//! Keys, signatures and the eviction are the live group's. The datagrams pass in a time of their own, which
//! stands still meanwhile, over a medium that loses, doubles and reorders. The ground station is the leader's;
//! a vehicle does not hear the others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use quiver_ainq::{EpochKeys, LEADER_SLOT, Slot, Suite};
use quiver_datagram::{Config, Datagrams, Event, Payload, Priority, SigningRequest};
use quiver_group::LeaderCommand;
use quiver_machine::{Either, Now};
use quiver_mavlink::message::{Severity, status_text};
use quiver_mavlink::{Frame, FrameBatch, MAX_NARROW_SYSTEM, MAX_NARROW_SYSTEM_IDS, Origin, batch};
use quiver_world::Invariant;
use quiver_world::formats::pcapng::Capture;
use quiver_world::run::{Phase, PhaseCosts};
use rand::Rng;
use rand_chacha::ChaCha20Rng;

use super::deployment::name;
use super::drone_name;
use super::features::{EdgeNode, LiveLeaderNode};
use super::node::LiveNode;
use super::phases::{PhaseRun, StepResult};
use crate::measure;
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// Time for which they fly; in the middle of it one is evicted.
const FLIGHT: Duration = Duration::from_secs(10);
/// Time from one of a vehicle's frames to the next: 18 in a second, 744 bytes with the text below.
const FRAME_EVERY: Duration = Duration::from_nanos(1_000_000_000 / 18);
/// Time from one command to the next, which all vehicles are sent, signed.
const COMMAND_EVERY: Duration = Duration::from_secs(1);
/// Resolution of the phase's time.
const TICK: Duration = Duration::from_millis(1);
/// Datagrams that the medium loses, and that it doubles, per cent.
const LOST: u32 = 20;
const DOUBLED: u32 = 5;
/// Milliseconds that a datagram takes; so later ones overtake it.
const DELAYS: std::ops::Range<u64> = 2..40;
/// Milliseconds within which members take the new key after the eviction.
const TAKES_KEY: std::ops::Range<u64> = 0..200;
/// Share of the vehicles that may be heard for the first time in the second half: one of so many.
const LATE: usize = 100;
/// Time for which no telemetry that arrives may fail to pass.
const LONGEST_GAP: Duration = Duration::from_millis(250);
/// The system id of the ground station.
const STATION: u32 = 255;
/// The most vehicles. Up to 250 have the system ids from 1 on; of more, all have ids above 255.
const MAX_VEHICLES: usize = 2_000;

/// Receiver of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Station,
    Vehicle(usize),
}

/// A datagram on its way: when it arrives, its number, where, what.
type Flying = (Duration, u64, To, Vec<u8>);

/// Port of all ends in a capture: that of the examples of carriers.
const CARRIER_PORT: u16 = 14_800;

/// The address of an end in a capture, where carriers are those for UDP: 10.0.0.1 of the station, from 10.0.1.1 on of vehicles.
fn address_of(end: To) -> SocketAddrV4 {
    let host = match end {
        To::Station => 1,
        // At most 2,000, of which each network of 254 hosts has its own third byte.
        To::Vehicle(index) => {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            ((index / 254 + 1) << 8).wrapping_add(index % 254 + 1)
        }
    };
    SocketAddrV4::new(Ipv4Addr::from((10_u32 << 24).wrapping_add(host)), CARRIER_PORT)
}

/// Datagrams on their way, by the time of their arrival.
struct LossyMedium {
    rng: ChaCha20Rng,
    /// Capture of all that is sent, if one is wanted.
    capture: Option<Capture>,
    flying: BinaryHeap<Reverse<Flying>>,
    number: u64,
    datagrams: u64,
    bytes: u64,
}

impl LossyMedium {
    /// Sends a datagram. Returns whether it will arrive.
    fn send(&mut self, now: Duration, from: To, to: To, datagram: &[u8]) -> bool {
        let lost = self.rng.gen_ratio(LOST, 100);
        if let Some(capture) = &mut self.capture {
            if lost {
                capture.comment("drop: the medium loses it".into());
            }
            capture.datagram(now, address_of(from), address_of(to), datagram);
        }
        if lost {
            return false;
        }
        let copies = 1 + u32::from(self.rng.gen_ratio(DOUBLED, 100));
        for _ in 0..copies {
            let at = now + Duration::from_millis(self.rng.gen_range(DELAYS));
            self.number += 1;
            self.flying.push(Reverse((at, self.number, to, datagram.to_vec())));
        }
        true
    }

    fn arrived(&mut self, now: Duration) -> Option<(To, Vec<u8>)> {
        self.flying.peek().filter(|Reverse((at, ..))| *at <= now)?;
        self.flying.pop().map(|Reverse((_, _, to, datagram))| (to, datagram))
    }
}

struct Vehicle<S: Suite> {
    drone: u32,
    slot: Slot,
    system: u32,
    datagrams: Datagrams<S>,
    next: Duration,
    frames: u32,
    /// Frames that arrived at the station or will, and when they were sent.
    arriving: BTreeMap<u32, Duration>,
    /// Commands received.
    commands: u32,
    /// The next key, and when the vehicle takes it.
    new_key: Option<(Duration, Box<EpochKeys<S>>)>,
}

/// A vehicle's frame: its text says whose it is, and which.
fn telemetry(drone: u32, number: u32, system: u32) -> Vec<u8> {
    let origin = Origin { system, component: 1, sequence: number.to_le_bytes()[0] };
    // 29 bytes of payload, 41 of a frame, 44 of one with a system id above 255.
    status_text(origin, Severity::Info, &format!("drone {drone:06} frame {number:09}"))
}

/// The system id of the first of so many vehicles; the others' follow.
const fn first_system(vehicles: usize) -> u32 {
    if vehicles > MAX_NARROW_SYSTEM_IDS { MAX_NARROW_SYSTEM + 1 } else { 1 }
}

/// All of a flight.
struct SimulatedFlight<S: Suite> {
    station: Datagrams<S>,
    vehicles: Vec<Vehicle<S>>,
    by_slot: BTreeMap<Slot, usize>,
    medium: LossyMedium,
    taken: BTreeSet<(usize, u32)>,
    /// Payloads that should not have been taken.
    wrong: Vec<String>,
    /// Questions for the group's machines.
    signatures: Vec<(To, SigningRequest)>,
    signers: Vec<(To, Event<S>)>,
    commands: u32,
    next_command: Duration,
    /// Time that sealing and opening took.
    computed: Duration,
    sealed: u64,
    opened: u64,
    evicted: Option<usize>,
}

impl<S: Suite> SimulatedFlight<S> {
    /// Carries out all that is due at this time.
    fn tick(&mut self, now: Duration) {
        let began = measure::now();
        for index in 0..self.vehicles.len() {
            self.send_telemetry(now, index);
        }
        if now >= self.next_command {
            self.next_command += COMMAND_EVERY;
            let origin = Origin { system: STATION, component: 1, sequence: 0 };
            let frame = status_text(origin, Severity::Notice, &format!("command {}", self.commands));
            self.commands += u32::from(send(&mut self.station, now, &frame, Priority::Command, true));
        }
        while let Some((to, datagram)) = self.medium.arrived(now) {
            self.opened += 1;
            match to {
                To::Station => self.station.handle_datagram(now, &datagram),
                To::Vehicle(index) => {
                    if let Some(vehicle) = self.vehicles.get_mut(index) {
                        vehicle.datagrams.handle_datagram(now, &datagram);
                    }
                }
            }
            self.take(to);
        }
        self.poll_station(now);
        for index in 0..self.vehicles.len() {
            self.poll_vehicle(now, index);
        }
        self.computed += began.elapsed();
    }

    fn send_telemetry(&mut self, now: Duration, index: usize) {
        let Some(vehicle) = self.vehicles.get_mut(index) else { return };
        if let Some((_, keys)) = vehicle.new_key.take_if(|(at, _)| *at <= now) {
            vehicle.datagrams.set_epoch(now, *keys, &mut self.medium.rng);
        }
        if now < vehicle.next {
            return;
        }
        vehicle.next += FRAME_EVERY;
        let frame = telemetry(vehicle.drone, vehicle.frames, vehicle.system);
        if !send(&mut vehicle.datagrams, now, &frame, Priority::Telemetry, false) {
            return;
        }
        let number = vehicle.frames;
        vehicle.frames += 1;
        while let Some(datagram) = {
            let before = vehicle.datagrams.counters().sent_payloads;
            let datagram = vehicle.datagrams.poll_datagram(now);
            datagram.map(|datagram| (datagram, vehicle.datagrams.counters().sent_payloads > before))
        } {
            let (datagram, is_payload) = datagram;
            let arrives = self.medium.send(now, To::Vehicle(index), To::Station, &datagram);
            if is_payload {
                self.sealed += 1;
                self.medium.datagrams += 1;
                self.medium.bytes += datagram.len() as u64;
                if arrives {
                    vehicle.arriving.insert(number, now);
                }
            }
        }
    }

    fn poll_station(&mut self, now: Duration) {
        if self.station.timeout().is_some_and(|at| at <= now) {
            self.station.handle_timeout(now);
        }
        self.take(To::Station);
        while let Some(datagram) = self.station.poll_datagram(now) {
            for index in 0..self.vehicles.len() {
                self.medium.send(now, To::Station, To::Vehicle(index), &datagram);
            }
        }
        self.take(To::Station);
    }

    fn poll_vehicle(&mut self, now: Duration, index: usize) {
        let Some(vehicle) = self.vehicles.get_mut(index) else { return };
        if vehicle.datagrams.timeout().is_some_and(|at| at <= now) {
            vehicle.datagrams.handle_timeout(now);
        }
        while let Some(datagram) = vehicle.datagrams.poll_datagram(now) {
            self.medium.send(now, To::Vehicle(index), To::Station, &datagram);
        }
        self.take(To::Vehicle(index));
    }

    /// Handles what a machine has to say.
    fn take(&mut self, who: To) {
        loop {
            let event = match who {
                To::Station => self.station.poll_event(),
                To::Vehicle(index) => {
                    self.vehicles.get_mut(index).and_then(|vehicle| vehicle.datagrams.poll_event())
                }
            };
            match (event, who) {
                (None, _) => return,
                (Some(Event::Received { slot, bytes, .. }), To::Station) => self.take_telemetry(slot, &bytes),
                (Some(Event::Received { slot, .. }), To::Vehicle(index)) => self.take_command(slot, index),
                (Some(Event::SignatureWanted(request)), _) => self.signatures.push((who, request)),
                (Some(event @ Event::SignerAnnounced { .. }), _) => self.signers.push((who, event)),
                // Some may hear of a new epoch before they have it.
                (Some(Event::EpochWanted), _) => {}
                (Some(event), _) => self.wrong.push(format!("{who:?}: {event:?}")),
            }
        }
    }

    fn take_telemetry(&mut self, slot: Slot, bytes: &[u8]) {
        let Some(index) = self.by_slot.get(&slot).copied() else {
            return self.wrong.push(format!("telemetry of slot {slot}, which is no vehicle's"));
        };
        let Some(vehicle) = self.vehicles.get(index) else { return };
        let frames = batch::decode(bytes, vehicle.system).unwrap_or_default();
        for frame in &frames {
            let text = Frame::parse(frame)
                .ok()
                .and_then(|frame| String::from_utf8(frame.payload().get(1..)?.to_vec()).ok());
            let number = text.as_deref().and_then(|text| text.rsplit(' ').next()?.parse().ok());
            let Some(number) =
                number.filter(|number| *frame == telemetry(vehicle.drone, *number, vehicle.system))
            else {
                self.wrong.push(format!("a frame that drone {} did not send", vehicle.drone));
                continue;
            };
            if !self.taken.insert((index, number)) {
                self.wrong.push(format!("frame {number} of drone {} twice", vehicle.drone));
            }
            if self.evicted == Some(index) {
                self.wrong.push(format!("frame {number} of drone {}, which is evicted", vehicle.drone));
            }
        }
    }

    fn take_command(&mut self, slot: Slot, index: usize) {
        let Some(vehicle) = self.vehicles.get_mut(index) else { return };
        vehicle.commands += 1;
        if slot != LEADER_SLOT {
            self.wrong.push(format!("drone {}: a command of slot {slot}", vehicle.drone));
        }
        if self.evicted == Some(index) {
            self.wrong.push(format!("drone {} reads a command, and is evicted", vehicle.drone));
        }
    }

    /// Vehicles of which no frame was taken that was sent within this time, without the evicted one.
    fn unheard(&self, until: Duration) -> usize {
        self.others().filter(|(index, vehicle)| !self.is_heard(*index, vehicle, until)).count()
    }

    fn others(&self) -> impl Iterator<Item = (usize, &Vehicle<S>)> {
        self.vehicles.iter().enumerate().filter(|(index, _)| self.evicted != Some(*index))
    }

    fn is_heard(&self, index: usize, vehicle: &Vehicle<S>, until: Duration) -> bool {
        let sent = vehicle.arriving.iter().take_while(|(_, at)| **at < until);
        sent.map(|(number, _)| number).any(|number| self.taken.contains(&(index, *number)))
    }

    /// Frames sent since then that arrived and were not taken, and the longest time from the first to the last of
    /// them without one between that was. Of vehicles that the station had heard by then: of those whose announcements the
    /// medium lost it hears nothing until they answer its questions.
    fn missed(&self, from: Duration) -> (usize, Duration) {
        let (mut missed, mut longest) = (0, Duration::ZERO);
        for (index, vehicle) in self.others().filter(|(index, vehicle)| self.is_heard(*index, vehicle, from))
        {
            let mut first = None;
            for (number, at) in vehicle.arriving.iter().filter(|(_, at)| **at >= from) {
                if self.taken.contains(&(index, *number)) {
                    first = None;
                } else {
                    missed += 1;
                    longest = longest.max(at.saturating_sub(*first.get_or_insert(*at)));
                }
            }
        }
        (missed, longest)
    }
}

/// Sends a frame. Returns whether the machine took it.
fn send<S: Suite>(
    datagrams: &mut Datagrams<S>,
    now: Duration,
    frame: &[u8],
    priority: Priority,
    sign: bool,
) -> bool {
    let mut batch = FrameBatch::new();
    let frame = Frame::parse(frame).ok();
    let fits = frame.is_some_and(|frame| batch.push(frame, 300));
    fits && datagrams.send(now, Payload { bytes: batch.take(), priority, sign }).is_ok()
}

/// Lets up to 2,000 members send telemetry to the ground station; halfway one is evicted.
pub(super) async fn fly<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    let drones: Vec<u32> = run.members.iter().copied().take(MAX_VEHICLES).collect();
    let mut flight = take_off(run, &drones).await?;
    let (mark, half) = (run.mark(), FLIGHT / 2);
    fly_until(run, &mut flight, Duration::ZERO, half).await?;
    let evicted = evict_vehicle(run, &mut flight, half).await?;
    fly_until(run, &mut flight, half, FLIGHT).await?;
    run.world.capture = flight.medium.capture.take();

    let (arrived, frames) = (
        flight.vehicles.iter().map(|vehicle| vehicle.arriving.len()).sum::<usize>(),
        flight.vehicles.iter().map(|vehicle| vehicle.frames as usize).sum::<usize>(),
    );
    // Before, the station did not know all senders yet.
    let (missed, gap) = flight.missed(half - TICK * 50);
    let passed = flight.taken.len();
    run.checker.after(Phase::Mavlink.name());
    run.checker.that(Invariant::Delivery, flight.wrong.is_empty(), || {
        format!("datagrams passed that should not have: {}", flight.wrong.join("; "))
    });
    run.checker.that(Invariant::Delivery, gap <= LONGEST_GAP && passed > 0, || {
        format!(
            "after the eviction telemetry that arrived did not pass for {} ms ({missed} frames)",
            gap.as_millis()
        )
    });
    let unheard = flight.unheard(FLIGHT);
    run.checker
        .that(Invariant::Delivery, unheard == 0, || format!("no telemetry of {unheard} vehicles passed"));
    let late = flight.unheard(half);
    run.checker.that(Invariant::Delivery, late * LATE <= drones.len(), || {
        format!("no telemetry of {late} vehicles passed within {} s", half.as_secs())
    });
    let deaf = flight.vehicles.iter().filter(|vehicle| vehicle.commands == 0).count();
    run.checker.that(Invariant::Delivery, deaf == 0, || format!("{deaf} vehicles received no command"));
    let on_air = flight.medium.bytes as f64 / flight.medium.datagrams.max(1) as f64;
    let each = flight.computed.as_secs_f64() * 1e6 / (flight.sealed + flight.opened).max(1) as f64;
    let first = first_system(drones.len());
    let frame_len = telemetry(0, 0, first).len();
    run.world.progress.note(&format!(
        "MAVLink: {frames} frames of {frame_len} bytes from system {first} on, {on_air:.1} bytes each as datagrams; \
         {arrived} arrived over a medium that \
         loses {LOST} %, {passed} passed; {late} vehicles were heard after {} s only; drone {evicted} was \
         evicted, and others' telemetry missing for at most {} ms; \
         {each:.1} µs to seal or open one",
        half.as_secs(),
        gap.as_millis()
    ));
    let operation = PhaseCosts {
        detail: format!("{} vehicles", drones.len()),
        messages: Some(flight.medium.datagrams),
        air_bytes: Some(flight.medium.bytes),
        began: run.since_start(mark.at),
        cpu: Some(measure::process_cpu().saturating_sub(mark.cpu)),
        ..PhaseCosts::new(Phase::Mavlink, drones.len(), mark.at.elapsed())
    };
    run.add_operation(operation);
    Ok(())
}

async fn take_off<S: Suite>(run: &mut PhaseRun<'_, S>, drones: &[u32]) -> StepResult<SimulatedFlight<S>> {
    let mut rng = rng_stream::generator(run.world.plan.seed, RngStream::Choices, 1, 0);
    let mut capture = run.world.plan.capture.then(|| Capture::of_datagrams("datagrams"));
    let epoch = run.world.event_log().newest();
    if let (Some(capture), Some(epoch)) = (&mut capture, epoch) {
        capture.comment(format!("epoch {epoch}"));
    }
    let deployment = run.world.setting.deployment.clone();
    let heard = Config { max_senders: MAX_VEHICLES + 1, ..Config::default() };
    let mut station = Datagrams::new(heard, deployment.clone());
    station.set_epoch(Duration::ZERO, station_keys(run).await?, &mut rng);
    let mut vehicles = Vec::new();
    for (system, drone) in (first_system(drones.len())..).zip(drones) {
        let keys = vehicle_keys(run, *drone).await?;
        let mut datagrams = Datagrams::new(Config::default(), deployment.clone());
        let slot = keys.slot;
        datagrams.set_epoch(Duration::ZERO, keys, &mut rng);
        let next = Duration::from_millis(rng.gen_range(0..55));
        vehicles.push(Vehicle {
            drone: *drone,
            slot,
            system,
            datagrams,
            next,
            frames: 0,
            arriving: BTreeMap::new(),
            commands: 0,
            new_key: None,
        });
    }
    Ok(SimulatedFlight {
        station,
        by_slot: vehicles.iter().enumerate().map(|(index, vehicle)| (vehicle.slot, index)).collect(),
        vehicles,
        medium: LossyMedium { rng, capture, flying: BinaryHeap::new(), number: 0, datagrams: 0, bytes: 0 },
        taken: BTreeSet::new(),
        wrong: Vec::new(),
        signatures: Vec::new(),
        signers: Vec::new(),
        commands: 0,
        next_command: COMMAND_EVERY / 2,
        computed: Duration::ZERO,
        sealed: 0,
        opened: 0,
        evicted: None,
    })
}

async fn fly_until<S: Suite>(
    run: &PhaseRun<'_, S>,
    flight: &mut SimulatedFlight<S>,
    from: Duration,
    until: Duration,
) -> StepResult {
    let step = run.world.progress.step(Phase::Mavlink.name(), FLIGHT.as_secs() as usize);
    let mut now = from;
    while now < until {
        now += TICK;
        flight.tick(now);
        answer(run, flight, now).await?;
        step.done(now.as_secs() as usize);
    }
    Ok(())
}

/// Lets the group's machines answer what those of datagrams ask.
async fn answer<S: Suite>(
    run: &PhaseRun<'_, S>,
    flight: &mut SimulatedFlight<S>,
    now: Duration,
) -> StepResult {
    for (who, SigningRequest { id, statement }) in std::mem::take(&mut flight.signatures) {
        let mut rng = rng_stream::generator(run.world.plan.seed, RngStream::Choices, 2, 0);
        rng.set_stream(id);
        match who {
            To::Station => {
                let sign = move |leader: &LiveLeaderNode<S>| leader.sign_datagram(&statement, &mut rng);
                if let Some(signature) = run.world.leader.inspect(sign).await? {
                    flight.station.provide_signature(now, id, &signature);
                }
            }
            To::Vehicle(index) => {
                let Some(vehicle) = flight.vehicles.get_mut(index) else { continue };
                let signature = vehicle_node(run, vehicle.drone)?
                    .inspect(move |edge| edge.named()?.sign_datagram(&statement, &mut rng))
                    .await?;
                if let Some(signature) = signature {
                    vehicle.datagrams.provide_signature(now, id, &signature);
                }
            }
        }
    }
    for (who, event) in std::mem::take(&mut flight.signers) {
        let Event::SignerAnnounced { slot, drone } = event else { continue };
        let (handle, at) = (drone.handle(), clock());
        match who {
            To::Station => {
                let may =
                    move |leader: &LiveLeaderNode<S>| leader.may_sign_datagrams(at, slot, &drone).is_ok();
                if run.world.leader.inspect(may).await? {
                    flight.station.allow_signer(now, slot, &handle);
                }
            }
            To::Vehicle(index) => {
                let Some(vehicle) = flight.vehicles.get_mut(index) else { continue };
                let may = move |edge: &EdgeNode<S>| {
                    edge.named().is_some_and(|edge| edge.may_sign_datagrams(at, slot, &drone).is_ok())
                };
                if vehicle_node(run, vehicle.drone)?.inspect(may).await? {
                    vehicle.datagrams.allow_signer(now, slot, &handle);
                }
            }
        }
    }
    Ok(())
}

/// Evicts a vehicle and gives the others the new key, each when it may have it.
async fn evict_vehicle<S: Suite>(
    run: &mut PhaseRun<'_, S>,
    flight: &mut SimulatedFlight<S>,
    now: Duration,
) -> StepResult<u32> {
    let index = run.rng.gen_range(0..flight.vehicles.len());
    let Some(drone) = flight.vehicles.get(index).map(|vehicle| vehicle.drone) else {
        return Ok(0);
    };
    run.choices.push(drone);
    let mark = run.mark();
    run.members.remove(&drone);
    run.evicted.insert(drone);
    run.expect_newer_key();
    let evict = LeaderCommand::Evict(name(&drone_name(drone))?);
    run.world.leader.command(Either::Left(evict.into())).await?;
    run.synced(Phase::Evict, "1".into(), &mark, &BTreeSet::from([drone])).await?;
    flight.station.set_epoch(now, station_keys(run).await?, &mut flight.medium.rng);
    flight.evicted = Some(index);
    let epoch = run.world.event_log().newest();
    if let (Some(capture), Some(epoch)) = (&mut flight.medium.capture, epoch) {
        capture.comment(format!("event: {} is evicted", drone_name(drone)));
        capture.comment(format!("epoch {epoch}"));
    }
    for (number, vehicle) in flight.vehicles.iter_mut().enumerate() {
        // Captured, it goes on with the key that it has.
        if number != index {
            let at = now + Duration::from_millis(flight.medium.rng.gen_range(TAKES_KEY));
            vehicle.new_key = Some((at, Box::new(vehicle_keys(run, vehicle.drone).await?)));
        }
    }
    Ok(drone)
}

fn vehicle_node<'r, S: Suite>(run: &'r PhaseRun<'_, S>, drone: u32) -> Result<&'r LiveNode<EdgeNode<S>>> {
    let missing = || SimError::Stopped { who: drone_name(drone) };
    run.world.swarm.here()?.get(drone as usize).ok_or_else(missing)?.node()
}

async fn station_keys<S: Suite>(run: &PhaseRun<'_, S>) -> Result<EpochKeys<S>> {
    let now = clock();
    let keys = run.world.leader.inspect(move |leader| leader.epoch_keys(now)).await?;
    keys.ok_or_else(|| SimError::Usage("the leader holds no key for datagrams".into()))
}

async fn vehicle_keys<S: Suite>(run: &PhaseRun<'_, S>, drone: u32) -> Result<EpochKeys<S>> {
    let now = clock();
    let keys = vehicle_node(run, drone)?.inspect(move |edge| edge.named()?.epoch_keys(now)).await?;
    keys.ok_or_else(|| SimError::Usage(format!("drone {drone} holds no key for datagrams")))
}

/// The machines' clock.
fn clock() -> Now {
    let since = measure::wall_clock().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Now { monotonic: since, unix: since.as_secs() }
}
