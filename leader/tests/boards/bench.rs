//! A deployment with a KGC and a leader that is a gateway, both processes of their own.

use std::ops::Deref;

use quiver_ainq::{Deployment, IssuedToken, Ristretto255};
use quiver_service::deployment_file::{DeploymentFile, KemSetting};
use quiver_service::token_file::{self, TokenRole};
use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, eventually};

/// A deployment with a running KGC.
pub(crate) struct Bench {
    deployment: TestDeployment,
    _kgc: Process,
    kgc_at: String,
}

impl Deref for Bench {
    type Target = TestDeployment;

    fn deref(&self) -> &TestDeployment {
        &self.deployment
    }
}

impl Bench {
    /// One operator, one KGC, a token for a leader of `alpha`.
    pub(crate) fn new() -> Self {
        Self::with_kem(KemSetting::MlKem768)
    }

    /// The same in a deployment with this second factor.
    pub(crate) fn with_kem(kem: KemSetting) -> Self {
        let deployment = TestDeployment::new().logging("info,quiver_gateway=debug");
        let path = deployment.path("kgc-data/deployment.toml");
        let file = DeploymentFile::read(&path).expect("read");
        DeploymentFile { kem, ..file }.replace(&path).expect("write");
        deployment.token("leader-1", &["--leads", "alpha"]);
        let kgc = deployment.kgc(ANY);
        Self { kgc_at: kgc.address(), _kgc: kgc, deployment }
    }

    /// A token for a drone that may join `alpha`.
    pub(crate) fn token(&self, name: &str) -> IssuedToken<Ristretto255> {
        let path = self.path(&self.deployment.token(name, &["--group", "alpha"]));
        token_file::read(&path, &self.deployment(), TokenRole::Edge).expect("token")
    }

    fn file(&self) -> DeploymentFile {
        DeploymentFile::read(&self.path("kgc-data/deployment.toml")).expect("read")
    }

    pub(crate) fn kem(&self) -> KemSetting {
        self.file().kem
    }

    pub(crate) fn deployment(&self) -> Deployment<Ristretto255> {
        self.file().pin().expect("pin")
    }

    /// A leader that is a gateway for these lines; waits until it listens.
    pub(crate) fn leader(&self, lines: &[&str]) -> Process {
        self.leader_with(lines, &[])
    }

    /// The same with further options.
    pub(crate) fn leader_with(&self, lines: &[&str], options: &[&str]) -> Process {
        let lines: Vec<_> = lines.iter().flat_map(|line| ["--serial", line]).collect();
        let rest = [&["--json"], options, &lines[..]].concat();
        let leader = self.deployment.leader(&self.kgc_at, ANY, Some("leader-1.token"), &rest);
        leader.address();
        leader
    }

    /// Makes a new epoch.
    pub(crate) fn rekey(&self) {
        self.ok("leader", &["rekey"]);
    }

    /// The leader's epoch and its digest, once all of so many members hold it.
    pub(crate) fn epoch(&self, members: u64) -> ((u64, u64), String) {
        eventually(&format!("{members} members served"), || {
            let status = self.leader_status()?;
            let epoch = (status["term"].as_u64()?, status["counter"].as_u64()?);
            let digest = status["epoch_digest"].as_str()?.to_string();
            (status["acknowledged"] == members).then_some((epoch, digest))
        })
    }
}
