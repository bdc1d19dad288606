//! Hosts the machine: persists its state, prints and logs its events.

use std::convert::Infallible;

use quiver_admission::{AnonymousEvent, AnyEdge, Ending};
use quiver_ainq::{Name, Suite};
use quiver_envelope::EnvelopeEvent;
use quiver_group::EdgeEvent;
use quiver_machine::{Either, Reason, Snapshot};
use quiver_net::{Host, HostError};
use quiver_service::clock;
use quiver_service::drone::Store;
use quiver_service::drone::output::Output;
use rand::rngs::OsRng;
use serde_json::json;
use tokio::sync::{broadcast, mpsc};

use super::EdgeNode;
use crate::metrics::Metrics;

/// Attachment: what an anonymous edge persists. Named so since the first version.
const ANONYMOUS: &str = "unnamed";

/// The owner of the state that the host stores.
pub(super) enum Keeping {
    /// The drone's own.
    Own,
    /// State of an anonymous edge; with the channel that receives its ending.
    Anonymous(mpsc::Sender<Ending>),
}

/// The host of an edge.
pub(super) struct EdgeHost {
    pub(super) store: Store,
    pub(super) keeping: Keeping,
    pub(super) output: Output,
    /// The key came and holds.
    pub(super) enrolled: mpsc::Sender<()>,
    /// The KGC refuses, and no retry will change that.
    pub(super) refused: mpsc::Sender<Reason>,
    /// Why something was not sent.
    pub(super) failures: broadcast::Sender<&'static str>,
    pub(super) metrics: Metrics,
}

impl EdgeHost {
    /// The ledger that an anonymous edge persisted: how often which leader was answered.
    pub(super) fn ledger(store: &Store) -> Option<Snapshot> {
        store.attachment(ANONYMOUS).map(Snapshot::new)
    }
}

impl<S: Suite> Host<EdgeNode<S>> for EdgeHost {
    fn persist(&mut self, records: &[Either<Snapshot, Infallible>]) -> Result<(), HostError> {
        // Each is the whole state: only the newest counts.
        let Some(newest) = records.last().and_then(Either::left) else {
            return Ok(());
        };
        let persist = || match &self.keeping {
            Keeping::Own => self.store.replace(&[newest.as_bytes()]),
            Keeping::Anonymous(_) => self.store.attach(ANONYMOUS, newest.as_bytes()),
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
                tracing::info!(pseudonym, slot, until = ends, "admitted anonymously");
                return self.output.event(
                    &json!({"event": "admitted", "pseudonym": pseudonym, "slot": slot, "until": until}),
                );
            }
            Either::Left(AnonymousEvent::Ended(why)) => return self.ended(why),
            Either::Right(EnvelopeEvent::NotSent(reason)) => EdgeEvent::SendFailed(reason),
            Either::Right(event) => {
                let group = machine.status().group;
                return self.output.envelope(group.as_ref().map_or("-", Name::as_str), &event);
            }
        };
        self.metrics.count(&event, machine.status().name.is_some());
        match event {
            EdgeEvent::Enrolled { name } => self.enrolled(&name),
            EdgeEvent::KeyActivated { epoch, digest, slot } => {
                let (term, counter) = (epoch.term, epoch.counter);
                tracing::info!(term, counter, slot, "key activated");
                let digest = hex::encode(&digest[..8]);
                self.output.event(
                    &json!({"event": "key", "term": term, "counter": counter, "slot": slot, "digest": digest}),
                );
            }
            EdgeEvent::Message { channel, data, source } => {
                let group = machine.status().group;
                self.output.message(group.as_ref().map_or("-", Name::as_str), &channel, &data, &source);
            }
            EdgeEvent::SendFailed(reason) => {
                tracing::warn!(reason, "message not sent");
                // There may be no waiting caller.
                let _ = self.failures.send(reason);
            }
            EdgeEvent::Left => {
                tracing::info!("left the group");
                self.output.event(&json!({"event": "left"}));
            }
            EdgeEvent::Evicted => {
                tracing::warn!("evicted from the group");
                self.output.event(&json!({"event": "evicted"}));
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
                self.output.event(&json!({"event": "leader refused", "leader": leader.as_str()}));
            }
            EdgeEvent::Blamed { peer, offence } => tracing::warn!(peer = peer.0, %offence, "peer blamed"),
        }
    }
}

impl EdgeHost {
    fn enrolled(&self, name: &Name) {
        tracing::info!(%name, "enrolled");
        if self.output.json {
            self.output.event(&json!({"event": "enrolled", "name": name.as_str()}));
        } else {
            self.output.line(&format!("enrolled as {name}"));
        }
        // Only an enrolment waits for it.
        let _ = self.enrolled.try_send(());
    }

    fn ended(&self, why: Ending) {
        tracing::info!(?why, "this anonymous membership is over");
        self.output.event(&json!({"event": "ended", "why": describe(&why)}));
        if let Keeping::Anonymous(ended) = &self.keeping {
            // It is over once.
            let _ = ended.try_send(why);
        }
    }

    fn refused<S: Suite>(&self, machine: &AnyEdge<S>, reason: Reason) {
        let by = if machine.status().name.is_some() { "leader" } else { "kgc" };
        tracing::warn!(by, %reason, "refused");
        self.output.event(&json!({"event": "refused", "by": by, "reason": reason.to_string()}));
        if by == "kgc" && !reason.is_transient() {
            // One refusal is enough to end.
            let _ = self.refused.try_send(reason);
        }
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
