//! The shape of a radio: how payloads become frames, how long frames take, how the channel is won.

use std::time::Duration;

use rand::{Rng, RngCore};

use super::lora::Modulation;
use super::power::RadioPower;
use super::{Cast, Preset, on_air};
use crate::boards::Coding;

/// The constants of a radio.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub(super) preset: Preset,
    pub(super) phy: Phy,
    pub(super) unicast: CastProfile,
    pub(super) broadcast: CastProfile,
    pub(super) power: RadioPower,
    pub(super) rounds: u32,
    pub(super) coded: bool,
}

impl Profile {
    /// The radio that costs nothing.
    pub(super) fn ideal() -> Self {
        let link = CastProfile {
            capacity: usize::MAX,
            overhead: 0,
            fragment_header: 0,
            access: Access::Free,
            acknowledgement: None,
            retries: 0,
            spacing: Spacing::NONE,
            announcement: None,
            duty_cycle: None,
        };
        let power = RadioPower::NOTHING;
        Self {
            preset: Preset::Ideal,
            phy: Phy::Ideal,
            unicast: link.clone(),
            broadcast: link,
            power,
            rounds: 1,
            coded: false,
        }
    }

    /// The preset of this radio.
    pub fn preset(&self) -> Preset {
        self.preset
    }

    /// Power of its transmitter and receiver.
    pub fn power(&self) -> &RadioPower {
        &self.power
    }

    /// Sends every broadcast frame so many times, at least once: all frames, then all again.
    #[must_use]
    pub fn with_rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// Number of times that every broadcast frame is sent.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Adds parity frames to broadcasts of several frames, as many as the loss that the sender sees demands.
    /// Not where frames are repeated anyway ([`Profile::with_rounds`]).
    #[must_use]
    pub fn with_coding(mut self) -> Self {
        self.coded = true;
        self
    }

    /// Coding by which a sender that sees this loss codes a broadcast of this number of bytes, if it does.
    pub fn coding(&self, payload: usize, loss: f64) -> Option<Coding> {
        let (whole, piece) = self.capacity(Cast::Broadcast);
        if !self.coded || self.rounds > 1 || payload <= whole {
            return None;
        }
        Coding::of(self.broadcast.frames(payload), piece, loss)
    }

    /// Returns true if receivers acknowledge unicast frames, so that a sender sees what is lost.
    pub fn acknowledges(&self) -> bool {
        self.unicast.acknowledgement.is_some()
    }

    /// Lifts the duty cycle, for the radio's limits where the law sets none.
    #[must_use]
    pub fn without_duty_cycle(mut self) -> Self {
        self.unicast.duty_cycle = None;
        self.broadcast.duty_cycle = None;
        self
    }

    /// The same radio at a gateway, which may also use the channel for downlinks when it talks to one
    /// station.
    #[must_use]
    pub fn at_gateway(mut self) -> Self {
        self.unicast.duty_cycle = self.broadcast.duty_cycle;
        self
    }

    /// The share of time a sender may be on the air, where a law limits it.
    pub fn duty_cycle(&self, cast: Cast) -> Option<DutyCycle> {
        self.link(cast).duty_cycle
    }

    /// Number of frames of a payload of so many bytes. An empty payload takes one.
    pub fn frames(&self, payload: usize, cast: Cast) -> u32 {
        self.link(cast).frames(payload)
    }

    /// Payload bytes of a frame: of a message that fits one, and of each of a message that does not.
    pub fn capacity(&self, cast: Cast) -> (usize, usize) {
        let link = self.link(cast);
        (link.capacity, link.capacity - link.fragment_header)
    }

    /// Octets beside the payload of a frame that carries a whole message, with the PHY's header.
    pub fn framing(&self, cast: Cast) -> usize {
        self.link(cast).overhead + self.phy_octets()
    }

    /// Bits per second, headers included, of full frames one after the other; `None` if they take no time.
    pub fn bit_rate(&self, cast: Cast) -> Option<u32> {
        let octets = self.link(cast).capacity.checked_add(self.link(cast).overhead)?;
        let on_air = self.airtime(octets).as_nanos();
        let bits = (octets + self.phy_octets()) as u128 * 8;
        (on_air > 0).then(|| u32::try_from(bits * 1_000_000_000 / on_air).unwrap_or(u32::MAX))
    }

    /// Time on air of a frame of so many MAC octets (headers and checksums included), with the PHY's preamble
    /// and header.
    pub fn airtime(&self, octets: usize) -> Duration {
        match &self.phy {
            Phy::Ideal => Duration::ZERO,
            Phy::Bits { bit_rate, octets: header } => on_air(octets + header, *bit_rate),
            Phy::Ofdm(ofdm) => ofdm.airtime(octets),
            Phy::LoRa(modulation) => modulation.airtime(octets),
        }
    }

    /// Octets the PHY puts ahead of a frame, where it counts in octets.
    pub(super) fn phy_octets(&self) -> usize {
        match self.phy {
            Phy::Bits { octets, .. } => octets,
            _ => 0,
        }
    }

    pub(super) fn link(&self, cast: Cast) -> &CastProfile {
        match cast {
            Cast::Unicast => &self.unicast,
            Cast::Broadcast => &self.broadcast,
        }
    }
}

/// Parameters of the time on air of frames.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Phy {
    Ideal,
    /// Bits one after the other, behind a header of so many octets.
    Bits {
        bit_rate: u32,
        octets: usize,
    },
    Ofdm(Ofdm),
    LoRa(Modulation),
}

/// OFDM: bits in symbols of fixed length.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ofdm {
    /// Preamble, header and extension, whatever the frame's length.
    pub(super) fixed: Duration,
    pub(super) symbol: Duration,
    pub(super) bits_per_symbol: usize,
    /// Service and tail bits.
    pub(super) extra_bits: usize,
}

impl Ofdm {
    pub(super) const fn airtime(&self, octets: usize) -> Duration {
        let symbols = (octets * 8 + self.extra_bits).div_ceil(self.bits_per_symbol);
        Duration::from_nanos(self.fixed.as_nanos() as u64 + self.symbol.as_nanos() as u64 * symbols as u64)
    }
}

/// Parameters that differ between unicast and broadcast.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CastProfile {
    /// Payload bytes of a frame without fragment header.
    pub(super) capacity: usize,
    /// MAC octets per frame beside the payload, fragment header not counted.
    pub(super) overhead: usize,
    /// Bytes of each frame of a message that needs several.
    pub(super) fragment_header: usize,
    pub(super) access: Access,
    pub(super) acknowledgement: Option<Acknowledgement>,
    /// Repetitions of a frame that is not acknowledged.
    pub(super) retries: u32,
    pub(super) spacing: Spacing,
    pub(super) announcement: Option<Announcement>,
    pub(super) duty_cycle: Option<DutyCycle>,
}

impl CastProfile {
    pub(super) fn frames(&self, payload: usize) -> u32 {
        if payload <= self.capacity {
            return 1;
        }
        u32::try_from(payload.div_ceil(self.capacity - self.fragment_header)).unwrap_or(u32::MAX)
    }

    /// The bytes of each frame, fragment headers included.
    pub(super) fn split(&self, payload: usize) -> impl Iterator<Item = usize> + use<> {
        let frames = self.frames(payload) as usize;
        let header = if frames == 1 { 0 } else { self.fragment_header };
        let piece = if frames == 1 { payload } else { self.capacity - header };
        (0..frames).map(move |index| header + piece.min(payload - index * piece))
    }

    /// Splits a payload as [`CastProfile::split`] does, and puts parity frames behind the parts, as long as the
    /// longest.
    pub(super) fn split_coded(
        &self,
        payload: usize,
        coding: Option<Coding>,
    ) -> impl Iterator<Item = usize> + use<> {
        let longest = self.split(payload).next().unwrap_or(0);
        let parity = coding.map_or(0, Coding::frames) as usize;
        self.split(payload).chain(std::iter::repeat_n(longest, parity))
    }

    pub(super) fn space(&self, size: usize) -> Duration {
        self.spacing.after(size + self.overhead)
    }
}

/// The silence between a sender's frames.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spacing {
    /// Octets of the longest frame that needs only the short space.
    pub(super) short_up_to: usize,
    pub(super) short: Duration,
    pub(super) long: Duration,
}

impl Spacing {
    pub(super) const NONE: Self = Self::always(Duration::ZERO);

    pub(super) const fn always(space: Duration) -> Self {
        Self { short_up_to: 0, short: space, long: space }
    }

    fn after(&self, octets: usize) -> Duration {
        if octets <= self.short_up_to { self.short } else { self.long }
    }
}

/// Acknowledgement of a frame by its receiver.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Acknowledgement {
    /// Time from the end of the frame to the beginning of the acknowledgement.
    pub(super) after: Duration,
    pub(super) on_air: Duration,
    pub(super) octets: usize,
    /// Time from the end of the frame until the sender gives the acknowledgement up.
    pub(super) timeout: Duration,
}

/// Announcement before a group of broadcast frames.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Announcement {
    /// One per so many frames.
    pub(super) every: u32,
    pub(super) on_air: Duration,
    pub(super) octets: usize,
    /// Time from the beginning of the announcement to that of the first frame.
    pub(super) lead: Duration,
    /// Time between the beginnings of groups, and the greatest random addition. A group ends before the next
    /// begins.
    pub(super) pause: Duration,
    pub(super) jitter: Duration,
}

impl Announcement {
    fn pause(&self, rng: &mut impl RngCore) -> Duration {
        self.pause + uniform(self.jitter, rng)
    }

    pub(super) fn latency(&self, first: bool, rng: &mut impl RngCore) -> Duration {
        self.lead + if first { Duration::ZERO } else { self.pause(rng) }
    }
}

/// The share of time a sender may be on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DutyCycle {
    pub(super) per_mille: u32,
}

impl DutyCycle {
    /// Duty cycle in thousandths.
    pub fn per_mille(self) -> u32 {
        self.per_mille
    }

    /// Silence after so long on the air: a share d leaves T/d − T (LoRaWAN 1.0, section on duty-cycle
    /// limitations of sub-bands).
    pub fn silence_after(self, on_air: Duration) -> Duration {
        on_air * (1000 - self.per_mille) / self.per_mille
    }
}

/// Channel access of a sender.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Access {
    /// Sends at once, or as soon as the channel is free.
    Free,
    /// Unslotted CSMA/CA of IEEE 802.15.4.
    Csma(Csma),
    /// The distributed coordination function of IEEE 802.11: fixed space, then slots from a contention window
    /// that doubles with each attempt.
    Contention { space: Duration, slot: Duration, window_min: u32, window_max: u32 },
    /// Appointments at a fixed interval. A message waits for the next one, anywhere in the interval; a frame
    /// that goes unanswered ends the appointment, so its repetition waits a whole interval.
    Appointment { interval: Duration },
}

/// Number of the last rounds of a long wait for the channel that are drawn backoff by backoff.
const ROUNDS_DRAWN: u32 = 16;

/// Unslotted CSMA/CA: back off at random, sense once, back off longer if the channel was busy.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Csma {
    pub(super) unit: Duration,
    pub(super) min_exponent: u32,
    pub(super) max_exponent: u32,
    pub(super) max_backoffs: u32,
    /// Sensing and turning to transmission.
    pub(super) sense: Duration,
}

impl Csma {
    fn backoff(&self, exponent: u32, rng: &mut impl RngCore) -> Duration {
        self.unit * rng.gen_range(0..1u32 << exponent)
    }

    /// Mean time of a round of backoffs, from one report of failure to the next.
    fn mean_round(&self) -> Duration {
        let exponents = (1..=self.max_backoffs).map(|step| self.max_exponent.min(self.min_exponent + step));
        exponents.chain([self.min_exponent]).map(|exponent| self.unit * ((1 << exponent) - 1) / 2).sum()
    }

    /// Backs off until the channel is found free. After `max_backoffs` the MAC reports failure and the layer
    /// above starts over.
    fn defer(&self, now: Duration, busy_until: Duration, rng: &mut impl RngCore) -> (Duration, u32) {
        // The exact beginning of a long wait does not matter at its end: of many rounds all but the last are
        // not drawn.
        let round = self.mean_round();
        let rounds = busy_until.saturating_sub(now).as_nanos() / round.as_nanos().max(1);
        let skipped = u32::try_from(rounds).unwrap_or(u32::MAX).saturating_sub(ROUNDS_DRAWN);
        let mut busy = skipped.saturating_mul(self.max_backoffs + 1);
        let (mut at, mut exponent) = (now + round * skipped, self.min_exponent);
        while at < busy_until {
            busy += 1;
            exponent = if busy % (self.max_backoffs + 1) == 0 {
                self.min_exponent
            } else {
                self.max_exponent.min(exponent + 1)
            };
            at += self.backoff(exponent, rng).max(self.unit);
        }
        (at, busy)
    }
}

impl Access {
    /// Time to get an idle channel for this attempt (0 is the first) at a frame, which may be the `first` of
    /// its message.
    pub(super) fn delay(&self, first: bool, attempt: u32, rng: &mut impl RngCore) -> Duration {
        match self {
            Self::Free => Duration::ZERO,
            Self::Csma(csma) => csma.backoff(csma.min_exponent, rng) + csma.sense,
            Self::Contention { space, slot, window_min, window_max } => {
                let window = window_max.saturating_add(1).min((window_min + 1) << attempt.min(16));
                *space + *slot * rng.gen_range(0..window)
            }
            Self::Appointment { interval } if attempt > 0 => *interval,
            Self::Appointment { interval } if first => uniform(*interval, rng),
            Self::Appointment { .. } => Duration::ZERO,
        }
    }

    /// Time at which a sender that is ready `now` finds the channel free, and how often it found it busy.
    pub(super) fn defer(
        &self,
        now: Duration,
        busy_until: Duration,
        rng: &mut impl RngCore,
    ) -> (Duration, u32) {
        match self {
            Self::Csma(csma) => csma.defer(now, busy_until, rng),
            _ => (now.max(busy_until), u32::from(now < busy_until)),
        }
    }
}

/// Anywhere from nothing up to `bound`, to the nanosecond.
fn uniform(bound: Duration, rng: &mut impl RngCore) -> Duration {
    Duration::from_nanos(rng.gen_range(0..=bound.as_nanos() as u64))
}
