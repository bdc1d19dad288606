//! Flag and setting of `leader serve --admission`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use quiver_net::NodeConfig;
use quiver_service::config::Layers;
use quiver_service::drone::Result;
use quiver_service::drone::feature::{LeaderGate, ServiceFeature, ServicePart, values};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::AdmittingLeaderFeature;

/// Flags of the service.
#[derive(Args, Debug, Serialize)]
struct AdmissionFlags {
    /// A policy that the KGC signed for this group (`kgc abke policy`). Admits whoever proves, anonymously,
    /// that its certified fields satisfy it, and nobody by name. Existing members are removed. Slot keys are
    /// fetched from the KGC in each period
    #[arg(long, value_name = "FILE", help_heading = "Members")]
    admission: Option<PathBuf>,
}

/// Settings of a leader's gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AdmissionSettings {
    /// The policy that joins are admitted by, anonymously.
    pub(crate) admission: Option<PathBuf>,
}

impl ServiceFeature for AdmittingLeaderFeature {
    fn flags(&self, command: Command) -> Command {
        AdmissionFlags::augment_args(command)
    }

    fn given(&self, arguments: &ArgMatches) -> std::result::Result<Map<String, Value>, clap::Error> {
        values(&AdmissionFlags::from_arg_matches(arguments)?)
    }

    fn settings(&self, layers: &mut Layers) -> Result<Arc<dyn ServicePart>> {
        Ok(Arc::new(layers.part(AdmissionSettings::default())?))
    }
}

impl ServicePart for AdmissionSettings {
    fn configure(&self, node: &mut NodeConfig) -> Result<()> {
        // §A5.4: members without a name hear of a deputy's term.
        node.strangers_listen = self.admission.is_some();
        Ok(())
    }

    // Also without a policy: who wants to join anonymously is told that nobody is admitted so.
    fn gate(&self) -> Option<&dyn LeaderGate> {
        Some(self)
    }
}
