//! A directory of tokens that many drones take theirs from: containers that are started from one description.
//!
//! A drone takes a token by renaming it, which only one can do, to `NAME.token.MARK` with a mark that it
//! keeps in its data directory; so it finds its own again after a crash. Once it has enrolled it empties the
//! file: the name stays, so that the operator who fills the directory does not issue it twice. Anybody with
//! read access to the directory can take any token in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rand::RngCore;
use rand::rngs::OsRng;

use crate::{Error, Result, private_file};

/// Suffix of tokens that no drone has taken.
const FREE: &str = ".token";
/// Name of the mark in the data directory.
const MARK: &str = "token.mark";
/// The longest mark, in bytes.
const MARK_LIMIT: u64 = 64;

/// Takes a token, or finds the one taken before. None is left if all are taken.
///
/// # Errors
/// [`Error::NoTokenLeft`], [`Error::Io`].
pub fn take(directory: &Path, data_dir: &Path) -> Result<PathBuf> {
    private_file::refuse_if_no_directory(directory)?;
    let mark = mark(data_dir)?;
    let mut names = names(directory)?;
    names.sort();
    if let Some(mine) = names.iter().find(|name| name.ends_with(&format!("{FREE}.{mark}"))) {
        return Ok(directory.join(mine));
    }
    for name in names.iter().filter(|name| name.ends_with(FREE)) {
        let (free, mine) = (directory.join(name), directory.join(format!("{name}.{mark}")));
        match fs::rename(&free, &mine) {
            Ok(()) => {
                private_file::sync_directory_of(&mine)?;
                return Ok(mine);
            }
            // Another drone was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::io("take", &free, source)),
        }
    }
    Err(Error::NoTokenLeft { directory: directory.into() })
}

/// Empties a token that has served its purpose. Nobody else could enrol with it any more: this is tidiness.
///
/// # Errors
/// [`Error::Io`].
pub fn spend(directory: &Path, data_dir: &Path) -> Result<()> {
    let path = data_dir.join(MARK);
    if !private_file::exists(&path)? {
        return Ok(());
    }
    let mark = mark(data_dir)?;
    // First the mark: a drone that is enrolled must not look for its token again.
    fs::remove_file(&path).map_err(|source| Error::io("remove", &path, source))?;
    for name in names(directory)?.iter().filter(|name| name.ends_with(&format!("{FREE}.{mark}"))) {
        // An empty file takes its place. Others may write to the directory: what they put there under this name must
        // not be emptied through a link.
        private_file::replace(&directory.join(name), b"")?;
    }
    Ok(())
}

/// Returns true if this drone has a token, or was about to take one, and has not spent it.
pub fn has_taken(data_dir: &Path) -> bool {
    data_dir.join(MARK).exists()
}

/// Returns true if a token of this drone's is or was in the directory, taken or not.
///
/// # Errors
/// [`Error::Io`].
pub fn knows(directory: &Path, drone: &str) -> Result<bool> {
    let free = format!("{drone}{FREE}");
    let taken = format!("{free}.");
    Ok(names(directory)?.iter().any(|name| *name == free || name.starts_with(&taken)))
}

fn names(directory: &Path) -> Result<Vec<String>> {
    let read = |source| Error::io("read the directory", directory, source);
    let entries = fs::read_dir(directory).map_err(read)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.collect::<io::Result<_>>().map_err(read)
}

/// The mark of this drone's tokens.
fn mark(data_dir: &Path) -> Result<String> {
    let path = data_dir.join(MARK);
    if path.exists() {
        let text = private_file::read(&path, MARK_LIMIT)?;
        return Ok(String::from_utf8_lossy(text.trim_ascii()).into_owned());
    }
    let mut bytes = [0; 8];
    OsRng.fill_bytes(&mut bytes);
    let mark = hex::encode(bytes);
    private_file::create_directory(data_dir)?;
    private_file::write_new(&path, mark.as_bytes())?;
    Ok(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(tokens: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("tempdir");
        for token in tokens {
            fs::write(directory.path().join(token), "secret").expect("write");
        }
        directory
    }

    #[test]
    fn each_drone_gets_one_of_its_own_and_the_same_after_a_crash() {
        let tokens = filled(&["edge-1.token", "edge-2.token", "readme.txt"]);
        let drones = [(); 3].map(|()| tempfile::tempdir().expect("tempdir"));
        let first = take(tokens.path(), drones[0].path()).expect("taken");
        let second = take(tokens.path(), drones[1].path()).expect("taken");
        assert_ne!(first, second);
        assert_eq!(take(tokens.path(), drones[0].path()).expect("again"), first);
        let error = take(tokens.path(), drones[2].path()).expect_err("none left");
        assert!(error.to_string().contains("kgc token issue"), "{error}");
    }

    #[test]
    fn spent_token_is_empty_and_its_name_stays_known() {
        let tokens = filled(&["edge-1.token"]);
        let drone = tempfile::tempdir().expect("tempdir");
        assert!(knows(tokens.path(), "edge-1").expect("read"));
        assert!(!knows(tokens.path(), "edge").expect("read"));
        let taken = take(tokens.path(), drone.path()).expect("taken");
        assert!(has_taken(drone.path()));
        spend(tokens.path(), drone.path()).expect("spent");
        assert!(!has_taken(drone.path()));
        assert_eq!(fs::read(&taken).expect("read"), b"");
        assert!(knows(tokens.path(), "edge-1").expect("read"));
        spend(tokens.path(), drone.path()).expect("nothing to do");
    }

    #[test]
    fn spending_a_token_leaves_alone_whatever_a_link_in_its_place_names() {
        use std::os::unix::fs::symlink;
        for link in
            [|from: &Path, to: &Path| symlink(from, to), |from: &Path, to: &Path| fs::hard_link(from, to)]
        {
            let tokens = filled(&["edge-1.token"]);
            let drone = tempfile::tempdir_in(tokens.path()).expect("tempdir");
            let taken = take(tokens.path(), drone.path()).expect("taken");
            let state = drone.path().join("drone.state");
            fs::write(&state, "the drone's key").expect("write");
            fs::remove_file(&taken).expect("remove");
            link(&state, &taken).expect("link");
            spend(tokens.path(), drone.path()).expect("spent");
            assert_eq!(fs::read(&state).expect("read"), b"the drone's key");
            assert_eq!(fs::read(&taken).expect("read"), b"");
            assert!(taken.symlink_metadata().expect("metadata").is_file());
        }
    }

    #[test]
    fn many_at_once_never_share() {
        let names: Vec<String> = (1..=16).map(|number| format!("edge-{number}.token")).collect();
        let tokens = filled(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let drones: Vec<_> = (0..16).map(|_| tempfile::tempdir().expect("tempdir")).collect();
        let mut taken: Vec<_> = std::thread::scope(|scope| {
            let takers: Vec<_> =
                drones.iter().map(|drone| scope.spawn(|| take(tokens.path(), drone.path()))).collect();
            takers.into_iter().map(|taker| taker.join().expect("thread").expect("taken")).collect()
        });
        taken.sort();
        taken.dedup();
        assert_eq!(taken.len(), 16);
    }
}
