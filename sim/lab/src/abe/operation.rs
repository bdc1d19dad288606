//! The four algorithms of a scheme.

/// An algorithm of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SchemeAlgorithm {
    Setup,
    Encrypt,
    KeyGen,
    Decrypt,
}

impl SchemeAlgorithm {
    pub(crate) const ALL: [Self; 4] = [Self::Setup, Self::Encrypt, Self::KeyGen, Self::Decrypt];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Setup => "Setup",
            Self::Encrypt => "Encrypt",
            Self::KeyGen => "KeyGen",
            Self::Decrypt => "Decrypt",
        }
    }

    /// Word for the operation in names of tables.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Encrypt => "encrypt",
            Self::KeyGen => "keygen",
            Self::Decrypt => "decrypt",
        }
    }
}

/// A machine that was measured for the publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PublishedPlatform {
    Laptop,
    Soc,
}

/// A scheme that was measured for the publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReferenceScheme {
    Gpsw,
    Yct,
}
