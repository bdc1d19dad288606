//! A deployment with as many drones as asked for, their keys issued by the KGC's own functions.

use std::collections::BTreeMap;

use quiver_ainq::{
    Deployment, DroneKeypair, DronePublicKey, Element, GroupContext, Identity, Leadership, MasterSecret,
    Name, Role, Roster, SecretScalar, SecretValue, Slot, SparePair, Suite, Times,
};
use quiver_report::Observer;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;

use super::group::{LeaderMessages, MeasuredGroup, Strategy};
use crate::{LabError, Result};

/// Any moment will do: nothing here reads a clock.
pub(crate) const NOW: u64 = 1_700_000_000;
pub(crate) const TIMES: Times = Times { issued_at: NOW, valid_until: NOW + 3600, revocation_number: 0 };

/// Round 1, ordinal 1.
pub(crate) const TERM: u64 = (1 << 16) | 1;

/// Number of drones that get their keys before the roster takes them in, so that memory holds few of them
/// twice.
const CHUNK: u32 = 8192;

/// A KGC, a leader, and randomness for everything else.
pub(crate) struct LabSwarm<S: Suite> {
    pub(crate) deployment: Deployment<S>,
    pub(crate) group: Name,
    pub(crate) leader: DroneKeypair<S>,
    pub(crate) rng: ChaCha20Rng,
    master: MasterSecret<S>,
    seed: u64,
    issued: u32,
}

/// A drone's data at the leader: its public key, and the point of its next join or term.
pub(crate) struct Enrolled<S: Suite> {
    pub(super) public: DronePublicKey<S>,
    pub(super) one_time: Element<S>,
}

/// A drone's keypair and the secret of its next join.
pub(crate) struct DroneKeys<S: Suite> {
    pub(crate) keypair: DroneKeypair<S>,
    pub(crate) ephemeral: SparePair<S>,
}

/// Members and their spare points, as a leader that opens a term has them.
#[derive(Clone)]
pub(crate) struct Members<S: Suite> {
    pub(super) roster: Roster<S>,
    pub(super) spares: BTreeMap<Slot, (u64, Element<S>)>,
}

impl<S: Suite> LabSwarm<S> {
    pub(crate) fn new(seed: u64) -> Result<Self> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::generate(&mut rng);
        let deployment = Deployment::new(name("experiments")?, master.public());
        let group = name("alpha")?;
        let role = Role::Leader { group: group.clone(), ordinal: 1 };
        let identity = identity(u32::MAX, &group, role)?;
        let leader = enrol(&deployment, &master, &identity, &mut rng)?;
        Ok(Self { deployment, group, leader, rng, master, seed, issued: 0 })
    }

    /// Randomness that follows from a seed.
    pub(super) fn randomness(seed: u64) -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(seed)
    }

    /// Gives keys to so many drones, on all cores.
    pub(super) fn enrolled(&mut self, count: u32) -> Result<Vec<Enrolled<S>>> {
        self.issue(count, |swarm, number, rng| {
            let identity = identity(number, &swarm.group, Role::Edge)?;
            let p = SecretValue::generate(rng).public();
            let r = *swarm.master.issue_partial_key(&swarm.deployment, &identity, &p, rng).r();
            let one_time = SecretScalar::generate(rng).public();
            Ok(Enrolled { public: DronePublicKey::new(identity, r, p), one_time })
        })
    }

    /// The same with all their secrets.
    pub(crate) fn drones(&mut self, count: u32) -> Result<Vec<DroneKeys<S>>> {
        self.issue(count, |swarm, number, rng| {
            let identity = identity(number, &swarm.group, Role::Edge)?;
            let keypair = enrol(&swarm.deployment, &swarm.master, &identity, rng)?;
            Ok(DroneKeys { keypair, ephemeral: SparePair::ephemeral(rng) })
        })
    }

    fn issue<T: Send>(
        &mut self,
        count: u32,
        make: impl Fn(&Self, u32, &mut ChaCha20Rng) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let first = self.issued;
        self.issued += count;
        let this = &*self;
        let made = (first..self.issued).into_par_iter().map(|number| {
            // One stream for each drone: the same keys however many cores there are.
            let mut rng = ChaCha20Rng::seed_from_u64(this.seed);
            rng.set_stream(u64::from(number) + 1);
            make(this, number, &mut rng)
        });
        made.collect()
    }

    /// Number of steps that [`members`](Self::members) takes.
    pub(super) fn chunks(count: u32) -> usize {
        count.div_ceil(CHUNK) as usize
    }

    /// Makes `count` members with a spare point each, in the slots from 0 on.
    pub(super) fn members(&mut self, count: u32, observer: &mut dyn Observer) -> Result<Members<S>> {
        let mut members = Members { roster: Roster::new(), spares: BTreeMap::new() };
        let mut slot = 0;
        while slot < count {
            for drone in self.enrolled(CHUNK.min(count - slot))? {
                members.roster.insert(slot, drone.public).map_err(protocol("filling the roster"))?;
                members.spares.insert(slot, (1, drone.one_time));
                slot += 1;
            }
            observer.advance(1);
        }
        Ok(members)
    }

    /// Opens a term for these members.
    pub(super) fn open(
        &mut self,
        strategy: Strategy,
        members: Members<S>,
    ) -> Result<(MeasuredGroup<S>, LeaderMessages<S>)> {
        let (deployment, leader) = (self.deployment.clone(), self.leader.public().clone());
        let context = GroupContext { deployment, group: self.group.clone(), leader };
        let Members { roster, spares } = members;
        let opened = Leadership::open_term(
            context,
            &self.leader,
            roster,
            &spares,
            TERM,
            [0; 32],
            &TIMES,
            strategy,
            &mut self.rng,
        );
        let (leadership, output) = opened.map_err(protocol("opening a term"))?;
        Ok((MeasuredGroup { leadership }, LeaderMessages { output, paths: Vec::new() }))
    }
}

/// FullKeyGen and all before it.
fn enrol<S: Suite>(
    deployment: &Deployment<S>,
    master: &MasterSecret<S>,
    identity: &Identity,
    rng: &mut ChaCha20Rng,
) -> Result<DroneKeypair<S>> {
    let secret = SecretValue::generate(rng);
    let partial = master.issue_partial_key(deployment, identity, &secret.public(), rng);
    partial.verify(deployment, identity, &secret).map_err(protocol("enrolling"))
}

fn identity(number: u32, group: &Name, role: Role) -> Result<Identity> {
    let mut serial = [0; 16];
    serial[..4].copy_from_slice(&number.to_be_bytes());
    let name = name(&format!("drone-{number:07}"))?;
    Ok(Identity { serial, name, role, groups: vec![group.clone()], not_after: NOW + 1_000_000 })
}

fn name(text: &str) -> Result<Name> {
    Name::new(text).map_err(protocol("naming"))
}

/// Says what was done when the protocol refused.
pub(crate) fn protocol(what: &'static str) -> impl Fn(quiver_ainq::Error) -> LabError {
    move |source| LabError::Protocol { what, source }
}
