//! Two drones by radio, with a dongle as gateway on the leader's line. The models' clocks fall behind real time on a busy host, and the
//! leader's do not; then frames come too late, and sessions are lost and begin again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use quiver_emulation::build::image;
use quiver_emulation::deployment::{Deployment, GROUP};
use quiver_emulation::model::{Model, Setup};
use quiver_emulation::wire::End;

use crate::stage::{edge, provision};

/// Radios have to keep step with each other: three chips at a time are enough for a host.
fn alone_on_air() -> MutexGuard<'static, ()> {
    static AIR: Mutex<()> = Mutex::new(());
    AIR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Three chips that hear each other; the first is the gateway.
fn on_air(deployment: &Deployment) -> [Model; 3] {
    let gateway = image("quiver-nrf52840", "gateway", "");
    let edge = edge();
    let mut models = [("gateway", &gateway), ("board-1", &edge), ("board-2", &edge)].map(|(name, image)| {
        let seed = 40 + name.bytes().map(u64::from).sum::<u64>();
        let setup = Setup::new(seed, &deployment.path(&format!("{name}.flash"))).on_air();
        Model::start(&deployment.log(name), image, &setup)
    });
    let [gateway, one, two] = &mut models;
    Model::share_the_air(&mut [gateway, one, two]);
    models
}

#[test]
#[ignore = "three models, leader and KGC must keep step with real time: for a host that does nothing else"]
fn two_drones_enrol_join_and_speak_by_radio() {
    let _alone = alone_on_air();
    let deployment = Deployment::new();
    let [mut gateway, mut one, mut two] = on_air(&deployment);
    let kgc = deployment.kgc();
    let leader = deployment.leader(&kgc, &[gateway.board.wire.port(End::Gateway)]);
    for (name, place, board) in [("board-1", "5155:1", &mut one), ("board-2", "5155:2", &mut two)] {
        let token = deployment.token(name, &["--group", GROUP]);
        let line = deployment.ok("edge", &provision(&token, &["--radio", place]));
        board.board.console.type_line(line.trim());
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
#[ignore = "three models, leader and KGC must keep step with real time: for a host that does nothing else"]
fn frames_that_get_lost_cost_time_and_nothing_else() {
    let _alone = alone_on_air();
    let deployment = Deployment::new();
    let [mut gateway, mut one, mut two] = on_air(&deployment);
    for model in [&mut gateway, &mut one, &mut two] {
        model.order("loss 0.1");
    }
    let kgc = deployment.kgc();
    let _leader = deployment.leader(&kgc, &[gateway.board.wire.port(End::Gateway)]);
    let token = deployment.token("board-1", &["--group", GROUP]);
    let line = deployment.ok("edge", &provision(&token, &["--radio", "5155:1"]));
    one.board.console.type_line(line.trim());
    let mut epoch = deployment.served(1, (0, 0));
    for _ in 0..3 {
        deployment.ok("leader", &["rekey"]);
        epoch = deployment.served(1, epoch);
    }
    one.board.console.line(&format!("key {}.{} ", epoch.0, epoch.1));
    assert!(one.status("frames-lost") > 0, "the air was bad");
}
