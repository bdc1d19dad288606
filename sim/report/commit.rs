// Finds the commit of a checkout by reading git's files: it needs no `git`, and changes nothing there. Used by the build script,
// and by the tests of the crate.

use std::fs;
use std::path::{Path, PathBuf};

/// The commit of a checkout, and the files that change with it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkout {
    /// Hash of the commit; `None` if there is none to be found.
    pub(crate) commit: Option<String>,
    /// Files that are there; one of them changes whenever another commit is checked out.
    pub(crate) files: Vec<PathBuf>,
}

impl Checkout {
    /// Reads the checkout in this folder, which need not be one.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut checkout = Self::default();
        checkout.commit = checkout.find(folder).filter(|commit| is_hash(commit));
        checkout
    }

    fn find(&mut self, folder: &Path) -> Option<String> {
        let own = git_folder(&folder.join(".git"))?;
        // A worktree has its own HEAD, and shares the branches.
        let common = fs::read_to_string(own.join("commondir"));
        let common = common.map_or_else(|_| own.clone(), |path| own.join(path.trim()));
        let head = self.text(own.join("HEAD"))?;
        self.text(own.join("logs/HEAD"));
        let Some(branch) = head.strip_prefix("ref: ") else { return Some(head) };
        if let Some(commit) = self.text(common.join(branch)) {
            return Some(commit);
        }
        let packed = self.text(common.join("packed-refs"))?;
        let line = packed.lines().find_map(|line| line.split_once(' ').filter(|(_, name)| *name == branch));
        line.map(|(commit, _)| commit.to_owned())
    }

    /// The text of a file that changes with the commit.
    fn text(&mut self, file: PathBuf) -> Option<String> {
        let text = fs::read_to_string(&file).ok()?;
        self.files.push(file);
        Some(text.trim().to_owned())
    }
}

/// Git's folder: `.git` itself, or where a file of this name leads.
fn git_folder(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let text = fs::read_to_string(git).ok()?;
    Some(git.parent()?.join(text.trim().strip_prefix("gitdir: ")?))
}

/// Returns true if a text is a hash of git: SHA-1 or SHA-256 in hexadecimal.
pub(crate) fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
