//! Machines of a controller and of members around a scheme's algebra, with the crate's delivery.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use quiver_crypto::Secret;
use quiver_machine::{Destination, Input, Machine, Now, Outbox, Output};
use rand_core::CryptoRngCore;

use crate::contract::{Command, KeyState, MemberId, Pace, Participant};
use crate::delivery::{Complete, DeliveryReceiver, DeliverySender, OutgoingFrame, ReceiverFilter};

/// Receivers of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// A member.
    One(MemberId),
    /// The members that stay, in one broadcast.
    Staying,
    /// The newcomers, in one broadcast.
    Newcomers,
    /// All members of the new epoch, in one broadcast.
    All,
}

/// A message of a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Receivers of the parcel.
    pub to: Audience,
    /// Bytes of the parcel.
    pub bytes: Vec<u8>,
}

/// The controller's side of a scheme.
pub trait KeyScheme {
    /// Makes the key of the next epoch, in which these members come and those go.
    ///
    /// # Errors
    /// A sentence: the group stays as it was.
    fn rekey(
        &mut self,
        added: &[MemberId],
        removed: &[MemberId],
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Vec<Parcel>, String>;

    /// Epoch and fingerprint of the newest key.
    fn key_state(&self) -> Option<KeyState>;
}

/// A parcel as a member receives it.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedParcel<'a> {
    /// Number of the parcel, the same at all members.
    pub number: u16,
    /// Bytes of the parcel.
    pub bytes: &'a [u8],
}

/// A member's side of a scheme.
pub trait KeyHolder {
    /// Takes a parcel. A parcel that is not for this member, or is forged, changes nothing.
    fn open(&mut self, received: ReceivedParcel<'_>);

    /// Epoch and fingerprint of the key held.
    fn key_state(&self) -> Option<KeyState>;

    /// The key, for an adversary that captured this member.
    fn captured_key(&self) -> Option<Secret<32>> {
        None
    }

    /// Returns true if it needs the bytes of parcels; otherwise it is shown their first fragments alone.
    fn takes_bytes(&self) -> bool {
        true
    }
}

/// A controller's machine around a [`KeyScheme`].
pub struct SchemeController<S> {
    scheme: S,
    sender: DeliverySender,
    members: BTreeSet<MemberId>,
    out: Outbox<String, Infallible>,
}

impl<S: KeyScheme> SchemeController<S> {
    /// A controller without members.
    #[must_use]
    pub fn new(scheme: S, pace: Pace) -> Self {
        Self { scheme, sender: DeliverySender::new(pace), members: BTreeSet::new(), out: Outbox::new() }
    }

    fn change(&mut self, added: &[MemberId], removed: &[MemberId], rng: &mut dyn CryptoRngCore) {
        let parcels = match self.scheme.rekey(added, removed, rng) {
            Ok(parcels) => parcels,
            Err(what) => return self.out.event(what),
        };
        self.sender.forget(removed);
        self.members.retain(|member| !removed.contains(member));
        let staying = self.members.clone();
        self.members.extend(added);
        for Parcel { to, bytes } in parcels {
            let pushed = match to {
                Audience::One(member) => {
                    self.sender.push(Some(member), ReceiverFilter::Everybody, [member].into(), bytes)
                }
                Audience::Staying => self.sender.push(None, ReceiverFilter::WithKey, staying.clone(), bytes),
                Audience::Newcomers => {
                    self.sender.push(None, ReceiverFilter::WithoutKey, added.iter().copied().collect(), bytes)
                }
                Audience::All => {
                    self.sender.push(None, ReceiverFilter::Everybody, self.members.clone(), bytes)
                }
            };
            if let Err(what) = pushed {
                self.out.event(what);
            }
        }
    }
}

impl<S: KeyScheme> Machine for SchemeController<S> {
    type Command = Command;
    type Event = String;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, Command>, rng: &mut dyn CryptoRngCore) {
        match input {
            Input::Command(Command::Admit(added)) => self.change(&added, &[], rng),
            Input::Command(Command::Remove(removed)) => self.change(&[], &removed, rng),
            Input::Command(Command::Expire) => self.change(&[], &[], rng),
            Input::Received { from, bytes, .. } => self.sender.receive(from, bytes),
            Input::Command(Command::Join)
            | Input::Timeout
            | Input::Connected { .. }
            | Input::Disconnected { .. }
            | Input::Resumed => {}
        }
        let mut frames = Vec::new();
        self.sender.poll(now.monotonic, &mut frames);
        transmit(&mut self.out, frames);
    }

    fn poll_output(&mut self) -> Output<String, Infallible> {
        self.out.poll(self.sender.deadline())
    }
}

impl<S: KeyScheme> Participant for SchemeController<S> {
    fn key_state(&self) -> Option<KeyState> {
        self.scheme.key_state()
    }
}

/// A member's machine around a [`KeyHolder`].
pub struct SchemeMember<H> {
    holder: H,
    pace: Pace,
    receiver: DeliveryReceiver,
    out: Outbox<String, Infallible>,
}

impl<H: KeyHolder> SchemeMember<H> {
    /// A member that has received nothing.
    #[must_use]
    pub fn new(holder: H, pace: Pace) -> Self {
        let receiver = DeliveryReceiver::new(pace, holder.takes_bytes());
        Self { holder, pace, receiver, out: Outbox::new() }
    }

    fn receive(&mut self, now: Duration, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        let has_key = self.holder.key_state().is_some();
        if let Some(Complete { number, bytes }) = self.receiver.receive(now, bytes, has_key, rng) {
            self.holder.open(ReceivedParcel { number, bytes: &bytes });
        }
    }
}

impl<H: KeyHolder> Machine for SchemeMember<H> {
    type Command = Command;
    type Event = String;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, Command>, rng: &mut dyn CryptoRngCore) {
        match input {
            Input::Received { bytes, .. } => self.receive(now.monotonic, bytes, rng),
            // A controller that starts anew numbers its parcels anew.
            Input::Connected { .. } => {
                self.receiver = DeliveryReceiver::new(self.pace, self.holder.takes_bytes());
            }
            Input::Timeout | Input::Disconnected { .. } | Input::Resumed | Input::Command(_) => {}
        }
        let mut frames = Vec::new();
        self.receiver.poll(now.monotonic, &mut frames);
        transmit(&mut self.out, frames);
    }

    fn poll_output(&mut self) -> Output<String, Infallible> {
        self.out.poll(self.receiver.deadline())
    }
}

impl<H: KeyHolder> Participant for SchemeMember<H> {
    fn key_state(&self) -> Option<KeyState> {
        self.holder.key_state()
    }

    fn captured_key(&self) -> Option<Secret<32>> {
        self.holder.captured_key()
    }
}

fn transmit(out: &mut Outbox<String, Infallible>, frames: Vec<OutgoingFrame>) {
    for OutgoingFrame { to, bytes } in frames {
        match to {
            Destination::Peer(peer) => out.send_encoded(peer, bytes),
            Destination::Group => out.send_encoded_to_group(bytes),
        }
    }
}
