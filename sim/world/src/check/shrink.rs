//! Making a failing plan short: delta debugging (Zeller and Hildebrandt, *Simplifying and Isolating
//! Failure-Inducing Input*, 2002) over its actions.

use super::ActionPlan;
use crate::WorldError;

/// Greatest number of runs.
const LIVES: usize = 400;

/// The shortest plan found that still fails: no single action of it can be left out, unless it took too many
/// lives.
///
/// # Errors
/// An error of `fails`.
pub fn shrink(
    plan: &ActionPlan,
    mut fails: impl FnMut(&ActionPlan) -> Result<bool, WorldError>,
) -> Result<ActionPlan, WorldError> {
    let (mut plan, mut chunk, mut lives) = (plan.clone(), plan.actions.len().div_ceil(2), 0);
    while chunk > 0 {
        let mut start = 0;
        let mut shrunk = false;
        while start < plan.actions.len() && lives < LIVES {
            let mut shorter = plan.clone();
            let end = (start + chunk).min(shorter.actions.len());
            shorter.actions.drain(start..end);
            lives += 1;
            if fails(&shorter)? {
                plan = shorter;
                shrunk = true;
            } else {
                start = end;
            }
        }
        if lives >= LIVES {
            break;
        }
        // Single actions are tried until none can go: one may have needed another that is gone by now.
        if chunk > 1 || !shrunk {
            chunk /= 2;
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::StartState;
    use super::*;
    use crate::Action;

    fn plan(edges: impl IntoIterator<Item = u32>) -> ActionPlan {
        let actions = edges.into_iter().map(|edge| (Duration::ZERO, Action::Join(edge))).collect();
        ActionPlan { seed: 0, beginning: StartState::Enrolled, actions, calm: Duration::ZERO }
    }

    #[test]
    fn what_does_not_matter_is_left_out() {
        let needs = |needed: &'static [u32]| {
            move |plan: &ActionPlan| {
                Ok(needed.iter().all(|edge| plan.actions.iter().any(|(_, a)| *a == Action::Join(*edge))))
            }
        };
        for needed in [&[][..], &[0], &[31], &[3, 17], &[0, 1, 30, 31]] {
            let shrunk = shrink(&plan(0..32), needs(needed)).unwrap();
            assert_eq!(shrunk, plan(needed.iter().copied()));
        }
    }
}
