//! Exports of a run in formats of other programs: a capture of its messages, telemetry logs of its vehicles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::Suite;
use quiver_group::LeaderEvent;

use crate::formats::pcapng::{Capture, Captured};
use crate::mavlink::TelemetryLogs;
use crate::node_id::NodeIndex;
use crate::trace::describe;
use crate::{Action, DatagramClass, DatagramEvent, DatagramEventKind, Hop, NodeEvent, NodeId, Step, World};

/// Names of lost receivers that a comment lists.
const NAMED: usize = 8;

/// Recordings of a run, beside its figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// A trace, for a page that plays it.
    pub trace: bool,
    /// A capture of all messages.
    pub capture: bool,
    /// Telemetry logs of the vehicles.
    pub telemetry: bool,
}

/// Files of a run.
#[derive(Clone, Debug, Default)]
pub struct Exports {
    /// Capture of all messages, in pcapng.
    pub capture: Option<Vec<u8>>,
    /// Telemetry logs by the name of the vehicle.
    pub logs: BTreeMap<String, Vec<u8>>,
    /// Parts that are left out because they were too much, in words.
    pub left_out: Vec<String>,
}

/// A message that goes out over several links at once.
struct Transmission {
    from: NodeId,
    sent: Duration,
    payload: Arc<[u8]>,
    receivers: Vec<NodeId>,
    lost: Vec<NodeId>,
}

/// Observes a world for its exports.
pub(super) struct Exporter {
    nodes: NodeIndex,
    capture: Option<Capture>,
    pending: Option<Transmission>,
    logs: Option<TelemetryLogs>,
}

impl Exporter {
    pub(super) fn new<S: Suite>(world: &World<S>, recording: Recording) -> Option<Self> {
        let nodes = world.index();
        let count = nodes.hubs() + world.edge_count() as usize;
        let names = || (0..count).map(|index| nodes.node(index).to_string());
        (recording.capture || recording.telemetry).then(|| Self {
            nodes,
            capture: recording.capture.then(|| Capture::new(names())),
            pending: None,
            logs: recording.telemetry.then(TelemetryLogs::default),
        })
    }

    fn number(&self, node: NodeId) -> u32 {
        u32::try_from(self.nodes.index(node)).unwrap_or(u32::MAX)
    }

    pub(super) fn on_hop(&mut self, hop: &Hop) {
        if self.capture.is_none() {
            return;
        }
        let same = self.pending.as_ref().is_some_and(|pending| {
            (pending.from, pending.sent) == (hop.from, hop.sent) && pending.payload == hop.payload
        });
        if !same {
            self.flush();
            self.pending = Some(Transmission {
                from: hop.from,
                sent: hop.sent,
                payload: Arc::clone(&hop.payload),
                receivers: Vec::new(),
                lost: Vec::new(),
            });
        }
        if let Some(pending) = &mut self.pending {
            pending.receivers.push(hop.to);
            if hop.arrives.is_none() {
                pending.lost.push(hop.to);
            }
        }
    }

    fn flush(&mut self) {
        let Some(sent) = self.pending.take() else { return };
        let to = match sent.receivers.as_slice() {
            [only] => Some(self.number(*only)),
            _ => None,
        };
        let from = self.number(sent.from);
        let Some(capture) = &mut self.capture else { return };
        if let Some(text) = drop_text(&sent.lost) {
            capture.comment(text);
        }
        capture.message(Captured { at: sent.sent, from, to, payload: &sent.payload });
    }

    pub(super) fn on_step(&mut self, step: &Step) {
        if self.capture.is_none() {
            return;
        }
        for event in step.events() {
            let text = match event {
                NodeEvent::Leader(LeaderEvent::EpochActivated { epoch, members, added, removed, .. }) => {
                    let what = format!("{members} members, {added} added, {removed} removed");
                    Some(format!("epoch {epoch} of {}: {what}", step.node))
                }
                event => describe(event).map(|what| format!("event: {} {what}", step.node)),
            };
            if let Some(text) = text {
                self.comment(text);
            }
        }
    }

    pub(super) fn on_action(&mut self, action: &Action) {
        if self.capture.is_some() {
            self.comment(format!("event: {action:?}"));
        }
    }

    /// Adds a comment on an event, which belongs to the packet after it.
    fn comment(&mut self, text: String) {
        self.flush();
        if let Some(capture) = &mut self.capture {
            capture.comment(text);
        }
    }

    pub(super) fn on_datagram(&mut self, event: &DatagramEvent) {
        match &event.kind {
            DatagramEventKind::Sealed { payloads, .. } => {
                if let Some(logs) = &mut self.logs {
                    logs.note(event.node, event.at, payloads);
                }
            }
            DatagramEventKind::Transmitted { bytes, class, lost } => {
                self.flush();
                let from = self.number(event.node);
                let Some(capture) = &mut self.capture else { return };
                let text = match class {
                    DatagramClass::Payloads => "datagram",
                    DatagramClass::Announcement => "datagram: announces a signing key",
                    DatagramClass::Hostile => "datagram: of the adversary",
                };
                capture.comment(text.into());
                if let Some(text) = drop_text(lost) {
                    capture.comment(text);
                }
                capture.message(Captured { at: event.at, from, to: None, payload: bytes });
            }
            DatagramEventKind::Opened { .. } => {}
        }
    }

    pub(super) fn finish(mut self) -> Exports {
        self.flush();
        let mut left_out = BTreeSet::new();
        let logs = self.logs.unwrap_or_default();
        if logs.is_full() {
            left_out.insert(format!("Telemetry beyond {} bytes is not logged.", TelemetryLogs::MAX));
        }
        if self.capture.as_ref().is_some_and(Capture::is_full) {
            left_out.insert(format!("Packets beyond {} bytes are not captured.", Capture::MAX));
        }
        Exports {
            capture: self.capture.map(Capture::into_bytes),
            logs: logs.into_files(),
            left_out: left_out.into_iter().collect(),
        }
    }
}

/// Comment of a packet that some do not receive; `None` if all do.
fn drop_text(lost: &[NodeId]) -> Option<String> {
    let names: Vec<String> = lost.iter().take(NAMED).map(ToString::to_string).collect();
    let more = lost.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!lost.is_empty()).then(|| format!("drop: does not reach {}{more}", names.join(", ")))
}
