//! The callbacks of leader and edges: they keep records in memory and report every event to the [`EventLog`].

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use quiver_ainq::{Name, Suite};
use quiver_enrolment::EnrolmentTrouble;
use quiver_group::{EdgeEvent, Leader, LeaderEvent, LeaderRecord};
use quiver_machine::{Either, Machine, Snapshot};
use quiver_net::{Host, HostError, PeerId};
use tokio::sync::oneshot;

use super::drone_event::{DroneEvent, EventSink};
use super::event_log::{EventLog, HeldGroupKey, LeaderEpoch};
use super::features::{self, EdgeNode, FeatureSettings, LiveLeaderNode};
use super::node_settings::NodeSettings;
use super::{drone_index, drone_name};
use crate::measure::CpuProbe;

/// A disk in memory. It outlives the node that writes to it.
#[derive(Debug, Default)]
pub(crate) struct Disk<T>(Arc<Mutex<T>>);

impl<T> Clone for Disk<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Disk<T> {
    /// Reads or writes.
    pub(crate) fn with<R>(&self, access: impl FnOnce(&mut T) -> R) -> R {
        // Records are moved in whole: a panic elsewhere leaves none half written.
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The body of the group message of this number.
pub(crate) fn message_body(number: u32) -> Vec<u8> {
    let number = number.to_be_bytes();
    let fill = (0..24_u8).flat_map(|round| number.map(|byte| byte ^ round));
    number.into_iter().chain(fill).collect()
}

/// The number of a message with the body it must have.
pub(super) fn message_number(body: &[u8]) -> Option<u32> {
    let number = u32::from_be_bytes(body.get(..4)?.try_into().ok()?);
    (message_body(number) == body).then_some(number)
}

/// The callback of an edge.
pub(crate) struct DroneHost {
    pub(crate) index: u32,
    pub(crate) reports: Arc<dyn EventSink>,
    pub(crate) disk: Disk<Option<Snapshot>>,
    /// Name under which keys are exported for comparison.
    pub(crate) export: Arc<Name>,
    /// Notified when the drone is enrolled.
    pub(crate) enrolled: Option<oneshot::Sender<()>>,
}

/// Makes the callbacks of one drone's nodes.
pub(crate) struct DroneHostFactory {
    index: u32,
    reports: Arc<dyn EventSink>,
    export: Arc<Name>,
}

impl DroneHostFactory {
    pub(crate) fn new<S: Suite>(index: u32, setting: &NodeSettings<S>) -> Self {
        Self { index, reports: setting.reports.clone(), export: setting.export.clone() }
    }

    /// The callback of an edge.
    pub(crate) fn host(
        &self,
        disk: Disk<Option<Snapshot>>,
        enrolled: Option<oneshot::Sender<()>>,
    ) -> DroneHost {
        let Self { index, reports, export } = self;
        DroneHost { index: *index, reports: reports.clone(), disk, export: export.clone(), enrolled }
    }
}

impl<S: Suite> Host<EdgeNode<S>> for DroneHost {
    fn persist(&mut self, records: &[Either<Snapshot, Infallible>]) -> Result<(), HostError> {
        if let Some(newest) = records.last().and_then(Either::left) {
            self.disk.with(|stored| *stored = Some(newest.clone()));
        }
        Ok(())
    }

    fn event(&mut self, machine: &EdgeNode<S>, event: <EdgeNode<S> as Machine>::Event) {
        let index = self.index;
        let Some(event) = features::edge_event::<S>(&*self.reports, index, event) else { return };
        match event {
            EdgeEvent::Enrolled { .. } => {
                self.reports.record_event(index, DroneEvent::Enrolled);
                if let Some(enrolled) = self.enrolled.take() {
                    // The caller may have given up.
                    let _ = enrolled.send(());
                }
            }
            // Past it already, with the rest of the batch: its key cannot be exported any more.
            EdgeEvent::KeyActivated { epoch, .. } if machine.status().epoch > Some(epoch) => {}
            EdgeEvent::KeyActivated { epoch, .. } => {
                self.reports.record_event(index, DroneEvent::key(epoch, machine.export(&self.export)));
            }
            // Nobody is to blame: on a busy machine KGCs answer late, and the drone asks again.
            EdgeEvent::EnrolmentTrouble(
                EnrolmentTrouble::TooFew { .. } | EnrolmentTrouble::SharesDiffer { .. },
            ) => {}
            EdgeEvent::EnrolmentTrouble(trouble) => self.reports.offence(&drone_name(index), &trouble),
            EdgeEvent::Message { channel, data, .. } => {
                let received = features::message_event(&channel, &data).unwrap_or_else(|| {
                    message_number(&data).map_or(DroneEvent::UnknownMessage, DroneEvent::MessageReceived)
                });
                self.reports.record_event(index, received);
            }
            EdgeEvent::Left => self.reports.record_event(index, DroneEvent::Left),
            EdgeEvent::Evicted => self.reports.record_event(index, DroneEvent::Evicted),
            EdgeEvent::Refused(reason) => {
                tracing::debug!(drone = index, ?reason, "refused");
                self.reports.record_event(index, DroneEvent::Refused);
            }
            EdgeEvent::SendFailed(why) => self.reports.offence(&drone_name(index), &why),
            EdgeEvent::Blamed { offence, .. } => self.reports.offence(&drone_name(index), &offence),
            EdgeEvent::RevocationList { .. } | EdgeEvent::RevocationsStale => {}
            EdgeEvent::KemDiffers { own, leader } => {
                self.reports.offence(&drone_name(index), &format!("kem differs: {own} here, {leader} there"));
            }
            EdgeEvent::MembershipDropped { error } => {
                self.reports.offence(&drone_name(index), &format!("membership dropped: {error}"));
            }
            EdgeEvent::Equivocation { leader, epoch } => {
                self.reports.offence(&drone_name(index), &format!("{leader} contradicted itself at {epoch}"));
            }
        }
    }
}

/// The callback of the leader.
pub(crate) struct LeaderHost<S: Suite> {
    pub(crate) event_log: Arc<EventLog>,
    pub(crate) disk: Disk<Vec<LeaderRecord>>,
    pub(crate) export: Arc<Name>,
    pub(crate) probe: CpuProbe,
    pub(crate) features: FeatureSettings<S>,
}

impl<S: Suite> LeaderHost<S> {
    fn activated(&self, machine: &Leader<S>, epoch: quiver_ainq::Epoch) {
        let key = machine.export(&self.export);
        let (mut members, mut strangers) = (Vec::new(), Vec::new());
        for (_, name) in machine.members() {
            match drone_index(name.as_str()) {
                Some(index) => members.push(index),
                None => strangers.push(name.to_string()),
            }
        }
        members.sort_unstable();
        let anonymous = machine.anonymous_members().map(|(_, member)| member.pseudonym.0).collect();
        self.event_log.leader(|log, at| {
            log.epochs.push(LeaderEpoch {
                held: HeldGroupKey { epoch, key, at },
                members,
                strangers,
                anonymous,
            });
        });
    }
}

impl<S: Suite> Host<LiveLeaderNode<S>> for LeaderHost<S> {
    fn persist(&mut self, records: &[Either<LeaderRecord, Infallible>]) -> Result<(), HostError> {
        self.disk.with(|stored| stored.extend(records.iter().filter_map(Either::left).cloned()));
        Ok(())
    }

    fn event(&mut self, machine: &LiveLeaderNode<S>, event: <LiveLeaderNode<S> as Machine>::Event) {
        let Some(event) = features::leader_event::<S>(event) else { return };
        match event {
            LeaderEvent::Enrolled { .. } => self.event_log.leader(|log, _| log.enrolments += 1),
            LeaderEvent::EpochActivated { epoch, .. } => self.activated(machine, epoch),
            LeaderEvent::Message { data, .. } => {
                self.event_log.leader(|log, _| match message_number(&data) {
                    Some(number) => *log.received.entry(number).or_default() += 1,
                    None => log.unknown_messages += 1,
                });
            }
            // As for drones, above.
            LeaderEvent::EnrolmentTrouble(
                EnrolmentTrouble::TooFew { .. } | EnrolmentTrouble::SharesDiffer { .. },
            ) => {}
            LeaderEvent::EnrolmentTrouble(trouble) => self.event_log.offence("leader", &trouble),
            LeaderEvent::SendFailed(why) => self.event_log.offence("leader", &why),
            LeaderEvent::Blamed { offence, .. } => self.event_log.offence("leader", &offence),
            LeaderEvent::RekeyFailed(error) => {
                self.event_log.offence("leader", &format!("re-key failed: {error}"));
            }
            other => tracing::debug!(?other, "leader"),
        }
    }

    fn frame(&mut self, peer: Option<&PeerId>, request: &[u8], message: &[u8]) {
        self.features.note_frame(peer, request, message);
    }

    fn before_inputs(&mut self) {
        self.probe.start();
    }

    fn after_inputs(&mut self) {
        self.probe.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counts_only_with_the_body_it_must_have() {
        let body = message_body(7);
        assert_eq!(body.len(), 100);
        assert_eq!(message_number(&body), Some(7));
        for at in [0, 3, 4, 99] {
            let mut changed = body.clone();
            changed[at] ^= 1;
            assert_eq!(message_number(&changed), None, "byte {at}");
        }
        assert_eq!(message_number(&body[..99]), None);
        assert_eq!(message_number(&[]), None);
    }
}
