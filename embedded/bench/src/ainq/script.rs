//! Script of a benchmark: the recorded inputs of one drone in a group of a hundred, replayed on a board.
//!
//! Roles are deterministic: an edge that starts from the same stored state, with the same generator and the
//! same inputs, does the same. So nothing of a leader needs to be in an image. The example `record` writes
//! scripts; a test records them again and compares the bytes, so that they are never those of another version
//! of the protocol.
//!
//! The encoding is lp(deployment's name) ‖ lp(P_pub) ‖ lp(group) ‖ members (4 bytes) ‖ time (8, seconds since
//! 1970) ‖ seed (8) ‖ lp(stored state) ‖ number of steps (4) ‖ steps, each as milliseconds (4) ‖ cue (1) ‖
//! lp(message).

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Deployment, Element, Name, Ristretto255};
use quiver_crypto::canonical::{Malformed, Reader, Writer};
use quiver_machine::{Now, Snapshot};
use thiserror::Error;

/// Steps that a script has at most.
const MAX_STEPS: usize = 256;
/// Bytes that a part of a script has at most.
const MAX_LEN: usize = 1 << 16;

/// The inputs of an edge from its stored state on, which has its key and is in no group.
#[derive(Debug)]
pub struct Script<'a> {
    /// The drone's deployment.
    pub deployment: Deployment<Ristretto255>,
    /// The group that it joins.
    pub group: Name,
    /// Number of members of the group, this drone included.
    pub members: u32,
    /// The time of the start.
    pub unix: u64,
    /// Seed of the edge's generator.
    pub seed: u64,
    /// State at the start. Its key is good for nothing but this.
    pub state: Snapshot,
    /// Inputs in order.
    pub steps: Vec<ScriptInput<'a>>,
}

/// An input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptInput<'a> {
    /// Milliseconds since the start.
    pub at: u32,
    /// Kind of the input.
    pub cue: Cue,
    /// The message, if it is one.
    pub bytes: &'a [u8],
}

/// Kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cue {
    /// A deadline has come.
    Timeout,
    /// The connection to the leader is up.
    Connected,
    /// A message that makes no new key.
    Message,
    /// The message that brings the first key.
    Welcome,
    /// A message with a new key, no member added or removed.
    Rekey,
    /// A message that brings a new key and removes another member.
    Evict,
}

/// A script cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("malformed script")]
pub struct ScriptError;

impl From<Malformed> for ScriptError {
    fn from(_: Malformed) -> Self {
        Self
    }
}

impl From<quiver_ainq::Error> for ScriptError {
    fn from(_: quiver_ainq::Error) -> Self {
        Self
    }
}

const CUES: [Cue; 6] = [Cue::Timeout, Cue::Connected, Cue::Message, Cue::Welcome, Cue::Rekey, Cue::Evict];

impl<'a> Script<'a> {
    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ScriptError> {
        let mut reader = Reader::new(bytes);
        let deployment = name(reader.lp(MAX_LEN)?)?;
        let deployment = Deployment::new(deployment, Element::decode(reader.lp(MAX_LEN)?)?);
        let (group, members) = (name(reader.lp(MAX_LEN)?)?, reader.u32()?);
        let (unix, seed) = (reader.u64()?, reader.u64()?);
        let state = Snapshot::new(reader.lp(MAX_LEN)?.to_vec());
        let mut steps = Vec::new();
        for _ in 0..reader.count(MAX_STEPS, 9)? {
            let at = reader.u32()?;
            let cue = *CUES.get(usize::from(reader.u8()?)).ok_or(ScriptError)?;
            steps.push(ScriptInput { at, cue, bytes: reader.lp(MAX_LEN)? });
        }
        reader.end()?;
        Ok(Self { deployment, group, members, unix, seed, state, steps })
    }

    /// The encoding.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer
            .lp(self.deployment.name().as_bytes())
            .lp(self.deployment.master().as_bytes())
            .lp(self.group.as_bytes())
            .u32(self.members)
            .u64(self.unix)
            .u64(self.seed)
            .lp(self.state.as_bytes())
            .count(self.steps.len());
        for step in &self.steps {
            let cue = CUES.iter().zip(0..).find(|(cue, _)| **cue == step.cue).map_or(0, |(_, code)| code);
            writer.u32(step.at).u8(cue).lp(step.bytes);
        }
        writer.finish()
    }

    /// The time at a step.
    #[must_use]
    pub const fn now(&self, step: &ScriptInput<'_>) -> Now {
        let monotonic = Duration::from_millis(step.at as u64);
        Now { monotonic, unix: self.unix.saturating_add(monotonic.as_secs()) }
    }
}

fn name(bytes: &[u8]) -> Result<Name, ScriptError> {
    core::str::from_utf8(bytes).ok().and_then(|text| Name::new(text).ok()).ok_or(ScriptError)
}
