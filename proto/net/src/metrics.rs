//! Metrics of a node.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// Reason for disconnecting a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Misconduct {
    /// `forgery` or `garbage`.
    pub kind: &'static str,
}

/// Counters of a node. Bytes are bytes of messages, without the overhead of transports.
///
/// Cloning gives another view of the same counters.
#[derive(Clone, Debug, Default)]
pub struct NetMetrics {
    /// Bytes of messages handed to libp2p: requests, responses, and group messages once for every recipient.
    pub bytes_sent: Counter,
    /// Bytes of messages received.
    pub bytes_received: Counter,
    /// Messages handed to libp2p, group messages once for every recipient.
    pub messages_sent: Counter,
    /// Messages received.
    pub messages_received: Counter,
    /// Group messages of the machine that were published.
    pub group_published: Counter,
    /// Group messages of others that were relayed.
    pub group_relayed: Counter,
    /// Group messages not relayed because their source exceeded its rate.
    pub group_throttled: Counter,
    /// Group messages neither relayed nor taken because the machine does not know their source.
    pub group_ignored: Counter,
    /// Strangers disconnected to make room for the next of the group's messages.
    pub group_listeners_dropped: Counter,
    /// Peers disconnected and refused for a while, by what they did.
    pub penalties: Family<Misconduct, Counter>,
    /// Connection attempts to configured addresses.
    pub dials: Counter,
    /// Attempts that failed.
    pub dial_failures: Counter,
    /// Connections opened, either way.
    pub connections_opened: Counter,
    /// Connections closed, either way.
    pub connections_closed: Counter,
    /// Connections of strangers refused because of the penalties of peers from the same address.
    pub connections_refused: Counter,
    /// Connections closed to make room for others, or because a stranger's time was over.
    pub connections_displaced: Counter,
    /// Connections closed because nobody answered there after their peer had opened another one.
    pub connections_superseded: Counter,
    /// Messages to a peer dropped because its queue was full or it was gone.
    pub dropped: Counter,
    /// Frames refused as too long or malformed.
    pub refused: Counter,
    /// Peers blocked by the machine.
    pub blocked: Counter,
    /// Failed attempts to make records durable.
    pub persist_failures: Counter,
    /// Jumps between the clocks, each treated as a start of the machine.
    pub clock_jumps: Counter,
    /// Records that could not be made durable yet. Until they are, nothing is sent and no input is taken.
    pub unstored: Gauge,
    /// Drones and KGCs of which two processes ask this node in turns whether they are the only one.
    pub duplicated_peers: Gauge,
    /// Peers that say so of this node.
    pub duplicate_identity_reports: Gauge,
}

impl NetMetrics {
    /// Registers everything, under `net`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("net");
        // The registry appends the unit, so that these names must not: `net_sent_bytes_total`.
        let bytes = [
            ("sent", "Bytes of messages sent, without what transports add", &self.bytes_sent),
            ("received", "Bytes of messages received, without what transports add", &self.bytes_received),
        ];
        for (name, help, counter) in bytes {
            registry.register_with_unit(name, help, Unit::Bytes, counter.clone());
        }
        let counters = [
            ("sent_messages", "Messages sent", &self.messages_sent),
            ("received_messages", "Messages received", &self.messages_received),
            ("group_messages_published", "Group messages published", &self.group_published),
            ("group_messages_relayed", "Group messages relayed", &self.group_relayed),
            (
                "group_messages_throttled",
                "Group messages not relayed for their source's rate",
                &self.group_throttled,
            ),
            (
                "group_messages_ignored",
                "Group messages neither relayed nor taken: their source has not shown who it is",
                &self.group_ignored,
            ),
            (
                "group_listeners_dropped",
                "Peers that had not proven who they are, disconnected to make room for the next of the group's messages",
                &self.group_listeners_dropped,
            ),
            ("dials", "Connection attempts to configured addresses", &self.dials),
            ("dial_failures", "Failed connection attempts to configured addresses", &self.dial_failures),
            ("connections_opened", "Connections opened, either way", &self.connections_opened),
            ("connections_closed", "Connections closed, either way", &self.connections_closed),
            (
                "connections_refused",
                "Connections of strangers refused because many peers from their address were penalised",
                &self.connections_refused,
            ),
            (
                "connections_displaced",
                "Connections of peers that had not proven who they are, closed for others or after their time",
                &self.connections_displaced,
            ),
            (
                "connections_superseded",
                "Connections on which nobody answered after their peer had come back over another one, closed",
                &self.connections_superseded,
            ),
            ("dropped_messages", "Messages dropped: queue full or peer gone", &self.dropped),
            ("refused_frames", "Frames refused as too long or malformed", &self.refused),
            ("blocked_peers", "Peers blocked", &self.blocked),
            ("persist_failures", "Failed attempts to make records durable", &self.persist_failures),
            ("clock_jumps", "Jumps between the clocks, each treated as a start", &self.clock_jumps),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        registry.register(
            "penalties",
            "Peers disconnected and refused for a while, by what they did",
            self.penalties.clone(),
        );
        registry.register(
            "unstored_records",
            "Records that must survive a crash and cannot be stored at present; nothing is sent meanwhile",
            self.unstored.clone(),
        );
        // §16.2: gauges, because operators have to see that a copy has ended.
        let duplicates = [
            ("duplicated_peers", "Drones and KGCs of which two processes run", &self.duplicated_peers),
            (
                "duplicate_identity_reports",
                "Peers that say that two processes run of this one",
                &self.duplicate_identity_reports,
            ),
        ];
        for (name, help, gauge) in duplicates {
            registry.register(name, help, gauge.clone());
        }
    }

    /// Reason why the node stands still, if it does: for people.
    pub fn trouble(&self) -> Option<String> {
        let records = self.unstored.get();
        (records > 0).then(|| {
            let what = if records == 1 { "a record".into() } else { format!("{records} records") };
            format!(
                "{what} that must survive a crash cannot be stored, and nothing is sent or received: make room on the disk \
                 or repair the data directory"
            )
        })
    }

    /// Counts a message of so many bytes that libp2p was given for so many recipients.
    pub(crate) fn sent(&self, bytes: usize, recipients: usize) {
        self.messages_sent.inc_by(recipients as u64);
        self.bytes_sent.inc_by((bytes as u64).saturating_mul(recipients as u64));
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.messages_received.inc();
        self.bytes_received.inc_by(bytes as u64);
    }
}
