//! One encapsulation, many messages.

use quiver_abe::envelope::{
    self, EnvelopeError, EnvelopeHeader, Lifetime, MAX_SESSIONS, MAX_SESSIONS_PER_SENDER, Opening,
    ReceivingSession, SendingSession, SessionLimits, Sessions,
};

use crate::toy::{ALICE, NOW, PARAMETERS, Toy, ToySigner, known, next, next_at, session, session_at};

/// A receiver as a service would have it.
#[derive(Default)]
struct Receiver(Sessions);

impl Receiver {
    fn receive(&mut self, bytes: &[u8], now: u64) -> Result<Vec<u8>, EnvelopeError> {
        let (header, rest) = EnvelopeHeader::decode(bytes)?;
        let opened = match &header {
            EnvelopeHeader::Opening(opening) => {
                self.0.admits(opening, now)?;
                Some(ReceivingSession::open::<Toy>(&PARAMETERS, &"scout".into(), opening)?)
            }
            EnvelopeHeader::Following(_) => None,
        };
        let session = match &opened {
            Some(session) => session,
            None => self.0.session(&header.session(), now).ok_or(EnvelopeError::UnknownSession)?,
        };
        let mut data = Vec::new();
        match envelope::io::open(session.opener(&header)?, rest, &mut data, &known()) {
            Ok(_) => {}
            Err(envelope::io::IoError::Envelope(error)) => return Err(error),
            Err(other) => panic!("{other}"),
        }
        self.0.took(&header, opened, now)?;
        Ok(data)
    }
}

fn messages(session: &mut SendingSession, count: u8) -> Vec<Vec<u8>> {
    (0..count).map(|number| next(session, Some(&ALICE), &[number])).collect()
}

fn opening(bytes: &[u8]) -> Opening {
    match EnvelopeHeader::decode(bytes).unwrap().0 {
        EnvelopeHeader::Opening(opening) => opening,
        EnvelopeHeader::Following(_) => panic!("a following message"),
    }
}

#[test]
fn messages_after_the_first_carry_a_name_instead_of_a_key() {
    let sent = messages(&mut session(Some(&ALICE), Lifetime::default()), 3);
    let mut receiver = Receiver::default();
    for (number, bytes) in sent.iter().enumerate() {
        assert_eq!(receiver.receive(bytes, NOW), Ok(vec![number as u8]));
    }
    assert_eq!(sent[1].len(), 8 + 37 + 17 + 48);
}

#[test]
fn messages_are_read_in_any_order_after_the_opening_and_each_once() {
    let sent = messages(&mut session(Some(&ALICE), Lifetime::default()), 6);
    let mut receiver = Receiver::default();
    assert_eq!(receiver.receive(&sent[3], NOW), Err(EnvelopeError::UnknownSession));
    for number in [0, 5, 2, 4, 1, 3] {
        assert_eq!(receiver.receive(&sent[number], NOW), Ok(vec![number as u8]));
    }
    for (number, bytes) in sent.iter().enumerate() {
        assert_eq!(receiver.receive(bytes, NOW), Err(EnvelopeError::Replayed(number as u32)));
    }
}

#[test]
fn forged_message_changes_nothing() {
    let sent = messages(&mut session(Some(&ALICE), Lifetime::default()), 3);
    let mut receiver = Receiver::default();
    receiver.receive(&sent[0], NOW).unwrap();
    for at in 8 + 33..sent[1].len() {
        let mut bad = sent[1].clone();
        bad[at] ^= 1;
        assert!(receiver.receive(&bad, NOW).is_err(), "byte {at}");
    }
    assert_eq!(receiver.receive(&sent[1], NOW), Ok(vec![1]));
    assert_eq!(receiver.receive(&sent[2], NOW), Ok(vec![2]));
}

/// A reader of a session knows its keys, and so could send in it; but not in its sender's name.
#[test]
fn message_of_one_session_is_none_of_another() {
    let mut one = session_at(Some(&ALICE), Lifetime::default(), NOW, 1);
    let mut two = session_at(Some(&ALICE), Lifetime::default(), NOW, 2);
    let (one, two) = (messages(&mut one, 2), messages(&mut two, 2));
    let mut receiver = Receiver::default();
    receiver.receive(&one[0], NOW).unwrap();
    receiver.receive(&two[0], NOW).unwrap();
    let header = one[1].len() - 17 - 48;
    let crossed = [&one[1][..header], &two[1][header..]].concat();
    assert_eq!(receiver.receive(&crossed, NOW), Err(EnvelopeError::Chunk(0)));
}

#[test]
fn sender_seals_no_more_than_the_session_may_carry_and_not_after_its_time() {
    let over = Some(EnvelopeError::SessionOver);
    let mut short = session(Some(&ALICE), Lifetime::new(60, 2).unwrap());
    assert!(short.message(NOW).is_ok());
    assert_eq!(short.message(NOW + 60).err(), over);
    assert_eq!(short.message(NOW - 1).err(), over);
    assert!(short.message(NOW + 59).is_ok());
    assert_eq!(short.message(NOW + 59).err(), over);
    let mut single = session(Some(&ALICE), Lifetime::SINGLE);
    assert!(single.message(NOW + 5).is_ok());
    assert_eq!(single.message(NOW + 5).err(), over);
}

#[test]
fn receiver_takes_no_message_after_the_sessions_time_and_forgets_it() {
    let sent = messages(&mut session(Some(&ALICE), Lifetime::new(60, 9).unwrap()), 3);
    let mut receiver = Receiver::default();
    receiver.receive(&sent[0], NOW).unwrap();
    receiver.receive(&sent[1], NOW + 59).unwrap();
    assert_eq!(receiver.receive(&sent[2], NOW + 60), Err(EnvelopeError::UnknownSession));
    receiver.0.tick(NOW + 60);
    assert!(receiver.0.is_empty());
    // Forgotten, and yet not to be played again.
    assert_eq!(receiver.receive(&sent[0], NOW + 60), Err(EnvelopeError::Stale));
}

#[test]
fn opening_from_the_future_is_refused_but_for_a_little() {
    let sent = messages(&mut session(Some(&ALICE), Lifetime::default()), 1);
    assert_eq!(Receiver::default().receive(&sent[0], NOW - 301), Err(EnvelopeError::Stale));
    assert!(Receiver::default().receive(&sent[0], NOW - 300).is_ok());
}

#[test]
fn sender_with_more_sessions_than_allowed_loses_its_oldest_and_cannot_replay_it() {
    let begin = |at: u64| {
        let mut session = session_at(Some(&ALICE), Lifetime::default(), NOW + at, at);
        [[0], [1]].map(|data| next_at(NOW + at, &mut session, Some(&ALICE), &data))
    };
    const LATER: u64 = NOW + MAX_SESSIONS_PER_SENDER as u64 + 1;
    let mut receiver = Receiver::default();
    let sent: Vec<_> = (0..=MAX_SESSIONS_PER_SENDER as u64).map(begin).collect();
    for messages in &sent {
        receiver.receive(&messages[0], LATER).unwrap();
    }
    assert_eq!(receiver.0.len(), MAX_SESSIONS_PER_SENDER);
    assert_eq!(receiver.receive(&sent[0][1], LATER), Err(EnvelopeError::UnknownSession));
    assert_eq!(receiver.receive(&sent[0][0], LATER), Err(EnvelopeError::Stale));
    assert_eq!(receiver.receive(&sent[1][1], LATER), Ok(vec![1]));
}

#[test]
fn sessions_of_all_senders_together_are_bounded() {
    let mut sessions = Sessions::default();
    for number in 0..3 * MAX_SESSIONS as u64 {
        let mut secret = [0; 32];
        secret[..8].copy_from_slice(&number.to_be_bytes());
        let signer = ToySigner(secret);
        let mut session = session_at(Some(&signer), Lifetime::default(), NOW + number, number);
        let bytes = next_at(NOW + number, &mut session, Some(&signer), b"");
        let header = EnvelopeHeader::decode(&bytes).unwrap().0;
        let received = ReceivingSession::open::<Toy>(&PARAMETERS, &"scout".into(), &opening(&bytes)).unwrap();
        sessions.took(&header, Some(received), NOW + number).unwrap();
        assert!(sessions.len() <= MAX_SESSIONS);
    }
    // The first of them went; it does not come back.
    let mut secret = [0; 32];
    secret[..8].copy_from_slice(&0u64.to_be_bytes());
    let signer = ToySigner(secret);
    let first = next(&mut session_at(Some(&signer), Lifetime::default(), NOW, 0), Some(&signer), b"");
    assert_eq!(sessions.admits(&opening(&first), NOW + 3 * MAX_SESSIONS as u64), Err(EnvelopeError::Stale));
}

#[test]
fn lifetimes_outside_their_bounds_are_refused() {
    for (seconds, messages) in
        [(0, 1), (1, 0), (Lifetime::MAX_SECONDS + 1, 1), (1, Lifetime::MAX_MESSAGES + 1)]
    {
        assert!(matches!(Lifetime::new(seconds, messages), Err(EnvelopeError::OutOfBounds(_))));
    }
    assert!(Lifetime::new(Lifetime::MAX_SECONDS, Lifetime::MAX_MESSAGES).is_ok());
}

#[test]
fn receiver_with_little_memory_follows_few_sessions_and_forgets_nothing_that_could_be_played_again() {
    let limits = SessionLimits { sessions: 3, per_sender: 2, senders: 1, skipped: 2 };
    let mut receiver = Receiver(Sessions::new(limits));
    let sessions =
        (0..5).map(|at| (session_at(Some(&ALICE), Lifetime::default(), NOW + at, 10 + at), NOW + at));
    let mut sent: Vec<_> = sessions.collect();
    let openings: Vec<_> =
        sent.iter_mut().map(|(session, at)| next_at(*at, session, Some(&ALICE), &[7])).collect();
    for opening in &openings {
        assert_eq!(receiver.receive(opening, NOW + 5), Ok(vec![7]));
    }
    assert_eq!(receiver.0.len(), 2);
    for opening in &openings[..3] {
        assert_eq!(receiver.receive(opening, NOW + 5), Err(EnvelopeError::Stale));
    }
    // Of the messages that have not arrived, the newest two can still be opened.
    let (last, at) = &mut sent[4];
    let last: Vec<_> = (1..=4).map(|number| next_at(*at, last, Some(&ALICE), &[number])).collect();
    assert_eq!(receiver.receive(&last[3], NOW + 5), Ok(vec![4]));
    assert_eq!(receiver.receive(&last[0], NOW + 5), Err(EnvelopeError::Replayed(1)));
    assert_eq!(receiver.receive(&last[2], NOW + 5), Ok(vec![3]));
}
