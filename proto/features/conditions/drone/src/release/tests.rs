//! Keys of conditions from a quorum over real connections, and what is kept of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quiver_ainq::{Deployment, DroneKeypair, Identity, MasterSecret, Name, Ristretto255, Role, SecretValue};
use quiver_crypto::Secret;
use quiver_delivery::attributes::FetchTiming;
use quiver_delivery::{DeliveryServer, Standalone};
use quiver_ibe::{Condition, Dealing, IdentityPoint};
use quiver_key_release::{
    Audience, DEFAULT_RATE, Holding, Pattern, ReleaseAuthority, ReleaseConfig, ReleaseEvent,
    ReleaseParameters, ReleasePolicy, ShareReleased, ShareReleaser, ShareServer,
};
use quiver_net::{Driver, Handle, Host, HostError, Multiaddr, NodeConfig, NodeKey, Transport};
use quiver_service::drone::Error as DroneError;
use quiver_service::drone::fetch::FetchPlan;
use quiver_service::drone::keys::Keys;
use quiver_service::node_state::{Missing, NodeState};
use quiver_service::secrets::Protection;
use quiver_service::state_file::Owner;
use rand::rngs::OsRng;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::identity_keys::IdentityKeys;
use super::{KeyCall, collection, key_call};
use crate::Error;

type Server = Standalone<Ristretto255, ShareServer<Ristretto255>>;

const PAST: &str = "not-before/2020-01-01T00:00:00Z";
const FUTURE: &str = "not-before/2099-01-01T00:00:00Z";

fn name(text: &str) -> Name {
    Name::new(text).expect("name")
}

fn condition(text: &str) -> Condition {
    text.parse().expect("condition")
}

/// A KGC on loopback.
struct Kgc {
    at: Multiaddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

/// Forgets everything.
struct Forgetful;

impl Host<Server> for Forgetful {
    fn persist(&mut self, _: &[ShareReleased]) -> Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, _: &Server, _: ReleaseEvent) {}
}

impl Kgc {
    async fn start(server: Server) -> Self {
        let key = NodeKey::random(&mut OsRng).expect("key");
        let peer = key.peer_id();
        let mut node = NodeConfig::registry(key, Transport::SERVICE, 16);
        node.listen = vec!["/ip4/127.0.0.1/tcp/0".parse().expect("address")];
        let (driver, handle): (_, Handle<_>) = Driver::new(&node, server, Forgetful, OsRng).expect("driver");
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            let ended = async {
                let _ = stopped.await;
            };
            driver.run(ended).await.expect("runs");
        });
        let at = handle.listening().await.expect("running").swap_remove(0);
        let at = format!("{at}/p2p/{peer}").parse().expect("address");
        Self { at, stop, running }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.running.await.expect("ends");
    }
}

/// Three KGCs of which two make a key, and an enrolled drone with an empty state file.
struct Quorum {
    _directory: TempDir,
    kgcs: Vec<Kgc>,
    keys: IdentityKeys,
    keypair: DroneKeypair<Ristretto255>,
    authority: ReleaseAuthority<Ristretto255>,
}

fn server(deployment: &Deployment<Ristretto255>, holding: Holding<Ristretto255>) -> Server {
    let pattern: Pattern = "not-before".parse().expect("pattern");
    let releaser = ShareReleaser::new(ReleaseConfig {
        holding: Some(holding),
        policies: vec![ReleasePolicy { revision: 1, pattern, audience: Some(Audience::default()) }],
        approvals: vec![],
        rate: DEFAULT_RATE,
    });
    Server::server(deployment.clone(), DeliveryServer::new(Secret::random(&mut OsRng), releaser))
}

fn enrolled(
    master: &MasterSecret<Ristretto255>,
    deployment: &Deployment<Ristretto255>,
) -> DroneKeypair<Ristretto255> {
    let identity = Identity {
        serial: [1; 16],
        name: name("edge-1"),
        role: Role::Edge,
        groups: vec![],
        not_after: 4_000_000_000,
    };
    let value = SecretValue::generate(&mut OsRng);
    let partial = master.issue_partial_key(deployment, &identity, &value.public(), &mut OsRng);
    partial.verify(deployment, &identity, &value).expect("just issued")
}

impl Quorum {
    async fn start() -> Self {
        let master = MasterSecret::<Ristretto255>::generate(&mut OsRng);
        let deployment = Deployment::new(name("alps"), master.public());
        let dealing = Dealing::deal(2, 3, &mut OsRng).expect("two of three");
        let publics = dealing.public_shares().expect("dealt");
        let statement = ReleaseParameters { version: 1, publics }.statement(&deployment, name("ibe"));
        let signed = master.sign_authority(&deployment, statement.expect("short"), &mut OsRng);
        let signed = signed.expect("short enough").encode();
        let authority = ReleaseAuthority::decode(&deployment, &signed).expect("just signed");
        let mut kgcs = Vec::new();
        for share in dealing.shares() {
            let holding = Holding::new(authority.clone(), share.clone()).expect("belong together");
            kgcs.push(Kgc::start(server(&deployment, holding)).await);
        }
        let directory = tempfile::tempdir().expect("tempdir");
        let fingerprint = deployment.fingerprint();
        let owner = Owner { role: "edge".into(), deployment: "alps".into(), fingerprint };
        let by = Protection::from_key_text("02".repeat(32).as_bytes(), "test").expect("key");
        let (state, _) = NodeState::open(directory.path(), &owner, &by, Missing::Create).expect("create");
        let keypair = enrolled(&master, &deployment);
        let keys = IdentityKeys::of(&Keys::new(Arc::new(Mutex::new(state)), deployment));
        Self { _directory: directory, kgcs, keys, keypair, authority }
    }

    fn plan(&self, time_limit: u64) -> FetchPlan {
        let timing = FetchTiming { retry: Duration::from_millis(300), retry_max: Duration::from_secs(2) };
        let kgcs = self.kgcs.iter().map(|kgc| kgc.at.clone()).collect();
        FetchPlan { kgcs, timing, time_limit: Duration::from_secs(time_limit) }
    }

    async fn collect(&self, plan: &FetchPlan, wanted: &str) -> crate::Result<()> {
        let wanted = condition(wanted);
        let collected = collection::key(&self.keys, &self.keypair, plan, &wanted, Duration::ZERO).await;
        let (authority, key) = collected?;
        let key = key.verify(authority.master(), &IdentityPoint::of(&wanted));
        assert!(key.is_ok(), "what is handed out is the key");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_three_make_the_key_and_what_is_kept_needs_nobody() {
    let mut quorum = Quorum::start().await;
    let plan = quorum.plan(60);
    quorum.kgcs.remove(1).stop().await;
    quorum.collect(&plan, PAST).await.expect("two are left");
    assert_eq!(quorum.keys.authority().expect("kept"), Some(quorum.authority.clone()));
    let error = quorum.collect(&plan, FUTURE).await.expect_err("it has not come");
    assert!(matches!(&error, Error::NotReleased(words) if words.contains("opens at ")));
    quorum.kgcs.remove(0).stop().await;
    quorum.collect(&quorum.plan(0), PAST).await.expect("kept");
    let (mut short, mut words) = (plan, String::new());
    // On a busy machine the remaining KGC may take longer to answer.
    for time_limit in [2, 8, 32] {
        short.time_limit = Duration::from_secs(time_limit);
        let error = quorum.collect(&short, "not-before/2021-01-01T00:00:00Z").await;
        words = error.expect_err("one is left").to_string();
        if words.contains("got 1 of 2 required key shares") {
            break;
        }
    }
    assert!(
        words.contains("got 1 of 2 required key shares") && words.contains("not heard until then: KGC 1, 2"),
        "{words}"
    );
    assert_eq!(quorum.keys.conditions().expect("kept"), [condition(PAST)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_answered_with_keys_and_with_reasons() {
    let quorum = Quorum::start().await;
    let (plan, deployment) = (quorum.plan(60), quorum.keys.deployment().clone());
    let ask = |keypair, wanted: &'static str| {
        let (keys, plan) = (&quorum.keys, &plan);
        async move {
            key_call::answer(keys, keypair, plan, &KeyCall::Key { condition: wanted.into(), wait: 0 }).await
        }
    };
    let error = ask(None, PAST).await.expect_err("nobody");
    assert!(matches!(error, Error::Drone(DroneError::NotEnrolled(_))));
    let error = ask(Some(&quorum.keypair), "anything/else").await.expect_err("no condition");
    assert!(matches!(error, Error::Condition(_)));
    let report = ask(Some(&quorum.keypair), PAST).await.expect("collected");
    let authority = report.authority(&deployment).expect("a statement");
    let key = report.key().expect("a key").verify(authority.master(), &IdentityPoint::of(&condition(PAST)));
    assert!(key.is_ok());
    assert!(
        !format!("{report:?}").contains(report.keys[0].key.as_deref().expect("a key")),
        "it is not printed"
    );
    let report = ask(Some(&quorum.keypair), FUTURE).await.expect("answered");
    assert!(matches!(report.key(), Err(Error::NotReleased(_))));
    // Keys that are kept are told to anybody who may use the state file.
    let list = key_call::answer(&quorum.keys, None, &plan, &KeyCall::List).await.expect("listed");
    assert_eq!(list.keys.iter().map(|line| line.condition.as_str()).collect::<Vec<_>>(), [PAST]);
    assert!(list.keys.iter().all(|line| line.key.is_none()));
    key_call::answer(&quorum.keys, None, &plan, &KeyCall::Authority).await.expect("kept");
}
