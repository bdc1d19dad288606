//! Sealing envelopes to others, and opening theirs.
//!
//! Envelopes need no membership: whoever has a key opens what it fits, and what is sealed travels with the group's gossip.

use core::time::Duration;

use quiver_ainq::Suite;

use super::Edge;
use quiver_machine::Now;

#[cfg(not(feature = "abe"))]
impl<S: Suite> Edge<S> {
    pub(super) const fn tick_envelopes(&self, _: Now) {}

    pub(super) const fn envelopes_deadline(&self) -> Option<Duration> {
        None
    }
}

#[cfg(feature = "abe")]
mod with_abe {
    use alloc::boxed::Box;

    use quiver_abe::envelope::{SessionId, Signer};
    use quiver_ainq::{RevocationList, UnixTime};
    use quiver_message::{Envelope, Message, OpeningRequest};
    use rand_core::CryptoRngCore;

    use super::super::EdgeEvent;
    use super::*;
    use quiver_envelope::{DroneSigner, DroneVerifier, EnvelopeCommand, EnvelopeEvent, EnvelopeLimits};
    use quiver_envelope::{Envelopes, Heard, Order};
    use quiver_machine::{Offence, Peer};

    impl<S: Suite> Edge<S> {
        /// Gives envelopes less room than a service has. To be said before there are keys.
        #[must_use]
        pub fn with_envelope_limits(mut self, limits: EnvelopeLimits) -> Self {
            self.envelope_limits = limits;
            self
        }

        /// What signs envelopes as this drone, once it is enrolled.
        pub fn envelope_signer(&self) -> Option<DroneSigner<'_, S>> {
            let keypair = self.enrolment.keypair()?;
            Some(DroneSigner::new(&self.config.deployment, keypair))
        }

        /// What verifies others' envelopes, with the newest revocation list this drone has.
        pub fn envelope_verifier(&self, now: UnixTime) -> DroneVerifier<'_, S> {
            DroneVerifier::new(&self.config.deployment, self.revocations.list(), now)
        }

        /// The newest revocation list this drone has.
        pub fn revocations(&self) -> &RevocationList {
            self.revocations.list()
        }

        pub(crate) fn envelope_command(
            &mut self,
            now: Now,
            command: EnvelopeCommand,
            rng: &mut dyn CryptoRngCore,
        ) {
            match command {
                EnvelopeCommand::Keys(keys) => match &mut self.envelopes {
                    Some(envelopes) => envelopes.exchange(keys),
                    none => *none = Some(Box::new(Envelopes::new(keys, self.envelope_limits))),
                },
                EnvelopeCommand::Seal { authority, target, data, signed } => {
                    let sent = match self.wanted.clone() {
                        Some(group) => {
                            let order =
                                Order { authority: &authority, target: &target, group: &group, data: &data };
                            self.seal(now, &order, signed, rng)
                        }
                        None => Err("in no group"),
                    };
                    if let Err(reason) = sent {
                        self.out.event(EdgeEvent::SendFailed(reason));
                    }
                }
            }
        }

        fn seal(
            &mut self,
            now: Now,
            order: &Order<'_>,
            signed: bool,
            rng: &mut dyn CryptoRngCore,
        ) -> Result<(), &'static str> {
            let envelopes = self.envelopes.as_mut().ok_or("no attribute authority is known")?;
            let keypair = self.enrolment.keypair().ok_or("not enrolled")?;
            let signer = DroneSigner::new(&self.config.deployment, keypair);
            let signer = signed.then_some(&signer as &dyn Signer);
            let sealed = envelopes.seal(now, order, signer, rng)?;
            self.out.send_to_group::<S>(&self.config.deployment, &Message::Envelope(sealed.message));
            let (session, number) = (sealed.session.0, sealed.number);
            self.out.event(EdgeEvent::Envelope(EnvelopeEvent::Sent { session, number }));
            Ok(())
        }

        pub(crate) fn envelope(&mut self, now: Now, from: Peer, envelope: &Envelope) {
            let Some(envelopes) = &mut self.envelopes else {
                return;
            };
            let verifier = DroneVerifier::new(&self.config.deployment, self.revocations.list(), now.unix);
            for heard in envelopes.receive(now, self.wanted.as_ref(), &envelope.sealed, &verifier) {
                match heard {
                    Heard::Opened(event) => self.out.event(EdgeEvent::Envelope(event)),
                    Heard::NotSatisfied(SessionId(session)) => {
                        self.out.event(EdgeEvent::Envelope(EnvelopeEvent::NotSatisfied { session }));
                    }
                    Heard::TooLarge(SessionId(session)) => {
                        self.out.event(EdgeEvent::Envelope(EnvelopeEvent::TooLarge { session }));
                    }
                    Heard::Ask(SessionId(session)) => {
                        let request = Message::OpeningRequest(OpeningRequest { session });
                        self.out.send_to_group::<S>(&self.config.deployment, &request);
                    }
                    Heard::Wrong(error) => self.blame(from, Offence::Envelope(error)),
                }
            }
        }

        pub(crate) fn opening_request(&mut self, now: Now, request: &OpeningRequest) {
            let repeated = self.envelopes.as_mut().and_then(|own| own.requested(now, &request.session));
            if let Some(envelope) = repeated {
                self.out.send_to_group::<S>(&self.config.deployment, &Message::Envelope(envelope));
            }
        }

        pub(crate) fn tick_envelopes(&mut self, now: Now) {
            if let Some(envelopes) = &mut self.envelopes {
                envelopes.tick(now);
            }
        }

        pub(crate) fn envelopes_deadline(&self) -> Option<Duration> {
            self.envelopes.as_ref()?.deadline()
        }
    }
}
