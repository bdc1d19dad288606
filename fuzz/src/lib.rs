//! Fuzz targets for every decoder of Quiver and for `handle_input` of every role.
//!
//! A target's body is a plain function from bytes to nothing that panics if something is wrong, so that it
//! runs in two places: under libFuzzer (`fuzz/run`, nightly compiler), and in an ordinary test on seeded
//! random and mutated valid inputs (`cargo test --workspace --test bodies`, stable compiler).
//!
//! | module | what it has |
//! |---|---|
//! | [`targets`] | the list of targets: name, body, valid inputs to start from |
//! | [`mutation`] | small changes to valid inputs |
//! | [`scene`] | a deployment with tokens and keys, the same in every run |
//! | [`datagrams`] | datagrams of a group, from strangers, relays and a hostile member |
//! | [`decoders`] | messages and keys: a decoded value encodes to the same bytes |
//! | [`admission`] | certified fields, policies over them, the ledger of answers |
//! | [`attributes`] | attribute-based encryption, policies, envelopes |
//! | [`conditions`] | identity-based encryption, age files, release of identity keys |
//! | [`kem`] | the second factor: keys and ciphertexts of ML-KEM, κ at rest, messages of its exchange |
//! | [`abke`] | attribute-based key exchange: keys, credentials, and the messages of either side |
//! | [`files`] | files that the services read |
//! | [`attribute_delivery`] | attribute authorities: statements, requests, replies, and the machines of both sides |
//! | [`quorum`] | enrolment with a quorum: shares, statements, and the machines of both sides |
//! | [`quorum_member`] | the KGCs of a quorum: messages, records, and their machine |
//! | [`provisioning`] | provisioning blocks of boards |
//! | [`links`] | frames and messages between boards and gateways |
//! | [`mavlink`] | streams of frames, batches, configuration files, endpoints, system ids |
//! | [`machines`] | the roles, brought into some state and then fed with anything |

pub mod abke;
pub mod admission;
pub mod attribute_delivery;
pub mod attributes;
pub mod conditions;
pub mod datagrams;
pub mod decoders;
pub mod files;
pub mod kem;
pub mod links;
pub mod machines;
pub mod mavlink;
pub mod mutation;
pub mod provisioning;
pub mod quorum;
pub mod quorum_member;
pub mod scene;
pub mod targets;
