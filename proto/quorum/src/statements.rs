//! Keeps a member's statements: the newest list, the quorum's own statement, proposals and approvals.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use quiver_ainq::{Deployment, RevocationStatement, Revoked, Suite, UnixTime};
use quiver_crypto::canonical::{Malformed, Reader, Writer};
use quiver_machine::{RestoreError, Revocations};
use quiver_message::quorum::{MAX_BODY_LEN, MAX_PROPOSED};

use super::interface::approval;

const KIND: &[u8] = b"quiver/1 quorum statements";
/// Statements that an operator may have approved at one time.
pub(super) const MAX_APPROVALS: usize = 256;
/// Statements that may wait to be signed at one time.
pub(super) const MAX_PROPOSALS: usize = 16;
/// Proofs of equivocation that are kept to be passed on.
pub(super) const MAX_PROOFS: usize = 8;

/// Drones to be revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PendingProposals {
    pub(super) drones: BTreeMap<[u8; 16], Revoked>,
}

/// Statements of a quorum, as one member holds them, and what its operator wants of the next ones.
#[derive(Debug)]
pub(super) struct StatementBook<S: Suite> {
    /// Drones that this member's operator, or proof, wants revoked and the list does not name yet.
    pub(super) pending: PendingProposals,
    /// Digests of statements to sign.
    pub(super) approvals: BTreeSet<[u8; 32]>,
    /// The list with the highest number that this member has signed its share of. No list of this number or a
    /// lower one, and none that names less, gets another.
    pub(super) bound: Option<RevocationStatement>,
    /// The newest list that the quorum has signed.
    pub(super) list: Revocations<S>,
    /// The quorum's statement about the shares in force, encoded.
    pub(super) quorum: Option<Vec<u8>>,
    /// Bodies of statements that were proposed here. Not stored: proposed again after a restart.
    pub(super) proposals: Vec<Vec<u8>>,
    /// Proofs against leaders of these serials, encoded.
    pub(super) proofs: BTreeMap<[u8; 16], Vec<u8>>,
}

impl PendingProposals {
    /// Adds the drones that the list does not name and whose identities have not ended. Returns whether that
    /// was anything; nothing is added if it would be too many.
    pub(super) fn add(
        &mut self,
        list: &RevocationStatement,
        drones: &[Revoked],
        now: UnixTime,
    ) -> Result<bool, TooMany> {
        let mut more = self.clone();
        for drone in drones {
            // §5.4: at least as long as either knows.
            let proposal = more.drones.entry(drone.serial).or_insert(*drone);
            *proposal = proposal.and(drone);
        }
        more.forget(list);
        more.drones.retain(|_, drone| !drone.has_ended(now));
        if more.drones.len() > MAX_PROPOSED {
            return Err(TooMany);
        }
        let changed = more != *self;
        *self = more;
        Ok(changed)
    }

    /// Forgets whom the list names.
    pub(super) fn forget(&mut self, list: &RevocationStatement) {
        self.drones.retain(|serial, _| !list.names_serial(serial));
    }
}

/// More drones than may be proposed at one time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl<S: Suite> StatementBook<S> {
    pub(super) fn new() -> Self {
        Self {
            pending: PendingProposals::default(),
            approvals: BTreeSet::new(),
            bound: None,
            list: Revocations::new(),
            quorum: None,
            proposals: Vec::new(),
            proofs: BTreeMap::new(),
        }
    }

    /// The durable part, besides the list and the quorum's statement.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.lp(KIND).count(self.pending.drones.len());
        for drone in self.pending.drones.values() {
            writer.fixed(&drone.serial).u64(drone.not_after).u8(drone.leader.into());
        }
        writer.count(self.approvals.len());
        for approval in &self.approvals {
            writer.fixed(approval);
        }
        writer.lp(&self.bound.as_ref().map(RevocationStatement::encode).unwrap_or_default());
        writer.finish()
    }

    /// Decodes the output of [`encode`](Self::encode).
    pub(super) fn restore(&mut self, bytes: &[u8]) -> Result<(), RestoreError> {
        let mut reader = Reader::new(bytes);
        self.read(&mut reader).map_err(|_| RestoreError::Damaged)
    }

    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        if reader.lp(KIND.len())? != KIND {
            return Err(Malformed("not a quorum's statements"));
        }
        for _ in 0..reader.count(MAX_PROPOSED, 16 + 8 + 1)? {
            let (serial, not_after, leader) = (reader.array()?, reader.u64()?, reader.u8()? != 0);
            self.pending.drones.insert(serial, Revoked { serial, not_after, leader });
        }
        for _ in 0..reader.count(MAX_APPROVALS, 32)? {
            self.approvals.insert(reader.array()?);
        }
        let bound = reader.lp(MAX_BODY_LEN)?;
        if !bound.is_empty() {
            let bound = RevocationStatement::decode(bound).map_err(|_| Malformed("not a revocation list"))?;
            self.bound = Some(bound);
        }
        reader.end()
    }

    /// Takes a list from anywhere. Returns its number if it was news.
    pub(super) fn offer(
        &mut self,
        deployment: &Deployment<S>,
        list: &[u8],
    ) -> Result<Option<u64>, quiver_ainq::Error> {
        // §5.4: of any source: the quorum's signature makes it genuine.
        let news = self.list.offer(deployment, list)?;
        if news {
            let list = self.list.list();
            self.pending.forget(list);
            self.proofs.retain(|serial, _| !list.names_serial(serial));
        }
        Ok(news.then(|| self.list.number()))
    }

    /// Drops statements that go with the shares in force before: others take their place.
    pub(super) fn shares_replaced(&mut self) {
        // §5.4: of other shares, as are statements that need no operator's approval.
        self.quorum = None;
        let approvals = &self.approvals;
        self.proposals.retain(|body| approvals.contains(&approval(body)));
    }
}
