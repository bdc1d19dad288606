//! Envelopes over every scheme of the crate.

use quiver_abe::envelope::{
    AnyKey, AnyParameters, AnyScheme, EnvelopeError, EnvelopeHeader, EnvelopeTarget, Kem, Lifetime,
    ReceivingSession, SendingSession, named_authority, open_bytes, seal_bytes,
};
use quiver_abe::{AbeError, FabeoCp, FabeoKp, Gpsw06, PublicEncoding, Scheme, SecretEncoding, Universe};
use quiver_policy::{AccessTree, AttributeSet, Schema};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::toy::{ALICE, NOW, known, rng};

/// A scheme with keys for a scout of sector 7 and for a medic.
struct Authority {
    name: &'static str,
    parameters: AnyParameters,
    scout: AnyKey,
    medic: AnyKey,
    target: EnvelopeTarget,
}

fn set(text: &str) -> AttributeSet {
    AttributeSet::parse(text, &Schema::new()).unwrap()
}

fn tree(text: &str) -> AccessTree {
    AccessTree::parse(text, &Schema::new()).unwrap()
}

/// Founds an authority; parameters and keys go through their encodings.
fn found<S: Scheme>(
    universe: &Universe,
    scout: &S::KeyTerms,
    medic: &S::KeyTerms,
    target: EnvelopeTarget,
) -> Authority {
    let mut rng = rng();
    let (parameters, master) = S::setup(universe, &mut rng).unwrap();
    let mut key = |terms| {
        let key = S::derive(&parameters, &master, terms, &mut rng).unwrap();
        AnyKey::decode(S::ID, &key.encode()).unwrap()
    };
    let (scout, medic) = (key(scout), key(medic));
    let parameters = AnyParameters::decode(S::ID, &parameters.encode()).unwrap();
    Authority { name: S::ID, parameters, scout, medic, target }
}

fn policy_in_ciphertext() -> Authority {
    let target = EnvelopeTarget::Policy(tree("scout and sector:7 or 2 of (medic, scout, cook)"));
    found::<FabeoCp>(&Universe::Open, &set("scout, sector:7"), &set("medic"), target)
}

fn policy_in_key<S: Scheme<KeyTerms = AccessTree>>(universe: &Universe) -> Authority {
    let target = EnvelopeTarget::Attributes(set("scout, sector:7"));
    found::<S>(universe, &tree("scout and sector:7"), &tree("medic or cook and scout"), target)
}

fn closed() -> Universe {
    Universe::closed(set("scout, sector:7, medic, cook").atoms()).unwrap()
}

fn all() -> Vec<Authority> {
    vec![
        policy_in_ciphertext(),
        policy_in_key::<FabeoKp>(&Universe::Open),
        policy_in_key::<Gpsw06>(&closed()),
    ]
}

fn sealed(authority: &Authority, data: &[u8]) -> Vec<u8> {
    let mut session = SendingSession::begin::<AnyScheme>(
        &authority.parameters,
        &authority.target,
        None,
        Some(&ALICE),
        Lifetime::SINGLE,
        NOW,
        &mut rng(),
    )
    .unwrap();
    seal_bytes(session.message(NOW).unwrap(), data, Some(&ALICE), &mut rng()).unwrap()
}

fn opened(parameters: &AnyParameters, key: &AnyKey, bytes: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
    let (header, chunks) = EnvelopeHeader::decode(bytes)?;
    let EnvelopeHeader::Opening(opening) = &header else { panic!("no opening") };
    let session = ReceivingSession::open::<AnyScheme>(parameters, key, opening)?;
    let (data, sender) = open_bytes(session.opener(&header)?, chunks, &known())?;
    assert_eq!(sender, Some([1; 32]));
    Ok(data.to_vec())
}

#[test]
fn envelopes_of_every_scheme_open_with_the_key_that_fits_and_no_other() {
    for authority in all() {
        let bytes = sealed(&authority, b"go north");
        let name = authority.name;
        assert_eq!(
            opened(&authority.parameters, &authority.scout, &bytes),
            Ok(b"go north".to_vec()),
            "{name}"
        );
        let other = opened(&authority.parameters, &authority.medic, &bytes);
        assert_eq!(other, Err(EnvelopeError::NotSatisfied), "{name}");
    }
}

#[test]
fn the_same_coins_make_the_same_envelope() {
    for authority in all() {
        assert_eq!(sealed(&authority, b"go north"), sealed(&authority, b"go north"), "{}", authority.name);
    }
}

#[test]
fn every_envelope_names_scheme_and_authority() {
    for authority in all() {
        let bytes = sealed(&authority, b"");
        let (EnvelopeHeader::Opening(opening), _) = EnvelopeHeader::decode(&bytes).unwrap() else {
            panic!("no opening")
        };
        assert_eq!(opening.scheme(), authority.name);
        let named = named_authority(opening.ciphertext()).unwrap();
        assert_eq!(named, *authority.parameters.authority().as_bytes());
        assert_eq!(authority.scout.authority(), authority.parameters.authority());
    }
}

#[test]
fn keys_and_parameters_of_other_schemes_and_authorities_are_told_as_such() {
    let all = all();
    for authority in &all {
        let bytes = sealed(authority, b"go north");
        for other in all.iter().filter(|other| other.name != authority.name) {
            let wrong = Err(EnvelopeError::WrongScheme(authority.name.into()));
            assert_eq!(opened(&other.parameters, &other.scout, &bytes), wrong);
            let mixed = opened(&authority.parameters, &other.scout, &bytes);
            assert_eq!(mixed, Err(EnvelopeError::Scheme(AbeError::WrongScheme)));
        }
    }
    // The same scheme under two authorities.
    let (mut own, elsewhere) = (policy_in_ciphertext(), set("scout, sector:7"));
    let (parameters, master) = FabeoCp::setup(&Universe::Open, &mut ChaCha20Rng::from_seed([9; 32])).unwrap();
    let key = FabeoCp::derive(&parameters, &master, &elsewhere, &mut rng()).unwrap();
    let bytes = sealed(&own, b"go north");
    own.scout = AnyKey::decode(FabeoCp::ID, &key.encode()).unwrap();
    let wrong = Err(EnvelopeError::Scheme(AbeError::WrongAuthority));
    assert_eq!(opened(&own.parameters, &own.scout, &bytes), wrong);
}

#[test]
fn sealing_to_what_the_scheme_does_not_take_is_an_error() {
    for authority in all() {
        let target = match authority.target {
            EnvelopeTarget::Policy(_) => EnvelopeTarget::Attributes(set("scout")),
            EnvelopeTarget::Attributes(_) => EnvelopeTarget::Policy(tree("scout")),
        };
        let (parameters, mut rng) = (&authority.parameters, rng());
        let session = SendingSession::begin::<AnyScheme>(
            parameters,
            &target,
            None,
            None,
            Lifetime::SINGLE,
            NOW,
            &mut rng,
        );
        assert!(matches!(session.err(), Some(EnvelopeError::Scheme(AbeError::WrongKind { .. }))));
    }
    assert!(AnyParameters::decode("rot13", &[]).is_err());
}

/// Every byte of header and KEM ciphertext, one bit of each: nothing of it is idle.
#[test]
fn flipping_a_bit_anywhere_in_an_envelope_of_any_scheme_is_an_error() {
    for mut authority in all() {
        // One attribute, so that there are few bytes.
        authority.target = match authority.target {
            EnvelopeTarget::Policy(_) => EnvelopeTarget::Policy(tree("scout")),
            EnvelopeTarget::Attributes(_) => authority.target,
        };
        let good = sealed(&authority, b"go");
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            assert!(
                opened(&authority.parameters, &authority.scout, &bad).is_err(),
                "{} byte {at}",
                authority.name
            );
        }
    }
}

/// A relay that knows the algebra changes the KEM ciphertext so that the shared secret would be the same or
/// known to it. Only encapsulating again shows that no honest sender made it.
#[test]
fn ciphertext_of_another_encapsulation_with_the_same_policy_does_not_open() {
    let authority = policy_in_ciphertext();
    let mut other_rng = ChaCha20Rng::from_seed([5; 32]);
    let begin = |rng: &mut ChaCha20Rng| {
        let (parameters, target) = (&authority.parameters, &authority.target);
        let mut session =
            SendingSession::begin::<AnyScheme>(parameters, target, None, None, Lifetime::SINGLE, NOW, rng)
                .unwrap();
        session.message(NOW).unwrap().header
    };
    let (one, two) = (begin(&mut rng()), begin(&mut other_rng));
    assert_eq!(one.len(), two.len());
    // c2 of the one behind the ciphertext of the other.
    let cut = one.len() - 32;
    let mixed = [&one[..cut], &two[cut..]].concat();
    let (EnvelopeHeader::Opening(opening), _) = EnvelopeHeader::decode(&mixed).unwrap() else {
        panic!("no opening")
    };
    let session = ReceivingSession::open::<AnyScheme>(&authority.parameters, &authority.scout, &opening);
    assert_eq!(session.err(), Some(EnvelopeError::DoesNotOpen));
}

#[test]
fn targets_survive_the_way_through_a_ciphertext() {
    for authority in all() {
        let bytes = sealed(&authority, b"");
        let (EnvelopeHeader::Opening(opening), _) = EnvelopeHeader::decode(&bytes).unwrap() else {
            panic!("no opening")
        };
        let decoded = AnyScheme::decode(&authority.parameters, opening.ciphertext()).unwrap();
        assert_eq!(AnyScheme::target(&decoded), &authority.target);
        assert_eq!(AnyScheme::target(&decoded).to_string(), authority.target.to_string());
    }
}
