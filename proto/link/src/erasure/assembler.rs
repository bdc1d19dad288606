//! Assembles coded broadcasts from frames of which some may be lost, repeated or forged.

use alloc::vec::Vec;
use core::time::Duration;

use super::frame::digest;
use super::{CodedFrame, recover};

/// Limits of an [`Assembler`]. It holds `messages` × `max_message` × (1 + `spare` / k) bytes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssemblerLimits {
    /// Messages that may be on their way at once; beyond, the one with the fewest pieces is dropped.
    pub messages: usize,
    /// The longest message to take in bytes.
    pub max_message: usize,
    /// Pieces kept beyond the k that suffice, for when some of these were forged.
    pub spare: usize,
    /// Sets of k pieces that are decoded before a message is given up.
    pub attempts: u32,
    /// Time after its first frame at which a message is forgotten.
    pub keep: Duration,
}

impl AssemblerLimits {
    /// For messages of so many bytes at most.
    pub const fn new(max_message: usize) -> Self {
        Self { messages: 4, max_message, spare: 8, attempts: 64, keep: Duration::from_secs(10) }
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
    /// Messages given up after all attempts, or because no more pieces are kept. The receiver asks instead.
    pub given_up: u64,
    /// Messages forgotten before they were whole.
    pub dropped: u64,
}

/// Assembles broadcasts. Trusts no frame: what it makes of them is checked against the digest in the frames,
/// then by the caller.
#[derive(Debug)]
pub struct Assembler {
    limits: AssemblerLimits,
    messages: Vec<Assembly>,
    counters: AssemblerCounters,
}

/// What tells one message's frames from another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    source: u64,
    digest: [u8; 4],
    len: u16,
    piece_len: usize,
}

#[derive(Debug)]
struct Assembly {
    key: Key,
    data: usize,
    since: Duration,
    /// In the order of their coming; an index comes twice if one of the two is forged.
    pieces: Vec<(u8, Vec<u8>)>,
    attempts: u32,
    /// Assembled or given up: what else comes of it is of no use.
    over: bool,
}

impl Assembler {
    /// Knows of no message.
    pub fn new(limits: AssemblerLimits) -> Self {
        Self { limits, messages: Vec::new(), counters: AssemblerCounters::default() }
    }

    /// The counters so far.
    pub fn counters(&self) -> AssemblerCounters {
        self.counters
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
        let frame = match CodedFrame::decode(bytes) {
            Ok(frame) if usize::from(frame.len) <= self.limits.max_message => frame,
            _ => {
                self.counters.refused += 1;
                return None;
            }
        };
        let at = self.find(now, source, &frame);
        let (limits, counters) = (self.limits, &mut self.counters);
        let assembly = self.messages.get_mut(at)?;
        let known =
            assembly.pieces.iter().any(|(index, piece)| *index == frame.index && piece == frame.piece);
        if assembly.over || known {
            return None;
        }
        assembly.pieces.push((frame.index, frame.piece.to_vec()));
        let message = assembly.decode(limits.attempts, accept, counters);
        let full = assembly.pieces.len() >= assembly.data + limits.spare;
        if message.is_some() {
            counters.assembled += 1;
        } else if full || assembly.attempts >= limits.attempts {
            counters.given_up += 1;
        } else {
            return None;
        }
        assembly.over = true;
        assembly.pieces = Vec::new();
        message
    }

    fn expire(&mut self, now: Duration) {
        let (keep, counters) = (self.limits.keep, &mut self.counters);
        self.messages.retain(|assembly| {
            let kept = now.saturating_sub(assembly.since) < keep;
            counters.dropped += u64::from(!kept && !assembly.over);
            kept
        });
    }

    /// The message of this frame, a new one if there is none yet.
    fn find(&mut self, now: Duration, source: u64, frame: &CodedFrame<'_>) -> usize {
        let key = Key { source, digest: frame.digest, len: frame.len, piece_len: frame.piece.len() };
        if let Some(at) = self.messages.iter().position(|assembly| assembly.key == key) {
            return at;
        }
        if self.messages.len() >= self.limits.messages.max(1) {
            // What has many pieces is more likely real than what has one. Of equals the oldest goes.
            let fewest = self.messages.iter().enumerate().min_by_key(|(_, assembly)| assembly.pieces.len());
            if let Some((at, _)) = fewest {
                let dropped = self.messages.remove(at);
                self.counters.dropped += u64::from(!dropped.over);
            }
        }
        let data = frame.data();
        self.messages.push(Assembly { key, data, since: now, pieces: Vec::new(), attempts: 0, over: false });
        self.messages.len() - 1
    }
}

impl Assembly {
    /// Decodes sets of k pieces with the newest among them, until one makes the message. Sets without it
    /// have been tried.
    fn decode(
        &mut self,
        most: u32,
        mut accept: impl FnMut(&[u8]) -> bool,
        counters: &mut AssemblerCounters,
    ) -> Option<Vec<u8>> {
        let (newest, older) = self.pieces.split_last()?;
        let mut left_out: Vec<usize> = (0..(older.len() + 1).checked_sub(self.data)?).collect();
        // Sets with an index twice are not decoded, but looked at: no more than 16 for each that may be.
        for _ in self.attempts.saturating_mul(16)..most.saturating_mul(16) {
            if self.attempts >= most {
                break;
            }
            let mut taken = [false; 256];
            let set: Vec<(u8, &[u8])> = older
                .iter()
                .enumerate()
                .filter(|(at, _)| left_out.binary_search(at).is_err())
                .map(|(_, piece)| piece)
                .chain([newest])
                .map(|(index, piece)| (*index, piece.as_slice()))
                .collect();
            let distinct = set.iter().all(|(index, _)| {
                taken.get_mut(usize::from(*index)).is_some_and(|taken| !core::mem::replace(taken, true))
            });
            if distinct {
                self.attempts += 1;
                if let Ok(mut message) = recover(self.data, &set) {
                    message.truncate(self.key.len.into());
                    if digest(&message) == self.key.digest && accept(&message) {
                        return Some(message);
                    }
                }
                counters.spoilt += 1;
            }
            if !next_combination(&mut left_out, older.len()) {
                break;
            }
        }
        None
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
