//! The input of a signing session: the message and all signers' commitments.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use frost_core::Ciphersuite;
use quiver_ainq::{Element, KgcId};
use quiver_crypto::{Digest, Hasher};

use super::Commitment;
use crate::public::gathered;
use crate::suite::identifier;
use crate::{Error, MAX_MEMBERS, QuorumParameters, QuorumSuite};

/// A message, the version of the shares that sign it, and the commitments of the KGCs that do, t to n of
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningPackage<S: QuorumSuite> {
    version: u32,
    message: Vec<u8>,
    commitments: BTreeMap<KgcId, Commitment<S>>,
}

impl<S: QuorumSuite> SigningPackage<S> {
    /// Makes a package. Each signer has built `message` itself; see the [module](super).
    ///
    /// # Errors
    /// [`Error::DuplicateKgc`]; [`Error::UnknownKgc`] for 0 or more than [`MAX_MEMBERS`].
    pub fn new(
        version: u32,
        message: Vec<u8>,
        commitments: impl IntoIterator<Item = (KgcId, Commitment<S>)>,
    ) -> Result<Self, Error> {
        let mut unique = BTreeMap::new();
        for (kgc, commitment) in commitments {
            if kgc == 0 || kgc > MAX_MEMBERS {
                return Err(Error::UnknownKgc(kgc));
            }
            if unique.insert(kgc, commitment).is_some() {
                return Err(Error::DuplicateKgc(kgc));
            }
        }
        Ok(Self { version, message, commitments: unique })
    }

    /// The version of the shares that sign.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The message to sign.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Commitments of the signers, in ascending order.
    #[must_use]
    pub const fn commitments(&self) -> &BTreeMap<KgcId, Commitment<S>> {
        &self.commitments
    }

    /// A hash of all of it, which binds an answer to this package.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let hash = Hasher::new("quiver/1 quorum signing package")
            .lp(S::ID.as_bytes())
            .u32(self.version)
            .lp(&self.message)
            .u32(u32::try_from(self.commitments.len()).unwrap_or(u32::MAX));
        let add = |hash: Hasher, (kgc, commitment): (&KgcId, &Commitment<S>)| {
            hash.u16(*kgc).fixed(&commitment.encode())
        };
        self.commitments.iter().fold(hash, add).finish()
    }

    /// R = Σ D_j + ρ_j·E_j, the commitment of the signature to come under the master public key `master`.
    ///
    /// FROST computes it as well but keeps it to itself until shares are aggregated; a KGC wants to know
    /// before which signature, and so which drone's handle, it contributes to. RFC 9591, sections 4.4 and
    /// 4.5: ρ_j = H1(P_pub ‖ H4(message) ‖ H5(Σ j ‖ D_j ‖ E_j) ‖ j).
    ///
    /// # Errors
    /// [`Error::DegenerateCommitments`] if it is the identity.
    pub fn commitment(&self, master: &Element<S>) -> Result<Element<S>, Error> {
        let mut encoded = Vec::new();
        for (kgc, commitment) in &self.commitments {
            encoded.extend_from_slice(&identifier::<S>(*kgc)?.serialize());
            encoded.extend_from_slice(&commitment.encode());
        }
        // RFC 9591, section 4.4: what all binding factors hash.
        let mut prefix = master.as_bytes().to_vec();
        prefix.extend_from_slice(S::Frost::H4(&self.message).as_ref());
        prefix.extend_from_slice(S::Frost::H5(&encoded).as_ref());
        let (mut scalars, mut points) = (Vec::new(), Vec::new());
        for (kgc, commitment) in &self.commitments {
            // ρ_j = H1(prefix ‖ j)
            let input = [prefix.as_slice(), &identifier::<S>(*kgc)?.serialize()].concat();
            let factor = binding_factor::<S>(&input).ok_or(Error::Frost)?;
            scalars.extend([S::scalar_from_u128(1), factor]);
            points.extend([*commitment.hiding().point(), *commitment.binding().point()]);
        }
        // RFC 9591, section 4.5: R = Σ D_j + ρ_j·E_j.
        Element::from_point(S::vartime_multiscalar(&scalars, &points))
            .map_err(|_| Error::DegenerateCommitments)
    }

    /// Refuses a package for other shares or with a number of KGCs that does not sign.
    pub(crate) fn check(&self, parameters: QuorumParameters, version: u32) -> Result<(), Error> {
        if self.version != version {
            return Err(Error::WrongVersion { expected: version, actual: self.version });
        }
        // t to n KGCs, all of the quorum.
        parameters.check_number(self.commitments.len())?;
        self.commitments.keys().try_for_each(|kgc| parameters.check(*kgc))
    }

    pub(crate) fn for_frost(&self) -> Result<frost_core::SigningPackage<S::Frost>, Error> {
        let commitments = gathered(
            self.commitments
                .iter()
                .map(|(kgc, commitment)| Ok((identifier::<S>(*kgc)?, commitment.for_frost()?))),
        )?;
        Ok(frost_core::SigningPackage::new(commitments, &self.message))
    }
}

/// H1, as a scalar of the suite.
fn binding_factor<S: QuorumSuite>(input: &[u8]) -> Option<S::Scalar> {
    use frost_core::{Field, Group};
    let factor = S::Frost::H1(input);
    let bytes = <<<S::Frost as Ciphersuite>::Group as Group>::Field as Field>::serialize(&factor);
    S::scalar_decode(bytes.as_ref())
}
