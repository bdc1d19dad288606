//! Compares this leader's clock with the times that others signed.
//!
//! A time in the future was signed by a clock that is ahead of ours, whenever that was. A time in the past
//! proves something only if the signature is known to be fresh: the answer of the leader that we stand by for
//! is, and its key ran out before the answer only if our clock is ahead. No protocol decision depends on
//! this; it is reported to people.

use alloc::vec::Vec;

use quiver_ainq::{Epoch, Error, HeaderCore, Name, Suite, UnixTime};
use rand_core::CryptoRngCore;

use super::Leader;
use quiver_machine::CLOCK_TOLERANCE;
use quiver_machine::{vouch, vouched};

/// A signed time that this machine's clock does not bear out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockDoubt {
    /// The signer.
    pub witness: ClockWitness,
    /// The time, in seconds since 1970.
    pub theirs: UnixTime,
    /// Reading of this machine's clock.
    pub ours: UnixTime,
}

/// Signer of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClockWitness {
    /// The KGC, a revocation list.
    RevocationList,
    /// A leader, the making of this epoch; perhaps this one, before its clock went back.
    Epoch(Name, Epoch),
    /// The leader that this one stands by for, which is there and whose key has run out by our clock.
    Deputised(Name),
}

/// Proof that the leader was alive at this time of our clock, with a key that had run out by then.
#[derive(Clone, Debug)]
pub(super) struct RanOut {
    leader: Name,
    valid_until: UnixTime,
    seen: UnixTime,
}

impl RanOut {
    /// Compares our clock with a leader's fresh answer.
    pub(super) fn of<S: Suite>(core: &HeaderCore<S>, now: UnixTime) -> Option<Self> {
        let Some(true) = core.valid_until.checked_add(CLOCK_TOLERANCE).map(|last| last < now) else {
            return None;
        };
        let leader = core.leader.identity.name.clone();
        Some(Self { leader, valid_until: core.valid_until, seen: now })
    }
}

impl<S: Suite> Leader<S> {
    /// The drone that signed the time of its clock ([`Edge::vouch`](crate::Edge::vouch)).
    ///
    /// # Errors
    /// If that does not hold, or the drone is revoked.
    pub fn vouched(&self, statement: &[u8], signed: &[u8]) -> Result<Name, Error> {
        vouched(&self.base.config.deployment, &self.base.store.revocations, statement, signed)
    }

    /// Signs the time of this leader's clock; `None` without a key.
    pub fn vouch(&self, statement: &[u8], rng: &mut dyn CryptoRngCore) -> Option<Vec<u8>> {
        Some(vouch(&self.base.config.deployment, self.base.store.keypair.as_ref()?, statement, rng))
    }

    /// Warning if others' clocks say another time than this one, by more than [`CLOCK_TOLERANCE`].
    pub fn clock_doubt(&self, now: UnixTime) -> Option<ClockDoubt> {
        let ahead = |theirs: UnixTime| theirs > now.saturating_add(CLOCK_TOLERANCE);
        let list = self.base.store.revocations.list();
        if list.number > 0 && ahead(list.issued) {
            return Some(ClockDoubt {
                witness: ClockWitness::RevocationList,
                theirs: list.issued,
                ours: now,
            });
        }
        if let Some(core) = self
            .failover
            .newest_header(self.term.as_ref())
            .map(|header| &header.core)
            .filter(|core| ahead(core.issued_at))
        {
            let witness = ClockWitness::Epoch(core.leader.identity.name.clone(), core.epoch);
            return Some(ClockDoubt { witness, theirs: core.issued_at, ours: now });
        }
        let RanOut { leader, valid_until, seen } =
            self.failover.ran_out.as_ref().filter(|_| self.term.is_none())?;
        let witness = ClockWitness::Deputised(leader.clone());
        Some(ClockDoubt { witness, theirs: *valid_until, ours: *seen })
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{RevocationStatement, StrategyKind};
    use quiver_message::Message;

    use super::super::test_support::{LeaderFixture, S};
    use super::*;
    use quiver_machine::{Input, Peer, Via};

    const HOUR: u64 = 3600;

    #[test]
    fn clocks_that_agree_are_not_doubted() {
        let fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        let now = fixture.now.unix;
        assert_eq!(fixture.leader.clock_doubt(now), None);
        assert_eq!(fixture.leader.clock_doubt(now + 300), None);
        assert_eq!(fixture.leader.clock_doubt(now - CLOCK_TOLERANCE), None);
    }

    #[test]
    fn clock_that_went_back_an_hour_is_doubted() {
        let fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        let now = fixture.now.unix;
        let doubt = fixture.leader.clock_doubt(now - HOUR).unwrap();
        assert!(
            matches!(&doubt.witness, ClockWitness::Epoch(name, _) if name.as_str() == "leader"),
            "{doubt:?}"
        );
        assert_eq!((doubt.theirs, doubt.ours), (now, now - HOUR));
    }

    #[test]
    fn revocation_list_of_the_future_is_evidence() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        let now = fixture.now.unix;
        for (number, issued, doubted) in [(1, now + CLOCK_TOLERANCE, false), (2, now + HOUR, true)] {
            let list =
                RevocationStatement { number, issued, next_update: issued + 1000, revoked: alloc::vec![] };
            let signed =
                fixture.master.sign_revocations(&fixture.deployment, list, &mut fixture.rng).unwrap();
            let message = quiver_message::RevocationList { list: signed.encode() };
            let bytes = Message::<S>::RevocationList(message).encode(&fixture.deployment);
            fixture.input(Input::Received { from: Peer(1), via: Via::Peer, bytes: &bytes });
            let doubt = fixture.leader.clock_doubt(now);
            assert_eq!(doubt.is_some(), doubted, "{doubt:?}");
        }
        let doubt = fixture.leader.clock_doubt(now).unwrap();
        assert_eq!((doubt.witness, doubt.theirs), (ClockWitness::RevocationList, now + HOUR));
    }

    #[test]
    fn key_that_ran_out_although_its_leader_is_there_is_evidence() {
        let fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        let core = &fixture.leader.term.as_ref().map(|term| term.header()).unwrap().core;
        assert!(RanOut::of(core, core.valid_until + CLOCK_TOLERANCE).is_none());
        let found = RanOut::of(core, core.valid_until + CLOCK_TOLERANCE + 1).unwrap();
        assert_eq!((found.leader.as_str(), found.valid_until), ("leader", core.valid_until));
    }
}
