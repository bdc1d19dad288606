//! The machine code of the ladder keeps what the source promises about time.
//!
//! The source has no branch on a secret, but a compiler may make one, and a next one may where this one did
//! not. So this test disassembles the ladder out of its own executable. It needs `objdump` of the GNU
//! binutils, and says so if there is none.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::io::Write;
use std::process::Command;

const LADDER: &str = "quiver_simd::x25519::ifma::ladder::ladder";

/// One line of a disassembly.
struct Instruction {
    address: u64,
    mnemonic: String,
    operands: String,
}

impl Instruction {
    /// As in `3f3c4: jne 3d920 <symbol+0x110>`, with a tab behind the colon and blanks before the operands.
    fn parse(line: &str) -> Option<Self> {
        let (address, text) = line.trim_start().split_once(":\t")?;
        let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
        Some(Self {
            address: u64::from_str_radix(address, 16).ok()?,
            mnemonic: mnemonic.trim().to_owned(),
            operands: operands.trim().to_owned(),
        })
    }

    fn is_conditional_jump(&self) -> bool {
        self.mnemonic.starts_with('j') && self.mnemonic != "jmp"
    }

    /// Whether an address is made with a second register, such as `(%rdx,%rcx,1)`.
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

/// The machine code of the ladder in this executable; `None` without objdump.
fn disassembly() -> Option<Vec<Instruction>> {
    let symbols = objdump(&["--syms", "--demangle"])?;
    let symbol =
        symbols.lines().find(|line| line.contains(LADDER)).expect("the ladder is a function of its own");
    // `address flags section` tab `size name`
    let (left, right) = symbol.split_once('\t').unwrap();
    let hexadecimal = |text: &str| u64::from_str_radix(text.split_whitespace().next().unwrap(), 16).unwrap();
    let (start, size) = (hexadecimal(left), hexadecimal(right));
    let (start, stop) = (format!("--start-address={start}"), format!("--stop-address={}", start + size));
    let text = objdump(&["--disassemble", "--no-show-raw-insn", "--wide", &start, &stop])?;
    Some(text.lines().filter_map(Instruction::parse).collect())
}

#[test]
fn the_ladder_jumps_calls_and_addresses_by_nothing_secret() {
    // Makes the linker keep the ladder.
    assert_eq!(quiver_simd::x25519::multiply(&[1; 32], &[[0; 32]])[0], [0; 32]);
    let Some(code) = disassembly() else {
        // Not through `eprintln!`, which the harness would keep to itself.
        let message = b"\nNOT TESTED: there is no objdump; nobody looked at the machine code of the ladder\n";
        return std::io::stderr().write_all(message).unwrap();
    };
    let lines = |chosen: &dyn Fn(&Instruction) -> bool| -> Vec<String> {
        code.iter().filter(|instruction| chosen(instruction)).map(Instruction::line).collect()
    };
    // The whole step is in the loop: five products, four squares, a small multiple, eleven carries.
    let multiplications = lines(&|instruction| instruction.mnemonic.starts_with("vpmadd52"));
    assert!(multiplications.len() >= 5 * 50 + 4 * 30, "{} multiplications", multiplications.len());
    // The one conditional jump is the loop's: back, and decided by a counter that is compared with a
    // constant.
    let jumps = lines(&Instruction::is_conditional_jump);
    assert_eq!(jumps.len(), 1, "{jumps:#?}");
    let jump = code.iter().position(Instruction::is_conditional_jump).unwrap();
    let target = code[jump].operands.split_whitespace().next().unwrap();
    assert!(u64::from_str_radix(target, 16).unwrap() < code[jump].address, "{jumps:?}");
    let compare = &code[jump - 1];
    assert_eq!((&*compare.mnemonic, &compare.operands[..1]), ("cmp", "$"), "{}", compare.line());
    // No branch leaves the function, and no instruction whose time depends on its operands is in it.
    let others = lines(&|instruction| {
        ["call", "jmp", "div", "idiv", "rep", "vpgather", "vpscatter"]
            .iter()
            .any(|name| instruction.mnemonic.starts_with(name))
    });
    assert_eq!(others, [""; 0]);
    // The one address that is computed is that of the step's swap, by the same counter.
    let indexed = lines(&Instruction::is_indexed);
    assert!(indexed.len() == 1 && indexed[0].contains("movzbl"), "{indexed:#?}");
    // And the swap decides by masks.
    assert!(!lines(&|instruction| instruction.operands.contains("{%k")).is_empty());
}
