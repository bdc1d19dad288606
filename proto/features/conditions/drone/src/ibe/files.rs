//! Sources and destinations of bytes: files, or standard input and output.

use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use quiver_age::Error as AgeError;
use quiver_service::drone::atomic_file::AtomicFile;
use quiver_service::{Error as ServiceError, private_file, terminal};

use crate::{Error, Result};

/// Stands for standard input or output.
const STREAM: &str = "-";
const INPUT: &str = "standard input";
const OUTPUT: &str = "standard output";

/// A file or standard input, to be read.
pub(super) struct NamedReader {
    pub(super) reader: Box<dyn Read + Send>,
    /// Name of the source in errors.
    pub(super) name: String,
}

impl NamedReader {
    /// The file of this name, or standard input.
    pub(super) fn open(path: Option<PathBuf>) -> Result<Self> {
        let Some(path) = path.filter(|path| path != Path::new(STREAM)) else {
            return Ok(Self { reader: Box::new(io::stdin()), name: INPUT.into() });
        };
        let file = private_file::open_input(&path)?;
        Ok(Self { reader: Box::new(file), name: path.display().to_string() })
    }
}

/// A file or standard output, to be written.
pub(super) struct OutputTarget {
    kind: OutputDestination,
    /// Name of the destination in errors.
    pub(super) name: String,
}

enum OutputDestination {
    File(AtomicFile),
    Stream(io::Stdout),
}

impl OutputTarget {
    /// A new file of this name, or standard output. A terminal only gets what was asked for to be there.
    pub(super) fn new(path: Option<PathBuf>) -> Result<Self> {
        let asked = path.is_some();
        let Some(path) = path.filter(|path| path != Path::new(STREAM)) else {
            if !asked && io::stdout().is_terminal() {
                return Err(Error::Terminal);
            }
            return Ok(Self { kind: OutputDestination::Stream(io::stdout()), name: OUTPUT.into() });
        };
        Ok(Self { name: path.display().to_string(), kind: OutputDestination::File(AtomicFile::new(&path)?) })
    }

    /// The temporary file, to be written.
    pub(super) fn writer(&mut self) -> &mut dyn Write {
        match &mut self.kind {
            OutputDestination::File(file) => file.file.as_file_mut(),
            OutputDestination::Stream(stream) => stream,
        }
    }

    /// Gives the file its name. Returns what to tell, which is nothing if the content itself went to standard
    /// output.
    pub(super) fn finish(self, told: impl FnOnce(&str) -> String) -> Result<Option<String>> {
        match self.kind {
            OutputDestination::File(file) => {
                file.finish()?;
                Ok(Some(told(&self.name)))
            }
            OutputDestination::Stream(mut stream) => {
                stream.flush().map_err(|error| terminal::unprinted(&error))?;
                Ok(None)
            }
        }
    }
}

/// Says of which file an error is.
pub(super) fn blame(error: AgeError, input: &str, output: &str) -> Error {
    match error {
        AgeError::Read(source) => ServiceError::io("read", Path::new(input), source).into(),
        AgeError::Write(source) if output == OUTPUT => terminal::unprinted(&source).into(),
        AgeError::Write(source) => ServiceError::io("write", Path::new(output), source).into(),
        error => Error::AgeFile { file: input.into(), error },
    }
}
