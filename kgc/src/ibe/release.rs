//! Release of keys of conditions by a KGC that runs: shares, policies and approvals that it goes by, and what it tells.

use quiver_ainq::Ristretto255;
use quiver_crypto::Secret;
use quiver_delivery::DeliveryServer;
use quiver_key_release::{Holding, ReleaseCommand, ReleaseConfig, ReleaseEvent, ShareReleaser, ShareServer};
use quiver_machine::{Either, Rate};
use rand::rngs::OsRng;

use super::master_share;
use super::tables::ReleaseTable;
use crate::changes::Secrets;
use crate::config::Config;
use crate::error::Result;
use crate::event_log::EventLog;
use crate::key_release::KeyRelease;
use crate::metrics::KgcMetrics;
use crate::store::Store;

/// Content of the registry that was handed over. From the beginning at each start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReleaseRevisions {
    /// The newest policy about identity keys.
    pub(super) policies: u64,
    /// The newest approval.
    pub(super) approvals: u64,
    /// True if there is a share of a master key, or the quorum makes it.
    pub(super) share: bool,
}

impl KeyRelease for ShareServer<Ristretto255> {
    type Share = Holding<Ristretto255>;
    type Seen = ReleaseRevisions;

    fn open(config: &Config, secrets: &Secrets, store: &Store) -> Result<(Self, ReleaseRevisions)> {
        let share = stored_share(secrets, store)?;
        match &share {
            Some(share) => {
                tracing::info!(master = %share.authority().name(), "releasing keys of conditions");
            }
            None => tracing::info!("no master key of conditions is set up: groups need none"),
        }
        let seen = ReleaseRevisions { share: share.is_some(), ..ReleaseRevisions::default() };
        Ok((server(config, share), seen))
    }

    fn hold(&mut self, share: Self::Share) {
        self.issuer_mut().hold(share);
    }

    fn changes(
        secrets: &Secrets,
        store: &Store,
        seen: &mut ReleaseRevisions,
    ) -> Result<Vec<Either<ReleaseCommand, Self::Share>>> {
        let released = ReleaseTable::of(store);
        let policies = released.policies_after(seen.policies)?;
        let approvals = released.approvals_after(seen.approvals)?;
        let share = if seen.share { None } else { stored_share(secrets, store)? };
        seen.policies = policies.last().map_or(seen.policies, |policy| policy.revision);
        seen.approvals = approvals.last().map_or(seen.approvals, |approval| approval.revision);
        seen.share |= share.is_some();
        let policies = policies.into_iter().map(ReleaseCommand::Policy);
        let commands = policies.chain(approvals.into_iter().map(ReleaseCommand::Approval));
        Ok(commands.map(Either::Left).chain(share.map(Either::Right)).collect())
    }

    fn describe(change: Either<&ReleaseCommand, &Self::Share>) -> String {
        match change {
            Either::Left(ReleaseCommand::Policy(policy)) => {
                let word = if policy.audience.is_some() { "allowed" } else { "denied" };
                format!("identity keys of {} {word} in the registry", policy.pattern)
            }
            Either::Left(ReleaseCommand::Approval(approval)) => {
                let word = if approval.approved { "approved" } else { "withdrawn" };
                format!("release of {} {word} in the registry", approval.condition)
            }
            Either::Right(share) => format!("master key {} taken up", share.authority().name()),
        }
    }

    fn log(log: &EventLog, event: ReleaseEvent) {
        match event {
            ReleaseEvent::Released { condition, name } => {
                tracing::info!(%name, %condition, "key share released");
            }
            ReleaseEvent::Denied { condition, name, why } => {
                tracing::info!(%name, %condition, why, "refused {name} a key share: {why}");
            }
            ReleaseEvent::Refused { peer, reason } => {
                let peer = log.name(peer);
                tracing::warn!(peer, %reason, "refused {peer} a key share: {reason}");
            }
            ReleaseEvent::Blamed { peer, offence } => log.log_offence(peer, &offence),
            _ => {}
        }
    }

    fn count(metrics: &KgcMetrics, event: &ReleaseEvent) {
        match event {
            ReleaseEvent::Released { .. } => {
                metrics.released.inc();
            }
            ReleaseEvent::Blamed { .. } => {
                metrics.blamed.inc();
            }
            _ => {}
        }
    }
}

/// A server that has this share.
pub(super) fn server(config: &Config, holding: Option<Holding<Ristretto255>>) -> ShareServer<Ristretto255> {
    let rate = Rate { burst: config.release_burst, refill: config.release_interval };
    let config = ReleaseConfig { holding, policies: Vec::new(), approvals: Vec::new(), rate };
    DeliveryServer::new(Secret::random(&mut OsRng), ShareReleaser::new(config))
}

/// The share of the master key that the registry knows, if it knows one.
fn stored_share(secrets: &Secrets, store: &Store) -> Result<Option<Holding<Ristretto255>>> {
    let Some(row) = store.master_key().newest()? else { return Ok(None) };
    let Secrets { data_dir, deployment, by } = secrets;
    master_share::read(data_dir, deployment, by, &row).map(Some)
}
