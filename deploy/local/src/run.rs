//! Run of a folder: brings everything up, waits for the end, and ends what it has started.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use quiver_service::{Exit, terminal};
use serde_json::{Value, json};

use crate::cli::{FolderOptions, Up};
use crate::error::{Error, Result};
use crate::folder::{Folder, Found};
use crate::launch::{self, last_line, set_aside};
use crate::ports;
use crate::programs::{Program, Programs};
use crate::record::{FolderRecord, RecordedProcess, Started};
use crate::report::{self, Reporter, ServiceReport, write_notes};
use crate::services::{self, LocalService, services};
use crate::setup::SetupCommands;
use crate::signals::Signals;

/// Interval between two looks at processes.
const POLL: Duration = Duration::from_millis(200);
/// Time that a service may take to end, before it is killed.
const ENDING: Duration = Duration::from_secs(20);
/// Time that `down` waits for the command that it ends.
const DOWN: Duration = Duration::from_secs(120);
/// States in which a drone stays until somebody does something.
const SETTLED: [&str; 4] = ["left", "evicted", "removed", "revoked"];

/// The time.
#[expect(clippy::disallowed_methods, reason = "a driver: processes are waited for in real time")]
fn now() -> Instant {
    Instant::now()
}

/// A service that was started.
#[derive(Debug)]
struct RunningService {
    service: LocalService,
    child: Child,
    process: Option<RecordedProcess>,
    /// Exit of the service, once it ended.
    ended: Option<ExitStatus>,
    is_ready: bool,
}

impl RunningService {
    fn has_ended(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended.is_some()
    }
}

/// A folder whose services this process runs.
#[derive(Debug)]
struct FolderRun<'a> {
    up: &'a Up,
    folder: Folder,
    programs: Programs,
    signals: Signals,
    reporter: Reporter,
    running: Vec<RunningService>,
}

/// Sets a deployment up, unless the folder has one, and runs it until a signal.
///
/// # Errors
/// See [`Error`].
pub(crate) fn up(up: &Up) -> Result<()> {
    let signals = Signals::listen()?;
    let programs = Programs::find(up.programs.as_deref())?;
    let folder = Folder::take(up)?;
    end_leftovers(folder.path(), &signals)?;
    ports::refuse_busy(&services::ports(&folder.settings))?;
    let reporter = Reporter { json: up.json };
    let mut run = FolderRun { up, folder, programs, signals, reporter, running: Vec::new() };
    let done = run.bring_up().and_then(|()| run.stay());
    let ended = run.end();
    done.and(ended)
}

impl FolderRun<'_> {
    fn bring_up(&mut self) -> Result<()> {
        // Before anything is started, so that whoever is asked for the process that runs this folder knows it.
        self.record()?;
        write_notes(&self.folder, &self.programs)?;
        set_aside(&self.folder.log("setup"))?;
        let folder = self.up.folder.display();
        let event = json!({"event": "starting", "folder": self.folder.path()});
        self.reporter.event(
            &format!("starting the deployment in {folder}; the first time makes keys and takes longer"),
            &event,
        )?;
        let setup = SetupCommands { folder: &self.folder, programs: &self.programs, signals: &self.signals };
        setup.make_kgc()?;
        let mut services = services(&self.folder.settings).into_iter();
        self.start(services.by_ref().take(1).collect())?;
        let deadline = now() + self.up.wait;
        self.await_ready(deadline)?;
        let setup = SetupCommands { folder: &self.folder, programs: &self.programs, signals: &self.signals };
        setup.issue_tokens()?;
        self.start(services.collect())?;
        let deadline = now() + self.up.wait;
        self.await_ready(deadline)?;
        for running in &mut self.running {
            running.has_ended();
        }
        let reports = self.reports();
        self.reporter.everything_runs((&self.folder, &self.up.folder), &self.programs, &reports)
    }

    fn start(&mut self, services: Vec<LocalService>) -> Result<()> {
        for mut service in services {
            let log = self.folder.log(&service.name);
            set_aside(&log)?;
            self.drop_missing_token(&mut service);
            let what = (service.program, &service.args[..]);
            let child = launch::start(&self.folder, &self.programs, what, &log)?;
            let process = i32::try_from(child.id()).ok().and_then(RecordedProcess::of);
            let event = json!({"event": "started", "service": service.name, "pid": child.id()});
            let sentence = format!("{}: process {}", service.name, child.id());
            self.running.push(RunningService { service, child, process, ended: None, is_ready: false });
            self.record()?;
            self.reporter.event(&sentence, &event)?;
        }
        Ok(())
    }

    /// Takes the flag `--token` away where the file is gone and the drone has its key.
    fn drop_missing_token(&self, service: &mut LocalService) {
        let Some(place) = service.args.iter().position(|word| word == "--token") else { return };
        let is_there = |file: &String| self.folder.file(file).exists();
        if !service.args.get(place + 1).is_some_and(is_there) {
            service.args.drain(place..(place + 2).min(service.args.len()));
        }
    }

    fn record(&self) -> Result<()> {
        let own = i32::try_from(std::process::id()).ok().and_then(RecordedProcess::of);
        let command = own.ok_or_else(|| Error::Io {
            action: "read",
            path: "/proc/self/stat".into(),
            source: std::io::ErrorKind::NotFound.into(),
        })?;
        let started = |running: &RunningService| {
            let process = running.process.clone()?;
            Some(Started { name: running.service.name.clone(), process })
        };
        let services = self.running.iter().filter_map(started).collect();
        let programs = self.programs.directory().to_path_buf();
        FolderRecord { command, programs, services }.write(self.folder.path())
    }

    /// Waits until every service is ready, or will not be without somebody's help. Drones may be late, because the
    /// deployment is of use without them; the KGC and the leaders may not.
    fn await_ready(&mut self, deadline: Instant) -> Result<()> {
        loop {
            let mut waits_for = None;
            for place in 0..self.running.len() {
                self.signals.pause(Duration::from_millis(1))?;
                if self.is_settled(place)? {
                    continue;
                }
                waits_for.get_or_insert(place);
            }
            let Some(place) = waits_for else { return Ok(()) };
            if now() >= deadline {
                return self.give_up(place);
            }
            self.signals.pause(POLL)?;
        }
    }

    /// Returns true if a service need not be waited for: it is ready, has ended, or waits for somebody.
    fn is_settled(&mut self, place: usize) -> Result<bool> {
        let Some(running) = self.running.get_mut(place) else { return Ok(true) };
        if running.is_ready {
            return Ok(true);
        }
        let name = running.service.name.clone();
        if running.has_ended() {
            return if running.service.program == Program::Edge { Ok(true) } else { Err(self.ended(place)) };
        }
        let service = running.service.clone();
        let (program, directory) = (self.programs.path(service.program), self.folder.path());
        if trouble(&program, directory, &name).is_none() {
            self.running
                .iter_mut()
                .filter(|running| running.service.name == name)
                .for_each(|running| running.is_ready = true);
            self.reporter
                .event(&format!("{name}: ready"), &json!({"event": "service_ready", "service": name}))?;
            return Ok(true);
        }
        Ok(service.program == Program::Edge && is_left_out(&program, directory, &name))
    }

    fn ended(&self, place: usize) -> Error {
        let Some(running) = self.running.get(place) else {
            return Error::NothingRuns { path: self.up.folder.clone() };
        };
        let name = running.service.name.clone();
        let log = self.folder.log(&name);
        let code = running.ended.and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
        // A service that ended by itself without a reason did not do what it was started for.
        let exit = code.filter(|&code| code != 0).map_or(Exit::Failed, Exit::of);
        let how = running.ended.map_or_else(String::new, |status| status.to_string());
        Error::Ended { name, how, said: last_line(&log), log, exit }
    }

    fn give_up(&self, place: usize) -> Result<()> {
        match self.running.get(place) {
            Some(running) if running.service.program != Program::Edge => {
                let name = running.service.name.clone();
                let program = self.programs.path(running.service.program);
                let said = trouble(&program, self.folder.path(), &name)
                    .unwrap_or_else(|| "it is ready just now".into());
                let waited = humantime::format_duration(self.up.wait);
                let log = self.folder.log(&name);
                Err(Error::NotReady { name, waited, said, log })
            }
            _ => Ok(()),
        }
    }

    fn reports(&self) -> Vec<ServiceReport<'_>> {
        let report = |running: &'_ RunningService| {
            let RunningService { service, child, ended, is_ready, .. } = running;
            let trouble = match ended {
                Some(status) => {
                    Some(format!("ended ({status}): {}", last_line(&self.folder.log(&service.name))))
                }
                None if *is_ready => None,
                None => trouble(&self.programs.path(service.program), self.folder.path(), &service.name),
            };
            let process = if ended.is_some() { None } else { i32::try_from(child.id()).ok() };
            (process, trouble)
        };
        let with_service = |running| {
            let (process, trouble) = report(running);
            ServiceReport { service: &running.service, process, trouble }
        };
        self.running.iter().map(with_service).collect()
    }

    /// Waits for a signal, and says which services end by themselves.
    fn stay(&mut self) -> Result<()> {
        let mut told = vec![false; self.running.len()];
        loop {
            if let Some(signal) = self.signals.wait(POLL) {
                return self.reporter.event(
                    &format!("{signal}: ending everything"),
                    &json!({"event": "ending", "signal": signal}),
                );
            }
            for (running, told) in self.running.iter_mut().zip(&mut told) {
                if *told || !running.has_ended() {
                    continue;
                }
                *told = true;
                let Some(status) = running.ended else { continue };
                let (name, command) = (&running.service.name, running.service.command_line());
                let folder = self.folder.path().display();
                self.reporter.event(
                    &format!("{name} ended ({status}); to start it again, in {folder}: {command}"),
                    &json!({"event": "ended", "service": name, "how": status.to_string(), "command": command}),
                )?;
            }
            if told.iter().all(|told| *told) {
                return Err(self.ended(0));
            }
        }
    }

    /// Ends all services: drones first, the KGC last. A second signal kills them.
    fn end(&mut self) -> Result<()> {
        for program in [Program::Edge, Program::Leader, Program::Kgc] {
            let mut ending: Vec<_> =
                self.running.iter_mut().filter(|running| running.service.program == program).collect();
            for running in &mut ending {
                if !running.has_ended()
                    && let Some(process) = &running.process
                {
                    process.signal(Signal::SIGTERM);
                }
            }
            let deadline = now() + ENDING;
            let mut is_impatient = false;
            while !is_impatient && ending.iter_mut().any(|running| !running.has_ended()) && now() < deadline {
                is_impatient = self.signals.wait(Duration::from_millis(50)).is_some();
            }
            for running in ending.iter_mut().filter(|running| running.ended.is_none()) {
                // Does nothing if it has ended in between.
                let _ = running.child.kill();
                let _ = running.child.wait();
            }
        }
        FolderRecord::remove(self.folder.path())?;
        let folder = self.up.folder.display();
        self.reporter.event(&format!("nothing runs in {folder} any more"), &json!({"event": "down"}))
    }
}

/// The command that asks a service about itself, in the folder.
fn question(program: &Path, folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).stdin(Stdio::null());
    launch::without_settings(&mut command);
    command
}

/// Reason why a service is not ready; `None` if it is.
fn trouble(program: &Path, folder: &Path, name: &str) -> Option<String> {
    match question(program, folder, &["health", "-d", name]).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said
                .lines()
                .last()
                .unwrap_or("not ready")
                .split_once(": ")
                .map_or("not ready", |(_, rest)| rest);
            Some(line.chars().filter(|character| !character.is_control()).take(200).collect())
        }
        Err(error) => Some(error.to_string()),
    }
}

/// Returns true if a drone is no member and will not be one by itself.
fn is_left_out(program: &Path, folder: &Path, name: &str) -> bool {
    let output = question(program, folder, &["status", "--json", "-d", name]).output();
    let status = output.ok().and_then(|output| serde_json::from_slice::<Value>(&output.stdout).ok());
    status
        .is_some_and(|status| status["standing"].as_str().is_some_and(|standing| SETTLED.contains(&standing)))
}

/// Ends services that a command left behind which was killed. The kernel has told them so already.
fn end_leftovers(folder: &Path, signals: &Signals) -> Result<()> {
    // A record that cannot be read is of a disk that lost it: its processes are unknown, and busy ports would tell.
    let Ok(Some(record)) = FolderRecord::read(folder) else { return Ok(()) };
    let runs = || record.services.iter().map(|started| &started.process).filter(|process| process.runs());
    runs().for_each(|process| process.signal(Signal::SIGTERM));
    let deadline = now() + ENDING;
    while runs().next().is_some() && now() < deadline {
        signals.pause(POLL)?;
    }
    runs().for_each(|process| process.signal(Signal::SIGKILL));
    while runs().next().is_some() && now() < deadline + ENDING {
        signals.pause(POLL)?;
    }
    FolderRecord::remove(folder)
}

/// Ends what runs in a folder.
///
/// # Errors
/// See [`Error`].
pub(crate) fn down(place: &FolderOptions) -> Result<()> {
    let signals = Signals::listen()?;
    let found = Found::at(&place.folder)?;
    if let Some(_lock) = found.lock()? {
        end_leftovers(&found.path, &signals)?;
        return Err(Error::NothingRuns { path: place.folder.clone() });
    }
    let deadline = now() + DOWN;
    let mut told = None;
    // The record may be a moment younger than the lock.
    while found.lock()?.is_none() {
        if let Some(command) =
            FolderRecord::read(&found.path)?.map(|record| record.command).filter(RecordedProcess::runs)
            && told.as_ref() != Some(&command)
        {
            command.signal(Signal::SIGTERM);
            told = Some(command);
        }
        if now() >= deadline {
            let process = told.map_or(0, |command| command.id);
            return Err(Error::DoesNotEnd { path: place.folder.clone(), process });
        }
        signals.pause(POLL)?;
    }
    let sentence = format!("nothing runs in {} any more", place.folder.display());
    Reporter { json: place.json }.event(&sentence, &json!({"event": "down"}))
}

/// Prints what runs in a folder.
///
/// # Errors
/// See [`Error`].
pub(crate) fn status(place: &FolderOptions) -> Result<()> {
    let found = Found::at(&place.folder)?;
    if found.lock()?.is_some() {
        return Err(Error::NothingRuns { path: place.folder.clone() });
    }
    let record =
        FolderRecord::read(&found.path)?.ok_or_else(|| Error::NothingRuns { path: place.folder.clone() })?;
    // A directory that is gone has nothing to ask with.
    let programs = Programs::find(Some(&record.programs)).ok();
    let services = services(&found.settings);
    let report = |service| {
        let LocalService { name, program, .. }: &LocalService = service;
        let process =
            record.services.iter().find(|started| &started.name == name).map(|started| &started.process);
        let process = process.filter(|process| process.runs()).map(|process| process.id);
        let trouble = match (process, &programs) {
            (None, _) => Some("does not run".into()),
            (Some(_), Some(programs)) => trouble(&programs.path(*program), &found.path, name),
            (Some(_), None) => None,
        };
        ServiceReport { service, process, trouble }
    };
    let reports: Vec<_> = services.iter().map(report).collect();
    let text = if place.json { report::list(&reports).to_string() } else { report::table(&reports) };
    terminal::line(&text).map_err(Error::Output)
}
