//! An attribute authority, and what drones do with its keys.

use std::time::Duration;

use quiver_abe::envelope::{
    AnyKey, AnyParameters, AnyScheme, EnvelopeTarget, Lifetime, SendingSession, seal_bytes,
};
use quiver_abe::{FabeoCp, MasterKey, Parameters, PublicEncoding, Scheme, SecretEncoding, Universe};
use quiver_envelope::{AttributeAccess, AttributeKeys, EnvelopeCommand, EnvelopeEvent};
use quiver_machine::Either;
use quiver_policy::{AttributeSet, Schema};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::beside::{EdgeMachine, LeaderMachine};
use crate::world::{Node, World};

/// An authority under FABEO's ciphertext-policy scheme.
pub(crate) struct Authority {
    parameters: Parameters<FabeoCp>,
    master: MasterKey<FabeoCp>,
    public: AnyParameters,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        let (parameters, master) = FabeoCp::setup(&Universe::Open, &mut rng).unwrap();
        let public = AnyParameters::decode(FabeoCp::ID, &parameters.encode()).unwrap();
        Self { parameters, master, public }
    }

    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        *self.public.authority().as_bytes()
    }

    /// Parameters alone.
    pub(crate) fn public(&self) -> AttributeKeys {
        AttributeKeys::new(vec![AttributeAccess::new(self.public.clone(), None).unwrap()])
    }

    /// Parameters and a key for these attributes.
    pub(crate) fn key(&self, attributes: &str) -> AttributeKeys {
        let set = AttributeSet::parse(attributes, &Schema::new()).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let key = FabeoCp::derive(&self.parameters, &self.master, &set, &mut rng).unwrap();
        let key = AnyKey::decode(FabeoCp::ID, &key.encode()).unwrap();
        let access = AttributeAccess::new(self.public.clone(), Some(key)).unwrap();
        AttributeKeys::new(vec![access])
    }

    /// An unsigned envelope of one message.
    pub(crate) fn sealed(&self, policy: &str, data: &[u8], group: Option<&str>, created: u64) -> Vec<u8> {
        let mut rng = ChaCha20Rng::seed_from_u64(8);
        let (target, lifetime) =
            (EnvelopeTarget::policy(policy, &Schema::new()).unwrap(), Lifetime::default());
        let session = SendingSession::begin::<AnyScheme>(
            &self.public,
            &target,
            group,
            None,
            lifetime,
            created,
            &mut rng,
        );
        seal_bytes(session.unwrap().message(created).unwrap(), data, None, &mut rng).unwrap()
    }

    pub(crate) fn seal(&self, policy: &str, data: &[u8], signed: bool) -> EnvelopeCommand {
        let target = EnvelopeTarget::policy(policy, &Schema::new()).unwrap();
        EnvelopeCommand::Seal { authority: self.fingerprint(), target, data: data.to_vec(), signed }
    }
}

/// A group whose drones have these attributes ("" for no key at all), and whose leader has the parameters.
pub(crate) fn swarm(seed: u64, attributes: &[&str]) -> (World, Authority) {
    let mut world = World::grouped(seed, attributes.len());
    let authority = Authority::new();
    for (edge, attributes) in attributes.iter().enumerate().filter(|(_, attributes)| !attributes.is_empty()) {
        give(&mut world, edge, &authority.key(attributes));
    }
    envelope_leader(&mut world, EnvelopeCommand::Keys(authority.public()));
    (world, authority)
}

pub(crate) fn envelope_leader(world: &mut World, command: EnvelopeCommand) {
    world.command::<LeaderMachine>(Node::Leader, Either::Right(command));
}

pub(crate) fn envelope_edge(world: &mut World, edge: usize, command: EnvelopeCommand) {
    world.command::<EdgeMachine>(Node::Edge(edge), Either::Right(command));
}

pub(crate) fn envelope_events(world: &World, edge: usize) -> impl DoubleEndedIterator<Item = &EnvelopeEvent> {
    world.edge_events(edge).iter().filter_map(Either::right)
}

pub(crate) fn give(world: &mut World, edge: usize, keys: &AttributeKeys) {
    envelope_edge(world, edge, EnvelopeCommand::Keys(keys.clone()));
}

/// The leader sends an order, and all drones have time to receive it.
pub(crate) fn order(world: &mut World, authority: &Authority, policy: &str, data: &[u8]) {
    envelope_leader(world, authority.seal(policy, data, true));
    world.run_for(Duration::from_millis(500));
}

/// Data that a drone opened, and the names of the signers.
pub(crate) fn opened(world: &World, edge: usize) -> Vec<(Vec<u8>, Option<String>)> {
    let opened = envelope_events(world, edge).filter_map(|event| match event {
        EnvelopeEvent::Opened { data, author, .. } => {
            Some((data.to_vec(), author.as_ref().map(|author| author.name.to_string())))
        }
        _ => None,
    });
    opened.collect()
}

/// Number of envelopes that a drone's keys did not satisfy.
pub(crate) fn not_satisfied(world: &World, edge: usize) -> usize {
    let told = |event: &&EnvelopeEvent| matches!(event, EnvelopeEvent::NotSatisfied { .. });
    envelope_events(world, edge).filter(told).count()
}

/// The last envelope that went from `from` to edge 0.
pub(crate) fn last_envelope(world: &World, from: Node) -> Vec<u8> {
    let sealed = |bytes: &[u8]| bytes.windows(4).any(|window| window == b"QvE\x01");
    let packets = world.recorded.iter().rev();
    let mut found = packets.filter(|packet| packet.from == from && sealed(&packet.bytes));
    found.next().unwrap().bytes.clone()
}
