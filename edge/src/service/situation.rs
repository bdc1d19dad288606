//! Remembers what a running drone learned: which leaders are connected since when, and why it is not a member.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quiver_admission::Ending;
use quiver_group::EdgeEvent;
use quiver_machine::{Peer, Reason, Route};
use serde::{Deserialize, Serialize};

/// What is known. Clones are of the same.
#[derive(Clone, Debug)]
pub(crate) struct Situation(Arc<Mutex<Known>>);

#[derive(Debug)]
struct Known {
    leaders: BTreeMap<Peer, Connection>,
    /// Since when no leader is connected, if none is.
    alone_since: u64,
    trouble: Option<Trouble>,
}

/// A connection with a leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Connection {
    /// Its address, for people.
    pub(crate) place: String,
    /// Since when, seconds since 1970.
    pub(crate) since: u64,
}

/// Why the drone is no member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// Its standing.
    pub(crate) standing: Standing,
    /// The reason, for people.
    pub(crate) reason: String,
    /// What to do about it.
    pub(crate) next: &'static str,
    /// Since when, seconds since 1970.
    pub(crate) since: u64,
}

/// Standing of a drone in its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Standing {
    /// It asks to be admitted.
    #[default]
    Joining,
    /// It is a member, in step with its group.
    Member,
    /// It is a member, and does not know the current key.
    Behind,
    /// It has left, as it was told.
    Left,
    /// It was evicted.
    Evicted,
    /// It is revoked.
    Revoked,
    /// The leader refuses it.
    Refused,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Joining => "joining",
            Self::Member => "member, in sync",
            Self::Behind => "behind: a member without the current key",
            Self::Left => "left",
            Self::Evicted => "evicted",
            Self::Revoked => "revoked",
            Self::Refused => "refused",
        })
    }
}

/// What to do for a drone that is out for good.
pub(crate) const ANEW: &str =
    "it is not admitted again under its key: enrol it anew, in another data directory, with a fresh token";

impl Trouble {
    /// What an event says about why the drone is no member.
    fn of(event: &EdgeEvent, since: u64) -> Option<Self> {
        let (standing, reason, next) = match event {
            EdgeEvent::Evicted => (Standing::Evicted, "a leader of the group signed it".into(), ANEW),
            EdgeEvent::Left => {
                (Standing::Left, "as it was told".into(), "start `edge run` again to join again")
            }
            EdgeEvent::Refused(Reason::Evicted) => (Standing::Evicted, "the leader says so".into(), ANEW),
            EdgeEvent::Refused(Reason::Revoked) => (Standing::Revoked, "the leader says so".into(), ANEW),
            EdgeEvent::Refused(reason) if !reason.is_transient() => {
                let next = match reason {
                    Reason::Expired => "enrol it anew, in another data directory, with a fresh token",
                    Reason::WrongGroup => {
                        "give the group's own leader (--leader), or that leader's group (--group)"
                    }
                    Reason::NotAuthorised => {
                        "enrol it with a token for this group, or give its serial to `leader serve --allow`"
                    }
                    Reason::AdmissionOnly => "this group admits by policy only: use `edge run --anonymous`",
                    _ => "see the leader's log",
                };
                (Standing::Refused, format!("the leader says: {reason}"), next)
            }
            _ => return None,
        };
        Some(Self { standing, reason, next, since })
    }
}

impl Situation {
    /// Nothing is known yet.
    pub(crate) fn new(now: u64) -> Self {
        Self(Arc::new(Mutex::new(Known { leaders: BTreeMap::new(), alone_since: now, trouble: None })))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A peer is connected.
    pub(crate) fn connected(&self, peer: Peer, route: Route, place: &str, now: u64) {
        if route == Route::Leader {
            self.known().leaders.insert(peer, Connection { place: place.into(), since: now });
        }
    }

    /// A peer is gone.
    pub(crate) fn disconnected(&self, peer: Peer, now: u64) {
        let mut known = self.known();
        if known.leaders.remove(&peer).is_some() && known.leaders.is_empty() {
            known.alone_since = now;
        }
    }

    /// Takes note of an event.
    pub(crate) fn note(&self, event: &EdgeEvent, now: u64) {
        if let EdgeEvent::KeyActivated { .. } = event {
            self.known().trouble = None;
        }
        let Some(trouble) = Trouble::of(event, now) else { return };
        self.keep(trouble);
    }

    /// Takes note of why an anonymous membership has ended, if it is not followed by another soon.
    pub(crate) fn note_ending(&self, why: &Ending, reason: String, now: u64) {
        let standing = match why {
            Ending::Denied(_) => Standing::Refused,
            Ending::Evicted => Standing::Evicted,
            _ => return,
        };
        let next =
            "it asks again, at the latest with the credential of the next period; see `edge abke status`";
        self.keep(Trouble { standing, reason, next, since: now });
    }

    fn keep(&self, trouble: Trouble) {
        let mut known = self.known();
        // What the leader signed outlasts refusals, which nothing authenticates; and what was told first says
        // since when.
        let stays = known.trouble.as_ref().is_some_and(|known| {
            known.standing == trouble.standing
                || (known.standing == Standing::Evicted && trouble.standing == Standing::Refused)
        });
        if !stays {
            known.trouble = Some(trouble);
        }
    }

    /// Why the drone is no member, if it was told.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.known().trouble.clone()
    }

    /// The connections with leaders, and since when there is none.
    pub(crate) fn connections(&self) -> (Vec<(Peer, Connection)>, u64) {
        let known = self.known();
        let connections = known.leaders.iter().map(|(peer, connection)| (*peer, connection.clone()));
        (connections.collect(), known.alone_since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_word_of_a_kind_says_since_when_and_a_key_ends_it() {
        let situation = Situation::new(0);
        situation.note(&EdgeEvent::Refused(Reason::Busy), 1);
        assert_eq!(situation.trouble(), None, "it may be admitted in a moment");
        situation.note(&EdgeEvent::Refused(Reason::WrongGroup), 2);
        situation.note(&EdgeEvent::Refused(Reason::WrongGroup), 3);
        let trouble = situation.trouble().expect("refused");
        assert_eq!((trouble.standing, trouble.since), (Standing::Refused, 2));
        situation.note(&EdgeEvent::Evicted, 4);
        situation.note(&EdgeEvent::Refused(Reason::WrongGroup), 5);
        situation.note(&EdgeEvent::Refused(Reason::Evicted), 6);
        let trouble = situation.trouble().expect("evicted");
        assert_eq!((trouble.standing, trouble.since), (Standing::Evicted, 4), "refusals are not signed");
        let epoch = quiver_ainq::Epoch { term: 1, counter: 1 };
        situation.note(&EdgeEvent::KeyActivated { epoch, digest: [0; 32], slot: 0 }, 7);
        assert_eq!(situation.trouble(), None);
    }

    #[test]
    fn connections_of_leaders_stand_since_they_came_and_their_absence_since_the_last_one_went() {
        let situation = Situation::new(5);
        assert_eq!(situation.connections(), (Vec::new(), 5));
        situation.connected(Peer(1), Route::Leader, "10.0.0.1:7001", 10);
        situation.connected(Peer(3), Route::Kgc, "10.0.0.9:7000", 11);
        let connection = Connection { place: "10.0.0.1:7001".into(), since: 10 };
        assert_eq!(situation.connections().0, [(Peer(1), connection)]);
        situation.disconnected(Peer(3), 12);
        situation.disconnected(Peer(1), 13);
        assert_eq!(situation.connections(), (Vec::new(), 13));
    }
}
