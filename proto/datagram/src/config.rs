//! Settings of [`Datagrams`](crate::Datagrams): sizes, times and bounds.

use core::time::Duration;

/// Settings of datagrams: what the carrier takes, and how much memory and time they may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes that the carrier takes in one datagram. Below some 230, and more for long names, a sender's
    /// announcement cannot carry its key, so that nothing can be signed.
    pub mtu: usize,
    /// Bits per second that the carrier takes; `None` if it takes what it is given.
    pub bit_rate: Option<u32>,
    /// Bytes that the carrier adds to each datagram, for the bit rate.
    pub framing: usize,
    /// Bytes that may leave at once after a pause; at least one datagram does.
    pub burst: usize,
    /// Bytes of payloads that wait for the carrier. The oldest telemetry goes first, commands last.
    pub queue_bytes: usize,
    /// Time after which telemetry that did not leave is dropped.
    pub telemetry_for: Duration,
    /// Number of senders with replay windows in an epoch, some 600 bytes each. Of eight times as many the last
    /// numbers are remembered, 32 bytes each. Twice that during the overlap of two epochs.
    pub max_senders: usize,
    /// Time for which a datagram is held that cannot be opened yet: of an epoch or of a sender not known yet.
    pub hold_for: Duration,
    /// Number of datagrams held.
    pub hold_datagrams: usize,
    /// Bytes of datagrams held; and of commands remembered that are sealed again if the key changes.
    pub hold_bytes: usize,
    /// Time for which the former key still opens datagrams after a re-key that removed nobody.
    pub overlap: Duration,
    /// Time between announcements while something is sent.
    pub announce_every: Duration,
    /// Time between manifests, which make a member that speaks as another known; `None` to send none.
    pub manifest_every: Option<Duration>,
    /// Number of datagrams for each sender that are remembered for its next manifest, 16 bytes each.
    pub manifest_memory: usize,
    /// Number of datagrams in an epoch whose tag does not hold, after which the application is told.
    pub forgery_limit: u64,
}

impl Default for Config {
    /// Settings of a host with IP: datagrams of 1,200 bytes, as many as the carrier takes, 512 senders.
    fn default() -> Self {
        Self {
            mtu: 1_200,
            bit_rate: None,
            framing: 0,
            burst: 2_400,
            queue_bytes: 16_384,
            telemetry_for: Duration::from_secs(1),
            max_senders: 512,
            hold_for: Duration::from_millis(500),
            hold_datagrams: 1_024,
            hold_bytes: 131_072,
            overlap: Duration::from_secs(2),
            announce_every: Duration::from_secs(5),
            manifest_every: None,
            manifest_memory: 128,
            forgery_limit: 1 << 16,
        }
    }
}

impl Config {
    /// Settings of a board with a radio of 57,600 bits per second: datagrams of 255 bytes, 32 senders, 64 KB
    /// at most.
    #[must_use]
    pub fn board() -> Self {
        Self {
            mtu: 255,
            bit_rate: Some(57_600),
            burst: 510,
            queue_bytes: 2_048,
            max_senders: 32,
            hold_datagrams: 16,
            hold_bytes: 2_048,
            manifest_memory: 0,
            ..Self::default()
        }
    }
}
