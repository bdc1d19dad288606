//! Drones without a name before a leader's gate: exactly those get in whom the policy lets in, and nobody can be told again.

use std::time::Instant;

use futures::stream::{self, StreamExt, TryStreamExt};
use quiver_ainq::Suite;
use quiver_role::admission::Ledger;
use quiver_world::admission::{AT_ONCE, Checkpoint, RUNS, Verdict, Visit};

use super::{Run, Step};
use crate::live::admission::{Gatehouse, refused};
use crate::live::host::Disk;
use crate::measure;
use crate::report::Operation;
use crate::{Result, SimError};

/// A run, and when it ended.
type Ended = (Visit, Instant);

impl<S: Suite> Run<'_, S> {
    /// Lets every drone make all its runs, and looks at what came of them.
    pub(super) async fn pass_unnamed(&mut self) -> Step {
        let Some(checkpoint) = self.world.checkpoint.clone() else { return Ok(()) };
        let (plan, setting) = (&self.world.plan, &self.world.setting);
        let gate = Gatehouse::open(plan, setting, &checkpoint, self.world.listen()?).await?;
        let ledgers: Vec<Disk<Ledger>> = (0..self.world.plan.drones).map(|_| Disk::default()).collect();
        let mut visits = Vec::new();
        for run in 0..RUNS {
            let (begun, cpu, bytes) = (measure::now(), gate.meter.total(), gate.sent());
            let ended = self.round(&checkpoint, &gate, &ledgers, run).await?;
            let let_in = ended.iter().filter(|(visit, _)| visit.outcome.is_ok()).count();
            let latency = |(visit, at): &Ended| (visit.drone, at.saturating_duration_since(begun));
            self.operations.push(Operation {
                name: format!("admission, run {}: {let_in} of {} let in", run + 1, ended.len()),
                drones: ended.len(),
                leader_cpu: Some(gate.meter.total().saturating_sub(cpu)),
                leader_bytes: Some(gate.sent().saturating_sub(bytes)),
                epochs: 0,
                took: begun.elapsed(),
                latencies: ended.iter().map(latency).collect(),
            });
            visits.extend(ended.into_iter().map(|(visit, _)| visit));
        }
        self.judge(&checkpoint, &gate, &visits)
    }

    /// One run of every drone, so many at a time.
    async fn round(
        &self,
        checkpoint: &Checkpoint<S>,
        gate: &Gatehouse<S>,
        ledgers: &[Disk<Ledger>],
        run: u32,
    ) -> Result<Vec<Ended>> {
        let world = &*self.world;
        let step = world.progress.step("admission", ledgers.len());
        let visits = (0..).zip(ledgers).map(|(drone, ledger)| async move {
            let visitor = checkpoint.visitor(drone, ledger.with(|known| known.clone())).map_err(refused)?;
            let visit =
                gate.visit(&world.plan, &world.setting, visitor, (drone, run), ledger.clone()).await?;
            Ok::<Ended, SimError>((visit, measure::now()))
        });
        let mut ended = Vec::new();
        let mut visits = stream::iter(visits).buffer_unordered(AT_ONCE);
        while let Some(visit) = visits.try_next().await? {
            ended.push(visit);
            step.done(ended.len());
        }
        Ok(ended)
    }

    fn judge(&mut self, checkpoint: &Checkpoint<S>, gate: &Gatehouse<S>, visits: &[Visit]) -> Step {
        let verdict = Verdict::of(checkpoint, visits, &gate.admitted()).map_err(refused)?;
        self.checker.after("admission");
        self.checker.checks += verdict.checks;
        for (invariant, drones, what) in verdict.complaints() {
            if drones.is_empty() {
                self.checker.that(invariant, false, || what);
            } else {
                self.checker.none(invariant, &what, drones.into_iter().map(|drone| (drone, true)));
            }
        }
        Ok(())
    }
}
