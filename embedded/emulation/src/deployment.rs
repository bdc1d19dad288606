//! A deployment whose leader is the gateway of emulated boards.

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment};

/// The group of the leader here.
pub const GROUP: &str = "alpha";

/// The leader of [`GROUP`], running, and the gateway of boards behind these ports.
#[must_use]
pub fn start_leader(deployment: &TestDeployment, kgc: &Process, boards: &[u16]) -> Process {
    let first = !deployment.path("leader-data").exists();
    let token = first.then(|| deployment.token("leader-1", &["--leads", GROUP]));
    let serials: Vec<_> = boards.iter().map(|port| format!("tcp:127.0.0.1:{port}")).collect();
    let rest: Vec<_> = serials.iter().flat_map(|serial| ["--serial", serial]).collect();
    deployment.leader(&kgc.address(), ANY, token.as_deref(), &rest)
}

/// A drone that is a service, of [`GROUP`], running.
#[must_use]
pub fn start_edge(deployment: &TestDeployment, name: &str, kgc: &Process, leader: &Process) -> Process {
    deployment.token(name, &["--group", GROUP]);
    deployment.edge(name, &kgc.address(), &leader.address())
}
