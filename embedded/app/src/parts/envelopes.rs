//! Attribute keys from the authorities beside the KGC, and envelopes sealed to attributes. Takes pairings.

mod attribute_keys;
mod sealing;

use alloc::vec::Vec;
use core::time::Duration;

use quiver_abe::envelope::SessionLimits;
use quiver_crypto::{Hex, Zeroizing};
use quiver_envelope::{EnvelopeCommand, EnvelopeEvent, EnvelopeLimits, Envelopes};
use quiver_group::edge::EdgeEvent;
use quiver_link::Counter;
use quiver_machine::{Either, Offence, Peer, Route, Snapshot};
use rand_core::CryptoRngCore;

use self::attribute_keys::{HeldAttributes, KeyFetch, KeyringTask};
use self::sealing::print_opened;
use super::{BoardPart, CommandAnswer, PartContext, PartRequest};
use crate::console::{ConsoleLine, ConsoleOutput};
use crate::node::BoardState;

/// Help for the console commands.
const HELP: &str = "\
fetch                fetch attribute keys
attributes           what is held of attribute authorities
seal <authority> '<policy or attributes>' <text>
                     say something to whoever's attributes fit, signed
open <hex>           open an envelope that came as a file
";
/// Limits of time and memory for envelopes, by which they open no more than a board can. An opening takes seconds and
/// about half of the heap.
const LIMITS: EnvelopeLimits = EnvelopeLimits {
    ciphertext: 640,
    openings: (4, Duration::from_secs(10)),
    jumps: (8, Duration::from_secs(2)),
    sessions: SessionLimits { sessions: 8, per_sender: 8, senders: 16, skipped: 8 },
    early: (4, 4_096),
    unfit: 32,
    open: 2,
};
/// Bytes of a session's name that are printed.
const SHOWN_OF_NAME: usize = 8;

/// Attribute keys with their fetch, and the console's envelopes.
pub(super) struct EnvelopePart {
    held: HeldAttributes,
    fetch: KeyFetch,
    /// The machine's state as it was last stored: it is stored again with new keys.
    state: Option<Snapshot>,
}

impl EnvelopePart {
    /// Makes the part without any key: a fetch is to begin.
    pub(super) fn new() -> Self {
        Self { held: HeldAttributes::new(), fetch: KeyFetch::new(), state: None }
    }

    /// Executes a command of the console.
    fn run<R: CryptoRngCore>(
        &mut self,
        cx: &mut PartContext<'_, R>,
        command: &EnvelopeLine<'_>,
    ) -> CommandAnswer<EnvelopeCommand> {
        match command {
            EnvelopeLine::Fetch => self.fetch.request(cx),
            EnvelopeLine::Attributes => {
                self.held.print(&mut cx.board.console);
                cx.print_line(format_args!("end"));
            }
            EnvelopeLine::Seal(sealing) => match sealing.order(&self.held) {
                Ok(command) => return CommandAnswer::Command(command),
                Err(reason) => cx.print_line(format_args!("error {reason}")),
            },
            EnvelopeLine::Open(text) => sealing::open(cx, &self.held, text),
        }
        CommandAnswer::Done
    }
}

impl BoardPart for EnvelopePart {
    type Beside = Envelopes;

    const STATE_VERSION: Option<u8> = Some(2);

    fn beside() -> Envelopes {
        Envelopes::new(LIMITS)
    }

    fn connected<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, peer: Peer, route: Route) {
        if route == Route::Kgc {
            self.fetch.connected(cx, peer);
        }
    }

    fn disconnected<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, peer: Peer) {
        self.fetch.disconnected(cx, peer);
    }

    fn received<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, from: Peer, bytes: &[u8]) -> bool {
        self.fetch.received(cx, from, bytes)
    }

    /// Returns true while a fetch is under way.
    fn wants_kgcs(&self) -> bool {
        self.fetch.is_under_way()
    }

    /// Stores and hands out keys that are new, then goes on with the fetch.
    #[inline(never)]
    fn poll_request<R: CryptoRngCore>(
        &mut self,
        cx: &mut PartContext<'_, R>,
    ) -> Option<PartRequest<EnvelopeCommand>> {
        // Authorities know a drone by the key that the KGC has given it.
        if !cx.is_enrolled() {
            return None;
        }
        loop {
            match self.held.next_task() {
                Some(KeyringTask::Store) => {
                    if let Some(state) = self.state.clone() {
                        return Some(PartRequest::Store(state));
                    }
                }
                Some(KeyringTask::Use) => {
                    let keys = self.held.decode();
                    return Some(PartRequest::Command(Either::Right(EnvelopeCommand::Keys(keys))));
                }
                Some(KeyringTask::Print) => self.held.print(&mut cx.board.console),
                None => {
                    self.fetch.advance(cx, &self.held);
                    // A new key is stored before the fetch goes on.
                    if !self.fetch.poll(cx, &mut self.held) {
                        return None;
                    }
                }
            }
        }
    }

    fn due<R: CryptoRngCore>(&self, cx: &PartContext<'_, R>) -> Option<Duration> {
        self.fetch.due().filter(|_| cx.is_ready && self.fetch.is_possible(cx))
    }

    /// Counts envelopes that came from the group and do not hold.
    fn edge_event<R>(&mut self, board: &mut BoardState<R>, event: &EdgeEvent) {
        if let EdgeEvent::Blamed {
            offence: Offence::Feature { feature: quiver_envelope::FEATURE, .. }, ..
        } = event
        {
            board.report.add(Counter::BadEnvelopes);
        }
    }

    fn beside_event<R>(&mut self, board: &mut BoardState<R>, event: EnvelopeEvent) {
        let console = &mut board.console;
        match event {
            EnvelopeEvent::Opened { session, data, author, .. } => {
                let session = alloc::format!("{}", Hex(&shown(&session)));
                print_opened(console, "envelope", &session, author.as_ref(), &data);
            }
            EnvelopeEvent::NotSatisfied { session } => {
                console.print_line(format_args!("unfit {}", Hex(&shown(&session))));
            }
            EnvelopeEvent::TooLarge { session } => {
                console.print_line(format_args!("toolarge {}", Hex(&shown(&session))));
            }
            EnvelopeEvent::NotSent(reason) => console.print_line(format_args!("unsent {reason}")),
            EnvelopeEvent::Sent { session, number } => {
                console.print_line(format_args!("sealed {} {number}", Hex(&shown(&session))));
            }
        }
    }

    fn record(&self) -> Zeroizing<Vec<u8>> {
        self.held.encode()
    }

    fn restore<R>(&mut self, board: &mut BoardState<R>, record: &[u8], state: Option<&Snapshot>) {
        *self = Self { state: state.cloned(), ..Self::new() };
        let Some(settings) = board.settings.as_ref().filter(|_| !record.is_empty()) else { return };
        if let Err(error) = self.held.restore(record, &settings.deployment) {
            board.report.add(Counter::StateDamaged);
            board.console.print_line(format_args!("fault attribute keys: {error}"));
        }
    }

    fn stored(&mut self, state: Snapshot) {
        self.state = Some(state);
    }

    /// Erases all keys: rather no envelopes than no group.
    fn erase_record<R>(&mut self, board: &mut BoardState<R>) -> bool {
        if !self.held.erase() {
            return false;
        }
        board.report.add(Counter::FlashFull);
        board.console.print_line(format_args!("fault no room for attribute keys beside the state: erased"));
        true
    }

    fn discard_state(&mut self) {
        *self = Self::new();
    }

    fn wipe(&mut self) {
        *self = Self::new();
    }

    fn command<R: CryptoRngCore>(
        &mut self,
        cx: &mut PartContext<'_, R>,
        line: &ConsoleLine<'_>,
    ) -> CommandAnswer<EnvelopeCommand> {
        match EnvelopeLine::read(line) {
            Ok(None) => CommandAnswer::Unknown,
            Ok(Some(command)) => self.run(cx, &command),
            Err(reason) => CommandAnswer::Malformed(reason),
        }
    }

    fn print_help(console: &mut ConsoleOutput) {
        console.print_text(HELP);
    }
}

/// The beginning of a session's name, for the console.
fn shown(session: &[u8; 32]) -> [u8; SHOWN_OF_NAME] {
    let mut shown = [0; SHOWN_OF_NAME];
    shown.iter_mut().zip(session).for_each(|(place, byte)| *place = *byte);
    shown
}

/// Line of the console that asks for keys or an envelope.
#[derive(Debug, PartialEq, Eq)]
enum EnvelopeLine<'a> {
    Fetch,
    Attributes,
    Seal(Sealing<'a>),
    /// Hexadecimal.
    Open(&'a str),
}

impl<'a> EnvelopeLine<'a> {
    /// Reads a line; `None` if its word is none of envelopes.
    ///
    /// # Errors
    /// Description of the mistake for the operator.
    fn read(line: &ConsoleLine<'a>) -> Result<Option<Self>, &'static str> {
        let command = match line.word {
            "fetch" => line.alone(Self::Fetch)?,
            "attributes" => line.alone(Self::Attributes)?,
            "seal" => Sealing::parse(line.rest)
                .map(Self::Seal)
                .ok_or("seal <authority> '<policy or attributes>' <text>")?,
            "open" if !line.rest.is_empty() => Self::Open(line.rest),
            _ => return Ok(None),
        };
        Ok(Some(command))
    }
}

/// Arguments of `seal`: the recipients and the text.
#[derive(Debug, PartialEq, Eq)]
struct Sealing<'a> {
    /// The authority's name.
    authority: &'a str,
    /// A policy or a list of attributes.
    target: &'a str,
    text: &'a str,
}

impl<'a> Sealing<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (authority, rest) = text.split_once(char::is_whitespace)?;
        let (target, text) = rest.trim_start().strip_prefix('\'')?.split_once('\'')?;
        let text = text.strip_prefix(char::is_whitespace)?.trim_start();
        (!text.is_empty()).then_some(Self { authority, target, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[u8]) -> Result<EnvelopeLine<'_>, &'static str> {
        EnvelopeLine::read(&ConsoleLine::parse(line)?)?.ok_or("no such command")
    }

    #[test]
    fn what_is_sealed_names_authority_recipients_and_text() {
        let sealing = Sealing { authority: "orders", target: "scout and \"a b\"", text: "go  'north'" };
        assert_eq!(parse(b"seal orders  'scout and \"a b\"' go  'north'"), Ok(EnvelopeLine::Seal(sealing)));
        for wrong in [
            &b"seal"[..],
            b"seal orders",
            b"seal orders scout go",
            b"seal orders 'scout",
            b"seal orders 'scout' ",
            b"open",
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
