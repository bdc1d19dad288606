//! Runs the memberships that a feature makes in place of those under the drone's name, one after another.
//!
//! Each has a machine, a transport key and connections of its own, and none of them contains this drone's identity. What
//! is answered between two of them needs no machine.

use std::sync::Arc;

use async_trait::async_trait;
use quiver_ainq::{DroneKeypair, Name, RevocationStatement, Ristretto255};
use quiver_group::Edge;
use quiver_machine::Route;
use quiver_net::{Driver, Multiaddr, NodeConfig, NodeKey, Stopped, Transport, group_topic};
use quiver_service::clock;
use quiver_service::control::{Call, Server};
use quiver_service::drone::feature::{
    EnrolledDrone, FeatureEdge, GroupEdge, MembershipEvent, MembershipRunner, Memberships,
};
use quiver_service::drone::fetch::{KeyClient, copy};
use quiver_service::drone::request::{DroneRequest, KeyAnswer, json};
use quiver_service::drone::running::DroneIdentity;
use quiver_service::drone::service::{CALL_TIME, run_until};
use quiver_service::drone::{DroneProgram as _, Error, Result, RunningDrone, with_parts};
use rand::rngs::OsRng;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;

use super::host::{EdgeHost, Keeping};
use super::send_queue::SendQueue;
use super::{EdgeService, FAILURES, PATHS};
use crate::config::Config;
use crate::control::{self, ControlContext, EdgeRequest, EdgeStatusReply};

/// A service that runs one membership after another.
struct ServiceOfMemberships<'a> {
    service: EdgeService<'a>,
    attachment: &'static str,
    group: Name,
    leaders: Vec<Multiaddr>,
    client: KeyClient,
    /// The drone whose machine runs, for control requests.
    running: watch::Sender<Option<RunningDrone<GroupEdge>>>,
}

/// State that requests are answered from.
struct Answering {
    running: watch::Receiver<Option<RunningDrone<GroupEdge>>>,
    context: ControlContext,
    client: KeyClient,
    keypair: Arc<DroneKeypair<Ristretto255>>,
    group: Name,
    setting: &'static str,
    advice: &'static str,
}

impl EdgeService<'_> {
    /// Joins as these memberships do, again and again, until a signal comes.
    pub(super) async fn stay_otherwise(
        self,
        memberships: &dyn Memberships,
        own: &Edge<Ristretto255>,
    ) -> Result<()> {
        let drone = EnrolledDrone {
            deployment: self.drone.deployment.clone(),
            keypair: Arc::new(copy(&self.drone.deployment, own.keypair().ok_or(Error::NoToken)?)?),
            group: self.group(own)?,
            client: self.drone.client(CALL_TIME)?,
            store: self.drone.store.clone(),
            timing: self.config.timing(),
            kem: self.drone.file.kem,
        };
        let running = watch::Sender::new(None);
        let answering = Answering {
            running: running.subscribe(),
            context: ControlContext { history: self.history.clone(), queue: None },
            client: drone.client.clone(),
            keypair: Arc::clone(&drone.keypair),
            group: drone.group.clone(),
            setting: memberships.setting(),
            advice: memberships.advice(),
        };
        let mut runner = ServiceOfMemberships {
            attachment: memberships.attachment(),
            group: drone.group.clone(),
            leaders: self.config.leader_addresses()?,
            client: drone.client.clone(),
            running,
            service: self,
        };
        let data_dir = &runner.service.config.drone.data_dir;
        let (_control, calls) = Server::start(data_dir, Config::NAME)?;
        let waiting = SendQueue::open(&drone.store).len();
        if waiting > 0 {
            tracing::warn!(
                waiting,
                "queued messages are this drone's by name, and wait until it runs without --{}: 24 h at most",
                answering.setting
            );
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(answering.answer(calls));
        memberships.keep(&drone, &mut runner).await
    }
}

#[async_trait(?Send)]
impl MembershipRunner for ServiceOfMemberships<'_> {
    async fn run(&mut self, machine: Box<dyn FeatureEdge>) -> Result<Option<Box<dyn MembershipEvent>>> {
        let service = &mut self.service;
        let machine = with_parts(Config::FEATURES, GroupEdge::Feature(machine));
        // Nothing that settings of features add to a node: it could tell this drone from others.
        let mut node = NodeConfig::spoke(NodeKey::random(&mut OsRng)?, Transport::SERVICE);
        node.dial = self.leaders.iter().map(|address| (Route::Leader, address.clone())).collect();
        node.topic = Some(group_topic(self.group.as_str()));
        node.identify = false;
        let (over, mut ended) = mpsc::channel(1);
        let (failures, _) = broadcast::channel(FAILURES);
        let keeping = Keeping::Attachment { name: self.attachment, over };
        let host = EdgeHost { keeping, failures: failures.clone(), ..service.host() };
        let (driver, handle) = Driver::new(&node, machine, host, OsRng)?;
        let leaders = Some(node.dial.len());
        let monitor = service.monitor(service.config.drone.metrics, handle.clone(), leaders).await?;
        let running = RunningDrone::new(handle, self.client.clone(), PATHS, failures);
        self.running.send_replace(Some(running));
        let (_refused, mut refusals) = mpsc::channel(1);
        let goal = async { ended.recv().await.ok_or(Stopped.into()) };
        let ending = run_until(driver, &mut service.shutdown, &mut refusals, goal).await?;
        self.running.send_replace(None);
        service.history.all_disconnected(clock::unix_now());
        monitor.close().await;
        Ok(ending)
    }

    async fn stopped(&mut self) {
        let signal = self.service.shutdown.requested().await;
        tracing::info!(signal, "stopping");
    }
}

impl Answering {
    /// Answers requests; the machine is another one in each membership.
    async fn answer(self, mut calls: mpsc::Receiver<Call<DroneRequest<EdgeRequest>>>) {
        while let Some(Call { request, answer }) = calls.recv().await {
            let running = self.running.borrow().clone();
            let answered = match (request, running) {
                (DroneRequest::Role(request @ EdgeRequest::Status), running) => {
                    let known = match running {
                        Some(running) => control::answer(running, self.context.clone(), request).await.ok(),
                        None => None,
                    };
                    let idle = || EdgeStatusReply::idle(&self.group, &self.context.history, self.advice);
                    known.map_or_else(|| json(&idle()), Ok)
                }
                (DroneRequest::Role(request), Some(running)) => {
                    control::answer(running, self.context.clone(), request).await
                }
                (DroneRequest::Keys(request), _) if self.client.answers_anonymous(&request) => {
                    let keypair = copy(self.client.keys().deployment(), &self.keypair).ok();
                    let identity = DroneIdentity { keypair, revocations: RevocationStatement::empty() };
                    json(&KeyAnswer::from(self.client.answer(identity, request).await))
                }
                _ => Err(format!("not while this drone runs anonymously (`edge run --{}`)", self.setting)),
            };
            // The caller may have stopped waiting.
            let _ = answer.send(answered);
        }
    }
}
