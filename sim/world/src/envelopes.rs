//! ABE orders: the attributes of drones, the policies of orders, and which drones are to open them.

mod phases;

use quiver_abe::envelope::{AnyKey, AnyParameters, EnvelopeTarget};
use quiver_abe::{
    AbeError, FabeoCp, MasterKey, Parameters, PublicEncoding, Scheme, SecretEncoding, Universe,
};
use quiver_ainq::Suite;
use quiver_envelope::{AttributeAccess, AttributeKeys, EnvelopeCommand, EnvelopeEvent, EnvelopeMessage};
use quiver_message::Message;
use quiver_policy::{AttributeSet, PolicyError, Schema};
use rand_core::CryptoRngCore;

pub(crate) use self::phases::OpenedEnvelopes;
use crate::NodeEvent;
use crate::feature_event::FeatureEvent;

/// Attributes of drones, by their number modulo four. The last have the authority's parameters and no key.
const ROLES: [&str; 3] = ["scout, sector:7", "scout, sector:8", "medic, sector:7"];
/// Number of kinds of drones.
const KINDS: usize = ROLES.len() + 1;

/// An envelope, or a request for an opening, in full; `None` if the message is neither.
pub(crate) fn described<S: Suite>(message: &Message<S>) -> Option<String> {
    let read: EnvelopeMessage = message.extension()?.ok()?;
    Some(format!("{read:?}"))
}

/// An event of a drone's envelopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopeNodeEvent {
    /// The part of a drone or a leader that seals and opens them.
    Envelope(EnvelopeEvent),
}

impl FeatureEvent for EnvelopeNodeEvent {}

impl From<EnvelopeEvent> for NodeEvent {
    fn from(event: EnvelopeEvent) -> Self {
        EnvelopeNodeEvent::Envelope(event).into()
    }
}

/// An order: its policy, and the kinds of drones that satisfy it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    policy: &'static str,
    lets_in: [bool; KINDS],
}

/// The orders of a run. The first two are one session.
pub const ORDERS: [Order; 3] = [
    Order { policy: "scout and sector:7", lets_in: [true, false, false, false] },
    Order { policy: "scout and sector:7", lets_in: [true, false, false, false] },
    Order { policy: "2 of (scout, medic, sector:7)", lets_in: [true, false, true, false] },
];

impl Order {
    /// Policy of the order.
    #[must_use]
    pub const fn policy(&self) -> &'static str {
        self.policy
    }

    /// Returns true if the drone of this number is to open it.
    #[must_use]
    pub fn is_for(&self, drone: u32) -> bool {
        self.lets_in.get(drone as usize % KINDS).copied().unwrap_or(false)
    }
}

/// Reason why there is no authority. It never happens with the orders of this module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// A policy or attributes are none.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The scheme refuses.
    #[error(transparent)]
    Scheme(#[from] AbeError),
}

/// An attribute authority under FABEO's ciphertext-policy scheme, and the keys it handed out: one for each
/// kind of drones.
#[derive(Clone, Debug)]
pub struct AbeAuthority {
    fingerprint: [u8; 32],
    keys: Vec<AttributeKeys>,
}

impl AbeAuthority {
    /// Founds it.
    ///
    /// # Errors
    /// [`OrderError`], never.
    pub fn found(rng: &mut (impl CryptoRngCore + ?Sized)) -> Result<Self, OrderError> {
        let (parameters, master) = FabeoCp::setup(&Universe::Open, rng)?;
        let public = AnyParameters::decode(FabeoCp::ID, &parameters.encode())?;
        let mut keys = Vec::new();
        for role in ROLES {
            let key = key(&parameters, &master, role, rng)?;
            keys.push(AttributeKeys::new(vec![AttributeAccess::new(public.clone(), Some(key))?]));
        }
        let fingerprint = *public.authority().as_bytes();
        keys.push(AttributeKeys::new(vec![AttributeAccess::new(public, None)?]));
        Ok(Self { fingerprint, keys })
    }

    /// Keys of each kind of drones: the numbers of a kind are those with this remainder modulo four.
    pub fn kinds(&self) -> impl Iterator<Item = (u32, EnvelopeCommand)> {
        (0..).zip(self.keys.iter().cloned().map(EnvelopeCommand::Keys))
    }

    /// Keys of the drone of this number.
    #[must_use]
    pub fn keys_of(&self, drone: u32) -> Option<EnvelopeCommand> {
        self.keys.get(drone as usize % KINDS).cloned().map(EnvelopeCommand::Keys)
    }

    /// Keys of a leader: enough to seal.
    #[must_use]
    pub fn public(&self) -> Option<EnvelopeCommand> {
        self.keys.last().cloned().map(EnvelopeCommand::Keys)
    }

    /// Command to seal an order, signed.
    ///
    /// # Errors
    /// [`OrderError`], never.
    pub fn seal(&self, order: &Order, data: Vec<u8>) -> Result<EnvelopeCommand, OrderError> {
        let target = EnvelopeTarget::policy(order.policy, &Schema::new())?;
        Ok(EnvelopeCommand::Seal { authority: self.fingerprint, target, data, signed: true })
    }
}

fn key(
    parameters: &Parameters<FabeoCp>,
    master: &MasterKey<FabeoCp>,
    role: &str,
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<AnyKey, OrderError> {
    let set = AttributeSet::parse(role, &Schema::new())?;
    let key = FabeoCp::derive(parameters, master, &set, rng)?;
    Ok(AnyKey::decode(FabeoCp::ID, &key.encode())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expectations follow from policies and attributes, and each order separates some kinds.
    #[test]
    fn orders_let_in_whom_their_policies_fit() {
        for order in ORDERS {
            let Ok(EnvelopeTarget::Policy(tree)) = EnvelopeTarget::policy(order.policy, &Schema::new())
            else {
                panic!("no policy")
            };
            for (drone, role) in (0..).zip(ROLES) {
                let set = AttributeSet::parse(role, &Schema::new()).expect("attributes");
                assert_eq!(tree.satisfied_by(&set), order.is_for(drone), "{}: {role}", order.policy);
                assert_eq!(order.is_for(drone), order.is_for(drone + 4));
            }
            assert!(!order.is_for(3) && order.lets_in.contains(&true));
        }
    }
}
