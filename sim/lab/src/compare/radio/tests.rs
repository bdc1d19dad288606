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
    let comparison = measure(&plan(Carrier::Radio(Preset::Ieee802154), 0.05, vec![20]), &mut ()).unwrap();
    assert!(comparison.cuts.is_empty() && comparison.violations.is_empty(), "{comparison:?}");
    for scheme in SchemeKind::ALL {
        for event in Event::ALL.into_iter().filter(|event| has(scheme, *event)) {
            let outcome = comparison.outcome(20, scheme, event).unwrap();
            assert_eq!(outcome.reached, outcome.members, "{scheme:?} {event:?} {outcome:?}");
            assert!(outcome.until[2].is_some() && outcome.bytes > 0 && outcome.frames > 0);
            assert!(outcome.airtime > Duration::ZERO && outcome.energy > outcome.controller_energy);
            assert_eq!(outcome.complaints, Vec::<String>::new(), "{scheme:?} {event:?}");
        }
    }
    let report = report(&comparison, making());
    assert!(report.lead[0].starts_with("Quiver loses in ") || report.lead[0].starts_with("In no quantity"));
    assert_eq!(report.tables().count(), Event::ALL.len() + 2);
    let rows: Vec<usize> = report.tables().map(|table| table.rows.len()).collect();
    assert_eq!(rows, [7, 7, 7, 7, 7, 7, 6, 7, 7]);
    assert!(report.page().unwrap().contains("needs a leader?"));
}

#[test]
fn streams_carry_every_scheme_too() {
    let comparison = play_all(&plan(Carrier::Tcp, 0.02, vec![10]), &mut ()).unwrap();
    for row in &comparison.rows {
        assert_eq!(row.outcome.reached, row.outcome.members, "{row:?}");
    }
}

#[test]
fn spent_budget_cuts_a_scheme() {
    let none = RadioPlan { budget: Duration::ZERO, ..plan(Carrier::Tcp, 0.0, vec![8, 9]) };
    let comparison = play_all(&none, &mut ()).unwrap();
    assert!(comparison.rows.is_empty());
    assert_eq!(comparison.cuts.len(), SchemeKind::ALL.len());
    assert!(report(&comparison, making()).highlights.is_empty());
}

#[test]
fn carriers_have_names() {
    assert_eq!("tcp".parse(), Ok(Carrier::Tcp));
    assert_eq!("lora-sf7".parse::<Carrier>().unwrap().to_string(), "lora-sf7");
    assert!("smoke".parse::<Carrier>().unwrap_err().contains("or tcp"));
}
