//! X25519 (RFC 7748): one secret scalar times thousands of points, several at once on vector lanes.
//!
//! A group's leader multiplies the point of every drone by one and the same scalar. The steps are the same
//! for all of them, so eight or four points go through the Montgomery ladder side by side, one in each lane of
//! a vector.
//!
//! | [`X25519Backend`] | where | how |
//! |---|---|---|
//! | [`Avx512Ifma`](X25519Backend::Avx512Ifma) | x86-64 that has it, asked at run time | eight lanes, 52-bit multiply-add |
//! | [`Avx2`](X25519Backend::Avx2) | x86-64 that has it and FMA, asked at run time | four lanes, 53-bit floating-point multiply-add |
//! | [`Serial`](X25519Backend::Serial) | everywhere else | curve25519-dalek, one point after the other |
//!
//! All compute X25519 bit for bit and take the same time whatever the scalar and the points are.
//!
//! ```
//! use quiver_simd::x25519;
//!
//! // A leader agrees with two drones at once, each drone with the leader: RFC 7748, section 6.1.
//! let mut base = [0; 32];
//! base[0] = 9;
//! let (leader, drones) = ([0x77; 32], [[0x5d; 32], [0x2a; 32]]);
//! let publics = drones.map(|drone| x25519::multiply(&drone, &[base])[0]);
//! let secrets = x25519::multiply(&leader, &publics);
//! let public = x25519::multiply(&leader, &[base]);
//! assert_eq!(x25519::multiply(&drones[1], &public)[0], secrets[1]);
//! ```

use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::allowed::{Allowed, allowed};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod bytes;
#[cfg(target_arch = "x86_64")]
mod ifma;
mod serial;
mod single;
#[cfg(target_arch = "x86_64")]
mod swaps;

pub use single::x25519;

/// Implementation of the multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum X25519Backend {
    /// Eight points at once on AVX-512 IFMA.
    Avx512Ifma,
    /// Four points at once on AVX2 and FMA.
    Avx2,
    /// One point after the other, by curve25519-dalek.
    Serial,
}

impl X25519Backend {
    /// All of them, the fastest first.
    pub const ALL: [Self; 3] = [Self::Avx512Ifma, Self::Avx2, Self::Serial];

    /// The kind of processor that the environment has to allow.
    fn needs(self) -> Allowed {
        match self {
            Self::Avx512Ifma => Allowed::Avx512,
            Self::Avx2 => Allowed::Avx2,
            Self::Serial => Allowed::Serial,
        }
    }

    /// Returns true if this machine has the instructions.
    #[must_use]
    pub fn is_there(self) -> bool {
        self.multiply_in_place(&[0; 32], &mut [])
    }

    /// Multiplies as [`multiply_in_place`](self::multiply_in_place()) does, by this implementation, if the
    /// machine has the instructions; otherwise does nothing and returns `false`. For tests and measurements.
    #[must_use]
    pub fn multiply_in_place(self, scalar: &[u8; 32], us: &mut [[u8; 32]]) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Ifma => {
                crate::ifma::Ifma::detect().map(|ifma| ifma::multiply(ifma, scalar, us)).is_some()
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => crate::avx2::Avx2::detect().map(|avx2| avx2::multiply(avx2, scalar, us)).is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512Ifma | Self::Avx2 => false,
            Self::Serial => {
                serial::multiply(scalar, us);
                true
            }
        }
    }
}

/// The implementation that [`multiply`] uses: the fastest that this machine has.
///
/// With the feature `std` the environment variable `QUIVER_SIMD` forbids what is faster than it names, as the
/// crate's documentation says: `avx2` allows [`Avx2`](X25519Backend::Avx2), `serial` the library alone.
#[must_use]
pub fn backend() -> X25519Backend {
    let mut allowed = X25519Backend::ALL.into_iter().filter(|backend| backend.needs() <= allowed());
    allowed.find(|backend| backend.is_there()).unwrap_or(X25519Backend::Serial)
}

/// X25519(scalar, u) for each of the 32-byte u-coordinates, in their order; the results are erased when
/// dropped.
///
/// As [`multiply_in_place`], which documents input and output.
#[must_use]
pub fn multiply(scalar: &[u8; 32], us: &[[u8; 32]]) -> Zeroizing<Vec<[u8; 32]>> {
    let mut products = Zeroizing::new(us.to_vec());
    multiply_in_place(scalar, &mut products);
    products
}

/// Puts X25519(scalar, u) in the place of each 32-byte u-coordinate, which the caller erases if need be.
///
/// RFC 7748, section 5: the 32 bytes of the scalar are little-endian and clamped (which changes nothing in
/// one that is clamped already); the highest bit of u is ignored, and a u from p = 2^255 − 19 on is taken
/// modulo p. A point of small order gives 32 zeros: a caller that derives a key from the result has to refuse
/// them.
///
/// On vectors, one point costs as much as all lanes, and up to 128 points share an inversion: the more there are
/// at once, the better.
pub fn multiply_in_place(scalar: &[u8; 32], us: &mut [[u8; 32]]) {
    if !backend().multiply_in_place(scalar, us) {
        serial::multiply(scalar, us);
    }
}
