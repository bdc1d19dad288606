//! SHA-512 by `sha2`: every round written out.

use sha2::Digest as _;

pub(super) type State = sha2::Sha512;

pub(super) fn new() -> State {
    State::new()
}

pub(super) fn update(state: &mut State, bytes: &[u8]) {
    state.update(bytes);
}

pub(super) fn finish(state: State) -> [u8; 64] {
    state.finalize().into()
}
