//! The garbled circuit, sent and read in chunks.

use alloc::vec::Vec;

use quiver_crypto::{Digest, Hasher};
use quiver_garble::label::LABEL_LEN;
use quiver_garble::{Garbler, PrivacyFree};

use super::PolicyCircuit;
use super::session::tables_hash;
use crate::Error;

/// Tables of a piece.
pub(crate) const PIECE: usize = 4096;
/// Bytes of a piece.
pub(crate) const PIECE_LEN: usize = PIECE * LABEL_LEN;

/// A garbler on its way through a circuit.
pub(crate) struct TableGarbler {
    garbler: Garbler<PrivacyFree>,
    position: usize,
    made: usize,
    hash: Hasher,
}

impl TableGarbler {
    pub(crate) fn new(garbler: Garbler<PrivacyFree>) -> Self {
        Self { garbler, position: 0, made: 0, hash: tables_hash() }
    }

    /// The next piece. None when all were given.
    pub(crate) fn next(&mut self, policy: &PolicyCircuit) -> Result<Option<Vec<u8>>, Error> {
        if self.made >= policy.tables_len() {
            return Ok(None);
        }
        let (steps, position) = policy.steps(self.position, PIECE);
        let left = policy.tables_len().saturating_sub(self.made);
        let mut piece = Vec::with_capacity(PIECE_LEN.min(left));
        self.garbler.garble(steps, |table| piece.extend_from_slice(&table))?;
        self.position = position;
        self.made = self.made.saturating_add(piece.len());
        // The transcript has a hash of all tables.
        self.hash = self.hash.clone().fixed(&piece);
        Ok(Some(piece))
    }

    /// The garbler at the end of the circuit, whatever was not asked for left out; and a hash of all tables.
    ///
    /// # Errors
    /// [`Error::Unexpected`] if there are more tables.
    pub(crate) fn finish(mut self, policy: &PolicyCircuit) -> Result<(Garbler<PrivacyFree>, Digest), Error> {
        if self.made < policy.tables_len() {
            return Err(Error::Unexpected("tables are left"));
        }
        // All that is left is free.
        let (steps, _) = policy.steps(self.position, 0);
        self.garbler.garble(steps, |_| ())?;
        Ok((self.garbler, self.hash.finish()))
    }
}
