//! Raises the limit of open file descriptors, and keeps sockets within it.

use rlimit::Resource;

use crate::config::{NodeConfig, NodeLimits};
use crate::error::NetError;

/// Descriptors that sockets of peers never take: files and their directories, databases, the control socket, health and
/// metrics, log and terminal, timers.
const RESERVE: u64 = 128;
/// Handshakes, for each direction, and connections that a node has room for at least.
const FEWEST: u32 = 64;

/// Makes sure that the process may open `needed` files, raising its soft limit if the hard limit allows that.
///
/// Running out of descriptors shows in libp2p only as handshakes that time out, so a process that opens many
/// sockets checks first: two for every TCP connection with both ends in the process.
///
/// # Errors
/// [`NetError::FileLimit`] if the hard limit is too low, [`NetError::FileLimitUnknown`] if the system does
/// not report it.
pub fn check_file_limit(needed: u64) -> Result<(), NetError> {
    let (soft, hard) = Resource::NOFILE.get().map_err(NetError::FileLimitUnknown)?;
    if soft >= needed {
        return Ok(());
    }
    if hard < needed {
        return Err(NetError::FileLimit { needed, allowed: hard });
    }
    Resource::NOFILE.set(needed, hard).map_err(NetError::FileLimitUnknown)
}

impl NodeConfig {
    /// Raises the process's limit of open files to what the node's sockets may take, and what is kept for everything
    /// else. If the system allows fewer, the node makes do with fewer connections.
    ///
    /// # Errors
    /// [`NetError::FileLimit`] if hardly any are left, [`NetError::FileLimitUnknown`] if the system does not report or
    /// change its limit.
    pub fn reserve_files(&mut self) -> Result<(), NetError> {
        let (_, hard) = Resource::NOFILE.get().map_err(NetError::FileLimitUnknown)?;
        let wanted = self.limits.sockets();
        self.limits = self.limits.within(hard)?;
        if self.limits.sockets() < wanted {
            tracing::warn!(
                allowed = hard,
                wanted = wanted.saturating_add(RESERVE),
                connections = self.limits.inbound,
                "fewer files may be open than this node would use: it accepts fewer connections; raise LimitNOFILE or \
                 `ulimit -n`"
            );
        }
        check_file_limit(self.limits.sockets().saturating_add(RESERVE))
    }
}

impl NodeLimits {
    /// The limits of a process that may open so many files: first with fewer handshakes at a time, then with fewer
    /// connections.
    fn within(mut self, allowed: u64) -> Result<Self, NetError> {
        let limits = &mut self;
        let excess = |limits: &Self| {
            let excess = limits.sockets().saturating_add(RESERVE).saturating_sub(allowed);
            u32::try_from(excess).unwrap_or(u32::MAX)
        };
        // Handshakes are short, so that fewer of them cost less than fewer members.
        let pending = limits.pending.saturating_sub(excess(limits).div_ceil(2));
        limits.pending = pending.max(FEWEST.min(limits.pending));
        let inbound = limits.inbound.saturating_sub(excess(limits));
        limits.inbound = inbound.max(FEWEST.min(limits.inbound));
        if excess(limits) > 0 {
            return Err(NetError::FileLimit { needed: limits.sockets().saturating_add(RESERVE), allowed });
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_limit_beyond_the_hard_limit_says_what_to_do() {
        let hard = Resource::NOFILE.get().unwrap().1;
        assert!(check_file_limit(8).is_ok());
        if let Some(needed) = hard.checked_add(1) {
            let message = check_file_limit(needed).unwrap_err().to_string();
            assert!(message.contains(&format!("ulimit -n {needed}")), "{message}");
        }
    }

    #[test]
    fn sockets_leave_a_reserve_of_files_whatever_the_system_allows() {
        let whole = NodeLimits::served(1000);
        assert_eq!(whole.within(1 << 20).unwrap(), whole);
        for allowed in [512, 1024, 2000, 4000, 8000, whole.sockets() + RESERVE - 1] {
            let limits = whole.within(allowed).unwrap();
            assert!(limits.sockets() + RESERVE <= allowed, "{limits:?}");
            assert!(limits.inbound >= FEWEST && limits.pending >= FEWEST, "{limits:?}");
        }
        assert_eq!(whole.within(4000).unwrap().inbound, whole.inbound, "fewer handshakes first");
        let few = whole.within(256).unwrap_err();
        assert!(matches!(few, NetError::FileLimit { allowed: 256, .. }), "{few}");
    }
}
