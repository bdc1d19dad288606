//! A key being collected: who was asked, and what came of it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{KgcId, PendingDelivery, Suite};
use quiver_ibe::{Condition, IdentityPoint, UnverifiedKeyShare};
use quiver_machine::Peer;

use super::interface::{Shortfall, Verdict};
use super::link::KgcLink;
use crate::ReleaseAuthority;

/// A key, or only the statement, being collected.
#[derive(Debug)]
pub(super) struct Collection<S: Suite> {
    /// Identity point of the condition; `None` without a condition.
    pub(super) point: Option<IdentityPoint>,
    pub(super) until: Duration,
    pub(super) wait: bool,
    /// Time until which KGCs are waited for that are not connected yet, as long as their number is unknown.
    grace: Duration,
    pub(super) asked: BTreeMap<Peer, Asked<S>>,
}

/// State of one KGC with respect to one key.
#[derive(Debug)]
pub(super) enum Asked<S: Suite> {
    /// Chosen, and asked as soon as there is a challenge.
    Chosen,
    /// Asked.
    Pending { pending: PendingDelivery<S>, overdue: Duration },
    /// Not counted on before this time: it is silent, is busy, or has refused while the condition is waited
    /// for. A late answer counts.
    Resting {
        until: Duration,
        pending: Option<PendingDelivery<S>>,
        kgc: Option<KgcId>,
        verdict: Option<Verdict>,
    },
    /// Has sent a share, of the version of the newest statement.
    Shared { share: UnverifiedKeyShare },
    /// Has refused, and is not asked again.
    Refused { kgc: Option<KgcId>, verdict: Verdict },
}

impl<S: Suite> Asked<S> {
    fn verdict(&self) -> Option<(Option<KgcId>, Verdict)> {
        match self {
            Self::Shared { share } => Some((Some(share.index()), Verdict::Released)),
            Self::Refused { kgc, verdict } => Some((*kgc, *verdict)),
            Self::Resting { kgc, verdict, .. } => verdict.map(|verdict| (*kgc, verdict)),
            Self::Chosen | Self::Pending { .. } => None,
        }
    }
}

impl<S: Suite> Collection<S> {
    pub(super) fn new(condition: Option<&Condition>, grace: Duration) -> Self {
        let point = condition.map(IdentityPoint::of);
        Self { point, until: Duration::ZERO, wait: false, grace, asked: BTreeMap::new() }
    }

    /// Begins now, or once more.
    pub(super) fn begin(&mut self, now: Duration, patience: Duration, wait: bool) {
        (self.until, self.wait) = (now + patience, wait);
    }

    /// Number of KGCs that have sent a share or may soon; two that claim to be one KGC count once.
    pub(super) fn hopeful(&self) -> usize {
        let asked = self.asked.values();
        let open = asked.filter(|asked| matches!(asked, Asked::Chosen | Asked::Pending { .. }));
        open.count() + self.shares().len()
    }

    /// Returns true if this KGC can be asked now.
    pub(super) fn may_ask(&self, now: Duration, peer: Peer) -> bool {
        match self.asked.get(&peer) {
            None => true,
            Some(Asked::Resting { until, .. }) => *until <= now,
            Some(_) => false,
        }
    }

    /// The request under way that an answer with this digest is to, also a late one.
    pub(super) fn pending(&self, peer: Peer, digest: &[u8]) -> Option<&PendingDelivery<S>> {
        let (Asked::Pending { pending, .. } | Asked::Resting { pending: Some(pending), .. }) =
            self.asked.get(&peer)?
        else {
            return None;
        };
        (pending.digest().as_slice() == digest).then_some(pending)
    }

    /// KGCs that have not answered in time rest until the link has waited long enough.
    pub(super) fn give_up_on_silent(&mut self, now: Duration) {
        for asked in self.asked.values_mut() {
            if !matches!(asked, Asked::Pending { overdue, .. } if *overdue <= now) {
                continue;
            }
            // §4.3: a silent KGC is replaced by another; what it answers late counts all the same.
            if let Asked::Pending { pending, .. } = core::mem::replace(asked, Asked::Chosen) {
                *asked = Asked::Resting { until: now, pending: Some(pending), kgc: None, verdict: None };
            }
        }
    }

    /// A share for each KGC, ascending, with its connection.
    pub(super) fn shares(&self) -> Vec<(Peer, UnverifiedKeyShare)> {
        let mut by_kgc = BTreeMap::new();
        for (peer, asked) in &self.asked {
            if let Asked::Shared { share } = asked {
                // §4.3: of two peers that claim to be one KGC, the first share counts.
                by_kgc.entry(share.index()).or_insert_with(|| (*peer, share.clone()));
            }
        }
        by_kgc.into_values().collect()
    }

    /// Drops shares of other versions: their KGCs are asked again.
    pub(super) fn forget_shares(&mut self) {
        self.asked.retain(|_, asked| !matches!(asked, Asked::Shared { .. }));
    }

    /// Returns true if so many KGCs have refused for good that the rest cannot make a key.
    pub(super) fn is_hopeless(
        &self,
        now: Duration,
        known: Option<&ReleaseAuthority<S>>,
        links: &[KgcLink],
    ) -> bool {
        let told = self.asked.values().filter_map(|asked| match asked {
            Asked::Refused { kgc, .. } => Some(*kgc),
            _ => None,
        });
        // §4.3: n and t stand in the statement; without it, those count that are connected after a while.
        let Some(authority) = known else {
            return now >= self.grace && !links.is_empty() && told.count() >= links.len();
        };
        let shared: BTreeSet<_> = self.shares().into_iter().map(|(_, share)| share.index()).collect();
        let told: BTreeSet<_> = told.flatten().filter(|kgc| !shared.contains(kgc)).collect();
        // §4.3: an attacker on a connection can claim to be a KGC: another that has not answered yet may be
        // it.
        let may_be_told = |link: &KgcLink| {
            let answered =
                matches!(self.asked.get(&link.peer), Some(Asked::Refused { .. } | Asked::Shared { .. }));
            !answered && link.kgc.is_none_or(|kgc| told.contains(&kgc))
        };
        if links.iter().any(may_be_told) {
            return false;
        }
        let publics = authority.publics();
        // §4.3: t shares make a key; one answer has the statement.
        let needed = if self.point.is_some() { usize::from(publics.threshold()) } else { 1 };
        let others = publics.shares().iter().filter(|(kgc, _)| !told.contains(kgc));
        others.count() < needed
    }

    /// The result of a failed collection.
    pub(super) fn shortfall(
        &self,
        condition: Option<Condition>,
        authority: Option<&ReleaseAuthority<S>>,
    ) -> Shortfall {
        // §4.3: the drone reports what each KGC answered and which did not.
        let mut verdicts: Vec<_> = self.asked.values().filter_map(Asked::verdict).collect();
        verdicts.sort_by_key(|(kgc, _)| *kgc);
        let heard: BTreeSet<_> = verdicts.iter().filter_map(|(kgc, _)| *kgc).collect();
        let silent = authority.map(|authority| authority.kgcs().filter(|kgc| !heard.contains(kgc)).collect());
        Shortfall {
            condition,
            needed: authority.map(|authority| authority.publics().threshold()),
            verdicts,
            silent: silent.unwrap_or_default(),
        }
    }

    /// Time of the next action.
    pub(super) fn deadline(&self, now: Duration) -> Duration {
        let times = self.asked.values().filter_map(|asked| match asked {
            Asked::Pending { overdue, .. } => Some(*overdue),
            Asked::Resting { until, .. } if *until > now => Some(*until),
            _ => None,
        });
        times.chain(Some(self.grace).filter(|grace| *grace > now)).fold(self.until, Duration::min)
    }
}
