//! AinQ benchmarks of an edge: its key, a new epoch, and the arithmetic underneath.
//!
//! | operation | what is measured |
//! |---|---|
//! | `secret` | T, the pairwise secret with the leader: one multiplication; not before all vectors came out |
//! | `keygen` | drawing the secret value x_i and computing P_i |
//! | `partial-key` | checking what the KGC issued, which makes the keypair |
//! | `sign`, `verify` | a drone's signature; checking one of a drone whose key is new |
//! | `header-flat`, `header-tree` | believing a header: hashing, the leader's key, its signature, its validity |
//! | `first-key-flat`, `first-key-tree` | from the welcome's bytes to the group key in use |
//! | `rekey-flat`, `rekey-tree` | from the bytes of a re-key on expiry to the new key in use |
//! | `evict-flat`, `evict-tree` | the same for a re-key that removes a member |
//! | … `-unsigned` | a re-key without its header's signature (decoding and checking it), measured in the same iteration and taken off |
//!
//! First keys and re-keys are messages to the real [`Edge`](quiver_group::Edge), as a real leader sent them:
//! [`Script`]. The measurement is of one call of `handle_input`; making its outputs durable and sending them
//! is the driver's. For `-unsigned` the signature is decoded and checked once more by the same functions,
//! with the leader's Y known as it is to an edge that heard the leader before, and what that took is taken
//! off; whatever else believing the header takes (its hash, its signer, its validity) stays in.

mod keys;
mod replay;
mod script;

pub(crate) use self::replay::member;
pub use self::script::{Cue, Script, ScriptError, ScriptInput};

use self::replay::MeasuredPart;
use crate::BenchTarget;
use crate::arguments::Arguments;
use crate::error::{BenchError, Result};
use crate::runner::Runner;

/// Messages to an edge of a group of 100 whose key is wrapped for every member.
pub const FLAT: &[u8] = include_bytes!("../fixtures/flat.bin");
/// The same with a key tree.
pub const TREE: &[u8] = include_bytes!("../fixtures/tree.bin");

/// More heap than an edge and a script's messages take.
const HEAP: usize = 8 * 1024;

/// The operations, in the order in which all of them run.
pub(crate) const OPERATIONS: [&str; 17] = [
    "secret",
    "keygen",
    "partial-key",
    "sign",
    "verify",
    "header-flat",
    "header-tree",
    "first-key-flat",
    "first-key-tree",
    "rekey-flat",
    "rekey-flat-unsigned",
    "rekey-tree",
    "rekey-tree-unsigned",
    "evict-flat",
    "evict-flat-unsigned",
    "evict-tree",
    "evict-tree-unsigned",
];

/// `ainq <iterations> [operation]`.
pub(crate) async fn ainq<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    mut words: Arguments<'_>,
) -> Result<()> {
    let only = words.word();
    words.end()?;
    if only.is_some_and(|only| !OPERATIONS.contains(&only)) {
        return Err(BenchError::Usage("no such operation"));
    }
    runner.needs(HEAP)?;
    for operation in OPERATIONS {
        if only.is_none_or(|only| only == operation) {
            one(runner, operation).await?;
        }
    }
    Ok(())
}

async fn one<H: BenchTarget>(runner: &mut Runner<'_, '_, H>, operation: &'static str) -> Result<()> {
    let (what, unsigned) =
        operation.strip_suffix("-unsigned").map_or((operation, false), |what| (what, true));
    let (what, script) = match what.rsplit_once('-') {
        Some((what, "flat")) => (what, FLAT),
        Some((what, "tree")) => (what, TREE),
        _ => return keys::measure(runner, operation).await,
    };
    let part = match (what, unsigned) {
        ("header", _) => MeasuredPart::Header(Cue::Rekey),
        ("first-key", _) => MeasuredPart::Whole(Cue::Welcome),
        ("rekey", false) => MeasuredPart::Whole(Cue::Rekey),
        ("rekey", true) => MeasuredPart::Unsigned(Cue::Rekey),
        ("evict", false) => MeasuredPart::Whole(Cue::Evict),
        _ => MeasuredPart::Unsigned(Cue::Evict),
    };
    replay::measure(runner, operation, part, script).await
}
