//! MAVLink programs beside an edge: what their bridge is told of the group, and asks of it; the table of system
//! ids as it is received, and asked for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::registry::Registry;
use quiver_ainq::{DronePublicKey, Name, Ristretto255, Role, Signature, Slot};
use quiver_bridge::{
    FORGERIES_CHANNEL, GroupServices, GroupStateSender, MissingKeyReason, SYSTEM_IDS_CHANNEL,
    SYSTEM_IDS_REQUEST_CHANNEL,
};
use quiver_group::{EdgeCommand, EdgeEvent, MessageOrigin};
use quiver_machine::Now;
use quiver_mavlink::{TableOutcome, TableReceiver};
use quiver_service::drone::feature::{
    KeyObstacle, RoleCommand, RoleEvent, RoleMachine, RunningNode, RunningPart, ServiceContext,
};
use rand::Rng as _;
use rand::rngs::OsRng;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::machine;
use crate::settings::OpenBridge;

/// Interval between two looks at why there is no valid key.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Members that hear the same forger tell the leader within this time; once it made another key, the others
/// need not.
const TELL_FORGERIES_WITHIN: Duration = Duration::from_secs(5);

/// Members that lack the table of system ids ask for it within this time, most of them late: who hears another
/// ask waits for the answer, which all receive.
const ASK_WITHIN: Duration = Duration::from_secs(5);
/// Number of members that lack it at once for which the time is meant: then some two ask.
const ASKING: f64 = 10_000.0;
/// Time between two requests for it, one's own or another's.
const ASK_EVERY: Duration = Duration::from_secs(15);
/// Tables that are wrong of which the log says so; others are counted.
const LOGGED_TABLES: u64 = 8;

/// The part in the service of an edge.
#[derive(Debug)]
pub(crate) struct EdgePart {
    bridge: Option<OpenBridge>,
    reserved: Mutex<ReservedChannels>,
}

impl EdgePart {
    /// Makes the part of a service with this bridge, if there is to be one.
    pub(crate) fn new(bridge: Option<OpenBridge>) -> Self {
        let group_state = bridge.as_ref().map(|bridge| bridge.epoch_keys.group_state.clone());
        let reserved = Mutex::new(ReservedChannels { group_state, ..ReservedChannels::default() });
        Self { bridge, reserved }
    }
}

impl RunningPart for EdgePart {
    fn start(&self, service: &ServiceContext<'_>, tasks: &mut JoinSet<()>) {
        let Some(bridge) = &self.bridge else { return };
        let group = EdgeGroup(Arc::clone(&service.running));
        tasks.spawn(tell_obstacles(Arc::clone(&service.running), bridge.epoch_keys.group_state.clone()));
        bridge.start(tasks, group.clone());
        let lacking = self.reserved.lock().unwrap_or_else(PoisonError::into_inner).lacking.clone();
        tasks.spawn(lacking.ask(group));
    }

    /// Tells the bridge each key as soon as it is durable, and that there is none any more, at once.
    fn look(&self, now: Now, machine: RoleMachine<'_>, durable: bool) {
        if let (Some(bridge), RoleMachine::Edge(edge)) = (&self.bridge, machine) {
            bridge.epoch_keys.set_keys(edge.epoch_keys(now), durable);
        }
    }

    fn take(&self, event: RoleEvent<'_>) -> bool {
        let RoleEvent::Edge { event, epoch } = event else { return false };
        // What was received so far stays whole: each message is taken or not.
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.take(event, epoch.map(|epoch| epoch.term))
    }

    fn register(&self, registry: &mut Registry) {
        if let Some(bridge) = &self.bridge {
            bridge.report.register(registry);
        }
    }

    fn report(&self, status: &mut Map<String, Value>) -> Result<(), String> {
        self.bridge.as_ref().map_or(Ok(()), |bridge| bridge.report(status))
    }
}

/// The running edge, as its bridge asks it.
#[derive(Clone)]
pub(crate) struct EdgeGroup(Arc<dyn RunningNode>);

impl EdgeGroup {
    /// Sends a message to the group, signed; `false` if the machine has stopped.
    async fn send(&self, channel: Name, data: Vec<u8>) -> bool {
        let message = EdgeCommand::Send { channel, data, signed: true };
        self.0.command(RoleCommand::Edge(message)).await.is_ok()
    }
}

impl GroupServices<Ristretto255> for EdgeGroup {
    async fn sign(&self, statement: Vec<u8>) -> Option<Signature<Ristretto255>> {
        machine::sign(&*self.0, statement).await
    }

    async fn may_sign(&self, slot: Slot, drone: DronePublicKey<Ristretto255>) -> bool {
        machine::may_sign(&*self.0, slot, drone).await
    }

    async fn want_epoch(&self) {
        // If the machine has stopped, nobody needs keys.
        let _ = self.0.command(RoleCommand::Edge(EdgeCommand::CatchUp)).await;
    }

    async fn reach_leader(&self) {
        self.0.dial_soon();
    }

    async fn forgeries(&self, digest: [u8; 32]) {
        sleep(OsRng.gen_range(Duration::ZERO..TELL_FORGERIES_WITHIN)).await;
        let same = move |machine: RoleMachine<'_>| match machine {
            RoleMachine::Edge(edge) => edge.status().digest == Some(digest),
            RoleMachine::Leader(_) => false,
        };
        if !self.0.inspect(same).await.unwrap_or(false) {
            return;
        }
        if let Ok(channel) = Name::new(FORGERIES_CHANNEL) {
            // If the machine has stopped, nobody needs keys.
            self.send(channel, digest.into()).await;
        }
    }
}

/// Tells the bridge why there is no valid key, as far as the service knows, until the machine stops.
async fn tell_obstacles(running: Arc<dyn RunningNode>, group_state: GroupStateSender) {
    let mut looking = interval(LOOK_EVERY);
    looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looking.tick().await;
        match running.obstacle().await {
            Ok(obstacle) => group_state.set_obstacle(obstacle.map(told)),
            Err(_) => return,
        }
    }
}

/// The same reason, as a bridge tells it.
const fn told(obstacle: KeyObstacle) -> MissingKeyReason {
    match obstacle {
        KeyObstacle::Evicted => MissingKeyReason::Evicted,
        KeyObstacle::Removed => MissingKeyReason::Removed,
        KeyObstacle::Revoked => MissingKeyReason::Revoked,
        KeyObstacle::Refused => MissingKeyReason::Refused,
        KeyObstacle::Left => MissingKeyReason::Left,
        KeyObstacle::Clock => MissingKeyReason::Clock,
    }
}

/// The channels of group messages that are between leader and bridges, and no program's.
#[derive(Debug, Default)]
pub(crate) struct ReservedChannels {
    /// Tells the bridge, if there is one.
    pub(crate) group_state: Option<GroupStateSender>,
    table: TableReceiver,
    /// Tells who asks for the table.
    pub(crate) lacking: Lacking,
}

/// A table as it is asked for: its term and number.
type RequestedTable = (u64, u32);

/// Says which table of system ids this member lacks, and when somebody asked for it. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lacking {
    wanted: watch::Sender<Option<RequestedTable>>,
    asked: watch::Sender<Option<(Instant, RequestedTable)>>,
}

impl Lacking {
    fn set(&self, wanted: Option<RequestedTable>) {
        self.wanted.send_if_modified(|held| std::mem::replace(held, wanted) != wanted);
    }

    fn note_request(&self, wanted: RequestedTable) {
        self.asked.send_replace(Some((Instant::now(), wanted)));
    }

    /// Returns true if this table was asked for a moment ago.
    fn was_asked(&self, wanted: RequestedTable) -> bool {
        self.asked.borrow().is_some_and(|(at, asked)| asked == wanted && at.elapsed() < ASK_EVERY)
    }

    /// Asks the leader whenever a table is lacking, and nobody else did.
    pub(crate) async fn ask(self, group: EdgeGroup) {
        let Ok(channel) = Name::new(SYSTEM_IDS_REQUEST_CHANNEL) else { return };
        let mut wanted = self.wanted.subscribe();
        loop {
            if wanted.wait_for(Option::is_some).await.is_err() {
                return;
            }
            sleep(delay(OsRng.gen_range(0.0..1.0))).await;
            let Some(table) = *wanted.borrow_and_update() else { continue };
            if !self.was_asked(table) {
                let data = TableReceiver::request(table);
                if !group.send(channel.clone(), data).await {
                    return;
                }
                self.note_request(table);
            }
            sleep(ASK_EVERY).await;
        }
    }
}

/// Time to wait before asking, for a uniform number from 0 to 1. Truncated exponential, as receivers of a
/// multicast wait before they report a loss (RFC 5401 §5): however many lack something, few ask early.
fn delay(uniform: f64) -> Duration {
    let late = 1.0 + uniform.max(f64::MIN_POSITIVE).ln() / ASKING.ln();
    ASK_WITHIN.mul_f64(late.clamp(0.0, 1.0))
}

impl ReservedChannels {
    /// Takes an event of such a channel. `term`: of the epoch held. `false` if the event is another.
    pub(crate) fn take(&mut self, event: &EdgeEvent, term: Option<u64>) -> bool {
        match event {
            EdgeEvent::Message { channel, data, source } if channel.as_str() == SYSTEM_IDS_CHANNEL => {
                self.take_table(data, source, term);
                true
            }
            EdgeEvent::Message { channel, data, source }
                if channel.as_str() == SYSTEM_IDS_REQUEST_CHANNEL =>
            {
                if let (MessageOrigin::Signed { .. }, Some(asked)) =
                    (source, TableReceiver::parse_request(data))
                {
                    self.lacking.note_request(asked);
                }
                true
            }
            // What other members tell the leader.
            EdgeEvent::Message { channel, .. } => channel.as_str() == FORGERIES_CHANNEL,
            EdgeEvent::RevocationList { number } => {
                if let Some(group_state) = &self.group_state {
                    group_state.set_revocation_list(*number);
                }
                false
            }
            _ => false,
        }
    }

    fn take_table(&mut self, data: &[u8], source: &MessageOrigin, term: Option<u64>) {
        // The machine accepts the signature of one leader only, that of the term.
        let MessageOrigin::Signed { role: Role::Leader { .. }, .. } = source else {
            return tracing::warn!("a table of system ids that the leader did not sign is ignored");
        };
        let outcome = self.table.receive(term, data);
        if let (Some(group_state), Ok(TableOutcome::Taken(table))) = (&self.group_state, &outcome) {
            group_state.set_table(table.clone());
        }
        let counters = self.table.counters();
        if let Some(group_state) = &self.group_state {
            group_state.set_table_counters(counters);
            // A drone without MAVLink programs needs no table.
            self.lacking.set(self.table.wanted());
        }
        match outcome {
            Err(error) if counters.refused <= LOGGED_TABLES => tracing::warn!(
                %error,
                "the leader's table of system ids is ignored, and the one before stays in force: {error}"
            ),
            Ok(_) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use quiver_bridge::bridge_channels;
    use quiver_mavlink::{IssuedSystemIds, SystemIds, TableIssuer};

    use super::*;

    fn message(channel: &str, data: &[u8], role: Option<Role>) -> EdgeEvent {
        let source = match role {
            Some(role) => MessageOrigin::Signed { name: Name::new("n").unwrap(), role },
            None => MessageOrigin::Unauthenticated { slot: 1 },
        };
        EdgeEvent::Message { channel: Name::new(channel).unwrap(), data: data.to_vec().into(), source }
    }

    fn leader() -> Option<Role> {
        Some(Role::Leader { group: Name::new("alpha").unwrap(), ordinal: 1 })
    }

    fn table(id: u32) -> SystemIds {
        let mut table = SystemIds::new();
        table.grant("edge-1", id).unwrap();
        table
    }

    fn channels() -> (ReservedChannels, GroupStateSender) {
        let group_state = bridge_channels::<Ristretto255>().0.group_state;
        (
            ReservedChannels { group_state: Some(group_state.clone()), ..ReservedChannels::default() },
            group_state,
        )
    }

    #[test]
    fn only_the_leaders_table_is_taken_and_nothing_of_reserved_channels_is_a_programs() {
        let (mut channels, group_state) = channels();
        let bytes = IssuedSystemIds { term: 1, number: 1, table: table(7) }.encode();
        assert!(!channels.take(&message("chat", &bytes, leader()), Some(1)));
        assert!(channels.take(&message(FORGERIES_CHANNEL, &[0; 32], Some(Role::Edge)), Some(1)));
        assert!(channels.take(&message(SYSTEM_IDS_CHANNEL, &bytes, None), Some(1)));
        assert!(channels.take(&message(SYSTEM_IDS_CHANNEL, &bytes, Some(Role::Edge)), Some(1)));
        assert!(channels.take(&message(SYSTEM_IDS_CHANNEL, b"rubbish", leader()), Some(1)));
        assert!(group_state.table().is_empty());
        assert!(channels.take(&message(SYSTEM_IDS_CHANNEL, &bytes, leader()), Some(1)));
        assert_eq!(*group_state.table(), table(7));
    }

    #[test]
    fn edge_without_mavlink_programs_has_the_channels_for_itself_as_well() {
        let part = EdgePart::new(None);
        let take = |event: &EdgeEvent| part.take(RoleEvent::Edge { event, epoch: None });
        for channel in [SYSTEM_IDS_CHANNEL, SYSTEM_IDS_REQUEST_CHANNEL, FORGERIES_CHANNEL] {
            assert!(take(&message(channel, b"rubbish", Some(Role::Edge))), "{channel}");
        }
        assert!(!take(&message("chat", b"hello", Some(Role::Edge))));
        assert!(!take(&EdgeEvent::RevocationList { number: 1 }));
    }

    #[test]
    fn table_that_was_delayed_does_not_replace_a_later_one() {
        let (mut channels, group_state) = channels();
        let mut hear = |term, number, id, held| {
            let bytes = IssuedSystemIds { term, number, table: table(id) }.encode();
            assert!(channels.take(&message(SYSTEM_IDS_CHANNEL, &bytes, leader()), held));
            group_state.table().of_name("edge-1").map(|grant| grant.system_id)
        };
        assert_eq!(hear(7, 1, 1, None), None);
        assert_eq!(hear(7, 5, 5, Some(7)), Some(5));
        assert_eq!(hear(7, 4, 4, Some(7)), Some(5));
        assert_eq!(hear(7, 6, 6, Some(7)), Some(6));
        // Of another term than the one held: of the one before, or not yet.
        assert_eq!(hear(9, 1, 8, Some(7)), Some(6));
        assert_eq!(hear(9, 1, 9, Some(9)), Some(9));
        assert_eq!(hear(7, 7, 7, Some(9)), Some(9));
    }

    #[test]
    fn a_wide_table_that_is_lacking_is_asked_for_unless_another_did() {
        let (mut channels, group_state) = channels();
        let mut issuer = TableIssuer::new(7);
        assert!(issuer.set(1, &Arc::new(table(70_000))));
        let announced = issuer.announcement().concat();
        assert!(channels.take(&message(SYSTEM_IDS_CHANNEL, &announced, leader()), Some(1)));
        let lacking = channels.lacking.clone();
        assert_eq!(*lacking.wanted.borrow(), Some((1, 7)));
        assert!(!lacking.was_asked((1, 7)));
        // Nobody knows who said it, and for another table.
        let request = TableReceiver::request((1, 7));
        assert!(channels.take(&message(SYSTEM_IDS_REQUEST_CHANNEL, &request, None), Some(1)));
        let other = TableReceiver::request((1, 6));
        assert!(channels.take(&message(SYSTEM_IDS_REQUEST_CHANNEL, &other, Some(Role::Edge)), Some(1)));
        assert!(!lacking.was_asked((1, 7)));
        assert!(channels.take(&message(SYSTEM_IDS_REQUEST_CHANNEL, &request, Some(Role::Edge)), Some(1)));
        assert!(lacking.was_asked((1, 7)));
        for part in issuer.whole() {
            assert!(channels.take(&message(SYSTEM_IDS_CHANNEL, &part, leader()), Some(1)));
        }
        assert_eq!((*lacking.wanted.borrow(), &*group_state.table()), (None, &table(70_000)));
    }

    #[test]
    fn of_many_that_lack_a_table_few_ask_early() {
        let early =
            |within: Duration| (1..=10_000).filter(|n| delay(f64::from(*n) / 10_000.0) < within).count();
        assert!(early(Duration::from_millis(500)) <= 3);
        assert!(early(ASK_WITHIN - Duration::from_millis(500)) <= 5_000);
        assert_eq!(delay(0.0), Duration::ZERO);
        assert_eq!(delay(1.0), ASK_WITHIN);
    }
}
