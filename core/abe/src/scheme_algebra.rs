//! The algebra of a scheme, without encodings, authorities and key derivation, which all schemes share.
//!
//! A crate that implements [`SchemeAlgebra`] has a [`Scheme`](crate::Scheme).

use alloc::vec::Vec;
use core::fmt::Debug;

use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use rand_core::CryptoRngCore;

use crate::{AbeError, Terms, Universe};

pub use crate::shares::{coefficients, share};
pub use crate::terms::Lowered;

/// The encoded group element that encapsulation and decapsulation agree on; the secret is derived from it.
pub type SharedElement = Zeroizing<Vec<u8>>;

/// The algebra of a scheme. Every type that implements it is a [`Scheme`](crate::Scheme).
pub trait SchemeAlgebra: Sized + Copy + Debug + Send + Sync + 'static {
    /// The scheme's name.
    const ID: &'static str;
    /// The scheme's number in encodings.
    const NUMBER: u8;

    /// Public terms of a key.
    type KeyTerms: Terms;
    /// Public terms of a ciphertext.
    type CiphertextTerms: Terms;
    /// The elements that an authority publishes.
    type Public: ElementEncoding<()> + Clone;
    /// An authority's secret scalars, erased when dropped.
    type Master: ElementEncoding<()>;
    /// The elements of a key, erased when dropped.
    type KeyElements: ElementEncoding<Lowered<Self::KeyTerms>>;
    /// The elements of a ciphertext.
    type CiphertextElements: ElementEncoding<Lowered<Self::CiphertextTerms>> + Clone;

    /// Setup.
    ///
    /// # Errors
    /// See the function of this name in [`Scheme`](crate::Scheme).
    fn setup(
        universe: &Universe,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Self::Public, Self::Master), AbeError>;

    /// Builds tables.
    fn prepare(public: &mut Self::Public, expected: &Universe);

    /// Key generation.
    ///
    /// # Errors
    /// See the function of this name in [`Scheme`](crate::Scheme).
    fn derive(
        public: &Self::Public,
        master: &Self::Master,
        terms: &Lowered<Self::KeyTerms>,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Self::KeyElements, AbeError>;

    /// Encryption, without a message.
    ///
    /// # Errors
    /// See the function of this name in [`Scheme`](crate::Scheme).
    fn encapsulate(
        public: &Self::Public,
        terms: &Lowered<Self::CiphertextTerms>,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Self::CiphertextElements, SharedElement), AbeError>;

    /// Decryption.
    ///
    /// # Errors
    /// See the function of this name in [`Scheme`](crate::Scheme).
    fn decapsulate(
        key: (&Lowered<Self::KeyTerms>, &Self::KeyElements),
        ciphertext: (&Lowered<Self::CiphertextTerms>, &Self::CiphertextElements),
    ) -> Result<SharedElement, AbeError>;

    /// Returns true if the one satisfies the other.
    fn admits(key: &Self::KeyTerms, ciphertext: &Self::CiphertextTerms) -> bool;
}

/// The part of an encoding that is a scheme's own. How many elements there are follows from the context: the
/// terms, which stand before them.
pub trait ElementEncoding<C>: Sized {
    /// Bytes that [`write`](Self::write) writes.
    fn encoded_len(&self) -> usize;

    /// Writes the elements.
    fn write(&self, writer: &mut Writer);

    /// Reads and checks them.
    ///
    /// # Errors
    /// [`AbeError::InvalidElement`] for one that is not of its group, [`AbeError::Malformed`] for too few bytes.
    fn read(reader: &mut Reader<'_>, context: &C) -> Result<Self, AbeError>;
}
