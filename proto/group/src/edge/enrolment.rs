//! How an edge gets its key.

use alloc::boxed::Box;

use quiver_ainq::{DroneKeypair, Suite};
use quiver_message::{Message, Reason};
use rand_core::CryptoRngCore;

use super::{Edge, EdgeEvent};
#[cfg(feature = "threshold")]
use quiver_enrolment::done;
use quiver_enrolment::{Enrollee, Step, Steps};
use quiver_machine::{Now, Peer};

impl<S: Suite> Edge<S> {
    pub(super) fn start_enrolment(&mut self, rng: &mut dyn CryptoRngCore) {
        let Some(token) = &self.token else { return };
        let backoff = self.backoff();
        match Enrollee::start(&self.config.deployment, token, &self.config.kgcs, backoff, rng) {
            Ok(enrollee) => self.enrollee = Some(Box::new(enrollee)),
            Err(_) => self.out.event(EdgeEvent::Refused(Reason::TokenForeign)),
        }
    }

    #[inline(never)]
    pub(super) fn enrolling(
        &mut self,
        now: Now,
        from: Peer,
        message: &Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        if let Some(enrollee) = &mut self.enrollee {
            let steps = enrollee.hear(&self.config.deployment, now, from, message, rng);
            self.enrolment(now, steps, rng);
        }
    }

    pub(super) fn enrolment(&mut self, now: Now, steps: Steps<S>, rng: &mut dyn CryptoRngCore) {
        for step in steps {
            match step {
                Step::Send(kgc, message) => self.out.send(&self.config.deployment, kgc, &message),
                Step::Wrong(from, error) => self.blame(from, error),
                Step::Refused(reason) => self.out.event(EdgeEvent::Refused(reason)),
                Step::Trouble(trouble) => self.out.event(EdgeEvent::EnrolmentTrouble(trouble)),
                Step::Enrolled(keypair) => self.enrolled(now, keypair, rng),
            }
        }
    }

    fn enrolled(&mut self, now: Now, keypair: DroneKeypair<S>, rng: &mut dyn CryptoRngCore) {
        let name = keypair.public().identity.name.clone();
        self.keypair = Some(keypair);
        #[cfg(feature = "threshold")]
        let quorum = self.enrollee.as_ref().map(|enrollee| enrollee.quorum()).unwrap_or_default();
        self.enrollee = None;
        self.token = None;
        self.persist();
        #[cfg(feature = "threshold")]
        quorum.into_iter().for_each(|kgc| self.prove_enrolment(kgc, rng));
        self.out.event(EdgeEvent::Enrolled { name });
        self.approach(now, rng);
    }

    /// §3.9: a KGC makes no more shares for the token of a drone that proved to hold a key. Said at every
    /// contact, for nothing answers it.
    #[cfg(feature = "threshold")]
    pub(super) fn prove_enrolment(&mut self, kgc: Peer, rng: &mut dyn CryptoRngCore) {
        if let (Some(keypair), true) = (&self.keypair, self.config.kgcs.is_quorum()) {
            let message = done(&self.config.deployment, keypair, rng);
            self.out.send(&self.config.deployment, kgc, &message);
        }
    }
}
