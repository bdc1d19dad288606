//! Coded broadcasts (docs/protocol.md, section 7.5) by radio: what is published to the group comes once for all
//! boards, and any k of its frames suffice.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_ainq::{Deployment, EpochPart};
use quiver_link::ToGateway;
use quiver_link::erasure::{Assembler, AssemblerLimits, CodedFrame, Confirmation, is_coded};
use quiver_machine::{Input, Route, Via};
use quiver_message::Message;
use rand_core::CryptoRngCore;

use super::{BoardEdgeNode, S, is_radio};

/// The longest message that a board takes as a broadcast, in bytes: an epoch that removes 60 of 2,000.
const MAX_BROADCAST: usize = 8 * 1024;
/// Bytes of pieces that are kept: of the longest message with those beyond the k that suffice, and a shorter one
/// beside it. While it is decoded, twice the message more.
const KEPT: usize = 12 * 1024;
/// Broadcasts that may be on their way at once.
const AT_ONCE: usize = 4;
/// The gateway, the only source whose frames are taken.
const SOURCE: u64 = 0;

/// Delays after which the gateway is told again that the board has a broadcast: it may not have heard it.
const CONFIRM_AGAIN: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(200), Duration::from_millis(400)];

/// Broadcasts on their way.
pub(super) struct Broadcasts {
    /// Assembler of frames, from the first frame on.
    assembler: Option<Box<Assembler>>,
    /// One that is whole, with the digest in its frames, until the machine takes it.
    whole: Option<([u8; 4], Vec<u8>)>,
    confirming: Option<Confirming>,
}

/// The newest broadcast that the machine has taken.
struct Confirming {
    digest: [u8; 4],
    /// Time to confirm it next.
    at: Duration,
    /// Number of confirmations sent.
    times: usize,
}

impl Broadcasts {
    pub(super) const fn none() -> Self {
        Self { assembler: None, whole: None, confirming: None }
    }

    pub(super) fn due(&self) -> Option<Duration> {
        self.confirming.as_ref().map(|confirming| confirming.at)
    }
}

fn limits() -> AssemblerLimits {
    let limits = AssemblerLimits::new(MAX_BROADCAST);
    AssemblerLimits { sources: 2, messages: AT_ONCE, source_bytes: KEPT, ..limits }
}

/// Returns true if bytes are a message of this deployment, and its wraps those that its header binds, if that is whole.
/// A message that a false frame spoilt is tried again with other frames; the header's signature is for the
/// machine to verify.
fn is_intact(deployment: &Deployment<S>, bytes: &[u8]) -> bool {
    match Message::decode(deployment, bytes) {
        Ok(Message::Rekey(rekey)) => match &rekey.part {
            Some(EpochPart::Delta(delta)) => delta.root() == rekey.header.entries_root,
            _ => true,
        },
        // To a board without envelopes they are of no known kind.
        Ok(Message::Extension(_)) if cfg!(not(feature = "envelopes")) => false,
        Ok(message) => message.is_publication(),
        Err(_) => false,
    }
}

impl<F: MultiwriteNorFlash, R: CryptoRngCore> BoardEdgeNode<F, R> {
    /// Tells the gateway of a new session that it may send broadcasts. On a line each board has its own.
    pub(super) fn announce_broadcasts(&mut self) {
        if is_radio(self.mtu) {
            let max_message = u32::try_from(MAX_BROADCAST).unwrap_or(u32::MAX);
            // If it is lost, everything comes in the session.
            let _ = self.endpoint.send(&ToGateway::TakesBroadcasts { max_message });
        }
    }

    /// Takes a datagram from the medium if it is a frame of a broadcast.
    pub(super) fn take_coded_frame(&mut self, now: Duration, datagram: &[u8]) -> bool {
        if !is_coded(datagram) {
            return false;
        }
        // Only what the machine can take: the gateway sends the rest in the session.
        let taken = self.broadcasts.whole.is_none() && self.connections.has(Route::Leader);
        let (Some(settings), true) = (&self.settings, taken) else { return true };
        let assembler = self.broadcasts.assembler.get_or_insert_with(|| Box::new(Assembler::new(limits())));
        let accept = |message: &[u8]| is_intact(&settings.deployment, message);
        let message = assembler.handle_frame(now, SOURCE, datagram, accept);
        let digest = CodedFrame::decode(datagram).map(|frame| frame.digest);
        if let (Some(message), Ok(digest)) = (message, digest) {
            self.broadcasts.whole = Some((digest, message));
        }
        true
    }

    /// Hands the machine a broadcast that is whole, and confirms it.
    pub(super) async fn step_broadcasts(&mut self, now: Duration) {
        if self.broadcasts.whole.is_none() || !self.is_fit(now).await {
            return;
        }
        // A publication has no sender on the link: any leader may have relayed it.
        let (Some(from), Some((digest, bytes))) =
            (self.connections.on(Route::Leader).next(), self.broadcasts.whole.take())
        else {
            return;
        };
        self.input(now, Input::Received { from, via: Via::Group, bytes: &bytes }).await;
        // Not before: while the machine computes, the radio's queue holds a few frames of what comes next.
        self.broadcasts.confirming = Some(Confirming { digest, at: now, times: 0 });
    }

    /// The next datagram that tells the gateway of a broadcast.
    pub(crate) fn poll_confirmation(&mut self, now: impl FnOnce() -> Duration) -> Option<Vec<u8>> {
        self.broadcasts.confirming.as_ref()?;
        let now = now();
        let confirming = self.broadcasts.confirming.as_mut().filter(|confirming| confirming.at <= now)?;
        let digest = confirming.digest;
        if let Some(delay) = CONFIRM_AGAIN.get(confirming.times) {
            confirming.at = now.saturating_add(*delay);
            confirming.times += 1;
        } else {
            self.broadcasts.confirming = None;
        }
        Some(Confirmation { session: self.endpoint.session()?, digest }.encode())
    }

    /// Prints what became of broadcasts.
    pub(super) fn print_broadcasts(&mut self) {
        let Some(assembler) = &self.broadcasts.assembler else { return };
        let counters = assembler.counters();
        self.print_line(format_args!(
            "broadcasts assembled={} refused={} spoilt={} given_up={} dropped={}",
            counters.assembled, counters.refused, counters.spoilt, counters.given_up, counters.dropped
        ));
    }
}
