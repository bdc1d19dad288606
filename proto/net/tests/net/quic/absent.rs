//! Refusal of QUIC, in a build without it.

use quiver_net::Transport;

use crate::toy::{hub, start};

#[tokio::test]
async fn build_without_quic_says_so() {
    for transport in [Transport::Quic, Transport::TcpAndQuic] {
        let message = start(&hub(transport, 4)).err().expect("refused").to_string();
        assert!(message.contains("no QUIC") && message.contains("`quic`"), "{message}");
    }
}
