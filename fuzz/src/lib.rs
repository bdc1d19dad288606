//! Fuzz targets for every decoder of Quiver and for `handle_input` of every role.
//!
//! A target's body is a plain function from bytes to nothing that panics if something is wrong, so that it runs in two
//! places: under libFuzzer (`fuzz/run`, nightly compiler), and in an ordinary test on seeded random and mutated valid
//! inputs (`cargo test --manifest-path fuzz/Cargo.toml`, stable compiler).
//!
//! | module | what it has |
//! |---|---|
//! | [`targets`] | the list of targets: name, body, valid inputs to start from |
//! | [`mutation`] | small changes to valid inputs |
//! | [`scene`] | a deployment with tokens and keys, the same in every run |
//! | [`decoders`] | what decodes must encode to what was decoded |
//! | [`admission`] | certified fields, policies over them, the count of answers |
//! | [`attributes`] | attribute-based schemes: what decodes has one encoding and opens nothing it must not |
//! | [`age_files`] | age files to conditions: recipients, identities, files |
//! | [`conditions`] | identity-based encryption: conditions, shares, keys, ciphertexts |
//! | [`exchanges`] | attribute-based key exchange: keys, credentials, and the messages of either side |
//! | [`files`] | what the services read from disk |
//! | [`policies`] | the policy language, and encoded policies, attributes and schemas |
//! | [`offices`] | attribute authorities: what they say, and their machines |
//! | [`quorum`] | enrolment with a quorum: shares, statements, and the machines of both sides |
//! | [`releases`] | release of identity keys: what is said, and the machines |
//! | [`members`] | the KGCs of a quorum: what they say to one another, what they store, and their machine |
//! | [`boards`] | what a board is set up with |
//! | [`links`] | what boards and their gateways say to each other |
//! | [`machines`] | the roles, taken to some state and then fed with anything |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod admission;
pub mod age_files;
pub mod attributes;
pub mod boards;
pub mod conditions;
pub mod decoders;
pub mod envelopes;
pub mod exchanges;
pub mod files;
pub mod links;
pub mod machines;
pub mod members;
pub mod mutation;
pub mod offices;
pub mod policies;
pub mod quorum;
pub mod releases;
pub mod scene;
pub mod targets;
