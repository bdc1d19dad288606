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
/// Components remembered beyond for each system that is granted behind an endpoint.
const PER_GRANTED: usize = 4;
/// Time for which a source that was heard behind an endpoint is sent nothing of its own there. Frames that go
/// in a circle come back within seconds; and a source that was heard once by an echo, or has moved, must not
/// be kept from there for ever.
const ECHO_TIME: Duration = Duration::from_secs(10);
/// Frames remembered for finding duplicates; the oldest makes room.
const MAX_RECENT: usize = 16_384;

/// A system and a component.
type SystemComponent = (u32, u8);

/// Names an endpoint of a router; never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(u64);

/// Reason why a frame goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// The endpoint it came from is not one of the router's.
    UnknownEndpoint,
    /// The frame's message is known and its check sum is wrong ([`Frame::is_damaged`]).
    Damaged,
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
///   behind which its target is granted or was heard lately; where no target was, to those behind which it
///   was heard once.
/// * It does not go to an endpoint behind which its sender was heard in the last 10 s: two ways to one
///   vehicle make no loop.
/// * Grants outrank what was heard: a frame of a system that is granted where it comes from goes to where
///   that system was heard as well, and a frame of a granted system from elsewhere does not go to where it is
///   granted.
/// * Frames that their check sum proves teach where their sender is; others may be damaged, and teach nothing.
/// * System ids have 32 bits; a target is the header's where it stands there ([`Frame::target`]).
/// * Endpoints of one group share what they heard, and send each other nothing.
#[derive(Clone, Debug, Default)]
pub struct Router {
    endpoints: BTreeMap<EndpointId, Routed>,
    next: u64,
    sniffer: Option<u32>,
    period: Duration,
    recent: BTreeSet<u64>,
    order: VecDeque<(Duration, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Routed {
    filters: Filters,
    group: Option<String>,
    /// Time at which each system and component was heard last.
    heard: BTreeMap<SystemComponent, Duration>,
    /// The same by time, so that the one that was not heard for longest is found at once.
    order: BTreeSet<(Duration, SystemComponent)>,
    /// Systems that are known to be there before they are heard.
    granted: BTreeSet<u32>,
}

/// A frame on its way through.
#[derive(Clone, Copy)]
struct Passing<'a> {
    frame: Frame<'a>,
    /// Set if its system is granted where it comes from.
    is_granted: bool,
    /// Time since which a source that was heard was heard lately.
    since: Duration,
    target: Target,
    /// `None` if it is for everybody, or nobody knows its target.
    way: Option<LearnedRoute>,
}

/// Knowledge by which endpoints lead to a target.
#[derive(Clone, Copy)]
struct LearnedRoute {
    target: Target,
    by_component: bool,
    since: Duration,
}

impl Router {
    /// A router that drops what comes twice within `deduplication` (zero: nothing), and sends everything to
    /// the endpoint behind which the system `sniffer` is.
    #[must_use]
    pub fn new(deduplication: Duration, sniffer: Option<u32>) -> Self {
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
    /// was said before: those of the table of system ids, behind the group's datagrams. Forgets what was
    /// heard there of others, and elsewhere of these: a system id that changes hands is found at its new
    /// place.
    pub fn grant(&mut self, id: EndpointId, systems: impl IntoIterator<Item = u32>) {
        let Some(endpoint) = self.endpoints.get_mut(&id) else { return };
        let granted: BTreeSet<u32> = systems.into_iter().collect();
        endpoint.granted.clone_from(&granted);
        for (other, endpoint) in &mut self.endpoints {
            let stays = |(system, _): &SystemComponent| granted.contains(system) == (*other == id);
            endpoint.heard.retain(|source, _| stays(source));
            endpoint.order.retain(|(_, source)| stays(source));
        }
    }

    /// Finds the way of a frame that was received at `from`; if it is proven, its sender is then known to be
    /// there.
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
        let known_target = frame.target();
        if known_target.is_none() && frame.is_damaged() {
            return Err(Dropped::Damaged);
        }
        if !origin.filters.incoming.passes(frame) {
            return Err(Dropped::FilteredIn);
        }
        if known_target.is_some() {
            origin.hear(now, (frame.system_id(), frame.component_id()));
        }
        let (group, is_granted) = (origin.group.clone(), origin.granted.contains(&frame.system_id()));
        if self.is_duplicate(now, frame) {
            return Err(Dropped::Duplicate);
        }
        let target = known_target.unwrap_or(Target { system: 0, component: 0 });
        let since = now.saturating_sub(ECHO_TIME);
        let passing = Passing { frame, is_granted, since, target, way: self.way_to(target, since) };
        let receivers: Vec<EndpointId> = self
            .endpoints
            .iter()
            .filter(|(id, endpoint)| {
                **id != from
                    && (group.is_none() || endpoint.group != group)
                    && self.accepts(endpoint, passing)
            })
            .map(|(id, _)| *id)
            .collect();
        if receivers.is_empty() { Err(Dropped::NoReceiver) } else { Ok(receivers) }
    }

    /// Returns true if an endpoint's filter lets a frame out that no other endpoint sent.
    #[must_use]
    pub fn lets_out(&self, id: EndpointId, frame: Frame<'_>) -> bool {
        self.endpoints.get(&id).is_some_and(|endpoint| endpoint.filters.outgoing.passes(frame))
    }

    /// The systems heard behind an endpoint, in order.
    #[must_use]
    pub fn systems(&self, id: EndpointId) -> Vec<u32> {
        let heard = self.endpoints.get(&id).into_iter().flat_map(|endpoint| endpoint.heard.keys());
        let mut systems: Vec<u32> = heard.map(|(system, _)| *system).collect();
        systems.dedup();
        systems
    }

    /// Tells whether a system was heard behind an endpoint.
    #[must_use]
    pub fn hears(&self, id: EndpointId, system: u32) -> bool {
        self.endpoints.get(&id).is_some_and(|endpoint| endpoint.heard_system(system, Duration::ZERO))
    }

    fn accepts(&self, endpoint: &Routed, passing: Passing<'_>) -> bool {
        let Passing { frame, is_granted, since, target, way } = passing;
        let (system, component) = (frame.system_id(), frame.component_id());
        let is_from_there =
            |one: &Routed| one.granted.contains(&system) || one.heard_source((system, component), since);
        if !is_granted && self.any_of_group(endpoint, is_from_there) {
            return false;
        }
        if !endpoint.filters.outgoing.passes(frame) {
            return false;
        }
        target.system == 0
            || self.sniffer.is_some_and(|sniffer| endpoint.heard_system(sniffer, Duration::ZERO))
            || way.is_some_and(|way| self.any_of_group(endpoint, |one| one.leads(way)))
    }

    /// Finds how endpoints are told that lead to a target: by its component if that was heard anywhere, otherwise
    /// by its system, which the component may be behind; by what was heard lately before what was heard once.
    /// `None` if nothing of it is known.
    fn way_to(&self, target: Target, since: Duration) -> Option<LearnedRoute> {
        let of = |since| [true, false].map(|by_component| LearnedRoute { target, by_component, since });
        let is_known = |way: &LearnedRoute| {
            let source = (target.system, target.component);
            let knows = |endpoint: &Routed| match way.by_component {
                true => target.component != 0 && endpoint.heard_source(source, way.since),
                false => endpoint.leads(*way),
            };
            self.endpoints.values().any(knows)
        };
        [of(since), of(Duration::ZERO)].into_iter().flatten().find(is_known)
    }

    fn any_of_group(&self, endpoint: &Routed, test: impl Fn(&Routed) -> bool) -> bool {
        match &endpoint.group {
            None => test(endpoint),
            group => self.endpoints.values().any(|other| other.group == *group && test(other)),
        }
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
    fn hear(&mut self, now: Duration, source: SystemComponent) {
        match self.heard.insert(source, now) {
            Some(before) => {
                self.order.remove(&(before, source));
            }
            // Components of granted systems need room besides what programs invent.
            None if self.heard.len() > MAX_SOURCES + PER_GRANTED * self.granted.len() => {
                if let Some((_, oldest)) = self.order.pop_first() {
                    self.heard.remove(&oldest);
                }
            }
            None => {}
        }
        self.order.insert((now, source));
    }

    /// Tells whether a source was heard here since then.
    fn heard_source(&self, source: SystemComponent, since: Duration) -> bool {
        self.heard.get(&source).is_some_and(|at| *at >= since)
    }

    /// Tells whether any component of a system was heard here since then.
    fn heard_system(&self, system: u32, since: Duration) -> bool {
        self.heard.range((system, 0)..=(system, 255)).any(|(_, at)| *at >= since)
    }

    /// Tells whether a way leads here.
    fn leads(&self, way: LearnedRoute) -> bool {
        let LearnedRoute { target: Target { system, component }, by_component, since } = way;
        self.granted.contains(&system)
            || match by_component {
                true => self.heard_source((system, component), since),
                false => self.heard_system(system, since),
            }
    }
}
