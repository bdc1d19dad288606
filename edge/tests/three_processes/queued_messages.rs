//! Tests that `edge send` says the truth: sent, queued or refused; and that queued messages arrive.

use std::thread::sleep;
use std::time::Duration;

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, eventually, now};
use serde_json::Value;

use crate::copies::copy;
use crate::swarm::{Swarm, socket_of};

fn send(swarm: &Swarm, text: &str) -> Value {
    let answer = swarm.bench.ok("edge", &["send", "-d", "edge-1-data", "--json", text]);
    serde_json::from_str(&answer).expect("json")
}

fn count(process: &Process, text: &str) -> usize {
    std::fs::read_to_string(&process.out).expect("read").matches(text).count()
}

/// Restarts the leader. Queued messages reach the members that are connected, so edge-1 is stopped until edge-2 is.
fn leader_is_back_before_the_sender(swarm: &mut Swarm) {
    swarm.edges[0].signal("STOP");
    swarm.leader = swarm.bench.leader(&swarm.kgc_at, socket_of(&swarm.leader_at), None, &[]);
    eventually("edge-2 is in the leader's epoch", || {
        let (leader, edge) = (swarm.bench.leader_status()?, swarm.bench.edge_status("edge-2")?);
        (edge["synced"] == true && edge["epoch_digest"] == leader["epoch_digest"]).then_some(())
    });
    swarm.edges[0].signal("CONT");
}

#[test]
fn message_to_a_dead_leader_is_queued_and_arrives_after_both_were_killed() {
    let mut swarm = Swarm::new();
    swarm.in_sync((0, 0));
    assert_eq!(send(&swarm, "FIRST-1")["outcome"], "sent");
    swarm.edges[1].line("FIRST-1");
    swarm.leader.kill();
    let answer = swarm.bench.ok("edge", &["send", "-d", "edge-1-data", "LATER-1"]);
    assert!(answer.starts_with("queued: no leader"), "{answer}");
    swarm.edges[0].kill();
    swarm.edges[0] = swarm.bench.edge("edge-1", &swarm.kgc_at, &swarm.leader_at);
    let status = eventually("the edge is back", || swarm.bench.edge_status("edge-1"));
    assert_eq!((&status["queued"], &status["synced"]), (&1.into(), &false.into()), "{status}");
    swarm.edges[0].logged("no connection to the leader at 127.0.0.1:");
    let report = swarm.bench.ok("edge", &["status", "-d", "edge-1-data"]);
    assert!(report.contains("connection refused") && report.contains("queued       1"), "{report}");
    // The queue is bounded.
    let long = "x".repeat(65_536);
    assert_eq!(send(&swarm, &long)["outcome"], "queued");
    swarm.bench.refused("edge", &["send", "-d", "edge-1-data", &long], 3, &["128 KiB", "wait already"]);
    let back = now();
    leader_is_back_before_the_sender(&mut swarm);
    swarm.edges[1].line("LATER-1");
    eventually("nothing waits any more", || {
        swarm.bench.edge_status("edge-1").filter(|status| status["queued"] == 0)
    });
    // An unconfirmed message is sent again after five seconds.
    let (arrived, took) = (count(&swarm.edges[1], "LATER-1"), back.elapsed());
    assert!(arrived == 1 || took > Duration::from_secs(5), "{arrived} times in {took:?}");
    assert_eq!(send(&swarm, "LAST-1")["outcome"], "sent");
    swarm.edges[1].line("LAST-1");
}

#[test]
fn messages_queued_while_a_copy_of_the_drone_runs_are_kept_and_arrive_once_it_has_ended() {
    let mut swarm = Swarm::new();
    let first = swarm.in_sync((0, 0));
    swarm.edges[0].kill();
    copy(&swarm.bench, "edge-1-data", "edge-1-copy-data");
    swarm.edges[0] = swarm.bench.edge("edge-1", &swarm.kgc_at, &swarm.leader_at);
    swarm.in_sync(first);
    swarm.leader.kill();
    let messages = ["KEPT-1", "KEPT-2", "KEPT-3"];
    for message in messages {
        assert_eq!(send(&swarm, message)["outcome"], "queued");
    }
    leader_is_back_before_the_sender(&mut swarm);
    let run =
        ["run", "--json", "-d", "edge-1-copy-data", "--kgc", &swarm.kgc_at, "--leader", &swarm.leader_at];
    let double = swarm.bench.start("edge", &run);
    // Both name the copy, and neither is told to enrol anew.
    for data in ["edge-1-data", "edge-1-copy-data"] {
        eventually("its status names the copy", || {
            let said = swarm.bench.run("edge", &["status", "-d", data]);
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            assert!(!said.contains("fresh token"), "{said}");
            (said.contains("another process runs with a copy") && said.contains("end the copy")).then_some(())
        });
    }
    let during = send(&swarm, "KEPT-4");
    assert_eq!(during["outcome"], "queued", "nobody knows which of the two is heard: {during}");
    assert!(during["reason"].as_str().expect("why").contains("copy"), "{during}");
    double.kill();
    let status = eventually("nothing waits any more", || {
        swarm.bench.edge_status("edge-1").filter(|status| status["queued"] == 0)
    });
    assert_eq!(status["standing"], "member", "{status}");
    for message in messages.iter().chain(&["KEPT-4"]) {
        swarm.edges[1].line(message);
    }
    eventually("it sends at once again", || (send(&swarm, "AT-ONCE-1")["outcome"] == "sent").then_some(()));
    swarm.edges[1].line("AT-ONCE-1");
}

#[test]
fn message_queued_for_one_group_is_not_sent_to_another_and_waits_for_its_own() {
    let mut swarm = Swarm::new();
    let token = swarm.bench.token("edge-3", &["--group", "alpha", "--group", "beta"]);
    let enrolled = ["enrol", "-d", "edge-3-data", "--kgc", &swarm.kgc_at, "--token", &token];
    swarm.bench.ok("edge", &[&enrolled[..], &["--deployment", "kgc-data/deployment.toml"]].concat());
    let leader = swarm.bench.token("leader-b", &["--leads", "beta"]);
    let serve = ["serve", "-d", "leader-b-data", "--kgc", &swarm.kgc_at, "--listen", ANY, "--token", &leader];
    let deployment = ["--deployment", "kgc-data/deployment.toml", "--json"];
    let beta = swarm.bench.start("leader", &[&serve[..], &deployment].concat());
    let beta_at = beta.address();
    let run = |leader: &str, group: &str| {
        swarm
            .bench
            .start("edge", &["run", "--json", "-d", "edge-3-data", "--leader", leader, "--group", group])
    };
    let is_member = |group: &str| {
        eventually("it is a member", || {
            let status = swarm.bench.edge_status("edge-3")?;
            (status["standing"] == "member" && status["group"] == group).then_some(status)
        })
    };
    let send = |text: &str| swarm.bench.ok("edge", &["send", "-d", "edge-3-data", text]);

    let edge = run(&swarm.leader_at, "alpha");
    is_member("alpha");
    swarm.leader.kill();
    eventually("the leader is gone", || send("FOR-ALPHA").starts_with("queued").then_some(()));
    assert_eq!(edge.terminate().code(), Some(0));

    let edge = run(&beta_at, "beta");
    let status = is_member("beta");
    assert!(status["queued"].as_u64() >= Some(1), "{status}");
    let report = swarm.bench.ok("edge", &["status", "-d", "edge-3-data"]);
    assert!(report.contains("of them for alpha, until this drone runs in that group again"), "{report}");
    eventually("it sends at once", || (send("FOR-BETA").trim() == "sent").then_some(()));
    beta.line("FOR-BETA");
    // Longer than a message waits for others to come back.
    sleep(Duration::from_secs(4));
    assert_eq!(count(&beta, "FOR-ALPHA"), 0);
    assert_eq!(edge.terminate().code(), Some(0));

    swarm.leader = swarm.bench.leader(&swarm.kgc_at, socket_of(&swarm.leader_at), None, &[]);
    // Only those receive it who are there, and they come back when they dial next.
    swarm.in_sync((0, 0));
    let _edge = run(&swarm.leader_at, "alpha");
    swarm.edges[1].line("FOR-ALPHA");
}
