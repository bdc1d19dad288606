//! Seam to the feature that releases keys of conditions: what a KGC asks of it, alone or in a quorum.

use std::convert::Infallible;

use quiver_ainq::{Deployment, Ristretto255};
use quiver_machine::MachinePart;

use crate::changes::Secrets;
use crate::config::Config;
use crate::error::Result;
use crate::event_log::EventLog;
use crate::metrics::KgcMetrics;
use crate::quorum::node::{IbeStatements, QuorumMember};
use crate::store::Store;

/// Release of condition keys, beside the delivery of attribute keys. A build without it has a part that is missing.
pub(crate) trait KeyRelease: MachinePart<Ristretto255> + Sized {
    /// Share of the master key, which opens for drones.
    type Share;
    /// Statement about the master key, as the registry has it.
    type Statement;
    /// Place in the registry up to which its rows were handed over.
    type Seen: Default;

    /// Form of a quorum's statements about the master key, which its KGCs sign without an operator's approval.
    const STATEMENTS: Option<IbeStatements>;

    /// Reads what a KGC that is alone releases with. Policies and approvals come with [`KeyRelease::rows`].
    ///
    /// # Errors
    /// The errors of the registry and of the file with the share.
    fn open(config: &Config, secrets: &Secrets, store: &Store) -> Result<Self>;

    /// Puts a quorum's KGC to work; without a share it has the quorum sign the statement anew.
    ///
    /// # Errors
    /// The errors of the registry.
    fn open_member(config: &Config, store: &Store, share: Option<Self::Share>) -> Result<Self>;

    /// True if there is a share of a master key.
    fn has_share(&self) -> bool;

    /// Releases with this share from now on.
    fn hold(&mut self, share: Self::Share);

    /// Commands for what the registry has beyond this place, which moves on.
    ///
    /// # Errors
    /// The errors of the registry.
    fn rows(store: &Store, seen: &mut Self::Seen) -> Result<Vec<Self::Command>>;

    /// The share of a master key that was set up beside the running KGC.
    ///
    /// # Errors
    /// The errors of the registry and of the file with the share.
    fn new_share(secrets: &Secrets, store: &Store) -> Result<Option<Self::Share>>;

    /// Describes a command for the log.
    fn describe(command: &Self::Command) -> String;

    /// Describes a share that is taken up for the log.
    fn describe_share(share: &Self::Share) -> String;

    /// Logs an event.
    fn log(log: &EventLog, event: Self::Event);

    /// Counts an event.
    fn count(metrics: &KgcMetrics, event: &Self::Event);

    /// The newest statement about the quorum's master key that the registry has.
    fn statement(store: &Store, deployment: &Deployment<Ristretto255>) -> Option<Self::Statement>;

    /// The share of a quorum's KGC that this statement is about.
    fn share(member: &QuorumMember, statement: Self::Statement) -> Option<Self::Share>;

    /// The body that the quorum is to sign, unless the share in force is released with.
    fn proposal(&self, member: &QuorumMember) -> Option<Vec<u8>>;

    /// Releases with the share that the quorum has signed this statement about, if it is one, and the newest.
    fn take_signed(&mut self, member: &QuorumMember, body: &[u8], signature: &[u8]);

    /// Notes in the registry what the quorum has signed, if it is about the master key.
    fn note_signed(store: &mut Store, member: &QuorumMember, body: &[u8], signature: &[u8]);
}

/// No release: what another build stored stays as it is, and is named.
impl KeyRelease for Option<()> {
    type Share = Infallible;
    type Statement = Infallible;
    type Seen = ();

    const STATEMENTS: Option<IbeStatements> = None;

    fn open(_: &Config, _: &Secrets, store: &Store) -> Result<Self> {
        name_absent(store)?;
        Ok(None)
    }

    fn open_member(_: &Config, store: &Store, _: Option<Self::Share>) -> Result<Self> {
        name_absent(store)?;
        Ok(None)
    }

    fn has_share(&self) -> bool {
        false
    }

    fn hold(&mut self, share: Self::Share) {
        match share {}
    }

    fn rows(_: &Store, (): &mut ()) -> Result<Vec<Self::Command>> {
        Ok(Vec::new())
    }

    fn new_share(_: &Secrets, _: &Store) -> Result<Option<Self::Share>> {
        Ok(None)
    }

    fn describe(command: &Self::Command) -> String {
        match *command {}
    }

    fn describe_share(share: &Self::Share) -> String {
        match *share {}
    }

    fn log(_: &EventLog, event: Self::Event) {
        match event {}
    }

    fn count(_: &KgcMetrics, event: &Self::Event) {
        match *event {}
    }

    fn statement(_: &Store, _: &Deployment<Ristretto255>) -> Option<Self::Statement> {
        None
    }

    fn share(_: &QuorumMember, statement: Self::Statement) -> Option<Self::Share> {
        match statement {}
    }

    fn proposal(&self, _: &QuorumMember) -> Option<Vec<u8>> {
        None
    }

    fn take_signed(&mut self, _: &QuorumMember, _: &[u8], _: &[u8]) {}

    fn note_signed(_: &mut Store, _: &QuorumMember, _: &[u8], _: &[u8]) {}
}

/// Names in the log a master key of which this build releases nothing.
fn name_absent(store: &Store) -> Result<()> {
    if let Some(why) = absent(store)? {
        tracing::error!("{why}");
    }
    Ok(())
}

/// Reason why no keys are released, if the registry has a master key.
fn absent(store: &Store) -> Result<Option<String>> {
    let why =
        |name| format!("master key {name}: this program was built without what releases keys of conditions");
    Ok(store.ibe_authority()?.map(|row| why(row.name)))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::store::RegistryKey;

    #[test]
    fn master_key_without_the_feature_is_named_and_stays_in_the_registry() {
        let directory = tempfile::tempdir().expect("tempdir");
        let store = Store::create(directory.path(), &[7; 32], &RegistryKey::random(), 1).expect("create");
        assert_eq!(absent(&store).expect("read"), None);
        let db = Connection::open(Store::path_in(directory.path())).expect("open");
        let insert = "INSERT INTO ibe_authority VALUES (1, zeroblob(32), 'orders', x'01', 1);
                      INSERT INTO ibe_policy (pattern, allowed, groups, at) VALUES ('mission', 1, '', 1)";
        db.execute_batch(insert).expect("insert");
        let why = absent(&store).expect("read").expect("there is a master key");
        for part in ["master key orders", "built without"] {
            assert!(why.contains(part), "`{part}` is not in: {why}");
        }
        let release =
            <Option<()> as KeyRelease>::open_member(&Config::default(), &store, None).expect("open");
        assert!(!release.has_share());
        assert!(<Option<()> as KeyRelease>::rows(&store, &mut ()).expect("read").is_empty());
        assert!(store.ibe_authority().expect("read").is_some());
    }
}
