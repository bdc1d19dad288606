//! QUIC: a swarm over it.

use crate::swarm::Swarm;
use quiver_service_testing::TestDeployment;

#[test]
fn group_message_and_new_key_arrive() {
    let swarm = Swarm::start(TestDeployment::new(), "/ip4/127.0.0.1/udp/0/quic-v1");
    assert!(swarm.leader_at.contains("/quic-v1/"), "{}", swarm.leader_at);
    swarm.message_arrives("hello over QUIC");
    let before = swarm.in_sync((0, 0));
    swarm.bench.ok("leader", &["rekey"]);
    assert!(swarm.in_sync(before) > before);
}
