//! Runs an edge drone: first it enrols with the KGCs, then it joins the group.

use quiver_ainq::{IssuedToken, Suite};
use quiver_crypto::Secret;
use quiver_group::{Edge, EdgeConfig};
use quiver_machine::{Either, Route, Snapshot};
use quiver_net::Multiaddr;
use tokio::sync::oneshot;

use super::admission::AnonymousDrone;
use super::drone_name;
use super::features::{EdgeNode, edge_node};
use super::hosts::{Disk, DroneHostFactory};
use super::node::LiveNode;
use super::node_settings::NodeSettings;
use super::swarm::SwarmRequest;
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// An edge drone.
#[derive(Debug)]
pub(crate) struct Drone<S: Suite> {
    index: u32,
    /// Handed to the machine that enrols.
    token: Option<IssuedToken<S>>,
    /// State that the machine persisted.
    disk: Disk<Option<Snapshot>>,
    /// Number of its starts.
    lives: u32,
    node: Option<LiveNode<EdgeNode<S>>>,
    /// The anonymous drone in the place of that node.
    anonymous: Option<AnonymousDrone<S>>,
}

impl<S: Suite> Drone<S> {
    /// A drone that was given a token and nothing else.
    pub(crate) fn new(index: u32, token: IssuedToken<S>) -> Self {
        Self { index, token: Some(token), disk: Disk::default(), lives: 0, node: None, anonymous: None }
    }

    /// Number of the drone.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Connects to the KGCs, enrols, and hangs up. Its records are all that remains.
    pub(crate) async fn enrol(&mut self, setting: &NodeSettings<S>, kgcs: &[Multiaddr]) -> Result<()> {
        let (enrolled, done) = oneshot::channel();
        let token = self.token.take();
        let dial = kgcs.iter().map(|kgc| (Route::Kgc, kgc.clone())).collect();
        let mut node = self.start(setting, token, dial, Some(enrolled))?;
        done.await.map_err(|_| node.stopped())?;
        node.kill().await;
        Ok(())
    }

    /// Starts from its records and connects to the leaders; a drone that joins anonymously waits for the
    /// request.
    pub(crate) fn connect(&mut self, setting: &NodeSettings<S>, leaders: &[Multiaddr]) -> Result<()> {
        if let Some(admission) = setting.features.admission.as_ref().filter(|it| it.is_for(self.index)) {
            self.anonymous = Some(AnonymousDrone::new(self.index, setting, admission, leaders)?);
            return Ok(());
        }
        let dial = leaders.iter().map(|leader| (Route::Leader, leader.clone()));
        self.node = Some(self.start(setting, None, dial.collect(), None)?);
        Ok(())
    }

    /// The running node.
    pub(crate) fn node(&self) -> Result<&LiveNode<EdgeNode<S>>> {
        self.node.as_ref().ok_or_else(|| SimError::Stopped { who: drone_name(self.index) })
    }

    /// Sends it a request.
    pub(crate) async fn ask(&self, setting: &NodeSettings<S>, request: SwarmRequest) -> Result<()> {
        match &self.anonymous {
            Some(anonymous) if request == SwarmRequest::Join => anonymous.join().await,
            Some(anonymous) => anonymous.command(request.command(setting)?).await,
            None => self.node()?.command(Either::Left(request.command(setting)?)).await,
        }
    }

    /// The key that it can export now.
    pub(crate) async fn export(&self, setting: &NodeSettings<S>) -> Result<Option<Secret<32>>> {
        let name = setting.export.clone();
        let look = move |edge: &EdgeNode<S>| edge.export(&name);
        match &self.anonymous {
            None => self.node()?.inspect(look).await,
            Some(anonymous) => match anonymous.handle() {
                None => Ok(None),
                // It may have ended by now, and its keys with it.
                Some(handle) => Ok(handle.inspect(look).await.ok().flatten()),
            },
        }
    }

    fn start(
        &mut self,
        setting: &NodeSettings<S>,
        token: Option<IssuedToken<S>>,
        dial: Vec<(Route, Multiaddr)>,
        enrolled: Option<oneshot::Sender<()>>,
    ) -> Result<LiveNode<EdgeNode<S>>> {
        let who = drone_name(self.index);
        let config = EdgeConfig {
            deployment: setting.deployment.clone(),
            group: None,
            token,
            kgcs: setting.kgcs.clone(),
            timing: setting.edge_timing,
        };
        let state = self.disk.with(|stored| stored.clone());
        let machine = Edge::new(config, state.as_ref())
            .map_err(|source| SimError::Restore { who: who.clone(), source: Box::new(source) })?;
        let machine = machine.with_kem(setting.kem);
        let host = DroneHostFactory::new(self.index, setting).host(self.disk.clone(), enrolled);
        let life = self.lives;
        self.lives += 1;
        let rng = rng_stream::generator(setting.seed, RngStream::Drone, self.index, life);
        let mut node = setting.spoke(self.index)?;
        node.dial = dial;
        LiveNode::start(who, &node, edge_node(machine), host, rng)
    }
}
