//! One point after the other, by [`x25519`](super::x25519()): for machines without the vector unit, and to
//! test against.

use zeroize::Zeroizing;

/// Puts X25519(scalar, u) in the place of each u.
pub(crate) fn multiply(scalar: &[u8; 32], us: &mut [[u8; 32]]) {
    let scalar = Zeroizing::new(*scalar);
    for u in us {
        *u = *super::x25519(&scalar, u);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> [u8; 32] {
        hex::decode(text).unwrap().try_into().unwrap()
    }

    /// RFC 7748, section 5.2: here too, because on a machine with the vector unit nothing else gets here.
    #[test]
    fn the_first_vector_of_rfc_7748_holds_for_every_point() {
        let u = unhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c");
        let mut us = [u, [0; 32], u];
        multiply(&unhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"), &mut us);
        let product = unhex("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
        assert_eq!(us, [product, [0; 32], product]);
    }
}
