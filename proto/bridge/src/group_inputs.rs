//! Channels between a bridge and its group: keys of the epoch, the table of system ids, signatures.

use std::future::Future;
use std::sync::Arc;

use quiver_ainq::{DronePublicKey, EpochKeys, Signature, Slot, Suite};
use quiver_mavlink::{SystemIds, TableCounters};
use tokio::sync::watch;

/// The channel of group messages by which a leader spreads the table of system ids
/// ([`IssuedSystemIds`](quiver_mavlink::IssuedSystemIds)), signed.
pub const SYSTEM_IDS_CHANNEL: &str = "quiver.system-ids";
/// The channel of group messages by which a member asks, signed, for the table of system ids
/// ([`TableReceiver::request`](quiver_mavlink::TableReceiver::request)).
pub const SYSTEM_IDS_REQUEST_CHANNEL: &str = "quiver.system-ids-request";
/// The channel of group messages by which a member says, signed, that tags are guessed under the group's key:
/// the digest of the epoch, 32 bytes.
pub const FORGERIES_CHANNEL: &str = "quiver.forgeries";

/// Services of the group's machine for a bridge.
pub trait GroupServices<S: Suite>: Clone + Send + Sync + 'static {
    /// Signs a statement of this member's datagrams; `None` if it cannot.
    fn sign(&self, statement: Vec<u8>) -> impl Future<Output = Option<Signature<S>>> + Send;

    /// Returns true if this drone may sign datagrams from this slot.
    fn may_sign(&self, slot: Slot, drone: DronePublicKey<S>) -> impl Future<Output = bool> + Send;

    /// Asks the leader for an epoch, because there is perhaps a newer one.
    fn want_epoch(&self) -> impl Future<Output = ()> + Send;

    /// Asks for a connection with the leader soon, because the bridge lacks something that the leader alone
    /// has. Asked every second for as long as it is.
    fn reach_leader(&self) -> impl Future<Output = ()> + Send;

    /// Somebody guesses tags under the key of the epoch with this digest: a leader makes a new one, a member
    /// tells the leader.
    fn forgeries(&self, digest: [u8; 32]) -> impl Future<Output = ()> + Send;
}

/// Reason for which a drone has no valid key, as far as its service knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingKeyReason {
    /// A leader evicted it.
    Evicted,
    /// A leader removed it: it was evicted, or a copy of it took its place.
    Removed,
    /// The KGC revoked it.
    Revoked,
    /// The leader refuses it.
    Refused,
    /// The drone left, as it was told.
    Left,
    /// The drone's clock is far from those of others.
    Clock,
    /// The drone is a leader that stands by.
    StandsBy,
}

impl MissingKeyReason {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Evicted, Self::Removed, Self::Revoked, Self::Refused, Self::Left, Self::Clock, Self::StandsBy];

    /// A few words for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Evicted => "evicted from the group",
            Self::Removed => "removed from the group",
            Self::Revoked => "revoked by the KGC",
            Self::Refused => "refused by the leader",
            Self::Left => "left the group",
            Self::Clock => "the clock is wrong",
            Self::StandsBy => "this leader stands by",
        }
    }

    /// Returns true if a connection with a leader may end it.
    pub(crate) const fn may_end(self) -> bool {
        !matches!(self, Self::Evicted | Self::Revoked | Self::Left | Self::StandsBy)
    }
}

/// Tells a bridge the keys of the epoch, and what is not secret about its group. The driver's side.
#[derive(Debug)]
pub struct EpochKeySender<S: Suite> {
    keys: watch::Sender<Option<Arc<EpochKeys<S>>>>,
    /// Sender of what is not secret, which others than the driver may tell the bridge as well.
    pub group_state: GroupStateSender,
}

/// Tells a bridge what is not secret: the table of system ids, that there is a newer revocation list, and why there is no
/// key.
#[derive(Clone, Debug, Default)]
pub struct GroupStateSender {
    table: watch::Sender<Arc<SystemIds>>,
    table_counters: watch::Sender<TableCounters>,
    revocation_list: watch::Sender<u64>,
    obstacle: watch::Sender<Option<MissingKeyReason>>,
}

/// Receivers by which a bridge learns of its group, made by [`bridge_channels`].
#[derive(Debug)]
pub struct BridgeInputs<S: Suite> {
    pub(crate) keys: watch::Receiver<Option<Arc<EpochKeys<S>>>>,
    pub(crate) table: watch::Receiver<Arc<SystemIds>>,
    pub(crate) table_counters: watch::Receiver<TableCounters>,
    pub(crate) revocation_list: watch::Receiver<u64>,
    pub(crate) obstacle: watch::Receiver<Option<MissingKeyReason>>,
}

/// Channels from a driver to its bridge, both ends.
#[must_use]
pub fn bridge_channels<S: Suite>() -> (EpochKeySender<S>, BridgeInputs<S>) {
    let (keys, keys_out) = watch::channel(None);
    let group_state = GroupStateSender::default();
    let (table, revocation_list) = (group_state.table.subscribe(), group_state.revocation_list.subscribe());
    let obstacle = group_state.obstacle.subscribe();
    let table_counters = group_state.table_counters.subscribe();
    (
        EpochKeySender { keys, group_state },
        BridgeInputs { keys: keys_out, table, table_counters, revocation_list, obstacle },
    )
}

impl<S: Suite> EpochKeySender<S> {
    /// Tells the epoch's keys, after each input of the machine. `durable`: whether all is stored that the
    /// machine did so far. A new key is used once it is, the former one no longer at once.
    pub fn set_keys(&self, keys: Option<EpochKeys<S>>, durable: bool) {
        self.keys.send_if_modified(|held| {
            let same = match (&*held, &keys) {
                (None, None) => true,
                (Some(held), Some(keys)) => is_same(held, keys),
                _ => false,
            };
            // The same epoch again must not close and open it: numbers and windows go on (§20.2).
            if same {
                return false;
            }
            let had = held.is_some();
            // §20.2: used once all before it is durable: a boot number that is lost could come twice, and
            // with it nonces.
            *held = keys.filter(|_| durable).map(Arc::new);
            had || held.is_some()
        });
    }
}

impl GroupStateSender {
    /// Tells the table of system ids.
    pub fn set_table(&self, table: SystemIds) {
        self.table.send_if_modified(|held| {
            let changed = **held != table;
            if changed {
                // Shared: a table may have thousands of names.
                *held = Arc::new(table);
            }
            changed
        });
    }

    /// Tells what became of the leader's messages about the table.
    pub fn set_table_counters(&self, counters: TableCounters) {
        self.table_counters.send_replace(counters);
    }

    /// Tells that a revocation list is in force: who may sign is asked again.
    pub fn set_revocation_list(&self, number: u64) {
        self.revocation_list.send_replace(number);
    }

    /// Tells why there is no valid key, if that is known.
    pub fn set_obstacle(&self, obstacle: Option<MissingKeyReason>) {
        self.obstacle.send_if_modified(|held| std::mem::replace(held, obstacle) != obstacle);
    }

    /// The table that was told last.
    #[must_use]
    pub fn table(&self) -> Arc<SystemIds> {
        Arc::clone(&self.table.borrow())
    }
}

/// Returns true if both are of one epoch and one start of the same member.
fn is_same<S: Suite>(one: &EpochKeys<S>, other: &EpochKeys<S>) -> bool {
    let of = |keys: &EpochKeys<S>| (keys.epoch, keys.digest, keys.slot, keys.boot_no);
    of(one) == of(other)
}
