//! The configuration: defaults ← `--config FILE` ← `QUIVER_LEADER_…` ← flags.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quiver_ainq::{Serial, StrategyKind};
use quiver_gateway::LineAddress;
use quiver_role::attributes::FetchTiming;
use quiver_role::leader::LeaderTiming;
use quiver_service::arguments::CommonArgs;
use quiver_service::config::{layers, parse_all};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::drone::fetch::FetchPlan;
use quiver_service::logging::LogFormat;
use serde::{Deserialize, Serialize};

use crate::cli::ServeArgs;
use crate::error::{Error, Result};

/// Prefix of the environment variables: `QUIVER_LEADER_DATA_DIR`, `QUIVER_LEADER_LISTEN`, …
pub(crate) const VARIABLES: &str = "QUIVER_LEADER_";

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Where everything is.
    pub(crate) data_dir: PathBuf,
    /// How log lines look.
    pub(crate) log_format: LogFormat,
    /// Collector of what a running service does about each request.
    pub(crate) otlp: Option<String>,
    /// Where to serve metrics and health.
    pub(crate) metrics: Option<SocketAddr>,
    /// The public deployment file; after the first start the copy in the data directory.
    pub(crate) deployment: Option<PathBuf>,
    /// Addresses of KGCs, in place of those in the deployment file.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) kgc: Vec<String>,
    /// Whether to fetch attribute keys at the start.
    pub(crate) attributes: bool,
    /// The policy to demand of whoever wants in.
    pub(crate) admission: Option<PathBuf>,
    /// Where to listen, as multiaddresses.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) listen: Vec<String>,
    /// The token to enrol with.
    pub(crate) token: Option<PathBuf>,
    /// Drones that may join although their identity does not list the group: serials, in hexadecimal.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) allow: Vec<String>,
    /// The most members.
    pub(crate) max_members: u32,
    /// How group keys travel.
    pub(crate) strategy: StrategyKind,
    /// How long a group key is valid.
    #[serde(with = "quiver_service::duration")]
    pub(crate) validity: Duration,
    /// How long the first join waits for company.
    #[serde(with = "quiver_service::duration")]
    pub(crate) batching: Duration,
    /// How long it waits at most.
    #[serde(with = "quiver_service::duration")]
    pub(crate) batching_max: Duration,
    /// How long to wait for acknowledgements before sending an epoch again.
    #[serde(with = "quiver_service::duration")]
    pub(crate) resend: Duration,
    /// For how long a challenge admits who asks to join.
    #[serde(with = "quiver_service::duration")]
    pub(crate) challenge: Duration,
    /// How long a member is kept that was never heard in a term.
    #[serde(with = "quiver_service::duration")]
    pub(crate) absence: Duration,
    /// Whether nobody is let in by name while the revocation list is past its next update.
    pub(crate) refuse_stale_revocations: bool,
    /// Addresses of the group's other leaders.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) peer: Vec<String>,
    /// How long the leader may be silent before another takes over. Of no effect without other leaders.
    #[serde(with = "quiver_service::duration")]
    pub(crate) silence: Duration,
    /// Lines with boards for which to be a gateway.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) serial: Vec<String>,
    /// Bits per second on those that are devices.
    pub(crate) baud: u32,
}

impl Default for Config {
    fn default() -> Self {
        let timing = LeaderTiming::default();
        Self {
            data_dir: "leader-data".into(),
            log_format: LogFormat::Text,
            otlp: None,
            metrics: None,
            deployment: None,
            kgc: Vec::new(),
            attributes: false,
            admission: None,
            listen: vec!["/ip4/0.0.0.0/tcp/7001".into()],
            token: None,
            allow: Vec::new(),
            max_members: 4096,
            strategy: StrategyKind::default(),
            validity: timing.validity,
            batching: timing.batching,
            batching_max: timing.batching_max,
            resend: timing.resend,
            challenge: timing.challenge,
            absence: timing.absence,
            refuse_stale_revocations: false,
            peer: Vec::new(),
            silence: Duration::from_secs(10),
            serial: Vec::new(),
            baud: 115_200,
        }
    }
}

/// What was given on the command line.
#[derive(Debug, Default, Serialize)]
struct Given<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_format: Option<LogFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    otlp: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deployment: Option<&'a Path>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    kgc: &'a [String],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    attributes: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    admission: Option<&'a Path>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    listen: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a Path>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    allow: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_members: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<StrategyKind>,
    #[serde(skip_serializing_if = "Option::is_none", with = "humantime_serde::option")]
    validity: Option<Duration>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    peer: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none", with = "humantime_serde::option")]
    silence: Option<Duration>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    serial: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    baud: Option<u32>,
}

impl Config {
    /// Reads all layers. `kgc` and `metrics` are addresses that another subcommand than `serve` was given.
    pub(crate) fn read(
        common: &CommonArgs,
        serve: Option<&ServeArgs>,
        kgc: &[String],
        metrics: Option<SocketAddr>,
    ) -> Result<Self> {
        let none = ServeArgs::default();
        let serve = serve.unwrap_or(&none);
        let given = Given {
            data_dir: common.data_dir.as_deref(),
            log_format: common.log_format,
            otlp: common.otlp.as_deref(),
            metrics: metrics.or(serve.metrics.metrics),
            deployment: serve.deployment.as_deref(),
            kgc: if serve.kgc.is_empty() { kgc } else { &serve.kgc },
            attributes: serve.attributes,
            admission: serve.admission.as_deref(),
            listen: &serve.listen,
            token: serve.token.as_deref(),
            allow: &serve.allow,
            max_members: serve.max_members,
            strategy: serve.strategy,
            validity: serve.validity,
            peer: &serve.peer,
            silence: serve.silence,
            serial: &serve.serial,
            baud: serve.baud,
        };
        let config: Self = layers(common.config.as_deref(), VARIABLES, &given)?;
        if config.validity < Duration::from_secs(5) {
            return Err(Error::Config("`validity` must be at least 5s".into()));
        }
        if !(Duration::from_secs(5)..=LeaderTiming::MAX_CHALLENGE).contains(&config.challenge) {
            return Err(Error::Config("`challenge` must lie between 5s and 1h".into()));
        }
        if config.absence < Duration::from_secs(60) {
            return Err(Error::Config("`absence` must be at least 1m".into()));
        }
        if config.silence < Duration::from_millis(500) {
            return Err(Error::Config("`silence` must be at least 500ms".into()));
        }
        if !(1..=1 << 20).contains(&config.max_members) {
            return Err(Error::Config("`max_members` must lie between 1 and 1048576".into()));
        }
        if !(1200..=4_000_000).contains(&config.baud) {
            return Err(Error::Config("`baud` must lie between 1200 and 4000000".into()));
        }
        config.lines()?;
        Ok(config)
    }

    /// The lines with boards.
    pub(crate) fn lines(&self) -> Result<Vec<LineAddress>> {
        let mut lines = Vec::new();
        for line in parse_all("serial", &self.serial)? {
            if lines.contains(&line) {
                return Err(Error::Config(format!("`serial`: {line} is given twice")));
            }
            lines.push(line);
        }
        Ok(lines)
    }

    /// The deployment file: the one given, or the copy made at the first start.
    pub(crate) fn read_deployment(&self) -> Result<DeploymentFile> {
        Ok(DeploymentFile::given_or_kept(self.deployment.as_deref(), &self.data_dir)?)
    }

    /// How attribute keys are fetched. Without an address of a KGC a fetch says so.
    pub(crate) fn fetching(&self, file: &DeploymentFile, patience: Duration) -> Result<FetchPlan> {
        let kgcs = if self.kgc.is_empty() { file.kgc_addresses() } else { self.kgc.clone() };
        Ok(FetchPlan { kgcs: parse_all("kgc", &kgcs)?, timing: FetchTiming::default(), patience })
    }

    /// When things happen.
    pub(crate) fn timing(&self) -> LeaderTiming {
        LeaderTiming {
            validity: self.validity,
            batching: self.batching,
            batching_max: self.batching_max,
            resend: self.resend,
            challenge: self.challenge,
            absence: self.absence,
            silence: (!self.peer.is_empty()).then_some(self.silence),
        }
    }

    /// The operator's list of drones that may join.
    pub(crate) fn allow_list(&self) -> Result<BTreeSet<Serial>> {
        let serial = |text: &String| {
            let mut serial = [0; 16];
            hex::decode_to_slice(text, &mut serial).map(|()| serial).map_err(|_| {
                Error::Config(format!(
                    "`allow`: {text} is no serial; give the 32 hexadecimal digits that `kgc drone list` shows for the drone"
                ))
            })
        };
        self.allow.iter().map(serial).collect()
    }
}
