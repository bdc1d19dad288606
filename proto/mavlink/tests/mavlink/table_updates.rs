//! The table of system ids from a leader to its members: changes as differences, the whole for whoever lacks the
//! base, and nothing of what contradicts itself.

use std::sync::Arc;

use proptest::prelude::*;
use quiver_mavlink::{
    IssuedSystemIds, MavlinkError, SystemIds, TableIssuer, TableMessage, TableOutcome, TableReceiver,
};

const TERM: u64 = 7;

fn table(grants: &[(&str, u32, Option<u32>)]) -> Arc<SystemIds> {
    let mut table = SystemIds::new();
    for (name, id, slot) in grants {
        table.grant(name, *id).unwrap();
        table.set_slot(name, *slot);
    }
    Arc::new(table)
}

/// Members in slots from 0 on, with ids from 1,000 on.
fn large(members: u32) -> SystemIds {
    let mut table = SystemIds::new();
    for member in 0..members {
        let name = format!("drone-{member:06}");
        table.grant(&name, 1_000 + member).unwrap();
        table.set_slot(&name, Some(member));
    }
    table
}

fn receive(receiver: &mut TableReceiver, messages: &[Vec<u8>]) -> Option<SystemIds> {
    let mut taken = None;
    for message in messages {
        if let TableOutcome::Taken(table) = receiver.receive(Some(TERM), message).unwrap() {
            taken = Some(table);
        }
    }
    taken
}

#[test]
fn a_narrow_table_is_sent_as_older_ends_read_it() {
    let mut issuer = TableIssuer::new(3);
    let narrow = table(&[("a", 255, None)]);
    assert!(issuer.set(TERM, &narrow) && !issuer.set(TERM, &narrow) && issuer.is_narrow());
    let expected = IssuedSystemIds { term: TERM, number: 3, table: (*narrow).clone() }.encode();
    for messages in [issuer.change(), issuer.announcement(), issuer.whole()] {
        assert_eq!(messages, std::slice::from_ref(&expected));
    }
    let mut receiver = TableReceiver::new();
    assert_eq!(receive(&mut receiver, &[expected]), Some((*narrow).clone()));
    assert_eq!(receiver.wanted(), None);
}

#[test]
fn a_wide_table_is_none_to_an_older_end() {
    let mut issuer = TableIssuer::new(0);
    issuer.set(TERM, &table(&[("a", 256, None)]));
    for message in [issuer.change(), issuer.announcement(), issuer.whole()].concat() {
        let refused = IssuedSystemIds::decode(&message);
        assert_eq!(refused, Err(MavlinkError::Table("it is of another version")));
    }
}

#[test]
fn a_change_is_a_difference_and_whoever_lacks_its_base_asks_for_the_whole() {
    let (mut issuer, mut present, mut late) =
        (TableIssuer::new(10), TableReceiver::new(), TableReceiver::new());
    let mut current = large(10_000);
    issuer.set(TERM, &Arc::new(current.clone()));
    let whole = issuer.whole();
    assert!(whole.len() > 1 && whole.iter().all(|part| part.len() < 65_536));
    // There is nothing that it changes: the change is the whole.
    assert_eq!(issuer.change(), whole);
    assert_eq!(receive(&mut present, &whole).as_ref(), Some(&current));

    // One leaves, one moves, one is new; two exchange their ids.
    current.withdraw("drone-000007");
    current.set_slot("drone-000008", Some(20_000));
    current.grant("late", 70_000).unwrap();
    current.grant("drone-000001", 99_999).unwrap();
    current.grant("drone-000002", 1_001).unwrap();
    current.grant("drone-000001", 1_002).unwrap();
    assert!(issuer.set(TERM, &Arc::new(current.clone())));
    let change = issuer.change();
    assert!(change.len() == 1 && change[0].len() < 200, "{} bytes", change[0].len());
    assert_eq!(receive(&mut present, &change).as_ref(), Some(&current));
    assert_eq!(receive(&mut present, &change), None);

    assert_eq!(late.receive(Some(TERM), &change[0]), Ok(TableOutcome::Lacking));
    assert_eq!(late.wanted(), Some((TERM, 11)));
    let request = TableReceiver::request(late.wanted().unwrap());
    assert_eq!((request.len(), TableReceiver::parse_request(&request)), (12, Some((TERM, 11))));
    // Parts in any order, and twice.
    let mut parts = issuer.whole();
    parts.reverse();
    parts.insert(1, parts[0].clone());
    assert_eq!(receive(&mut late, &parts), Some(current));
    assert_eq!(late.wanted(), None);
}

#[test]
fn an_announcement_says_which_table_holds_and_asks_for_nothing_of_who_has_it() {
    let (mut issuer, mut receiver) = (TableIssuer::new(1), TableReceiver::new());
    issuer.set(TERM, &Arc::new(large(300)));
    let announcement = issuer.announcement();
    assert_eq!((announcement.len(), announcement[0].len()), (1, 30));
    assert_eq!(receiver.receive(Some(TERM), &announcement[0]), Ok(TableOutcome::Lacking));
    assert_eq!(receiver.wanted(), Some((TERM, 1)));
    receive(&mut receiver, &issuer.whole());
    assert_eq!(receiver.receive(Some(TERM), &announcement[0]), Ok(TableOutcome::Nothing));
    assert_eq!(receiver.wanted(), None);
}

#[test]
fn a_table_of_an_earlier_leader_or_an_earlier_number_is_counted_and_changes_nothing() {
    let (mut issuer, mut receiver) = (TableIssuer::new(1), TableReceiver::new());
    issuer.set(TERM, &table(&[("a", 300, Some(1))]));
    let first = issuer.whole();
    issuer.set(TERM, &table(&[("a", 300, Some(2))]));
    let second = issuer.change();
    receive(&mut receiver, &first);
    receive(&mut receiver, &second);
    for message in first.iter().chain(&second) {
        assert_eq!(receiver.receive(Some(TERM), message), Ok(TableOutcome::Nothing));
        assert_eq!(receiver.receive(Some(TERM + 1), message), Ok(TableOutcome::Nothing));
        assert_eq!(receiver.receive(None, message), Ok(TableOutcome::Nothing));
    }
    let counters = receiver.counters();
    assert_eq!((counters.taken, counters.outdated, counters.other_term), (2, 1, 4));
    assert_eq!((counters.repeated, counters.refused, receiver.wanted()), (1, 0, None));
    // The next leader's holds, whatever its number is.
    let mut next = TableIssuer::new(0);
    next.set(TERM + 1, &table(&[("b", 1, None)]));
    let taken = receiver.receive(Some(TERM + 1), &next.change()[0]).unwrap();
    assert!(matches!(taken, TableOutcome::Taken(table) if table.holder(1) == Some("b")));
}

#[test]
fn a_wide_table_may_become_narrow_and_wide_again() {
    let (mut issuer, mut receiver) = (TableIssuer::new(5), TableReceiver::new());
    for id in [70_000, 7, 70_001, 8, 300] {
        let next = table(&[("a", id, Some(3)), ("b", 1, None)]);
        assert!(issuer.set(TERM, &next));
        assert_eq!(receive(&mut receiver, &issuer.change()), Some((*next).clone()));
    }
    assert_eq!(receiver.counters().refused, 0);
}

/// Version, kind 1, term 7, a number and a digest of nothing, and what follows.
fn difference(number: u32, rest: &str) -> Vec<u8> {
    hex::decode(format!("03010000000000000007{number:08x}{}{rest}", "00".repeat(16))).unwrap()
}

#[test]
fn what_contradicts_itself_is_refused_counted_and_leaves_the_table_as_it_was() {
    let (mut issuer, mut receiver) = (TableIssuer::new(1), TableReceiver::new());
    let held = table(&[("a", 300, Some(1)), ("b", 301, Some(2))]);
    issuer.set(TERM, &held);
    receive(&mut receiver, &issuer.whole());
    let cases = [
        // Of table 1: nobody goes; `c` is 301, which is `b`'s.
        ("0000000100000001".to_owned() + "0000012d" + "00000005" + "0163", "granted to `b`"),
        // `c` in slot 2, which is `b`'s.
        ("0000000100000001".to_owned() + "0000012e" + "00000002" + "0163", "a slot has two names"),
        // `c` is 0.
        ("0000000100000001".to_owned() + "00000000" + "00000005" + "0163", "0 is not a system id"),
        // A name that nobody can have.
        ("0000000100000001".to_owned() + "0000012e" + "00000005" + "0120", "not a member's name"),
        // The same name twice.
        (
            "0000000100000002".to_owned() + &("0000012e".to_owned() + "00000005" + "0163").repeat(2),
            "out of order",
        ),
        // All is well, and the table is not the one that was announced.
        ("0000000100000001".to_owned() + "0000012e" + "00000005" + "0163", "another than the one"),
        ("0000000100000000ff".to_owned(), "bytes follow"),
        ("00000001000000".to_owned(), "cut short"),
        ("00000001ffff".to_owned(), "grants too many"),
    ];
    let count = cases.len() as u64;
    for (number, (rest, part)) in (2..).zip(cases) {
        let error = receiver.receive(Some(TERM), &difference(number, &rest)).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    for (bytes, part) in [
        (&b""[..], "cut short"),
        (&[9, 9, 9], "another version"),
        (
            &[3, 7, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            "no kind",
        ),
    ] {
        let error = receiver.receive(Some(TERM), bytes).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(receiver.counters().refused, count + 3);
    // It goes on: what the leader says next is taken, whole if need be.
    let mut issuer = TableIssuer::new(100);
    let next = table(&[("a", 300, Some(9))]);
    issuer.set(TERM, &next);
    assert_eq!(receive(&mut receiver, &issuer.whole()), Some((*next).clone()));
}

#[test]
fn parts_that_do_not_fit_together_are_no_table() {
    let mut issuer = TableIssuer::new(1);
    issuer.set(TERM, &Arc::new(large(10_000)));
    let whole = issuer.whole();
    let mut receiver = TableReceiver::new();
    for (at, part) in (0..).zip(&whole) {
        // One bit of one part.
        let mut part = part.clone();
        if at == 1 {
            part[1_000] ^= 1;
        }
        let outcome = receiver.receive(Some(TERM), &part);
        if at + 1 < whole.len() {
            assert_eq!(outcome, Ok(TableOutcome::Nothing));
        } else {
            assert!(outcome.unwrap_err().to_string().contains("another than the one that was announced"));
        }
    }
    assert_eq!(receiver.wanted(), Some((TERM, 1)));
    // Too many parts, a part beyond them, one that is not full, an empty one.
    for (at, bytes) in [(32, [0xff, 0xff]), (30, [0xff, 0xff])] {
        let mut bad = whole[0].clone();
        bad[at..at + 2].copy_from_slice(&bytes);
        assert_eq!(TableMessage::decode(&bad), Err(MavlinkError::Table("a part of it is none")));
    }
    for len in [34, 35, whole[0].len() - 1] {
        let refused = TableMessage::decode(&whole[0][..len]);
        assert_eq!(refused, Err(MavlinkError::Table("a part of it is none")), "{len} bytes");
    }
    assert!(receive(&mut receiver, &whole).is_some());
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_of_one_encoding_or_refused(
        kind in 0..4_u8, rest in prop::collection::vec(any::<u8>(), 0..90),
    ) {
        let bytes = [&[3, kind], &rest[..]].concat();
        if let Ok(message) = TableMessage::decode(&bytes) {
            prop_assert_eq!(message.encode(), bytes);
        }
    }

    #[test]
    fn a_member_that_hears_some_of_all_messages_and_the_whole_when_it_asks_has_the_leaders_table(
        changes in prop::collection::vec(
            (0..12_u32, prop::option::of((1..=400_u32, any::<Option<u8>>())), any::<bool>()), 1..30,
        ),
    ) {
        let (mut issuer, mut receiver) = (TableIssuer::new(0), TableReceiver::new());
        let (mut current, mut held) = (SystemIds::new(), SystemIds::new());
        for (name, change, is_heard) in changes {
            let name = format!("drone-{name}");
            match change {
                None => { current.withdraw(&name); }
                Some((id, slot)) => if current.grant(&name, id).is_ok() {
                    current.set_slot(&name, slot.map(u32::from));
                },
            }
            issuer.set(TERM, &Arc::new(current.clone()));
            if is_heard {
                if let Some(taken) = receive(&mut receiver, &issuer.change()) {
                    held = taken;
                }
                if receiver.wanted().is_some() {
                    held = receive(&mut receiver, &issuer.whole()).unwrap();
                }
                prop_assert_eq!(&held, &current);
            }
        }
    }
}
