@ Montgomery multiplication modulo the prime of BLS12-381, 12 limbs of 32 bits, for ARMv7E-M (Cortex-M4 and up).
@
@ void quiver_fp_multiply(uint32_t out[12], const uint32_t a[12], const uint32_t b[12], const uint32_t p[12])
@ out = a·b·2^-384 mod p, for a, b < p. Straight through: no branch, no address that depends on a number.
@
@ Two limbs of b at a time: column j of both rows is t[j] + a[j]·b0 + a[j-1]·b1 + p[j]·m0 + p[j-1]·m1, each product with
@ its own carry. UMAAL adds two words to a product, so no carry is ever lost. After a double row t < a + p < 2^382.
@
@ r0 a    r1 p    r2 b0    r3 b1    r4 m0    r5 m1    r6, r7 carries of b0, b1    r8, r9 carries of m0, m1
@ r10 a[j-1], then a[j]    r11 p[j-1], then p[j]    r12 the column    lr -1/p mod 2^32
@ sp: t, 12 words; b; out

.macro quiver_column j
    ldr     r12, [sp, #4*\j]
    umaal   r12, r7, r10, r3
    ldr     r10, [r0, #4*\j]
    umaal   r12, r6, r10, r2
    umaal   r12, r9, r11, r5
    ldr     r11, [r1, #4*\j]
    umaal   r12, r8, r11, r4
    str     r12, [sp, #4*\j-8]
.endm

.macro quiver_double_row i
    ldr     r2, [sp, #48]
    mov     r6, #0
    mov     r7, #0
    mov     r8, #0
    mov     r9, #0
    ldrd    r2, r3, [r2, #8*\i]
    @ Column 0 gives m0, and is zero then.
    ldr     r12, [sp]
    ldr     r10, [r0]
    umaal   r12, r6, r10, r2
    mul     r4, r12, lr
    ldr     r11, [r1]
    umaal   r12, r8, r11, r4
    @ Column 1 gives m1, and is zero then.
    ldr     r12, [sp, #4]
    umaal   r12, r7, r10, r3
    ldr     r10, [r0, #4]
    umaal   r12, r6, r10, r2
    ldr     r5, [r1, #4]
    umaal   r12, r8, r5, r4
    mul     r5, r12, lr
    umaal   r12, r9, r11, r5
    ldr     r11, [r1, #4]
    .irp j, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    quiver_column \j
    .endr
    umaal   r6, r7, r10, r3
    umaal   r8, r9, r11, r5
    adds    r6, r6, r8
    adc     r7, r7, r9
    strd    r6, r7, [sp, #40]
.endm

    .syntax unified
    .section .text.quiver_fp_multiply, "ax", %progbits
    .global quiver_fp_multiply
    .type   quiver_fp_multiply, %function
    .thumb_func
    .p2align 2
quiver_fp_multiply:
    push    {r4-r11, lr}
    sub     sp, sp, #60
    str     r2, [sp, #48]
    str     r0, [sp, #52]
    mov     r0, r1
    mov     r1, r3
    @ -1/p mod 2^32 = 0xfffcfffd
    movw    lr, #0xfffd
    movt    lr, #0xfffc
    mov     r2, #0
    .irp j, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    str     r2, [sp, #4*\j]
    .endr
    quiver_double_row 0
    quiver_double_row 1
    quiver_double_row 2
    quiver_double_row 3
    quiver_double_row 4
    quiver_double_row 5
    @ out = t - p, and p again if that is negative.
    str     r1, [sp, #56]
    ldm     sp, {r2-r12, lr}
    ldr     r0, [r1]
    subs    r2, r2, r0
    .irp n, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
    ldr     r0, [r1, #4*\n-8]
    sbcs    r\n, r\n, r0
    .endr
    ldr     r0, [r1, #44]
    sbcs    lr, lr, r0
    sbc     r1, r1, r1
    ldr     r0, [sp, #52]
    stm     r0, {r2-r12, lr}
    ldr     r12, [sp, #56]
    @ The carry starts clear.
    adds    r2, r1, #0
    .irp block, 0, 1, 2
    ldm     r12!, {r2-r5}
    and     r2, r2, r1
    and     r3, r3, r1
    and     r4, r4, r1
    and     r5, r5, r1
    ldm     r0, {r6-r9}
    adcs    r6, r6, r2
    adcs    r7, r7, r3
    adcs    r8, r8, r4
    adcs    r9, r9, r5
    stm     r0!, {r6-r9}
    .endr
    add     sp, sp, #60
    pop     {r4-r11, pc}
    .size   quiver_fp_multiply, . - quiver_fp_multiply
