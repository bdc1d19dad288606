//! Attribute keys: the authorities beside the KGC that hand them out, and how a drone fetches its own.
//!
//! ```text
//! drone → office   AttributeHello(nonce)
//! office → drone   AttributeChallenge(nonce, cookie, fingerprints of the authorities)
//! drone → office   AttributeRequest, signed `attributes` over nonce ‖ cookie: for one authority, with a one-time point
//! office → drone   AttributeReply, sealed to the drone: its key, or that it holds it already, or that nothing is granted
//! ```
//!
//! A drone is granted one thing at each authority, a policy, a set of attributes or values of fields, as its scheme says. What is handed
//! out for one grant twice is two keys with randomness of their own, which is safe, so that nothing secret need be stored
//! for repeats; a drone that holds the key of the grant in force is told so instead. That a key was issued is durable before
//! it leaves.
//!
//! | module | what it has |
//! |---|---|
//! | [`office`] | the machine with the authorities: [`Office`] |
//! | [`centre`] | a KGC and an office as one machine for one driver: [`KeyCentre`] |
//! | [`fetcher`] | the drone's machine: [`Fetcher`] |
//! | [`maker`] | what a scheme must do for an authority: [`KeyMaker`] |
//! | [`inner`] | what question and answer say |
#![cfg_attr(feature = "abe", doc = "| [`schemes`] | the schemes of `quiver-abe` doing it |")]
#![cfg_attr(
    feature = "abke",
    doc = "| [`certifying`] | the certification of fields for `quiver-abke`, by periods |"
)]

pub mod centre;
#[cfg(feature = "abke")]
pub mod certifying;
pub mod fetcher;
mod grants;
pub mod inner;
pub mod maker;
pub mod office;
mod pace;
#[cfg(feature = "abe")]
pub mod schemes;

pub use centre::{CentreCommand, CentreEvent, CentreRecord, KeyCentre};
pub use fetcher::{FetchCommand, FetchEvent, FetchTiming, Fetcher, FetcherConfig, Held};
pub use grants::Grant;
pub use inner::{Answer, Question};
pub use maker::{Granted, KeyMaker, MakeError};
pub use office::{Authority, KeyIssued, Office, OfficeCommand, OfficeConfig, OfficeError, OfficeEvent};

/// The kind that the KGC's statements about authorities have whose keys open envelopes.
pub const KIND: &str = "abe";
/// The kind of those that certify fields for attribute-based key exchange.
pub const CERTIFYING_KIND: &str = "abke";

/// Whether an office may have an authority of this kind.
fn is_kind(kind: &quiver_ainq::Name) -> bool {
    matches!(kind.as_str(), KIND | CERTIFYING_KIND)
}
