//! Schemes that are compared.

mod ainq_paper;
mod group_oscore;
mod lkh;
mod mls;
mod pairwise;
mod quiver;
mod x25519;

use quiver_ainq::StrategyKind;
use quiver_crypto::Secret;
use quiver_kem::KemSetting;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use self::mls::openmls;
use crate::arena::ArenaEvent;
use crate::contract::{Contender, ContenderError, Fingerprint, KeyState, Pace};

pub use self::ainq_paper::AinqAsPublished;
pub use self::group_oscore::GroupOscore;
pub use self::lkh::Lkh;
pub use self::mls::{Mls, MlsRs};
pub use self::pairwise::Pairwise;
pub use self::quiver::Quiver;
pub use self::x25519::X25519Identity;

/// Circumstances that a scheme is set up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Members with numbers from 0, those that come later included.
    pub members: u32,
    /// Members that form the group.
    pub founders: u32,
    /// The radio.
    pub pace: Pace,
    /// True if one transmission reaches all members.
    pub shared_medium: bool,
    /// Seed of all keys but those of MLS, which takes its randomness from the system.
    pub seed: u64,
}

/// A scheme of this crate, by name. A build without the feature `openmls` can set up all but those by `openmls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SchemeKind {
    /// Quiver, one wrap for each member.
    QuiverFlat,
    /// Quiver, a key tree.
    QuiverTree,
    /// Quiver, a key tree, with a second factor of ML-KEM-768 in pairwise secrets.
    QuiverTreeMlKem,
    /// AinQ as published.
    AinqAsPublished,
    /// A sealed key to each.
    Pairwise,
    /// A logical key hierarchy (RFC 2627).
    Lkh,
    /// Group OSCORE, re-keyed point to point.
    GroupOscore,
    /// MLS by `mls-rs`.
    MlsRs,
    /// MLS by `openmls`.
    OpenMls,
    /// MLS by `openmls` with X-Wing (ML-KEM-768 and X25519).
    OpenMlsXWing,
}

impl SchemeKind {
    /// All that this build has, in the order of tables.
    pub const ALL: &[Self] = match Self::EVERY {
        [others @ .., Self::OpenMls, Self::OpenMlsXWing] if !openmls::IS_BUILT_IN => others,
        every => every,
    };

    const EVERY: &[Self] = &[
        Self::QuiverFlat,
        Self::QuiverTree,
        Self::QuiverTreeMlKem,
        Self::AinqAsPublished,
        Self::Pairwise,
        Self::Lkh,
        Self::GroupOscore,
        Self::MlsRs,
        Self::OpenMls,
        Self::OpenMlsXWing,
    ];

    /// Name of the scheme for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QuiverFlat => "Quiver, flat",
            Self::QuiverTree => "Quiver, tree",
            Self::QuiverTreeMlKem => "Quiver, tree, ML-KEM-768",
            Self::AinqAsPublished => "AinQ as published",
            Self::Pairwise => "pairwise, sealed",
            Self::Lkh => "LKH, RFC 2627",
            Self::GroupOscore => "Group OSCORE re-key",
            Self::MlsRs => "MLS, mls-rs",
            Self::OpenMls => "MLS, openmls",
            Self::OpenMlsXWing => "MLS, openmls, X-Wing",
        }
    }

    /// Returns true if it is MLS, by whatever library.
    #[must_use]
    pub const fn is_mls(self) -> bool {
        match self {
            Self::QuiverFlat
            | Self::QuiverTree
            | Self::QuiverTreeMlKem
            | Self::AinqAsPublished
            | Self::Pairwise
            | Self::Lkh
            | Self::GroupOscore => false,
            Self::MlsRs | Self::OpenMls | Self::OpenMlsXWing => true,
        }
    }

    /// Returns true if the scheme has this event. MLS loses no controller: any member commits in its place.
    #[must_use]
    pub const fn has(self, event: ArenaEvent) -> bool {
        !(self.is_mls() && matches!(event, ArenaEvent::LoseController))
    }

    /// Sets it up.
    ///
    /// # Errors
    /// [`ContenderError::Scheme`].
    pub fn build(self, setting: Setting) -> Result<Box<dyn Contender>, ContenderError> {
        Ok(match self {
            Self::QuiverFlat => Box::new(Quiver::new(StrategyKind::Flat, KemSetting::None, setting)?),
            Self::QuiverTree => Box::new(Quiver::new(StrategyKind::Tree, KemSetting::None, setting)?),
            Self::QuiverTreeMlKem => {
                Box::new(Quiver::new(StrategyKind::Tree, KemSetting::MlKem768, setting)?)
            }
            Self::AinqAsPublished => Box::new(AinqAsPublished::new(setting)?),
            Self::Pairwise => Box::new(Pairwise::new(setting)),
            Self::Lkh => Box::new(Lkh::new(setting)),
            Self::GroupOscore => Box::new(GroupOscore::new(setting)),
            Self::MlsRs => Box::new(MlsRs::new(setting)),
            Self::OpenMls => openmls::x25519(setting)?,
            Self::OpenMlsXWing => openmls::x_wing(setting)?,
        })
    }
}

/// A group key with its epoch and its fingerprint.
#[derive(Debug)]
pub(crate) struct GroupKey {
    pub(crate) key: Secret<32>,
    pub(crate) state: KeyState,
}

impl GroupKey {
    pub(crate) fn new(epoch: u64, key: Secret<32>) -> Self {
        let state = KeyState { epoch, key: Fingerprint::of(&key) };
        Self { key, state }
    }
}

/// Random numbers of their own for one of many.
pub(crate) fn stream(seed: u64, stream: u64) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}
