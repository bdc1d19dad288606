//! Statements that edges and leaders sign: the same bytes on both sides.

use alloc::vec::Vec;

use quiver_ainq::{DronePublicKey, Element, Epoch, Name, Serial, SpareStatement, Suite};
use quiver_crypto::canonical::Writer;
use quiver_message::{COOKIE_LEN, CatchUpNumber, KemOffer, Nonce};

/// Signed `join`: group, leader, drone, n_L, n_e, E_now, the spare statement with its signature, and what the
/// drone brings for a second factor.
pub(crate) fn join<S: Suite>(
    group: &Name,
    leader: &DronePublicKey<S>,
    drone: &DronePublicKey<S>,
    (challenge, nonce): (&[u8; COOKIE_LEN], &Nonce),
    ephemeral: &Element<S>,
    spare: &SpareStatement<S>,
    kem: Option<&KemOffer>,
) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.lp(group.as_bytes()).lp(&leader.encode()).lp(&drone.encode()).fixed(challenge).fixed(nonce);
    writer
        .fixed(ephemeral.as_bytes())
        .u64(spare.q)
        .fixed(spare.point.as_bytes())
        .lp(&spare.signature.encode());
    // §24.4: the set (1), then 1 and lp(ek), or 2, g (8) and the tag (16), or 3 and lp(ek); nothing without a
    // second factor.
    match kem {
        None => {}
        Some(KemOffer::Key { set, key }) => {
            writer.u8(set.code()).u8(1).lp(key);
        }
        Some(KemOffer::Held { term, tag }) => {
            writer.u8(term.set().code()).u8(2).u64(term.g()).fixed(tag);
        }
        Some(KemOffer::Ahead { set, key }) => {
            writer.u8(set.code()).u8(3).lp(key);
        }
    }
    writer.finish()
}

/// Signed `leave`: group, drone and D of the epoch held, so that it ends this membership and no later one.
pub(crate) fn leave<S: Suite>(group: &Name, drone: &DronePublicKey<S>, held: &[u8; 32]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.lp(group.as_bytes()).lp(&drone.encode()).fixed(held);
    writer.finish()
}

/// Signed `evict`: group, epoch from which on they are out, and who, by serial.
pub(crate) fn evict(group: &Name, epoch: Epoch, serials: &[Serial]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.lp(group.as_bytes()).u64(epoch.term).u64(epoch.counter);
    for serial in serials {
        writer.fixed(serial);
    }
    writer.finish()
}

/// Tag under A_i of a spare point's acknowledgement.
pub(crate) fn spare_ack_tag<S: Suite>(auth: &quiver_crypto::Secret<32>, q: u64) -> [u8; 32] {
    // §14: PRF(A, "spare ack", q).
    *quiver_crypto::prf(auth, S::ID, "spare ack", &[&q.to_be_bytes()]).expose()
}

/// Boot number and count of a question, as one number that rises.
pub(crate) fn count(number: &CatchUpNumber) -> u64 {
    // §11.1: boot number ‖ count, strictly rising.
    number.first_chunk().map_or(0, |head| u64::from_be_bytes(*head))
}

/// Returns true if the question marks keys of the epoch held as missing: the group key, or the path above the
/// member's leaf.
pub(crate) fn lacks_keys(number: &CatchUpNumber) -> bool {
    // §11.2: the lowest bit of the count.
    count(number) & 1 == 1
}
