//! Drones without a name before the leader's gate: exactly those get in whom the policy lets in, and nobody can be told again.

use std::time::Duration;

use quiver_ainq::Suite;

use super::phases::Stage;
use super::{Percentiles, Row};
use crate::admission::{Checkpoint, CheckpointError, Passage, Place, RUNS, Verdict, pass};
use crate::fleet::EPOCH_START;

impl<S: Suite> Stage<'_, S> {
    /// Lets every drone make all its runs, over connections of their own beside those of the group.
    pub(super) fn pass_unnamed(&mut self) -> bool {
        let Some(policy) = self.plan.admission.clone() else { return true };
        match self.checkpoint(&policy) {
            Ok(held) => held,
            Err(error) => {
                self.violations.push(format!("admission: {error}"));
                false
            }
        }
    }

    fn checkpoint(&mut self, policy: &str) -> Result<bool, CheckpointError> {
        let (mark, seed, drones) = (self.mark(), self.plan.seed, self.plan.drones);
        let fleet = self.world.fleet();
        let place = Place {
            deployment: fleet.deployment(),
            treasury: fleet.treasury(),
            group: fleet.group(),
            seed,
            now: EPOCH_START,
        };
        let checkpoint = Checkpoint::<S>::found(&place, policy)?;
        let of = drones.saturating_mul(RUNS);
        let passage = pass(&checkpoint, drones, seed, &mut |done| self.show("admission", done, of))?;
        let verdict = Verdict::of(&checkpoint, &passage.visits, &passage.admitted)?;
        self.rows.push(row(drones, &passage, mark.cpu.elapsed()));
        self.checks += verdict.checks;
        if passage.blamed > 0 {
            self.violations
                .push(format!("admission: {} messages of honest nodes were blamed", passage.blamed));
        }
        let complaints = verdict.complaints();
        let held = complaints.is_empty() && passage.blamed == 0;
        for (invariant, drones, what) in complaints {
            let numbers: Vec<String> = drones.iter().take(20).map(ToString::to_string).collect();
            self.violations.push(format!(
                "{invariant}: {} drones ({}) {what}",
                drones.len(),
                numbers.join(", ")
            ));
        }
        Ok(held)
    }
}

fn row(drones: u32, passage: &Passage, cpu: Duration) -> Row {
    let mut times: Vec<Duration> = passage.times.iter().map(|(_, taken)| *taken).collect();
    times.sort_unstable();
    let at = |share: usize| times.get((times.len() * share).div_ceil(100).max(1) - 1).copied();
    let to_all = || Some(Percentiles { p50: at(50)?, p99: at(99)?, max: at(100)? });
    Row {
        operation: format!(
            "admission ({} of {} runs let in)",
            Verdict::let_in(&passage.visits),
            passage.visits.len()
        ),
        drones,
        leader_cpu: passage.gate_cpu,
        to_all: to_all(),
        epochs: 0,
        messages: passage.messages,
        bytes: passage.bytes,
        radio: None,
        cpu,
    }
}
