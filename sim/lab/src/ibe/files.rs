//! age files that are sealed to a condition.

use quiver_age::{Format, Identity, Recipient, SealedFile, encrypt};
use quiver_ibe::{Condition, MasterPublicKey};

use crate::Result;

/// The condition that everything is encrypted to.
pub(super) fn condition() -> Result<Condition> {
    Ok("mission/alpha/phase-2".parse::<Condition>()?)
}

/// Makes a file, with nothing kept from one file to the next.
pub(super) fn seal(master: &MasterPublicKey, plaintext: &[u8]) -> Result<Vec<u8>> {
    seal_to(&Recipient::new(*master, condition()?), plaintext)
}

/// Makes a file to a recipient whose point and pairing are precomputed.
pub(super) fn seal_to(recipient: &Recipient, plaintext: &[u8]) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    encrypt(std::slice::from_ref(recipient), Format::Binary, plaintext, &mut file)?;
    Ok(file)
}

/// Opens a file.
pub(super) fn open(file: &[u8], identity: &Identity) -> Result<Vec<u8>> {
    let mut plaintext = Vec::new();
    SealedFile::read(file)?.open(identity)?.copy_to(&mut plaintext)?;
    Ok(plaintext)
}
