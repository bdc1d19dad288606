//! Stateless cookies: a stranger must prove that it receives before it costs memory or curve arithmetic.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_crypto::{Secret, ct_eq, prf};
use quiver_message::COOKIE_LEN;

use crate::Peer;

/// Lifetime of an authority's cookie. A leader's is configured.
pub const COOKIE_LIFETIME: Duration = Duration::from_secs(120);

/// Makes and recognises cookies with a key that dies with the process.
#[derive(Debug)]
pub struct CookieJar {
    key: Secret<32>,
    /// Time for which a cookie admits.
    lifetime: Duration,
}

impl CookieJar {
    /// Cookies under this key, each valid for this long.
    pub const fn new(key: Secret<32>, lifetime: Duration) -> Self {
        Self { key, lifetime }
    }

    /// A cookie for this peer and these parts of its hello: time in seconds (8 bytes) ‖ MAC (32 bytes).
    pub fn bake(&self, now: Duration, peer: Peer, parts: &[&[u8]]) -> [u8; COOKIE_LEN] {
        let mut cookie = [0; COOKIE_LEN];
        let (time, mac) = cookie.split_at_mut(8);
        // §14: over time, peer and the hello, under a key that dies with the process.
        time.copy_from_slice(&now.as_secs().to_be_bytes());
        mac.copy_from_slice(self.mac(now.as_secs(), peer, parts).expose());
        cookie
    }

    /// Returns true if the cookie is this machine's, for this peer and these parts, and young enough.
    pub fn recognises(&self, now: Duration, peer: Peer, parts: &[&[u8]], cookie: &[u8; COOKIE_LEN]) -> bool {
        let Some((time, mac)) = cookie.split_first_chunk::<8>() else {
            return false;
        };
        let time = u64::from_be_bytes(*time);
        // §14: 120 s at a KGC; a leader's is set.
        let young = now.as_secs().checked_sub(time).is_some_and(|age| age <= self.lifetime.as_secs());
        young && ct_eq(self.mac(time, peer, parts).expose(), mac)
    }

    fn mac(&self, time: u64, peer: Peer, parts: &[&[u8]]) -> Secret<32> {
        let mut input = Vec::new();
        input.extend_from_slice(&time.to_be_bytes());
        input.extend_from_slice(&peer.0.to_be_bytes());
        for part in parts {
            input.extend_from_slice(&(part.len() as u64).to_be_bytes());
            input.extend_from_slice(part);
        }
        prf(&self.key, "quiver/1", "cookie", &[&input])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1000);

    #[test]
    fn cookie_admits_only_its_peer_and_hello_and_only_for_a_while() {
        let jar = CookieJar::new(Secret::new([7; 32]), Duration::from_secs(60));
        let cookie = jar.bake(NOW, Peer(1), &[b"nonce"]);
        assert!(jar.recognises(NOW, Peer(1), &[b"nonce"], &cookie));
        assert!(jar.recognises(NOW + Duration::from_secs(60), Peer(1), &[b"nonce"], &cookie));
        assert!(!jar.recognises(NOW + Duration::from_secs(61), Peer(1), &[b"nonce"], &cookie));
        assert!(!jar.recognises(NOW - Duration::from_secs(1), Peer(1), &[b"nonce"], &cookie));
        assert!(!jar.recognises(NOW, Peer(2), &[b"nonce"], &cookie));
        assert!(!jar.recognises(NOW, Peer(1), &[b"other"], &cookie));
        assert!(!jar.recognises(NOW, Peer(1), &[b"non", b"ce"], &cookie));
        for position in 0..COOKIE_LEN {
            let mut forged = cookie;
            forged[position] ^= 1;
            assert!(!jar.recognises(NOW, Peer(1), &[b"nonce"], &forged), "byte {position}");
        }
    }
}
