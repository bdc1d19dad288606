//! The list of targets.

use quiver_ainq::{Bls12381G1, Ristretto255};

use crate::attributes::{abe, envelopes, policies};
use crate::conditions::{age_files, ibe, share_release};
use crate::{
    abke, admission, attribute_delivery, datagrams, decoders, files, kem, links, machines, mavlink,
    provisioning, quorum, quorum_member,
};

/// Target to feed with bytes.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// Name of the target, and of its corpus folder.
    pub name: &'static str,
    /// Feeds it. Panics if it finds something wrong.
    pub body: fn(&[u8]),
    /// Valid inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

macro_rules! targets {
    ($($name:literal: $body:expr, $seeds:expr;)*) => {
        &[$(FuzzTarget { name: $name, body: $body, seeds: $seeds }),*]
    };
}

/// All targets.
pub const TARGETS: &[FuzzTarget] = targets! {
    "message_ristretto255": decoders::message::<Ristretto255>, machines::message_seeds;
    "message_bls12381": decoders::message::<Bls12381G1>, decoders::bls_message_seeds;
    "identity": decoders::identity, decoders::seeds::identity;
    "token": decoders::token, decoders::seeds::token;
    "drone_public_key": decoders::drone_public_key, decoders::seeds::drone_public_key;
    "signature": decoders::signature, decoders::seeds::signature;
    "partial_key": decoders::partial_key, decoders::seeds::partial_key;
    "enrolment_request": decoders::enrolment_request, decoders::seeds::enrolment_request;
    "sealed_reply": decoders::sealed_reply, decoders::seeds::sealed_reply;
    "sealed_share": quorum::sealed_share, quorum::sealed_share_seeds;
    "quorum_statement": quorum::quorum_statement, quorum::statement_seeds;
    "quorum_input": quorum::quorum_input, quorum::input_seeds;
    "pending_enrolment": decoders::pending_enrolment, decoders::seeds::pending_enrolment;
    "revocation_list": decoders::revocation_list, decoders::seeds::revocation_list;
    "header": decoders::header, decoders::seeds::header;
    "entry": decoders::entry, decoders::seeds::entry;
    "delta": decoders::tree::delta, decoders::tree::delta_seeds;
    "path_message": decoders::tree::path_message, decoders::tree::path_message_seeds;
    "slot_set": decoders::slot_set, decoders::seeds::slot_set;
    "spare": decoders::spare, decoders::seeds::spare;
    "ratchet": decoders::ratchet, decoders::seeds::ratchet;
    "encapsulation_key": kem::encapsulation_key, kem::encapsulation_key_seeds;
    "kem_ciphertext": kem::kem_ciphertext, kem::kem_ciphertext_seeds;
    "kem_key": kem::kem_key, kem::kem_key_seeds;
    "kem_message": kem::kem_message, kem::kem_message_seeds;
    "group_element": decoders::group::group_element, decoders::group::group_element_seeds;
    "membership": decoders::membership, decoders::seeds::membership;
    "policy_text": policies::policy_text, policies::policy_text_seeds;
    "attribute_list": policies::attribute_list, policies::attribute_list_seeds;
    "access_tree": policies::access_tree, policies::access_tree_seeds;
    "attribute_set": policies::attribute_set, policies::attribute_set_seeds;
    "attribute_schema": policies::attribute_schema, policies::attribute_schema_seeds;
    "attribute": policies::attribute, policies::attribute_seeds;
    "edge_snapshot": machines::edge_snapshot, machines::edge_snapshot_seeds;
    "leader_records": machines::leader_records, machines::leader_record_seeds;
    "deployment_file": files::deployment_file, files::deployment_file_seeds;
    "token_file": files::token_file, files::token_file_seeds;
    "state_file": files::state_file, files::state_file_seeds;
    "kgc_input": machines::kgc_input, machines::script_seeds;
    "leader_input": machines::leader_input, machines::script_seeds;
    "deputy_input": machines::deputy_input, machines::script_seeds;
    "replica_chunk": decoders::deputies::replica_chunk, decoders::deputies::replica_chunk_seeds;
    "edge_input": machines::edge_input, machines::script_seeds;
    "authority_statement": attribute_delivery::authority_statement, attribute_delivery::authority_statement_seeds;
    "delivery_request": attribute_delivery::delivery_request, attribute_delivery::delivery_request_seeds;
    "sealed_delivery": attribute_delivery::sealed_delivery, attribute_delivery::sealed_delivery_seeds;
    "attribute_payload": attribute_delivery::attribute_payload, attribute_delivery::attribute_payload_seeds;
    "certificate": admission::certificate, admission::certificate_seeds;
    "admission_policy": admission::policy, admission::policy_seeds;
    "admission_ledger": admission::ledger, admission::ledger_seeds;
    "keyring": attribute_delivery::keyring, attribute_delivery::keyring_seeds;
    "attribute_delivery_input": attribute_delivery::attribute_delivery_input, attribute_delivery::attribute_delivery_input_seeds;
    "release_payload": share_release::payload, share_release::payload_seeds;
    "release_input": share_release::input, share_release::input_seeds;
    "abe_parameters": abe::parameters, abe::parameters_seeds;
    "abe_master_key": abe::master_key, abe::master_key_seeds;
    "abe_key": abe::key, abe::key_seeds;
    "abe_ciphertext": abe::ciphertext, abe::ciphertext_seeds;
    "ibe_condition": ibe::condition, ibe::condition_seeds;
    "ibe_ciphertext": ibe::ciphertext, ibe::ciphertext_seeds;
    "ibe_key_share": ibe::key_share, ibe::key_share_seeds;
    "ibe_public_shares": ibe::public_shares, ibe::public_shares_seeds;
    "ibe_master_share": ibe::master_share, ibe::master_share_seeds;
    "abke_authority_key": abke::authority_key, abke::authority_key_seeds;
    "abke_credential": abke::credential, abke::credential_seeds;
    "abke_hello": abke::hello, abke::hello_seeds;
    "abke_offer": abke::offer, abke::offer_seeds;
    "abke_tables": abke::tables, abke::tables_seeds;
    "abke_message": abke::message, abke::message_seeds;
    "age_key": age_files::age_key, age_files::age_key_seeds;
    "age_file": age_files::age_file, age_files::age_file_seeds;
    "provisioning": provisioning::provisioning, provisioning::provisioning_seeds;
    "link_line": links::line, links::line_seeds;
    "link_message": links::message, links::message_seeds;
    "link_endpoints": links::endpoints, links::endpoint_seeds;
    "link_coded_broadcast": links::coded_broadcast, links::coded_broadcast_seeds;
    "mavlink_stream": mavlink::stream, mavlink::stream_seeds;
    "mavlink_batch": mavlink::batch, mavlink::batch_seeds;
    "mavlink_config": mavlink::config, mavlink::config_seeds;
    "mavlink_endpoint": mavlink::endpoint, mavlink::endpoint_seeds;
    "mavlink_system_ids": mavlink::system_ids, mavlink::system_id_seeds;
    "member_message": quorum_member::message, quorum_member::message_seeds;
    "member_records": quorum_member::records, quorum_member::record_seeds;
    "member_input": quorum_member::input, quorum_member::input_seeds;
    "envelope_header": envelopes::header, envelopes::envelope_seeds;
    "datagram_input": datagrams::input, datagrams::input_seeds;
    "datagram_member_input": datagrams::member, datagrams::member_seeds;
    "abe_envelope": envelopes::envelope, envelopes::envelope_seeds;
};
