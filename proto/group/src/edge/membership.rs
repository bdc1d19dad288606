//! Membership of a group: its epochs, its messages, and its end.

pub(in crate::edge) mod catch_up;
pub(in crate::edge) mod early_updates;
pub(in crate::edge) mod history;
pub(in crate::edge) mod leaving;
pub(in crate::edge) mod member;
pub(in crate::edge) mod messages;
pub(in crate::edge) mod rekey;
pub(in crate::edge) mod spare_points;
