//! Any group-keying scheme over the simulator's radio.
//!
//! | module | what it has |
//! |---|---|
//! | [`contract`] | what a scheme implements to take part |
//! | [`delivery`] | fragments, acknowledgements, retransmissions, for schemes that have none |
//! | [`scheme`] | machines of a controller and of members around a scheme's algebra |
//! | [`arena`] | the world of a run: radio or links, loss, energy, processor time, invariants |
//! | [`probe`](mod@probe) | an adversary that knows no scheme, and what it finds out about each |
//! | [`schemes`] | the schemes that are compared |
//!
//! The arena has one controller and its members, who all hear each other. A scheme's messages become frames of the
//! radio of [`quiver_world::radio`], whose losses, airtime and energy are those of the simulator.

pub mod arena;
pub mod contract;
pub mod delivery;
pub mod probe;
pub mod scheme;
pub mod schemes;

pub use arena::{Arena, ArenaCarrier, ArenaEvent, ArenaViolation, Outcome};
pub use contract::{
    CONTROLLER, Command, Contender, ContenderError, Facts, Fingerprint, KeyState, MemberId, Pace,
    Participant, SecretsOrigin, member_of, peer_of,
};
pub use probe::{ProbeFindings, probe};
pub use scheme::{Audience, KeyHolder, KeyScheme, Parcel, ReceivedParcel, SchemeController, SchemeMember};
