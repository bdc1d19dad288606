//! What others know of a drone: its identity and the two points its implicit key is made of.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::hash::Hash;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Hasher, Hex};

use super::identity_message;
use crate::identity::MAX_IDENTITY_LEN;
use crate::statement::challenge;
use crate::{Deployment, Element, Error, Identity, Suite};

/// (D_i, R_i, P_i): all that others need to know of a drone.
///
/// A leader keeps as many as the group has members, so the points are kept as the bytes they came in, which were
/// checked, and decoded only as long as Y is still to be made of them.
#[derive(Clone)]
pub struct DronePublicKey<S: Suite> {
    /// D_i.
    pub identity: Identity,
    r: S::Encoding,
    p: S::Encoding,
    /// R_i + P_i.
    sum: Option<Box<S::Point>>,
}

/// H(D, R, P): names one key of one drone, in revocation lists and evictions. 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub [u8; 32]);

impl Handle {
    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({self})")
    }
}

impl<S: Suite> DronePublicKey<S> {
    /// Bytes an encoding may have.
    pub const MAX_LEN: usize = 4 + MAX_IDENTITY_LEN + 2 * S::POINT_LEN;

    /// Puts one together.
    #[must_use]
    pub fn new(identity: Identity, r: Element<S>, p: Element<S>) -> Self {
        let sum = Some(Box::new(*r.point() + *p.point()));
        Self { identity, r: *r.encoding(), p: *p.encoding(), sum }
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
        self.sum = None;
    }

    fn sum(&self) -> Result<S::Point, Error> {
        match &self.sum {
            Some(sum) => Ok(**sum),
            None => Ok(*Element::<S>::decode(self.r())?.point() + *Element::<S>::decode(self.p())?.point()),
        }
    }

    fn fields(&self) -> (&Identity, &S::Encoding, &S::Encoding) {
        (&self.identity, &self.r, &self.p)
    }

    /// The canonical encoding: `lp(D) ‖ R ‖ P`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let identity = self.identity.encode();
        let mut writer = Writer::with_capacity(4 + identity.len() + 2 * S::POINT_LEN);
        writer.lp(&identity).fixed(self.r()).fixed(self.p()).finish()
    }

    /// Reads the canonical encoding. What it says is proven only by a signature under the implicit key.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::InvalidName`], [`Error::InvalidPoint`] or [`Error::IdentityPoint`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let public = Self::read(&mut reader)?;
        reader.end()?;
        Ok(public)
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
        let hash = Hasher::new("quiver/1 handle").lp(S::ID.as_bytes()).lp(&self.identity.encode());
        Handle(hash.fixed(self.r()).fixed(self.p()).finish())
    }

    /// Y_i = R_i + H0(D_i,R_i,P_i)·P_pub + P_i. Only who was issued (s_i, R_i) for D_i and P_i knows its secret.
    ///
    /// # Errors
    /// [`Error::IdentityPoint`].
    pub fn implicit(&self, deployment: &Deployment<S>) -> Result<Element<S>, Error> {
        self.implicit_point(deployment).and_then(Element::from_point)
    }

    /// [`implicit`](Self::implicit) without its encoding.
    pub(crate) fn implicit_point(&self, deployment: &Deployment<S>) -> Result<S::Point, Error> {
        let message = identity_message(deployment, &self.identity.encode(), self.p());
        let h0 = challenge(deployment, self.r(), &message);
        let point = self.sum()? + deployment.vartime_mul_master(&h0);
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

impl<S: Suite> fmt::Debug for DronePublicKey<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("DronePublicKey");
        debug.field("identity", &self.identity);
        debug.field("r", &format_args!("{}", Hex(self.r())));
        debug.field("p", &format_args!("{}", Hex(self.p()))).finish()
    }
}
