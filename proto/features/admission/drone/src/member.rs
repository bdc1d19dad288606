//! The machine of one anonymous membership, and its events as a service reports them.

use quiver_admission::{AdmissionError, AnonymousEdge, AnonymousEvent, Ending};
use quiver_ainq::{Name, Ristretto255, UnixTime};
use quiver_crypto::Secret;
use quiver_group::EdgeCommand;
use quiver_group::edge::EdgeStatus;
use quiver_machine::{Input, Machine, Now, Output, RefusalReason, Snapshot, forward_primary};
use quiver_service::clock;
use quiver_service::drone::feature::{Exclusion, FeatureEdge, GroupEdgeEvent, MembershipEvent, PartEvent};
use rand_core::CryptoRngCore;
use serde_json::json;

/// An anonymous edge, as the service of an edge runs it.
#[derive(Debug)]
pub(crate) struct AnonymousMember(pub(crate) AnonymousEdge<Ristretto255>);

/// An event of an anonymous edge that no other edge reports.
#[derive(Debug)]
pub(crate) struct ReportedMembership(pub(crate) AnonymousEvent);

impl FeatureEdge for AnonymousMember {
    fn status(&self) -> EdgeStatus {
        self.0.status()
    }

    fn key_issued_at(&self) -> Option<UnixTime> {
        self.0.key_issued_at()
    }

    fn leader_name(&self) -> Option<Name> {
        self.0.leader_name()
    }

    fn export(&self, name: &Name) -> Option<Secret<32>> {
        self.0.export(name)
    }
}

impl Machine for AnonymousMember {
    type Command = EdgeCommand;
    type Event = GroupEdgeEvent;
    type Record = Snapshot;

    fn handle_input(&mut self, now: Now, input: Input<'_, EdgeCommand>, rng: &mut dyn CryptoRngCore) {
        self.0.handle_input(now, input, rng);
    }

    fn poll_output(&mut self) -> Output<GroupEdgeEvent, Snapshot> {
        let event = |event| match event {
            AnonymousEvent::Edge(event) => GroupEdgeEvent::Edge(event),
            own => GroupEdgeEvent::Membership(Box::new(ReportedMembership(own))),
        };
        self.0.poll_output().map(event, |record| record)
    }
}

forward_primary! {
    impl Primary<Suite = Ristretto255> for AnonymousMember {
        Self(edge) => edge,
    }
}

impl PartEvent for ReportedMembership {
    fn failure(&self) -> Option<&'static str> {
        None
    }

    fn line(&self, _: &str, as_json: bool) -> Option<String> {
        // People find it in the log.
        let line = match &self.0 {
            AnonymousEvent::Edge(_) => return None,
            AnonymousEvent::Admitted { pseudonym, slot, until } => {
                let (pseudonym, until) = (pseudonym.to_string(), clock::format(*until));
                json!({"event": "admitted", "pseudonym": pseudonym, "slot": slot, "until": until})
            }
            AnonymousEvent::Ended(why) => json!({"event": "ended", "why": describe(why)}),
        };
        as_json.then(|| line.to_string())
    }
}

impl MembershipEvent for ReportedMembership {
    fn log(&self) {
        match &self.0 {
            AnonymousEvent::Edge(_) => {}
            AnonymousEvent::Admitted { pseudonym, slot, until } => {
                let (pseudonym, ends) = (pseudonym.to_string(), clock::format(*until));
                tracing::info!(pseudonym, slot, until = ends, "admitted anonymously");
            }
            AnonymousEvent::Ended(why) => {
                tracing::info!("this anonymous membership is over: {}", describe(why));
            }
        }
    }

    fn is_end(&self) -> bool {
        matches!(self.0, AnonymousEvent::Ended(_))
    }

    fn exclusion(&self) -> Option<Exclusion> {
        let AnonymousEvent::Ended(why) = &self.0 else { return None };
        let evicted = match why {
            Ending::Denied(_) => false,
            Ending::Evicted => true,
            _ => return None,
        };
        let next = match why {
            Ending::Denied(AdmissionError::Refused(RefusalReason::NotAuthorised)) => {
                "the leader admits nobody anonymously (start `edge run` without --anonymous, or the leader with \
                 --admission), or what is certified of this drone does not satisfy its policy; see `edge abke status`"
            }
            _ => {
                "it asks again, at the latest with the credential of the next period; see `edge abke status`"
            }
        };
        Some(Exclusion { evicted, reason: describe(why), next })
    }
}

/// Explains why an anonymous membership is over.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(why: Ending) -> Exclusion {
        ReportedMembership(AnonymousEvent::Ended(why)).exclusion().expect("refused")
    }

    #[test]
    fn drone_that_is_refused_because_nobody_is_admitted_anonymously_is_told_to_join_by_name() {
        let denied = |reason| Ending::Denied(AdmissionError::Refused(reason));
        assert!(ended(denied(RefusalReason::NotAuthorised)).next.contains("without --anonymous"));
        assert!(ended(denied(RefusalReason::Expired)).next.contains("next period"));
    }
}
