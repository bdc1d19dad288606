//! Five KGCs release the key of a condition: orders sealed to it open once three operators have approved it.

use std::time::Duration;

use quiver_ainq::{DroneKeypair, Ristretto255};
use quiver_ibe::{Condition, IbeCiphertext, IdentityKey, IdentityPoint};
use quiver_key_release::{ReleaseAuthority, Shortfall, Verdict};
use quiver_service_testing::{Process, eventually};
use rand::rngs::OsRng;

use crate::ALL;
use crate::bench::Bench;
use crate::condition_keys::{collect, collect_within, published};
use crate::drones::Fleet;

type S = Ristretto255;

const PHASE: &str = "mission/alpha/phase-2";
const PAST: &str = "not-before/2020-01-01T00:00:00Z";
const ORDER: &[u8] = b"turn north at the second ridge";

fn condition(text: &str) -> Condition {
    text.parse().expect("condition")
}

#[test]
fn order_sealed_to_a_mission_opens_once_three_of_five_kgcs_release_it_and_after_a_refresh() {
    let bench = Bench::new(5, 3);
    let mut kgcs: Vec<Process> = ALL.map(|id| bench.serve(id)).into();
    settled(&bench, 0);
    let fleet = Fleet::new(&bench);
    let authority = what_the_command_line_says_of_the_key(&bench, &fleet);
    let sealed = |text| authority.master().encrypt(&IdentityPoint::of(&condition(text)), ORDER, &mut OsRng);
    let (order, old) = (sealed(PHASE).expect("short"), sealed(PAST).expect("short"));
    let drone = fleet.member("edge-1");
    two_approvals_are_not_enough(&bench, &fleet, &drone);
    bench.ok(5, &["ibe", "release", PHASE]);
    let key = eventually("three have approved", || collect(&fleet, &drone, None, &condition(PHASE)).0.ok());
    assert!(opens(&key, &order));
    // Nobody has to approve what the clock releases.
    let past = collect(&fleet, &drone, Some(&authority), &condition(PAST)).0.expect("long past");
    assert!(opens(&past, &old));
    assert!(!opens(&past, &order));
    refreshed_shares_make_the_same_keys(&bench, &mut kgcs, &fleet, &authority, &order);
    one_that_restarts_alone_releases_its_share(&bench, &mut kgcs, &fleet, &drone);
    for id in ALL {
        bench.ok(id, &["audit"]);
    }
}

/// The statement was signed once and for all: nobody else is there to sign it again.
fn one_that_restarts_alone_releases_its_share(
    bench: &Bench,
    kgcs: &mut [Process],
    fleet: &Fleet,
    drone: &DroneKeypair<S>,
) {
    kgcs.iter().for_each(Process::kill);
    kgcs[2] = bench.serve(3);
    eventually("KGC 3 releases its share", || {
        let past = condition(PAST);
        let (key, _) = collect_within(Duration::from_secs(2), fleet, drone, None, &past);
        let shortfall = key.expect_err("one is not enough");
        shortfall.verdicts.contains(&(Some(3), Verdict::Released)).then_some(())
    });
}

fn opens(key: &IdentityKey, sealed: &IbeCiphertext) -> bool {
    key.decrypt(sealed).is_ok_and(|order| *order == ORDER)
}

/// Waits until all serve with shares of this version, and have signed what drones need to know of them.
fn settled(bench: &Bench, version: u32) {
    for id in ALL {
        bench.serving(id, version);
        eventually(&format!("KGC {id} has the key of conditions"), || {
            let listed = bench.json(id, &["ibe", "list", "--json"])["master"]["version"] == version + 1;
            listed.then_some(())
        });
    }
}

fn what_the_command_line_says_of_the_key(bench: &Bench, fleet: &Fleet) -> ReleaseAuthority<S> {
    bench.refused(1, &["ibe", "setup"], 2, "nothing to set up");
    assert!(!bench.path("kgc-1/ibe.state").exists(), "the share is in quorum.state alone");
    let first = bench.json(1, &["ibe", "list", "--json"]);
    assert_eq!(first["master"]["threshold"], 3);
    assert_eq!(first["master"]["kgcs"], serde_json::json!(ALL));
    for id in ALL {
        let listing = bench.json(id, &["ibe", "list", "--json"]);
        assert_eq!(listing["master"]["fingerprint"], first["master"]["fingerprint"]);
        let patterns: Vec<_> = listing["policies"].as_array().expect("policies").iter().collect();
        assert_eq!(patterns.len(), 3, "{patterns:?}");
    }
    bench.ok(2, &["ibe", "publish", "--out", "published.ibe"]);
    published(bench, fleet, "published.ibe")
}

fn two_approvals_are_not_enough(bench: &Bench, fleet: &Fleet, drone: &DroneKeypair<S>) {
    let ask = || -> Shortfall {
        collect(fleet, drone, None, &condition(PHASE)).0.expect_err("fewer than three have approved")
    };
    ask();
    for word in ["approved at this KGC", "approved already at this KGC"] {
        let said = bench.ok(1, &["ibe", "release", PHASE]);
        assert!(said.contains(word) && said.contains("once 3 of the quorum's KGCs"), "{said}");
    }
    bench.ok(2, &["ibe", "release", PHASE]);
    eventually("both let go of their shares", || {
        ask();
        let released = |id| {
            let listing = bench.json(id, &["ibe", "list", "--json"]);
            listing["shares"].as_array().is_some_and(|shares| !shares.is_empty())
        };
        (released(1) && released(2)).then_some(())
    });
    let shortfall = ask().to_string();
    assert!(shortfall.contains(" of 3 required key shares"), "{shortfall}");
    for kgc in [3, 4, 5] {
        assert!(shortfall.contains(&format!("KGC {kgc}: no operator has approved it")), "{shortfall}");
    }
}

/// One drone has heard of the shares before, another of none.
fn refreshed_shares_make_the_same_keys(
    bench: &Bench,
    kgcs: &mut [Process],
    fleet: &Fleet,
    before: &ReleaseAuthority<S>,
    order: &IbeCiphertext,
) {
    bench.refresh(kgcs, 1);
    settled(bench, 1);
    for (name, known) in [("edge-2", Some(before)), ("edge-3", None)] {
        let drone = fleet.member(name);
        let (key, after) = collect(fleet, &drone, known, &condition(PHASE));
        assert!(opens(&key.expect("approved at three"), order), "{name}");
        let after = after.expect("the statement came with the shares");
        assert_eq!((after.version(), after.master()), (2, before.master()));
        assert_ne!(after.publics(), before.publics());
    }
    bench.ok(4, &["ibe", "publish", "--out", "refreshed.ibe"]);
    assert_eq!(published(bench, fleet, "refreshed.ibe").version(), 2);
}
