//! One of two: the commands, events and records of what is composed of two.

use core::convert::Infallible;

/// One of two values: of a [`Node`](crate::Node), the primary's (left) or its parts' (right); of a pair of
/// parts, the first's or the second's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Either<L, R> {
    /// The first.
    Left(L),
    /// The second.
    Right(R),
}

impl<L, R> Either<L, R> {
    /// The first, if it is that.
    pub fn left(&self) -> Option<&L> {
        match self {
            Self::Left(left) => Some(left),
            Self::Right(_) => None,
        }
    }

    /// The second, if it is that.
    pub fn right(&self) -> Option<&R> {
        match self {
            Self::Left(_) => None,
            Self::Right(right) => Some(right),
        }
    }
}

impl<L> Either<L, Infallible> {
    /// The first: there is no second.
    pub fn into_left(self) -> L {
        match self {
            Self::Left(left) => left,
            Self::Right(never) => match never {},
        }
    }
}
