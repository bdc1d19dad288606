//! `kgc abe`: authorities, grants and key files, and what bad policies, schemas and names get.

use std::fs;

use quiver_service::deployment_file::DeploymentFile;
use quiver_service::keyring;
use serde_json::Value;

use super::Bench;

const SCHEMA: &str = "integers = { altitude = \"16 bits\", valid-until = \"date\" }\n";
const CLOSED: &str = "plain = [\"scout\", \"thermal\", \"lidar\"]\n";

/// A deployment with authorities of both kinds and an open token for `edge-1`.
fn with_authorities() -> Bench {
    let bench = Bench::initialised();
    fs::write(bench.path("schema.toml"), SCHEMA).expect("write");
    bench.ok(&["abe", "setup", "--name", "orders", "--schema", "schema.toml"]);
    bench.ok(&["abe", "setup", "--name", "sensors", "--scheme", "fabeo22-kp", "--schema", "schema.toml"]);
    token(&bench, "edge-1");
    bench
}

fn token(bench: &Bench, name: &str) {
    bench.ok(&["token", "issue", "--operator", "operator.key", "--name", name, "--group", "alpha"]);
}

fn listing(bench: &Bench) -> Value {
    bench.json(&["abe", "list", "--json"])
}

#[test]
fn authorities_are_set_up_once_listed_and_published() {
    let bench = with_authorities();
    assert_eq!(bench.mode("kgc-data/authorities.state"), 0o600);
    let listing = listing(&bench);
    let shown: Vec<_> = listing["authorities"]
        .as_array()
        .expect("list")
        .iter()
        .map(|line| {
            [&line["name"], &line["scheme"], &line["keys_have"]].map(|value| value.as_str().expect("text"))
        })
        .collect();
    assert_eq!(shown, [["orders", "fabeo22-cp", "attributes"], ["sensors", "fabeo22-kp", "policy"]]);
    let deployment = DeploymentFile::read(&bench.path("kgc-data/deployment.toml")).expect("read");
    let deployment = deployment.pin().expect("pin");
    let public =
        keyring::read_authority(&bench.path("kgc-data/orders.authority"), &deployment).expect("read");
    assert_eq!(
        Value::from(hex::encode(public.fingerprint())),
        listing["authorities"][0]["fingerprint"],
        "what is published is what is listed"
    );
    bench.ok(&["abe", "publish", "orders", "--out", "again.authority"]);
    let again = fs::read(bench.path("again.authority")).expect("read");
    assert_eq!(again, fs::read(bench.path("kgc-data/orders.authority")).expect("read"));
    bench.refused(&["abe", "publish", "order"], 2, "there is orders, sensors");
    bench.refused(&["abe", "setup", "--name", "orders"], 3, "set up once");
    let table = bench.ok(&["abe", "list"]);
    assert!(table.contains("altitude: 16 bits"), "{table}");
    assert!(bench.ok(&["audit"]).contains("attribute authority set up"));
}

#[test]
fn grants_are_made_changed_and_withdrawn() {
    let bench = with_authorities();
    let said =
        bench.ok(&["abe", "grant", "--drone", "edge-1", "--attributes", "sector:7, scout, altitude = 150"]);
    assert!(
        said.contains("edge-1 is granted, by orders, revision 1: altitude = 150, scout, sector:7"),
        "{said}"
    );
    let again =
        bench.ok(&["abe", "grant", "--drone", "edge-1", "--attributes", "scout,altitude=150,sector:7"]);
    assert!(again.contains("granted already"), "{again}");
    let policy = "(scout and sector:7) or 2 of (thermal, lidar, radar)";
    bench.ok(&["abe", "grant", "--drone", "edge-1", "--policy", policy]);
    let changed = bench.ok(&["abe", "grant", "--drone", "edge-1", "--attributes", "scout"]);
    assert!(changed.contains("revision 3") && changed.contains("in place of"), "{changed}");
    let states = |bench: &Bench| {
        let listing = listing(bench);
        let grants = listing["grants"].as_array().expect("list").clone();
        let one = |grant: &Value| {
            [&grant["authority"], &grant["state"]].map(|text| text.as_str().expect("text").to_string())
        };
        grants.iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(states(&bench), [["orders", "in force"], ["sensors", "in force"]]);
    bench.refused(&["abe", "revoke", "--drone", "edge-1"], 2, "give --authority: orders, sensors");
    bench.ok(&["abe", "revoke", "--drone", "edge-1", "--authority", "orders"]);
    assert_eq!(states(&bench), [["orders", "withdrawn"], ["sensors", "in force"]]);
    bench.refused(&["abe", "revoke", "--drone", "edge-1", "--authority", "orders"], 3, "nothing is granted");
    bench.refused(&["abe", "revoke", "--drone", "edge-9", "--authority", "orders"], 3, "nothing is granted");
    bench.ok(&["audit"]);
}

#[test]
fn bad_policies_and_attributes_are_shown_with_their_column() {
    let bench = with_authorities();
    let grant = |kind: &str, text: &str, parts: &[&str]| {
        for part in parts {
            bench.refused(&["abe", "grant", "--drone", "edge-1", kind, text], 2, part);
        }
    };
    grant(
        "--policy",
        "(scout and sector:7",
        &["(scout and sector:7\n^\n", "column 1: this parenthesis is never closed"],
    );
    grant("--policy", "scout)", &["scout)\n     ^\n"]);
    grant("--policy", "", &["column 1: the policy is empty"]);
    grant("--policy", "scout and and lidar", &["scout and and lidar\n          ^\n"]);
    grant("--policy", "0 of (a, b)", &["0 of (a, b)\n^\n"]);
    grant("--policy", "3 of (a, b)", &["3 of (a, b)\n^\n"]);
    grant("--policy", "altitud >= 120", &["altitud >= 120\n^\n", "altitude"]);
    grant("--policy", "altitude >= 65536", &["column"]);
    grant("--policy", &"(".repeat(10_000), &["nested more than 64 deep"]);
    grant("--policy", &"a or ".repeat(20_000), &["longer than 65536 bytes"]);
    grant("--attributes", "scout, scout", &["column 8"]);
    grant("--attributes", "scout, altitude = 70000", &["column"]);
    assert_eq!(listing(&bench)["grants"], Value::Array(Vec::new()));
}

#[test]
fn wrong_kinds_drones_and_authorities_are_explained() {
    let bench = Bench::initialised();
    let grant = ["abe", "grant", "--drone", "edge-1", "--attributes", "scout"];
    bench.refused(&grant, 2, "kgc abe setup");
    bench.ok(&["abe", "setup", "--name", "orders"]);
    bench.refused(&grant, 3, "no drone `edge-1` has enrolled");
    token(&bench, "edge-1");
    bench.refused(&["abe", "grant", "--drone", "edge-1", "--policy", "scout"], 2, "give --attributes");
    let by_name = ["abe", "grant", "--drone", "edge-1", "--authority", "orders", "--policy", "scout"];
    bench.refused(&by_name, 2, "have attributes: give --attributes");
    let unknown = ["abe", "grant", "--drone", "edge-1", "--authority", "order", "--attributes", "scout"];
    bench.refused(&unknown, 2, "there is orders");
    bench.refused(&["abe", "grant", "--drone", "edge-1"], 2, "--policy");
    let both = ["abe", "grant", "--drone", "edge-1", "--policy", "a", "--attributes", "a"];
    bench.refused(&both, 2, "cannot be used");
    bench.ok(&["abe", "setup", "--name", "more"]);
    bench.refused(&grant, 2, "give --authority: more, orders");
}

#[test]
fn bad_schemas_are_refused_and_leave_nothing_behind() {
    let bench = Bench::initialised();
    let setup = |scheme: &str| {
        ["abe", "setup", "--name", "x", "--schema", "s.toml", "--scheme"]
            .iter()
            .copied()
            .chain([scheme])
            .map(String::from)
            .collect::<Vec<_>>()
    };
    let refused = |text: &str, scheme: &str, part: &str| {
        fs::write(bench.path("s.toml"), text).expect("write");
        let args = setup(scheme);
        bench.refused(&args.iter().map(String::as_str).collect::<Vec<_>>(), 2, part);
    };
    refused("plain = [\"scout\"", "fabeo22-cp", "s.toml");
    refused("plan = [\"scout\"]", "fabeo22-cp", "plan");
    refused("integers = { altitude = \"99 bits\" }", "fabeo22-cp", "s.toml");
    refused(SCHEMA, "gpsw06", "needs a closed list");
    bench.refused(&["abe", "setup", "--scheme", "gpsw06"], 2, "--schema FILE");
    bench.refused(&["abe", "setup", "--scheme", "insecure-yct14"], 2, "invalid value");
    assert_eq!(listing(&bench)["authorities"], Value::Array(Vec::new()));
    assert!(!bench.path("kgc-data/authorities.state").exists());
}

#[test]
fn closed_schema_catches_misspelt_attributes() {
    let bench = Bench::initialised();
    fs::write(bench.path("closed.toml"), CLOSED).expect("write");
    bench.ok(&["abe", "setup", "--scheme", "gpsw06", "--universe", "closed.toml"]);
    token(&bench, "edge-1");
    let policy = ["abe", "grant", "--drone", "edge-1", "--policy", "scuot and thermal"];
    bench.refused(&policy, 2, "scuot and thermal\n^\n");
    bench.refused(&policy, 2, "scout");
    bench.ok(&["abe", "grant", "--drone", "edge-1", "--policy", "scout and thermal"]);
    bench.ok(&["abe", "keygen", "--policy", "scout and thermal", "--out", "k"]);
}

#[test]
fn key_files_are_for_their_owner_alone_audited_and_never_overwritten() {
    let bench = with_authorities();
    let args = ["abe", "keygen", "--attributes", "scout, sector:7", "--drone", "edge-1"];
    let said = bench.ok(&args);
    assert!(said.contains("orders.key") && said.contains("scout, sector:7"), "{said}");
    assert_eq!(bench.mode("orders.key"), 0o600);
    let deployment = DeploymentFile::read(&bench.path("kgc-data/deployment.toml")).expect("read");
    let deployment = deployment.pin().expect("pin");
    let entry = keyring::read_key(&bench.path("orders.key"), &deployment).expect("read");
    assert_eq!(entry.authority.name.as_str(), "orders");
    assert!(entry.key.is_some_and(|held| held.key.len() < 3000));
    bench.refused(&args, 2, "will not be overwritten");
    bench.refused(&["abe", "keygen", "--attributes", "a", "--drone", "edge-9"], 3, "edge-9");
    let audit = bench.ok(&["audit"]);
    assert_eq!(audit.matches("attribute key written to a file").count(), 1, "{audit}");
    let mut wrong = std::process::Command::new(env!("CARGO_BIN_EXE_kgc"));
    wrong.args(["abe", "keygen", "--attributes", "a", "--out", "w"]).current_dir(bench.path("."));
    let output = wrong.env_clear().env("QUIVER_PASSPHRASE", "wrong").output().expect("run");
    assert_eq!(output.status.code(), Some(6), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn lost_authority_keys_are_named() {
    let bench = with_authorities();
    let copy = fs::read(bench.path("kgc-data/authorities.state")).expect("read");
    bench.ok(&["abe", "setup", "--name", "third"]);
    fs::write(bench.path("kgc-data/authorities.state"), copy).expect("write");
    let keygen = ["abe", "keygen", "--authority", "third", "--attributes", "a"];
    bench.refused(&keygen, 7, "does not have the keys of attribute authority third");
    bench.refused(&["serve", "--listen", "/ip4/127.0.0.1/tcp/0"], 7, "attribute authority third");
}
