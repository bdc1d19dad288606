//! Writes the valid inputs of targets into corpus folders: `seeds FOLDER [TARGET ...]`.

use std::path::PathBuf;
use std::{env, fs, io};

use quiver_fuzz::targets::TARGETS;

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let corpus = PathBuf::from(arguments.next().unwrap_or_else(|| "corpus".into()));
    let wanted: Vec<String> = arguments.collect();
    for target in
        TARGETS.iter().filter(|target| wanted.is_empty() || wanted.iter().any(|name| name == target.name))
    {
        let folder = corpus.join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
