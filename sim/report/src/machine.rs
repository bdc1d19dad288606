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
    /// Whether the program was built with optimisation.
    pub optimised: bool,
}

impl Machine {
    /// This one.
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
    fn compiler_is_known() {
        assert!(Machine::here().rustc.starts_with("rustc "), "{}", Machine::here().rustc);
    }
}
