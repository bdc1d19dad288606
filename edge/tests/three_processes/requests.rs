//! Request ids of log lines.

use std::path::Path;

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{TestDeployment, text};

use super::swarm::Swarm;

/// The id of the request that the line with all these parts is about.
fn id(log: &Path, parts: &[&str]) -> String {
    let log = text(log);
    let line = log.lines().find(|line| parts.iter().all(|part| line.contains(part)));
    let line = line.unwrap_or_else(|| panic!("no line with {parts:?}"));
    let line: serde_json::Value = serde_json::from_str(line).expect("json");
    let id = line["span"]["id"].as_str();
    id.unwrap_or_else(|| panic!("about no request: {line}")).to_owned()
}

#[test]
fn enrolment_has_one_id_in_the_logs_of_drone_and_kgc_and_nobody_else_knows_it() {
    let swarm = Swarm::start(TestDeployment::new().logging_json(), ANY);
    let mut seen = Vec::new();
    for (edge, name) in swarm.edges.iter().zip(["\"name\":\"edge-1\"", "\"name\":\"edge-2\""]) {
        let at_the_kgc = id(&swarm.kgc.err, &["key issued", name]);
        assert_eq!(at_the_kgc.len(), 32, "{at_the_kgc}");
        assert_eq!(id(&edge.err, &["enrolled", name]), at_the_kgc);
        assert!(!text(&swarm.leader.err).contains(&at_the_kgc));
        seen.push(at_the_kgc);
    }
    seen.push(id(&swarm.leader.err, &["enrolled", "\"name\":\"leader-1\""]));
    assert_eq!(id(&swarm.kgc.err, &["key issued", "\"name\":\"leader-1\""]), seen[2]);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3, "each enrolment has an id of its own");
}
