//! Counts datagrams and payloads by what became of them.

/// Numbers of datagrams and payloads since the start, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounters {
    /// Datagrams that left.
    pub sent: u64,
    /// Payloads that left in them.
    pub sent_payloads: u64,
    /// Announcements that left.
    pub sent_announcements: u64,
    /// Manifests that left.
    pub sent_manifests: u64,
    /// Commands that were sealed again because the key changed.
    pub sealed_again: u64,
    /// Telemetry dropped before it left: too old, or no room.
    pub dropped_telemetry: u64,
    /// Commands dropped before they left: no room, no signature in time, or closed.
    pub dropped_commands: u64,
    /// Datagrams that opened and were new.
    pub received: u64,
    /// Payloads in them.
    pub received_payloads: u64,
    /// Announcements received that were news.
    pub announcements: u64,
    /// Manifests received.
    pub manifests: u64,
    /// No datagram of this version, or longer than there are.
    pub malformed: u64,
    /// Received while there is no key.
    pub closed: u64,
    /// Sent by this member itself, come back.
    pub own: u64,
    /// Datagrams of a slot that no member can have.
    pub wrong_slot: u64,
    /// Datagrams of an epoch that is over.
    pub old_epoch: u64,
    /// Received before, or too old to tell.
    pub replayed: u64,
    /// Commands received before under the former key.
    pub repeated: u64,
    /// Datagrams of an earlier start of their sender.
    pub old_start: u64,
    /// The tag does not hold.
    pub forged: u64,
    /// The signature does not hold.
    pub bad_signature: u64,
    /// Signed by a drone that may not.
    pub refused_signer: u64,
    /// Held until their time was over: their epoch, sender or signer stayed unknown.
    pub unknown: u64,
    /// Dropped to make room for others that are held.
    pub overflowed: u64,
    /// Datagrams of more senders than there is memory for.
    pub too_many_senders: u64,
    /// Announcements whose signature was not verified because there were too many at once: such a sender counts as one
    /// without a key.
    pub unverified: u64,
}

impl DatagramCounters {
    /// Each counter with its name, for metrics: as the fields are called.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Self {
            sent,
            sent_payloads,
            sent_announcements,
            sent_manifests,
            sealed_again,
            dropped_telemetry,
            dropped_commands,
            received,
            received_payloads,
            announcements,
            manifests,
            malformed,
            closed,
            own,
            wrong_slot,
            old_epoch,
            replayed,
            repeated,
            old_start,
            forged,
            bad_signature,
            refused_signer,
            unknown,
            overflowed,
            too_many_senders,
            unverified,
        } = *self;
        [
            ("sent", sent),
            ("sent_payloads", sent_payloads),
            ("sent_announcements", sent_announcements),
            ("sent_manifests", sent_manifests),
            ("sealed_again", sealed_again),
            ("dropped_telemetry", dropped_telemetry),
            ("dropped_commands", dropped_commands),
            ("received", received),
            ("received_payloads", received_payloads),
            ("announcements", announcements),
            ("manifests", manifests),
            ("malformed", malformed),
            ("closed", closed),
            ("own", own),
            ("wrong_slot", wrong_slot),
            ("old_epoch", old_epoch),
            ("replayed", replayed),
            ("repeated", repeated),
            ("old_start", old_start),
            ("forged", forged),
            ("bad_signature", bad_signature),
            ("refused_signer", refused_signer),
            ("unknown", unknown),
            ("overflowed", overflowed),
            ("too_many_senders", too_many_senders),
            ("unverified", unverified),
        ]
        .into_iter()
    }
}
