//! A single KGC with a master key of the test's choice.

use quiver_age::{Identity, Recipient};
use quiver_ibe::{
    Condition, IdentityKey, IdentityPoint, KeyShare, MasterPublicKey, MasterShare, UnverifiedIdentityKey,
};

pub(crate) struct Kgc {
    share: MasterShare,
}

impl Kgc {
    /// The KGC with this master key.
    pub(crate) fn new(secret: u8) -> Self {
        let share = [[0; 31].as_slice(), &[secret]].concat();
        Self { share: MasterShare::from_scalar_bytes(1, &share).expect("a scalar") }
    }

    pub(crate) fn master(&self) -> MasterPublicKey {
        MasterPublicKey::new(self.share.public()).expect("not zero")
    }

    pub(crate) fn recipient(&self, text: &str) -> Recipient {
        Recipient::new(self.master(), condition(text))
    }

    /// One share of one is the key.
    pub(crate) fn key(&self, text: &str) -> UnverifiedIdentityKey {
        let share = self.share.extract(&IdentityPoint::of(&condition(text))).encode();
        UnverifiedIdentityKey::decode(&share[KeyShare::LEN - IdentityKey::LEN..]).expect("a point")
    }

    pub(crate) fn identity(&self, texts: &[&str]) -> Identity {
        let mut identity = Identity::new(self.master());
        for text in texts {
            identity.insert_unverified(condition(text), self.key(text)).expect("its key");
        }
        identity
    }
}

pub(crate) fn condition(text: &str) -> Condition {
    text.parse().expect("a condition")
}
