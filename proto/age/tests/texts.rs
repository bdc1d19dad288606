//! Recipients and identities as text.

#[path = "support/kgc.rs"]
mod kgc;

use kgc::{Kgc, condition};
use proptest::prelude::*;
use quiver_age::{Error, Identity, KEYS_LIMIT, Recipient, identity_file};

const PHASE: &str = "mission/alpha/phase-2";
const DAWN: &str = "not-before/2026-12-01T06:00:00Z";

/// Recipient under the master key 1, so that the master public key is the generator of G1. Computed from the
/// table at [`Recipient`] and BIP-173 by another program.
const PHASE_RECIPIENT: &str = "age1quiver1qxtlr5a8xxta09pxj43ccnaf4s8ux6yvf7thfwg9598r50chrwk9smz4aqllj7s6alan4uq2mv3vdwmdd9ehx6t0dchkzmrsdpsj7urgv9ek2tfjuatwfh";

#[test]
fn recipient_is_spelled_as_documented() {
    let recipient = Kgc::new(1).recipient(PHASE);
    assert_eq!(recipient.to_string(), PHASE_RECIPIENT);
    assert_eq!(PHASE_RECIPIENT.parse::<Recipient>().expect("its own text"), recipient);
}

#[test]
fn identity_text_gives_the_same_keys_back() {
    let kgc = Kgc::new(7);
    let identity = kgc.identity(&[PHASE, DAWN, "drone/00112233445566778899aabbccddeeff"]);
    let text = identity.to_text();
    assert!(text.starts_with("AGE-PLUGIN-QUIVER-1"));
    let read: Identity = text.parse().expect("its own text");
    assert_eq!(*read.encode(), *identity.encode());
    assert!(read.conditions().eq(identity.conditions()));
    assert_eq!(read.recipients().map(|each| each.to_string()).collect::<Vec<_>>().len(), 3);
}

#[test]
fn identity_shows_no_key() {
    let identity = Kgc::new(7).identity(&[PHASE]);
    let shown = format!("{identity:?}");
    assert!(
        shown.contains(PHASE)
            && !shown.contains(&hex::encode(&identity.encode()[1 + 48 + 1 + PHASE.len()..])[..16])
    );
}

#[test]
fn key_of_another_condition_or_master_is_refused() {
    let (kgc, other) = (Kgc::new(7), Kgc::new(8));
    let mut identity = Identity::new(kgc.master());
    for key in [kgc.key(DAWN), other.key(PHASE)] {
        let refused = identity.insert_unverified(condition(PHASE), key);
        assert!(matches!(refused, Err(Error::WrongKey { condition }) if condition == PHASE));
    }
    assert_eq!(identity.conditions().count(), 0);
    // The same inside a text: a key moved to another condition of the same length.
    let mut bytes = kgc.identity(&["mission/a"]).encode();
    *bytes.iter_mut().rev().nth(96).expect("long enough") = b'b';
    assert!(
        matches!(Identity::decode(&bytes), Err(Error::WrongKey { condition }) if condition == "mission/b")
    );
}

#[test]
fn identity_holds_no_more_keys_than_it_says() {
    let kgc = Kgc::new(3);
    let mut identity = Identity::new(kgc.master());
    for number in 0..KEYS_LIMIT {
        let text = format!("mission/{number}");
        identity.insert_unverified(condition(&text), kgc.key(&text)).expect("room");
    }
    let refused = identity.insert_unverified(condition(PHASE), kgc.key(PHASE));
    assert!(matches!(refused, Err(Error::TooManyKeys)));
    identity.insert_unverified(condition("mission/0"), kgc.key("mission/0")).expect("it is held already");
    identity.to_text().parse::<Identity>().expect("a full one can be read back");
}

#[test]
fn other_orders_versions_and_lengths_of_an_identity_are_refused() {
    let kgc = Kgc::new(3);
    let one = kgc.identity(&["mission/a"]).encode();
    let two = kgc.identity(&["mission/a", "mission/b"]).encode();
    let (entry, at) = (one.len() - 49, 49);
    let reversed = [&two[..at], &two[at + entry..], &two[at..at + entry]].concat();
    let doubled = [&one[..], &one[at..]].concat();
    let older = [&[0], &one[1..]].concat();
    for wrong in [reversed, doubled, older, one[..at].to_vec(), Vec::new()] {
        assert!(matches!(Identity::decode(&wrong), Err(Error::Text { .. })), "{}", hex::encode(wrong));
    }
    for end in at + 1..two.len() {
        assert_eq!(Identity::decode(&two[..end]).is_ok(), end == one.len(), "cut to {end} bytes");
    }
}

#[test]
fn conditions_that_are_none_make_no_recipient() {
    let bytes = Kgc::new(1).recipient(PHASE).encode();
    for text in ["", "mission/Alpha", "weather/rain", "not-before/2026-12-01"] {
        let wrong = [&bytes[..49], text.as_bytes()].concat();
        assert!(matches!(Recipient::decode(&wrong), Err(Error::Ibe(_))), "{text}");
    }
    // The master public key is no point, or the identity.
    let identity_point = [&[1, 0xc0], &[0; 47][..], PHASE.as_bytes()].concat();
    let no_point = [&[1], &[0xff; 48][..], PHASE.as_bytes()].concat();
    for wrong in [identity_point, no_point] {
        assert!(matches!(Recipient::decode(&wrong), Err(Error::Ibe(_))));
    }
}

#[test]
fn identity_file_is_read_back_and_a_wrong_line_is_named_but_not_shown() {
    let (first, second) = (Kgc::new(3).identity(&[PHASE]), Kgc::new(4).identity(&[DAWN]));
    let content = identity_file::render(&[first, second]);
    let read = identity_file::parse(&content).expect("its own content");
    assert_eq!(read.len(), 2);
    assert!(content.contains(&Kgc::new(4).recipient(DAWN).to_string()));
    let secret = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
    let error = identity_file::parse(&format!("{}{secret}\n", *content)).expect_err("not one of ours");
    let line = content.lines().count() + 1;
    assert!(matches!(&error, Error::IdentityLine { line: named, .. } if *named == line));
    assert!(!error.to_string().contains(&secret[..20]));
    assert!(identity_file::parse("# nothing\n\n").is_err());
}

proptest! {
    #[test]
    fn mistyped_recipient_is_refused(place in 0..PHASE_RECIPIENT.len(), letter in "[a-z0-9]") {
        let mut text = PHASE_RECIPIENT.to_string();
        text.replace_range(place..=place, &letter);
        prop_assert_eq!(text.parse::<Recipient>().is_ok(), text == PHASE_RECIPIENT);
    }

    #[test]
    fn cut_recipient_is_refused(length in 0..PHASE_RECIPIENT.len()) {
        prop_assert!(PHASE_RECIPIENT[..length].parse::<Recipient>().is_err());
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(age1quiver1|AGE-PLUGIN-QUIVER-1)?[a-zA-Z0-9]{0,200}|.{0,100}") {
        prop_assert!(text.parse::<Recipient>().is_err());
        prop_assert!(text.parse::<Identity>().is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Recipient::decode(&bytes).is_err());
        prop_assert!(Identity::decode(&bytes).is_err());
    }
}
