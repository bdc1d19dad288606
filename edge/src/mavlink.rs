//! MAVLink programs beside an edge: what their bridge is told of the group, and asks of it.

use std::sync::Arc;
use std::time::Duration;

use quiver_admission::AnyEdge;
use quiver_ainq::{DronePublicKey, Role, Signature, Slot, Suite};
use quiver_bridge::{Feed, Group, SYSTEM_IDS_CHANNEL};
use quiver_group::{EdgeCommand, EdgeEvent, Source};
use quiver_machine::{Either, Now};
use quiver_mavlink::SystemIds;
use quiver_net::Driver;
use quiver_service::clock;
use quiver_service::drone::Running;
use rand::rngs::OsRng;

use crate::service::EdgeNode;

/// Tells a bridge which system ids are granted.
pub(crate) type TellTable = Box<dyn Fn(SystemIds) + Send>;

/// The edge's machine, as its bridge asks it.
pub(crate) struct EdgeGroup<S: Suite>(pub(crate) Running<AnyEdge<S>>);

impl<S: Suite> Clone for EdgeGroup<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Suite> Group<S> for EdgeGroup<S> {
    async fn sign(&self, statement: Vec<u8>) -> Option<Signature<S>> {
        let sign = move |machine: &EdgeNode<S>| machine.named()?.sign_datagram(&statement, &mut OsRng);
        self.0.machine.inspect(sign).await.ok().flatten()
    }

    async fn may_sign(&self, slot: Slot, drone: DronePublicKey<S>) -> bool {
        // Only the wall clock is asked: for the end of the drone's identity.
        let now = Now { monotonic: Duration::ZERO, unix: clock::unix_now() };
        let may = move |machine: &EdgeNode<S>| {
            machine.named().is_some_and(|edge| edge.may_sign_datagrams(now, slot, &drone).is_ok())
        };
        self.0.machine.inspect(may).await.unwrap_or(false)
    }

    async fn want_epoch(&self) {
        // If the machine has stopped, nobody needs keys.
        let _ = self.0.machine.command(Either::Left(EdgeCommand::CatchUp)).await;
    }

    async fn forgeries(&self, _: u64) {
        // The bridge has said so. The leader, which hears the same radio, makes a new key.
    }
}

/// Lets the driver tell the bridge each key, as soon as it is durable, and that there is none any more, at
/// once.
pub(crate) fn watched<S: Suite, H>(
    driver: Driver<EdgeNode<S>, H>,
    feed: Arc<Feed<S>>,
) -> Driver<EdgeNode<S>, H>
where
    H: quiver_net::Host<EdgeNode<S>>,
{
    driver.with_inspector(move |now, machine, durable| {
        feed.set_keys(machine.named().and_then(|edge| edge.epoch_keys(now)), durable);
    })
}

/// Takes the leader's table of system ids out of an event; `true` if the event is of that channel, which is
/// nobody's else.
pub(crate) fn take_table(event: &EdgeEvent, tell: Option<&TellTable>) -> bool {
    let EdgeEvent::Message { channel, data, source } = event else { return false };
    if channel.as_str() != SYSTEM_IDS_CHANNEL {
        return false;
    }
    // The machine accepts the signature of one leader only, that of the term.
    let Source::Signed { role: Role::Leader { .. }, .. } = source else {
        tracing::warn!("a table of system ids that the leader did not sign is ignored");
        return true;
    };
    match (SystemIds::decode(data), tell) {
        (Ok(table), Some(tell)) => tell(table),
        (Ok(_), None) => {}
        (Err(error), _) => tracing::warn!(%error, "the leader's table of system ids is ignored: {error}"),
    }
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use quiver_ainq::Name;

    use super::*;

    fn message(channel: &str, data: &[u8], role: Option<Role>) -> EdgeEvent {
        let source = match role {
            Some(role) => Source::Signed { name: Name::new("n").unwrap(), role },
            None => Source::Unauthenticated { slot: 1 },
        };
        EdgeEvent::Message { channel: Name::new(channel).unwrap(), data: data.to_vec().into(), source }
    }

    #[test]
    fn only_the_leaders_table_is_taken_and_nothing_of_its_channel_is_a_message() {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&taken);
        let tell: TellTable = Box::new(move |table| into.lock().unwrap().push(table));
        let mut table = SystemIds::new();
        table.grant("edge-1", 7).unwrap();
        let leader = || Some(Role::Leader { group: Name::new("alpha").unwrap(), ordinal: 1 });
        let bytes = table.encode();
        assert!(!take_table(&message("chat", &bytes, leader()), Some(&tell)));
        assert!(take_table(&message(SYSTEM_IDS_CHANNEL, &bytes, None), Some(&tell)));
        assert!(take_table(&message(SYSTEM_IDS_CHANNEL, &bytes, Some(Role::Edge)), Some(&tell)));
        assert!(take_table(&message(SYSTEM_IDS_CHANNEL, b"rubbish", leader()), Some(&tell)));
        assert!(taken.lock().unwrap().is_empty());
        assert!(take_table(&message(SYSTEM_IDS_CHANNEL, &bytes, leader()), Some(&tell)));
        assert_eq!(*taken.lock().unwrap(), [table]);
    }
}
