//! Fields certified for a period: which drone gets which credential, its end, and refusals of bad ones.

use std::time::Duration;

use quiver_abke::{Authority, Credential, Error as AbkeError, UnverifiedPublicKey, Verifier};
use quiver_admission::certifying::{
    Certificate, CertificationTerms, Certifier, CertifyError, MAX_CERTIFIED, MAX_PERIOD, MIN_PERIOD,
};
use quiver_ainq::{Role, VerifiedAuthority};
use quiver_crypto::Secret;
use quiver_delivery::attributes::query::MAX_KEY_LEN;
use quiver_delivery::attributes::{IssuerEvent, KeyMaker};
use quiver_garble::policy::Schema;
use quiver_machine::RefusalReason;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::world::{S, START, World, name};

const PERIOD: Duration = Duration::from_secs(3600);
/// Seed of all slot keys.
const SEED: Secret<32> = Secret::new([7; 32]);

fn terms() -> CertificationTerms {
    CertificationTerms::new(Schema::parse("x: i12, time: u6, medic: bool").unwrap(), PERIOD).unwrap()
}

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(5)
}

/// A world with an authority `positions` beside a toy, and one drone with certified fields.
fn world(seed: u64) -> (World, usize) {
    let mut world = World::new(seed, &["orders"]);
    world.add_authority(|point| terms().statement(name("positions"), point).unwrap(), certifier);
    let drone = world.add_drone();
    certify(&mut world, drone, -5);
    (world, drone)
}

fn certifier(statement: &VerifiedAuthority<S>) -> Box<dyn KeyMaker> {
    Box::new(Certifier::new(CertificationTerms::of(statement).unwrap(), SEED))
}

fn certify(world: &mut World, drone: usize, x: i128) {
    let granted = terms().grant(&[("x", x), ("time", 63), ("medic", 1)]).unwrap();
    world.grant("positions", drone, Some(&granted.encoded));
}

fn held(world: &World, drone: usize) -> Certificate {
    Certificate::decode(world.key(drone, "positions").unwrap(), &terms(), &mut rng()).unwrap()
}

fn fields(certificate: &Certificate) -> String {
    terms().describe(certificate.credential().unwrap().attributes())
}

#[test]
fn drone_gets_its_fields_certified_for_the_period_and_anew_in_the_next() {
    let (mut world, drone) = world(1);
    world.fetch(drone);
    let first = held(&world, drone);
    assert_eq!(fields(&first), "x = -5, time = 63, medic = true");
    assert_eq!(first.key().period(), terms().period_at(world.clock().unix));
    let bytes = world.key(drone, "positions").unwrap().to_vec();
    assert_eq!(Certificate::period_of(&bytes), Ok(first.key().period()));
    // Within the period the same one, across restarts of both.
    world.restart_centre();
    world.restart_drone(drone);
    world.fetch(drone);
    assert_eq!((world.key(drone, "positions").unwrap(), world.issued()), (bytes.as_slice(), 1));
    world.run_for(PERIOD);
    world.fetch(drone);
    let second = held(&world, drone);
    assert_eq!(second.key().period(), first.key().period() + 1);
    assert_eq!((fields(&second), world.issued()), (fields(&first), 2));
    // A presentation of the first period is refused in the second.
    let shown = |of: &Certificate| {
        let presentation = of.credential().unwrap().unlink(&mut rng());
        UnverifiedPublicKey::decode(presentation.encoded(), terms().schema().bits()).unwrap()
    };
    let verifier = Verifier::new(second.key().clone());
    assert!(verifier.verify(shown(&second), &mut rng()).is_ok());
    assert_eq!(verifier.verify(shown(&first), &mut rng()).unwrap_err(), AbkeError::InvalidSignature);
}

#[test]
fn fields_that_change_are_certified_anew_and_revoked_ones_are_erased_and_not_renewed() {
    let (mut world, drone) = world(2);
    world.fetch(drone);
    certify(&mut world, drone, 2047);
    world.fetch(drone);
    assert_eq!(fields(&held(&world, drone)), "x = 2047, time = 63, medic = true");
    world.grant("positions", drone, None);
    world.fetch(drone);
    assert_eq!(world.key(drone, "positions"), None);
    world.run_for(PERIOD);
    world.fetch(drone);
    assert_eq!(world.key(drone, "positions"), None);
}

#[test]
fn revoked_drone_is_certified_nothing_in_the_next_period() {
    let (mut world, drone) = world(3);
    world.fetch(drone);
    world.revoke(drone);
    world.run_for(PERIOD);
    world.fetch(drone);
    assert!(world.refusals(drone).contains(&RefusalReason::Revoked));
    let of_the_last = held(&world, drone).key().period();
    assert!(of_the_last < terms().period_at(world.clock().unix));
}

#[test]
fn leaders_get_the_slot_keys_of_the_period_and_drones_without_fields_nothing() {
    let (mut world, drone) = world(4);
    let bystander = world.add_drone();
    let role = Role::Leader { group: name("alpha"), ordinal: 1 };
    let keypair = world.keypair(9, role, START + 1_000_000);
    let leader = world.add_drone_with(keypair);
    for drone in [drone, bystander, leader] {
        world.fetch(drone);
    }
    assert_eq!((world.key(bystander, "positions"), world.key(leader, "orders")), (None, None));
    let of_the_leader = held(&world, leader);
    assert_eq!(of_the_leader.key(), held(&world, drone).key());
    assert!(of_the_leader.credential().is_none());
    let published = IssuerEvent::Published { authority: name("positions"), name: name("drone-9") };
    assert!(world.issuer_events().contains(&&published));
    // Public: not a key that the registry knows of.
    assert_eq!(world.issued(), 1);
    world.fetch(leader);
    let count = |world: &World| world.issuer_events().iter().filter(|event| ***event == published).count();
    assert_eq!(count(&world), 2);
    world.run_for(PERIOD);
    world.fetch(leader);
    assert_eq!(held(&world, leader).key().period(), of_the_leader.key().period() + 1);
}

#[test]
fn credential_altered_anywhere_or_of_another_authority_is_refused() {
    let (mut world, drone) = world(5);
    world.fetch(drone);
    let bytes = world.key(drone, "positions").unwrap().to_vec();
    // Every part: version, lengths, period, slot keys, fields, secrets, points, signatures.
    let first = (0..20).chain([200, 2000]);
    let parts = first.chain((bytes.len() - Credential::encoded_len(19)..bytes.len()).step_by(53));
    for at in parts.chain([bytes.len() - 1]) {
        let mut altered = bytes.clone();
        altered[at] ^= 1;
        assert!(Certificate::decode(&altered, &terms(), &mut rng()).is_err(), "byte {at}");
    }
    for length in (0..bytes.len()).step_by(97) {
        assert!(Certificate::decode(&bytes[..length], &terms(), &mut rng()).is_err());
    }
    let wider =
        CertificationTerms::new(Schema::parse("x: i12, time: u7, medic: bool").unwrap(), PERIOD).unwrap();
    let refused = Certificate::decode(&bytes, &wider, &mut rng()).unwrap_err();
    assert_eq!(refused, CertifyError::Malformed("slot keys of another schema"));
    // The credential of one authority under the slot keys of another.
    let foreign = Authority::derive(&Secret::new([8; 32]), held(&world, drone).key().period(), 19).unwrap();
    let head = 1 + 4 + foreign.key().encode().len();
    let mixed = [&bytes[..5], &foreign.key().encode(), &bytes[head..]].concat();
    let refused = Certificate::decode(&mixed, &terms(), &mut rng()).unwrap_err();
    assert_eq!(refused, CertifyError::Abke(AbkeError::OtherAuthority));
}

#[test]
fn values_that_do_not_fit_are_not_granted_and_grants_of_another_schema_not_certified() {
    let refused = |values: &[(&str, i128)]| terms().grant(values).unwrap_err().fault.to_string();
    assert_eq!(refused(&[("x", 2048), ("time", 0), ("medic", 0)]), "2048 does not fit `x`, which is i12");
    assert_eq!(refused(&[("x", 0), ("time", 0)]), "field `medic` has no value");
    let mut certifier = Certifier::new(terms(), SEED);
    let good = terms().grant(&[("x", 0), ("time", 0), ("medic", 0)]).unwrap().encoded;
    assert!(certifier.make(&good, &mut rng()).is_err(), "before any period");
    certifier.begin_period(START);
    assert!(certifier.make(&good, &mut rng()).is_ok());
    let mut beyond = good.clone();
    beyond[6] |= 0x80;
    for (granted, why) in [
        (beyond, "malformed: bits beyond the last field"),
        (vec![0, 0, 0, 20, 0, 0, 0], "malformed: granted under another schema"),
        (good[..6].to_vec(), "malformed"),
        (vec![], "malformed"),
    ] {
        let error = certifier.make(&granted, &mut rng()).unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }
}

#[test]
fn terms_are_bounded_and_the_widest_certificate_fits_an_answer() {
    let schema = |bits: usize| {
        let fields = (0..bits / 64).map(|field| format!("f{field}: u64"));
        let rest = (!bits.is_multiple_of(64)).then(|| format!("rest: u{}", bits % 64));
        Schema::parse(&fields.chain(rest).collect::<Vec<_>>().join(", ")).unwrap()
    };
    assert_eq!(CertificationTerms::new(Schema::new(), PERIOD), Err(CertifyError::Bits(0)));
    let beyond = MAX_CERTIFIED + 1;
    assert_eq!(CertificationTerms::new(schema(beyond), PERIOD), Err(CertifyError::Bits(beyond)));
    assert!(
        CertificationTerms::new(schema(9), MIN_PERIOD).is_ok()
            && CertificationTerms::new(schema(9), MAX_PERIOD).is_ok()
    );
    for period in [Duration::ZERO, MIN_PERIOD - Duration::from_secs(1), MAX_PERIOD + Duration::from_secs(1)] {
        assert_eq!(CertificationTerms::new(schema(9), period), Err(CertifyError::Period(period.as_secs())));
    }
    let widest = CertificationTerms::new(schema(MAX_CERTIFIED), PERIOD).unwrap();
    let mut certifier = Certifier::new(widest.clone(), SEED);
    certifier.begin_period(START);
    let names: Vec<_> = widest.schema().fields().iter().map(|field| (field.name().to_string(), 1)).collect();
    let values: Vec<_> = names.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let key = certifier.make(&widest.grant(&values).unwrap().encoded, &mut rng()).unwrap();
    assert_eq!(key.len(), Certificate::encoded_len(MAX_CERTIFIED));
    assert!(key.len() <= MAX_KEY_LEN);
}
