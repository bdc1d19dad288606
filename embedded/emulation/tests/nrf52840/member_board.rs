//! A board that is a member of the leader's group, on its own line to the leader.

use std::path::{Path, PathBuf};

use quiver_emulation::build::image;
use quiver_emulation::deployment::{GROUP, start_leader};
use quiver_emulation::model::{Model, ModelSetup};
use quiver_emulation::wire::End;
use quiver_service_testing::Process;
use quiver_service_testing::TestDeployment;
use quiver_service_testing::deployment::ANY;

/// The drone's name.
pub(crate) const NAME: &str = "board-1";

/// KGC, leader and a board.
pub(crate) struct MemberBoard {
    pub(crate) deployment: TestDeployment,
    pub(crate) kgc: Process,
    pub(crate) leader: Process,
    pub(crate) model: Model,
    pub(crate) setup: ModelSetup,
    image: PathBuf,
    /// The newest epoch that the board is known to hold: term and counter.
    pub(crate) epoch: (u64, u64),
}

/// The image of a drone, as it is flashed onto a development kit.
pub(crate) fn edge() -> PathBuf {
    image("quiver-nrf52840", "edge", "")
}

impl MemberBoard {
    /// A board of this seed that has been set up, has enrolled, and holds the group's key.
    pub(crate) fn new(seed: u64) -> Self {
        Self::with(TestDeployment::new(), &edge(), seed)
    }

    /// The same with another image, in a deployment that something was set up in before.
    pub(crate) fn with(deployment: TestDeployment, image: &Path, seed: u64) -> Self {
        let mut board = Self::blank(deployment, image, seed);
        board.provision();
        board.in_step();
        board
    }

    /// A board as it comes from flashing.
    fn blank(deployment: TestDeployment, image: &Path, seed: u64) -> Self {
        let setup = ModelSetup::new(seed, &deployment.path("board-1.flash"));
        let model = Model::start(&deployment.log(NAME), image, &setup);
        let kgc = deployment.kgc(ANY);
        let leader = start_leader(&deployment, &kgc, &[model.board.wire.port(End::Gateway)]);
        Self { deployment, kgc, leader, model, setup, image: image.into(), epoch: (0, 0) }
    }

    /// Provisions the board with the line that the operator's program prints.
    pub(crate) fn provision(&mut self) {
        let token = self.deployment.token(NAME, &["--group", GROUP]);
        let line = self.deployment.ok("edge", &provision(&token, &[]));
        self.model.board.console.line("unprovisioned");
        self.model.board.console.type_line(line.trim());
    }

    /// Waits until leader and board report that the board holds an epoch after the last known.
    pub(crate) fn in_step(&mut self) {
        self.epoch = self.deployment.served(1, self.epoch);
        let key = format!("key {}.{} ", self.epoch.0, self.epoch.1);
        self.model.board.console.line(&key);
    }

    /// The leader makes a new key, and the board holds it.
    pub(crate) fn follows_a_re_key(&mut self) {
        self.deployment.ok("leader", &["rekey"]);
        self.in_step();
    }

    /// Sends a message from the leader to the board and one back.
    pub(crate) fn exchanges_messages(&mut self, words: &str) {
        let order = format!("order: {words}");
        self.deployment.ok("leader", &["send", "--channel", "orders", &order]);
        self.model.board.console.line(&order);
        let report = format!("report: {words}");
        self.model.board.console.type_line(&format!("send {report}"));
        let heard = self.leader.line(&report);
        assert!(heard.contains(NAME), "signed by the board: {heard}");
    }

    /// The board has started for this reason, with its state, and follows on.
    pub(crate) fn comes_back(&mut self, cause: &str) {
        self.model.board.console.line(&format!("reset {cause}"));
        self.follows_a_re_key();
    }

    /// The model's process ends without any warning, and another begins with the same flash.
    pub(crate) fn kill_and_start(&mut self) {
        self.model.board.emulator.kill();
        self.start_again();
    }

    /// Another process with the same flash; the leader's line stays as it is.
    pub(crate) fn start_again(&mut self) {
        // A chip never draws the same numbers twice: by the first one, the gateway distinguishes this start
        // from the one before.
        self.setup.seed += 1_000;
        self.model.restart(&self.deployment.log(NAME), &self.image, &self.setup);
    }
}

/// The arguments that print what sets a board up.
pub(crate) fn provision<'a>(token: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let args = ["provision", "--deployment", "kgc-data/deployment.toml", "--token", token, "--group", GROUP];
    [&args[..], rest].concat()
}
