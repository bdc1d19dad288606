//! Envelopes as files. A file that is not whole and verified never has the name that was asked for.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use quiver_abe::envelope::io::IoError;
use quiver_abe::envelope::{
    self, AnyParameters, AnyScheme, EnvelopeError, EnvelopeHeader, EnvelopeTarget, Lifetime, Opening,
    ReceivingSession, SendingSession, Signer,
};
use quiver_ainq::{Ristretto255, UnixTime};
use quiver_envelope::{Author, DroneSigner, DroneVerifier};
use quiver_service::drone::atomic_file::AtomicFile;
use quiver_service::keyring::KeyringEntry;
use quiver_service::{Error as ServiceError, clock, private_file};
use rand::rngs::OsRng;

use crate::authority::KnownAuthority;
use crate::{Error, Result};

/// An envelope that was opened.
pub(crate) struct OpenedFile {
    pub(crate) bytes: u64,
    pub(crate) created: UnixTime,
    pub(crate) author: Option<Author>,
}

/// Seals a file into a new one. Returns how many bytes were sealed.
pub(crate) fn seal(
    input: &Path,
    output: &Path,
    (parameters, target): (&AnyParameters, &EnvelopeTarget),
    signer: Option<DroneSigner<'_, Ristretto255>>,
) -> Result<u64> {
    let from = read(input)?;
    let mut to = AtomicFile::new(output)?;
    let signer = signer.as_ref().map(|signer| signer as &dyn Signer);
    let now = clock::unix_now();
    let begun = SendingSession::begin::<AnyScheme>(
        parameters,
        target,
        None,
        signer,
        Lifetime::SINGLE,
        now,
        &mut OsRng,
    );
    let message = begun.and_then(|mut session| session.message(now));
    let message = message.map_err(|error| Error::envelope(input, error))?;
    let sealed = envelope::io::seal(message, from, to.file.as_file_mut(), signer, &mut OsRng);
    let bytes = sealed.map_err(|error| blame(error, input, output))?;
    to.finish()?;
    Ok(bytes)
}

/// Opens an envelope into a new file, with whichever key fits.
pub(crate) fn open(
    input: &Path,
    output: &Path,
    entries: &[&KeyringEntry<Ristretto255>],
    verifier: &DroneVerifier<'_, Ristretto255>,
) -> Result<OpenedFile> {
    let mut from = read(input)?;
    let header = envelope::io::read_header(&mut from).map_err(|error| blame(error, input, output))?;
    let EnvelopeHeader::Opening(opening) = &header else {
        return Err(Error::NotAlone(input.into()));
    };
    let session = open_key(input, entries, opening)?;
    let opener = session.opener(&header).map_err(|error| Error::envelope(input, error))?;
    let mut to = AtomicFile::new(output)?;
    let mut counted = Counted { to: to.file.as_file_mut(), bytes: 0 };
    let author = envelope::io::open(opener, from, &mut counted, verifier)
        .map_err(|error| blame(error, input, output))?;
    let bytes = counted.bytes;
    to.finish()?;
    Ok(OpenedFile { bytes, created: opening.created(), author })
}

fn open_key(
    input: &Path,
    entries: &[&KeyringEntry<Ristretto255>],
    opening: &Opening,
) -> Result<ReceivingSession> {
    let named = envelope::named_authority(opening.ciphertext());
    for entry in entries.iter().filter(|entry| entry.authority.scheme.as_str() == opening.scheme()) {
        let known = KnownAuthority::new(entry)?;
        if named.as_ref() != Some(known.parameters.authority().as_bytes()) {
            continue;
        }
        let Some(key) = known.key(entry)? else { continue };
        match ReceivingSession::open::<AnyScheme>(&known.parameters, &key, opening) {
            Ok(session) => return Ok(session),
            Err(EnvelopeError::NotSatisfied) => {}
            Err(error) => return Err(Error::envelope(input, error)),
        }
    }
    Err(Error::NotSatisfied)
}

fn read(path: &Path) -> Result<BufReader<impl Read>> {
    Ok(BufReader::new(private_file::open_input(path)?))
}

fn blame(error: IoError, input: &Path, output: &Path) -> Error {
    match error {
        IoError::Read(source) => ServiceError::io("read", input, source).into(),
        IoError::Write(source) => ServiceError::io("write", output, source).into(),
        IoError::Envelope(error) => Error::envelope(input, error),
        other => std::io::Error::other(other).into(),
    }
}

/// Counts what is written.
struct Counted<'a> {
    to: &'a mut File,
    bytes: u64,
}

impl std::io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}
