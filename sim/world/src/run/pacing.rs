//! Computes how fast a radio lets drones enrol and join, and the timing that many drones on it need.
//!
//! All drones of a large group at once would ask for far more of a channel than it has: their messages queue
//! for longer than they wait for answers, so they ask again, and the queue grows. Operators enrol drones one
//! after the other, and so does a run over a radio: the next one begins when the channel has had time for the
//! one before, and half as long again. A drone that must ask again waits for a time in which the channel
//! could have served everybody.

use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_group::edge::EdgeTiming;
use quiver_group::leader::LeaderTiming;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use super::RunPlan;
use crate::AirSetup;
use crate::radio::{Cast, Preset};

/// Kind of a message by its sender; its bytes over ristretto255 as measured.
#[derive(Clone, Copy, Debug)]
enum PacedMessage {
    Drone(usize),
    Gateway(usize),
}
use PacedMessage::{Drone, Gateway};

/// Hello, cookie, request, sealed key.
const ENROLMENT: [PacedMessage; 4] = [Drone(30), Gateway(72), Drone(360), Gateway(350)];
/// Hello, challenge, request, welcome, acknowledgement.
const JOIN: [PacedMessage; 5] = [Drone(210), Gateway(230), Drone(450), Gateway(450), Drone(54)];
/// A member's entry and its acknowledgement.
const FOLLOWING: [PacedMessage; 2] = [Gateway(455), Drone(54)];
/// Exchange after a restart of the leader: question, answer, entry of the opening, acknowledgement, new spare
/// point, receipt, path.
const OPENING: [PacedMessage; 7] =
    [Drone(107), Gateway(560), Gateway(520), Drone(54), Drone(130), Gateway(50), Gateway(900)];
/// The same under a tree, whose wraps are broadcast: question, acknowledgement, new spare point, receipt.
const OPENING_BY_WRAPS: [PacedMessage; 4] = [Drone(107), Drone(54), Drone(130), Gateway(50)];
/// Wraps of an opening for each drone: one and a half, and their share of what is beside them.
const OPENING_WRAPS: usize = 54;
/// Drones beyond which a leader opens no term by wraps.
const MOST_BY_WRAPS: u32 = 20_000;
/// A header, and what one leaver adds to it per level of a tree.
const HEADER: usize = 400;
const WRAPS: usize = 32;

/// Number of simulated sendings of a message for its mean.
const DRAWS: u32 = 32;
/// Validity of a cookie or a leader's challenge: a request that takes longer is refused.
const CHALLENGE: Duration = Duration::from_secs(60);
/// Limit of the time in which every member must be able to follow a re-key, beyond which the radio is of no
/// use for the group.
const LONGEST_REKEY: Duration = Duration::from_secs(3_600);
/// The least virtual time until a phase is given up.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Times of the exchanges of one drone over a radio: of the channel, or of the sender that must keep silent
/// most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exchanges {
    enrolment: Duration,
    join: Duration,
    following: Duration,
    opening: Duration,
    /// Time from the hello until the request has arrived.
    enrolment_request: Duration,
    join_request: Duration,
    /// Broadcast for all together: the wraps of a tree when drones leave.
    broadcast: Duration,
    /// The same when a term opens.
    opening_wraps: Duration,
}

/// Pace of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pacing {
    /// Time between two drones that begin to enrol; zero: all at once.
    pub enrolment: Duration,
    /// Time between two drones that ask to join; zero: all at once.
    pub join: Duration,
    /// Time on the channel until every drone has followed a re-key.
    pub rekey: Duration,
    /// The same when a leader opens a term: every drone asks, gets an entry and publishes a spare point.
    pub opening: Duration,
    drones: u32,
}

impl Pacing {
    /// The pace of a plan's radios.
    ///
    /// # Errors
    /// If a radio of the plan cannot carry the plan; the text describes why.
    pub fn of(plan: &RunPlan) -> Result<Self, String> {
        let drones = plan.drones.saturating_add(plan.newcomers);
        let Some(air) = &plan.air else { return Ok(Self { drones, ..Self::default() }) };
        let ground = Exchanges::over(plan.depot.as_ref().unwrap_or(air), plan);
        let field = Exchanges::over(air, plan);
        ground.check(plan.depot.as_ref().unwrap_or(air).profile.preset())?;
        let pace = Self {
            enrolment: ground.enrolment * 3 / 2,
            join: ground.join * 3 / 2,
            rekey: field.broadcast + field.following * drones,
            opening: field.opening.max(ground.opening) * drones
                + field.opening_wraps.max(ground.opening_wraps),
            drones,
        };
        if pace.rekey > LONGEST_REKEY {
            return Err(format!(
                "over {} one re-key takes {} min until {drones} drones have followed it, more than {} min: give fewer \
                 drones or another radio",
                air.profile.preset(),
                pace.rekey.as_secs() / 60,
                LONGEST_REKEY.as_secs() / 60
            ));
        }
        Ok(pace)
    }

    /// A drone without an answer asks again after a quarter of the time that it takes to serve all, and in
    /// the end after four times as long: then the questions of all drones together leave most of the channel
    /// to the answers.
    pub(super) fn edge_timing(&self) -> EdgeTiming {
        let timing = EdgeTiming::default();
        EdgeTiming {
            retry: timing.retry.max(self.opening / 4),
            retry_max: timing.retry_max.max(self.opening * 4),
            admission: timing.admission.max((self.join * self.drones + self.rekey) * 2),
            ..timing
        }
    }

    /// Joins that come one after the other make one epoch, and an epoch is resent only to members that had
    /// time to acknowledge it.
    pub(super) fn leader_timing(&self) -> LeaderTiming {
        let timing = LeaderTiming::default();
        LeaderTiming {
            batching: timing.batching.max(self.join * 8),
            batching_max: timing.batching_max.max(self.join * self.drones * 2),
            resend: timing.resend.max((self.rekey + self.opening) * 2),
            ..timing
        }
    }

    /// Virtual time until a phase is given up.
    pub(crate) fn patience(&self) -> Duration {
        PATIENCE.max(((self.enrolment + self.join) * self.drones + self.rekey + self.opening) * 8)
    }
}

impl Exchanges {
    /// Checks that requests arrive in time.
    fn check(&self, radio: Preset) -> Result<(), String> {
        for (what, takes) in [("enrol", self.enrolment_request), ("join", self.join_request)] {
            if takes > CHALLENGE {
                return Err(format!(
                    "over {radio} a drone's request to {what} takes {} s with the silence its duty cycle demands, and \
                     is answered only within {} s: let drones enrol and join at a depot, with --depot wifi",
                    takes.as_secs(),
                    CHALLENGE.as_secs()
                ));
            }
        }
        Ok(())
    }

    fn over(air: &AirSetup, plan: &RunPlan) -> Self {
        let drones = plan.drones.saturating_add(plan.newcomers);
        let levels = drones.max(2).next_power_of_two().ilog2() as usize;
        let mut radio = TimedRadio { air, rng: ChaCha8Rng::seed_from_u64(0) };
        let tree = plan.strategy == StrategyKind::Tree;
        let by_wraps = tree && drones <= MOST_BY_WRAPS;
        let wraps = HEADER + WRAPS * levels * plan.leavers as usize;
        let opening_wraps = OPENING_WRAPS * drones as usize;
        Self {
            enrolment: radio.taken(&ENROLMENT),
            join: radio.taken(&JOIN),
            following: radio.taken(if tree { &FOLLOWING[1..] } else { &FOLLOWING }),
            opening: radio.taken(if by_wraps { &OPENING_BY_WRAPS } else { &OPENING }),
            enrolment_request: radio.until_end(&ENROLMENT[..3]),
            join_request: radio.until_end(&JOIN[..3]),
            broadcast: if tree { radio.mean(Cast::Broadcast, Gateway(wraps)).0 } else { Duration::ZERO },
            opening_wraps: if by_wraps {
                radio.mean(Cast::Broadcast, Gateway(opening_wraps)).0
            } else {
                Duration::ZERO
            },
        }
    }
}

/// A radio whose messages are timed.
struct TimedRadio<'a> {
    air: &'a AirSetup,
    rng: ChaCha8Rng,
}

impl TimedRadio<'_> {
    /// Mean time of a message over a free channel, and mean silence of its sender afterwards.
    fn mean(&mut self, cast: Cast, said: PacedMessage) -> (Duration, Duration) {
        let profile = self.air.profile.clone();
        let (profile, bytes) = match said {
            Drone(bytes) => (profile, bytes),
            Gateway(bytes) => (profile.at_gateway(), bytes),
        };
        let (mut latency, mut silence) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..DRAWS {
            let mut link = self.air.loss.link(&mut self.rng);
            let sent = profile.send(bytes, cast, &mut link, &mut self.rng);
            latency += sent.latency;
            silence += sent.silence;
        }
        (latency / DRAWS, silence / DRAWS)
    }

    /// Time of an exchange on the channel, or of the gateway with its silence, whichever is longer.
    fn taken(&mut self, exchange: &[PacedMessage]) -> Duration {
        let (mut channel, mut gateway) = (Duration::ZERO, Duration::ZERO);
        for said in exchange {
            let (latency, silence) = self.mean(Cast::Unicast, *said);
            channel += latency;
            if let Gateway(_) = said {
                gateway += latency + silence;
            }
        }
        channel.max(gateway)
    }

    /// Time until the last message of an exchange has arrived, if it comes from a drone that must keep
    /// silent.
    fn until_end(&mut self, exchange: &[PacedMessage]) -> Duration {
        let (mut at, mut silent_until) = (Duration::ZERO, Duration::ZERO);
        for said in exchange {
            let (latency, silence) = self.mean(Cast::Unicast, *said);
            match said {
                Drone(_) => {
                    at = at.max(silent_until) + latency;
                    silent_until = at + silence;
                }
                Gateway(_) => at += latency,
            }
        }
        at
    }
}
