//! Recorded runs against the rules of the models (`models/`): every message and every key of a run is one that they
//! allow, and a run with one step altered, left out, added or moved is refused.
//!
//! The rules are those of the flat strategy, with a leader that restarts, members that restart, leave and are
//! evicted. Who may send what, and what binds which field, is read from `models/messages.tsv`; what is hashed, derived
//! and signed from `models/terms.tsv`, of which the models' constructors are made.

mod rules;
mod suite;
mod table;
mod wire;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_testbed::LinkFaults;

use crate::rules::check;
use crate::table::Table;
use crate::world::{Recording, Step, record, record_random};

/// The kind of a step: what it is, or the name of its message.
fn kind(table: &Table, step: &Step) -> String {
    match step {
        Step::Started(_) => "started".to_string(),
        Step::Sent { bytes, .. } => wire::row(table, bytes).map_or_else(String::new, |row| row.name.clone()),
        Step::Enrolled(_) => "enrolled".to_string(),
        Step::Evicts(_) => "evicts".to_string(),
        Step::Activated { .. } => "activated".to_string(),
        Step::Received { .. } => "received".to_string(),
        Step::Delivered { .. } => "delivered".to_string(),
    }
}

/// Kinds of steps on which no rule depends: refusals and lists are no terms of the models.
const UNBOUND: [&str; 3] = ["Refusal", "RevocationQuery", "RevocationList"];

/// Counts how many changed runs were refused, of how many, for each kind of step.
#[derive(Default)]
struct Tally(BTreeMap<String, (usize, usize)>);

impl Tally {
    fn count(&mut self, kind: &str, refused: bool) {
        let (of, all) = self.0.entry(kind.to_string()).or_default();
        *of += usize::from(refused);
        *all += 1;
    }
}

/// The run that is changed. It is accepted as it is.
fn accepted() -> (Table, Recording) {
    let (table, run) = (Table::read(), record(0, LinkFaults::INSTANT));
    assert_eq!(check(&run, &table, &run.steps), Ok(()));
    (table, run)
}

fn refused(run: &Recording, table: &Table, steps: &[Step]) -> bool {
    check(run, table, steps).is_err()
}

/// Places of the steps that the rules bind, with their kinds.
fn bound(run: &Recording, table: &Table) -> Vec<(usize, String)> {
    let kinds = run.steps.iter().map(|step| kind(table, step)).enumerate();
    kinds.filter(|(_, kind)| !UNBOUND.contains(&kind.as_str())).collect()
}

/// The first of each kind, three at most.
fn places(run: &Recording, table: &Table) -> Vec<(usize, String)> {
    let mut seen = BTreeMap::<String, usize>::new();
    let mut few = bound(run, table);
    few.retain(|(_, kind)| {
        let number = seen.entry(kind.clone()).or_default();
        *number += 1;
        *number <= 3
    });
    few
}

#[test]
fn recorded_runs_are_runs_of_the_models() {
    let table = Table::read();
    let lossy = LinkFaults { loss: 0.1, jitter: Duration::from_millis(20), ..LinkFaults::SOUND };
    for (seed, faults) in
        (0..4).map(|seed| (seed, LinkFaults::INSTANT)).chain((4..10).map(|seed| (seed, lossy)))
    {
        let run = record(seed, faults);
        assert!(run.steps.len() > 100, "{} steps of seed {seed}", run.steps.len());
        if let Err((place, why)) = check(&run, &table, &run.steps) {
            panic!(
                "seed {seed}, step {place}, {}: {why}: {:?}",
                kind(&table, &run.steps[place]),
                run.steps[place]
            );
        }
    }
}

#[test]
fn random_runs_are_runs_of_the_models() {
    let table = Table::read();
    let lossy = LinkFaults { loss: 0.05, jitter: Duration::from_millis(20), ..LinkFaults::SOUND };
    for (seed, faults) in (0..20).map(|seed| (seed, if seed % 2 == 0 { LinkFaults::INSTANT } else { lossy }))
    {
        let run = record_random(seed, faults);
        if let Err((place, why)) = check(&run, &table, &run.steps) {
            panic!(
                "seed {seed}, step {place}, {}: {why}: {:?}",
                kind(&table, &run.steps[place]),
                run.steps[place]
            );
        }
    }
}

#[test]
fn a_run_has_every_kind_of_step() {
    let (table, run) = accepted();
    let kinds: Vec<String> = run.steps.iter().map(|step| kind(&table, step)).collect();
    for wanted in [
        "EnrolHello",
        "EnrolCookie",
        "EnrolRequest",
        "EnrolReply",
        "JoinHello",
        "JoinChallenge",
        "JoinRequest",
        "Welcome",
        "Ack",
        "Rekey",
        "CatchUpRequest",
        "CatchUpReply",
        "SparePublication",
        "SpareAck",
        "Leave",
        "EvictionNotice",
        "GroupMessage",
        "started",
        "enrolled",
        "evicts",
        "activated",
        "received",
        "delivered",
    ] {
        assert!(kinds.iter().any(|kind| kind == wanted), "no {wanted}");
    }
}

#[test]
fn a_run_with_one_altered_field_is_refused() {
    let (table, run) = accepted();
    let mut tally = Tally::default();
    for (place, _) in places(&run, &table) {
        let Step::Sent { from, to, bytes } = &run.steps[place] else { continue };
        for (field, bytes) in wire::alterations(&table, bytes) {
            let mut steps = run.steps.clone();
            steps[place] = Step::Sent { from, to, bytes };
            let refused = refused(&run, &table, &steps);
            assert!(refused, "step {place} with another {field} is taken");
            tally.count(&field, refused);
        }
    }
    assert!(tally.0.len() > 80, "{} fields were altered: {:?}", tally.0.len(), tally.0.keys());
}

#[test]
fn a_run_without_one_of_its_steps_is_refused() {
    // The header says of an eviction what the notice says, and a drone goes on without knowing that its point has come.
    let needless = ["EvictionNotice", "SpareAck", "delivered", "received"];
    let (table, run) = accepted();
    let mut tally = Tally::default();
    for (place, kind) in bound(&run, &table) {
        let mut steps = run.steps.clone();
        steps.remove(place);
        tally.count(&kind, refused(&run, &table, &steps));
    }
    for (kind, (refused, all)) in tally.0.iter().filter(|(kind, _)| !needless.contains(&kind.as_str())) {
        assert!(*refused > 0, "none of {all} runs without {kind} is refused");
    }
}

#[test]
fn a_run_with_a_step_added_is_refused() {
    let (table, run) = accepted();
    let mut tally = Tally::default();
    for (place, kind) in places(&run, &table) {
        let added = match &run.steps[place] {
            // Somebody else sends the same.
            Step::Sent { from, to, bytes } => {
                let from = if *from == "edge-1" { "edge-0" } else { "edge-1" };
                Step::Sent { from, to: if from == *to { "edge-0" } else { to }, bytes: bytes.clone() }
            }
            step @ (Step::Enrolled(_) | Step::Activated { .. } | Step::Received { .. }) => step.clone(),
            // To be switched on, evicted, or told that all have acknowledged, twice, changes nothing.
            Step::Started(_) | Step::Evicts(_) | Step::Delivered { .. } => continue,
        };
        let mut steps = run.steps.clone();
        steps.insert(place + 1, added);
        let refused = refused(&run, &table, &steps);
        assert!(refused, "step {place}, {kind}, is taken from somebody else, or twice");
        tally.count(&kind, refused);
    }
    assert_eq!(tally.0.len(), 20, "{:?}", tally.0);
}

#[test]
fn a_run_with_a_step_played_again_is_refused() {
    let (table, run) = accepted();
    for (place, kind) in places(&run, &table) {
        if !["EnrolHello", "JoinHello", "JoinRequest", "CatchUpRequest", "CatchUpReply", "GroupMessage"]
            .contains(&kind.as_str())
        {
            continue;
        }
        let mut steps = run.steps.clone();
        steps.push(run.steps[place].clone());
        assert!(refused(&run, &table, &steps), "step {place}, {kind}, is taken twice");
    }
}

#[test]
fn a_run_with_a_step_before_its_cause_is_refused() {
    let (table, run) = accepted();
    let mut tally = Tally::default();
    for (place, kind) in places(&run, &table) {
        // What has no cause may come at any time.
        if ["started", "evicts"].contains(&kind.as_str()) {
            continue;
        }
        let mut steps = run.steps.clone();
        let step = steps.remove(place);
        steps.insert(0, step);
        let refused = refused(&run, &table, &steps);
        assert!(refused, "step {place}, {kind}, is taken before everything else");
        tally.count(&kind, refused);
    }
    assert_eq!(tally.0.len(), 21, "{:?}", tally.0);
}

#[test]
fn a_run_is_refused_by_a_table_with_one_altered_term() {
    let (table, run) = accepted();
    let taken: Vec<String> = table
        .alterations()
        .filter(|(_, altered)| check(&run, altered, &run.steps).is_ok())
        .map(|(name, _)| name)
        .collect();
    // What such a run has none of, or what the test does not compute: the core's encoding, rosters, the tree, deputies,
    // datagrams, and what is sealed or signed at an enrolment and a delivery.
    let elsewhere = [
        "hash answer",
        "hash asked",
        "hash chunk",
        "hash d0",
        "hash reply",
        "hash roster",
        "hash wraps",
        "kgc identity",
        "prf datagram",
        "prf group_key",
        "prf node",
        "prf node_step",
        "prf path",
        "prf up",
        "prf wrap_node",
        "proof secret_value",
        "proof token_key",
        "sign attributes",
        "sign datagram",
        "sign replica",
        "sign stand_by",
        "token token",
    ];
    assert_eq!(taken, elsewhere);
}

#[test]
fn table_has_the_labels_of_the_code() {
    let table = Table::read();
    let (listed, lacking) = table.labels();
    assert_eq!(listed.len(), 10, "{listed:?}");
    // Not modelled, or reserved.
    assert_eq!(lacking, ["welcome", "envelope", "ibe-release", "abke", "admission", "clock", "enrolled"]);
}
