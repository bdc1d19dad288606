//! Servers that want to learn more than one bit. (Those that garble something else need what this crate does
//! not show: see the tests inside.)

use ark_bls12_381::G1Affine;
use ark_ec::AffineRepr as _;
use quiver_abke::{Client, Deviation, Error, ExchangeTerms, PointLabel};
use quiver_pairing::PairingError;

use crate::points::{add, of_order_three, put};
use crate::scene::*;

/// The client's verdict on an altered offer: it must send a commitment all the same.
fn verdict(attributes: &[bool], change: impl Fn(&mut Vec<u8>, &mut Vec<u8>)) -> Error {
    let mut offered = offered(&credential(attributes), 4);
    change(&mut offered.offer, &mut offered.tables);
    let mut evaluating = offered.client.offer(&offered.offer, is_signed).unwrap();
    evaluating.tables(&offered.tables).unwrap();
    let (client, commitment) = evaluating.commit(&mut rng(50)).unwrap();
    assert_eq!(commitment.len(), 33);
    let (_, seeds) = offered.server.commitment(&commitment).unwrap();
    client.open(&seeds, &mut rng(51)).unwrap_err()
}

/// The same for clients that have an attribute and that do not, which must not be told apart.
fn verdict_whatever_the_attribute(attribute: usize, change: impl Fn(&mut Vec<u8>, &mut Vec<u8>)) -> Error {
    let [without, with] = [false, true].map(|bit| {
        let mut attributes = attributes(12, false, -1);
        attributes[attribute] = bit;
        verdict(&attributes, &change)
    });
    assert_eq!(without, with);
    with
}

#[test]
fn one_spoilt_half_is_found_whether_it_was_read_or_not() {
    for attribute in 0..M {
        for bit in [0, 1] {
            let found = verdict_whatever_the_attribute(attribute, |offer, _| {
                add(offer, Layout::half(attribute, bit), &G1Affine::generator());
            });
            assert_eq!(found, Error::Cheated(Deviation::Ciphertext));
        }
    }
}

#[test]
fn one_half_outside_the_group_is_found_whether_it_was_read_or_not() {
    for attribute in 0..M {
        for bit in [0, 1] {
            let element = PointLabel::Ciphertext(2 + 2 * attribute + bit);
            let at = Layout::half(attribute, bit);
            let found =
                verdict_whatever_the_attribute(attribute, |offer, _| add(offer, at, &of_order_three()));
            assert_eq!(found, Error::InvalidPoint { element, reason: PairingError::WrongSubgroup });
            let found =
                verdict_whatever_the_attribute(attribute, |offer, _| put(offer, at, &G1Affine::zero()));
            assert_eq!(found, Error::InvalidPoint { element, reason: PairingError::Identity });
            let found = verdict_whatever_the_attribute(attribute, |offer, _| offer[at + 95] ^= 1);
            assert_eq!(found, Error::InvalidPoint { element, reason: PairingError::NotOnCurve });
        }
    }
}

#[test]
fn halves_that_change_places_are_found() {
    let found = verdict_whatever_the_attribute(3, |offer, _| {
        let (one, other) = (Layout::half(3, 0), Layout::half(3, 1));
        let kept = offer[one..other].to_vec();
        offer.copy_within(other..other + 96, one);
        offer[other..other + 96].copy_from_slice(&kept);
    });
    assert_eq!(found, Error::Cheated(Deviation::Ciphertext));
}

#[test]
fn one_spoilt_masked_label_is_found_whether_it_was_read_or_not() {
    for attribute in 0..M {
        for bit in [0, 1] {
            let at = Layout::LABELS + 32 * attribute + 16 * bit;
            let found = verdict_whatever_the_attribute(attribute, |offer, _| offer[at] ^= 2);
            assert_eq!(found, Error::Cheated(Deviation::Labels));
        }
    }
}

#[test]
fn other_bases_than_the_clients_are_found() {
    for point in [0, 1] {
        let found = verdict_whatever_the_attribute(0, |offer, _| {
            add(offer, Layout::CIPHERTEXT + 96 * point, &G1Affine::generator());
        });
        assert_eq!(found, Error::Cheated(Deviation::Ciphertext));
    }
}

#[test]
fn a_changed_table_or_label_of_one_is_found() {
    for table in [0, 3, usize::MAX] {
        let found = verdict_whatever_the_attribute(0, |_, tables| {
            let at = (16 * table.min(tables.len() / 16 - 1)) + 5;
            tables[at] ^= 4;
        });
        assert_eq!(found, Error::Cheated(Deviation::Circuit));
    }
    let found = verdict_whatever_the_attribute(0, |offer, _| offer[Layout::ONE] ^= 4);
    assert_eq!(found, Error::Cheated(Deviation::Circuit));
}

#[test]
fn wrong_seeds_are_found() {
    for byte in [1, 2, 17, 32, 33, 34, 50, 64] {
        let mut committing = offered(&inside(), 4).commit();
        committing.seeds[byte] ^= 1;
        let found = committing.client.open(&committing.seeds, &mut rng(51)).unwrap_err();
        let wanted = if byte < 33 { Deviation::Ciphertext } else { Deviation::Labels };
        assert_eq!(found, Error::Cheated(wanted));
    }
}

#[test]
fn an_offer_that_is_not_signed_is_refused_before_it_is_decrypted() {
    let mut offered = offered(&inside(), 4);
    offered.offer[Layout::SIGNATURE] ^= 1;
    assert_eq!(offered.client.offer(&offered.offer, is_signed).unwrap_err(), Error::InvalidContext);
}

#[test]
fn an_offer_of_another_length_is_refused() {
    let offer = offered(&inside(), 4).offer;
    assert_eq!(offer.len(), Layout::LEN);
    for len in [0, 1, 60, 68, 69, 100, offer.len() - 1] {
        assert!(offered(&inside(), 4).client.offer(&offer[..len], |_, _| true).is_err(), "{len}");
    }
    let longer = [&offer[..], &[0]].concat();
    assert!(offered(&inside(), 4).client.offer(&longer, |_, _| true).is_err());
    // A signature of 2^32 − 1 bytes.
    let mut long = offer;
    long[65..69].fill(0xff);
    assert!(offered(&inside(), 4).client.offer(&long, |_, _| true).is_err());
}

#[test]
fn more_or_fewer_tables_than_the_circuit_has_are_refused() {
    let offered = offered(&inside(), 4);
    let mut evaluating = offered.client.offer(&offered.offer, is_signed).unwrap();
    let (last, rest) = offered.tables.split_last().unwrap();
    evaluating.tables(rest).unwrap();
    assert_eq!(evaluating.remaining(), 1);
    assert!(evaluating.tables(&[*last, 0]).is_err());
    assert_eq!(
        evaluating.commit(&mut rng(1)).unwrap_err(),
        Error::Unexpected("the garbled circuit ends early")
    );
}

/// A server that has the client's hello asks another server's questions with it, and the other way round.
#[test]
fn nothing_can_be_relayed_to_another_server_channel_or_policy() {
    let others = [
        ExchangeTerms { server: b"leader 8", ..TERMS },
        ExchangeTerms { channel: b"channel 2", ..TERMS },
        ExchangeTerms { policy: &[2; 32], ..TERMS },
    ];
    for terms in others {
        let (rng, policy) = (&mut rng(4), geofence());
        let key = inside().unlink(rng);
        let (client, hello) = Client::start(&TERMS, policy.clone(), key, rng).unwrap();
        let (offer, tables, _) = answer(&hello, &terms, &policy, rng);
        // The other server's signature is none on this client's ctx.
        let (again, second) = {
            let rng = &mut crate::scene::rng(4);
            Client::start(&TERMS, policy.clone(), inside().unlink(rng), rng).unwrap()
        };
        assert_eq!(hello, second);
        let refused = again.offer(&offer, |context, signature| sign(terms.server, context) == signature);
        assert_eq!(refused.unwrap_err(), Error::InvalidContext);
        // If the one in between can sign what the client wants, its relayed messages are still of no use to
        // it.
        let mut evaluating = client.offer(&offer, |_, _| true).unwrap();
        evaluating.tables(&tables).unwrap();
        let (_, commitment) = evaluating.commit(rng).unwrap();
        assert_eq!(commitment.len(), 33);
    }
}

/// The server of the second run opens what belongs to the first.
#[test]
fn what_belongs_to_another_run_is_found() {
    let [one, other] = [4, 5].map(|seed| offered(&inside(), seed).commit());
    let found = one.client.open(&other.seeds, &mut rng(51)).unwrap_err();
    assert_eq!(found, Error::Cheated(Deviation::Ciphertext));
    let refused = other.server.opening(&one_opening()).unwrap_err();
    assert_eq!(refused, Error::InvalidOpening);
}

fn one_opening() -> Vec<u8> {
    offered(&inside(), 4).commit().open().opening
}
