//! `kgc audit`: checks the audit table and prints it.

use quiver_service::secrets::ProtectionArgs;
use quiver_service::terminal::counted;
use quiver_service::{clock, terminal};

use crate::audit_head::{self, AuditHead};
use crate::cli::AuditArgs;
use crate::config::Config;
use crate::control::{KgcRequest, ask_if_running};
use crate::error::{Error, Result};
use crate::membership;
use crate::registry::{self, RegistryKeyFile};
use crate::sealed::MasterFile;
use crate::store::{AuditLine, Checked, RegistryFindings, Store};

/// Prints all lines, then fails if the chain does not hold, or its end is missing.
pub(crate) fn run(config: &Config, protection: &ProtectionArgs, args: &AuditArgs) -> Result<()> {
    let file = membership::kept(&config.data_dir)?.map_or(MasterFile::NAME, |quorum| quorum.key_file());
    if args.accept_rows {
        accept_rows(config, protection)?;
    }
    if args.accept {
        accept(config, protection)?;
    }
    // A registry of an earlier build is brought up to date by that.
    let checked_by = checked_by(config, protection);
    let store = registry::open(config)?;
    let lines = store.audit().lines()?;
    let checked = store.audit().check(&lines)?;
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
    let end = match checked_by? {
        RegistryCheck::Done { noted, findings } => {
            let end = compare(&store, noted, file)?;
            print_findings(&findings, args.json)?;
            if !findings.0.is_empty() {
                return Err(Error::ForeignRows(Box::new(findings)));
            }
            format!("{end}, all rows are authentic")
        }
        RegistryCheck::Nobody(why) => {
            format!(", its end not compared with the noted one, and no row authenticated ({why})")
        }
    };
    if !args.json {
        terminal::line(&format!("{}, the chain holds{end}; head {head}", counted(lines.len(), "line")))?;
    }
    Ok(())
}

/// Result of checking the registry against the file with its key.
enum RegistryCheck {
    /// Checked by the running KGC, or by this command with the passphrase or key: the head that is noted, if
    /// one is, and the rows that are not as the KGC wrote them.
    Done { noted: Option<AuditHead>, findings: RegistryFindings },
    /// Not checked, for this reason.
    Nobody(String),
}

/// Has the registry checked: by the running KGC, or with the file.
fn checked_by(config: &Config, protection: &ProtectionArgs) -> Result<RegistryCheck> {
    match ask_if_running(config, &KgcRequest::AuditHead) {
        Ok(Some(noted)) => {
            return Ok(match ask_if_running(config, &KgcRequest::CheckRegistry) {
                Ok(Some(findings)) => RegistryCheck::Done { noted, findings },
                Ok(None) => RegistryCheck::Nobody("`kgc serve` ended meanwhile".into()),
                Err(error) => RegistryCheck::Nobody(error.to_string()),
            });
        }
        Ok(None) => {}
        Err(error) => return Ok(RegistryCheck::Nobody(error.to_string())),
    }
    if !protection.is_given() {
        return Ok(RegistryCheck::Nobody("give --passphrase-file or --key-file".into()));
    }
    let mut held = RegistryKeyFile::open(config, &protection.obtain(false)?)?;
    let (noted, findings) = held.check(config)?;
    Ok(RegistryCheck::Done { noted, findings })
}

/// Compares a table with the line noted in this file; returns the words that say so.
fn compare(store: &Store, noted: Option<AuditHead>, file: &'static str) -> Result<String> {
    audit_head::check(store, noted, file)?;
    Ok(noted.map_or_else(String::new, |noted| format!(", with line {} as noted in {file}", noted.seq)))
}

/// Prints all findings, each in a line.
fn print_findings(findings: &RegistryFindings, json: bool) -> Result<()> {
    for finding in &findings.0 {
        let text = if json {
            serde_json::to_string(finding).map_err(std::io::Error::from)?
        } else {
            format!("not authentic: {finding}")
        };
        terminal::line(&text)?;
    }
    Ok(())
}

/// Takes the table as it is although its end is missing.
fn accept(config: &Config, protection: &ProtectionArgs) -> Result<()> {
    RegistryKeyFile::open(config, &protection.obtain(false)?)?.accept_head(config)
}

/// Authenticates all rows as they are.
fn accept_rows(config: &Config, protection: &ProtectionArgs) -> Result<()> {
    let findings = RegistryKeyFile::open(config, &protection.obtain(false)?)?.accept_rows(config)?;
    for finding in &findings.0 {
        tracing::warn!("accepted: {finding}");
    }
    Ok(())
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

fn print(lines: &[AuditLine], json: bool) -> Result<()> {
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
