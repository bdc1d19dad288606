//! Assembles coded broadcasts from frames of which some may be lost, repeated or forged.
//!
//! Two tables are bounded, sources and the messages of each, and both are replaced by one rule, that of a
//! segmented LRU cache (R. Karedla, J. S. Love, B. G. Wherry, *Caching strategies to improve disk system
//! performance*, IEEE Computer 27(3), 1994): half the places are for entries that have proven themselves, and
//! a newcomer displaces another newcomer. A message has proven itself by a second piece, a source by a message
//! that was accepted. A flood of single frames, or of addresses, displaces nothing that was heard before it;
//! an attacker that prepares does not save a frame by it.

use alloc::vec::Vec;
use core::time::Duration;

use super::frame::digest;
use super::{CodedFrame, recover};

/// Limits of an [`Assembler`]. It holds `sources` × `source_bytes` bytes of pieces at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssemblerLimits {
    /// Sources whose frames are kept; at least 2. Half of them are for those of which a message was accepted.
    pub sources: usize,
    /// Messages of one source that may be on their way at once; at least 2. Half of them are for those of which
    /// more than one piece is there.
    pub messages: usize,
    /// Bytes of pieces of one source; beyond, the message that went longest without a frame is dropped.
    pub source_bytes: usize,
    /// The longest message to take in bytes.
    pub max_message: usize,
    /// Pieces kept beyond the k that suffice, for when some of these were forged.
    pub spare: usize,
    /// Sets of k pieces that are decoded before a message is given up.
    pub attempts: u32,
    /// Multiplications of bytes per second for sets of a message after its first, which is always decoded; as
    /// many as of one second can be saved up. It bounds the cost of false frames, whatever they are.
    pub retry_work: u32,
    /// Time after its first frame at which a message is forgotten.
    pub keep: Duration,
}

impl AssemblerLimits {
    /// Limits for messages of at most `max_message` bytes, and 32 times as many of pieces in all.
    pub const fn new(max_message: usize) -> Self {
        Self {
            sources: 8,
            messages: 8,
            source_bytes: max_message.saturating_mul(4),
            max_message,
            spare: 8,
            attempts: 64,
            // Some 10 million cycles of a small processor.
            retry_work: 1_000_000,
            keep: Duration::from_secs(10),
        }
    }
}

/// Counters of an [`Assembler`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AssemblerCounters {
    /// Messages assembled.
    pub assembled: u64,
    /// Frames that are none, or of messages that are too long.
    pub refused: u64,
    /// Sets of pieces that made no message of this digest, or one that was not accepted.
    pub spoilt: u64,
    /// Sets of pieces that were not decoded, because earlier ones took [`AssemblerLimits::retry_work`].
    pub skipped: u64,
    /// Messages given up after all attempts, or because no more pieces are kept. The receiver asks instead.
    pub given_up: u64,
    /// Messages forgotten before they were whole: too old, or displaced by others of their source, or with it.
    pub dropped: u64,
}

/// Assembles broadcasts. Trusts no frame: what it makes of them is checked against the digest in the frames,
/// then by the caller.
///
/// Frames of different sources are never mixed, so that false ones spoil only what comes from the address that
/// they claim. Addresses prove nothing: one that sent what was accepted is kept longer, and that is all.
#[derive(Debug)]
pub struct Assembler {
    limits: AssemblerLimits,
    sources: Vec<FrameSource>,
    counters: AssemblerCounters,
    /// Multiplications that may be spent on retries, and when they were counted last.
    work: u64,
    counted: Duration,
}

/// Messages that come from one address.
#[derive(Debug)]
struct FrameSource {
    address: u64,
    /// A message of it was accepted.
    accepted: bool,
    /// Messages in the order of their last frames.
    messages: Vec<BroadcastAssembly>,
}

/// Key that distinguishes one message's frames from another's of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AssemblyKey {
    digest: [u8; 4],
    len: u16,
    piece_len: usize,
}

#[derive(Debug)]
struct BroadcastAssembly {
    key: AssemblyKey,
    data: usize,
    since: Duration,
    /// Indices in the order of their coming; one comes twice if one of the two is forged.
    indices: Vec<u8>,
    /// The pieces of these, one behind the other.
    pieces: Vec<u8>,
    attempts: u32,
    /// Assembled or given up: what else comes of it is of no use.
    over: bool,
}

impl Assembler {
    /// Knows of no message.
    pub fn new(limits: AssemblerLimits) -> Self {
        let (counters, work) = (AssemblerCounters::default(), limits.retry_work.into());
        Self { limits, sources: Vec::new(), counters, work, counted: Duration::ZERO }
    }

    /// The counters so far.
    pub fn counters(&self) -> AssemblerCounters {
        self.counters
    }

    /// Bytes of the pieces that are kept.
    pub fn held_bytes(&self) -> usize {
        self.sources.iter().map(FrameSource::held_bytes).sum()
    }

    /// Takes a frame that came from `source`, as it claims. Gives the message if it is whole and `accept`
    /// says that it is genuine, once. `accept` is called for what has the right digest only.
    pub fn handle_frame(
        &mut self,
        now: Duration,
        source: u64,
        bytes: &[u8],
        accept: impl FnMut(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        self.expire(now);
        self.refill(now);
        let frame = match CodedFrame::decode(bytes) {
            // Refused before any memory is taken: the length is a stranger's claim.
            Ok(frame) if usize::from(frame.len) <= self.limits.max_message => frame,
            _ => {
                self.counters.refused += 1;
                return None;
            }
        };
        self.hear(source);
        let (limits, counters) = (self.limits, &mut self.counters);
        let source = self.sources.last_mut()?;
        let message = source.handle_frame(now, &frame, &limits, (counters, &mut self.work), accept);
        // An address proves nothing; what was accepted from it keeps its place longer.
        source.accepted |= message.is_some();
        message
    }

    fn expire(&mut self, now: Duration) {
        let (keep, counters) = (self.limits.keep, &mut self.counters);
        for source in &mut self.sources {
            source.messages.retain(|assembly| {
                let kept = now.saturating_sub(assembly.since) < keep;
                counters.dropped += u64::from(!kept && !assembly.over);
                kept
            });
        }
        // A source that proved itself stays known without a message, or a flood between two messages would
        // displace it.
        self.sources.retain(|source| source.accepted || !source.messages.is_empty());
    }

    fn refill(&mut self, now: Duration) {
        let rate = u64::from(self.limits.retry_work);
        let micros = u64::try_from(now.saturating_sub(self.counted).as_micros()).unwrap_or(u64::MAX);
        let more = rate.saturating_mul(micros) / 1_000_000;
        if more > 0 {
            // At most the work of one second is saved up, so that a burst of false frames cannot cost more.
            self.work = self.work.saturating_add(more).min(rate);
            self.counted = now;
        }
    }

    /// Puts the source with this address last, a new one in another's place if need be.
    fn hear(&mut self, address: u64) {
        let source = match self.sources.iter().position(|source| source.address == address) {
            Some(at) => self.sources.remove(at),
            None => {
                let proven = |source: &FrameSource| source.accepted;
                if let Some(gone) = displace(&mut self.sources, self.limits.sources, proven) {
                    let unfinished = gone.messages.iter().filter(|assembly| !assembly.over);
                    self.counters.dropped += unfinished.count() as u64;
                }
                FrameSource { address, accepted: false, messages: Vec::new() }
            }
        };
        self.sources.push(source);
    }
}

/// Makes room for a newcomer among entries in the order of their last frames, if there is none: displaces the
/// first of those who have proven themselves if these have more than half of the places, else the first of the
/// others.
fn displace<T>(entries: &mut Vec<T>, places: usize, proven: impl Fn(&T) -> bool) -> Option<T> {
    if entries.len() < places.max(2) {
        return None;
    }
    // Half of the places are for proven entries, so that a flood of newcomers displaces newcomers alone.
    let crowded = entries.iter().filter(|entry| proven(entry)).count() > places.max(2) / 2;
    let first = entries.iter().position(|entry| proven(entry) == crowded)?;
    Some(entries.remove(first))
}

impl FrameSource {
    fn held_bytes(&self) -> usize {
        self.messages.iter().map(BroadcastAssembly::held_bytes).sum()
    }

    fn handle_frame(
        &mut self,
        now: Duration,
        frame: &CodedFrame<'_>,
        limits: &AssemblerLimits,
        (counters, work): (&mut AssemblerCounters, &mut u64),
        accept: impl FnMut(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        self.hear(now, frame, limits.messages, counters);
        let assembly = self.messages.last_mut()?;
        // A piece that is there already makes no new set.
        if !assembly.take(frame) {
            return None;
        }
        let message = assembly.decode(limits.attempts, accept, (counters, work));
        // Bounded pieces, bytes and attempts: beyond them, false frames are too many, and the receiver asks
        // instead.
        let full = assembly.indices.len() >= assembly.data + limits.spare;
        let too_large = assembly.held_bytes() > limits.source_bytes;
        if message.is_some() {
            counters.assembled += 1;
            assembly.end();
        } else if full || too_large || assembly.attempts >= limits.attempts {
            counters.given_up += 1;
            assembly.end();
        }
        // The message without a frame for longest goes first: what is under way is likelier to become whole.
        while self.held_bytes() > limits.source_bytes {
            let Some(at) = self.messages.iter().position(|assembly| !assembly.over) else { break };
            self.messages.remove(at);
            counters.dropped += 1;
        }
        message
    }

    /// Puts the message of this frame last, a new one in another's place if need be.
    fn hear(
        &mut self,
        now: Duration,
        frame: &CodedFrame<'_>,
        places: usize,
        counters: &mut AssemblerCounters,
    ) {
        let key = AssemblyKey { digest: frame.digest, len: frame.len, piece_len: frame.piece.len() };
        let assembly = match self.messages.iter().position(|assembly| assembly.key == key) {
            Some(at) => self.messages.remove(at),
            None => {
                let proven = |assembly: &BroadcastAssembly| assembly.over || assembly.indices.len() > 1;
                let gone = displace(&mut self.messages, places, proven);
                counters.dropped += u64::from(gone.is_some_and(|gone| !gone.over));
                let data = frame.data();
                BroadcastAssembly {
                    key,
                    data,
                    since: now,
                    indices: Vec::new(),
                    pieces: Vec::new(),
                    attempts: 0,
                    over: false,
                }
            }
        };
        self.messages.push(assembly);
    }
}

impl BroadcastAssembly {
    fn held_bytes(&self) -> usize {
        self.pieces.len()
    }

    fn pieces(&self) -> impl DoubleEndedIterator<Item = (u8, &[u8])> + ExactSizeIterator {
        self.indices.iter().copied().zip(self.pieces.chunks_exact(self.key.piece_len.max(1)))
    }

    /// Keeps the piece, unless it is there or of no use.
    fn take(&mut self, frame: &CodedFrame<'_>) -> bool {
        let taken = !self.over && self.pieces().all(|piece| piece != (frame.index, frame.piece));
        if taken {
            self.indices.push(frame.index);
            self.pieces.extend_from_slice(frame.piece);
        }
        taken
    }

    fn end(&mut self) {
        self.over = true;
        // The key stays, so that frames that still come are not taken for a new message's.
        (self.indices, self.pieces) = (Vec::new(), Vec::new());
    }

    /// Decodes sets of k pieces with the newest among them, until one makes the message. Sets without it
    /// have been tried.
    fn decode(
        &mut self,
        most: u32,
        mut accept: impl FnMut(&[u8]) -> bool,
        (counters, work): (&mut AssemblerCounters, &mut u64),
    ) -> Option<Vec<u8>> {
        let older = self.indices.len().checked_sub(1)?;
        // Which of the older pieces are left out: fewer than k pieces make no set.
        let mut left_out: Vec<usize> = (0..(older + 1).checked_sub(self.data)?).collect();
        let mut attempts = self.attempts;
        let mut message = None;
        // Sets with an index twice are not decoded, but looked at: no more than 16 for each that may be.
        for _ in attempts.saturating_mul(16)..most.saturating_mul(16) {
            if attempts >= most {
                break;
            }
            let set: Vec<(u8, &[u8])> = self
                .pieces()
                .enumerate()
                .filter(|(at, _)| left_out.binary_search(at).is_err())
                .map(|(_, piece)| piece)
                .collect();
            let mut taken = [false; 256];
            let distinct = set.iter().all(|(index, _)| {
                taken.get_mut(usize::from(*index)).is_some_and(|taken| !core::mem::replace(taken, true))
            });
            // An index that is there twice has a forged piece: a set with both decodes to nothing.
            if distinct {
                let cost = self.work_of(&set);
                // The first set is always decoded, so that nobody's false frames cost an honest message its
                // only attempt.
                if attempts > 0 && *work < cost {
                    counters.skipped += 1;
                    break;
                }
                *work = work.saturating_sub(if attempts > 0 { cost } else { 0 });
                attempts += 1;
                message = self.decode_set(&set).filter(|message| accept(message));
                if message.is_some() {
                    break;
                }
                counters.spoilt += 1;
            }
            if !next_combination(&mut left_out, older) {
                break;
            }
        }
        self.attempts = attempts;
        message
    }

    /// Multiplications of bytes that decoding a set takes.
    fn work_of(&self, set: &[(u8, &[u8])]) -> u64 {
        let missing = set.iter().filter(|(index, _)| usize::from(*index) >= self.data).count();
        (missing * (self.data + missing) * self.key.piece_len + usize::from(self.key.len)) as u64
    }

    /// The message of a set of k pieces, if it has the digest.
    fn decode_set(&self, set: &[(u8, &[u8])]) -> Option<Vec<u8>> {
        let mut message = recover(self.data, set).ok()?;
        // The last data piece was filled up with zeros.
        message.truncate(self.key.len.into());
        (digest(&message) == self.key.digest).then_some(message)
    }
}

/// The next ascending choice of numbers below `below`, in lexicographic order; false after the last.
fn next_combination(chosen: &mut [usize], below: usize) -> bool {
    let len = chosen.len();
    for at in (0..len).rev() {
        let Some(value) = chosen.get(at).copied() else { return false };
        if value + (len - at) < below {
            for (place, next) in chosen.iter_mut().skip(at).zip(value + 1..) {
                *place = next;
            }
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn combinations_are_all_there() {
        let mut chosen = [0, 1];
        let mut all = vec![chosen];
        while next_combination(&mut chosen, 4) {
            all.push(chosen);
        }
        assert_eq!(all, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert!(!next_combination(&mut [], 4));
    }
}
