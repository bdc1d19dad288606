//! The plan of a run, checked as far as it can be without starting anything.

mod admission;
pub mod quorum;
pub mod relays;

use std::time::Duration;

use clap::ValueEnum;
use quiver_ainq::StrategyKind;
use quiver_kem::KemSetting;
use serde::{Deserialize, Serialize};

use crate::{Result, SimError, virtual_world};

/// The most drones of the live world: each is a full libp2p node.
pub const MAX_DRONES: u32 = 100_000;

/// The most drones over real sockets: one loopback address has about 28,000 ports to dial from.
pub const MAX_SOCKET_DRONES: u32 = 20_000;

/// The most deliveries of group messages: every one is noted with its latency.
pub const MAX_DELIVERIES: u64 = 5_000_000;

/// The most deputies; a leader serves no more.
pub const MAX_DEPUTIES: u32 = 8;

/// The most ranks that host drones.
pub const MAX_WORKERS: u32 = 1024;

/// The most newcomers, in percent of the drones.
pub const MAX_JOIN_PERCENT: f64 = 400.0;

/// World of a run's drones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorldKind {
    /// One libp2p node per drone, in real time
    #[default]
    Live,
    /// An event queue in virtual time, for up to a million drones
    Virtual,
}

impl WorldKind {
    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Virtual => "virtual",
        }
    }
}

/// Network of the drones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportKind {
    /// Channels inside the process, with Yamux on top and without Noise: what never leaves the process needs
    /// no second encryption, which would be half of the network's work.
    #[default]
    Memory,
    /// TCP over loopback.
    Tcp,
    /// QUIC over loopback: `sim` needs to be built with `--features quic`.
    Quic,
}

impl TransportKind {
    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Tcp => "tcp",
            Self::Quic => "quic",
        }
    }
}

/// Parameters of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// World of the drones.
    pub world: WorldKind,
    /// Drones in the group when it is formed.
    pub drones: u32,
    /// Network of the drones.
    pub transport: TransportKind,
    /// Re-key strategy.
    pub strategy: StrategyKind,
    /// Second factor of pairwise secrets.
    pub kem: KemSetting,
    /// Seed of all random choices.
    pub seed: u64,
    /// Validity of a group key. With it the expiry re-key waits for the timer; without it the leader is
    /// commanded to re-key.
    #[serde(serialize_with = "seconds")]
    pub expiry: Option<Duration>,
    /// Percentage of the drones that leave.
    pub leave_percent: f64,
    /// Number of drones that join, in percent of `drones`.
    pub join_percent: f64,
    /// Number of group messages.
    pub messages: u32,
    /// True if vehicles and a ground station exchange MAVLink in the group's datagrams.
    pub mavlink: bool,
    /// True if these datagrams are captured.
    pub capture: bool,
    /// True if envelopes are sealed to drones with certain attributes.
    pub envelopes: bool,
    /// KGCs: one, or a quorum of which any `threshold` issue keys.
    pub kgcs: u16,
    /// Threshold of the KGCs; 1 for a single one.
    pub threshold: u16,
    /// True if an order is sealed to the mission's second phase.
    pub orders: bool,
    /// The policy that anonymous drones have to satisfy; `None` if drones join by name.
    pub admission: Option<String>,
    /// True if the leader is killed and rebuilt. Not if it has deputies: then it is lost for good.
    pub restart_leader: bool,
    /// Number of deputies. With them the run ends with the loss of the leader.
    pub deputies: u32,
    /// Number of relays between the drones and the leader, in the processes that host the drones.
    pub relays: u32,
    /// Number of other ranks, which host the drones; 0 if this process does.
    pub workers: u32,
    /// Host on which KGCs and leaders listen if drones are on other hosts; `None`: as this host's name says.
    pub bind: Option<String>,
    /// Time limit of a step.
    #[serde(serialize_with = "seconds_always")]
    pub timeout: Duration,
    /// Virtual world: the radio between the drones.
    pub radio: Option<String>,
    /// Virtual world: the radio with which drones enrol and join before all change to `radio`.
    pub depot: Option<String>,
    /// Virtual world: whether to compute in a group that hides nothing.
    pub toy: bool,
    /// Virtual world: whether to compute once what many drones check alike.
    pub share_verifications: bool,
    /// Virtual world: whether to hash every step.
    pub digest: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            world: WorldKind::default(),
            drones: 1000,
            transport: TransportKind::default(),
            strategy: StrategyKind::default(),
            kem: KemSetting::None,
            seed: 1,
            expiry: None,
            leave_percent: 1.0,
            join_percent: 10.0,
            messages: 10,
            mavlink: false,
            capture: false,
            envelopes: false,
            kgcs: 1,
            threshold: 1,
            orders: false,
            admission: None,
            restart_leader: true,
            deputies: 0,
            relays: 0,
            workers: 0,
            bind: None,
            timeout: Duration::from_secs(120),
            radio: None,
            depot: None,
            toy: false,
            share_verifications: false,
            digest: false,
        }
    }
}

impl Plan {
    /// Number of drones that leave: rounded up, but at least one stays.
    pub fn leavers(&self) -> u32 {
        share(self.drones, self.leave_percent).min(self.drones.saturating_sub(1))
    }

    /// Number of drones that join later.
    pub fn newcomers(&self) -> u32 {
        share(self.drones, self.join_percent)
    }

    /// Refuses what cannot be done, saying why.
    pub fn check(&self) -> Result<()> {
        if self.world == WorldKind::Virtual {
            return virtual_world::run_plan(self).map(drop);
        }
        let only_virtual = self.toy || self.share_verifications || self.digest;
        if only_virtual || self.radio.is_some() || self.depot.is_some() {
            let only = "--toy, --radio, --depot, --share-verifications and --digest are for --world virtual";
            return Err(SimError::Usage(only.into()));
        }
        self.check_sizes()
            .and_then(|()| self.check_quorum())
            .and_then(|()| self.check_times())
            .and_then(|()| self.check_admission())
            .and_then(|()| self.check_workers())
            .and_then(|()| self.check_relays())
            .map_err(SimError::Usage)
    }

    fn check_sizes(&self) -> Result<(), String> {
        let drones = self.drones;
        if self.transport == TransportKind::Quic && !quiver_net::Transport::Quic.is_built_in() {
            return Err("--transport quic: build sim with it, `cargo run --release --features quic -- --transport quic`".into());
        }
        if drones == 0 {
            return Err("0 drones: there is nothing to simulate, give at least -n 1".into());
        }
        if drones > MAX_DRONES {
            return Err(format!(
                "{drones} drones are too many: the live world runs every drone as a full libp2p node and takes at most {MAX_DRONES}"
            ));
        }
        if !(0.0..=100.0).contains(&self.leave_percent) {
            return Err(format!("{} % of the drones cannot leave: give 0 to 100", self.leave_percent));
        }
        if !(0.0..=MAX_JOIN_PERCENT).contains(&self.join_percent) {
            let percent = self.join_percent;
            return Err(format!(
                "{percent} % newcomers are too many or too few: give 0 to {MAX_JOIN_PERCENT}"
            ));
        }
        if self.deputies > MAX_DEPUTIES {
            return Err(format!("{} deputies are too many: at most {MAX_DEPUTIES}", self.deputies));
        }
        let swarm = drones + self.newcomers();
        // Workers may be on machines of their own, and have other addresses to dial from.
        if self.transport != TransportKind::Memory && self.workers == 0 && swarm > MAX_SOCKET_DRONES {
            return Err(format!(
                "{swarm} drones (newcomers included) are too many for real sockets, which take at most {MAX_SOCKET_DRONES}: one loopback address has about 28000 ports to dial from; use --transport memory"
            ));
        }
        let deliveries = u64::from(self.messages) * u64::from(swarm);
        if deliveries > MAX_DELIVERIES {
            return Err(format!(
                "{} group messages to {swarm} drones are {deliveries} deliveries to record: at most {MAX_DELIVERIES}",
                self.messages
            ));
        }
        Ok(())
    }

    fn check_workers(&self) -> Result<(), String> {
        let workers = self.workers;
        match self.transport {
            _ if workers == 0 => Ok(()),
            _ if workers > MAX_WORKERS => {
                Err(format!("{workers} ranks beside the first are too many: at most {MAX_WORKERS}"))
            }
            TransportKind::Memory => {
                Err("ranks host drones in processes of their own: give --transport tcp or quic".into())
            }
            TransportKind::Tcp | TransportKind::Quic if self.mavlink => {
                Err("--mavlink: vehicles and ground station exchange datagrams over a medium within one process, and are not for ranks"
                    .into())
            }
            TransportKind::Tcp | TransportKind::Quic => Ok(()),
        }
    }

    fn check_times(&self) -> Result<(), String> {
        if self.timeout.is_zero() {
            return Err("--timeout: give a time longer than 0".into());
        }
        match self.expiry {
            Some(expiry) if expiry < Duration::from_secs(1) => {
                Err("--expiry: a group key is valid for at least 1s".into())
            }
            Some(expiry) if expiry > self.timeout => Err(format!(
                "--expiry {} s is longer than --timeout {} s: the run would give up before the key expires",
                expiry.as_secs(),
                self.timeout.as_secs()
            )),
            _ => Ok(()),
        }
    }
}

/// `percent` of `whole`, rounded up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the checked ranges keep it between 0 and 4 × 100,000"
)]
fn share(whole: u32, percent: f64) -> u32 {
    (f64::from(whole) * percent.max(0.0) / 100.0).ceil() as u32
}

#[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
fn seconds<S: serde::Serializer>(duration: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
    duration.map(|d| d.as_secs_f64()).serialize(out)
}

fn seconds_always<S: serde::Serializer>(duration: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(plan: &Plan) -> String {
        plan.check().unwrap_err().to_string()
    }

    fn fence() -> Option<String> {
        Some(quiver_world::admission::FENCE.into())
    }

    #[test]
    fn refusal_of_a_policy_says_where_it_is_wrong_and_what_there_is() {
        let text = refusal(&Plan { admission: Some("x < 1 and z > 2".into()), ..Plan::default() });
        assert!(text.contains("z") && text.contains("battery: u7"), "{text}");
        Plan { admission: fence(), ..Plan::default() }.check().unwrap();
    }

    #[test]
    fn default_plan_is_a_thousand_drones_over_memory() {
        let plan = Plan::default();
        plan.check().unwrap();
        assert_eq!((plan.drones, plan.leavers(), plan.newcomers()), (1000, 10, 100));
    }

    #[test]
    fn at_least_one_drone_stays_when_others_leave() {
        let plan = |drones| Plan { drones, leave_percent: 100.0, ..Plan::default() };
        assert_eq!(plan(1).leavers(), 0);
        assert_eq!(plan(5).leavers(), 4);
    }

    #[test]
    fn shares_are_rounded_up() {
        let plan = Plan { drones: 20, ..Plan::default() };
        assert_eq!((plan.leavers(), plan.newcomers()), (1, 2));
        let nobody = Plan { drones: 20, leave_percent: 0.0, join_percent: 0.0, ..Plan::default() };
        assert_eq!((nobody.leavers(), nobody.newcomers()), (0, 0));
    }

    #[test]
    fn no_drones_and_too_many_drones_are_refused() {
        assert!(refusal(&Plan { drones: 0, ..Plan::default() }).contains("at least -n 1"));
        assert!(refusal(&Plan { drones: 100_001, ..Plan::default() }).contains("at most 100000"));
        let sockets = Plan { drones: 20_000, transport: TransportKind::Tcp, ..Plan::default() };
        assert!(refusal(&sockets).contains("--transport memory"));
    }

    #[test]
    fn ranks_host_drones_with_every_option_but_mavlink() {
        let spread = Plan { drones: 20, workers: 2, transport: TransportKind::Tcp, ..Plan::default() };
        let refused = refusal(&Plan { mavlink: true, ..spread.clone() });
        assert!(refused.contains("--mavlink") && refused.contains("ranks"), "{refused}");
        for plan in
            [Plan { envelopes: true, orders: true, ..spread.clone() }, Plan { admission: fence(), ..spread }]
        {
            assert!(plan.check().is_ok(), "{plan:?}");
        }
    }

    #[test]
    fn relays_go_with_ranks_and_not_with_deputies_or_anonymous_drones() {
        let relayed = Plan { relays: 4, ..Plan::default() };
        let spread = Plan { workers: 4, transport: TransportKind::Tcp, ..relayed.clone() };
        assert!(relayed.check().is_ok() && spread.check().is_ok());
        assert!(refusal(&Plan { workers: 5, ..spread }).contains("4 relays for 5 ranks"));
        assert!(refusal(&Plan { deputies: 1, ..relayed.clone() }).contains("--deputies"));
        assert!(refusal(&Plan { admission: fence(), ..relayed.clone() }).contains("--admission"));
        assert!(refusal(&Plan { relays: 1025, ..relayed }).contains("at most 1024"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for plan in [
            Plan { leave_percent: 101.0, ..Plan::default() },
            Plan { leave_percent: f64::NAN, ..Plan::default() },
            Plan { join_percent: -1.0, ..Plan::default() },
            Plan { messages: 5_000, ..Plan::default() },
            Plan { deputies: 9, ..Plan::default() },
            Plan { kgcs: 5, threshold: 2, ..Plan::default() },
            Plan { kgcs: 2, threshold: 1, ..Plan::default() },
            Plan { kgcs: 1, threshold: 3, ..Plan::default() },
            Plan { kgcs: 65, threshold: 33, ..Plan::default() },
            Plan { timeout: Duration::ZERO, ..Plan::default() },
            Plan { workers: 2, ..Plan::default() },
            Plan { workers: 2000, transport: TransportKind::Tcp, ..Plan::default() },
            Plan { drones: 10_001, admission: fence(), ..Plan::default() },
            Plan { admission: Some("x < 1 and z > 2".into()), ..Plan::default() },
            Plan { admission: Some("x < x".into()), ..Plan::default() },
            Plan { expiry: Some(Duration::from_secs(600)), ..Plan::default() },
            Plan { expiry: Some(Duration::from_millis(10)), ..Plan::default() },
        ] {
            assert!(matches!(plan.check(), Err(SimError::Usage(_))), "{plan:?}");
        }
    }
}
