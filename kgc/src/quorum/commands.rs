//! `kgc quorum status|refresh|repair|approve|…`: asks the running `kgc serve`.

use std::time::Duration;

use humantime::format_duration;
use quiver_quorum_node::approval;
use quiver_service::control::{TimeLimit, call};
use quiver_service::{private_file, terminal};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::arguments::{ApproveArgs, QuorumCommand, WaitArgs};
use super::control::{CommandOutcome, QuorumRequest};
use super::file::Pinned;
use super::status::KgcStatus;
use crate::config::Config;
use crate::control::KgcRequest;
use crate::error::{Error, Result};
use crate::membership;

/// Time between two looks at what a command waits for.
const REPORT: Duration = Duration::from_secs(1);

/// Runs a subcommand that needs the running service.
pub(crate) async fn run(config: &Config, command: &QuorumCommand) -> Result<()> {
    if !private_file::exists(&membership::path_in(&config.data_dir))? {
        return Err(Error::NoQuorum(config.data_dir.clone()));
    }
    match command {
        QuorumCommand::Status { json } => status(config, *json).await,
        QuorumCommand::Refresh(args) => {
            let request = QuorumRequest::Refresh { wait: args.wait.as_secs() };
            let outcome = ask_and_report(config, &request, KgcStatus::doing).await?;
            finish(config, args, outcome, "refreshed", "the refresh continues; `kgc quorum abandon` ends it")
                .await
        }
        QuorumCommand::Repair(args) => {
            let request = QuorumRequest::Repair { wait: args.wait.as_secs() };
            let outcome = ask_and_report(config, &request, KgcStatus::doing).await?;
            let goes_on = approve_hint(config)?;
            finish(config, args, outcome, "repaired", &goes_on).await
        }
        QuorumCommand::Approve(args) => approve(config, args).await,
        QuorumCommand::Abandon => {
            ask::<()>(config, &QuorumRequest::Abandon).await?;
            print_line("abandoned; this KGC keeps the shares it has")
        }
        QuorumCommand::Adopt => {
            ask::<()>(config, &QuorumRequest::Adopt).await?;
            print_line("the new shares are in force here, the old ones erased")
        }
        QuorumCommand::Key(_) | QuorumCommand::Init(_) | QuorumCommand::Found(_) => Ok(()),
    }
}

async fn ask<A: DeserializeOwned>(config: &Config, request: &(impl Serialize + TimeLimit)) -> Result<A> {
    Ok(call(&config.data_dir, "kgc", "serve", request).await?)
}

/// Asks, and logs what is waited for, by the service's state, as often as it changes.
async fn ask_and_report<A: DeserializeOwned>(
    config: &Config,
    request: &(impl Serialize + TimeLimit),
    waits: impl Fn(&KgcStatus) -> String,
) -> Result<A> {
    let (answer, mut reported) = (ask(config, request), String::new());
    tokio::pin!(answer);
    loop {
        tokio::select! {
            answer = &mut answer => return answer,
            () = tokio::time::sleep(REPORT) => {}
        }
        // A caller that asks for it alone gets an error, if there is one.
        if let Ok(status) = ask::<KgcStatus>(config, &QuorumRequest::Status).await {
            let waited_for = waits(&status);
            if waited_for != reported {
                tracing::info!("{waited_for}");
                reported = waited_for;
            }
        }
    }
}

fn print_line(text: &str) -> Result<()> {
    Ok(terminal::line(text)?)
}

fn print(value: &impl Serialize) -> Result<()> {
    Ok(terminal::json(value)?)
}

async fn status(config: &Config, json: bool) -> Result<()> {
    let status: KgcStatus = ask(config, &QuorumRequest::Status).await?;
    if json { print(&status) } else { print_line(&status.text()) }
}

/// Prints the result of a command that takes time.
async fn finish(
    config: &Config,
    args: &WaitArgs,
    outcome: CommandOutcome,
    done: &str,
    goes_on: &str,
) -> Result<()> {
    if args.json {
        print(&outcome)?;
    }
    match outcome {
        CommandOutcome::Done { .. } if args.json => Ok(()),
        CommandOutcome::Done { version } => print_line(&format!(
            "{done}: shares of version {version} are in force here, older ones are erased"
        )),
        CommandOutcome::Pending => {
            let status: KgcStatus = ask(config, &QuorumRequest::Status).await?;
            let waits = match &status.ceremony {
                Some(ceremony) => status.waits(ceremony),
                None => "waiting for the other KGCs".into(),
            };
            Err(Error::TimedOut(format!("not done in {}: {waits}; {goes_on}", format_duration(args.wait))))
        }
    }
}

fn approve_hint(config: &Config) -> Result<String> {
    let threshold = Pinned::kept(&config.data_dir)?.map_or(0, |pinned| pinned.parameters.threshold());
    Ok(format!(
        "it goes on: at {threshold} of the others, `kgc quorum approve --repair ID` with this KGC's id, within an hour; see \
         `kgc quorum status`"
    ))
}

async fn approve(config: &Config, args: &ApproveArgs) -> Result<()> {
    match (&args.digest, args.repair, args.withdraw) {
        (_, Some(kgc), _) => {
            ask::<()>(config, &QuorumRequest::HelpRepair { kgc }).await?;
            print_line(&format!(
                "this KGC helps KGC {kgc} to repair its shares, once, if that asks within an hour"
            ))
        }
        (Some(digest), None, false) => {
            ask::<()>(config, &QuorumRequest::Approve { digest: digest.clone() }).await?;
            print_line("approved: this KGC signs it when it is proposed")
        }
        (Some(digest), None, true) => {
            ask::<()>(config, &QuorumRequest::Withdraw { digest: digest.clone() }).await?;
            print_line("withdrawn: this KGC no longer signs it")
        }
        // The command line requires one of the two.
        (None, None, _) => Err(Error::Quorum("give DIGEST or --repair ID".into())),
    }
}

/// Has a statement about an authority signed by the quorum, as soon as enough operators approve it.
pub(crate) fn sign(config: &Config, body: &[u8], wait: Duration) -> Result<Vec<u8>> {
    let threshold = Pinned::kept(&config.data_dir)?.map_or(0, |pinned| pinned.parameters.threshold());
    let digest = hex::encode(approval(body));
    print_line(&format!(
        "the quorum must sign this: run `kgc quorum approve {digest}` at {} of the other KGCs; waiting {}",
        threshold.saturating_sub(1),
        format_duration(wait)
    ))?;
    let request = KgcRequest::Propose { body: hex::encode(body), wait: wait.as_secs() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = ask_and_report(config, &request, KgcStatus::approving);
    let signed: Option<String> = runtime.block_on(asked)?;
    match signed {
        Some(signature) => hex::decode(signature).map_err(|error| Error::Quorum(error.to_string())),
        None => Err(Error::TimedOut(format!(
            "not enough KGCs approved it in {}; nothing was set up: run it again",
            format_duration(wait)
        ))),
    }
}
