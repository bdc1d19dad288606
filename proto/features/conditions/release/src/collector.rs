//! Collects condition keys for a drone: shares from any t of n KGCs (docs/protocol.md §4.3).
//!
//! KGCs are asked in waves, as many at a time as are still needed and some ahead. A KGC that is silent,
//! refuses or sends a wrong share is replaced by another. The key is combined first and checked once; only if
//! it is wrong are the shares checked one by one. It persists nothing: the application stores its events.

mod answers;
mod collection;
mod interface;
mod link;
mod schedule;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use quiver_ainq::{KgcId, Suite};
use quiver_ibe::{Condition, Error as IbeError, IdentityKey, ShareFault, UnverifiedKeyShare, combine};
use quiver_machine::{Backoff, Context, Handled, MachinePart, Offence, Peer, Route};
use quiver_message::{Message, RefusalReason};

use self::collection::{Asked, Collection};
pub use self::interface::{CollectCommand, CollectEvent, CollectTiming, Shortfall, Verdict};
use self::link::{CollectionStage, KgcLink};
use super::authority::ReleaseAuthority;
use super::query::ShareResponse;

/// Maximum number of keys collected at a time.
pub const MAX_COLLECTIONS: usize = 64;
/// Maximum number of keys kept in memory (§4.3).
pub const MAX_KEPT: usize = 256;
/// KGCs connected at a time.
const MAX_LINKS: usize = 256;

/// A drone that collects identity keys.
#[derive(Debug)]
pub struct Collector<S: Suite> {
    /// The statement of the highest version seen.
    authority: Option<ReleaseAuthority<S>>,
    /// Connected KGCs, the one to ask first in front.
    links: Vec<KgcLink>,
    /// Collections by condition; `None` if only the statement is wanted.
    collections: BTreeMap<Option<Condition>, Collection<S>>,
    kept: BTreeMap<Condition, IdentityKey>,
    /// The conditions kept, the oldest in front.
    ages: VecDeque<Condition>,
    timing: CollectTiming,
    deadline: Option<Duration>,
}

/// The context of this part.
type CollectContext<'a, S> = Context<'a, S, CollectEvent, Infallible>;

impl<S: Suite> Collector<S> {
    /// A collector that has nothing to do yet. `authority`: the known statement about the master key; without
    /// one, the KGCs are asked for it.
    #[must_use]
    pub fn new(authority: Option<ReleaseAuthority<S>>, timing: CollectTiming) -> Self {
        Self {
            authority,
            links: Vec::new(),
            collections: BTreeMap::new(),
            kept: BTreeMap::new(),
            ages: VecDeque::new(),
            timing,
            deadline: None,
        }
    }

    /// Returns true if nothing is being collected.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.collections.is_empty()
    }

    /// The known statement about the master key.
    #[must_use]
    pub const fn authority(&self) -> Option<&ReleaseAuthority<S>> {
        self.authority.as_ref()
    }

    /// The key of a condition, if it was collected and is still kept.
    #[must_use]
    pub fn key(&self, condition: &Condition) -> Option<&IdentityKey> {
        self.kept.get(condition)
    }

    fn collect(
        &mut self,
        cx: &mut CollectContext<'_, S>,
        condition: Option<Condition>,
        patience: Duration,
        wait: bool,
    ) {
        // §4.3: a condition's key opens everything ever encrypted to it: nobody is asked again.
        if let Some((condition, key)) = condition.as_ref().and_then(|wanted| self.kept.get_key_value(wanted))
        {
            let (condition, key) = (condition.clone(), Box::new(key.clone()));
            return cx.out.event(CollectEvent::Collected { condition, key });
        }
        if self.collections.len() >= MAX_COLLECTIONS && !self.collections.contains_key(&condition) {
            return cx.out.event(CollectEvent::TooMany(condition));
        }
        let new = || Collection::new(condition.as_ref(), cx.now.monotonic + self.timing.retry);
        let collection = self.collections.entry(condition.clone()).or_insert_with(new);
        collection.begin(cx.now.monotonic, patience, wait);
    }

    /// Takes a statement if it is of the same master key and newer.
    fn learn(&mut self, cx: &mut CollectContext<'_, S>, authority: ReleaseAuthority<S>) {
        // §4.3: MPK stays for ever; a refresh of the shares makes a statement of the next version.
        let newer = self.authority.as_ref().is_none_or(|known| {
            known.fingerprint() == authority.fingerprint() && known.version() < authority.version()
        });
        if newer {
            // §4.3: shares of two versions are never combined.
            self.collections.values_mut().for_each(Collection::forget_shares);
            cx.out.event(CollectEvent::Statement { statement: authority.statement().bytes() });
            self.authority = Some(authority);
        }
    }

    fn answered(
        &mut self,
        cx: &mut CollectContext<'_, S>,
        (from, kgc): (Peer, KgcId),
        wanted: &Option<Condition>,
        response: ShareResponse,
    ) {
        let verdict = match response {
            ShareResponse::Share { version, share } => {
                return self.share(cx, (from, kgc), wanted, version, share.as_slice());
            }
            ShareResponse::Statement => {
                // §4.3: a statement without a share ends only what asked for nothing else.
                if wanted.is_none() && self.authority.is_some() {
                    self.collections.remove(wanted);
                    cx.out.event(CollectEvent::UpToDate);
                } else {
                    self.note_refusal(from, wanted, Verdict::Refused(RefusalReason::Malformed));
                }
                return;
            }
            ShareResponse::NotYet { at, now: theirs } => Verdict::NotYet { at, now: theirs },
            ShareResponse::NotApproved => Verdict::NotApproved,
            ShareResponse::NotItsDrone => Verdict::NotItsDrone,
            ShareResponse::NoPolicy => Verdict::NoPolicy,
        };
        // §4.3: not yet, not approved: a collection that waits asks again later.
        let later = self.collections.get(wanted).is_some_and(|collection| collection.wait);
        if later { self.rest(cx, from, wanted, verdict) } else { self.note_refusal(from, wanted, verdict) }
    }

    fn share(
        &mut self,
        cx: &mut CollectContext<'_, S>,
        (from, kgc): (Peer, KgcId),
        wanted: &Option<Condition>,
        version: u32,
        share: &[u8],
    ) {
        let Some(condition) = wanted else {
            return self.note_refusal(from, wanted, Verdict::Refused(RefusalReason::Malformed));
        };
        if self.authority.as_ref().map(ReleaseAuthority::version) != Some(version) {
            // §4.3: it, or the statement known here, is of before a refresh: ask it again for its challenge.
            if let Some(link) = self.links.iter_mut().find(|link| link.peer == from) {
                link.stage = CollectionStage::Fresh;
            }
            return self.rest(cx, from, wanted, Verdict::OtherVersion(version));
        }
        // §4.3: shares are not verified one by one as long as the key comes out right.
        match UnverifiedKeyShare::decode_from(kgc, share) {
            Ok(share) => {
                let Some(collection) = self.collections.get_mut(wanted) else { return };
                collection.asked.insert(from, Asked::Shared { share });
                self.combine(cx, condition);
            }
            Err(error) => {
                let fault = fault_of(&error);
                self.blame_share(cx, from, kgc, condition, fault);
            }
        }
    }

    /// Makes the key if there are shares enough. Each time it does not come out, shares less.
    fn combine(&mut self, cx: &mut CollectContext<'_, S>, condition: &Condition) {
        let wanted = Some(condition.clone());
        loop {
            let Some(collection) = self.collections.get(&wanted) else { return };
            let (Some(authority), Some(point)) = (&self.authority, &collection.point) else { return };
            let from = collection.shares();
            if from.len() < usize::from(authority.publics().threshold()) {
                return;
            }
            // §4.3: combines t shares and checks once, e(P1, K) = e(MPK, Q); only if that fails, every share.
            let shares: Vec<_> = from.iter().map(|(_, share)| share.clone()).collect();
            let culprits = match combine(authority.publics(), point, &shares, cx.rng) {
                Ok(key) => {
                    self.collections.remove(&wanted);
                    return self.keep(cx, condition.clone(), key);
                }
                Err(IbeError::InvalidKeyShares { culprits }) => culprits,
                // Right shares of a consistent quorum make the key, so this does not happen: all of them are
                // given up.
                Err(_) => shares
                    .iter()
                    .map(|share| quiver_ibe::Culprit { index: share.index(), fault: ShareFault::Wrong })
                    .collect(),
            };
            // §4.3: the wrong ones are named, and other KGCs asked in their place.
            let mut blamed = false;
            for (peer, share) in &from {
                if let Some(culprit) = culprits.iter().find(|culprit| culprit.index == share.index()) {
                    blamed = true;
                    self.blame_share(cx, *peer, culprit.index, condition, culprit.fault);
                }
            }
            if !blamed {
                return;
            }
        }
    }

    fn keep(&mut self, cx: &mut CollectContext<'_, S>, condition: Condition, key: IdentityKey) {
        if self.kept.insert(condition.clone(), key.clone()).is_none() {
            self.ages.push_back(condition.clone());
        }
        while self.ages.len() > MAX_KEPT {
            if let Some(oldest) = self.ages.pop_front() {
                self.kept.remove(&oldest);
            }
        }
        cx.out.event(CollectEvent::Collected { condition, key: Box::new(key) });
    }

    fn blame_share(
        &mut self,
        cx: &mut CollectContext<'_, S>,
        peer: Peer,
        kgc: KgcId,
        condition: &Condition,
        fault: ShareFault,
    ) {
        let condition = condition.clone();
        self.note_refusal(peer, &Some(condition.clone()), Verdict::Wrong(fault));
        cx.out.event(CollectEvent::Culprit { kgc, peer, condition, fault });
    }

    /// Notes a refusal: the KGC is not asked for this key again.
    fn note_refusal(&mut self, peer: Peer, wanted: &Option<Condition>, verdict: Verdict) {
        let kgc = self.kgc_of(peer);
        if let Some(collection) = self.collections.get_mut(wanted) {
            collection.asked.insert(peer, Asked::Refused { kgc, verdict });
        }
    }

    /// The KGC is asked for this key again, but not at once.
    fn rest(
        &mut self,
        cx: &mut CollectContext<'_, S>,
        peer: Peer,
        wanted: &Option<Condition>,
        verdict: Verdict,
    ) {
        let mut wait =
            self.timing.retry.mul_f64(0.75 + f64::from(cx.rng.next_u32()) / f64::from(u32::MAX) * 0.5);
        if let Verdict::NotYet { at, now: theirs } = verdict {
            // §4.3: the answer contains the time at which the condition is due: not much later, and not every
            // two seconds until then.
            let to_go = Duration::from_secs(at.saturating_sub(theirs));
            wait = wait.max(to_go.min(self.timing.retry_max) + wait / 4);
        }
        let kgc = self.kgc_of(peer);
        if let Some(collection) = self.collections.get_mut(wanted) {
            let until = cx.now.monotonic + wait;
            let resting = Asked::Resting { until, pending: None, kgc, verdict: Some(verdict) };
            collection.asked.insert(peer, resting);
        }
    }

    fn kgc_of(&self, peer: Peer) -> Option<KgcId> {
        self.links.iter().find(|link| link.peer == peer)?.kgc
    }
}

fn blame<S: Suite>(cx: &mut CollectContext<'_, S>, peer: Peer, offence: impl Into<Offence>) {
    cx.out.event(CollectEvent::Blamed { peer, offence: offence.into() });
}

/// The fault of a share that does not even decode.
fn fault_of(error: &IbeError) -> ShareFault {
    match error {
        IbeError::InvalidKeyShares { culprits } => {
            culprits.first().map_or(ShareFault::NoPoint, |one| one.fault)
        }
        _ => ShareFault::NoPoint,
    }
}

impl<S: Suite> MachinePart<S> for Collector<S> {
    type Command = CollectCommand;
    type Event = CollectEvent;
    type Record = Infallible;

    /// Anywhere among the others, so that a swarm does not ask all the same KGC first.
    fn connected(&mut self, cx: &mut CollectContext<'_, S>, peer: Peer, route: Route) {
        if route == Route::Kgc && self.links.len() < MAX_LINKS {
            let place = cx.rng.next_u32() as usize % (self.links.len() + 1);
            let backoff = Backoff::new(self.timing.retry, self.timing.retry_max);
            self.links.insert(place, KgcLink::new(peer, backoff));
        }
    }

    fn disconnected(&mut self, _: &mut CollectContext<'_, S>, peer: Peer) {
        self.links.retain(|link| link.peer != peer);
        // A share that has come is good without its connection.
        for collection in self.collections.values_mut() {
            collection.asked.retain(|asked, state| *asked != peer || matches!(state, Asked::Shared { .. }));
        }
    }

    fn handle(&mut self, cx: &mut CollectContext<'_, S>, from: Peer, message: &Message<S>) -> Handled {
        let taken = match message {
            Message::DeliveryChallenge(challenge) => self.challenged(cx, from, challenge),
            Message::DeliveryReply(reply) => self.replied(cx, from, reply),
            Message::Refusal(refusal) => self.refused(cx, from, refusal),
            _ => false,
        };
        if taken { Handled::Yes } else { Handled::No }
    }

    fn command(&mut self, cx: &mut CollectContext<'_, S>, command: CollectCommand) {
        let CollectCommand::Collect { condition, patience, wait } = command;
        self.collect(cx, condition, patience, wait);
    }

    fn tick(&mut self, cx: &mut CollectContext<'_, S>) {
        self.advance(cx);
    }

    fn deadline(&self) -> Option<Duration> {
        self.deadline
    }
}
