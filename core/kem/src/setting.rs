//! Names and sizes of the parameter sets, and the setting of a deployment.

#[cfg(feature = "serde")]
mod configuration;

use core::fmt;
use core::str::FromStr;

/// Parameter set of ML-KEM. Its name is `ml-kem-768` or `ml-kem-1024`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KemSet {
    /// Category 3 of NIST: a key search on AES-192.
    MlKem768,
    /// Category 5: a key search on AES-256. CNSA 2.0 asks for it.
    MlKem1024,
}

impl KemSet {
    /// Both sets.
    pub const ALL: [Self; 2] = [Self::MlKem768, Self::MlKem1024];

    /// Bytes of an encapsulation key: 1,184 or 1,568.
    #[must_use]
    pub const fn key_len(self) -> usize {
        match self {
            Self::MlKem768 => 1184,
            Self::MlKem1024 => 1568,
        }
    }

    /// Bytes of a ciphertext: 1,088 or 1,568.
    #[must_use]
    pub const fn ciphertext_len(self) -> usize {
        match self {
            Self::MlKem768 => 1088,
            Self::MlKem1024 => 1568,
        }
    }

    /// Byte of the set in encodings. No set has 0, because 0 means that none is used.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::MlKem768 => 1,
            Self::MlKem1024 => 2,
        }
    }

    /// The set of a byte in an encoding; `None` if there is none.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::MlKem768),
            2 => Some(Self::MlKem1024),
            _ => None,
        }
    }

    /// Name of the set.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MlKem768 => "ml-kem-768",
            Self::MlKem1024 => "ml-kem-1024",
        }
    }
}

impl fmt::Display for KemSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KemSet {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|set| set.name() == name).ok_or("`ml-kem-768` or `ml-kem-1024`")
    }
}

/// Setting `kem` of a deployment. Its name is that of a set, or `none`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KemSetting {
    /// Pairwise secrets rest on the curve alone.
    #[default]
    None,
    /// [`KemSet::MlKem768`].
    MlKem768,
    /// [`KemSet::MlKem1024`].
    MlKem1024,
}

impl KemSetting {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::MlKem768, Self::MlKem1024];

    /// The parameter set, unless there is none.
    #[must_use]
    pub const fn set(self) -> Option<KemSet> {
        match self {
            Self::None => None,
            Self::MlKem768 => Some(KemSet::MlKem768),
            Self::MlKem1024 => Some(KemSet::MlKem1024),
        }
    }

    /// Returns true if there is no parameter set.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl From<Option<KemSet>> for KemSetting {
    fn from(set: Option<KemSet>) -> Self {
        match set {
            None => Self::None,
            Some(KemSet::MlKem768) => Self::MlKem768,
            Some(KemSet::MlKem1024) => Self::MlKem1024,
        }
    }
}

impl fmt::Display for KemSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.set().map_or("none", KemSet::name))
    }
}

impl FromStr for KemSetting {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name == "none" {
            return Ok(Self::None);
        }
        let set: Result<KemSet, _> = name.parse();
        set.map(|set| Some(set).into()).map_err(|_| "`none`, `ml-kem-768` or `ml-kem-1024`")
    }
}
