//! A drone's public key: its identity and the two points that its implicit key is computed from.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::hash::Hash;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Hasher, Hex};

use super::identity_message;
use crate::header::begin_core;
use crate::identity::MAX_IDENTITY_LEN;
use crate::statement::challenge;
use crate::{Deployment, Element, Error, Identity, Name, Role, Suite};

/// (D_i, R_i, P_i): all that others need to know of a drone.
///
/// A leader keeps as many as the group has members, so the points are kept as the bytes they came in, which
/// were checked, and decoded only as long as Y is still to be made of them.
#[derive(Clone, derive_more::Debug)]
#[debug("DronePublicKey {{ identity: {identity:?}, r: {}, p: {} }}", Hex(self.r()), Hex(self.p()))]
pub struct DronePublicKey<S: Suite> {
    /// D_i.
    pub identity: Identity,
    r: S::Encoding,
    p: S::Encoding,
    points: Option<Arc<Points<S>>>,
}

/// The points of Y.
enum Points<S: Suite> {
    /// R_i + P_i.
    Sum(S::Point),
    /// Y_i itself. In a box, because most keys have no more than the sum.
    Implicit(Box<Implicit<S>>),
}

/// Y_i in one deployment, and what else is asked of a key that is met again and again.
struct Implicit<S: Suite> {
    deployment: Deployment<S>,
    /// D_i at that time: a key with another identity is another key, and these values do not hold for it.
    identity: Identity,
    element: Element<S>,
    handle: Handle,
    encoded: Vec<u8>,
    /// Start of D0 in the headers of the group that the drone leads, if it leads one.
    core: Option<Hasher>,
}

/// H(D, R, P): names one key, of which a drone may have several; [`Serial`](crate::Serial) names the drone.
/// 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display, derive_more::Debug)]
#[debug("Handle({self})")]
#[display("{}", Hex(_0))]
pub struct Handle(pub [u8; 32]);

impl Handle {
    /// The handle of the key with this encoding, without decoding it. Of other bytes it is no key's.
    #[must_use]
    pub fn of_encoded<S: Suite>(encoded: &[u8]) -> Self {
        // §2.1: the encoding is lp(D) ‖ R ‖ P.
        Self(Hasher::new("quiver/1 handle").lp(S::ID.as_bytes()).fixed(encoded).finish())
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl<S: Suite> DronePublicKey<S> {
    /// Bytes an encoding may have.
    pub const MAX_LEN: usize = 4 + MAX_IDENTITY_LEN + 2 * S::POINT_LEN;

    /// Puts one together.
    #[must_use]
    pub fn new(identity: Identity, r: Element<S>, p: Element<S>) -> Self {
        // R_i + P_i is what Y_i needs beside H0·P_pub (§1.2).
        let points = Some(Arc::new(Points::Sum(*r.point() + *p.point())));
        Self { identity, r: *r.encoding(), p: *p.encoding(), points }
    }

    /// R_i, the partial public key: the canonical encoding of a point, `S::POINT_LEN` bytes.
    #[must_use]
    pub fn r(&self) -> &[u8] {
        self.r.as_ref()
    }

    /// P_i, the public value: the canonical encoding of a point, `S::POINT_LEN` bytes.
    #[must_use]
    pub fn p(&self) -> &[u8] {
        self.p.as_ref()
    }

    /// Forgets what [`implicit`](Self::implicit) would be faster with, for a key that is kept beside its Y.
    pub(crate) fn forget_points(&mut self) {
        self.points = None;
    }

    /// Computes Y and keeps it with the key and its clones, for a drone that signs often. Later calls of
    /// [`implicit`](Self::implicit) for the same deployment give it back.
    ///
    /// # Errors
    /// [`Error::IdentityPoint`].
    pub fn remember_implicit(&mut self, deployment: &Deployment<S>) -> Result<(), Error> {
        if !self.remembers_implicit(deployment) {
            let implicit = Implicit {
                deployment: deployment.clone(),
                identity: self.identity.clone(),
                element: self.implicit(deployment)?,
                handle: self.handle(),
                encoded: self.encode(),
                // §7.1: D0 as far as the leader begins all its headers alike.
                core: self.leads().map(|group| begin_core(deployment, group, self)),
            };
            self.points = Some(Arc::new(Points::Implicit(Box::new(implicit))));
        }
        Ok(())
    }

    /// Returns true if Y in this deployment is [remembered](Self::remember_implicit).
    #[must_use]
    pub fn remembers_implicit(&self, deployment: &Deployment<S>) -> bool {
        self.known_implicit(deployment).is_some()
    }

    fn known_implicit(&self, deployment: &Deployment<S>) -> Option<&Element<S>> {
        Some(&self.known_in(deployment)?.element)
    }

    /// Start of D0 in this drone's headers to a group, if it is remembered.
    pub(crate) fn begun_core(&self, deployment: &Deployment<S>, group: &Name) -> Option<Hasher> {
        let known = self.known_in(deployment)?;
        known.core.clone().filter(|_| self.leads() == Some(group))
    }

    fn leads(&self) -> Option<&Name> {
        match &self.identity.role {
            Role::Leader { group, .. } => Some(group),
            Role::Edge => None,
        }
    }

    fn known_in(&self, deployment: &Deployment<S>) -> Option<&Implicit<S>> {
        self.known().filter(|known| known.deployment == *deployment)
    }

    fn known(&self) -> Option<&Implicit<S>> {
        match self.points.as_deref() {
            Some(Points::Implicit(known)) if known.identity == self.identity => Some(known),
            _ => None,
        }
    }

    fn encodes_to(&self, bytes: &[u8]) -> bool {
        self.known().map_or_else(|| self.encode() == bytes, |known| known.encoded == bytes)
    }

    fn sum(&self) -> Result<S::Point, Error> {
        match self.points.as_deref() {
            Some(Points::Sum(sum)) => Ok(*sum),
            // The bytes were checked when the key came; decoded again, they are the points.
            _ => Ok(*Element::<S>::decode(self.r())?.point() + *Element::<S>::decode(self.p())?.point()),
        }
    }

    fn fields(&self) -> (&Identity, &S::Encoding, &S::Encoding) {
        (&self.identity, &self.r, &self.p)
    }

    /// The canonical encoding: `lp(D) ‖ R ‖ P`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        if let Some(known) = self.known() {
            return known.encoded.clone();
        }
        let identity = self.identity.encode();
        let mut writer = Writer::with_capacity(4 + identity.len() + 2 * S::POINT_LEN);
        writer.lp(&identity).fixed(self.r()).fixed(self.p()).finish()
    }

    /// Writes what [`encode`](Self::encode) gives.
    pub(crate) fn write(&self, writer: &mut Writer) {
        match self.known() {
            Some(known) => writer.fixed(&known.encoded),
            None => writer.fixed(&self.encode()),
        };
    }

    /// Decodes the canonical encoding. Its content is proven only by a signature under the implicit key.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::InvalidName`], [`Error::InvalidPoint`] or [`Error::IdentityPoint`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let public = Self::read(&mut reader)?;
        reader.end()?;
        Ok(public)
    }

    /// Decodes a key as [`decode`](Self::decode) does where a certain key is expected: if it is that one, a
    /// clone of it, with what it [remembers](Self::remember_implicit) and without decoding points again.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_expecting(bytes: &[u8], expected: Option<&Self>) -> Result<Self, Error> {
        match expected {
            // §2.1: a public key is lp(D) ‖ R ‖ P: equal bytes, equal key.
            Some(expected) if expected.encodes_to(bytes) => Ok(expected.clone()),
            _ => Self::decode(bytes),
        }
    }

    /// Reads the canonical encoding off the front of `reader` as [`decode_expecting`](Self::decode_expecting) decodes it.
    pub(crate) fn read_expecting(reader: &mut Reader<'_>, expected: Option<&Self>) -> Result<Self, Error> {
        if let Some(expected) = expected {
            let (encoded, mut ahead) = (expected.encode(), reader.clone());
            if ahead.take(encoded.len()).is_ok_and(|bytes| bytes == encoded) {
                *reader = ahead;
                return Ok(expected.clone());
            }
        }
        Self::read(reader)
    }

    /// Reads the canonical encoding off the front of `reader`.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let identity = Identity::decode(reader.lp(MAX_IDENTITY_LEN)?)?;
        Ok(Self::new(identity, Element::read(reader)?, Element::read(reader)?))
    }

    /// H("quiver/1 handle", suite, lp(D), R, P).
    #[must_use]
    pub fn handle(&self) -> Handle {
        if let Some(known) = self.known() {
            return known.handle;
        }
        // §14: the handle, H("quiver/1 handle", suite, lp(D), R, P).
        let hash = Hasher::new("quiver/1 handle").lp(S::ID.as_bytes()).lp(&self.identity.encode());
        Handle(hash.fixed(self.r()).fixed(self.p()).finish())
    }

    /// Y_i = R_i + H0(D_i,R_i,P_i)·P_pub + P_i. Only who was issued (s_i, R_i) for D_i and P_i knows its
    /// secret.
    ///
    /// # Errors
    /// [`Error::IdentityPoint`].
    pub fn implicit(&self, deployment: &Deployment<S>) -> Result<Element<S>, Error> {
        if let Some(implicit) = self.known_implicit(deployment) {
            return Ok(*implicit);
        }
        self.implicit_point(deployment).and_then(Element::from_point)
    }

    /// [`implicit`](Self::implicit) without its encoding.
    pub(crate) fn implicit_point(&self, deployment: &Deployment<S>) -> Result<S::Point, Error> {
        if let Some(implicit) = self.known_implicit(deployment) {
            return Ok(*implicit.point());
        }
        // §2.3: H0 is the challenge of the KGC's signature over lp(D) ‖ P_i.
        let message = identity_message(deployment, &self.identity.encode(), self.p());
        let h0 = challenge(deployment, self.r(), &message);
        // §1.2: Y_i = R_i + P_i + H0·P_pub.
        let point = self.sum()? + deployment.vartime_mul_master(&h0);
        // §1.3: Y is checked for the identity as well.
        if S::is_identity(&point) { Err(Error::IdentityPoint) } else { Ok(point) }
    }
}

impl<S: Suite> PartialEq for DronePublicKey<S> {
    fn eq(&self, other: &Self) -> bool {
        self.fields() == other.fields()
    }
}

impl<S: Suite> Eq for DronePublicKey<S> {}

impl<S: Suite> PartialOrd for DronePublicKey<S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<S: Suite> Ord for DronePublicKey<S> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.fields().cmp(&other.fields())
    }
}

impl<S: Suite> Hash for DronePublicKey<S> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.fields().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::{Ristretto255, SecretScalar};

    /// A leader keeps a million keys, and the points of one take more memory than its encoding.
    #[test]
    fn forgotten_points_are_given_up_and_decoded_again_where_they_are_needed() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let identity = Identity {
            serial: [7; 16],
            name: "edge-7".parse().unwrap(),
            role: Role::Edge,
            groups: Vec::new(),
            not_after: 1,
        };
        let mut point = || SecretScalar::<Ristretto255>::generate(&mut rng).public();
        let mut key = DronePublicKey::new(identity, point(), point());
        let sum = key.sum().unwrap();
        key.forget_points();
        assert!(key.points.is_none());
        assert_eq!(key.sum().unwrap(), sum);
    }
}
