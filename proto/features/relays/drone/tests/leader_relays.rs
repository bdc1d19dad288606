//! Relays of a leader, from its settings to the configuration of its node.

use std::path::Path;
use std::sync::Arc;

use quiver_net::{NodeConfig, NodeKey, Transport};
use quiver_relays::RelayedLeaderFeature;
use quiver_service::arguments::CommonArgs;
use quiver_service::config::Layers;
use quiver_service::drone::Result;
use quiver_service::drone::feature::{ServiceFeature as _, ServicePart};

/// Reads the settings of a configuration file with this text.
fn settings(directory: &Path, text: &str) -> Result<Arc<dyn ServicePart>> {
    let path = directory.join("leader.toml");
    std::fs::write(&path, text).expect("write");
    let common = CommonArgs { config: Some(path), ..CommonArgs::default() };
    RelayedLeaderFeature.settings(&mut Layers::read(&common, "leader").expect("layers"))
}

#[test]
fn relays_are_those_given_and_those_in_the_file_and_a_line_that_is_none_is_named() {
    let key = || NodeKey::from_seed([1; 32]).expect("key");
    let relay = key().peer_id();
    let directory = tempfile::tempdir().expect("tempdir");
    let path = directory.path().join("relays");
    std::fs::write(&path, format!("\n  {relay}\n")).expect("write");
    let text = format!("relay = [\"{relay}\"]\nrelay_file = {path:?}\n");
    let part = settings(directory.path(), &text).expect("two relays");
    part.check().expect("the file has one");
    let mut node = NodeConfig::hub(key(), Transport::SERVICE, 1);
    part.configure(&mut node).expect("configured");
    assert_eq!(node.relays, [relay, relay]);
    std::fs::write(&path, "relay-1\n").expect("write");
    let error = part.check().expect_err("no identity").to_string();
    assert!(error.contains("relay-1") && error.contains("relays"), "{error}");
    assert!(settings(directory.path(), "relay = [\"relay-1\"]\n").is_err(), "no identity");
}
