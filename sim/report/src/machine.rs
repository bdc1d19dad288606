//! Describes the computer on which figures were measured.

use std::fs;

use serde::Serialize;

/// The machine that runs the program, and the program's build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The processor, as it calls itself.
    pub cpu: String,
    /// Number of threads that run at once, as far as this process may use them.
    pub cores: usize,
    /// Memory in bytes; `None` where the system does not report it.
    pub memory: Option<u64>,
    /// The operating system's name for itself, and the architecture.
    pub system: String,
    /// The compiler.
    pub rustc: String,
    /// The commit that was checked out when the program was built, as git's hash; `unknown` without git, or without optimisation.
    pub commit: String,
    /// True if the program was built with optimisation.
    pub optimised: bool,
}

impl Machine {
    /// Describes this machine.
    #[must_use]
    pub fn here() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let system = parse_system(&read("/etc/os-release"));
        Self {
            cpu: parse_cpu(&read("/proc/cpuinfo")).unwrap_or_else(|| "unknown CPU".into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: parse_memory(&read("/proc/meminfo")),
            system: format!(
                "{}, {}",
                system.unwrap_or_else(|| std::env::consts::OS.into()),
                std::env::consts::ARCH
            ),
            rustc: env!("REPORT_RUSTC").into(),
            commit: env!("REPORT_COMMIT").into(),
            optimised: !cfg!(debug_assertions),
        }
    }
}

fn parse_cpu(info: &str) -> Option<String> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().into())
}

fn parse_memory(info: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn parse_system(release: &str) -> Option<String> {
    let line = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::{Checkout, is_hash};

    #[test]
    fn machine_is_read_from_the_systems_files() {
        let cpu = "processor\t: 0\nmodel name\t: Some CPU @ 3.0 GHz\nflags\t: fpu\n";
        assert_eq!(parse_cpu(cpu).as_deref(), Some("Some CPU @ 3.0 GHz"));
        assert_eq!(parse_memory("MemTotal:  1024 kB\nMemFree: 3 kB\n"), Some(1 << 20));
        let release = "NAME=\"X\"\nPRETTY_NAME=\"Some Linux 12\"\n";
        assert_eq!(parse_system(release).as_deref(), Some("Some Linux 12"));
        assert_eq!((parse_cpu(""), parse_memory("MemTotal: much"), parse_system("")), (None, None, None));
    }

    #[test]
    fn commit_is_a_hash_or_said_to_be_unknown() {
        let commit = Machine::here().commit;
        assert!(is_hash(&commit) || commit == "unknown", "{commit}");
    }

    #[test]
    fn commit_is_found_in_every_kind_of_checkout_and_its_files_are_there() {
        let (old, new) = ("1".repeat(40), "2".repeat(40));
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let read = |name: &str| {
            let checkout = Checkout::read(&folder.path().join(name));
            assert!(checkout.files.iter().all(|file| file.is_file()), "{checkout:?}");
            checkout.commit
        };
        // No checkout, as in a source archive.
        assert_eq!(Checkout::read(folder.path()), Checkout::default());
        // A branch whose commit is packed, then one of its own.
        put("a/.git/HEAD", "ref: refs/heads/main\n");
        put("a/.git/packed-refs", &format!("# pack-refs\n{new} refs/heads/main2\n{old} refs/heads/main\n"));
        assert_eq!(read("a").as_ref(), Some(&old));
        put("a/.git/refs/heads/main", &format!("{new}\n"));
        assert_eq!(read("a").as_ref(), Some(&new));
        // A worktree on another branch, and a detached head.
        put("b/.git", "gitdir: ../a/.git/worktrees/b\n");
        put("a/.git/worktrees/b/HEAD", "ref: refs/heads/main2\n");
        put("a/.git/worktrees/b/commondir", "../..\n");
        put("a/.git/refs/heads/main2", &old);
        assert_eq!(read("b").as_ref(), Some(&old));
        put("c/.git/HEAD", &new);
        assert_eq!(read("c").as_ref(), Some(&new));
        // A text that is no hash is not taken for one.
        put("d/.git/HEAD", "ref: refs/heads/none\n");
        put("e/.git/HEAD", "something else\n");
        put("f/.git", "gitdir: nowhere\n");
        assert_eq!((read("d"), read("e"), read("f")), (None, None, None));
    }

    #[test]
    fn compiler_is_known() {
        assert!(Machine::here().rustc.starts_with("rustc "), "{}", Machine::here().rustc);
    }
}
