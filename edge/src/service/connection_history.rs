//! Remembers what a running drone learned: which leaders are connected since when, and why it is not a member.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quiver_group::EdgeEvent;
use quiver_machine::{Peer, RefusalReason, Route};
use quiver_service::drone::feature::Exclusion;
use serde::{Deserialize, Serialize};

/// Leaders that are connected, and the reason why the drone is no member, if it is none. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionHistory(Arc<Mutex<ConnectivityState>>);

#[derive(Debug)]
struct ConnectivityState {
    leaders: BTreeMap<Peer, LeaderConnection>,
    /// Time since which no leader is connected, if none is.
    alone_since: u64,
    problem: Option<MembershipProblem>,
}

/// A connection with a leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaderConnection {
    /// Address of the leader, for people.
    pub(crate) place: String,
    /// Time since which it stands, seconds since 1970.
    pub(crate) since: u64,
}

/// Reason why the drone is no member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MembershipProblem {
    /// Standing of the drone.
    pub(crate) standing: MembershipState,
    /// The reason, for people.
    pub(crate) reason: String,
    /// Advice about it.
    pub(crate) next: &'static str,
    /// Time since which it is so, seconds since 1970.
    pub(crate) since: u64,
}

/// Standing of a drone in its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MembershipState {
    /// The drone asks to be admitted.
    #[default]
    Joining,
    /// The drone is a member, in step with its group.
    Member,
    /// The drone is a member, and does not know the current key.
    Behind,
    /// The drone has left, as it was told.
    Left,
    /// The drone was evicted.
    Evicted,
    /// The drone lost its slot to another process with a copy of its state.
    Copied,
    /// The drone is revoked.
    Revoked,
    /// The leader refuses it.
    Refused,
}

impl fmt::Display for MembershipState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Joining => "joining",
            Self::Member => "member, in sync",
            Self::Behind => "behind: a member without the current key",
            Self::Left => "left",
            Self::Evicted => "evicted",
            Self::Copied => "removed",
            Self::Revoked => "revoked",
            Self::Refused => "refused",
        })
    }
}

/// Reason why a drone is no member whose slot a header gives up. It has the leader's signature, but says
/// neither why nor whether the drone may come back.
const REMOVED: &str = "a leader of the group removed it: it was evicted, or another process with a copy of its state \
    took its slot";
/// Advice for such a drone.
const REMOVED_NEXT: &str = "it asks once more by itself; end the copy, if there is one";
/// Advice for the time while another process has this drone's identity.
pub(crate) const END_THE_COPY: &str = "end the copy, and delete its data directory: this drone is then a member again by itself, under the same key";

/// Advice for a drone that is out for good.
pub(crate) const ANEW: &str =
    "it is not admitted again under its key: enrol it anew, in another data directory, with a fresh token";

impl MembershipProblem {
    /// Derives from an event why the drone is no member. `asks_again`: whether it goes on to ask for
    /// admission.
    fn of(event: &EdgeEvent, asks_again: bool, since: u64) -> Option<Self> {
        let (standing, reason, next) = match event {
            EdgeEvent::Evicted if asks_again => (MembershipState::Evicted, REMOVED.into(), REMOVED_NEXT),
            EdgeEvent::Evicted => (MembershipState::Evicted, "a leader of the group signed it".into(), ANEW),
            EdgeEvent::Left => {
                (MembershipState::Left, "as it was told".into(), "start `edge run` again to join again")
            }
            EdgeEvent::Refused(RefusalReason::Evicted) => {
                (MembershipState::Evicted, "the leader says so".into(), ANEW)
            }
            EdgeEvent::Refused(RefusalReason::Revoked) => {
                (MembershipState::Revoked, "the leader says so".into(), ANEW)
            }
            EdgeEvent::Refused(reason) if !reason.is_transient() => {
                let next = match reason {
                    RefusalReason::Expired => "enrol it anew, in another data directory, with a fresh token",
                    RefusalReason::WrongGroup => {
                        "give the group's own leader (--leader), or that leader's group (--group)"
                    }
                    RefusalReason::NotAuthorised => {
                        "enrol it with a token for this group, or give its serial to `leader serve --allow`"
                    }
                    RefusalReason::AdmissionOnly => {
                        "this group admits by policy only: use `edge run --anonymous`"
                    }
                    _ => "see the leader's log",
                };
                (MembershipState::Refused, format!("the leader says: {reason}"), next)
            }
            _ => return None,
        };
        Some(Self { standing, reason, next, since })
    }

    /// Returns true while it is not known if the drone was evicted or replaced by a copy.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.next == REMOVED_NEXT
    }
}

impl ConnectionHistory {
    /// Makes the state in which nothing is known yet.
    pub(crate) fn new(now: u64) -> Self {
        Self(Arc::new(Mutex::new(ConnectivityState {
            leaders: BTreeMap::new(),
            alone_since: now,
            problem: None,
        })))
    }

    fn known(&self) -> MutexGuard<'_, ConnectivityState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A peer is connected.
    pub(crate) fn connected(&self, peer: Peer, route: Route, place: &str, now: u64) {
        if route == Route::Leader {
            self.known().leaders.insert(peer, LeaderConnection { place: place.into(), since: now });
        }
    }

    /// A peer is gone.
    pub(crate) fn disconnected(&self, peer: Peer, now: u64) {
        let mut known = self.known();
        if known.leaders.remove(&peer).is_some() && known.leaders.is_empty() {
            known.alone_since = now;
        }
    }

    /// All peers are gone: their node has stopped.
    pub(crate) fn all_disconnected(&self, now: u64) {
        let mut known = self.known();
        if !std::mem::take(&mut known.leaders).is_empty() {
            known.alone_since = now;
        }
    }

    /// Takes note of an event. `asks_again`: whether the drone, if it is not a member any more, goes on to ask for
    /// admission.
    pub(crate) fn note(&self, event: &EdgeEvent, asks_again: bool, now: u64) {
        if let EdgeEvent::KeyActivated { .. } = event {
            self.known().problem = None;
        }
        let Some(problem) = MembershipProblem::of(event, asks_again, now) else { return };
        self.keep(problem);
    }

    /// Takes note of why the drone is no member after a membership that a feature made.
    pub(crate) fn note_exclusion(&self, exclusion: Exclusion, now: u64) {
        let standing = if exclusion.evicted { MembershipState::Evicted } else { MembershipState::Refused };
        self.keep(MembershipProblem { standing, reason: exclusion.reason, next: exclusion.next, since: now });
    }

    fn keep(&self, problem: MembershipProblem) {
        let mut known = self.known();
        // The leader's signed statements outlast refusals, which nothing authenticates; and what was told
        // first says since when.
        let stays = known.problem.as_ref().is_some_and(|known| {
            known.standing == problem.standing
                || (known.standing == MembershipState::Evicted
                    && problem.standing == MembershipState::Refused)
        });
        match &mut known.problem {
            // Now it is known.
            Some(doubtful) if doubtful.is_in_doubt() && problem.standing == MembershipState::Evicted => {
                *doubtful = MembershipProblem { since: doubtful.since, ..problem };
            }
            _ if stays => {}
            _ => known.problem = Some(problem),
        }
    }

    /// Reason why the drone is no member, if it was told.
    pub(crate) fn problem(&self) -> Option<MembershipProblem> {
        self.known().problem.clone()
    }

    /// The connections with leaders, and since when there is none.
    pub(crate) fn connections(&self) -> (Vec<(Peer, LeaderConnection)>, u64) {
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
        let history = ConnectionHistory::new(0);
        history.note(&EdgeEvent::Refused(RefusalReason::Busy), true, 1);
        assert_eq!(history.problem(), None, "it may be admitted in a moment");
        history.note(&EdgeEvent::Refused(RefusalReason::WrongGroup), true, 2);
        history.note(&EdgeEvent::Refused(RefusalReason::WrongGroup), true, 3);
        let problem = history.problem().expect("refused");
        assert_eq!((problem.standing, problem.since), (MembershipState::Refused, 2));
        history.note(&EdgeEvent::Evicted, false, 4);
        history.note(&EdgeEvent::Refused(RefusalReason::WrongGroup), true, 5);
        history.note(&EdgeEvent::Refused(RefusalReason::Evicted), true, 6);
        let problem = history.problem().expect("evicted");
        assert_eq!(
            (problem.standing, problem.since),
            (MembershipState::Evicted, 4),
            "refusals are not signed"
        );
        let epoch = quiver_ainq::Epoch { term: 1, counter: 1 };
        history.note(&EdgeEvent::KeyActivated { epoch, digest: [0; 32], slot: 0 }, true, 7);
        assert_eq!(history.problem(), None);
    }

    #[test]
    fn removal_is_in_doubt_until_the_leader_says_that_it_was_an_eviction() {
        let history = ConnectionHistory::new(0);
        history.note(&EdgeEvent::Evicted, true, 1);
        let problem = history.problem().expect("removed");
        assert!(problem.is_in_doubt() && problem.reason.contains("copy of its state"), "{problem:?}");
        assert_ne!(problem.next, ANEW);
        history.note(&EdgeEvent::Refused(RefusalReason::WrongGroup), true, 2);
        assert!(history.problem().expect("removed").is_in_doubt(), "refusals are not signed");
        history.note(&EdgeEvent::Refused(RefusalReason::Evicted), true, 3);
        let problem = history.problem().expect("evicted");
        assert_eq!((problem.standing, problem.next, problem.since), (MembershipState::Evicted, ANEW, 1));
    }

    #[test]
    fn stopped_node_leaves_no_connections_behind() {
        let history = ConnectionHistory::new(5);
        history.connected(Peer(1), Route::Leader, "10.0.0.1:7001", 10);
        history.all_disconnected(11);
        assert_eq!(history.connections(), (Vec::new(), 11));
        history.all_disconnected(12);
        assert_eq!(history.connections(), (Vec::new(), 11));
    }

    #[test]
    fn connections_of_leaders_stand_since_they_came_and_their_absence_since_the_last_one_went() {
        let history = ConnectionHistory::new(5);
        assert_eq!(history.connections(), (Vec::new(), 5));
        history.connected(Peer(1), Route::Leader, "10.0.0.1:7001", 10);
        history.connected(Peer(3), Route::Kgc, "10.0.0.9:7000", 11);
        let connection = LeaderConnection { place: "10.0.0.1:7001".into(), since: 10 };
        assert_eq!(history.connections().0, [(Peer(1), connection)]);
        history.disconnected(Peer(3), 12);
        history.disconnected(Peer(1), 13);
        assert_eq!(history.connections(), (Vec::new(), 13));
    }
}
