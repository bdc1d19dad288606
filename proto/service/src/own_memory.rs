//! The process's memory, in which its keys are, kept from other processes, from files and from swap space.

#[cfg(target_os = "linux")]
use nix::libc;
#[cfg(target_os = "linux")]
use nix::sys::mman::{MlockAllFlags, mlockall};
#[cfg(target_os = "linux")]
use nix::sys::prctl::set_dumpable;
#[cfg(target_os = "linux")]
use nix::sys::resource::{RLIM_INFINITY, getrlimit};
use nix::sys::resource::{Resource, setrlimit};

/// Keeps the memory of this process out of core dumps, away from debuggers and readers of `/proc` that run as the
/// same user, which includes the environment with its passphrase, and out of swap space where the system sets no
/// limit to locked memory (`LimitMEMLOCK=infinity`).
///
/// Every program calls it before it reads a secret. That a system forbids one of these is no error, because
/// containers do and the program is as safe in them as before: the bounds of SECURITY.md hold without.
pub fn keep_private() {
    // Both, because a kernel that hands dumps to a program asks for dumpability alone.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    #[cfg(target_os = "linux")]
    {
        let _ = set_dumpable(false);
        // Under a limit, memory that is asked for later could not be had. Pages are locked once they are used, because
        // stacks and buffers reserve more than they ever touch.
        if getrlimit(Resource::RLIMIT_MEMLOCK).is_ok_and(|(soft, _)| soft == RLIM_INFINITY) {
            let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
            let _ = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use nix::sys::prctl::get_dumpable;

    use super::*;

    #[test]
    fn no_core_dump_has_the_keys() {
        keep_private();
        assert_eq!(getrlimit(Resource::RLIMIT_CORE), Ok((0, 0)));
        assert_eq!(get_dumpable(), Ok(false));
    }
}
