//! Sealing envelopes to others, and opening theirs.
//!
//! Envelopes need no membership: whoever has a key opens what it fits, and what is sealed travels with the group's gossip.

use core::time::Duration;

use quiver_ainq::Suite;
use quiver_message::{Envelope, OpeningRequest};

use super::Leader;
use quiver_machine::{Now, Peer};

#[cfg(not(feature = "abe"))]
impl<S: Suite> Leader<S> {
    /// Built without envelopes: those of others pass by.
    pub(super) const fn envelope(&self, _: Now, _: Peer, _: &Envelope) {}

    pub(super) const fn opening_request(&self, _: Now, _: &OpeningRequest) {}

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
    use quiver_message::Message;
    use rand_core::CryptoRngCore;

    use super::super::LeaderEvent;
    use super::super::context::Base;
    use super::*;
    use quiver_envelope::{DroneSigner, DroneVerifier, EnvelopeCommand, EnvelopeEvent, EnvelopeLimits};
    use quiver_envelope::{Envelopes, Heard, Order};
    use quiver_machine::Offence;

    impl<S: Suite> Leader<S> {
        /// What signs envelopes as this drone, once it is enrolled.
        pub fn envelope_signer(&self) -> Option<DroneSigner<'_, S>> {
            let keypair = self.base.store.keypair.as_ref()?;
            Some(DroneSigner::new(&self.base.config.deployment, keypair))
        }

        /// What verifies others' envelopes, with the newest revocation list this drone has.
        pub fn envelope_verifier(&self, now: UnixTime) -> DroneVerifier<'_, S> {
            DroneVerifier::new(&self.base.config.deployment, self.base.store.revocations.list(), now)
        }

        /// The newest revocation list this drone has.
        pub fn revocations(&self) -> &RevocationList {
            self.base.store.revocations.list()
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
                    none => *none = Some(Box::new(Envelopes::new(keys, EnvelopeLimits::default()))),
                },
                EnvelopeCommand::Seal { authority, target, data, signed } => {
                    let group = self.base.config.group.clone();
                    let order = Order { authority: &authority, target: &target, group: &group, data: &data };
                    if let Err(reason) = self.seal(now, &order, signed, rng) {
                        self.base.out.event(LeaderEvent::SendFailed(reason));
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
            let keypair = self.base.store.keypair.as_ref().ok_or("not enrolled")?;
            let signer = DroneSigner::new(&self.base.config.deployment, keypair);
            let signer = signed.then_some(&signer as &dyn Signer);
            let sealed = envelopes.seal(now, order, signer, rng)?;
            self.base
                .out
                .send_to_group::<S>(&self.base.config.deployment, &Message::Envelope(sealed.message));
            let (session, number) = (sealed.session.0, sealed.number);
            self.base.out.event(LeaderEvent::Envelope(EnvelopeEvent::Sent { session, number }));
            Ok(())
        }

        pub(crate) fn envelope(&mut self, now: Now, from: Peer, envelope: &Envelope) {
            let Some(envelopes) = &mut self.envelopes else { return };
            let Base { config, out, store, peers, .. } = &mut self.base;
            let verifier = DroneVerifier::new(&config.deployment, store.revocations.list(), now.unix);
            for heard in envelopes.receive(now, Some(&config.group), &envelope.sealed, &verifier) {
                match heard {
                    Heard::Opened(event) => out.event(LeaderEvent::Envelope(event)),
                    Heard::NotSatisfied(SessionId(session)) => {
                        out.event(LeaderEvent::Envelope(EnvelopeEvent::NotSatisfied { session }));
                    }
                    Heard::TooLarge(SessionId(session)) => {
                        out.event(LeaderEvent::Envelope(EnvelopeEvent::TooLarge { session }));
                    }
                    Heard::Ask(SessionId(session)) => {
                        let request = Message::OpeningRequest(OpeningRequest { session });
                        out.send_to_group::<S>(&config.deployment, &request);
                    }
                    Heard::Wrong(error) => {
                        let offence = Offence::Envelope(error);
                        if let Some(misdeed) = peers.weigh(from, &offence) {
                            out.penalize(from, misdeed);
                        }
                        out.event(LeaderEvent::Blamed { peer: from, offence });
                    }
                }
            }
        }

        pub(crate) fn opening_request(&mut self, now: Now, request: &OpeningRequest) {
            let repeated = self.envelopes.as_mut().and_then(|own| own.requested(now, &request.session));
            if let Some(envelope) = repeated {
                self.base.out.send_to_group::<S>(&self.base.config.deployment, &Message::Envelope(envelope));
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
