//! The certification authority, the policy that the KGCs signed, and what drones have.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quiver_abke::{Authority, AuthorityKey, Credential};
use quiver_admission::certifying::{CertificationTerms, CertifyError};
use quiver_admission::gate::GateTiming;
use quiver_admission::policy::MAX_ANDS;
use quiver_admission::{
    AdmissionPolicyError, AnonymousConfig, Demand, PolicyStatement, SignedPolicy, VerifiedPolicy,
};
use quiver_ainq::{
    Deployment, Name, Purpose, SecretScalar, SignedAuthority, Suite, UnixTime, VerifiedAuthority,
};
use quiver_crypto::Secret;
use quiver_crypto::canonical::{Malformed, Reader, Writer};
use quiver_garble::policy::{MAX_TEXT, Policy, Schema};
use quiver_group::edge::EdgeTiming;
use quiver_kem::KemSetting;
use rand_chacha::ChaCha8Rng;
use zeroize::Zeroizing;

use crate::fleet::name;
use crate::master_key::MasterKey;
use crate::rng_stream::{self, RngStream, below};
use crate::{EPOCH_START, GROUP, Setup, WorldError};

/// Certified fields of every drone by default: metres from the origin, and percent.
pub const FIELDS: &str = "x: i16, y: i16, battery: u7";
/// Default policy: to be inside a circle, with some battery left.
pub const FENCE: &str = "(x - 200)^2 + (y + 100)^2 < 700^2 and battery >= 20";
/// Default length of a period.
pub const PERIOD: Duration = Duration::from_secs(3600);
/// Default number of answers of a drone to one leader in a period, as in the service.
pub const ANSWERS: u32 = 8;

/// Greatest distance of drones from the origin, in each direction.
const REACH: u64 = 1000;
/// Maximum length of a statement in a checkpoint's bytes.
const MAX_STATEMENT: usize = 2 * MAX_TEXT;
/// Number of periods whose slot keys are kept.
const KEPT_PERIODS: usize = 8;
/// Number of credentials that are kept, of some 4 KB each.
const KEPT_CREDENTIALS: usize = 256;
/// Time limit of a run: very many share one processor.
const PATIENCE: Duration = Duration::from_secs(600);

/// Reason why there is no checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The policy cannot be demanded.
    #[error(transparent)]
    Policy(#[from] AdmissionPolicyError),
    /// The authority's terms cannot be: a period that is too short or too long.
    #[error(transparent)]
    Terms(#[from] CertifyError),
    /// The exchange refuses; never with the fields of this module.
    #[error(transparent)]
    Exchange(#[from] quiver_abke::Error),
    /// The protocol refuses; never for a master key's own signatures.
    #[error(transparent)]
    Protocol(#[from] quiver_ainq::Error),
    /// Bytes that are no checkpoint's.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A circuit refuses; never for values of its own fields.
    #[error(transparent)]
    Circuit(#[from] quiver_garble::Error),
}

/// Policy and terms of admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The certified fields, some or all of [`FIELDS`].
    pub fields: &'static str,
    /// The policy, over these fields.
    pub policy: String,
    /// Validity of a credential: with the period all memberships end.
    pub period: Duration,
    /// Answers of a drone to one leader in a period.
    pub answers: u32,
}

impl Rules {
    /// Makes the rules of this policy over all fields, with periods and answers as usual.
    pub fn of(policy: impl Into<String>) -> Self {
        Self { fields: FIELDS, policy: policy.into(), period: PERIOD, answers: ANSWERS }
    }

    /// Makes the rules of this policy over the battery alone: 7 attributes in place of 39. An exchange computes with each.
    pub(crate) fn of_battery(policy: impl Into<String>) -> Self {
        Self { fields: "battery: u7", ..Self::of(policy) }
    }
}

/// Fields of a drone, to be certified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display("x={x} y={y} battery={battery}")]
pub struct CertifiedFields {
    /// Metres to the east.
    pub x: i16,
    /// Metres to the north.
    pub y: i16,
    /// Percent; at most 127.
    pub battery: u8,
}

/// Surroundings in which a checkpoint is created.
pub struct CheckpointContext<'a, S: Suite> {
    /// The deployment.
    pub deployment: &'a Deployment<S>,
    /// The master key that signs.
    pub master_key: &'a dyn MasterKey<S>,
    /// The group that is led.
    pub group: &'a Name,
    /// Seed of all randomness.
    pub seed: u64,
    /// The current time.
    pub now: UnixTime,
}

/// Values that were used last, at most `MOST` of them: few enough to look through. In place of two maps it saves the debug
/// build 70 kB of machine code.
struct LastUsed<K, V, const MOST: usize>(Vec<(K, V)>);

impl<K: PartialEq, V: Clone, const MOST: usize> LastUsed<K, V, MOST> {
    const fn new() -> Self {
        Self(Vec::new())
    }

    fn get(&mut self, key: &K) -> Option<V> {
        let place = self.0.iter().position(|(known, _)| known == key)?;
        self.0.get_mut(place..)?.rotate_left(1);
        self.0.last().map(|(_, value)| value.clone())
    }

    /// Keeps a value. Another thread may have made the same one meanwhile.
    fn keep(&mut self, key: K, value: V) {
        self.0.retain(|(known, _)| *known != key);
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push((key, value));
    }
}

/// Slot keys and credentials that were made before: worlds that begin with the same enrolled drones ask for the same
/// ones again.
struct IssuedCredentials {
    authorities: LastUsed<u64, Arc<Authority>, KEPT_PERIODS>,
    credentials: LastUsed<(u64, u32, CertifiedFields), Credential, KEPT_CREDENTIALS>,
}

impl Default for IssuedCredentials {
    fn default() -> Self {
        Self { authorities: LastUsed::new(), credentials: LastUsed::new() }
    }
}

/// An authority and a policy. Everything about them follows from a seed.
#[derive(derive_more::Debug)]
#[debug("Checkpoint {{ policy: {:?}, .. }}", self.policy())]
pub struct Checkpoint<S: Suite> {
    deployment: Deployment<S>,
    group: Name,
    authority: VerifiedAuthority<S>,
    terms: CertificationTerms,
    /// All slot keys follow from it.
    secret: Secret<32>,
    issued: Mutex<IssuedCredentials>,
    policy: VerifiedPolicy<S>,
    compiled: Policy,
    answers: u32,
    seed: u64,
}

/// Refuses a text that is no policy over [`FIELDS`] that leaders can demand.
///
/// # Errors
/// [`CheckpointError`], with the line and the column.
pub fn check(policy: &str) -> Result<(), CheckpointError> {
    let schema = Schema::parse(FIELDS).map_err(quiver_garble::Error::from)?;
    let policy = Policy::compile(policy, &schema).map_err(quiver_garble::Error::from)?;
    match policy.statistics().and {
        ands if ands > MAX_ANDS => Err(AdmissionPolicyError::TooLarge(ands).into()),
        _ => Ok(()),
    }
}

impl<S: Suite> Checkpoint<S> {
    /// Founds it.
    ///
    /// # Errors
    /// [`CheckpointError`]: the policy's mistake, and its place.
    pub fn found(place: &CheckpointContext<'_, S>, rules: &Rules) -> Result<Self, CheckpointError> {
        let CheckpointContext { deployment, master_key, group, seed, now } = *place;
        let mut rng = rng_stream::generator(seed, RngStream::Checkpoint);
        let schema = Schema::parse(rules.fields).map_err(quiver_garble::Error::from)?;
        let terms = CertificationTerms::new(schema, rules.period)?;
        let statement =
            terms.statement(Name::new("positions")?, SecretScalar::generate(&mut rng).public())?;
        let signature = master_key.sign(deployment, Purpose::Parameters, &statement.body(), &mut rng);
        let authority = SignedAuthority::new(statement, signature)?.verify(deployment)?;
        let statement = PolicyStatement {
            authority: *authority.fingerprint(),
            group: group.clone(),
            name: Name::new("checkpoint")?,
            not_after: UnixTime::MAX,
            text: rules.policy.clone(),
        };
        let signature = master_key.sign(deployment, Purpose::AbkePolicy, &statement.body(), &mut rng);
        let policy = SignedPolicy::new(statement, signature)?.verify(deployment)?;
        let compiled = policy.compile(group, &authority, now)?;
        Ok(Self {
            deployment: deployment.clone(),
            group: group.clone(),
            authority,
            terms,
            secret: Secret::random(&mut rng),
            issued: Mutex::default(),
            policy,
            compiled,
            answers: rules.answers,
            seed,
        })
    }

    /// The checkpoint of a world whose leaders demand a policy.
    pub(crate) fn of_world(
        setup: &Setup,
        deployment: &Deployment<S>,
        master_key: &dyn MasterKey<S>,
    ) -> Result<Option<Self>, WorldError> {
        let Some(rules) = &setup.admission else { return Ok(None) };
        let group = name(GROUP);
        let place = CheckpointContext {
            deployment,
            master_key,
            group: &group,
            seed: setup.fleet_seed,
            now: EPOCH_START,
        };
        Self::found(&place, rules).map(Some).map_err(|error| WorldError::Admission(error.to_string()))
    }

    /// All of it but deployment, group and seed, for another process of the same run: the statements, the
    /// secret that all slot keys follow from, and the number of answers.
    pub fn bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::new();
        writer.lp(&self.authority.bytes()).lp(&self.policy.bytes()).fixed(self.secret.expose());
        Zeroizing::new(writer.u32(self.answers).finish())
    }

    /// The checkpoint of another process, which [`bytes`](Self::bytes) came from.
    ///
    /// # Errors
    /// [`CheckpointError`] for other bytes, or those of another deployment or group.
    pub fn restore(
        (deployment, group): (&Deployment<S>, &Name),
        bytes: &[u8],
        (seed, now): (u64, UnixTime),
    ) -> Result<Self, CheckpointError> {
        let mut reader = Reader::new(bytes);
        let authority = SignedAuthority::decode(reader.lp(MAX_STATEMENT)?)?.verify(deployment)?;
        let policy = SignedPolicy::decode(reader.lp(MAX_STATEMENT)?)?.verify(deployment)?;
        let (secret, answers) = (Secret::new(reader.array()?), reader.u32()?);
        reader.end()?;
        Ok(Self {
            deployment: deployment.clone(),
            group: group.clone(),
            terms: CertificationTerms::of(&authority)?,
            compiled: policy.compile(group, &authority, now)?,
            authority,
            secret,
            issued: Mutex::default(),
            policy,
            answers,
            seed,
        })
    }

    /// The policy.
    pub fn policy(&self) -> &str {
        &self.policy.text
    }

    /// The certification authority.
    pub const fn authority(&self) -> &VerifiedAuthority<S> {
        &self.authority
    }

    /// AND gates of the policy, and attributes of a drone.
    pub fn size(&self) -> (usize, usize) {
        (self.compiled.statistics().and, self.terms.schema().bits())
    }

    /// Answers of a drone to one leader in a period.
    pub const fn answers(&self) -> u32 {
        self.answers
    }

    /// The period at this time.
    pub fn period_at(&self, now: UnixTime) -> u64 {
        self.terms.period_at(now)
    }

    /// End of a period.
    pub fn end_of(&self, period: u64) -> UnixTime {
        self.terms.end_of(period)
    }

    fn slots(&self, period: u64) -> Result<Arc<Authority>, CheckpointError> {
        let known = self.issued().authorities.get(&period);
        if let Some(known) = known {
            return Ok(known);
        }
        let derived = Arc::new(Authority::derive(&self.secret, period, self.terms.schema().bits())?);
        self.issued().authorities.keep(period, Arc::clone(&derived));
        Ok(derived)
    }

    fn issued(&self) -> MutexGuard<'_, IssuedCredentials> {
        // Whole even after a panic, because nothing is computed meanwhile.
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The public slot keys of a period, for leaders.
    ///
    /// # Errors
    /// [`CheckpointError`], never.
    pub fn slot_keys(&self, period: u64) -> Result<AuthorityKey, CheckpointError> {
        Ok(self.slots(period)?.key().clone())
    }

    /// Admission settings of a leader of the group.
    pub fn demand(&self) -> Demand<S> {
        let timing = GateTiming { patience: PATIENCE, ..GateTiming::default() };
        Demand { policy: self.policy.clone(), authority: self.authority.clone(), timing }
    }

    /// A drone's first fields.
    pub fn fields(&self, drone: u32) -> CertifiedFields {
        let mut rng = rng_stream::generator(self.seed, RngStream::Fields(drone));
        // REACH is far inside the range of the fields.
        let metres = |rng: &mut ChaCha8Rng| {
            i16::try_from(i64::try_from(below(rng, 2 * REACH + 1)).unwrap_or(0) - REACH as i64).unwrap_or(0)
        };
        let (x, y) = (metres(&mut rng), metres(&mut rng));
        CertifiedFields { x, y, battery: u8::try_from(below(&mut rng, 101)).unwrap_or(0) }
    }

    /// Evaluates in the clear if the policy admits a drone with these fields.
    ///
    /// # Errors
    /// [`CheckpointError::Circuit`], never for fields in their bounds.
    pub fn admits(&self, fields: &CertifiedFields) -> Result<bool, CheckpointError> {
        Ok(self.compiled.circuit().evaluate(&self.bits(fields)?)? == [true])
    }

    fn bits(&self, fields: &CertifiedFields) -> Result<Zeroizing<Vec<bool>>, CheckpointError> {
        let schema = self.terms.schema();
        let values = [("x", fields.x.into()), ("y", fields.y.into()), ("battery", fields.battery.into())];
        let certified: Vec<_> =
            values.into_iter().filter(|(field, _)| schema.field(field).is_some()).collect();
        let bits = schema.encode(&certified).map_err(quiver_garble::Error::from)?;
        Ok(Zeroizing::new(bits.to_vec()))
    }

    /// Credential of a drone for a period.
    ///
    /// # Errors
    /// [`CheckpointError`], never for fields in their bounds.
    pub fn certify(
        &self,
        drone: u32,
        fields: &CertifiedFields,
        period: u64,
    ) -> Result<Credential, CheckpointError> {
        let of = (period, drone, *fields);
        let known = self.issued().credentials.get(&of);
        if let Some(known) = known {
            return Ok(known);
        }
        let mut rng = rng_stream::generator(self.seed, RngStream::Certifier(drone, period, *fields));
        let credential = self.slots(period)?.certify(&self.bits(fields)?, &mut rng)?;
        self.issued().credentials.keep(of, credential.clone());
        Ok(credential)
    }

    /// Configuration of an anonymous edge.
    pub fn anonymous(
        &self,
        credential: Credential,
        period: u64,
        (timing, kem): (EdgeTiming, KemSetting),
    ) -> AnonymousConfig<S> {
        AnonymousConfig {
            deployment: self.deployment.clone(),
            group: self.group.clone(),
            authority: self.authority.clone(),
            credential,
            period,
            revocations: None,
            most: self.answers,
            // A run is of use within the period of its credential, which a drone with a wrong clock does not see end.
            patience: PATIENCE.min(self.terms.period()),
            timing,
            kem,
        }
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::Ristretto255;

    use super::*;
    use crate::master_key::SingleMasterKey;

    const NOW: UnixTime = 1_000_000;

    fn deployment(called: &str, seed: u64) -> (Box<dyn MasterKey<Ristretto255>>, Deployment<Ristretto255>) {
        let master =
            SingleMasterKey::found::<Ristretto255>(&mut rng_stream::generator(seed, RngStream::Checkpoint));
        let deployment = Deployment::new(Name::new(called).unwrap(), master.public());
        (Box::new(master), deployment)
    }

    fn founded(
        master_key: &dyn MasterKey<Ristretto255>,
        deployment: &Deployment<Ristretto255>,
        group: &Name,
    ) -> Checkpoint<Ristretto255> {
        let place = CheckpointContext { deployment, master_key, group, seed: 7, now: NOW };
        Checkpoint::found(&place, &Rules::of(FENCE)).unwrap()
    }

    #[test]
    fn restored_checkpoint_certifies_and_admits_the_same() {
        let (master, deployment) = deployment("one", 1);
        let group = Name::new("alpha").unwrap();
        let founded = founded(&*master, &deployment, &group);
        let restored = Checkpoint::restore((&deployment, &group), &founded.bytes(), (7, NOW)).unwrap();
        let period = founded.period_at(NOW);
        assert_eq!(restored.period_at(NOW), period);
        assert_eq!(restored.answers(), founded.answers());
        assert_eq!(restored.slot_keys(period).unwrap().encode(), founded.slot_keys(period).unwrap().encode());
        for drone in 0..20 {
            let fields = founded.fields(drone);
            assert_eq!(restored.fields(drone), fields);
            assert_eq!(restored.admits(&fields).unwrap(), founded.admits(&fields).unwrap());
        }
    }

    #[test]
    fn credential_is_the_same_whenever_it_is_asked_for_and_few_are_kept() {
        let (master, deployment) = deployment("one", 1);
        let group = Name::new("alpha").unwrap();
        let one = founded(&*master, &deployment, &group);
        let other = Checkpoint::restore((&deployment, &group), &one.bytes(), (7, NOW)).unwrap();
        let period = one.period_at(NOW);
        let fields = one.fields(3);
        let moved = CertifiedFields { x: fields.x ^ 1, ..fields };
        let asked = [(3, fields, period), (4, fields, period), (3, moved, period), (3, fields, period + 1)];
        let certify = |checkpoint: &Checkpoint<Ristretto255>, (drone, fields, period)| {
            checkpoint.certify(drone, &fields, period).unwrap()
        };
        let first = asked.map(|asked| certify(&one, asked).encode());
        for (asked, first) in asked.into_iter().zip(&first) {
            assert_eq!(&certify(&one, asked).encode(), first);
            assert_eq!(&certify(&other, asked).encode(), first);
        }
        assert!((0..4).all(|one| (0..one).all(|other| first[one] != first[other])));
        let credential = certify(&one, asked[0]);
        for drone in 0..2 * u32::try_from(KEPT_CREDENTIALS).unwrap() {
            one.issued().credentials.keep((period, drone, fields), credential.clone());
        }
        (0..2 * KEPT_PERIODS as u64).for_each(|more| drop(one.slot_keys(period + more).unwrap()));
        let issued = one.issued();
        assert_eq!(
            (issued.credentials.0.len(), issued.authorities.0.len()),
            (KEPT_CREDENTIALS, KEPT_PERIODS)
        );
    }

    #[test]
    fn values_that_are_used_stay_and_the_others_go() {
        let mut kept = LastUsed::<u32, u32, 4>::new();
        for key in 0..20 {
            kept.keep(key, 2 * key);
            assert_eq!(kept.get(&0), Some(0));
            assert_eq!(kept.get(&key), Some(2 * key));
            assert!(kept.0.len() <= 4);
        }
        kept.keep(19, 7);
        assert_eq!(kept.0, [(17, 34), (18, 36), (0, 0), (19, 7)]);
        assert_eq!(kept.get(&16), None);
    }

    #[test]
    fn bytes_that_were_altered_or_are_of_elsewhere_are_no_checkpoint() {
        let ((master, deployment), (_, other)) = (deployment("one", 1), deployment("two", 2));
        let (group, beta) = (Name::new("alpha").unwrap(), Name::new("beta").unwrap());
        let bytes = founded(&*master, &deployment, &group).bytes();
        let restore = |(deployment, group), bytes: &[u8]| {
            Checkpoint::<Ristretto255>::restore((deployment, group), bytes, (7, NOW)).is_ok()
        };
        assert!(restore((&deployment, &group), &bytes));
        assert!(!restore((&other, &group), &bytes));
        assert!(!restore((&deployment, &beta), &bytes));
        for cut in 0..bytes.len() {
            assert!(!restore((&deployment, &group), &bytes[..cut]), "{cut} bytes");
        }
        assert!(!restore((&deployment, &group), &[&**bytes, &[0]].concat()));
        // Beyond the statements are a secret and a number, of which any is one.
        for at in 0..bytes.len() - 36 {
            let mut altered = bytes.to_vec();
            altered[at] ^= 1;
            assert!(!restore((&deployment, &group), &altered), "byte {at}");
        }
    }
}
