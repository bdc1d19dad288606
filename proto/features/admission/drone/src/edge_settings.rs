//! Flags and settings of `edge run --anonymous`.

use std::sync::Arc;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use quiver_ainq::Name;
use quiver_service::config::Layers;
use quiver_service::drone::Result;
use quiver_service::drone::feature::{Memberships, ServiceFeature, ServicePart, values};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::AnonymousEdgeFeature;

/// Flags of the service.
#[derive(Args, Debug, Serialize)]
struct AnonymousFlags {
    /// Join anonymously: prove to the leader that this drone's certified fields satisfy what it demands
    /// (`leader serve --admission`), and nothing else. Every membership has a transport key and connection of
    /// its own, ends with the credential's period, and signs nothing. Credentials are fetched from the KGC in
    /// each period
    #[arg(long, help_heading = "Anonymous joins")]
    anonymous: bool,
    /// With --anonymous: the authority that certified the fields, if there are several
    #[arg(long, value_name = "NAME", value_parser = name, hide_short_help = true, help_heading = "Anonymous joins")]
    authority: Option<String>,
    /// With --anonymous: how often one leader's demand is answered in a period, restarts included [default:
    /// 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true, help_heading = "Anonymous joins")]
    answers: Option<u32>,
}

/// Checks a name, and keeps its text.
fn name(text: &str) -> std::result::Result<String, String> {
    Name::new(text).map(|name| name.to_string()).map_err(|error| error.to_string())
}

/// Settings of anonymous memberships.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnonymousSettings {
    /// True to join anonymously.
    pub(crate) anonymous: bool,
    /// The authority that certified the fields to be proven.
    pub(crate) authority: Option<String>,
    /// Maximum number of answers to one leader's demands in a period.
    #[serde(deserialize_with = "quiver_service::config::whole::<_, 1, { u32::MAX }>")]
    pub(crate) answers: u32,
}

impl Default for AnonymousSettings {
    fn default() -> Self {
        Self { anonymous: false, authority: None, answers: 8 }
    }
}

impl ServiceFeature for AnonymousEdgeFeature {
    fn flags(&self, command: Command) -> Command {
        AnonymousFlags::augment_args(command)
    }

    fn given(&self, arguments: &ArgMatches) -> std::result::Result<Map<String, Value>, clap::Error> {
        values(&AnonymousFlags::from_arg_matches(arguments)?)
    }

    fn settings(&self, layers: &mut Layers) -> Result<Arc<dyn ServicePart>> {
        Ok(Arc::new(layers.part(AnonymousSettings::default())?))
    }
}

impl ServicePart for AnonymousSettings {
    fn memberships(&self) -> Option<&dyn Memberships> {
        self.anonymous.then_some(self as &dyn Memberships)
    }
}
