//! Works out what a header means for a member (§7.3). Nothing here changes what is held.

use alloc::boxed::Box;

use quiver_ainq::{
    Deployment, Epoch, EpochKind, EpochPart, Error, GroupContext, GroupMembership, Header, KemKey, SparePair,
    StrategyKind, Suite, VerifiedHeader,
};
use quiver_machine::Offence;

use super::early_updates::{EarlyUpdate, builds_on};
use super::member::Member;
use super::spare_points::SparePoints;
use crate::edge::EdgeContext;
use crate::edge::kem_keys::KemKeys;

/// Meaning of a header for a member.
pub(super) enum HeaderMeaning<S: Suite> {
    /// The epoch held, once more.
    Known,
    /// A newer epoch, with its state.
    Newer(GroupMembership<S>),
    /// Keys of the epoch held that were missing.
    Completed(GroupMembership<S>),
    /// A newer epoch, to be taken up when the one that it builds on is there.
    Early(Box<EarlyUpdate<S>>),
    /// A newer epoch, but what came with its header does not hold.
    Spoilt(Error),
    /// The member was removed.
    Removed,
    /// Not to be reached from what we hold: join again.
    TooFar,
    /// The member's entry is not there: ask for it.
    Ask,
    /// A newer epoch, with the wraps of others: ours may be in another part.
    Others,
}

/// §7.3: Checks a header and works out what it means, with the newest epoch ever accepted in the group.
/// Changes nothing, but that the leader's key in `header` remembers its Y.
pub(super) fn check<S: Suite>(
    cx: &EdgeContext<'_, S>,
    member: &Member<S>,
    newest: Option<Epoch>,
    (spare_points, kem_keys): (&SparePoints<S>, &KemKeys<S>),
    header: &mut Header<S>,
    part: Option<&EpochPart>,
) -> Result<HeaderMeaning<S>, Offence> {
    cx.leaders.check(header)?;
    let deployment = cx.deployment;
    let (group, held) = (member.membership.group(), &member.membership);
    let lacks_ours = |part: &EpochPart| matches!(part, EpochPart::Delta(delta) if !delta.covers(held.slot()));
    // §7.5: an opening is many parts, and those of others are not worth a signature's verification.
    if header.core.kind == EpochKind::Open && part.is_some_and(lacks_ours) {
        return Ok(HeaderMeaning::Others);
    }
    let (list, now) = (cx.revocations.list(), cx.now.unix);
    if header.core.group == *group && header.core.epoch == held.epoch() {
        let known = header.digest(deployment) == *held.digest();
        let path = part.filter(|part| matches!(part, EpochPart::Path(_)) && !held.has_path());
        if known && path.is_none() {
            return Ok(HeaderMeaning::Known);
        }
        let verified = header.clone().verify(deployment, group, None, list, now)?;
        remember_leader(header, &verified, deployment);
        return match path {
            // §8.2: the path message repairs what is missing.
            Some(path) if known => Ok(derive(cx, member, &verified, (None, None), path)
                .map_or_else(HeaderMeaning::Spoilt, HeaderMeaning::Completed)),
            // §7.5: another header for the epoch held: proof against its signer, as it is signed.
            _ => Err(Offence::Equivocation),
        };
    }
    // §7.3, 1 to 4: shape and group, newer than ever accepted, signature, validity.
    let verified = header.clone().verify(deployment, group, newest, list, now)?;
    remember_leader(header, &verified, deployment);
    let tree = header.core.strategy == StrategyKind::Tree;
    match interpret(cx, member, (spare_points, kem_keys), &verified, part) {
        // The header proves a newer epoch; only the part that came with it is unusable.
        Err(error) if tree && matches!(part, Some(EpochPart::Delta(_) | EpochPart::Path(_))) => {
            Ok(HeaderMeaning::Spoilt(error))
        }
        step => Ok(step?),
    }
}

/// Works out what a verified header of a newer epoch means.
pub(super) fn interpret<S: Suite>(
    cx: &EdgeContext<'_, S>,
    member: &Member<S>,
    (spare_points, kem_keys): (&SparePoints<S>, &KemKeys<S>),
    header: &VerifiedHeader<S>,
    part: Option<&EpochPart>,
) -> Result<HeaderMeaning<S>, Error> {
    let (core, held, slot) = (header.core(), &member.membership, member.membership.slot());
    let same_term = core.epoch.term == held.epoch().term;
    let opens = core.kind == EpochKind::Open;
    let tree = core.strategy == StrategyKind::Tree;
    // §2.2: a term goes by the key that opened it: what another key of its leader signs ends no membership.
    if same_term && core.leader.handle() != *held.leader() {
        return Err(Error::NotALeader);
    }
    // §6.5: an anonymous member is in no later term.
    if cx.keypair.is_none() && (opens || !same_term) {
        return Ok(HeaderMeaning::TooFar);
    }
    if matches!(part, Some(EpochPart::Delta(_) | EpochPart::Path(_))) && !tree {
        return Err(Error::UnsupportedStrategy);
    }
    let removed = same_term && core.removed.contains(slot);
    if let Some(EpochPart::Delta(delta)) = part.filter(|_| !opens) {
        let stays = delta.keeps(slot);
        // §8.3: what does not have our nodes changes nothing. If those are lost, the header comes again.
        if stays.is_none() && !removed {
            return Ok(HeaderMeaning::Others);
        }
        if !removed && (!same_term || !builds_on(held, header)) {
            // §8.4: before any of them is kept: the header binds its wraps, whichever term it is of.
            if delta.root() != header.header().entries_root {
                return Err(Error::WrongWraps);
            }
            // §12.1: wraps that have none for us are the leader's word too.
            if same_term && stays == Some(false) {
                return Ok(HeaderMeaning::Removed);
            }
            let early = EarlyUpdate { header: header.clone(), delta: delta.clone() };
            return Ok(HeaderMeaning::Early(Box::new(early)));
        }
    }
    // §24.7: who has no κ that leads to an opening joins again.
    let kem = if opens { kem_keys.for_header(core) } else { Ok(None) };
    let Ok(kem) = kem else { return Ok(HeaderMeaning::TooFar) };
    match core.kind {
        EpochKind::Rekey if !same_term => return Ok(HeaderMeaning::Ask),
        EpochKind::Rekey if removed => return Ok(HeaderMeaning::Removed),
        EpochKind::Open if core.absent.contains(slot) => return Ok(HeaderMeaning::TooFar),
        _ => {}
    }
    let Some(part) = part else { return Ok(HeaderMeaning::Ask) };
    // §7.4: entries are not signed: another member's proves nothing about us.
    if matches!(part, EpochPart::Entry(entry) if entry.slot != slot) {
        return Err(Error::WrongSlot);
    }
    let (mut spares, mut failed) = (spare_points.held(), Error::WrongSpare);
    loop {
        let spare = spares.next().filter(|_| opens);
        if opens && spare.is_none() {
            return Err(failed);
        }
        match derive(cx, member, header, (spare, kem.as_ref()), part) {
            // §7.4: an entry may name a pair that is gone; §9.3: wraps and paths name none: it fits if the key does.
            Err(Error::WrongSpare) if opens => {}
            Err(error @ (Error::WrongTag | Error::SealBroken)) if opens => failed = error,
            // §9.1: without a wrap for it, it is no member of the new term, and joins again.
            Err(Error::Removed) if opens => return Ok(HeaderMeaning::TooFar),
            Err(Error::Removed) => return Ok(HeaderMeaning::Removed),
            next => return next.map(HeaderMeaning::Newer),
        }
    }
}

/// §7.3, 5: Derives the membership of a header and what came with it: unwrap, tag.
fn derive<S: Suite>(
    cx: &EdgeContext<'_, S>,
    member: &Member<S>,
    header: &VerifiedHeader<S>,
    secrets: (Option<&SparePair<S>>, Option<&KemKey<S>>),
    part: &EpochPart,
) -> Result<GroupMembership<S>, Error> {
    let core = header.core();
    if core.kind == EpochKind::Rekey {
        return member.membership.advance_in_term(header, part);
    }
    // §9.1: a term is opened with a pairwise secret of the member's key and its spare pair.
    let keypair = cx.keypair.ok_or(Error::MissingEntry)?;
    let (deployment, group, leader) = (cx.deployment.clone(), core.group.clone(), core.leader.clone());
    member.membership.advance_with_kem(
        &GroupContext { deployment, group, leader },
        keypair,
        secrets,
        header,
        part,
    )
}

/// The leader's key in a header remembers what it remembers in the same header verified.
fn remember_leader<S: Suite>(
    header: &mut Header<S>,
    verified: &VerifiedHeader<S>,
    deployment: &Deployment<S>,
) {
    if !header.core.leader.remembers_implicit(deployment) {
        header.core.leader.clone_from(&verified.core().leader);
    }
}
