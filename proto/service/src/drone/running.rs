//! Envelopes and the running service: its machine gets the keys, and its state file serves the subcommands.

use std::time::Duration;

use quiver_ainq::DroneKeypair;
use quiver_net::Handle;
use quiver_role::{Either, EnvelopeCommand, Envelopes, Machine, Node, Primary};
use serde::{Deserialize, Serialize};

use crate::drone::envelope::{Holder, Job, SendJob, attribute_keys};
use crate::drone::fetch::{KeyClient, copy};
use crate::drone::{Error, Result};

/// How long a running service may take to seal or open a file: files have any length.
pub const FILE_TIME: Duration = Duration::from_secs(3600);

/// The machine of a running service: an edge or a leader with its envelopes.
type Drone<P> = Node<P, Envelopes>;
/// What it takes.
type Command<P> = <Drone<P> as Machine>::Command;

/// What came of a job, as it travels from the running service to the subcommand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// What to tell.
    Done(String),
    /// Why not, and the exit code.
    Failed(String, u8),
}

impl Answer {
    /// What to tell.
    ///
    /// # Errors
    /// [`Error::Answered`] with the exit code that it would have had here.
    pub fn told(self) -> Result<String> {
        match self {
            Self::Done(told) => Ok(told),
            Self::Failed(reason, code) => Err(Error::Answered(reason, code)),
        }
    }
}

impl From<Result<String>> for Answer {
    fn from(result: Result<String>) -> Self {
        result.map_or_else(|error| Self::Failed(error.to_string(), error.exit() as u8), Self::Done)
    }
}

/// Gives the machine what the keyring has. Called at the start, and whenever keys were fetched.
pub async fn hand_over<P: Primary>(machine: &Handle<Drone<P>>, client: &KeyClient<P::Suite>) {
    match client.keys().keyring() {
        Ok(keyring) => {
            let keys = EnvelopeCommand::Keys(attribute_keys(&keyring));
            // If the machine has stopped, nobody needs keys.
            let _ = machine.command(Either::Right(keys)).await;
        }
        Err(error) => tracing::error!(%error, "attribute keys"),
    }
}

/// Fetches in the background, and again whenever what is held has ended ([`KeyClient::keep_fetched`]). The machine learns of
/// each key, and of each that is withdrawn, as soon as that is stored.
pub async fn keep_fetched<P: Primary>(
    machine: &Handle<Drone<P>>,
    client: &KeyClient<P::Suite>,
    keypair: &DroneKeypair<P::Suite>,
) {
    let mut changes = client.keys().changes();
    let handing_over = async {
        while changes.changed().await.is_ok() {
            hand_over(machine, client).await;
        }
    };
    tokio::select! {
        () = client.keep_fetched(keypair) => hand_over(machine, client).await,
        // Not before there is no keyring any more.
        () = handing_over => {}
    }
}

/// Does a job as the running drone, beside its machine.
pub async fn perform<P: Primary>(
    machine: &Handle<Drone<P>>,
    client: &KeyClient<P::Suite>,
    job: Job,
) -> Answer {
    let done = async {
        let holder = holder(machine, client).await?;
        let done = tokio::task::spawn_blocking(move || holder.perform(&job)).await;
        done.unwrap_or_else(|error| Err(Error::Io(std::io::Error::other(error))))
    };
    Answer::from(done.await)
}

/// The command that seals and sends this, for the caller to give and to watch.
///
/// # Errors
/// Those of [`Holder::command`].
pub async fn sending<P: Primary>(
    machine: &Handle<Drone<P>>,
    client: &KeyClient<P::Suite>,
    job: SendJob,
) -> Result<Command<P>> {
    holder(machine, client).await?.command(job).map(Either::Right)
}

async fn holder<P: Primary>(
    machine: &Handle<Drone<P>>,
    client: &KeyClient<P::Suite>,
) -> Result<Holder<P::Suite>> {
    let deployment = client.keys().deployment().clone();
    let pinned = deployment.clone();
    let look = move |machine: &Drone<P>| {
        let keypair = machine.keypair().map(|keypair| copy(&pinned, keypair)).transpose()?;
        Ok::<_, Error>((keypair, machine.revocations().list().clone()))
    };
    let looked = machine.inspect(look).await.map_err(|error| Error::Io(std::io::Error::other(error)))?;
    let (keypair, revocations) = looked?;
    Ok(Holder { deployment, keyring: client.keys().keyring()?, keypair, revocations })
}
