//! Releases a KGC's shares of condition keys to drones that its policies allow them (docs/protocol.md §4.3).

mod interface;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_ainq::{Error, Identity, Suite, UnixTime, VerifiedDelivery};
use quiver_delivery::server::{Delivery, DeliveryRefusal, Issuer, MAX_REMEMBERED};
use quiver_ibe::{Condition, ConditionKind, IdentityPoint, KeyShare};
use quiver_machine::{Context, TokenBuckets};
use quiver_message::{DeliveryOffer, Payload, RefusalReason};

pub use self::interface::{
    Holding, HoldingError, ReleaseCommand, ReleaseConfig, ReleaseEvent, ShareReleased,
};
use super::policy::Policies;
use super::query::{ShareQuery, ShareResponse};

/// Greatest number of conditions whose share is cached: when a phase begins, a swarm asks for one key.
const MAX_READY: usize = 256;

/// A KGC's share of a master key, and its policies on releasing shares of condition keys.
#[derive(Debug)]
pub struct ShareReleaser<S: Suite> {
    holding: Option<Holding<S>>,
    policies: Policies,
    /// Buckets by serial.
    limiter: TokenBuckets<[u8; 16]>,
    /// Shares made already, of conditions that are met.
    ready: BTreeMap<Condition, KeyShare>,
}

/// The context of this releaser.
type ReleaserContext<'a, S> = Context<'a, S, ReleaseEvent, ShareReleased>;

impl<S: Suite> ShareReleaser<S> {
    /// A releaser with this share and these policies. Later ones come as commands.
    #[must_use]
    pub fn new(config: ReleaseConfig<S>) -> Self {
        let mut policies = Policies::default();
        config.policies.into_iter().for_each(|policy| policies.apply(policy));
        config.approvals.into_iter().for_each(|approval| policies.approve(approval));
        Self {
            holding: config.holding,
            policies,
            limiter: TokenBuckets::bounded(config.rate, MAX_REMEMBERED),
            ready: BTreeMap::new(),
        }
    }

    /// The share, if there is a master key.
    #[must_use]
    pub const fn holding(&self) -> Option<&Holding<S>> {
        self.holding.as_ref()
    }

    /// Takes a share in place of the one held: after key generation, a refresh or a repair.
    pub fn hold(&mut self, holding: Holding<S>) {
        // §4.3: shares of two versions are never combined: what was made with the former ones goes.
        self.ready.clear();
        self.holding = Some(holding);
    }

    /// Decides if the drone may have its share of the condition's key now; the error is the response if it
    /// may not.
    fn decide(&self, now: UnixTime, condition: &Condition, drone: &Identity) -> Result<(), ShareResponse> {
        // §4.3: the KGC denies what none of its policies allows.
        if !self.policies.allow(condition, drone) {
            return Err(ShareResponse::NoPolicy);
        }
        // §4.3: then the condition's own rule: this KGC's clock, its operator's approval, the serial.
        match condition.kind() {
            ConditionKind::NotBefore(at) if now < at => Err(ShareResponse::NotYet { at, now }),
            ConditionKind::Mission(_) if !self.policies.approved(condition) => {
                Err(ShareResponse::NotApproved)
            }
            ConditionKind::Drone(serial) if serial != drone.serial => Err(ShareResponse::NotItsDrone),
            ConditionKind::NotBefore(_) | ConditionKind::Mission(_) | ConditionKind::Drone(_) => Ok(()),
        }
    }

    /// The share; outputs its record.
    fn release(
        &mut self,
        cx: &mut ReleaserContext<'_, S>,
        condition: &Condition,
        request: &VerifiedDelivery<S>,
    ) -> ShareResponse {
        let Some(holding) = &self.holding else { return ShareResponse::NoPolicy };
        if self.ready.len() >= MAX_READY && !self.ready.contains_key(condition) {
            self.ready.clear();
        }
        // §4.3: K_j = s_j·Q.
        let make = || holding.share.extract(&IdentityPoint::of(condition));
        let share = self.ready.entry(condition.clone()).or_insert_with(make).encode();
        let identity = &request.drone().identity;
        // §4.1: durable before the share leaves.
        cx.out.persist(ShareReleased {
            condition: condition.clone(),
            master: holding.authority.fingerprint(),
            serial: identity.serial,
            handle: *request.drone().handle().as_bytes(),
            name: identity.name.clone(),
            at: cx.now.unix,
        });
        ShareResponse::Share { version: holding.authority.version(), share }
    }
}

impl<S: Suite> Issuer<S> for ShareReleaser<S> {
    const PAYLOAD: Payload = Payload::KeyShares;
    type Command = ReleaseCommand;
    type Event = ReleaseEvent;
    type Record = ShareReleased;

    fn offer(&self) -> Option<DeliveryOffer> {
        let holding = self.holding.as_ref()?;
        let (kgc, authority) = (holding.kgc(), &holding.authority);
        Some(DeliveryOffer::KeyShares { kgc, master: authority.fingerprint(), version: authority.version() })
    }

    fn command(&mut self, command: ReleaseCommand) {
        match command {
            ReleaseCommand::Policy(policy) => self.policies.apply(policy),
            ReleaseCommand::Approval(approval) => self.policies.approve(approval),
        }
    }

    fn issue(
        &mut self,
        cx: &mut ReleaserContext<'_, S>,
        request: &VerifiedDelivery<S>,
    ) -> Result<Delivery<ReleaseEvent>, DeliveryRefusal> {
        let query = ShareQuery::decode(request.question()).map_err(DeliveryRefusal::malformed)?;
        // §4.3: the query names j: what is signed for one KGC is not answered by another.
        if self.holding.as_ref().map(Holding::kgc) != Some(query.kgc) {
            return Err(DeliveryRefusal::malformed(Error::WrongKgc));
        }
        let identity = &request.drone().identity;
        let response = match &query.condition {
            None => ShareResponse::Statement,
            // §4.1: policy and the condition's own rule, then the rate.
            Some(condition) => match self.decide(cx.now.unix, condition, identity) {
                Err(denied) => denied,
                Ok(()) => {
                    self.limiter.take(cx.now.monotonic, identity.serial).map_err(DeliveryRefusal::busy)?;
                    self.release(cx, condition, request)
                }
            },
        };
        // §4.3: unattested, because the key itself verifies. A response is short enough: this does not fail.
        let sealed =
            request.seal_unattested(&response.encode(), cx.rng).map_err(|_| RefusalReason::NotReady)?;
        let held = self.holding.as_ref().filter(|_| query.statement);
        let statement = held.map_or_else(Vec::new, |held| held.authority.statement().bytes());
        let event = query.condition.map(|condition| reported(condition, identity, &response));
        Ok(Delivery { statement, sealed: sealed.encode(), event })
    }
}

fn reported(condition: Condition, drone: &Identity, response: &ShareResponse) -> ReleaseEvent {
    let name = drone.name.clone();
    let why = match response {
        ShareResponse::Share { .. } | ShareResponse::Statement => {
            return ReleaseEvent::Released { condition, name };
        }
        ShareResponse::NotYet { .. } => "its time has not come",
        ShareResponse::NotApproved => "no operator has approved it",
        ShareResponse::NotItsDrone => "it names another drone",
        ShareResponse::NoPolicy => "no policy allows it",
    };
    ReleaseEvent::Denied { condition, name, why }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use quiver_ainq::{
        Deployment, Label, MasterSecret, RevocationStatement, Ristretto255, Role, SignedDeliveryRequest,
    };
    use quiver_ibe::Dealing;
    use quiver_machine::{Now, Outbox, Rate, Revocations};
    use quiver_testbed::{issue_keypair, name};
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::{ReleaseAuthority, ReleaseParameters};

    type S = Ristretto255;

    const NOW: Now = Now { monotonic: Duration::from_secs(100), unix: 1_000_000 };

    /// A releaser, and a drone's request to it.
    struct Bench {
        deployment: Deployment<S>,
        releaser: ShareReleaser<S>,
        request: VerifiedDelivery<S>,
        rng: ChaCha20Rng,
    }

    impl Bench {
        fn new() -> Self {
            let mut rng = ChaCha20Rng::seed_from_u64(1);
            let master = MasterSecret::<S>::generate(&mut rng);
            let deployment = Deployment::new(name("alps"), master.public());
            let releaser = ShareReleaser::new(ReleaseConfig {
                holding: Some(holding(&master, &deployment, &mut rng)),
                policies: Vec::new(),
                approvals: Vec::new(),
                rate: Rate { burst: 4, refill: Duration::from_secs(2) },
            });
            let request = request(&master, &deployment, &mut rng);
            Self { deployment, releaser, request, rng }
        }

        /// Releases a share to the drone.
        fn release(&mut self, condition: &Condition) -> ShareResponse {
            let mut out = Outbox::new();
            let mut cx = Context {
                now: NOW,
                rng: &mut self.rng,
                out: &mut out,
                deployment: &self.deployment,
                keypair: None,
                revocations: &Revocations::new(),
                group: None,
            };
            self.releaser.release(&mut cx, condition, &self.request)
        }
    }

    fn holding(master: &MasterSecret<S>, deployment: &Deployment<S>, rng: &mut ChaCha20Rng) -> Holding<S> {
        let dealing = Dealing::deal(1, 1, rng).unwrap();
        let parameters = ReleaseParameters { version: 1, publics: dealing.public_shares().unwrap() };
        let statement = parameters.statement(deployment, name("ibe")).unwrap();
        let signed = master.sign_authority(deployment, statement, rng).unwrap();
        let authority = ReleaseAuthority::decode(deployment, &signed.encode()).unwrap();
        Holding::new(authority, dealing.shares()[0].clone()).unwrap()
    }

    fn request(
        master: &MasterSecret<S>,
        deployment: &Deployment<S>,
        rng: &mut ChaCha20Rng,
    ) -> VerifiedDelivery<S> {
        let groups = alloc::vec![name("alpha")];
        let identity =
            Identity { serial: [1; 16], name: name("drone"), role: Role::Edge, groups, not_after: 1 << 40 };
        let drone = issue_keypair(master, deployment, &identity, rng);
        let label = Label::IbeRelease;
        let signed = SignedDeliveryRequest::create(deployment, &drone, label, [0; 32], b"", b"", rng);
        let (signed, _) = signed.unwrap();
        signed.verify(deployment, label, b"", &RevocationStatement::empty(), NOW.unix).unwrap()
    }

    #[test]
    fn share_is_made_once_for_every_drone_as_long_as_there_is_room_for_it() {
        let mut bench = Bench::new();
        let mut at_hand = |number: usize| {
            let condition = Condition::not_before(number as UnixTime).unwrap();
            assert!(matches!(bench.release(&condition), ShareResponse::Share { .. }));
            assert!(bench.releaser.ready.contains_key(&condition));
            bench.releaser.ready.len()
        };
        for number in 1..=MAX_READY {
            assert_eq!(at_hand(number), number);
            assert_eq!(at_hand(1), number, "no other goes because one is released again");
        }
        assert_eq!(at_hand(MAX_READY + 1), 1);
    }
}
