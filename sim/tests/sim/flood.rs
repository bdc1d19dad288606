//! Floods of a small group, in this process. Times count on a quiet machine only.

use std::time::Duration;

use quiver_report::Progress;
use quiver_sim::live::flood::{self, Flood, FloodPlan, FloodReport};

/// Floods a group until the floods are to be seen: on a busy machine they take more re-keys to come up.
fn flooded(floods: &[Flood], seen: impl Fn(&FloodReport) -> bool) -> FloodReport {
    for rekeys in [4, 20] {
        let report = flooded_for(floods, rekeys);
        if seen(&report) {
            return report;
        }
    }
    flooded_for(floods, 100)
}

fn flooded_for(floods: &[Flood], rekeys: u32) -> FloodReport {
    let plan = FloodPlan {
        members: 12,
        anonymous: 4,
        joiners: 3,
        floods: floods.to_vec(),
        attackers: 2,
        rate: 40,
        identities: 16,
        rekeys,
        pause: Duration::from_millis(500),
        timeout: Duration::from_secs(60),
        ..FloodPlan::default()
    };
    let report = flood::run(&plan, &Progress::hidden()).unwrap();
    assert_eq!(report.violations, Vec::<String>::new());
    assert_eq!(report.lines.len(), 1 + floods.len());
    for line in &report.lines {
        assert_eq!(line.missing, 0, "{}", line.name());
        assert!(line.latencies.is_some(), "{}", line.name());
        assert_eq!(line.growth.is_some(), line.flood.is_some(), "{}", line.name());
    }
    report
}

#[test]
fn members_have_every_key_while_strangers_publish_and_ask_to_join() {
    let penalised = |report: &FloodReport| report.lines.iter().map(|line| line.penalised).sum::<u64>();
    let least = |flood| if flood == Some(Flood::Joins) { 1 } else { 20 };
    let report = flooded(&[Flood::Gossip, Flood::Joins], |report| {
        let heard = report.lines[1..].iter().all(|line| line.messages >= least(line.flood));
        let refused = report.lines.last().is_some_and(|joins| joins.refused > 0);
        heard && refused && penalised(report) >= 16
    });
    let quiet = report.lines.first().unwrap();
    assert_eq!((quiet.members, quiet.messages, quiet.answers), (12, 0, 0));
    for line in &report.lines[1..] {
        assert_eq!(line.members, 12, "{}", line.name());
        assert!(line.messages >= least(line.flood), "{}: {}", line.name(), line.messages);
        // One answer to one question, and none of it from the group.
        assert!(line.answers <= 2 * line.messages, "{}: {} answers", line.name(), line.answers);
    }
    // A forger of joins is disconnected at once and comes back under another key, until its address's
    // allowance is spent. Beyond it are penalties for messages on connections that were open, and one that is
    // allowed every 37.5 s.
    let joins = report.lines.last().unwrap();
    let seconds: f64 = report.lines.iter().map(|line| line.seconds).sum();
    let allowed = 24 + seconds as u64 / 37;
    assert!((16..=allowed).contains(&penalised(&report)), "{} of {allowed}", penalised(&report));
    assert!(joins.refused > 0 && joins.identities >= joins.penalised + joins.refused / 4, "{joins:?}");
}

#[test]
fn members_have_every_key_while_forged_keys_are_shown_and_drones_come_without_a_name() {
    let report = flooded(&[Flood::Keys, Flood::Anonymous], |report| {
        report.lines.last().is_some_and(|keys| keys.messages > 2 && keys.penalised > 2)
    });
    // New drones come before the forgers, with whom they share an address.
    let [quiet, anonymous, keys] = &report.lines[..] else { panic!("{:?}", report.lines) };
    assert!(quiet.anonymous && quiet.members == 4);
    assert!(keys.messages > 2 && keys.penalised > 2 && keys.joined == 0, "{keys:?}");
    assert!(keys.penalised <= 24 + keys.seconds as u64 / 37 && keys.identities >= keys.penalised, "{keys:?}");
    assert_eq!((anonymous.penalised, anonymous.refused), (0, 0), "{anonymous:?}");
    assert_eq!((anonymous.members, anonymous.messages), (4, 0));
    assert!(anonymous.joined <= 3);
}
