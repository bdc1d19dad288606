//! The header of a state file: in clear, so that a foreign file can be named before any passphrase is asked
//! for.
//!
//! ```text
//! header = "QUIVERST" ‖ version u16 ‖ lp(role) ‖ lp(deployment) ‖ fingerprint 32 B ‖ seal ‖ file id 16 B
//! seal   = 0 | 1 ‖ memory u32 (KiB) ‖ passes u32 ‖ lanes u32 ‖ salt 16 B
//! ```
//! followed by its SHA-256 (damage is told from a wrong passphrase) and a key check (a wrong passphrase is
//! told from damage). All integers big-endian, lp(x) is x after its length as u32.

use std::path::Path;

use quiver_crypto::canonical::{Malformed, Reader, Writer};
use quiver_crypto::{Digest, Hasher, Secret, prf};

use super::Owner;
use crate::secrets::Stretching;
use crate::{Error, Result};

pub(crate) const MAGIC: &[u8; 8] = b"QUIVERST";
const VERSION: u16 = 1;
/// Domain of every derivation here.
pub(super) const DOMAIN: &str = "quiver/1 state file";
const NAME_LIMIT: usize = 256;

/// Source of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// A key file.
    Key,
    /// A passphrase.
    Passphrase(Stretching),
}

/// The header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateFileHeader {
    pub(super) owner: Owner,
    pub(super) seal: Seal,
    pub(super) file_id: [u8; 16],
}

impl StateFileHeader {
    fn body(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.fixed(MAGIC).u16(VERSION).lp(self.owner.role.as_bytes()).lp(self.owner.deployment.as_bytes());
        writer.fixed(&self.owner.fingerprint);
        match &self.seal {
            Seal::Key => writer.u8(0),
            Seal::Passphrase(s) => writer.u8(1).u32(s.memory).u32(s.passes).u32(s.lanes).fixed(&s.salt),
        };
        writer.fixed(&self.file_id);
        writer.finish()
    }

    /// The header's hash; part of every frame's associated data.
    pub(super) fn digest(&self) -> Digest {
        Hasher::new(DOMAIN).lp(&self.body()).finish()
    }

    /// The key of this one file: PRF(K, "file", file id).
    pub(super) fn file_key(&self, root: &Secret<32>) -> Secret<32> {
        prf(root, DOMAIN, "file", &[&self.file_id])
    }

    /// Shows that a key is the right one without opening anything.
    pub(super) fn key_check(&self, root: &Secret<32>) -> [u8; 32] {
        *prf(&self.file_key(root), DOMAIN, "check", &[&self.digest()]).expose()
    }

    /// The header with its hash and key check.
    pub(super) fn encode(&self, root: &Secret<32>) -> Vec<u8> {
        let mut bytes = self.body();
        bytes.extend_from_slice(&self.digest());
        bytes.extend_from_slice(&self.key_check(root));
        bytes
    }

    /// Reads the header; also returns where the frames start and the key check.
    pub(super) fn decode(path: &Path, bytes: &[u8]) -> Result<(Self, usize, [u8; 32])> {
        if bytes.is_empty() {
            return Err(Error::Corrupt { path: path.into(), offset: 0, what: "the file is empty" });
        }
        let not_ours = || Error::NotAStateFile { path: path.into() };
        let mut reader = Reader::new(bytes);
        if reader.array::<8>().map_err(|_| not_ours())? != *MAGIC {
            return Err(not_ours());
        }
        let corrupt = |_| Error::Corrupt { path: path.into(), offset: 0, what: "the header does not decode" };
        let version = reader.u16().map_err(corrupt)?;
        if version > VERSION {
            return Err(Error::NewerFormat { path: path.into(), version });
        }
        let header = Self::decode_fields(&mut reader).map_err(corrupt)?;
        let digest: Digest = reader.array().map_err(corrupt)?;
        let check = reader.array().map_err(corrupt)?;
        if version != VERSION || digest != header.digest() {
            return Err(Error::Corrupt {
                path: path.into(),
                offset: 0,
                what: "the header's hash does not fit",
            });
        }
        let start = header.body().len() + 64;
        Ok((header, start, check))
    }

    fn decode_fields(reader: &mut Reader<'_>) -> std::result::Result<Self, Malformed> {
        let role = String::from_utf8_lossy(reader.lp(NAME_LIMIT)?).into_owned();
        let deployment = String::from_utf8_lossy(reader.lp(NAME_LIMIT)?).into_owned();
        let fingerprint = reader.array()?;
        let seal = match reader.u8()? {
            0 => Seal::Key,
            1 => {
                let (memory, passes, lanes) = (reader.u32()?, reader.u32()?, reader.u32()?);
                let stretching = Stretching { memory, passes, lanes, salt: reader.array()? };
                if !stretching.within_reason() {
                    return Err(Malformed("stretching beyond reason"));
                }
                Seal::Passphrase(stretching)
            }
            _ => return Err(Malformed("seal")),
        };
        let file_id = reader.array()?;
        Ok(Self { owner: Owner { role, deployment, fingerprint }, seal, file_id })
    }
}
