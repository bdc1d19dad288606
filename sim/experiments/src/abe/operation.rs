//! The four algorithms, and whose figures stand beside each other.

/// An algorithm of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Setup,
    Encrypt,
    KeyGen,
    Decrypt,
}

impl Operation {
    pub(super) const ALL: [Self; 4] = [Self::Setup, Self::Encrypt, Self::KeyGen, Self::Decrypt];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Setup => "Setup",
            Self::Encrypt => "Encrypt",
            Self::KeyGen => "KeyGen",
            Self::Decrypt => "Decrypt",
        }
    }

    /// In names of tables.
    pub(super) const fn key(self) -> &'static str {
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
pub(super) enum Host {
    Laptop,
    Soc,
}

/// A scheme that was measured for the publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scheme {
    Gpsw,
    Yct,
}
