//! Test support: servers that garble another circuit than the one agreed on.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use quiver_crypto::canonical::Writer;
use quiver_crypto::{Digest, Secret};
use quiver_garble::{Circuit, Gate, Label, LabelPair};
use quiver_pairing::{G1, Scalar};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;

use super::context::{Ephemeral, EphemeralSecret};
use super::tables::TableGarbler;
use super::{Client, ExchangeMessageKind, ExchangeTerms, PolicyCircuit, labels};
use crate::{
    AbkeCiphertext, Authority, Deviation, Error, PublicKey, Randomness, UnverifiedPublicKey, Verifier,
};

const TERMS: ExchangeTerms<'_> = ExchangeTerms { policy: &[1; 32], server: b"leader", channel: b"channel" };
const M: usize = 4;

fn rng(seed: u8) -> ChaCha20Rng {
    ChaCha20Rng::from_seed([seed; 32])
}

/// x₀ ∧ x₁ ∧ x₂ ∧ x₃
fn agreed() -> Arc<PolicyCircuit> {
    policy(vec![Gate::And(0, 1), Gate::And(2, 3), Gate::And(4, 5)], 6)
}

fn policy(gates: Vec<Gate>, output: u32) -> Arc<PolicyCircuit> {
    Arc::new(PolicyCircuit::new(&Circuit::new(M, gates, vec![output]).unwrap()).unwrap())
}

/// Deviations of a malicious server.
struct Cheat {
    policy: Arc<PolicyCircuit>,
    /// Alters the plaintexts before they are encrypted, and the labels before they are masked.
    plaintexts: fn(&mut Vec<[G1; 2]>),
    labels: fn(&mut Vec<LabelPair>),
    /// Alters the points that mask the labels.
    pads: fn(&mut Vec<[G1; 2]>),
    one: fn(Label) -> Label,
}

impl Cheat {
    fn none() -> Self {
        Self { policy: agreed(), plaintexts: |_| (), labels: |_| (), pads: |_| (), one: |one| one }
    }

    /// Offer, tables and seeds: everything that a server sends, in a ctx that is the client's.
    fn serve(&self, key: &PublicKey, client: &Ephemeral) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let secret = EphemeralSecret::random(&mut rng(7));
        let nonce = [8; 32];
        let begun = TERMS.begin(&agreed(), &key.authority(), &key.digest(), client);
        let context: Digest = begun.complete(secret.public(), &nonce);
        let seeds = [Secret::new([9; 32]), Secret::new([10; 32])];
        let randomness = Randomness::derive(&seeds[0], &context, M);
        let honest = randomness.plaintexts().to_vec();
        let (mut plaintexts, mut pads) = (honest.clone(), honest);
        (self.plaintexts)(&mut plaintexts);
        (self.pads)(&mut pads);
        let garbler = labels::garbler(&self.policy, &seeds[1], &context);
        let mut pairs = labels::inputs(&garbler, M).unwrap().to_vec();
        (self.labels)(&mut pairs);
        let mut writer = Writer::new();
        writer.u8(ExchangeMessageKind::Offer as u8).fixed(&secret.public().0).fixed(&nonce).lp(b"signed");
        writer.fixed(&AbkeCiphertext::encrypt(key, &randomness, &plaintexts).unwrap().encode());
        writer.fixed(&(self.one)(garbler.one()).to_bytes()).fixed(&labels::mask(&context, &pads, &pairs));
        let mut garbled = Vec::new();
        let mut tables = TableGarbler::new(garbler);
        while let Some(piece) = tables.next(&self.policy).unwrap() {
            garbled.extend(piece);
        }
        let seeds = [&[ExchangeMessageKind::Seeds as u8][..], seeds[0].expose(), seeds[1].expose()].concat();
        (writer.finish(), garbled, seeds)
    }

    /// The verdict of a client with these attributes, which commits as always.
    fn verdict(&self, attributes: [bool; M]) -> Result<bool, Error> {
        let authority = Authority::derive(&Secret::new([1; 32]), 1, M).unwrap();
        let key = authority.certify(&attributes, &mut rng(2)).unwrap().unlink(&mut rng(3));
        let received = UnverifiedPublicKey::decode(key.encoded(), M).unwrap();
        let public = Verifier::new(authority.key().clone()).verify(received, &mut rng(4)).unwrap();
        let (client, hello) = Client::start(&TERMS, agreed(), key, &mut rng(5)).unwrap();
        let (offer, tables, seeds) = self.serve(&public, &Ephemeral(hello[1..33].try_into().unwrap()));
        let mut client = client.offer(&offer, |_, signature| signature == b"signed").unwrap();
        client.tables(&tables).unwrap();
        let (client, commitment) = client.commit(&mut rng(6)).unwrap();
        assert_eq!(commitment.len(), 33);
        client.open(&seeds, &mut rng(11)).map(|(opened, _)| opened.satisfied())
    }

    /// Caught for the same reason by clients with all attributes and with none, and by one with the first
    /// alone.
    fn caught(&self) -> Deviation {
        let verdicts = [[true; M], [false; M], [true, false, false, false]].map(|of| self.verdict(of));
        assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{verdicts:?}");
        match &verdicts[0] {
            Err(Error::Cheated(deviation)) => *deviation,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_server_that_does_as_it_should_is_believed() {
    assert_eq!(Cheat::none().verdict([true; M]), Ok(true));
    assert_eq!(Cheat::none().verdict([true, true, false, true]), Ok(false));
}

/// The server would learn from the commitment's opening whether the client has the first attribute.
#[test]
fn another_circuit_is_caught() {
    let chain = |a, b, c| vec![Gate::And(0, a), Gate::And(4, b), Gate::And(5, c)];
    for gates in [chain(0, 0, 0), chain(1, 0, 1)] {
        let cheat = Cheat { policy: policy(gates, 6), ..Cheat::none() };
        assert_eq!(cheat.caught(), Deviation::Circuit);
    }
}

/// The same circuit, but the opposite of its output, which needs no other table.
#[test]
fn another_label_of_one_is_caught() {
    let cheat = Cheat { one: |one| Label::from_bytes(one.to_bytes().map(|byte| byte ^ 2)), ..Cheat::none() };
    assert_eq!(cheat.caught(), Deviation::Circuit);
}

/// Cheats that make both labels the same, exchange them, or make one of them random: an attribute no longer
/// matters, or matters otherwise.
#[test]
fn inconsistent_labels_are_caught() {
    let changes: [fn(&mut Vec<LabelPair>); 4] = [
        |pairs| pairs[1].zero = pairs[1].one,
        |pairs| pairs[1].one = pairs[1].zero,
        |pairs| pairs[1] = LabelPair { zero: pairs[1].one, one: pairs[1].zero },
        |pairs| pairs.swap(1, 2),
    ];
    for labels in changes {
        assert_eq!(Cheat { labels, ..Cheat::none() }.caught(), Deviation::Labels);
    }
}

/// Selective failure: a plaintext that is not the one that the label is masked with, in one half.
#[test]
fn a_half_that_cannot_be_used_is_caught_by_whoever_did_not_need_it() {
    let changes: [fn(&mut Vec<[G1; 2]>); 3] = [
        |points| points[0][0] = G1::generator(),
        |points| points[0][1] += G1::generator() * Scalar::from(5_u64),
        |points| points[0].swap(0, 1),
    ];
    for change in changes {
        assert_eq!(Cheat { plaintexts: change, ..Cheat::none() }.caught(), Deviation::Ciphertext);
        assert_eq!(Cheat { pads: change, ..Cheat::none() }.caught(), Deviation::Labels);
    }
}

/// The halves of two attributes exchanged, or the differences spread so that their plain sum is right: the
/// weights see it.
#[test]
fn halves_whose_differences_cancel_out_are_caught() {
    let changes: [fn(&mut Vec<[G1; 2]>); 2] = [
        |points| {
            points[0][0] += G1::generator();
            points[1][0] -= G1::generator();
        },
        |points| {
            points[2][0] += G1::generator();
            points[2][1] -= G1::generator();
        },
    ];
    for plaintexts in changes {
        assert_eq!(Cheat { plaintexts, ..Cheat::none() }.caught(), Deviation::Ciphertext);
    }
}
