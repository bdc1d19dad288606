//! `kgc audit`: checks the audit table and prints it.

use quiver_service::deployment_file::DeploymentFile;
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{clock, terminal};

use crate::audit_head::{self, AuditHead, HeadFile};
use crate::cli::AuditArgs;
use crate::config::Config;
use crate::control::{Request, ask_if_running};
use crate::error::{Error, Result};
use crate::quorum::file::Pinned;
use crate::quorum::sealed::QuorumState;
use crate::registry;
use crate::sealed::{MasterFile, Sealed};
use crate::store::{Checked, Line, Store};

fn counted(lines: usize) -> String {
    if lines == 1 { "1 line".into() } else { format!("{lines} lines") }
}

/// Prints all lines, then fails if the chain does not hold, or its end is missing.
pub(crate) fn run(config: &Config, protection: &ProtectionArgs, args: &AuditArgs) -> Result<()> {
    let quorum = Pinned::kept(&config.data_dir)?;
    let mut store = registry::open(config)?;
    if args.accept {
        accept(config, protection, quorum.as_ref(), &mut store)?;
    }
    let lines = store.audit_lines()?;
    let checked = store.check_audit(&lines)?;
    print(&lines, args.json)?;
    match checked {
        Checked::Whole => {}
        Checked::BrokenAt(seq) => {
            return Err(Error::Audit(format!("line {seq} was changed, put in or taken out")));
        }
        Checked::CountDiffers { what, issued, audited } => {
            return Err(Error::Audit(format!(
                "{issued} {what} in the registry, but {audited} in the audit table"
            )));
        }
    }
    let head = lines.last().map(|line| line.hash.clone()).unwrap_or_default();
    if let Some(wanted) = &args.contains
        && !lines.iter().any(|line| line.hash.eq_ignore_ascii_case(wanted))
    {
        return Err(Error::Audit(format!("the chain holds but does not contain {wanted}")));
    }
    let end = match noted(config, protection, quorum.as_ref())? {
        Noted::Head(noted) if quorum.is_some() => compare::<QuorumState>(&store, noted)?,
        Noted::Head(noted) => compare::<MasterFile>(&store, noted)?,
        Noted::Unknown(why) => format!(", its end not compared with the noted one ({why})"),
    };
    if !args.json {
        terminal::line(&format!("{}, the chain holds{end}; head {head}", counted(lines.len())))?;
    }
    Ok(())
}

/// What is known of the noted head.
enum Noted {
    /// The head, if one was noted.
    Head(Option<AuditHead>),
    /// Nothing, for this reason.
    Unknown(String),
}

/// The noted head: of the running KGC, or out of the file.
fn noted(config: &Config, protection: &ProtectionArgs, quorum: Option<&Pinned>) -> Result<Noted> {
    match ask_if_running(config, &Request::AuditHead) {
        Ok(Some(head)) => return Ok(Noted::Head(head)),
        Ok(None) => {}
        Err(error) => return Ok(Noted::Unknown(error.to_string())),
    }
    if !protection.is_given() {
        return Ok(Noted::Unknown("give --passphrase-file or --key-file".into()));
    }
    Ok(Noted::Head(match quorum {
        Some(kept) => open_quorum(config, protection, kept)?.noted(),
        None => {
            let file = DeploymentFile::read(&config.existing_deployment()?)?;
            open_single(config, protection, &file)?.noted()
        }
    }))
}

fn open_quorum(config: &Config, protection: &ProtectionArgs, kept: &Pinned) -> Result<QuorumState> {
    Ok(QuorumState::open(&config.data_dir, kept, &protection.obtain(false)?)?.0)
}

fn open_single(config: &Config, protection: &ProtectionArgs, file: &DeploymentFile) -> Result<MasterFile> {
    Ok(Sealed::open(&config.data_dir, &file.pin()?, &protection.obtain(false)?)?.1)
}

/// What is said of a table that has the line noted.
fn compare<F: HeadFile>(store: &Store, noted: Option<AuditHead>) -> Result<String> {
    audit_head::check::<F>(store, noted)?;
    Ok(noted.map_or_else(String::new, |noted| format!(", with line {} as noted in {}", noted.seq, F::NAME)))
}

/// Takes the table as it is.
fn accept(
    config: &Config,
    protection: &ProtectionArgs,
    quorum: Option<&Pinned>,
    store: &mut Store,
) -> Result<()> {
    let now = clock::unix_now();
    match quorum {
        Some(kept) => audit_head::accept(store, &mut open_quorum(config, protection, kept)?, now),
        None => {
            let file = DeploymentFile::read(&config.existing_deployment()?)?;
            audit_head::accept(store, &mut open_single(config, protection, &file)?, now)
        }
    }
}

/// A text whose serials, handles and fingerprints are cut to twelve digits; `--json` has all of them.
fn shorten(text: &str) -> String {
    let is_long = |word: &str| word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let word = |word: &str| match word.get(..12) {
        Some(start) if is_long(word) => format!("{start}…"),
        _ => word.into(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn print(lines: &[Line], json: bool) -> Result<()> {
    if json {
        for line in lines {
            terminal::line(&serde_json::to_string(line).map_err(std::io::Error::from)?)?;
        }
        return Ok(());
    }
    let rows: Vec<_> = lines
        .iter()
        .map(|line| {
            let short = line.hash.get(..12).unwrap_or_default().to_string();
            let (action, subject, detail) =
                (line.action.clone(), shorten(&line.subject), shorten(&line.detail));
            [line.seq.to_string(), clock::format(line.at), action, subject, detail, short]
        })
        .collect();
    terminal::line(&terminal::table(["SEQ", "TIME", "ACTION", "SUBJECT", "DETAIL", "HASH"], &rows))?;
    Ok(())
}
