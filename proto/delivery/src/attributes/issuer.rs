//! Issues attribute keys at the KGC, for one or more attribute authorities (docs/protocol.md §4.2).

mod grants;
mod interface;

use alloc::vec::Vec;

use quiver_ainq::{Role, Suite, VerifiedDelivery};
use quiver_crypto::Zeroizing;
use quiver_machine::{Context, Rate, TokenBuckets};
use quiver_message::{DeliveryOffer, MAX_AUTHORITIES, Payload, RefusalReason};

pub use self::grants::Grant;
use self::grants::{GrantState, Grants, InForce, mark_of_published};
pub use self::interface::{
    IssuerCommand, IssuerConfig, IssuerError, IssuerEvent, IssuingAuthority, KeyIssued,
};
use super::key_maker::MakeError;
use super::query::{KeyQuery, KeyResponse, MAX_KEY_LEN};
use crate::server::{Delivery, DeliveryRefusal, DeliveryServer, Issuer, MAX_REMEMBERED};

/// The attribute authorities of a KGC, and what drones are granted at them.
#[derive(Debug)]
pub struct AttributeIssuer<S: Suite> {
    /// Ascending by fingerprint.
    authorities: Vec<IssuingAuthority<S>>,
    grants: Grants,
    /// Buckets by authority and serial.
    limiter: TokenBuckets<([u8; 32], [u8; 16])>,
}

/// The server of attribute keys at a KGC.
pub type AttributeServer<S> = DeliveryServer<AttributeIssuer<S>>;

/// The context of this issuer.
type IssuerContext<'a, S> = Context<'a, S, IssuerEvent, KeyIssued>;

impl<S: Suite> AttributeIssuer<S> {
    /// An issuer with these authorities and grants. Later grants come as commands.
    ///
    /// # Errors
    /// [`IssuerError`].
    pub fn new(config: IssuerConfig<S>) -> Result<Self, IssuerError> {
        let IssuerConfig { authorities, grants: granted, interval } = config;
        if authorities.len() > MAX_AUTHORITIES {
            return Err(IssuerError::TooMany);
        }
        let mut grants = Grants::default();
        granted.into_iter().for_each(|grant| grants.apply(grant));
        let limiter = TokenBuckets::bounded(Rate { burst: 1, refill: interval }, MAX_REMEMBERED);
        let mut issuer = Self { authorities: Vec::new(), grants, limiter };
        authorities.into_iter().try_for_each(|authority| issuer.add(authority))?;
        Ok(issuer)
    }

    /// Offers one more authority from now on; what is granted at it may have come before.
    ///
    /// # Errors
    /// [`IssuerError`]; nothing changes then.
    pub fn add(&mut self, authority: IssuingAuthority<S>) -> Result<(), IssuerError> {
        let IssuingAuthority { statement, delivery, .. } = &authority;
        // §4.2: the delivery secret a belongs to A = a·P of the signed statement, or no drone could open a
        // key.
        if !super::is_kind(&statement.kind) || delivery.public() != statement.delivery {
            return Err(IssuerError::WrongKey(statement.name.clone()));
        }
        let fingerprint = |authority: &IssuingAuthority<S>| *authority.statement.fingerprint();
        match self.authorities.binary_search_by_key(statement.fingerprint(), fingerprint) {
            Ok(_) => Err(IssuerError::Twice),
            Err(_) if self.authorities.len() >= MAX_AUTHORITIES => Err(IssuerError::TooMany),
            Err(place) => {
                self.authorities.insert(place, authority);
                Ok(())
            }
        }
    }

    /// Number of grants in force.
    #[must_use]
    pub fn grants(&self) -> usize {
        self.grants.len()
    }

    /// Decides the response and its event, and outputs the record.
    fn decide(
        &mut self,
        cx: &mut IssuerContext<'_, S>,
        place: usize,
        request: &VerifiedDelivery<S>,
        held: Option<u64>,
    ) -> Result<(KeyResponse, IssuerEvent), DeliveryRefusal> {
        let found = self.authorities.get_mut(place).ok_or(RefusalReason::UnknownAuthority)?;
        let period = found.maker.begin_period(cx.now.unix);
        let fingerprint = *found.statement.fingerprint();
        let identity = &request.drone().identity;
        let (authority, name) = (found.statement.name.clone(), identity.name.clone());
        // §4.1, policy: the grant, and by the mark whether the drone holds its key.
        let InForce { revision, mark, granted } =
            match self.grants.find(&fingerprint, &identity.serial, period) {
                GrantState::InForce(grant) => grant,
                without => {
                    // §A2: a leader to which nothing is granted gets the slot keys alone, which are public.
                    return Ok(match (published(found, period, held, &identity.role), without) {
                        (Some(response), _) => (response, IssuerEvent::Published { authority, name }),
                        (None, GrantState::Withdrawn) => {
                            (KeyResponse::Withdrawn, IssuerEvent::Withdrawn { authority, name })
                        }
                        // §4.2: upon this the drone keeps its key: a registry restored from a backup has
                        // forgotten grants.
                        (None, _) => (KeyResponse::Nothing, IssuerEvent::NothingGranted { authority, name }),
                    });
                }
            };
        if held == Some(mark) {
            let event = IssuerEvent::HeldAlready { authority, name, revision };
            return Ok((KeyResponse::Held { grant: mark }, event));
        }
        // §4.1, rate: a key costs as much curve arithmetic as its grant has leaves.
        self.limiter.take(cx.now.monotonic, (fingerprint, identity.serial)).map_err(DeliveryRefusal::busy)?;
        match found.maker.make(granted, cx.rng).and_then(short_enough) {
            Ok(key) => {
                // §4.1: durable before the key leaves.
                cx.out.persist(KeyIssued {
                    authority: fingerprint,
                    serial: identity.serial,
                    handle: *request.drone().handle().as_bytes(),
                    name: name.clone(),
                    revision,
                    at: cx.now.unix,
                });
                let event = IssuerEvent::Issued { authority, name, revision };
                Ok((KeyResponse::Key { grant: mark, key }, event))
            }
            Err(error) => {
                cx.out.event(IssuerEvent::NotMade { authority, name, error });
                Err(RefusalReason::NotReady.into())
            }
        }
    }
}

impl<S: Suite> Issuer<S> for AttributeIssuer<S> {
    const PAYLOAD: Payload = Payload::AttributeKeys;
    type Command = IssuerCommand;
    type Event = IssuerEvent;
    type Record = KeyIssued;

    fn offer(&self) -> Option<DeliveryOffer> {
        let fingerprints = self.authorities.iter().map(|authority| *authority.statement.fingerprint());
        Some(DeliveryOffer::AttributeKeys { authorities: fingerprints.collect() })
    }

    fn command(&mut self, command: IssuerCommand) {
        match command {
            IssuerCommand::Grant(grant) => self.grants.apply(grant),
        }
    }

    fn issue(
        &mut self,
        cx: &mut IssuerContext<'_, S>,
        request: &VerifiedDelivery<S>,
    ) -> Result<Delivery<IssuerEvent>, DeliveryRefusal> {
        let asked =
            |authority: &IssuingAuthority<S>| authority.statement.fingerprint() == request.authority();
        let place = self.authorities.iter().position(asked).ok_or(RefusalReason::UnknownAuthority)?;
        let query = KeyQuery::decode(request.question()).map_err(DeliveryRefusal::malformed)?;
        let (response, event) = self.decide(cx, place, request, query.held)?;
        let authority = self.authorities.get(place).ok_or(RefusalReason::UnknownAuthority)?;
        // §4.2: a·N proves to the drone that the authority made it. The key is short enough: this does not
        // fail.
        let sealed = request.seal(&authority.statement, &authority.delivery, &response.encode(), cx.rng);
        let sealed = sealed.map_err(|_| RefusalReason::NotReady)?.encode();
        let statement = if query.statement { authority.statement.bytes() } else { Vec::new() };
        Ok(Delivery { statement, sealed, event: Some(event) })
    }
}

/// Response to a leader without a grant: the public data of this period.
fn published<S: Suite>(
    authority: &IssuingAuthority<S>,
    period: Option<u64>,
    held: Option<u64>,
    role: &Role,
) -> Option<KeyResponse> {
    let public = authority.maker.published().filter(|_| matches!(role, Role::Leader { .. }))?;
    let grant = mark_of_published(authority.statement.fingerprint(), period);
    if held == Some(grant) {
        return Some(KeyResponse::Held { grant });
    }
    short_enough(Zeroizing::new(public)).ok().map(|key| KeyResponse::Key { grant, key })
}

fn short_enough(key: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, MakeError> {
    if key.len() > MAX_KEY_LEN {
        return Err(MakeError("the key is too long to be delivered".into()));
    }
    Ok(key)
}
