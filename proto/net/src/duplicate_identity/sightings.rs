//! Records which process numbers came under one transport key, in which order, to distinguish a restart from
//! a copy.
//!
//! A process that is started again has a new number and never the old one, however its connections come and
//! go. So if one number comes, another, and the first **again**, two processes run.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use libp2p::PeerId;
use tokio::time::Instant;

use super::gossip::{IdentityVerdict, Instance, PAUSE, SOON};

/// Numbers remembered of one identity. It may have fewer connections at a time.
const KNOWN: usize = 8;
/// Time for which another number makes a duplicate possible: until its process must have asked again.
const POSSIBLE: Duration = PAUSE.saturating_add(SOON).saturating_add(SOON);
/// Time for which two numbers that were received in turns are reported to each other. Both ask every [`SOON`]
/// then, thus two questions may be lost.
const CERTAIN: Duration = SOON.saturating_mul(3);

/// Numbers received under one identity.
#[derive(Debug, Default)]
struct Sighting {
    /// The numbers, each with the time of its last question; the newest last.
    numbers: VecDeque<(Instance, Instant)>,
    /// End of the time for which several processes are certain.
    certain: Option<Instant>,
}

impl Sighting {
    fn asked(&mut self, instance: Instance, now: Instant) -> IdentityVerdict {
        let before = self.numbers.iter().position(|(known, _)| *known == instance);
        if let Some(position) = before {
            // §16.2: A, B, A proves two processes.
            if position + 1 != self.numbers.len() {
                self.certain = Some(now + CERTAIN);
            }
            self.numbers.remove(position);
        } else if self.numbers.len() >= KNOWN {
            // §16.2: the last eight numbers of each identity.
            self.numbers.pop_front();
        }
        let recent = |at: Instant| now.saturating_duration_since(at) < POSSIBLE;
        // §16.2: another number within 70 s.
        let another = self.numbers.iter().any(|(_, at)| recent(*at));
        self.numbers.push_back((instance, now));
        match self.certain {
            // §16.2: for 15 s after the last time in turns.
            Some(until) if now < until => IdentityVerdict::Duplicate,
            _ if another => IdentityVerdict::Perhaps,
            _ => IdentityVerdict::Alone,
        }
    }
}

/// Numbers received under each connected identity.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    peers: HashMap<PeerId, Sighting>,
    /// Identities that are certain to have duplicates, with their names as far as known.
    duplicates: HashMap<PeerId, Option<String>>,
    /// Number of these with a name.
    named: usize,
    /// Earliest time at which one of them may be over.
    check: Option<Instant>,
}

impl Sightings {
    pub(crate) fn asked(&mut self, peer: PeerId, instance: Instance, now: Instant) -> IdentityVerdict {
        let sighting = self.peers.entry(peer).or_default();
        let answer = sighting.asked(instance, now);
        if answer == IdentityVerdict::Duplicate {
            self.check = self.check.into_iter().chain(sighting.certain).min();
            self.duplicates.entry(peer).or_default();
        }
        answer
    }

    /// Forgets an identity without connections.
    pub(crate) fn disconnected(&mut self, peer: &PeerId) {
        // §16.2: remembered as long as the identity is connected.
        self.peers.remove(peer);
        self.remove(peer);
    }

    fn remove(&mut self, peer: &PeerId) -> Option<String> {
        let name = self.duplicates.remove(peer)?;
        self.named -= usize::from(name.is_some());
        name
    }

    /// Returns true if this identity has a duplicate and no known name.
    pub(crate) fn is_nameless(&self, peer: &PeerId) -> bool {
        self.duplicates.get(peer).is_some_and(Option::is_none)
    }

    /// One that has a duplicate is this drone.
    pub(crate) fn name(&mut self, peer: &PeerId, name: String) {
        if let Some(duplicate) = self.duplicates.get_mut(peer) {
            self.named += usize::from(duplicate.replace(name).is_none());
        }
    }

    /// Number of identities with a duplicate and a name: strangers have no name.
    pub(crate) fn named(&self) -> usize {
        self.named
    }

    /// Time to check whether one of them is [`over`](Self::over).
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.check
    }

    /// Forgets the duplicates of those that have long enough not been seen to have one. Returns the names of
    /// those that have one.
    pub(crate) fn over(&mut self, now: Instant) -> Vec<String> {
        if self.check.is_none_or(|check| now < check) {
            return Vec::new();
        }
        let until = |peer: &PeerId| self.peers.get(peer).and_then(|sighting| sighting.certain);
        let duplicates = self.duplicates.keys().map(|peer| (*peer, until(peer)));
        let (going_on, over): (Vec<_>, Vec<_>) =
            duplicates.partition(|(_, until)| until.is_some_and(|until| now < until));
        self.check = going_on.into_iter().filter_map(|(_, until)| until).min();
        over.iter().filter_map(|(peer, _)| self.remove(peer)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: Instance = [1; 16];
    const B: Instance = [2; 16];
    const C: Instance = [3; 16];

    /// Answers to these questions, given as number and seconds after the first.
    fn answers(asked: &[(Instance, u64)]) -> Vec<IdentityVerdict> {
        let (mut sighting, start) = (Sighting::default(), Instant::now());
        let answer = |(instance, after): &(Instance, u64)| {
            sighting.asked(*instance, start + Duration::from_secs(*after))
        };
        asked.iter().map(answer).collect()
    }

    #[test]
    fn process_that_asks_alone_is_told_so() {
        assert_eq!(answers(&[(A, 0), (A, 5), (A, 65), (A, 10_000)]), [IdentityVerdict::Alone; 4]);
    }

    #[test]
    fn restart_is_no_duplicate() {
        use IdentityVerdict::{Alone, Perhaps};
        assert_eq!(
            answers(&[(A, 0), (B, 10), (B, 15), (B, 100), (C, 110), (C, 200)]),
            [Alone, Perhaps, Perhaps, Alone, Perhaps, Alone]
        );
    }

    #[test]
    fn first_process_heard_again_behind_another_proves_two() {
        use IdentityVerdict::{Alone, Duplicate, Perhaps};
        assert_eq!(answers(&[(A, 0), (B, 1), (A, 60), (B, 61)]), [Alone, Perhaps, Duplicate, Duplicate]);
    }

    #[test]
    fn three_that_ask_in_turns_are_seen() {
        let answers_given = answers(&[(A, 0), (B, 1), (C, 2), (A, 60), (B, 61), (C, 62)]);
        assert_eq!(answers_given[3..], [IdentityVerdict::Duplicate; 3]);
    }

    #[test]
    fn end_of_one_is_seen_and_its_return_too() {
        use IdentityVerdict::{Alone, Duplicate, Perhaps};
        // The copy ends after 7 s and comes back, running as before, after 200.
        let answers_given =
            answers(&[(A, 0), (B, 1), (A, 6), (B, 7), (A, 11), (A, 25), (A, 26), (A, 90), (B, 200)]);
        assert_eq!(
            answers_given[2..],
            [Duplicate, Duplicate, Duplicate, Duplicate, Perhaps, Alone, Duplicate]
        );
    }

    fn order() -> impl Strategy<Value = Vec<(u8, u64)>> {
        proptest::collection::vec((0..4u8, 0..100u64), 1..40)
    }

    /// The numbers in the order received, each so long after the one before; the answers.
    fn run(order: &[(u8, u64)]) -> Vec<IdentityVerdict> {
        let mut after = 0;
        let timed = order.iter().map(|(number, pause)| {
            after += pause;
            ([*number; 16], after)
        });
        answers(&timed.collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn restarts_however_many_and_however_fast_are_never_twins(order in order()) {
            let mut restarts: Vec<_> = order;
            restarts.sort_by_key(|(number, _)| *number);
            prop_assert!(!run(&restarts).contains(&IdentityVerdict::Duplicate));
        }

        #[test]
        fn number_that_comes_again_behind_others_is_told_at_once_and_only_then(order in order()) {
            let answers_given = run(&order);
            let mut last_proof = None;
            let mut time = 0;
            for (at, (number, pause)) in order.iter().enumerate() {
                time += pause;
                let new = at > 0 && order[at - 1].0 != *number;
                if new && order[..at].iter().any(|(known, _)| known == number) {
                    last_proof = Some(time);
                }
                let certain = last_proof.is_some_and(|proof| time < proof + CERTAIN.as_secs());
                prop_assert_eq!(answers_given[at] == IdentityVerdict::Duplicate, certain);
            }
        }
    }

    #[test]
    fn memory_of_one_identity_is_bounded() {
        let (mut sighting, now) = (Sighting::default(), Instant::now());
        for number in 0..=u8::MAX {
            sighting.asked([number; 16], now);
        }
        assert_eq!(sighting.numbers.len(), KNOWN);
    }

    #[test]
    fn duplicates_are_listed_until_they_are_over_or_gone_and_count_once_they_have_a_name() {
        let (mut sightings, now) = (Sightings::default(), Instant::now());
        let [first, second] = [PeerId::random(), PeerId::random()];
        for peer in [first, second] {
            for instance in [A, B, A] {
                sightings.asked(peer, instance, now);
            }
        }
        assert!(sightings.is_nameless(&first));
        assert_eq!(sightings.named(), 0);
        sightings.name(&first, "edge-1".into());
        assert!(!sightings.is_nameless(&first));
        assert_eq!(sightings.named(), 1);
        sightings.disconnected(&second);
        assert!(!sightings.is_nameless(&second));
        assert_eq!(sightings.wake_at(), Some(now + CERTAIN));
        assert_eq!(sightings.over(now), Vec::<String>::new());
        assert_eq!(sightings.over(now + CERTAIN), ["edge-1"]);
        assert_eq!((sightings.named(), sightings.wake_at()), (0, None));
    }
}
