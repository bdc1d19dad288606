//! A group that demands a policy over real connections: a drone that satisfies it joins anonymously, follows,
//! sends messages, and is out at the end of its period.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use quiver_ainq::UnixTime;
use quiver_service::clock::parse_time;
use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, eventually, text};
use serde_json::Value;

use crate::enrol;
use crate::swarm::socket_of;

const POLICY: &str = "x < 100 or medic";

/// A deployment whose leaders of alpha may demand [`POLICY`], with three drones, of which two satisfy it.
struct Place {
    bench: TestDeployment,
    kgc: Process,
    kgc_at: String,
}

impl Place {
    fn new(period: &str) -> Self {
        let bench = TestDeployment::new();
        bench.ok("kgc", &["abke", "setup", "--schema", "x: i16, medic: bool", "--period", period]);
        fs::write(bench.path("fence.txt"), POLICY).expect("write");
        bench.ok("kgc", &["abke", "policy", "fence.txt", "--group", "alpha"]);
        bench.ok("kgc", &["abke", "policy", "fence.txt", "--group", "beta", "--name", "other"]);
        let kgc = bench.kgc(ANY);
        let kgc_at = kgc.address();
        for (number, (x, medic)) in
            [("x=5", "false"), ("x=500", "true"), ("x=500", "false")].iter().enumerate()
        {
            let name = format!("edge-{}", number + 1);
            let token = bench.token(&name, &["--group", "alpha"]);
            bench.ok("edge", &enrol(&format!("{name}-data"), &token, &kgc_at));
            bench.ok("kgc", &["abke", "certify", &name, x, &format!("medic={medic}")]);
            kgc.logged(&format!("attribute grant {} in the registry", number + 1));
        }
        bench.token("leader-1", &["--leads", "alpha"]);
        Self { bench, kgc, kgc_at }
    }

    fn leader(&self, listen: &str, policy: &str) -> Process {
        self.bench.start("leader", &self.serve(listen, policy))
    }

    fn serve<'a>(&'a self, listen: &'a str, policy: &'a str) -> [&'a str; 11] {
        let deployment = "kgc-data/deployment.toml";
        [
            "serve",
            "--kgc",
            &self.kgc_at,
            "--listen",
            listen,
            "--deployment",
            deployment,
            "--token",
            "leader-1.token",
            "--admission",
            policy,
        ]
    }

    fn edge(&self, name: &str, leader: &str, more: &[&str]) -> Process {
        let data = format!("{name}-data");
        let run = ["run", "--json", "-d", &data, "--kgc", &self.kgc_at, "--leader", leader];
        self.bench.start("edge", &[&run, more].concat())
    }
}

/// End of each membership to which an edge was admitted.
fn admitted(edge: &Process) -> Vec<UnixTime> {
    let lines = text(&edge.out);
    let events = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let until = |event: Value| parse_time(event["until"].as_str()?).ok();
    events.filter(|event| event["event"] == "admitted").filter_map(until).collect()
}

#[test]
fn two_of_three_drones_satisfy_the_policy_and_nobody_learns_which() {
    let place = Place::new("300d");
    let bench = &place.bench;
    // A policy that cannot be demanded is refused at the start.
    let starts = |policy| place.serve(ANY, policy);
    bench.refused("leader", &starts("other.policy"), 2, &["other.policy", "for leaders of beta"]);
    bench.refused("leader", &starts("leader-1.token"), 2, &["leader-1.token", "give a signed policy"]);
    let mut leader = place.leader(ANY, "fence.policy");
    let leader_at = leader.address();
    let anonymous = ["--anonymous", "--answers", "3"];
    let mut edges = ["edge-1", "edge-2", "edge-3"].map(|name| place.edge(name, &leader_at, &anonymous));
    edges[0].line("\"admitted\"");
    edges[1].line("\"admitted\"");
    edges[2].line("not admitted: the policy is not satisfied");
    let epoch = bench.served(2, (0, 0));
    let status = bench.leader_status().expect("status");
    assert_eq!((&status["members"], &status["anonymous"]), (&2.into(), &2.into()), "{status}");
    assert_eq!(status["roster"], Value::Array(vec![]), "nobody has a name");
    // They follow, hear and speak, but sign nothing.
    bench.ok("leader", &["rekey"]);
    let epoch = bench.served(2, epoch);
    for name in ["edge-1", "edge-2"] {
        bench.synced(name, epoch);
    }
    let status = bench.edge_status("edge-3").expect("status");
    assert_eq!((&status["synced"], &status["standing"]), (&false.into(), &"refused".into()), "{status}");
    assert_eq!(status["reason"], "not admitted: the policy is not satisfied", "{status}");
    bench.ok("edge", &["send", "-d", "edge-1-data", "--unsigned", "hello without a name"]);
    let line = edges[1].line("hello without a name");
    assert_eq!(serde_json::from_str::<Value>(&line).expect("json")["signed"], false, "{line}");
    bench.refused("edge", &["send", "-d", "edge-1-data", "signed"], 3, &["no key to sign with"]);
    assert!(!text(&edges[2].out).contains("hello without a name"));
    // A leader that is killed has forgotten them; they show it again.
    leader.kill();
    leader = place.leader(socket_of(&leader_at), "fence.policy");
    let epoch = bench.served(2, epoch);
    // So does a drone that is killed, as often as its ledger allows: the third answer, and no fourth.
    for again in [true, false] {
        edges[0].kill();
        edges[0] = place.edge("edge-1", &leader_at, &anonymous);
        if again {
            edges[0].line("\"admitted\"");
        }
    }
    edges[0].line("answered 3 times in this period");
    assert!(bench.edge_status("edge-2").expect("status")["synced"] == true && epoch > (0, 0));
    // By name nobody gets in.
    edges[2].kill();
    edges[2] = place.edge("edge-3", &leader_at, &[]);
    edges[2].line("admits by policy only");
    let logs = bench.all_logs();
    let of_leaders = logs.iter().filter(|(path, _)| path.to_string_lossy().contains("leader"));
    for (path, log) in of_leaders {
        let log = String::from_utf8_lossy(log);
        for name in ["edge-1", "edge-2"] {
            assert!(!log.contains(name), "{name} in {}", path.display());
        }
    }
    assert_eq!(edges[1].terminate().code(), Some(0));
    assert_eq!(leader.terminate().code(), Some(0));
}

#[test]
fn revoked_drone_is_out_with_its_period_and_the_other_comes_back_in_every_one() {
    const PERIOD: u64 = 20;
    let place = Place::new("20s");
    let bench = &place.bench;
    let leader = place.leader(ANY, "fence.policy");
    let leader_at = leader.address();
    let edges = ["edge-1", "edge-2"].map(|name| place.edge(name, &leader_at, &["--anonymous"]));
    for edge in &edges {
        edge.line("\"admitted\"");
    }
    bench.ok("kgc", &["abke", "revoke", "edge-1"]);
    place.kgc.logged("withdrawn in the registry");
    #[expect(clippy::disallowed_methods, reason = "the periods of real processes are of real time")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let end = (now / PERIOD + 1) * PERIOD;
    eventually("the other drone is in after that period", || {
        admitted(&edges[1]).last().filter(|until| **until > end).map(drop)
    });
    assert!(admitted(&edges[0]).iter().all(|until| *until <= end), "{:?} {end}", admitted(&edges[0]));
    eventually("one member", || (bench.leader_status()?["members"] == 1).then_some(()));
    assert!(text(&edges[0].out).contains("\"period over\""));
}

#[test]
fn leader_without_a_policy_tells_an_anonymous_drone_that_it_admits_nobody_so() {
    let place = Place::new("300d");
    let bench = &place.bench;
    let serve = place.serve(ANY, "");
    let leader = bench.start("leader", &serve[..serve.len() - 2]);
    let _edge = place.edge("edge-1", &leader.address(), &["--anonymous"]);
    let status = eventually("it is refused", || {
        bench.edge_status("edge-1").filter(|status| status["standing"] == "refused")
    });
    assert!(status["next"].as_str().is_some_and(|next| next.contains("without --anonymous")), "{status}");
    assert_eq!(bench.leader_status().expect("status")["members"], 0);
}
