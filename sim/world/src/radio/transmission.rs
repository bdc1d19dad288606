//! A message on the air, frame by frame.

use std::time::Duration;

use rand::RngCore;

use super::profile::CastProfile;
use super::{Cast, LossState, Profile};
use crate::boards::Coding;

/// Costs of sending one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmission {
    /// Distinct frames that went out, those of parity among them, without repetitions and acknowledgements.
    pub frames: u32,
    /// The code of a broadcast that has parity frames.
    pub coding: Option<Coding>,
    /// Data frames sent again.
    pub retransmissions: u32,
    /// Time that the channel carried a signal: data frames, repetitions, announcements and acknowledgements.
    pub on_air: Duration,
    /// The part of `on_air` that was acknowledgements, which the receiver sends.
    pub acknowledgements: Duration,
    /// Octets of all these frames, with MAC and PHY headers as far as the PHY counts in octets.
    pub bytes_on_air: u64,
    /// Unicast: whether every frame arrived. Broadcast: always, each receiver draws with
    /// [`Profile::receive`].
    pub delivered: bool,
    /// Time from the first attempt on an idle channel until the last frame (or its acknowledgement) was over:
    /// access delays, frames, spaces, timeouts and, where the law demands it, silence between frames.
    pub latency: Duration,
    /// Time for which the sender must then keep silent.
    pub silence: Duration,
}

impl Transmission {
    /// The part of `on_air` that the sender sent.
    pub fn sent(&self) -> Duration {
        self.on_air.saturating_sub(self.acknowledgements)
    }
}

impl Profile {
    /// Sends `payload` bytes over an idle channel.
    ///
    /// Unicast: every frame is repeated until it is acknowledged; when the retries are used up, the message
    /// is given up and the remaining frames are not sent. A lost acknowledgement costs a repetition, which
    /// the receiver recognises. Broadcast: every frame goes out once per round (see
    /// [`Profile::with_rounds`]); `loss` is not used, as every receiver has its own.
    pub fn send(
        &self,
        payload: usize,
        cast: Cast,
        loss: &mut LossState,
        rng: &mut impl RngCore,
    ) -> Transmission {
        let link = self.link(cast);
        let mut sending = Sending { profile: self, link, done: Transmission::default(), rng };
        sending.done.frames = link.frames(payload);
        match cast {
            Cast::Unicast => sending.unicast(payload, loss),
            Cast::Broadcast => sending.broadcast(payload, self.rounds(), None),
        }
        sending.done
    }

    /// Broadcasts `payload` bytes over an idle channel, with parity frames if the radio codes and the loss that
    /// the sender sees demands some.
    pub fn broadcast(&self, payload: usize, seen: f64, rng: &mut impl RngCore) -> Transmission {
        self.broadcast_coded(payload, self.coding(payload, seen), rng)
    }

    /// Broadcasts `payload` bytes over an idle channel in this code.
    pub(crate) fn broadcast_coded(
        &self,
        payload: usize,
        coding: Option<Coding>,
        rng: &mut impl RngCore,
    ) -> Transmission {
        let link = self.link(Cast::Broadcast);
        let frames = link.frames(payload).saturating_add(coding.map_or(0, Coding::frames));
        let done = Transmission { frames, coding, ..Transmission::default() };
        let mut sending = Sending { profile: self, link, done, rng };
        sending.broadcast(payload, self.rounds(), coding);
        sending.done
    }

    /// Returns true if a receiver with this link can put the broadcast together.
    pub fn receives(&self, sent: &Transmission, loss: &mut LossState, rng: &mut impl RngCore) -> bool {
        let Some(coding) = sent.coding else { return self.receive(sent.frames, loss, rng) };
        let data = sent.frames.saturating_sub(coding.frames());
        coding.recovers(data, loss, rng)
    }

    /// Returns true if a receiver with this link receives the whole broadcast of so many frames without
    /// parity.
    pub fn receive(&self, frames: u32, loss: &mut LossState, rng: &mut impl RngCore) -> bool {
        loss.receives_all(frames, self.rounds(), rng)
    }
}

struct Sending<'a, R> {
    profile: &'a Profile,
    link: &'a CastProfile,
    done: Transmission,
    rng: &'a mut R,
}

impl<R: RngCore> Sending<'_, R> {
    fn unicast(&mut self, payload: usize, loss: &mut LossState) {
        self.done.delivered = true;
        for (index, size) in self.link.split(payload).enumerate() {
            let (arrived, acknowledged) = self.until_acknowledged(index == 0, size, loss);
            self.done.delivered &= arrived;
            if !acknowledged {
                // The receiver may have all frames so far, but not the unsent rest.
                let sent = index as u32 + 1;
                self.done.delivered &= sent == self.done.frames;
                self.done.frames = sent;
                return;
            }
        }
    }

    /// Sends one frame until it is acknowledged or the retries are used up. Gives whether it arrived and
    /// whether the sender knows.
    fn until_acknowledged(&mut self, first: bool, size: usize, loss: &mut LossState) -> (bool, bool) {
        let mut arrived = false;
        for attempt in 0..=self.link.retries {
            self.frame(first && attempt == 0, attempt, size);
            self.done.retransmissions += u32::from(attempt > 0);
            let lost = loss.loses(self.rng);
            arrived |= !lost;
            let Some(ack) = &self.link.acknowledgement else { return (arrived, true) };
            if !lost {
                self.done.on_air += ack.on_air;
                self.done.acknowledgements += ack.on_air;
                self.done.bytes_on_air += ack.octets as u64;
            }
            if !lost && !loss.loses(self.rng) {
                self.done.latency += ack.after + ack.on_air + self.link.space(size);
                return (true, true);
            }
            self.done.latency += ack.timeout;
        }
        (arrived, false)
    }

    fn broadcast(&mut self, payload: usize, rounds: u32, coding: Option<Coding>) {
        self.done.delivered = true;
        self.done.retransmissions = self.done.frames.saturating_mul(rounds - 1);
        for round in 0..rounds {
            for (index, size) in self.link.split_coded(payload, coding).enumerate() {
                self.announce(index as u32);
                self.frame(round == 0 && index == 0, 0, size);
                self.done.latency += self.link.space(size);
            }
        }
    }

    /// Gets the channel and sends one frame.
    fn frame(&mut self, first: bool, attempt: u32, size: usize) {
        if !first {
            self.done.latency += self.done.silence;
        }
        let octets = size + self.link.overhead;
        let on_air = self.profile.airtime(octets);
        self.done.latency += self.link.access.delay(first, attempt, self.rng) + on_air;
        self.done.on_air += on_air;
        self.done.bytes_on_air += (octets + self.profile.phy_octets()) as u64;
        self.done.silence = self.link.duty_cycle.map_or(Duration::ZERO, |duty| duty.silence_after(on_air));
    }

    /// Sends the announcement before a group of broadcast frames, if the radio has one.
    fn announce(&mut self, index: u32) {
        let Some(announcement) = &self.link.announcement else { return };
        if !index.is_multiple_of(announcement.every) {
            return;
        }
        self.done.latency += announcement.latency(index == 0, self.rng);
        self.done.on_air += announcement.on_air;
        self.done.bytes_on_air += announcement.octets as u64;
    }
}
