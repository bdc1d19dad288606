//! Members of one group with their datagrams, and the links between them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use quiver_ainq::instrumented::Counting;
use quiver_ainq::{
    Deployment, DroneKeypair, Epoch, EpochKeys, GroupContext, Identity, LEADER_SLOT, Label, Leadership,
    MAX_SLOTS, MasterSecret, Ristretto255, Role, Roster, Slot, StrategyKind, Times, TrafficKey,
};
use quiver_datagram::{
    Config, DatagramRefusal, Datagrams, Event, Payload, PayloadOrigin, Priority, Suspicion,
};
use quiver_testbed::{issue_keypair, name};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Counts multiplications and decodings.
pub(crate) type S = Counting<Ristretto255>;

pub(crate) const VALIDITY: Duration = Duration::from_secs(600);

/// Payload that a node received: slot, bytes, source.
pub(crate) type Received = (Slot, Vec<u8>, PayloadOrigin);

pub(crate) struct Node {
    pub(crate) datagrams: Datagrams<S>,
    pub(crate) keypair: DroneKeypair<S>,
    pub(crate) slot: Slot,
    pub(crate) boot_no: u32,
    pub(crate) inbox: Vec<Received>,
    pub(crate) impostors: Vec<(Slot, Suspicion)>,
    pub(crate) epoch_wanted: usize,
    pub(crate) forgeries: Vec<u64>,
    /// True if it signs and allows signers when asked.
    pub(crate) signs: bool,
    pub(crate) allows: bool,
    pub(crate) rng: ChaCha20Rng,
}

impl Node {
    pub(crate) fn payloads(&self) -> Vec<&[u8]> {
        self.inbox.iter().map(|(_, bytes, _)| bytes.as_slice()).collect()
    }

    /// Answers events until there are none.
    pub(crate) fn drain(&mut self, deployment: &Deployment<S>, now: Duration) {
        while let Some(event) = self.datagrams.poll_event() {
            match event {
                Event::Received { slot, bytes, source } => self.inbox.push((slot, bytes, source)),
                Event::SignatureWanted(request) if self.signs => {
                    let signature =
                        self.keypair.sign(deployment, Label::Datagram, &request.statement, &mut self.rng);
                    self.datagrams.provide_signature(now, request.id, &signature);
                }
                Event::SignerAnnounced { slot, drone } if self.allows => {
                    self.datagrams.allow_signer(now, slot, &drone.handle());
                }
                Event::EpochWanted => self.epoch_wanted += 1,
                Event::TooManyForgeries { count } => self.forgeries.push(count),
                Event::Impostor { slot, suspicion } => self.impostors.push((slot, suspicion)),
                _ => {}
            }
        }
    }
}

/// Faults of a link.
#[derive(Clone, Copy, Default)]
pub(crate) struct Faults {
    /// Datagrams lost, per cent.
    pub(crate) loss: u32,
    pub(crate) doubles: u32,
    /// Datagrams delayed until after the next ones, per cent of the rest.
    pub(crate) reorders: u32,
}

pub(crate) struct Swarm {
    pub(crate) deployment: Deployment<S>,
    leadership: Leadership<S>,
    leader: quiver_ainq::Handle,
    pub(crate) nodes: Vec<Node>,
    pub(crate) now: Duration,
    pub(crate) epoch: Epoch,
    pub(crate) faults: Faults,
    pub(crate) rng: ChaCha20Rng,
    /// Datagrams that were on the air: sender and bytes.
    pub(crate) air: Vec<(usize, Vec<u8>)>,
    delayed: VecDeque<(usize, Vec<u8>)>,
}

impl Swarm {
    /// Makes a swarm of `nodes` members, all with the key of epoch 1. Node 0 is the leader, node i is in slot
    /// i.
    pub(crate) fn new(nodes: usize, config: Config) -> Self {
        let mut swarm = Self::closed(nodes, config);
        for node in 0..nodes {
            swarm.open(node, None);
        }
        swarm
    }

    pub(crate) fn closed(nodes: usize, config: Config) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("test"), master.public());
        let keypairs: Vec<_> = (0..nodes)
            .map(|node| {
                let role =
                    if node == 0 { Role::Leader { group: name("alpha"), ordinal: 0 } } else { Role::Edge };
                let mut serial = [0; 16];
                serial[..8].copy_from_slice(&(node as u64 + 1).to_be_bytes());
                let named = name(&format!("drone-{node}"));
                let groups = vec![name("alpha")];
                let identity = Identity { serial, name: named, role, groups, not_after: 1 << 40 };
                issue_keypair(&master, &deployment, &identity, &mut rng)
            })
            .collect();
        let leader = keypairs[0].public().clone();
        let context = GroupContext { deployment: deployment.clone(), group: name("alpha"), leader };
        let times = Times { issued_at: 1, valid_until: 1_000, revocation_number: 0 };
        let (leadership, _) = Leadership::open_term(
            context,
            &keypairs[0],
            Roster::new(),
            &BTreeMap::new(),
            Epoch::term_of(1, 0),
            [0; 32],
            &times,
            StrategyKind::Flat,
            &mut rng,
        )
        .unwrap();
        let leader = keypairs[0].public().handle();
        let nodes = keypairs.into_iter().enumerate().map(|(number, keypair)| Node {
            datagrams: Datagrams::new(config, deployment.clone()),
            keypair,
            slot: if number == 0 { LEADER_SLOT } else { number as Slot },
            boot_no: 1,
            inbox: Vec::new(),
            impostors: Vec::new(),
            epoch_wanted: 0,
            forgeries: Vec::new(),
            signs: true,
            allows: true,
            rng: ChaCha20Rng::seed_from_u64(1_000 + number as u64),
        });
        let nodes = nodes.collect();
        Self {
            deployment,
            leadership,
            leader,
            nodes,
            now: Duration::from_secs(1_000),
            epoch: Epoch { term: Epoch::term_of(1, 0), counter: 1 },
            faults: Faults::default(),
            rng,
            air: Vec::new(),
            delayed: VecDeque::new(),
        }
    }

    pub(crate) fn digest(&self, epoch: Epoch) -> [u8; 32] {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&epoch.term.to_be_bytes());
        digest[8..16].copy_from_slice(&epoch.counter.to_be_bytes());
        digest
    }

    /// K_tr of an epoch; each has another.
    pub(crate) fn traffic(&self, epoch: Epoch) -> TrafficKey {
        self.leadership.group_key().traffic(&self.digest(epoch))
    }

    pub(crate) fn keys(&self, node: usize, epoch: Epoch, continues: Option<Epoch>) -> EpochKeys<S> {
        let node = &self.nodes[node];
        EpochKeys {
            epoch,
            digest: self.digest(epoch),
            traffic: self.traffic(epoch),
            slot: node.slot,
            boot_no: node.boot_no,
            leader: self.leader,
            slots: MAX_SLOTS.min(4_096),
            signer: Some(node.keypair.public().clone()),
            continues: continues.map(|epoch| self.digest(epoch)),
            valid_for: VALIDITY,
        }
    }

    /// The node gets the key of the current epoch.
    pub(crate) fn open(&mut self, node: usize, continues: Option<Epoch>) {
        let keys = self.keys(node, self.epoch, continues);
        let (now, node) = (self.now, &mut self.nodes[node]);
        node.datagrams.set_epoch(now, keys, &mut node.rng);
        node.drain(&self.deployment, now);
    }

    /// The next epoch of the term; gives the one before.
    pub(crate) fn next_epoch(&mut self) -> Epoch {
        let before = self.epoch;
        self.epoch.counter += 1;
        before
    }

    /// All these nodes get the next epoch at once.
    pub(crate) fn rekey(&mut self, nodes: impl IntoIterator<Item = usize>, removes: bool) {
        let before = self.next_epoch();
        for node in nodes {
            self.open(node, (!removes).then_some(before));
        }
    }

    /// The process starts anew: what its machine knew is gone, its boot number is raised.
    pub(crate) fn restart(&mut self, node: usize, config: Config) {
        let node = &mut self.nodes[node];
        node.boot_no += 1;
        node.datagrams = Datagrams::new(config, self.deployment.clone());
    }

    pub(crate) fn send(
        &mut self,
        node: usize,
        bytes: &[u8],
        priority: Priority,
        sign: bool,
    ) -> Result<(), DatagramRefusal> {
        let (now, node) = (self.now, &mut self.nodes[node]);
        let sent = node.datagrams.send(now, Payload { bytes: bytes.to_vec(), priority, sign });
        node.drain(&self.deployment, now);
        sent
    }

    pub(crate) fn telemetry(&mut self, node: usize, bytes: &[u8]) {
        self.send(node, bytes, Priority::Telemetry, false).unwrap();
    }

    pub(crate) fn command(&mut self, node: usize, bytes: &[u8], sign: bool) {
        self.send(node, bytes, Priority::Command, sign).unwrap();
    }

    /// A carrier brings a datagram to a node.
    pub(crate) fn deliver(&mut self, node: usize, datagram: &[u8]) {
        let (now, node) = (self.now, &mut self.nodes[node]);
        node.datagrams.handle_datagram(now, datagram);
        node.drain(&self.deployment, now);
    }

    /// Takes what a node wants to send, without delivering it.
    pub(crate) fn take(&mut self, node: usize) -> Vec<Vec<u8>> {
        let (now, node) = (self.now, &mut self.nodes[node]);
        let mut taken = Vec::new();
        while let Some(datagram) = node.datagrams.poll_datagram(now) {
            taken.push(datagram);
            node.drain(&self.deployment, now);
        }
        taken
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.next_u32() % 100 < percent
    }

    /// Carries what there is until nobody sends anything.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut sent: Vec<(usize, Vec<u8>)> = Vec::new();
            for node in 0..self.nodes.len() {
                sent.extend(self.take(node).into_iter().map(|datagram| (node, datagram)));
            }
            if sent.is_empty() {
                break;
            }
            self.air.extend(sent.iter().cloned());
            for (from, datagram) in sent {
                for to in (0..self.nodes.len()).filter(|to| *to != from) {
                    self.carry(to, &datagram);
                }
            }
        }
        while let Some((to, datagram)) = self.delayed.pop_front() {
            self.deliver(to, &datagram);
        }
    }

    fn carry(&mut self, to: usize, datagram: &[u8]) {
        let Faults { loss, doubles, reorders } = self.faults;
        if self.chance(loss) {
            return;
        }
        if self.chance(reorders) {
            return self.delayed.push_back((to, datagram.to_vec()));
        }
        self.deliver(to, datagram);
        if self.chance(doubles) {
            self.deliver(to, datagram);
        }
    }

    /// Time passes in steps of this length.
    pub(crate) fn run_for(&mut self, time: Duration, step: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += step;
            for node in &mut self.nodes {
                node.datagrams.handle_timeout(self.now);
                node.drain(&self.deployment, self.now);
            }
            self.settle();
        }
    }

    /// 16 bytes of a key that somebody else may have.
    pub(crate) fn noise(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.rng.fill_bytes(&mut bytes);
        bytes
    }

    pub(crate) fn source_of(&self, node: usize) -> PayloadOrigin {
        let public = self.nodes[node].keypair.public();
        PayloadOrigin::Signed { name: public.identity.name.clone(), handle: public.handle() }
    }
}
