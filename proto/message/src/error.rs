//! Reason why bytes from outside are not a message.

use quiver_ainq::Error as AinqError;

/// Reason why bytes from outside are not a message of this deployment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// Longer than [`MAX_MESSAGE_LEN`](crate::MAX_MESSAGE_LEN) bytes, or than a feature's message of this kind may be.
    #[error("message of {0} bytes is longer than allowed")]
    TooLong(usize),
    /// Not protobuf, or not of this schema.
    #[error("message is not valid protobuf of quiver.v1")]
    NotProtobuf,
    /// Unknown fields, repeated or unordered fields, padded numbers: not what
    /// [`Message::encode`](crate::Message::encode) writes.
    #[error("message is not in the shortest encoding of quiver.v1")]
    NotCanonical,
    /// Made for another deployment, suite or KGC key.
    #[error("message belongs to another deployment or suite")]
    ForeignDeployment,
    /// No body, or a body this version does not know.
    #[error("message has no known body")]
    NoBody,
    /// A part that must be there is not.
    #[error("field `{0}` is missing")]
    Missing(&'static str),
    /// A field has a length or value that is not allowed.
    #[error("field `{0}` has a length or value that is not allowed")]
    Invalid(&'static str),
    /// A field does not decode.
    #[error("field `{field}`: {error}")]
    Field {
        /// The field.
        field: &'static str,
        /// The error.
        error: AinqError,
    },
}
