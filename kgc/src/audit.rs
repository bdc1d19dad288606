//! `kgc audit`: checks the audit table and prints it.

use quiver_service::{clock, terminal};

use crate::cli::AuditArgs;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::registry;
use crate::store::{Checked, Line};

fn counted(lines: usize) -> String {
    if lines == 1 { "1 line".into() } else { format!("{lines} lines") }
}

/// Prints all lines, then fails if the chain does not hold.
pub(crate) fn run(config: &Config, args: &AuditArgs) -> Result<()> {
    let store = registry::open(config)?;
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
        return Err(Error::Audit(format!("the chain holds in itself but does not contain {wanted}")));
    }
    if !args.json {
        terminal::line(&format!("{}, the chain holds; head {head}", counted(lines.len())))?;
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
