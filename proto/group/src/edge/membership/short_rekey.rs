//! Takes re-keys that have of their header only what the epoch held does not tell (§7.6).

use quiver_ainq::{Epoch, EpochPart, Error, Header, HeaderCore, Suite};
use quiver_machine::{Offence, Peer, Via};
use quiver_message::ShortRekey;

use super::rekey::HeaderMeaning;
use super::{GroupMember, MembershipEnd};
use crate::edge::EdgeContext;

/// A whole header and what it means, or why it does not hold.
type CompletedHeader<S> = Result<(HeaderMeaning<S>, Header<S>), Offence>;

impl<S: Suite> GroupMember<S> {
    /// §7.6: Takes a new epoch, if the header of the epoch held completes it. Otherwise it is kept for a while, and a
    /// leader is asked: nothing shows who sent it.
    #[inline(never)]
    pub(super) fn short_rekey(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        (from, via): (Peer, Via),
        short: &ShortRekey<S>,
    ) -> Option<MembershipEnd> {
        let member = self.member.as_mut()?;
        let (held, header) = (member.membership.epoch(), &short.header);
        if header.epoch < held {
            // §7.3, 2: not newer.
            cx.blame(from, Error::Stale);
        } else if header.epoch == held {
            self.short_of_held(cx, (from, via), short);
        } else if header.builds_on(held, member.membership.digest()) {
            return self.complete_short(cx, from, short);
        } else {
            member.early.keep_short(short);
            self.ask_by_hearsay(cx);
        }
        None
    }

    /// A short re-key of the epoch held: the same once more, or another one.
    fn short_of_held(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        (from, via): (Peer, Via),
        short: &ShortRekey<S>,
    ) -> Option<()> {
        let member = self.member.as_ref()?;
        if member.header.ends_with(&short.header.tag, &short.header.signature) {
            // §13.6: no news. An epoch published again is not to make all members acknowledge it again.
            if via != Via::Group && cx.leaders.contains(from) {
                member.acknowledge(cx, from);
            }
            return None;
        }
        // §7.6: the epoch before is gone; as far as can be told, it was as the one held.
        let core = member.header.core(cx.deployment, self.expected())?;
        let (epoch, prev) = (Epoch { counter: core.epoch.counter.checked_sub(1)?, ..core.epoch }, core.prev);
        let before = HeaderCore { epoch, ..core };
        let second = short.header.clone().rebuild(&before, &prev, &short.wraps);
        // §7.5: another header for the epoch held: proof against its signer, as it is signed.
        if let Ok(mut second) = second
            && let Some(Err(Offence::Equivocation)) = self.check(cx, &mut second, None)
        {
            self.contradicted(cx, from, &second);
        } else {
            self.ask_by_hearsay(cx);
        }
        None
    }

    /// A short re-key that says that it builds on the epoch held.
    fn complete_short(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        short: &ShortRekey<S>,
    ) -> Option<MembershipEnd> {
        match self.rebuilt(cx, short)? {
            Ok((step, header)) => self.take(cx, from, step, &header),
            Err(offence) => {
                cx.blame(from, offence);
                // §7.6: whatever it was, a leader answers with the whole header.
                self.ask_by_hearsay(cx);
                None
            }
        }
    }

    /// Short re-keys that came before the epoch that they say they build on, which is held now. One that does not
    /// hold is dropped: a leader was asked when it came.
    pub(super) fn apply_early_short(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
    ) -> Option<MembershipEnd> {
        loop {
            let member = self.member.as_mut()?;
            let short = member.early.next_short(&member.membership)?;
            if let Some(Ok((step, header))) = self.rebuilt(cx, &short) {
                return self.take(cx, from, step, &header);
            }
        }
    }

    /// The whole header of a short re-key that builds on the epoch held, checked as a whole one, and what it means.
    #[inline(never)]
    fn rebuilt(&self, cx: &EdgeContext<'_, S>, short: &ShortRekey<S>) -> Option<CompletedHeader<S>> {
        let member = self.member.as_ref()?;
        let before = member.header.core(cx.deployment, self.expected())?;
        let (header, digest) = (short.header.clone(), member.membership.digest());
        let mut header = match header.rebuild(&before, digest, &short.wraps) {
            Ok(header) => header,
            Err(error) => return Some(Err(error.into())),
        };
        let part = EpochPart::Delta(short.wraps.clone());
        // §7.3: in the order of a whole header, its digest and signature included.
        Some(self.check(cx, &mut header, Some(&part))?.map(|step| (step, header)))
    }

    /// §13.6: Asks a leader which epoch is current, but not as often as others can make it ask.
    fn ask_by_hearsay(&mut self, cx: &mut EdgeContext<'_, S>) {
        if let Some(member) = &mut self.member
            && member.catch_up.heeds_hearsay(cx.now, cx.timing.retry)
        {
            member.request_catch_up(cx);
        }
    }
}
