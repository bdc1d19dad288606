//! Follows the registry, and gives the running machine what the command line wrote there.

use std::time::Duration;

use quiver_delivery::attributes::{Grant, IssuerCommand};
use quiver_delivery::kgc::KgcNodeCommand;
use quiver_delivery::release::ReleaseCommand;
use quiver_enrolment::KgcCommand;
use quiver_machine::{Either, Machine};
use quiver_net::Handle;

use crate::error::Result;
use crate::store::Store;

/// Reads revocations and grants that the command line wrote into the registry and hands them to the machine.
#[derive(Debug)]
pub(crate) struct Changes {
    store: Store,
    seen: Seen,
}

/// Up to where the registry was handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The newest revocation of a drone. From 0 at each start, so that one made just before a crash is handed
    /// over again; the machine knows which are new.
    drones: u64,
    /// The newest revocation that this operator wants of the quorum. From 0 at each start as well.
    revocation_requests: u64,
    /// Number of revoked tokens.
    tokens: usize,
    /// The newest grant or withdrawal.
    grants: u64,
    /// The newest policy about identity keys. From 0 at each start, as the next.
    policies: u64,
    /// The newest approval.
    approvals: u64,
}

impl Changes {
    /// All revocations, and what is granted after these grants, the newest last.
    pub(crate) fn since(store: Store, grants: &[Grant]) -> Self {
        let grants = grants.last().map_or(0, |grant| grant.revision);
        Self { store, seen: Seen { grants, ..Seen::default() } }
    }

    /// Reads periodically until the machine ends. `wrap` converts each command to one of the machine's.
    pub(crate) async fn follow<M: Machine>(
        mut self,
        machine: Handle<M>,
        every: Duration,
        wrap: fn(KgcNodeCommand) -> M::Command,
    ) {
        let mut ticks = tokio::time::interval(every.max(Duration::from_millis(10)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match tokio::task::block_in_place(|| self.read()) {
                Ok((commands, seen)) => {
                    for command in commands {
                        let words = describe(&command);
                        if machine.command(wrap(command)).await.is_err() {
                            return;
                        }
                        tracing::info!("{words}");
                    }
                    self.mark_seen(seen);
                }
                Err(error) => tracing::warn!(%error, "looking for changes"),
            }
        }
    }

    /// Returns the new changes, revocations first, and the position after them. Nothing counts as handed over
    /// yet: a read that fails halfway loses nothing.
    pub(crate) fn read(&self) -> Result<(Vec<KgcNodeCommand>, Seen)> {
        let mut seen = self.seen;
        let mut commands = Vec::new();
        let drones = self.store.drones_revoked_after(seen.drones)?;
        if let Some(last) = drones.last() {
            seen.drones = last.seq;
            let drones = drones.iter().map(|drone| drone.revoked).collect();
            commands.push(Either::Left(KgcCommand::RevokeDrones(drones)));
        }
        let revocation_requests = self.store.revocation_requests_after(seen.revocation_requests)?;
        if let Some((last, _)) = revocation_requests.last() {
            seen.revocation_requests = *last;
            let drones = revocation_requests.iter().map(|(_, drone)| *drone).collect();
            commands.push(Either::Left(KgcCommand::RevokeDrones(drones)));
        }
        let tokens = self.store.revoked_tokens()?;
        if let Some(new) = tokens.get(seen.tokens..).filter(|new| !new.is_empty()) {
            commands.push(Either::Left(KgcCommand::RevokeTokens(new.to_vec())));
            seen.tokens = tokens.len();
        }
        for grant in self.store.grants_after(seen.grants)? {
            seen.grants = grant.revision;
            commands.push(Either::Right(Either::Left(IssuerCommand::Grant(grant))));
        }
        for policy in self.store.ibe_policies(seen.policies)? {
            seen.policies = policy.revision;
            commands.push(Either::Right(Either::Right(ReleaseCommand::Policy(policy))));
        }
        for approval in self.store.ibe_approvals(seen.approvals)? {
            seen.approvals = approval.revision;
            commands.push(Either::Right(Either::Right(ReleaseCommand::Approval(approval))));
        }
        Ok((commands, seen))
    }

    /// All that was seen is handed over.
    pub(crate) const fn mark_seen(&mut self, seen: Seen) {
        self.seen = seen;
    }
}

/// A command for the log.
pub(crate) fn describe(command: &KgcNodeCommand) -> String {
    match command {
        Either::Left(KgcCommand::RevokeDrones(drones)) => {
            format!("drones revoked in the registry: {}", drones.len())
        }
        Either::Left(KgcCommand::TakeRevocations(_)) => "revocation list of the quorum".into(),
        Either::Left(KgcCommand::RevokeTokens(ids)) => {
            format!("tokens revoked in the registry: {}", ids.len())
        }
        Either::Right(Either::Left(IssuerCommand::Grant(grant))) => {
            let serial = hex::encode(grant.serial);
            match grant.granted {
                Some(_) => format!("attribute grant {} in the registry, for {serial}", grant.revision),
                None => format!("attribute grant of {serial} withdrawn in the registry"),
            }
        }
        Either::Right(Either::Right(ReleaseCommand::Policy(policy))) => {
            let word = if policy.audience.is_some() { "allowed" } else { "denied" };
            format!("identity keys of {} {word} in the registry", policy.pattern)
        }
        Either::Right(Either::Right(ReleaseCommand::Approval(approval))) => {
            let word = if approval.approved { "approved" } else { "withdrawn" };
            format!("release of {} {word} in the registry", approval.condition)
        }
    }
}
