//! Opens the registry: for a subcommand that reads it, for one that changes it, for a KGC that begins to serve.
//!
//! Public files say whose it must be. A key in `master.state` or `quorum.state` authenticates every row
//! (`store::authentication`): the running KGC has it, or the passphrase or key file opens that file.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use quiver_ainq::{Deployment, MasterSecret, Ristretto255};
use quiver_service::clock;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::secrets::{Protection, ProtectionArgs};

use crate::audit_head::{self, AuditHead, HeadFile};
use crate::config::Config;
use crate::control::{KgcRequest, ask_if_running};
use crate::error::{Error, Result};
use crate::in_use::when_free;
use crate::membership;
use crate::sealed::KgcSecrets;
use crate::store::{
    AuditLine, AuthenticatedLine, Authenticator, KeptKey, NextLine, Position, RegistryFindings, RegistryKey,
    Store,
};

/// Looks for the lock on the file with the key, which a command holds while it changes something. Several may come first.
const PATIENCE: u32 = 600;

/// Differences named in the line of the audit table that says that they were accepted.
const ACCEPTED_SHOWN: usize = 100;

/// The owner of the registry in the data directory.
fn fingerprint(config: &Config) -> Result<[u8; 32]> {
    if let Some(quorum) = membership::kept(&config.data_dir)? {
        return Ok(quorum.seat());
    }
    Ok(config.deployment()?.fingerprint())
}

/// Opens the registry in the data directory, to read it.
pub(crate) fn open(config: &Config) -> Result<Store> {
    Store::open(&config.data_dir, &fingerprint(config)?)
}

/// Opens the registry in the data directory if it is of this deployment, to read it.
///
/// # Errors
/// [`Error::ForeignRegistry`] if it is not.
pub(crate) fn open_of(config: &Config, deployment: &Deployment<Ristretto255>) -> Result<Store> {
    let fingerprint = deployment.fingerprint();
    let Some(quorum) = membership::kept(&config.data_dir)? else {
        return Store::open(&config.data_dir, &fingerprint);
    };
    // A quorum's registry is older than its key: the deployment file beside it has the key.
    let kept = DeploymentFile::read(&config.existing_deployment()?)?;
    if kept.fingerprint != hex::encode(fingerprint) {
        let (path, found) = (Store::path_in(&config.data_dir), "the registry of another deployment".into());
        return Err(Error::ForeignRegistry { path, found });
    }
    Store::open(&config.data_dir, &quorum.seat())
}

/// The open, locked file with the registry's key.
pub(crate) struct RegistryKeyFile {
    file: Box<dyn HeadFile>,
    /// The master secret, if this KGC has all of it.
    master: Option<MasterSecret<Ristretto255>>,
}

impl RegistryKeyFile {
    /// Opens it.
    pub(crate) fn open(config: &Config, by: &Protection) -> Result<Self> {
        if let Some(quorum) = membership::kept(&config.data_dir)? {
            return Ok(Self { file: quorum.open_key_file(&config.data_dir, by)?, master: None });
        }
        let deployment = config.deployment()?;
        let (secrets, file) = KgcSecrets::open(&config.data_dir, &deployment, by)?;
        Ok(Self { file: Box::new(file), master: Some(secrets.master) })
    }

    /// The head that is noted, if one is, and what the KGC did not write.
    pub(crate) fn check(&mut self, config: &Config) -> Result<(Option<AuditHead>, RegistryFindings)> {
        let (store, key) = open_settled(&config.data_dir, &fingerprint(config)?, &mut *self.file)?;
        Ok((self.file.noted(), findings(&store, &key)?))
    }

    /// Takes the audit table as it is although its end is missing, and records that.
    pub(crate) fn accept_head(&mut self, config: &Config) -> Result<()> {
        let (data_dir, fingerprint) = (&config.data_dir, fingerprint(config)?);
        let key = settle(data_dir, &fingerprint, &mut *self.file)?;
        let mut store = Store::open(data_dir, &fingerprint)?.authenticated_by(Authenticator::Key(key));
        audit_head::accept(&mut store, &mut *self.file, clock::unix_now())
    }

    /// Authenticates the rows that there are, although they are not those that the KGC wrote, and records that.
    /// Returns what was found.
    pub(crate) fn accept_rows(&mut self, config: &Config) -> Result<RegistryFindings> {
        accept_rows(&config.data_dir, &fingerprint(config)?, &mut *self.file)
    }

    fn note(&mut self, head: AuditHead) -> Result<()> {
        if self.file.noted() == Some(head) { Ok(()) } else { self.file.note(head) }
    }
}

/// A registry that a subcommand may change.
pub(crate) struct RegistryWriter {
    store: Store,
    /// `None` while a KGC runs, which has the file.
    held: Option<RegistryKeyFile>,
    /// The passphrase or key, once it was asked for.
    by: Option<Rc<Protection>>,
}

impl Deref for RegistryWriter {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl DerefMut for RegistryWriter {
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}

impl RegistryWriter {
    /// The master secret of a single KGC that does not run.
    pub(crate) fn master(&self) -> Option<&MasterSecret<Ristretto255>> {
        self.held.as_ref()?.master.as_ref()
    }

    /// The passphrase or key, which is asked for no more than once.
    pub(crate) fn protection(&mut self, args: &ProtectionArgs) -> Result<Rc<Protection>> {
        if let Some(by) = &self.by {
            return Ok(Rc::clone(by));
        }
        Ok(Rc::clone(self.by.insert(Rc::new(args.obtain(false)?))))
    }

    /// Opens the registry: with the running KGC's help, or else with the passphrase or key.
    fn open(config: &Config, protection: &ProtectionArgs) -> Result<Self> {
        let fingerprint = fingerprint(config)?;
        let mut by: Option<Rc<Protection>> = None;
        let open = || {
            if runs(config)? {
                let store = Store::open(&config.data_dir, &fingerprint)?;
                let store = store.authenticated_by(by_running_kgc(config));
                return Ok(Self { store, held: None, by: by.clone() });
            }
            let given = match &by {
                Some(given) => Rc::clone(given),
                None => Rc::clone(by.insert(Rc::new(protection.obtain(false)?))),
            };
            let mut held = RegistryKeyFile::open(config, &given)?;
            let Verified { store, .. } = verify(&config.data_dir, &fingerprint, &mut *held.file)?;
            Ok(Self { store, held: Some(held), by: Some(given) })
        };
        // Another command changes something, or a KGC starts.
        when_free(PATIENCE, open, || Ok(true))
    }

    /// Notes the end of the audit table, so that nobody can take back what was just written. A running KGC does so
    /// itself.
    fn note(&mut self) -> Result<()> {
        let Some(held) = &mut self.held else { return Ok(()) };
        self.store.audit().head()?.map_or(Ok(()), |head| held.note(head))
    }
}

/// Opens the file with the key for a KGC that starts, once a command that changes the registry has given it back.
///
/// # Errors
/// Those of `open`; at once if another KGC has the file.
pub(crate) fn open_when_free<T>(config: &Config, open: impl Fn() -> Result<T>) -> Result<T> {
    tokio::task::block_in_place(|| when_free(PATIENCE, open, || Ok(!runs(config)?)))
}

/// Changes the registry in the data directory.
pub(crate) fn write<T>(
    config: &Config,
    protection: &ProtectionArgs,
    body: impl FnOnce(&mut RegistryWriter) -> Result<T>,
) -> Result<T> {
    let mut writer = RegistryWriter::open(config, protection)?;
    let done = body(&mut writer);
    // Also if it failed halfway.
    let noted = writer.note();
    done.and_then(|done| noted.map(|()| done))
}

/// Tells that a KGC runs on the data directory.
fn runs(config: &Config) -> Result<bool> {
    Ok(ask_if_running::<Option<AuditHead>>(config, &KgcRequest::AuditHead)?.is_some())
}

/// Has the running KGC authenticate what is written.
fn by_running_kgc(config: &Config) -> Authenticator {
    let config = config.clone();
    Authenticator::Running(Box::new(move |line, rows| {
        let request = KgcRequest::Authenticate { line: line.into(), rows: *rows };
        ask_if_running::<[u8; 32]>(&config, &request)?.ok_or_else(|| {
            Error::Terms(
                "`kgc serve` ended meanwhile, and nothing was changed: give the same command again".into(),
            )
        })
    }))
}

/// A registry that is what its KGC wrote.
pub(crate) struct Verified {
    /// The registry, which may be changed.
    pub(crate) store: Store,
    /// The key that authenticates it.
    pub(crate) key: RegistryKey,
    /// The end of what was checked.
    pub(crate) position: Position,
}

/// Opens a registry and checks all of it. One of an earlier build is brought up to date, once.
///
/// # Errors
/// [`Error::AuditCut`], [`Error::OtherRegistry`], [`Error::ForeignRows`], and those of reading it.
pub(crate) fn verify(data_dir: &Path, fingerprint: &[u8; 32], file: &mut dyn HeadFile) -> Result<Verified> {
    let (store, key) = open_settled(data_dir, fingerprint, file)?;
    audit_head::check(&store, file.noted(), file.name())?;
    let mut position = Position::default();
    store.macs().check_rows(&key, &mut position)?;
    Ok(Verified { store, key, position })
}

/// Opens a registry to change it, after bringing one of an earlier build up to date if its end is not missing.
fn open_settled(
    data_dir: &Path,
    fingerprint: &[u8; 32],
    file: &mut dyn HeadFile,
) -> Result<(Store, RegistryKey)> {
    if file.registry_key().is_none_or(|kept| !kept.settled) {
        audit_head::check(&Store::open_of_any_build(data_dir, fingerprint)?, file.noted(), file.name())?;
    }
    let key = settle(data_dir, fingerprint, file)?;
    let store = Store::open(data_dir, fingerprint)?.authenticated_by(Authenticator::Key(key.clone()));
    Ok((store, key))
}

/// Differences of a registry from what the holder of the key wrote.
fn findings(store: &Store, key: &RegistryKey) -> Result<RegistryFindings> {
    match store.macs().check_rows(key, &mut Position::default()) {
        Ok(()) => Ok(RegistryFindings::default()),
        Err(Error::ForeignRows(findings)) => Ok(*findings),
        Err(error) => Err(error),
    }
}

/// The key of a registry. If the file has none that is settled, the registry is of an earlier build, and is
/// authenticated as it is. That happens once, because the file then says that it has happened; a crash on the way
/// is made up for by the next start.
fn settle(data_dir: &Path, fingerprint: &[u8; 32], file: &mut dyn HeadFile) -> Result<RegistryKey> {
    let is_earlier = Store::is_earlier(data_dir, fingerprint)?;
    let key = match file.registry_key() {
        Some(KeptKey { settled: true, .. }) if is_earlier => {
            return Err(Error::OtherRegistry { file: file.name() });
        }
        Some(KeptKey { key, settled: true }) => return Ok(key.clone()),
        Some(KeptKey { key, settled: false }) => key.clone(),
        None if !is_earlier => return Err(Error::OtherRegistry { file: file.name() }),
        None => RegistryKey::random(),
    };
    if file.registry_key().is_none() {
        file.keep_registry_key(KeptKey { key: key.clone(), settled: false })?;
    }
    let mut store =
        Store::open_of_any_build(data_dir, fingerprint)?.authenticated_by(Authenticator::Key(key.clone()));
    store.upgrade()?;
    store.macs().check_rows(&key, &mut Position::default())?;
    file.keep_registry_key(KeptKey { key: key.clone(), settled: true })?;
    tracing::warn!(
        "the registry is of an earlier build, which did not authenticate its rows: they were authenticated now as they \
         were found. Look through `kgc abe list`, `kgc abke list`, `kgc ibe list`, `kgc drone list` and `kgc token list`, \
         and erase copies of {} from before this start: with one, this could be repeated",
        file.name()
    );
    Ok(key)
}

/// The part of a running KGC that commands which change its registry ask.
pub(crate) struct Registrar {
    data_dir: PathBuf,
    fingerprint: [u8; 32],
    key: RegistryKey,
    store: Mutex<Store>,
    /// The line that was authenticated last.
    last: Mutex<Option<AuthenticatedLine>>,
}

impl Registrar {
    /// Opens the registry once more.
    pub(crate) fn new(data_dir: &Path, fingerprint: &[u8; 32], key: RegistryKey) -> Result<Self> {
        let store = Mutex::new(Store::open(data_dir, fingerprint)?);
        Ok(Self { data_dir: data_dir.into(), fingerprint: *fingerprint, key, store, last: Mutex::default() })
    }

    /// Authenticates the line that a command adds to the audit table, with the digest of its rows.
    pub(crate) fn authenticate(&self, line: NextLine, rows: &[u8; 32]) -> Result<[u8; 32]> {
        let line = AuditLine::from(line);
        // It only reads.
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let authenticated = store.macs().authenticate_next(&self.key, &line, rows, last.as_ref())?;
        let mac = authenticated.mac;
        *last = Some(authenticated);
        let AuditLine { seq, action, subject, detail, .. } = &line;
        tracing::info!(
            seq,
            action,
            subject,
            detail,
            "line of the audit table authenticated for the command line"
        );
        Ok(mac)
    }

    /// Checks all of the registry.
    pub(crate) fn check(&self) -> Result<RegistryFindings> {
        // Another one: that takes a while.
        let store = Store::open(&self.data_dir, &self.fingerprint)?;
        findings(&store, &self.key)
    }
}

fn accept_rows(data_dir: &Path, fingerprint: &[u8; 32], file: &mut dyn HeadFile) -> Result<RegistryFindings> {
    let key = match file.registry_key() {
        Some(kept) => kept.key.clone(),
        None => RegistryKey::random(),
    };
    if file.registry_key().is_none_or(|kept| !kept.settled) {
        file.keep_registry_key(KeptKey { key: key.clone(), settled: true })?;
    }
    let mut store =
        Store::open_of_any_build(data_dir, fingerprint)?.authenticated_by(Authenticator::Key(key.clone()));
    store.upgrade()?;
    let findings = findings(&store, &key)?;
    if !findings.0.is_empty() {
        store.change(clock::unix_now(), |change| {
            change.macs().authenticate_all("rows accepted", "", &findings.text(ACCEPTED_SHOWN))
        })?;
    }
    // A table whose end is missing is accepted separately.
    if let (Ok(()), Some(head)) =
        (audit_head::check(&store, file.noted(), file.name()), store.audit().head()?)
    {
        file.note(head)?;
    }
    Ok(findings)
}
