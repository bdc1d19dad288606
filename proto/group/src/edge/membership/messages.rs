//! Saying something to the group, and hearing what others say.

use quiver_ainq::{Name, Suite};
use quiver_message::{GroupMessage, Message};
use rand_core::CryptoRngCore;

use crate::edge::{Edge, EdgeEvent, Standing};
use crate::speech::Audience;
use quiver_machine::{Now, Peer};

impl<S: Suite> Edge<S> {
    pub(in crate::edge) fn send_message(
        &mut self,
        now: Now,
        channel: Name,
        data: &[u8],
        signed: bool,
        rng: &mut dyn CryptoRngCore,
    ) {
        let Standing::Member(member) = &mut self.standing else {
            return self.out.event(EdgeEvent::SendFailed("not a member of a group"));
        };
        if signed && self.keypair.is_none() {
            return self.out.event(EdgeEvent::SendFailed("a member without a name has no key to sign with"));
        }
        let synced = member.synced();
        let Some(voice) = member.voice.as_mut().filter(|_| synced) else {
            return self.out.event(EdgeEvent::SendFailed("not yet in step with the group"));
        };
        let deployment = &self.config.deployment;
        let signing = self.keypair.as_ref().filter(|_| signed).map(|keypair| (deployment, keypair));
        match voice.speak(now, (member.membership.group(), channel), data, signing, rng) {
            Err(reason) => self.out.event(EdgeEvent::SendFailed(reason)),
            Ok(message) => self.out.send_to_group(deployment, &Message::<S>::GroupMessage(message)),
        }
    }

    #[inline(never)]
    pub(in crate::edge) fn receive_message(
        &mut self,
        now: Now,
        from: Peer,
        message: &GroupMessage,
        rng: &mut dyn CryptoRngCore,
    ) {
        let Standing::Member(member) = &mut self.standing else {
            return;
        };
        if message.group != *member.membership.group() {
            return;
        }
        let behind = message.epoch > member.membership.epoch();
        let synced = member.synced();
        let Some(voice) = member.voice.as_mut().filter(|_| synced) else {
            return;
        };
        let audience = Audience {
            deployment: &self.config.deployment,
            revocations: &self.revocations,
            refused: &self.refused,
            expected: self.expected.as_deref(),
            roster: None,
        };
        match voice.hear(&audience, now, message) {
            Err(error) => self.blame(from, error),
            Ok(Some((data, source))) => {
                let channel = message.channel.clone();
                self.out.event(EdgeEvent::Message { channel, data, source });
            }
            // Somebody is ahead of us, or says so: ask, but not as often as it is said.
            Ok(None) if behind && member.listens <= now.monotonic => {
                member.listens = now.monotonic + self.config.timing.retry;
                self.catch_up(now, rng);
            }
            Ok(None) => {}
        }
    }
}
