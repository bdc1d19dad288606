//! Finds the programs that run: `kgc`, `leader` and `edge`.

use std::env;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// The KGC.
    Kgc,
    /// A leader.
    Leader,
    /// A drone.
    Edge,
}

impl Program {
    const ALL: [Self; 3] = [Self::Kgc, Self::Leader, Self::Edge];

    /// Name of the program.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Kgc => "kgc",
            Self::Leader => "leader",
            Self::Edge => "edge",
        }
    }
}

/// The directory of all three programs.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    directory: PathBuf,
}

impl Programs {
    /// Finds them: in the directory that was given, and else in that of this program, and else in one of PATH. All
    /// three come from one directory, so that they are of one build.
    ///
    /// # Errors
    /// [`Error::NoProgram`].
    pub(crate) fn find(given: Option<&Path>) -> Result<Self> {
        if let Some(given) = given {
            let directory = given.canonicalize().map_err(|error| match error.kind() {
                ErrorKind::NotFound => Error::NoProgram {
                    name: "kgc",
                    place: format!("in {}: it is not there", given.display()),
                },
                _ => Error::io("look into", given)(error),
            })?;
            return match missing(&directory) {
                Some(name) => Err(Error::NoProgram { name, place: format!("in {}", given.display()) }),
                None => Ok(Self { directory }),
            };
        }
        let own = env::current_exe().ok().and_then(|program| program.parent().map(Path::to_path_buf));
        let path = env::var_os("PATH").unwrap_or_default();
        let mut places =
            own.iter().cloned().chain(env::split_paths(&path).filter(|place| place.is_absolute()));
        match places.find(|place| missing(place).is_none()) {
            Some(directory) => Ok(Self { directory }),
            None => {
                let own = own.unwrap_or_default();
                let name = missing(&own).unwrap_or("kgc");
                Err(Error::NoProgram { name, place: format!("in {}, nor all three in PATH", own.display()) })
            }
        }
    }

    /// The directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path of one.
    pub(crate) fn path(&self, program: Program) -> PathBuf {
        self.directory.join(program.name())
    }
}

/// The first program that this directory does not have.
fn missing(directory: &Path) -> Option<&'static str> {
    let is_there = |path: PathBuf| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    Program::ALL.into_iter().map(Program::name).find(|name| !is_there(directory.join(name)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn directory_without_a_program_is_refused_by_its_name() {
        let directory = tempfile::tempdir().expect("tempdir");
        for name in ["kgc", "leader", "edge"] {
            let error = Programs::find(Some(directory.path())).expect_err("missing").to_string();
            assert!(error.contains(&format!("`{name}`")), "{error}");
            let file = directory.path().join(name);
            fs::write(&file, "#!/bin/sh\n").expect("write");
            assert!(Programs::find(Some(directory.path())).is_err(), "{name} cannot be executed");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("chmod");
        }
        Programs::find(Some(directory.path())).expect("all three");
    }
}
