//! The exchange: its result between honest sides, and that no other side obtains one.

mod honest;
mod malicious_client;
mod malicious_server;
mod points;
mod scene;
mod third_party;
