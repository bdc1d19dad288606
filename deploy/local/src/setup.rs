//! Set-up of a deployment: the operator's key, the KGC and tokens, by the programs themselves. Files that are
//! there stay.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use quiver_service::{Exit, private_file};
use rand::RngCore;
use rand::rngs::OsRng;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::launch;
use crate::programs::{Program, Programs};
use crate::services::{self, DEPLOYMENT, GROUP, STATE_KEY, kgc_address, token_file};
use crate::signals::Signals;

/// File of the operator's passphrase.
pub(crate) const OPERATOR_PASSPHRASE: &str = "operator.passphrase";
/// Folder in which keys and the KGC are made before they have their names.
const UNFINISHED: &str = "unfinished";
/// Time until which a token can be used: a folder may lie for long before more of its drones are started.
const TOKENS_EXPIRE: &str = "365d";
/// Name of the log of the commands here.
const LOG: &str = "setup";
/// Interval between two looks at whether a command has ended.
const POLL: Duration = Duration::from_millis(50);

/// Commands of a set-up, which signals interrupt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetupCommands<'a> {
    /// The folder.
    pub(crate) folder: &'a Folder,
    /// The programs.
    pub(crate) programs: &'a Programs,
    /// The signals.
    pub(crate) signals: &'a Signals,
}

/// A token as `kgc token list --json` has it.
#[derive(Debug, Deserialize)]
struct ListedToken {
    id: String,
    name: String,
    state: String,
}

impl SetupCommands<'_> {
    /// Makes the operator's key and the KGC, unless there is a KGC. They are made in a folder of their own, and the KGC
    /// gets its name last: a command that was killed in between leaves nothing that the next one would take for whole.
    ///
    /// # Errors
    /// [`Error::Command`], [`Error::Damaged`], [`Error::Interrupted`], [`Error::Service`], [`Error::Io`].
    pub(crate) fn make_kgc(&self) -> Result<()> {
        if self.folder.file("kgc").exists() {
            return Ok(());
        }
        for later in ["tokens", "leader-1", "edge-1"] {
            if self.folder.file(later).exists() {
                let why =
                    format!("it is not there, and {later} is: who enrolled at it cannot enrol at another");
                return Err(Error::Damaged { path: self.folder.file("kgc"), why });
            }
        }
        let unfinished = self.folder.file(UNFINISHED);
        remove_folder(&unfinished)?;
        private_file::create_directory(&unfinished)?;
        self.make_secret(STATE_KEY)?;
        self.make_secret(OPERATOR_PASSPHRASE)?;
        let (key, public) = (format!("{UNFINISHED}/operator"), format!("{UNFINISHED}/operator.pub"));
        self.kgc(&["operator", "new", "--out", &key, "--passphrase-file", OPERATOR_PASSPHRASE])?;
        let kgc = format!("{UNFINISHED}/kgc");
        let address = kgc_address(&self.folder.settings);
        let place = ["init", "-d", &kgc, "--key-file", STATE_KEY, "--deployment", DEPLOYMENT];
        self.kgc(&[&place[..], &["--operator", &public, "--address", &address]].concat())?;
        for name in ["operator.key", "operator.pub", "kgc"] {
            let made = unfinished.join(name);
            fs::rename(&made, self.folder.file(name)).map_err(Error::io("rename", &made))?;
        }
        remove_folder(&unfinished)
    }

    /// Makes a file with 32 random bytes in hex, unless it is there.
    fn make_secret(&self, name: &str) -> Result<()> {
        let path = self.folder.file(name);
        if path.exists() {
            return Ok(());
        }
        let mut bytes = Zeroizing::new([0_u8; 32]);
        OsRng.fill_bytes(bytes.as_mut());
        let text = Zeroizing::new(hex::encode(&bytes[..]));
        Ok(private_file::replace(&path, text.as_bytes())?)
    }

    /// Issues the tokens of leaders and drones that have neither a token nor a key. The KGC must run, because it
    /// records them.
    ///
    /// # Errors
    /// [`Error::Command`], [`Error::Damaged`], [`Error::Interrupted`], [`Error::Io`].
    pub(crate) fn issue_tokens(&self) -> Result<()> {
        let settings = &self.folder.settings;
        self.issue("leader", services::leaders(settings), &["--leads", GROUP])?;
        self.issue("edge", settings.drones, &["--group", GROUP])
    }

    fn issue(&self, role: &str, count: u16, rights: &[&str]) -> Result<()> {
        let names = (1..=count).map(|number| format!("{role}-{number}"));
        let lacking: BTreeSet<_> = names.filter(|name| self.lacks_token(name)).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        self.revoke_lost(&lacking)?;
        let count = count.to_string();
        let operator = ["--operator", "operator.key", "--passphrase-file", OPERATOR_PASSPHRASE];
        let what = ["token", "issue", "-d", "kgc", "--name", role, "--count", &count, "--out", "tokens"];
        self.kgc(&[&what[..], &operator, &["--expires", TOKENS_EXPIRE], rights].concat())
    }

    fn lacks_token(&self, name: &str) -> bool {
        !self.folder.file(&token_file(name)).exists() && !self.folder.file(name).join("drone.state").exists()
    }

    /// Revokes tokens that the KGC has recorded and that no file holds: the command that issued them was killed. Their
    /// names are free then.
    fn revoke_lost(&self, lacking: &BTreeSet<String>) -> Result<()> {
        let list = self.folder.log("tokens");
        let _ = fs::remove_file(&list);
        self.run(&["token", "list", "-d", "kgc", "--key-file", STATE_KEY, "--json"], &list)?;
        let text = fs::read_to_string(&list).map_err(Error::io("read", &list))?;
        let start = text.find('[').unwrap_or_default();
        let tokens: Vec<ListedToken> = serde_json::from_str(text.get(start..).unwrap_or_default())
            .map_err(|error| Error::Damaged { path: list.clone(), why: error.to_string() })?;
        for token in tokens.iter().filter(|token| token.state == "open" && lacking.contains(&token.name)) {
            self.kgc(&["token", "revoke", "-d", "kgc", "--key-file", STATE_KEY, &token.id])?;
        }
        fs::remove_file(&list).map_err(Error::io("remove", &list))
    }

    fn kgc(&self, args: &[&str]) -> Result<()> {
        self.run(args, &self.folder.log(LOG))
    }

    /// Runs a command of the KGC's program to its end.
    fn run(&self, args: &[&str], log: &Path) -> Result<()> {
        let words: Vec<_> = args.iter().map(|&word| word.to_owned()).collect();
        let mut child = launch::start(self.folder, self.programs, (Program::Kgc, &words), log)?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(Error::io("wait for", Path::new("kgc")))? {
                break status;
            }
            if let Err(interrupted) = self.signals.pause(POLL) {
                // The next `up` makes anew everything that it has begun.
                let _ = child.kill();
                let _ = child.wait();
                return Err(interrupted);
            }
        };
        if status.success() {
            return Ok(());
        }
        let exit = status.code().and_then(|code| u8::try_from(code).ok()).map_or(Exit::Failed, Exit::of);
        let command = format!("kgc {}", args.join(" "));
        let said = launch::last_line(log);
        Err(Error::Command { command, how: status.to_string(), said, log: log.into(), exit })
    }
}

fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}
