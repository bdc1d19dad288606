//! ML-KEM against values that an independent implementation made, and what is refused.

use quiver_crypto::Secret;
use quiver_kem::{DecapsulationKey, KemError, KemSet, KemSetting, MESSAGE_LEN, SEED_LEN, encapsulate};
use serde::Deserialize;

/// A row of `vectors/ml_kem.json`.
#[derive(Deserialize)]
struct Vector {
    set: String,
    #[serde(with = "hex")]
    seed: Vec<u8>,
    #[serde(with = "hex")]
    message: Vec<u8>,
    #[serde(with = "hex")]
    key: Vec<u8>,
    #[serde(with = "hex")]
    ciphertext: Vec<u8>,
    #[serde(with = "hex")]
    shared: Vec<u8>,
    #[serde(with = "hex")]
    altered: Vec<u8>,
    #[serde(with = "hex")]
    rejected: Vec<u8>,
}

impl Vector {
    fn set(&self) -> KemSet {
        self.set.parse().unwrap()
    }

    fn pair(&self) -> (DecapsulationKey, Vec<u8>) {
        DecapsulationKey::generate(self.set(), Secret::try_from(&self.seed[..]).unwrap())
    }
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("vectors/ml_kem.json")).unwrap()
}

#[test]
fn keys_ciphertexts_and_secrets_are_those_of_an_independent_implementation() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 6);
    for vector in vectors {
        let (secret, public) = vector.pair();
        assert_eq!(public, vector.key);
        let message = Secret::<MESSAGE_LEN>::try_from(&vector.message[..]).unwrap();
        let (ciphertext, shared) = encapsulate(vector.set(), &public, &message).unwrap();
        assert_eq!((ciphertext, &shared.expose()[..]), (vector.ciphertext.clone(), &vector.shared[..]));
        assert_eq!(secret.decapsulate(&vector.ciphertext).unwrap(), shared);
    }
}

#[test]
fn altered_ciphertext_gives_the_secret_of_implicit_rejection() {
    for vector in vectors() {
        let (secret, _) = vector.pair();
        let rejected = secret.decapsulate(&vector.altered).unwrap();
        assert_eq!(rejected.expose()[..], vector.rejected);
        assert_ne!(rejected.expose()[..], vector.shared);
    }
}

#[test]
fn sizes_are_those_of_fips_203() {
    let sizes = KemSet::ALL.map(|set| (set.key_len(), set.ciphertext_len()));
    assert_eq!(sizes, [(1184, 1088), (1568, 1568)]);
    for vector in vectors() {
        assert_eq!(vector.key.len(), vector.set().key_len());
        assert_eq!(vector.ciphertext.len(), vector.set().ciphertext_len());
    }
}

#[test]
fn what_is_not_as_long_as_its_set_demands_is_refused() {
    let message = Secret::new([7; MESSAGE_LEN]);
    for vector in vectors() {
        let set = vector.set();
        let (secret, public) = vector.pair();
        for len in [0, 1, public.len() - 1] {
            let short = encapsulate(set, &public[..len], &message).map(drop);
            assert_eq!(short, Err(KemError::WrongLength(set)));
            let short = secret.decapsulate(&vector.ciphertext[..len.min(vector.ciphertext.len() - 1)]);
            assert_eq!(short, Err(KemError::WrongLength(set)));
        }
        let (mut long, mut longer) = (public, vector.ciphertext.clone());
        long.push(0);
        longer.push(0);
        assert_eq!(encapsulate(set, &long, &message).map(drop), Err(KemError::WrongLength(set)));
        assert_eq!(secret.decapsulate(&longer), Err(KemError::WrongLength(set)));
    }
}

#[test]
fn key_with_a_number_that_is_not_reduced_is_refused() {
    let message = Secret::new([7; MESSAGE_LEN]);
    for vector in vectors() {
        let mut key = vector.key.clone();
        // Twelve bits each: the first becomes q = 3329, which stands for 0, and is no number below q.
        (key[0], key[1]) = (0x01, key[1] & 0xf0 | 0x0d);
        let refused = encapsulate(vector.set(), &key, &message).map(drop);
        assert_eq!(refused, Err(KemError::WrongKey(vector.set())));
    }
}

#[test]
fn secret_key_shows_nothing() {
    let (secret, _) = DecapsulationKey::generate(KemSet::MlKem768, Secret::new([0xab; SEED_LEN]));
    assert_eq!(format!("{secret:?}"), "DecapsulationKey { set: MlKem768, seed: Secret(64 bytes) }");
}

#[test]
fn names_of_settings_are_read_back_and_others_refused() {
    for setting in KemSetting::ALL {
        assert_eq!(setting.to_string().parse(), Ok(setting));
        assert_eq!(KemSetting::from(setting.set()), setting);
        let text = serde_json::to_string(&setting).unwrap();
        assert_eq!(text, format!("\"{setting}\""));
        assert_eq!(serde_json::from_str::<KemSetting>(&text).unwrap(), setting);
    }
    for set in KemSet::ALL {
        assert_eq!(set.to_string().parse(), Ok(set));
        assert_eq!(KemSet::from_code(set.code()), Some(set));
    }
    assert!(["", "ml-kem-512", "ML-KEM-768", "None"].iter().all(|name| name.parse::<KemSetting>().is_err()));
    assert!("none".parse::<KemSet>().is_err());
    assert!(serde_json::from_str::<KemSetting>("\"kyber\"").is_err());
    assert_eq!([0, 3].map(KemSet::from_code), [None, None]);
    assert_eq!(KemSetting::default(), KemSetting::None);
}
