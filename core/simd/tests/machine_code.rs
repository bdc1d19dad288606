//! The machine code of the ladders keeps what the source promises about time.
//!
//! The source has no branch on a secret, but a compiler may make one, and a next one may where this one did
//! not. So these tests disassemble the ladders out of their own executable. They need `objdump` of the GNU
//! binutils, and say so if there is none.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::io::Write;
use std::process::Command;

const IFMA: &str = "quiver_simd::x25519::ifma::ladder::ladder";
const AVX2: &str = "quiver_simd::x25519::avx2::ladder::ladder";

/// A line of a disassembly.
struct Instruction {
    address: u64,
    mnemonic: String,
    operands: String,
}

impl Instruction {
    /// Parses a line such as `3f3c4: jne 3d920 <symbol+0x110>`, with a tab behind the colon and blanks before
    /// the operands.
    fn parse(line: &str) -> Option<Self> {
        let (address, mut text) = line.trim_start().split_once(":\t")?;
        // A `nop` that aligns a loop is made longer by prefixes.
        while let Some(rest) = ["data16 ", "cs "].iter().find_map(|prefix| text.strip_prefix(prefix)) {
            text = rest;
        }
        let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
        Some(Self {
            address: u64::from_str_radix(address, 16).ok()?,
            mnemonic: mnemonic.trim().to_owned(),
            operands: operands.trim().to_owned(),
        })
    }

    fn copy(&self) -> Self {
        Self { address: self.address, mnemonic: self.mnemonic.clone(), operands: self.operands.clone() }
    }

    fn is_conditional_jump(&self) -> bool {
        self.mnemonic.starts_with('j') && self.mnemonic != "jmp"
    }

    /// Returns true if an address is made with a second register, such as `(%rdx,%rcx,1)`.
    fn is_indexed(&self) -> bool {
        self.operands.contains(",%r")
            && self.operands.split_once('(').is_some_and(|(_, inside)| {
                inside.split_once(')').is_some_and(|(address, _)| address.contains(','))
            })
            && !self.mnemonic.starts_with("nop")
    }

    fn line(&self) -> String {
        format!("{:x}: {} {}", self.address, self.mnemonic, self.operands)
    }
}

fn objdump(arguments: &[&str]) -> Option<String> {
    let executable = std::env::current_exe().unwrap();
    let output = Command::new("objdump").args(arguments).arg(executable).output().ok()?;
    assert!(output.status.success(), "objdump {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The machine code of a ladder in this executable; `None` without objdump.
fn disassembly(ladder: &str) -> Option<Vec<Instruction>> {
    let symbols = objdump(&["--syms", "--demangle"])?;
    let symbol =
        symbols.lines().find(|line| line.contains(ladder)).expect("the ladder is a function of its own");
    // `address flags section` tab `size name`
    let (left, right) = symbol.split_once('\t').unwrap();
    let hexadecimal = |text: &str| u64::from_str_radix(text.split_whitespace().next().unwrap(), 16).unwrap();
    let (start, size) = (hexadecimal(left), hexadecimal(right));
    let (start, stop) = (format!("--start-address={start}"), format!("--stop-address={}", start + size));
    let text = objdump(&["--disassemble", "--no-show-raw-insn", "--wide", &start, &stop])?;
    Some(text.lines().filter_map(Instruction::parse).collect())
}

/// Lines of a disassembly that are chosen.
fn lines(code: &[Instruction], chosen: impl Fn(&Instruction) -> bool) -> Vec<String> {
    code.iter().filter(|instruction| chosen(instruction)).map(Instruction::line).collect()
}

/// The machine code of a ladder after checks that are the same for all; `None` without objdump.
fn checked(ladder: &str, callees: &[&str]) -> Option<Vec<Instruction>> {
    // Makes the linker keep the ladders.
    assert_eq!(quiver_simd::x25519::multiply(&[1; 32], &[[0; 32]])[0], [0; 32]);
    let Some(code) = disassembly(ladder) else {
        // Not through `eprintln!`, which the harness would keep to itself.
        let message = b"\nNOT TESTED: there is no objdump; nobody looked at the machine code of the ladder\n";
        std::io::stderr().write_all(message).unwrap();
        return None;
    };
    // The one conditional jump is the loop's: back, and decided by a counter that is compared with a
    // constant.
    let jumps = lines(&code, Instruction::is_conditional_jump);
    assert_eq!(jumps.len(), 1, "{jumps:#?}");
    let jump = code.iter().position(Instruction::is_conditional_jump).unwrap();
    let target = code[jump].operands.split_whitespace().next().unwrap();
    assert!(u64::from_str_radix(target, 16).unwrap() < code[jump].address, "{jumps:?}");
    // No load or store changes the flags between the comparison and the jump.
    let compare =
        code[..jump].iter().rev().find(|instruction| !instruction.mnemonic.starts_with("vmov")).unwrap();
    assert_eq!((&*compare.mnemonic, &compare.operands[..1]), ("cmp", "$"), "{}", compare.line());
    // No branch leaves the function, and no instruction whose time depends on its operands is in it.
    let others = lines(&code, |instruction| {
        ["call", "jmp", "div", "idiv", "rep", "vpgather", "vpscatter", "vdiv", "vsqrt"]
            .iter()
            .any(|name| instruction.mnemonic.starts_with(name))
            && !callees.iter().any(|callee| instruction.operands.contains(callee))
    });
    assert_eq!(others, [""; 0]);
    // The one address that is computed is that of the step's swap, by the same counter.
    let indexed = lines(&code, Instruction::is_indexed);
    assert!(indexed.len() == 1 && indexed[0].contains("movzbl"), "{indexed:#?}");
    Some(code)
}

#[test]
fn the_ladder_on_avx512_jumps_calls_and_addresses_by_nothing_secret() {
    let Some(code) = checked(IFMA, &[]) else { return };
    // The whole step is in the loop: five products, four squares, a small multiple, eleven carries.
    let multiplications = lines(&code, |instruction| instruction.mnemonic.starts_with("vpmadd52"));
    assert!(multiplications.len() >= 5 * 50 + 4 * 30, "{} multiplications", multiplications.len());
    // And the swap decides by masks.
    assert!(!lines(&code, |instruction| instruction.operands.contains("{%k")).is_empty());
}

#[test]
fn the_ladder_on_avx2_jumps_calls_and_addresses_by_nothing_secret() {
    // Bytes are read and products may be made out of line; the copy is of a length that is known.
    let Some(mut code) = checked(AVX2, &["limbs7product", "memcpy"]) else { return };
    if code.iter().any(|instruction| instruction.operands.contains("limbs7product")) {
        let product = disassembly("quiver_simd::x25519::avx2::limbs::product").unwrap();
        assert_eq!(lines(&product, |line| line.mnemonic.starts_with(['j', 'c'])), [""; 0]);
        (0..5).for_each(|_| code.extend(product.iter().map(Instruction::copy)));
    }
    // The whole step is in the loop: five products, four squares, a small multiple, ten carries.
    let multiplications = lines(&code, |instruction| instruction.mnemonic.starts_with("vfmadd"));
    assert!(multiplications.len() >= 5 * 50 + 4 * 30 + 10, "{} multiplications", multiplications.len());
    // And the swap decides by masks: ten vectors in a step, ten behind the last.
    let blends = lines(&code, |instruction| instruction.mnemonic.starts_with("vblendv"));
    assert!(blends.len() >= 20, "{blends:#?}");
}
