//! Every scheme over lossy radios, and what an adversary that knows none of them finds.

use quiver_contenders::probe::{self, probe};
use quiver_contenders::schemes::{SchemeKind, Setting};
use quiver_contenders::{Arena, ArenaCarrier, ArenaEvent, Outcome};
use quiver_world::radio::{Loss, Preset};

fn radio(preset: Preset, loss: f64) -> ArenaCarrier {
    ArenaCarrier::Radio {
        profile: Box::new(preset.profile().with_coding()),
        loss: Loss::independent(loss).unwrap(),
    }
}

/// Plays all events of so many members. Every member must have the newest key after each.
fn play(scheme: SchemeKind, link: &ArenaCarrier, members: u32, seed: u64) -> Vec<(ArenaEvent, Outcome)> {
    let newcomers = ArenaEvent::newcomers(members);
    let setting = Setting {
        members: members + newcomers,
        founders: members,
        pace: link.pace(),
        shared_medium: link.is_shared(),
        seed,
    };
    let mut contender = scheme.build(setting).unwrap();
    let mut arena = Arena::new(contender.as_mut(), link.clone(), members, newcomers, seed).unwrap();
    let mut outcomes = Vec::new();
    for event in ArenaEvent::ALL.into_iter().filter(|event| scheme.has(*event)) {
        let outcome = arena.play(event).unwrap();
        assert_eq!(outcome.complaints, Vec::<String>::new(), "{scheme:?} {event:?}");
        assert_eq!(outcome.reached, outcome.members, "{scheme:?} {event:?} {outcome:?}");
        assert!(outcome.until.is_sorted(), "{scheme:?} {event:?} {outcome:?}");
        outcomes.push((event, outcome));
    }
    assert!(arena.violations().is_empty(), "{scheme:?} {:?}", arena.violations());
    let counts: Vec<usize> = outcomes.iter().map(|(_, outcome)| outcome.members).collect();
    let (n, tenth) = (members as usize, members.div_ceil(10) as usize);
    assert_eq!(counts[..6], [n, n, n - 1, n, n - tenth, n]);
    outcomes
}

#[test]
fn every_scheme_delivers_every_event_over_lossy_radios_and_streams() {
    for scheme in SchemeKind::ALL {
        play(*scheme, &radio(Preset::Ieee802154, 0.1), 12, 1);
        play(
            *scheme,
            &ArenaCarrier::Streams { delay: std::time::Duration::from_millis(10), loss: 0.1 },
            12,
            2,
        );
    }
}

#[test]
fn without_loss_nothing_is_sent_again_by_schemes_with_the_common_delivery() {
    for scheme in [SchemeKind::Pairwise, SchemeKind::GroupOscore] {
        for (event, outcome) in play(scheme, &radio(Preset::Ieee802154, 0.0), 10, 3) {
            // A fragment to each, and a report of each.
            assert_eq!(outcome.frames, 2 * outcome.members as u64, "{scheme:?} {event:?}");
        }
    }
}

#[test]
fn a_run_repeats_itself() {
    let bytes = |_: u32| -> Vec<u64> {
        let outcomes = play(SchemeKind::Lkh, &radio(Preset::Ieee802154, 0.05), 10, 4);
        outcomes.iter().map(|(_, outcome)| outcome.bytes).collect()
    };
    assert_eq!(bytes(1), bytes(2));
}

#[test]
fn the_documented_flaws_of_ainq_as_published_are_found_without_knowing_it() {
    let mut contender = SchemeKind::AinqAsPublished.build(probe::setting(1)).unwrap();
    let findings = probe(contender.as_mut(), 1).unwrap();
    assert!(findings.masks_repeat, "{findings:?}");
    assert!(findings.takes_foreign_keys, "{findings:?}");
    assert!(findings.goes_back, "{findings:?}");
    assert!(findings.recordings_open, "{findings:?}");
    assert!(!findings.is_sound());
}

#[test]
fn no_other_scheme_has_them() {
    for scheme in SchemeKind::ALL.iter().filter(|scheme| **scheme != SchemeKind::AinqAsPublished) {
        let mut contender = scheme.build(probe::setting(1)).unwrap();
        let findings = probe(contender.as_mut(), 1).unwrap();
        assert!(findings.is_sound(), "{scheme:?} {findings:?}");
        // Ephemeral exchanges alone keep recordings closed.
        let ours = [SchemeKind::QuiverFlat, SchemeKind::QuiverTree, SchemeKind::QuiverTreeMlKem];
        let ephemeral = scheme.is_mls() || ours.contains(scheme);
        assert_eq!(findings.recordings_open, !ephemeral, "{scheme:?}");
    }
}
