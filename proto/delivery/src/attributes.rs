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
//! | [`fetcher`] | the drone's machine: [`Fetcher`] |
//! | [`keyring`] | what a drone holds: [`Keyring`] |
//! | [`inner`] | what question and answer say |
#![cfg_attr(feature = "services", doc = "| [`office`] | the machine with the authorities: [`Office`] |")]
#![cfg_attr(
    feature = "services",
    doc = "| [`centre`] | a KGC and an office as one machine for one driver: [`KeyCentre`] |"
)]
#![cfg_attr(
    feature = "services",
    doc = "| [`maker`] | what a scheme must do for an authority: [`KeyMaker`] |"
)]
#![cfg_attr(
    all(feature = "abe", feature = "services"),
    doc = "| [`schemes`] | the schemes of `quiver-abe` doing it |"
)]
#![cfg_attr(
    feature = "abke",
    doc = "| [`certifying`] | the certification of fields for `quiver-abke`, by periods |"
)]

#[cfg(feature = "services")]
pub mod centre;
#[cfg(feature = "abke")]
pub mod certifying;
pub mod fetcher;
#[cfg(feature = "services")]
mod grants;
pub mod inner;
pub mod keyring;
#[cfg(feature = "services")]
pub mod maker;
#[cfg(feature = "services")]
pub mod office;
#[cfg(feature = "services")]
mod pace;
#[cfg(all(feature = "abe", feature = "services"))]
pub mod schemes;

#[cfg(feature = "services")]
pub use centre::{CentreCommand, CentreEvent, CentreRecord, KeyCentre};
pub use fetcher::{FetchCommand, FetchEvent, FetchTiming, Fetcher, FetcherConfig, Held};
#[cfg(feature = "services")]
pub use grants::Grant;
pub use inner::{Answer, Question};
pub use keyring::{Entry, HeldKey, Keyring};
#[cfg(feature = "services")]
pub use maker::{Granted, KeyMaker, MakeError};
#[cfg(feature = "services")]
pub use office::{Authority, KeyIssued, Office, OfficeCommand, OfficeConfig, OfficeError, OfficeEvent};

/// The kind that the KGC's statements about authorities have whose keys open envelopes.
pub const KIND: &str = "abe";
/// The kind of those that certify fields for attribute-based key exchange.
pub const CERTIFYING_KIND: &str = "abke";

/// Whether an office may have an authority of this kind.
fn is_kind(kind: &quiver_ainq::Name) -> bool {
    matches!(kind.as_str(), KIND | CERTIFYING_KIND)
}
