//! Prints what runs where and what to type next, for people or as JSON lines.

use std::path::Path;

use quiver_arguments::quoted;
use quiver_service::terminal;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::folder::{Folder, LOGS, SETTINGS};
use crate::programs::{Program, Programs};
use crate::services::{DEPLOYMENT, GROUP, LocalService, STATE_KEY, services};
use crate::setup::OPERATOR_PASSPHRASE;

/// A script that puts the programs into PATH.
const ENVIRONMENT: &str = "env.sh";
/// The services' command lines, in the format of Procfiles.
const PROCFILE: &str = "Procfile";

/// Printer of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reporter {
    /// True if it prints JSON.
    pub(crate) json: bool,
}

/// A service that runs, or ran.
#[derive(Debug)]
pub(crate) struct ServiceReport<'a> {
    /// The service.
    pub(crate) service: &'a LocalService,
    /// Process of the service, while it runs.
    pub(crate) process: Option<i32>,
    /// Reason why it is not ready; `None` if it is.
    pub(crate) trouble: Option<String>,
}

impl ServiceReport<'_> {
    /// The report as JSON.
    fn to_json(&self) -> Value {
        let name = &self.service.name;
        json!({
            "name": name,
            "program": self.service.program.name(),
            "pid": self.process,
            "ready": self.trouble.is_none(),
            "reason": self.trouble,
            "listens": self.service.listens,
            "data": name,
            "log": format!("{LOGS}/{name}.log"),
            "command": self.service.command_line(),
        })
    }

    fn row(&self) -> [String; 5] {
        let process = self.process.map_or_else(|| "-".into(), |id| id.to_string());
        let state = self.trouble.clone().unwrap_or_else(|| "ready".into());
        let listens = self.service.listens.join(" ");
        [self.service.name.clone(), process, listens, format!("{LOGS}/{}.log", self.service.name), state]
    }
}

/// The services as a table.
pub(crate) fn table(services: &[ServiceReport<'_>]) -> String {
    let rows: Vec<_> = services.iter().map(ServiceReport::row).collect();
    terminal::table(["SERVICE", "PROCESS", "LISTENS ON", "LOG", "STATE"], &rows)
}

/// The services as JSON.
pub(crate) fn list(services: &[ServiceReport<'_>]) -> Value {
    services.iter().map(ServiceReport::to_json).collect()
}

impl Reporter {
    /// Prints a sentence, or an event.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub(crate) fn event(self, sentence: &str, event: &Value) -> Result<()> {
        let text = if self.json { event.to_string() } else { sentence.to_owned() };
        terminal::line(&text).map_err(Error::Output)
    }

    /// Prints what runs where, and what to type next.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub(crate) fn everything_runs(
        self,
        (folder, given): (&Folder, &Path),
        programs: &Programs,
        services: &[ServiceReport<'_>],
    ) -> Result<()> {
        let event = json!({
            "event": "ready",
            "folder": folder.path(),
            "programs": programs.directory(),
            "deployment": folder.file("kgc/deployment.toml"),
            "group": GROUP,
            "operator_key": folder.file("operator.key"),
            "operator_passphrase": folder.file(OPERATOR_PASSPHRASE),
            "state_key": folder.file(STATE_KEY),
            "services": list(services),
        });
        let place = quoted(given);
        let endpoints = if folder.settings.mavlink { mavlink(folder) } else { String::new() };
        let sentence = format!(
            "\nThe deployment `{DEPLOYMENT}` runs in {}:\n\n{}\n{endpoints}\nIn another terminal:\n\n  \
             cd {place} && . ./{ENVIRONMENT}\n  \
             leader status -d leader-1\n  \
             leader send -d leader-1 'return to base'      # logs/edge-1.log has it\n  \
             edge send -d edge-1 'on my way'\n  \
             leader evict -d leader-1 edge-{}\n  \
             kgc token issue -d kgc --operator operator.key --passphrase-file {OPERATOR_PASSPHRASE} --name edge-x --group {GROUP}\n\n\
             {PROCFILE} has the services' command lines. Ctrl-C ends everything, as `quiver-local down {place}` does; \
             the same\ncommand brings it up again, with the same keys.",
            given.display(),
            table(services),
            folder.settings.drones,
        );
        self.event(&sentence, &event)
    }
}

/// Advice on programs to connect to the MAVLink endpoints.
fn mavlink(folder: &Folder) -> String {
    let port = folder.settings.mavlink_port;
    format!(
        "\nMAVLink: a ground station listens on UDP {port}; the vehicle of edge-N sends to UDP {port} + N, as system N.\n"
    )
}

/// Writes the files with which one continues by hand: the command lines, and the programs' place.
///
/// # Errors
/// [`Error::Service`].
pub(crate) fn write_notes(folder: &Folder, programs: &Programs) -> Result<()> {
    let lines = services(&folder.settings)
        .into_iter()
        .map(|service| format!("{}: {}\n", service.name, service.command_line()));
    let procfile: String = lines.collect();
    let heading = format!(
        "# The services of {SETTINGS}, one a line, to be started in this folder; each `up` writes them anew. `. ./{ENVIRONMENT}`\n\
         # finds the programs.\n"
    );
    quiver_service::private_file::replace_public(
        &folder.file(PROCFILE),
        format!("{heading}{procfile}").as_bytes(),
    )?;
    let directory = quoted(programs.directory());
    let path = format!(
        "# Finds the programs {}: `. ./{ENVIRONMENT}`\nPATH={directory}:$PATH\nexport PATH\n",
        names()
    );
    Ok(quiver_service::private_file::replace_public(&folder.file(ENVIRONMENT), path.as_bytes())?)
}

fn names() -> String {
    [Program::Kgc, Program::Leader, Program::Edge].map(Program::name).join(", ")
}
