//! Creates a deployment and its tokens, and starts leaders from their records.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use quiver_admission::{AdmittingLeader, AdmittingLeaderCommand};
use quiver_ainq::{
    Deployment, IssuedToken, Name, OperatorPublicKey, OperatorSecretKey, Role, StrategyKind, Suite,
    TokenGrant, UnixTime,
};
use quiver_enrolment::Kgcs;
use quiver_envelope::Envelopes;
use quiver_group::leader::LeaderTiming;
use quiver_group::{Leader, LeaderConfig, LeaderRecord};
use quiver_machine::{Either, Route};
use quiver_net::Multiaddr;
use quiver_quorum::QuorumSuite;
use quiver_quorum_node::Ibe;
use quiver_relay::RelayLimits;
use quiver_report::Progress;
use quiver_world::Generated;
use quiver_world::master_key::{MasterKey, Single};

use super::LiveLeaderNode;
use super::admission::{Admission, refused, unix_time};
use super::event_log::EventLog;
use super::hosts::{Disk, LeaderHost};
use super::key_generation;
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

/// A new deployment: the KGCs' keys, and an operator that issues tokens.
pub(crate) struct Founder<S: Suite> {
    pub(crate) deployment: Deployment<S>,
    pub(crate) master_key: Box<dyn MasterKey<S>>,
    /// The key of conditions, if several KGCs made it.
    pub(crate) release: Option<Generated<Ibe>>,
    /// Time that the KGCs took to make their keys.
    pub(crate) generation: Option<Duration>,
    operator: OperatorSecretKey<S>,
    rng: rand_chacha::ChaCha20Rng,
}

impl<S: Suite> Founder<S> {
    pub(crate) async fn new(plan: &Plan, progress: &Progress) -> Result<Self>
    where
        S: QuorumSuite,
    {
        let mut rng = rng_stream::generator(plan.seed, RngStream::Operator, 0, 0);
        let called = name("simulation")?;
        let (master_key, release, generation): (Box<dyn MasterKey<S>>, _, _) = match plan.quorum() {
            None => (Box::new(Single::found::<S>(&mut rng)), None, None),
            Some(parameters) => {
                let keys = key_generation::generate::<S>(plan, progress, called.clone(), parameters).await?;
                (Box::new(keys.master_key), Some(keys.release), Some(keys.took))
            }
        };
        let deployment = Deployment::new(called, master_key.public());
        let operator = OperatorSecretKey::generate(&mut rng);
        Ok(Self { deployment, master_key, release, generation, operator, rng })
    }

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
        let mut machine = AdmittingLeader::from(machine.with_kem(setting.kem));
        if let Some(admission) = &setting.admission {
            machine = machine.demanding(admission.checkpoint.demand(), unix_time()).map_err(refused)?;
        }
        let host = LeaderHost {
            event_log: self.event_log.clone(),
            disk: self.disk.clone(),
            export: setting.export.clone(),
            probe: CpuProbe::new(self.meter.clone()),
            admission: setting.admission.clone(),
        };
        let rng = rng_stream::generator(setting.seed, RngStream::Leader, self.ordinal, self.lives);
        self.lives += 1;
        let node = setting.hub(self.ordinal, listen, self.dial.clone(), self.max_members)?;
        let machine = quiver_machine::Node::new(machine, Envelopes::default());
        let relays = RelayLimits { resend: setting.relay_timing.resend, ..RelayLimits::default() };
        let machine = LiveLeaderNode::new(machine, relays);
        let node = LiveNode::start("leader".into(), &node, machine, host, rng)?;
        if let Some(Admission { checkpoint, period, .. }) = setting.admission.as_deref() {
            let keys = checkpoint.slot_keys(*period).map_err(refused)?;
            node.command(Either::Left(AdmittingLeaderCommand::SlotKeys(keys))).await?;
        }
        Ok(node)
    }
}
