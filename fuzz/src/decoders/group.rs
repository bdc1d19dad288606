//! Elements of the pairing's groups: what decodes is the one encoding of an element of order r, and both back
//! ends say the same of it.

use quiver_pairing::backend::{Active, Arkworks, Backend};
use quiver_pairing::{
    Curve, G1, G1Curve, G2, G2Curve, Group, Gt, PairingError, Scalar, pairing, scalar_decode, scalar_encode,
};

/// Points, elements of the target group and scalars, distinguished by length.
pub fn group_element(bytes: &[u8]) {
    point::<G1Curve>(bytes);
    point::<G2Curve>(bytes);
    element::<G1>(bytes);
    element::<G2>(bytes);
    element::<Gt>(bytes);
    if let Ok(scalar) = scalar_decode(bytes) {
        assert_eq!(scalar_encode(&scalar)[..], *bytes, "two encodings of one scalar");
    }
}

fn point<C: Curve>(bytes: &[u8]) {
    if let Ok(bytes) = bytes.try_into() {
        assert_eq!(Active::decode::<C>(&bytes), Arkworks::decode::<C>(&bytes), "back ends differ");
    }
}

fn element<G: Group>(bytes: &[u8]) {
    let element = match G::decode_or_identity(bytes) {
        Ok(element) => element,
        Err(error) => {
            assert_eq!(G::decode(bytes), Err(error));
            let wrong = matches!(error, PairingError::WrongLength { .. });
            assert_eq!(wrong, bytes.len() != G::ENCODED_LEN);
            return;
        }
    };
    assert_eq!(element.encode().as_ref(), bytes, "two encodings of one element");
    assert_eq!(G::decode(bytes).is_ok(), !element.is_identity());
    // r − 1 times an element of order r is its opposite.
    assert_eq!(element * -Scalar::from(1_u64), -element, "not of order r");
}

/// An element of every group, identities, and a scalar.
pub fn group_element_seeds() -> Vec<Vec<u8>> {
    let scalar = Scalar::from(0x5eed_u64);
    let (p, q) = (G1::generator() * scalar, G2::generator() * scalar);
    vec![
        p.encode().to_vec(),
        q.encode().to_vec(),
        pairing(&p, &q).encode().to_vec(),
        G1::identity().encode().to_vec(),
        G2::identity().encode().to_vec(),
        Gt::identity().encode().to_vec(),
        scalar_encode(&scalar).to_vec(),
    ]
}
