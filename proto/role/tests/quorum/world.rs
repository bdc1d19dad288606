//! Members of a quorum, and what travels between them: late, twice, in another order, or not at all.

mod running;

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::{KgcId, Name, Ristretto255};
use quiver_message::quorum::QuorumMessage;
use quiver_quorum::PublicShares;
use quiver_role::quorum::{Charter, Ibe};
use quiver_role::{Now, Peer, QuorumCommand, QuorumConfig, QuorumEvent, QuorumNode, QuorumRecord};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

pub(crate) type S = Ristretto255;
pub(crate) type Node = QuorumNode<S>;

pub(crate) const START: u64 = 1_800_000_000;
pub(crate) const VALIDITY: u64 = 86_400;

/// What one member says to another.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) from: KgcId,
    pub(crate) to: KgcId,
    pub(crate) message: QuorumMessage,
}

/// Somebody who changes what is said, or says other things.
pub(crate) type Tamper = Box<dyn FnMut(Flight) -> Vec<Flight>>;

/// How bad the network is: of 256 messages, so many are lost, and so many come twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weather {
    pub(crate) lost: u8,
    pub(crate) twice: u8,
    /// Messages take up to so many milliseconds more than they must.
    pub(crate) late: u64,
}

pub(crate) struct Member {
    /// None while it is down.
    pub(crate) node: Option<Node>,
    /// The newest of each kind.
    pub(crate) records: BTreeMap<u8, QuorumRecord>,
    pub(crate) events: Vec<QuorumEvent>,
    links: BTreeMap<KgcId, Peer>,
    deadline: Option<Duration>,
    /// It dies after so many more outputs.
    pub(crate) doom: Option<usize>,
    /// How often it died.
    pub(crate) deaths: usize,
}

pub(crate) struct World {
    pub(crate) clock: Duration,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) charter: Charter,
    pub(crate) members: BTreeMap<KgcId, Member>,
    queue: BTreeMap<(Duration, u64), (KgcId, Peer, Vec<u8>)>,
    next: u64,
    pub(crate) weather: Weather,
    pub(crate) tamper: Option<Tamper>,
    /// Pairs between which nothing passes.
    pub(crate) cut: Vec<(KgcId, KgcId)>,
    /// What operators say again to members that were down.
    pub(crate) wanted: Option<QuorumCommand>,
    /// Everything that was sent.
    pub(crate) sent: Vec<Flight>,
}

fn encode_shares(public: &PublicShares<Ibe>) -> Vec<u8> {
    public.encode()
}

impl World {
    /// n members, t of which act, all connected.
    pub(crate) fn new(seed: u64, n: u16, t: u16) -> Self {
        let identities = (1..=n).map(|id| format!("transport identity of {id}").into_bytes()).collect();
        let charter = Charter::new::<S>(Name::new("alps").unwrap(), t, identities).unwrap();
        let mut world = Self {
            clock: Duration::from_secs(100),
            rng: ChaCha20Rng::seed_from_u64(seed),
            charter,
            members: BTreeMap::new(),
            queue: BTreeMap::new(),
            next: 0,
            weather: Weather::default(),
            tamper: None,
            cut: Vec::new(),
            wanted: None,
            sent: Vec::new(),
        };
        for id in 1..=n {
            let member = Member {
                node: None,
                records: BTreeMap::new(),
                events: Vec::new(),
                links: BTreeMap::new(),
                deadline: None,
                doom: None,
                deaths: 0,
            };
            world.members.insert(id, member);
        }
        (1..=n).for_each(|id| world.start(id));
        world
    }

    pub(crate) fn now(&self) -> Now {
        Now { monotonic: self.clock, unix: START + self.clock.as_secs() }
    }

    pub(crate) fn config(&self, id: KgcId) -> QuorumConfig {
        QuorumConfig {
            charter: self.charter.clone(),
            id,
            revocation_validity: VALIDITY,
            ibe_parameters: encode_shares,
        }
    }

    pub(crate) fn ids(&self) -> Vec<KgcId> {
        self.members.keys().copied().collect()
    }

    pub(crate) fn member(&self, id: KgcId) -> &Member {
        &self.members[&id]
    }

    pub(crate) fn node(&self, id: KgcId) -> &Node {
        self.members[&id].node.as_ref().expect("up")
    }

    pub(crate) fn events(&self, id: KgcId) -> &[QuorumEvent] {
        &self.members[&id].events
    }

    fn chance(&mut self, of_256: u8) -> bool {
        (self.rng.next_u32() & 0xff) < u32::from(of_256)
    }
}

/// Which kind a record is of: the newest of each counts.
fn kind(record: &QuorumRecord) -> u8 {
    match record {
        QuorumRecord::Keys(_) => 0,
        QuorumRecord::Ceremony(_) => 1,
        QuorumRecord::Statements(_) => 2,
        QuorumRecord::RevocationList { .. } => 3,
        QuorumRecord::QuorumStatement(_) => 4,
    }
}
