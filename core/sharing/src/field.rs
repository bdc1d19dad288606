//! The interface of a prime field.

use core::ops::{Add, Mul, Neg, Sub};

use rand_core::CryptoRngCore;
use zeroize::Zeroize;

/// A prime field of more than 2^32 elements, so that no index of a share is 0 in it and no two are the same.
pub trait Field:
    Copy
    + PartialEq
    + From<u64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + Zeroize
    + Send
    + Sync
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;

    /// 1/self, which 0 has not.
    #[must_use]
    fn invert(&self) -> Option<Self>;

    /// A random element, every one as likely but for 2^−250.
    #[must_use]
    fn random(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self;

    /// An integer, modulo the order.
    #[must_use]
    fn from_integer(value: i128) -> Self {
        let [high, low] = [value.unsigned_abs() >> 64, value.unsigned_abs() & u128::from(u64::MAX)]
            .map(|half| Self::from(u64::try_from(half).unwrap_or(u64::MAX)));
        let shift = Self::from(1 << 32);
        let absolute = high * shift * shift + low;
        if value < 0 { -absolute } else { absolute }
    }
}

/// Inverts every element with one inversion in all (Montgomery's trick). `None` if one of them is 0.
pub(crate) fn invert_all<F: Field>(elements: &mut [F]) -> Option<()> {
    // products[i] is the product of all elements before i.
    let mut product = F::ONE;
    let mut products = alloc::vec::Vec::with_capacity(elements.len());
    for element in elements.iter() {
        products.push(product);
        product = product * *element;
    }
    let mut inverse = product.invert()?;
    for (element, before) in elements.iter_mut().zip(products).rev() {
        let own = inverse * before;
        inverse = inverse * *element;
        *element = own;
    }
    Some(())
}
