//! Boards on serial lines in the program of leaders, which is a gateway for them.
//!
//! A program lists [`BoardFeature`] among its features; nothing else of it names this crate.

mod gateway;
mod settings;

use std::sync::Arc;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use quiver_service::config::Layers;
use quiver_service::drone::Result;
use quiver_service::drone::feature::{DroneFeature, ServiceFeature, ServicePart, values};
use serde_json::{Map, Value};

use self::settings::{BoardFlags, BoardSettings};

/// Boards on serial lines.
#[derive(Clone, Copy, Debug)]
pub struct BoardFeature;

impl DroneFeature for BoardFeature {
    fn service(&self) -> Option<&dyn ServiceFeature> {
        Some(self)
    }
}

impl ServiceFeature for BoardFeature {
    fn flags(&self, command: Command) -> Command {
        BoardFlags::augment_args(command)
    }

    fn given(&self, arguments: &ArgMatches) -> std::result::Result<Map<String, Value>, clap::Error> {
        values(&BoardFlags::from_arg_matches(arguments)?)
    }

    fn settings(&self, layers: &mut Layers) -> Result<Arc<dyn ServicePart>> {
        Ok(Arc::new(layers.part(BoardSettings::default())?.check()?))
    }
}
