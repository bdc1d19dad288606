//! AinQ as its paper has it, flaws and all: [`quiver_ainq::paper`] behind the crate's delivery.
//!
//! ```text
//! broadcast  V 32 ‖ t_g u64 ‖ (member u32 ‖ C_i 32) for each
//! ```
//!
//! The paper numbers no epochs and confirms no key: a member takes whatever comes out of the newest broadcast that has
//! an entry for it.

use std::collections::BTreeMap;

use quiver_ainq::paper::{
    Broadcast, FullKey, GroupState, PaperDrone, PublicParameters, full_key_gen, gen_group_key,
    gen_partial_key, gen_secret_value, key_retrieval, setup,
};
use quiver_ainq::{Element, MasterSecret, Ristretto255};
use quiver_crypto::Secret;
use rand_core::CryptoRngCore;

use super::{GroupKey, Setting, stream};
use crate::contract::{Contender, ContenderError, Facts, KeyState, MemberId, Participant, SecretsOrigin};
use crate::scheme::{Audience, KeyHolder, KeyScheme, Parcel, ReceivedParcel, SchemeController, SchemeMember};

type S = Ristretto255;

const NAME: &str = "AinQ as published";
const ENTRY: usize = 4 + 32;
/// Validity of a key in seconds, as t_g counts on.
const VALIDITY: u64 = 3600;
/// The stream of the leader's numbers.
const LEADER: u64 = u64::MAX;

/// AinQ as published.
pub struct AinqAsPublished {
    setting: Setting,
    parameters: PublicParameters<S>,
    master: MasterSecret<S>,
    leader: PaperDrone<S>,
    publics: Vec<PaperDrone<S>>,
}

impl AinqAsPublished {
    /// Sets it up.
    ///
    /// # Errors
    /// [`ContenderError::Scheme`] if a key cannot be made.
    pub fn new(setting: Setting) -> Result<Self, ContenderError> {
        let (master, parameters) = setup(&mut stream(setting.seed, 0));
        let leader = full_key(&setting, &parameters, &master, LEADER)?.member;
        let publics = (0..setting.members)
            .map(|id| Ok(full_key(&setting, &parameters, &master, u64::from(id))?.member))
            .collect::<Result<_, ContenderError>>()?;
        Ok(Self { setting, parameters, master, leader, publics })
    }
}

/// GenSecretValue, GenPartialKey and FullKeyGen of one drone.
fn full_key(
    setting: &Setting,
    parameters: &PublicParameters<S>,
    master: &MasterSecret<S>,
    number: u64,
) -> Result<FullKey<S>, ContenderError> {
    let mut rng = stream(setting.seed, number.wrapping_add(1) | (1 << 40));
    let d = number.to_be_bytes();
    let (value, point) = gen_secret_value::<S>(&mut rng);
    let partial =
        gen_partial_key(parameters, master, &d, &point, &mut rng).map_err(|error| refused(&error))?;
    full_key_gen(parameters, &d, &value, &partial).map_err(|error| refused(&error))
}

fn refused(error: &quiver_ainq::Error) -> ContenderError {
    ContenderError::Scheme { scheme: NAME, what: error.to_string() }
}

impl Contender for AinqAsPublished {
    fn name(&self) -> &'static str {
        NAME
    }

    fn facts(&self) -> Facts {
        Facts {
            needs_leader: "yes",
            heals: "no: a stolen y_i opens everything recorded",
            proof: "the paper's, which the flaws found here escape",
            standard: "none (NordSec 2021)",
            quantum: "no: ristretto255",
            notes: "As published, without what Quiver mended: unauthenticated, masks that repeat. Not to be used.",
        }
    }

    fn controller(&mut self, _: SecretsOrigin) -> Result<Box<dyn Participant>, ContenderError> {
        // GenGroupKey takes no secret of the leader's: a usurper's controller is the same.
        let scheme = PaperLeader {
            parameters: self.parameters,
            leader: self.leader.clone(),
            publics: self.publics.clone(),
            state: None,
            places: Vec::new(),
            t_g: VALIDITY,
            key: None,
        };
        Ok(Box::new(SchemeController::new(scheme, self.setting.pace)))
    }

    fn member(&mut self, id: MemberId) -> Result<Box<dyn Participant>, ContenderError> {
        let full = full_key(&self.setting, &self.parameters, &self.master, u64::from(id))?;
        let holder =
            PaperMember { parameters: self.parameters, leader: self.leader.clone(), id, full, key: None };
        Ok(Box::new(SchemeMember::new(holder, self.setting.pace)))
    }
}

struct PaperLeader {
    parameters: PublicParameters<S>,
    leader: PaperDrone<S>,
    publics: Vec<PaperDrone<S>>,
    state: Option<GroupState<S>>,
    /// Members in the order of GL.
    places: Vec<MemberId>,
    t_g: u64,
    key: Option<GroupKey>,
}

impl KeyScheme for PaperLeader {
    fn rekey(
        &mut self,
        added: &[MemberId],
        removed: &[MemberId],
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Vec<Parcel>, String> {
        let publics = &self.publics;
        let public = |id: &MemberId| publics.get(*id as usize).cloned().ok_or("unknown member");
        let newcomers: Vec<PaperDrone<S>> = added.iter().map(public).collect::<Result<_, _>>()?;
        let (key, broadcast) = match &mut self.state {
            None => {
                let made = gen_group_key(&self.parameters, self.leader.clone(), newcomers, self.t_g, rng);
                let (state, key, broadcast) = made.map_err(|error| error.to_string())?;
                self.state = Some(state);
                (key, broadcast)
            }
            Some(state) if !newcomers.is_empty() => {
                state.rekey_on_join(newcomers, rng).map_err(|error| error.to_string())?
            }
            Some(state) => match removed.split_last() {
                None => {
                    self.t_g += VALIDITY;
                    state.rekey_on_expiry(self.t_g, rng)
                }
                // Re-Key on leave is of one leaver: what it makes for all but the last of them is not sent.
                Some((last, rest)) => {
                    for leaver in rest {
                        state.rekey_on_leave(&public(leaver)?, rng);
                    }
                    state.rekey_on_leave(&public(last)?, rng)
                }
            },
        };
        self.places.retain(|member| !removed.contains(member));
        self.places.extend(added);
        let epoch = self.key.as_ref().map_or(1, |key| key.state.epoch + 1);
        self.key = Some(GroupKey::new(epoch, key));
        let mut bytes = broadcast.v.as_bytes().to_vec();
        bytes.extend(broadcast.t_g.to_be_bytes());
        for (member, wrapped) in self.places.iter().zip(&broadcast.wrapped) {
            bytes.extend(member.to_be_bytes());
            bytes.extend(wrapped);
        }
        Ok(vec![Parcel { to: Audience::All, bytes }])
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key.as_ref().map(|group| group.state)
    }
}

struct PaperMember {
    parameters: PublicParameters<S>,
    leader: PaperDrone<S>,
    id: MemberId,
    full: FullKey<S>,
    key: Option<GroupKey>,
}

impl PaperMember {
    fn retrieved(&self, bytes: &[u8]) -> Option<Secret<32>> {
        let (v, rest) = bytes.split_first_chunk::<32>()?;
        let (t_g, entries) = rest.split_first_chunk::<8>()?;
        let entries: BTreeMap<[u8; 4], [u8; 32]> = entries
            .as_chunks::<ENTRY>()
            .0
            .iter()
            .filter_map(|entry| Some((*entry.first_chunk()?, *entry.last_chunk()?)))
            .collect();
        let wrapped = vec![*entries.get(&self.id.to_be_bytes())?];
        let (v, t_g) = (Element::decode(v).ok()?, u64::from_be_bytes(*t_g));
        key_retrieval(&self.parameters, &self.full, &self.leader, &Broadcast { v, t_g, wrapped }, 0).ok()
    }
}

impl KeyHolder for PaperMember {
    fn open(&mut self, received: ReceivedParcel<'_>) {
        if let Some(key) = self.retrieved(received.bytes) {
            let epoch = self.key.as_ref().map_or(1, |key| key.state.epoch + 1);
            self.key = Some(GroupKey::new(epoch, key));
        }
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key.as_ref().map(|group| group.state)
    }

    fn captured_key(&self) -> Option<Secret<32>> {
        self.key.as_ref().map(|group| group.key.clone())
    }
}
