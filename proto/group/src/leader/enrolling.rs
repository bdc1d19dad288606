//! How a leader gets its key.

use core::time::Duration;

use quiver_ainq::{DroneKeypair, Role, Suite};
use quiver_message::Reason;
use rand_core::CryptoRngCore;

use super::memory::enrolled;
use super::{Leader, LeaderEvent};
use quiver_enrolment::{Enrollee, Step, Steps, done};
use quiver_machine::Backoff;
use quiver_machine::{Now, Peer};

impl<S: Suite> Leader<S> {
    pub(super) fn enrolment_to_make(&mut self, rng: &mut dyn CryptoRngCore) -> Option<Enrollee<S>> {
        let backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(30));
        if let Some(pending) = self.memory.pending.take() {
            return Some(Enrollee::resume(pending, &self.config.kgcs, backoff));
        }
        let token = self.config.token.as_ref()?;
        let leads =
            matches!(&token.token.statement.role, Role::Leader { group, .. } if *group == self.config.group);
        let started = Enrollee::start(&self.config.deployment, token, &self.config.kgcs, backoff, rng);
        match started {
            Ok(enrollee) if leads => Some(enrollee),
            _ => {
                self.out.event(LeaderEvent::EnrolmentRefused(Reason::NotAuthorised));
                None
            }
        }
    }

    pub(super) fn enrolment(&mut self, now: Now, steps: Steps<S>, rng: &mut dyn CryptoRngCore) {
        for step in steps {
            match step {
                Step::Send(kgc, message) => self.out.send(&self.config.deployment, kgc, &message),
                Step::Wrong(from, error) => self.blame(from, error),
                Step::Refused(reason) => self.out.event(LeaderEvent::EnrolmentRefused(reason)),
                Step::Trouble(trouble) => self.out.event(LeaderEvent::EnrolmentTrouble(trouble)),
                Step::Enrolled(keypair) => self.enrolled(now, keypair, rng),
            }
        }
    }

    fn enrolled(&mut self, now: Now, keypair: DroneKeypair<S>, rng: &mut dyn CryptoRngCore) {
        let name = keypair.public().identity.name.clone();
        self.persist(&[enrolled(&keypair)]);
        self.memory.keypair = Some(keypair);
        self.enrollee = None;
        self.kgcs.clone().into_iter().for_each(|kgc| self.prove_enrolment(kgc, rng));
        self.out.event(LeaderEvent::Enrolled { name });
        self.begin(now, rng);
    }

    /// §3.9: a KGC makes no more shares for the token of a drone that proved to hold a key. Said at every
    /// contact, for nothing answers it.
    pub(super) fn prove_enrolment(&mut self, kgc: Peer, rng: &mut dyn CryptoRngCore) {
        if let (Some(keypair), true) = (&self.memory.keypair, self.config.kgcs.is_quorum()) {
            let message = done(&self.config.deployment, keypair, rng);
            self.out.send(&self.config.deployment, kgc, &message);
        }
    }
}
