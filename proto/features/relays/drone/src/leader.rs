//! Flags of a leader that has relays: their transport identities, each or in a file.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use quiver_net::{NodeConfig, PeerId};
use quiver_service::config::Layers;
use quiver_service::drone::feature::{ServiceFeature, ServicePart, values};
use quiver_service::drone::{Error, Result};
use quiver_service::private_file;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::RelayedLeaderFeature;

/// The longest file of relays: 1,024 identities and more.
const RELAY_FILE_LIMIT: u64 = 64 * 1024;

/// Flags of the service.
#[derive(Args, Debug, Serialize)]
struct RelayFlags {
    /// Identity of a relay that drones of the group may be behind, as `edge relay` prints it (12D3KooW…); may be
    /// repeated. Others are served as drones are
    #[arg(long, value_name = "PEER_ID", help_heading = "Network", hide_short_help = true)]
    relay: Vec<String>,
    /// File of such identities, one a line, as `edge relay-keys --publish` writes it
    #[arg(long, value_name = "FILE", help_heading = "Network", hide_short_help = true)]
    relay_file: Option<PathBuf>,
}

/// Relays that drones may be behind, as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct RelaySettings {
    /// Transport identities.
    #[serde(deserialize_with = "quiver_service::config::list")]
    relay: Vec<String>,
    /// File of further ones.
    relay_file: Option<PathBuf>,
}

/// Reads a relay's identity.
fn identity(text: &str) -> std::result::Result<PeerId, String> {
    text.parse().map_err(|_| {
        format!(
            "{text} is no relay's identity; give what `edge relay` or `edge relay-keys` prints (12D3KooW…)"
        )
    })
}

impl RelaySettings {
    /// The relays that were given one by one.
    fn given(&self) -> Result<Vec<PeerId>> {
        let wrong = |reason: String| Error::config(format!("`relay`: {reason}"));
        self.relay.iter().map(|text| identity(text).map_err(wrong)).collect()
    }

    /// The relays: those given, and those in the file.
    fn relays(&self) -> Result<Vec<PeerId>> {
        let mut relays = self.given()?;
        if let Some(path) = &self.relay_file {
            let content = private_file::read_public(path, RELAY_FILE_LIMIT, "a list of relays' identities")?;
            let wrong = |what: &str| Error::config(format!("{}: {what}", path.display()));
            let text = content.text().ok_or_else(|| wrong("it is no text"))?;
            for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
                relays.push(identity(line).map_err(|reason| wrong(&content.explain(reason)))?);
            }
        }
        Ok(relays)
    }
}

impl ServiceFeature for RelayedLeaderFeature {
    fn flags(&self, command: Command) -> Command {
        RelayFlags::augment_args(command)
    }

    fn given(&self, arguments: &ArgMatches) -> std::result::Result<Map<String, Value>, clap::Error> {
        values(&RelayFlags::from_arg_matches(arguments)?)
    }

    fn settings(&self, layers: &mut Layers) -> Result<Arc<dyn ServicePart>> {
        let settings: RelaySettings = layers.part(RelaySettings::default())?;
        settings.given()?;
        Ok(Arc::new(settings))
    }
}

impl ServicePart for RelaySettings {
    fn check(&self) -> Result<()> {
        self.relays().map(drop)
    }

    fn configure(&self, node: &mut NodeConfig) -> Result<()> {
        node.relays = self.relays()?;
        Ok(())
    }
}
