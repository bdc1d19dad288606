use alloc::string::ToString;
use core::time::Duration;

use quiver_ainq::{Ristretto255, SecretScalar};
use quiver_garble::policy::Schema;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use quiver_testbed::name;

use super::*;

type S = Ristretto255;

struct Scene {
    deployment: Deployment<S>,
    master: MasterSecret<S>,
    authority: VerifiedAuthority<S>,
    rng: ChaCha20Rng,
}

impl Scene {
    fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("alps"), master.public());
        let terms =
            CertificationTerms::new(Schema::parse("x: i16, medic: bool").unwrap(), Duration::from_secs(3600))
                .unwrap();
        let statement =
            terms.statement(name("positions"), SecretScalar::generate(&mut rng).public()).unwrap();
        let signed = master.sign_authority(&deployment, statement, &mut rng).unwrap();
        let authority = signed.verify(&deployment).unwrap();
        Self { deployment, master, authority, rng }
    }

    fn statement(&self, text: &str) -> PolicyStatement {
        PolicyStatement {
            authority: *self.authority.fingerprint(),
            group: name("alpha"),
            name: name("fence"),
            not_after: 1000,
            text: text.into(),
        }
    }

    fn signed(&mut self, text: &str) -> SignedPolicy<S> {
        let statement = self.statement(text);
        SignedPolicy::sign(&self.master, &self.deployment, statement, &mut self.rng).unwrap()
    }
}

#[test]
fn signed_policy_compiles_for_its_group_until_its_end() {
    let mut scene = Scene::new();
    let bytes = scene.signed("-5 <= x <= 5 or medic").encode();
    let policy = SignedPolicy::decode(&bytes).unwrap().verify(&scene.deployment).unwrap();
    assert_eq!(policy.bytes(), bytes);
    let compiled = policy.compile(&name("alpha"), &scene.authority, 999).unwrap();
    let holds = |x, medic| {
        let schema = Schema::parse("x: i16, medic: bool").unwrap();
        let inputs = schema.encode(&[("x", x), ("medic", medic)]).unwrap();
        compiled.circuit().evaluate(&inputs).unwrap() == [true]
    };
    assert!(holds(5, 0) && holds(-5, 0) && holds(6, 1) && !holds(6, 0) && !holds(-6, 0));
    let refused = |group: &str, now| policy.compile(&name(group), &scene.authority, now).unwrap_err();
    assert_eq!(refused("beta", 999), AdmissionPolicyError::OtherGroup(name("alpha")));
    assert_eq!(refused("alpha", 1000), AdmissionPolicyError::Expired);
}

#[test]
fn policy_about_fields_of_another_authority_or_none_is_refused() {
    let mut scene = Scene::new();
    let mut statement = scene.statement("medic");
    statement.authority = [7; 32];
    let signed = SignedPolicy::sign(&scene.master, &scene.deployment, statement, &mut scene.rng).unwrap();
    let policy = signed.verify(&scene.deployment).unwrap();
    let refused = policy.compile(&name("alpha"), &scene.authority, 0).unwrap_err();
    assert_eq!(refused, AdmissionPolicyError::OtherAuthority);
    let policy = scene.signed("y > 3").verify(&scene.deployment).unwrap();
    let refused = policy.compile(&name("alpha"), &scene.authority, 0).unwrap_err();
    assert_eq!(refused.to_string(), "line 1, column 1: no field is named `y`");
    let mut long = scene.statement("medic");
    long.text = "#".repeat(MAX_TEXT + 1);
    let refused = SignedPolicy::sign(&scene.master, &scene.deployment, long, &mut scene.rng).unwrap_err();
    assert_eq!(refused, AinqError::TooLong { what: "policy", limit: MAX_TEXT });
}

#[test]
fn policy_altered_anywhere_or_signed_by_another_kgc_is_refused() {
    let mut scene = Scene::new();
    let bytes = scene.signed("x < 5").encode();
    for at in 0..bytes.len() {
        let mut altered = bytes.clone();
        altered[at] ^= 1;
        let verified = SignedPolicy::<S>::decode(&altered).map(|policy| policy.verify(&scene.deployment));
        assert!(!matches!(verified, Ok(Ok(_))), "byte {at}");
        assert!(SignedPolicy::<S>::decode(&bytes[..at]).is_err());
    }
    let other = Scene { master: MasterSecret::generate(&mut scene.rng), ..Scene::new() };
    let foreign =
        SignedPolicy::sign(&other.master, &scene.deployment, scene.statement("x < 5"), &mut scene.rng);
    assert_eq!(foreign.unwrap().verify(&scene.deployment).unwrap_err(), AinqError::InvalidSignature);
    // A statement that the KGC signed for another purpose is no policy.
    let body = scene.statement("x < 5").body();
    let signature = scene.master.sign(&scene.deployment, Purpose::Parameters, &body, &mut scene.rng);
    let moved = Writer::new().lp(&body).fixed(&signature.encode()).finish();
    let refused = SignedPolicy::<S>::decode(&moved).unwrap().verify(&scene.deployment).unwrap_err();
    assert_eq!(refused, AinqError::InvalidSignature);
}
