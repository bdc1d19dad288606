//! The leaders of an edge: whom it asks first, how soon it asks again, and whom it refuses.

pub(super) mod equivocation;

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{DronePublicKey, Header, Suite};
use quiver_machine::{Backoff, Offence, Peer};
use rand_core::CryptoRngCore;

use super::EdgeTiming;
use crate::refused::RefusedLeaders;

/// Connected leaders, and those that are refused because they contradicted themselves.
#[derive(Debug)]
pub struct Leaders {
    /// The one to ask first in front.
    connected: Vec<Peer>,
    /// The connected one that last proved to lead the epoch held.
    leading: Option<Peer>,
    pub(crate) refused: RefusedLeaders,
}

impl Default for Leaders {
    fn default() -> Self {
        Self::new()
    }
}

impl Leaders {
    /// No leader connected, none refused.
    #[must_use]
    pub fn new() -> Self {
        Self { connected: Vec::new(), leading: None, refused: RefusedLeaders::new() }
    }

    /// A leader is connected; it is asked last.
    pub fn connected(&mut self, leader: Peer) {
        // Mostly there is one, and a list grows to four.
        self.connected.reserve_exact(1);
        self.connected.push(leader);
    }

    /// A connection is gone. Returns whether it was the one asked first, and another is left.
    pub fn disconnected(&mut self, peer: Peer) -> bool {
        let was_first = self.first() == Some(peer);
        self.connected.retain(|leader| *leader != peer);
        self.leading = self.leading.filter(|leader| *leader != peer);
        was_first && self.first().is_some()
    }

    /// The leader to ask first.
    #[must_use]
    pub fn first(&self) -> Option<Peer> {
        self.connected.first().copied()
    }

    /// The connected leaders, in the order in which they are asked.
    #[must_use]
    pub fn as_slice(&self) -> &[Peer] {
        &self.connected
    }

    pub(super) fn contains(&self, peer: Peer) -> bool {
        self.connected.contains(&peer)
    }

    pub(super) fn are_several(&self) -> bool {
        self.connected.len() > 1
    }

    /// Notes that this peer has proven that it leads: it answered a nonce of this drone (§11.1).
    pub(super) fn proven(&mut self, leader: Peer) {
        self.leading = Some(leader).filter(|leader| self.connected.contains(leader));
    }

    /// The connected leader that last proved to lead.
    #[must_use]
    pub const fn leading(&self) -> Option<Peer> {
        self.leading
    }

    /// Asks this leader first: it leads.
    pub fn prefer(&mut self, leader: Peer) {
        if let Some(place) = self.connected.iter().position(|known| *known == leader) {
            self.connected.swap(0, place);
        }
    }

    /// Asks the next leader first.
    pub fn rotate(&mut self) {
        if self.are_several() {
            self.connected.rotate_left(1);
        }
    }

    /// Returns true if a leader is refused for good.
    #[must_use]
    pub fn refuses<S: Suite>(&self, leader: &DronePublicKey<S>) -> bool {
        self.refused.names(leader)
    }

    /// §10.7: A refused leader's signatures count as none.
    ///
    /// # Errors
    /// [`Offence::RefusedLeader`].
    pub fn check<S: Suite>(&self, header: &Header<S>) -> Result<(), Offence> {
        if self.refuses(&header.core.leader) { Err(Offence::RefusedLeader) } else { Ok(()) }
    }

    /// Pause before another request to join after a refusal as not ready. It does not grow while the leader
    /// announces when it will lead; meanwhile another may lead.
    pub(super) fn join_pause(
        &mut self,
        (from, announced): (Peer, Duration),
        timing: &EdgeTiming,
        backoff: &mut Backoff,
        rng: &mut dyn CryptoRngCore,
    ) -> Duration {
        let several = self.are_several();
        let (wait, asks_it_again) = match announced_pause(announced, timing, rng) {
            // §10.5: one leader after the other, with backoff.
            None if several => (backoff.next(rng) / 8, false),
            None => (backoff.next(rng), true),
            // §10.5: another may lead before that.
            Some(announced) if several && announced > timing.retry => (timing.retry, false),
            Some(announced) => (announced, true),
        };
        if !asks_it_again && self.first() == Some(from) {
            self.connected.rotate_left(1);
        }
        wait
    }

    /// Pause of a member after a refusal as not ready: it asks the next leader soon, though not as fast as
    /// refusals come, and a single leader when it has announced that it will lead.
    pub(super) fn catch_up_pause(
        &self,
        announced: Duration,
        timing: &EdgeTiming,
        rng: &mut dyn CryptoRngCore,
    ) -> Option<Duration> {
        if self.are_several() { Some(timing.retry / 4) } else { announced_pause(announced, timing, rng) }
    }
}

/// The pause that a refusal names, bounded, because it is not signed; and spread, because thousands receive
/// the same.
fn announced_pause(
    announced: Duration,
    timing: &EdgeTiming,
    rng: &mut dyn CryptoRngCore,
) -> Option<Duration> {
    // §10.5: refusals are not signed.
    let named = announced.min(timing.retry_max);
    // Up to a quarter more, in whole numbers: not every processor has others.
    let named = named + named / 4 * (rng.next_u32() >> 16) / 0xFFFF;
    (!announced.is_zero()).then(|| named.max(timing.retry / 4))
}
