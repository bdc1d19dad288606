//! Interface for the differences between the programs of an edge and of a leader.

use std::time::Duration;

use quiver_ainq::Ristretto255;
use quiver_delivery::attributes::FetchTiming;
use quiver_machine::Primary;

use super::feature::Features;
use super::{DroneService, DroneSettings, Result};
use crate::state_file::Records;

/// The program of a drone: its settings, and its machine.
pub trait DroneProgram: Sized {
    /// Name of the program, which is the role in its state file, too.
    const NAME: &'static str;
    /// The subcommand that runs its service.
    const SERVE: &'static str;

    /// The features that it was built with.
    const FEATURES: Features;

    /// The settings that every program has.
    fn settings(&self) -> &DroneSettings;

    /// Time settings of a client of the KGCs.
    fn fetch_timing(&self) -> FetchTiming {
        FetchTiming::default()
    }

    /// Time limit of a fetch that no running service does.
    fn fetch_time(&self) -> Duration {
        Duration::from_secs(60)
    }

    /// The machine as it was stored.
    ///
    /// # Errors
    /// If it was not stored by such a machine, or nothing was.
    fn restore(
        &self,
        service: &DroneService<'_, Self>,
        records: Records,
    ) -> Result<impl Primary<Suite = Ristretto255>>;
}
