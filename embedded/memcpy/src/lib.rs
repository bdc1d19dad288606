//! Copying and comparing memory on a Cortex-M4, 32 and 4 bytes at a time.
//!
//! Compilers' `memcpy` for this processor moves a word with four instructions. Following a group copies some
//! kilobytes for each new key, so an image that names this crate (`use quiver_memcpy as _`) copies with a
//! quarter of an instruction for a byte: its functions take the place of the weak ones of
//! `compiler_builtins`. On a host it is empty; the functions of a linked image are tested in emulation
//! (`embedded/emulation/tests/assembly.rs`).
//!
//! | function | from |
//! |---|---|
//! | `memcpy` | C |
//! | `__aeabi_memcpy`, `__aeabi_memcpy4`, `__aeabi_memcpy8` | Run-time ABI for the Arm Architecture, 4.3.4 |
//! | `memmove`, `__aeabi_memmove`, `__aeabi_memmove4`, `__aeabi_memmove8` | the same: `memcpy`, or a word at a time from the end |
//! | `memcmp`, `bcmp` | C; a word at a time as long as both sides are equal. Never for secrets, as ever |
#![no_std]

#[cfg(all(target_arch = "arm", target_os = "none"))]
#[expect(unsafe_code, reason = "assembly: reads and writes what memcpy may, keeps what a callee must keep")]
mod assembly {
    // r0 destination, r1 source, r2 length; r0 is returned. Loads and stores of single words need no
    // alignment on this processor, those of several do. Flags outlast loads and stores: a shift by 28 puts
    // bit 4 of the length into C and bit 3 into N, so that one shift decides over 16 and 8 bytes, the next
    // one over 4 and 2.
    core::arch::global_asm!(
        ".syntax unified",
        ".section .text.memcpy, \"ax\", %progbits",
        ".global memcpy",
        ".type memcpy, %function",
        ".global __aeabi_memcpy",
        ".type __aeabi_memcpy, %function",
        ".global __aeabi_memcpy4",
        ".type __aeabi_memcpy4, %function",
        ".global __aeabi_memcpy8",
        ".type __aeabi_memcpy8, %function",
        ".p2align 2",
        ".thumb_func",
        "memcpy:",
        ".thumb_func",
        "__aeabi_memcpy:",
        ".thumb_func",
        "__aeabi_memcpy4:",
        ".thumb_func",
        "__aeabi_memcpy8:",
        "cmp r2, #32",
        "bhs 3f",
        "mov r12, r0",
        // Fewer than 32 bytes, to r12.
        "0: lsls r3, r2, #28",
        "bcc 1f",
        "ldr r3, [r1], #4",
        "str r3, [r12], #4",
        "ldr r3, [r1], #4",
        "str r3, [r12], #4",
        "ldr r3, [r1], #4",
        "str r3, [r12], #4",
        "ldr r3, [r1], #4",
        "str r3, [r12], #4",
        "1: bpl 2f",
        "ldr r3, [r1], #4",
        "str r3, [r12], #4",
        "ldr r3, [r1], #4",
        "str r3, [r12], #4",
        "2: lsls r3, r2, #30",
        "itt cs",
        "ldrcs r3, [r1], #4",
        "strcs r3, [r12], #4",
        "itt mi",
        "ldrhmi r3, [r1], #2",
        "strhmi r3, [r12], #2",
        "lsls r3, r2, #31",
        "itt mi",
        "ldrbmi r3, [r1]",
        "strbmi r3, [r12]",
        "bx lr",
        // At least 32: several words at once where both sides are aligned.
        "3: push {{r0, r4-r9, lr}}",
        "orr r3, r0, r1",
        "lsls r3, r3, #30",
        "sub r2, r2, #32",
        "bne 5f",
        "4: ldmia r1!, {{r3-r9, r12}}",
        "stmia r0!, {{r3-r9, r12}}",
        "subs r2, r2, #32",
        "bhs 4b",
        "b 6f",
        "5: ldr r3, [r1], #4",
        "ldr r4, [r1], #4",
        "ldr r5, [r1], #4",
        "ldr r6, [r1], #4",
        "ldr r7, [r1], #4",
        "ldr r8, [r1], #4",
        "ldr r9, [r1], #4",
        "ldr r12, [r1], #4",
        "str r3, [r0], #4",
        "str r4, [r0], #4",
        "str r5, [r0], #4",
        "str r6, [r0], #4",
        "str r7, [r0], #4",
        "str r8, [r0], #4",
        "str r9, [r0], #4",
        "str r12, [r0], #4",
        "subs r2, r2, #32",
        "bhs 5b",
        "6: adds r2, r2, #32",
        "it eq",
        "popeq {{r0, r4-r9, pc}}",
        "mov r12, r0",
        "pop {{r0, r4-r9, lr}}",
        "b 0b",
        ".size memcpy, . - memcpy",
    );

    // As memcpy. Its loads come before the stores over what they load if the destination is the lower one;
    // and if the distance is at least the length, nothing overlaps.
    core::arch::global_asm!(
        ".section .text.memmove, \"ax\", %progbits",
        ".global memmove",
        ".type memmove, %function",
        ".global __aeabi_memmove",
        ".type __aeabi_memmove, %function",
        ".global __aeabi_memmove4",
        ".type __aeabi_memmove4, %function",
        ".global __aeabi_memmove8",
        ".type __aeabi_memmove8, %function",
        ".p2align 2",
        ".thumb_func",
        "memmove:",
        ".thumb_func",
        "__aeabi_memmove:",
        ".thumb_func",
        "__aeabi_memmove4:",
        ".thumb_func",
        "__aeabi_memmove8:",
        "subs r3, r0, r1",
        "cmp r3, r2",
        "bhs memcpy",
        "add r0, r0, r2",
        "add r1, r1, r2",
        "subs r2, r2, #4",
        "blo 1f",
        "0: ldr r3, [r1, #-4]!",
        "str r3, [r0, #-4]!",
        "subs r2, r2, #4",
        "bhs 0b",
        "1: adds r2, r2, #4",
        "beq 3f",
        "2: ldrb r3, [r1, #-1]!",
        "strb r3, [r0, #-1]!",
        "subs r2, r2, #1",
        "bne 2b",
        "3: bx lr",
        ".size memmove, . - memmove",
    );

    // r0 and r1 are compared, r2 is the length; what comes back has the sign of the first difference.
    core::arch::global_asm!(
        ".section .text.memcmp, \"ax\", %progbits",
        ".global memcmp",
        ".type memcmp, %function",
        ".global bcmp",
        ".type bcmp, %function",
        ".p2align 2",
        ".thumb_func",
        "memcmp:",
        ".thumb_func",
        "bcmp:",
        "subs r2, r2, #4",
        "blo 1f",
        "0: ldr r3, [r0], #4",
        "ldr r12, [r1], #4",
        "cmp r3, r12",
        "bne 3f",
        "subs r2, r2, #4",
        "bhs 0b",
        "1: adds r2, r2, #4",
        "beq 4f",
        // Fewer than four are left, or the word has the difference.
        "2: ldrb r3, [r0], #1",
        "ldrb r12, [r1], #1",
        "subs r3, r3, r12",
        "bne 5f",
        "subs r2, r2, #1",
        "bne 2b",
        "4: movs r0, #0",
        "bx lr",
        // Big-endian order compares as the bytes do: reverse the words.
        "3: rev r3, r3",
        "rev r12, r12",
        "cmp r3, r12",
        "ite hi",
        "movhi r0, #1",
        "mvnls r0, #0",
        "bx lr",
        "5: mov r0, r3",
        "bx lr",
        ".size memcmp, . - memcmp",
    );
}
