//! Counts a drone's answers per leader in a period: a leader that may ask without end learns every field bit
//! by bit, one policy at a time.
//!
//! A count is durable before the answer leaves, so that no restart forgets it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_ainq::Serial;
use quiver_crypto::canonical::{Malformed, Reader, Writer};

/// Maximum number of leaders remembered. When they are full, those whose period is over are forgotten; if
/// there is none, no new leader is answered.
pub const MAX_LEADERS: usize = 256;

/// First byte of the encoding.
const VERSION: u8 = 2;
/// Bytes of an entry: authority, leader, period, count.
const ENTRY: usize = 32 + 16 + 8 + 4;

/// Reason why a leader is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Exhausted {
    /// This leader has been answered as often as it may in a period.
    #[error("this leader has been answered {0} times in this period")]
    Leader(u32),
    /// Too many leaders have been answered in this period.
    #[error("more than {MAX_LEADERS} leaders have been answered in this period")]
    Leaders,
    /// The period is over: the clock went back.
    #[error("a period that is over")]
    Past,
}

/// The answers given, by the authority's fingerprint and the leader's serial, whatever keys it has: in which
/// period, and how many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger(BTreeMap<([u8; 32], Serial), (u64, u32)>);

impl Ledger {
    /// Counts an answer, if there may be one more. The caller makes the ledger durable before it answers.
    ///
    /// # Errors
    /// [`Exhausted`]; then nothing is counted.
    pub fn take(
        &mut self,
        authority: &[u8; 32],
        leader: &Serial,
        period: u64,
        most: u32,
    ) -> Result<(), Exhausted> {
        let key = (*authority, *leader);
        let count = match self.0.get(&key) {
            // §A3: a clock that is put back gives no answer back.
            Some((counted, _)) if *counted > period => return Err(Exhausted::Past),
            Some((counted, count)) if *counted == period => *count,
            _ => 0,
        };
        // §A3: a leader is answered only so often in a period.
        if count >= most {
            return Err(Exhausted::Leader(count));
        }
        if !self.0.contains_key(&key) && self.0.len() >= MAX_LEADERS {
            // §A3: the ledger is bounded: what is over goes before anybody new is refused.
            self.0.retain(|(of, _), (counted, _)| of != authority || *counted >= period);
            if self.0.len() >= MAX_LEADERS {
                return Err(Exhausted::Leaders);
            }
        }
        self.0.insert(key, (period, count.saturating_add(1)));
        Ok(())
    }

    /// The encoding: version ‖ count ‖ (authority ‖ leader ‖ period u64 ‖ answers u32)*, ascending.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(5 + ENTRY * self.0.len());
        writer.u8(VERSION).count(self.0.len());
        for ((authority, leader), (period, count)) in &self.0 {
            writer.fixed(authority).fixed(leader).u64(*period).u32(*count);
        }
        writer.finish()
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(Malformed("of another version"));
        }
        let mut ledger = Self::default();
        for _ in 0..reader.count(MAX_LEADERS, ENTRY)? {
            let key = (reader.array()?, reader.array()?);
            if ledger.0.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(Malformed("a ledger out of order"));
            }
            ledger.0.insert(key, (reader.u64()?, reader.u32()?));
        }
        reader.end()?;
        Ok(ledger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CA: [u8; 32] = [1; 32];

    #[test]
    fn leader_is_answered_so_often_in_a_period_and_again_in_the_next() {
        let mut ledger = Ledger::default();
        for _ in 0..3 {
            assert_eq!(ledger.take(&CA, &[2; 16], 7, 3), Ok(()));
        }
        // Across a restart too.
        let mut ledger = Ledger::decode(&ledger.encode()).unwrap();
        assert_eq!(ledger.take(&CA, &[2; 16], 7, 3), Err(Exhausted::Leader(3)));
        assert_eq!(ledger.take(&CA, &[3; 16], 7, 3), Ok(()));
        assert_eq!(ledger.take(&[9; 32], &[2; 16], 7, 3), Ok(()));
        assert_eq!(ledger.take(&CA, &[2; 16], 8, 3), Ok(()));
        // A clock that is put back gives nothing back.
        assert_eq!(ledger.take(&CA, &[2; 16], 7, 3), Err(Exhausted::Past));
    }

    #[test]
    fn memory_is_bounded_and_freed_by_the_next_period() {
        let mut ledger = Ledger::default();
        let leader = |number: usize| {
            let mut leader = [0; 16];
            leader[..8].copy_from_slice(&number.to_be_bytes());
            leader
        };
        for number in 0..MAX_LEADERS {
            assert_eq!(ledger.take(&CA, &leader(number), 1, 1), Ok(()));
        }
        assert_eq!(ledger.take(&CA, &leader(MAX_LEADERS), 1, 1), Err(Exhausted::Leaders));
        assert_eq!(ledger.take(&CA, &leader(0), 1, 2), Ok(()), "there is room for who has a place");
        let full = ledger.encode();
        assert_eq!(Ledger::decode(&full).unwrap(), ledger);
        assert_eq!(ledger.take(&CA, &leader(MAX_LEADERS), 2, 1), Ok(()));
        assert_eq!(ledger.encode().len(), 5 + ENTRY);
    }

    #[test]
    fn cut_disordered_and_overfull_ledgers_are_refused() {
        let mut ledger = Ledger::default();
        ledger.take(&CA, &[2; 16], 1, 1).unwrap();
        ledger.take(&CA, &[3; 16], 1, 1).unwrap();
        let bytes = ledger.encode();
        for length in 0..bytes.len() {
            assert!(Ledger::decode(&bytes[..length]).is_err());
        }
        let disordered = [&bytes[..5], &bytes[5 + ENTRY..], &bytes[5..5 + ENTRY]].concat();
        assert_eq!(Ledger::decode(&disordered), Err(Malformed("a ledger out of order")));
        let mut overfull = bytes;
        overfull[1..5].copy_from_slice(&300_u32.to_be_bytes());
        assert!(Ledger::decode(&overfull).is_err());
    }
}
