//! An event, as C reads it.

use std::ffi::{CString, c_char};
use std::ptr::null;

use quiver_edge::{Event, MessageSender, RemoteService};
use zeroize::Zeroizing;

use crate::codes::*;

/// An event. Which fields count is said beside the `QUIVER_EVENT_…` of its `kind`; all others are zero, and
/// strings empty. Everything in it is valid until `quiver_event_free`.
#[repr(C)]
#[derive(Debug)]
pub struct QuiverEvent {
    /// One of `QUIVER_EVENT_…`; an application ignores those that it does not know.
    pub kind: u32,
    /// One of `QUIVER_SERVICE_…`.
    pub service: u32,
    /// Slot of a member.
    pub slot: u32,
    /// Whether the sender has signed the message.
    pub is_signed: bool,
    /// Whether the sender is a leader.
    pub is_leader: bool,
    /// Whether the same request may succeed later.
    pub is_transient: bool,
    /// Term of the epoch: 65,536 times its round, plus the ordinal of the leader that opened it. The programs write round 3,
    /// ordinal 1 and counter 17 as `3-1.17`.
    pub term: u64,
    /// Counter of the epoch.
    pub counter: u64,
    /// D of the epoch, equal at all members.
    pub digest: [u8; 32],
    /// Name of a drone.
    pub name: *const c_char,
    /// The application's channel.
    pub channel: *const c_char,
    /// Why.
    pub reason: *const c_char,
    /// The message's content.
    pub data: *const u8,
    /// Its length.
    pub data_len: usize,
}

/// The event with what it points to. C has a pointer to its first field.
#[repr(C)]
pub(crate) struct OwnedEvent {
    event: QuiverEvent,
    name: CString,
    channel: CString,
    reason: CString,
    data: Zeroizing<Vec<u8>>,
}

impl OwnedEvent {
    pub(crate) fn of(event: Event) -> Box<Self> {
        let mut owned = Box::new(Self::empty());
        owned.fill(event);
        // Where each lies does not change any more.
        owned.event.name = owned.name.as_ptr();
        owned.event.channel = owned.channel.as_ptr();
        owned.event.reason = owned.reason.as_ptr();
        owned.event.data = owned.data.as_ptr();
        owned.event.data_len = owned.data.len();
        owned
    }

    fn empty() -> Self {
        let event = QuiverEvent {
            kind: 0,
            service: 0,
            slot: 0,
            is_signed: false,
            is_leader: false,
            is_transient: false,
            term: 0,
            counter: 0,
            digest: [0; 32],
            name: null(),
            channel: null(),
            reason: null(),
            data: null(),
            data_len: 0,
        };
        let (name, channel, reason) = (CString::default(), CString::default(), CString::default());
        Self { event, name, channel, reason, data: Zeroizing::default() }
    }

    fn fill(&mut self, event: Event) {
        let shown = &mut self.event;
        match event {
            Event::Enrolled { name } => (shown.kind, self.name) = (QUIVER_EVENT_ENROLLED, string(name)),
            Event::Connected { service } => {
                (shown.kind, shown.service) = (QUIVER_EVENT_CONNECTED, code(service));
            }
            Event::Disconnected { service } => {
                (shown.kind, shown.service) = (QUIVER_EVENT_DISCONNECTED, code(service));
            }
            Event::Epoch { term, counter, digest, slot } => {
                (shown.kind, shown.slot) = (QUIVER_EVENT_EPOCH, slot);
                (shown.term, shown.counter, shown.digest) = (term, counter, digest);
            }
            Event::Message(message) => {
                shown.kind = QUIVER_EVENT_MESSAGE;
                (self.channel, self.data) = (string(message.channel), message.data);
                match message.sender {
                    MessageSender::Signed { name, leader } => {
                        (shown.is_signed, shown.is_leader, self.name) = (true, leader, string(name));
                    }
                    MessageSender::Unauthenticated { slot } => shown.slot = slot,
                }
            }
            Event::Refused { service, reason, transient } => {
                (shown.kind, shown.service) = (QUIVER_EVENT_REFUSED, code(service));
                (shown.is_transient, self.reason) = (transient, string(reason));
            }
            Event::Left => shown.kind = QUIVER_EVENT_LEFT,
            Event::Evicted => shown.kind = QUIVER_EVENT_EVICTED,
            Event::LeaderRefused { name } => {
                (shown.kind, self.name) = (QUIVER_EVENT_LEADER_REFUSED, string(name));
            }
            // One that this interface does not know yet.
            _ => {}
        }
    }
}

/// Names and reasons contain no NUL.
fn string(text: String) -> CString {
    CString::new(text).unwrap_or_default()
}

const fn code(service: RemoteService) -> u32 {
    match service {
        RemoteService::Kgc => QUIVER_SERVICE_KGC,
        RemoteService::Leader => QUIVER_SERVICE_LEADER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_edge::ReceivedMessage;

    #[test]
    fn message_shows_its_sender_and_content() {
        let sender = MessageSender::Signed { name: "edge-1".into(), leader: false };
        let message = ReceivedMessage { channel: "chat".into(), data: b"hi".to_vec().into(), sender };
        let owned = OwnedEvent::of(Event::Message(message));
        let shown = &owned.event;
        assert_eq!((shown.kind, shown.is_signed, shown.is_leader), (QUIVER_EVENT_MESSAGE, true, false));
        assert_eq!((shown.data, shown.data_len), (owned.data.as_ptr(), 2));
        assert_eq!((shown.name, shown.channel), (owned.name.as_ptr(), owned.channel.as_ptr()));
        assert_eq!((owned.name.as_c_str(), owned.channel.as_c_str()), (c"edge-1", c"chat"));
        let unsigned = MessageSender::Unauthenticated { slot: 7 };
        let message = ReceivedMessage { channel: "chat".into(), data: Vec::new().into(), sender: unsigned };
        let owned = OwnedEvent::of(Event::Message(message));
        assert_eq!((owned.event.is_signed, owned.event.slot, owned.event.data_len), (false, 7, 0));
    }
}
