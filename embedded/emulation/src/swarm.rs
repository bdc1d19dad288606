//! A group whose members are emulated boards: KGC, leader and gateway are real processes.

use quiver_service_testing::Process;
use quiver_service_testing::TestDeployment;
use quiver_service_testing::deployment::ANY;

use crate::board::EmulatedBoard;
use crate::deployment::{GROUP, start_leader};
use crate::wire::End;

/// KGC, leader and boards, everything running.
#[derive(Debug)]
pub struct EmulatedSwarm {
    /// The boards, in the order of their names.
    pub boards: Vec<EmulatedBoard>,
    /// The leader, which is the boards' gateway as well.
    pub leader: Process,
    /// The KGC.
    pub kgc: Process,
    /// Directory of all of them. Last, so that it is removed when all have ended.
    pub deployment: TestDeployment,
}

impl EmulatedSwarm {
    /// Starts everything; the boards know nothing yet. `board` starts the emulator of the board of this name.
    #[must_use]
    pub fn new(names: &[&str], board: impl FnMut(&TestDeployment, &str) -> EmulatedBoard) -> Self {
        Self::within(TestDeployment::new(), names, board)
    }

    /// Makes a swarm, as [`new`](Self::new) does, in a deployment that is partly set up.
    #[must_use]
    pub fn within(
        deployment: TestDeployment,
        names: &[&str],
        mut board: impl FnMut(&TestDeployment, &str) -> EmulatedBoard,
    ) -> Self {
        let kgc = deployment.kgc(ANY);
        let boards: Vec<_> = names.iter().map(|name| board(&deployment, name)).collect();
        let ports: Vec<_> = boards.iter().map(|board| board.wire.port(End::Gateway)).collect();
        let leader = start_leader(&deployment, &kgc, &ports);
        Self { boards, leader, kgc, deployment }
    }

    /// The line that sets up the board of this name: what an operator types at its console.
    #[must_use]
    pub fn provisioning(&self, name: &str) -> String {
        let token = self.deployment.token(name, &["--group", GROUP]);
        let what = ["provision", "--deployment", "kgc-data/deployment.toml", "--token", &token];
        self.deployment.ok("edge", &what).trim().into()
    }

    /// Sets up a board under this name, and waits until it is in step with the group. Returns the line that
    /// was typed to set it up.
    ///
    /// # Panics
    /// If it does not enrol and join.
    pub fn set_up(&mut self, index: usize, name: &str) -> String {
        let line = self.provisioning(name);
        let console = &mut self.boards[index].console;
        console.type_line(&line);
        console.line("provisioned");
        assert_eq!(console.line("enrolled"), format!("enrolled {name}"));
        console.line_that("a key", epoch_in);
        line
    }

    /// A re-key; the epoch after it, once all so many members have acknowledged it.
    #[must_use]
    pub fn rekey(&self, members: u64) -> (u64, u64) {
        let before = self.epoch();
        self.deployment.ok("leader", &["rekey"]);
        self.deployment.served(members, before)
    }

    /// Ends the leader without any warning, and starts it again: it opens another term.
    pub fn restart_leader(&mut self) {
        self.leader.kill();
        let ports: Vec<_> = self.boards.iter().map(|board| board.wire.port(End::Gateway)).collect();
        self.leader = start_leader(&self.deployment, &self.kgc, &ports);
        let _ = self.leader.address();
    }

    /// The leader's epoch: term and counter.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn epoch(&self) -> (u64, u64) {
        let status = self.deployment.leader_status().expect("a leader that answers");
        let number = |name: &str| status[name].as_u64().expect("an epoch");
        (number("term"), number("counter"))
    }
}

/// Term and counter of the epoch whose key this line of a board's console announces.
#[must_use]
pub fn epoch_in(line: &str) -> Option<(u64, u64)> {
    let (term, counter) = line.strip_prefix("key ")?.split(' ').next()?.split_once('.')?;
    Some((term.parse().ok()?, counter.parse().ok()?))
}
