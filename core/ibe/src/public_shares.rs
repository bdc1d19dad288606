//! The public parameters of a quorum: MPK, t, and every S_j.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher};
use quiver_pairing::{G1, Group, Scalar, hash_to_scalar};
use quiver_sharing::lagrange_at_zero;

use crate::{Error, MAX_SHARES, MasterPublicKey, MasterShare};

/// The version of the encoding.
const VERSION: u8 = 1;

/// Bytes of an index and a point.
const ENTRY_LEN: usize = 2 + G1::ENCODED_LEN;

/// Domain of the challenge that [`PublicShares::new`] draws.
const CONSISTENCY: &str = "QUIVER-IBE-v1 consistency of public shares";

/// The public side of a shared master key. Consistent: the S_j and MPK lie on one polynomial of degree t − 1,
/// so any t right key shares make the one identity key.
///
/// Encoded as the version (1 byte, 1), the threshold (2), MPK (48), the number of shares (4), and for each
/// share its index (2) and S_j (48), ascending by index: at most 51,255 bytes.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("PublicShares({threshold} of {}, {master:?})", self.shares.len())]
pub struct PublicShares {
    threshold: u16,
    master: MasterPublicKey,
    /// Ascending.
    shares: Vec<(u16, G1)>,
}

impl PublicShares {
    /// Takes the parts, shares ascending by index, and checks that they belong together: one combination of
    /// as many points as there are shares.
    ///
    /// # Errors
    /// [`Error::Threshold`], [`Error::ZeroIndex`], [`Error::DuplicateIndex`] also for a wrong order,
    /// [`Error::InvalidPoint`] for an identity, [`Error::InconsistentShares`].
    pub fn new(threshold: u16, master: MasterPublicKey, shares: Vec<(u16, G1)>) -> Result<Self, Error> {
        check_threshold(usize::from(threshold), shares.len())?;
        let mut before = 0;
        for (index, point) in &shares {
            match *index {
                0 => return Err(Error::ZeroIndex),
                index if index <= before => return Err(Error::DuplicateIndex(index)),
                index => before = index,
            }
            if point.is_identity() {
                return Err(Error::InvalidPoint("G1"));
            }
        }
        let publics = Self { threshold, master, shares };
        if publics.consistent()? { Ok(publics) } else { Err(Error::InconsistentShares) }
    }

    /// Returns true if all points lie on one polynomial q of degree t − 1, "in the exponent".
    ///
    /// If they do, and f is any polynomial of degree n − t, then f·q has a degree below n and n points give
    /// its value at zero: Σ λ_j·f(j)·S_j = f(0)·MPK. If they do not, this holds for few f (I. Cascudo, B.
    /// David, *SCRAPE*, ACNS 2017, lemma 1). f has as coefficients the powers of a hash of all points:
    /// then it holds by chance for at most n − t of the r values that the hash may have.
    fn consistent(&self) -> Result<bool, Error> {
        // SCRAPE, lemma 1: one f, with powers of a hash of all points as coefficients.
        let challenge = hash_to_scalar(CONSISTENCY, &[&self.encode()]);
        let degree = self.shares.len().saturating_sub(usize::from(self.threshold));
        let f = |x: u16| {
            let step = challenge * Scalar::from(x);
            // f(x) = Σ_k (c·x)^k up to k = n − t, so f(0) = 1.
            (0..degree).fold(Scalar::from(1_u64), |sum, _| sum * step + Scalar::from(1_u64))
        };
        let lambdas = coefficients(self.shares.iter().map(|(index, _)| *index))?;
        let (points, scalars): (Vec<G1>, Vec<Scalar>) = self
            .shares
            .iter()
            .zip(lambdas)
            .map(|((index, point), lambda)| (*point, lambda * f(*index)))
            .unzip();
        let combined = G1::msm(&points, &scalars).map_err(|_| Error::InconsistentShares)?;
        // Σ λ_j·f(j)·S_j = f(0)·MPK
        Ok(combined == *self.master.point())
    }

    /// The encoding: 55 bytes and 50 for each share.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(55 + ENTRY_LEN * self.shares.len());
        writer.u8(VERSION).u16(self.threshold).fixed(&self.master.encode()).count(self.shares.len());
        let points: Vec<G1> = self.shares.iter().map(|(_, point)| *point).collect();
        for ((index, _), encoded) in self.shares.iter().zip(G1::encode_all(&points)) {
            writer.u16(*index).fixed(&encoded);
        }
        writer.finish()
    }

    /// Reads the encoding, and checks it as [`new`](Self::new) does.
    ///
    /// # Errors
    /// [`Error::Malformed`], and those of [`new`](Self::new).
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(Error::Malformed("version of public shares"));
        }
        let threshold = reader.u16()?;
        let master = reader.take(MasterPublicKey::LEN)?;
        let count = reader.count(MAX_SHARES, ENTRY_LEN)?;
        let entries = reader.take(count.saturating_mul(ENTRY_LEN))?;
        reader.end()?;
        // Points are costly to decode: not before everything else is as it must be.
        check_threshold(usize::from(threshold), count)?;
        let master = MasterPublicKey::decode(master)?;
        let shares = entries.chunks(ENTRY_LEN).map(read_entry).collect::<Result<_, _>>()?;
        Self::new(threshold, master, shares)
    }

    /// Hash of the encoding, by which KGCs and drones compare it and identify the quorum.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Hasher::new("QUIVER-IBE-v1 public shares").lp(&self.encode()).finish()
    }

    /// Number of key shares that make a key.
    #[must_use]
    pub const fn threshold(&self) -> u16 {
        self.threshold
    }

    /// MPK.
    #[must_use]
    pub const fn master(&self) -> &MasterPublicKey {
        &self.master
    }

    /// Indices and S_j, ascending.
    #[must_use]
    pub fn shares(&self) -> &[(u16, G1)] {
        &self.shares
    }

    /// S_j of the KGC with this index.
    #[must_use]
    pub fn share(&self, index: u16) -> Option<&G1> {
        let place = self.shares.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        self.shares.get(place).map(|(_, point)| point)
    }

    /// Checks that a master share is that of its index: s_j·P1 = S_j.
    ///
    /// # Errors
    /// [`Error::InvalidMasterShare`].
    pub fn check(&self, share: &MasterShare) -> Result<(), Error> {
        match self.share(share.index()) {
            // s_j·P1 = S_j
            Some(public) if *public == share.public() => Ok(()),
            _ => Err(Error::InvalidMasterShare(share.index())),
        }
    }
}

fn read_entry(bytes: &[u8]) -> Result<(u16, G1), Error> {
    let mut reader = Reader::new(bytes);
    let (index, point) = (reader.u16()?, reader.take(reader.remaining())?);
    Ok((index, G1::decode(point).map_err(|_| Error::InvalidPoint("G1"))?))
}

/// 1 ≤ t ≤ n ≤ [`MAX_SHARES`].
pub(crate) const fn check_threshold(threshold: usize, count: usize) -> Result<(), Error> {
    if threshold == 0 || threshold > count || count > MAX_SHARES {
        return Err(Error::Threshold { threshold, count });
    }
    Ok(())
}

/// Lagrange coefficients at zero of indices that are not zero, none twice, not too many.
pub(crate) fn coefficients(indices: impl Iterator<Item = u16>) -> Result<Vec<Scalar>, Error> {
    let indices: Vec<u32> = indices.map(u32::from).collect();
    lagrange_at_zero(&indices).map_err(|_| Error::Malformed("indices of shares"))
}
