//! The registry: durability across openings, names, revocations, the audit chain, foreign and damaged files.

mod attributes;
#[cfg(feature = "conditions")]
mod authentication;

use std::os::unix::fs::PermissionsExt;

use quiver_ainq::{Identity, Name, Revoked, Role};
use tempfile::TempDir;

use super::tokens::TokenState;
use super::*;

const DEPLOYMENT: [u8; 32] = [7; 32];
const NOW: UnixTime = 1_800_000_000;

struct Bench {
    directory: TempDir,
    key: RegistryKey,
}

impl Bench {
    fn new() -> (Self, Store) {
        let bench = Self { directory: tempfile::tempdir().expect("tempdir"), key: RegistryKey::random() };
        let store = Store::create(bench.directory.path(), &DEPLOYMENT, &bench.key, NOW).expect("create");
        (bench, store)
    }

    fn open(&self) -> Result<Store> {
        let store = Store::open(self.directory.path(), &DEPLOYMENT)?;
        Ok(store.authenticated_by(Authenticator::Key(self.key.clone())))
    }

    /// Findings of a check of all rows.
    fn found(&self) -> Vec<RegistryFinding> {
        let store = Store::open(self.directory.path(), &DEPLOYMENT).expect("open");
        match store.macs().check_rows(&self.key, &mut Position::default()) {
            Ok(()) => Vec::new(),
            Err(Error::ForeignRows(findings)) => findings.0,
            Err(error) => panic!("{error}"),
        }
    }

    fn path(&self) -> PathBuf {
        Store::path_in(self.directory.path())
    }

    /// Another program with the same file.
    fn tamper(&self, sql: &str) {
        let db = Connection::open(self.path()).expect("open");
        db.execute_batch("PRAGMA foreign_keys = OFF").expect("unchecked");
        db.execute_batch(sql).expect("tamper");
    }
}

fn issued(serial: u8, name: &str) -> KgcRecord {
    let identity = Identity {
        serial: [serial; 16],
        name: Name::new(name).expect("name"),
        role: Role::Edge,
        groups: vec![Name::new("alpha").expect("name")],
        not_after: NOW + 10,
    };
    KgcRecord::Issued {
        token_id: [serial; 16],
        name: name.into(),
        identity: identity.encode(),
        handle: [serial; 32],
        pin: [serial; 32],
        request: [serial; 32],
        reply: vec![serial; 100],
        at: NOW,
    }
}

/// The KGC's records as its node has them.
fn of_the_kgc<const N: usize>(records: [KgcRecord; N]) -> [ServingRecord; N] {
    records.map(Either::Left)
}

fn revoke_drone(store: &mut Store, which: &str) -> Result<EnrolledDrone> {
    store.change(NOW, |change| change.drones().revoke(which))
}

fn revoke_token(store: &mut Store, which: &str) -> Result<String> {
    store.change(NOW, |change| change.tokens().revoke_named(which))
}

fn request_revocation(
    store: &mut Store,
    which: &str,
    told: Option<(UnixTime, bool)>,
) -> Result<([u8; 16], String)> {
    store.change(NOW, |change| change.revocation_requests().request(which, told))
}

fn checked(store: &Store) -> Checked {
    store.audit().check(&store.audit().lines().expect("lines")).expect("check")
}

#[test]
fn records_survive_reopening() {
    let (bench, mut store) = Bench::new();
    let list = KgcRecord::RevocationList { number: 2, list: vec![1, 2] };
    let older = KgcRecord::RevocationList { number: 1, list: vec![1] };
    let token = KgcRecord::TokenRevoked { token_id: [9; 16] };
    store
        .persist(
            &of_the_kgc([issued(1, "edge-1"), issued(2, "edge-2"), older, list.clone(), token.clone()]),
            NOW,
        )
        .expect("persist");
    drop(store);
    let records = bench.open().expect("open").records().expect("records");
    assert_eq!(records, [issued(1, "edge-1"), issued(2, "edge-2"), list, token]);
    let mode = std::fs::metadata(bench.path()).expect("metadata").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

fn pinned(serial: u8, name: &str) -> KgcRecord {
    KgcRecord::Pinned {
        token_id: [serial; 16],
        name: name.into(),
        identity: vec![serial; 60],
        pin: [serial; 32],
        request: [serial; 32],
        at: NOW,
    }
}

#[test]
fn pins_and_contributions_survive_reopening_and_a_token_is_bound_once() {
    let (bench, mut store) = Bench::new();
    let contributed = |handle| KgcRecord::Contributed { token_id: [1; 16], handle: [handle; 32], at: NOW };
    let proven = KgcRecord::Enrolled { token_id: [1; 16], handle: [8; 32], at: NOW };
    let records = [pinned(1, "edge-1"), pinned(2, "edge-2"), contributed(7), contributed(8), proven.clone()];
    store.persist(&of_the_kgc(records.clone()), NOW).expect("persist");
    // The very same once more is fine, another request for the token is not, nor is a signature for none.
    store.persist(&of_the_kgc([pinned(1, "edge-1"), contributed(7), proven]), NOW).expect("once more");
    let mut other = pinned(1, "edge-1");
    if let KgcRecord::Pinned { request, .. } = &mut other {
        *request = [99; 32];
    }
    let error = store.persist(&of_the_kgc([other]), NOW).expect_err("bound twice");
    assert!(matches!(error, Error::TokenBoundTwice), "{error}");
    let unbound = KgcRecord::Contributed { token_id: [3; 16], handle: [9; 32], at: NOW };
    assert!(store.persist(&of_the_kgc([unbound]), NOW).is_err());
    drop(store);
    let store = bench.open().expect("open");
    assert_eq!(store.records().expect("records"), records);
    assert_eq!(checked(&store), Checked::Whole);
    let actions: Vec<_> = store.audit().lines().expect("lines").into_iter().map(|line| line.action).collect();
    let contributed = ["contributed to a key"; 2];
    assert_eq!(actions[1..], [&["token bound"; 2][..], &contributed, &["key proven by its drone"]].concat());
}

#[test]
fn failing_batch_leaves_nothing_behind() {
    let (_bench, mut store) = Bench::new();
    store.persist(&of_the_kgc([issued(1, "edge-1")]), NOW).expect("persist");
    let mut other_key = issued(1, "edge-1");
    if let KgcRecord::Issued { pin, .. } = &mut other_key {
        *pin = [99; 32];
    }
    let error = store.persist(&of_the_kgc([issued(2, "edge-2"), other_key]), NOW).expect_err("bound twice");
    assert!(matches!(error, Error::TokenBoundTwice), "{error}");
    assert_eq!(store.records().expect("records"), [issued(1, "edge-1")]);
    assert_eq!(checked(&store), Checked::Whole);
    store.persist(&of_the_kgc([issued(1, "edge-1")]), NOW).expect("the very same once more is fine");
}

#[test]
fn revoked_drone_is_handed_over_once_and_frees_its_name() {
    let (_bench, mut store) = Bench::new();
    store.persist(&of_the_kgc([issued(1, "edge-1"), issued(2, "edge-2")]), NOW).expect("persist");
    let taken = |store: &mut Store| store.change(NOW, |change| change.tokens().refuse_taken_name("edge-1"));
    assert!(matches!(taken(&mut store), Err(Error::NameTaken { .. })));
    revoke_drone(&mut store, "edge-1").expect("revoke");
    taken(&mut store).expect("free again");
    let revoked = store.drones().revoked_after(0).expect("revoked");
    let revoked: Vec<_> = revoked.iter().map(|drone| (drone.seq, drone.revoked.serial)).collect();
    assert_eq!(revoked, [(1, [1; 16])]);
    assert!(store.drones().revoked_after(1).expect("none").is_empty());
    assert!(matches!(revoke_drone(&mut store, "edge-1"), Err(Error::AlreadyRevoked { .. })));
    assert!(matches!(revoke_drone(&mut store, "edge-9"), Err(Error::NoSuchDrone { .. })));
    revoke_drone(&mut store, &hex::encode([2; 16])).expect("by serial");
    assert_eq!(store.drones().all().expect("drones").iter().filter(|drone| drone.revoked).count(), 2);
}

#[test]
fn drone_states_follow_the_clock() {
    let (_bench, mut store) = Bench::new();
    store.persist(&of_the_kgc([issued(1, "edge-1")]), NOW).expect("persist");
    let drone = store.drones().all().expect("drones").remove(0);
    assert_eq!((drone.state(NOW), drone.state(NOW + 11)), ("active", "expired"));
}

#[test]
fn used_and_unknown_tokens_are_not_revoked_as_tokens() {
    let (_bench, mut store) = Bench::new();
    store.persist(&of_the_kgc([issued(1, "edge-1")]), NOW).expect("persist");
    let used = revoke_token(&mut store, &hex::encode([1; 16]));
    assert!(matches!(used, Err(Error::TokenUsed { drone }) if drone == "edge-1"));
    assert!(matches!(revoke_token(&mut store, "edge-7"), Err(Error::NoSuchToken { .. })));
    let id = hex::encode([5; 16]);
    assert_eq!(revoke_token(&mut store, &id).expect("issued elsewhere"), id);
    assert!(matches!(revoke_token(&mut store, &id), Err(Error::AlreadyRevoked { .. })));
    assert_eq!(store.tokens().revoked().expect("revoked"), [[5; 16]]);
    let states: Vec<_> =
        store.tokens().all(NOW).expect("tokens").into_iter().map(|token| token.state).collect();
    assert_eq!(states, [TokenState::Used, TokenState::Revoked]);
}

#[test]
fn audit_chain_shows_what_was_done_to_it() {
    let attacks = [
        ("UPDATE audit SET subject = 'edge-9' WHERE seq = 2", Checked::BrokenAt(2)),
        ("UPDATE audit SET at = at + 1 WHERE seq = 1", Checked::BrokenAt(1)),
        ("DELETE FROM audit WHERE seq = 2", Checked::BrokenAt(2)),
        ("DELETE FROM audit WHERE seq = 1", Checked::BrokenAt(1)),
        ("DELETE FROM audit", Checked::BrokenAt(1)),
        ("DELETE FROM audit WHERE seq = 3", Checked::CountDiffers { what: "keys", issued: 2, audited: 1 }),
        (
            "DELETE FROM issued WHERE name = 'edge-1'",
            Checked::CountDiffers { what: "keys", issued: 1, audited: 2 },
        ),
    ];
    for (attack, expected) in attacks {
        let (bench, mut store) = Bench::new();
        store.persist(&of_the_kgc([issued(1, "edge-1"), issued(2, "edge-2")]), NOW).expect("persist");
        assert_eq!(checked(&store), Checked::Whole);
        bench.tamper("DROP TRIGGER audit_is_not_changed; DROP TRIGGER audit_is_not_cut;");
        bench.tamper(attack);
        assert_eq!(checked(&store), expected, "{attack}");
    }
}

#[test]
fn audit_table_is_append_only() {
    let (bench, store) = Bench::new();
    let other = Connection::open(bench.path()).expect("open");
    for attack in ["UPDATE audit SET subject = ''", "DELETE FROM audit"] {
        let error = other.execute_batch(attack).expect_err("refused").to_string();
        assert!(error.contains("append-only"), "{error}");
    }
    assert_eq!(checked(&store), Checked::Whole);
}

#[test]
fn foreign_newer_and_damaged_registries_are_refused() {
    let (bench, store) = Bench::new();
    drop(store);
    let other = Store::open(bench.directory.path(), &[8; 32]).expect_err("other deployment");
    assert!(other.to_string().contains("another deployment"), "{other}");
    bench.tamper("PRAGMA user_version = 1000");
    assert!(bench.open().expect_err("newer").to_string().contains("version 1000"));
    bench.tamper("PRAGMA application_id = 1");
    assert!(bench.open().expect_err("foreign").to_string().contains("another program"));
    std::fs::write(bench.path(), [b'x'; 4096]).expect("write");
    let error = bench.open().expect_err("damaged");
    assert!(matches!(error, Error::RegistryDamaged { .. }), "{error}");
}

#[test]
fn registry_that_others_may_read_is_refused() {
    let (bench, store) = Bench::new();
    drop(store);
    std::fs::set_permissions(bench.path(), std::fs::Permissions::from_mode(0o644)).expect("chmod");
    let error = bench.open().expect_err("refused");
    assert!(matches!(error, Error::Service(quiver_service::Error::TooOpen { .. })), "{error}");
}

#[test]
fn registry_is_never_created_over() {
    let (bench, store) = Bench::new();
    drop(store);
    let error = Store::create(bench.directory.path(), &DEPLOYMENT, &bench.key, NOW).expect_err("exists");
    assert!(matches!(error, Error::Service(quiver_service::Error::Exists { .. })), "{error}");
}

#[test]
fn two_processes_take_turns() {
    let (bench, mut one) = Bench::new();
    let mut two = bench.open().expect("open");
    for serial in 0..20 {
        let store = if serial % 2 == 0 { &mut one } else { &mut two };
        store.persist(&of_the_kgc([issued(serial, &format!("edge-{serial}"))]), NOW).expect("persist");
    }
    assert_eq!(checked(&one), Checked::Whole);
    assert_eq!(two.drones().all().expect("drones").len(), 20);
}

/// A record with an identity that can be decoded.
fn bound(serial: u8, name: &str) -> KgcRecord {
    let KgcRecord::Issued { token_id, name, identity, pin, request, at, .. } = issued(serial, name) else {
        unreachable!("made so")
    };
    KgcRecord::Pinned { token_id, name, identity, pin, request, at }
}

#[test]
fn operator_of_a_quorum_wants_a_drone_revoked_once_known_here_or_not() {
    let (_bench, mut store) = Bench::new();
    store.persist(&of_the_kgc([bound(1, "edge-1")]), NOW).expect("persist");
    assert_eq!(request_revocation(&mut store, "edge-1", None).expect("by name"), ([1; 16], "edge-1".into()));
    let again = request_revocation(&mut store, &hex::encode([1; 16]), None).expect_err("the same, by serial");
    assert!(matches!(again, Error::AlreadyRequested { .. }), "{again}");
    let elsewhere = hex::encode([9; 16]);
    assert_eq!(
        request_revocation(&mut store, &elsewhere, Some((NOW + 60, false))).expect("by serial"),
        ([9; 16], elsewhere)
    );
    let unknown = request_revocation(&mut store, "edge-9", None).expect_err("a name that nobody here has");
    assert!(unknown.to_string().contains("serial"), "{unknown}");
    let requests: Vec<_> =
        store.revocation_requests().after(0).expect("requests").into_iter().map(|(_, drone)| drone).collect();
    let [known, told] = requests[..] else { panic!("{requests:?}") };
    assert_eq!((known.serial, known.leader), ([1; 16], false));
    assert_ne!(known.not_after, u64::MAX, "as its identity says");
    assert_eq!(told, Revoked { serial: [9; 16], not_after: NOW + 60, leader: false }, "as the operator says");
    let (first, _) = store.revocation_requests().after(0).expect("requests")[0];
    assert_eq!(store.revocation_requests().after(first).expect("requests").len(), 1);
    let drone = &store.drones().all().expect("drones")[0];
    assert_eq!((drone.wanted, drone.revoked, drone.state(NOW)), (true, false, "revocation requested"));
    assert_eq!(checked(&store), Checked::Whole);
}
