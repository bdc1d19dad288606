//! An epoch before it is signed: pairwise keys, then core, D0, wraps, tag and signature, in this order.

use alloc::vec::Vec;

use quiver_crypto::Digest;
use rand_core::CryptoRngCore;

use super::batch::Newcomer;
use super::{EpochOutput, Times};
use crate::header::header_digest;
use crate::kem::check_term;
use crate::pairwise::{PairContext, Ratchet};
use crate::slots::{Slot, SlotChanges, SlotSet};
use crate::strategy::{MembershipChange, SealedEpoch, Strategy};
use crate::{
    Admission, DroneKeypair, Element, Epoch, EpochKind, Error, GroupContext, GroupKey, Header, HeaderCore,
    KemTerm, Label, SecretScalar, StrategyKind, Suite,
};

/// An epoch before it is issued.
pub(super) struct Draft<'a, S: Suite> {
    context: &'a GroupContext<S>,
    kind: EpochKind,
    epoch: Epoch,
    prev: Digest,
    times: &'a Times,
    point: Option<Element<S>>,
    /// Parameter set and count of the second factor.
    pub(super) kem: Option<KemTerm>,
    pub(super) changes: SlotChanges,
    pub(super) newcomers_follow: bool,
    pub(super) absent: SlotSet,
    pub(super) roster_hash: Digest,
}

impl<'a, S: Suite> Draft<'a, S> {
    pub(super) fn new(
        context: &'a GroupContext<S>,
        kind: EpochKind,
        epoch: Epoch,
        prev: Digest,
        times: &'a Times,
    ) -> Self {
        Self {
            context,
            kind,
            epoch,
            prev,
            times,
            point: None,
            kem: None,
            changes: SlotChanges::default(),
            newcomers_follow: false,
            absent: SlotSet::new(),
            roster_hash: [0; 32],
        }
    }

    /// Draws l for this epoch alone and makes V and every newcomer's ratchet, by ascending slot. l and all T
    /// are erased on return.
    pub(super) fn agree(
        &mut self,
        newcomers: &[Newcomer<'_, S>],
        admitted: &[(Slot, &Admission<S>)],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Vec<(Slot, Ratchet<S>)>, Error> {
        if newcomers.is_empty() && admitted.is_empty() {
            return Ok(Vec::new());
        }
        // §24.3: of every newcomer, by name or not, of the term's set and count, or of none.
        let anonymous = admitted.iter().map(|(_, admission)| admission.kem.as_ref());
        for kem in newcomers.iter().map(|newcomer| newcomer.kem).chain(anonymous) {
            check_term(self.kem.as_ref(), kem)?;
        }
        let GroupContext { deployment, group, leader } = self.context;
        // §1.2: l random, V = l·P
        let secret = SecretScalar::generate(rng);
        let point = secret.public();
        let pairs = PairContext::new(deployment, group, self.epoch, &point, leader);
        // §1.2: T_i = l·(Y_i + E_i)
        let targets: Vec<S::Point> = newcomers.iter().map(|newcomer| newcomer.target).collect();
        let agreed = S::agree_many(secret.expose(), &targets);
        let mut ratchets = Vec::with_capacity(newcomers.len() + admitted.len());
        // By reference: moving out of a vector leaves a copy in its memory.
        for (newcomer, agreed) in newcomers.iter().zip(&agreed) {
            // §14: W_i[b] = HKDF-Extract(salt = ctx_i, IKM = T)
            let ctx = pairs.digest(newcomer.public, newcomer.slot, newcomer.q, &newcomer.one_time);
            let agreed = agreed.as_ref().map_err(Clone::clone)?;
            ratchets.push((newcomer.slot, Ratchet::derive_for(agreed, newcomer.kem, &ctx)));
        }
        for (slot, admission) in admitted {
            // §14: the same, with W of the exchange in place of T.
            let Admission { member, secret, kem } = admission;
            let ctx = pairs.anonymous(&member.pseudonym, *slot);
            ratchets.push((*slot, Ratchet::derive_for(secret, kem.as_ref(), &ctx)));
        }
        self.point = Some(point);
        Ok(ratchets)
    }

    /// Writes and signs the header and wraps the key for all members. `highest` is the highest slot held from
    /// now on.
    pub(super) fn issue(
        self,
        keypair: &DroneKeypair<S>,
        strategy: &mut dyn Strategy<S>,
        newcomers: Vec<(Slot, Ratchet<S>)>,
        highest: Option<Slot>,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> (EpochOutput<S>, GroupKey) {
        let (deployment, changes) = (&self.context.deployment, self.changes.clone());
        let (kind, counter) = (self.kind, self.epoch.counter);
        let SlotChanges { removed, added } = &changes;
        let newcomers_follow = self.newcomers_follow;
        let change = MembershipChange { kind, counter, removed, added, highest, newcomers, newcomers_follow };
        let height = strategy.height_after(&change);
        let mut nonce = [0; 32];
        rng.fill_bytes(&mut nonce);
        let core = self.into_core(nonce, strategy.kind(), height);
        // §7.1: D0 = H("quiver/1 core", core)
        let d0 = core.digest(deployment);
        let mut rng = rng;
        // §7.1: the strategy draws or derives K_g and wraps it under D0.
        let SealedEpoch { key, entries, wraps, entries_root } = strategy.seal(change, &d0, &mut rng);
        // §7.1: tag = PRF(K_g, "confirm", D0 ‖ entries_root)
        let tag = *key.tag(&d0, &entries_root).expose();
        // §7.1: D = H("quiver/1 header", D0 ‖ entries_root ‖ tag), signed with the label "header"
        let digest = header_digest(&d0, &entries_root, &tag);
        let signature = keypair.sign(deployment, Label::Header, &digest, &mut rng);
        let header = Header { core, entries_root, tag, signature };
        let (assigned, admitted, dropped) = (Vec::new(), Vec::new(), Vec::new());
        let output = EpochOutput {
            header,
            digest,
            changes,
            entries,
            wraps,
            newcomers_follow,
            assigned,
            admitted,
            dropped,
        };
        (output, key)
    }

    fn into_core(self, nonce: [u8; 32], strategy: StrategyKind, height: u8) -> HeaderCore<S> {
        // §7.1: under tree many slots are not listed, for a member needs none but its own.
        let listed = strategy == StrategyKind::Flat || self.changes.are_listed();
        let digest = (!listed).then(|| self.changes.digest());
        let SlotChanges { removed, added } = if listed { self.changes } else { SlotChanges::default() };
        HeaderCore {
            group: self.context.group.clone(),
            leader: self.context.leader.clone(),
            epoch: self.epoch,
            prev: self.prev,
            nonce,
            issued_at: self.times.issued_at,
            valid_until: self.times.valid_until,
            strategy,
            kind: self.kind,
            point: self.point,
            height,
            removed,
            added,
            changes: digest,
            absent: self.absent,
            roster_hash: self.roster_hash,
            revocation_number: self.times.revocation_number,
            kem: self.kem,
        }
    }
}
