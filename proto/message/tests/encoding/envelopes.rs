//! Messages with envelopes.

use quiver_envelope::{Envelope, EnvelopeMessage, MAX_ENVELOPE_LEN, OpeningRequest};
use quiver_message::{Message, MessageError};

use super::{Fixture, NumberedReader, S, decode};

pub(super) fn reader() -> NumberedReader {
    super::reader::<EnvelopeMessage>()
}

/// Envelopes, and requests for their opening.
pub(super) fn messages() -> Vec<(&'static str, EnvelopeMessage)> {
    vec![
        ("Envelope", Envelope { sealed: vec![8; 70] }.into()),
        ("OpeningRequest", OpeningRequest { session: [9; 32] }.into()),
    ]
}

#[test]
fn an_envelope_longer_than_messages_may_carry_is_refused() {
    let f = Fixture::new();
    let envelope = |len| {
        let message = EnvelopeMessage::from(Envelope { sealed: vec![8; len] });
        Message::<S>::from(message).encode(&f.deployment)
    };
    assert!(decode(&f.deployment, &envelope(MAX_ENVELOPE_LEN)).is_ok());
    for len in [0, MAX_ENVELOPE_LEN + 1] {
        let error = decode(&f.deployment, &envelope(len)).unwrap_err();
        assert_eq!(error, MessageError::Invalid("sealed"));
    }
}
