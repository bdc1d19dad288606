//! Seals messages to the group and opens those of others, under the key of the epoch held.

use core::time::Duration;

use quiver_ainq::{DronePublicKey, EpochKeys, GroupMembership, Header, Name, Suite, TrafficKey};
use quiver_machine::{Now, Offence};
use quiver_message::GroupMessage;

use crate::edge::EdgeContext;
use crate::group_channel::{ChannelEpoch, GroupChannel, Received, SenderId, SenderPolicy};

/// Seals and opens a member's messages while it holds a valid key.
#[derive(Debug, Default)]
pub(super) struct Messages(Option<GroupChannel>);

impl Messages {
    /// §13.1: Takes the traffic key of a new epoch into use, with windows of so many senders of each kind;
    /// whether the former key goes on receiving for a while.
    pub(super) fn activate<S: Suite>(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        (traffic, senders, overlap): (TrafficKey, u32, bool),
        header: &Header<S>,
        membership: &GroupMembership<S>,
    ) {
        // §13.10: not after an epoch that removed a member.
        let former = self.0.take().filter(|_| overlap);
        // Of the membership: to hash the leader's key anew with each epoch costs an eighth of following it.
        let parameters = ChannelEpoch::new(header, *membership.digest(), *membership.leader(), senders);
        // §13.1: K_snd is the slot's and the start's.
        let id = SenderId { slot: membership.slot(), boot_no: cx.boot_no };
        let mut channel = GroupChannel::new(traffic, parameters, id, cx.rng);
        channel.overlap(former, cx.now.monotonic + cx.timing.overlap);
        self.0 = Some(channel);
    }

    /// Erases the keys.
    pub(super) fn stop(&mut self) {
        self.0 = None;
    }

    pub(super) fn seal<S: Suite>(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        topic: (&Name, Name),
        data: &[u8],
        signed: bool,
    ) -> Result<GroupMessage, &'static str> {
        let channel = self.0.as_mut().ok_or("not yet in step with the group")?;
        // §13.3: a sender may add its signature.
        let signing = cx.keypair.filter(|_| signed).map(|keypair| (cx.deployment, keypair));
        channel.seal(cx.now, topic, data, signing, cx.rng)
    }

    /// Keys of the epoch for datagrams; `None` without a valid key.
    pub(super) fn epoch_keys<S: Suite>(
        &self,
        now: Now,
        signer: Option<&DronePublicKey<S>>,
    ) -> Option<EpochKeys<S>> {
        self.0.as_ref()?.epoch_keys(now, signer)
    }

    /// §13.4: opens a message; errors blame the sender; `None` for another epoch's.
    pub(super) fn open<S: Suite>(
        &mut self,
        cx: &EdgeContext<'_, S>,
        expected: Option<&DronePublicKey<S>>,
        message: &GroupMessage,
    ) -> Result<Option<Received>, Offence> {
        let Some(channel) = &mut self.0 else { return Ok(None) };
        let policy = SenderPolicy {
            deployment: cx.deployment,
            revocations: cx.revocations,
            refused: &cx.leaders.refused,
            expected,
            // §13.4: edges have no roster.
            roster: None,
        };
        channel.open(&policy, cx.now, message)
    }

    /// Erases the former key when its time is over.
    pub(super) fn tick(&mut self, now: Now) {
        if let Some(channel) = &mut self.0 {
            channel.tick(now);
        }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.0.as_ref().and_then(GroupChannel::deadline)
    }
}
