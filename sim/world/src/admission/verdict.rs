//! Whether a checkpoint did what it is for.

use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::Suite;
use quiver_role::admission::AdmissionError;

use super::checkpoint::{Checkpoint, CheckpointError};
use super::links::linked;
use super::parties::{Shown, Visit};
use crate::Invariant;

/// What is wrong, by drone; nothing, if all is well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Got in although the policy keeps them out.
    pub intruders: BTreeSet<u32>,
    /// Did not get in although the policy lets them in.
    pub shut_out: BTreeSet<u32>,
    /// Were kept out for another reason than that they do not satisfy the policy: the first one's.
    pub troubled: Option<(u32, String)>,
    /// Are in, and the leader does not have the same secret under the same name.
    pub strangers: BTreeSet<u32>,
    /// Two runs can be seen to be theirs.
    pub linked: BTreeSet<u32>,
    /// Whom the leader let in and nobody was: how many.
    pub phantoms: usize,
    /// How many things were looked at.
    pub checks: u64,
}

impl Verdict {
    /// Looks at what drones and leader say of all runs.
    ///
    /// # Errors
    /// [`CheckpointError`], never.
    pub fn of<S: Suite>(
        checkpoint: &Checkpoint<S>,
        visits: &[Visit],
        admitted: &[Shown],
    ) -> Result<Self, CheckpointError> {
        let mut known: BTreeMap<[u8; 16], &Shown> =
            admitted.iter().map(|shown| (shown.pseudonym, shown)).collect();
        let mut verdict = Self::default();
        for visit in visits {
            verdict.checks += 1;
            let (drone, wanted) = (visit.drone, checkpoint.lets_in(visit.drone)?);
            match &visit.outcome {
                Ok(shown) => {
                    verdict.checks += 1;
                    let same = known.remove(&shown.pseudonym).is_some_and(|it| it.secret == shown.secret);
                    if !same {
                        verdict.strangers.insert(drone);
                    }
                    if !wanted {
                        verdict.intruders.insert(drone);
                    }
                }
                Err(AdmissionError::Exchange(quiver_abke::Error::Unsatisfied)) if !wanted => {}
                Err(why) => {
                    if wanted {
                        verdict.shut_out.insert(drone);
                    }
                    verdict.troubled.get_or_insert_with(|| (drone, why.to_string()));
                }
            }
        }
        // Of a pseudonym that two have there is one too few.
        verdict.phantoms = known.len();
        verdict.checks += 1 + visits.len() as u64;
        verdict.linked = linked(visits);
        Ok(verdict)
    }

    /// How many runs ended well for the drone.
    pub fn let_in(visits: &[Visit]) -> usize {
        visits.iter().filter(|visit| visit.outcome.is_ok()).count()
    }

    /// What is wrong: which invariant, with whom, and how.
    pub fn complaints(&self) -> Vec<(Invariant, BTreeSet<u32>, String)> {
        let troubled = self.troubled.iter().map(|(drone, why)| {
            (BTreeSet::from([*drone]), format!("was turned away for no good reason: {why}"))
        });
        let phantoms = (self.phantoms > 0)
            .then(|| (BTreeSet::new(), format!("the leader let in {} that nobody was", self.phantoms)));
        let told = [
            (&self.intruders, "got in although the policy keeps them out"),
            (&self.shut_out, "did not get in although the policy lets them in"),
            (&self.strangers, "are in under a secret that the leader does not have"),
        ];
        let told = told.map(|(drones, what)| (drones.clone(), what.to_string())).into_iter();
        let told = told.filter(|(drones, _)| !drones.is_empty()).chain(troubled).chain(phantoms);
        let mut complaints: Vec<_> =
            told.map(|(drones, what)| (Invariant::Admission, drones, what)).collect();
        if !self.linked.is_empty() {
            let what = "made two runs that the leader can see to be one drone's".to_string();
            complaints.push((Invariant::Unlinkability, self.linked.clone(), what));
        }
        complaints
    }
}
