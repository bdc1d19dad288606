//! The configuration: defaults ← `--config FILE` ← `QUIVER_EDGE_…` ← flags.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quiver_ainq::Name;
use quiver_net::Multiaddr;
use quiver_role::attributes::FetchTiming;
use quiver_role::edge::EdgeTiming;
use quiver_service::arguments::{CommonArgs, MetricsArgs};
use quiver_service::config::{layers, parse_all};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::drone::fetch::FetchPlan;
use quiver_service::logging::LogFormat;
use serde::{Deserialize, Serialize};

use crate::cli::{EnrollArgs, RunArgs};
use crate::error::{Error, Result};

/// Prefix of the environment variables: `QUIVER_EDGE_DATA_DIR`, `QUIVER_EDGE_LEADER`, …
pub(crate) const VARIABLES: &str = "QUIVER_EDGE_";

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
    /// Addresses of the group's leaders.
    #[serde(deserialize_with = "quiver_service::config::list")]
    pub(crate) leader: Vec<String>,
    /// The token to enrol with.
    pub(crate) token: Option<PathBuf>,
    /// Where to take one from.
    pub(crate) token_dir: Option<PathBuf>,
    /// The group to join.
    pub(crate) group: Option<String>,
    /// Whether to fetch attribute keys at the start.
    pub(crate) attributes: bool,
    /// Whether to join without a name.
    pub(crate) anonymous: bool,
    /// Who certified the fields to be shown.
    pub(crate) authority: Option<String>,
    /// How often one leader's demand is answered in a period.
    pub(crate) answers: u32,
    /// How long enrolling may take.
    #[serde(with = "quiver_service::duration")]
    pub(crate) enrol_timeout: Duration,
    /// How long to wait for an answer before the first retry.
    #[serde(with = "quiver_service::duration")]
    pub(crate) retry: Duration,
    /// The longest wait between retries.
    #[serde(with = "quiver_service::duration")]
    pub(crate) retry_max: Duration,
    /// How long to wait to be admitted.
    #[serde(with = "quiver_service::duration")]
    pub(crate) admission: Duration,
    /// How long the former key still receives after a re-key that removed nobody.
    #[serde(with = "quiver_service::duration")]
    pub(crate) overlap: Duration,
    /// Whether to join nobody under a revocation list that is past its next update.
    pub(crate) refuse_stale_revocations: bool,
}

impl Default for Config {
    fn default() -> Self {
        let timing = EdgeTiming::default();
        Self {
            data_dir: "edge-data".into(),
            log_format: LogFormat::Text,
            otlp: None,
            metrics: None,
            deployment: None,
            kgc: Vec::new(),
            leader: Vec::new(),
            token: None,
            token_dir: None,
            group: None,
            attributes: false,
            anonymous: false,
            authority: None,
            answers: 8,
            enrol_timeout: Duration::from_secs(60),
            retry: timing.retry,
            retry_max: timing.retry_max,
            admission: timing.admission,
            overlap: timing.overlap,
            refuse_stale_revocations: false,
        }
    }
}

/// What was given on the command line.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Given<'a> {
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
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    leader: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_dir: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    attributes: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    anonymous: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    authority: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", with = "humantime_serde::option")]
    enrol_timeout: Option<Duration>,
}

impl<'a> Given<'a> {
    /// What every subcommand takes.
    pub(crate) fn common(common: &'a CommonArgs) -> Self {
        Self {
            data_dir: common.data_dir.as_deref(),
            log_format: common.log_format,
            otlp: common.otlp.as_deref(),
            ..Self::default()
        }
    }

    /// What enrolling takes.
    pub(crate) fn enrolling(self, args: &'a EnrollArgs) -> Self {
        Self {
            deployment: args.deployment.as_deref(),
            kgc: &args.kgc,
            token: args.token.as_deref(),
            token_dir: args.token_dir.as_deref(),
            enrol_timeout: args.enrol_timeout,
            ..self
        }
    }

    /// What running takes.
    pub(crate) fn running(self, args: &'a RunArgs) -> Self {
        let group = args.group.as_ref().map(Name::as_str);
        let given = self.enrolling(&args.enrolling).monitoring(&args.metrics);
        let authority = args.authority.as_ref().map(Name::as_str);
        let (anonymous, answers) = (args.anonymous, args.answers);
        Self {
            leader: &args.leader,
            group,
            attributes: args.attributes,
            anonymous,
            authority,
            answers,
            ..given
        }
    }

    /// Where metrics and health are.
    pub(crate) fn monitoring(self, args: &MetricsArgs) -> Self {
        Self { metrics: args.metrics, ..self }
    }

    /// What fetching attribute keys, or keys of conditions, takes.
    pub(crate) fn fetching(self, kgc: &'a [String]) -> Self {
        Self { kgc, ..self }
    }
}

impl Config {
    /// Reads all layers.
    pub(crate) fn read(common: &CommonArgs, given: &Given<'_>) -> Result<Self> {
        Ok(layers(common.config.as_deref(), VARIABLES, given)?)
    }

    /// The deployment file: the one given, or the copy made at the first start.
    pub(crate) fn read_deployment(&self) -> Result<DeploymentFile> {
        Ok(DeploymentFile::given_or_kept(self.deployment.as_deref(), &self.data_dir)?)
    }

    /// When things happen.
    pub(crate) fn timing(&self) -> EdgeTiming {
        EdgeTiming {
            retry: self.retry,
            retry_max: self.retry_max,
            admission: self.admission,
            overlap: self.overlap,
            ..EdgeTiming::default()
        }
    }

    /// Addresses of KGCs.
    pub(crate) fn kgc_addresses(&self, file: &DeploymentFile) -> Result<Vec<Multiaddr>> {
        let texts = if self.kgc.is_empty() { file.kgc_addresses() } else { self.kgc.clone() };
        if texts.is_empty() {
            return Err(Error::Config("no address of a KGC: give --kgc MULTIADDR".into()));
        }
        Ok(parse_all("kgc", &texts)?)
    }

    /// How attribute keys are fetched. Without an address of a KGC a fetch says so.
    pub(crate) fn fetching(&self, file: &DeploymentFile, patience: Duration) -> Result<FetchPlan> {
        let texts = if self.kgc.is_empty() { file.kgc_addresses() } else { self.kgc.clone() };
        let timing = FetchTiming { retry: self.retry, retry_max: self.retry_max };
        Ok(FetchPlan { kgcs: parse_all("kgc", &texts)?, timing, patience })
    }

    /// Addresses of leaders.
    pub(crate) fn leader_addresses(&self) -> Result<Vec<Multiaddr>> {
        if self.leader.is_empty() {
            return Err(Error::Config("no address of a leader: give --leader MULTIADDR".into()));
        }
        Ok(parse_all("leader", &self.leader)?)
    }
}
