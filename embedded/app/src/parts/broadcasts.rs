//! Coded broadcasts (docs/protocol.md, section 7.5) by radio: what is published to the group comes once for all
//! boards, and any k of its frames suffice.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use quiver_ainq::{Deployment, EpochPart};
use quiver_link::ToGateway;
use quiver_link::erasure::{Assembler, AssemblerLimits, CodedFrame, Confirmation, is_coded};
use quiver_machine::Route;
use quiver_message::Message;
use rand_core::CryptoRngCore;

use super::{BoardPart, PartContext, PartRequest};
use crate::console::ConsoleOutput;
use crate::node::gateway::is_radio;
use crate::node::{BoardState, S};

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
pub(super) struct BroadcastPart {
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

impl BroadcastPart {
    pub(super) const fn new() -> Self {
        Self { assembler: None, whole: None, confirming: None }
    }
}

fn limits() -> AssemblerLimits {
    let limits = AssemblerLimits::new(MAX_BROADCAST);
    AssemblerLimits { sources: 2, messages: AT_ONCE, source_bytes: KEPT, ..limits }
}

/// Returns true if bytes are a message of this deployment, and its wraps those that its header binds, if that is whole.
/// A message that a false frame spoilt is tried again with other frames; the header's signature is for the
/// machine to verify.
fn is_intact(deployment: &Deployment<S>, takes_extensions: bool, bytes: &[u8]) -> bool {
    match Message::decode(deployment, bytes) {
        Ok(Message::Rekey(rekey)) => match &rekey.part {
            Some(EpochPart::Delta(delta)) => delta.root() == rekey.header.entries_root,
            _ => true,
        },
        // To a board whose parts take none they are of no known kind.
        Ok(Message::Extension(_)) if !takes_extensions => false,
        Ok(message) => message.is_publication(),
        Err(_) => false,
    }
}

impl BoardPart for BroadcastPart {
    type Beside = ();

    fn beside() {}

    fn is_heard(datagram: &[u8], from_gateway: bool) -> bool {
        from_gateway && is_coded(datagram)
    }

    /// Tells the gateway of a new session that it may send broadcasts. On a line each board has its own.
    fn session_began<R>(&mut self, board: &mut BoardState<R>) {
        if is_radio(board.gateway.mtu) {
            let max_message = u32::try_from(MAX_BROADCAST).unwrap_or(u32::MAX);
            // If it is lost, everything comes in the session.
            let _ = board.gateway.endpoint.send(&ToGateway::TakesBroadcasts { max_message });
        }
    }

    /// Takes a datagram from the medium if it is a frame of a broadcast.
    fn handle_datagram<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, datagram: &[u8]) -> bool {
        if !is_coded(datagram) {
            return false;
        }
        // Only what the machine can take: the gateway sends the rest in the session.
        if self.whole.is_some() || !cx.board.gateway.connections.has(Route::Leader) {
            return true;
        }
        // Without a deployment nothing tells a message from what false frames make.
        let Some(settings) = &cx.board.settings else { return true };
        let assembler = self.assembler.get_or_insert_with(|| Box::new(Assembler::new(limits())));
        let accept = |message: &[u8]| is_intact(&settings.deployment, cx.takes_extensions, message);
        let message = assembler.handle_frame(cx.now, SOURCE, datagram, accept);
        let digest = CodedFrame::decode(datagram).map(|frame| frame.digest);
        if let (Some(message), Ok(digest)) = (message, digest) {
            self.whole = Some((digest, message));
        }
        true
    }

    /// Hands the machine a broadcast that is whole, and confirms it.
    fn poll_request<R: CryptoRngCore>(
        &mut self,
        cx: &mut PartContext<'_, R>,
    ) -> Option<PartRequest<Infallible>> {
        // A publication has no sender on the link: any leader may have relayed it.
        let from = cx.board.gateway.connections.on(Route::Leader).next()?;
        let (digest, bytes) = self.whole.take()?;
        // Nothing is sent before the machine has taken it: while that computes, the radio's queue holds a few frames of
        // what comes next.
        self.confirming = Some(Confirming { digest, at: cx.now, times: 0 });
        Some(PartRequest::Publication { from, bytes })
    }

    fn due<R: CryptoRngCore>(&self, _: &PartContext<'_, R>) -> Option<Duration> {
        self.confirming.as_ref().map(|confirming| confirming.at)
    }

    fn medium_changed(&mut self) {
        *self = Self::new();
    }

    /// The next datagram that tells the gateway of a broadcast.
    fn poll_datagram<R>(&mut self, board: &BoardState<R>, clock: fn() -> Duration) -> Option<Vec<u8>> {
        self.confirming.as_ref()?;
        let now = clock();
        let confirming = self.confirming.as_mut().filter(|confirming| confirming.at <= now)?;
        let digest = confirming.digest;
        if let Some(delay) = CONFIRM_AGAIN.get(confirming.times) {
            confirming.at = now.saturating_add(*delay);
            confirming.times += 1;
        } else {
            self.confirming = None;
        }
        Some(Confirmation { session: board.gateway.endpoint.session()?, digest }.encode())
    }

    /// Prints what became of broadcasts.
    fn print_status(&self, console: &mut ConsoleOutput) {
        let Some(assembler) = &self.assembler else { return };
        let counters = assembler.counters();
        console.print_line(format_args!(
            "broadcasts assembled={} refused={} spoilt={} given_up={} dropped={}",
            counters.assembled, counters.refused, counters.spoilt, counters.given_up, counters.dropped
        ));
    }
}
