//! Remembers what a running drone was told: which leaders are connected since when, and why it is not a
//! member.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quiver_group::EdgeEvent;
use quiver_machine::{Peer, Reason, Route};

/// What is known. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Situation(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    leaders: BTreeMap<Peer, u64>,
    trouble: Option<Trouble>,
}

/// Why the drone is no member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// Its standing: `evicted`, `revoked`, `refused` or `left`.
    pub(crate) standing: &'static str,
    /// The reason, for people.
    pub(crate) reason: String,
    /// Since when, seconds since 1970.
    pub(crate) since: u64,
}

impl Situation {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A peer is connected.
    pub(crate) fn connected(&self, peer: Peer, route: Route, now: u64) {
        if route == Route::Leader {
            self.known().leaders.insert(peer, now);
        }
    }

    /// A peer is gone.
    pub(crate) fn disconnected(&self, peer: Peer) {
        self.known().leaders.remove(&peer);
    }

    /// Takes note of an event.
    pub(crate) fn note(&self, event: &EdgeEvent, now: u64) {
        let (standing, reason) = match event {
            EdgeEvent::KeyActivated { .. } => {
                self.known().trouble = None;
                return;
            }
            EdgeEvent::Evicted => ("evicted", "a leader of the group signed so".to_string()),
            EdgeEvent::Left => ("left", "as it was told".to_string()),
            EdgeEvent::Refused(Reason::Evicted) => {
                ("evicted", "the leader says so, and is asked again now and then".to_string())
            }
            EdgeEvent::Refused(Reason::Revoked) => {
                ("revoked", "the leader says so, and is asked again now and then".to_string())
            }
            EdgeEvent::Refused(reason) if !reason.is_transient() => ("refused", reason.to_string()),
            _ => return,
        };
        let mut known = self.known();
        // The leader's signed word outlasts refusals, which nothing authenticates.
        match &mut known.trouble {
            Some(trouble) if trouble.standing == standing => {}
            Some(trouble) if trouble.standing == "evicted" && standing == "refused" => {}
            trouble => *trouble = Some(Trouble { standing, reason, since: now }),
        }
    }

    /// Why the drone is no member, if it was told.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.known().trouble.clone()
    }

    /// Since when there is a connection with a leader; with how many.
    pub(crate) fn leaders(&self) -> (usize, Option<u64>) {
        let known = self.known();
        (known.leaders.len(), known.leaders.values().min().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_word_of_a_kind_says_since_when_and_a_key_ends_it() {
        let situation = Situation::default();
        situation.note(&EdgeEvent::Refused(Reason::Busy), 1);
        assert_eq!(situation.trouble(), None, "it may be admitted in a moment");
        situation.note(&EdgeEvent::Refused(Reason::WrongGroup), 2);
        situation.note(&EdgeEvent::Refused(Reason::WrongGroup), 3);
        let trouble = situation.trouble().expect("refused");
        assert_eq!((trouble.standing, trouble.since), ("refused", 2));
        situation.note(&EdgeEvent::Refused(Reason::Evicted), 4);
        assert_eq!(situation.trouble().expect("evicted").standing, "evicted");
        let epoch = quiver_ainq::Epoch { term: 1, counter: 1 };
        situation.note(&EdgeEvent::KeyActivated { epoch, digest: [0; 32], slot: 0 }, 5);
        assert_eq!(situation.trouble(), None);
    }

    #[test]
    fn connection_stands_since_the_oldest_leader_that_is_there() {
        let situation = Situation::default();
        situation.connected(Peer(1), Route::Leader, 10);
        situation.connected(Peer(2), Route::Leader, 20);
        situation.connected(Peer(3), Route::Kgc, 5);
        assert_eq!(situation.leaders(), (2, Some(10)));
        situation.disconnected(Peer(1));
        assert_eq!(situation.leaders(), (1, Some(20)));
    }
}
