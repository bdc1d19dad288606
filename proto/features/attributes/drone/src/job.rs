//! Jobs on envelopes, as a subcommand sends them to the running service.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Task for a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Job {
    /// Seal it.
    Seal(SealJob),
    /// Open it.
    Open(OpenJob),
}

/// Recipients of an envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipients {
    /// Policy or attributes as source text.
    pub target: TargetText,
    /// The authority's name, if there are several.
    pub authority: Option<String>,
    /// The scheme's name, if there are several.
    pub scheme: Option<String>,
}

/// Policy or attributes as source text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetText {
    /// Attributes that fit it open.
    Policy(String),
    /// Keys whose policy fits them open.
    Attributes(String),
}

/// A file to be sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealJob {
    /// The file to seal.
    pub input: PathBuf,
    /// Path of the envelope; must not exist.
    pub output: PathBuf,
    /// Recipients of the envelope.
    pub to: Recipients,
    /// The authority's public file, in place of those known.
    pub authority_file: Option<PathBuf>,
    /// True if this drone signs it.
    pub signed: bool,
}

/// An envelope to be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenJob {
    /// The envelope.
    pub input: PathBuf,
    /// Path of the content; must not exist.
    pub output: PathBuf,
    /// Keys as files, in place of those held.
    pub keys: Vec<PathBuf>,
}

/// Text to be sealed and sent to the group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendJob {
    /// Recipients of the text.
    pub to: Recipients,
    /// The text.
    pub text: String,
    /// True if this drone signs it.
    pub signed: bool,
}
