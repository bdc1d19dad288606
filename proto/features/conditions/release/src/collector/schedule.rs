//! Schedules a collection: which KGCs to ask, which to give up on, when a collection is over.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::Suite;
use quiver_delivery::client::greet;
use quiver_ibe::Condition;
use quiver_machine::Peer;
use quiver_message::{Payload, RefusalReason};

use super::collection::Asked;
use super::interface::{CollectEvent, Verdict};
use super::link::{CollectionStage, OpenChallenge};
use super::{CollectContext, Collector, ReleaseAuthority};
use crate::query::ShareQuery;

impl<S: Suite> Collector<S> {
    /// Executes what is due, and sets the next deadline.
    pub(super) fn advance(&mut self, cx: &mut CollectContext<'_, S>) {
        let time = cx.now.monotonic;
        for link in &mut self.links {
            // A KGC that does not answer a hello gets another one, later.
            if matches!(link.stage, CollectionStage::Greeting { deadline, .. } if deadline <= time) {
                link.stage = CollectionStage::Fresh;
                let peer = link.peer;
                for collection in self.collections.values_mut() {
                    if matches!(collection.asked.get(&peer), Some(Asked::Chosen)) {
                        let resting =
                            Asked::Resting { until: time, pending: None, kgc: link.kgc, verdict: None };
                        collection.asked.insert(peer, resting);
                    }
                }
            }
        }
        self.end_what_is_over(cx);
        self.choose(time);
        self.ask_chosen(cx);
        self.deadline = self.next_deadline(time);
    }

    /// Gives up what takes too long or cannot be any more.
    fn end_what_is_over(&mut self, cx: &mut CollectContext<'_, S>) {
        let (time, authority, links) = (cx.now.monotonic, self.authority.as_ref(), &self.links);
        let over = |collection: &super::Collection<S>| {
            collection.until <= time || collection.is_hopeless(time, authority, links)
        };
        let ended = self.collections.extract_if(.., |_, collection| over(collection));
        for (wanted, collection) in ended {
            let shortfall = collection.shortfall(wanted, authority);
            cx.out.event(CollectEvent::NotCollected(shortfall));
        }
    }

    /// Chooses whom to ask: as many as may still be needed, and some ahead.
    fn choose(&mut self, time: Duration) {
        let needed = self.authority.as_ref().map_or(1, |known| usize::from(known.publics().threshold()));
        for (wanted, collection) in &mut self.collections {
            collection.give_up_on_silent(time);
            let needed = if wanted.is_some() { needed } else { 1 };
            // §4.3: as many KGCs as are needed, and one more unless set otherwise.
            let enough = needed.saturating_add(self.timing.ahead.into());
            let mut hopeful = collection.hopeful();
            // Those first that were not asked yet.
            for again in [false, true] {
                for link in &self.links {
                    let known = collection.asked.contains_key(&link.peer);
                    let free = link.rests_until <= time && collection.may_ask(time, link.peer);
                    if hopeful < enough && known == again && free {
                        collection.asked.insert(link.peer, Asked::Chosen);
                        hopeful += 1;
                    }
                }
            }
        }
    }

    /// Asks those chosen that have given a challenge, and greets the others.
    fn ask_chosen(&mut self, cx: &mut CollectContext<'_, S>) {
        let time = cx.now.monotonic;
        for place in 0..self.links.len() {
            let Some(link) = self.links.get_mut(place) else { return };
            let peer = link.peer;
            let chosen = |collection: &super::Collection<S>| {
                matches!(collection.asked.get(&peer), Some(Asked::Chosen))
            };
            if link.rests_until > time || !self.collections.values().any(chosen) {
                continue;
            }
            match link.open(time) {
                Some(open) => {
                    let wanted = self.collections.iter().filter(|(_, collection)| chosen(collection));
                    let wanted: Vec<_> = wanted.map(|(wanted, _)| wanted.clone()).collect();
                    wanted.iter().for_each(|wanted| self.ask(cx, peer, &open, wanted));
                }
                None if matches!(link.stage, CollectionStage::Fresh) => {
                    // §4.1, step 1.
                    let nonce = greet(cx, peer, Payload::KeyShares);
                    let deadline = time + link.backoff.next(cx.rng);
                    link.stage = CollectionStage::Greeting { nonce, deadline };
                }
                None => {}
            }
        }
    }

    fn ask(
        &mut self,
        cx: &mut CollectContext<'_, S>,
        peer: Peer,
        open: &OpenChallenge,
        wanted: &Option<Condition>,
    ) {
        let known = self.authority.as_ref().map(ReleaseAuthority::version);
        // §4.3: H(MPK) in the place of F: it never changes, so another one is wrong.
        if self.authority.as_ref().is_some_and(|known| known.fingerprint() != open.master) {
            return self.doubt_key(cx, peer, wanted);
        }
        // §4.3: shares of a newer version make the drone ask for the newer statement.
        let statement = wanted.is_none() || known.is_none_or(|version| version < open.version);
        let query = ShareQuery { kgc: open.kgc, statement, condition: wanted.clone() }.encode();
        let asked = open.challenge.request(cx, peer, Payload::KeyShares, open.master, &query);
        let Some(pending) = asked else { return };
        let Some(link) = self.links.iter_mut().find(|link| link.peer == peer) else { return };
        let overdue = cx.now.monotonic + link.backoff.next(cx.rng);
        if let Some(collection) = self.collections.get_mut(wanted) {
            collection.asked.insert(peer, Asked::Pending { pending, overdue });
        }
    }

    /// A challenge is not signed: an attacker may have named another master key, and must not end with one
    /// message what this KGC could do for the collection.
    fn doubt_key(&mut self, cx: &mut CollectContext<'_, S>, peer: Peer, wanted: &Option<Condition>) {
        let Some(link) = self.links.iter_mut().find(|link| link.peer == peer) else { return };
        let until = cx.now.monotonic + link.backoff.next(cx.rng);
        link.stage = CollectionStage::Fresh;
        link.rests_until = until;
        let verdict = Some(Verdict::Refused(RefusalReason::UnknownAuthority));
        if let Some(collection) = self.collections.get_mut(wanted) {
            collection.asked.insert(peer, Asked::Resting { until, pending: None, kgc: link.kgc, verdict });
        }
    }

    fn next_deadline(&self, time: Duration) -> Option<Duration> {
        let collections = self.collections.values().map(|collection| collection.deadline(time));
        let links = self.links.iter().filter_map(|link| match link.stage {
            CollectionStage::Greeting { deadline, .. } => Some(deadline),
            _ => Some(link.rests_until).filter(|until| *until > time),
        });
        let earliest = collections.min()?;
        Some(links.fold(earliest, Duration::min))
    }
}
