//! Seam to the feature that releases keys of conditions: what a KGC asks of it. A KGC of a quorum asks more of it, by an
//! interface of the quorum's own.

use std::convert::Infallible;

use quiver_ainq::Ristretto255;
use quiver_machine::{Either, MachinePart};

use crate::changes::Secrets;
use crate::config::Config;
use crate::error::Result;
use crate::event_log::EventLog;
use crate::metrics::KgcMetrics;
use crate::store::Store;

/// Release of condition keys, beside the delivery of attribute keys. A build without it releases nothing.
pub(crate) trait KeyRelease: MachinePart<Ristretto255> + Sized {
    /// Share of the master key, which opens for drones.
    type Share;
    /// Place in the registry up to which its content was handed over.
    type Seen: Default;

    /// Opens what a KGC that is alone releases with. The rest comes with [`KeyRelease::changes`], from the place that is
    /// returned.
    ///
    /// # Errors
    /// The errors of the registry and of the file with the share.
    fn open(config: &Config, secrets: &Secrets, store: &Store) -> Result<(Self, Self::Seen)>;

    /// Releases with this share from now on.
    fn hold(&mut self, share: Self::Share);

    /// Content of the registry beyond this place: commands, and the share of a master key that was set up beside the
    /// running KGC. The place moves on unless there is an error.
    ///
    /// # Errors
    /// The errors of the registry and of the file with the share.
    fn changes(
        secrets: &Secrets,
        store: &Store,
        seen: &mut Self::Seen,
    ) -> Result<Vec<Either<Self::Command, Self::Share>>>;

    /// Describes a change for the log.
    fn describe(change: Either<&Self::Command, &Self::Share>) -> String;

    /// Logs an event.
    fn log(log: &EventLog, event: Self::Event);

    /// Counts an event.
    fn count(metrics: &KgcMetrics, event: &Self::Event);
}

/// No release: what another build stored stays as it is, and is named.
impl KeyRelease for () {
    type Share = Infallible;
    type Seen = ();

    fn open(_: &Config, _: &Secrets, store: &Store) -> Result<((), ())> {
        name_absent(store).map(|()| ((), ()))
    }

    fn hold(&mut self, share: Infallible) {
        match share {}
    }

    fn changes(_: &Secrets, _: &Store, (): &mut ()) -> Result<Vec<Either<Infallible, Infallible>>> {
        Ok(Vec::new())
    }

    fn describe(change: Either<&Infallible, &Infallible>) -> String {
        match change {
            Either::Left(never) | Either::Right(never) => match *never {},
        }
    }

    fn log(_: &EventLog, event: Infallible) {
        match event {}
    }

    fn count(_: &KgcMetrics, event: &Infallible) {
        match *event {}
    }
}

/// Names in the log a master key of which this build releases nothing.
///
/// # Errors
/// The errors of the registry.
pub(crate) fn name_absent(store: &Store) -> Result<()> {
    if let Some(why) = absent(store)? {
        tracing::error!("{why}");
    }
    Ok(())
}

/// Reason why no keys are released, if the registry has a master key.
fn absent(store: &Store) -> Result<Option<String>> {
    let why =
        |name| format!("master key {name}: this program was built without what releases keys of conditions");
    Ok(store.master_key().newest()?.map(|row| why(row.name)))
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{Deployment, MasterSecret, Name};
    use quiver_service::secrets::Protection;
    use quiver_service_testing::deployment::KEY;
    use rand::rngs::OsRng;
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
        let master = MasterSecret::<Ristretto255>::generate(&mut OsRng).public();
        let secrets = Secrets {
            data_dir: directory.path().into(),
            deployment: Deployment::new(Name::new("alps").expect("name"), master),
            by: Protection::from_key_text(KEY.as_bytes(), "the test").expect("key").into(),
        };
        assert!(<() as KeyRelease>::open(&Config::default(), &secrets, &store).is_ok());
        assert!(<() as KeyRelease>::changes(&secrets, &store, &mut ()).expect("read").is_empty());
        assert!(store.master_key().newest().expect("read").is_some());
    }
}
