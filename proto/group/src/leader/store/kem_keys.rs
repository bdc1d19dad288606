//! The second factor of a leader: κ that it shares with drones, and how many terms it has opened.
//! docs/protocol.md §24.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Error, Handle, KemKey, KemTag, KemTerm, Roster, Serial, Slot, Suite, TermKeys, UnixTime};
use quiver_kem::{KemSet, KemSetting};

use super::Change;
use crate::{KEM_LIFETIME, KemState};

/// Maximum number of drones with which a leader keeps κ: twice as many as a group has members. Further ones
/// make one at every join.
const MAX_KEYS: usize = 1 << 21;
/// Maximum number of terms that a header of this leader's own may be ahead of what it remembers.
const MAX_FORGOTTEN: u64 = 1 << 20;
/// Maximum number of steps of all κ together at once, some seconds of hashing: 8 of as many κ as a leader
/// keeps. A term takes one of each.
const MAX_STEPS: u64 = 1 << 24;

/// κ with every drone that made one, by the drone's handle: with members, and with those that may come back.
#[derive(Debug)]
pub(in crate::leader) struct KemKeys<S: Suite> {
    setting: KemSetting,
    /// Age from which a join renews κ.
    lifetime: Duration,
    /// g of the newest term that this leader opened, 0 before the first.
    count: u64,
    keys: BTreeMap<Handle, LeaderKemKey<S>>,
    /// True if the deployment says no second factor any more: κ was dropped, and the disk may have it.
    dropped: bool,
}

/// κ at the newest count, and when it was made.
#[derive(Debug)]
struct LeaderKemKey<S: Suite> {
    key: KemKey<S>,
    made: UnixTime,
}

impl<S: Suite> KemKeys<S> {
    pub(super) const fn new() -> Self {
        Self {
            setting: KemSetting::None,
            lifetime: KEM_LIFETIME,
            count: 0,
            keys: BTreeMap::new(),
            dropped: false,
        }
    }

    /// Sets what the deployment says. Without a second factor κ is forgotten.
    pub(in crate::leader) fn configure(&mut self, setting: KemSetting) {
        self.setting = setting;
        if setting.is_none() && !self.keys.is_empty() {
            self.keys.clear();
            self.dropped = true;
        }
    }

    /// Sets the age from which a join renews κ: no higher than drones have it.
    pub(in crate::leader) fn set_lifetime(&mut self, lifetime: Duration) {
        self.lifetime = lifetime.min(KEM_LIFETIME);
    }

    /// The change with which κ that was dropped leaves the disk, once.
    pub(in crate::leader) fn erasure(&mut self) -> Option<Change> {
        core::mem::take(&mut self.dropped).then(|| self.counted())
    }

    /// The parameter set that the deployment says.
    pub(in crate::leader) const fn set(&self) -> Option<KemSet> {
        self.setting.set()
    }

    /// Set and count with which κ is made while this leader does not lead: those of its last term, or of its first.
    pub(in crate::leader) fn standing_by(&self) -> Option<KemTerm> {
        // §24.7: its first term is counted 1 and takes κ as it is; others count one more, and step it.
        self.setting.set().and_then(|set| KemTerm::new(set, self.count.max(1)).ok())
    }

    /// κ that a drone names, if both have it and it is not to be renewed.
    pub(in crate::leader) fn named(
        &self,
        drone: &Handle,
        (term, tag): (KemTerm, &KemTag),
        now: UnixTime,
    ) -> Option<KemKey<S>> {
        let held = self
            .keys
            .get(drone)
            .filter(|held| held.key.term() == term && !is_old(held, self.lifetime, now))?;
        held.key.is_named(tag).then(|| held.key.clone())
    }

    /// κ of a drone that joined takes the place of the one before.
    pub(in crate::leader) fn hold(&mut self, drone: Handle, key: KemKey<S>, made: UnixTime) {
        if self.keys.len() < MAX_KEYS || self.keys.contains_key(&drone) {
            self.keys.insert(drone, LeaderKemKey { key, made });
        }
    }

    /// Forgets κ with a drone, or all κ, and returns how many. The caller opens a term, which makes it
    /// durable.
    pub(in crate::leader) fn forget(&mut self, drone: Option<&Handle>) -> usize {
        match drone {
            Some(drone) => usize::from(self.keys.remove(drone).is_some()),
            None => core::mem::take(&mut self.keys).len(),
        }
    }

    /// Setting of the deployment.
    pub(in crate::leader) const fn setting(&self) -> KemSetting {
        self.setting
    }

    /// State of κ with a drone.
    pub(in crate::leader) fn state(&self, drone: &Handle) -> Option<KemState> {
        self.keys.get(drone).map(|held| KemState { term: held.key.term(), made: held.made })
    }

    /// Counts a term that is about to be opened, and steps every κ; what was before is erased. Forgets κ of
    /// drones that are evicted, that are no members and would renew it, and of another parameter set. The
    /// caller makes the count durable with the opening.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if no term can be counted any more.
    pub(in crate::leader) fn open(
        &mut self,
        own: &Handle,
        roster: &Roster<S>,
        pins: &BTreeMap<Serial, Handle>,
        now: UnixTime,
    ) -> Result<Option<TermKeys<S>>, Error> {
        let Some(set) = self.setting.set() else { return Ok(None) };
        let term = KemTerm::new(set, self.count.saturating_add(1)).map_err(|_| Error::Exhausted)?;
        self.count = term.g();
        for drone in roster.evicted().filter_map(|serial| pins.get(serial)) {
            self.keys.remove(drone);
        }
        let members: BTreeMap<Handle, Slot> =
            roster.iter().map(|(slot, public)| (public.handle(), slot)).collect();
        // §24.3: one step for every term, of members and of those that may come back.
        let (mut steps, lifetime) = (Steps { own, g: term.g(), left: MAX_STEPS }, self.lifetime);
        for drone in members.keys() {
            // §24.7: theirs first, where there are more steps to make than are made at once.
            if let Some(held) = self.keys.get_mut(drone) {
                steps.make(&mut held.key);
            }
        }
        self.keys.retain(|drone, held| {
            held.key.term().set() == set
                && (members.contains_key(drone) || !is_old(held, lifetime, now))
                && steps.make(&mut held.key)
        });
        let keys =
            members.into_iter().filter_map(|(drone, slot)| Some((slot, self.keys.get(&drone)?.key.clone())));
        Ok(Some(TermKeys::new(term, keys)))
    }

    /// A header that this leader signed shows how many terms it has opened. Returns whether it did not
    /// remember as many: then its memory was put back, and members follow no term of its that counts less.
    pub(in crate::leader) fn learn(&mut self, term: Option<KemTerm>) -> bool {
        // §24.7: learnt from what members show.
        let ahead = term.map_or(0, |term| term.g().saturating_sub(self.count));
        let forgotten = (1..=MAX_FORGOTTEN).contains(&ahead);
        if forgotten {
            self.count += ahead;
        }
        forgotten
    }

    /// The change that makes the count durable.
    pub(in crate::leader) const fn counted(&self) -> Change {
        Change::KemTerms(self.count)
    }

    /// Replays a count: κ of before is stepped.
    pub(super) fn replay_count(&mut self, own: Option<&Handle>, g: u64) {
        self.count = self.count.max(g);
        let (Some(own), count) = (own, self.count) else { return };
        let mut steps = Steps { own, g: count, left: MAX_STEPS };
        // A key too old to be stepped is made anew.
        self.keys.retain(|_, held| held.key.term().g() >= count || steps.make(&mut held.key));
    }

    /// Replays κ, perhaps of a change that was compacted since.
    pub(super) fn replay_key(
        &mut self,
        own: Option<&Handle>,
        drone: Handle,
        mut key: KemKey<S>,
        made: UnixTime,
    ) {
        if self.keys.get(&drone).is_some_and(|held| held.key.term().g() > key.term().g()) {
            return;
        }
        if key.term().g() < self.count && own.is_none_or(|own| key.step_to(own, self.count).is_err()) {
            return;
        }
        self.hold(drone, key, made);
    }

    /// All of it as changes.
    pub(super) fn changes(&self) -> Vec<Change> {
        let count = (self.count > 0).then(|| self.counted());
        let keys = self.keys.iter().map(|(drone, held)| kem_key_change(drone, &held.key, held.made));
        count.into_iter().chain(keys).collect()
    }
}

/// Steps of κ to a count, as many as are left.
struct Steps<'a> {
    own: &'a Handle,
    g: u64,
    left: u64,
}

impl Steps<'_> {
    /// Steps κ. Returns false if it cannot be stepped so far: it is made anew.
    fn make<S: Suite>(&mut self, key: &mut KemKey<S>) -> bool {
        let steps = self.g.saturating_sub(key.term().g());
        // §24.7: 2^24 steps of all together.
        let made = steps <= self.left && key.step_to(self.own, self.g).is_ok();
        self.left = self.left.saturating_sub(if made { steps } else { 0 });
        made
    }
}

/// Whether κ of this age is to be renewed at the next join.
fn is_old<S: Suite>(held: &LeaderKemKey<S>, lifetime: Duration, now: UnixTime) -> bool {
    now.saturating_sub(held.made) >= lifetime.as_secs()
}

/// The change that makes κ durable.
pub(in crate::leader) fn kem_key_change<S: Suite>(drone: &Handle, key: &KemKey<S>, made: UnixTime) -> Change {
    Change::KemKey { drone: *drone.as_bytes(), key: key.encode().to_vec(), made }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{Deployment, KemPair, MasterSecret, Name, Ristretto255};
    use quiver_crypto::Secret;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    type S = Ristretto255;

    const NOW: UnixTime = 1_700_000_000;
    const OWN: Handle = Handle([7; 32]);

    fn term(g: u64) -> KemTerm {
        KemTerm::new(KemSet::MlKem768, g).unwrap()
    }

    fn key(drone: u8, g: u64) -> KemKey<S> {
        let master = MasterSecret::<S>::generate(&mut ChaCha20Rng::seed_from_u64(1));
        let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
        let group = Name::new("alpha").unwrap();
        let drone = Handle([drone; 32]);
        let pair = KemPair {
            deployment: &deployment,
            group: &group,
            leader: &OWN,
            drone: &drone,
            key: &[],
            ciphertext: &[],
        };
        KemKey::derive(term(g), &Secret::new([drone.as_bytes()[0]; 32]), &pair)
    }

    fn leader() -> KemKeys<S> {
        let mut keys = KemKeys::new();
        keys.configure(KemSetting::MlKem768);
        open(&mut keys).unwrap();
        for drone in 1..=2 {
            keys.hold(Handle([drone; 32]), key(drone, 1), NOW);
        }
        keys
    }

    fn open(keys: &mut KemKeys<S>) -> Result<Option<TermKeys<S>>, Error> {
        keys.open(&OWN, &Roster::new(), &BTreeMap::new(), NOW)
    }

    #[test]
    fn key_is_found_by_its_own_tag_of_the_newest_count_while_it_is_young() {
        let mut keys = leader();
        let found = |keys: &KemKeys<S>, drone: u8, named: &KemKey<S>, now| {
            keys.named(&Handle([drone; 32]), (named.term(), &named.tag()), now).is_some()
        };
        assert!(found(&keys, 1, &key(1, 1), NOW));
        assert!(!found(&keys, 1, &key(2, 1), NOW), "another drone's");
        assert!(!found(&keys, 3, &key(1, 1), NOW), "of nobody");
        let lifetime = KEM_LIFETIME.as_secs();
        assert!(found(&keys, 1, &key(1, 1), NOW + lifetime - 1));
        assert!(!found(&keys, 1, &key(1, 1), NOW + lifetime));
        // The operator may want it to be renewed sooner, not later: drones renew it by themselves.
        for (set, held) in [(60, 60), (2 * lifetime, lifetime)] {
            keys.set_lifetime(Duration::from_secs(set));
            assert!(found(&keys, 1, &key(1, 1), NOW + held - 1));
            assert!(!found(&keys, 1, &key(1, 1), NOW + held));
        }
        open(&mut keys).unwrap();
        assert!(!found(&keys, 1, &key(1, 1), NOW), "of the count before");
        assert!(!found(&keys, 1, &key(1, 2), NOW), "made at that count, not stepped to it");
        assert!(found(&keys, 1, &key(1, 1).at(&OWN, term(2)).unwrap(), NOW));
        assert!(!found(&keys, 1, &key(1, 1).at(&OWN, term(3)).unwrap(), NOW), "of a count to come");
    }

    #[test]
    fn steps_are_made_while_any_are_left_and_none_by_halves() {
        let [mut near, mut far, mut last] = [key(1, 5), key(2, 1), key(3, 4)];
        let mut steps = Steps { own: &OWN, g: 7, left: 6 };
        assert!(steps.make(&mut near));
        assert!(!steps.make(&mut far), "6 of the 4 that are left");
        assert!(steps.make(&mut last));
        assert_eq!([near, far, last].map(|key| key.term().g()), [7, 1, 7]);
        assert!(!steps.make(&mut key(1, 8)), "never back");
        assert_eq!(steps.left, 1);
    }

    #[test]
    fn records_bring_back_count_and_keys_in_whatever_state_the_log_is() {
        let mut keys = leader();
        let mut log = keys.changes();
        log.push(Change::KemTerms(5));
        (0..4).for_each(|_| drop(open(&mut keys).unwrap()));
        // A compacted log, to which old changes are applied once more.
        let compacted: Vec<Change> = keys.changes().into_iter().chain(log.iter().cloned()).collect();
        let replayed = |log: &[Change]| {
            let mut keys = KemKeys::<S>::new();
            for change in log {
                match change {
                    Change::KemTerms(g) => keys.replay_count(Some(&OWN), *g),
                    Change::KemKey { drone, key, made } => {
                        let key = KemKey::decode(key).unwrap();
                        keys.replay_key(Some(&OWN), Handle(*drone), key, *made);
                    }
                    _ => {}
                }
            }
            let held =
                keys.keys.iter().map(|(drone, held)| (*drone, held.key.term(), held.key.tag(), held.made));
            (keys.count, held.collect::<Vec<_>>())
        };
        let at = |drone: u8| {
            let key = key(drone, 1).at(&OWN, term(5)).unwrap();
            (Handle([drone; 32]), key.term(), key.tag(), NOW)
        };
        let expected = (5, alloc::vec![at(1), at(2)]);
        assert_eq!(replayed(&log), expected);
        assert_eq!(replayed(&keys.changes()), expected);
        assert_eq!(replayed(&compacted), expected);
    }

    #[test]
    fn count_is_learnt_forward_and_not_from_a_forger_of_the_last_one() {
        let mut keys = leader();
        assert!(!keys.learn(None) && !keys.learn(Some(term(1))));
        assert!(!keys.learn(Some(term(2 + MAX_FORGOTTEN))));
        assert!(keys.learn(Some(term(40))) && !keys.learn(Some(term(40))));
        assert_eq!(open(&mut keys).unwrap().unwrap().term(), term(41));
        assert_eq!(keys.keys.len(), 2);
        // Too far to be stepped: these drones make another.
        assert!(keys.learn(Some(term(41 + quiver_ainq::MAX_KEM_STEPS))));
        open(&mut keys).unwrap();
        assert_eq!(keys.keys.len(), 0);
        keys.count = 1 << 48;
        assert_eq!(open(&mut keys).map(drop), Err(Error::Exhausted));
        // Without a second factor nothing is counted.
        keys.configure(KemSetting::None);
        assert!(open(&mut keys).unwrap().is_none());
    }

    #[test]
    fn keys_of_drones_that_are_out_and_would_renew_them_are_forgotten() {
        let mut keys = leader();
        keys.hold(Handle([2; 32]), key(2, 1), NOW - KEM_LIFETIME.as_secs());
        open(&mut keys).unwrap();
        assert_eq!(keys.keys.keys().copied().collect::<Vec<_>>(), [Handle([1; 32])]);
        let mut roster = Roster::<S>::new();
        roster.evict([9; 16]);
        let pins = BTreeMap::from([([9; 16], Handle([1; 32]))]);
        keys.open(&OWN, &roster, &pins, NOW).unwrap();
        assert!(keys.keys.is_empty());
    }
}
