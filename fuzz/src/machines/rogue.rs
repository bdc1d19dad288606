//! A leader gone bad: it has a key from the KGC, so whatever it says about an epoch is validly signed.

use arbitrary::Unstructured;
use quiver_ainq::{Element, Entry, Epoch, Header, HeaderCore, Kind, Label, SlotSet, StrategyKind};
use quiver_message::{CatchUpReply, Message, Rekey, Welcome};

use super::S;
use crate::scene::{GROUP, START, Staged, name, rng};

/// A message with a validly signed header, whatever it says.
pub(crate) fn message(u: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let header = header(u)?;
    let entry =
        Entry { slot: slot(u)?, q: u.arbitrary::<bool>()?.then_some(number(u)?), wrap: u.arbitrary()? };
    let message = match u.int_in_range(0..=3_u8)? {
        0 => Message::Welcome(Welcome { nonce: u.arbitrary()?, header, entry }),
        1 => {
            let (number, tag) = (u.arbitrary()?, u.arbitrary()?);
            Message::CatchUpReply(CatchUpReply { number, header, entry: Some(entry), tag })
        }
        _ => Message::<S>::Rekey(Rekey { header, entries: vec![entry] }),
    };
    Ok(message.encode(&S::scene().deployment))
}

fn header(u: &mut Unstructured<'_>) -> arbitrary::Result<Header<S>> {
    let scene = S::scene();
    let leader = &scene.honest().leader.keypair;
    let point: Element<S> = *scene.deployment.master();
    let kind = if u.arbitrary()? { Kind::Open } else { Kind::Rekey };
    let core = HeaderCore {
        group: name(u.choose(&[GROUP, GROUP, GROUP, "beta"])?),
        leader: leader.public().clone(),
        epoch: Epoch { term: number(u)? << 16, counter: number(u)? },
        prev: u.arbitrary()?,
        nonce: u.arbitrary()?,
        issued_at: time(u)?,
        valid_until: time(u)?,
        strategy: StrategyKind::Flat,
        kind,
        point: u.arbitrary::<bool>()?.then_some(point),
        height: u.int_in_range(0..=1)?,
        removed: slots(u)?,
        added: slots(u)?,
        absent: slots(u)?,
        roster_hash: u.arbitrary()?,
        revocation_number: number(u)?,
    };
    let signature = leader.sign(&scene.deployment, Label::Header, &[], &mut rng(8));
    let mut header = Header { core, entries_root: [0; 32], tag: u.arbitrary()?, signature };
    let digest = header.digest(&scene.deployment);
    header.signature = leader.sign(&scene.deployment, Label::Header, &digest, &mut rng(9));
    Ok(header)
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
