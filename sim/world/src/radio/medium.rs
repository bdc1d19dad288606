//! A shared channel in virtual time.

use std::time::Duration;

use rand::RngCore;

use super::{Cast, Profile, Transmission};

/// Time of a message on the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelTime {
    /// Time at which its first frame begins to contend for an idle channel, since the beginning of the world.
    pub start: Duration,
    /// End of its last frame, or of the acknowledgement of it.
    pub end: Duration,
    /// Times that the sender found the channel busy.
    pub deferrals: u32,
}

/// A channel that carries one message at a time. All stations hear each other: a sender that finds it busy
/// waits as its MAC prescribes, so messages never collide (see the [module](super) for what that leaves out).
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

    /// Time at which the channel will be free, since the beginning of the world.
    pub fn busy_until(&self) -> Duration {
        self.busy_until
    }

    /// Total time that the channel has carried a signal.
    pub fn carried(&self) -> Duration {
        self.carried
    }

    /// Reserves the channel for a message that is ready from `now` on. `transmission` is its time on the
    /// channel.
    pub fn reserve(
        &mut self,
        now: Duration,
        profile: &Profile,
        cast: Cast,
        transmission: &Transmission,
        rng: &mut impl RngCore,
    ) -> ChannelTime {
        let (start, deferrals) = profile.link(cast).access.defer(now, self.busy_until, rng);
        let end = start + transmission.latency;
        self.busy_until = self.busy_until.max(end);
        self.carried += transmission.on_air;
        ChannelTime { start, end, deferrals }
    }
}
