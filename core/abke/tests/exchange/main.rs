//! The exchange: what comes of it between honest sides, and that nothing comes of it otherwise.

mod honest;
mod malicious_client;
mod malicious_server;
mod points;
mod scene;
mod third_party;
