//! The words of a line, one after the other.

use core::str::SplitAsciiWhitespace;

use crate::error::{BenchError, Result};

/// Words of a command line; a longer line is no command.
pub(crate) struct Arguments<'a>(SplitAsciiWhitespace<'a>);

/// A number and its bounds.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) what: &'static str,
    pub(crate) least: u32,
    pub(crate) most: u32,
}

/// Bounds of the number of iterations.
pub(crate) const ITERATIONS: Bounds = Bounds { what: "iterations", least: 1, most: 1_000_000 };

impl<'a> Arguments<'a> {
    /// Splits a line, with or without `bench` as its first word.
    pub(crate) fn of(line: &'a str) -> Self {
        let mut words = line.split_ascii_whitespace();
        let all = words.clone();
        if words.next() == Some("bench") { Self(words) } else { Self(all) }
    }

    pub(crate) fn word(&mut self) -> Option<&'a str> {
        self.0.next()
    }

    /// A number that must be there.
    pub(crate) fn number(&mut self, bounds: Bounds) -> Result<u32> {
        self.word().and_then(|word| bounds.read(word)).ok_or(bounds.error())
    }

    /// A number that may be left out.
    pub(crate) fn number_or(&mut self, default: u32, bounds: Bounds) -> Result<u32> {
        self.word().map_or(Ok(default), |word| bounds.read(word).ok_or(bounds.error()))
    }

    /// Checks that no word follows.
    pub(crate) fn end(mut self) -> Result<()> {
        self.word().map_or(Ok(()), |_| Err(BenchError::Usage("too many words")))
    }
}

impl Bounds {
    fn read(self, word: &str) -> Option<u32> {
        // `parse` also takes a sign.
        let digits = word.bytes().all(|byte| byte.is_ascii_digit());
        let number = word.parse().ok().filter(|_| digits)?;
        (self.least..=self.most).contains(&number).then_some(number)
    }

    const fn error(self) -> BenchError {
        let Self { what, least, most } = self;
        BenchError::OutOfBounds { what, least, most }
    }
}
