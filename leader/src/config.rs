//! The settings: defaults ← `--config FILE` ← `QUIVER_LEADER_…` ← flags.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::{IssuedToken, Name, Ristretto255, Serial, StrategyKind};
use quiver_group::leader::LeaderTiming;
use quiver_group::{KEM_LIFETIME, Leader, LeaderConfig};
use quiver_machine::Primary;
use quiver_net::Multiaddr;
use quiver_service::config::Layers;
use quiver_service::drone::addresses::{parse_dialled_addresses, parse_listened_addresses};
use quiver_service::drone::feature::{Features, ServiceParts, settings};
use quiver_service::drone::{DroneProgram, DroneService, DroneSettings, Error, Result};
use quiver_service::state_file::Records;
use serde::{Deserialize, Serialize};

use crate::store;

/// All settings.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Settings of every drone's program.
    pub(crate) drone: DroneSettings,
    /// Settings of a leader.
    pub(crate) leader: LeaderSettings,
    /// Settings of this build's features.
    pub(crate) features: ServiceParts,
}

/// The settings of a leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaderSettings {
    /// Addresses to listen on, as multiaddresses.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) listen: Vec<String>,
    /// Drones that may join although their identity does not list the group: serials, in hexadecimal.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) allow: Vec<String>,
    /// The most members.
    #[serde(deserialize_with = "quiver_service::config::whole::<_, 1, { LeaderSettings::MOST_MEMBERS }>")]
    pub(crate) max_members: u32,
    /// Re-key strategy.
    pub(crate) strategy: StrategyKind,
    /// True if one transmission reaches most members.
    pub(crate) shared_medium: bool,
    /// Validity of a group key.
    #[serde(with = "quiver_service::duration")]
    pub(crate) validity: Duration,
    /// Time for which the first join waits for others, to be admitted in one re-key.
    #[serde(with = "quiver_service::duration")]
    pub(crate) batching: Duration,
    /// Maximum of that time.
    #[serde(with = "quiver_service::duration")]
    pub(crate) batching_max: Duration,
    /// Time to wait for acknowledgements before an epoch is sent again.
    #[serde(with = "quiver_service::duration")]
    pub(crate) resend: Duration,
    /// Lifetime of a challenge for drones that ask to join.
    #[serde(with = "quiver_service::duration")]
    pub(crate) challenge: Duration,
    /// Time for which a member is kept that was never active in a term.
    #[serde(with = "quiver_service::duration")]
    pub(crate) absence: Duration,
    /// Age from which a join renews the second factor of a pair.
    #[serde(with = "quiver_service::duration")]
    pub(crate) kem_lifetime: Duration,
    /// Addresses of the group's other leaders.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) peer: Vec<String>,
    /// Silence of the leader after which another takes over. Of no effect without other leaders.
    #[serde(with = "quiver_service::duration")]
    pub(crate) silence: Duration,
}

impl Default for LeaderSettings {
    fn default() -> Self {
        let timing = LeaderTiming::default();
        Self {
            listen: vec!["/ip4/127.0.0.1/tcp/7001".into()],
            allow: Vec::new(),
            max_members: 4096,
            strategy: StrategyKind::default(),
            shared_medium: false,
            validity: timing.validity,
            batching: timing.batching,
            batching_max: timing.batching_max,
            resend: timing.resend,
            challenge: timing.challenge,
            absence: timing.absence,
            kem_lifetime: KEM_LIFETIME,
            peer: Vec::new(),
            silence: Duration::from_secs(10),
        }
    }
}

impl LeaderSettings {
    /// Maximum of [`max_members`](Self::max_members).
    pub(crate) const MOST_MEMBERS: u32 = 1 << 20;

    fn check(&self) -> Result<()> {
        let (seconds, longest) = (Duration::from_secs, LeaderTiming::MAX_CHALLENGE);
        let rules = [
            (self.validity >= seconds(5), "`validity` must be at least 5s"),
            ((seconds(5)..=longest).contains(&self.challenge), "`challenge` must lie between 5s and 1h"),
            (self.absence >= seconds(60), "`absence` must be at least 1m"),
            (
                (seconds(60)..=KEM_LIFETIME).contains(&self.kem_lifetime),
                "`kem_lifetime` must lie between 1m and 30d",
            ),
            (self.silence >= Duration::from_millis(500), "`silence` must be at least 500ms"),
        ];
        let broken = rules.into_iter().find(|(holds, _)| !holds);
        broken.map_or(Ok(()), |(_, rule)| Err(Error::config(rule)))
    }

    /// The addresses to listen on, and those of the other leaders.
    pub(crate) fn addresses(&self) -> Result<(Vec<Multiaddr>, Vec<Multiaddr>)> {
        Ok((parse_listened_addresses("listen", &self.listen)?, parse_dialled_addresses("peer", &self.peer)?))
    }

    /// The operator's list of drones that may join.
    fn allow_list(&self) -> Result<BTreeSet<Serial>> {
        let serial = |text: &String| {
            let mut serial = [0; 16];
            hex::decode_to_slice(text, &mut serial).map(|()| serial).map_err(|_| {
                Error::config(format!(
                    "`allow`: {text} is not a serial; give the 32 hexadecimal digits that `kgc drone list` shows for the drone"
                ))
            })
        };
        self.allow.iter().map(serial).collect()
    }
}

impl Config {
    /// Takes the settings out of their layers.
    pub(crate) fn read(mut layers: Layers) -> Result<Self> {
        let drone = DroneSettings::read(&mut layers, Self::NAME)?;
        let features = settings(Self::FEATURES, &mut layers)?;
        let config = Self { drone, leader: layers.part(LeaderSettings::default())?, features };
        layers.end()?;
        config.leader.check()?;
        config.features.iter().try_for_each(|feature| feature.check_settings(None))?;
        Ok(config)
    }

    /// Configuration of the machine, for the group that is noted in the state file.
    pub(crate) fn machine(
        &self,
        service: &DroneService<'_, Self>,
        token: Option<IssuedToken<Ristretto255>>,
    ) -> Result<LeaderConfig<Ristretto255>> {
        let leader = &self.leader;
        let group = service.store.group().ok_or(Error::NoToken)?;
        Ok(LeaderConfig {
            deployment: service.deployment.clone(),
            group: Name::new(&group).map_err(|error| Error::config(error.to_string()))?,
            token,
            kgcs: service.kgcs.clone(),
            allow: leader.allow_list()?,
            max_members: leader.max_members,
            strategy: leader.strategy,
            shared_medium: leader.shared_medium,
            timing: LeaderTiming {
                validity: leader.validity,
                batching: leader.batching,
                batching_max: leader.batching_max,
                resend: leader.resend,
                challenge: leader.challenge,
                absence: leader.absence,
                silence: (!leader.peer.is_empty()).then_some(leader.silence),
            },
        })
    }
}

impl DroneProgram for Config {
    const FEATURES: Features = crate::features::FEATURES;
    const NAME: &'static str = "leader";
    const SERVE: &'static str = "serve";

    fn settings(&self) -> &DroneSettings {
        &self.drone
    }

    fn restore(
        &self,
        service: &DroneService<'_, Self>,
        records: Records,
    ) -> Result<impl Primary<Suite = Ristretto255>> {
        let machine = Leader::new(self.machine(service, None)?, store::decode(records))?;
        Ok(machine.with_kem(service.file.kem).with_kem_lifetime(self.leader.kem_lifetime))
    }
}
