//! Display of bytes as hexadecimal.

use core::fmt;

/// Shows bytes as lower-case hexadecimal, in `Display` and `Debug` alike. Not for secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn bytes_are_spelled_with_two_digits_each() {
        assert_eq!(format!("{} {:?}", Hex(&[0, 10, 255]), Hex(&[1])), "000aff 01");
    }
}
