//! AES-128 and the compression function of SHA-256 as circuits: built, written and read as Bristol Fashion,
//! evaluated in the clear and garbled, and compared with published answers.

use quiver_garble::bristol::BristolCircuit;
use quiver_garble::{
    Bit, Builder, Circuit, Evaluator, Garbler, GarblingProgram, GarblingScheme, HalfGates, Label, PrivacyFree,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

type Byte = [Bit; 8];
type Word = [Bit; 32];

// ---- AES-128 (FIPS 197). Bit 0 of a byte is its lowest.

fn xor<const N: usize>(to: &mut Builder, a: [Bit; N], b: [Bit; N]) -> [Bit; N] {
    std::array::from_fn(|at| to.xor(a[at], b[at]))
}

/// Reduces modulo x⁸ + x⁴ + x³ + x + 1.
fn reduced(to: &mut Builder, mut product: [Bit; 15]) -> Byte {
    for at in (8..15).rev() {
        for tap in [8, 7, 5, 4] {
            product[at - tap] = to.xor(product[at - tap], product[at]);
        }
    }
    std::array::from_fn(|at| product[at])
}

fn times(to: &mut Builder, a: Byte, b: Byte) -> Byte {
    let mut product = [Bit::FALSE; 15];
    for (i, &a) in a.iter().enumerate() {
        for (j, &b) in b.iter().enumerate() {
            let bit = to.and(a, b);
            product[i + j] = to.xor(product[i + j], bit);
        }
    }
    reduced(to, product)
}

fn squared(to: &mut Builder, a: Byte, times: u32) -> Byte {
    (0..times).fold(a, |a, _| {
        let mut square = [Bit::FALSE; 15];
        for (at, &bit) in a.iter().enumerate() {
            square[2 * at] = bit;
        }
        reduced(to, square)
    })
}

/// x²⁵⁴ = x⁻¹ by four multiplications (Itoh, Tsujii), then the affine map.
fn substituted(to: &mut Builder, x: Byte) -> Byte {
    let x2 = squared(to, x, 1);
    let x3 = times(to, x, x2);
    let x12 = squared(to, x3, 2);
    let x15 = times(to, x12, x3);
    let x240 = squared(to, x15, 4);
    let x252 = times(to, x240, x12);
    let inverse = times(to, x252, x2);
    std::array::from_fn(|at| {
        let bit = (4..8).fold(inverse[at], |sum, by| to.xor(sum, inverse[(at + by) % 8]));
        if 0x63_u8 >> at & 1 == 1 { !bit } else { bit }
    })
}

fn doubled(to: &mut Builder, a: Byte) -> Byte {
    let mut product = [Bit::FALSE; 15];
    product[1..9].copy_from_slice(&a);
    reduced(to, product)
}

fn mixed(to: &mut Builder, column: [Byte; 4]) -> [Byte; 4] {
    std::array::from_fn(|row| {
        let [a, b, c, d] = std::array::from_fn(|at| column[(row + at) % 4]);
        let both = xor(to, a, b);
        let twice = doubled(to, both);
        [b, c, d].into_iter().fold(twice, |sum, byte| xor(to, sum, byte))
    })
}

fn next_round_key(to: &mut Builder, key: &[Byte; 16], constant: u8) -> [Byte; 16] {
    let mut next = *key;
    for row in 0..4 {
        let turned = substituted(to, key[12 + (row + 1) % 4]);
        next[row] = xor(to, next[row], turned);
    }
    let constant: Byte = std::array::from_fn(|at| Bit::constant(constant >> at & 1 == 1));
    next[0] = xor(to, next[0], constant);
    for at in 4..16 {
        next[at] = xor(to, next[at], next[at - 4]);
    }
    next
}

/// Inputs: 128 bits of key, then 128 of plaintext.
fn aes() -> Circuit {
    let mut builder = Builder::new(256).unwrap();
    let to = &mut builder;
    let bytes = |to: &Builder, from: usize| -> [Byte; 16] {
        std::array::from_fn(|byte| std::array::from_fn(|bit| to.input(from + 8 * byte + bit)))
    };
    let (mut key, mut state) = (bytes(to, 0), bytes(to, 128));
    let mut constant = 1_u8;
    for round in 0..=10 {
        state = std::array::from_fn(|at| xor(to, state[at], key[at]));
        if round == 10 {
            break;
        }
        let replaced: [Byte; 16] = std::array::from_fn(|at| substituted(to, state[at]));
        // Row r of column c comes from column c + r.
        state = std::array::from_fn(|at| replaced[(at + 4 * (at % 4)) % 16]);
        if round < 9 {
            for column in state.as_chunks_mut::<4>().0 {
                *column = mixed(to, *column);
            }
        }
        key = next_round_key(to, &key, constant);
        constant = constant << 1 ^ if constant & 0x80 != 0 { 0x1b } else { 0 };
    }
    builder.finish(&state.concat()).unwrap()
}

// ---- SHA-256 (FIPS 180-4). Bit 0 of a word is its lowest.

fn sum(to: &mut Builder, a: Word, b: Word) -> Word {
    let mut carry = Bit::FALSE;
    std::array::from_fn(|at| {
        let (a_carry, b_carry) = (to.xor(a[at], carry), to.xor(b[at], carry));
        let sum = to.xor(a_carry, b[at]);
        let both = to.and(a_carry, b_carry);
        carry = to.xor(both, carry);
        sum
    })
}

fn rotated(word: Word, by: usize) -> Word {
    std::array::from_fn(|at| word[(at + by) % 32])
}

fn shifted(word: Word, by: usize) -> Word {
    std::array::from_fn(|at| word.get(at + by).copied().unwrap_or(Bit::FALSE))
}

fn constant(word: u32) -> Word {
    std::array::from_fn(|at| Bit::constant(word >> at & 1 == 1))
}

fn xor3(to: &mut Builder, a: Word, b: Word, c: Word) -> Word {
    let first = xor(to, a, b);
    xor(to, first, c)
}

/// The first 32 bits of the fractional part of the `root`-th root of the n-th prime.
fn fractions(count: usize, root: u32) -> Vec<u32> {
    let primes = (2_u128..).filter(|&n| (2..n).take_while(|d| d * d <= n).all(|d| n % d != 0));
    let below = |prime: u128, guess: u128| guess.pow(root) <= prime << (32 * root);
    let first = |prime: u128| {
        let (mut low, mut high) = (0_u128, 1 << 40);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if below(prime, middle) { low = middle } else { high = middle }
        }
        low as u32
    };
    primes.take(count).map(first).collect()
}

/// A block of 512 bits, as 16 words, from the initial state.
fn sha256() -> Circuit {
    let mut builder = Builder::new(512).unwrap();
    let to = &mut builder;
    let mut w: Vec<Word> = (0..16).map(|word| std::array::from_fn(|bit| to.input(32 * word + bit))).collect();
    for t in 16..64 {
        let s0 = xor3(to, rotated(w[t - 15], 7), rotated(w[t - 15], 18), shifted(w[t - 15], 3));
        let s1 = xor3(to, rotated(w[t - 2], 17), rotated(w[t - 2], 19), shifted(w[t - 2], 10));
        let word = [w[t - 7], s0, s1].into_iter().fold(w[t - 16], |all, part| sum(to, all, part));
        w.push(word);
    }
    let initial: Vec<Word> = fractions(8, 2).into_iter().map(constant).collect();
    let mut state: [Word; 8] = initial.clone().try_into().unwrap();
    for (word, k) in w.into_iter().zip(fractions(64, 3)) {
        let [a, b, c, d, e, f, g, h] = state;
        let s1 = xor3(to, rotated(e, 6), rotated(e, 11), rotated(e, 25));
        let choice: Word = std::array::from_fn(|at| to.choose(e[at], f[at], g[at]));
        let t1 = [s1, choice, constant(k), word].into_iter().fold(h, |all, part| sum(to, all, part));
        let s0 = xor3(to, rotated(a, 2), rotated(a, 13), rotated(a, 22));
        let majority: Word = std::array::from_fn(|at| {
            let differ = to.xor(a[at], b[at]);
            to.choose(differ, c[at], a[at])
        });
        let t2 = sum(to, s0, majority);
        state = [sum(to, t1, t2), a, b, c, sum(to, d, t1), e, f, g];
    }
    let out: Vec<Word> = state.into_iter().zip(initial).map(|(now, first)| sum(to, now, first)).collect();
    builder.finish(&out.concat()).unwrap()
}

// ---- Answers.

fn bits_of_bytes(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).map(move |at| byte >> at & 1 == 1)).collect()
}

fn bytes_of_bits(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8)
        .map(|bits| bits.iter().enumerate().fold(0, |sum, (at, &bit)| sum | u8::from(bit) << at))
        .collect()
}

fn bits_of_words(words: impl IntoIterator<Item = u32>) -> Vec<bool> {
    words.into_iter().flat_map(|word| (0..32).map(move |at| word >> at & 1 == 1)).collect()
}

/// Reads the circuit back from a file, so that writing and reading are part of every answer.
fn through_a_file(circuit: Circuit, inputs: &[usize], outputs: &[usize]) -> Circuit {
    let file = BristolCircuit { circuit, inputs: inputs.into(), outputs: outputs.into() };
    BristolCircuit::parse(&file.to_text()).unwrap().circuit
}

fn garbled<S: GarblingScheme>(circuit: &Circuit, inputs: &[bool]) -> Vec<bool> {
    let program = GarblingProgram::new(circuit);
    let mut garbler = Garbler::<S>::new(&program, &[1; 16], &mut ChaCha20Rng::from_seed([6; 32]));
    let labels: Vec<Label> =
        inputs.iter().enumerate().map(|(at, &bit)| garbler.input(at).unwrap().of(bit)).collect();
    let one = garbler.one();
    let mut tables = Vec::new();
    garbler.garble(program.steps(), |table| tables.push(table)).unwrap();
    let mut evaluator = Evaluator::<S>::new(&program, &[1; 16], one, &labels).unwrap();
    evaluator.evaluate(program.steps(), &mut tables.into_iter()).unwrap();
    let decode = |&operand| garbler.output(operand).unwrap().decode(evaluator.output(operand).unwrap());
    program.outputs().iter().map(|operand| decode(operand).unwrap()).collect()
}

fn answer(circuit: &Circuit, inputs: &[bool]) -> Vec<bool> {
    let clear = circuit.evaluate(inputs).unwrap();
    assert_eq!(garbled::<PrivacyFree>(circuit, inputs), clear);
    assert_eq!(garbled::<HalfGates>(circuit, inputs), clear);
    clear
}

#[test]
fn aes_128_encrypts_as_in_fips_197() {
    let circuit = through_a_file(aes(), &[128, 128], &[128]);
    for (key, plain, wanted) in [
        // Appendix B, and appendix C.1.
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "3243f6a8885a308d313198a2e0370734",
            "3925841d02dc09fbdc118597196a0b32",
        ),
        (
            "000102030405060708090a0b0c0d0e0f",
            "00112233445566778899aabbccddeeff",
            "69c4e0d86a7b0430d8cdb78070b4c55a",
        ),
    ] {
        let inputs = bits_of_bytes(&hex::decode([key, plain].concat()).unwrap());
        assert_eq!(hex::encode(bytes_of_bits(&answer(&circuit, &inputs))), wanted);
    }
}

#[test]
fn sha_256_hashes_abc_and_nothing_as_in_fips_180() {
    let circuit = through_a_file(sha256(), &[512], &[256]);
    for (text, wanted) in [
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ] {
        let mut block = [0; 64];
        block[..text.len()].copy_from_slice(text.as_bytes());
        block[text.len()] = 0x80;
        block[63] = 8 * text.len() as u8;
        let words = block.as_chunks::<4>().0.iter().map(|&word| u32::from_be_bytes(word));
        let digest = answer(&circuit, &bits_of_words(words));
        let bytes = bytes_of_bits(&digest);
        let big_endian: Vec<u8> = bytes.chunks(4).flat_map(|word| word.iter().rev().copied()).collect();
        assert_eq!(hex::encode(big_endian), wanted);
    }
}
