//! A suite without security, for exploring the protocol's logic cheaply.
//!
//! The group is the integers modulo the prime 2^61 − 1 under addition, with generator 1: a discrete logarithm
//! is the point itself. Everything else (hashes, keys, encodings, machines) is the code that runs over
//! ristretto255, so a fault of the protocol's logic shows here as it shows there, for a hundredth of the
//! time; what depends on the hardness of the group does not. Points are 8 bytes, so a flipped bit most often
//! still gives a point, and reaches further than it would elsewhere.

use quiver_ainq::{AgreedSecret, Element, Error, Suite};
use quiver_crypto::Hasher;
use std::ops::{Add, Mul, Neg, Sub};
use zeroize::{Zeroize, Zeroizing};

/// The prime order.
const Q: u64 = (1 << 61) - 1;

/// The suite `QUIVER-AINQ-INSECURE-TOY61-v1`: **no security whatsoever**, simulations only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InsecureToy;

/// An integer modulo 2^61 − 1: scalar and point alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residue(u64);

impl Residue {
    fn new(value: u128) -> Self {
        // 2^61 = 1, so the upper bits are added to the lower ones.
        let folded = (value & u128::from(Q)) + (value >> 61);
        let folded = (folded & u128::from(Q)) + (folded >> 61);
        let folded = u64::try_from(folded).unwrap_or(0);
        Self(if folded >= Q { folded - Q } else { folded })
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let value = u64::from_le_bytes(bytes.try_into().ok()?);
        (value < Q).then_some(Self(value))
    }
}

impl Add for Residue {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(u128::from(self.0) + u128::from(other.0))
    }
}

impl Sub for Residue {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Residue {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::new(u128::from(self.0) * u128::from(other.0))
    }
}

impl Neg for Residue {
    type Output = Self;
    fn neg(self) -> Self {
        Self::new(u128::from(Q - self.0))
    }
}

impl Zeroize for Residue {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

fn hash(domain: &str, parts: &[&[u8]]) -> Residue {
    let mut hasher = Hasher::new(domain);
    for part in parts {
        hasher = hasher.lp(part);
    }
    let digest = hasher.finish();
    let (head, _) = digest.split_first_chunk::<16>().expect("a digest has 32 bytes");
    Residue::new(u128::from_le_bytes(*head))
}

impl Suite for InsecureToy {
    const ID: &'static str = "QUIVER-AINQ-INSECURE-TOY61-v1";
    const POINT_LEN: usize = 8;
    const SCALAR_LEN: usize = 32;
    const SECRET_LEN: usize = 32;

    type Scalar = Residue;
    type Point = Residue;
    type Encoding = [u8; 8];
    type Prepared = Residue;

    fn mul_base(scalar: &Residue) -> Residue {
        *scalar
    }

    fn mul(scalar: &Residue, point: &Residue) -> Residue {
        *scalar * *point
    }

    fn encode(point: &Residue) -> [u8; 8] {
        point.0.to_le_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Residue> {
        Residue::decode(bytes)
    }

    fn is_identity(point: &Residue) -> bool {
        point.0 == 0
    }

    fn prepare(point: &Residue) -> Residue {
        *point
    }

    fn vartime_mul_prepared(scalar: &Residue, point: &Residue) -> Residue {
        *scalar * *point
    }

    fn vartime_mul_with_base(a: &Residue, point: &Residue, b: &Residue) -> Residue {
        *a * *point + *b
    }

    fn vartime_multiscalar(scalars: &[Residue], points: &[Residue]) -> Residue {
        scalars.iter().zip(points).fold(Residue::default(), |sum, (scalar, point)| sum + *scalar * *point)
    }

    fn scalar_from_wide(bytes: &[u8; 64]) -> Residue {
        // Sixteen bytes are far more than the order has: uniform but for one part in 2^67.
        let (head, _) = bytes.split_first_chunk::<16>().expect("64 bytes");
        Residue::new(u128::from_le_bytes(*head))
    }

    fn scalar_from_u128(value: u128) -> Residue {
        Residue::new(value)
    }

    fn scalar_decode(bytes: &[u8]) -> Option<Residue> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        (bytes.len() == 32 && rest.iter().all(|byte| *byte == 0)).then(|| Residue::decode(head))?
    }

    fn scalar_encode(scalar: &Residue) -> Zeroizing<[u8; 32]> {
        let mut bytes = Zeroizing::new([0; 32]);
        bytes.iter_mut().zip(scalar.0.to_le_bytes()).for_each(|(to, from)| *to = from);
        bytes
    }

    fn scalar_is_zero(scalar: &Residue) -> bool {
        scalar.0 == 0
    }

    fn challenge(parts: &[&[u8]]) -> Residue {
        // Over the parts one after the other, as FROST's H2.
        hash("quiver/1 toy challenge", &[&parts.concat()])
    }

    fn hash_to_scalar(domain: &str, parts: &[&[u8]]) -> Residue {
        hash(domain, parts)
    }

    fn secret_scalar_ok(_: &Residue) -> bool {
        true
    }

    fn agree(k: &Residue, q: &Element<Self>) -> Result<AgreedSecret, Error> {
        secret(k, q.point())
    }

    fn agree_many(k: &Residue, qs: &[Residue]) -> Vec<Result<AgreedSecret, Error>> {
        qs.iter().map(|q| secret(k, q)).collect()
    }
}

fn secret(k: &Residue, q: &Residue) -> Result<AgreedSecret, Error> {
    if k.0 == 0 {
        return Err(Error::InvalidScalar);
    }
    if q.0 == 0 {
        return Err(Error::IdentityPoint);
    }
    Ok(AgreedSecret::new(&InsecureToy::scalar_encode(&(*k * *q))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residues_form_a_field() {
        let numbers = [0, 1, 2, Q - 1, Q / 2, 123_456_789_012_345].map(|n| Residue::new(u128::from(n)));
        for a in numbers {
            assert_eq!(a - a, Residue(0));
            assert_eq!(a + -a, Residue(0));
            for b in numbers {
                assert_eq!(a * b, b * a);
                assert_eq!((a + b) - b, a);
                assert_eq!(u128::from((a * b).0), u128::from(a.0) * u128::from(b.0) % u128::from(Q));
            }
        }
        assert_eq!(Residue::new(u128::from(Q)), Residue(0));
        assert_eq!(Residue::new(u128::MAX).0, u64::try_from(u128::MAX % u128::from(Q)).unwrap());
    }

    #[test]
    fn only_canonical_encodings_decode() {
        assert_eq!(InsecureToy::decode(&Q.to_le_bytes()), None);
        assert_eq!(InsecureToy::decode(&[1; 7]), None);
        let scalar = Residue::new(77);
        assert_eq!(InsecureToy::scalar_decode(&*InsecureToy::scalar_encode(&scalar)), Some(scalar));
        let mut padded = InsecureToy::scalar_encode(&scalar);
        padded[31] = 1;
        assert_eq!(InsecureToy::scalar_decode(&*padded), None);
    }

    #[test]
    fn both_sides_agree() {
        let (a, b) = (Residue::new(1234), Residue::new(99_999));
        assert_eq!(secret(&a, &b).unwrap(), secret(&b, &a).unwrap());
        assert_eq!(secret(&a, &Residue(0)).unwrap_err(), Error::IdentityPoint);
    }
}
