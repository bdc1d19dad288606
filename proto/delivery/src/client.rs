//! The drone's side of the protocol (docs/protocol.md §4.1), for the client of any payload: it greets a KGC,
//! and answers its challenge with a signed request.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Label, PendingDelivery, SignedDeliveryRequest, Suite};
use quiver_machine::{Context, Peer};
use quiver_message as message;
use quiver_message::{COOKIE_LEN, Message, Nonce, Payload};

/// The longest wait that a refusal can talk a drone into.
pub const LONGEST_WAIT: Duration = Duration::from_secs(240);

/// The label of the signature under requests for a payload: one is never good for another.
pub(crate) const fn label(payload: Payload) -> Label {
    match payload {
        Payload::AttributeKeys => Label::Attributes,
        Payload::KeyShares => Label::IbeRelease,
    }
}

/// The signed challenge of a request: the drone's nonce and the KGC's cookie.
pub(crate) fn signed_challenge(nonce: &Nonce, cookie: &[u8]) -> Vec<u8> {
    [nonce.as_slice(), cookie].concat()
}

/// §4.1, step 1: asks a KGC for a challenge.
pub fn greet<S: Suite, E, R>(cx: &mut Context<'_, S, E, R>, kgc: Peer, payload: Payload) -> Nonce {
    let mut nonce = [0; 16];
    cx.rng.fill_bytes(&mut nonce);
    // §4.1: fresh for each hello, and repeated by its challenge.
    cx.send(kgc, &Message::DeliveryHello(message::DeliveryHello { payload, nonce }));
    nonce
}

/// A KGC's challenge, for requests to answer.
#[derive(Clone, Copy, Debug)]
pub struct Challenge {
    /// Nonce of the drone's hello, which the challenge repeats.
    pub nonce: Nonce,
    /// The KGC's cookie.
    pub cookie: [u8; COOKIE_LEN],
}

impl Challenge {
    /// §4.1, step 3: signs a query to an authority and sends it. `None` without a keypair.
    pub fn request<S: Suite, E, R>(
        self,
        cx: &mut Context<'_, S, E, R>,
        kgc: Peer,
        payload: Payload,
        authority: [u8; 32],
        query: &[u8],
    ) -> Option<PendingDelivery<S>> {
        let Self { nonce, cookie } = self;
        // §4.1: the signature covers F, nonce ‖ c, N and the query; n, the secret of N, stays in `pending`.
        let signed = SignedDeliveryRequest::create(
            cx.deployment,
            cx.keypair?,
            label(payload),
            authority,
            &signed_challenge(&nonce, &cookie),
            query,
            cx.rng,
        );
        // Only a long query fails, and the longest has 263 bytes.
        let (request, pending) = signed.ok()?;
        let request = message::DeliveryRequest { payload, nonce, cookie, request: request.encode() };
        cx.send(kgc, &Message::DeliveryRequest(request));
        Some(pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_names_the_nonce_and_the_cookie() {
        let signed = signed_challenge(&[1; 16], &[2; 40]);
        assert_eq!(signed, [&[1; 16][..], &[2; 40]].concat());
        assert_ne!(signed, signed_challenge(&[3; 16], &[2; 40]));
        assert_ne!(signed, signed_challenge(&[1; 16], &[3; 40]));
    }
}
