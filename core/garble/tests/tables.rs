//! The garbler sends the same on every processor, whatever `QUIVER_SIMD` says.

use quiver_garble::{Circuit, Garbler, GarblingProgram, GarblingScheme, Gate, HalfGates, PrivacyFree};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;
use sha2::{Digest as _, Sha256};

/// SHA-256 of all ciphertexts of a circuit of 9,000 ANDs, which take three keys and batches of many sizes.
fn digest<S: GarblingScheme>() -> String {
    let mut gates = Vec::new();
    for at in 0_u32..9000 {
        let wires = 20 + gates.len() as u32;
        let window = wires.min(2 + at % 300);
        gates.push(Gate::And(wires - 1 - at % window, wires - 1 - at * 7 % window));
        gates.push(Gate::Xor(wires, wires - window));
        gates.push(Gate::Not(wires + 1));
    }
    let outputs = (20..20 + gates.len() as u32).collect();
    let program = GarblingProgram::new(&Circuit::new(20, gates, outputs).unwrap());
    assert_eq!(program.ands(), 9000);
    let mut garbler = Garbler::<S>::new(&program, &[3; 16], &mut ChaCha20Rng::from_seed([4; 32]));
    let mut hash = Sha256::new();
    garbler.garble(program.steps(), |table| hash.update(table)).unwrap();
    hex::encode(hash.finalize())
}

/// The digests were made by the first implementation, one gate at a time.
#[test]
fn ciphertexts_are_those_of_the_first_implementation() {
    assert_eq!(digest::<PrivacyFree>(), "f8b7211538b00ac5b7a23fc46aa8c7866b580b0dedf25bf4744591c3d495cd30");
    assert_eq!(digest::<HalfGates>(), "e3fa78249ec90230cad5fc31e5daab8d5614804df1c628b624e5894819f87aee");
}
