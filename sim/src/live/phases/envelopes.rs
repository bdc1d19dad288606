//! Orders sealed to a part of the swarm: exactly those whose attributes fit open them.

use std::collections::BTreeSet;

use quiver_abe::envelope::{AnyKey, AnyParameters, Target};
use quiver_abe::{FabeoCp, Guarded, Published, Scheme, Universe};
use quiver_ainq::Suite;
use quiver_policy::{AttributeSet, Schema};
use quiver_role::{AttributeAccess, AttributeKeys, EdgeCommand, EnvelopeCommand, LeaderCommand};
use rand_chacha::ChaCha20Rng;

use super::{Run, Step};
use crate::live::board::Goal;
use crate::live::checks::Invariant;
use crate::live::host::message_body;
use crate::seeds::{self, Player};
use crate::{Result, SimError};

/// What drones have, by their number modulo four. The last have the authority's parameters and no key.
const ROLES: [&str; 3] = ["scout, sector:7", "scout, sector:8", "medic, sector:7"];
/// What orders are sealed to, and which of the roles that lets in. Two in a row make one session.
const ORDERS: [(&str, [bool; 4]); 3] = [
    ("scout and sector:7", [true, false, false, false]),
    ("scout and sector:7", [true, false, false, false]),
    ("2 of (scout, medic, sector:7)", [true, false, true, false]),
];

/// An attribute authority: its fingerprint, and what drones of each role hold.
struct Authority {
    fingerprint: [u8; 32],
    keys: Vec<AttributeKeys>,
}

impl<S: Suite> Run<'_, S> {
    /// Gives everybody the keys of its role, and lets the leader seal orders.
    pub(super) async fn seal(&mut self) -> Step {
        let authority =
            Authority::found(&mut seeds::generator(self.world.plan.seed, Player::Authority, 0, 0))?;
        let members: Vec<u32> = self.members.iter().copied().collect();
        for (drone, keys) in (0..=self.world.outsider()).zip(authority.keys.iter().cycle()) {
            let command = EdgeCommand::Envelope(EnvelopeCommand::Keys(keys.clone()));
            self.world.drones[drone as usize].node()?.command(command).await?;
        }
        let public = authority.keys.last().cloned().map(EnvelopeCommand::Keys);
        for command in public.into_iter().map(LeaderCommand::Envelope) {
            self.world.leader.command(command).await?;
        }
        for (number, (policy, lets_in)) in (0..).zip(ORDERS) {
            let audience: BTreeSet<u32> =
                members.iter().copied().filter(|drone| lets_in[*drone as usize % lets_in.len()]).collect();
            self.order(number, &authority, policy, &audience).await?;
        }
        Ok(())
    }

    async fn order(
        &mut self,
        number: u32,
        authority: &Authority,
        policy: &str,
        audience: &BTreeSet<u32>,
    ) -> Step {
        let target = Target::policy(policy, &Schema::new()).map_err(refused)?;
        let seal = EnvelopeCommand::Seal {
            authority: authority.fingerprint,
            target,
            data: message_body(number),
            signed: true,
        };
        let mark = self.mark();
        // Of a session's first message everybody else says that it does not fit.
        let (goal, waited_for) = match number {
            0 => (Goal::Judged(number), self.member_list()),
            _ => (Goal::Opened(number), audience.iter().copied().collect()),
        };
        self.world.board().expect(goal, &waited_for);
        self.world.leader.command(LeaderCommand::Envelope(seal)).await?;
        let reached = self.reached("sealed orders", waited_for.len()).await;
        let took = mark.at.elapsed();
        self.checker.after(&format!("order {number}, sealed to `{policy}`"));
        self.operate(format!("order sealed to {}", audience.len()), &mark, took, &reached);
        let members: BTreeSet<u32> = self.members.clone();
        let checker = &mut self.checker;
        self.world.board().look(|logs| {
            let count = |drone: u32| logs.drones[drone as usize].opened.get(&number).map_or(0, |(n, _)| *n);
            checker.none(
                Invariant::SealedToFew,
                &format!("did not open order {number} exactly once, although its attributes fit"),
                audience.iter().map(|drone| (*drone, count(*drone) != 1)),
            );
            checker.none(
                Invariant::SealedToFew,
                &format!("opened order {number}, although its attributes do not fit"),
                members.difference(audience).map(|drone| (*drone, count(*drone) != 0)),
            );
        });
        self.all_there(
            Invariant::SealedToFew,
            &format!("had order {number} neither opened nor told"),
            &reached,
        )
    }
}

impl Authority {
    fn found(rng: &mut ChaCha20Rng) -> Result<Self> {
        let (parameters, master) = FabeoCp::setup(&Universe::Open, rng).map_err(refused)?;
        let public = AnyParameters::decode(FabeoCp::ID, &parameters.encode()).map_err(refused)?;
        let mut keys = Vec::new();
        for role in ROLES {
            let set = AttributeSet::parse(role, &Schema::new()).map_err(refused)?;
            let key = FabeoCp::derive(&parameters, &master, &set, rng).map_err(refused)?;
            let key = AnyKey::decode(FabeoCp::ID, &key.encode()).map_err(refused)?;
            keys.push(held(&public, Some(key))?);
        }
        keys.push(held(&public, None)?);
        Ok(Self { fingerprint: *public.authority().as_bytes(), keys })
    }
}

fn held(public: &AnyParameters, key: Option<AnyKey>) -> Result<AttributeKeys> {
    let access = AttributeAccess::new(public.clone(), key).map_err(refused)?;
    Ok(AttributeKeys::new(vec![access]))
}

/// Never for what stands above.
fn refused(error: impl std::fmt::Display) -> SimError {
    SimError::Usage(format!("attributes: {error}"))
}

#[cfg(test)]
mod tests {
    use quiver_policy::PolicyError;

    use super::*;

    /// What the run expects is what policies and attributes say, and each order tells some apart.
    #[test]
    fn orders_let_in_whom_their_policies_fit() -> std::result::Result<(), PolicyError> {
        for (policy, lets_in) in ORDERS {
            let Target::Policy(tree) = Target::policy(policy, &Schema::new())? else { panic!("no policy") };
            for (role, expected) in ROLES.iter().zip(lets_in) {
                assert_eq!(
                    tree.satisfied_by(&AttributeSet::parse(role, &Schema::new())?),
                    expected,
                    "{policy}"
                );
            }
            assert!(!lets_in[ROLES.len()] && lets_in.contains(&true));
        }
        Ok(())
    }
}
