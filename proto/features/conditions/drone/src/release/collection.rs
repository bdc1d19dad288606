//! Collects the key of a condition: a node of its own dials the KGCs, asks as many as are needed, and stops.

use std::time::Duration;

use quiver_ainq::{DroneKeypair, Ristretto255};
use quiver_delivery::Standalone;
use quiver_ibe::{Condition, UnverifiedIdentityKey};
use quiver_key_release::{
    CollectCommand, CollectEvent, CollectTiming, Collector, ReleaseAuthority, Shortfall,
};
use quiver_net::Handle;
use quiver_service::drone::fetch::{FetchPlan, copy, run_client};
use tokio::sync::mpsc;

use super::identity_keys::IdentityKeys;
use crate::{Error, Result};

/// The key of a condition, kept or collected. For as long as `wait` says a condition that is not met yet is
/// waited for. Needs a tokio runtime with several threads.
///
/// # Errors
/// [`Error::NotReleased`] with what each KGC said, [`Error::TooFewShares`] if too few answered,
/// [`quiver_service::drone::Error::NoAddress`], and those of storing and of the network.
pub async fn key(
    keys: &IdentityKeys,
    keypair: &DroneKeypair<Ristretto255>,
    plan: &FetchPlan,
    condition: &Condition,
    wait: Duration,
) -> Result<(ReleaseAuthority<Ristretto255>, UnverifiedIdentityKey)> {
    if keys.key(condition)?.is_none() {
        collect(keys, keypair, plan, Some(condition), wait).await?;
    }
    match (keys.authority()?, keys.key(condition)?) {
        (Some(authority), Some(key)) => Ok((authority, key)),
        // A collected key is stored first.
        _ => Err(Error::NotReleased(format!("{condition}: the key that came was not kept"))),
    }
}

/// The statement about the master key: the one kept, or else fetched.
///
/// # Errors
/// Those of [`key`].
pub async fn authority(
    keys: &IdentityKeys,
    keypair: &DroneKeypair<Ristretto255>,
    plan: &FetchPlan,
) -> Result<ReleaseAuthority<Ristretto255>> {
    if let Some(known) = keys.authority()? {
        return Ok(known);
    }
    collect(keys, keypair, plan, None, Duration::ZERO).await?;
    keys.authority()?.ok_or_else(|| Error::NotReleased("no statement about a master key came".into()))
}

async fn collect(
    keys: &IdentityKeys,
    keypair: &DroneKeypair<Ristretto255>,
    plan: &FetchPlan,
    condition: Option<&Condition>,
    wait: Duration,
) -> Result<()> {
    let timing = CollectTiming {
        retry: plan.timing.retry,
        retry_max: plan.timing.retry_max,
        ..CollectTiming::default()
    };
    let (deployment, keypair) = (keys.deployment().clone(), copy(keys.deployment(), keypair)?);
    let collector = Standalone::client(deployment, keypair, Collector::new(keys.authority()?, timing));
    let command = CollectCommand::Collect {
        condition: condition.cloned(),
        patience: plan.time_limit + wait,
        wait: !wait.is_zero(),
    };
    let collecting = |handle, mut events| async move { listen(keys, &handle, command, &mut events).await };
    run_client(&plan.kgcs, collector, collecting).await
}

async fn listen(
    keys: &IdentityKeys,
    handle: &Handle<Standalone<Ristretto255, Collector<Ristretto255>>>,
    command: CollectCommand,
    heard: &mut mpsc::UnboundedReceiver<CollectEvent>,
) -> Result<()> {
    if handle.command(command).await.is_err() {
        // Why it ended, the driver says.
        return Ok(());
    }
    while let Some(event) = heard.recv().await {
        match event {
            CollectEvent::Statement { statement } => {
                tokio::task::block_in_place(|| keys.keep_statement(&statement))?;
            }
            CollectEvent::Collected { condition, key } => {
                tracing::info!(%condition, "key collected");
                return tokio::task::block_in_place(|| keys.keep_key(&condition, &key));
            }
            CollectEvent::UpToDate => return Ok(()),
            CollectEvent::NotCollected(shortfall) => return Err(short_of(&shortfall)),
            CollectEvent::Culprit { kgc, condition, fault, .. } => {
                tracing::warn!(%condition, "KGC {kgc} sent a wrong key share: {fault}");
            }
            CollectEvent::Blamed { offence, .. } => {
                tracing::warn!("rejected a message from a KGC: {offence}");
            }
            _ => {}
        }
    }
    Ok(())
}

/// A shortfall as an error: refused, if anybody refused.
fn short_of(shortfall: &Shortfall) -> Error {
    let what =
        shortfall.condition.as_ref().map_or("statement about the master key".into(), ToString::to_string);
    let said = format!("{what}: {shortfall}");
    let refused = shortfall.verdicts.iter().any(|(_, verdict)| verdict.is_refusal());
    if refused { Error::NotReleased(said) } else { Error::TooFewShares(said) }
}
