//! A malicious leader: it has a key from the KGC, so its statements about an epoch are validly signed.

use arbitrary::Unstructured;
use quiver_ainq::{
    Delta, Element, Entry, Epoch, EpochKind, EpochPart, Header, HeaderCore, KemTerm, Label, PathMessage,
    ShortHeader, SlotSet, StrategyKind,
};
use quiver_kem::KemSet;
use quiver_message::{CatchUpReply, Message, Rekey, ShortRekey, Welcome};

use super::S;
use crate::scene::{GROUP, START, Staged, name, rng};

/// A message with a validly signed header and any content.
pub(crate) fn message(u: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let part = part(u)?;
    let header = header(u, part.as_ref())?;
    let message = match (u.int_in_range(0..=4_u8)?, part) {
        (0, Some(part)) => Message::Welcome(Welcome { nonce: u.arbitrary()?, header, part }),
        (1, part) => {
            let (number, tag) = (u.arbitrary()?, u.arbitrary()?);
            Message::CatchUpReply(CatchUpReply { number, header, part, tag })
        }
        (2, Some(EpochPart::Delta(wraps))) => {
            Message::ShortRekey(ShortRekey { header: short(header), wraps })
        }
        (_, part) => Message::<S>::Rekey(Rekey::new(header, part)),
    };
    Ok(message.encode(&S::scene().deployment))
}

/// The short form of a header, with all that may be left out.
fn short(header: Header<S>) -> ShortHeader<S> {
    let Header { core, tag, signature, .. } = header;
    let [a, b, c, d, e, f, g, h, ..] = core.prev;
    ShortHeader {
        epoch: core.epoch,
        prev: [a, b, c, d, e, f, g, h],
        nonce: core.nonce,
        issued_at: core.issued_at,
        valid_until: core.valid_until.max(core.issued_at),
        point: core.point,
        removed: core.removed,
        added: core.added,
        changes: core.changes,
        roster_hash: Some(core.roster_hash),
        revocation_number: Some(core.revocation_number).filter(|number| *number > 0),
        tag,
        signature,
    }
}

/// Content beside a header: an entry, wraps of a small tree, a path, or nothing.
fn part(u: &mut Unstructured<'_>) -> arbitrary::Result<Option<EpochPart>> {
    Ok(match u.int_in_range(0..=5_u8)? {
        0 => None,
        1 | 2 => {
            let q = u.arbitrary::<bool>()?.then_some(number(u)?);
            Some(EpochPart::Entry(Entry { slot: slot(u)?, q, wrap: u.arbitrary()? }))
        }
        3 | 4 => {
            let len = u.int_in_range(0..=200)?.min(u.len());
            Delta::decode(u.bytes(len)?).ok().map(EpochPart::Delta)
        }
        _ => {
            let keys = vec![u.arbitrary()?; 32 * u.int_in_range(1..=4)? + 16];
            let bytes = [&slot(u)?.to_be_bytes()[..], &number(u)?.to_be_bytes(), &[9; 16], &keys].concat();
            PathMessage::decode(&bytes).ok().map(EpochPart::Path)
        }
    })
}

fn header(u: &mut Unstructured<'_>, part: Option<&EpochPart>) -> arbitrary::Result<Header<S>> {
    let scene = S::scene();
    let leader = &scene.honest().leader.keypair;
    let point: Element<S> = *scene.deployment.master();
    let kind = if u.arbitrary()? { EpochKind::Open } else { EpochKind::Rekey };
    let core = HeaderCore {
        group: name(u.choose(&[GROUP, GROUP, GROUP, "beta"])?),
        leader: leader.public().clone(),
        epoch: Epoch { term: number(u)? << 16, counter: number(u)? },
        prev: u.arbitrary()?,
        nonce: u.arbitrary()?,
        issued_at: time(u)?,
        valid_until: time(u)?,
        strategy: *u.choose(&[StrategyKind::Flat, StrategyKind::Tree])?,
        kind,
        point: u.arbitrary::<bool>()?.then_some(point),
        height: u.int_in_range(0..=3)?,
        removed: slots(u)?,
        added: slots(u)?,
        changes: u.arbitrary()?,
        absent: slots(u)?,
        roster_hash: u.arbitrary()?,
        revocation_number: number(u)?,
        kem: kem_term(u)?,
    };
    let signature = leader.sign(&scene.deployment, Label::Header, &[], &mut rng(8));
    let entries_root = match part {
        Some(EpochPart::Delta(delta)) => delta.root(),
        _ => [0; 32],
    };
    let mut header = Header { core, entries_root, tag: u.arbitrary()?, signature };
    let digest = header.digest(&scene.deployment);
    header.signature = leader.sign(&scene.deployment, Label::Header, &digest, &mut rng(9));
    Ok(header)
}

fn kem_term(u: &mut Unstructured<'_>) -> arbitrary::Result<Option<KemTerm>> {
    let set = *u.choose(&[None, None, Some(KemSet::MlKem768), Some(KemSet::MlKem1024)])?;
    let g = number(u)?;
    Ok(set.and_then(|set| KemTerm::new(set, g).ok()))
}

fn number(u: &mut Unstructured<'_>) -> arbitrary::Result<u64> {
    Ok(*u.choose(&[0, 1, 2, 3, 4, 7, 1 << 16, 1 << 20, (1 << 48) - 1, u64::MAX - 1, u64::MAX])?)
}

fn time(u: &mut Unstructured<'_>) -> arbitrary::Result<u64> {
    Ok(*u.choose(&[0, START, START + 1, START + 600, START + 1_000_000_000, i64::MAX as u64, u64::MAX])?)
}

fn slot(u: &mut Unstructured<'_>) -> arbitrary::Result<u32> {
    Ok(*u.choose(&[0, 0, 1, 2, 3, 4, 1_048_575])?)
}

fn slots(u: &mut Unstructured<'_>) -> arbitrary::Result<SlotSet> {
    let some: [Option<u32>; 2] =
        [u.arbitrary::<bool>()?.then_some(slot(u)?), u.arbitrary::<bool>()?.then_some(slot(u)?)];
    Ok(some.into_iter().flatten().collect())
}
