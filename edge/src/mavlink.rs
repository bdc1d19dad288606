//! MAVLink programs beside an edge: what their bridge is told of the group, and asks of it.

use std::sync::Arc;
use std::time::Duration;

use quiver_admission::AnyEdge;
use quiver_ainq::{DronePublicKey, Name, Ristretto255, Role, Signature, Slot};
use quiver_bridge::{FORGERIES_CHANNEL, Feed, Group, News, SYSTEM_IDS_CHANNEL};
use quiver_group::{EdgeCommand, EdgeEvent, Source};
use quiver_machine::{Either, Now};
use quiver_mavlink::IssuedSystemIds;
use quiver_net::Driver;
use quiver_service::clock;
use quiver_service::drone::Running;
use rand::Rng as _;
use rand::rngs::OsRng;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::control;
use crate::service::EdgeNode;
use crate::service::situation::Situation;

/// How often is looked why there is no valid key.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Members that hear the same forger tell the leader within this time; once it made another key, the others
/// need not.
const TELL_FORGERIES_WITHIN: Duration = Duration::from_secs(5);

/// The edge's machine, as its bridge asks it.
pub(crate) struct EdgeGroup(pub(crate) Running<AnyEdge<Ristretto255>>);

impl Clone for EdgeGroup {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl Group<Ristretto255> for EdgeGroup {
    async fn sign(&self, statement: Vec<u8>) -> Option<Signature<Ristretto255>> {
        let sign = move |machine: &EdgeNode| machine.named()?.sign_datagram(&statement, &mut OsRng);
        self.0.machine.inspect(sign).await.ok().flatten()
    }

    async fn may_sign(&self, slot: Slot, drone: DronePublicKey<Ristretto255>) -> bool {
        // Only the wall clock is asked: for the end of the drone's identity.
        let now = Now { monotonic: Duration::ZERO, unix: clock::unix_now() };
        let may = move |machine: &EdgeNode| {
            machine.named().is_some_and(|edge| edge.may_sign_datagrams(now, slot, &drone).is_ok())
        };
        self.0.machine.inspect(may).await.unwrap_or(false)
    }

    async fn want_epoch(&self) {
        // If the machine has stopped, nobody needs keys.
        let _ = self.0.machine.command(Either::Left(EdgeCommand::CatchUp)).await;
    }

    async fn reach_leader(&self) {
        self.0.machine.dial_soon();
    }

    async fn forgeries(&self, digest: [u8; 32]) {
        sleep(OsRng.gen_range(Duration::ZERO..TELL_FORGERIES_WITHIN)).await;
        let same = move |machine: &EdgeNode| machine.status().digest == Some(digest);
        if !self.0.machine.inspect(same).await.unwrap_or(false) {
            return;
        }
        let Ok(channel) = Name::new(FORGERIES_CHANNEL) else { return };
        let report = EdgeCommand::Send { channel, data: digest.into(), signed: true };
        // If the machine has stopped, nobody needs keys.
        let _ = self.0.machine.command(Either::Left(report)).await;
    }
}

/// Lets the driver tell the bridge each key, as soon as it is durable, and that there is none any more, at
/// once.
pub(crate) fn watched<H>(driver: Driver<EdgeNode, H>, feed: Arc<Feed<Ristretto255>>) -> Driver<EdgeNode, H>
where
    H: quiver_net::Host<EdgeNode>,
{
    driver.with_inspector(move |now, machine, durable| {
        feed.set_keys(machine.named().and_then(|edge| edge.epoch_keys(now)), durable);
    })
}

/// Tells the bridge why there is no valid key, as far as the service knows, until the machine stops.
pub(crate) async fn tell_obstacles(
    running: Running<AnyEdge<Ristretto255>>,
    situation: Situation,
    news: News,
) {
    let mut looking = interval(LOOK_EVERY);
    looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looking.tick().await;
        match control::obstacle(&running, &situation).await {
            Ok(obstacle) => news.set_obstacle(obstacle),
            Err(_) => return,
        }
    }
}

/// The channels of group messages that are between leader and bridges, and no program's.
#[derive(Debug, Default)]
pub(crate) struct ReservedChannels {
    /// Tells the bridge, if there is one.
    pub(crate) news: Option<News>,
    /// Term and number of the table of system ids that was told last.
    table: Option<(u64, u32)>,
}

impl ReservedChannels {
    /// Takes an event of such a channel. `term`: of the epoch held. `false` if the event is another.
    pub(crate) fn take(&mut self, event: &EdgeEvent, term: Option<u64>) -> bool {
        match event {
            EdgeEvent::Message { channel, data, source } if channel.as_str() == SYSTEM_IDS_CHANNEL => {
                self.take_table(data, source, term);
                true
            }
            // What other members tell the leader.
            EdgeEvent::Message { channel, .. } => channel.as_str() == FORGERIES_CHANNEL,
            EdgeEvent::RevocationList { number } => {
                if let Some(news) = &self.news {
                    news.set_revocation_list(*number);
                }
                false
            }
            _ => false,
        }
    }

    fn take_table(&mut self, data: &[u8], source: &Source, term: Option<u64>) {
        // The machine accepts the signature of one leader only, that of the term.
        let Source::Signed { role: Role::Leader { .. }, .. } = source else {
            return tracing::warn!("a table of system ids that the leader did not sign is ignored");
        };
        let issued = match IssuedSystemIds::decode(data) {
            Ok(issued) => issued,
            Err(error) => {
                return tracing::warn!(%error, "the leader's table of system ids is ignored: {error}");
            }
        };
        // A table that was delayed does not replace a later one.
        let held = self.table.filter(|(held, _)| *held == issued.term);
        if term != Some(issued.term) || held.is_some_and(|(_, number)| issued.number <= number) {
            return;
        }
        self.table = Some((issued.term, issued.number));
        if let Some(news) = &self.news {
            news.set_table(issued.table);
        }
    }
}

#[cfg(test)]
mod tests {
    use quiver_bridge::feed;
    use quiver_mavlink::SystemIds;

    use super::*;

    fn message(channel: &str, data: &[u8], role: Option<Role>) -> EdgeEvent {
        let source = match role {
            Some(role) => Source::Signed { name: Name::new("n").unwrap(), role },
            None => Source::Unauthenticated { slot: 1 },
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

    fn channels() -> (ReservedChannels, News) {
        let news = feed::<Ristretto255>().0.news;
        (ReservedChannels { news: Some(news.clone()), table: None }, news)
    }

    #[test]
    fn only_the_leaders_table_is_taken_and_nothing_of_reserved_channels_is_a_programs() {
        let (mut channels, news) = channels();
        let bytes = IssuedSystemIds { term: 1, number: 1, table: table(7) }.encode();
        assert!(!channels.take(&message("chat", &bytes, leader()), Some(1)));
        assert!(channels.take(&message(FORGERIES_CHANNEL, &[0; 32], Some(Role::Edge)), Some(1)));
        assert!(channels.take(&message(SYSTEM_IDS_CHANNEL, &bytes, None), Some(1)));
        assert!(channels.take(&message(SYSTEM_IDS_CHANNEL, &bytes, Some(Role::Edge)), Some(1)));
        assert!(channels.take(&message(SYSTEM_IDS_CHANNEL, b"rubbish", leader()), Some(1)));
        assert!(news.table().is_empty());
        assert!(channels.take(&message(SYSTEM_IDS_CHANNEL, &bytes, leader()), Some(1)));
        assert_eq!(*news.table(), table(7));
    }

    #[test]
    fn table_that_was_delayed_does_not_replace_a_later_one() {
        let (mut channels, news) = channels();
        let mut hear = |term, number, id, held| {
            let bytes = IssuedSystemIds { term, number, table: table(id) }.encode();
            assert!(channels.take(&message(SYSTEM_IDS_CHANNEL, &bytes, leader()), held));
            news.table().of_name("edge-1").map(|grant| grant.system_id)
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
}
