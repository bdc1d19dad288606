//! Recorded runs against the rules of the models (`models/`): every message and every key of a run is one
//! that they allow, and a run with one step altered, left out, added or moved is refused.
//!
//! The runs of the testbed (`star`) have both strategies, over links and over a shared medium, with a leader
//! that restarts or is followed by its deputy, and members that restart, leave and are evicted; a second
//! factor, enrolment with one KGC and with a quorum, datagrams, and members without a name. The others are
//! random lives of the virtual world (`lives`), with the faults and the adversary of `sim check`. Who may send
//! what, and what binds which field, is read from `models/messages.tsv`; what is hashed, derived and signed
//! from `models/terms.tsv`, of which the models' constructors are made.

mod deduction;
mod equivocation;
mod lives;
mod recording;
mod rules;
mod star;
mod suite;
mod table;
mod wire;
mod wraps;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::OnceLock;
use std::time::Duration;

use quiver_ainq::Epoch;
use quiver_enrolment::threshold::EnrolmentMessage;
use quiver_message::Message;
use quiver_testbed::LinkFaults;

use crate::deduction::{readable, stepped, without_steps};
use crate::lives::{Kind, Lives};
use crate::recording::{Recording, Step};
use crate::rules::{AdmissionMessage, Factor, Prefix, check, follow, kind_of_datagram};
use crate::star::{Plan, record, record_random};
use crate::table::Table;

/// The kind of a step: what it is, or the name of its message.
fn kind(run: &Recording, table: &Table, step: &Step) -> String {
    match step {
        Step::Started(_) => "started".to_string(),
        Step::Sent { to, bytes, .. } => match wire::row(table, bytes) {
            Some(row) if row.name == "Rekey" && run.group.leads(to) => SHOWN.to_string(),
            row => row.map_or_else(String::new, |row| row.name.clone()),
        },
        Step::Injected { bytes, .. } => {
            format!("injected {}", wire::row(table, bytes).map_or("", |row| &row.name))
        }
        Step::Handed { bytes, .. } => {
            format!("handed {}", wire::row(table, bytes).map_or("", |row| &row.name))
        }
        Step::Enrolled(_) => "enrolled".to_string(),
        Step::Evicts(_) => "evicts".to_string(),
        Step::PeriodOver { .. } => "period over".to_string(),
        Step::Convicted { at, .. } if at.starts_with("kgc") => "convicted by a KGC".to_string(),
        Step::Convicted { .. } => "convicted".to_string(),
        Step::Activated { .. } => "activated".to_string(),
        Step::Received { .. } => "received".to_string(),
        Step::Delivered { .. } => "delivered".to_string(),
        Step::Datagram { bytes, .. } => kind_of_datagram(bytes).to_string(),
        Step::Heard { .. } => "heard".to_string(),
    }
}

/// Kind of a header that a leader is sent, without keys (§10.5).
const SHOWN: &str = "header for a leader";

/// Kinds of steps on which no rule depends: refusals, lists and deliveries are none of the rules.
const UNBOUND: [&str; 7] = [
    "Refusal",
    "RevocationQuery",
    "RevocationList",
    "DeliveryHello",
    "DeliveryChallenge",
    "DeliveryRequest",
    "DeliveryReply",
];

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

/// The run that is changed, of a group with this plan. It is accepted as it is, and recorded once for all
/// tests.
fn accepted(plan: Plan) -> (Table, &'static Recording) {
    static RUNS: [OnceLock<Recording>; Plan::ALL.len()] = [const { OnceLock::new() }; Plan::ALL.len()];
    let place = Plan::ALL.iter().position(|one| *one == plan).expect("one of all");
    let run = RUNS[place].get_or_init(|| {
        let run = record(0, LinkFaults::INSTANT, plan);
        accept(&format!("{plan:?}"), &Table::read(), &run);
        run
    });
    (Table::read(), run)
}

fn accept(what: &str, table: &Table, run: &Recording) {
    if let Err((place, why)) = check(run, table, &run.steps) {
        let step = &run.steps[place];
        panic!("{what}, step {place}, {}: {why}: {step:?}", kind(run, table, step));
    }
}

/// Places of the steps that the rules bind, with their kinds.
fn bound(run: &Recording, table: &Table) -> Vec<(usize, String)> {
    let kinds = run.steps.iter().map(|step| kind(run, table, step)).enumerate();
    kinds.filter(|(_, kind)| !UNBOUND.contains(&kind.as_str())).collect()
}

/// Returns true if a leader answers this, if it is a hello. A leader that is not in force answers none: a
/// hello to it leaves nothing that anything depends on.
fn is_answered(run: &Recording, step: &Step) -> bool {
    let decoded = |step: &Step| match step {
        Step::Sent { bytes, .. } => wire::decode(&run.deployment, bytes).ok(),
        _ => None,
    };
    let anonymous = |message: Option<&Message<_>>| message?.extension()?.ok();
    let message = decoded(step);
    let nonce = match (message.as_deref(), anonymous(message.as_deref())) {
        (Some(Message::JoinHello(hello)), _) => hello.nonce,
        (_, Some(AdmissionMessage::Hello(hello))) => hello.nonce,
        _ => return true,
    };
    run.steps.iter().any(|step| {
        let message = decoded(step);
        match (message.as_deref(), anonymous(message.as_deref())) {
            (Some(Message::JoinChallenge(challenge)), _) => challenge.nonce == nonce,
            (_, Some(AdmissionMessage::Challenge(challenge))) => challenge.nonce == nonce,
            _ => false,
        }
    })
}

/// The first of each kind, three at most of the flat run, one of each other.
fn places(run: &Recording, table: &Table, plan: Plan) -> Vec<(usize, String)> {
    let most = if plan == Plan::FLAT { 3 } else { 1 };
    let mut seen = BTreeMap::<String, usize>::new();
    let mut few = bound(run, table);
    few.retain(|(place, kind)| {
        if !is_answered(run, &run.steps[*place]) {
            return false;
        }
        let number = seen.entry(kind.clone()).or_default();
        *number += 1;
        *number <= most
    });
    few
}

/// Kinds of the run's steps without these.
fn kinds_but(run: &Recording, table: &Table, but: &[&str]) -> BTreeSet<String> {
    bound(run, table).into_iter().map(|(_, kind)| kind).filter(|kind| !but.contains(&kind.as_str())).collect()
}

impl Tally {
    /// Asserts that of each kind every changed run was refused, and that these are all kinds.
    fn all_refused(&self, plan: Plan, kinds: &BTreeSet<String>) {
        let taken: Vec<_> = self.0.iter().filter(|(_, (refused, all))| refused < all).collect();
        assert!(taken.is_empty(), "{plan:?}: refused, of all: {taken:?}");
        assert_eq!(&self.0.keys().cloned().collect::<BTreeSet<_>>(), kinds, "{plan:?}");
    }
}

const LOSSY: LinkFaults = LinkFaults { loss: 0.1, jitter: Duration::from_millis(20), ..LinkFaults::SOUND };

/// Runs of each kind under loss: one, or as many as the environment says.
fn lossy_seeds() -> u64 {
    std::env::var("QUIVER_MODEL_SEEDS").map_or(1, |seeds| seeds.parse().expect("a number of seeds"))
}

/// A run of a group with this plan under loss, recorded once for all tests.
fn under_loss(plan: Plan) -> &'static Recording {
    static RUNS: [OnceLock<Recording>; Plan::ALL.len()] = [const { OnceLock::new() }; Plan::ALL.len()];
    let place = Plan::ALL.iter().position(|one| *one == plan).expect("one of all");
    RUNS[place].get_or_init(|| record(FIRST_LOSSY, LOSSY, plan))
}

/// Seed of the first run under loss.
const FIRST_LOSSY: u64 = 4;

#[test]
fn recorded_runs_are_runs_of_the_models() {
    let table = Table::read();
    for plan in Plan::ALL {
        let run = accepted(plan).1;
        assert!(run.steps.len() > 100, "{} steps of seed 0", run.steps.len());
        accept(&format!("{plan:?}, seed {FIRST_LOSSY}"), &table, under_loss(plan));
        for seed in FIRST_LOSSY + 1..FIRST_LOSSY + lossy_seeds() {
            let run = record(seed, LOSSY, plan);
            // Under loss the quorum's and the datagrams' runs, which are short, may come to fewer.
            assert!(run.steps.len() > 50, "{plan:?}: {} steps of seed {seed}", run.steps.len());
            accept(&format!("{plan:?}, seed {seed}"), &table, &run);
        }
    }
}

#[test]
fn random_runs_are_runs_of_the_models() {
    let table = Table::read();
    let lossy = LinkFaults { loss: 0.05, ..LOSSY };
    for plan in [Plan::FLAT, Plan::TREE, Plan::SHARED] {
        for seed in 1..=lossy_seeds() {
            let faults = if seed % 2 == 0 { LinkFaults::INSTANT } else { lossy };
            let run = record_random(seed, faults, plan);
            accept(&format!("{plan:?}, seed {seed}"), &table, &run);
        }
    }
}

#[test]
fn runs_have_every_kind_of_step() {
    let common = [
        "EnrolHello",
        "EnrolCookie",
        "EnrolRequest",
        "Ack",
        "Rekey",
        "CatchUpRequest",
        "CatchUpReply",
        "GroupMessage",
        "started",
        "enrolled",
        "evicts",
        "activated",
        "received",
        "delivered",
    ];
    let named = [
        "JoinHello",
        "JoinChallenge",
        "JoinRequest",
        "SparePublication",
        "SpareAck",
        "Leave",
        "EvictionNotice",
    ];
    let anonymous =
        ["AdmissionHello", "AdmissionChallenge", "AdmissionProof", "AdmissionStep", "AdmissionLeave"];
    let quorum = ["EnrolCommitment", "EnrolSigning", "EnrolShare", "EnrolDone"];
    let datagrams = ["datagram", "signed datagram", "manifest", "announcement", "heard"];
    for plan in Plan::ALL {
        let (table, run) = accepted(plan);
        let kinds: BTreeSet<String> = run.steps.iter().map(|step| kind(run, &table, step)).collect();
        let welcome = (!plan.shared_medium).then_some("Welcome");
        let of_deputies = ["StandBy", "Replica"].into_iter().filter(|_| plan.deputy);
        let others = of_deputies
            .chain(named.into_iter().filter(|_| !plan.anonymous))
            .chain(anonymous.into_iter().filter(|_| plan.anonymous))
            .chain(quorum.into_iter().filter(|_| plan.quorum))
            .chain(["EnrolReply"].into_iter().filter(|_| !plan.quorum))
            .chain(datagrams.into_iter().filter(|_| plan.datagrams))
            .chain(["JoinCiphertext"].into_iter().filter(|_| plan.kem));
        for wanted in common.into_iter().chain(welcome).chain(others) {
            assert!(kinds.contains(wanted), "{plan:?}: no {wanted}");
        }
    }
}

#[test]
fn a_run_with_one_altered_field_is_refused() {
    let mut fields = BTreeSet::new();
    for plan in Plan::ALL {
        let (table, run) = accepted(plan);
        let (mut tally, mut prefix) = (Tally::default(), Prefix::new(run, &table));
        for (place, kind) in places(run, &table, plan) {
            let altered: Vec<(String, Step)> = match &run.steps[place] {
                Step::Sent { from, to, bytes } => {
                    let altered = wire::alterations(&table, bytes).into_iter();
                    altered.map(|(field, bytes)| (field, Step::Sent { from, to, bytes })).collect()
                }
                // Version, kind and epoch; slot; number or start; what is sealed; the tag.
                Step::Datagram { from, bytes } => {
                    let places = [("head", 0), ("slot", 1), ("number", 3), ("seal", bytes.len() / 2)];
                    let places = places.into_iter().chain([("tag", bytes.len() - 1)]);
                    let altered = places.map(|(field, at)| {
                        let mut bytes = bytes.clone();
                        bytes[at] ^= 1;
                        (format!("{kind}.{field}"), Step::Datagram { from, bytes })
                    });
                    altered.collect()
                }
                _ => continue,
            };
            prefix.extend(place);
            for (field, altered) in altered {
                let refused = prefix.refuses(iter::once(&altered).chain(&run.steps[place + 1..]));
                assert!(refused, "{plan:?}: step {place} with another {field} is taken");
                tally.count(&kind, refused);
                fields.insert(field);
            }
        }
        let events = ["started", "enrolled", "evicts", "activated", "received", "delivered", "heard"];
        tally.all_refused(plan, &kinds_but(run, &table, &events));
    }
    assert!(fields.len() > 100, "{} fields were altered: {fields:?}", fields.len());
}

#[test]
fn a_run_without_one_of_its_steps_is_refused() {
    // A message may be lost. What nothing after it depends on is missed by nobody: the header says of an
    // eviction what the notice says, and a drone goes on without knowing that its point has come. A header
    // that a leader is sent has no keys, and is in what members and deputies are sent, too. No rule depends
    // on a KGC's knowing that a drone is enrolled, on a manifest, or on who heard a datagram.
    let needless =
        ["EvictionNotice", "SpareAck", "EnrolDone", "manifest", "delivered", "received", "heard", SHOWN];
    for plan in Plan::ALL {
        let (table, run) = accepted(plan);
        let (mut tally, mut prefix) = (Tally::default(), Prefix::new(run, &table));
        let mut left_out = BTreeSet::new();
        for (place, kind) in bound(run, &table) {
            let most = if needless.contains(&kind.as_str()) { 1 } else { usize::MAX };
            let enough = if plan == Plan::FLAT { 3 } else { 1 };
            let (refused, all) = tally.0.get(&kind).copied().unwrap_or_default();
            if all >= most || refused > 0 && all >= enough {
                continue;
            }
            // With what repeats it, which would do as well. A copy of what was left out before is none of its
            // own.
            let same = |step: &Step| match (step, &run.steps[place]) {
                (Step::Sent { from, bytes, .. }, Step::Sent { from: sender, bytes: message, .. }) => {
                    from == sender && bytes == message
                }
                _ => false,
            };
            if let Step::Sent { from, bytes, .. } = &run.steps[place]
                && !left_out.insert((*from, bytes))
            {
                continue;
            }
            prefix.extend(place);
            tally.count(&kind, prefix.refuses(run.steps[place + 1..].iter().filter(|step| !same(step))));
        }
        // Nobody in that run asks because an epoch is missing.
        let idle = if plan.anonymous { "CatchUpReply" } else { "" };
        let needed = tally.0.iter().filter(|(kind, _)| !needless.contains(&kind.as_str()) && *kind != idle);
        let taken: Vec<_> = needed.filter(|(_, (refused, _))| *refused == 0).collect();
        assert!(taken.is_empty(), "{plan:?}: refused, of all: {taken:?}");
    }
}

#[test]
fn a_run_with_a_step_added_is_refused() {
    for plan in Plan::ALL {
        let (table, run) = accepted(plan);
        let (mut tally, mut prefix) = (Tally::default(), Prefix::new(run, &table));
        for (place, kind) in places(run, &table, plan) {
            // §10.5: every edge that has a header may send it to a leader.
            if kind == SHOWN {
                continue;
            }
            let added = match &run.steps[place] {
                // Somebody else sends the same.
                Step::Sent { from, to, bytes } => {
                    let from = if *from == "edge-1" { "edge-0" } else { "edge-1" };
                    let other = if from == "edge-0" { "edge-1" } else { "edge-0" };
                    Step::Sent { from, to: if from == *to { other } else { to }, bytes: bytes.clone() }
                }
                Step::Datagram { from, bytes } => {
                    let from = if *from == "edge-1" { "edge-0" } else { "edge-1" };
                    Step::Datagram { from, bytes: bytes.clone() }
                }
                step @ (Step::Enrolled(_)
                | Step::Activated { .. }
                | Step::Received { .. }
                | Step::Heard { .. }) => step.clone(),
                // To be switched on, evicted, or told that all have acknowledged, twice, changes nothing. The
                // adversary may send what it wants.
                Step::Started(_)
                | Step::Evicts(_)
                | Step::PeriodOver { .. }
                | Step::Convicted { .. }
                | Step::Delivered { .. }
                | Step::Injected { .. }
                | Step::Handed { .. } => continue,
            };
            prefix.extend(place + 1);
            let refused = prefix.refuses(iter::once(&added).chain(&run.steps[place + 1..]));
            assert!(refused, "{plan:?}: step {place}, {kind}, is taken from somebody else, or twice");
            tally.count(&kind, refused);
        }
        tally.all_refused(plan, &kinds_but(run, &table, &["started", "evicts", "delivered", SHOWN]));
    }
}

#[test]
fn a_run_with_a_step_played_again_is_refused() {
    for plan in Plan::ALL {
        let (table, run) = accepted(plan);
        let mut whole = Prefix::new(run, &table);
        whole.extend(run.steps.len());
        for (place, kind) in places(run, &table, plan) {
            let once = [
                "EnrolHello",
                "JoinHello",
                "JoinRequest",
                "CatchUpRequest",
                "CatchUpReply",
                "GroupMessage",
                "StandBy",
                "Replica",
                "AdmissionHello",
                "AdmissionProof",
                "AdmissionStep",
                "datagram",
                "signed datagram",
                "manifest",
                "announcement",
            ];
            if !once.contains(&kind.as_str()) {
                continue;
            }
            assert!(whole.refuses([&run.steps[place]]), "{plan:?}: step {place}, {kind}, is taken twice");
        }
    }
}

#[test]
fn a_run_with_a_step_before_its_cause_is_refused() {
    for plan in Plan::ALL {
        let (table, run) = accepted(plan);
        let (mut tally, start) = (Tally::default(), Prefix::new(run, &table));
        for (place, kind) in places(run, &table, plan) {
            // An event without a cause may come at any time.
            if ["started", "evicts"].contains(&kind.as_str()) {
                continue;
            }
            let (before, after) = (&run.steps[..place], &run.steps[place + 1..]);
            let refused = start.refuses(iter::once(&run.steps[place]).chain(before).chain(after));
            assert!(refused, "{plan:?}: step {place}, {kind}, is taken before everything else");
            tally.count(&kind, refused);
        }
        tally.all_refused(plan, &kinds_but(run, &table, &["started", "evicts"]));
    }
}

#[test]
fn what_is_captured_opens_no_epoch_before_its_own() {
    for plan in Plan::ALL {
        let (table, run) = accepted(plan);
        for run in [run, under_loss(plan)] {
            let rules =
                follow(run, &table, &run.steps).map_err(|(place, why)| format!("{place}: {why}")).unwrap();
            let (mut captured, mut found) = (0, 0);
            let mut members = BTreeMap::<Epoch, Vec<_>>::new();
            for ((node, epoch), held) in &rules.states {
                let state = stepped(held);
                let read = readable(&rules, &table, std::slice::from_ref(&state));
                let before: Vec<_> = read.iter().filter(|read| *read < epoch).collect();
                assert!(before.is_empty(), "{plan:?}: {node}, captured in {epoch}, reads {before:?}");
                captured += 1;
                // Had it not stepped its W, it would read the epochs since it joined: the deduction is not
                // blind.
                let read = readable(&rules, &table, &[without_steps(held)]);
                found += usize::from(held.first.1 < epoch.counter && read.iter().any(|read| read < epoch));
                members.entry(*epoch).or_default().push(state);
            }
            // A leader has the keys of all.
            for (epoch, states) in &members {
                let before: Vec<_> =
                    readable(&rules, &table, states).into_iter().filter(|read| read < epoch).collect();
                assert!(
                    before.is_empty(),
                    "{plan:?}: the leader, captured in {epoch}, gives {before:?} away"
                );
            }
            assert!(
                captured >= 10 && found >= 3,
                "{plan:?}: {captured} states, {found} found where nothing steps"
            );
        }
    }
}

/// An adversary that computed every T, and captured κ of a pair, opens the terms since then (SECURITY.md says
/// so), and none before.
#[test]
fn a_second_factor_that_is_captured_opens_no_term_before_its_own() {
    let (table, run) = accepted(Plan::KEM);
    let rules = follow(run, &table, &run.steps).map_err(|(place, why)| format!("{place}: {why}")).unwrap();
    let (mut opened, mut closed) = (0, 0);
    for pairs in rules.pairs.values() {
        let factors: Vec<(&Factor, _)> =
            pairs.iter().filter_map(|pair| Some((pair.factor.as_ref()?, &pair.w))).collect();
        assert_eq!(factors.len(), pairs.len(), "a pair without a second factor");
        for (captured, _) in &factors {
            for (factor, w) in factors.iter().filter(|(factor, _)| factor.leader == captured.leader) {
                let leader = &rules.keys[captured.leader];
                let found = factor.computed_with(&table, &captured.kappa, leader).expose() == w.expose();
                let before = factor.kappa.g < captured.kappa.g;
                assert!(!before || !found, "a term before is open");
                opened += usize::from(found);
                closed += usize::from(before);
            }
        }
    }
    assert!(opened >= 4 && closed >= 2, "{opened} opened, {closed} terms before");
}

#[test]
fn what_a_leader_writes_has_no_secret_of_the_group() {
    for plan in Plan::ALL {
        let (table, run) = accepted(plan);
        let rules =
            follow(run, &table, &run.steps).map_err(|(place, why)| format!("{place}: {why}")).unwrap();
        let written: BTreeSet<&[u8]> = run.written.iter().flat_map(|record| record.windows(32)).collect();
        assert!(written.len() > 900, "{plan:?}: {} strings", written.len());
        // D of the newest epoch is there, so that secrets would be found.
        assert!(rules.made.values().any(|made| written.contains(&made.digest[..])), "{plan:?}: no digest");
        let keys = rules.made.values().filter_map(|made| made.key.as_ref());
        let pairs = rules.states.values().flat_map(|held| [&held.w, &held.first.0]);
        let nodes = rules.states.values().flat_map(|held| held.path.iter().flatten());
        for secret in keys.chain(pairs).chain(nodes) {
            assert!(!written.contains(&secret.expose()[..]), "{plan:?}: a secret is in a leader's record");
        }
        let admitted = rules.admitted().map(|secret| &secret.expose()[..]);
        assert!(
            run.secrets
                .iter()
                .map(|secret| &secret[..])
                .chain(admitted)
                .all(|secret| !written.contains(secret)),
            "{plan:?}: a pairwise secret"
        );
    }
}

#[test]
fn a_run_is_refused_by_a_table_with_one_altered_term() {
    // The outcome depends on the terms alone that the rules ask for in this run.
    let runs = Plan::ALL.map(|plan| {
        let (table, run) = accepted(plan);
        accept(&format!("{plan:?}"), &table, run);
        (run, table.used())
    });
    let taken: Vec<String> = Table::read()
        .alterations()
        .filter(|(name, altered)| {
            let mut of = runs.iter().filter(|(_, used)| used.contains(name));
            of.all(|(run, _)| check(run, altered, &run.steps).is_ok())
        })
        .map(|(name, _)| name)
        .collect();
    // Events that such runs have none of, deliveries, envelopes and what KGCs sign beside keys, or what the test
    // does not compute: the core's encoding, rosters, operators' signatures. To the models κ is one term; the
    // code makes it of two (`hash kem`).
    let elsewhere = [
        "hash answer",
        "hash asked",
        "hash content",
        "hash d0",
        "hash encapsulated",
        "hash heading",
        "hash roster",
        "hash session",
        "hash unattested",
        "kgc parameters",
        "kgc revocation",
        "prf coins",
        "prf first",
        "prf kappa",
        "prf mask",
        "prf message",
        "prf next",
        "sign attributes",
        "sign envelope",
        "sign release",
        "token token",
    ];
    assert_eq!(taken, elsewhere);
}

#[test]
fn table_has_the_labels_of_the_code() {
    let table = Table::read();
    let (listed, lacking) = table.labels();
    assert_eq!(listed.len(), 16, "{listed:?}");
    // Not modelled, or reserved.
    assert_eq!(lacking, ["welcome", "clock"]);
}

/// Lives of each kind: the first, or as many as the environment says.
fn lives_of_each() -> u64 {
    std::env::var("QUIVER_MODEL_LIVES").map_or(1, |lives| lives.parse().expect("a number of lives"))
}

/// Seed of the first life.
const FIRST_LIFE: u64 = 2;

/// The first life of each kind, of which tests change steps, recorded once for all of them.
fn changed_lives() -> &'static [(String, Recording)] {
    static LIVES: OnceLock<Vec<(String, Recording)>> = OnceLock::new();
    LIVES.get_or_init(|| {
        let first = |kind| (format!("{kind:?}, seed {FIRST_LIFE}"), Lives::new(kind).record(FIRST_LIFE));
        Kind::ALL.map(first).into()
    })
}

#[test]
fn random_lives_are_runs_of_the_models() {
    let table = Table::read();
    let mut refused = Vec::new();
    let mut follow = |what: &str, life: &Recording| {
        assert!(life.steps.len() > 100, "{what}: {} steps", life.steps.len());
        if let Err((place, why)) = check(life, &table, &life.steps) {
            refused.push(format!("{what}, step {place}, {:?}: {why}", life.steps[place]));
        }
    };
    changed_lives().iter().for_each(|(what, life)| follow(what, life));
    let others: Vec<u64> = (FIRST_LIFE + 1..FIRST_LIFE + lives_of_each()).collect();
    for kind in Kind::ALL.into_iter().filter(|_| !others.is_empty()) {
        let lives = Lives::new(kind);
        for seed in &others {
            follow(&format!("{kind:?}, seed {seed}"), &lives.record(*seed));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Places of steps with their kinds.
type Places = Vec<(usize, String)>;

/// The first place of each kind of step that the rules bind, in the first life that has it.
fn first_places() -> &'static [(&'static str, &'static Recording, Places)] {
    static FIRST: OnceLock<Vec<(&str, &Recording, Places)>> = OnceLock::new();
    FIRST.get_or_init(|| {
        let (table, mut seen) = (Table::read(), BTreeSet::new());
        let first = |(what, life): &'static (String, Recording)| {
            let mut places = bound(life, &table);
            places.retain(|(place, kind)| {
                !(kind.starts_with("injected") || kind.starts_with("handed") || seen.contains(kind))
                    && is_answered(life, &life.steps[*place])
                    && seen.insert(kind.clone())
            });
            (&what[..], life, places)
        };
        changed_lives().iter().map(first).collect()
    })
}

/// Kinds of steps that some life has.
fn kinds_of_lives(but: &[&str]) -> BTreeSet<String> {
    let kinds = first_places().iter().flat_map(|(_, _, places)| places).map(|(_, kind)| kind.clone());
    kinds.filter(|kind| !but.contains(&&kind[..])).collect()
}

#[test]
fn a_random_life_with_one_altered_field_is_refused() {
    let table = Table::read();
    let mut tally = Tally::default();
    for (what, life, places) in first_places() {
        let mut prefix = Prefix::new(life, &table);
        for (place, kind) in places {
            let place = *place;
            if !matches!(life.steps[place], Step::Sent { .. }) {
                continue;
            }
            for _ in 0..prefix.refuses_alterations(what, place) {
                tally.count(kind, true);
            }
        }
    }
    let events = ["started", "enrolled", "evicts", "period over", "activated", "received", "delivered"];
    assert_eq!(tally.0.keys().cloned().collect::<BTreeSet<_>>(), kinds_of_lives(&events));
    assert!(tally.0.len() >= 25, "{:?}", tally.0);
}

#[test]
fn a_random_life_with_a_step_added_or_before_its_cause_is_refused() {
    let table = Table::read();
    let (mut added, mut moved) = (Tally::default(), Tally::default());
    for (what, life, places) in first_places() {
        let (mut prefix, start) = (Prefix::new(life, &table), Prefix::new(life, &table));
        for (place, kind) in places {
            let place = *place;
            // An event without a cause may come at any time, and every edge that has a header may send it to a leader.
            if ["started", "evicts", "period over"].contains(&kind.as_str()) {
                continue;
            }
            let (before, after) = (&life.steps[..place], &life.steps[place + 1..]);
            let refused = start.refuses(iter::once(&life.steps[place]).chain(before).chain(after));
            assert!(refused, "{what}: step {place}, {kind}, is taken before everything else");
            moved.count(kind, refused);
            let again = match &life.steps[place] {
                // A stranger sends the same.
                Step::Sent { to, bytes, .. } if kind != SHOWN => {
                    Step::Sent { from: "edge-99", to, bytes: bytes.clone() }
                }
                step @ (Step::Enrolled(_) | Step::Activated { .. }) => step.clone(),
                // A KGC that forgot what it did not sign may be shown it again.
                step @ Step::Convicted { .. } if kind == "convicted" => step.clone(),
                _ => continue,
            };
            prefix.extend(place + 1);
            let refused = prefix.refuses(iter::once(&again).chain(after));
            assert!(refused, "{what}: step {place}, {kind}, is taken from a stranger, or twice");
            added.count(kind, refused);
        }
    }
    assert!(added.0.len() >= 25 && moved.0.len() >= 28, "{:?} {:?}", added.0, moved.0);
}

/// Lives of these kinds and seeds.
fn few_lives(
    kinds: impl Fn(&Kind) -> bool,
    seeds: &[u64],
    record: impl Fn(&Lives, u64) -> Recording,
) -> Vec<(String, Recording)> {
    let mut few = Vec::new();
    for kind in Kind::ALL.into_iter().filter(kinds) {
        let lives = Lives::new(kind);
        let named = |seed: &u64| (format!("{kind:?}, seed {seed}"), record(&lives, *seed));
        few.extend(seeds.iter().map(named));
    }
    few
}

#[test]
fn a_life_without_what_a_hostile_relay_handed_on_or_with_another_of_it_is_refused() {
    let table = Table::read();
    let (mut left_out, mut altered) = (Tally::default(), Tally::default());
    for (what, life) in few_lives(Kind::has_relays, &[2, 3, 6, 9, 14, 15], Lives::record) {
        let mut prefix = Prefix::new(&life, &table);
        for (place, step) in life.steps.iter().enumerate() {
            let Step::Handed { from, to, bytes } = step else { continue };
            let kind = kind(&life, &table, step);
            let (refused, all) = left_out.0.get(&kind).copied().unwrap_or_default();
            if refused > 0 || all >= 12 || UNBOUND.iter().any(|unbound| kind.ends_with(unbound)) {
                continue;
            }
            // With what an honest relay hands to the same drone, or to others of the leader.
            let same = |step: &&Step| match step {
                Step::Handed { bytes: other, .. } | Step::Sent { bytes: other, .. } => other == bytes,
                _ => false,
            };
            let after: Vec<&Step> = life.steps[place + 1..].iter().filter(|step| !same(step)).collect();
            prefix.extend(place);
            let refused = prefix.refuses(after.iter().copied());
            left_out.count(&kind, refused);
            // §21.1: it may alter what it likes, and nobody follows by that.
            for (field, bytes) in wire::alterations(&table, bytes).into_iter().filter(|_| refused) {
                let other = Step::Handed { from, to, bytes };
                let refused = prefix.refuses(iter::once(&other).chain(after.iter().copied()));
                assert!(refused, "{what}: step {place} with another {field} is followed");
                altered.count(&kind, refused);
            }
        }
    }
    let refused = |tally: &Tally| -> BTreeSet<String> {
        tally.0.iter().filter(|(_, (refused, _))| *refused > 0).map(|(kind, _)| kind.clone()).collect()
    };
    let needed = ["EquivocationProof", "GroupMessage", "JoinChallenge", "Rekey", "ShortRekey"];
    let needed = needed.map(|kind| format!("handed {kind}"));
    assert_eq!(refused(&left_out), BTreeSet::from(needed), "{:?}", left_out.0);
    assert_eq!(refused(&altered), refused(&left_out));
    assert!(altered.0.values().map(|(refused, _)| refused).sum::<usize>() >= 40, "{:?}", altered.0);
}

#[test]
fn no_share_of_a_kgc_that_lies_makes_a_key_and_one_altered_on_its_way_is_refused() {
    let table = Table::read();
    let (mut wrong, mut changed) = (0, 0);
    // Lives in which drones enrol, under faults.
    for (what, life) in few_lives(Kind::has_a_quorum, &[5, 9], Lives::record_with_a_liar) {
        let shares = life.lies.iter().filter_map(|bytes| {
            let message = wire::decode(&life.deployment, bytes).ok()?;
            match message.extension() {
                Some(Ok(EnrolmentMessage::Share(share))) => Some(share.share),
                _ => None,
            }
        });
        let rules =
            follow(&life, &table, &life.steps).map_err(|(place, why)| format!("{what}: {place}: {why}"));
        let (all, fit) = rules.unwrap().keys_of(&shares.collect());
        // It may not have known yet whom it told, and told the truth.
        wrong += all - fit;
        let mut prefix = Prefix::new(&life, &table);
        for (place, step) in life.steps.iter().enumerate() {
            let Step::Sent { bytes, .. } = step else { continue };
            if changed >= 12 || !life.lies.contains(bytes) || kind(&life, &table, step) != "EnrolShare" {
                continue;
            }
            changed += prefix.refuses_alterations(&what, place);
        }
    }
    assert!(wrong >= 1 && changed >= 2, "{wrong} sums that are no key, {changed} shares altered");
}

#[test]
fn a_random_life_without_one_of_its_steps_is_refused() {
    // As of the runs of the testbed; and of lives with faults of every kind no rule needs every single answer.
    let needed = [
        "EnrolHello",
        "EnrolCookie",
        "EnrolRequest",
        "EnrolReply",
        "EnrolCommitment",
        "EnrolSigning",
        "EnrolShare",
        "enrolled",
        "JoinHello",
        "JoinChallenge",
        "JoinRequest",
        "JoinCiphertext",
        "Welcome",
        "Ack",
        "Rekey",
        "GroupMessage",
        "SparePublication",
        "StandBy",
        "Replica",
        "AdmissionHello",
        "AdmissionChallenge",
        "AdmissionProof",
        "AdmissionStep",
        "AdmissionLeave",
        "period over",
        "activated",
        "started",
    ];
    let table = Table::read();
    let mut tally = Tally::default();
    for (_, life) in changed_lives() {
        let mut prefix = Prefix::new(life, &table);
        for (place, kind) in bound(life, &table) {
            let (refused, all) = tally.0.get(&kind).copied().unwrap_or_default();
            if !needed.contains(&kind.as_str()) || refused > 0 || all >= 24 {
                continue;
            }
            // With what repeats it.
            let same = |step: &Step| match (step, &life.steps[place]) {
                (Step::Sent { from, bytes, .. }, Step::Sent { from: sender, bytes: message, .. }) => {
                    from == sender && bytes == message
                }
                _ => false,
            };
            prefix.extend(place);
            tally.count(&kind, prefix.refuses(life.steps[place + 1..].iter().filter(|step| !same(step))));
        }
    }
    let refused: BTreeSet<&str> =
        tally.0.iter().filter(|(_, (refused, _))| *refused > 0).map(|(kind, _)| &kind[..]).collect();
    assert_eq!(refused, BTreeSet::from(needed), "{:?}", tally.0);
}
