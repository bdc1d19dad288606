//! Small groups of all schemes, over a radio that loses frames.

use std::time::SystemTime;

use super::*;
use crate::ainq::Making;

fn plan(carrier: Carrier, loss: f64, drones: Vec<u32>) -> RadioPlan {
    let (schemes, budget) = (SchemeKind::ALL.to_vec(), Duration::from_secs(600));
    RadioPlan { carrier, loss, drones, schemes, budget, seed: 1 }
}

fn making() -> Making {
    Making { date: SystemTime::UNIX_EPOCH, version: "0.1.0".into(), command: "cargo lab compare".into() }
}

#[test]
fn every_scheme_gives_everybody_the_key_over_a_lossy_radio_and_the_report_says_what_loses_first() {
    let comparison =
        measure(&plan(Carrier::Radio(Preset::Ieee802154), 0.05, vec![20]), &mut (), &mut |_| ()).unwrap();
    assert!(comparison.cuts.is_empty() && comparison.violations.is_empty(), "{comparison:?}");
    for scheme in SchemeKind::ALL {
        for event in ArenaEvent::ALL.into_iter().filter(|event| scheme.has(*event)) {
            let outcome = comparison.outcome(20, *scheme, event).unwrap();
            assert_eq!(outcome.reached, outcome.members, "{scheme:?} {event:?} {outcome:?}");
            assert!(outcome.until[2].is_some() && outcome.bytes > 0 && outcome.frames > 0);
            assert!(outcome.airtime > Duration::ZERO && outcome.energy > outcome.controller_energy);
            assert_eq!(outcome.complaints, Vec::<String>::new(), "{scheme:?} {event:?}");
        }
    }
    let report = report(&comparison, making());
    assert!(report.lead[0].starts_with("Quiver loses in ") || report.lead[0].starts_with("In no quantity"));
    assert_eq!(report.tables().count(), ArenaEvent::ALL.len() + 2);
    let rows: Vec<usize> = report.tables().map(|table| table.rows.len()).collect();
    let all = SchemeKind::ALL.len();
    let losing = SchemeKind::ALL.iter().filter(|scheme| !scheme.is_mls()).count();
    assert_eq!(rows, [all, all, all, all, all, all, losing, all, all]);
    assert!(report.page().unwrap().contains("needs a leader?"));
}

#[test]
fn streams_carry_every_scheme_too_and_growth_is_that_between_the_sizes() {
    let comparison = play_all(&plan(Carrier::Tcp, 0.02, vec![10, 40]), &mut (), &mut |_| ()).unwrap();
    let report = report(&comparison, making());
    let growth = report.tables().find(|table| table.slug == "radio-growth").unwrap();
    assert_eq!(growth.rows.len(), 2 * SchemeKind::ALL.len());
    let bytes =
        |drones| comparison.outcome(drones, SchemeKind::Pairwise, ArenaEvent::Expire).unwrap().bytes as f64;
    let exponent = (bytes(40) / bytes(10)).log(4.0);
    assert!((0.9..1.1).contains(&exponent), "{exponent}");
    let of = growth.rows.iter().find(|row| row[0] == "pairwise, sealed".into()).unwrap();
    assert!(
        matches!(of[4], quiver_report::CellValue::Number(shown) if (shown - exponent).abs() < 1e-9),
        "{of:?}"
    );
    for row in &comparison.rows {
        assert_eq!(row.outcome.reached, row.outcome.members, "{row:?}");
    }
}

#[test]
fn spent_budget_cuts_a_scheme() {
    let none = RadioPlan { budget: Duration::ZERO, ..plan(Carrier::Tcp, 0.0, vec![8, 9]) };
    let comparison = play_all(&none, &mut (), &mut |_| ()).unwrap();
    assert!(comparison.rows.is_empty());
    assert_eq!(comparison.cuts.len(), SchemeKind::ALL.len());
    assert!(report(&comparison, making()).highlights.is_empty());
}

#[test]
fn budget_that_ends_within_an_event_cuts_it_and_the_report_says_so() {
    let link = plan(Carrier::Radio(Preset::Ieee802154), 0.02, vec![60]).link().unwrap();
    let (drones, newcomers) = (60, ArenaEvent::newcomers(60));
    let setting = Setting {
        members: drones + newcomers,
        founders: drones,
        pace: link.pace(),
        shared_medium: true,
        seed: 1,
    };
    let mut contender = SchemeKind::Pairwise.build(setting).unwrap();
    let mut arena = Arena::new(contender.as_mut(), link, drones, newcomers, 1).unwrap();
    arena.limit_processor_time(Duration::from_nanos(1));
    let outcome = arena.play(ArenaEvent::Form).unwrap();
    // It began: the controller made a key, and not everybody had it.
    assert!(outcome.is_cut && arena.keys().len() == 1 && outcome.reached < outcome.members, "{outcome:?}");
    let mut comparison = play_all(&plan(Carrier::Tcp, 0.0, vec![8]), &mut (), &mut |_| ()).unwrap();
    comparison.rows.retain(|row| row.scheme != SchemeKind::Pairwise || row.event == ArenaEvent::Form);
    comparison.cuts.push(RadioCut { drones: 8, scheme: SchemeKind::Pairwise, event: ArenaEvent::Expire });
    let report = report(&comparison, making());
    let notes: Vec<&[String]> = report.tables().map(|table| &table.notes[..]).collect();
    let note = "pairwise, sealed: cut at 8 drones when the key expires, because 600 s of processor time were used up.";
    assert!(notes[0].is_empty() && notes[1] == [note] && notes[5].contains(&note.to_owned()), "{notes:?}");
}

#[test]
fn carriers_have_names() {
    assert_eq!("tcp".parse(), Ok(Carrier::Tcp));
    assert_eq!("lora-sf7".parse::<Carrier>().unwrap().to_string(), "lora-sf7");
    assert!("smoke".parse::<Carrier>().unwrap_err().contains("or tcp"));
}
