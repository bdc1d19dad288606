//! A condition has one spelling, and every other is refused.

use proptest::prelude::*;
use quiver_ibe::{Condition, ConditionKind, Error};

fn kind_of(text: &str) -> Result<String, Error> {
    text.parse::<Condition>().map(|condition| format!("{:?}", condition.kind()))
}

#[test]
fn the_three_kinds_are_understood() {
    let parsed = |text: &str| text.parse::<Condition>().unwrap();
    assert_eq!(parsed("mission/alpha/phase-2").kind(), ConditionKind::Mission("alpha/phase-2"));
    let serial: [u8; 16] = std::array::from_fn(|place| 0x10 * place as u8);
    assert_eq!(parsed("drone/00102030405060708090a0b0c0d0e0f0").kind(), ConditionKind::Drone(serial));
    assert_eq!(parsed("not-before/2026-12-01T06:00:00Z").kind(), ConditionKind::NotBefore(1_796_104_800));
    assert_eq!(parsed("not-before/1970-01-01T00:00:00Z").kind(), ConditionKind::NotBefore(0));
    assert_eq!(parsed("not-before/2028-02-29T23:59:59Z").kind(), ConditionKind::NotBefore(1_835_481_599));
}

#[test]
fn unknown_kinds_are_refused() {
    for text in [
        "",
        "mission",
        "Mission/alpha",
        "phase/2",
        "missions/alpha",
        "/alpha",
        " mission/alpha",
        "epoch:1",
        "drone-17",
    ] {
        assert_eq!(kind_of(text), Err(Error::UnknownKind), "{text:?}");
    }
}

#[test]
fn paths_have_one_spelling() {
    for text in [
        "mission/",
        "mission//alpha",
        "mission/alpha/",
        "mission/Alpha",
        "mission/alpha beta",
        "mission/alpha\n",
        "mission/..",
        "mission/alpha/../beta",
        "mission/.",
        "mission/gé",
        "mission/alpha%2f",
        "mission/alpha\0",
    ] {
        assert!(matches!(kind_of(text), Err(Error::InvalidCondition(_))), "{text:?}");
    }
    assert!(kind_of("mission/.hidden/a..b/0_1").is_ok());
}

#[test]
fn serials_have_one_spelling() {
    for digits in [
        "",
        "0",
        "00102030405060708090A0B0C0D0E0F0",
        "00102030405060708090a0b0c0d0e0f",
        "+0102030405060708090a0b0c0d0e0f0",
        "000102030405060708090a0b0c0d0e0f0",
        "00102030405060708090a0b0c0d0e0fg",
        "00102030-4050-6070-8090-a0b0c0d0e0f0",
        " 0102030405060708090a0b0c0d0e0f0",
    ] {
        assert!(matches!(kind_of(&format!("drone/{digits}")), Err(Error::InvalidCondition(_))), "{digits:?}");
    }
}

#[test]
fn times_have_one_spelling() {
    for time in [
        "",
        "2026-12-01",
        "2026-12-01T06:00Z",
        "2026-12-01T06:00:00",
        "2026-12-01t06:00:00z",
        "2026-12-01 06:00:00Z",
        "2026-12-01T06:00:00.0Z",
        "2026-12-01T06:00:00.5Z",
        "2026-12-01T06:00:00+00:00",
        "2026-12-01T07:00:00+01:00",
        "2026-12-01T06:00:60Z",
        "2026-12-01T24:00:00Z",
        "2026-13-01T06:00:00Z",
        "2026-02-29T06:00:00Z",
        "2026-2-01T06:00:00Z",
        "20261201T060000Z",
        "1969-12-31T23:59:59Z",
        "-000001-01-01T00:00:00Z",
        "+002026-12-01T06:00:00Z",
        "10000-01-01T00:00:00Z",
        "2026-12-01T06:00:00Z ",
        "2026-12-01T06:00:00Z[UTC]",
        "2026-W49-2T06:00:00Z",
        "1796104800",
    ] {
        assert!(
            matches!(kind_of(&format!("not-before/{time}")), Err(Error::InvalidCondition(_))),
            "{time:?}"
        );
    }
}

#[test]
fn conditions_are_bounded() {
    let longest = format!("mission/{}", "a".repeat(247));
    assert_eq!(longest.len(), 255);
    assert!(kind_of(&longest).is_ok());
    assert!(matches!(kind_of(&format!("{longest}a")), Err(Error::InvalidCondition(_))));
    assert!(matches!(Condition::mission(&"a".repeat(248)), Err(Error::InvalidCondition(_))));
    assert!(matches!(Condition::not_before(u64::MAX), Err(Error::InvalidCondition(_))));
    assert!(matches!(Condition::not_before(253_402_300_800), Err(Error::InvalidCondition(_))));
}

proptest! {
    #[test]
    fn every_time_has_a_spelling_that_is_read_back(time in 0_u64..253_402_207_201) {
        let condition = Condition::not_before(time).unwrap();
        prop_assert_eq!(condition.kind(), ConditionKind::NotBefore(time));
        prop_assert_eq!(condition.as_str().len(), "not-before/2026-12-01T06:00:00Z".len());
        prop_assert_eq!(condition.to_string().parse::<Condition>().unwrap(), condition);
    }

    #[test]
    fn every_serial_has_a_spelling_that_is_read_back(serial in any::<[u8; 16]>()) {
        let condition = Condition::drone(&serial);
        prop_assert_eq!(condition.kind(), ConditionKind::Drone(serial));
        prop_assert_eq!(condition.to_string().parse::<Condition>().unwrap(), condition);
    }

    #[test]
    fn every_path_is_read_back(path in "[a-z0-9_-]{1,20}(/[a-z0-9_-]{1,20}){0,9}") {
        let condition = Condition::mission(&path).unwrap();
        prop_assert_eq!(condition.kind(), ConditionKind::Mission(&path));
        prop_assert_eq!(condition.as_str(), format!("mission/{path}"));
    }

    #[test]
    fn whatever_is_read_is_spelled_as_it_was(text in "(mission|drone|not-before)/[ -~]{0,40}|\\PC{0,300}") {
        if let Ok(condition) = text.parse::<Condition>() {
            prop_assert_eq!(condition.as_str(), &text);
            let again = match condition.kind() {
                ConditionKind::Mission(path) => Condition::mission(path).unwrap(),
                ConditionKind::Drone(serial) => Condition::drone(&serial),
                ConditionKind::NotBefore(time) => Condition::not_before(time).unwrap(),
            };
            prop_assert_eq!(again, condition);
        }
    }
}
