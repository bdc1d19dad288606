//! The envelopes of a drone as a part of its machine.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use quiver_abe::envelope::{EnvelopeTarget, SessionId, Signer};
use quiver_ainq::Suite;
use quiver_machine::{Handled, MachinePart, Now, Peer, due};
use quiver_message::Message;

use crate::budget::WorkBudget;
use crate::message::{EnvelopeMessage, OpeningRequest};
use crate::receiver::{EnvelopeReceiver, ReceivedEnvelope};
use crate::sender::{EnvelopeSender, SealRequest};
use crate::{AttributeKeys, DroneSigner, DroneVerifier, EnvelopeEvent, EnvelopeLimits, TIDYING, offence};

/// Commands of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopeCommand {
    /// Use these parameters and keys from now on, in place of those before.
    Keys(AttributeKeys),
    /// Seal something and send it to the group.
    Seal {
        /// Fingerprint of the authority whose parameters are used.
        authority: [u8; 32],
        /// Target of the envelope.
        target: EnvelopeTarget,
        /// Content of at most 65,536 bytes.
        data: Vec<u8>,
        /// True to sign it. An unsigned one is shown as unauthenticated.
        signed: bool,
    },
}

/// The envelopes of one drone: nothing is opened or sealed before it has parameters or keys.
#[derive(Debug, Default)]
pub struct Envelopes {
    limits: EnvelopeLimits,
    /// Once there are parameters or keys. In a box, because most drones of a swarm have none.
    sessions: Option<Box<Sessions>>,
}

/// The context of this part.
type EnvelopeContext<'a, S> = quiver_machine::Context<'a, S, EnvelopeEvent, Infallible>;

/// The keys, and the sessions of this drone and of others.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) keys: AttributeKeys,
    pub(crate) sender: EnvelopeSender,
    /// Openings repeated, of all sessions together.
    pub(crate) repeats: WorkBudget,
    pub(crate) receiver: EnvelopeReceiver,
    tidying: Option<Duration>,
}

impl Envelopes {
    /// Envelopes within these limits.
    #[must_use]
    pub const fn new(limits: EnvelopeLimits) -> Self {
        Self { limits, sessions: None }
    }

    fn set_keys(&mut self, keys: AttributeKeys) {
        match &mut self.sessions {
            // An envelope that did not fit may fit now.
            Some(sessions) => {
                sessions.keys = keys;
                sessions.receiver.reconsider();
            }
            none => *none = Some(Box::new(Sessions::new(keys, self.limits))),
        }
    }

    /// Seals to the target, signed by this drone if asked to, and publishes it.
    fn seal<S: Suite>(
        &mut self,
        cx: &mut EnvelopeContext<'_, S>,
        (authority, target): (&[u8; 32], &EnvelopeTarget),
        data: &[u8],
        signed: bool,
    ) -> Result<(), &'static str> {
        // §E4.2: sealed for the group that the drone is in.
        let group = cx.group.ok_or("in no group")?;
        let sessions = self.sessions.as_mut().ok_or("no attribute authority is known")?;
        let signer = DroneSigner::new(cx.deployment, cx.keypair.ok_or("not enrolled")?);
        // §E3: the signature goes inside the encryption; who seals unsigned names no sender.
        let signer = signed.then_some(&signer as &dyn Signer);
        let sealed =
            sessions.seal(cx.now, &SealRequest { authority, target, group, data }, signer, cx.rng)?;
        cx.publish(&EnvelopeMessage::Envelope(sealed.message).into());
        cx.out.event(EnvelopeEvent::Sent { session: sealed.session.0, number: sealed.number });
        Ok(())
    }

    fn receive<S: Suite>(&mut self, cx: &mut EnvelopeContext<'_, S>, sealed: &[u8]) -> Handled {
        let Some(sessions) = &mut self.sessions else { return Handled::Yes };
        let mut offences = Vec::new();
        // §E3: as of now: a sender that is revoked or has expired signs nothing.
        let verifier = DroneVerifier::new(cx.deployment, cx.revocations.list(), cx.now.unix);
        for received in sessions.receive(cx.now, cx.group, sealed, &verifier) {
            match received {
                ReceivedEnvelope::Opened(event) => cx.out.event(event),
                ReceivedEnvelope::NotSatisfied(SessionId(session)) => {
                    // §E4.2: once per session, and to nobody else.
                    cx.out.event(EnvelopeEvent::NotSatisfied { session });
                }
                ReceivedEnvelope::TooLarge(SessionId(session)) => {
                    cx.out.event(EnvelopeEvent::TooLarge { session });
                }
                ReceivedEnvelope::NoOpening(SessionId(session)) => {
                    // §E4.2: a drone that missed the opening asks the group for it.
                    cx.publish(&EnvelopeMessage::OpeningRequest(OpeningRequest { session }).into());
                }
                ReceivedEnvelope::Invalid(error) => offences.push(offence(&error)),
            }
        }
        if offences.is_empty() { Handled::Yes } else { Handled::Offences(offences) }
    }
}

impl Sessions {
    fn new(keys: AttributeKeys, limits: EnvelopeLimits) -> Self {
        Self {
            keys,
            sender: EnvelopeSender::new(limits),
            repeats: WorkBudget::of_broadcasts(),
            receiver: EnvelopeReceiver::new(limits),
            tidying: None,
        }
    }

    /// Erases the keys of ended sessions.
    fn tick(&mut self, now: Now) {
        if due(self.tidying, now.monotonic) {
            // §E4.1: sessions end by time.
            self.sender.forget_old(now.unix);
            self.receiver.forget_old(now);
            self.tidying = None;
        }
        if self.tidying.is_none() && !(self.sender.is_empty() && self.receiver.is_empty()) {
            self.tidying = Some(now.monotonic.saturating_add(TIDYING));
        }
    }
}

impl<S: Suite> MachinePart<S> for Envelopes {
    type Command = EnvelopeCommand;
    type Event = EnvelopeEvent;
    type Record = Infallible;

    fn handle(&mut self, cx: &mut EnvelopeContext<'_, S>, _: Peer, message: &Message<S>) -> Handled {
        match message.extension() {
            None => return Handled::No,
            Some(Err(error)) => return Handled::Offences(alloc::vec![error.into()]),
            Some(Ok(EnvelopeMessage::Envelope(envelope))) => return self.receive(cx, &envelope.sealed),
            Some(Ok(EnvelopeMessage::OpeningRequest(request))) => {
                let sessions = self.sessions.as_mut();
                // §E4.2: the same bytes once more, at most once a second.
                if let Some(opening) = sessions.and_then(|own| own.requested(cx.now, &request.session)) {
                    cx.publish(&EnvelopeMessage::Envelope(opening).into());
                }
            }
        }
        Handled::Yes
    }

    fn command(&mut self, cx: &mut EnvelopeContext<'_, S>, command: EnvelopeCommand) {
        match command {
            EnvelopeCommand::Keys(keys) => self.set_keys(keys),
            EnvelopeCommand::Seal { authority, target, data, signed } => {
                if let Err(reason) = self.seal(cx, (&authority, &target), &data, signed) {
                    cx.out.event(EnvelopeEvent::NotSent(reason));
                }
            }
        }
    }

    fn tick(&mut self, cx: &mut EnvelopeContext<'_, S>) {
        if let Some(sessions) = &mut self.sessions {
            sessions.tick(cx.now);
        }
    }

    fn deadline(&self) -> Option<Duration> {
        self.sessions.as_ref()?.tidying
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::Ristretto255;

    use super::*;

    #[test]
    fn a_part_wants_to_be_woken_until_it_has_forgotten_what_it_asked_for() {
        let at = |seconds| Now { monotonic: Duration::from_secs(seconds), unix: 1_000_000 + seconds };
        let mut envelopes = Envelopes::new(EnvelopeLimits::default());
        let deadline = |envelopes: &Envelopes| MachinePart::<Ristretto255>::deadline(envelopes);
        assert_eq!(deadline(&envelopes), None);
        envelopes.set_keys(AttributeKeys::new(Vec::new()));
        let mut tick = |now: Now, overheard: Option<u8>| {
            let sessions = envelopes.sessions.as_mut().unwrap();
            if let Some(session) = overheard {
                sessions.receiver.overhear(now, SessionId([session; 32]));
            }
            sessions.tick(now);
            deadline(&envelopes)
        };
        let minutes = |count| Some(Duration::from_secs(100) + TIDYING * count);
        assert_eq!(tick(at(99), None), None);
        assert_eq!(tick(at(100), Some(1)), minutes(1));
        assert_eq!(tick(at(130), Some(2)), minutes(1));
        assert_eq!(tick(at(160), None), minutes(2), "one is half a minute old");
        assert_eq!(tick(at(220), None), None);
    }
}
