//! The pairwise key of a member and its leader, made once per term or join, then ratcheted.
//!
//! | protocol | meaning | code |
//! |---|---|---|
//! | T = l·(Y + E) = (y + e)·V | pairwise secret | `AgreedSecret` |
//! | ctx | everything public about the pair | [`PairContext`] |
//! | W\[b\] = HKDF-Extract(ctx, T) | start of the chain, in the epoch with counter b | [`Ratchet::derive`] |
//! | W\[b\] = HKDF-Extract(ctx', lp(T) ‖ lp(κ_g)) | the same with a [second factor](crate::kem) | [`Ratchet::derive_with`] |
//! | A = PRF(W\[b\], "auth", "") | authenticates small messages between the two; never encrypts | [`Ratchet::auth`] |
//! | W\[u+1\] = PRF(W\[u\], "step", "") | one step per epoch; what was before is erased | [`Ratchet::step`] |

use alloc::vec::Vec;
use core::marker::PhantomData;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher, PrfKey, Secret, Zeroizing, extract, prf, prf_each};

use crate::slots::Slot;
use crate::{
    AgreedSecret, Deployment, DronePublicKey, Element, Epoch, Error, KemKey, Name, Pseudonym, Suite,
};

/// Greatest number of steps that a ratchet skips at once.
pub const MAX_SKIP: u64 = 1 << 16;
/// The last step of a ratchet: one behind the last epoch, as `flat` steps after the wrap.
const LAST: u64 = Epoch::MAX_COUNTER + 1;

/// Common part of the contexts of all pairs of one epoch that adds members.
#[derive(Clone, Debug)]
pub struct PairContext {
    shared: Hasher,
}

impl PairContext {
    /// The epoch that adds members, its V and its leader.
    #[must_use]
    pub fn new<S: Suite>(
        deployment: &Deployment<S>,
        group: &Name,
        epoch: Epoch,
        point: &Element<S>,
        leader: &DronePublicKey<S>,
    ) -> Self {
        // §14: ctx_i = H("quiver/1 pair", suite, P_pub, lp(group), term, counter, V, lp(D_k),R_k,P_k, …
        let shared = Hasher::new("quiver/1 pair")
            .lp(S::ID.as_bytes())
            .fixed(deployment.master().as_bytes())
            .lp(group.as_bytes())
            .u64(epoch.term)
            .u64(epoch.counter)
            .fixed(point.as_bytes())
            .fixed(&leader.encode());
        Self { shared }
    }

    /// The context of one drone. `q` is 0 for a join, whose `one_time` point is E_now.
    #[must_use]
    pub fn digest<S: Suite>(
        &self,
        drone: &DronePublicKey<S>,
        slot: Slot,
        q: u64,
        one_time: &S::Encoding,
    ) -> Digest {
        // …, lp(D_i),R_i,P_i, slot, q, E)
        self.shared.clone().fixed(&drone.encode()).u32(slot).u64(q).fixed(one_time.as_ref()).finish()
    }

    /// The context of an anonymous member, whose W takes the place of T: H("quiver/1 anonymous pair", H(the
    /// common part), pseudonym, slot).
    #[must_use]
    pub fn anonymous(&self, pseudonym: &Pseudonym, slot: Slot) -> Digest {
        let shared = self.shared.clone().finish();
        // §A5.1: the pseudonym stands where a member by name has its key.
        Hasher::new("quiver/1 anonymous pair").fixed(&shared).fixed(pseudonym.as_bytes()).u32(slot).finish()
    }
}

/// W\[u\], u and A of one pair: 72 bytes.
#[derive(Clone, derive_more::Debug)]
#[debug("Ratchet {{ u: {u:?}, .. }}")]
pub struct Ratchet<S: Suite> {
    chain: Secret<32>,
    auth: Secret<32>,
    u: u64,
    suite: PhantomData<S>,
}

impl<S: Suite> Ratchet<S> {
    /// Bytes of [`encode`](Self::encode).
    pub const ENCODED_LEN: usize = 8 + 32 + 32;

    /// W\[0\] and A from the pairwise secret and the pair's context.
    #[must_use]
    pub fn derive(secret: &AgreedSecret, context: &Digest) -> Self {
        // §14: W[b] = HKDF-Extract(salt = ctx, IKM = T), A = PRF(W[b], "auth", "").
        let chain = extract(context, secret.expose());
        let auth = prf(&chain, S::ID, "auth", &[]);
        Self { chain, auth, u: 0, suite: PhantomData }
    }

    /// The same with a second factor: whoever lacks either the pairwise secret or κ has neither W\[0\] nor A.
    #[must_use]
    pub fn derive_with(secret: &AgreedSecret, kem: &KemKey<S>, context: &Digest) -> Self {
        let (chain, auth) = kem.start_chain(secret, context);
        Self { chain, auth, u: 0, suite: PhantomData }
    }

    /// [`derive`](Self::derive) or [`derive_with`](Self::derive_with), as a header demands: it names no
    /// second factor and there is none, or both are of one set and one count.
    pub(crate) fn derive_for(secret: &AgreedSecret, kem: Option<&KemKey<S>>, context: &Digest) -> Self {
        kem.map_or_else(|| Self::derive(secret, context), |kem| Self::derive_with(secret, kem, context))
    }

    /// A, for as long as the pair lasts.
    #[must_use]
    pub const fn auth(&self) -> &Secret<32> {
        &self.auth
    }

    /// The counter of the epoch of the key, once it counts from the epoch that made it.
    #[must_use]
    pub const fn u(&self) -> u64 {
        self.u
    }

    /// W\[u\], of one epoch alone.
    pub(crate) const fn chain(&self) -> &Secret<32> {
        &self.chain
    }

    /// PRF(W\[u\], "wrap", D0 ‖ slot). With the epoch the caller owes the step: no chain key makes two such
    /// pads.
    pub(crate) fn pad(&self, d0: &Digest, slot: Slot) -> Secret<32> {
        // §14: pad = PRF(W[u], "wrap", D0 ‖ slot).
        prf(&self.chain, S::ID, "wrap", &[d0, &slot.to_be_bytes()])
    }

    /// W\[u+1\]; W\[u\] is erased.
    pub fn step(&mut self) {
        // §14: W[u+1] = PRF(W[u], "step", ""); the old key is erased.
        self.chain = prf(&self.chain, S::ID, "step", &[]);
        self.count();
    }

    /// Counts one step. It starts at a counter of at most [`Epoch::MAX_COUNTER`], so the end is never
    /// reached; there the count would stand still, not begin anew.
    const fn count(&mut self) {
        self.u = self.u.saturating_add(1);
    }

    /// [`pad`](Self::pad), then [`step`](Self::step), with the chain's key hashed once for both.
    pub(crate) fn pad_and_step(&mut self, d0: &Digest, slot: Slot) -> Secret<32> {
        let slot = slot.to_be_bytes();
        // Both under one key: the pad of this epoch and W[u+1].
        let [pad, stepped] = prf_each(&self.chain, S::ID, [("wrap", &[d0, &slot]), ("step", &[])]);
        self.chain = stepped;
        self.count();
        pad
    }

    /// The start of the chain is the key of the epoch with this counter.
    pub(crate) const fn count_from(&mut self, counter: u64) {
        self.u = counter;
    }

    /// The chain at `u`, however far ahead: the leader's, who counts its own epochs. It never goes back.
    pub(crate) fn catch_up_with(&mut self, u: u64) {
        while self.u < u {
            self.step();
        }
    }

    /// The chain at `u`.
    ///
    /// # Errors
    /// [`Error::Stale`] if it is past that, [`Error::Exhausted`] if `u` is more than [`MAX_SKIP`] ahead or no
    /// epoch's. Nothing changes then.
    pub fn skip_to(&mut self, u: u64) -> Result<(), Error> {
        // §8.4: never back, and at most `MAX_SKIP` forward.
        let ahead = u.checked_sub(self.u).ok_or(Error::Stale)?;
        if ahead > MAX_SKIP || u > LAST {
            return Err(Error::Exhausted);
        }
        (0..ahead).for_each(|_| self.step());
        Ok(())
    }

    /// Encodes the ratchet for the edge's encrypted state: u (8 bytes), W\[u\], A.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::with_capacity(Self::ENCODED_LEN);
        self.write(&mut writer);
        Zeroizing::new(writer.finish())
    }

    /// Writes what [`encode`](Self::encode) gives where there is room for it.
    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u64(self.u).fixed(self.chain.expose()).fixed(self.auth.expose());
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::Malformed`], also for a step that no epoch leads to.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let u = reader.u64()?;
        if u > LAST {
            return Err(Error::Malformed("ratchet"));
        }
        let (chain, auth) = (Secret::new(reader.array()?), Secret::new(reader.array()?));
        reader.end()?;
        Ok(Self { chain, auth, u, suite: PhantomData })
    }
}

/// PRF(A, "ack", D): the member has persisted the epoch with header digest D.
#[must_use]
pub fn ack_tag<S: Suite>(auth: &Secret<32>, digest: &Digest) -> [u8; 32] {
    ack_tag_under::<S>(&PrfKey::new(auth), digest)
}

/// [`ack_tag`] under A as it was hashed once.
pub(crate) fn ack_tag_under<S: Suite>(auth: &PrfKey, digest: &Digest) -> [u8; 32] {
    *auth.prf(S::ID, "ack", &[digest]).expose()
}

/// PRF(A, "catch-up", r ‖ D held): the member holds the epoch D and asks for the current one.
#[must_use]
pub fn catch_up_tag<S: Suite>(auth: &Secret<32>, r: &[u8; REQUEST_LEN], held: &Digest) -> [u8; 32] {
    *prf(auth, S::ID, "catch-up", &[r, held]).expose()
}

/// PRF(A, "fresh", D ‖ r): proves to the member that asked with r that D is current.
#[must_use]
pub fn fresh_tag<S: Suite>(auth: &Secret<32>, digest: &Digest, r: &[u8; REQUEST_LEN]) -> [u8; 32] {
    *prf(auth, S::ID, "fresh", &[digest, r]).expose()
}

/// PRF(A, "leave", D held): the anonymous member that holds the epoch D wants out. Others sign that.
#[must_use]
pub fn leave_tag<S: Suite>(auth: &Secret<32>, held: &Digest) -> [u8; 32] {
    *prf(auth, S::ID, "leave", &[held]).expose()
}

/// Bytes of a catch-up request's number r = boot_no (4) ‖ n (4) ‖ random (8).
pub const REQUEST_LEN: usize = 16;
