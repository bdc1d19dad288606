//! One shared channel in virtual time.

use std::time::Duration;

use rand::RngCore;

use super::{Cast, Profile, Transmission};

/// When a message has the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// When its first frame begins to contend for an idle channel, since the beginning of the world.
    pub start: Duration,
    /// When its last frame, or the acknowledgement of it, is over.
    pub end: Duration,
    /// How often the sender found the channel busy.
    pub deferrals: u32,
}

/// A channel that carries one message at a time. All stations hear each other: whoever finds it busy waits as
/// its MAC prescribes, so messages never collide (see the [module](super) for what that leaves out).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Medium {
    busy_until: Duration,
    carried: Duration,
}

impl Medium {
    /// A free channel.
    pub fn new() -> Self {
        Self::default()
    }

    /// When the channel will be free, since the beginning of the world.
    pub fn busy_until(&self) -> Duration {
        self.busy_until
    }

    /// How long the channel has carried a signal in all.
    pub fn carried(&self) -> Duration {
        self.carried
    }

    /// Gives the channel to a message of which the sender wishes to be rid from `now` on. `transmission` says
    /// how long it takes it.
    pub fn reserve(
        &mut self,
        now: Duration,
        profile: &Profile,
        cast: Cast,
        transmission: &Transmission,
        rng: &mut impl RngCore,
    ) -> Slot {
        let (start, deferrals) = profile.link(cast).access.defer(now, self.busy_until, rng);
        let end = start + transmission.latency;
        self.busy_until = self.busy_until.max(end);
        self.carried += transmission.on_air;
        Slot { start, end, deferrals }
    }
}
