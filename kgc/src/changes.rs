//! Follows the registry, and gives the running machine what the command line wrote there, if it is authentic.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{Deployment, Ristretto255};
use quiver_delivery::attributes::{IssuerCommand, IssuingAuthority};
use quiver_delivery::kgc::DeliveryCommand;
use quiver_enrolment::KgcCommand;
use quiver_machine::{Either, Machine};
use quiver_net::Handle;
use quiver_service::secrets::Protection;
use tokio::sync::{mpsc, oneshot};

use crate::authorities::{self, SealedAuthority};
use crate::error::Result;
use crate::features::Release;
use crate::key_release::KeyRelease;
use crate::kgc_machine::{CommandLineChange, ServingCommand};
use crate::registry::Verified;
use crate::store::{Position, RegistryKey, Store};

/// Place of the secrets of the authorities, and the protection that opens them.
pub(crate) struct Secrets {
    pub(crate) data_dir: PathBuf,
    pub(crate) deployment: Deployment<Ristretto255>,
    pub(crate) by: Arc<Protection>,
}

/// A command line that waits until the machine has taken what is in the registry; the answer is why not all
/// of it could be taken.
pub(crate) type Asked = oneshot::Sender<std::result::Result<(), String>>;

/// Reads revocations, grants and authorities that the command line wrote into the registry and hands them to
/// the machine.
pub(crate) struct Changes {
    store: Store,
    key: RegistryKey,
    secrets: Secrets,
    seen: Seen,
}

/// Up to where the registry was handed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The newest revocation of a drone. From 0 at each start, so that one made just before a crash is handed
    /// over again; the machine knows which are new.
    drones: u64,
    /// The newest revocation that this operator wants of the quorum. From 0 at each start as well.
    revocation_requests: u64,
    /// Number of revoked tokens.
    tokens: usize,
    /// Fingerprints of the authorities.
    authorities: BTreeSet<[u8; 32]>,
    /// The newest grant or withdrawal.
    grants: u64,
    /// Place up to which the release of condition keys has what is for it.
    release: <Release as KeyRelease>::Seen,
    /// End of what was found authentic.
    position: Position,
}

/// Content of the registry that was not handed over yet.
pub(crate) struct New {
    pub(crate) changes: Vec<CommandLineChange>,
    /// The position after them.
    pub(crate) seen: Seen,
    /// Reason why something else cannot be handed over.
    pub(crate) trouble: Option<String>,
}

impl Changes {
    /// All revocations, and what is set up and granted after these authorities, this place of the release and the
    /// grant of this revision.
    pub(crate) fn since(
        Verified { store, key, position }: Verified,
        secrets: Secrets,
        authorities: impl IntoIterator<Item = [u8; 32]>,
        release: <Release as KeyRelease>::Seen,
        grants: u64,
    ) -> Self {
        let authorities = authorities.into_iter().collect();
        Self { store, key, secrets, seen: Seen { authorities, release, grants, position, ..Seen::default() } }
    }

    /// Reads periodically, and when asked, until the machine ends. `wrap` converts each change to a command
    /// of the machine's.
    pub(crate) async fn follow<M: Machine>(
        mut self,
        machine: Handle<M>,
        every: Duration,
        wrap: fn(CommandLineChange) -> M::Command,
        mut asked: mpsc::Receiver<Asked>,
    ) {
        let mut ticks = tokio::time::interval(every.max(Duration::from_millis(10)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut logged = None;
        loop {
            let asked = tokio::select! {
                _ = ticks.tick() => None,
                Some(asked) = asked.recv() => Some(asked),
            };
            let Some(trouble) = self.take(&machine, wrap).await else { return };
            // Once, and not at every look.
            if trouble != logged {
                if let Some(trouble) = &trouble {
                    tracing::warn!("not all changes in the registry could be taken up: {trouble}");
                }
                logged.clone_from(&trouble);
            }
            if let Some(asked) = asked {
                // The command line may have been interrupted.
                let _ = asked.send(trouble.map_or(Ok(()), Err));
            }
        }
    }

    /// Hands over what is new, and waits until the machine has acted on it. Returns why something could not
    /// be handed over; `None` if the machine has ended.
    async fn take<M: Machine>(
        &mut self,
        machine: &Handle<M>,
        wrap: fn(CommandLineChange) -> M::Command,
    ) -> Option<Option<String>> {
        let New { changes, seen, trouble } = match tokio::task::block_in_place(|| self.read()) {
            Ok(new) => new,
            Err(error) => return Some(Some(error.to_string())),
        };
        for change in changes {
            let words = describe(&change);
            machine.carry_out(wrap(change)).await.ok()?;
            tracing::info!("{words}");
        }
        self.mark_seen(seen);
        Some(trouble)
    }

    /// Returns the new changes, revocations first. Nothing counts as handed over yet: a read that fails
    /// halfway loses nothing.
    ///
    /// # Errors
    /// [`Error::ForeignRows`](crate::error::Error::ForeignRows) if something new is not authentic: nothing is handed
    /// over then, because whoever wrote it may have changed the rest.
    pub(crate) fn read(&self) -> Result<New> {
        self.store.reader().snapshot(|| self.read_within())
    }

    fn read_within(&self) -> Result<New> {
        let mut seen = self.seen.clone();
        self.store.macs().check_rows_within(&self.key, &mut seen.position)?;
        let mut commands = Vec::new();
        let drones = self.store.drones().revoked_after(seen.drones)?;
        if let Some(last) = drones.last() {
            seen.drones = last.seq;
            let drones = drones.iter().map(|drone| drone.revoked).collect();
            commands.push(Either::Left(KgcCommand::RevokeDrones(drones)));
        }
        let revocation_requests = self.store.revocation_requests().after(seen.revocation_requests)?;
        if let Some((last, _)) = revocation_requests.last() {
            seen.revocation_requests = *last;
            let drones = revocation_requests.iter().map(|(_, drone)| *drone).collect();
            commands.push(Either::Left(KgcCommand::RevokeDrones(drones)));
        }
        let tokens = self.store.tokens().revoked()?;
        if let Some(new) = tokens.get(seen.tokens..).filter(|new| !new.is_empty()) {
            commands.push(Either::Left(KgcCommand::RevokeTokens(new.to_vec())));
            seen.tokens = tokens.len();
        }
        for grant in self.store.attributes().grants_after(seen.grants)? {
            seen.grants = grant.revision;
            commands.push(Either::Right(DeliveryCommand::Keys(IssuerCommand::Grant(grant))));
        }
        let mut changes: Vec<_> = commands.into_iter().map(CommandLineChange::Command).collect();
        let mut trouble = None;
        match self.new_authorities(&mut seen) {
            Ok(new) => changes.extend(new.into_iter().map(Box::new).map(CommandLineChange::Authority)),
            Err(error) => trouble = Some(error.to_string()),
        }
        match Release::changes(&self.secrets, &self.store, &mut seen.release) {
            Ok(new) => changes.extend(new.into_iter().map(|change| match change {
                Either::Left(command) => {
                    CommandLineChange::Command(Either::Right(DeliveryCommand::Shares(command)))
                }
                Either::Right(share) => CommandLineChange::Share(Box::new(share)),
            })),
            Err(error) => trouble = Some(error.to_string()),
        }
        Ok(New { changes, seen, trouble })
    }

    fn new_authorities(&self, seen: &mut Seen) -> Result<Vec<IssuingAuthority<Ristretto255>>> {
        let mut rows = self.store.attributes().authorities()?;
        rows.retain(|row| !seen.authorities.contains(&row.fingerprint));
        let Secrets { data_dir, deployment, by } = &self.secrets;
        let sealed = authorities::read(data_dir, deployment, by, &rows)?;
        let opened = sealed.into_iter().map(SealedAuthority::serving).collect::<Result<Vec<_>>>()?;
        seen.authorities.extend(rows.iter().map(|row| row.fingerprint));
        Ok(opened)
    }

    /// All that was seen is handed over.
    pub(crate) fn mark_seen(&mut self, seen: Seen) {
        self.seen = seen;
    }
}

/// A change for the log.
pub(crate) fn describe(change: &CommandLineChange) -> String {
    match change {
        CommandLineChange::Command(command) => describe_command(command),
        CommandLineChange::Authority(authority) => {
            format!("attribute authority {} taken up", authority.statement.name)
        }
        CommandLineChange::Share(share) => Release::describe(Either::Right(share)),
    }
}

fn describe_command(command: &ServingCommand) -> String {
    match command {
        Either::Left(KgcCommand::RevokeDrones(drones)) => {
            format!("drones revoked in the registry: {}", drones.len())
        }
        Either::Left(KgcCommand::TakeRevocations(_)) => "revocation list of the quorum".into(),
        Either::Left(KgcCommand::RevokeTokens(ids)) => {
            format!("tokens revoked in the registry: {}", ids.len())
        }
        Either::Right(DeliveryCommand::Keys(IssuerCommand::Grant(grant))) => {
            let serial = hex::encode(grant.serial);
            match grant.granted {
                Some(_) => format!("attribute grant {} in the registry, for {serial}", grant.revision),
                None => format!("attribute grant of {serial} withdrawn in the registry"),
            }
        }
        Either::Right(DeliveryCommand::Shares(command)) => Release::describe(Either::Left(command)),
    }
}
