//! Carrying out actions.

use std::time::Duration;

use quiver_ainq::{Name, Revoked, Suite};
use quiver_role::release::ReleaseCommand;
use quiver_role::{EdgeCommand, KgcCommand, LeaderCommand};

use super::{Errand, World};
use crate::centre::CentreCommand;
use crate::conditional;
use crate::fleet::edge_name;
use crate::network::nanos;
use crate::queue::Due;
use crate::station::Stimulus;
use crate::{Action, Node, Partition, Turn};

/// The channel on which the world talks.
const CHANNEL: &str = "talk";

/// The number that a message of [`Action::Talk`] says, if the data is one.
pub fn spoken(data: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(data.try_into().ok()?))
}

impl<S: Suite> World<S> {
    /// Plans an action for a time since the world began; for now if that has passed.
    pub fn schedule(&mut self, at: Duration, action: Action) {
        let after = at.saturating_sub(self.time());
        self.plan(after, Errand::Act(Box::new(action)));
    }

    pub(super) fn plan(&mut self, after: Duration, errand: Errand) {
        let number = u32::try_from(self.errands.len()).unwrap_or(u32::MAX);
        self.errands.push(Some(errand));
        self.queue.push(self.now + nanos(after), number, Due::Errand);
    }

    /// Carries out an errand. Gives the steps taken at once, and the action if it was one.
    pub(super) fn run_errand(&mut self, number: u32) -> (Vec<Turn>, Option<Action>) {
        let errand = self.errands.get_mut(number as usize).and_then(Option::take);
        let mut turns = Vec::new();
        match errand {
            None => {}
            Some(Errand::Connect(dialler, hub)) => self.connect(dialler, hub),
            Some(Errand::Sever(a, b)) => self.sever(a, b),
            Some(Errand::Return(node)) => turns.extend(self.start(node)),
            Some(Errand::ComeBack(edge)) => turns.extend(self.come_back(edge)),
            Some(Errand::SlotKeys(ordinal)) => turns.extend(self.tell_slot_keys(ordinal)),
            Some(Errand::Period) => turns.extend(self.begin_period()),
            Some(Errand::Cross(epoch)) => self.cross(epoch),
            Some(Errand::Act(action)) => {
                self.act(&action, &mut turns);
                return (turns, Some(*action));
            }
        }
        (turns, None)
    }

    fn act(&mut self, action: &Action, turns: &mut Vec<Turn>) {
        match action {
            Action::Start(node) => turns.extend(self.start(*node)),
            Action::Stop(node) => self.stop(*node),
            Action::Crash { node, after, down_for } => self.doom(*node, *after, *down_for),
            Action::Links(faults) => self.network.set_faults(*faults),
            Action::LinksOf(node, faults) => {
                self.network.set_faults_of(*node, *faults);
                if faults.is_some_and(|faults| faults.loss >= 1.0) {
                    self.plan_severing(&Partition::island([*node]));
                }
            }
            Action::Part(partition) => {
                self.network.part(partition.clone());
                self.plan_severing(partition);
            }
            Action::Radio(setup) => {
                if let Some(air) = &mut self.air {
                    air.retune((**setup).clone());
                }
            }
            Action::Heal => self.network.heal(),
            Action::Skew { node, seconds } => self.set_skew(*node, *seconds),
            Action::Disk(node, state) => self.set_disk(*node, *state),
            Action::Calm => self.calm(turns),
            // What was captured is for whoever looks on to use.
            Action::Capture(_) | Action::Seize(_) => {}
            Action::Lie { kgc, lies } => self.set_lying(*kgc, *lies),
            Action::Replay { pick, to } => self.replay(*pick, *to),
            Action::Usurp { edge, rounds } => self.usurp(*edge, *rounds),
            Action::Forge { by, what, pick } => self.forge(*by, *what, *pick),
            Action::DoubleTerm { rounds, split, crossing } => self.double_term(*rounds, *split, *crossing),
            command => self.command(command, turns),
        }
    }

    /// What operators and applications ask of nodes.
    fn command(&mut self, action: &Action, turns: &mut Vec<Turn>) {
        match action {
            Action::Join(edge) => self.want_in(*edge, turns),
            Action::Leave(edge) => turns.extend(self.want_out(*edge)),
            Action::Certify { edge, fields } => self.certify(*edge, Some(*fields), turns),
            Action::Decertify(edge) => self.certify(*edge, None, turns),
            Action::Evict(edge) => {
                turns.extend(self.tell_leaders(&LeaderCommand::Evict(edge_name(*edge)), "evict"));
            }
            Action::Rekey => turns.extend(self.tell_leaders(&LeaderCommand::Rekey, "re-key")),
            Action::Revoke(edge) => {
                let serial = self.fleet.token(Node::Edge(*edge)).token.statement.id;
                let command = KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]);
                turns.extend(self.tell_kgcs(&CentreCommand::Kgc(command), "revoke"));
                // Who is revoked gets no credentials either.
                self.certify(*edge, None, turns);
            }
            Action::Talk { node, number, signed } => {
                let channel = Name::new(CHANNEL).expect("a plain name");
                let (data, signed) = (number.to_be_bytes().to_vec(), *signed);
                turns.extend(match node {
                    Node::Kgc(_) => None,
                    Node::Edge(edge) => {
                        self.tell_edge(*edge, EdgeCommand::Send { channel, data, signed }, "talk")
                    }
                    Node::Leader(ordinal) => {
                        self.tell_leader(*ordinal, LeaderCommand::Send { channel, data }, "talk")
                    }
                });
            }
            Action::Order(number) => turns.extend(self.order(*number)),
            Action::Approve(kgc) => {
                // The operator's word is durable, whether or not the KGC is on.
                self.approved.insert(*kgc);
                let command = CentreCommand::Release(ReleaseCommand::Approval(self.fleet.approval()));
                turns.extend(self.kgc_turn(*kgc, Stimulus::Command(command), "approve phase 2"));
            }
            _ => {}
        }
    }

    /// The leader that leads hands on an order that waits for the second phase.
    fn order(&mut self, number: u32) -> Option<Turn> {
        let leading = (0..self.row.leaders)
            .filter_map(|ordinal| Some((self.leader(ordinal)?.status().epoch?, ordinal)))
            .max();
        let data = self.fleet.order(number)?;
        let channel = Name::new(conditional::CHANNEL).expect("a plain name");
        self.tell_leader(leading?.1, LeaderCommand::Send { channel, data }, "hand on an order")
    }

    fn tell_kgcs(&mut self, command: &CentreCommand, word: &'static str) -> Vec<Turn> {
        let kgcs = 1..=self.row.kgcs;
        kgcs.filter_map(|id| self.kgc_turn(id, Stimulus::Command(command.clone()), word)).collect()
    }

    fn tell_leaders(&mut self, command: &LeaderCommand, word: &'static str) -> Vec<Turn> {
        (0..self.row.leaders).filter_map(|ordinal| self.tell_leader(ordinal, command.clone(), word)).collect()
    }

    pub(super) fn tell_leader(
        &mut self,
        ordinal: u16,
        command: LeaderCommand,
        word: &'static str,
    ) -> Option<Turn> {
        self.leader_turn(ordinal, Stimulus::Command(command), word)
    }

    pub(super) fn tell_edge(&mut self, edge: u32, command: EdgeCommand, word: &'static str) -> Option<Turn> {
        self.edge_turn(edge, Stimulus::Command(command), word)
    }
}
