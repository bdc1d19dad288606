//! Plays the membership events through MLS.

use quiver_mls::provider::Provider;
use quiver_mls::{Candidate, CommitChanges, CommitMessages, Leaf, MlsMember, warm_group};

use super::event::{MembershipEvent, Sample};
use super::system::{ComparedSystem, CpuBudget};
use crate::measure::clocked;
use crate::{LabError, Result};

/// A group under its only committer. Of its other members one is here in full; the others are keys in the
/// tree.
pub(super) struct MlsGroup {
    drones: u32,
    leader: MlsMember,
    member: MlsMember,
    /// First members of the group; empty if it was formed otherwise.
    founders: Vec<Candidate>,
    /// Members that join later.
    newcomers: Vec<Candidate>,
}

impl MlsGroup {
    /// Forms a group by one commit that adds all members.
    pub(super) fn one_committer(drones: u32) -> Result<Self> {
        let founders = candidates("drone", drones)?;
        let (mut leader, sent) = formed(&founders)?;
        let invitation = sent.invitation.ok_or(quiver_mls::Error::NoInvitation)?;
        let middle = founders.get(founders.len() / 2).ok_or(LabError::WrongKey("nobody is there"))?;
        let mut member = middle.join(&invitation)?;
        // The committer's own path.
        let update = leader.commit(CommitChanges::default())?;
        member.follow(&update.commit)?;
        Self::saved(drones, leader, member, founders)
    }

    /// Forms a group in which a member of each pair has committed; `None` if the budget ran out.
    pub(super) fn warm(drones: u32, budget: &CpuBudget) -> Result<Option<Self>> {
        let names: Vec<String> = (0..drones).map(|number| name("drone", number)).collect();
        let warmed = warm_group("leader", &names, |_| !budget.is_spent())?;
        warmed.map(|(leader, member)| Self::saved(drones, leader, member, Vec::new())).transpose()
    }

    fn saved(
        drones: u32,
        mut leader: MlsMember,
        mut member: MlsMember,
        founders: Vec<Candidate>,
    ) -> Result<Self> {
        check(&leader, &member, "forming")?;
        leader.save()?;
        member.save()?;
        let newcomers = candidates("newcomer", MembershipEvent::JoinTenth.movers(drones))?;
        Ok(Self { drones, leader, member, founders, newcomers })
    }

    fn form(&self) -> Result<Sample> {
        let (formed, leader) = clocked(|| formed(&self.founders));
        let (founder, sent) = formed?;
        let mut sample = Sample { leader, ..Sample::default() };
        // Not the member: its join's secrets are gone since it was saved.
        let newcomer = self.founders.last().ok_or(LabError::WrongKey("nobody is there"))?;
        self.enter(&founder, newcomer, &sent, &mut sample)?;
        Ok(sample)
    }

    fn change(&self, change: CommitChanges<'_>) -> Result<Sample> {
        let (mut leader, mut member) = (self.leader.restored()?, self.member.restored()?);
        let (sent, leader_time) = clocked(|| leader.commit(change));
        let sent = sent?;
        let (followed, member_time) = clocked(|| member.follow(&sent.commit));
        if !followed? {
            return Err(LabError::WrongKey("the member was removed"));
        }
        check(&leader, &member, "commit")?;
        let mut sample = Sample { leader: leader_time, member: Some(member_time), ..Sample::default() };
        sample.broadcast = sent.commit.len();
        if let Some(newcomer) = self.newcomers.first().filter(|_| !change.added.is_empty()) {
            self.enter(&leader, newcomer, &sent, &mut sample)?;
        }
        Ok(sample)
    }

    /// One newcomer joins. The invitation is the same for all.
    fn enter(
        &self,
        leader: &MlsMember,
        newcomer: &Candidate,
        sent: &CommitMessages,
        sample: &mut Sample,
    ) -> Result<()> {
        let invitation = sent.invitation.as_ref().ok_or(quiver_mls::Error::NoInvitation)?;
        let (joined, newcomer_time) = clocked(|| newcomer.join(invitation));
        check(leader, &joined?, "join")?;
        sample.newcomer = Some(newcomer_time);
        if leader.members() == self.member.members() + 1 {
            sample.unicast = invitation.len();
        } else {
            sample.broadcast += invitation.len();
        }
        Ok(())
    }

    /// Chooses `count` leaves, evenly spread, but neither the leader's nor the member's.
    fn leavers(&self, count: u32) -> Vec<Leaf> {
        let apart = self.drones / count;
        let leaf = |number: u32| 1 + number * apart + apart / 2;
        (0..count).map(leaf).map(|leaf| if leaf == self.member.leaf() { leaf + 1 } else { leaf }).collect()
    }

    fn joiners(&self, count: u32) -> Vec<&[u8]> {
        self.newcomers.iter().take(count as usize).map(Candidate::key_package).collect()
    }
}

impl ComparedSystem for MlsGroup {
    fn play(&mut self, event: MembershipEvent) -> Result<Sample> {
        let movers = event.movers(self.drones);
        match event {
            MembershipEvent::Form => self.form(),
            MembershipEvent::Expiry => self.change(CommitChanges::default()),
            MembershipEvent::LeaveOne | MembershipEvent::LeaveTenth => {
                self.change(CommitChanges { removed: &self.leavers(movers), ..CommitChanges::default() })
            }
            MembershipEvent::JoinOne | MembershipEvent::JoinTenth => {
                self.change(CommitChanges { added: &self.joiners(movers), ..CommitChanges::default() })
            }
        }
    }
}

/// A leader that has added all members, and its messages.
fn formed(founders: &[Candidate]) -> quiver_mls::Result<(MlsMember, CommitMessages)> {
    let mut leader = MlsMember::found("leader", &Provider::default())?;
    let added: Vec<&[u8]> = founders.iter().map(Candidate::key_package).collect();
    let sent = leader.commit(CommitChanges { added: &added, ..CommitChanges::default() })?;
    Ok((leader, sent))
}

fn candidates(what: &str, count: u32) -> Result<Vec<Candidate>> {
    let provider = Provider::default();
    Ok((0..count).map(|number| Candidate::new(&name(what, number), &provider)).collect::<Result<_, _>>()?)
}

fn name(what: &str, number: u32) -> String {
    format!("{what}-{number:07}")
}

fn check(leader: &MlsMember, other: &MlsMember, what: &'static str) -> Result<()> {
    if leader.secret()? == other.secret()? { Ok(()) } else { Err(LabError::WrongKey(what)) }
}
