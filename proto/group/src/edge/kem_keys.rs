//! The second factor of an edge: κ that it shares with leaders, and exchanges under way. docs/protocol.md
//! §24.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_ainq::{
    Deployment, DronePublicKey, Error, Handle, HeaderCore, KemKey, KemPair, KemTerm, Name, Suite, UnixTime,
};
use quiver_crypto::{Secret, Zeroizing};
use quiver_kem::{DecapsulationKey, KemSetting, SEED_LEN};
use quiver_message::{JoinCiphertext, KemOffer};
use rand_core::CryptoRngCore;

use crate::{KEM_LIFETIME, KemState};

/// Maximum number of leaders with which an edge has κ. Of more, the oldest κ goes.
const MAX_LEADERS: usize = 16;
/// Maximum number of ciphertexts that are tried in one attempt to join: they are not signed, so a forged one
/// may come before the leader's.
const MAX_CIPHERTEXTS: usize = 4;

/// κ with every leader with which the edge made one, by the leader's handle.
#[derive(Debug)]
pub(in crate::edge) struct KemKeys<S: Suite> {
    setting: KemSetting,
    keys: BTreeMap<Handle, EdgeKemKey<S>>,
}

/// κ of the newest term of its leader that the edge followed, and when it was made.
#[derive(Debug)]
struct EdgeKemKey<S: Suite> {
    key: KemKey<S>,
    made: UnixTime,
}

/// Stored form: the leader's handle, κ, and the time when it was made.
pub(in crate::edge) type StoredKey = ([u8; 32], Zeroizing<Vec<u8>>, UnixTime);

impl<S: Suite> KemKeys<S> {
    pub(in crate::edge) const fn new() -> Self {
        Self { setting: KemSetting::None, keys: BTreeMap::new() }
    }

    /// Sets what the deployment says, and forgets κ of another set. The caller persists.
    pub(in crate::edge) fn set(&mut self, setting: KemSetting) {
        self.setting = setting;
        self.keys.retain(|_, held| Some(held.key.term().set()) == setting.set());
    }

    /// Setting of the deployment.
    pub(in crate::edge) const fn setting(&self) -> KemSetting {
        self.setting
    }

    /// State of κ with a leader.
    pub(in crate::edge) fn state(&self, leader: &Handle) -> Option<KemState> {
        self.keys.get(leader).map(|held| KemState { term: held.key.term(), made: held.made })
    }

    /// Checks that a header is of the set that the deployment says. No other is followed, whoever signed it.
    ///
    /// # Errors
    /// [`Error::OtherKem`].
    pub(in crate::edge) fn check(&self, core: &HeaderCore<S>) -> Result<(), Error> {
        // §24.6: no end goes on without the second factor, or with another.
        if core.kem.map(|term| term.set()) == self.setting.set() { Ok(()) } else { Err(Error::OtherKem) }
    }

    /// κ for a header that makes a pair with this edge, or none if it names no second factor.
    ///
    /// # Errors
    /// [`Error::MissingKem`] if there is no κ with its leader, or none that leads there.
    pub(in crate::edge) fn for_header(&self, core: &HeaderCore<S>) -> Result<Option<KemKey<S>>, Error> {
        let Some(term) = core.kem else { return Ok(None) };
        let leader = core.leader.handle();
        let held = self.keys.get(&leader).ok_or(Error::MissingKem)?;
        // §24.3: never back, and no more than so many steps at once.
        held.key.at(&leader, term).map(Some).map_err(|_| Error::MissingKem)
    }

    /// Returns true if κ with the leader of a header is past the term that the header counts, because the
    /// leader's memory was put back.
    pub(in crate::edge) fn is_past(&self, core: &HeaderCore<S>) -> bool {
        let held = self.keys.get(&core.leader.handle()).map(|held| held.key.term().g());
        core.kem.is_some_and(|term| held > Some(term.g()))
    }

    /// The edge followed this opening: κ before it is erased. The caller persists.
    pub(in crate::edge) fn follow(&mut self, core: &HeaderCore<S>) {
        let leader = core.leader.handle();
        if let (Ok(Some(key)), Some(held)) = (self.for_header(core), self.keys.get_mut(&leader)) {
            held.key = key;
        }
    }

    /// κ with which a join succeeded takes the place of the one before. The caller persists.
    pub(in crate::edge) fn hold(&mut self, leader: Handle, entered: Entered<S>, now: UnixTime) {
        let made = match (entered.renewed, self.keys.get(&leader)) {
            (false, Some(held)) => held.made,
            _ => now,
        };
        if !self.keys.contains_key(&leader) && self.keys.len() >= MAX_LEADERS {
            let oldest = self.keys.iter().min_by_key(|(_, held)| held.made).map(|(leader, _)| *leader);
            oldest.and_then(|oldest| self.keys.remove(&oldest));
        }
        self.keys.insert(leader, EdgeKemKey { key: entered.key, made });
    }

    /// Returns the offer for a join at a leader whose term has this second factor, and the state that an answer
    /// needs.
    /// `anew`: the leader lost κ.
    ///
    /// # Errors
    /// [`Error::OtherKem`] if the leader's deployment says another.
    pub(in crate::edge) fn offer(
        &self,
        leader: &DronePublicKey<S>,
        term: Option<KemTerm>,
        (now, anew): (UnixTime, bool),
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Option<(KemOffer, KemExchange<S>)>, Error> {
        let leader = leader.handle();
        let (term, set) = match (term, self.setting.set()) {
            (None, None) => return Ok(None),
            (Some(term), Some(set)) if term.set() == set => (term, set),
            _ => return Err(Error::OtherKem),
        };
        // §24.5: an old one is renewed, and what does not lead to the leader's count.
        let held = self.keys.get(&leader).filter(|held| !anew && !is_old(held.made, now));
        if let Some(key) = held.and_then(|held| held.key.at(&leader, term).ok()) {
            let (term, tag) = (key.term(), key.tag());
            return Ok(Some((KemOffer::Held { term, tag }, KemExchange { leader, own: Own::Held(key) })));
        }
        // §24.2: a fresh key pair for every exchange.
        let (secret, key) = DecapsulationKey::generate(set, Secret::<SEED_LEN>::random(rng));
        let own = Own::Fresh { secret, public: key.clone(), keys: Vec::new() };
        Ok(Some((KemOffer::Key { set, key }, KemExchange { leader, own })))
    }

    /// Returns the stored form of every key.
    pub(in crate::edge) fn stored(&self) -> Vec<StoredKey> {
        let stored =
            |(leader, held): (&Handle, &EdgeKemKey<S>)| (*leader.as_bytes(), held.key.encode(), held.made);
        self.keys.iter().map(stored).collect()
    }

    /// Restores what [`stored`](Self::stored) gave.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub(in crate::edge) fn restore(
        &mut self,
        leader: [u8; 32],
        key: &[u8],
        made: UnixTime,
    ) -> Result<(), Error> {
        if self.keys.len() < MAX_LEADERS {
            self.keys.insert(Handle(leader), EdgeKemKey { key: KemKey::decode(key)?, made });
        }
        Ok(())
    }
}

/// Whether κ of this age is to be renewed at the next join.
fn is_old(made: UnixTime, now: UnixTime) -> bool {
    now.saturating_sub(made) >= KEM_LIFETIME.as_secs()
}

/// The exchange of one attempt to join.
#[derive(Debug)]
pub(in crate::edge) struct KemExchange<S: Suite> {
    leader: Handle,
    own: Own<S>,
}

#[derive(Debug)]
enum Own<S: Suite> {
    /// κ that both have, at the leader's count.
    Held(KemKey<S>),
    /// A key pair, and κ of the ciphertexts that came. Never stored: an exchange does not outlive the
    /// process.
    Fresh { secret: DecapsulationKey, public: Vec<u8>, keys: Vec<KemKey<S>> },
}

/// κ with which the edge entered.
#[derive(Debug)]
pub(in crate::edge) struct Entered<S: Suite> {
    key: KemKey<S>,
    /// Whether it comes from a new exchange.
    renewed: bool,
}

impl<S: Suite> KemExchange<S> {
    /// Takes a ciphertext. It is not signed: the welcome shows whether it was the leader's.
    pub(in crate::edge) fn take(
        &mut self,
        (deployment, group): (&Deployment<S>, &Name),
        drone: &Handle,
        message: &JoinCiphertext,
    ) {
        let Own::Fresh { secret, public, keys } = &mut self.own else { return };
        // §24.4: some are tried, so a forged one ends nothing; and not many.
        if message.term.set() != secret.set() || keys.len() >= MAX_CIPHERTEXTS {
            return;
        }
        let Ok(shared) = secret.decapsulate(&message.ciphertext) else { return };
        let (leader, ciphertext) = (&self.leader, &message.ciphertext[..]);
        let pair = KemPair { deployment, group, leader, drone, key: public, ciphertext };
        let key = KemKey::derive(message.term, &shared, &pair);
        // The same one once more is no other.
        if keys.iter().all(|known| known.term() != key.term() || known.tag() != key.tag()) {
            keys.push(key);
        }
    }

    /// κ of the first ciphertext that came, and the leader that was asked.
    pub(in crate::edge) fn made(&mut self) -> Option<(Handle, Entered<S>)> {
        let Own::Fresh { keys, .. } = &mut self.own else { return None };
        let key = (!keys.is_empty()).then(|| keys.swap_remove(0))?;
        Some((self.leader, Entered { key, renewed: true }))
    }

    /// Every κ that a header of this leader may have been made with.
    pub(in crate::edge) fn candidates(&self, core: &HeaderCore<S>) -> Vec<Entered<S>> {
        let (keys, renewed) = match &self.own {
            Own::Held(key) => (core::slice::from_ref(key), false),
            Own::Fresh { keys, .. } => (&keys[..], true),
        };
        let Some(term) = core.kem.filter(|_| core.leader.handle() == self.leader) else { return Vec::new() };
        let at = |key: &KemKey<S>| key.at(&self.leader, term).ok();
        keys.iter().filter_map(at).map(|key| Entered { key, renewed }).collect()
    }
}

impl<S: Suite> Entered<S> {
    pub(in crate::edge) const fn key(&self) -> &KemKey<S> {
        &self.key
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap as Spares;

    use quiver_ainq::{
        DroneKeypair, GroupContext, Identity, Leadership, MAX_KEM_STEPS, MasterSecret, Ristretto255, Role,
        Roster, StrategyKind, TermKeys, Times,
    };
    use quiver_kem::{KemSet, MESSAGE_LEN, encapsulate};
    use quiver_testbed::{issue_keypair, name};
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    type S = Ristretto255;

    const NOW: UnixTime = 1_700_000_000;

    struct Bench {
        master: MasterSecret<S>,
        deployment: Deployment<S>,
        leader: DroneKeypair<S>,
        rng: ChaCha20Rng,
    }

    impl Bench {
        fn new() -> Self {
            let mut rng = ChaCha20Rng::seed_from_u64(1);
            let master = MasterSecret::<S>::generate(&mut rng);
            let deployment = Deployment::new(name("test"), master.public());
            let role = Role::Leader { group: name("alpha"), ordinal: 0 };
            let (groups, not_after) = (alloc::vec![name("alpha")], 1 << 40);
            let identity = Identity { serial: [1; 16], name: name("leader"), role, groups, not_after };
            let leader = issue_keypair(&master, &deployment, &identity, &mut rng);
            Self { master, deployment, leader, rng }
        }

        /// The header of an opening by this leader.
        fn core(&mut self, term: Option<KemTerm>) -> HeaderCore<S> {
            let (deployment, group) = (self.deployment.clone(), name("alpha"));
            let context = GroupContext { deployment, group, leader: self.leader.public().clone() };
            let times = Times { issued_at: NOW, valid_until: NOW + 60, revocation_number: 0 };
            let (roster, spares, rng) = (Roster::new(), Spares::new(), &mut self.rng);
            let kind = StrategyKind::Flat;
            let opened = match term {
                None => {
                    let (epoch, prev) = (1 << 16, [0; 32]);
                    Leadership::open_term(
                        context,
                        &self.leader,
                        roster,
                        &spares,
                        epoch,
                        prev,
                        &times,
                        kind,
                        rng,
                    )
                }
                Some(term) => {
                    let (keys, place) = (TermKeys::new(term, []), (1 << 16, [0; 32]));
                    Leadership::open_term_with_kem(
                        context,
                        &self.leader,
                        roster,
                        &spares,
                        &keys,
                        place,
                        &times,
                        kind,
                        rng,
                    )
                }
            };
            opened.unwrap().1.header.core
        }

        /// κ of an exchange in a term of the leader.
        fn entered(&mut self, term: KemTerm) -> Entered<S> {
            let mut keys = KemKeys::<S>::new();
            keys.set(KemSetting::MlKem768);
            let offered = keys.offer(self.leader.public(), Some(term), (NOW, false), &mut self.rng);
            let (offer, mut exchange) = offered.unwrap().unwrap();
            self.answer(&offer, &mut exchange, term, 3);
            let core = self.core(Some(term));
            exchange.candidates(&core).pop().unwrap()
        }

        /// Gives the exchange a ciphertext that was made with this randomness.
        fn answer(&self, offer: &KemOffer, exchange: &mut KemExchange<S>, term: KemTerm, number: u8) {
            let KemOffer::Key { set, key } = offer else { panic!("an encapsulation key") };
            let (ciphertext, _) = encapsulate(*set, key, &Secret::new([number; MESSAGE_LEN])).unwrap();
            let message = JoinCiphertext { nonce: [0; 16], term, ciphertext };
            exchange.take((&self.deployment, &name("alpha")), &Handle([2; 32]), &message);
        }
    }

    fn term(g: u64) -> KemTerm {
        KemTerm::new(KemSet::MlKem768, g).unwrap()
    }

    #[test]
    fn headers_that_count_back_or_far_ahead_or_are_another_leaders_have_no_key() {
        let mut bench = Bench::new();
        let mut keys = KemKeys::<S>::new();
        keys.set(KemSetting::MlKem768);
        let entered = bench.entered(term(5));
        keys.hold(bench.leader.public().handle(), entered, NOW);
        let mut at = |g| {
            let core = bench.core(Some(term(g)));
            let found = keys.for_header(&core).map(|key| key.unwrap().term().g());
            (found, keys.is_past(&core))
        };
        assert_eq!(at(4), (Err(Error::MissingKem), true));
        assert_eq!(at(5), (Ok(5), false));
        assert_eq!(at(5 + MAX_KEM_STEPS), (Ok(5 + MAX_KEM_STEPS), false));
        assert_eq!(at(6 + MAX_KEM_STEPS), (Err(Error::MissingKem), false));
        // κ of before is gone once an opening was followed.
        keys.follow(&bench.core(Some(term(9))));
        assert!(keys.for_header(&bench.core(Some(term(8)))).is_err());
        assert!(keys.for_header(&bench.core(Some(term(9)))).is_ok());
        let mut other = Bench::new();
        other.leader = {
            let identity = other.leader.public().identity.clone();
            issue_keypair(&other.master, &other.deployment, &identity, &mut other.rng)
        };
        let foreign = keys.for_header(&other.core(Some(term(9)))).map(drop);
        assert_eq!(foreign, Err(Error::MissingKem));
    }

    #[test]
    fn headers_of_another_set_or_of_none_are_refused_and_so_are_challenges() {
        let mut bench = Bench::new();
        let large = KemTerm::new(KemSet::MlKem1024, 1).unwrap();
        let terms = [None, Some(term(1)), Some(large)];
        for (setting, own) in KemSetting::ALL.into_iter().zip(terms) {
            let mut keys = KemKeys::<S>::new();
            keys.set(setting);
            for other in terms {
                let fits = other == own;
                assert_eq!(keys.check(&bench.core(other)).is_ok(), fits, "{setting}, {other:?}");
                let leader = bench.leader.public().clone();
                let offer = keys.offer(&leader, other, (NOW, false), &mut bench.rng);
                assert_eq!(offer.is_ok(), fits, "{setting}, {other:?}");
            }
        }
    }

    #[test]
    fn key_is_named_while_it_leads_to_the_leaders_count_and_is_young_and_not_lost() {
        let mut bench = Bench::new();
        let mut keys = KemKeys::<S>::new();
        keys.set(KemSetting::MlKem768);
        let (leader, lifetime) = (bench.leader.public().clone(), KEM_LIFETIME.as_secs());
        let entered = bench.entered(term(5));
        keys.hold(leader.handle(), entered, NOW);
        let mut named = |keys: &KemKeys<S>, g, age| {
            let (offer, _) = keys.offer(&leader, Some(term(g)), age, &mut bench.rng).unwrap().unwrap();
            matches!(offer, KemOffer::Held { term: of, .. } if of == term(g))
        };
        assert!(named(&keys, 5, (NOW, false)) && named(&keys, 7, (NOW + lifetime - 1, false)));
        assert!(!named(&keys, 4, (NOW, false)) && !named(&keys, 6 + MAX_KEM_STEPS, (NOW, false)));
        assert!(!named(&keys, 5, (NOW + lifetime, false)) && !named(&keys, 5, (NOW, true)));
        // And comes back from the disk as it was.
        let mut restored = KemKeys::<S>::new();
        restored.set(KemSetting::MlKem768);
        for (leader, key, made) in keys.stored() {
            restored.restore(leader, &key, made).unwrap();
        }
        assert!(named(&restored, 5, (NOW, false)) && !named(&restored, 5, (NOW + lifetime, false)));
    }

    #[test]
    fn few_ciphertexts_are_tried_and_each_once() {
        let mut bench = Bench::new();
        let mut keys = KemKeys::<S>::new();
        keys.set(KemSetting::MlKem768);
        let leader = bench.leader.public().clone();
        let offered = keys.offer(&leader, Some(term(1)), (NOW, false), &mut bench.rng);
        let (offer, mut exchange) = offered.unwrap().unwrap();
        let core = bench.core(Some(term(1)));
        for (number, known) in [(1, 1), (1, 1), (2, 2), (3, 3), (2, 3), (4, 4), (5, 4), (6, 4)] {
            bench.answer(&offer, &mut exchange, term(1), number);
            assert_eq!(exchange.candidates(&core).len(), known);
        }
        assert!(exchange.candidates(&bench.core(None)).is_empty());
    }

    #[test]
    fn oldest_of_more_leaders_than_are_kept_goes() {
        let mut bench = Bench::new();
        let mut keys = KemKeys::<S>::new();
        keys.set(KemSetting::MlKem768);
        for number in 0..=MAX_LEADERS as u8 {
            let entered = bench.entered(term(1));
            keys.hold(Handle([number; 32]), entered, NOW + UnixTime::from(number));
        }
        assert_eq!(keys.keys.len(), MAX_LEADERS);
        assert!(!keys.keys.contains_key(&Handle([0; 32])));
    }

    #[test]
    fn no_more_leaders_than_are_kept_come_back_from_the_disk() {
        let key = Bench::new().entered(term(1)).key().encode();
        let mut keys = KemKeys::<S>::new();
        keys.set(KemSetting::MlKem768);
        for number in 0..=MAX_LEADERS as u8 {
            keys.restore([number; 32], &key, NOW).unwrap();
        }
        assert_eq!(keys.stored().len(), MAX_LEADERS);
    }
}
