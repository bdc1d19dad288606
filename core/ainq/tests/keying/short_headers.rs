//! Short headers: completed, they are the headers that they were made of, and nothing else.

use quiver_ainq::{
    Delta, Error, Header, HeaderCore, RevocationStatement, ShortHeader, SlotSet, StrategyKind, Suite,
};
use rand_core::RngCore;

use crate::swarm::{Broadcast, NOW, Swarm, name};

for_each_suite! {
    short_headers_of_random_histories_complete_to_the_headers;
    a_short_header_with_any_other_field_does_not_verify;
    only_re_keys_that_follow_in_a_term_of_a_tree_are_shortened;
}

/// A tree of a dozen with random joins and leaves.
fn history<S: Suite>(seed: u64) -> Swarm<S> {
    let mut swarm = Swarm::<S>::formed_by(StrategyKind::Tree, seed, 12);
    for _ in 0..12 {
        let draw = swarm.rng.next_u32();
        let slots = swarm.leadership.roster().iter().map(|(slot, _)| slot);
        let leaver = slots.filter(|slot| *slot == draw % 8).collect();
        let joining = if draw & 1 == 1 {
            swarm.add_edge();
            vec![swarm.edges.len() - 1]
        } else {
            Vec::new()
        };
        swarm.rekey(&joining, leaver);
    }
    swarm
}

/// The epochs of a history with the one before each.
fn pairs<S: Suite>(swarm: &Swarm<S>) -> impl Iterator<Item = (&Header<S>, &Broadcast<S>)> {
    swarm.broadcasts.iter().zip(&swarm.broadcasts[1..]).map(|(before, next)| (&before.header, next))
}

/// The header that a short one gives.
fn completed<S: Suite>(
    swarm: &Swarm<S>,
    short: &ShortHeader<S>,
    before: &Header<S>,
    wraps: &Delta,
) -> Result<Header<S>, Error> {
    short.clone().rebuild(&before.core, &before.digest(&swarm.deployment), wraps)
}

fn short_headers_of_random_histories_complete_to_the_headers<S: Suite>() {
    let (mut omitted, mut given) = (0, 0);
    for seed in 0..6 {
        let swarm = history::<S>(seed);
        for (before, next) in pairs(&swarm) {
            let short = next.header.shorten(&before.core).expect("it follows in a term of a tree");
            let tree = next.wraps.as_ref().unwrap();
            let parts = (0..4).map(|slot| tree.branch(slot)).chain([tree.whole()]);
            for wraps in parts {
                let whole = completed(&swarm, &short, before, &wraps).unwrap();
                assert_eq!(whole.encode(&swarm.deployment), next.header.encode(&swarm.deployment));
            }
            if short.roster_hash.is_some() {
                given += 1;
            } else {
                omitted += 1;
            }
            // The fields under the tag are read off the front of a header, whoever's key is expected.
            let (bytes, other) = (before.encode(&swarm.deployment), swarm.edges[0].keypair.public());
            for expected in [None, Some(swarm.leader.public()), Some(other)] {
                let core = HeaderCore::decode_expecting(&bytes, &swarm.deployment, expected).unwrap();
                assert_eq!(core.digest(&swarm.deployment), before.core.digest(&swarm.deployment));
            }
        }
    }
    assert!(omitted > 5 && given > 20, "{omitted} {given}");
}

fn a_short_header_with_any_other_field_does_not_verify<S: Suite>() {
    let swarm = history::<S>(7);
    let none = RevocationStatement::empty();
    let verify = |header: Header<S>| header.verify(&swarm.deployment, &name("alpha"), None, &none, NOW);
    let mut tried = 0;
    for (before, next) in pairs(&swarm) {
        let wraps = next.wraps.as_ref().unwrap().whole();
        let short = next.header.shorten(&before.core).unwrap();
        verify(completed(&swarm, &short, before, &wraps).unwrap()).unwrap();
        let point = *swarm.edges[0].spare.point();
        let changes: [fn(&mut ShortHeader<S>); 11] = [
            |short| short.nonce[31] ^= 1,
            |short| short.issued_at -= 1,
            |short| short.valid_until += 1,
            |short| {
                short.removed = SlotSet::from_runs([quiver_ainq::SlotRun { start: 900, len: 1 }]).unwrap();
            },
            |short| short.added = SlotSet::from_runs([quiver_ainq::SlotRun { start: 900, len: 1 }]).unwrap(),
            |short| short.changes = Some([3; 32]),
            |short| short.roster_hash = Some([3; 32]),
            |short| short.roster_hash = None,
            |short| short.revocation_number = Some(77),
            |short| short.tag[0] ^= 1,
            |short| short.prev[7] ^= 1,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut other = short.clone();
            change(&mut other);
            if number == 7 && short.roster_hash.is_none() {
                continue;
            }
            let refused = completed(&swarm, &other, before, &wraps).and_then(verify);
            assert!(refused.is_err(), "change {number}");
            tried += 1;
        }
        let mut other = short.clone();
        other.point = if short.point.is_some() { None } else { Some(point) };
        assert!(completed(&swarm, &other, before, &wraps).and_then(verify).is_err());
        // Other wraps, another signature, and the epoch before in place of the one named.
        let mut bytes = wraps.encode();
        *bytes.last_mut().unwrap() ^= 1;
        // The last byte is no part of a wrap where nobody needs one.
        if let Ok(changed) = Delta::decode(&bytes) {
            let refused = completed(&swarm, &short, before, &changed).and_then(verify);
            assert_eq!(refused.map(drop).unwrap_err(), Error::InvalidSignature);
        }
        let signed = ShortHeader { signature: before.signature, ..short.clone() };
        let refused = completed(&swarm, &signed, before, &wraps).and_then(verify);
        assert_eq!(refused.map(drop).unwrap_err(), Error::InvalidSignature);
        let gap = short.clone().rebuild(&next.header.core, &next.header.digest(&swarm.deployment), &wraps);
        assert_eq!(gap.map(drop).unwrap_err(), Error::Gap);
        // Unchanged parts have one form: they are left out.
        for as_before in [
            ShortHeader { roster_hash: Some(before.core.roster_hash), ..short.clone() },
            ShortHeader { revocation_number: Some(before.core.revocation_number), ..short.clone() },
        ] {
            let refused = completed(&swarm, &as_before, before, &wraps).map(drop).unwrap_err();
            assert_eq!(refused, Error::Malformed("short header"));
        }
    }
    assert!(tried > 100, "{tried}");
}

fn only_re_keys_that_follow_in_a_term_of_a_tree_are_shortened<S: Suite>() {
    let swarm = history::<S>(8);
    let [first, second, third] = [0, 1, 2].map(|epoch| &swarm.broadcasts[epoch].header);
    assert!(second.shorten(&first.core).is_some() && third.shorten(&second.core).is_some());
    for (header, before) in [(first, first), (first, second), (second, second), (third, first)] {
        assert!(header.shorten(&before.core).is_none());
    }
    let flat = Swarm::<S>::formed(9, 3);
    assert!(flat.broadcasts[1].header.shorten(&flat.broadcasts[0].header.core).is_none());
    // A number of a list that is 0 stands for the one before.
    let mut before = second.core.clone();
    assert!(third.shorten(&before).unwrap().revocation_number.is_none());
    before.revocation_number = 5;
    assert!(third.shorten(&before).is_none());
    before = second.core.clone();
    before.epoch.term += 1 << 16;
    assert!(third.shorten(&before).is_none());
}
