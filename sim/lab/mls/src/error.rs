//! Reason why MLS refused.

use mls_rs::error::MlsError;

/// Reason why MLS refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the library.
    #[error(transparent)]
    Mls(Box<MlsError>),
    /// `openmls` refused, in its words.
    #[error("openmls: {0}")]
    OpenMls(String),
    /// A message is no commit.
    #[error("the message is no commit")]
    NoCommit,
    /// A commit that adds a member came without a welcome or a tree.
    #[error("the commit invites nobody")]
    NoInvitation,
    /// An exported secret has the wrong length.
    #[error("exported secret of the wrong length")]
    Length,
    /// A group to be warmed has fewer than two members beside its founder.
    #[error("a warmed group has at least two members beside its founder")]
    TooFew,
    /// The cryptography failed.
    #[error(transparent)]
    Provider(#[from] crate::provider::ProviderError),
}

impl From<MlsError> for Error {
    fn from(error: MlsError) -> Self {
        Self::Mls(Box::new(error))
    }
}

/// Result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;
