//! The certification authority, the policy that the KGCs signed, the leader, and what drones have.

use std::time::Duration;

use quiver_abke::{Authority, AuthorityKey};
use quiver_ainq::{
    AuthorityStatement, Deployment, DroneKeypair, Identity, Name, Purpose, RevocationList, Role,
    SecretScalar, SecretValue, SignedAuthority, Suite, UnixTime, VerifiedAuthority,
};
use quiver_crypto::Secret;
use quiver_garble::policy::{Policy, Schema};
use quiver_role::admission::applicant::{Applicant, ApplicantConfig};
use quiver_role::admission::gate::{Gate, GateConfig, GateTiming};
use quiver_role::admission::policy::MAX_ANDS;
use quiver_role::admission::{Ledger, PolicyError, PolicyStatement, SignedPolicy, VerifiedPolicy};
use quiver_role::attributes::certifying::{CertifyError, KIND, MAX_PERIOD, SCHEME, Terms};
use rand_chacha::ChaCha8Rng;
use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use super::parties::{Guard, Visitor};
use crate::seeds::{self, Player, below};
use crate::treasury::Treasury;

/// What every drone has certified: metres from the origin, and percent.
pub const FIELDS: &str = "x: i16, y: i16, battery: u7";
/// What is demanded unless something else is said: to be inside a circle, with some battery left.
pub const FENCE: &str = "(x - 200)^2 + (y + 100)^2 < 700^2 and battery >= 20";
/// Runs of each drone; and how often it answers one leader in a period.
pub const RUNS: u32 = 2;

/// How far from the origin drones are at most, in each direction.
const REACH: u64 = 1000;
/// How long a run may take: very many share one processor.
const PATIENCE: Duration = Duration::from_secs(600);

/// Why there is no checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The policy cannot be demanded.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The authority's terms cannot be; never with the fields of this module.
    #[error(transparent)]
    Terms(#[from] CertifyError),
    /// The exchange refuses; never with the fields of this module.
    #[error(transparent)]
    Exchange(#[from] quiver_abke::Error),
    /// The protocol refuses; never for a treasury's own signatures.
    #[error(transparent)]
    Protocol(#[from] quiver_ainq::Error),
    /// A circuit refuses; never for values of its own fields.
    #[error(transparent)]
    Circuit(#[from] quiver_garble::Error),
}

/// Where a checkpoint is founded.
pub struct Place<'a, S: Suite> {
    /// The deployment.
    pub deployment: &'a Deployment<S>,
    /// Who signs.
    pub treasury: &'a dyn Treasury<S>,
    /// The group that is led.
    pub group: &'a Name,
    /// Whence all randomness comes.
    pub seed: u64,
    /// What time it is.
    pub now: UnixTime,
}

/// An authority, a policy, a leader. Everything about it follows from a seed.
pub struct Checkpoint<S: Suite> {
    deployment: Deployment<S>,
    group: Name,
    leader: DroneKeypair<S>,
    authority: VerifiedAuthority<S>,
    terms: Terms,
    slots: Authority,
    period: u64,
    policy: VerifiedPolicy<S>,
    compiled: Policy,
    seed: u64,
}

/// Refuses what is no policy over [`FIELDS`] that can be demanded.
///
/// # Errors
/// [`CheckpointError`], with the line and the column.
pub fn check(policy: &str) -> Result<(), CheckpointError> {
    let schema = Schema::parse(FIELDS).map_err(quiver_garble::Error::from)?;
    let policy = Policy::compile(policy, &schema).map_err(quiver_garble::Error::from)?;
    match policy.statistics().and {
        ands if ands > MAX_ANDS => Err(PolicyError::TooLarge(ands).into()),
        _ => Ok(()),
    }
}

impl<S: Suite> Checkpoint<S> {
    /// Founds it, with this policy over [`FIELDS`].
    ///
    /// # Errors
    /// [`CheckpointError`]: the policy says what is wrong with it, and where.
    pub fn found(place: &Place<'_, S>, policy: &str) -> Result<Self, CheckpointError> {
        let Place { deployment, treasury, group, seed, now } = *place;
        let mut rng = seeds::generator(seed, Player::Checkpoint);
        let schema = Schema::parse(FIELDS).map_err(quiver_garble::Error::from)?;
        // As long as can be, so that no run sees a period end.
        let terms = Terms::new(schema, MAX_PERIOD)?;
        let statement = AuthorityStatement {
            kind: Name::new(KIND)?,
            name: Name::new("positions")?,
            scheme: Name::new(SCHEME)?,
            delivery: SecretScalar::generate(&mut rng).public(),
            schema: terms.schema_text(),
            parameters: terms.parameters(),
        };
        let signature = treasury.sign(deployment, Purpose::Parameters, &statement.body(), &mut rng);
        let authority = SignedAuthority::new(statement, signature)?.verify(deployment)?;
        let statement = PolicyStatement {
            authority: *authority.fingerprint(),
            group: group.clone(),
            name: Name::new("checkpoint")?,
            not_after: UnixTime::MAX,
            text: policy.into(),
        };
        let signature = treasury.sign(deployment, Purpose::AbkePolicy, &statement.body(), &mut rng);
        let policy = SignedPolicy::new(statement, signature)?.verify(deployment)?;
        let compiled = policy.compile(group, &authority, now)?;
        let period = terms.period_at(now);
        let slots = Authority::derive(&Secret::random(&mut rng), period, terms.schema().bits())?;
        Ok(Self {
            leader: leader(place, &mut rng)?,
            deployment: deployment.clone(),
            group: group.clone(),
            authority,
            terms,
            slots,
            period,
            policy,
            compiled,
            seed,
        })
    }

    /// What is demanded.
    pub fn policy(&self) -> &str {
        &self.policy.text
    }

    /// AND gates of the policy, and attributes of a drone.
    pub fn size(&self) -> (usize, usize) {
        (self.compiled.statistics().and, self.terms.schema().bits())
    }

    /// The public keys of the period, which the gate is told.
    pub fn slot_keys(&self) -> AuthorityKey {
        self.slots.key().clone()
    }

    /// What a drone has.
    pub fn values(&self, drone: u32) -> [(&'static str, i128); 3] {
        let mut rng = seeds::generator(self.seed, Player::Fields(drone));
        let metres = |rng: &mut ChaCha8Rng| i128::from(below(rng, 2 * REACH + 1)) - i128::from(REACH);
        [("x", metres(&mut rng)), ("y", metres(&mut rng)), ("battery", below(&mut rng, 101).into())]
    }

    /// Whether the policy lets a drone in, evaluated in the clear.
    ///
    /// # Errors
    /// [`CheckpointError::Circuit`], never.
    pub fn lets_in(&self, drone: u32) -> Result<bool, CheckpointError> {
        Ok(self.compiled.circuit().evaluate(&self.bits(drone)?)? == [true])
    }

    fn bits(&self, drone: u32) -> Result<Zeroizing<Vec<bool>>, CheckpointError> {
        let bits = self.terms.schema().encode(&self.values(drone)).map_err(quiver_garble::Error::from)?;
        Ok(Zeroizing::new(bits.to_vec()))
    }

    /// The leader's gate, to be told the slot keys.
    ///
    /// # Errors
    /// [`CheckpointError`], never for a policy that this checkpoint was founded with.
    pub fn guard(&self, now: UnixTime) -> Result<Guard<S>, CheckpointError> {
        let mut rng = seeds::generator(self.seed, Player::Guard);
        let (public, secret) = (self.leader.public().clone(), self.leader.to_bytes());
        let config = GateConfig {
            deployment: self.deployment.clone(),
            group: self.group.clone(),
            keypair: DroneKeypair::restore(&self.deployment, public, &secret)?,
            policy: self.policy.clone(),
            authority: self.authority.clone(),
            timing: GateTiming { patience: PATIENCE, ..GateTiming::default() },
        };
        Ok(Guard::new(Gate::new(config, Secret::random(&mut rng), now)?))
    }

    /// A drone that has answered leaders as often as this says.
    ///
    /// # Errors
    /// [`CheckpointError`], never.
    pub fn visitor(&self, drone: u32, ledger: Ledger) -> Result<Visitor<S>, CheckpointError> {
        let mut rng = seeds::generator(self.seed, Player::Certifier(drone));
        let credential = self.slots.certify(&self.bits(drone)?, &mut rng)?;
        Ok(Visitor::new(Applicant::new(ApplicantConfig {
            deployment: self.deployment.clone(),
            group: self.group.clone(),
            authority: self.authority.clone(),
            credential,
            period: self.period,
            revocations: RevocationList::empty(),
            ledger,
            most: RUNS,
            patience: PATIENCE,
        })))
    }
}

/// The keypair of a leader of the group.
fn leader<S: Suite>(
    place: &Place<'_, S>,
    rng: &mut impl CryptoRngCore,
) -> Result<DroneKeypair<S>, CheckpointError> {
    let mut serial = [0; 16];
    rng.fill_bytes(&mut serial);
    let role = Role::Leader { group: place.group.clone(), ordinal: 0 };
    let identity =
        Identity { serial, name: Name::new("gate")?, role, groups: Vec::new(), not_after: UnixTime::MAX };
    let value = SecretValue::generate(rng);
    let partial = place.treasury.issue(place.deployment, &identity, &value.public(), rng);
    Ok(partial.verify(place.deployment, &identity, &value)?)
}
