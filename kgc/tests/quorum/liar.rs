//! A KGC that lies: the machine of the real one, with its real transport key and share, in this process,
//! where every signature share is spoilt on its way out. And a look at what a KGC holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quiver_ainq::{Deployment, OperatorPublicKey, QuorumStatement, Ristretto255, Suite};
use quiver_crypto::{Hasher, Secret};
use quiver_enrolment::threshold::EnrolmentMessage;
use quiver_enrolment::{Kgc, KgcCommand, KgcConfig, KgcEvent, KgcRecord, MasterShare};
use quiver_machine::{Input, Machine, Now, Output};
use quiver_message::Message;
use quiver_net::{Driver, Host, HostError, NodeConfig, NodeKey, Transport};
use quiver_quorum::SecretShare;
use quiver_quorum_node::QuorumKeys;
use quiver_service::armour::{self, ArmourKind};
use quiver_service::secrets::Protection;
use quiver_service::state_file::{Owner, Records, StateFile};
use quiver_service_testing::eventually;
use rand::rngs::OsRng;
use rand_core::CryptoRngCore;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::bench::{Bench, KEY};
use crate::drones::Fleet;

type S = Ristretto255;

/// Tags in `quorum.state`.
const KEYS: u8 = 2;
const QUORUM_STATEMENT: u8 = 6;

fn open(bench: &Bench, id: u16, file: &str, owner: &Owner) -> Records {
    let by = Protection::from_key_text(KEY.as_bytes(), "test").expect("key");
    let path = bench.path(&format!("kgc-{id}/{file}"));
    // A copy: the running KGC holds the lock.
    let copy = bench.path(&format!("copy-{id}-{file}"));
    for end in ["", ".lock"] {
        let _ = std::fs::remove_file(format!("{}{end}", copy.display()));
    }
    std::fs::copy(path, &copy).expect("copy");
    StateFile::open(&copy, owner, &by).expect("open").1
}

fn quorum_state(bench: &Bench, id: u16) -> Records {
    let seat = Hasher::new("quiver/1 quorum seat").lp(S::ID.as_bytes()).lp(b"alps").u16(5).u16(3).finish();
    let owner = Owner { role: "kgc-quorum".into(), deployment: "alps".into(), fingerprint: seat };
    open(bench, id, "quorum.state", &owner)
}

/// The shares a KGC has stored: those in force, and no others.
pub(crate) fn keys_in_force(bench: &Bench, id: u16) -> QuorumKeys<S> {
    let records = quorum_state(bench, id);
    let mut keys = records.iter().filter(|record| record[0] == KEYS);
    let found = QuorumKeys::decode(&keys.next().expect("shares")[1..]).expect("shares");
    assert!(keys.next().is_none(), "older shares are still there");
    found
}

/// The KGC's machine, but for what it sends.
struct Forger {
    kgc: Kgc<S>,
    deployment: Deployment<S>,
    lies: Arc<AtomicUsize>,
}

impl Machine for Forger {
    type Command = KgcCommand;
    type Event = KgcEvent;
    type Record = KgcRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, KgcCommand>, rng: &mut dyn CryptoRngCore) {
        self.kgc.handle_input(now, input, rng);
    }

    fn poll_output(&mut self) -> Output<KgcEvent, KgcRecord> {
        let output = self.kgc.poll_output();
        let Output::Transmit { to, payload } = output else { return output };
        let message = Message::<S>::decode(&self.deployment, &payload).ok();
        match message.and_then(|message| message.extension()) {
            Some(Ok(EnrolmentMessage::Share(mut share))) => {
                *share.share.last_mut().expect("a share") ^= 1;
                self.lies.fetch_add(1, Ordering::Relaxed);
                let lie: Message<S> = EnrolmentMessage::Share(share).into();
                Output::Transmit { to, payload: lie.encode(&self.deployment) }
            }
            _ => Output::Transmit { to, payload },
        }
    }
}

struct Forgetful;

impl Host<Forger> for Forgetful {
    fn persist(&mut self, _: &[KgcRecord]) -> Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, _: &Forger, _: KgcEvent) {}
}

/// A KGC that lies, running in place of the real one, until dropped.
pub(crate) struct Liar {
    lies: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Liar {
    pub(crate) fn start(bench: &Bench, id: u16, fleet: &Fleet) -> Self {
        let owner = Owner { role: "kgc-transport".into(), deployment: "any".into(), fingerprint: [0; 32] };
        let seed = open(bench, id, "transport.state", &owner);
        let key = NodeKey::from_seed(seed[0].as_slice().try_into().expect("a seed")).expect("key");
        let mut node = NodeConfig::registry(key, Transport::Tcp, 1000);
        node.listen.push(bench.address(id).parse().expect("address"));
        let lies = Arc::new(AtomicUsize::new(0));
        let kgc = machine(bench, id, fleet);
        let forger = Forger { kgc, deployment: fleet.deployment.clone(), lies: lies.clone() };
        let _inside = fleet.runtime.enter();
        let (driver, _handle) = Driver::new(&node, forger, Forgetful, OsRng).expect("driver");
        let (stop, stopped) = oneshot::channel();
        let task = fleet.runtime.spawn(async move {
            let until = async {
                let _ = stopped.await;
            };
            driver.run(until).await.expect("the liar runs");
        });
        Self { lies, stop: Some(stop), task }
    }

    /// Number of spoilt shares.
    pub(crate) fn lies(&self) -> usize {
        self.lies.load(Ordering::Relaxed)
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        drop(self.stop.take());
        eventually("the liar stops", || self.task.is_finished().then_some(()));
    }
}

fn machine(bench: &Bench, id: u16, fleet: &Fleet) -> Kgc<S> {
    let records = quorum_state(bench, id);
    let find = |tag: u8| &records.iter().find(|record| record[0] == tag).expect("a record")[1..];
    let keys = QuorumKeys::<S>::decode(find(KEYS)).expect("shares");
    let statement = QuorumStatement::decode(find(QUORUM_STATEMENT)).expect("statement");
    let share = SecretShare::decode(&keys.ainq().share().encode()).expect("share");
    let operator =
        armour::read(&bench.path("operator.pub"), ArmourKind::OperatorPublicKey).expect("operator");
    let config = KgcConfig {
        deployment: fleet.deployment.clone(),
        master: MasterShare::new(&fleet.deployment, share, &statement).expect("the real share").into(),
        id,
        operators: vec![OperatorPublicKey::decode(&operator).expect("operator")],
        cookie_key: Secret::random(&mut OsRng),
        revocation_validity: 3600,
    };
    Kgc::new(config, []).expect("machine")
}
