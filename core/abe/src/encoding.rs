//! The encoding that parameters, keys and ciphertexts of all schemes share.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version of the encoding, 1 |
//! | 1 | number of the scheme |
//! | 1 | kind: 1 parameters, 2 master key, 3 key, 4 ciphertext |
//! | 32 | the authority's fingerprint (not in parameters, whose fingerprint it is) |
//! | 4 + n | keys and ciphertexts: policy or attributes, behind their length |
//! | … | the elements; how many follows from the above |

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Hasher, Secret, Zeroizing, extract, prf};
use rand_core::CryptoRngCore;

use crate::scheme_algebra::{ElementEncoding, SchemeAlgebra, SharedElement};
use crate::terms::MAX_TERMS_LEN;
use crate::{AbeError, AuthorityFingerprint, PublicEncoding, Scheme, Terms, Universe};

mod keys;
mod parameters;

pub use keys::{Ciphertext, Key};
pub use parameters::{MasterKey, Parameters};

/// The version of the encoding.
const VERSION: u8 = 1;

/// Bytes that every encoding starts with.
pub(crate) const HEADER_LEN: usize = 3;

/// Kind of the encoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EncodedKind {
    Parameters = 1,
    MasterKey = 2,
    Key = 3,
    Ciphertext = 4,
}

impl EncodedKind {
    const fn with_article(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::MasterKey => "a master key",
            Self::Key => "a key",
            Self::Ciphertext => "a ciphertext",
        }
    }
}

fn write_header<M: SchemeAlgebra>(writer: &mut Writer, kind: EncodedKind) {
    writer.u8(VERSION).u8(M::NUMBER).u8(kind as u8);
}

fn read_header<M: SchemeAlgebra>(reader: &mut Reader<'_>, kind: EncodedKind) -> Result<(), AbeError> {
    let [version, scheme, actual] = reader.array()?;
    if version != VERSION {
        return Err(AbeError::UnknownVersion(version));
    }
    if scheme != M::NUMBER {
        return Err(AbeError::WrongScheme);
    }
    if actual != kind as u8 {
        return Err(AbeError::WrongKind { expected: kind.with_article() });
    }
    Ok(())
}

/// Content of a key or ciphertext: its authority, its terms, and its elements.
#[derive(Clone)]
struct Content<T: Terms, B> {
    authority: AuthorityFingerprint,
    terms: T,
    lowered: T::Lowered,
    body: B,
}

impl<T: Terms, B: ElementEncoding<T::Lowered>> Content<T, B> {
    fn encode<M: SchemeAlgebra>(&self, kind: EncodedKind) -> Vec<u8> {
        let terms = self.terms.encode();
        let before = HEADER_LEN + AuthorityFingerprint::LEN + size_of::<u32>();
        let mut writer = Writer::with_capacity(before + terms.len() + self.body.encoded_len());
        write_header::<M>(&mut writer, kind);
        writer.fixed(self.authority.as_bytes()).lp(&terms);
        self.body.write(&mut writer);
        writer.finish()
    }

    fn decode<M: SchemeAlgebra>(bytes: &[u8], kind: EncodedKind) -> Result<Self, AbeError> {
        let mut reader = Reader::new(bytes);
        read_header::<M>(&mut reader, kind)?;
        let authority = AuthorityFingerprint::read(&mut reader)?;
        let terms = T::decode(reader.lp(MAX_TERMS_LEN)?)?;
        let lowered = terms.lower()?;
        let body = B::read(&mut reader, &lowered)?;
        reader.end()?;
        Ok(Self { authority, terms, lowered, body })
    }
}

impl<M: SchemeAlgebra> Scheme for M {
    const ID: &'static str = M::ID;

    type KeyTerms = M::KeyTerms;
    type CiphertextTerms = M::CiphertextTerms;
    type Parameters = Parameters<M>;
    type MasterKey = MasterKey<M>;
    type Key = Key<M>;
    type Ciphertext = Ciphertext<M>;

    fn setup(
        universe: &Universe,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Parameters<M>, MasterKey<M>), AbeError> {
        let (public, master) = M::setup(universe, rng)?;
        let parameters = Parameters::new(public);
        let master = MasterKey::new(*parameters.authority(), master);
        Ok((parameters, master))
    }

    fn prepare(parameters: &mut Parameters<M>, expected: &Universe) {
        M::prepare(&mut parameters.public, expected);
    }

    fn derive(
        parameters: &Parameters<M>,
        master: &MasterKey<M>,
        terms: &M::KeyTerms,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Key<M>, AbeError> {
        let authority = *parameters.authority();
        // Parameters and master key must be of one setup.
        if master.authority != authority {
            return Err(AbeError::WrongAuthority);
        }
        let lowered = terms.lower()?;
        let body = M::derive(&parameters.public, &master.secret, &lowered, rng)?;
        Ok(Key::new(Content { authority, terms: terms.clone(), lowered, body }))
    }

    fn encapsulate(
        parameters: &Parameters<M>,
        terms: &M::CiphertextTerms,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Ciphertext<M>, Secret<32>), AbeError> {
        let lowered = terms.lower()?;
        let (body, element) = M::encapsulate(&parameters.public, &lowered, rng)?;
        let authority = *parameters.authority();
        let ciphertext = Ciphertext::new(Content { authority, terms: terms.clone(), lowered, body });
        let secret = derive_secret::<M>(&ciphertext, &element);
        Ok((ciphertext, secret))
    }

    fn decapsulate(
        parameters: &Parameters<M>,
        key: &Key<M>,
        ciphertext: &Ciphertext<M>,
    ) -> Result<Secret<32>, AbeError> {
        let authority = parameters.authority();
        let (key, sent) = (&key.content, &ciphertext.content);
        // A key of another authority would give another secret, not an error.
        if key.authority != *authority || sent.authority != *authority {
            return Err(AbeError::WrongAuthority);
        }
        let element = M::decapsulate((&key.lowered, &key.body), (&sent.lowered, &sent.body))?;
        Ok(derive_secret::<M>(ciphertext, &element))
    }

    fn admits(key: &M::KeyTerms, ciphertext: &M::CiphertextTerms) -> bool {
        M::admits(key, ciphertext)
    }
}

/// K = PRF(HKDF-Extract(H(ciphertext), element), scheme, "secret"). The ciphertext's encoding goes in whole,
/// and with it the scheme, the authority, the policy or attributes, and every component, whether decryption
/// needed it or not.
fn derive_secret<M: SchemeAlgebra>(ciphertext: &Ciphertext<M>, element: &SharedElement) -> Secret<32> {
    // The secret depends on every byte of the ciphertext, also on those that decryption does not need.
    let salt = Hasher::new("QUIVER-ABE-v1 ciphertext").lp(ciphertext.as_bytes()).finish();
    prf(&extract(&salt, element), M::ID, "secret", &[])
}

/// `encoded` as a secret of the caller's.
fn guarded(encoded: Vec<u8>) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(encoded)
}
