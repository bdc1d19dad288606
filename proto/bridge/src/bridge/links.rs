//! The links with local programs: what is read from and written to each.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use quiver_mavlink::{
    EndpointConfig, EndpointId, Frame, FrameReader, MavlinkError, Router, STX_V1, Signing, SigningKey,
};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::Instant;

use super::wide_ids::{Notice, ProgramIds, WideFrames};
use crate::endpoint::LinkId;
use crate::frame_drop::FrameDrop;

/// Frames for which there is room at a program before anything is read that may bring it more: those of a datagram.
const RESERVED: usize = 96;
/// Time for which a program that leaves less is waited for.
const WAITED_FOR: Duration = Duration::from_millis(100);
/// Time between two lines in the log about frames that programs did not take.
const LOGGED_EVERY: Duration = Duration::from_secs(60);

/// An endpoint as it is configured.
#[derive(Debug)]
struct Configured {
    config: EndpointConfig,
    /// Knowledge of its programs' system ids.
    wide: WideFrames,
    /// Signs towards the program and verifies what it sends, if a key was given.
    signing: Option<Signing>,
    /// Frames that its programs did not take in time.
    not_taken: u64,
    /// Frames among them that the log has told of.
    logged_not_taken: u64,
    /// Reasons for which something was dropped, and of which the log has said so.
    refused: BTreeSet<FrameDrop>,
}

impl Configured {
    /// Says once for each reason that a whole frame is refused. Returns the reason, by which further ones are counted.
    fn refuse(&mut self, bytes: &[u8], error: &MavlinkError) -> FrameDrop {
        let reason = match error {
            MavlinkError::UnknownFlags(_) => FrameDrop::UnknownFlags,
            MavlinkError::NoSystemId => FrameDrop::SystemZero,
            _ => FrameDrop::Malformed,
        };
        self.say_once(reason, |endpoint| refusal(endpoint, bytes, error, reason));
        reason
    }

    /// Says once that a frame is dropped for what local signing makes of it. Returns the reason.
    fn distrust(&mut self, frame: Frame<'_>, error: &MavlinkError) -> FrameDrop {
        let (reason, because) = match error {
            MavlinkError::ClockNotSet => (
                FrameDrop::ClockNotSet,
                "frames are neither signed nor taken as signed while this machine's clock is not set: set it",
            ),
            _ => (
                FrameDrop::BadLocalSignature,
                "it is not signed by the key of SigningKeyFile, or was received before",
            ),
        };
        self.say_once(reason, |endpoint| dropping(endpoint, frame.system_id(), because, reason));
        reason
    }

    fn say_once(&mut self, reason: FrameDrop, text: impl FnOnce(&str) -> String) {
        // Once, because a program can send such frames at the rate of its line.
        if self.refused.insert(reason) {
            let endpoint = self.config.endpoint.to_string();
            tracing::warn!(%endpoint, "{}", text(&endpoint));
        }
    }
}

/// Text about a frame that is dropped.
fn dropping(endpoint: &str, system: u32, because: &str, reason: FrameDrop) -> String {
    let reason = reason.label();
    format!(
        "a frame of system {system} from {endpoint} is dropped: {because}; others are counted as `{reason}`"
    )
}

/// Text about a frame that is refused.
fn refusal(endpoint: &str, bytes: &[u8], error: &MavlinkError, reason: FrameDrop) -> String {
    // Where a header without unknown flags has the lowest 8 bits of the system id.
    let at = if bytes.first() == Some(&STX_V1) { 3 } else { 5 };
    let system = match error {
        MavlinkError::NoSystemId => 0,
        _ => bytes.get(at).copied().unwrap_or_default(),
    };
    let reason = reason.label();
    format!(
        "a frame of system {system} from {endpoint} is dropped: {error}; others are counted as `{reason}`, and nothing within \
         them is looked at"
    )
}

#[derive(Debug)]
struct ProgramLink {
    endpoint: usize,
    id: EndpointId,
    reader: FrameReader,
    out: mpsc::Sender<Vec<u8>>,
    /// Time since which its program leaves little room.
    full: Option<Instant>,
    /// True if the program left little room for too long, and has not taken everything since.
    slow: bool,
    program: ProgramIds,
}

/// Links of an endpoint, for the status.
#[derive(Debug)]
pub(super) struct EndpointLinks {
    /// The endpoint, as it is configured.
    pub(super) endpoint: String,
    pub(super) links: Vec<EndpointId>,
    /// Frames that its programs did not take in time.
    pub(super) dropped: u64,
    /// Knowledge of its programs' system ids.
    pub(super) wide: WideFrames,
}

/// All links.
#[derive(Debug)]
pub(super) struct BridgeLinks {
    endpoints: Vec<Configured>,
    links: HashMap<LinkId, ProgramLink>,
    by_id: BTreeMap<EndpointId, LinkId>,
    /// The time since 1970; `None` while the clock is not set.
    clock: fn() -> Option<Duration>,
    /// Time at which the log last told of dropped frames.
    logged: Option<Instant>,
    /// Notice that is due at a link.
    notice: Option<(EndpointId, Notice)>,
}

impl BridgeLinks {
    pub(super) fn new(
        endpoints: Vec<EndpointConfig>,
        signing: Vec<Option<SigningKey>>,
        clock: fn() -> Option<Duration>,
    ) -> Self {
        let with_key = |(index, (config, key)): (usize, (EndpointConfig, Option<SigningKey>))| {
            // Each endpoint signs as a stream of its own.
            let link_id = u8::try_from(index).unwrap_or(u8::MAX);
            let signing = key.map(|key| Signing::new(key, link_id));
            Configured {
                config,
                wide: WideFrames::default(),
                signing,
                not_taken: 0,
                logged_not_taken: 0,
                refused: BTreeSet::new(),
            }
        };
        let endpoints = endpoints.into_iter().zip(signing).enumerate().map(with_key).collect();
        Self { endpoints, links: HashMap::new(), by_id: BTreeMap::new(), clock, logged: None, notice: None }
    }

    pub(super) fn open(
        &mut self,
        router: &mut Router,
        endpoint: usize,
        link: LinkId,
        out: mpsc::Sender<Vec<u8>>,
    ) {
        let Some(Configured { config, .. }) = self.endpoints.get(endpoint) else { return };
        // Each link is an endpoint of the router's, so that programs of one listening port reach each other.
        let id = router.add(config.filters.clone(), config.group.clone());
        self.by_id.insert(id, link);
        let program = ProgramIds::new(config.wide_system_ids);
        let reader = FrameReader::new();
        self.links.insert(link, ProgramLink { endpoint, id, reader, out, full: None, slow: false, program });
    }

    pub(super) fn close(&mut self, router: &mut Router, link: LinkId) {
        if let Some(closed) = self.links.remove(&link) {
            // Systems heard there are forgotten: they may come back over another link.
            router.remove(closed.id);
            self.by_id.remove(&closed.id);
        }
    }

    /// The frames in what was received, or why one is not taken. Their local signatures are verified and gone. `skipped` bytes
    /// beside them were of no frame.
    pub(super) fn read(
        &mut self,
        link: LinkId,
        bytes: &[u8],
        whole: bool,
        skipped: u64,
    ) -> Vec<Result<(EndpointId, Vec<u8>), FrameDrop>> {
        let Some(ProgramLink { endpoint, id, reader, program, .. }) = self.links.get_mut(&link) else {
            return Vec::new();
        };
        let Some(endpoint) = self.endpoints.get_mut(*endpoint) else { return Vec::new() };
        let (clock, mut frames, before) = (self.clock, Vec::new(), reader.counters().lost_bytes());
        let mut take = |bytes: &[u8], frame: Result<Frame<'_>, MavlinkError>| {
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => return frames.push(Err(endpoint.refuse(bytes, &error))),
            };
            program.note(frame);
            frames.push(match &mut endpoint.signing {
                Some(signing) => {
                    let verified = signing.verify(clock(), frame);
                    verified.map(|plain| (*id, plain)).map_err(|error| endpoint.distrust(frame, &error))
                }
                None => Ok((*id, frame.bytes().to_vec())),
            });
        };
        if whole {
            reader.push_datagram_all(bytes, &mut take);
        } else {
            reader.push_all(bytes, &mut take);
        }
        let skipped = skipped + (reader.counters().lost_bytes() - before);
        if skipped > 0 {
            endpoint.say_once(FrameDrop::NoFrame, |endpoint| {
                let reason = FrameDrop::NoFrame.label();
                format!(
                    "{skipped} bytes from {endpoint} are of no frame: cut, damaged, or not MAVLink; no system can be read from \
                     them; further ones are counted as `{reason}`, each time that some come"
                )
            });
            frames.push(Err(FrameDrop::NoFrame));
        }
        frames
    }

    /// Says once for each endpoint and reason that a whole frame of its programs is dropped.
    pub(super) fn say_dropped(
        &mut self,
        from: EndpointId,
        frame: Frame<'_>,
        because: &str,
        reason: FrameDrop,
    ) {
        let endpoint = self.by_id.get(&from).and_then(|link| self.links.get(link)).map(|link| link.endpoint);
        if let Some(endpoint) = endpoint.and_then(|endpoint| self.endpoints.get_mut(endpoint)) {
            endpoint.say_once(reason, |endpoint| dropping(endpoint, frame.system_id(), because, reason));
        }
    }

    /// Hands a frame to the program, or says why not. The notice for its operator is then in
    /// [`BridgeLinks::take_notice`].
    pub(super) fn deliver(&mut self, to: EndpointId, bytes: &[u8]) -> Result<(), FrameDrop> {
        let link = self.by_id.get(&to).and_then(|link| self.links.get_mut(link)).ok_or(FrameDrop::Closed)?;
        let endpoint = self.endpoints.get_mut(link.endpoint).ok_or(FrameDrop::Closed)?;
        let frame = Frame::parse(bytes);
        if let Ok(frame) = &frame
            && let Some(notice) = link.program.meet(*frame, &mut endpoint.wide)
        {
            let at = endpoint.config.endpoint.to_string();
            if endpoint.wide.told.is_none() {
                endpoint.wide.told = Some(notice.describe(&at));
                tracing::warn!(endpoint = %at, system = notice.system, "{}", notice.describe(&at));
            }
            self.notice = Some((to, notice));
        }
        // A program that knows 8 bits alone cannot tell whose frame it is.
        if link.program.is_narrow() && frame.as_ref().is_ok_and(Frame::is_wide) {
            return Err(FrameDrop::NarrowProgram);
        }
        // Signed last: the signature is over the very bytes that the program is given.
        let bytes = match (endpoint.signing.as_mut(), frame) {
            (Some(signing), Ok(frame)) => {
                signing.sign((self.clock)(), frame).map_err(|_| FrameDrop::ClockNotSet)?
            }
            _ => bytes.to_vec(),
        };
        // Not waited for here, because one task serves all programs and carriers.
        link.out.try_send(bytes).map_err(|refused| match refused {
            TrySendError::Full(_) => {
                endpoint.not_taken += 1;
                FrameDrop::ProgramBehind
            }
            TrySendError::Closed(_) => FrameDrop::Closed,
        })
    }

    /// Deadline until which programs are waited for that have not taken what they were sent; `None` if there
    /// is room at all of them. A program that takes too little for longer is not waited for until it has
    /// taken everything: it loses frames.
    pub(super) fn full_until(&mut self, now: Instant) -> Option<Instant> {
        let mut until = None;
        for link in self.links.values_mut() {
            let room = link.out.capacity();
            // Room for the frames of one datagram is kept, because one that was read cannot wait.
            if room >= RESERVED || link.out.is_closed() {
                link.full = None;
                link.slow &= room < link.out.max_capacity();
                continue;
            }
            let end = *link.full.get_or_insert(now) + WAITED_FOR;
            link.slow |= end <= now;
            // A slow program is waited for once, and then no more until it has caught up: others must not
            // wait for it.
            if !link.slow {
                until = until.max(Some(end));
            }
        }
        until
    }

    /// Says, now and then, at which endpoints programs did not take frames in time.
    pub(super) fn log_dropped(&mut self, now: Instant) {
        if self.logged.is_some_and(|logged| now.duration_since(logged) < LOGGED_EVERY) {
            return;
        }
        for configured in &mut self.endpoints {
            let new = configured.not_taken.saturating_sub(configured.logged_not_taken);
            if new > 0 {
                self.logged = Some(now);
                configured.logged_not_taken = configured.not_taken;
                let endpoint = &configured.config.endpoint;
                tracing::warn!(
                    %endpoint,
                    new,
                    "{new} frames for {endpoint} were dropped, because its programs take them more slowly than they come"
                );
            }
        }
    }

    /// Takes the notice that is due at a link, if the last frame for it was the first of its kind.
    pub(super) const fn take_notice(&mut self) -> Option<(EndpointId, Notice)> {
        self.notice.take()
    }

    /// All links, as the router names them.
    pub(super) fn ids(&self) -> Vec<EndpointId> {
        self.by_id.keys().copied().collect()
    }

    /// The links of each endpoint.
    pub(super) fn by_endpoint(&self) -> impl Iterator<Item = EndpointLinks> {
        self.endpoints.iter().enumerate().map(|(index, endpoint)| {
            let links = self.links.values().filter(|link| link.endpoint == index).map(|link| link.id);
            EndpointLinks {
                endpoint: endpoint.config.endpoint.to_string(),
                links: links.collect(),
                dropped: endpoint.not_taken,
                wide: endpoint.wide.clone(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use quiver_mavlink::Endpoint;

    use super::*;

    #[test]
    fn frames_for_a_link_that_is_closed_are_not_said_to_be_for_a_slow_program() {
        let endpoint: Endpoint = "udpin:127.0.0.1:14550".parse().expect("endpoint");
        let endpoints = vec![EndpointConfig::new("one".into(), endpoint)];
        let mut router = Router::new(Duration::ZERO, None);
        let mut links = BridgeLinks::new(endpoints, vec![None], || None);
        let (out, mut program) = mpsc::channel(1);
        links.open(&mut router, 0, 7, out);
        let to = links.ids()[0];
        let dropped = |links: &BridgeLinks| links.by_endpoint().map(|endpoint| endpoint.dropped).sum::<u64>();
        assert_eq!(links.deliver(to, &[1]), Ok(()));
        assert_eq!((links.deliver(to, &[2]), dropped(&links)), (Err(FrameDrop::ProgramBehind), 1));
        assert_eq!(program.try_recv(), Ok(vec![1]));
        // Its task has ended, which the bridge has not heard yet; then it has.
        drop(program);
        assert_eq!((links.deliver(to, &[3]), dropped(&links)), (Err(FrameDrop::Closed), 1));
        links.close(&mut router, 7);
        assert_eq!((links.deliver(to, &[4]), dropped(&links)), (Err(FrameDrop::Closed), 1));
    }

    #[test]
    fn refusal_names_endpoint_system_and_reason() {
        let text = refusal(
            "udpin:127.0.0.1:14550",
            &[0xfd, 9, 8, 0, 0, 7],
            &MavlinkError::UnknownFlags(8),
            FrameDrop::UnknownFlags,
        );
        let damaged = dropping("udpin:127.0.0.1:14550", 7, "its check sum is wrong", FrameDrop::Damaged);
        for (text, reason) in [(&text, "unknown flags"), (&damaged, "damaged")] {
            for part in ["system 7", "udpin:127.0.0.1:14550", reason] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
        for (bytes, error, system) in [
            (&[0xfe, 9, 8, 7, 1, 0][..], MavlinkError::UnknownFlags(8), "system 7 "),
            (&[0xfe, 9, 8, 0, 1, 3], MavlinkError::NoSystemId, "system 0 "),
            (&[0xfd, 9, 1, 0, 8, 3], MavlinkError::NoSystemId, "system 0 "),
            (&[0xfd], MavlinkError::UnknownFlags(8), "system 0 "),
        ] {
            let text = refusal("udpin:127.0.0.1:14550", bytes, &error, FrameDrop::Malformed);
            assert!(text.contains(system), "{text}");
        }
    }
}
