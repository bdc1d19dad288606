//! Rows that were inserted, changed or deleted from outside are found, in each table, with their number; the chain that
//! vouches for them continues by nobody without the key.

use std::cell::Cell;

use super::attributes::{grant, key_issued, registry};
use super::*;
use crate::audit_head::{AuditHead, HeadFile};
use crate::ibe::tables::ReleaseWriter;
use crate::registry::{self, Verified};

/// A registry with a row or more in each table, as a single KGC and one of a quorum write them.
fn full() -> Bench {
    let (bench, mut store, row) = registry();
    let one = store.attributes().grantee("edge-1", NOW).expect("one");
    let revision = grant(&mut store, &row, &one, Some(b"scout"), "scout").expect("grant");
    store.persist(&[key_issued(&row, revision, NOW)], NOW).expect("key");
    let list = KgcRecord::RevocationList { number: 1, list: vec![1] };
    let contributed = KgcRecord::Contributed { token_id: [3; 16], handle: [8; 32], at: NOW };
    let proven = KgcRecord::Enrolled { token_id: [3; 16], handle: [8; 32], at: NOW };
    store.persist(&of_the_kgc([bound(3, "edge-3"), contributed, proven, list]), NOW).expect("quorum");
    revoke_token(&mut store, &hex::encode([5; 16])).expect("token");
    revoke_drone(&mut store, "edge-2").expect("drone");
    request_revocation(&mut store, &hex::encode([9; 16]), Some((NOW, true))).expect("request");
    let pattern = "mission".parse().expect("pattern");
    store.change(NOW, |change| ReleaseWriter::of(change).set_policy(&pattern, None)).expect("policy");
    let condition = "mission/alpha/phase-2";
    approve(&mut store, condition).expect("approval");
    // Rows that only a holder of a master key, a share, an operator's key or a circuit makes, as their functions
    // write them.
    store
        .change(NOW, |change| {
            let write = |table, sql: &str| {
                change.sql(change.transaction.execute(sql, []))?;
                Ok::<_, Error>(change.written(table))
            };
            let rows = [
                write(
                    "ibe_authority",
                    "INSERT INTO ibe_authority VALUES (1, zeroblob(32), 'ibe', x'01', 1)",
                )?,
                write(
                    "ibe_share",
                    "INSERT INTO ibe_share VALUES ('c', zeroblob(16), 'n', zeroblob(32), 1, 1, 1)",
                )?,
                write("token", "INSERT INTO token VALUES (zeroblob(16), 'edge-4', x'01', 1, 1)")?,
                write(
                    "admission_policy",
                    "INSERT INTO admission_policy SELECT zeroblob(32), fingerprint, 'p', 'alpha', 1, 't', 1 \
                     FROM attribute_authority",
                )?,
            ];
            change.audit("more", "", "", &rows)
        })
        .expect("more");
    assert_eq!(bench.found(), []);
    bench
}

fn approve(store: &mut Store, condition: &str) -> Result<Option<u64>> {
    let condition = condition.parse().expect("condition");
    store.change(NOW, |change| ReleaseWriter::of(change).set_approval(&condition, true))
}

/// A table, what inserts another row into it, what changes its first, and that one's number.
const ATTACKS: [(&str, &str, &str, i64); 17] = [
    (
        "attribute_grant",
        "INSERT INTO attribute_grant (authority, token_id, name, granted, text, at)
         SELECT authority, zeroblob(16), 'mallory', x'ff', 'all', at FROM attribute_grant",
        "granted = x'ff'",
        1,
    ),
    (
        "ibe_policy",
        "INSERT INTO ibe_policy (pattern, allowed, groups, at) VALUES ('mission', 1, '', 1)",
        "allowed = 1",
        1,
    ),
    (
        "ibe_approval",
        "INSERT INTO ibe_approval (condition, approved, at) VALUES ('mission/a', 1, 1)",
        "condition = 'mission/a'",
        1,
    ),
    (
        "admission_policy",
        "INSERT INTO admission_policy SELECT randomblob(32), authority, 'q', members, 9, text, at FROM admission_policy",
        "not_after = 9",
        1,
    ),
    (
        "revoked_token",
        "INSERT INTO revoked_token (token_id, at) VALUES (zeroblob(16), 1)",
        "token_id = zeroblob(16)",
        1,
    ),
    (
        "revoked_drone",
        "INSERT INTO revoked_drone (token_id, at) SELECT token_id, 1 FROM issued WHERE name = 'edge-1'",
        "token_id = (SELECT token_id FROM issued WHERE name = 'edge-1')",
        1,
    ),
    (
        "revocation_wish",
        "INSERT INTO revocation_wish (token_id, at) VALUES (zeroblob(16), 1)",
        "token_id = zeroblob(16)",
        1,
    ),
    ("wished_drone", "INSERT INTO wished_drone VALUES (zeroblob(16), 1, 0)", "not_after = 1", 1),
    (
        "issued",
        "INSERT INTO issued SELECT zeroblob(16), name, identity, randomblob(32), pin, request, reply, at FROM issued LIMIT 1",
        "pin = zeroblob(32)",
        1,
    ),
    (
        "pinned",
        "INSERT INTO pinned SELECT zeroblob(16), name, identity, pin, request, at FROM pinned",
        "request = zeroblob(32)",
        1,
    ),
    (
        "contributed",
        "INSERT INTO contributed SELECT zeroblob(32), token_id, at FROM contributed",
        "handle = zeroblob(32)",
        1,
    ),
    ("proven", "INSERT INTO proven SELECT zeroblob(16), handle, at FROM proven", "handle = zeroblob(32)", 1),
    ("revocation_list", "INSERT INTO revocation_list VALUES (2, x'02', 1)", "list = x'02'", 1),
    ("token", "INSERT INTO token VALUES (randomblob(16), 'edge-1', x'01', 1, 1)", "name = 'edge-1'", 1),
    (
        "attribute_authority",
        "INSERT INTO attribute_authority VALUES (zeroblob(32), 'a', 'toy', x'01', 1)",
        "statement = x'02'",
        1,
    ),
    (
        "ibe_authority",
        "INSERT INTO ibe_authority VALUES (2, zeroblob(32), 'ibe', x'02', 1)",
        "statement = x'02'",
        1,
    ),
    (
        "ibe_share",
        "INSERT INTO ibe_share VALUES ('d', zeroblob(16), 'n', zeroblob(32), 1, 1, 1)",
        "name = 'm'",
        1,
    ),
];

fn first(bench: &Bench, table: &str) -> i64 {
    let query = format!("SELECT min(rowid) FROM {table}");
    Connection::open(bench.path()).expect("open").query_row(&query, [], |row| row.get(0)).expect("a row")
}

fn last(bench: &Bench, table: &str) -> i64 {
    let query = format!("SELECT max(rowid) FROM {table}");
    Connection::open(bench.path()).expect("open").query_row(&query, [], |row| row.get(0)).expect("a row")
}

#[test]
fn row_from_outside_is_found_in_each_table_by_its_number() {
    for (table, insert, change, number) in ATTACKS {
        let row = |table: &str, row| (table.to_owned(), row);
        let bench = full();
        bench.tamper(&format!("PRAGMA foreign_keys = OFF; {insert}"));
        let (table_name, inserted) = row(table, last(&bench, table));
        assert_eq!(
            bench.found(),
            [RegistryFinding::Inserted { table: table_name, row: inserted }],
            "{insert}"
        );

        let bench = full();
        assert_eq!(first(&bench, table), number, "{table}");
        bench.tamper(&format!(
            "PRAGMA foreign_keys = OFF; UPDATE {table} SET {change} WHERE rowid = {number}"
        ));
        let (table_name, changed) = row(table, number);
        assert_eq!(bench.found(), [RegistryFinding::Changed { table: table_name, row: changed }], "{change}");

        let bench = full();
        bench.tamper(&format!("PRAGMA foreign_keys = OFF; DELETE FROM {table} WHERE rowid = {number}"));
        let [RegistryFinding::Deleted { table: found, row, line }] = &bench.found()[..] else {
            panic!("{table}: {:?}", bench.found());
        };
        assert_eq!((found.as_str(), *row), (table, number));
        assert!(*line > 1, "{table}");
    }
}

#[test]
fn trigger_and_view_from_outside_are_found() {
    let triggers = "CREATE TRIGGER more AFTER INSERT ON attribute_grant BEGIN
                    UPDATE attribute_grant SET granted = x'ff' WHERE revision = NEW.revision; END";
    let views =
        "DROP VIEW enrolled; CREATE VIEW enrolled AS SELECT token_id, name, identity, handle, at FROM issued";
    for sql in [triggers, views, "DROP TRIGGER audit_is_not_cut"] {
        let bench = full();
        bench.tamper(sql);
        let found = bench.found();
        let in_the_schema = |finding: &RegistryFinding| finding.to_string().contains("of sqlite_schema");
        assert!(!found.is_empty() && found.iter().all(in_the_schema), "{sql}: {found:?}");
    }
}

#[test]
fn keys_counter_may_count_and_nothing_else_of_its_row_may_change() {
    let bench = full();
    bench.tamper("UPDATE attribute_key SET times = times + 1, last_at = last_at + 1");
    assert_eq!(bench.found(), []);
    bench.tamper("UPDATE attribute_key SET handle = zeroblob(32)");
    assert_eq!(bench.found(), [RegistryFinding::Changed { table: "attribute_key".into(), row: 1 }]);
}

#[test]
fn tidied_up_file_is_what_it_was() {
    let bench = full();
    bench.tamper("VACUUM");
    assert_eq!(bench.found(), []);
}

#[test]
fn row_that_brings_its_own_line_is_found_without_the_key() {
    let bench = full();
    let (mut mallory, head) = {
        let store = bench.open().expect("open");
        let head = store.audit().head().expect("head").expect("one");
        (store.authenticated_by(Authenticator::Key(RegistryKey::random())), head)
    };
    // Everything as this program does it, but for the key.
    let condition = "mission/alpha/phase-9";
    let revision = approve(&mut mallory, condition).expect("approval").expect("a change");
    let continued = checked(&mallory);
    assert!(
        !matches!(continued, Checked::BrokenAt(_)),
        "anybody continues the chain of hashes: {continued:?}"
    );
    let row = i64::try_from(revision).expect("small");
    let expected = [
        RegistryFinding::Line { line: head.seq + 1 },
        RegistryFinding::Inserted { table: "ibe_approval".into(), row },
    ];
    assert_eq!(bench.found(), expected);
}

#[test]
fn list_of_authentic_rows_and_macs_cannot_be_edited() {
    let edits = [
        "DELETE FROM audit_mac",
        "DELETE FROM authenticated_row",
        "DELETE FROM audit_mac; DELETE FROM authenticated_row",
        "DELETE FROM audit_mac WHERE seq < 4; DELETE FROM authenticated_row WHERE line < 4",
        "UPDATE authenticated_row SET row = row + 1 WHERE line = 3",
        "UPDATE authenticated_row SET line = 3 WHERE line = 4",
        "UPDATE audit_mac SET mac = zeroblob(32) WHERE seq = 5",
        "INSERT INTO authenticated_row SELECT line, name, 99, zeroblob(32) FROM authenticated_row WHERE line = 2",
        "INSERT INTO authenticated_row VALUES (999, 'issued', 1, zeroblob(32))",
        "INSERT INTO audit_mac VALUES (999, zeroblob(32))",
        "INSERT INTO audit SELECT seq + 1, at, action, subject, detail, hash, zeroblob(32) FROM audit ORDER BY seq DESC LIMIT 1",
    ];
    for edit in edits {
        let bench = full();
        bench.tamper(&format!("PRAGMA foreign_keys = OFF; {edit}"));
        let found = bench.found();
        assert!(matches!(found.first(), Some(RegistryFinding::Line { .. })), "{edit}: {found:?}");
    }
}

#[test]
fn registry_under_another_key_is_not_authentic() {
    let mut bench = full();
    bench.key = RegistryKey::random();
    assert_eq!(bench.found().first(), Some(&RegistryFinding::Line { line: 1 }));
}

#[test]
fn change_that_fails_leaves_neither_row_nor_line_nor_mac() {
    let bench = full();
    let count = |table: &str| {
        let query = format!("SELECT count(*) FROM {table}");
        let db = Connection::open(bench.path()).expect("open");
        db.query_row(&query, [], |row| row.get::<_, u64>(0)).expect("count")
    };
    let all = || ["ibe_approval", "audit", "audit_mac", "authenticated_row"].map(count);
    let before = all();
    let condition = "mission/alpha/phase-9";
    // Without the key nothing is written at all, and a KGC that cannot be asked leaves nothing behind.
    let mut nobody = Store::open(bench.directory.path(), &DEPLOYMENT).expect("open");
    approve(&mut nobody, condition).expect_err("read only");
    let ended = Authenticator::Running(Box::new(|_, _| Err(Error::Terms("it has ended".into()))));
    let mut asking = bench.open().expect("open").authenticated_by(ended);
    approve(&mut asking, condition).expect_err("nobody answers");
    assert_eq!(all(), before);
    assert_eq!(bench.found(), []);
    approve(&mut bench.open().expect("open"), condition).expect("with the key");
    assert_eq!(all(), before.map(|count| count + 1));
    assert_eq!(bench.found(), []);
}

#[test]
fn running_kgc_authenticates_the_next_line_and_no_other() {
    let bench = full();
    let kgc = bench.open().expect("open");
    let key = bench.key.clone();
    let running = Authenticator::Running(Box::new(move |line, rows| {
        Ok(kgc.macs().authenticate_next(&key, line, rows, None)?.mac)
    }));
    let mut asking = bench.open().expect("open").authenticated_by(running);
    let condition = "mission/alpha/phase-9";
    approve(&mut asking, condition).expect("approval");
    assert_eq!(bench.found(), []);
    // A line that was there before, as of another history.
    let (store, lines) = (bench.open().expect("open"), asking.audit().lines().expect("lines"));
    for line in &lines {
        let again = AuditLine::from(NextLine::from(line));
        store
            .macs()
            .authenticate_next(&bench.key, &again, &[0; 32], None)
            .expect_err("it is in the table already");
    }
}

#[test]
fn running_kgc_authenticates_a_change_of_several_lines_and_another_after_one_that_failed() {
    let bench = full();
    let (kgc, key, last) = (bench.open().expect("open"), bench.key.clone(), Cell::new(None));
    let running = Authenticator::Running(Box::new(move |line, rows| {
        let before = last.take();
        let authenticated = kgc.macs().authenticate_next(&key, line, rows, before.as_ref())?;
        let mac = authenticated.mac;
        last.set(Some(authenticated));
        Ok(mac)
    }));
    let mut asking = bench.open().expect("open").authenticated_by(running);
    let two_lines = |change: &RegistryTransaction<'_>| {
        change.audit("one", "", "", &[])?;
        change.audit("two", "", "", &[])
    };
    let failed: Result<()> = asking.change(NOW, |change| {
        two_lines(change)?;
        Err(Error::Terms("no".into()))
    });
    failed.expect_err("rolled back");
    for _ in 0..2 {
        asking.change(NOW, two_lines).expect("two lines");
    }
    assert_eq!(bench.found(), []);
}

/// A file with a head and a key, in memory.
#[derive(Default)]
struct Noted {
    head: Option<AuditHead>,
    key: Option<KeptKey>,
    /// The disk is full after so many more writes.
    room: Option<usize>,
}

impl Noted {
    fn take_room(&mut self) -> Result<()> {
        match &mut self.room {
            Some(0) => Err(Error::Terms("no room".into())),
            Some(room) => {
                *room -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl HeadFile for Noted {
    fn name(&self) -> &'static str {
        "noted.state"
    }

    fn noted(&self) -> Option<AuditHead> {
        self.head
    }

    fn note(&mut self, head: AuditHead) -> Result<()> {
        self.take_room()?;
        self.head = Some(head);
        Ok(())
    }

    fn registry_key(&self) -> Option<&KeptKey> {
        self.key.as_ref()
    }

    fn keep_registry_key(&mut self, kept: KeptKey) -> Result<()> {
        self.take_room()?;
        self.key = Some(kept);
        Ok(())
    }
}

/// A registry as an earlier build left it, and the file beside it.
fn earlier() -> (Bench, Noted) {
    let bench = full();
    let head = bench.open().expect("open").audit().head().expect("head");
    schema::make_version(&Connection::open(bench.path()).expect("open"), 7).expect("downgrade");
    (bench, Noted { head, ..Noted::default() })
}

fn verify(bench: &Bench, file: &mut Noted) -> Result<Verified> {
    registry::verify(bench.directory.path(), &DEPLOYMENT, file)
}

#[test]
fn registry_of_an_earlier_build_is_authenticated_once_and_never_again() {
    let (bench, mut file) = earlier();
    let Verified { store, .. } = verify(&bench, &mut file).expect("taken as it is");
    assert!(file.key.as_ref().is_some_and(|kept| kept.settled));
    let line = store.audit().lines().expect("lines").pop().expect("a line");
    assert_eq!(line.action, "registry upgraded");
    assert!(line.detail.contains("authenticated as they were found"), "{}", line.detail);
    verify(&bench, &mut file).expect("authentic");
    bench.tamper("INSERT INTO ibe_approval (condition, approved, at) VALUES ('mission/a', 1, 1)");
    assert!(matches!(verify(&bench, &mut file), Err(Error::ForeignRows(_))));
    // Making it look like one of an earlier build again leads nowhere: the file knows.
    schema::make_version(&Connection::open(bench.path()).expect("open"), 7).expect("downgrade");
    assert!(matches!(verify(&bench, &mut file), Err(Error::OtherRegistry { .. })));
    // Nor is a file of an earlier build taken with a registry that was authenticated.
    let (bench, mut file) = earlier();
    let head = file.head;
    verify(&bench, &mut file).expect("taken as it is");
    let mut older = Noted { head, ..Noted::default() };
    assert!(matches!(verify(&bench, &mut older), Err(Error::OtherRegistry { .. })));
    assert!(older.key.is_none());
}

#[test]
fn earlier_registry_whose_end_is_missing_is_not_brought_up_to_date() {
    let (bench, mut file) = earlier();
    file.head = file.head.map(|head| AuditHead { seq: head.seq + 1, ..head });
    assert!(matches!(verify(&bench, &mut file), Err(Error::AuditCut { .. })));
    assert!(file.key.is_none());
    assert!(Store::is_earlier(bench.directory.path(), &DEPLOYMENT).expect("version"));
}

#[test]
fn interrupted_authentication_is_made_up_for_by_the_next_start() {
    for room in [0, 1] {
        let (bench, mut file) = earlier();
        file.room = Some(room);
        assert!(verify(&bench, &mut file).is_err(), "killed after {room} writes");
        file.room = None;
        assert!(!file.key.as_ref().is_some_and(|kept| kept.settled));
        let Verified { store, .. } = verify(&bench, &mut file).expect("made up for");
        assert!(file.key.as_ref().is_some_and(|kept| kept.settled));
        let lines = store.audit().lines().expect("lines");
        let upgraded = lines.iter().filter(|line| line.action == "registry upgraded");
        assert_eq!((upgraded.count(), bench_found(&bench, &file)), (1, Vec::new()));
    }
}

/// Findings of a check with the file's key.
fn bench_found(bench: &Bench, file: &Noted) -> Vec<RegistryFinding> {
    let key = file.key.as_ref().expect("a key").key.clone();
    match bench.open().expect("open").macs().check_rows(&key, &mut Position::default()) {
        Ok(()) => Vec::new(),
        Err(Error::ForeignRows(findings)) => findings.0,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn check_goes_on_where_it_ended() {
    let bench = full();
    let (mut store, mut position) = (bench.open().expect("open"), Position::default());
    store.macs().check_rows(&bench.key, &mut position).expect("authentic");
    // A list with a lower number comes behind it.
    let lists = [3, 2].map(|number| KgcRecord::RevocationList { number, list: vec![2] });
    for list in of_the_kgc(lists) {
        store.persist(&[list], NOW).expect("list");
        store.macs().check_rows(&bench.key, &mut position).expect("authentic");
    }
    let reached = position.clone();
    bench.tamper("INSERT INTO revoked_token (token_id, at) VALUES (zeroblob(16), 1)");
    let found = store.macs().check_rows(&bench.key, &mut position).expect_err("foreign").to_string();
    assert!(found.contains("row 2 of revoked_token was inserted"), "{found}");
    assert_eq!(position, reached, "the next look finds it again");
    bench.tamper("DELETE FROM revoked_token WHERE seq = 2");
    store.macs().check_rows(&bench.key, &mut position).expect("authentic again");
}
