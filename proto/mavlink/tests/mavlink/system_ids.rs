//! The table of system ids: one id a name, one name an id, and what is spread is what was granted.

use proptest::prelude::*;
use quiver_mavlink::{
    Frame, Grant, IssuedSystemIds, MAX_NARROW_SYSTEM_IDS, MAX_SYSTEM_IDS, MAX_TABLE_LEN, MavlinkError,
    Misuse, SystemIds,
};

use crate::vectors::frame_from;

#[test]
fn a_frame_has_to_come_from_the_system_granted_to_its_sender() {
    let mut table = SystemIds::new();
    table.grant("edge-1", 42).unwrap();
    table.grant("edge-2", 43).unwrap();
    assert!(table.set_slot("edge-1", Some(5)));
    let heartbeat = frame_from("HEARTBEAT", 42, 1);
    let frame = Frame::parse(&heartbeat).unwrap();
    assert_eq!(table.check(5, frame), Ok(()));
    assert_eq!(table.check(6, frame), Err(Misuse::NoSystemId));
    table.set_slot("edge-2", Some(6));
    assert_eq!(table.check(6, frame), Err(Misuse::OtherSystem { granted: 43, claimed: 42 }));
    assert!(table.withdraw("edge-1"));
    assert_eq!(table.check(5, frame), Err(Misuse::NoSystemId));
}

#[test]
fn no_system_id_is_granted_twice() {
    let mut table = SystemIds::new();
    table.grant("edge-1", 1).unwrap();
    let refused = table.grant("edge-2", 1);
    assert_eq!(refused, Err(MavlinkError::SystemIdTaken { id: 1, holder: "edge-1".to_owned() }));
    assert_eq!(table.grant_next("edge-2"), Ok(2));
    assert_eq!(table.grant_next("edge-2"), Ok(2));
    // Another id in place of the one before, and the former is free.
    table.grant("edge-1", 9).unwrap();
    assert_eq!(table.grant_next("edge-3"), Ok(1));
    assert_eq!((table.holder(9), table.holder(200)), (Some("edge-1"), None));
    assert_eq!(table.len(), 3);
}

#[test]
fn what_is_no_system_id_or_name_is_refused() {
    let mut table = SystemIds::new();
    assert_eq!(table.grant("edge-1", 0), Err(MavlinkError::SystemIdRange(0)));
    assert_eq!(SystemIds::parse_id("0"), Err(MavlinkError::SystemIdRange(0)));
    assert_eq!(SystemIds::parse_id("4294967296"), Err(MavlinkError::SystemIdRange(1 << 32)));
    for text in ["", "x", "-1", "+1", " 1", "1.5", "99999999999999999999999"] {
        assert!(matches!(SystemIds::parse_id(text), Err(MavlinkError::SystemId(_))), "{text}");
    }
    assert_eq!((SystemIds::parse_id("256"), SystemIds::parse_id("4294967295")), (Ok(256), Ok(u32::MAX)));
    for name in ["", "edge 1", "édge", &"x".repeat(65)] {
        assert!(matches!(table.grant(name, 1), Err(MavlinkError::Name(_))), "{name}");
    }
    assert!(table.is_empty());
}

#[test]
fn a_table_is_bounded_and_another_takes_the_place_of_one_of_them() {
    let mut table = SystemIds::new();
    for id in 1..=MAX_SYSTEM_IDS as u32 {
        table.grant(&format!("edge-{id:05}{}", "x".repeat(54)), id).unwrap();
    }
    assert_eq!(table.grant("late", 70_000), Err(MavlinkError::SystemIdsFull(20_000)));
    assert!(table.encode().len() <= MAX_TABLE_LEN);
    table.withdraw(&format!("edge-00007{}", "x".repeat(54)));
    assert_eq!(table.grant_next("late"), Ok(7));
    assert_eq!(SystemIds::decode(&table.encode()), Ok(table));
}

#[test]
fn a_table_of_250_that_programs_of_8_bits_tell_apart_is_spread_as_it_was() {
    let mut table = SystemIds::new();
    for number in 1..=MAX_NARROW_SYSTEM_IDS {
        assert_eq!(table.grant_next(&format!("edge-{number}")), Ok(number as u32));
    }
    assert!(table.is_narrow());
    let mut wide = table.clone();
    wide.grant("late", 255).unwrap();
    assert!(!wide.is_narrow(), "an older end takes no more");
    wide.withdraw("late");
    assert!(wide.is_narrow());
    wide.grant("edge-1", 256).unwrap();
    assert!(!wide.is_narrow());
    let issued = IssuedSystemIds { term: u64::MAX, number: u32::MAX, table: table.clone() };
    assert!(issued.encode().len() <= MAX_TABLE_LEN);
    assert_eq!(SystemIds::decode(&table.encode()), Ok(table));
}

#[test]
fn a_slot_has_one_name() {
    let mut table = SystemIds::new();
    table.grant("edge-1", 1).unwrap();
    table.grant("edge-2", 2).unwrap();
    assert!(table.set_slot("edge-1", Some(4)));
    assert!(!table.set_slot("edge-1", Some(4)));
    // It left, and the slot is another's.
    assert!(table.set_slot("edge-2", Some(4)));
    assert_eq!(table.of_slot(4), Some(2));
    assert_eq!(table.of_name("edge-1"), Some(Grant { system_id: 1, slot: None, evicted: false }));
    assert!(table.set_slot("edge-2", None));
    assert_eq!(table.of_slot(4), None);
    assert!(!table.set_slot("nobody", Some(9)));
}

#[test]
fn the_encoding_is_this() {
    let mut table = SystemIds::new();
    table.grant("b", 7).unwrap();
    table.grant("a", 255).unwrap();
    table.set_slot("b", Some(0x0102));
    // Version, two grants; `a` as 255 without a slot, `b` as 7 in slot 258.
    assert_eq!(hex::encode(table.encode()), "010002ffffffffff016107000001020162");
}

#[test]
fn a_table_that_contradicts_itself_is_refused() {
    let good = hex::decode("010002ffffffffff016107000001020162").unwrap();
    let with = |at: usize, value: u8| {
        let mut bad = good.clone();
        bad[at] = value;
        SystemIds::decode(&bad)
    };
    assert!(SystemIds::decode(&good).is_ok());
    assert_eq!(with(0, 2), Err(MavlinkError::Table("it is of another version")));
    assert_eq!(with(1, 1), Err(MavlinkError::Table("it grants too many")));
    assert_eq!(with(2, 1), Err(MavlinkError::Table("bytes follow it")));
    assert_eq!(with(2, 3), Err(MavlinkError::Table("it is cut short")));
    assert_eq!(with(3, 0), Err(MavlinkError::SystemIdRange(0)));
    assert_eq!(with(3, 7), Err(MavlinkError::SystemIdTaken { id: 7, holder: "a".to_owned() }));
    assert_eq!(with(9, b'b'), Err(MavlinkError::Table("its names are out of order")));
    assert_eq!(with(9, b'c'), Err(MavlinkError::Table("its names are out of order")));
    assert_eq!(with(9, 0xff), Err(MavlinkError::Table("a name is not text")));
    let twice = hex::decode("010002ff00000102016107000001020162").unwrap();
    assert_eq!(SystemIds::decode(&twice), Err(MavlinkError::Table("a slot has two names")));
    for end in 0..good.len() {
        assert!(SystemIds::decode(&good[..end]).is_err());
    }
}

#[test]
fn what_is_spread_names_its_term_and_its_number() {
    let mut table = SystemIds::new();
    table.grant("a", 255).unwrap();
    let issued = IssuedSystemIds { term: 0x1_0002, number: 3, table };
    let bytes = issued.encode();
    assert_eq!(hex::encode(&bytes), "02000000000001000200000003010001ffffffffff0161");
    assert_eq!(IssuedSystemIds::decode(&bytes), Ok(issued.clone()));
    // The stored table is not the one that is spread.
    let other = Err(MavlinkError::Table("it is of another version"));
    assert_eq!(IssuedSystemIds::decode(&issued.table.encode()), other);
    for end in 0..bytes.len() {
        assert!(IssuedSystemIds::decode(&bytes[..end]).is_err());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_an_issued_table_of_one_encoding_or_refused(
        head in any::<[u8; 12]>(), rest in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let bytes = [&[2], &head[..], &rest].concat();
        if let Ok(issued) = IssuedSystemIds::decode(&bytes) {
            prop_assert_eq!(issued.encode(), bytes);
        }
    }

    #[test]
    fn any_bytes_are_a_table_of_one_encoding_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(table) = SystemIds::decode(&bytes) {
            prop_assert_eq!(table.encode(), bytes);
        }
    }

    #[test]
    fn tables_come_out_as_they_were(
        grants in prop::collection::btree_map(
            "[A-Za-z0-9._-]{1,64}", (prop_oneof![1..=255_u32, 1..=u32::MAX], any::<Option<u32>>()), 0..80,
        ),
    ) {
        let mut table = SystemIds::new();
        for (name, (id, slot)) in &grants {
            if table.grant(name, *id).is_ok() {
                table.set_slot(name, *slot);
            }
        }
        prop_assert_eq!(SystemIds::decode(&table.encode()).unwrap(), table);
    }
}
