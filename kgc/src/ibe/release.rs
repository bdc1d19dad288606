//! Release of keys of conditions by a KGC that runs: shares, policies and approvals that it goes by, and what it tells.

use quiver_ainq::{Deployment, Ristretto255};
use quiver_crypto::Secret;
use quiver_delivery::DeliveryServer;
use quiver_key_release::{
    Holding, ReleaseAuthority, ReleaseCommand, ReleaseConfig, ReleaseEvent, ShareReleaser, ShareServer,
};
use quiver_machine::Rate;
use quiver_service::clock;
use rand::rngs::OsRng;

use super::setup::first_patterns;
use super::{master_share, quorum_share};
use crate::changes::Secrets;
use crate::config::Config;
use crate::error::Result;
use crate::event_log::EventLog;
use crate::key_release::KeyRelease;
use crate::metrics::KgcMetrics;
use crate::quorum::node::{IbeStatements, QuorumMember};
use crate::store::Store;

/// The newest rows that were handed over. From 0 at each start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReleaseRevisions {
    /// The newest policy about identity keys.
    policies: u64,
    /// The newest approval.
    approvals: u64,
}

impl KeyRelease for ShareServer<Ristretto255> {
    type Share = Holding<Ristretto255>;
    type Statement = ReleaseAuthority<Ristretto255>;
    type Seen = ReleaseRevisions;

    const STATEMENTS: Option<IbeStatements> = Some(quorum_share::STATEMENTS);

    fn open(config: &Config, secrets: &Secrets, store: &Store) -> Result<Self> {
        let share = Self::new_share(secrets, store)?;
        match &share {
            Some(share) => {
                tracing::info!(master = %share.authority().name(), "releasing keys of conditions");
            }
            None => tracing::info!("no master key of conditions is set up: groups need none"),
        }
        Ok(server(config, share))
    }

    fn open_member(config: &Config, _: &Store, share: Option<Self::Share>) -> Result<Self> {
        Ok(server(config, share))
    }

    fn has_share(&self) -> bool {
        self.issuer().holding().is_some()
    }

    fn hold(&mut self, share: Self::Share) {
        self.issuer_mut().hold(share);
    }

    fn rows(store: &Store, seen: &mut ReleaseRevisions) -> Result<Vec<ReleaseCommand>> {
        let mut commands = Vec::new();
        for policy in store.ibe_policies(seen.policies)? {
            seen.policies = policy.revision;
            commands.push(ReleaseCommand::Policy(policy));
        }
        for approval in store.ibe_approvals(seen.approvals)? {
            seen.approvals = approval.revision;
            commands.push(ReleaseCommand::Approval(approval));
        }
        Ok(commands)
    }

    fn new_share(secrets: &Secrets, store: &Store) -> Result<Option<Self::Share>> {
        let Some(row) = store.ibe_authority()? else { return Ok(None) };
        let Secrets { data_dir, deployment, by } = secrets;
        master_share::read(data_dir, deployment, by, &row).map(Some)
    }

    fn describe(command: &ReleaseCommand) -> String {
        match command {
            ReleaseCommand::Policy(policy) => {
                let word = if policy.audience.is_some() { "allowed" } else { "denied" };
                format!("identity keys of {} {word} in the registry", policy.pattern)
            }
            ReleaseCommand::Approval(approval) => {
                let word = if approval.approved { "approved" } else { "withdrawn" };
                format!("release of {} {word} in the registry", approval.condition)
            }
        }
    }

    fn describe_share(share: &Self::Share) -> String {
        format!("master key {} taken up", share.authority().name())
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

    fn statement(store: &Store, deployment: &Deployment<Ristretto255>) -> Option<Self::Statement> {
        let row = store.ibe_authority().ok()??;
        ReleaseAuthority::decode(deployment, &row.statement).ok()
    }

    fn share(member: &QuorumMember, statement: Self::Statement) -> Option<Self::Share> {
        quorum_share::holding(member, statement)
    }

    fn proposal(&self, member: &QuorumMember) -> Option<Vec<u8>> {
        let held = self.issuer().holding().map(|holding| holding.authority().version());
        if held == quorum_share::version(member) {
            return None;
        }
        quorum_share::proposal(member)
    }

    fn take_signed(&mut self, member: &QuorumMember, body: &[u8], signature: &[u8]) {
        let authority = quorum_share::signed(member, body, signature);
        let current = authority.filter(|signed| Some(signed.version()) == quorum_share::version(member));
        if let Some(share) = current.and_then(|authority| quorum_share::holding(member, authority)) {
            self.issuer_mut().hold(share);
        }
    }

    fn note_signed(store: &mut Store, member: &QuorumMember, body: &[u8], signature: &[u8]) {
        let Some(authority) = quorum_share::signed(member, body, signature) else { return };
        match tokio::task::block_in_place(|| note(store, &authority)) {
            Ok(()) => tracing::info!(version = authority.version(), "key shares are released"),
            Err(error) => tracing::error!(%error, "the statement about the master key could not be noted"),
        }
    }
}

/// A server that has this share.
fn server(config: &Config, holding: Option<Holding<Ristretto255>>) -> ShareServer<Ristretto255> {
    let rate = Rate { burst: config.release_burst, refill: config.release_interval };
    let config = ReleaseConfig { holding, policies: Vec::new(), approvals: Vec::new(), rate };
    DeliveryServer::new(Secret::random(&mut OsRng), ShareReleaser::new(config))
}

/// Stores the data for `kgc ibe list`, and the initial policies.
fn note(store: &mut Store, authority: &ReleaseAuthority<Ristretto255>) -> Result<()> {
    let known = store.ibe_authority()?;
    if known.as_ref().is_some_and(|known| known.version >= authority.version()) {
        return Ok(());
    }
    let mut patterns = if known.is_none() { first_patterns() } else { Vec::new() };
    // Policies that the operator set before there was a key stay.
    let said = store.ibe_policy_rows()?;
    patterns.retain(|pattern| said.iter().all(|row| row.pattern != pattern.as_str()));
    // The share is in `quorum.state`.
    store.record_ibe_authority(authority, &patterns, clock::unix_now(), || Ok(()))
}
