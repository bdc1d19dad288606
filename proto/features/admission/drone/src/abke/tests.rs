use std::time::Duration;

use quiver_admission::certifying::Certifier;
use quiver_ainq::{Deployment, MasterSecret, Name, Ristretto255, SecretScalar, VerifiedAuthority};
use quiver_crypto::Secret;
use quiver_delivery::attributes::KeyMaker;
use quiver_garble::policy::Schema;
use quiver_service::keyring::HeldKey;

use super::*;

fn scene() -> (VerifiedAuthority<Ristretto255>, CertificationTerms) {
    let terms = CertificationTerms::new(
        Schema::parse("x: i16, medic: bool").expect("schema"),
        Duration::from_secs(100),
    );
    let terms = terms.expect("terms");
    let name = |text| Name::new(text).expect("name");
    let master = MasterSecret::<Ristretto255>::generate(&mut OsRng);
    let deployment = Deployment::new(name("alps"), master.public());
    let statement =
        terms.statement(name("positions"), SecretScalar::generate(&mut OsRng).public()).expect("names");
    let signed = master.sign_authority(&deployment, statement, &mut OsRng).expect("sign");
    (signed.verify(&deployment).expect("verify"), terms)
}

fn certificate(terms: &CertificationTerms, now: UnixTime) -> Vec<u8> {
    let mut certifier = Certifier::new(terms.clone(), Secret::new([3; 32]));
    certifier.begin_period(now);
    let granted = terms.grant(&[("x", -7), ("medic", 1)]).expect("grant");
    certifier.make(&granted.encoded, &mut OsRng).expect("make").to_vec()
}

fn keyring(authority: &VerifiedAuthority<Ristretto255>, key: Option<Vec<u8>>) -> Keyring<Ristretto255> {
    let mut keyring = Keyring::default();
    let key = key.map(|key| HeldKey { grant: 1, key: key.into() });
    keyring.put(KeyringEntry { authority: authority.clone(), key }).expect("put");
    keyring
}

#[test]
fn credential_is_shown_with_its_fields_until_its_period_ends() {
    let (authority, terms) = scene();
    let held = keyring(&authority, Some(certificate(&terms, 1050)));
    let at = |now| certified(&held, now).pop().expect("one");
    let line = at(1099);
    assert_eq!(line.fields.as_deref(), Some("x = -7, medic = true"));
    assert_eq!((line.valid_until, line.standing), (Some(1100), CredentialState::Valid));
    assert_eq!((at(1100).standing, at(999).standing), (CredentialState::Expired, CredentialState::NotYet));
    assert_eq!(first_end(&held), Some(1100));
    let nothing = keyring(&authority, None);
    assert_eq!(
        (certified(&nothing, 0)[0].standing.clone(), first_end(&nothing)),
        (CredentialState::Nothing, None)
    );
}

#[test]
fn damaged_credential_is_shown_as_such() {
    let (authority, terms) = scene();
    let mut bytes = certificate(&terms, 1050);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let line = certified(&keyring(&authority, Some(bytes)), 1050).pop().expect("one");
    assert!(matches!(line.standing, CredentialState::Broken(_)), "{line:?}");
    let line = certified(&keyring(&authority, Some(vec![9])), 1050).pop().expect("one");
    assert_eq!(line.standing, CredentialState::Broken("malformed: of another version".into()));
}
