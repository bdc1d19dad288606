//! Two drones by radio, with a dongle as gateway on the leader's line. The three chips have one clock, which
//! falls behind the leader's on a busy host: to the leader it is a slow radio.

use std::path::Path;

use quiver_emulation::build::image;
use quiver_emulation::deployment::{GROUP, start_leader};
use quiver_emulation::model::{Model, ModelSetup};
use quiver_emulation::wire::End;
use quiver_service_testing::TestDeployment;
use quiver_service_testing::deployment::ANY;
use quiver_service_testing::eventually;

use crate::datagrams::by_radio;
use crate::member_board::{edge, provision};

/// Three chips in radio range; the first is the gateway, the others run this image.
fn on_air(deployment: &TestDeployment, edge: &Path) -> [Model; 3] {
    let gateway = image("quiver-nrf52840", "gateway", "");
    let names = ["gateway", "board-1", "board-2"];
    let logs = names.map(|name| deployment.log(name));
    let setups = names.map(|name| {
        let seed = 40 + name.bytes().map(u64::from).sum::<u64>();
        ModelSetup::new(seed, &deployment.path(&format!("{name}.flash")))
    });
    let [one, two, three] = [&*gateway, edge, edge];
    let chips = [(&*logs[0], one, &setups[0]), (&*logs[1], two, &setups[1]), (&*logs[2], three, &setups[2])];
    Model::together(&chips).try_into().expect("as many as there are chips")
}

/// Provisions the board with the line that the operator's program prints.
fn set_up(deployment: &TestDeployment, model: &mut Model, name: &str, place: &str) {
    let token = deployment.token(name, &["--group", GROUP]);
    let line = deployment.ok("edge", &provision(&token, &["--radio", place]));
    model.board.console.line("unprovisioned");
    model.board.console.type_line(line.trim());
    model.board.console.line("provisioned");
}

#[test]
fn two_drones_enrol_join_and_speak_by_radio() {
    let deployment = TestDeployment::new();
    let [mut gateway, mut one, mut two] = on_air(&deployment, &edge());
    let kgc = deployment.kgc(ANY);
    let leader = start_leader(&deployment, &kgc, &[gateway.board.wire.port(End::Gateway)]);
    for (name, place, board) in [("board-1", "5155:1", &mut one), ("board-2", "5155:2", &mut two)] {
        set_up(&deployment, board, name, place);
    }
    let mut epoch = deployment.served(2, (0, 0));
    for _ in 0..3 {
        deployment.ok("leader", &["rekey"]);
        epoch = deployment.served(2, epoch);
        for board in [&mut one, &mut two] {
            board.board.console.line(&format!("key {}.{} ", epoch.0, epoch.1));
        }
    }
    one.board.console.type_line("send all quiet here");
    two.board.console.line("all quiet here");
    assert!(leader.line("all quiet here").contains("board-1"));
    for model in [&mut gateway, &mut one, &mut two] {
        assert!(model.status("frames-sent") > 20 && model.status("frames-received") > 20);
    }
}

#[test]
fn frames_that_get_lost_cost_time_and_nothing_else() {
    let deployment = TestDeployment::new();
    let [mut gateway, mut one, mut two] = on_air(&deployment, &edge());
    for model in [&mut gateway, &mut one, &mut two] {
        model.order("loss 0.1");
    }
    let kgc = deployment.kgc(ANY);
    let _leader = start_leader(&deployment, &kgc, &[gateway.board.wire.port(End::Gateway)]);
    set_up(&deployment, &mut one, "board-1", "5155:1");
    let mut epoch = deployment.served(1, (0, 0));
    for _ in 0..3 {
        deployment.ok("leader", &["rekey"]);
        epoch = deployment.served(1, epoch);
    }
    one.board.console.line(&format!("key {}.{} ", epoch.0, epoch.1));
    assert!(one.status("frames-lost") > 0, "the air was bad");
}

#[test]
fn two_drones_hear_each_others_datagrams_by_radio_and_not_the_evicted_one() {
    let deployment = TestDeployment::new();
    let [mut gateway, mut one, mut two] = on_air(&deployment, &by_radio());
    let kgc = deployment.kgc(ANY);
    let _leader = start_leader(&deployment, &kgc, &[gateway.board.wire.port(End::Gateway)]);
    for (name, place, board) in [("board-1", "5155:1", &mut one), ("board-2", "5155:2", &mut two)] {
        set_up(&deployment, board, name, place);
    }
    let epoch = deployment.served(2, (0, 0));
    for board in [&mut one, &mut two] {
        board.board.console.line(&format!("key {}.{} ", epoch.0, epoch.1));
    }
    one.board.console.type_line("datagram all quiet here");
    let heard = two.board.console.line("all quiet here");
    assert!(heard.starts_with("datagram slot:"), "{heard}");
    two.board.console.type_line("datagram and here");
    one.board.console.line("and here");
    // A sender's key does not fit a frame of radio.
    one.board.console.type_line("datagram-signed by me");
    one.board.console.line("error nothing can be signed");

    deployment.ok("leader", &["evict", "board-2"]);
    two.board.console.line("evicted");
    two.board.console.type_line("datagram still here");
    two.board.console.line("error there is no valid group key");
    let _ = deployment.served(1, epoch);
    one.board.console.type_line("datagram only me");
    one.board.console.line("ok");
    let counters = eventually("it hears, and has no key", || {
        two.board.console.type_line("status");
        let counters = two.board.console.line("datagrams open=false");
        counters.contains(" closed=").then_some(counters)
    });
    assert!(counters.contains(" received=1 "), "{counters}");
    assert!(gateway.status("frames-sent") > 20, "it was the gateway, and no more");
}

#[test]
fn two_drones_have_keys_by_coded_broadcasts_although_frames_get_lost() {
    let deployment = TestDeployment::new();
    let [mut gateway, mut one, mut two] = on_air(&deployment, &by_radio());
    for model in [&mut gateway, &mut one, &mut two] {
        model.order("loss 0.1");
    }
    let kgc = deployment.kgc(ANY);
    let token = deployment.token("leader-1", &["--leads", GROUP]);
    let serial = format!("tcp:127.0.0.1:{}", gateway.board.wire.port(End::Gateway));
    let _leader =
        deployment.leader(&kgc.address(), ANY, Some(&token), &["--serial", &serial, "--strategy", "tree"]);
    for (name, place, board) in [("board-1", "5155:1", &mut one), ("board-2", "5155:2", &mut two)] {
        set_up(&deployment, board, name, place);
    }
    let mut epoch = deployment.served(2, (0, 0));
    for _ in 0..3 {
        deployment.ok("leader", &["rekey"]);
        epoch = deployment.served(2, epoch);
        for board in [&mut one, &mut two] {
            board.board.console.line(&format!("key {}.{} ", epoch.0, epoch.1));
        }
    }
    for model in [&mut one, &mut two] {
        model.board.console.type_line("status");
        let line = model.board.console.line("broadcasts assembled=");
        assert!(!line.contains("assembled=0 "), "{line}");
    }
}
