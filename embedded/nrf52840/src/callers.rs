//! Finds return addresses on a stack without unwind tables.

/// The return addresses among a stack's words, in the stack's order: those behind a call in `program`, whose
/// first halfword has the address `base`. Some may be left over from calls that have returned.
pub fn callers(stack: &[u32], program: &[u16], base: u32) -> impl Iterator<Item = u32> {
    stack.iter().filter_map(move |word| returns_to(*word, program, base))
}

/// A return address has its lowest bit set, for Thumb state, and a call before it.
fn returns_to(word: u32, program: &[u16], base: u32) -> Option<u32> {
    let place = word.checked_sub(1).filter(|place| place % 2 == 0)?;
    let index = usize::try_from(place.checked_sub(base)? / 2).ok()?;
    let halfword = |back| program.get(index.checked_sub(back)?).copied();
    // ARMv7-M Architecture Reference Manual, A7.7.18 and A7.7.19. BL: 11110xxxxxxxxxxx 11x1xxxxxxxxxxxx. BLX
    // by register: 010001111xxxx000.
    let last = halfword(1)?;
    let by_label = last & 0xD000 == 0xD000 && halfword(2)? & 0xF800 == 0xF000;
    let by_register = last & 0xFF87 == 0x4780;
    (by_label || by_register).then_some(place)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const BASE: u32 = 0x100;
    /// `bl` at 0x102, `blx r3` at 0x108, and nothing else that calls.
    const PROGRAM: [u16; 6] = [0xBF00, 0xF000, 0xF801, 0xBF00, 0x4798, 0xBF00];

    fn found(stack: &[u32]) -> Vec<u32> {
        callers(stack, &PROGRAM, BASE).collect()
    }

    #[test]
    fn places_behind_calls_are_found_in_the_order_of_the_stack() {
        assert_eq!(found(&[0x10B, 7, 0xCCCC_CCCC, 0x107, 0x2000_0001]), [0x10A, 0x106]);
    }

    #[test]
    fn everything_else_on_a_stack_is_passed_over() {
        let others = [0, 1, BASE, BASE + 1, 0x103, 0x105, 0x106, 0x109, 0x10A, 0x10D, 0x10F, u32::MAX];
        assert_eq!(found(&others), []);
    }
}
