//! `quiver-uf2 IMAGE FILE.uf2`: converts an image (ELF) into a UF2 file, and prints its summary.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use quiver_uf2::{BLOCK_LEN, FAMILY, Image, blocks};

fn main() -> ExitCode {
    let args: Vec<_> = env::args_os().skip(1).collect();
    let [image, file] = args.as_slice() else {
        return fail("usage: quiver-uf2 IMAGE FILE.uf2");
    };
    match convert(Path::new(image), Path::new(file)) {
        Ok(said) => match writeln!(io::stdout(), "{said}") {
            Err(why) if why.kind() != io::ErrorKind::BrokenPipe => {
                fail(&format!("cannot print the result: {why}"))
            }
            _ => ExitCode::SUCCESS,
        },
        Err(why) => fail(&why),
    }
}

fn convert(image: &Path, file: &Path) -> Result<String, String> {
    let elf = fs::read(image).map_err(|why| format!("{}: {why}", image.display()))?;
    let found = Image::from_elf(&elf).map_err(|why| format!("{}: {why}", image.display()))?;
    let bytes = blocks(&found);
    fs::write(file, &bytes).map_err(|why| format!("{}: {why}", file.display()))?;
    let (count, start, end) = (bytes.len() / BLOCK_LEN, found.start(), found.end());
    Ok(format!("{}: {count} blocks, {start:#x} to {end:#x}, family {FAMILY:#010X}", file.display()))
}

fn fail(why: &str) -> ExitCode {
    #[expect(clippy::print_stderr, reason = "a command's complaint")]
    {
        eprintln!("quiver-uf2: {why}");
    }
    ExitCode::FAILURE
}
