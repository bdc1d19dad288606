//! `kgc abke`: authorities that certify fields, what they certify, policies, and what bad ones get.

use std::fs;

use quiver_admission::SignedPolicy;
use quiver_ainq::Name;
use quiver_service::armour::{self, ArmourKind};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::keyring;
use serde_json::Value;

use super::Bench;

const SCHEMA: &str = "x: i32, y: i32, time: u40, medic: bool";
const FENCE: &str = "# around the depot\n(x - 5000)^2 + (y + 300)^2 < 250_000\nand time >= 1_700_000_000\n";

/// A deployment with an authority and an open token for `edge-1`.
fn with_authority() -> Bench {
    let bench = Bench::initialised();
    let said = bench.ok(&["abke", "setup", "--schema", SCHEMA, "--period", "1h", "--name", "positions"]);
    assert!(said.contains("(105 bits), for 1 h at a time") && said.contains(SCHEMA), "{said}");
    bench.ok(&["token", "issue", "--operator", "operator.key", "--name", "edge-1", "--group", "alpha"]);
    bench
}

fn certify<'a>(values: &[&'a str]) -> Vec<&'a str> {
    [&["abke", "certify", "edge-1"], values].concat()
}

fn listing(bench: &Bench) -> Value {
    bench.json(&["abke", "list", "--json"])
}

#[test]
fn authority_is_set_up_once_beside_others_and_listed() {
    let bench = with_authority();
    bench.refused(&["abke", "setup", "--schema", SCHEMA, "--name", "positions"], 3, "set up once");
    bench.ok(&["abe", "setup", "--name", "orders"]);
    fs::write(bench.path("fields.txt"), "battery: u7 # percent\nscout: bool\n").expect("write");
    bench.ok(&["abke", "setup", "--schema", "fields.txt", "--name", "condition"]);
    let listed = listing(&bench);
    let names: Vec<_> =
        listed["authorities"].as_array().expect("list").iter().map(|line| &line["name"]).collect();
    assert_eq!(names, ["condition", "positions"]);
    assert_eq!(
        (&listed["authorities"][1]["bits"], &listed["authorities"][1]["period"]),
        (&105.into(), &3600.into())
    );
    let deployment = DeploymentFile::read(&bench.path("kgc-data/deployment.toml")).expect("read");
    let deployment = deployment.pin().expect("pin");
    let public = keyring::read_authority(&bench.path("kgc-data/positions.authority"), &deployment);
    let public = public.expect("read");
    assert_eq!(hex::encode(public.fingerprint()), listed["authorities"][1]["fingerprint"]);
    // Each kind's commands show and use their own.
    let keys = bench.json(&["abe", "list", "--json"]);
    assert_eq!(keys["authorities"].as_array().expect("list").len(), 1);
    bench.refused(
        &["abe", "grant", "--drone", "edge-1", "--authority", "positions", "--attributes", "a"],
        2,
        "there is orders",
    );
    bench.refused(&certify(&["x=1"]), 2, "give --authority: condition, positions");
    assert!(bench.ok(&["audit"]).contains("scheme abke-bls12-381"));
    assert_eq!(bench.mode("kgc-data/authorities.state"), 0o600);
}

#[test]
fn fields_are_certified_changed_and_withdrawn() {
    let bench = with_authority();
    let said = bench.ok(&certify(&["x=5_200", "y=-310", "medic=true", "time=1700000000"]));
    assert!(said.contains("revision 1: x = 5200, y = -310, time = 1700000000, medic = true"), "{said}");
    assert!(said.contains("edge abke fetch"), "{said}");
    let again = bench.ok(&certify(&["medic=true", "x=5200", "y=-310", "time=1700000000"]));
    assert!(again.contains("granted already"), "{again}");
    let changed = bench.ok(&certify(&["x=-1", "y=0", "medic=false", "time=now+2h"]));
    assert!(changed.contains("revision 2") && changed.contains("in place of"), "{changed}");
    assert_eq!(listing(&bench)["certified"][0]["state"], "in force");
    bench.ok(&["abke", "revoke", "edge-1"]);
    assert_eq!(listing(&bench)["certified"][0]["state"], "withdrawn");
    bench.refused(&["abke", "revoke", "edge-1"], 3, "nothing is granted");
    let table = bench.ok(&["abke", "list"]);
    assert!(table.contains("withdrawn") && table.contains("PERIOD ENDS"), "{table}");
    bench.ok(&["audit"]);
}

#[test]
fn values_and_schemas_that_make_no_sense_are_explained() {
    let bench = Bench::initialised();
    bench.refused(&certify(&["x=1"]), 2, "kgc abke setup");
    let setup = |schema: &str, period: &str, part: &str| {
        bench.refused(&["abke", "setup", "--schema", schema, "--period", period], 2, part);
    };
    setup("x i32", "1d", "line 1, column 3: expected `:` and a kind");
    setup("x: i65", "1d", "is no kind of field");
    setup("x: u8, x: u8", "1d", "field `x` is there twice");
    setup("nowhere.txt", "1d", "no file of that name is here");
    setup("", "1d", "a schema of 0 bits");
    let wide = (0..13).map(|field| format!("f{field}: u64")).collect::<Vec<_>>().join(", ");
    setup(&wide, "1d", "a schema of 832 bits; 1 to 800");
    setup("x: u8", "1s", "a period of 1 s");
    setup("x: u8", "1000d", "a period of");
    assert!(!bench.path("kgc-data/authorities.state").exists());
    let bench = with_authority();
    let refused = |values: &[&str], part: &str| bench.refused(&certify(values), 2, part);
    refused(&["x=1", "y=2", "time=3"], "field `medic` has no value");
    refused(&["x=1", "y=2", "time=3", "medic=2"], "2 does not fit `medic`, which is bool");
    refused(&["x=2147483648", "y=2", "time=3", "medic=0"], "does not fit `x`, which is i32");
    refused(&["x=1", "x=1", "y=2", "time=3", "medic=0"], "field `x` is there twice");
    refused(&["z=1"], "no field is named `z`");
    refused(&["x=here"], "`here` is not a valid value");
    refused(&["x"], "expected FIELD=VALUE");
    refused(&[], "required");
    assert_eq!(listing(&bench)["certified"], Value::Array(Vec::new()));
    let nobody = ["abke", "certify", "edge-9", "x=1", "y=2", "time=3", "medic=0"];
    bench.refused(&nobody, 3, "no drone `edge-9` has enrolled");
}

#[test]
fn policies_are_compiled_signed_recorded_and_never_overwritten() {
    let bench = with_authority();
    fs::write(bench.path("geofence.txt"), FENCE).expect("write");
    let args = ["abke", "policy", "geofence.txt", "--group", "alpha"];
    let said = bench.ok(&args);
    assert!(said.contains("geofence.policy  public") && said.contains(" of them AND"), "{said}");
    let deployment = DeploymentFile::read(&bench.path("kgc-data/deployment.toml")).expect("read");
    let deployment = deployment.pin().expect("pin");
    let bytes = armour::read(&bench.path("geofence.policy"), ArmourKind::AdmissionPolicy).expect("read");
    let policy = SignedPolicy::decode(&bytes).expect("decode").verify(&deployment).expect("verify");
    assert_eq!((policy.name.as_str(), policy.text.as_str()), ("geofence", FENCE));
    let authority = keyring::read_authority(&bench.path("kgc-data/positions.authority"), &deployment);
    let compiled =
        policy.compile(&Name::new("alpha").expect("name"), &authority.expect("read"), policy.not_after - 1);
    assert!(compiled.expect("compile").statistics().and > 1000);
    let listed = listing(&bench);
    assert_eq!(
        (&listed["policies"][0]["name"], &listed["policies"][0]["group"]),
        (&"geofence".into(), &"alpha".into())
    );
    assert!(bench.ok(&["audit"]).contains("admission policy signed"));
    bench.refused(&args, 2, "will not be overwritten");
}

#[test]
fn policies_that_make_no_sense_are_not_signed() {
    let bench = with_authority();
    let refused = |text: &str, rest: &[&str], part: &str| {
        fs::write(bench.path("p.txt"), text).expect("write");
        bench.refused(&[&["abke", "policy", "p.txt", "--group", "alpha"], rest].concat(), 2, part);
    };
    refused("x < 5 and z > 3", &[], "p.txt: line 1, column 11: no field is named `z`");
    refused("x + 5", &[], "line 1, column 1");
    refused("x < 5000000000", &[], "this is always true");
    refused("x^16 * y^16 < 3", &[], "bits; at most 256 are allowed");
    refused("x < 5", &["--authority", "nobody"], "there is positions");
    refused("x < 5", &["--not-after", "2020-01-01T00:00:00Z"], "--not-after lies in the past");
    fs::write(bench.path("p.txt"), [0xff, 0xfe]).expect("write");
    bench.refused(&["abke", "policy", "p.txt", "--group", "alpha"], 2, "not text in UTF-8");
    assert_eq!(listing(&bench)["policies"], Value::Array(Vec::new()));
    assert!(!bench.path("p.policy").exists());
}
