//! The machine's host: its state goes into the state file, its events to standard output and into the log.

use std::convert::Infallible;

use quiver_ainq::{Name, Suite};
use quiver_net::{Host, HostError};
use quiver_role::admission::{AnonymousEvent, AnyEdge, Ending};
use quiver_role::{EdgeEvent, Either, EnvelopeEvent, Reason, Snapshot, Source};
use quiver_service::clock;
use quiver_service::drone::envelope::told;
use quiver_service::terminal::{self, Message};
use rand::rngs::OsRng;
use serde_json::json;
use tokio::sync::{broadcast, mpsc};

use super::EdgeNode;
use crate::control::SendFailed;
use crate::metrics::Metrics;
use crate::store::Store;

/// How an enrolment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Enrolment {
    /// This drone has its key.
    Done,
    /// A signal came first.
    Interrupted,
}

/// What an enrolment waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Milestone {
    /// The key came and holds.
    Enrolled,
    /// The KGC refuses, and no retry will change that.
    Refused(Reason),
}

/// Whose state it keeps.
pub(super) enum Keeping {
    /// The drone's own.
    Own,
    /// That of an edge without a name; with whom to tell when it is over.
    Anonymous(mpsc::Sender<Ending>),
}

/// The host.
pub(super) struct EdgeHost {
    pub(super) store: Store,
    pub(super) keeping: Keeping,
    pub(super) json: bool,
    pub(super) milestones: mpsc::Sender<Milestone>,
    pub(super) failures: broadcast::Sender<SendFailed>,
    pub(super) metrics: Metrics,
}

impl<S: Suite> Host<EdgeNode<S>> for EdgeHost {
    fn persist(&mut self, records: &[Either<Snapshot, Infallible>]) -> Result<(), HostError> {
        // Each is the whole state: only the newest counts.
        let Some(newest) = records.last().and_then(Either::left) else {
            return Ok(());
        };
        let persist = || match &self.keeping {
            Keeping::Own => self.store.persist(newest),
            Keeping::Anonymous(_) => self.store.persist_anonymous(newest),
        };
        tokio::task::block_in_place(persist).map_err(Into::into)
    }

    fn vouch(&mut self, machine: &EdgeNode<S>, statement: &[u8]) -> Vec<u8> {
        machine.vouch(statement, &mut OsRng).unwrap_or_default()
    }

    fn event(&mut self, machine: &EdgeNode<S>, event: Either<AnonymousEvent, EnvelopeEvent>) {
        let event = match event {
            Either::Left(AnonymousEvent::Edge(event)) => event,
            Either::Left(AnonymousEvent::Admitted { pseudonym, slot, until }) => {
                let (pseudonym, ends) = (pseudonym.to_string(), clock::format(until));
                tracing::info!(pseudonym, slot, until = ends, "admitted without a name");
                return self.tell(
                    &json!({"event": "admitted", "pseudonym": pseudonym, "slot": slot, "until": until}),
                );
            }
            Either::Left(AnonymousEvent::Ended(why)) => return self.ended(why),
            Either::Right(EnvelopeEvent::NotSent(reason)) => EdgeEvent::SendFailed(reason),
            Either::Right(event) => {
                let group = machine.status().group;
                if let Some(line) = told(group.as_ref().map_or("-", Name::as_str), &event, self.json) {
                    print(&line);
                }
                return;
            }
        };
        self.metrics.count(&event, machine.status().name.is_some());
        match event {
            EdgeEvent::Enrolled { name } => self.enrolled(&name),
            EdgeEvent::KeyActivated { epoch, digest, slot } => {
                let (term, counter) = (epoch.term, epoch.counter);
                tracing::info!(term, counter, slot, "key activated");
                let digest = hex::encode(&digest[..8]);
                self.tell(
                    &json!({"event": "key", "term": term, "counter": counter, "slot": slot, "digest": digest}),
                );
            }
            EdgeEvent::Message { channel, data, source } => {
                let group = machine.status().group;
                self.show(group.as_ref().map_or("-", Name::as_str), &channel, &data, &source);
            }
            EdgeEvent::SendFailed(reason) => {
                tracing::warn!(reason, "message not sent");
                // Nobody may be waiting.
                let _ = self.failures.send(reason);
            }
            EdgeEvent::Left => {
                tracing::info!("left the group");
                self.tell(&json!({"event": "left"}));
            }
            EdgeEvent::Evicted => {
                tracing::warn!("evicted from the group");
                self.tell(&json!({"event": "evicted"}));
            }
            EdgeEvent::Refused(reason) => self.refused(machine, reason),
            EdgeEvent::EnrolmentTrouble(trouble) => tracing::warn!(%trouble, "enrolment"),
            EdgeEvent::RevocationsStale => {
                tracing::warn!(
                    "not joining under a revocation list that is past its next update; asked the leader for a newer one"
                );
            }
            EdgeEvent::RevocationList { number } => tracing::info!(number, "revocation list in force"),
            EdgeEvent::MembershipDropped { error } => {
                tracing::warn!(%error, "the stored membership cannot be restored and is dropped: the drone keeps its key and joins its group anew");
            }
            EdgeEvent::Equivocation { leader, epoch } => {
                tracing::error!(%leader, %epoch, "a leader signed two headers for one epoch and is refused for good");
                self.tell(&json!({"event": "leader refused", "leader": leader.as_str()}));
            }
            EdgeEvent::Blamed { peer, offence } => tracing::warn!(peer = peer.0, %offence, "peer blamed"),
        }
    }
}

impl EdgeHost {
    fn enrolled(&self, name: &Name) {
        tracing::info!(%name, "enrolled");
        if self.json {
            self.tell(&json!({"event": "enrolled", "name": name.as_str()}));
        } else {
            print(&format!("enrolled as {name}"));
        }
        // Only an enrolment waits for it.
        let _ = self.milestones.try_send(Milestone::Enrolled);
    }

    fn ended(&self, why: Ending) {
        tracing::info!(?why, "this membership without a name is over");
        self.tell(&json!({"event": "ended", "why": describe(&why)}));
        if let Keeping::Anonymous(ended) = &self.keeping {
            // It is over once.
            let _ = ended.try_send(why);
        }
    }

    fn refused<S: Suite>(&self, machine: &AnyEdge<S>, reason: Reason) {
        let by = if machine.status().name.is_some() { "leader" } else { "kgc" };
        tracing::warn!(by, %reason, "refused");
        self.tell(&json!({"event": "refused", "by": by, "reason": reason.to_string()}));
        if by == "kgc" && !reason.is_transient() {
            // One refusal is enough to end.
            let _ = self.milestones.try_send(Milestone::Refused(reason));
        }
    }

    /// An event for scripts. People find it in the log.
    fn tell(&self, event: &serde_json::Value) {
        if self.json {
            print(&event.to_string());
        }
    }

    fn show(&self, group: &str, channel: &Name, data: &[u8], source: &Source) {
        let (from, signed) = match source {
            Source::Signed { name, .. } => (name.to_string(), true),
            Source::Unauthenticated { slot } => (format!("slot {slot}"), false),
        };
        print(&Message { group, channel: channel.as_str(), from: &from, signed, data }.line(self.json));
    }
}

/// For scripts.
fn describe(why: &Ending) -> String {
    match why {
        Ending::Denied(error) => format!("not admitted: {error}"),
        Ending::PeriodOver => "period over".into(),
        Ending::Dropped => "forgotten by the leader".into(),
        Ending::Evicted => "evicted".into(),
        Ending::Left => "left".into(),
        _ => "over".into(),
    }
}

fn print(line: &str) {
    if let Err(error) = terminal::line(line) {
        tracing::warn!(%error, "standard output");
    }
}
