//! Attribute keys and certified fields: the deliveries of the authorities beside the KGC, and how a drone
//! fetches its own (docs/protocol.md §4.2).
//!
//! A drone has one grant at each authority: a policy, a set of attributes or values of fields, as its scheme
//! has it. Two deliveries for one grant are two keys with randomness of their own, which is safe, so that
//! nothing secret need be stored for repeats; a drone that holds the key of the grant in force gets no other.
//! That a key was issued is durable before it leaves.
//!
//! | module | what it has |
//! |---|---|
//! | [`fetcher`] | the drone's client: [`Fetcher`] |
//! | [`key_maker`] | what a scheme must do for an authority: [`KeyMaker`] |
//! | [`keyring`] | what a drone holds: [`Keyring`] |
//! | [`query`] | query and response: [`KeyQuery`], [`KeyResponse`] |
//! | [`issuer`] | the KGC's side: [`AttributeIssuer`] |
//!
//! A build for drones alone has no issuer.

pub mod fetcher;
#[cfg(feature = "services")]
pub mod issuer;
pub mod key_maker;
pub mod keyring;
pub mod query;

pub use fetcher::{FetchCommand, FetchEvent, FetchTiming, Fetcher, HeldAuthority};
#[cfg(feature = "services")]
pub use issuer::{
    AttributeIssuer, AttributeServer, Grant, IssuerCommand, IssuerConfig, IssuerError, IssuerEvent,
    IssuingAuthority, KeyIssued,
};
pub use key_maker::{Granted, KeyMaker, MakeError};
pub use keyring::{HeldKey, Keyring, KeyringEntry};
pub use query::{KeyQuery, KeyResponse};

/// Kind, in the KGC's statements, of authorities whose keys open envelopes.
pub const KIND: &str = "abe";
/// Kind of authorities that certify fields for attribute-based key exchange.
pub const CERTIFYING_KIND: &str = "abke";

/// Returns true if an issuer may have an authority of this kind.
fn is_kind(kind: &quiver_ainq::Name) -> bool {
    matches!(kind.as_str(), KIND | CERTIFYING_KIND)
}
