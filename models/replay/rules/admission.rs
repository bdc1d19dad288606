//! Admission without a name (docs/admission.md, A4, A5). The exchange within is no term of the models: its
//! steps are bytes here, of which number and order are known.

use std::collections::{BTreeMap, BTreeSet};

use quiver_admission::{PolicyStatement, SignedPolicy};
use quiver_message::{AdmissionChallenge, AdmissionLeave, AdmissionProof, AdmissionStep};

use super::{Rules, S, Values, Verdict, bad, lp, remembered, require};
use crate::recording::{GROUP, Node};

/// Steps of a run so far: of the leader before the drone's commitment, behind it, and behind its opening.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Progress {
    offered: usize,
    committed: bool,
    seeded: bool,
    opened: bool,
    confirmed: bool,
}

#[derive(Clone, Default)]
pub(super) struct Admissions {
    runs: BTreeMap<(Node, Vec<u8>), Progress>,
    /// First steps: each has a fresh key.
    shown: BTreeSet<Vec<u8>>,
}

impl Rules<'_> {
    /// §A4.2: what a leader of the group demands, under its signature, is a policy that the KGC signed for
    /// this group.
    pub(super) fn admission_challenge(
        &mut self,
        from: Node,
        to: Node,
        challenge: &AdmissionChallenge<S>,
    ) -> Verdict {
        require(self.enrolled.contains(from), "it has no key yet")?;
        self.key(from, &challenge.leader)?;
        let values: Values<'_> = &[("group", &lp(GROUP.as_bytes())), ("policy", &lp(&challenge.policy))];
        let (label, statement) = self.table.statement("admission", values);
        self.verify(&challenge.signature, &challenge.leader, label, &statement)?;
        let policy = SignedPolicy::<S>::decode(&challenge.policy).map_err(bad)?;
        let deployment = &self.run.deployment;
        let all = [b"policy", deployment.master().as_bytes(), &challenge.policy].concat();
        let verified = remembered(all, || policy.verify(deployment).is_ok());
        require(verified, "a policy that the KGC did not sign")?;
        // lp(body) ‖ signature.
        let (length, rest) = challenge.policy.split_first_chunk().ok_or("no policy")?;
        let body = rest.get(..u32::from_be_bytes(*length) as usize).ok_or("no body")?;
        let statement = PolicyStatement::decode(body).map_err(bad)?;
        require(statement.group.as_bytes() == GROUP.as_bytes(), "a policy for another group")?;
        self.cookie(to, &challenge.nonce, &challenge.cookie)
    }

    /// §A4.1: a cookie is good for one run, which begins with a key that no other has.
    pub(super) fn admission_proof(&mut self, from: Node, proof: &AdmissionProof) -> Verdict {
        let cookie = self.cookies.remove(&proof.cookie[..]);
        require(cookie == Some((from, proof.nonce.to_vec())), "not its cookie, or one that was taken")?;
        require(self.admissions.shown.insert(proof.step.clone()), "a key that was shown before")?;
        self.admissions.runs.insert((from, proof.nonce.to_vec()), Progress::default());
        Ok(())
    }

    /// §A4.1: offer and tables, commitment, seeds, opening, confirmation.
    pub(super) fn admission_step(&mut self, from: Node, to: Node, step: &AdmissionStep) -> Verdict {
        let leads = self.run.group.leads(from);
        let drone = if leads { to } else { from };
        let run = self.admissions.runs.get_mut(&(drone, step.nonce.to_vec())).ok_or("no such run")?;
        match (leads, *run) {
            (true, Progress { committed: false, .. }) => run.offered += 1,
            (true, Progress { seeded: false, .. }) => run.seeded = true,
            (true, Progress { opened: true, confirmed: false, .. }) => {
                run.confirmed = true;
                // The welcome that is due answers the run.
                self.asked.insert((drone, step.nonce.to_vec()), Vec::new());
                self.waiting.insert((drone, step.nonce.to_vec()));
            }
            (false, Progress { committed: false, offered: 1.., .. }) if step.step.is_empty() => {}
            (false, Progress { committed: false, offered: 1.., .. }) => run.committed = true,
            (false, Progress { seeded: true, opened: false, .. }) if !step.step.is_empty() => {
                run.opened = true;
            }
            _ => return Err("a step out of turn".to_string()),
        }
        Ok(())
    }

    /// §A5.1: an anonymous member leaves with a tag, as it has no key to sign with.
    pub(super) fn admission_leave(&mut self, from: Node, leave: &AdmissionLeave) -> Verdict {
        require(leave.group.as_bytes() == GROUP.as_bytes(), "another group")?;
        let held = self.held.get(from).is_some_and(|(_, held)| *held == leave.held);
        require(held, "not the epoch that it holds")?;
        require(self.newest_pair(from)?.slot == leave.slot, "another slot")?;
        self.tag(from, leave.slot, &leave.tag, "leave", &[("held", &leave.held)])?;
        self.going.insert(from);
        Ok(())
    }
}
