//! Raises the limit of open file descriptors.

use rlimit::Resource;

use crate::error::NetError;

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
}
