//! A running drone, as the tasks beside its machine reach it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{DroneKeypair, RevocationStatement, Ristretto255};
use quiver_machine::{Either, Primary};
use quiver_net::Handle;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, broadcast};
use tokio::task::JoinSet;

use super::feature::{CommandFeature, FeatureRequest, RunningNode, RunningParts};
use super::fetch::{KeyClient, copy};
use super::machine::{Command, DroneMachine, RoleNode};
use super::request::{Answered, DroneRequest, KeyAnswer, KeyRequest, json};
use super::send::Paths;
use super::{Error, Result};
use crate::control::{Call, Server};

/// Interval at which it is checked whether the drone has enrolled.
const LOOK: Duration = Duration::from_millis(200);
/// Answer once the machine has stopped.
pub const ENDING: &str = "the service is ending";

/// A drone's key, once it has enrolled, and its revocation list.
#[derive(Debug)]
pub struct DroneIdentity {
    /// Key of the drone; `None` before it has enrolled.
    pub keypair: Option<DroneKeypair<Ristretto255>>,
    /// The newest revocation list it holds.
    pub revocations: RevocationStatement,
}

impl DroneIdentity {
    /// Copies that of a machine.
    ///
    /// # Errors
    /// [`Error::Keyring`], never for a key of the machine's deployment.
    pub fn of(machine: &impl Primary<Suite = Ristretto255>) -> Result<Self> {
        let keypair = machine.keypair().map(|keypair| copy(machine.deployment(), keypair)).transpose()?;
        Ok(Self { keypair, revocations: machine.revocations().list().clone() })
    }
}

/// A running drone: its machine, and its client at the KGCs. Clones are of the same.
#[derive(Debug)]
pub struct RunningDrone<P: Primary<Suite = Ristretto255>> {
    /// The machine.
    pub machine: Handle<DroneMachine<P>>,
    /// The client.
    pub client: KeyClient,
    /// The ways of its messages.
    pub(super) paths: Paths<P>,
    /// Reasons why something was not sent, from the host.
    pub(super) failures: broadcast::Sender<&'static str>,
    /// One sends at a time, so that a failure belongs to what was just sent.
    pub(super) sending: Arc<Mutex<()>>,
}

impl<P: Primary<Suite = Ristretto255>> Clone for RunningDrone<P> {
    fn clone(&self) -> Self {
        Self {
            machine: self.machine.clone(),
            client: self.client.clone(),
            paths: self.paths,
            failures: self.failures.clone(),
            sending: Arc::clone(&self.sending),
        }
    }
}

impl<P> RunningDrone<P>
where
    P: Primary<Suite = Ristretto255> + Send + Sync + 'static,
    Command<P>: Clone + Send,
{
    /// Makes the running drone. `paths`: the ways of its messages; its host reports over `failures` why
    /// something was not sent.
    pub fn new(
        machine: Handle<DroneMachine<P>>,
        client: KeyClient,
        paths: Paths<P>,
        failures: broadcast::Sender<&'static str>,
    ) -> Self {
        Self { machine, client, paths, failures, sending: Arc::default() }
    }

    /// The drone's current identity.
    ///
    /// # Errors
    /// If the machine has stopped.
    pub async fn identity(&self) -> Result<DroneIdentity> {
        let identity = |machine: &DroneMachine<P>| {
            let node: &RoleNode<P> = machine;
            DroneIdentity::of(&**node)
        };
        self.machine.inspect(identity).await?
    }

    /// Waits until the drone has enrolled; its key.
    pub async fn enrolled(&self) -> DroneKeypair<Ristretto255> {
        loop {
            if let Ok(DroneIdentity { keypair: Some(keypair), .. }) = self.identity().await {
                return keypair;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Gives the machine's parts what they use of the keyring, at the start and after every fetch.
    pub async fn hand_over(&self) {
        match self.client.keys().keyring() {
            Ok(keyring) => {
                for keys in self.client.part_keys(&keyring) {
                    // If the machine has stopped, nobody needs keys.
                    let _ = self.machine.command(Either::Right(keys)).await;
                }
            }
            Err(error) => tracing::error!(%error, "attribute keys"),
        }
    }

    /// Fetches in the background ([`KeyClient::keep_fetched`]). The machine learns of each key, and of each
    /// that is withdrawn, as soon as that is stored.
    pub async fn keep_fetched(self) {
        let keypair = self.enrolled().await;
        let mut changes = self.client.keys().changes();
        let handing_over = async {
            while changes.changed().await.is_ok() {
                self.hand_over().await;
            }
        };
        tokio::select! {
            () = self.client.keep_fetched(&keypair) => self.hand_over().await,
            // Not before there is no keyring any more.
            () = handing_over => {}
        }
    }

    /// Answers subcommands until `tasks` are dropped, as the program of this name; `role` answers what only this role
    /// knows, and the features' parts what those do, for this node.
    ///
    /// # Errors
    /// If the socket cannot be listened on.
    pub fn serve<Q, F>(
        &self,
        tasks: &mut JoinSet<()>,
        (data_dir, name): (&Path, &'static str),
        (node, parts): (Arc<dyn RunningNode>, RunningParts),
        role: impl Fn(Self, Q) -> F + Send + Sync + 'static,
    ) -> Result<Server>
    where
        Q: DeserializeOwned + Send + 'static,
        F: Future<Output = Answered> + Send,
    {
        let (server, mut calls) = Server::start::<DroneRequest<Q>>(data_dir, name)?;
        let (running, role) = (self.clone(), Arc::new(role));
        tasks.spawn(async move {
            while let Some(Call { request, answer }) = calls.recv().await {
                let (running, role) = (running.clone(), Arc::clone(&role));
                let (node, parts) = (Arc::clone(&node), parts.clone());
                tokio::spawn(async move {
                    let answered = match request {
                        DroneRequest::Role(request) => role(running, request).await,
                        DroneRequest::Keys(request) => running.answer(request).await,
                        DroneRequest::Send(request) => running.send_of_feature(request).await,
                        DroneRequest::Part(request) => parts.answer(&*node, &request).await,
                    };
                    // The caller may have stopped waiting.
                    let _ = answer.send(answered);
                });
            }
        });
        Ok(server)
    }

    async fn answer(&self, request: KeyRequest) -> Answered {
        let fetched = request == KeyRequest::Fetch;
        let answer = async { self.client.answer(self.identity().await?, request).await };
        let answer = KeyAnswer::from(answer.await);
        if fetched {
            self.hand_over().await;
        }
        json(&answer)
    }

    /// Sends what a feature makes. That needs no membership, so that it is not asked for.
    async fn send_of_feature(&self, request: FeatureRequest) -> Answered {
        let command = async {
            let feature = self.client.feature(&request.feature)?;
            feature.message(self.client.keys(), self.identity().await?, &request.call)
        };
        let command = command.await.map_err(|error| error.to_string())?;
        self.send_and_report(Either::Right(command)).await
    }
}

impl KeyClient {
    /// Returns true if a drone that is anonymous in its group answers this request, too.
    #[must_use]
    pub fn answers_anonymous(&self, request: &KeyRequest) -> bool {
        match request {
            KeyRequest::Fetch => true,
            KeyRequest::Feature(request) => {
                self.feature(&request.feature).is_ok_and(CommandFeature::answers_anonymous)
            }
        }
    }

    /// Answers a request as the drone of this identity.
    ///
    /// # Errors
    /// Those of what is asked for.
    pub async fn answer(&self, identity: DroneIdentity, request: KeyRequest) -> Result<KeyAnswer> {
        Ok(match request {
            KeyRequest::Fetch => {
                let hint = "run `edge enrol` or `leader serve` first";
                let keypair = identity.keypair.ok_or(Error::NotEnrolled(hint))?;
                KeyAnswer::Fetched(self.fetch(&keypair).await?)
            }
            KeyRequest::Feature(request) => {
                let feature = self.feature(&request.feature)?;
                KeyAnswer::Feature(feature.answer(self, identity, &request.call).await?)
            }
        })
    }
}
