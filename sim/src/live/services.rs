//! The KGC and the leader.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::{
    Deployment, IssuedToken, KgcId, MasterSecret, Name, OperatorSecretKey, Role, StrategyKind, Suite,
    TokenGrant, UnixTime,
};
use quiver_crypto::Secret;
use quiver_net::Multiaddr;
use quiver_role::leader::LeaderTiming;
use quiver_role::{Kgc, KgcConfig, Kgcs, Leader, LeaderConfig, LeaderRecord, Route};

use super::host::{Disk, KgcHost, LeaderHost};
use super::node::Node;
use super::world::Setting;
use crate::measure::{CpuMeter, CpuProbe};
use crate::plan::Plan;
use crate::seeds::{self, Player};
use crate::{Result, SimError};

/// The one KGC.
pub(crate) const KGC_ID: KgcId = 1;
/// 2100-01-01: far enough, and the same in every run, so that one seed gives the same identities.
const END_OF_TIME: UnixTime = 4_102_444_800;
/// For how long revocation lists count as fresh, in seconds.
const REVOCATION_VALIDITY: u64 = 24 * 3600;
/// For how long a key is valid if the run shall not see it expire.
const LONG_VALIDITY: Duration = Duration::from_secs(24 * 3600);

/// Who founds a deployment: the master secret, and an operator.
pub(crate) struct Founder<S: Suite> {
    pub(crate) deployment: Deployment<S>,
    master: MasterSecret<S>,
    operator: OperatorSecretKey<S>,
    rng: rand_chacha::ChaCha20Rng,
}

impl<S: Suite> Founder<S> {
    pub(crate) fn new(seed: u64) -> Result<Self> {
        let mut rng = seeds::generator(seed, Player::Operator, 0, 0);
        let master = MasterSecret::generate(&mut rng);
        let deployment = Deployment::new(name("simulation")?, master.public());
        let operator = OperatorSecretKey::generate(&mut rng);
        Ok(Self { deployment, master, operator, rng })
    }

    /// A token for a drone of this name and role that may join these groups.
    pub(crate) fn token(&mut self, drone: &str, role: Role, groups: Vec<Name>) -> Result<IssuedToken<S>> {
        let grant =
            TokenGrant { name: name(drone)?, role, groups, not_after: END_OF_TIME, expiry: END_OF_TIME };
        self.operator
            .issue(&self.deployment, grant, &mut self.rng)
            .map_err(|source| SimError::Protocol { what: "token", source })
    }

    /// Starts the KGC.
    pub(crate) fn start_kgc(self, setting: &Setting<S>, meter: CpuMeter) -> Result<Node<Kgc<S>>> {
        let mut rng = seeds::generator(setting.seed, Player::Kgc, 0, 0);
        let config = KgcConfig {
            operators: vec![self.operator.public()],
            deployment: self.deployment,
            master: self.master.into(),
            id: KGC_ID,
            cookie_key: Secret::random(&mut rng),
            revocation_validity: REVOCATION_VALIDITY,
        };
        let machine = Kgc::new(config, [])
            .map_err(|source| SimError::Restore { who: "kgc".into(), source: Box::new(source) })?;
        let host = KgcHost::new(setting.board.clone(), meter);
        Node::start("kgc".into(), &setting.registry()?, machine, host, rng)
    }
}

/// A name that is known to be one.
pub(crate) fn name(text: &str) -> Result<Name> {
    Name::new(text).map_err(|source| SimError::Protocol { what: "name", source })
}

/// All that remains of a leader when its process dies, and how to start it again.
pub(crate) struct LeaderSeat<S: Suite> {
    ordinal: u32,
    token: Option<IssuedToken<S>>,
    disk: Disk<Vec<LeaderRecord>>,
    meter: CpuMeter,
    lives: u32,
    /// The KGC, and the leaders that were there before.
    dial: Vec<(Route, Multiaddr)>,
    max_members: u32,
    validity: Duration,
    strategy: StrategyKind,
}

impl<S: Suite> LeaderSeat<S> {
    pub(crate) fn new(
        (ordinal, token): (u32, IssuedToken<S>),
        dial: Vec<(Route, Multiaddr)>,
        max_members: u32,
        plan: &Plan,
        meter: CpuMeter,
    ) -> Self {
        let (token, disk, strategy) = (Some(token), Disk::default(), plan.strategy.into());
        let validity = plan.expiry.unwrap_or(LONG_VALIDITY);
        Self { ordinal, token, disk, meter, lives: 0, dial, max_members, validity, strategy }
    }

    /// Starts the leader from what its former life persisted.
    pub(crate) fn start(&mut self, setting: &Setting<S>, listen: Multiaddr) -> Result<Node<Leader<S>>> {
        let config = LeaderConfig {
            deployment: setting.deployment.clone(),
            group: setting.group.clone(),
            token: self.token.take(),
            kgcs: Kgcs::single(),
            allow: BTreeSet::new(),
            max_members: self.max_members,
            strategy: self.strategy,
            timing: LeaderTiming { validity: self.validity, ..setting.leader_timing },
        };
        let records = self.disk.with(|records| records.clone());
        let machine = Leader::new(config, records)
            .map_err(|source| SimError::Restore { who: "leader".into(), source: Box::new(source) })?;
        let host = LeaderHost {
            board: setting.board.clone(),
            disk: self.disk.clone(),
            export: setting.export.clone(),
            probe: CpuProbe::new(self.meter.clone()),
        };
        let rng = seeds::generator(setting.seed, Player::Leader, self.ordinal, self.lives);
        self.lives += 1;
        let node = setting.hub(self.ordinal, listen, self.dial.clone(), self.max_members)?;
        Node::start("leader".into(), &node, machine, host, rng)
    }
}
