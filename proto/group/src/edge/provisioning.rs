//! Provisioning of a board, as bytes: made by an operator's program, entered over the console, kept in flash.
//!
//! A board has no files, so what a service reads from its deployment file, token and command line comes as
//! one block:
//!
//! ```text
//! version u8 = 1, or 2 with a second factor ‖ lp(suite) ‖ lp(deployment) ‖ P_pub ‖ KGC ids u32 count, u16 each ‖ lp(group) ‖ time u64
//!     ‖ radio u8, then network u16 ‖ address u16 if it is 1 ‖ set of ML-KEM u8, in version 2 ‖ lp(token) ‖ check, 8 bytes
//! ```
//!
//! The check is the beginning of a hash of all before it. It finds transmission errors and authenticates
//! nothing: anybody with access to a board's console can provision it.

use alloc::vec::Vec;
use core::fmt;

use quiver_ainq::{Deployment, Element, IssuedToken, KgcId, Name, Suite, Token, UnixTime};
use quiver_crypto::canonical::{Malformed, Reader, Writer};
use quiver_crypto::{Hasher, Zeroizing};
use quiver_kem::{KemSet, KemSetting};

const VERSION: u8 = 1;
/// The same with a parameter set of ML-KEM: an image that knows none refuses it.
const VERSION_WITH_KEM: u8 = 2;
const CHECK_LEN: usize = 8;
/// KGCs that a deployment has at most.
const MAX_KGCS: usize = 64;

/// Bytes that an encoding has at most.
pub const MAX_PROVISIONING_LEN: usize = 2048;

/// Provisioning of a board.
#[derive(Debug)]
pub struct Provisioning<S: Suite> {
    /// The deployment it belongs to.
    pub deployment: Deployment<S>,
    /// The ids of the KGCs; at most 64.
    pub kgcs: Vec<KgcId>,
    /// The group to join.
    pub group: Option<Name>,
    /// The time when this was made: no clock that the board is shown can be right if it is before that.
    pub time: UnixTime,
    /// Place of the board in a radio network, if it has a radio.
    pub radio: Option<RadioPlace>,
    /// Second factor of the deployment (§24).
    pub kem: KemSetting,
    /// The token to enrol with, with its secret; `None` once it is used.
    pub token: Option<IssuedToken<S>>,
}

/// A network and an address of IEEE 802.15.4 in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioPlace {
    /// The network.
    pub pan: u16,
    /// The short address.
    pub address: u16,
}

/// Why bytes are no [`Provisioning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProvisioningError {
    /// Longer than [`MAX_PROVISIONING_LEN`].
    #[error("too long: {0} bytes")]
    TooLong(usize),
    /// The check does not fit: something was lost or changed on the way.
    #[error("cut or changed: the check does not fit")]
    Check,
    /// A version that this program does not know.
    #[error("version {0} is unknown to this program")]
    Version(u8),
    /// Another suite.
    #[error("of another suite than this program's")]
    Suite,
    /// The check fits, but a field is not as it must be.
    #[error("`{0}` is malformed")]
    Field(&'static str),
    /// The token is for another deployment.
    #[error("the token is for another deployment")]
    ForeignToken,
}

impl<S: Suite> Provisioning<S> {
    /// The encoding, secret if there is a token; at most [`MAX_PROVISIONING_LEN`] bytes.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let token = self.token.as_ref().map(IssuedToken::encode).unwrap_or_default();
        let mut writer = Writer::with_capacity(MAX_PROVISIONING_LEN);
        let version = if self.kem.is_none() { VERSION } else { VERSION_WITH_KEM };
        writer.u8(version).lp(S::ID.as_bytes()).lp(self.deployment.name().as_bytes());
        writer.fixed(self.deployment.master().as_bytes()).count(self.kgcs.len());
        self.kgcs.iter().for_each(|id| {
            writer.u16(*id);
        });
        writer.lp(self.group.as_ref().map_or(&[], |group| group.as_bytes())).u64(self.time);
        match self.radio {
            Some(radio) => writer.u8(1).u16(radio.pan).u16(radio.address),
            None => writer.u8(0),
        };
        if let Some(set) = self.kem.set() {
            writer.u8(set.code());
        }
        writer.lp(&token);
        let mut bytes = Zeroizing::new(writer.finish());
        let check = check(&bytes);
        bytes.extend_from_slice(&check);
        bytes
    }

    /// Reads an encoding.
    ///
    /// # Errors
    /// [`ProvisioningError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ProvisioningError> {
        if bytes.len() > MAX_PROVISIONING_LEN {
            return Err(ProvisioningError::TooLong(bytes.len()));
        }
        let (body, found) = bytes.split_last_chunk::<CHECK_LEN>().ok_or(ProvisioningError::Check)?;
        if check(body) != *found {
            return Err(ProvisioningError::Check);
        }
        let mut reader = Reader::new(body);
        let version = reader.u8().map_err(field("version"))?;
        if ![VERSION, VERSION_WITH_KEM].contains(&version) {
            return Err(ProvisioningError::Version(version));
        }
        if reader.lp(64).map_err(field("suite"))? != S::ID.as_bytes() {
            return Err(ProvisioningError::Suite);
        }
        let settings = Self::read(&mut reader, version)?;
        reader.end().map_err(field("end"))?;
        Ok(settings)
    }

    fn read(reader: &mut Reader<'_>, version: u8) -> Result<Self, ProvisioningError> {
        let name = Name::from_bytes(reader.lp(64).map_err(field("deployment"))?);
        let name = name.map_err(|_| ProvisioningError::Field("deployment"))?;
        let master = reader.take(S::POINT_LEN).map_err(field("master key"))?;
        let master = Element::decode(master).map_err(|_| ProvisioningError::Field("master key"))?;
        let deployment = Deployment::new(name, master);
        let count = reader.count(MAX_KGCS, 2).map_err(field("KGCs"))?;
        let kgcs = (0..count).map(|_| reader.u16()).collect::<Result<Vec<_>, _>>().map_err(field("KGCs"))?;
        if kgcs.is_empty() {
            return Err(ProvisioningError::Field("KGCs"));
        }
        let group = match reader.lp(64).map_err(field("group"))? {
            [] => None,
            name => Some(Name::from_bytes(name).map_err(|_| ProvisioningError::Field("group"))?),
        };
        let time = reader.u64().map_err(field("time"))?;
        let radio = match reader.u8().map_err(field("radio"))? {
            0 => None,
            1 => Some(Self::read_radio(reader).map_err(field("radio"))?),
            _ => return Err(ProvisioningError::Field("radio")),
        };
        let kem = match version {
            VERSION_WITH_KEM => {
                let set = KemSet::from_code(reader.u8().map_err(field("kem"))?);
                Some(set.ok_or(ProvisioningError::Field("kem"))?)
            }
            _ => None,
        };
        let longest = 4 + Token::<S>::MAX_LEN + S::SCALAR_LEN;
        let token = match reader.lp(longest).map_err(field("token"))? {
            [] => None,
            bytes => Some(IssuedToken::decode(bytes).map_err(|_| ProvisioningError::Field("token"))?),
        };
        if token.as_ref().is_some_and(|token| token.token.statement.master != *deployment.master()) {
            return Err(ProvisioningError::ForeignToken);
        }
        Ok(Self { deployment, kgcs, group, time, radio, kem: kem.into(), token })
    }

    fn read_radio(reader: &mut Reader<'_>) -> Result<RadioPlace, Malformed> {
        Ok(RadioPlace { pan: reader.u16()?, address: reader.u16()? })
    }
}

impl fmt::Display for RadioPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:04x}", self.pan, self.address)
    }
}

fn field(name: &'static str) -> impl Fn(Malformed) -> ProvisioningError {
    move |_| ProvisioningError::Field(name)
}

fn check(body: &[u8]) -> [u8; CHECK_LEN] {
    let hash = Hasher::new("quiver/1 provisioning").lp(body).finish();
    hash.first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{MasterSecret, OperatorSecretKey, Ristretto255, Role, TokenGrant};
    use quiver_testbed::name;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    type S = Ristretto255;

    fn sample(seed: u64, groups: usize) -> Provisioning<S> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let deployment = Deployment::<S>::new(name("alps"), MasterSecret::generate(&mut rng).public());
        let groups = (0..groups).map(|n| name(&alloc::format!("{n:0>64}"))).collect();
        let grant =
            TokenGrant { name: name("edge-1"), role: Role::Edge, groups, not_after: 9_000, expiry: 8_000 };
        let token = OperatorSecretKey::generate(&mut rng).issue(&deployment, grant, &mut rng).unwrap();
        let radio = Some(RadioPlace { pan: 0xbeef, address: 7 });
        let group = Some(name("alpha"));
        let (kgcs, token, kem) = (alloc::vec![1, 2, 3], Some(token), KemSetting::None);
        Provisioning { deployment, kgcs, group, time: 7_000, radio, kem, token }
    }

    #[test]
    fn provisioning_comes_back() {
        let made = sample(1, 16);
        let bytes = made.encode();
        assert!(bytes.len() < MAX_PROVISIONING_LEN, "{}", bytes.len());
        let read = Provisioning::<S>::decode(&bytes).unwrap();
        assert_eq!(read.encode(), bytes);
        assert_eq!((read.deployment, read.kgcs, read.time), (made.deployment, made.kgcs, made.time));
        assert_eq!((read.group, read.radio), (made.group, made.radio));
    }

    #[test]
    fn second_factor_comes_back_in_a_version_of_its_own() {
        for kem in KemSetting::ALL {
            let bytes = Provisioning { kem, ..sample(1, 1) }.encode();
            assert_eq!(bytes[0], if kem.is_none() { VERSION } else { VERSION_WITH_KEM });
            let read = Provisioning::<S>::decode(&bytes).unwrap();
            assert_eq!((read.kem, read.encode()), (kem, bytes));
        }
        // `none` has one encoding, and a set that nobody knows has none.
        let mut body =
            Provisioning { kem: KemSetting::MlKem768, token: None, ..sample(1, 1) }.encode().to_vec();
        body.truncate(body.len() - CHECK_LEN);
        let at = body.len() - 5;
        for code in [0, 3, 255] {
            body[at] = code;
            let bytes = [&body[..], &check(&body)].concat();
            assert_eq!(Provisioning::<S>::decode(&bytes).unwrap_err(), ProvisioningError::Field("kem"));
        }
    }

    #[test]
    fn provisioning_without_group_radio_and_token_comes_back() {
        let bare = Provisioning { group: None, radio: None, token: None, ..sample(1, 1) };
        let read = Provisioning::<S>::decode(&bare.encode()).unwrap();
        assert!(read.group.is_none() && read.radio.is_none() && read.token.is_none());
    }

    #[test]
    fn anything_cut_or_changed_is_refused() {
        let bytes = sample(1, 1).encode();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert_eq!(Provisioning::<S>::decode(&changed).unwrap_err(), ProvisioningError::Check);
            assert_eq!(Provisioning::<S>::decode(&bytes[..place]).unwrap_err(), ProvisioningError::Check);
        }
        let long = alloc::vec![0; MAX_PROVISIONING_LEN + 1];
        assert_eq!(Provisioning::<S>::decode(&long).unwrap_err(), ProvisioningError::TooLong(2049));
    }

    #[test]
    fn well_checked_nonsense_is_refused_by_field() {
        let good = sample(1, 1).encode();
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut body = good[..good.len() - CHECK_LEN].to_vec();
            change(&mut body);
            body.extend(check(&body));
            Provisioning::<S>::decode(&body).unwrap_err()
        };
        assert_eq!(with(&|body| body[0] = 3), ProvisioningError::Version(3));
        assert_eq!(with(&|body| body[5] ^= 1), ProvisioningError::Suite);
        assert_eq!(with(&|body| body.push(0)), ProvisioningError::Field("end"));
        assert_eq!(with(&|body| body.truncate(body.len() - 1)), ProvisioningError::Field("token"));
        assert_eq!(with(&|body| *body.last_mut().unwrap() ^= 1), ProvisioningError::Field("token"));
        let foreign = Provisioning { token: sample(2, 1).token, ..sample(1, 1) };
        let refused = Provisioning::<S>::decode(&foreign.encode()).unwrap_err();
        assert_eq!(refused, ProvisioningError::ForeignToken);
        let lonely = Provisioning { kgcs: Vec::new(), ..sample(1, 1) };
        let refused = Provisioning::<S>::decode(&lonely.encode()).unwrap_err();
        assert_eq!(refused, ProvisioningError::Field("KGCs"));
    }
}
