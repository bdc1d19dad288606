//! `kgc abke policy`: a policy that leaders of a group may demand.

use std::path::PathBuf;

use quiver_admission::{PolicyStatement, SignedPolicy};
use quiver_ainq::{Deployment, Name, Purpose, Ristretto255};
use quiver_garble::policy::{MAX_TEXT, Policy};
use quiver_service::armour::{self, ArmourKind};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::terminal::counted;
use quiver_service::{clock, private_file, terminal};

use super::arguments::PolicyArgs;
use super::choose;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::registry::RegistryWriter;
use crate::signing::RegistrySigner;
use crate::store::policies::SignedText;
use crate::token::check_end;

/// Compiles the text, has the KGC sign it, records it, writes it.
pub(crate) fn run(
    config: &Config,
    protection: &ProtectionArgs,
    deployment: &Deployment<Ristretto255>,
    writer: &mut RegistryWriter,
    args: &PolicyArgs,
) -> Result<()> {
    let known = choose(writer, deployment, args.authority.as_deref())?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => Name::new(&args.file.file_stem().unwrap_or_default().to_string_lossy())?,
    };
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.policy")));
    if out.exists() {
        return Err(quiver_service::Error::Exists { path: out }.into());
    }
    let wrong = |reason: String| Error::Fields { what: args.file.display().to_string(), reason };
    let content = private_file::read_public(&args.file, MAX_TEXT as u64, "a policy")?;
    let text = content.text().ok_or_else(|| wrong("not text in UTF-8".into()))?.to_owned();
    let compiled = Policy::compile(&text, known.service.schema());
    let size = compiled.map_err(|error| wrong(content.explain(error)))?.statistics();
    let now = clock::unix_now();
    check_end("--not-after", args.not_after, now, "when the policy ends, such as 30d")?;
    let (authority, group) = (*known.statement.fingerprint(), args.group.clone());
    let statement = PolicyStatement { authority, group, name: name.clone(), not_after: args.not_after, text };
    let by = writer.protection(protection)?;
    let signing = RegistrySigner { config, deployment, by: &by, wait: args.approval.wait };
    let signature = signing.sign(writer, Purpose::AbkePolicy, &statement.body())?;
    let policy = SignedPolicy::new(statement, signature)?.verify(deployment)?;
    // Recorded first: every policy that leaves is in the audit table.
    let signed = SignedText {
        id: policy.id(),
        authority: &policy.authority,
        name: policy.name.as_str(),
        group: policy.group.as_str(),
        not_after: policy.not_after,
        text: &policy.text,
    };
    writer.change(now, |change| change.admission().record(&signed))?;
    armour::write_new(&out, ArmourKind::AdmissionPolicy, &policy.bytes())?;
    terminal::line(&format!(
        "{}  public: policy {name} for leaders of {}, over the fields of {}, until {}\n{}, {} of them AND",
        out.display(),
        policy.group,
        known.row.name,
        clock::format(policy.not_after),
        counted(size.gates(), "gate"),
        size.and
    ))?;
    Ok(())
}
