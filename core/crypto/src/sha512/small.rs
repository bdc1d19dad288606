//! SHA-512 by `hmac-sha512`: little code, and more time for each block.

pub(super) type State = hmac_sha512::Hash;

pub(super) fn new() -> State {
    State::new()
}

pub(super) fn update(state: &mut State, bytes: &[u8]) {
    state.update(bytes);
}

pub(super) fn finish(state: State) -> [u8; 64] {
    state.finalize()
}
