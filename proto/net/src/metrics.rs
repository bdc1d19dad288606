//! Counters of a node.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// What a node has done so far. Bytes are bytes of messages, without what transports add.
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
    /// Connection attempts to configured addresses.
    pub dials: Counter,
    /// Attempts that failed.
    pub dial_failures: Counter,
    /// Connections opened, either way.
    pub connections_opened: Counter,
    /// Connections closed, either way.
    pub connections_closed: Counter,
    /// Messages to a peer dropped because its queue was full or it was gone.
    pub dropped: Counter,
    /// Frames refused as too long or malformed.
    pub refused: Counter,
    /// Peers blocked by the machine.
    pub blocked: Counter,
    /// Failed attempts to make records durable.
    pub persist_failures: Counter,
}

impl NetMetrics {
    /// Registers all counters.
    pub fn register(&self, registry: &mut Registry) {
        let counters = [
            ("bytes_sent", "Bytes of messages sent", &self.bytes_sent),
            ("bytes_received", "Bytes of messages received", &self.bytes_received),
            ("messages_sent", "Messages sent", &self.messages_sent),
            ("messages_received", "Messages received", &self.messages_received),
            ("group_published", "Group messages published", &self.group_published),
            ("group_relayed", "Group messages relayed", &self.group_relayed),
            ("group_throttled", "Group messages not relayed for their source's rate", &self.group_throttled),
            ("dials", "Connection attempts", &self.dials),
            ("dial_failures", "Failed connection attempts", &self.dial_failures),
            ("connections_opened", "Connections opened", &self.connections_opened),
            ("connections_closed", "Connections closed", &self.connections_closed),
            ("dropped", "Messages dropped", &self.dropped),
            ("refused", "Frames refused", &self.refused),
            ("blocked", "Peers blocked", &self.blocked),
            ("persist_failures", "Failed attempts to make records durable", &self.persist_failures),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
    }

    pub(crate) fn sent(&self, bytes: usize, recipients: usize) {
        self.messages_sent.inc_by(recipients as u64);
        self.bytes_sent.inc_by((bytes as u64).saturating_mul(recipients as u64));
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.messages_received.inc();
        self.bytes_received.inc_by(bytes as u64);
    }
}
