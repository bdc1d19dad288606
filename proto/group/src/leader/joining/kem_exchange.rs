//! The exchange for a second factor at a leader: encapsulates to a drone's key, or finds the κ that it names.
//! docs/protocol.md §24.4, §24.5.

use quiver_ainq::{KemKey, KemPair, KemTerm, Suite};
use quiver_crypto::Secret;
use quiver_kem::{KemSet, MESSAGE_LEN, encapsulate};
use quiver_machine::Peer;
use quiver_message::{JoinCiphertext, KemOffer, Message, RefusalReason};

use super::join_queue::UnverifiedJoin;
use crate::leader::LeaderEvent;
use crate::leader::context::LeaderContext;
use crate::leader::store::kem_keys::kem_key_change;

/// κ of a drone whose request waits, at the term's count.
#[derive(Debug)]
pub(in crate::leader) struct JoinKey<S: Suite> {
    pub(in crate::leader) key: KemKey<S>,
    /// Whether it comes from a new exchange.
    pub(in crate::leader) renewed: bool,
}

/// Reports a peer whose deployment says another parameter set than this leader's. Returns true if it says the
/// same.
pub(in crate::leader) fn compare_kem<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    from: Peer,
    set: Option<KemSet>,
) -> bool {
    let own = cx.store.kem.set();
    if set != own {
        cx.event(LeaderEvent::KemDiffers { peer: from, own: own.into(), other: set.into() });
    }
    set == own
}

/// Refuses a drone whose deployment says another parameter set than this leader's, and reports it.
pub(super) fn same_kem<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    from: Peer,
    set: Option<KemSet>,
) -> Result<(), RefusalReason> {
    // §24.6: nothing falls back.
    if compare_kem(cx, from, set) {
        return Ok(());
    }
    Err(RefusalReason::other_kem(cx.store.kem.set()))
}

/// κ for a request, whose cookie was recognised and whose sender's connection has shown a signature that
/// holds. For an encapsulation key the ciphertext is sent at once: the drone has κ before the batch closes.
pub(super) fn exchange<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    candidate: &UnverifiedJoin<S>,
    term: Option<KemTerm>,
    offer: Option<&KemOffer>,
) -> Result<Option<JoinKey<S>>, RefusalReason> {
    let drone = candidate.request.drone.handle();
    match (term, offer) {
        (None, None) => Ok(None),
        (Some(of), Some(KemOffer::Held { term, tag })) if of == *term => {
            // §24.5: no bytes where both have κ; a tag of another, or of another count, is none.
            let key = cx.store.kem.named(&drone, (of, tag), cx.now.unix).ok_or(RefusalReason::KemLost)?;
            Ok(Some(JoinKey { key, renewed: false }))
        }
        (Some(_), Some(KemOffer::Held { .. })) => Err(RefusalReason::KemLost),
        (Some(term), Some(KemOffer::Key { set, key })) if term.set() == *set => {
            let (key, answer) = encapsulate_to(cx, candidate, term, key)?;
            cx.send(candidate.peer, &Message::JoinCiphertext(answer));
            Ok(Some(JoinKey { key, renewed: true }))
        }
        // The term is not of the setting any more, or not yet.
        _ => Err(RefusalReason::NotReady),
    }
}

/// κ with a member, ahead of a term that this leader may open one day. The checks are those of
/// [`exchange`]; it is durable before the ciphertext is sent.
pub(super) fn exchange_ahead<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    candidate: &UnverifiedJoin<S>,
    term: KemTerm,
    key: &[u8],
) -> Result<(), RefusalReason> {
    let (key, answer) = encapsulate_to(cx, candidate, term, key)?;
    let (drone, now) = (candidate.request.drone.handle(), cx.now.unix);
    // §24.7: a member that has it finds it here, whatever dies when.
    cx.persist(&[kem_key_change(&drone, &key, now)]);
    cx.store.kem.hold(drone, key, now);
    cx.send(candidate.peer, &Message::JoinCiphertext(answer));
    Ok(())
}

/// Encapsulates to a drone's key. Gives κ, and the answer with which the drone comes by it.
fn encapsulate_to<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    candidate: &UnverifiedJoin<S>,
    term: KemTerm,
    key: &[u8],
) -> Result<(KemKey<S>, JoinCiphertext), RefusalReason> {
    let drone = candidate.request.drone.handle();
    let message = Secret::<MESSAGE_LEN>::random(cx.rng);
    // §24.4: what is no encapsulation key is refused, though it is signed.
    let (ciphertext, shared) =
        encapsulate(term.set(), key, &message).map_err(|_| RefusalReason::Malformed)?;
    let leader = cx.store.keypair.as_ref().ok_or(RefusalReason::NotReady)?.public().handle();
    let (deployment, group) = (&cx.config.deployment, &cx.config.group);
    let (leader, drone, ciphertext_of) = (&leader, &drone, &ciphertext[..]);
    let pair = KemPair { deployment, group, leader, drone, key, ciphertext: ciphertext_of };
    let key = KemKey::derive(term, &shared, &pair);
    Ok((key, JoinCiphertext { nonce: candidate.nonce, term, ciphertext }))
}
