//! Attribute authorities, grants and keys in the registry, and registries from before there were any.

use std::sync::Arc;

use quiver_ainq::{
    AuthorityStatement, Deployment, MasterSecret, Ristretto255, SecretScalar, VerifiedAuthority,
};
use quiver_crypto::Secret;
use quiver_delivery::attributes::{IssuerCommand, KeyIssued};
use quiver_delivery::kgc::{DeliveryCommand, DeliveryRecord};
use quiver_enrolment::KgcCommand;
use quiver_machine::Either;
use quiver_service::secrets::Protection;
use rand::rngs::OsRng;

use super::super::attributes::Grantee;
use super::*;
use crate::changes::{Changes, Secrets};
use crate::kgc_machine::{CommandLineChange, ServingRecord};
use crate::registry::Verified;

fn authority(name: &str) -> VerifiedAuthority<Ristretto255> {
    let master = MasterSecret::generate(&mut OsRng);
    let deployment = Deployment::new(Name::new("alps").expect("name"), master.public());
    let statement = AuthorityStatement {
        kind: Name::new("abe").expect("name"),
        name: Name::new(name).expect("name"),
        scheme: Name::new("toy").expect("name"),
        delivery: SecretScalar::generate(&mut OsRng).public(),
        schema: vec![],
        parameters: vec![1],
    };
    let signed = master.sign_authority(&deployment, statement, &mut OsRng).expect("sign");
    signed.verify(&deployment).expect("verify")
}

/// A registry with two drones and one authority.
pub(super) fn registry() -> (Bench, Store, AuthorityRow) {
    let (bench, mut store) = Bench::new();
    store.persist(&of_the_kgc([issued(1, "edge-1"), issued(2, "edge-2")]), NOW).expect("persist");
    record_authority(&mut store, &authority("orders")).expect("record");
    let row = store.attributes().authorities().expect("authorities").pop().expect("one");
    (bench, store, row)
}

fn record_authority(store: &mut Store, authority: &VerifiedAuthority<Ristretto255>) -> Result<()> {
    store.change(NOW, |change| change.attributes().record_authority(authority))
}

pub(super) fn grant(
    store: &mut Store,
    authority: &AuthorityRow,
    to: &Grantee,
    granted: Option<&[u8]>,
    text: &str,
) -> Result<u64> {
    store.change(NOW, |change| change.attributes().grant(authority, to, granted, text))
}

pub(super) fn key_issued(row: &AuthorityRow, revision: u64, at: UnixTime) -> ServingRecord {
    Either::Right(DeliveryRecord::Keys(KeyIssued {
        authority: row.fingerprint,
        serial: [1; 16],
        handle: [1; 32],
        name: Name::new("edge-1").expect("name"),
        revision,
        at,
    }))
}

fn actions(store: &Store) -> Vec<String> {
    store.audit().lines().expect("lines").into_iter().map(|line| line.action).collect()
}

#[test]
fn authorities_survive_reopening_and_names_are_taken_for_ever() {
    let (bench, mut store, row) = registry();
    assert_eq!(row.name, "orders");
    assert!(record_authority(&mut store, &authority("orders")).is_err());
    record_authority(&mut store, &authority("a")).expect("another");
    drop(store);
    let store = bench.open().expect("open");
    let names: Vec<_> =
        store.attributes().authorities().expect("authorities").into_iter().map(|row| row.name).collect();
    assert_eq!(names, ["a", "orders"]);
    assert_eq!(checked(&store), Checked::Whole);
}

#[test]
fn newest_grant_counts_and_changes_are_handed_over_in_order() {
    let (_bench, mut store, row) = registry();
    let (one, two) = (
        store.attributes().grantee("edge-1", NOW).expect("one"),
        store.attributes().grantee("edge-2", NOW).expect("two"),
    );
    let first = grant(&mut store, &row, &one, Some(b"scout"), "scout").expect("grant");
    let second = grant(&mut store, &row, &two, Some(b"tanker"), "tanker").expect("grant");
    let third = grant(&mut store, &row, &one, Some(b"night"), "night").expect("grant");
    assert!(first < second && second < third);
    assert_eq!(store.attributes().granted(&row, &one.serial).expect("read").as_deref(), Some("night"));
    let fourth = grant(&mut store, &row, &two, None, "tanker").expect("withdraw");
    assert_eq!(store.attributes().granted(&row, &two.serial).expect("read"), None);
    let changes = store.attributes().grants_after(first).expect("changes");
    let revisions: Vec<_> = changes.iter().map(|grant| grant.revision).collect();
    assert_eq!(revisions, [second, third, fourth]);
    assert_eq!(changes[1].granted.as_deref(), Some(&b"night"[..]));
    assert_eq!((changes[2].granted.as_deref(), changes[2].serial), (None, [2; 16]));
    let newest = store.attributes().newest_grants().expect("newest");
    let newest: Vec<_> =
        newest.iter().map(|grant| (grant.serial, grant.revision, grant.granted.as_deref())).collect();
    assert_eq!(newest, [([1; 16], third, Some(&b"night"[..])), ([2; 16], fourth, None)]);
    let rows = store.attributes().grants().expect("grants");
    let shown: Vec<_> = rows.iter().map(|grant| (grant.drone.as_str(), grant.state)).collect();
    assert_eq!(shown, [("edge-1", "in force"), ("edge-2", "withdrawn")]);
    revoke_drone(&mut store, "edge-1").expect("revoke");
    assert_eq!(store.attributes().grants().expect("grants")[0].state, "drone revoked");
    assert_eq!(checked(&store), Checked::Whole);
}

#[test]
fn only_enrolled_drones_and_recorded_tokens_are_granted_anything() {
    let (_bench, mut store, _) = registry();
    assert!(matches!(store.attributes().grantee("edge-9", NOW), Err(Error::NoGrantee { .. })));
    assert_eq!(store.attributes().grantee("edge-1", NOW).expect("enrolled").serial, [1; 16]);
    assert!(matches!(store.attributes().grantee("edge-1", NOW + 11), Err(Error::Terms(_))), "expired");
    revoke_drone(&mut store, "edge-1").expect("revoke");
    assert!(matches!(store.attributes().grantee("edge-1", NOW), Err(Error::GranteeRevoked { .. })));
}

#[test]
fn keys_are_counted_and_their_first_issue_is_audited() {
    let (bench, mut store, row) = registry();
    let one = store.attributes().grantee("edge-1", NOW).expect("one");
    let revision = grant(&mut store, &row, &one, Some(b"scout"), "scout").expect("grant");
    for at in [NOW + 1, NOW + 2, NOW + 3] {
        store.persist(&[key_issued(&row, revision, at)], at).expect("persist");
    }
    let later = grant(&mut store, &row, &one, Some(b"night"), "night").expect("grant");
    store.persist(&[key_issued(&row, later, NOW + 4)], NOW + 4).expect("persist");
    let keys = store.attributes().keys().expect("keys");
    let counted: Vec<_> = keys.iter().map(|key| (key.revision, key.times, key.first, key.last)).collect();
    assert_eq!(counted, [(revision, 3, NOW + 1, NOW + 3), (later, 1, NOW + 4, NOW + 4)]);
    let audited = actions(&store).iter().filter(|action| *action == "attribute key issued").count();
    assert_eq!(audited, 2);
    assert_eq!(checked(&store), Checked::Whole);
    bench.tamper("DELETE FROM attribute_key WHERE times = 1");
    assert_eq!(checked(&store), Checked::CountDiffers { what: "attribute keys", issued: 1, audited: 2 });
    // A key for a grant that was never made is refused, and nothing of the batch is kept.
    let batch = [key_issued(&row, revision, NOW), key_issued(&row, 99, NOW)];
    assert!(store.persist(&batch, NOW).is_err());
    assert_eq!(store.attributes().keys().expect("keys")[0].times, 3);
}

#[test]
fn long_policies_are_cut_and_hashed_in_the_audit_table() {
    let (_bench, mut store, row) = registry();
    let one = store.attributes().grantee("edge-1", NOW).expect("one");
    let long = "é or ".repeat(5000) + "scout";
    grant(&mut store, &row, &one, Some(b"x"), &long).expect("grant");
    store.change(NOW, |change| change.attributes().record_key_file("orders", "-", "short")).expect("record");
    let lines = store.audit().lines().expect("lines");
    let [.., grant, file] = &lines[..] else { panic!("two lines") };
    assert!(grant.detail.len() < 600 && grant.detail.contains("30005 bytes"), "{}", grant.detail);
    assert_eq!((file.subject.as_str(), file.detail.as_str()), ("-", "authority orders: short"));
    assert_eq!(checked(&store), Checked::Whole);
}

#[test]
fn registry_of_an_earlier_version_is_upgraded_and_loses_nothing() {
    for version in 1..8 {
        upgraded_from(version);
    }
}

fn upgraded_from(version: i32) {
    let (bench, mut store) = Bench::new();
    store.persist(&of_the_kgc([issued(1, "edge-1")]), NOW).expect("persist");
    drop(store);
    schema::make_version(&Connection::open(bench.path()).expect("open"), version).expect("downgrade");
    assert!(matches!(bench.open(), Err(Error::EarlierRegistry { .. })), "not without the key");
    // Two at once: one of them upgrades.
    let upgraded = || {
        let store = Store::open_of_any_build(bench.directory.path(), &DEPLOYMENT).expect("open");
        let mut store = store.authenticated_by(Authenticator::Key(bench.key.clone()));
        store.upgrade().expect("upgrade");
        store
    };
    let (mut one, two) = (upgraded(), upgraded());
    assert_eq!(bench.found(), []);
    record_authority(&mut one, &authority("orders")).expect("record");
    assert_eq!(two.attributes().authorities().expect("authorities").len(), 1);
    // By SQL, because only a build with conditions reads that table.
    let policies = "SELECT count(*) FROM ibe_policy";
    let policies: u32 = two.connection.query_row(policies, [], |row| row.get(0)).expect("policies");
    assert_eq!(policies, 0);
    assert_eq!(two.drones().all().expect("drones").len(), 1);
    let upgraded = actions(&two).iter().filter(|action| *action == "registry upgraded").count();
    assert_eq!((upgraded, checked(&two)), (1, Checked::Whole));
    bench.tamper("PRAGMA user_version = 0");
    assert!(bench.open().expect_err("older than the first").to_string().contains("version 0"));
}

#[test]
fn look_that_fails_halfway_loses_no_revocation() {
    let (bench, mut store, row) = registry();
    let two = store.attributes().grantee("edge-2", NOW).expect("two");
    let first = grant(&mut store, &row, &two, Some(b"scout"), "scout").expect("grant");
    let secrets = Secrets {
        data_dir: bench.directory.path().into(),
        deployment: Deployment::<Ristretto255>::new(
            Name::new("alps").expect("name"),
            MasterSecret::generate(&mut OsRng).public(),
        ),
        by: Arc::new(Protection::Key(Secret::new([1; 32]))),
    };
    let mut position = Position::default();
    store.macs().check_rows(&bench.key, &mut position).expect("authentic");
    let verified = Verified { store: bench.open().expect("open"), key: bench.key.clone(), position };
    let mut changes = Changes::since(verified, secrets, [row.fingerprint], <_>::default(), first);
    revoke_drone(&mut store, "edge-1").expect("revoke");
    let second = grant(&mut store, &row, &two, None, "scout").expect("withdraw");
    assert!(first < second);
    bench.tamper("ALTER TABLE attribute_grant RENAME TO elsewhere");
    assert!(changes.read().is_err(), "the last query fails");
    bench.tamper("ALTER TABLE elsewhere RENAME TO attribute_grant");
    let commands = |changes: &Changes| {
        let new = changes.read().expect("look");
        let command = |change| match change {
            CommandLineChange::Command(command) => command,
            CommandLineChange::Authority(_) | CommandLineChange::Share(_) => panic!("nothing was set up"),
        };
        (new.changes.into_iter().map(command).collect::<Vec<_>>(), new.seen, new.trouble)
    };
    let (found, seen, trouble) = commands(&changes);
    let [
        Either::Left(KgcCommand::RevokeDrones(drones)),
        Either::Right(DeliveryCommand::Keys(IssuerCommand::Grant(grant))),
    ] = &found[..]
    else {
        panic!("{found:?}");
    };
    assert_eq!(
        (drones.iter().map(|drone| drone.serial).collect::<Vec<_>>(), grant.revision, trouble),
        (vec![[1; 16]], second, None),
        "nothing that was known at the start"
    );
    // Not handed over yet: the next look finds the same.
    assert_eq!(commands(&changes).0, found);
    changes.mark_seen(seen);
    assert_eq!(commands(&changes).0, []);
    // An authority whose secrets are missing holds nothing else back.
    record_authority(&mut store, &authority("sensors")).expect("record");
    revoke_drone(&mut store, "edge-2").expect("revoke");
    let (found, _, trouble) = commands(&changes);
    assert!(matches!(&found[..], [Either::Left(KgcCommand::RevokeDrones(_))]), "{found:?}");
    assert!(trouble.is_some_and(|trouble| trouble.contains("authorities.state")));
}
