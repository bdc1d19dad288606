//! Strangers: libp2p nodes without an identity that connect to a service and do on its streams what they like, for tests
//! of what floods cost.
//!
//! | item | what it is |
//! |---|---|
//! | [`Stranger`] | a node that connects, again and again under new identities if it is told to |
//! | [`Act`] | what it does with a stream; [`acts`] has those of floods |
//! | [`StrangerLine`] | its source address, the bytes a second that it sends at most, and counts of what it sent |
//! | [`group_frame`] | frames of group messages, right and wrong ones, as gossipsub encodes them |
//!
//! Every failure panics: a test that cannot attack has failed.

pub mod acts;
pub mod group_frame;
mod line;
mod stranger;

pub use self::acts::{Act, act};
pub use self::line::StrangerLine;
pub use self::stranger::Stranger;

/// Protocol of streams of group messages.
pub const GROUP: &str = "/quiver/1/group";
/// Protocol of streams of messages to one node.
pub const MESSAGES: &str = "/quiver/1/request";
/// Protocol of questions for the time.
pub const CLOCK: &str = "/quiver/1/clock";
/// Protocol by which libp2p's nodes introduce themselves once more.
pub const INTRODUCTION: &str = "/ipfs/id/push/1.0.0";
