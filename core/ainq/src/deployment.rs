//! The trust anchor of a deployment: its name and the KGC's master public key.

use alloc::sync::Arc;
use alloc::vec::Vec;

use quiver_crypto::canonical::Writer;
use quiver_crypto::{Digest, Hasher, Hex};

use crate::{Element, Name, Suite};

/// A deployment: all drones, leaders and KGCs under one master public key.
///
/// Cheap to clone and small: everything in it is shared, also the tables that make multiplications of the
/// master public key fast.
#[derive(Clone, derive_more::Debug)]
#[debug("Deployment {{ suite: {:?}, name: {:?}, fingerprint: {} }}", S::ID, _0.name, Hex(&_0.fingerprint))]
pub struct Deployment<S: Suite>(Arc<Pinned<S>>);

struct Pinned<S: Suite> {
    name: Name,
    master: Element<S>,
    prepared: S::Prepared,
    fingerprint: Digest,
}

impl<S: Suite> Deployment<S> {
    /// Pins a name and a master public key P_pub.
    #[must_use]
    pub fn new(name: Name, master: Element<S>) -> Self {
        // §1.1: suite, name and P_pub are the deployment; their fingerprint enters every hash and signature.
        let fingerprint = Hasher::new("quiver/1 deployment")
            .lp(S::ID.as_bytes())
            .lp(name.as_bytes())
            .fixed(master.as_bytes())
            .finish();
        Self(Arc::new(Pinned { name, prepared: S::prepare(master.point()), master, fingerprint }))
    }

    /// The deployment's name.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    /// P_pub.
    pub fn master(&self) -> &Element<S> {
        &self.0.master
    }

    /// H("quiver/1 deployment", suite, name, P_pub): what people compare.
    pub fn fingerprint(&self) -> Digest {
        self.0.fingerprint
    }

    /// scalar · P_pub, for public scalars.
    pub(crate) fn vartime_mul_master(&self, scalar: &S::Scalar) -> S::Point {
        S::vartime_mul_prepared(scalar, &self.0.prepared)
    }

    /// `lp(suite) ‖ lp(deployment) ‖ lp(purpose) ‖ body`, a statement of the KGC as bytes.
    pub(crate) fn statement(&self, purpose: &str, body: &[u8]) -> Vec<u8> {
        // §2.3: the tag of everything that the KGC signs.
        Writer::new()
            .lp(S::ID.as_bytes())
            .lp(self.0.name.as_bytes())
            .lp(purpose.as_bytes())
            .fixed(body)
            .finish()
    }
}

impl<S: Suite> PartialEq for Deployment<S> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.name == other.0.name && self.0.master == other.0.master)
    }
}

impl<S: Suite> Eq for Deployment<S> {}
