//! Creates a deployment and its tokens, and starts leaders from their records.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{
    Deployment, IssuedToken, Name, OperatorPublicKey, OperatorSecretKey, Ristretto255, Role, StrategyKind,
    Suite, TokenGrant, UnixTime,
};
use quiver_enrolment::Kgcs;
use quiver_group::leader::LeaderTiming;
use quiver_group::{Leader, LeaderConfig, LeaderRecord};
use quiver_machine::Route;
use quiver_net::Multiaddr;
use quiver_report::Progress;
use quiver_world::master_key::{MasterKey, SingleMasterKey};

use super::event_log::EventLog;
use super::features::{self, LiveLeaderNode};
use super::hosts::{Disk, LeaderHost};
use super::key_generation::{self, ReleaseKeys};
use super::node::LiveNode;
use super::node_settings::NodeSettings;
use crate::measure::{CpuMeter, CpuProbe};
use crate::plan::Plan;
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// 2100-01-01: far enough, and the same in every run, so that one seed gives the same identities.
const END_OF_TIME: UnixTime = 4_102_444_800;
/// Validity of keys if the run shall not see them expire.
const LONG_VALIDITY: Duration = Duration::from_secs(24 * 3600);

/// Keys with which the KGCs of a deployment begin.
pub(crate) struct FoundedKeys<S: Suite> {
    /// The key that issues.
    pub(crate) master_key: Box<dyn MasterKey<S>>,
    /// The key of conditions, if several KGCs made it.
    pub(crate) release: Option<ReleaseKeys>,
    /// Time that several KGCs took to make their keys.
    pub(crate) took: Option<Duration>,
}

/// A new deployment: the KGCs' keys, and an operator that issues tokens.
pub(crate) struct Founder<S: Suite> {
    pub(crate) deployment: Deployment<S>,
    pub(crate) keys: FoundedKeys<S>,
    operator: OperatorSecretKey<S>,
    rng: rand_chacha::ChaCha20Rng,
}

impl Founder<Ristretto255> {
    /// Founds a deployment whose keys a single KGC makes, or several of them over the network.
    pub(crate) async fn new(plan: &Plan, progress: &Progress) -> Result<Self> {
        let mut rng = rng_stream::generator(plan.seed, RngStream::Operator, 0, 0);
        let called = name("simulation")?;
        let keys = match plan.quorum() {
            None => {
                let master_key = Box::new(SingleMasterKey::found::<Ristretto255>(&mut rng));
                FoundedKeys { master_key, release: None, took: None }
            }
            Some(parameters) => key_generation::generate(plan, progress, called.clone(), parameters).await?,
        };
        let deployment = Deployment::new(called, keys.master_key.public());
        let operator = OperatorSecretKey::generate(&mut rng);
        Ok(Self { deployment, keys, operator, rng })
    }
}

impl<S: Suite> Founder<S> {
    /// Public key of the operator who issues tokens.
    pub(crate) fn operator(&self) -> OperatorPublicKey<S> {
        self.operator.public()
    }

    /// A token for a drone of this name and role that may join these groups.
    pub(crate) fn token(&mut self, drone: &str, role: Role, groups: Vec<Name>) -> Result<IssuedToken<S>> {
        let grant =
            TokenGrant { name: name(drone)?, role, groups, not_after: END_OF_TIME, expiry: END_OF_TIME };
        self.operator
            .issue(&self.deployment, grant, &mut self.rng)
            .map_err(|source| SimError::Protocol { what: "token", source })
    }
}

/// A name that is known to be one.
pub(crate) fn name(text: &str) -> Result<Name> {
    Name::new(text).map_err(|source| SimError::Protocol { what: "name", source })
}

/// A leader that can be killed and started again from its records.
pub(crate) struct RestartableLeader<S: Suite> {
    ordinal: u32,
    token: Option<IssuedToken<S>>,
    disk: Disk<Vec<LeaderRecord>>,
    event_log: Arc<EventLog>,
    meter: CpuMeter,
    lives: u32,
    kgcs: Kgcs<S>,
    /// The KGCs, and the leaders that were there before.
    dial: Vec<(Route, Multiaddr)>,
    max_members: u32,
    validity: Duration,
    strategy: StrategyKind,
}

impl<S: Suite> RestartableLeader<S> {
    pub(crate) fn new(
        (ordinal, token): (u32, IssuedToken<S>),
        (kgcs, dial): (Kgcs<S>, Vec<(Route, Multiaddr)>),
        max_members: u32,
        plan: &Plan,
        (event_log, meter): (Arc<EventLog>, CpuMeter),
    ) -> Self {
        let (token, disk, strategy) = (Some(token), Disk::default(), plan.strategy);
        let validity = plan.expiry.unwrap_or(LONG_VALIDITY);
        Self { ordinal, token, disk, event_log, meter, lives: 0, kgcs, dial, max_members, validity, strategy }
    }

    /// Starts the leader from its records.
    pub(crate) async fn start(
        &mut self,
        setting: &NodeSettings<S>,
        listen: Multiaddr,
    ) -> Result<LiveNode<LiveLeaderNode<S>>> {
        let config = LeaderConfig {
            deployment: setting.deployment.clone(),
            group: setting.group.clone(),
            token: self.token.take(),
            kgcs: self.kgcs.clone(),
            allow: BTreeSet::new(),
            max_members: self.max_members,
            strategy: self.strategy,
            shared_medium: false,
            timing: LeaderTiming { validity: self.validity, ..setting.leader_timing },
        };
        let records = self.disk.with(|records| records.clone());
        let machine = Leader::new(config, records)
            .map_err(|source| SimError::Restore { who: "leader".into(), source: Box::new(source) })?;
        let machine = features::leader_node(machine.with_kem(setting.kem), setting)?;
        let host = LeaderHost {
            event_log: self.event_log.clone(),
            disk: self.disk.clone(),
            export: setting.export.clone(),
            probe: CpuProbe::new(self.meter.clone()),
            features: setting.features.clone(),
        };
        let rng = rng_stream::generator(setting.seed, RngStream::Leader, self.ordinal, self.lives);
        self.lives += 1;
        let node = setting.hub(self.ordinal, listen, self.dial.clone(), self.max_members)?;
        let node = LiveNode::start("leader".into(), &node, machine, host, rng)?;
        features::provision_leader(&node, setting).await?;
        Ok(node)
    }
}
