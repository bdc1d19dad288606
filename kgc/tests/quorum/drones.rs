//! Drones in this process that enrol with the quorum over real connections.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use quiver_ainq::{
    Deployment, DroneKeypair, IssuedToken, KgcId, Name, OperatorSecretKey, Ristretto255, Role, TokenGrant,
};
use quiver_enrolment::{EnrolmentTrouble, Kgcs};
use quiver_group::edge::EdgeTiming;
use quiver_group::{Edge, EdgeConfig, EdgeEvent};
use quiver_machine::{Route, Snapshot};
use quiver_net::{Driver, Host, HostError, NodeConfig, NodeKey, Transport};
use quiver_service::clock;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::operator_key;
use quiver_service::secrets::Protection;
use quiver_service_testing::now;
use rand::rngs::OsRng;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::bench::{Bench, KEY};

type S = Ristretto255;

/// Maximum duration of one drone's enrolment.
const PATIENCE: Duration = Duration::from_secs(120);

/// Drones of one deployment.
pub(crate) struct Fleet {
    pub(crate) runtime: Runtime,
    pub(crate) deployment: Deployment<S>,
    file: DeploymentFile,
    operator: OperatorSecretKey<S>,
    serials: Mutex<BTreeMap<String, [u8; 16]>>,
}

/// Result of many enrolments.
pub(crate) struct Report {
    pub(crate) enrolled: usize,
    /// KGCs that drones blame for wrong shares.
    pub(crate) culprits: Vec<KgcId>,
    pub(crate) time: Duration,
}

/// Durations of one enrolment.
pub(crate) struct Figures {
    /// Time from the first message to the KGCs to the key.
    pub(crate) issue: Duration,
    /// Time from the first attempt to connect to the key.
    pub(crate) all: Duration,
}

/// Event of one drone.
enum News {
    Enrolled { begun: Instant, keypair: Box<DroneKeypair<S>> },
    Blames(KgcId),
}

impl Fleet {
    pub(crate) fn new(bench: &Bench) -> Self {
        let file = DeploymentFile::read(&bench.path("kgc-1/deployment.toml")).expect("deployment file");
        let by = || Protection::from_key_text(KEY.as_bytes(), "KEY");
        let secret = operator_key::read(&bench.directory().join("operator.key"), by).expect("operator");
        Self {
            runtime: Runtime::new().expect("runtime"),
            deployment: file.pin().expect("pin"),
            operator: OperatorSecretKey::decode(&secret.key).expect("operator"),
            file,
            serials: Mutex::new(BTreeMap::new()),
        }
    }

    /// The serial of a drone's token, in hex.
    pub(crate) fn serial_of(&self, name: &str) -> String {
        hex::encode(self.serials.lock().expect("lock")[name])
    }

    fn token(&self, name: &str) -> IssuedToken<S> {
        let later = clock::unix_now() + 3600;
        let name = Name::new(name).expect("name");
        let grant = TokenGrant {
            name: name.clone(),
            role: Role::Edge,
            groups: vec![],
            not_after: later,
            expiry: later,
        };
        let token = self.operator.issue(&self.deployment, grant, &mut OsRng).expect("token");
        self.serials.lock().expect("lock").insert(name.to_string(), token.token.statement.id);
        token
    }

    /// Enrols `count` drones, `at_once` of them at a time. `progress` is told how many have their key.
    pub(crate) fn enrol(
        &self,
        prefix: &str,
        count: usize,
        at_once: usize,
        mut progress: impl FnMut(usize),
    ) -> Report {
        let tokens: Vec<_> = (0..count).map(|number| self.token(&format!("{prefix}-{number}"))).collect();
        let started = now();
        let (mut enrolled, mut culprits) = (0, BTreeSet::new());
        self.runtime.block_on(async {
            let mut running = tokio::task::JoinSet::new();
            let mut tokens = tokens.into_iter();
            loop {
                while running.len() < at_once
                    && let Some(token) = tokens.next()
                {
                    running.spawn(enrol_one(self.deployment.clone(), self.file.clone(), token));
                }
                let Some(ended) = running.join_next().await else { break };
                let (_, blamed, _) = ended.expect("a drone's task");
                culprits.extend(blamed);
                enrolled += 1;
                tokio::task::block_in_place(|| progress(enrolled));
            }
        });
        Report { enrolled, culprits: culprits.into_iter().collect(), time: started.elapsed() }
    }

    /// Enrols one drone.
    pub(crate) fn member(&self, name: &str) -> DroneKeypair<S> {
        let token = self.token(name);
        let task = enrol_one(self.deployment.clone(), self.file.clone(), token);
        self.runtime.block_on(task).2
    }

    /// Addresses at which drones reach the KGCs.
    pub(crate) fn kgc_addresses(&self) -> Vec<String> {
        self.file.kgc_addresses()
    }

    /// Enrols one drone and says how long that took.
    pub(crate) fn time_of_one(&self, name: &str) -> Figures {
        let token = self.token(name);
        let task = enrol_one(self.deployment.clone(), self.file.clone(), token);
        self.runtime.block_on(task).0
    }
}

async fn enrol_one(
    deployment: Deployment<S>,
    file: DeploymentFile,
    token: IssuedToken<S>,
) -> (Figures, Vec<KgcId>, DroneKeypair<S>) {
    let name = token.token.statement.name.clone();
    let mut node = NodeConfig::spoke(NodeKey::random(&mut OsRng).expect("key"), Transport::Tcp);
    let kgcs = file.kgc_addresses().into_iter().map(|address| address.parse().expect("address"));
    node.dial = kgcs.map(|address| (Route::Kgc, address)).collect();
    let (news, mut heard) = mpsc::unbounded_channel();
    let timing = EdgeTiming { retry: Duration::from_millis(500), ..EdgeTiming::default() };
    let kgcs = Kgcs::quorum(file.kgc_ids());
    let sink = EventSink { news, calls: 0, begun: None, deployment: deployment.clone() };
    let edge = Edge::new(EdgeConfig { deployment, group: None, token: Some(token), kgcs, timing }, None)
        .expect("edge");
    let started = now();
    let (driver, _handle) = Driver::new(&node, edge, sink, OsRng).expect("driver");
    let (end, ended) = oneshot::channel::<()>();
    let running = tokio::spawn(driver.run(async move {
        // A dropped sender ends it as well.
        let _ = ended.await;
    }));
    let mut blamed = Vec::new();
    let begun = tokio::time::timeout(PATIENCE, async {
        loop {
            match heard.recv().await.expect("the drone runs") {
                News::Enrolled { begun, keypair } => break (begun, *keypair),
                News::Blames(kgc) => blamed.push(kgc),
            }
        }
    });
    let (begun, keypair) = begun.await.unwrap_or_else(|_| panic!("{name} did not enrol in time"));
    let figures = Figures { issue: begun.elapsed(), all: started.elapsed() };
    drop(end);
    running.await.expect("task").expect("driver");
    (figures, blamed, keypair)
}

/// A keypair is not `Clone`, so that nobody copies one without meaning to.
pub(crate) fn copy(deployment: &Deployment<S>, keypair: &DroneKeypair<S>) -> DroneKeypair<S> {
    let secret = keypair.to_bytes();
    DroneKeypair::restore(deployment, keypair.public().clone(), &secret).expect("a copy")
}

/// A drone's host: memory is disk enough.
struct EventSink {
    news: mpsc::UnboundedSender<News>,
    calls: usize,
    begun: Option<Instant>,
    deployment: Deployment<S>,
}

impl Host<Edge<S>> for EventSink {
    fn persist(&mut self, _: &[Snapshot]) -> Result<(), HostError> {
        Ok(())
    }

    /// The first call comes at the start, the second with the first connection.
    fn before_inputs(&mut self) {
        self.calls += 1;
        if self.calls == 2 {
            self.begun = Some(now());
        }
    }

    fn event(&mut self, edge: &Edge<S>, event: EdgeEvent) {
        let news = match event {
            EdgeEvent::Enrolled { .. } => {
                let keypair = copy(&self.deployment, edge.keypair().expect("enrolled"));
                News::Enrolled { begun: self.begun.unwrap_or_else(now), keypair: Box::new(keypair) }
            }
            EdgeEvent::EnrolmentTrouble(EnrolmentTrouble::WrongShare { kgc, .. }) => News::Blames(kgc),
            _ => return,
        };
        // The test may have heard enough.
        let _ = self.news.send(news);
    }
}
