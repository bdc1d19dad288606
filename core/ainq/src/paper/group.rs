//! GenGroupKey, KeyRetrieval and Re-Key as published.

use alloc::vec::Vec;

use quiver_crypto::Secret;
use rand_core::CryptoRngCore;

use super::{FullKey, Oracles, PaperDrone, PublicParameters};
use crate::{AgreedSecret, Element, Error, SecretScalar, Suite, UnixTime};

/// The leader's message to the group. Nothing in it authenticates its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broadcast<S: Suite> {
    /// V.
    pub v: Element<S>,
    /// t_g.
    pub t_g: UnixTime,
    /// C_i, in the order of the members.
    pub wrapped: Vec<[u8; 32]>,
}

/// State of the leader: l_k, and GL, the members with their T_i.
#[derive(Debug)]
pub struct GroupState<S: Suite> {
    oracles: Oracles,
    leader: PaperDrone<S>,
    l: SecretScalar<S>,
    v: Element<S>,
    t_g: UnixTime,
    members: Vec<(PaperDrone<S>, AgreedSecret)>,
}

/// **GenGroupKey**: K_g and l_k random, V = l_k·P, and per member T_i = l_k·Y_i, C_i = K_g ⊕ H1(V,T_i,…,t_g).
///
/// Two multiplications per member, one of them in [`PaperDrone::new`]. It takes no secret of the leader's.
///
/// # Errors
/// [`Error::InvalidScalar`], which does not happen for a drawn l_k.
pub fn gen_group_key<S: Suite>(
    parameters: &PublicParameters<S>,
    leader: PaperDrone<S>,
    members: Vec<PaperDrone<S>>,
    t_g: UnixTime,
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<(GroupState<S>, Secret<32>, Broadcast<S>), Error> {
    // GenGroupKey: l_k and V = l_k·P stay for the whole life of the group (§18).
    let l = SecretScalar::generate(rng);
    let v = l.public();
    let mut state = GroupState {
        oracles: parameters.oracles,
        leader,
        l,
        v,
        t_g,
        members: Vec::with_capacity(members.len()),
    };
    state.admit(members)?;
    let (key, broadcast) = state.distribute(rng);
    Ok((state, key, broadcast))
}

/// **KeyRetrieval**: T_i = y_i·V, K_g = C_i ⊕ H1(V,T_i,…,t_g). One multiplication. The result is taken for
/// the key, right or wrong.
///
/// # Errors
/// [`Error::MissingEntry`] if the broadcast has no such entry.
pub fn key_retrieval<S: Suite>(
    parameters: &PublicParameters<S>,
    own: &FullKey<S>,
    leader: &PaperDrone<S>,
    broadcast: &Broadcast<S>,
    index: usize,
) -> Result<Secret<32>, Error> {
    let wrapped = broadcast.wrapped.get(index).ok_or(Error::MissingEntry)?;
    // KeyRetrieval: T_i = y_i·V, ...
    let t = S::agree(own.y.expose(), &broadcast.v)?;
    let mask = mask(&parameters.oracles, leader, &own.member, &broadcast.v, &t, broadcast.t_g);
    // ... K_g = C_i ⊕ H1(V, T_i, …, t_g), which nothing confirms.
    Ok(mask.unmask(wrapped))
}

impl<S: Suite> GroupState<S> {
    /// GL.
    pub fn members(&self) -> impl Iterator<Item = &PaperDrone<S>> {
        self.members.iter().map(|(member, _)| member)
    }

    /// **Re-Key on expiry**: a fresh K_g until a new t_g. Hashing only.
    pub fn rekey_on_expiry(
        &mut self,
        t_g: UnixTime,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> (Secret<32>, Broadcast<S>) {
        // Re-Key on expiry: the mask changes with t_g.
        self.t_g = t_g;
        self.distribute(rng)
    }

    /// **Re-Key on join**: a fresh K_g; T_i for the newcomers only.
    ///
    /// # Errors
    /// As [`gen_group_key`].
    pub fn rekey_on_join(
        &mut self,
        newcomers: Vec<PaperDrone<S>>,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Secret<32>, Broadcast<S>), Error> {
        self.admit(newcomers)?;
        Ok(self.distribute(rng))
    }

    /// **Re-Key on leave**: a fresh K_g; the leaver's entry is gone.
    pub fn rekey_on_leave(
        &mut self,
        leaver: &PaperDrone<S>,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> (Secret<32>, Broadcast<S>) {
        // Re-Key on leave: V, T_i and t_g stay, so the mask repeats: C ⊕ C' = K ⊕ K' (§18).
        self.members.retain(|(member, _)| member != leaver);
        self.distribute(rng)
    }

    fn admit(&mut self, newcomers: Vec<PaperDrone<S>>) -> Result<(), Error> {
        // T_i = l_k·Y_i: a stolen y_i opens everything recorded (§18).
        let points: Vec<S::Point> = newcomers.iter().map(|member| *member.implicit.point()).collect();
        for (member, t) in newcomers.into_iter().zip(S::agree_many(self.l.expose(), &points)) {
            self.members.push((member, t?));
        }
        Ok(())
    }

    fn distribute(&self, rng: &mut (impl CryptoRngCore + ?Sized)) -> (Secret<32>, Broadcast<S>) {
        // C_i = K_g ⊕ H1(V, T_i, …, t_g), broadcast without authentication (§18).
        let key = Secret::random(rng);
        let wrap = |(member, t): &(PaperDrone<S>, AgreedSecret)| {
            key.xor(&mask(&self.oracles, &self.leader, member, &self.v, t, self.t_g))
        };
        let wrapped = self.members.iter().map(wrap).collect();
        (key, Broadcast { v: self.v, t_g: self.t_g, wrapped })
    }
}

/// H1(V, T_i, D_k, R_k, P_k, D_i, R_i, P_i, t_g): the same for as long as V and t_g are.
fn mask<S: Suite>(
    oracles: &Oracles,
    leader: &PaperDrone<S>,
    member: &PaperDrone<S>,
    v: &Element<S>,
    t: &AgreedSecret,
    t_g: UnixTime,
) -> Secret<32> {
    oracles.h1(&[
        v.as_bytes(),
        t.expose(),
        &leader.d,
        leader.r.as_bytes(),
        leader.p.as_bytes(),
        &member.d,
        member.r.as_bytes(),
        member.p.as_bytes(),
        &t_g.to_be_bytes(),
    ])
}
