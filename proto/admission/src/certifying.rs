//! The certification authority of attribute-based key exchange: a drone's fields, certified for one period.
//!
//! | what | where |
//! |---|---|
//! | schema (fields and their widths), length of a period | the KGC's statement about the authority, of kind [`KIND`] |
//! | slot keys of a period, public | delivered with every credential; leaders have them without one |
//! | seed of all slot keys | the authority's master key: 32 bytes |
//! | values of a drone's fields | what the operator grants |
//!
//! Slot keys change with every period: a credential of the last one is worth nothing, which is how
//! credentials end and how drones are revoked. They travel in the answers of
//! [`delivery`](quiver_ainq::delivery), which nobody but the authority can make, so that the KGC signs once,
//! whatever the number of periods, and so does a quorum.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_abke::{Authority, AuthorityKey, Credential, Error as AbkeError, UnverifiedCredential, Verifier};
use quiver_ainq::{AuthorityStatement, Element, Name, Suite, UnixTime};
use quiver_crypto::canonical::{Malformed, Reader, Writer};
use quiver_crypto::{Secret, Zeroizing};
pub use quiver_delivery::attributes::CERTIFYING_KIND as KIND;
use quiver_delivery::attributes::query::MAX_KEY_LEN;
use quiver_delivery::attributes::{Granted, KeyMaker, MakeError};
use quiver_garble::policy::{FieldType, PolicyTextError, Schema};
use rand_core::CryptoRngCore;

/// The scheme's ID.
pub const SCHEME: &str = "abke-bls12-381";
/// Bits all fields may have together: what fits an answer with the slot keys.
pub const MAX_CERTIFIED: usize = 800;
/// The shortest period.
pub const MIN_PERIOD: Duration = Duration::from_secs(10);
/// The longest.
pub const MAX_PERIOD: Duration = Duration::from_secs(366 * 24 * 3600);

/// First byte of parameters and certificates.
const VERSION: u8 = 1;

const _: () = assert!(Certificate::encoded_len(MAX_CERTIFIED) <= MAX_KEY_LEN);

/// An error of an authority's terms or of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertifyError {
    /// A statement about an authority of another kind or scheme.
    #[error("not the statement about a certification authority")]
    WrongAuthority,
    /// A schema that cannot be read.
    #[error("schema: {0}")]
    Schema(PolicyTextError),
    /// A schema without fields, or of more bits than [`MAX_CERTIFIED`].
    #[error("a schema of {0} bits; 1 to {MAX_CERTIFIED} can be certified")]
    Bits(usize),
    /// A period that is too short or too long.
    #[error("a period of {0} s; it takes {min} s to {max} s", min = MIN_PERIOD.as_secs(), max = MAX_PERIOD.as_secs())]
    Period(u64),
    /// Bytes that are not the canonical encoding.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// Slot keys or a credential that do not hold.
    #[error(transparent)]
    Abke(#[from] AbkeError),
}

impl From<Malformed> for CertifyError {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error.0)
    }
}

/// Public terms of a certification authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificationTerms {
    schema: Schema,
    /// Seconds, not zero.
    period: u64,
}

impl CertificationTerms {
    /// Fields, and how long a credential lasts at most. Periods are counted from 1970: a day's begins at
    /// midnight, UTC.
    ///
    /// # Errors
    /// [`CertifyError::Bits`], [`CertifyError::Period`].
    pub fn new(schema: Schema, period: Duration) -> Result<Self, CertifyError> {
        let seconds = period.as_secs();
        // §A1.1: 1 to 800 bits in all, and periods of 10 s to 366 d.
        if !(1..=MAX_CERTIFIED).contains(&schema.bits()) {
            return Err(CertifyError::Bits(schema.bits()));
        }
        if !(MIN_PERIOD..=MAX_PERIOD).contains(&Duration::from_secs(seconds)) {
            return Err(CertifyError::Period(seconds));
        }
        Ok(Self { schema, period: seconds })
    }

    /// Reads them off a statement.
    ///
    /// # Errors
    /// [`CertifyError`].
    pub fn of<S: Suite>(statement: &AuthorityStatement<S>) -> Result<Self, CertifyError> {
        // §A2: the statement of every authority, with kind `abke`.
        if statement.kind.as_str() != KIND || statement.scheme.as_str() != SCHEME {
            return Err(CertifyError::WrongAuthority);
        }
        let text = core::str::from_utf8(&statement.schema);
        let text = text.map_err(|_| CertifyError::Malformed("a schema that is no text"))?;
        let schema = Schema::parse(text).map_err(CertifyError::Schema)?;
        let mut reader = Reader::new(&statement.parameters);
        version(&mut reader)?;
        // §A2: the length of a period is a parameter of the statement.
        let period = reader.u64()?;
        reader.end()?;
        Self::new(schema, Duration::from_secs(period))
    }

    /// The statement about an authority of this name with these terms, for the KGC to sign. `delivery`: the
    /// point that its credentials are sealed with.
    ///
    /// # Errors
    /// [`CertifyError::WrongAuthority`], never: kind and scheme are names.
    pub fn statement<S: Suite>(
        &self,
        name: Name,
        delivery: Element<S>,
    ) -> Result<AuthorityStatement<S>, CertifyError> {
        let constant = |text| Name::new(text).map_err(|_| CertifyError::WrongAuthority);
        Ok(AuthorityStatement {
            kind: constant(KIND)?,
            name,
            scheme: constant(SCHEME)?,
            delivery,
            schema: self.schema_text(),
            parameters: self.parameters(),
        })
    }

    /// The terms as the statement's `schema`.
    #[must_use]
    pub fn schema_text(&self) -> Vec<u8> {
        self.schema.to_text().into_bytes()
    }

    /// The terms as the statement's `parameters`: version u8 ‖ seconds of a period u64.
    #[must_use]
    pub fn parameters(&self) -> Vec<u8> {
        Writer::new().u8(VERSION).u64(self.period).finish()
    }

    /// The fields.
    #[must_use]
    pub const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Length of a period.
    #[must_use]
    pub const fn period(&self) -> Duration {
        Duration::from_secs(self.period)
    }

    /// The period at this time.
    #[must_use]
    pub fn period_at(&self, now: UnixTime) -> u64 {
        // §A1.1: periods are counted from 1970.
        now.checked_div(self.period).unwrap_or(0)
    }

    /// End of a period.
    #[must_use]
    pub fn end_of(&self, period: u64) -> UnixTime {
        period.saturating_add(1).saturating_mul(self.period)
    }

    /// A grant: a value for each field.
    ///
    /// # Errors
    /// [`PolicyTextError`] if a value does not fit, a field has none or two, or a name is no field's.
    pub fn grant(&self, values: &[(&str, i128)]) -> Result<Granted, PolicyTextError> {
        let attributes = self.schema.encode(values)?;
        Ok(Granted { encoded: pack(&attributes), text: self.describe(&attributes) })
    }

    /// Attributes as a value for each field: `x = -3, medic = true`.
    #[must_use]
    pub fn describe(&self, attributes: &[bool]) -> String {
        let value = |field: &quiver_garble::policy::SchemaField| {
            let bits = attributes.get(field.bits()).unwrap_or_default();
            format!("{} = {}", field.name(), value(field.kind(), bits))
        };
        self.schema.fields().iter().map(value).collect::<Vec<_>>().join(", ")
    }

    fn unpack(&self, granted: &[u8]) -> Result<Zeroizing<Vec<bool>>, Malformed> {
        let mut reader = Reader::new(granted);
        // §A2: number of bits ‖ bits, lowest first.
        let count = reader.u32()?;
        let bits = self.schema.bits();
        if u32::try_from(bits) != Ok(count) {
            return Err(Malformed("granted under another schema"));
        }
        let bytes = reader.take(bits.div_ceil(8))?;
        reader.end()?;
        let mut attributes = Zeroizing::new(Vec::with_capacity(bytes.len().saturating_mul(8)));
        attributes.extend(bytes.iter().flat_map(|byte| (0..8).map(move |at| byte >> at & 1 == 1)));
        // One encoding only: the last byte is filled up with zeros.
        if attributes.iter().skip(bits).any(|bit| *bit) {
            return Err(Malformed("bits beyond the last field"));
        }
        attributes.truncate(bits);
        Ok(attributes)
    }
}

/// Encodes a list of bits: their number ‖ the bits, lowest first.
fn pack(attributes: &[bool]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.count(attributes.len());
    for bits in attributes.chunks(8) {
        writer.u8(bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit)));
    }
    writer.finish()
}

/// A field's value as the schema's text has it.
fn value(kind: FieldType, bits: &[bool]) -> String {
    let unsigned = bits.iter().rev().fold(0_i128, |value, &bit| value << 1 | i128::from(bit));
    match kind {
        FieldType::Bool => (unsigned == 1).to_string(),
        FieldType::Unsigned(_) => unsigned.to_string(),
        FieldType::Signed(_) => {
            let negative = bits.last() == Some(&true);
            (if negative { unsigned - (1_i128 << bits.len()) } else { unsigned }).to_string()
        }
    }
}

fn version(reader: &mut Reader<'_>) -> Result<(), CertifyError> {
    if reader.u8()? == VERSION { Ok(()) } else { Err(CertifyError::Malformed("of another version")) }
}

/// The authority at work: certifies for the period that it is.
#[derive(derive_more::Debug)]
#[debug("Certifier({terms:?})")]
pub struct Certifier {
    terms: CertificationTerms,
    seed: Secret<32>,
    /// Keys of the newest period that was asked for.
    authority: Option<Authority>,
}

impl Certifier {
    /// An authority with the seed of all its slot keys.
    #[must_use]
    pub const fn new(terms: CertificationTerms, seed: Secret<32>) -> Self {
        Self { terms, seed, authority: None }
    }

    fn certify(&self, granted: &[u8], rng: &mut dyn CryptoRngCore) -> Result<Certificate, CertifyError> {
        let authority = self.authority.as_ref().ok_or(CertifyError::Malformed("no period yet"))?;
        let credential = authority.certify(&self.terms.unpack(granted)?, rng)?;
        Ok(Certificate { key: authority.key().clone(), credential: Some(credential) })
    }
}

impl KeyMaker for Certifier {
    fn begin_period(&mut self, now: UnixTime) -> Option<u64> {
        let period = self.terms.period_at(now);
        // §A1.1: slot keys are derived from the seed anew in each period: those of two have nothing in
        // common.
        if self.authority.as_ref().is_none_or(|authority| authority.key().period() != period) {
            // There are as many attributes as the terms were checked for: this does not fail.
            self.authority = Authority::derive(&self.seed, period, self.terms.schema.bits()).ok();
        }
        Some(period)
    }

    fn make(&mut self, granted: &[u8], rng: &mut dyn CryptoRngCore) -> Result<Zeroizing<Vec<u8>>, MakeError> {
        let made = self.certify(granted, rng).map_err(|error| MakeError(error.to_string()))?;
        Ok(made.encode())
    }

    fn published(&self) -> Option<Vec<u8>> {
        // §A2: what leaders get to whom nothing is granted.
        let key = self.authority.as_ref()?.key().clone();
        Some(Certificate { key, credential: None }.encode().to_vec())
    }
}

/// Certificate of a period: the authority's slot keys, and the credential of a drone with granted fields.
#[derive(Clone, Debug)]
pub struct Certificate {
    key: AuthorityKey,
    credential: Option<Credential>,
}

impl Certificate {
    /// Bytes of the encoding with a credential of so many attributes.
    #[must_use]
    pub const fn encoded_len(attributes: usize) -> usize {
        10 + AuthorityKey::encoded_len(attributes) + Credential::encoded_len(attributes)
    }

    /// The encoding: version ‖ lp(slot keys) ‖ 0, or 1 ‖ lp(credential). Secret with a credential.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::with_capacity(Self::encoded_len(self.key.attributes()));
        writer.u8(VERSION).lp(&self.key.encode()).u8(u8::from(self.credential.is_some()));
        if let Some(credential) = &self.credential {
            writer.lp(&credential.encode());
        }
        Zeroizing::new(writer.finish())
    }

    /// Decodes a certificate of the authority with these terms, and verifies the credential against the slot
    /// keys. The slot keys' source shows whose they are: a delivery, or one's own state file.
    ///
    /// # Errors
    /// [`CertifyError::Malformed`], [`CertifyError::Abke`].
    pub fn decode(
        bytes: &[u8],
        terms: &CertificationTerms,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Self, CertifyError> {
        let (key, mut reader) = Self::read_key(bytes, terms)?;
        let credential = match reader.u8()? {
            0 => None,
            1 => {
                // §A2: the drone checks every point, its secrets against its points, and all m + 3
                // signatures.
                let credential = UnverifiedCredential::decode(reader.lp(MAX_KEY_LEN)?)?;
                Some(credential.verify(&Verifier::new(key.clone()), rng)?)
            }
            _ => return Err(CertifyError::Malformed("neither with nor without a credential")),
        };
        reader.end()?;
        Ok(Self { key, credential })
    }

    fn read_key<'a>(
        bytes: &'a [u8],
        terms: &CertificationTerms,
    ) -> Result<(AuthorityKey, Reader<'a>), CertifyError> {
        let mut reader = Reader::new(bytes);
        version(&mut reader)?;
        let encoded = reader.lp(AuthorityKey::encoded_len(MAX_CERTIFIED))?;
        // §A2: as many slot keys as a credential under this schema takes.
        if encoded.len() != AuthorityKey::encoded_len(terms.schema.bits()) {
            return Err(CertifyError::Malformed("slot keys of another schema"));
        }
        Ok((AuthorityKey::decode(encoded)?, reader))
    }

    /// The period, read off the encoding without any curve arithmetic.
    ///
    /// # Errors
    /// [`CertifyError::Malformed`].
    pub fn period_of(bytes: &[u8]) -> Result<u64, CertifyError> {
        let mut reader = Reader::new(bytes);
        version(&mut reader)?;
        Ok(Reader::new(reader.lp(AuthorityKey::encoded_len(MAX_CERTIFIED))?).u64()?)
    }

    /// The slot keys of the period.
    #[must_use]
    pub const fn key(&self) -> &AuthorityKey {
        &self.key
    }

    /// The credential, if one was granted.
    #[must_use]
    pub const fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// The credential, if one was granted.
    #[must_use]
    pub fn into_credential(self) -> Option<Credential> {
        self.credential
    }
}
