//! Files that open when a condition is met, for the programs of edges and leaders.
//!
//! They are age files ([`quiver_age`]). The subcommand itself reads and writes them, whichever way they come;
//! from a running service it has the master public key and the keys of conditions, through a [`KeySource`].
//! Neither is needed by who has recipients as text, or keys in a file.

mod arguments;
mod files;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::io::Read;
use std::path::PathBuf;

use quiver_age::{Identity, Plaintext, Recipient, SealedFile, WrappedKey, identity_file};
use quiver_ibe::{Condition, MasterPublicKey, UnverifiedIdentityKey};
use quiver_service::{Error as ServiceError, private_file};

pub use self::arguments::{DecryptArgs, EncryptArgs, IbeArgs, IdentityArgs, RecipientArgs};
use self::files::{NamedReader, OutputTarget};
use crate::{Error, Result};

/// Source of the master public key and of the keys of conditions.
pub trait KeySource {
    /// The master public key of the deployment.
    ///
    /// # Errors
    /// Those of asking, in words for people.
    fn master(&mut self) -> impl Future<Output = Result<MasterPublicKey>>;

    /// The key of a condition.
    ///
    /// # Errors
    /// [`Error::NotReleased`] with the reasons, [`Error::TooFewShares`], and those of asking.
    fn key(&mut self, condition: &Condition) -> impl Future<Output = Result<UnverifiedIdentityKey>>;

    /// The conditions whose keys are here, so that nobody has to be asked for them.
    ///
    /// # Errors
    /// Those of asking.
    fn held(&mut self) -> impl Future<Output = Result<Vec<Condition>>>;
}

/// Runs a subcommand. Returns what to tell, if anything.
///
/// # Errors
/// [`Error::Age`], [`Error::AgeFile`], [`Error::NotReleased`], those of the source, and those of files.
pub async fn run(command: IbeArgs, source: &mut impl KeySource) -> Result<Option<String>> {
    match command {
        IbeArgs::Encrypt(args) => encrypt(args, source).await,
        IbeArgs::Decrypt(args) => decrypt(args, source).await,
        IbeArgs::Identity(args) => identity(args, source).await.map(Some),
        IbeArgs::Recipient(args) => {
            let lines: Vec<_> =
                recipients(args.conditions, source).await?.iter().map(Recipient::to_string).collect();
            Ok(Some(lines.join("\n")))
        }
    }
}

async fn recipients(conditions: Vec<Condition>, source: &mut impl KeySource) -> Result<Vec<Recipient>> {
    if conditions.is_empty() {
        return Ok(Vec::new());
    }
    let master = source.master().await?;
    Ok(conditions.into_iter().map(|condition| Recipient::new(master, condition)).collect())
}

async fn encrypt(args: EncryptArgs, source: &mut impl KeySource) -> Result<Option<String>> {
    let format = args.format();
    let EncryptArgs { file, to, recipient, out, .. } = args;
    let mut all = recipients(to, source).await?;
    all.extend(recipient);
    blocking(move || {
        let (input, mut output) = (NamedReader::open(file)?, OutputTarget::new(out)?);
        let encrypted = quiver_age::encrypt(&all, format, input.reader, output.writer());
        let bytes = encrypted.map_err(|error| files::blame(error, &input.name, &output.name))?;
        let told = |name: &str| {
            format!(
                "encrypted {bytes} bytes into {name}, for {}",
                listed(all.iter().map(Recipient::condition))
            )
        };
        output.finish(told)
    })
    .await
}

async fn decrypt(args: DecryptArgs, source: &mut impl KeySource) -> Result<Option<String>> {
    let DecryptArgs { file, out, identity } = args;
    let (sealed, from) = blocking(move || {
        let input = NamedReader::open(file)?;
        let sealed = SealedFile::read(input.reader).map_err(|error| files::blame(error, &input.name, ""))?;
        Ok((sealed, input.name))
    })
    .await?;
    let identity = match identity.is_empty() {
        true => fetched(sealed.keys(), source).await?,
        false => chosen(&sealed, &identity)?,
    };
    blocking(move || {
        let plaintext = sealed.open(&identity).map_err(|error| files::blame(error, &from, ""))?;
        // Not before anything is known to come.
        let mut output = OutputTarget::new(out)?;
        let copied = Plaintext::copy_to(plaintext, output.writer());
        let bytes = copied.map_err(|error| files::blame(error, &from, &output.name))?;
        output.finish(|name| format!("decrypted {bytes} bytes into {name}"))
    })
    .await
}

async fn identity(args: IdentityArgs, source: &mut impl KeySource) -> Result<String> {
    let mut identity = Identity::new(source.master().await?);
    for condition in args.conditions {
        let key = source.key(&condition).await?;
        identity.insert_unverified(condition, key)?;
    }
    let told = format!("wrote the keys of {} into {}", listed(identity.conditions()), args.out.display());
    let content = identity_file::render(&[identity]);
    blocking(move || Ok(private_file::write_new(&args.out, content.as_bytes())?)).await?;
    Ok(told)
}

/// A key of one of the file's conditions: one that is here, or else the first that is released.
async fn fetched(keys: &[WrappedKey], source: &mut impl KeySource) -> Result<Identity> {
    let master = source.master().await?;
    let mut identity = Identity::new(master);
    let mut refused = Vec::new();
    for condition in ordered(keys, &master, source).await? {
        match source.key(&condition).await {
            Ok(key) => {
                identity.insert_unverified(condition, key)?;
                return Ok(identity);
            }
            // Another condition may be met. If nobody answers, nobody would for the others either.
            Err(Error::NotReleased(reason)) => refused.push(reason),
            Err(error) => return Err(error),
        }
    }
    match refused.is_empty() {
        // No condition is of this deployment, or of a kind that is known; opening says which they are.
        true => Ok(identity),
        false => Err(Error::NotReleased(refused.join("\n"))),
    }
}

/// The file's conditions under this master key, each once, and those first whose keys are here.
async fn ordered(
    keys: &[WrappedKey],
    master: &MasterPublicKey,
    source: &mut impl KeySource,
) -> Result<Vec<Condition>> {
    let fingerprint = master.fingerprint();
    let ours = keys.iter().filter(|key| key.master == fingerprint);
    let mut conditions: Vec<Condition> = Vec::new();
    for condition in ours.filter_map(|key| key.condition.parse().ok()) {
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    if conditions.len() > 1 {
        let held = source.held().await?;
        conditions.sort_by_key(|condition| !held.contains(condition));
    }
    Ok(conditions)
}

/// The first identity in these files that opens the file; any, if none does.
fn chosen<R: Read>(sealed: &SealedFile<R>, files: &[PathBuf]) -> Result<Identity> {
    let mut last = None;
    for path in files {
        let content = private_file::read(path, identity_file::LIMIT)?;
        let garbled = |error| Error::AgeFile { file: path.display().to_string(), error };
        let what = |what: String| ServiceError::Garbled { path: path.clone(), what };
        let text = std::str::from_utf8(&content).ok();
        let is_of_keys = text.is_some_and(identity_file::has_keys);
        if let Some(found) = private_file::secret_kind(&content).filter(|_| !is_of_keys) {
            return Err(what(format!("this is {found}, not a file of keys (from `ibe identity`)")).into());
        }
        let text = text.ok_or_else(|| what("it is not text".into()))?;
        for identity in identity_file::parse(text).map_err(garbled)? {
            if sealed.keys().iter().any(|key| identity.opens(key)) {
                return Ok(identity);
            }
            last = Some(identity);
        }
    }
    last.ok_or(Error::NotReleased("no identity was given".into()))
}

fn listed<'a>(conditions: impl Iterator<Item = &'a Condition>) -> String {
    conditions.map(Condition::as_str).collect::<Vec<_>>().join(", ")
}

/// Runs blocking work: files, and pipes whose other end may be slow.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(std::io::Error::other(error).into()))
}
