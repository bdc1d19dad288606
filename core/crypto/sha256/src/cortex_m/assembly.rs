//! Assembly for Thumb-2 with its DSP extension: erasure, and the compression function of FIPS 180-4, 6.2.2.
//!
//! | FIPS 180-4 | here |
//! |---|---|
//! | a … h | r4 … r11, which change their roles from round to round |
//! | W, 6.2.2 step 1 | 64 words on the stack, made before the rounds, erased after the last block |
//! | Σ1(e) = ROTR6 ⊕ ROTR11 ⊕ ROTR25 (4.5) | ROTR6(e ⊕ ROTR5(e) ⊕ ROTR19(e)), whose last rotation is part of an addition |
//! | Σ0(a) = ROTR2 ⊕ ROTR13 ⊕ ROTR22 (4.4) | ROTR2(a ⊕ ROTR11(a) ⊕ ROTR20(a)) |
//! | Ch(e, f, g) (4.2) | (e ∧ f) + (¬e ∧ g), which have no bit in common |
//! | Maj(a, b, c) (4.3) | ((a ⊕ b) ∧ (b ⊕ c)) ⊕ b; what is a ⊕ b in this round is b ⊕ c in the next |
//!
//! | two additions to one word | `UMAAL` with a factor of 1: the sum is its lower word; the carries, its upper one, are not used |
//!
//! Sixteen or seventeen instructions for a round and nine or ten for a word of W; no branch and no address depends on
//! the hashed data.

use crate::padded::{BLOCK, HashState};

// SAFETY: of these types, see below.
unsafe extern "C" {
    pub(super) fn quiver_sha256_compress(state: &mut HashState, blocks: *const [u8; BLOCK], count: usize);
    pub(super) fn quiver_erase(bytes: *mut u8, len: usize);
}

// r0 state, r1 blocks, r2 their number. On the stack: W (256 bytes), r0, r1, r2, and the callee-saved
// registers.
core::arch::global_asm!(
    ".syntax unified",
    ".section .text.quiver_sha256_compress, \"ax\", %progbits",
    ".p2align 2",
    // Adds to w, which has W[t-16] + W[t-7], the rest of W[t]: sigma0(W[t-15]) and sigma1(W[t-2]). r11 is 1.
    ".macro quiver_sha256_word w, x15, x2",
    "ror r9, \\x2, #17",
    "eor r9, r9, \\x2, ror #19",
    "eor r9, r9, \\x2, lsr #10",
    "ror r10, \\x15, #7",
    "eor r10, r10, \\x15, ror #18",
    "eor r10, r10, \\x15, lsr #3",
    "umaal \\w, r9, r10, r11",
    ".endm",
    // W[t] to W[t+3] in r5 to r8, which have the four words before. r0: the address of W[t-15]; r4: W[t-16],
    // then W[t-12].
    ".macro quiver_sha256_words",
    "ldrd r5, r6, [r0, #32]",
    "add r5, r5, r4",
    "ldmia r0!, {{r1-r4}}",
    "quiver_sha256_word r5, r1, r7",
    "add r6, r6, r1",
    "quiver_sha256_word r6, r2, r8",
    "strd r5, r6, [r0, #44]",
    "ldrd r7, r8, [r0, #24]",
    "add r7, r7, r2",
    "quiver_sha256_word r7, r3, r5",
    "add r8, r8, r3",
    "quiver_sha256_word r8, r4, r6",
    "strd r7, r8, [r0, #52]",
    ".endm",
    // The rest of a round after the sums with K and W. h becomes a, d becomes e; bc is b ⊕ c, ab will be a ⊕
    // b.
    ".macro quiver_sha256_sums a, b, d, e, h, ab, bc",
    "eor r2, \\e, \\e, ror #5",
    "eor r2, r2, \\e, ror #19",
    "add \\h, \\h, r2, ror #6",
    "add \\d, \\d, \\h",
    "eor r2, \\a, \\a, ror #11",
    "eor r2, r2, \\a, ror #20",
    "add \\h, \\h, r2, ror #2",
    "eor \\ab, \\a, \\b",
    "and \\bc, \\bc, \\ab",
    "eor \\bc, \\bc, \\b",
    "add \\h, \\h, \\bc",
    ".endm",
    ".macro quiver_sha256_choice e, f, g, h",
    "and r2, \\e, \\f",
    "bic r3, \\g, \\e",
    "umaal \\h, r2, r3, r0",
    ".endm",
    // Two rounds. sp: W, r1: K, r0 is 1. The g of the first is the h of the second: it gets its W and K once
    // Ch has used it.
    ".macro quiver_sha256_rounds a, b, c, d, e, f, g, h",
    "quiver_sha256_choice \\e, \\f, \\g, \\h",
    "pop {{r2, r3}}",
    "ldr r12, [r1], #4",
    "umaal \\h, r2, r12, r0",
    "ldr r12, [r1], #4",
    "umaal \\g, r3, r12, r0",
    "quiver_sha256_sums \\a, \\b, \\d, \\e, \\h, r12, lr",
    "quiver_sha256_choice \\d, \\e, \\f, \\g",
    "quiver_sha256_sums \\h, \\a, \\c, \\d, \\g, lr, r12",
    ".endm",
    ".global quiver_sha256_compress",
    ".type quiver_sha256_compress, %function",
    ".thumb_func",
    "quiver_sha256_compress:",
    "push {{r0-r2, r4-r11, lr}}",
    // The block's words.
    "1: ldr r1, [sp, #4]",
    "sub sp, sp, #256",
    "mov r0, sp",
    "add r12, sp, #64",
    "2: ldr r3, [r1, #4]",
    "ldr r4, [r1, #8]",
    "ldr r5, [r1, #12]",
    "ldr r2, [r1], #16",
    "rev r2, r2",
    "rev r3, r3",
    "rev r4, r4",
    "rev r5, r5",
    "stmia r0!, {{r2-r5}}",
    "cmp r0, r12",
    "bne 2b",
    "str r1, [sp, #260]",
    // 6.2.2, step 1: W[14] and W[15] are in r4 and r5 still.
    "mov r7, r4",
    "mov r8, r5",
    "mov r0, sp",
    "ldr r4, [r0], #4",
    "mov r11, #1",
    "add r12, sp, #196",
    "3: quiver_sha256_words",
    "quiver_sha256_words",
    "cmp r0, r12",
    "bne 3b",
    // Steps 2 and 3. They take W off the stack, so that interrupts may overwrite what was used of it; at their
    // end sp is where it was before W.
    "ldr r0, [sp, #256]",
    "ldmia r0, {{r4-r11}}",
    "movs r0, #1",
    "adr r1, 5f",
    "eor lr, r5, r6",
    "4: quiver_sha256_rounds r4, r5, r6, r7, r8, r9, r10, r11",
    "quiver_sha256_rounds r10, r11, r4, r5, r6, r7, r8, r9",
    "quiver_sha256_rounds r8, r9, r10, r11, r4, r5, r6, r7",
    "quiver_sha256_rounds r6, r7, r8, r9, r10, r11, r4, r5",
    "adr r2, 6f",
    "cmp r1, r2",
    "bne 4b",
    // Step 4.
    "ldr r0, [sp]",
    "ldmia r0, {{r1-r3, r12}}",
    "add r4, r4, r1",
    "add r5, r5, r2",
    "add r6, r6, r3",
    "add r7, r7, r12",
    "stmia r0!, {{r4-r7}}",
    "ldmia r0, {{r1-r3, r12}}",
    "add r8, r8, r1",
    "add r9, r9, r2",
    "add r10, r10, r3",
    "add r11, r11, r12",
    "stmia r0, {{r8-r11}}",
    "ldr r2, [sp, #8]",
    "subs r2, r2, #1",
    "str r2, [sp, #8]",
    "bne 1b",
    // W may be a key's.
    "movs r0, #0",
    "movs r1, #0",
    "movs r2, #0",
    "movs r3, #0",
    "movs r4, #0",
    "movs r5, #0",
    "movs r6, #0",
    "movs r7, #0",
    "push {{r0-r7}}",
    "push {{r0-r7}}",
    "push {{r0-r7}}",
    "push {{r0-r7}}",
    "push {{r0-r7}}",
    "push {{r0-r7}}",
    "push {{r0-r7}}",
    "push {{r0-r7}}",
    "add sp, sp, #256",
    "pop {{r0-r2, r4-r11, pc}}",
    // 4.2.2
    ".p2align 2",
    "5:",
    ".word 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5",
    ".word 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174",
    ".word 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da",
    ".word 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967",
    ".word 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85",
    ".word 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070",
    ".word 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3",
    ".word 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2",
    "6:",
    ".size quiver_sha256_compress, . - quiver_sha256_compress",
    ".purgem quiver_sha256_words",
    ".purgem quiver_sha256_word",
    ".purgem quiver_sha256_sums",
    ".purgem quiver_sha256_choice",
    ".purgem quiver_sha256_rounds",
);

// r0 where, r1 how many bytes. Stores of single words need no alignment on this processor.
core::arch::global_asm!(
    ".section .text.quiver_erase, \"ax\", %progbits",
    ".global quiver_erase",
    ".type quiver_erase, %function",
    ".p2align 2",
    ".thumb_func",
    "quiver_erase:",
    "movs r2, #0",
    "subs r1, r1, #16",
    "blo 1f",
    "0: str r2, [r0], #4",
    "str r2, [r0], #4",
    "str r2, [r0], #4",
    "str r2, [r0], #4",
    "subs r1, r1, #16",
    "bhs 0b",
    "1: adds r1, r1, #16",
    "beq 3f",
    "2: strb r2, [r0], #1",
    "subs r1, r1, #1",
    "bne 2b",
    "3: bx lr",
    ".size quiver_erase, . - quiver_erase",
);
