//! The key chain of a session: one key per message, and the receiver's window of skipped keys.
//!
//! ```text
//! K_msg   = PRF(K_n, "message", n)     for exactly one stream
//! K_{n+1} = PRF(K_n, "next", "")       then K_n is erased
//! ```

use alloc::vec::Vec;

use quiver_crypto::{Secret, prf, prf_each};

use super::{EnvelopeError, SUITE};

/// Greatest number of kept keys of messages that have not arrived.
pub const MAX_SKIPPED: u32 = 64;
/// Greatest distance of a message from the newest one taken: as many steps a forged number can cost. No less
/// than a session has messages by default, so that nobody who was away for long is cut off from one.
pub const MAX_AHEAD: u32 = 4096;

/// The key of one message's stream; used once, because using it consumes it.
#[derive(Debug)]
pub(super) struct MessageKey(pub(super) Secret<32>);

/// State of a sender: K_n and n.
#[derive(Debug)]
pub(super) struct Chain {
    key: Secret<32>,
    next: u32,
}

impl Chain {
    pub(super) const fn new(key: Secret<32>) -> Self {
        Self { key, next: 0 }
    }

    pub(super) const fn next(&self) -> u32 {
        self.next
    }

    /// The next message's key. The chain key from which it is derived is erased.
    pub(super) fn step(&mut self) -> (u32, MessageKey) {
        let number = self.next;
        // §E2: K_msg = PRF(K_n, "message", n), K_{n+1} = PRF(K_n, "next", ""); then K_n is erased.
        let [message, next] =
            prf_each(&self.key, SUITE, [("message", &[&number.to_be_bytes()]), ("next", &[])]);
        self.key = next;
        self.next = number.saturating_add(1);
        (number, MessageKey(message))
    }

    /// Skips a message whose key is not needed.
    fn pass(&mut self) {
        // §E2: K_{n+1} = PRF(K_n, "next", ""); then K_n is erased.
        self.key = prf(&self.key, SUITE, "next", &[]);
        self.next = self.next.saturating_add(1);
    }
}

/// State of a receiver: K_n, n, and keys of earlier messages that have not arrived.
#[derive(Debug)]
pub(super) struct Window {
    chain: Chain,
    /// Ascending by number; in memory allocated once, because growing leaves copies of keys behind.
    skipped: Vec<(u32, MessageKey)>,
    /// Greatest number of them.
    limit: u32,
}

impl Window {
    pub(super) const fn new(key: Secret<32>) -> Self {
        Self { chain: Chain::new(key), skipped: Vec::new(), limit: MAX_SKIPPED }
    }

    /// Sets the number of kept keys of messages that have not arrived, [`MAX_SKIPPED`] at most.
    pub(super) fn limit(&mut self, skipped: u32) {
        self.limit = skipped.min(MAX_SKIPPED);
    }

    /// Number of messages between the newest one taken and this one.
    pub(super) const fn ahead(&self, number: u32) -> u32 {
        number.saturating_sub(self.chain.next)
    }

    /// The key of message `number`. Nothing changes: whether the message is genuine is not known yet.
    pub(super) fn key(&self, number: u32) -> Result<MessageKey, EnvelopeError> {
        let Some(ahead) = number.checked_sub(self.chain.next) else {
            // Below the chain only keys that were kept are left, and each opens its message once.
            let skipped = self.skipped.iter().find(|(skipped, _)| *skipped == number);
            let (_, key) = skipped.ok_or(EnvelopeError::Replayed(number))?;
            return Ok(MessageKey(key.0.clone()));
        };
        // §E4.1: at most 4,096 messages ahead of the newest one.
        if ahead > MAX_AHEAD {
            return Err(EnvelopeError::TooFarAhead(number));
        }
        // §E4.1: a copy goes ahead: the chain itself moves when the message has verified.
        let mut key = self.chain.key.clone();
        for _ in 0..ahead {
            key = prf(&key, SUITE, "next", &[]);
        }
        Ok(MessageKey(prf(&key, SUITE, "message", &[&number.to_be_bytes()])))
    }

    /// Notes that message `number` was genuine: its key is erased, and that of every message further back
    /// than the window reaches.
    pub(super) fn take(&mut self, number: u32) -> Result<(), EnvelopeError> {
        let Some(ahead) = number.checked_sub(self.chain.next) else {
            // §E4.1: each number is accepted once.
            let place = self.skipped.iter().position(|(skipped, _)| *skipped == number);
            return place
                .map(|place| drop(self.skipped.remove(place)))
                .ok_or(EnvelopeError::Replayed(number));
        };
        if ahead > MAX_AHEAD {
            return Err(EnvelopeError::TooFarAhead(number));
        }
        // §E4.1: keys of messages that have not come are kept, the newest `limit` of them.
        let oldest = number.saturating_add(1).saturating_sub(self.limit);
        self.skipped.retain(|(skipped, _)| *skipped >= oldest);
        if ahead > 0 {
            self.skipped.reserve_exact((self.limit as usize).saturating_sub(self.skipped.len()));
        }
        for _ in 0..ahead {
            if self.chain.next < oldest {
                self.chain.pass();
            } else {
                let (skipped, key) = self.chain.step();
                self.skipped.push((skipped, key));
            }
        }
        self.chain.pass();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Lifetime;

    fn keys(messages: u32) -> Vec<[u8; 32]> {
        let mut chain = Chain::new(Secret::new([7; 32]));
        (0..messages).map(|_| *chain.step().1.0.expose()).collect()
    }

    #[test]
    fn receiver_derives_the_senders_keys_in_any_order_within_the_window() {
        let keys = keys(70);
        let mut window = Window::new(Secret::new([7; 32]));
        for number in [3, 0, 64, 2, 1, 63, 65] {
            assert_eq!(*window.key(number).unwrap().0.expose(), keys[number as usize]);
            window.take(number).unwrap();
        }
    }

    #[test]
    fn no_key_is_given_twice() {
        let mut window = Window::new(Secret::new([7; 32]));
        window.take(2).unwrap();
        window.take(0).unwrap();
        for number in [0, 2] {
            assert_eq!(window.key(number).err(), Some(EnvelopeError::Replayed(number)));
            assert_eq!(window.take(number), Err(EnvelopeError::Replayed(number)));
        }
        window.take(1).unwrap();
    }

    #[test]
    fn looking_at_a_key_changes_nothing() {
        let window = Window::new(Secret::new([7; 32]));
        window.key(40).unwrap();
        assert_eq!((window.chain.next, window.skipped.len()), (0, 0));
    }

    #[test]
    fn message_beyond_the_window_is_refused_and_changes_nothing() {
        let mut window = Window::new(Secret::new([7; 32]));
        let beyond = MAX_AHEAD + 1;
        assert_eq!(window.take(beyond), Err(EnvelopeError::TooFarAhead(beyond)));
        assert_eq!(window.key(u32::MAX).err(), Some(EnvelopeError::TooFarAhead(u32::MAX)));
        assert_eq!((window.chain.next, window.skipped.len()), (0, 0));
    }

    #[test]
    fn receiver_that_was_away_goes_on_wherever_a_session_by_default_stands() {
        let last = Lifetime::default().messages() - 1;
        let keys = keys(last + 1);
        let mut window = Window::new(Secret::new([7; 32]));
        assert_eq!(window.ahead(last), last);
        for number in [last, last - 1, last - MAX_SKIPPED + 1] {
            assert_eq!(*window.key(number).unwrap().0.expose(), keys[number as usize]);
            window.take(number).unwrap();
            assert!(window.skipped.len() < MAX_SKIPPED as usize);
        }
        let lost = last - MAX_SKIPPED;
        assert_eq!(window.key(lost).err(), Some(EnvelopeError::Replayed(lost)));
    }

    #[test]
    fn keys_of_lost_messages_are_erased_when_the_window_has_passed() {
        let mut window = Window::new(Secret::new([7; 32]));
        for number in 1..=MAX_SKIPPED {
            window.take(number).unwrap();
        }
        assert_eq!(window.key(0).err(), Some(EnvelopeError::Replayed(0)));
        for round in 1..50 {
            window.take(round * (MAX_SKIPPED + 1)).unwrap();
            assert!(window.skipped.len() <= MAX_SKIPPED as usize);
        }
    }

    #[test]
    fn sender_keeps_no_key_of_a_message_it_has_sealed() {
        let mut chain = Chain::new(Secret::new([7; 32]));
        let (_, first) = chain.step();
        assert_ne!(chain.key, Secret::new([7; 32]));
        // Its present key leads to later keys and to no earlier ones.
        assert_ne!(*chain.step().1.0.expose(), *first.0.expose());
    }
}
