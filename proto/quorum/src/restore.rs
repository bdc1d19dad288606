//! Restores a member from its records, and reports its status to its operator.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use quiver_ainq::{KgcId, QuorumStatement};
use quiver_machine::RestoreError;
use quiver_quorum::QuorumSuite;

use super::ceremony::KeyCeremonies;
use super::context::MemberBase;
use super::interface::{MemberView, QuorumView};
use super::recovery::{RecoveryHelper, ShareRecovery};
use super::signing::SigningRounds;
use super::statements::StatementBook;
use super::status::StatusExchange;
use super::{QuorumConfig, QuorumKeys, QuorumNode, QuorumRecord};

impl<S: QuorumSuite> QuorumNode<S> {
    /// A member that remembers these records: of each kind the newest, in any order.
    ///
    /// # Errors
    /// If a record does not hold: a member that went on without it might contradict itself, or forget who was
    /// revoked.
    pub fn new(
        config: QuorumConfig,
        records: impl IntoIterator<Item = QuorumRecord>,
    ) -> Result<Self, RestoreError> {
        let mut node = Self {
            base: MemberBase::new(config),
            foreign: BTreeSet::new(),
            ceremonies: KeyCeremonies::new(),
            recovery: ShareRecovery::new(),
            helper: RecoveryHelper::new(),
            statements: StatementBook::new(),
            statuses: StatusExchange::new(),
            signing: SigningRounds::new(),
            started: false,
        };
        if node.base.config.membership.parameters().check(node.base.config.id).is_err() {
            return Err(RestoreError::Foreign);
        }
        let mut records: Vec<QuorumRecord> = records.into_iter().collect();
        // §5.4: signed statements are verified with the keys.
        records.sort_by_key(|record| !matches!(record, QuorumRecord::Keys(_)));
        records.iter().try_for_each(|record| node.restore(record))?;
        node.reconcile();
        Ok(node)
    }

    fn restore(&mut self, record: &QuorumRecord) -> Result<(), RestoreError> {
        match record {
            QuorumRecord::Keys(snapshot) => {
                let keys = QuorumKeys::<S>::decode(snapshot.as_bytes()).map_err(|_| RestoreError::Damaged)?;
                let ours = keys.parameters() == self.base.config.membership.parameters();
                // §5.1: shares of another membership are none of ours.
                if !ours || keys.kgc() != self.base.config.id {
                    return Err(RestoreError::Foreign);
                }
                self.base.put_in_force(keys);
            }
            QuorumRecord::Ceremony(snapshot) => {
                self.ceremonies = KeyCeremonies::decode(snapshot.as_bytes())?;
            }
            QuorumRecord::Statements(bytes) => self.statements.restore(bytes)?,
            QuorumRecord::RevocationList { list, .. } => {
                let deployment = self.base.deployment.as_ref().ok_or(RestoreError::Foreign)?;
                self.statements.offer(deployment, list)?;
            }
            QuorumRecord::QuorumStatement(bytes) => {
                let (Some(deployment), Some(keys)) = (&self.base.deployment, &self.base.keys) else {
                    return Err(RestoreError::Foreign);
                };
                let verified = QuorumStatement::<S>::decode(bytes)?.verify(deployment)?;
                // §5.4: one about shares that are no longer in force is left over from a crash.
                if verified.shares() == keys.ainq().public().encode() {
                    self.statements.quorum = Some(bytes.clone());
                }
            }
        }
        Ok(())
    }

    /// A crash may have come between two records.
    fn reconcile(&mut self) {
        let in_force = self.base.keys.as_ref().map(|keys| keys.digest());
        self.ceremonies.reconcile(in_force);
        let statements = &mut self.statements;
        statements.pending.forget(statements.list.list());
    }

    /// Status of this member.
    #[must_use]
    pub fn view(&self) -> QuorumView {
        let others = self.base.config.membership.parameters().others(self.base.config.id);
        QuorumView {
            version: self.base.keys.as_ref().map(|keys| keys.version()),
            list: self.statements.list.number(),
            statement: self.statements.quorum.is_some(),
            ceremony: self.ceremonies.view(&self.base.config),
            recovering: self.recovery.is_under_way(),
            members: others.map(|id| self.see(id)).collect(),
            proposed: self.statements.pending.drones.len(),
        }
    }

    /// Number of members, this one included, that want this drone revoked as far as is known here, and whether
    /// the newest list names it.
    #[must_use]
    pub fn revocation(&self, serial: &[u8; 16]) -> (usize, bool) {
        let statements = &self.statements;
        let own = usize::from(statements.pending.drones.contains_key(serial));
        (own + self.statuses.wanting(serial), statements.list.list().names_serial(serial))
    }

    fn see(&self, id: KgcId) -> MemberView {
        let status = self.statuses.of(id);
        let keys = status.and_then(|status| status.keys);
        MemberView {
            id,
            connected: self.base.links.contains_key(&id),
            version: status.filter(|_| keys.is_some()).map(|status| status.version),
            agrees: keys.is_some() && keys == self.base.keys.as_ref().map(|keys| keys.digest()),
            foreign: self.foreign.contains(&id),
        }
    }
}
