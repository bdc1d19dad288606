//! Parameters and keys of attribute authorities, as a drone holds them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use quiver_abe::AbeError;
use quiver_abe::envelope::{AnyKey, AnyParameters};
use quiver_ainq::Suite;
use quiver_delivery::attributes::KeyringEntry;

/// Parameters of one authority, enough to seal, and perhaps a key, to open.
#[derive(Debug)]
pub struct AttributeAccess {
    parameters: AnyParameters,
    key: Option<AnyKey>,
}

impl AttributeAccess {
    /// Puts parameters and key together.
    ///
    /// # Errors
    /// [`AbeError::WrongAuthority`] if the key is not of the authority that the parameters are of.
    pub fn new(parameters: AnyParameters, key: Option<AnyKey>) -> Result<Self, AbeError> {
        if key.as_ref().is_some_and(|key| key.authority() != parameters.authority()) {
            return Err(AbeError::WrongAuthority);
        }
        Ok(Self { parameters, key })
    }

    /// Access by an entry of a keyring.
    ///
    /// # Errors
    /// The error of malformed parameters or key; [`AbeError::WrongScheme`] for an unknown scheme.
    pub fn of<S: Suite>(entry: &KeyringEntry<S>) -> Result<Self, AbeError> {
        let authority = &entry.authority;
        let parameters = AnyParameters::decode(authority.scheme.as_str(), &authority.parameters)?;
        let key =
            entry.key.as_ref().map(|held| AnyKey::decode(parameters.scheme(), &held.key)).transpose()?;
        Self::new(parameters, key)
    }

    /// The parameters.
    #[must_use]
    pub const fn parameters(&self) -> &AnyParameters {
        &self.parameters
    }

    /// The key, if the drone was given one.
    #[must_use]
    pub const fn key(&self) -> Option<&AnyKey> {
        self.key.as_ref()
    }
}

/// All that a drone has of attribute authorities. Cheap to clone; equal if it is the same.
#[derive(Clone, derive_more::Debug)]
#[debug("AttributeKeys({} of them)", self.0.len())]
pub struct AttributeKeys(Arc<[AttributeAccess]>);

impl AttributeKeys {
    /// Makes a set of keys of these authorities; of one there may be several keys.
    #[must_use]
    pub fn new(access: Vec<AttributeAccess>) -> Self {
        Self(access.into())
    }

    /// Accesses of the authority with this fingerprint.
    pub fn of<'a>(&'a self, authority: &'a [u8; 32]) -> impl Iterator<Item = &'a AttributeAccess> {
        self.iter().filter(move |access| access.parameters.authority().as_bytes() == authority)
    }

    /// Returns true if there is a key of the authority with this fingerprint that opens envelopes to this
    /// target.
    pub(super) fn open(&self, authority: &[u8; 32], target: &[u8]) -> bool {
        // §E2: whether a key fits can be told from policy and attributes.
        self.of(authority).filter_map(AttributeAccess::key).any(|key| key.admits(target))
    }

    /// Iterates over all keys.
    pub fn iter(&self) -> impl Iterator<Item = &AttributeAccess> {
        self.0.iter()
    }
}

impl PartialEq for AttributeKeys {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AttributeKeys {}
