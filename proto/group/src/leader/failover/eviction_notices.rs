//! Signed eviction notices: keeps them, evicts the drones named, and sends them to the next leader.
//! docs/protocol.md §10.6.
//!
//! A leader's own evictions are in its roster. A notice carries them to leaders that have another roster: a
//! deputy that takes over before it replicated them, and the leader of the other side after a partition.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Deployment, Epoch, Error, Label, Role, Roster, Serial, Suite};
use quiver_machine::{Now, Peer, RestoreError};
use quiver_message::{EvictionNotice, MAX_EVICTED, Message};

use crate::leader::context::LeaderContext;
use crate::leader::store::{Change, LeaderStore, notice_change};
use crate::leader::term::Term;
use crate::statements;

/// Maximum size of all notices, in serials (16 bytes): 2 MiB.
const MAX_ROOM: usize = 1 << 17;
/// Size of a notice beside its serials, in serials: the leader's key, its signature, the epoch.
const ROOM_OF_NOTICE: usize = 24;
/// One notice of each other leader is taken in so long, and so many at once: a mass eviction takes some
/// dozens.
const PACE: Duration = Duration::from_secs(1);
const AHEAD: u32 = 128;
/// Maximum number of drones that are no members and are barred by other leaders' notices.
const MAX_STRANGERS: usize = 1 << 16;

/// The notices that this leader signed, and those it received while standing by, in the order they came.
#[derive(Debug)]
pub(in crate::leader) struct EvictionNotices<S: Suite> {
    kept: VecDeque<EvictionNotice<S>>,
    /// Size of the notices kept, in serials.
    room: usize,
    /// Times on the monotonic clock up to which the allowances of signers of accepted notices are used, by
    /// ordinal.
    used: BTreeMap<u16, Duration>,
}

impl<S: Suite> EvictionNotices<S> {
    pub(in crate::leader) fn new() -> Self {
        Self { kept: VecDeque::new(), room: 0, used: BTreeMap::new() }
    }

    pub(in crate::leader) fn iter(&self) -> impl Iterator<Item = &EvictionNotice<S>> {
        self.kept.iter()
    }

    /// All drones named.
    pub(in crate::leader) fn serials(&self) -> impl Iterator<Item = &Serial> {
        self.kept.iter().flat_map(|notice| &notice.serials)
    }

    /// A leader's used allowance with one more notice now; `None` if there were too many. Its signer sends a
    /// refused notice again, to the leader that it stands by for.
    fn allowance(&self, leader: u16, now: Now) -> Option<Duration> {
        let used = self.used.get(&leader).copied().unwrap_or_default().max(now.monotonic);
        (used - now.monotonic <= PACE * AHEAD).then(|| used.saturating_add(PACE))
    }

    fn knows(&self, notice: &EvictionNotice<S>) -> bool {
        self.kept.iter().any(|kept| {
            kept.epoch == notice.epoch && kept.serials == notice.serials && kept.leader == notice.leader
        })
    }

    fn keep(&mut self, notice: EvictionNotice<S>, roster: &Roster<S>) {
        self.room += room(&notice);
        self.kept.push_back(notice);
        if self.room > MAX_ROOM {
            self.make_room(roster);
        }
    }

    /// Forgets notices that the roster repeats, else the oldest notice of the leader whose notices take the
    /// most room: one that signs many does not displace those of another.
    fn make_room(&mut self, roster: &Roster<S>) {
        let excess = |room: usize| room > MAX_ROOM;
        let mut room_left = self.room;
        self.kept.retain(|notice| {
            // §10.9: those that the roster held makes needless go first.
            let spare = excess(room_left) && notice.serials.iter().all(|serial| roster.is_evicted(serial));
            room_left -= if spare { room(notice) } else { 0 };
            !spare
        });
        while excess(room_left) {
            let mut by_leader = BTreeMap::<u16, usize>::new();
            for notice in &self.kept {
                *by_leader.entry(notice.epoch.ordinal()).or_default() += room(notice);
            }
            // §10.9: then the oldest of the leader with the most.
            let most = by_leader.into_iter().max_by_key(|(_, room)| *room).map(|(leader, _)| leader);
            let place = self.kept.iter().position(|notice| Some(notice.epoch.ordinal()) == most);
            let Some(notice) = place.and_then(|place| self.kept.remove(place)) else { break };
            room_left -= room(&notice);
        }
        self.room = room_left;
    }

    /// Takes a stored notice.
    pub(in crate::leader) fn replay(
        &mut self,
        deployment: &Deployment<S>,
        message: &[u8],
        roster: &Roster<S>,
    ) -> Result<(), RestoreError> {
        match Message::decode(deployment, message) {
            Ok(Message::EvictionNotice(notice)) if !self.knows(&notice) => self.keep(notice, roster),
            Ok(Message::EvictionNotice(_)) => {}
            _ => return Err(RestoreError::Damaged),
        }
        Ok(())
    }
}

/// Size of a notice, in serials.
fn room<S: Suite>(notice: &EvictionNotice<S>) -> usize {
    ROOM_OF_NOTICE + notice.serials.len()
}

impl<S: Suite> LeaderContext<'_, S> {
    fn keep_notice(&mut self, notice: EvictionNotice<S>) {
        self.persist(&[notice_change(&self.config.deployment, &notice)]);
        // A notice is kept also if the roster in force bars the same drones: after a merge another leader's
        // roster may take its place.
        self.store.notices.keep(notice, &self.store.roster);
    }

    /// Signs and publishes the evictions from this epoch on, for deputies and for the evicted themselves.
    pub(in crate::leader) fn sign_eviction_notice(&mut self, epoch: Epoch, serials: &[Serial]) {
        for serials in serials.chunks(MAX_EVICTED) {
            let Some(keypair) = &self.store.keypair else { return };
            let group = self.config.group.clone();
            // §10.6: `evict` over group, epoch and serials.
            let statement = statements::evict(&group, epoch, serials);
            let signature = keypair.sign(&self.config.deployment, Label::Evict, &statement, self.rng);
            let leader = keypair.public().clone();
            let notice = EvictionNotice { group, leader, epoch, serials: serials.to_vec(), signature };
            self.keep_notice(notice.clone());
            self.publish(&Message::EvictionNotice(notice));
        }
    }
}

/// Takes another leader's notice, from any peer. A leader in office evicts the drones named; a deputy does
/// when it takes over.
pub(in crate::leader) fn receive<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    term: Option<&mut Term<S>>,
    from: Peer,
    notice: EvictionNotice<S>,
) {
    if notice.group != cx.config.group {
        return;
    }
    let (members, drones) = news(cx.store, term.as_deref(), &notice);
    // Our own notice relayed by the group, or one known long since, costs no curve arithmetic.
    let old = members.is_empty() && drones.is_empty();
    if old || (term.is_none() && cx.store.notices.knows(&notice)) {
        return;
    }
    let leader = notice.epoch.ordinal();
    // §10.9: one of each other leader in a second, 128 at once.
    let Some(used) = cx.store.notices.allowance(leader, cx.now) else { return };
    if !cx.affords_check(from) {
        return;
    }
    if let Err(error) = verify(cx, &notice) {
        return cx.blame(from, error);
    }
    cx.store.notices.used.insert(leader, used);
    let Some(term) = term else { return cx.keep_notice(notice) };
    // §12.2: a drone that holds no key of the group needs no new key to be kept out: the next epoch bars it,
    // whatever its cause.
    let barred = term.pending.bar(leader, drones);
    if !barred.is_empty() {
        let changes = barred.into_iter().map(Change::Evicted);
        cx.persist(&changes.collect::<Vec<_>>());
    }
    // §12.2: members at once.
    if !members.is_empty() {
        term.pending.evict(members);
        term.rekey(cx);
    }
}

/// Finds the drones that a notice names and that are not evicted yet: the members, and the others.
fn news<S: Suite>(
    store: &LeaderStore<S>,
    term: Option<&Term<S>>,
    notice: &EvictionNotice<S>,
) -> (Vec<Serial>, Vec<Serial>) {
    let roster = term.map_or(&store.roster, Term::roster);
    let is_barred = |serial: &Serial| term.is_some_and(|term| term.pending.is_barred(serial));
    let news = notice.serials.iter().copied();
    let news = news.filter(|serial| !roster.is_evicted(serial) && !is_barred(serial));
    let (members, mut drones): (Vec<Serial>, Vec<Serial>) =
        news.partition(|serial| roster.find(serial).is_some());
    // §10.9: drones that are no members are barred on another's word up to 65,536.
    if term.is_some() && roster.evicted().nth(MAX_STRANGERS).is_some() {
        drones.clear();
    }
    (members, drones)
}

fn verify<S: Suite>(cx: &LeaderContext<'_, S>, notice: &EvictionNotice<S>) -> Result<(), Error> {
    let leader = &notice.leader;
    // §10.6: what a leader of the group validly signed is honoured.
    let leads = match &leader.identity.role {
        Role::Leader { group, ordinal } => *group == notice.group && *ordinal == notice.epoch.ordinal(),
        Role::Edge => false,
    };
    if !leads || cx.store.refused.names(leader) {
        return Err(Error::NotALeader);
    }
    if cx.store.revocations.names(leader) {
        return Err(Error::Revoked);
    }
    if cx.now.unix >= leader.identity.not_after {
        return Err(Error::Expired);
    }
    let statement = statements::evict(&notice.group, notice.epoch, &notice.serials);
    notice.signature.verify(&cx.config.deployment, leader, Label::Evict, &statement)
}

/// Removes from a replica that is taken over all drones named by a notice.
pub(super) fn remove_evicted<S: Suite>(store: &mut LeaderStore<S>) -> Vec<Change> {
    // §10.4: a deputy takes over less the drones that a notice names.
    let named = store.notices.serials().filter(|serial| !store.roster.is_evicted(serial));
    let named: Vec<Serial> = named.copied().collect();
    let mut changes = Vec::new();
    for serial in named {
        if let Some(slot) = store.roster.evict(serial) {
            store.remove_spare(slot);
            changes.push(Change::Vacated(slot));
        }
        changes.push(Change::Evicted(serial));
    }
    changes
}

/// Sends the active leader every eviction notice whose subject its roster still admits.
pub(super) fn send_unheeded<S: Suite>(cx: &mut LeaderContext<'_, S>, to: Peer) {
    let roster = &cx.store.roster;
    let unheeded =
        |notice: &&EvictionNotice<S>| notice.serials.iter().any(|serial| !roster.is_evicted(serial));
    let notices = cx.store.notices.iter().filter(unheeded);
    let encode =
        |notice: &EvictionNotice<S>| Message::EvictionNotice(notice.clone()).encode(&cx.config.deployment);
    for message in notices.map(encode).collect::<Vec<_>>() {
        cx.out.send_encoded(to, message);
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{DroneKeypair, Identity, MasterSecret, Name, Ristretto255, SecretValue};
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    type S = Ristretto255;

    /// The keypair of a leader with this ordinal.
    fn leader(ordinal: u16, rng: &mut ChaCha20Rng) -> DroneKeypair<S> {
        let (group, name) = (Name::new("alpha").unwrap(), Name::new("leader").unwrap());
        let role = Role::Leader { group: group.clone(), ordinal };
        let identity = Identity { serial: [9; 16], name, role, groups: alloc::vec![group], not_after: 1000 };
        let (master, secret) = (MasterSecret::<S>::generate(rng), SecretValue::generate(rng));
        let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
        let partial = master.issue_partial_key(&deployment, &identity, &secret.public(), rng);
        partial.verify(&deployment, &identity, &secret).unwrap()
    }

    /// The notice number `n` of a leader, about as many drones as this; its signature is another's.
    fn notice(ordinal: u16, n: u64, serials: usize) -> EvictionNotice<S> {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let keypair = leader(ordinal, &mut rng);
        let deployment =
            Deployment::new(Name::new("test").unwrap(), MasterSecret::generate(&mut rng).public());
        let serial = |place: usize| {
            let mut serial = [u8::try_from(ordinal).unwrap(); 16];
            serial[..8].copy_from_slice(&(n * 10_000 + place as u64).to_be_bytes());
            serial
        };
        EvictionNotice {
            group: Name::new("alpha").unwrap(),
            leader: keypair.public().clone(),
            epoch: Epoch { term: Epoch::term_of(1, ordinal), counter: n },
            serials: (0..serials).map(serial).collect(),
            signature: keypair.sign(&deployment, Label::Evict, &[], &mut rng),
        }
    }

    fn kept(notices: &EvictionNotices<S>) -> Vec<(u16, u64)> {
        notices.iter().map(|notice| (notice.epoch.ordinal(), notice.epoch.counter)).collect()
    }

    #[test]
    fn many_small_notices_are_kept() {
        let mut notices = EvictionNotices::new();
        let first = notice(0, 0, 1);
        for counter in 0..1000 {
            let epoch = Epoch { counter, ..first.epoch };
            notices.keep(EvictionNotice { epoch, ..first.clone() }, &Roster::new());
        }
        assert_eq!(notices.iter().count(), 1000);
    }

    #[test]
    fn a_notice_that_the_roster_makes_needless_is_the_first_to_go() {
        let (mut notices, mut roster) = (EvictionNotices::new(), Roster::new());
        for n in 0..125 {
            notices.keep(notice(0, n, 1024), &roster);
        }
        notice(0, 7, 1024).serials.into_iter().for_each(|serial| assert_eq!(roster.evict(serial), None));
        assert_eq!(kept(&notices).len(), 125);
        notices.keep(notice(0, 125, 1024), &roster);
        let expected: Vec<_> = (0..126).filter(|n| *n != 7).map(|n| (0, n)).collect();
        assert_eq!(kept(&notices), expected);
        // Then the oldest.
        notices.keep(notice(0, 126, 1024), &roster);
        assert_eq!(kept(&notices), (1..127).filter(|n| *n != 7).map(|n| (0, n)).collect::<Vec<_>>());
        assert_eq!(notices.room, notices.iter().map(room).sum::<usize>());
    }

    #[test]
    fn a_leader_that_signs_many_notices_pushes_out_its_own() {
        let (mut notices, roster) = (EvictionNotices::new(), Roster::new());
        notices.keep(notice(0, 1, 300), &roster);
        for n in 0..200 {
            notices.keep(notice(1, n, 1024), &roster);
        }
        assert!(notices.room <= MAX_ROOM);
        assert_eq!(kept(&notices)[..2], [(0, 1), (1, 76)]);
    }
}
