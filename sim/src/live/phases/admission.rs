//! A group that demands a policy: exactly those are members whom it lets in, without a name, and nobody can be told again.

use std::collections::BTreeSet;

use quiver_ainq::Suite;
use quiver_world::Invariant;
use quiver_world::admission::{AT_ONCE, EVERYBODY, linked};
use quiver_world::run::Phase;

use super::{Run, Step};
use crate::Result;
use crate::live::board::Goal;
use crate::live::swarm::Request;
use crate::live::unnamed::refused;

impl<S: Suite> Run<'_, S> {
    /// Whether drones join without a name.
    pub(super) fn is_unnamed(&self) -> bool {
        self.world.setting.admission.is_some()
    }

    /// Whom of these the policy lets in, and whom it does not.
    fn sorted(&self, drones: &[u32]) -> Result<(BTreeSet<u32>, BTreeSet<u32>)> {
        let (mut inside, mut outside) = (BTreeSet::new(), BTreeSet::new());
        for drone in drones {
            let Some(admission) = &self.world.setting.admission else { break };
            let checkpoint = &admission.checkpoint;
            let let_in = checkpoint.lets_in(&checkpoint.fields(*drone)).map_err(refused)?;
            if let_in {
                inside.insert(*drone)
            } else {
                outside.insert(*drone)
            };
        }
        Ok((inside, outside))
    }

    /// Drones want in without a name: in waves as large as the gate has room for.
    pub(super) async fn admit(&mut self, phase: Phase, drones: &[u32]) -> Step {
        let (inside, outside) = self.sorted(drones)?;
        let (mark, after) = (self.mark(), self.world.board().newest());
        self.members.extend(&inside);
        for wave in drones.chunks(AT_ONCE) {
            self.world.board().undecided(wave);
            self.world.board().expect(Goal::Decided, wave);
            self.world.swarm.ask(&self.world.setting, wave, Request::Join).await?;
            let reached = self.reached("let in or turned away", wave.len()).await;
            self.checker.after(phase.name());
            self.all_there(Invariant::Admission, "was neither let in nor turned away", &reached)?;
        }
        let checker = &mut self.checker;
        self.world.board().look(|logs| {
            let let_in = |drone: &u32| logs.drones[*drone as usize].let_in.is_some_and(|(let_in, _)| let_in);
            let intruders = outside.iter().map(|drone| (*drone, let_in(drone)));
            checker.none(Invariant::Admission, "got in although the policy keeps it out", intruders);
            let shut_out = inside.iter().map(|drone| (*drone, !let_in(drone)));
            checker.none(Invariant::Admission, "did not get in although the policy lets it in", shut_out);
        });
        let exports = self.exports(outside).await?;
        let checker = &mut self.checker;
        self.world.board().look(|logs| checker.outsiders(logs, &exports));
        if inside.is_empty() {
            return Ok(());
        }
        self.world.board().expect(Goal::Synced { after }, &self.member_list());
        let detail = format!("{} of {} let in", inside.len(), drones.len());
        self.synced(phase, detail, &mark, &BTreeSet::new()).await
    }

    /// All members leave, and all drones that ever wanted in come again: with what they showed before, as somebody else.
    pub(super) async fn come_again(&mut self) -> Step {
        if !self.is_unnamed() {
            return Ok(());
        }
        let members = self.member_list();
        self.members.clear();
        self.checker.after(Phase::LeaveAll.name());
        self.world.board().expect(Goal::Left, &members);
        self.world.swarm.ask(&self.world.setting, &members, Request::Leave).await?;
        let reached = self.reached(Phase::LeaveAll.name(), members.len()).await;
        self.all_there(Invariant::Convergence, "does not know that it left", &reached)?;
        self.check_keys(&members.iter().copied().collect());
        let exports = self.exports(members.iter().copied()).await?;
        let checker = &mut self.checker;
        self.world.board().look(|logs| checker.outsiders(logs, &exports));
        // Who left before stays out.
        let gone = |drone: &u32| {
            let left = self.world.board().look(|logs| logs.drones[*drone as usize].left.is_some());
            left && !members.contains(drone)
        };
        let drones: Vec<u32> = (0..self.world.outsider()).filter(|drone| !gone(drone)).collect();
        self.admit(Phase::ComeAgain, &drones).await
    }

    /// After all of it: whether anything that leaders received or sent tells that two lives were one drone's.
    pub(super) fn look_for_links(&mut self) {
        let Some(admission) = self.world.setting.admission.clone() else { return };
        let lives = admission.watch.lives();
        let drones: BTreeSet<u32> =
            lives.iter().map(|life| life.drone).filter(|drone| *drone != EVERYBODY).collect();
        let linked = linked(&lives);
        let checker = &mut self.checker;
        checker.after("all");
        checker.none(
            Invariant::Unlinkability,
            "has two lives that the leader can see to be one drone's",
            drones.iter().map(|drone| (*drone, linked.contains_key(drone))),
        );
        for (drone, stretch) in &linked {
            tracing::warn!(
                drone,
                stretch = hex::encode(stretch),
                "said or heard in two lives, and nobody else's"
            );
        }
        self.world.board().look(|logs| {
            let nobodys = logs.leader.epochs.iter().map(|epoch| epoch.unnamed.len()).sum::<usize>();
            checker.that(Invariant::Admission, nobodys == 0, || {
                format!("the leader's epochs have {nobodys} members without a name that nobody was")
            });
        });
    }
}
