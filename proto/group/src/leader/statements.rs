//! Statements that leaders and their deputies alone sign, and marks of questions that leaders alone read.

use alloc::vec::Vec;

use quiver_ainq::{DronePublicKey, Name, Suite};
use quiver_crypto::Hasher;
use quiver_crypto::canonical::Writer;
use quiver_message::{CatchUpNumber, Nonce, StandBy};

use crate::statements::count;

/// Returns true if the question marks K_g of the epoch held as lost.
pub(in crate::leader) fn lost_key(number: &CatchUpNumber) -> bool {
    // §11.2: both of the two lowest bits of the count.
    count(number) & 3 == 3
}

/// Signed `stand-by`: everything in the question, and the leader asked.
pub(in crate::leader) fn stand_by<S: Suite>(question: &StandBy, leader: &DronePublicKey<S>) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.lp(question.group.as_bytes()).lp(&leader.encode()).lp(&question.deputy);
    writer.fixed(&question.nonce).fixed(&question.challenge).u64(question.number).u64(question.received);
    writer.u64(question.held.term).u64(question.held.counter).fixed(&question.digest);
    writer.finish()
}

/// Signed `replica`: the deputy and the one question answered, D of the newest epoch, and the chunk's hash.
pub(in crate::leader) fn replica<S: Suite>(
    (group, nonce, number): (&Name, &Nonce, u64),
    deputy: &DronePublicKey<S>,
    leader: &DronePublicKey<S>,
    digest: &[u8; 32],
    chunk: &[u8],
) -> Vec<u8> {
    let hash = Hasher::new("quiver/1 replica").lp(chunk).finish();
    let mut writer = Writer::new();
    writer.lp(group.as_bytes()).lp(&leader.encode()).lp(&deputy.encode());
    writer.fixed(nonce).u64(number).fixed(digest).fixed(&hash);
    writer.finish()
}
