//! IBE orders: sealed to a condition, and opened by all receivers once enough KGCs have released its key.
//!
//! An order is sealed as a file would be: identity-based encryption of a fresh key, and the text under that
//! key.

mod approvals;
mod invariant;
mod order_reader;
mod phases;
mod release_lie;

use quiver_ainq::{
    AuthorityStatement, Bls12381G1, Deployment, KgcId, Name, Purpose, SignedAuthority, StatementSignature,
    Suite,
};
use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Hasher, Secret, aead};
use quiver_ibe::{
    Condition, Dealing, IbeCiphertext, IdentityKey, IdentityPoint, MasterPublicKey, MasterShare,
};
use quiver_key_release::{
    CollectEvent, Holding, ReleaseAuthority, ReleaseEvent, ReleaseParameters, ShareReleased,
};
use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

pub(crate) use self::approvals::ReleaseApprovals;
pub(crate) use self::invariant::Orders;
pub(crate) use self::order_reader::OrderReader;
pub(crate) use self::release_lie::ReleaseLie;
use crate::feature_event::FeatureEvent;
use crate::master_key::MasterKey;
use crate::quorum::master_key::SharedSecret;
use crate::record::Record;
use crate::rng_stream::{self, RngStream};
use crate::{Fleet, NodeEvent, Setup, WorldError};

/// The channel on which orders are handed on.
pub const CHANNEL: &str = "orders";
/// Bytes an order may have.
const MAX_ORDER_LEN: usize = 4096;
/// A key seals one order.
const NONCE: [u8; 12] = [0; 12];

/// Reason why there are no orders. It never happens with what this module is given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IbeOrderError {
    /// An error of identity-based encryption.
    #[error(transparent)]
    Ibe(#[from] quiver_ibe::Error),
    /// An error of the deployment.
    #[error(transparent)]
    Ainq(#[from] quiver_ainq::Error),
    /// A share is not that of its statement.
    #[error(transparent)]
    Holding(#[from] quiver_key_release::HoldingError),
    /// Malformed bytes of an order.
    #[error(transparent)]
    Malformed(#[from] quiver_crypto::canonical::Malformed),
    /// An order does not open.
    #[error("an order does not open")]
    Sealed,
}

/// `mission/<group>/phase-2`.
///
/// # Errors
/// [`IbeOrderError::Ibe`] for a group whose name has other characters than a condition may have.
pub fn phase_two(group: &Name) -> Result<Condition, IbeOrderError> {
    Ok(Condition::mission(&format!("{group}/phase-2"))?)
}

/// An order sealed to a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedOrder {
    condition: Condition,
    key: IbeCiphertext,
    text: Vec<u8>,
}

impl SealedOrder {
    /// Seals an order. Nobody need be asked.
    ///
    /// # Errors
    /// [`IbeOrderError::Ibe`], never.
    pub fn seal(
        master: &MasterPublicKey,
        condition: Condition,
        text: &[u8],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Self, IbeOrderError> {
        let secret = Secret::<32>::random(rng);
        let key = master.encrypt(&IdentityPoint::of(&condition), secret.expose(), rng)?;
        let text = aead::seal(&secret, &NONCE, condition.as_str().as_bytes(), text);
        Ok(Self { condition, key, text })
    }

    /// Condition of the order.
    #[must_use]
    pub const fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Opens it with the condition's key.
    ///
    /// # Errors
    /// [`IbeOrderError::Ibe`] or [`IbeOrderError::Sealed`] for another key, or an order that was altered.
    pub fn open(&self, key: &IdentityKey) -> Result<Zeroizing<Vec<u8>>, IbeOrderError> {
        let secret = key.decrypt(&self.key)?;
        let secret = Secret::<32>::try_from(secret.as_slice()).map_err(|_| IbeOrderError::Sealed)?;
        let aad = self.condition.as_str().as_bytes();
        aead::open(&secret, &NONCE, aad, &self.text).map_err(|_| IbeOrderError::Sealed)
    }

    /// The encoding: condition, key, text, each with its length.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.lp(self.condition.as_str().as_bytes()).lp(&self.key.encode()).lp(&self.text).finish()
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`IbeOrderError::Malformed`] or [`IbeOrderError::Ibe`].
    pub fn decode(bytes: &[u8]) -> Result<Self, IbeOrderError> {
        let mut reader = Reader::new(bytes);
        let condition = std::str::from_utf8(reader.lp(MAX_ORDER_LEN)?).map_err(|_| IbeOrderError::Sealed)?;
        let (condition, key) = (condition.parse()?, IbeCiphertext::decode(reader.lp(MAX_ORDER_LEN)?)?);
        let text = reader.lp(MAX_ORDER_LEN)?.to_vec();
        reader.end()?;
        Ok(Self { condition, key, text })
    }
}

/// The master key of conditions: its shares, encoded, and the statement about it that the KGCs signed.
pub struct IbeAuthority<S: Suite> {
    shares: Vec<Zeroizing<[u8; MasterShare::LEN]>>,
    authority: ReleaseAuthority<S>,
}

impl<S: Suite> IbeAuthority<S> {
    /// Founds it at a single KGC. `sign` makes the KGC's signature of purpose `parameters`.
    ///
    /// # Errors
    /// [`IbeOrderError`], never.
    pub fn alone(
        deployment: &Deployment<S>,
        rng: &mut impl CryptoRngCore,
        sign: impl FnOnce(&AuthorityStatement<S>) -> StatementSignature<S>,
    ) -> Result<Self, IbeOrderError> {
        let dealing = Dealing::deal(1, 1, rng)?;
        let shares = dealing.shares().iter().map(MasterShare::encode).collect();
        Self::new(deployment, (shares, dealing.public_shares()?), sign)
    }

    /// The key that the KGCs of a quorum made, just as they made their own. `sign` makes the quorum's
    /// signature.
    ///
    /// # Errors
    /// [`IbeOrderError`], never for the result of a key generation.
    pub fn together(
        deployment: &Deployment<S>,
        made: impl Into<SharedSecret>,
        sign: impl FnOnce(&AuthorityStatement<S>) -> StatementSignature<S>,
    ) -> Result<Self, IbeOrderError> {
        Self::new(deployment, together(made.into())?, sign)
    }

    /// The key of a world, if it has orders.
    pub(crate) fn of_world(
        setup: &Setup,
        deployment: &Deployment<S>,
        master_key: &dyn MasterKey<S>,
    ) -> Result<Option<Self>, WorldError> {
        if !setup.orders {
            return Ok(None);
        }
        let mut rng = rng_stream::generator(setup.fleet_seed, RngStream::IbeAuthority);
        let mut dice = rng_stream::generator(setup.fleet_seed, RngStream::Orders);
        let sign = |statement: &AuthorityStatement<S>| {
            master_key.sign(deployment, Purpose::Parameters, &statement.body(), &mut dice)
        };
        let founded = if setup.kgcs == 1 {
            Self::alone(deployment, &mut rng, sign)
        } else {
            let context = Hasher::new("quiver/1 world release").finish();
            let made = SharedSecret::generate::<Bls12381G1>(setup.kgcs, setup.threshold, context, &mut rng)?;
            Self::together(deployment, made, sign)
        };
        founded.map(Some).map_err(|error| WorldError::Quorum(error.to_string()))
    }

    fn new(
        deployment: &Deployment<S>,
        (shares, publics): IbeMasterShares,
        sign: impl FnOnce(&AuthorityStatement<S>) -> StatementSignature<S>,
    ) -> Result<Self, IbeOrderError> {
        let statement =
            ReleaseParameters { version: 1, publics }.statement(deployment, Name::new("release")?)?;
        let signature = sign(&statement);
        let signed = SignedAuthority::new(statement, signature)?.verify(deployment)?;
        Ok(Self { shares, authority: ReleaseAuthority::new(deployment, signed)? })
    }

    /// The public parameters.
    pub const fn authority(&self) -> &ReleaseAuthority<S> {
        &self.authority
    }

    /// The key share of a KGC.
    ///
    /// # Errors
    /// [`IbeOrderError`] for a KGC that there is not.
    pub fn holding(&self, kgc: KgcId) -> Result<Holding<S>, IbeOrderError> {
        Ok(Holding::new(self.authority.clone(), self.share(kgc)?)?)
    }

    /// The share of a KGC.
    pub(crate) fn share(&self, kgc: KgcId) -> Result<MasterShare, IbeOrderError> {
        let place = usize::from(kgc).checked_sub(1).and_then(|place| self.shares.get(place));
        Ok(MasterShare::decode(place.ok_or(quiver_ibe::Error::ZeroIndex)?.as_slice())?)
    }
}

type IbeMasterShares = (Vec<Zeroizing<[u8; MasterShare::LEN]>>, quiver_ibe::PublicShares);

/// The shares of a key generation as identity-based encryption has them.
fn together(made: SharedSecret) -> Result<IbeMasterShares, IbeOrderError> {
    let mut shares = Vec::new();
    for (kgc, mut scalar) in made.shares {
        // Little-endian there, big-endian here.
        scalar.reverse();
        shares.push(MasterShare::from_scalar_bytes(kgc, &scalar)?.encode());
    }
    let point = |bytes: &[u8]| Ok::<_, IbeOrderError>(*MasterPublicKey::decode(bytes)?.point());
    let points = made.public_shares.iter().map(|(kgc, share)| Ok((*kgc, point(share)?)));
    let points = points.collect::<Result<Vec<_>, IbeOrderError>>()?;
    let master = MasterPublicKey::decode(&made.public)?;
    Ok((shares, quiver_ibe::PublicShares::new(made.threshold, master, points)?))
}

/// An event of a node's part that releases or collects keys of conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionNodeEvent {
    /// The release of condition keys at a KGC.
    Release(ReleaseEvent),
    /// The part of a drone that collects them.
    Collector(CollectEvent),
    /// A drone has opened an order that waited for its condition: its text.
    Opened(Vec<u8>),
}

impl FeatureEvent for ConditionNodeEvent {
    fn describe(&self) -> Option<String> {
        match self {
            Self::Opened(_) => Some("opens the order that waited for its condition".into()),
            Self::Release(_) | Self::Collector(_) => None,
        }
    }

    fn culprit(&self) -> Option<KgcId> {
        match self {
            Self::Collector(CollectEvent::Culprit { kgc, .. }) => Some(*kgc),
            Self::Release(_) | Self::Collector(_) | Self::Opened(_) => None,
        }
    }
}

impl From<ReleaseEvent> for NodeEvent {
    fn from(event: ReleaseEvent) -> Self {
        ConditionNodeEvent::Release(event).into()
    }
}

impl Record for ShareReleased {
    fn bytes(&self) -> usize {
        self.condition.as_str().len() + self.name.as_bytes().len() + 88
    }

    fn compact(self) -> Self {
        self
    }

    fn digest(&self, sink: &mut dyn FnMut(&[u8])) {
        sink(self.condition.as_str().as_bytes());
        sink(&self.handle);
    }
}

impl<S: Suite> Fleet<S> {
    /// The master key of conditions.
    pub(crate) fn archive(&self) -> Option<&IbeAuthority<S>> {
        self.features.conditions.as_ref()
    }

    fn phase_two(&self) -> Condition {
        phase_two(self.group()).expect("the group's name is short and plain")
    }

    /// An order sealed to the second phase; `None` if there is no key for it.
    pub(crate) fn order(&self, number: u32) -> Option<Vec<u8>> {
        let mut rng = rng_stream::generator(self.seed() ^ u64::from(number), RngStream::Orders);
        let master = self.archive()?.authority().master();
        let order = SealedOrder::seal(master, self.phase_two(), &number.to_be_bytes(), &mut rng);
        Some(order.expect("the text is short").encode())
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{MasterSecret, Ristretto255};
    use quiver_ibe::{UnverifiedKeyShare, combine};
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    use super::*;

    fn archive(quorum: Option<(u16, u16)>) -> IbeAuthority<Ristretto255> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let master = MasterSecret::<Ristretto255>::generate(&mut rng);
        let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
        let mut other = ChaCha8Rng::seed_from_u64(2);
        let sign = |statement: &AuthorityStatement<_>| {
            master.sign(&deployment, Purpose::Parameters, &statement.body(), &mut other)
        };
        match quorum {
            None => IbeAuthority::alone(&deployment, &mut rng, sign).unwrap(),
            Some((kgcs, threshold)) => {
                let made = SharedSecret::generate::<Bls12381G1>(kgcs, threshold, [0; 32], &mut rng).unwrap();
                IbeAuthority::together(&deployment, made, sign).unwrap()
            }
        }
    }

    #[test]
    fn an_order_opens_with_the_shares_of_enough_kgcs_and_with_those_of_fewer_does_not() {
        for (quorum, needed) in [(None, 1), (Some((5, 3)), 3)] {
            let (archive, mut rng) = (archive(quorum), ChaCha8Rng::seed_from_u64(3));
            let condition = phase_two(&Name::new("alpha").unwrap()).unwrap();
            let authority = archive.authority();
            let order = SealedOrder::seal(authority.master(), condition.clone(), b"north", &mut rng).unwrap();
            let order = SealedOrder::decode(&order.encode()).unwrap();
            let point = IdentityPoint::of(order.condition());
            let share = |kgc| UnverifiedKeyShare::from(archive.share(kgc).unwrap().extract(&point));
            let shares: Vec<_> = (1..=needed).map(share).collect();
            let key = combine(authority.publics(), &point, &shares, &mut rng).unwrap();
            assert_eq!(order.open(&key).unwrap().as_slice(), b"north");
            assert!(combine(authority.publics(), &point, &shares[1..], &mut rng).is_err());
        }
    }

    #[test]
    fn every_kgc_holds_the_share_of_its_statement() {
        let archive = archive(Some((3, 2)));
        assert!((1..=3).all(|kgc| archive.holding(kgc).is_ok_and(|holding| holding.kgc() == kgc)));
        assert!(archive.holding(4).is_err());
    }
}
