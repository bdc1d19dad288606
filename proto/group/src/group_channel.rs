//! The channel of an epoch: seals group messages, and opens those of other members. docs/protocol.md §13.
//!
//! The AEAD proves that a holder of this epoch's key sent a message, and every member is one. A sender that
//! wants to be identified signs; a receiver reports to the application which of the two it has ([`MessageOrigin`]).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{
    Deployment, DroneKeypair, DronePublicKey, Epoch, EpochKeys, Error, Handle, Header, LEADER_SLOT, Label,
    MAX_SLOTS, Name, Receiver, Role, Roster, Sender, Slot, StrategyKind, Suite, TrafficKey,
    traffic::SALT_LEN,
};
use quiver_crypto::{Hasher, canonical::Writer};
use quiver_machine::{Now, Offence, Revocations};
use quiver_message::{GroupMessage, MAX_PAYLOAD_LEN};
use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use crate::refused::RefusedLeaders;

/// A plaintext, and its sender.
pub(crate) type Received = (Zeroizing<Vec<u8>>, MessageOrigin);

/// Sender of a group message, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageOrigin {
    /// A member of the group; the slot is its own claim.
    Unauthenticated {
        /// The slot claimed.
        slot: Slot,
    },
    /// This drone, which signed.
    Signed {
        /// Name of the signer.
        name: Name,
        /// Role of the signer.
        role: Role,
    },
}

/// The traffic key of one epoch, with the state of its sender and its replay windows.
#[derive(Debug)]
pub(crate) struct GroupChannel {
    epoch: Epoch,
    digest: [u8; 32],
    valid_until: u64,
    id: SenderId,
    salt: [u8; SALT_LEN],
    traffic: TrafficKey,
    /// `None` before the first message: most drones send nothing in most epochs.
    sender: Option<Sender>,
    receiver: Receiver,
    /// Channel of the epoch before, in a box, because it goes soon.
    former: Option<Box<Former>>,
    /// The slots that members can have.
    slots: Slot,
    leader: Handle,
    /// D of the epoch before, if messages of it are accepted for a while. Stays when that time is over.
    continues: Option<[u8; 32]>,
}

/// The epoch before, for messages that were under way when the key changed.
#[derive(Debug)]
struct Former {
    epoch: Epoch,
    digest: [u8; 32],
    receiver: Receiver,
    until: Duration,
}

/// Slot and start under which a [`GroupChannel`] sends (§13.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderId {
    pub(crate) slot: Slot,
    pub(crate) boot_no: u32,
}

/// Parameters of a [`GroupChannel`] for one epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelEpoch {
    pub(crate) epoch: Epoch,
    pub(crate) digest: [u8; 32],
    pub(crate) valid_until: u64,
    /// The leader of the term.
    pub(crate) leader: Handle,
    /// No member has this slot or one above.
    pub(crate) slots: Slot,
    /// Maximum number of senders of each kind with replay windows.
    pub(crate) senders: u32,
}

impl ChannelEpoch {
    /// Limits slots as the header allows. A key tree has a place for every slot; without one, the header does
    /// not bound them.
    pub(crate) fn new<S: Suite>(header: &Header<S>, digest: [u8; 32], leader: Handle, senders: u32) -> Self {
        let core = &header.core;
        let slots = match core.strategy {
            StrategyKind::Flat => MAX_SLOTS,
            // §13.5: slots that the tree has no leaf for are refused.
            StrategyKind::Tree => MAX_SLOTS.min(1_u32.checked_shl(core.height.into()).unwrap_or(MAX_SLOTS)),
        };
        let (epoch, valid_until) = (core.epoch, core.valid_until);
        Self { epoch, digest, valid_until, leader, slots, senders }
    }
}

/// Rules for accepting signers, as far as a receiver knows the group (§13.4).
pub(crate) struct SenderPolicy<'a, S: Suite> {
    pub(crate) deployment: &'a Deployment<S>,
    pub(crate) revocations: &'a Revocations<S>,
    pub(crate) refused: &'a RefusedLeaders,
    /// The key that is most likely to have signed, decoded.
    pub(crate) expected: Option<&'a DronePublicKey<S>>,
    /// Roster with the slots of the members, at the leader; `None` at edges, which keep none.
    pub(crate) roster: Option<&'a Roster<S>>,
}

impl GroupChannel {
    /// Opens the channel of an epoch. §13.2: the salt is fresh for every start and epoch, so no nonce repeats
    /// even if the boot number was rolled back.
    pub(crate) fn new(
        traffic: TrafficKey,
        parameters: ChannelEpoch,
        id: SenderId,
        rng: &mut dyn CryptoRngCore,
    ) -> Self {
        let mut salt = [0; SALT_LEN];
        rng.fill_bytes(&mut salt);
        let ChannelEpoch { epoch, digest, valid_until, leader, slots, senders } = parameters;
        let receiver = Receiver::new(traffic.clone(), digest, leader).with_slots(slots).with_senders(senders);
        Self {
            epoch,
            digest,
            valid_until,
            id,
            salt,
            traffic,
            sender: None,
            receiver,
            former: None,
            slots,
            leader,
            continues: None,
        }
    }

    /// The sender of this epoch. §13.2: there is one per channel, and it counts, so no nonce repeats.
    fn sender(&mut self) -> &mut Sender {
        let Self { digest, id, salt, traffic, sender, .. } = self;
        sender.get_or_insert_with(|| Sender::new(traffic, *digest, id.slot, id.boot_no, *salt))
    }

    /// §13.10: still opens messages of the epoch before for a while. Only if the term is the same, and the
    /// caller knows that no member was removed: else a removed member could still send as anyone.
    pub(crate) fn overlap(&mut self, former: Option<Self>, until: Duration) {
        self.former = former.filter(|former| former.epoch.term == self.epoch.term).map(|former| {
            let Self { epoch, digest, receiver, .. } = former;
            Box::new(Former { epoch, digest, receiver, until })
        });
        self.continues = self.former.as_ref().map(|former| former.digest);
    }

    /// Keys of this epoch for the group's datagrams; `None` once its key is no longer valid. `signer` is the
    /// key that the member signs with.
    pub(crate) fn epoch_keys<S: Suite>(
        &self,
        now: Now,
        signer: Option<&DronePublicKey<S>>,
    ) -> Option<EpochKeys<S>> {
        // §20.2: an expired key seals and opens no datagram either.
        let valid_for = self.valid_until.checked_sub(now.unix).filter(|left| *left > 0)?;
        let Self { epoch, digest, slots, leader, continues, .. } = *self;
        Some(EpochKeys {
            epoch,
            digest,
            traffic: self.traffic.clone(),
            slot: self.id.slot,
            boot_no: self.id.boot_no,
            leader,
            slots,
            signer: signer.cloned(),
            continues,
            valid_for: Duration::from_secs(valid_for),
        })
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.former.as_ref().map(|former| former.until)
    }

    /// Erases the epoch before once its time is over.
    pub(crate) fn tick(&mut self, now: Now) {
        self.former.take_if(|former| former.until <= now.monotonic);
    }

    /// Seals a message to the group, signed with the key that is given.
    pub(crate) fn seal<S: Suite>(
        &mut self,
        now: Now,
        (group, channel): (&Name, Name),
        data: &[u8],
        signing: Option<(&Deployment<S>, &DroneKeypair<S>)>,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<GroupMessage, &'static str> {
        if data.len() > MAX_PAYLOAD_LEN {
            return Err("the message is longer than 65,536 bytes");
        }
        // §7.1: t_g, until when the group key is valid.
        if now.unix >= self.valid_until {
            return Err("the group key has expired and no newer one has come");
        }
        // §13.3: the seal names the signer, so that the signature cannot be cut off.
        let signer = signing.map(|(_, keypair)| keypair.public().handle());
        let frame = self
            .sender()
            .seal(&channel, signer.as_ref(), data)
            .map_err(|_| "this epoch's message counter is used up")?;
        let mut message =
            GroupMessage { group: group.clone(), epoch: self.epoch, channel, frame, source: None };
        if let Some((deployment, keypair)) = signing {
            let statement = statement(&message, &self.digest);
            let signature = keypair.sign(deployment, Label::Command, &statement, rng).encode();
            message.source = Some(quiver_message::Source { drone: keypair.public().encode(), signature });
        }
        Ok(message)
    }

    /// Opens a message; errors blame the sender; `None` for another epoch's.
    ///
    /// §13.4: in the order of cost: the seal first, which a stranger cannot make, then the signature, and the
    /// window last, so that no other sender moves a signer's window in its name.
    pub(crate) fn open<S: Suite>(
        &mut self,
        policy: &SenderPolicy<'_, S>,
        now: Now,
        message: &GroupMessage,
    ) -> Result<Option<Received>, Offence> {
        let (receiver, digest) = match &mut self.former {
            _ if message.epoch == self.epoch => (&mut self.receiver, self.digest),
            // §13.10: messages that were on their way when the key changed.
            Some(former) if message.epoch == former.epoch && now.monotonic < former.until => {
                (&mut former.receiver, former.digest)
            }
            _ => return Ok(None),
        };
        if now.unix >= self.valid_until {
            return Err(Error::Expired.into());
        }
        let (frame, source) = (&message.frame, message.source.as_ref());
        // §13.4, 1: the slot that it claims.
        policy.may_send_from(frame.slot, source.is_some())?;
        let signer = source.map(quiver_message::Source::handle::<S>);
        // §13.4, 1 and 2: number, window, AEAD.
        let opened = receiver.open(frame, &message.channel, signer.as_ref())?;
        let source = match source {
            None => MessageOrigin::Unauthenticated { slot: frame.slot },
            Some(source) => {
                // §13.4, 3: the key is decoded only now.
                let (drone, signature) = source.decode(policy.expected)?;
                policy.may_sign(now, frame.slot, &drone)?;
                let statement = statement(message, &digest);
                signature.verify(policy.deployment, &drone, Label::Command, &statement)?;
                MessageOrigin::Signed { name: drone.identity.name, role: drone.identity.role }
            }
        };
        // §13.4, 4: the window is marked last.
        Ok(Some((receiver.accept(opened)?, source)))
    }
}

impl<S: Suite> SenderPolicy<'_, S> {
    /// Checks that the roster, if there is one, has a member in this slot. The leader's, which is no
    /// member's, is accepted only with its signature.
    fn may_send_from(&self, slot: Slot, signed: bool) -> Result<(), Error> {
        // §13.3: the leader's slot is accepted with the leader's signature, and with no other.
        let Some(roster) = self.roster.filter(|_| slot != LEADER_SLOT || !signed) else { return Ok(()) };
        let taken = roster.get(slot).is_some() || roster.anonymous(slot).is_some();
        if taken { Ok(()) } else { Err(Error::WrongSlot) }
    }

    /// Checks that this drone may send from this slot, if its signature holds.
    ///
    /// A receiver without a roster accepts any signer whose message a member sealed: any drone of the
    /// deployment that is neither revoked nor expired, but no leader other than the term's.
    pub(crate) fn may_sign(&self, now: Now, slot: Slot, drone: &DronePublicKey<S>) -> Result<(), Offence> {
        // §13.4, 3: revoked, refused, expired, role.
        if self.revocations.names(drone) {
            return Err(Error::Revoked.into());
        }
        if self.refused.names(drone) {
            return Err(Offence::RefusedLeader);
        }
        if now.unix >= drone.identity.not_after {
            return Err(Error::Expired.into());
        }
        if slot == LEADER_SLOT {
            // The receiver has seen to it that this is the term's leader.
            return Ok(());
        }
        if drone.identity.role != Role::Edge {
            return Err(Error::NotAuthorised.into());
        }
        // §13.4: with a roster, a signed message is from the signer's own slot.
        let holder = self.roster.map(|roster| roster.get(slot).map(|holder| holder.identity.serial));
        if holder.is_some_and(|serial| serial != Some(drone.identity.serial)) {
            return Err(Error::WrongSlot.into());
        }
        Ok(())
    }
}

/// §13.3: what a sender signs: group, D, its slot and start, the number, nonce and the ciphertext's hash.
fn statement(message: &GroupMessage, digest: &[u8; 32]) -> Vec<u8> {
    let frame = &message.frame;
    let hash = Hasher::new("quiver/1 group message").lp(&frame.ciphertext).finish();
    let mut writer = Writer::new();
    writer.lp(message.group.as_bytes()).fixed(digest).u32(frame.slot).u32(frame.boot_no).fixed(&frame.salt);
    writer.u64(frame.counter).fixed(&frame.hedge).lp(message.channel.as_bytes()).fixed(&hash);
    writer.finish()
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use quiver_ainq::instrumented::{Counting, decodings, multiplications, reset};
    use quiver_ainq::traffic::MAX_SENDERS;
    use quiver_ainq::{
        GroupContext, Identity, Leadership, MasterSecret, RevocationStatement, Ristretto255, Times,
    };
    use quiver_message::Message;
    use quiver_testbed::{issue_keypair, name};
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    type S = Counting<Ristretto255>;

    const NOW: Now = Now { monotonic: Duration::from_secs(100), unix: 1_000_000 };

    /// Everybody's keys, an epoch, and a roster with the member in slot 3.
    struct ChannelFixture {
        master: MasterSecret<S>,
        deployment: Deployment<S>,
        revocations: Revocations<S>,
        refused: RefusedLeaders,
        leader: DroneKeypair<S>,
        member: DroneKeypair<S>,
        stranger: DroneKeypair<S>,
        roster: Roster<S>,
        traffic: TrafficKey,
        parameters: ChannelEpoch,
        rng: ChaCha20Rng,
    }

    fn issue(
        master: &MasterSecret<S>,
        deployment: &Deployment<S>,
        serial: u8,
        role: Role,
        rng: &mut ChaCha20Rng,
    ) -> DroneKeypair<S> {
        let named = name(&alloc::format!("drone-{serial}"));
        let identity =
            Identity { serial: [serial; 16], name: named, role, groups: alloc::vec![], not_after: 1 << 40 };
        issue_keypair(master, deployment, &identity, rng)
    }

    impl ChannelFixture {
        fn new() -> Self {
            let mut rng = ChaCha20Rng::seed_from_u64(1);
            let master = MasterSecret::<S>::generate(&mut rng);
            let deployment = Deployment::new(name("test"), master.public());
            let mut drone = |serial, role| issue(&master, &deployment, serial, role, &mut rng);
            let leader = drone(9, Role::Leader { group: name("alpha"), ordinal: 0 });
            let (member, stranger) = (drone(1, Role::Edge), drone(2, Role::Edge));
            let context = GroupContext {
                deployment: deployment.clone(),
                group: name("alpha"),
                leader: leader.public().clone(),
            };
            let times = Times { issued_at: NOW.unix, valid_until: NOW.unix + 600, revocation_number: 0 };
            let (leadership, output) = Leadership::open_term(
                context,
                &leader,
                Roster::new(),
                &BTreeMap::new(),
                Epoch::term_of(1, 0),
                [0; 32],
                &times,
                StrategyKind::Flat,
                &mut rng,
            )
            .unwrap();
            let mut roster = Roster::new();
            roster.insert(3, member.public().clone()).unwrap();
            let traffic = leadership.group_key().traffic(&output.digest);
            let by = leader.public().handle();
            let parameters = ChannelEpoch::new(&output.header, output.digest, by, MAX_SENDERS);
            let (revocations, refused) = (Revocations::new(), RefusedLeaders::new());
            Self {
                master,
                deployment,
                revocations,
                refused,
                leader,
                member,
                stranger,
                roster,
                traffic,
                parameters,
                rng,
            }
        }

        fn channel(&mut self, slot: Slot, boot_no: u32) -> GroupChannel {
            GroupChannel::new(
                self.traffic.clone(),
                self.parameters,
                SenderId { slot, boot_no },
                &mut self.rng,
            )
        }

        /// The first message of the holder of that slot, signed with its key.
        fn sealed(
            &mut self,
            slot: Slot,
            boot_no: u32,
            by: fn(&Self) -> Option<&DroneKeypair<S>>,
        ) -> GroupMessage {
            let mut channel = self.channel(slot, boot_no);
            let mut rng = ChaCha20Rng::seed_from_u64(7);
            let signing = by(self).map(|keypair| (&self.deployment, keypair));
            channel.seal(NOW, (&name("alpha"), name("chat")), b"words", signing, &mut rng).unwrap()
        }

        fn open(
            &self,
            channel: &mut GroupChannel,
            at_the_leader: bool,
            message: &GroupMessage,
        ) -> Result<MessageOrigin, Offence> {
            let policy = SenderPolicy {
                deployment: &self.deployment,
                revocations: &self.revocations,
                refused: &self.refused,
                expected: None,
                roster: Some(&self.roster).filter(|_| at_the_leader),
            };
            channel.open(&policy, NOW, message).map(|heard| heard.unwrap().1)
        }

        /// Opens a message as an edge without earlier messages does, and as the leader does.
        fn received(&mut self, message: &GroupMessage) -> [Result<MessageOrigin, Offence>; 2] {
            [false, true].map(|at_the_leader| {
                let mut channel = self.channel(5, 1);
                self.open(&mut channel, at_the_leader, message)
            })
        }
    }

    #[test]
    fn a_strangers_forged_message_costs_no_curve_operation() {
        let mut fixture = ChannelFixture::new();
        let mut channel = fixture.channel(5, 1);
        let genuine = fixture.sealed(3, 1, |fixture| Some(&fixture.member));
        // Epoch and public keys are public; the group key is not.
        let mut forged = genuine.clone();
        forged.frame.ciphertext = alloc::vec![7; 40];
        let cut_off = GroupMessage { source: None, ..genuine.clone() };
        let mut other_signer = genuine.clone();
        other_signer.source.as_mut().unwrap().drone = fixture.stranger.public().encode();
        for message in [forged, cut_off, other_signer] {
            let bytes = Message::<S>::GroupMessage(message).encode(&fixture.deployment);
            reset();
            let Ok(Message::GroupMessage(message)) = Message::decode(&fixture.deployment, &bytes) else {
                panic!()
            };
            let heard = fixture.open(&mut channel, false, &message);
            assert_eq!(heard, Err(Offence::Protocol(Error::SealBroken)));
            assert_eq!((multiplications(), decodings()), (0, 0));
        }
        assert!(fixture.open(&mut channel, false, &genuine).is_ok());
        assert!(multiplications() > 0 && decodings() > 0, "the genuine one is verified");
        reset();
        assert_eq!(fixture.open(&mut channel, false, &genuine), Err(Offence::Protocol(Error::Replay)));
        assert_eq!((multiplications(), decodings()), (0, 0), "and played again, it is not");
    }

    #[test]
    fn a_forged_signature_of_a_member_moves_no_window() {
        let mut fixture = ChannelFixture::new();
        let mut channel = fixture.channel(5, 1);
        // Sealed by a member, in the leader's name and in another's, with the latest start there is.
        type Signer = fn(&ChannelFixture) -> Option<&DroneKeypair<S>>;
        let signers: [(Slot, Signer); 2] =
            [(LEADER_SLOT, |fixture| Some(&fixture.leader)), (3, |fixture| Some(&fixture.member))];
        for (slot, by) in signers {
            let mut forged = fixture.sealed(slot, u32::MAX, by);
            let other = fixture.sealed(slot, 7, by);
            forged.source = other.source;
            assert_eq!(
                fixture.open(&mut channel, false, &forged),
                Err(Offence::Protocol(Error::InvalidSignature))
            );
            let genuine = fixture.sealed(slot, 1, by);
            assert!(fixture.open(&mut channel, false, &genuine).is_ok());
        }
        let silencer = fixture.sealed(LEADER_SLOT, u32::MAX, |_| None);
        assert_eq!(fixture.open(&mut channel, false, &silencer), Err(Offence::Protocol(Error::WrongSlot)));
    }

    #[test]
    fn who_signs_is_on_the_roster_and_in_its_slot() {
        let mut fixture = ChannelFixture::new();
        let genuine = fixture.sealed(3, 1, |fixture| Some(&fixture.member));
        assert!(fixture.received(&genuine).iter().all(Result::is_ok));
        let wrong_slot = Err(Offence::Protocol(Error::WrongSlot));
        // Not a member, with a member that relays it; and a member in another's slot. Edges keep no roster.
        let outsider = fixture.sealed(3, 1, |fixture| Some(&fixture.stranger));
        assert!(matches!(&fixture.received(&outsider), [Ok(_), refused] if *refused == wrong_slot));
        let elsewhere = fixture.sealed(4, 1, |fixture| Some(&fixture.member));
        assert!(matches!(&fixture.received(&elsewhere), [Ok(_), refused] if *refused == wrong_slot));
        let invented = fixture.sealed(4, 1, |_| None);
        assert!(matches!(&fixture.received(&invented), [Ok(_), refused] if *refused == wrong_slot));
        // Evicted: off the roster.
        fixture.roster.remove(3);
        assert_eq!(fixture.received(&genuine)[1], wrong_slot);
    }

    #[test]
    fn no_other_leader_speaks_in_a_group_nor_a_drone_that_is_revoked() {
        let mut fixture = ChannelFixture::new();
        let ChannelFixture { master, deployment, rng, .. } = &mut fixture;
        let role = Role::Leader { group: name("beta"), ordinal: 0 };
        fixture.stranger = issue(master, deployment, 8, role, rng);
        let other = fixture.sealed(3, 1, |fixture| Some(&fixture.stranger));
        let refused = Err(Offence::Protocol(Error::NotAuthorised));
        assert_eq!(fixture.received(&other), [refused.clone(), refused]);
        let member = fixture.sealed(3, 1, |fixture| Some(&fixture.member));
        let list = RevocationStatement {
            number: 1,
            issued: NOW.unix,
            next_update: NOW.unix + 1,
            revoked: alloc::vec![quiver_ainq::Revoked::unknown([1; 16])],
        };
        let list =
            fixture.master.sign_revocations(&fixture.deployment, list, &mut fixture.rng).unwrap().encode();
        assert!(fixture.revocations.offer(&fixture.deployment, &list).unwrap());
        let revoked = Err(Offence::Protocol(Error::Revoked));
        assert_eq!(fixture.received(&member), [revoked.clone(), revoked]);
    }

    #[test]
    fn what_a_refused_leader_signed_is_not_shown_to_anybody_whatever_key_it_signed_with() {
        let mut fixture = ChannelFixture::new();
        let order = fixture.sealed(LEADER_SLOT, 1, |fixture| Some(&fixture.leader));
        assert!(fixture.received(&order).iter().all(Result::is_ok));
        let serial = fixture.leader.public().identity.serial;
        // Another key of its, in a member's slot.
        let ChannelFixture { master, deployment, rng, .. } = &mut fixture;
        fixture.stranger = issue(master, deployment, serial[0], Role::Edge, rng);
        let aside = fixture.sealed(3, 1, |fixture| Some(&fixture.stranger));
        assert!(fixture.received(&aside)[0].is_ok());
        assert!(fixture.refused.insert(serial, Vec::new()));
        for message in [order, aside] {
            assert_eq!(
                fixture.received(&message),
                [Err(Offence::RefusedLeader), Err(Offence::RefusedLeader)]
            );
        }
        // Nobody else is.
        let member = fixture.sealed(3, 1, |fixture| Some(&fixture.member));
        assert!(fixture.received(&member).iter().all(Result::is_ok));
    }

    #[test]
    fn slots_beyond_the_key_tree_are_refused() {
        let mut fixture = ChannelFixture::new();
        fixture.parameters.slots = 8;
        let beyond = fixture.sealed(8, 1, |_| None);
        assert_eq!(fixture.received(&beyond)[0], Err(Offence::Protocol(Error::WrongSlot)));
        let within = fixture.sealed(7, 1, |_| None);
        assert!(fixture.received(&within)[0].is_ok());
    }
}
