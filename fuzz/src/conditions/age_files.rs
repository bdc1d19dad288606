//! age files to conditions: recipients and identities as bytes and as text, and files. Nothing that was
//! altered opens.

use std::sync::LazyLock;

use quiver_age::{Identity, Recipient, SealedFile};
use quiver_ibe::{
    Condition, IdentityKey, IdentityPoint, KeyShare, MasterPublicKey, MasterShare, UnverifiedIdentityKey,
};

/// Made once by `rage`, under the master key 5; the second without its armour.
const FILES: [&[u8]; 2] = [
    include_bytes!("../../../proto/age/tests/vectors/rage.age"),
    include_bytes!("../../../proto/age/tests/vectors/rage-binary.age"),
];
/// The encrypted content.
const CONTENT: &[u8] = b"Advance to the river and hold.\n";
const CONDITION: &str = "mission/alpha/phase-2";

/// The key of the files' first condition.
fn identity() -> &'static Identity {
    static IDENTITY: LazyLock<Identity> = LazyLock::new(|| {
        let mut scalar = [0; 32];
        scalar[31] = 5;
        let share = MasterShare::from_scalar_bytes(1, &scalar).expect("a scalar");
        let condition: Condition = CONDITION.parse().expect("a condition");
        let key = share.extract(&IdentityPoint::of(&condition)).encode();
        let key = UnverifiedIdentityKey::decode(&key[KeyShare::LEN - IdentityKey::LEN..]).expect("a point");
        let master = MasterPublicKey::new(share.public()).expect("not zero");
        let mut identity = Identity::new(master);
        identity.insert_unverified(condition, key).expect("its key");
        identity
    });
    &IDENTITY
}

fn recipient() -> Recipient {
    identity().recipients().next().expect("one key")
}

/// Decoders of recipients and identities, and their texts.
pub fn age_key(bytes: &[u8]) {
    if let Ok(recipient) = Recipient::decode(bytes) {
        assert_eq!(recipient.encode(), bytes, "two encodings of one recipient");
        let text = recipient.to_string();
        assert!(text.parse::<Recipient>().is_ok_and(|read| read == recipient));
    }
    if let Ok(identity) = Identity::decode(bytes) {
        assert_eq!(*identity.encode(), bytes, "two encodings of one identity");
    }
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    if let Ok(recipient) = text.parse::<Recipient>() {
        assert!(recipient.to_string().parse::<Recipient>().is_ok_and(|read| read == recipient));
    }
    if let Ok(identity) = text.parse::<Identity>() {
        assert!(
            identity.to_text().parse::<Identity>().is_ok_and(|read| *read.encode() == *identity.encode())
        );
    }
}

/// A recipient and an identity, each as bytes and as text.
pub fn age_key_seeds() -> Vec<Vec<u8>> {
    let (recipient, identity) = (recipient(), identity());
    vec![
        recipient.encode(),
        recipient.to_string().into_bytes(),
        identity.encode().to_vec(),
        identity.to_text().as_bytes().to_vec(),
    ]
}

/// Age files: a file that opens has the content that was encrypted, and the output before an error is its
/// beginning.
pub fn age_file(bytes: &[u8]) {
    let Ok(sealed) = SealedFile::read(bytes) else { return };
    assert!(!sealed.keys().is_empty());
    let Ok(plaintext) = sealed.open(identity()) else { return };
    let mut out = Vec::new();
    match plaintext.copy_to(&mut out) {
        Ok(_) => assert_eq!(out, CONTENT),
        Err(_) => assert!(CONTENT.starts_with(&out)),
    }
}

/// A file with armour and without.
pub fn age_file_seeds() -> Vec<Vec<u8>> {
    FILES.map(<[u8]>::to_vec).to_vec()
}
