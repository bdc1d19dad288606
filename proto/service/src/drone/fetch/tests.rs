//! Tests of a drone's reaction to an authority's answer, and to none.

use std::sync::Mutex;

use crate::node_state::{Missing, NodeState};
use crate::secrets::Protection;
use crate::state_file::Owner;
use quiver_ainq::{AuthorityStatement, MasterSecret, Ristretto255, SecretScalar, VerifiedAuthority};
use tempfile::TempDir;

use super::*;

fn name(text: &str) -> Name {
    Name::new(text).expect("name")
}

/// An empty keyring, and an authority's statement.
fn keys() -> (TempDir, Keys, VerifiedAuthority<Ristretto255>) {
    let directory = tempfile::tempdir().expect("tempdir");
    let master = MasterSecret::<Ristretto255>::generate(&mut OsRng);
    let deployment = Deployment::new(name("alps"), master.public());
    let owner =
        Owner { role: "edge".into(), deployment: "alps".into(), fingerprint: deployment.fingerprint() };
    let by = Protection::from_key_text("02".repeat(32).as_bytes(), "test").expect("key");
    let (state, _) = NodeState::open(directory.path(), &owner, &by, Missing::Create).expect("create");
    let statement = AuthorityStatement {
        kind: name("abe"),
        name: name("orders"),
        scheme: name("toy"),
        delivery: SecretScalar::generate(&mut OsRng).public(),
        schema: vec![],
        parameters: vec![1],
    };
    let signed = master.sign_authority(&deployment, statement, &mut OsRng).expect("sign");
    let authority = signed.verify(&deployment).expect("verify");
    (directory, Keys::new(Arc::new(Mutex::new(state)), deployment), authority)
}

#[test]
fn only_a_withdrawal_erases_a_key() {
    let (_directory, keys, authority) = keys();
    let store = |answer| store(&keys, &authority.name, &authority.bytes(), answer).expect("store");
    let held = || {
        let keyring = keys.keyring().expect("keyring");
        keyring.entry(&authority.name).and_then(|entry| entry.key.clone()).map(|key| key.key.to_vec())
    };
    assert_eq!((store(KeyResponse::Nothing), held()), (FetchOutcome::NothingGranted, None));
    assert_eq!((store(KeyResponse::Withdrawn), held()), (FetchOutcome::NothingGranted, None));
    let key = || KeyResponse::Key { grant: 7, key: b"key".to_vec().into() };
    let kept = Some(b"key".to_vec());
    assert_eq!((store(key()), held()), (FetchOutcome::NewKey, kept.clone()));
    assert_eq!((store(KeyResponse::Held { grant: 7 }), held()), (FetchOutcome::Held, kept.clone()));
    assert_eq!((store(KeyResponse::Nothing), held()), (FetchOutcome::NoGrantKnown, kept));
    assert_eq!((store(KeyResponse::Withdrawn), held()), (FetchOutcome::Withdrawn, None));
}

#[test]
fn fetch_is_confirmed_only_by_answers_and_by_all_of_them() {
    let answered = vec![("orders".to_string(), FetchOutcome::Held)];
    let refused = vec!["revoked".to_string()];
    assert!(!FetchReport::default().is_confirmed(), "an empty list proves nothing");
    assert!(!FetchReport { answered: vec![], refused: refused.clone() }.is_confirmed());
    assert!(FetchReport { answered: answered.clone(), refused: vec![] }.is_confirmed());
    let partly = FetchReport { answered, refused };
    assert!(!partly.is_confirmed());
    let error = partly.print(false).expect_err("not everything");
    assert_eq!(error.exit() as u8, crate::Exit::Refused as u8);
}

#[test]
fn drones_come_back_after_the_end_and_not_all_at_once() {
    let seconds = |end, now, share| until_next(end, now, share).as_secs();
    assert_eq!((seconds(1100, 1000, 0.0), seconds(1100, 1000, 1.0)), (102, 112));
    assert_eq!((seconds(1100, 1200, 0.0), seconds(100_000, 0, 1.0)), (2, 100_062));
}
