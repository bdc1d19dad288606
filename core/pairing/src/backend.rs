//! The seam: what a library of curve arithmetic does for this crate, and which one does it.
//!
//! Everything else of this crate calls [`Active`]. The others are here to be compared with it.

use crate::{Curve, G1, G2, Gt, PairingError, Point, Scalar};

mod arkworks;

pub use arkworks::Arkworks;

/// The back end of this build.
pub type Active = Arkworks;

/// What a library of curve arithmetic does.
///
/// All back ends compute the same, to the byte. Slices that go together have the same length.
pub trait Backend {
    /// Its name.
    const NAME: &'static str;

    /// scalar · point.
    fn multiply<C: Curve>(point: &Point<C>, scalar: &Scalar) -> Point<C>;
    /// Σ scalar · point; what one slice has more than the other is left out.
    fn msm<C: Curve>(points: &[Point<C>], scalars: &[Scalar]) -> Point<C>;
    /// Σ integer · point; what one slice has more than the other is left out.
    fn msm_small<C: Curve>(points: &[Point<C>], integers: &[i128]) -> Point<C>;
    /// As [`Point::hash`].
    fn hash<C: Curve>(domain: &str, parts: &[&[u8]]) -> Point<C>;
    /// The point that the bytes encode, or the identity.
    ///
    /// # Errors
    /// [`PairingError::NotCanonical`], [`PairingError::NotOnCurve`] or [`PairingError::WrongSubgroup`].
    fn decode<C: Curve>(bytes: &C::Encoding) -> Result<Point<C>, PairingError>;
    /// Σ e(p, q).
    fn pairing_product(pairs: &[(G1, G2)]) -> Gt;
}
