//! Says which endpoints a frame goes to, by the systems that were heard behind each.

use alloc::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    string::String,
    vec::Vec,
};
use core::time::Duration;

use quiver_crypto::sha256::{Digest as _, Sha256};

use crate::{
    filter::Filters,
    frame::{Frame, Target},
};

/// Systems and components remembered of one endpoint; the one that was not heard for longest makes room.
const MAX_SOURCES: usize = 4_096;
/// Frames remembered for finding duplicates; the oldest makes room.
const MAX_RECENT: usize = 16_384;

/// Names an endpoint of a router; never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(u64);

/// Why a frame goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// The endpoint it came from is not one of the router's.
    UnknownEndpoint,
    /// The filter of the endpoint it came from keeps it out.
    FilteredIn,
    /// The same bytes came within the period of de-duplication.
    Duplicate,
    /// No other endpoint is for it: its target was not heard, or their filters keep it out.
    NoReceiver,
}

/// Routes frames between endpoints as mavlink-router does.
///
/// * A frame goes to every other endpoint if it is for everybody or of an unknown dialect, otherwise to those
///   behind which its target was heard or granted.
/// * It never goes to an endpoint behind which its sender was heard: two ways to one vehicle make no loop.
/// * Endpoints of one group share what they heard, and send each other nothing.
#[derive(Clone, Debug, Default)]
pub struct Router {
    endpoints: BTreeMap<EndpointId, Routed>,
    next: u64,
    sniffer: Option<u8>,
    period: Duration,
    recent: BTreeSet<u64>,
    order: VecDeque<(Duration, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Routed {
    filters: Filters,
    group: Option<String>,
    /// When each system and component was heard last.
    heard: BTreeMap<(u8, u8), Duration>,
    /// Systems that are known to be there before they are heard.
    granted: BTreeSet<u8>,
}

impl Router {
    /// A router that drops what comes twice within `deduplication` (zero: nothing), and sends everything to
    /// the endpoint behind which the system `sniffer` is.
    #[must_use]
    pub fn new(deduplication: Duration, sniffer: Option<u8>) -> Self {
        Self { period: deduplication, sniffer, ..Self::default() }
    }

    /// Adds an endpoint; each client of a TCP server is one.
    pub fn add(&mut self, filters: Filters, group: Option<String>) -> EndpointId {
        let id = EndpointId(self.next);
        self.next += 1;
        self.endpoints.insert(id, Routed { filters, group, ..Routed::default() });
        id
    }

    /// Removes an endpoint and what was heard behind it.
    pub fn remove(&mut self, id: EndpointId) {
        self.endpoints.remove(&id);
    }

    /// Says which systems are behind an endpoint although they may not have been heard yet, in place of what
    /// was said before: those of the table of system ids, behind the group's datagrams.
    pub fn grant(&mut self, id: EndpointId, systems: impl IntoIterator<Item = u8>) {
        if let Some(endpoint) = self.endpoints.get_mut(&id) {
            endpoint.granted = systems.into_iter().collect();
        }
    }

    /// Where a frame that was received at `from` goes; its sender is then known to be there.
    ///
    /// # Errors
    /// Says why it goes nowhere.
    pub fn route(
        &mut self,
        now: Duration,
        from: EndpointId,
        frame: Frame<'_>,
    ) -> Result<Vec<EndpointId>, Dropped> {
        let origin = self.endpoints.get_mut(&from).ok_or(Dropped::UnknownEndpoint)?;
        if !origin.filters.incoming.passes(frame) {
            return Err(Dropped::FilteredIn);
        }
        origin.hear(now, (frame.system_id(), frame.component_id()));
        let group = origin.group.clone();
        if self.is_duplicate(now, frame) {
            return Err(Dropped::Duplicate);
        }
        let target = frame.target().unwrap_or(Target { system: 0, component: 0 });
        let is_component_known = self.knows_component(target);
        let receivers: Vec<EndpointId> = self
            .endpoints
            .iter()
            .filter(|(id, endpoint)| {
                **id != from
                    && (group.is_none() || endpoint.group != group)
                    && self.accepts(endpoint, frame, target, is_component_known)
            })
            .map(|(id, _)| *id)
            .collect();
        if receivers.is_empty() { Err(Dropped::NoReceiver) } else { Ok(receivers) }
    }

    /// Whether an endpoint's filter lets a frame out that no other endpoint sent.
    #[must_use]
    pub fn lets_out(&self, id: EndpointId, frame: Frame<'_>) -> bool {
        self.endpoints.get(&id).is_some_and(|endpoint| endpoint.filters.outgoing.passes(frame))
    }

    /// The systems heard behind an endpoint, in order.
    #[must_use]
    pub fn systems(&self, id: EndpointId) -> Vec<u8> {
        let heard = self.endpoints.get(&id).into_iter().flat_map(|endpoint| endpoint.heard.keys());
        let mut systems: Vec<u8> = heard.map(|(system, _)| *system).collect();
        systems.dedup();
        systems
    }

    fn accepts(&self, endpoint: &Routed, frame: Frame<'_>, target: Target, is_component_known: bool) -> bool {
        let sender = (frame.system_id(), frame.component_id());
        if self.any_of_group(endpoint, |one| one.heard.contains_key(&sender)) {
            return false;
        }
        if !endpoint.filters.outgoing.passes(frame) {
            return false;
        }
        if self.sniffer.is_some_and(|sniffer| endpoint.knows_system(sniffer)) || target.system == 0 {
            return true;
        }
        // A component that nobody heard may be behind any endpoint that its system is behind.
        self.any_of_group(endpoint, |one| {
            if is_component_known {
                one.heard.contains_key(&(target.system, target.component))
            } else {
                one.knows_system(target.system)
            }
        })
    }

    fn any_of_group(&self, endpoint: &Routed, test: impl Fn(&Routed) -> bool) -> bool {
        match &endpoint.group {
            None => test(endpoint),
            group => self.endpoints.values().any(|other| other.group == *group && test(other)),
        }
    }

    fn knows_component(&self, target: Target) -> bool {
        let key = (target.system, target.component);
        target.component != 0 && self.endpoints.values().any(|endpoint| endpoint.heard.contains_key(&key))
    }

    fn is_duplicate(&mut self, now: Duration, frame: Frame<'_>) -> bool {
        if self.period.is_zero() {
            return false;
        }
        while let Some((at, digest)) = self.order.front().copied() {
            if now.saturating_sub(at) <= self.period && self.order.len() <= MAX_RECENT {
                break;
            }
            self.order.pop_front();
            self.recent.remove(&digest);
        }
        // Not a checksum that others could steer: two frames that differ must not be taken for one.
        let digest = Sha256::digest(frame.bytes());
        let digest = digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let is_new = self.recent.insert(digest);
        if is_new {
            self.order.push_back((now, digest));
        }
        !is_new
    }
}

impl Routed {
    fn hear(&mut self, now: Duration, source: (u8, u8)) {
        if self.heard.len() >= MAX_SOURCES && !self.heard.contains_key(&source) {
            let oldest = self.heard.iter().min_by_key(|(_, at)| **at).map(|(source, _)| *source);
            oldest.map(|oldest| self.heard.remove(&oldest));
        }
        self.heard.insert(source, now);
    }

    fn knows_system(&self, system: u8) -> bool {
        self.granted.contains(&system) || self.heard.range((system, 0)..=(system, 255)).next().is_some()
    }
}
