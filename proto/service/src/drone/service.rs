//! A drone with its state file open: what its service is put together from, and run with until a signal
//! comes.

use std::time::Duration;

use quiver_ainq::{Deployment, Ristretto255};
use quiver_enrolment::Kgcs;
use quiver_machine::{Machine, RefusalReason};
use quiver_net::{Driver, Host, Multiaddr};
use tokio::sync::mpsc;

use super::feature::kgcs;
use super::fetch::{FetchPlan, KeyClient};
use super::{DroneProgram, Error, Result, StateStore};
use crate::deployment_file::DeploymentFile;
use crate::node_state::{Missing, NodeState};
use crate::secrets::Protection;
use crate::shutdown::Shutdown;
use crate::state_file::Records;

/// Time limit of a fetch while a subcommand waits for the running service: less than it waits.
pub const CALL_TIME: Duration = Duration::from_secs(25);

/// A drone with its state file open.
#[derive(Clone, Debug)]
pub struct DroneService<'a, P> {
    /// Program that runs the service.
    pub program: &'a P,
    /// The deployment file.
    pub file: &'a DeploymentFile,
    /// The deployment.
    pub deployment: Deployment<Ristretto255>,
    /// The KGCs of the deployment.
    pub kgcs: Kgcs<Ristretto255>,
    /// The state file.
    pub store: StateStore,
}

impl<'a, P: DroneProgram> DroneService<'a, P> {
    /// Opens the state file; also returns the machine's records. `obtain` gives what opens it, and is told
    /// whether the file is new.
    ///
    /// # Errors
    /// Those of the deployment file, of what opens the state file, and of that; [`Error::BuiltWithoutQuorum`].
    pub fn open(
        program: &'a P,
        file: &'a DeploymentFile,
        obtain: impl FnOnce(bool) -> crate::Result<Protection>,
        missing: Missing,
    ) -> Result<(Self, Records)> {
        let (deployment, data_dir) = (file.pin()?, &program.settings().data_dir);
        let kgcs = kgcs(P::FEATURES, &file.kgc_ids())?;
        let by = obtain(missing == Missing::Create && !NodeState::exists(data_dir))?;
        let (store, records) = StateStore::open(data_dir, (&deployment, P::NAME), &by, missing)?;
        Ok((Self { program, file, deployment, kgcs, store }, records))
    }

    /// Addresses of the KGCs.
    ///
    /// # Errors
    /// [`Error::NoAddress`] if no address is known.
    pub fn kgc_addresses(&self) -> Result<Vec<Multiaddr>> {
        let addresses = self.program.settings().kgc_addresses(self.file)?;
        if addresses.is_empty() { Err(Error::NoAddress) } else { Ok(addresses) }
    }

    /// The client that fetches keys from them, in this time. Without an address a fetch says so.
    ///
    /// # Errors
    /// If an address is none.
    pub fn client(&self, time_limit: Duration) -> Result<KeyClient> {
        let kgcs = self.program.settings().kgc_addresses(self.file)?;
        let plan = FetchPlan { kgcs, timing: self.program.fetch_timing(), time_limit };
        Ok(KeyClient::new(P::FEATURES, self.store.keys(&self.deployment), plan))
    }
}

/// Runs a driver until a signal comes (`None`), the KGC refuses for good, or the goal is reached.
///
/// # Errors
/// [`Error::EnrolmentRefused`], those of the network, and those of the goal.
pub async fn run_until<M, H, T: Send>(
    driver: Driver<M, H>,
    shutdown: &mut Shutdown,
    refusals: &mut mpsc::Receiver<RefusalReason>,
    goal: impl Future<Output = Result<T>> + Send,
) -> Result<Option<T>>
where
    M: Machine + Send,
    M::Command: Send,
    M::Event: Send,
    M::Record: Send,
    H: Host<M>,
{
    let mut outcome = Ok(None);
    let until = async {
        outcome = tokio::select! {
            signal = shutdown.requested() => {
                tracing::info!(signal, "stopping");
                Ok(None)
            }
            Some(reason) = refusals.recv() => Err(Error::EnrolmentRefused(reason)),
            reached = goal => reached.map(Some),
        };
    };
    driver.run(until).await?;
    outcome
}
