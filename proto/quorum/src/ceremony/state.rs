//! State of one ceremony at a member, from its part in it to new shares.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use quiver_ainq::KgcId;
use quiver_message::quorum::{Both, Ceremony, CeremonyKind, Echo, Rounds, SecretBytes};
use quiver_quorum::QuorumSuite;

use crate::keys::QuorumKeys;
use crate::rounds::CeremonyRound;

/// A member's contribution to a ceremony, by which it is known in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CeremonyPart {
    pub(crate) kind: CeremonyKind,
    /// Rises with every nonce of this member.
    pub(crate) attempt: u64,
    pub(crate) nonce: [u8; 32],
    /// The shares to be refreshed.
    pub(crate) keys: Option<[u8; 32]>,
}

/// A ceremony whose members all know of one another.
#[derive(Debug)]
pub(crate) struct CeremonySession<S: QuorumSuite> {
    pub(crate) id: [u8; 32],
    /// Attempt under which each member takes part.
    pub(crate) attempts: BTreeMap<KgcId, u64>,
    pub(crate) round: CeremonyRound<S>,
    /// A digest of each member's commitments, once all are there.
    pub(crate) digests: Vec<[u8; 32]>,
    /// All messages of each member so far. After a crash they are asked for again.
    pub(crate) received: BTreeMap<KgcId, Rounds>,
}

/// New shares that this member has made, and that some others may not have.
#[derive(Debug)]
pub(crate) struct CandidateShares<S: QuorumSuite> {
    pub(crate) part: CeremonyPart,
    pub(crate) session: [u8; 32],
    pub(crate) keys: Box<QuorumKeys<S>>,
    pub(crate) digest: [u8; 32],
    /// Digests of the commitments, for members without them.
    pub(crate) echo: Echo,
    /// The shares for members that may not have theirs yet. Erased once all have confirmed.
    pub(crate) shares: BTreeMap<KgcId, Both<SecretBytes>>,
    /// Members whose new shares are durable. After a crash they are asked again.
    pub(crate) confirmed: BTreeSet<KgcId>,
    /// Members that left before they had new shares; or this one, whose operator has cancelled.
    pub(crate) gone: BTreeSet<KgcId>,
}

/// The last ceremony that ended with success: the answer to members that do not know it.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    pub(crate) part: CeremonyPart,
    pub(crate) session: [u8; 32],
    pub(crate) digest: [u8; 32],
}

impl CeremonyPart {
    /// The message about it.
    pub(crate) fn message(&self, asks: bool, rounds: Option<Rounds>) -> Ceremony {
        let Self { kind, attempt, nonce, keys } = *self;
        Ceremony { kind, attempt, nonce, keys, asks, rounds }
    }
}

impl<S: QuorumSuite> CeremonySession<S> {
    /// Messages of this member to another.
    pub(crate) fn rounds_for(&self, to: KgcId) -> Rounds {
        let digests = self.digests.clone();
        Rounds {
            session: self.id,
            // §5.2: a message repeats everything so far and retracts nothing.
            commitments: Some(self.round.commitments()),
            echo: self.round.echo().map(|hashes| Echo { hashes, digests }),
            share: self.round.share_for(to),
            confirmation: None,
        }
    }

    /// Stores a member's messages. Returns an error if they contradict its earlier ones.
    pub(crate) fn receive(&mut self, from: KgcId, received: Rounds) -> Result<(), &'static str> {
        let Some(before) = self.received.get_mut(&from) else {
            self.received.insert(from, received);
            return Ok(());
        };
        // §5.2: a second version of anything is a contradiction.
        keep(&mut before.commitments, received.commitments, "two different commitments")?;
        keep(&mut before.echo, received.echo, "two different echoes")?;
        keep(&mut before.share, received.share, "two different shares")?;
        keep(&mut before.confirmation, received.confirmation, "two different confirmations")
    }
}

fn keep<T: PartialEq>(
    known: &mut Option<T>,
    received: Option<T>,
    fault: &'static str,
) -> Result<(), &'static str> {
    match (&known, received) {
        (_, None) => Ok(()),
        (None, Some(received)) => {
            *known = Some(received);
            Ok(())
        }
        (Some(known), Some(received)) => {
            if *known == received {
                Ok(())
            } else {
                Err(fault)
            }
        }
    }
}

impl<S: QuorumSuite> CandidateShares<S> {
    pub(crate) fn rounds_for(&self, to: KgcId) -> Rounds {
        Rounds {
            session: self.session,
            commitments: None,
            echo: Some(self.echo.clone()),
            share: self.shares.get(&to).cloned(),
            confirmation: Some(self.digest),
        }
    }
}

impl Settled {
    pub(crate) fn rounds(&self) -> Rounds {
        Rounds {
            session: self.session,
            commitments: None,
            echo: None,
            share: None,
            confirmation: Some(self.digest),
        }
    }
}
