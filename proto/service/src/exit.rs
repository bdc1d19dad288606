//! Exit codes, the same for the three services, so that scripts can tell one failure from another.

use std::fmt::Display;
use std::process::ExitCode;

use crate::line_output;

/// Exit code of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The program did everything that was asked for.
    Done = 0,
    /// The program failed for a reason that has no code of its own.
    Failed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The other side understood and refused: an expired token, a name already taken, a revoked drone.
    Refused = 3,
    /// No running service answers on the control socket.
    NotRunning = 4,
    /// Another process uses the data directory or the port.
    Busy = 5,
    /// Wrong passphrase or key, or a file that others may read.
    Locked = 6,
    /// A state file is damaged or belongs to another role or deployment.
    BadState = 7,
    /// No answer came from the other side in time.
    TimedOut = 8,
    /// SIGINT came before it was done.
    Interrupted = 130,
    /// SIGTERM came before it was done.
    Terminated = 143,
}

impl Exit {
    /// The one with this code; [`Self::Failed`] for a code that is none of these.
    #[must_use]
    pub fn of(code: u8) -> Self {
        let all = [Self::Done, Self::Usage, Self::Refused, Self::NotRunning, Self::Busy, Self::Locked];
        let more = [Self::BadState, Self::TimedOut, Self::Interrupted, Self::Terminated];
        all.into_iter().chain(more).find(|exit| *exit as u8 == code).unwrap_or(Self::Failed)
    }

    /// The one after this signal, by its name.
    #[must_use]
    pub fn after(signal: &str) -> Self {
        if signal == "SIGINT" { Self::Interrupted } else { Self::Terminated }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Ends a program: prints its error on standard error, and gives the exit code that `exit` says.
pub fn end<E: Display>(program: &str, ended: Result<(), E>, exit: impl Fn(&E) -> Exit) -> ExitCode {
    match ended {
        Ok(()) => Exit::Done.into(),
        Err(error) => {
            complain(program, &error);
            exit(&error).into()
        }
    }
}

/// Prints the last line of a program that fails.
pub(crate) fn complain(program: &str, error: &dyn Display) {
    line_output::complain(&format!("{program}: {error}"));
}

/// The exit codes as the last paragraph of `--help`.
pub(crate) const EXIT_CODES_HELP: &str = "\
Exit codes:
  0 done                    5 data directory or port in use by another process
  1 failed                  6 wrong passphrase or key, or a file others may read
  2 wrong usage or config   7 state file damaged, or of another role or deployment
  3 refused by the other    8 nothing heard from the other side in time
  4 no service is running   130, 143 interrupted by SIGINT, SIGTERM before it was done;
                            a service that was running ends with 0";
