//! The algorithms as published, with the members they work on.

use quiver_ainq::paper::{self, Broadcast, FullKey, GroupState, PaperDrone, PublicParameters};
use quiver_ainq::{Element, MasterSecret, Ristretto255};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;

use super::swarm::{NOW, protocol};
use crate::Result;

type S = Ristretto255;

/// Public data of a drone at the paper's leader: D_i, R_i, P_i.
pub(super) type MemberTriple = (Vec<u8>, Element<S>, Element<S>);

/// A KGC and a leader as published.
pub(super) struct Reference {
    pub(super) parameters: PublicParameters<S>,
    pub(super) rng: ChaCha20Rng,
    pub(super) leader: PaperDrone<S>,
    master: MasterSecret<S>,
    seed: u64,
    issued: u32,
}

impl Reference {
    pub(super) fn new(seed: u64) -> Result<Self> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (master, parameters) = paper::setup(&mut rng);
        let leader = full_key(&parameters, &master, b"leader", &mut rng)?.member;
        Ok(Self { parameters, rng, leader, master, seed, issued: 0 })
    }

    /// GenSecretValue, GenPartialKey and FullKeyGen for so many drones, on all cores.
    pub(super) fn drones(&mut self, count: u32) -> Result<Vec<FullKey<S>>> {
        let first = self.issued;
        self.issued += count;
        let this = &*self;
        let made = (first..self.issued).into_par_iter().map(|number| {
            let mut rng = ChaCha20Rng::seed_from_u64(this.seed);
            rng.set_stream(u64::from(number) + 1);
            full_key(&this.parameters, &this.master, format!("drone-{number:07}").as_bytes(), &mut rng)
        });
        made.collect()
    }

    /// Public data of so many new drones.
    pub(super) fn known(&mut self, count: u32) -> Result<Vec<MemberTriple>> {
        let told = |key: FullKey<S>| (key.member.d, key.member.r, key.member.p);
        Ok(self.drones(count)?.into_iter().map(told).collect())
    }

    /// Y_i of every drone. One multiplication each.
    pub(super) fn members(&self, known: &[MemberTriple]) -> Result<Vec<PaperDrone<S>>> {
        let member = |(d, r, p): &MemberTriple| PaperDrone::new(&self.parameters, d, *r, *p);
        known.iter().map(member).collect::<Result<_, _>>().map_err(protocol("computing Y"))
    }

    /// GenGroupKey. One multiplication for each member.
    pub(super) fn gen_group_key(
        &mut self,
        members: Vec<PaperDrone<S>>,
    ) -> Result<(GroupState<S>, Broadcast<S>)> {
        let leader = self.leader.clone();
        let made = paper::gen_group_key(&self.parameters, leader, members, NOW, &mut self.rng);
        made.map(|(state, _, broadcast)| (state, broadcast)).map_err(protocol("GenGroupKey"))
    }

    /// Re-Key on join. One multiplication for each newcomer.
    pub(super) fn rekey_on_join(
        &mut self,
        group: &mut GroupState<S>,
        newcomers: Vec<PaperDrone<S>>,
    ) -> Result<Broadcast<S>> {
        let made = group.rekey_on_join(newcomers, &mut self.rng);
        made.map(|(_, broadcast)| broadcast).map_err(protocol("Re-Key"))
    }
}

fn full_key(
    parameters: &PublicParameters<S>,
    master: &MasterSecret<S>,
    d: &[u8],
    rng: &mut ChaCha20Rng,
) -> Result<FullKey<S>> {
    let (value, p) = paper::gen_secret_value(rng);
    let partial =
        paper::gen_partial_key(parameters, master, d, &p, rng).map_err(protocol("GenPartialKey"))?;
    paper::full_key_gen(parameters, d, &value, &partial).map_err(protocol("FullKeyGen"))
}
