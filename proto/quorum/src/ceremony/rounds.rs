//! Rounds of a session, and their results.

use alloc::collections::{BTreeMap, BTreeSet};

use quiver_ainq::KgcId;
use quiver_message::quorum::{Echo, Rounds};
use quiver_quorum::{Error, QuorumParameters, QuorumSuite};

use super::state::{CandidateShares, CeremonySession};
use super::{KeyCeremonies, digests};
use crate::context::MemberContext;
use crate::rounds::{Advanced, CeremonyRound};
use crate::{AbortCause, QuorumEvent};

impl<S: QuorumSuite> KeyCeremonies<S> {
    /// Handles a member's messages of the current session. Returns the new shares if all members have
    /// confirmed theirs.
    pub(super) fn handle_rounds(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        from: KgcId,
        rounds: Rounds,
        asks: bool,
    ) -> Option<CandidateShares<S>> {
        let session = self.session.as_mut()?;
        // §5.2: what contradicts an earlier message ends the session and names its sender.
        if let Err(fault) = session.receive(from, rounds) {
            self.leave(cx, AbortCause::Fault { culprit: from, fault });
            return None;
        }
        let confirmed = self.advance(cx);
        // After advancing, so that the answer has what was just made.
        if asks {
            self.send(cx, from, false);
        }
        confirmed
    }

    /// Advances through the rounds as far as the received messages allow.
    fn advance(&mut self, cx: &mut MemberContext<'_, S>) -> Option<CandidateShares<S>> {
        let own = cx.config.id;
        let parameters = cx.config.membership.parameters();
        while let Some(mut session) = self.session.take() {
            let taken = take_received(&mut session, own, parameters);
            if taken.is_err() || !session.round.missing().is_empty() {
                self.session = Some(session);
                if let Err(cause) = taken {
                    self.leave(cx, cause);
                }
                return None;
            }
            // §5.2, echoing: one digest per member's commitments, to show whose differ.
            if session.digests.is_empty() {
                session.digests = digests(&session, own, parameters);
            }
            let shares = parameters.others(own).filter_map(|to| Some((to, session.round.share_for(to)?)));
            let (shares, hashes) = (shares.collect::<BTreeMap<_, _>>(), session.round.echo());
            let CeremonySession { id, attempts, round, digests, received } = session;
            match (round.advance(), hashes) {
                (Ok(Advanced::Next(round)), _) => {
                    // §5.2: the state on which the round depends is durable before any of its messages
                    // leaves.
                    self.session = Some(CeremonySession { id, attempts, round, digests, received });
                    self.retry.restart(cx.now.monotonic, cx.rng);
                    self.persist(cx);
                    self.send_to_all(cx, false);
                }
                (Ok(Advanced::Finished(keys)), Some(hashes)) => {
                    let part = self.part.take()?;
                    // §5.2: the session has given its shares: its nonces are used for no other.
                    self.is_over(own, &attempts);
                    let (digest, echo) = (keys.digest(), Echo { hashes, digests });
                    let (confirmed, gone) = (BTreeSet::new(), BTreeSet::new());
                    let candidate =
                        CandidateShares { part, session: id, keys, digest, echo, shares, confirmed, gone };
                    return self.made(cx, candidate, &received);
                }
                _ => {
                    let cause = AbortCause::Internal("the rounds cannot go on");
                    self.leave_session(cx, id, &attempts, cause);
                    return None;
                }
            }
        }
        None
    }

    /// Stores new shares: durable before any member is notified. Returns them if all members have confirmed
    /// theirs by then.
    fn made(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        candidate: CandidateShares<S>,
        received: &BTreeMap<KgcId, Rounds>,
    ) -> Option<CandidateShares<S>> {
        let (kind, version) = (candidate.part.kind, candidate.keys.version());
        // §5.2, confirming: new shares are durable before any member is notified.
        self.candidate = Some(candidate);
        self.retry.restart(cx.now.monotonic, cx.rng);
        self.persist(cx);
        cx.event(QuorumEvent::SharesMade { kind, version });
        self.send_to_all(cx, false);
        received
            .iter()
            .find_map(|(from, rounds)| self.handle_confirmation(cx, *from, rounds.confirmation, false))
    }
}

/// Hands the round the received messages that belong to it.
fn take_received<S: QuorumSuite>(
    session: &mut CeremonySession<S>,
    own: KgcId,
    parameters: QuorumParameters,
) -> Result<(), AbortCause> {
    let CeremonySession { round, digests, received, .. } = session;
    for from in round.missing() {
        let Some(rounds) = received.get(&from) else { continue };
        let taken = match round {
            // §5.2, committing: commitments to polynomials, and the proof that f(0) is known.
            CeremonyRound::Dealing(..) => {
                rounds.commitments.as_ref().map(|commitments| round.take_commitments(from, commitments))
            }
            // §5.2, echoing: all the same, or the end.
            CeremonyRound::Echoing(..) => match &rounds.echo {
                Some(echo) => {
                    compare(own, from, digests, &echo.digests, parameters)?;
                    Some(round.take_echo(from, &echo.hashes))
                }
                None => None,
            },
            // §5.2, sharing: f(i) of either key, checked against the commitments.
            CeremonyRound::Sharing(..) => rounds.share.as_ref().map(|share| round.take_share(from, share)),
        };
        if let Some(Err(error)) = taken {
            return Err(cause(from, &error));
        }
    }
    Ok(())
}

/// Compares the commitments that a member has got of all with those of this one; the error names one whose
/// commitments differ.
fn compare(
    own: KgcId,
    from: KgcId,
    ours: &[[u8; 32]],
    theirs: &[[u8; 32]],
    parameters: QuorumParameters,
) -> Result<(), AbortCause> {
    if ours.len() != theirs.len() {
        return Err(AbortCause::Fault { culprit: from, fault: "an echo of another quorum" });
    }
    let different = parameters.kgcs().zip(ours.iter().zip(theirs)).find(|(_, (ours, theirs))| ours != theirs);
    match different {
        None => Ok(()),
        // §5.2: this member's commitments, and that one's received here, are known: it lies.
        Some((sender, _)) if sender == own || sender == from => {
            Err(AbortCause::Fault { culprit: from, fault: "an echo of what was not said" })
        }
        // §5.2: two members disagree about a third: one of them lies, and the event names both.
        Some((sender, _)) => Err(AbortCause::Transcript { sender, reporter: from }),
    }
}

fn cause(from: KgcId, error: &Error) -> AbortCause {
    let fault = match error {
        Error::InvalidMessage { .. } => "what is no message of this round",
        Error::InvalidProof { .. } => "no proof that it knows its secret",
        Error::InvalidShare { .. } => "a share that is not the one it committed to",
        Error::Contradiction { .. } => "two different things",
        Error::EchoMismatch { .. } => "an echo of other commitments than it says",
        _ => "what cannot be used",
    };
    AbortCause::Fault { culprit: error.culprits().first().copied().unwrap_or(from), fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_says_what_was_wrong_and_whose_it_was() {
        let fault_of = |error: Error| match cause(2, &error) {
            AbortCause::Fault { culprit, fault } => (culprit, fault),
            other => panic!("{other:?}"),
        };
        let culprit = 3;
        assert_eq!(fault_of(Error::InvalidMessage { culprit }), (3, "what is no message of this round"));
        assert_eq!(fault_of(Error::InvalidProof { culprit }), (3, "no proof that it knows its secret"));
        assert_eq!(
            fault_of(Error::InvalidShare { culprit }),
            (3, "a share that is not the one it committed to")
        );
        assert_eq!(fault_of(Error::Contradiction { culprit }), (3, "two different things"));
        // Of these nobody but the sender is known.
        assert_eq!(
            fault_of(Error::EchoMismatch { with: 4 }),
            (2, "an echo of other commitments than it says")
        );
        assert_eq!(fault_of(Error::Frost), (2, "what cannot be used"));
    }
}
