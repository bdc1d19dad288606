//! Filters of the frames that an endpoint lets in and out, by mavlink-router's lists.

use alloc::collections::BTreeSet;

use crate::frame::Frame;

/// An allow list and a block list; without either everything passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Numbers that pass; if any, nothing else passes.
    pub allow: Option<BTreeSet<u32>>,
    /// Numbers that do not pass.
    pub block: BTreeSet<u32>,
}

impl List {
    /// Returns true if the number passes.
    #[must_use]
    pub fn passes(&self, number: u32) -> bool {
        self.allow.as_ref().is_none_or(|allow| allow.contains(&number)) && !self.block.contains(&number)
    }
}

/// Filter of one direction: each list has to let a frame pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Message ids.
    pub messages: List,
    /// System ids of senders.
    pub systems: List,
    /// Component ids of senders.
    pub components: List,
}

impl Filter {
    /// Returns true if the frame passes.
    #[must_use]
    pub fn passes(&self, frame: Frame<'_>) -> bool {
        self.messages.passes(frame.message_id())
            && self.systems.passes(frame.system_id())
            && self.components.passes(frame.component_id().into())
    }
}

/// Filters of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Filter of the frames that are taken from the endpoint.
    pub incoming: Filter,
    /// Filter of the frames that are sent to the endpoint.
    pub outgoing: Filter,
}
