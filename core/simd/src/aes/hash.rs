//! Key schedule and hash, in vectors of one, two and four blocks.

use core::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_add_epi64, _mm_aesenc_si128, _mm_aesenclast_si128,
    _mm_aeskeygenassist_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_shuffle_epi32, _mm_slli_si128,
    _mm_unpackhi_epi64, _mm_xor_si128, _mm256_add_epi64, _mm256_aesenc_epi128, _mm256_aesenclast_epi128,
    _mm256_broadcastsi128_si256, _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_set_epi64x,
    _mm256_xor_si256, _mm512_add_epi64, _mm512_aesenc_epi128, _mm512_aesenclast_epi128,
    _mm512_broadcast_i32x4, _mm512_extracti32x4_epi32, _mm512_set_epi64, _mm512_xor_si512,
};
use core::array::from_fn;
use core::hint::black_box;

use super::{TOGETHER, Words};

/// The eleven keys of AES-128.
pub(super) type RoundKeys = [u128; 11];

/// The tweaks of consecutive blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tweaks {
    pub(super) first: u64,
    pub(super) pairs: bool,
}

impl Tweaks {
    /// Those from so many blocks on, an even number.
    pub(super) fn after(self, blocks: usize) -> Self {
        Self { first: self.first.wrapping_add(self.of(blocks)), ..self }
    }

    /// By how much a block's tweak is above the first.
    fn of(self, block: usize) -> u64 {
        (block >> u32::from(self.pairs)) as u64
    }

    /// The same as a word of a vector.
    fn word(self, block: usize) -> i64 {
        self.of(block).cast_signed()
    }
}

#[target_feature(enable = "sse2")]
#[inline]
fn load(block: impl Words) -> __m128i {
    let [low, high] = words(block);
    _mm_set_epi64x(high, low)
}

#[target_feature(enable = "sse2")]
#[inline]
fn store<W: Words>(vector: __m128i) -> W {
    let word = |vector| _mm_cvtsi128_si64(vector).cast_unsigned();
    W::from_words([word(vector), word(_mm_unpackhi_epi64(vector, vector))])
}

/// Expands a key: FIPS 197, section 5.2.
#[target_feature(enable = "aes")]
pub(super) fn expand(key: u128) -> RoundKeys {
    /// The next round's key from the last one and its highest word, substituted, rotated and with the
    /// round's constant.
    #[target_feature(enable = "aes")]
    #[inline]
    fn next(last: __m128i, word: __m128i) -> __m128i {
        // Each word is the exclusive or of all words up to it.
        let once = _mm_xor_si128(last, _mm_slli_si128::<4>(last));
        let twice = _mm_xor_si128(once, _mm_slli_si128::<8>(once));
        _mm_xor_si128(twice, _mm_shuffle_epi32::<0xff>(word))
    }
    let k0 = load(key);
    let k1 = next(k0, _mm_aeskeygenassist_si128::<0x01>(k0));
    let k2 = next(k1, _mm_aeskeygenassist_si128::<0x02>(k1));
    let k3 = next(k2, _mm_aeskeygenassist_si128::<0x04>(k2));
    let k4 = next(k3, _mm_aeskeygenassist_si128::<0x08>(k3));
    let k5 = next(k4, _mm_aeskeygenassist_si128::<0x10>(k4));
    let k6 = next(k5, _mm_aeskeygenassist_si128::<0x20>(k5));
    let k7 = next(k6, _mm_aeskeygenassist_si128::<0x40>(k6));
    let k8 = next(k7, _mm_aeskeygenassist_si128::<0x80>(k7));
    let k9 = next(k8, _mm_aeskeygenassist_si128::<0x1b>(k8));
    let k10 = next(k9, _mm_aeskeygenassist_si128::<0x36>(k9));
    [k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10].map(|key| store(key))
}

/// π(x) of one block.
#[target_feature(enable = "aes")]
pub(super) fn encrypt((keys, x): (&RoundKeys, u128)) -> u128 {
    let [k0, middle @ .., k10] = keys;
    let mut state = _mm_xor_si128(load(x), load(*k0));
    for key in middle {
        state = _mm_aesenc_si128(state, load(*key));
    }
    store(_mm_aesenclast_si128(state, load(*k10)))
}

/// The hash of all blocks that fill eight registers; gives their number.
macro_rules! hash {
    (
        $(#[$doc:meta])* $name:ident, $features:literal, $width:literal blocks in $vector:ty,
        $broadcast:expr, $load:expr, $store:expr, $offset:expr, $xor:ident, $add:ident, $round:ident, $last:ident
    ) => {
        $(#[$doc])*
        #[target_feature(enable = $features)]
        pub(super) fn $name<W: Words>((keys, blocks, tweaks): (&RoundKeys, &mut [W], Tweaks)) -> usize {
            const BLOCKS: usize = TOGETHER * $width;
            let [k0, middle @ .., k10]: [$vector; 11] = keys.map(|key: u128| $broadcast(key));
            // The compiler must not know how many rounds there are: it would unroll them, and then put one
            // register's rounds behind the other's.
            let middle: &[$vector] = black_box(&middle);
            // Eight registers side by side through the same round.
            let encrypt = |mut states: [$vector; TOGETHER]| {
                states = states.map(|state| $xor(state, k0));
                for key in middle {
                    states = states.map(|state| $round(state, *key));
                }
                states.map(|state| $last(state, k10))
            };
            let offsets: [$vector; TOGETHER] = from_fn(|register| $offset(tweaks, register * $width));
            let (chunks, _) = blocks.as_chunks_mut::<BLOCKS>();
            for (number, chunk) in chunks.iter_mut().enumerate() {
                let first = $broadcast(u128::from(tweaks.after(number * BLOCKS).first));
                let (registers, _) = chunk.as_chunks_mut::<$width>();
                let mut states = offsets;
                for (state, register) in states.iter_mut().zip(&*registers) {
                    *state = $load(register);
                }
                // π(x)
                let once = encrypt(states);
                let mut tweaked = once;
                for (state, offset) in tweaked.iter_mut().zip(&offsets) {
                    *state = $xor(*state, $add(first, *offset));
                }
                // π(π(x) ⊕ i) ⊕ π(x)
                for ((register, twice), once) in registers.iter_mut().zip(encrypt(tweaked)).zip(once) {
                    *register = $store($xor(twice, once));
                }
            }
            chunks.len() * BLOCKS
        }
    };
}

hash!(
    /// One block in a register.
    aes_ni, "aes", 1 blocks in __m128i,
    |key| load(key), |&[block]: &[W; 1]| load(block), |vector| [store(vector)],
    |tweaks: Tweaks, block| _mm_set_epi64x(0, tweaks.word(block)),
    _mm_xor_si128, _mm_add_epi64, _mm_aesenc_si128, _mm_aesenclast_si128
);
hash!(
    /// Two blocks in a register.
    vaes, "avx2,aes,vaes", 2 blocks in __m256i,
    |key| _mm256_broadcastsi128_si256(load(key)),
    |[a, b]: &[W; 2]| {
        let [[a0, a1], [b0, b1]] = [*a, *b].map(words);
        _mm256_set_epi64x(b1, b0, a1, a0)
    },
    |vector| [store(_mm256_castsi256_si128(vector)), store(_mm256_extracti128_si256::<1>(vector))],
    |tweaks: Tweaks, block| _mm256_set_epi64x(0, tweaks.word(block + 1), 0, tweaks.word(block)),
    _mm256_xor_si256, _mm256_add_epi64, _mm256_aesenc_epi128, _mm256_aesenclast_epi128
);
hash!(
    /// Four blocks in a register.
    avx512, "avx512f,avx2,aes,vaes", 4 blocks in __m512i,
    |key| _mm512_broadcast_i32x4(load(key)),
    |[a, b, c, d]: &[W; 4]| {
        let [[a0, a1], [b0, b1], [c0, c1], [d0, d1]] = [*a, *b, *c, *d].map(words);
        _mm512_set_epi64(d1, d0, c1, c0, b1, b0, a1, a0)
    },
    |vector| [
        store(_mm512_extracti32x4_epi32::<0>(vector)),
        store(_mm512_extracti32x4_epi32::<1>(vector)),
        store(_mm512_extracti32x4_epi32::<2>(vector)),
        store(_mm512_extracti32x4_epi32::<3>(vector)),
    ],
    |tweaks: Tweaks, block| {
        let [a, b, c, d] = [0, 1, 2, 3].map(|lane| tweaks.word(block + lane));
        _mm512_set_epi64(0, d, 0, c, 0, b, 0, a)
    },
    _mm512_xor_si512, _mm512_add_epi64, _mm512_aesenc_epi128, _mm512_aesenclast_epi128
);

/// The words of a block, the lowest first.
fn words(block: impl Words) -> [i64; 2] {
    block.words().map(u64::cast_signed)
}
