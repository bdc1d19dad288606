//! An epoch in the making: pairwise keys for the newcomers, then core, D0, wraps, tag and signature, in this order.

use alloc::vec::Vec;

use quiver_crypto::{Digest, Secret};
use rand_core::CryptoRngCore;

use super::batch::Newcomer;
use super::{EpochOutput, Times};
use crate::header::header_digest;
use crate::pairwise::{PairContext, Ratchet};
use crate::slots::{Slot, SlotSet};
use crate::strategy::{Change, Strategy};
use crate::{
    DroneKeypair, Element, Epoch, Error, GroupContext, GroupKey, Header, HeaderCore, Kind, Label,
    SecretScalar, Suite,
};

/// What is known of an epoch before it is issued.
pub(super) struct Draft<'a, S: Suite> {
    context: &'a GroupContext<S>,
    kind: Kind,
    epoch: Epoch,
    prev: Digest,
    times: &'a Times,
    point: Option<Element<S>>,
    pub(super) removed: SlotSet,
    pub(super) added: SlotSet,
    pub(super) absent: SlotSet,
    pub(super) roster_hash: Digest,
}

impl<'a, S: Suite> Draft<'a, S> {
    pub(super) fn new(
        context: &'a GroupContext<S>,
        kind: Kind,
        epoch: Epoch,
        prev: Digest,
        times: &'a Times,
    ) -> Self {
        let none = SlotSet::new;
        Self {
            context,
            kind,
            epoch,
            prev,
            times,
            point: None,
            removed: none(),
            added: none(),
            absent: none(),
            roster_hash: [0; 32],
        }
    }

    /// Draws l for this epoch alone and makes V and every newcomer's ratchet. l and all T are erased on return; only
    /// `strict-paper` keeps l in `kept`.
    pub(super) fn agree(
        &mut self,
        kept: &mut Option<SecretScalar<S>>,
        newcomers: Vec<Newcomer<'_, S>>,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Vec<(Slot, Ratchet)>, Error> {
        if newcomers.is_empty() {
            return Ok(Vec::new());
        }
        let GroupContext { deployment, group, leader } = self.context;
        // l_k random, V = l_k·P
        let secret = kept.take().unwrap_or_else(|| SecretScalar::generate(rng));
        let point = secret.public();
        let pairs = PairContext::new(deployment, group, self.epoch, &point, leader);
        // T_i = l·(Y_i + E_i)
        let targets: Vec<S::Point> = newcomers.iter().map(|newcomer| newcomer.target).collect();
        let agreed = S::agree_many(secret.expose(), &targets);
        let mut ratchets = Vec::with_capacity(newcomers.len());
        for (newcomer, agreed) in newcomers.into_iter().zip(agreed) {
            // W_i[0] = HKDF-Extract(salt = ctx_i, IKM = T)
            let ctx = pairs.digest(newcomer.public, newcomer.slot, newcomer.q, &newcomer.one_time);
            ratchets.push((newcomer.slot, Ratchet::derive::<S>(&agreed?, &ctx)));
        }
        self.point = Some(point);
        if S::STRICT_PAPER {
            *kept = Some(secret);
        }
        Ok(ratchets)
    }

    /// Writes and signs the header and wraps the key for everybody.
    pub(super) fn issue(
        self,
        keypair: &DroneKeypair<S>,
        strategy: &mut dyn Strategy,
        ratchets: Vec<(Slot, Ratchet)>,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(EpochOutput<S>, GroupKey), Error> {
        let (deployment, removed) = (&self.context.deployment, self.removed.clone());
        let change = Change { removed: &removed, newcomers: ratchets };
        let plan = strategy.plan(&change);
        let mut nonce = [0; 32];
        rng.fill_bytes(&mut nonce);
        let core = self.into_core(nonce, strategy, plan.height);
        let d0 = core.digest(deployment);
        let fresh = (0..plan.fresh).map(|_| Secret::random(rng)).collect();
        let sealed = strategy.seal(change, fresh, &d0)?;
        let tag = *sealed.key.tag(&d0, &sealed.entries_root).expose();
        let digest = header_digest(&d0, &sealed.entries_root, &tag);
        let signature = keypair.sign(deployment, Label::Header, &digest, rng);
        let header = Header { core, entries_root: sealed.entries_root, tag, signature };
        let (entries, assigned, dropped) = (sealed.entries, Vec::new(), Vec::new());
        Ok((EpochOutput { header, digest, entries, assigned, dropped }, sealed.key))
    }

    fn into_core(self, nonce: [u8; 32], strategy: &dyn Strategy, height: u8) -> HeaderCore<S> {
        HeaderCore {
            group: self.context.group.clone(),
            leader: self.context.leader.clone(),
            epoch: self.epoch,
            prev: self.prev,
            nonce,
            issued_at: self.times.issued_at,
            valid_until: self.times.valid_until,
            strategy: strategy.kind(),
            kind: self.kind,
            point: self.point,
            height,
            removed: self.removed,
            added: self.added,
            absent: self.absent,
            roster_hash: self.roster_hash,
            revocation_number: self.times.revocation_number,
        }
    }
}
