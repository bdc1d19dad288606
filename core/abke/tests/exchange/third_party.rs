//! An attacker in between: every message altered, cut, out of order, from another run.

use quiver_abke::{Client, Error, Hello};

use crate::scene::*;

/// All messages of a run by their numbers.
fn messages(seed: u8) -> Vec<Vec<u8>> {
    let offered = offered(&inside(), seed);
    let (hello, offer) = (offered.hello.clone(), offered.offer.clone());
    let committing = offered.commit();
    let (commitment, seeds) = (committing.commitment.clone(), committing.seeds.clone());
    let opening = committing.open();
    let (_, confirmation) = opening.server.opening(&opening.opening).unwrap();
    vec![hello, offer, commitment, seeds, opening.opening, confirmation]
}

/// Takes a run to where it expects the message of this number, and gives it another.
fn expecting(number: usize, message: &[u8]) -> Result<(), Error> {
    if number == 1 {
        return Hello::decode(message, M)?.verify(&verifier(), &mut rng(1)).map(drop);
    }
    let offered = offered(&inside(), 4);
    if number == 2 {
        return offered.client.offer(message, is_signed).map(drop);
    }
    if number == 3 {
        let (server, seeds) = offered.server.commitment(message)?;
        // Any commitment is taken until it is to be opened.
        let opening = &messages(4)[4];
        assert_eq!(seeds, messages(4)[3]);
        return server.opening(opening).map(drop);
    }
    let committing = offered.commit();
    if number == 4 {
        return committing.client.open(message, &mut rng(51)).map(drop);
    }
    let opening = committing.open();
    if number == 5 {
        return opening.server.opening(message).map(drop);
    }
    opening.client.confirm(message).map(drop)
}

#[test]
fn the_message_that_is_expected_is_taken() {
    for (number, message) in (1..).zip(messages(4)) {
        assert_eq!(expecting(number, &message), Ok(()), "{number}");
    }
}

#[test]
fn a_message_out_of_order_is_refused() {
    let messages = messages(4);
    for number in 1..=6 {
        for (other, message) in (1..).zip(&messages).filter(|(other, _)| *other != number) {
            let refused = expecting(number, message);
            assert!(matches!(refused, Err(Error::Unexpected(_))), "{other} for {number}: {refused:?}");
        }
    }
}

#[test]
fn a_message_of_another_run_is_refused() {
    let others = messages(5);
    for number in 2..=6 {
        assert!(expecting(number, &others[number - 1]).is_err(), "{number}");
    }
}

#[test]
fn a_cut_or_lengthened_message_is_refused() {
    for (number, message) in (1..).zip(messages(4)) {
        for len in [0, 1, message.len() / 2, message.len() - 1] {
            assert!(expecting(number, &message[..len]).is_err(), "{number} cut to {len}");
        }
        assert!(expecting(number, &[&message[..], &[0]].concat()).is_err(), "{number}");
    }
}

/// One bit of every part. A hello with its A_C or a point changed within what decodes is another client's, so
/// it is the server's offer that it makes a difference to.
#[test]
fn a_changed_bit_is_found_in_every_message() {
    for (number, message) in (1..).zip(messages(4)).skip(2) {
        for byte in (0..message.len()).step_by(7) {
            let mut changed = message.clone();
            changed[byte] ^= 0x40;
            assert!(expecting(number, &changed).is_err(), "byte {byte} of {number}");
        }
    }
}

#[test]
fn a_changed_hello_gives_no_key() {
    let (rng, policy) = (&mut rng(4), geofence());
    let another = {
        let (_, hello) = Client::start(&TERMS, policy.clone(), inside().unlink(rng), rng).unwrap();
        hello
    };
    let key = inside().unlink(rng);
    let (client, mut hello) = Client::start(&TERMS, policy.clone(), key, rng).unwrap();
    // A_C of an attacker, who would share the key.
    hello[1..33].copy_from_slice(&another[1..33]);
    let (offer, ..) = answer(&hello, &TERMS, &policy, rng);
    assert_eq!(client.offer(&offer, is_signed).unwrap_err(), Error::InvalidContext);
}

#[test]
fn a_changed_offer_gives_no_key() {
    let honest = offered(&inside(), 4);
    let places = [
        Layout::SERVER,
        Layout::NONCE,
        Layout::NONCE + 31,
        Layout::SIGNATURE,
        Layout::CIPHERTEXT + 50,
        Layout::half(2, 0) + 7,
        Layout::half(7, 1) + 7,
        Layout::ONE + 3,
        Layout::LABELS,
        Layout::LEN - 1,
    ];
    for at in places {
        let run = offered(&inside(), 4);
        let mut offer = honest.offer.clone();
        offer[at] ^= 1;
        let Ok(mut evaluating) = run.client.offer(&offer, is_signed) else { continue };
        assert!(at >= Layout::CIPHERTEXT, "{at}");
        evaluating.tables(&run.tables).unwrap();
        let (client, commitment) = evaluating.commit(&mut rng(50)).unwrap();
        let (_, seeds) = run.server.commitment(&commitment).unwrap();
        assert!(client.open(&seeds, &mut rng(51)).is_err(), "{at}");
    }
}
