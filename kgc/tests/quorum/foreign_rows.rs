//! Rows that somebody else wrote into the registry of a quorum's KGC.

use rusqlite::Connection;

use super::bench::Bench;

#[test]
fn kgc_of_a_quorum_does_not_start_with_a_foreign_row() {
    let bench = Bench::new(3, 2);
    let serial = "11111111111111111111111111111111";
    bench.ok(1, &["drone", "revoke", serial]);
    assert!(bench.ok(1, &["audit"]).contains("as noted in quorum.state, all rows are authentic"));
    let tamper = |sql: &str| {
        let registry = Connection::open(bench.path("kgc-1/registry.sqlite")).expect("open");
        registry.execute_batch(sql).expect("tamper");
    };
    let address = bench.address(1);
    let serve = ["serve", "--listen", &address];
    tamper("INSERT INTO revocation_wish (token_id, at) VALUES (zeroblob(16), 1)");
    bench.refused(1, &serve, 7, "row 2 of revocation_wish was inserted");
    bench.refused(1, &["audit"], 7, "row 2 of revocation_wish was inserted");
    tamper("DELETE FROM revocation_wish WHERE seq = 2");
    assert!(bench.ok(1, &["audit"]).contains("all rows are authentic"));
    tamper("DELETE FROM revocation_wish");
    bench.refused(1, &serve, 7, "row 1 of revocation_wish was deleted");
    bench.ok(1, &["audit", "--accept-rows"]);
    let kgc = bench.serve(1);
    // It runs, and authenticates for commands.
    kgc.logged("quorum read");
    bench.ok(1, &["drone", "revoke", serial]);
    assert!(bench.ok(1, &["audit"]).contains("all rows are authentic"));
}
