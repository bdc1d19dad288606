//! Requests of subcommands to a drone's running service, and the answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::feature::{FeatureAnswer, FeatureRequest};
use super::fetch::FetchReport;
use super::{Error, Result};
use crate::control::{TimeLimit, USUAL_TIME};

/// Description of an answer that a KGC has to give.
pub const ANSWER_OF_KGC: &str = "an answer of the KGC: is `kgc serve` running, and reachable?";

/// A request to a drone's service; `Q` are those that only its own role knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DroneRequest<Q> {
    /// One of its role.
    Role(Q),
    /// One that could be answered without the service.
    Keys(KeyRequest),
    /// Have a feature's part send something to the group.
    Send(FeatureRequest),
    /// Something that a feature's part in the running service answers.
    Part(FeatureRequest),
}

/// A request about the keys that a drone has from the KGCs, and what is done with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyRequest {
    /// Fetch attribute keys and credentials.
    Fetch,
    /// Something that a feature answers.
    Feature(FeatureRequest),
}

impl KeyRequest {
    /// Answer that others have to give, if any.
    #[must_use]
    pub fn awaited(&self) -> Option<String> {
        match self {
            Self::Fetch => Some(ANSWER_OF_KGC.into()),
            Self::Feature(request) => request.awaited.clone(),
        }
    }
}

impl<Q> TimeLimit for DroneRequest<Q> {
    fn time_limit(&self) -> Duration {
        match self {
            Self::Keys(KeyRequest::Feature(request)) | Self::Send(request) | Self::Part(request) => {
                request.time_limit
            }
            _ => USUAL_TIME,
        }
    }
}

/// The answer to a [`KeyRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyAnswer {
    /// Report of a fetch.
    Fetched(FetchReport),
    /// Answer of a feature.
    Feature(FeatureAnswer),
    /// A failure: the reason, and the exit code that it would have had without the service.
    Failed(String, u8),
}

impl From<Result<Self>> for KeyAnswer {
    fn from(answer: Result<Self>) -> Self {
        answer.unwrap_or_else(|error| Self::Failed(error.to_string(), error.exit() as u8))
    }
}

impl KeyAnswer {
    /// The error of an answer to another request than was made.
    #[must_use]
    pub fn unexpected(self) -> Error {
        match self {
            Self::Failed(reason, code) => Error::Answered(reason, code),
            _ => Error::Answered("the running service is of another version: restart it".into(), 1),
        }
    }
}

/// An answer over the socket: JSON, or a refusal in words.
pub type Answered = std::result::Result<Value, String>;

/// An answer as JSON.
///
/// # Errors
/// In words, if it cannot be written so.
pub fn json(answer: &impl Serialize) -> Answered {
    serde_json::to_value(answer).map_err(|error| error.to_string())
}
