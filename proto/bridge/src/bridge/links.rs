//! The links with local programs: what is read from and written to each.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use quiver_mavlink::{
    Dropped, EndpointConfig, EndpointId, Frame, FrameReader, MavlinkError, Router, Signing, SigningKey,
};
use tokio::sync::mpsc;

use crate::endpoint::LinkId;

/// Reason for which frames of an endpoint with a key for MAVLink signing do not pass while this machine's clock is not set.
pub(super) const CLOCK_NOT_SET: &str = "clock not set";

/// An endpoint as it is configured.
#[derive(Debug)]
struct Configured {
    config: EndpointConfig,
    /// Signs towards the program and verifies what it sends, if a key was given.
    signing: Option<Signing>,
}

#[derive(Debug)]
struct Link {
    endpoint: usize,
    id: EndpointId,
    reader: FrameReader,
    out: mpsc::Sender<Vec<u8>>,
}

/// All links.
#[derive(Debug)]
pub(super) struct Links {
    endpoints: Vec<Configured>,
    links: HashMap<LinkId, Link>,
    by_id: BTreeMap<EndpointId, LinkId>,
    /// The time since 1970; `None` while the clock is not set.
    clock: fn() -> Option<Duration>,
}

impl Links {
    pub(super) fn new(
        endpoints: Vec<EndpointConfig>,
        signing: Vec<Option<SigningKey>>,
        clock: fn() -> Option<Duration>,
    ) -> Self {
        let with_key = |(index, (config, key)): (usize, (EndpointConfig, Option<SigningKey>))| {
            // Each endpoint signs as a stream of its own.
            let link_id = u8::try_from(index).unwrap_or(u8::MAX);
            Configured { config, signing: key.map(|key| Signing::new(key, link_id)) }
        };
        let endpoints = endpoints.into_iter().zip(signing).enumerate().map(with_key).collect();
        Self { endpoints, links: HashMap::new(), by_id: BTreeMap::new(), clock }
    }

    pub(super) fn open(
        &mut self,
        router: &mut Router,
        endpoint: usize,
        link: LinkId,
        out: mpsc::Sender<Vec<u8>>,
    ) {
        let Some(Configured { config, .. }) = self.endpoints.get(endpoint) else { return };
        let id = router.add(config.filters.clone(), config.group.clone());
        self.by_id.insert(id, link);
        self.links.insert(link, Link { endpoint, id, reader: FrameReader::new(), out });
    }

    pub(super) fn close(&mut self, router: &mut Router, link: LinkId) {
        if let Some(closed) = self.links.remove(&link) {
            router.remove(closed.id);
            self.by_id.remove(&closed.id);
        }
    }

    /// The frames in what was received, or why one is not taken. Their local signatures are verified and gone.
    pub(super) fn read(
        &mut self,
        link: LinkId,
        bytes: &[u8],
        whole: bool,
    ) -> Vec<Result<(EndpointId, Vec<u8>), &'static str>> {
        let Some(Link { endpoint, id, reader, .. }) = self.links.get_mut(&link) else { return Vec::new() };
        let signing = self.endpoints.get_mut(*endpoint).and_then(|endpoint| endpoint.signing.as_mut());
        let (mut signing, clock, mut frames) = (signing, self.clock, Vec::new());
        let mut take = |frame: Frame<'_>| {
            frames.push(match &mut signing {
                Some(signing) => {
                    signing.verify(clock(), frame).map(|frame| (*id, frame)).map_err(|error| match error {
                        MavlinkError::ClockNotSet => CLOCK_NOT_SET,
                        _ => "bad local signature",
                    })
                }
                None => Ok((*id, frame.bytes().to_vec())),
            });
        };
        if whole {
            reader.push_datagram(bytes, &mut take);
        } else {
            reader.push(bytes, &mut take);
        }
        frames
    }

    /// Hands a frame to the program, or says why not.
    pub(super) fn deliver(&mut self, to: EndpointId, bytes: &[u8]) -> Result<(), &'static str> {
        const BEHIND: &str = "program is behind";
        let link = self.by_id.get(&to).and_then(|link| self.links.get(link)).ok_or(BEHIND)?;
        let signing = self.endpoints.get_mut(link.endpoint).and_then(|endpoint| endpoint.signing.as_mut());
        let bytes = match (signing, Frame::parse(bytes)) {
            (Some(signing), Ok(frame)) => signing.sign((self.clock)(), frame).map_err(|_| CLOCK_NOT_SET)?,
            _ => bytes.to_vec(),
        };
        link.out.try_send(bytes).map_err(|_| BEHIND)
    }

    /// All links, as the router names them.
    pub(super) fn ids(&self) -> Vec<EndpointId> {
        self.by_id.keys().copied().collect()
    }

    /// The links of each endpoint, with its spelling.
    pub(super) fn by_endpoint(&self) -> impl Iterator<Item = (String, Vec<EndpointId>)> {
        self.endpoints.iter().enumerate().map(|(index, endpoint)| {
            let links = self.links.values().filter(move |link| link.endpoint == index).map(|link| link.id);
            (endpoint.config.endpoint.to_string(), links.collect())
        })
    }
}

/// Why the router sends a frame nowhere, for counters.
pub(super) const fn reason(dropped: Dropped) -> &'static str {
    match dropped {
        Dropped::UnknownEndpoint => "closed",
        Dropped::Damaged => "damaged",
        Dropped::FilteredIn => "filtered",
        Dropped::Duplicate => "duplicate",
        Dropped::NoReceiver => "no receiver",
    }
}
