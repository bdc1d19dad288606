//! Waits for a file that another process holds: a command that changes something, or a KGC that starts.

use std::thread::sleep;
use std::time::Duration;

use crate::error::{Error, Result};

/// Time between two looks.
const NAP: Duration = Duration::from_millis(100);

/// Opens a file as soon as no other process holds it, in so many looks at most. After each in vain it goes on
/// as long as `goes_on` says so.
///
/// # Errors
/// Those of `open` and of `goes_on`; in the end that the file is in use.
pub(crate) fn when_free<T>(
    looks: u32,
    mut open: impl FnMut() -> Result<T>,
    mut goes_on: impl FnMut() -> Result<bool>,
) -> Result<T> {
    for _ in 1..looks {
        let opened = open();
        let is_held = matches!(opened, Err(Error::Service(quiver_service::Error::InUse { .. })));
        if !is_held || !goes_on()? {
            return opened;
        }
        sleep(NAP);
    }
    open()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn held() -> Error {
        let path = Path::new("master.state").into();
        Error::Service(quiver_service::Error::InUse { path })
    }

    /// Outcome for a file that is free at this look, and the number of looks.
    fn looks(free_at: u32, most: u32, goes_on: bool) -> (bool, u32) {
        let mut looks = 0;
        let open = || {
            looks += 1;
            if looks < free_at { Err(held()) } else { Ok(()) }
        };
        let opened = when_free(most, open, || Ok(goes_on)).is_ok();
        (opened, looks)
    }

    #[test]
    fn a_held_file_is_waited_for_as_long_as_there_is_hope() {
        assert_eq!(looks(1, 5, true), (true, 1));
        assert_eq!(looks(3, 5, true), (true, 3));
        assert_eq!(looks(9, 3, true), (false, 3), "the last one says what is wrong");
        assert_eq!(looks(3, 5, false), (false, 1));
    }

    #[test]
    fn what_waiting_does_not_mend_is_told_at_once() {
        let mut looks = 0;
        let refused: Result<()> = when_free(
            9,
            || {
                looks += 1;
                Err(Error::Quorum("no".into()))
            },
            || Ok(true),
        );
        assert!(matches!(refused, Err(Error::Quorum(_))));
        assert_eq!(looks, 1);
    }
}
