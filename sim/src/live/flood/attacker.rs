//! Attackers of a flood: nodes with fresh transport keys and no identity.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quiver_ainq::{
    Deployment, DroneKeypair, Identity, Label, MasterSecret, Name, Role, SealedMessage, SecretValue,
    SparePair, Suite,
};
use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route};
use quiver_message::{
    CatchUpRequest, GroupMessage, JoinHello, JoinRequest, Message, Rekey, RevocationQuery, Source,
};
use quiver_net::{Host, HostError, Multiaddr, NodeConfig, NodeKey, group_topic};
use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRngCore, RngCore};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{Flood, FloodCounters, FloodTarget};
use crate::live::admission;
use crate::live::node::LiveNode;
use crate::live::node_settings::NodeSettings;
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// Bytes of junk in a forged message.
const JUNK: usize = 1024;
/// Bytes of an uncompressed point of a key.
const POINT: usize = 96;
/// Time for which an attacker that shows keys stays connected, and for which each of them tries to connect
/// under one identity.
const STAY: Duration = Duration::from_millis(500);
/// Greatest number of identities of an attacker.
const MAX_LIVES: u32 = 1 << 20;
/// Expiry of a forged identity: 2100-01-01.
const END_OF_TIME: u64 = 4_102_444_800;

/// Running attackers. Dropping it ends the attack.
pub(crate) struct Attack {
    attackers: Vec<JoinHandle<()>>,
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.attackers.iter().for_each(JoinHandle::abort);
    }
}

impl Attack {
    /// Starts the attackers.
    pub(crate) fn begin<S: Suite>(
        flood: Flood,
        target: &FloodTarget<'_>,
        setting: &NodeSettings<S>,
        leader: &Multiaddr,
    ) -> Result<Self> {
        let count = if flood == Flood::Anonymous { 0 } else { target.plan.attackers };
        let begun = (0..count).map(|index| {
            let mut rng = rng_stream::generator(setting.seed, RngStream::Attacker, index, 0);
            let stranger = AttackerTask {
                flood,
                index,
                seed: setting.seed,
                config: config(setting, leader)?,
                messages: AttackMessages::new(setting, target.shown.as_deref(), &mut rng)?,
                every: Duration::from_secs(1) / target.plan.rate,
                comeback: Duration::from_secs(1) / target.plan.identities,
                counters: target.counters.clone(),
            };
            Ok(tokio::spawn(stranger.run()))
        });
        Ok(Self { attackers: begun.collect::<Result<_>>()? })
    }
}

fn config<S: Suite>(setting: &NodeSettings<S>, leader: &Multiaddr) -> Result<NodeConfig> {
    let mut config = setting.lean(NodeConfig::spoke(key(setting.seed, 0)?, setting.transport()));
    config.topic = Some(group_topic(setting.group.as_str()));
    config.dial = vec![(Route::Leader, leader.clone())];
    Ok(config)
}

fn key(seed: u64, number: u32) -> Result<NodeKey> {
    NodeKey::from_seed(rng_stream::node_key(seed, RngStream::Attacker, number))
        .map_err(|source| SimError::Node { who: "attacker".into(), source })
}

/// An attacker that returns under another identity whenever it is cut off.
struct AttackerTask<S: Suite> {
    flood: Flood,
    index: u32,
    seed: u64,
    config: NodeConfig,
    messages: AttackMessages<S>,
    every: Duration,
    /// Least time from one identity to the next.
    comeback: Duration,
    counters: Arc<FloodCounters>,
}

impl<S: Suite> AttackerTask<S> {
    async fn run(self) {
        for life in 1..MAX_LIVES {
            // No two floods have an identity in common: penalties are remembered.
            let number = (self.flood as u32) << 28 | self.index << 20 | life;
            let Ok(key) = key(self.seed, number) else { return };
            let config = NodeConfig { key, ..self.config.clone() };
            let connection = Arc::new(ConnectionState::default());
            let machine = Attacker::new(
                self.flood,
                self.messages.clone(),
                self.every,
                self.counters.clone(),
                connection.clone(),
            );
            let rng = rng_stream::generator(self.seed, RngStream::Attacker, self.index, life);
            let soonest = tokio::time::sleep(self.comeback);
            let Ok(mut node) = LiveNode::start("attacker".into(), &config, machine, NullHost, rng) else {
                return;
            };
            self.counters.appeared();
            while tokio::time::timeout(STAY, connection.over.notified()).await.is_err() {
                // A leader takes one key over each connection. And a peer that is refused before it is
                // connected is not told.
                if self.flood == Flood::Keys || !connection.connected.load(Ordering::Relaxed) {
                    break;
                }
            }
            node.kill().await;
            soonest.await;
        }
    }
}

/// The connection of an attacker under one identity.
#[derive(Default)]
struct ConnectionState {
    connected: AtomicBool,
    /// The connection was cut off.
    over: Notify,
}

/// Messages that attackers have built before they begin.
#[derive(Clone)]
struct AttackMessages<S: Suite> {
    deployment: Deployment<S>,
    group: Name,
    /// A key that another KGC issued.
    drone: Vec<u8>,
    ephemeral: Vec<u8>,
    spare: Vec<u8>,
    spare_signature: Vec<u8>,
    /// A signature of something else.
    signature: Vec<u8>,
    /// Encoded messages for the group.
    published: Vec<Vec<u8>>,
    /// A key in which two points have changed places.
    step: Option<Vec<u8>>,
}

impl<S: Suite> AttackMessages<S> {
    fn new(setting: &NodeSettings<S>, shown: Option<&[u8]>, rng: &mut ChaCha20Rng) -> Result<Self> {
        let (deployment, group) = (setting.deployment.clone(), setting.group.clone());
        let keypair = foreign_keypair(&deployment, &group, rng)
            .map_err(|source| SimError::Protocol { what: "key of an attacker", source })?;
        let spare = SparePair::generate(1, rng).statement(&keypair, &deployment, &group, rng);
        let signature = keypair.sign(&deployment, Label::Join, b"something else", rng);
        let query = Message::RevocationQuery(RevocationQuery { number: 0, max_len: 0 }).encode(&deployment);
        let mut frame = SealedMessage {
            slot: 0,
            boot_no: u32::MAX,
            salt: [0; 8],
            hedge: Default::default(),
            counter: 0,
            ciphertext: vec![0; JUNK],
        };
        rng.fill_bytes(&mut frame.ciphertext);
        let channel = Name::new("telemetry")
            .map_err(|source| SimError::Protocol { what: "name of a channel", source })?;
        let source = Some(Source { drone: keypair.public().encode(), signature: signature.encode() });
        let epoch = quiver_ainq::Epoch { term: 1 << 16, counter: 1 };
        let forged = GroupMessage { group: group.clone(), epoch, channel, frame, source };
        let forged = Message::GroupMessage(forged).encode(&deployment);
        Ok(Self {
            drone: keypair.public().encode(),
            ephemeral: SecretValue::<S>::generate(rng).public().as_bytes().to_vec(),
            spare: spare.point.as_bytes().to_vec(),
            spare_signature: spare.signature.encode(),
            signature: signature.encode(),
            published: vec![query, forged],
            step: shown.map(swap_points),
            deployment,
            group,
        })
    }
}

/// A key for a drone of the group, issued by an unknown KGC.
fn foreign_keypair<S: Suite>(
    deployment: &Deployment<S>,
    group: &Name,
    rng: &mut ChaCha20Rng,
) -> Result<DroneKeypair<S>, quiver_ainq::Error> {
    let master = MasterSecret::<S>::generate(rng);
    let own = Deployment::new(deployment.name().clone(), master.public());
    let mut serial = [0; 16];
    rng.fill_bytes(&mut serial);
    let identity = Identity {
        serial,
        name: Name::new("stranger")?,
        role: Role::Edge,
        groups: vec![group.clone()],
        not_after: END_OF_TIME,
    };
    let secret = SecretValue::generate(rng);
    master.issue_partial_key(&own, &identity, &secret.public(), rng).verify(&own, &identity, &secret)
}

/// The same points, the last two of them in each other's place: every point is one, and no signature holds.
fn swap_points(step: &[u8]) -> Vec<u8> {
    let mut forged = step.to_vec();
    if let Some(first) = forged.len().checked_sub(2 * POINT)
        && let Some((one, other)) = forged.get_mut(first..).map(|points| points.split_at_mut(POINT))
    {
        one.swap_with_slice(other);
    }
    forged
}

/// Sends messages that were built before, at a rate.
pub(crate) struct Attacker<S: Suite> {
    flood: Flood,
    messages: AttackMessages<S>,
    every: Duration,
    next: Option<Duration>,
    leader: Option<Peer>,
    round: u64,
    /// The newest header that it received.
    header: Option<Vec<u8>>,
    out: VecDeque<(Destination, Vec<u8>)>,
    counters: Arc<FloodCounters>,
    connection: Arc<ConnectionState>,
}

impl<S: Suite> Attacker<S> {
    fn new(
        flood: Flood,
        messages: AttackMessages<S>,
        every: Duration,
        counters: Arc<FloodCounters>,
        connection: Arc<ConnectionState>,
    ) -> Self {
        Self {
            flood,
            messages,
            every,
            next: None,
            leader: None,
            round: 0,
            header: None,
            out: VecDeque::new(),
            counters,
            connection,
        }
    }

    fn send(&mut self, to: Destination, message: Vec<u8>) {
        self.counters.sent(message.len());
        self.out.push_back((to, message));
    }

    fn ask(&mut self, leader: Peer, message: &Message<S>) {
        let encoded = message.encode(&self.messages.deployment);
        self.send(Destination::Peer(leader), encoded);
    }

    fn nonce(&self) -> [u8; 16] {
        let mut nonce = [0; 16];
        nonce.iter_mut().zip(self.round.to_be_bytes()).for_each(|(to, byte)| *to = byte);
        nonce
    }

    fn attack(&mut self, leader: Peer) {
        self.round += 1;
        match self.flood {
            Flood::Gossip => self.publish(leader),
            Flood::Joins => {
                let (group, drone) = (self.messages.group.clone(), self.messages.drone.clone());
                let hello = JoinHello { group, drone, nonce: self.nonce(), kem: None };
                self.ask(leader, &Message::JoinHello(hello));
            }
            Flood::Keys if self.round == 1 => {
                let (nonce, group) = (self.nonce(), self.messages.group.clone());
                self.ask(leader, &admission::hello(nonce, group));
            }
            Flood::Keys | Flood::Anonymous => {}
        }
    }

    fn publish(&mut self, leader: Peer) {
        let choices = self.messages.published.len() as u64 + 2;
        let place = usize::try_from(self.round % choices).unwrap_or(0);
        if let Some(message) = self.messages.published.get(place).cloned() {
            return self.send(Destination::Group, message);
        }
        match self.header.clone().filter(|_| place == self.messages.published.len()) {
            Some(header) => self.send(Destination::Group, header),
            None => {
                let slot = u32::try_from(self.round % 1024).unwrap_or(0);
                let (group, number) = (self.messages.group.clone(), self.nonce());
                let request = CatchUpRequest { group, slot, number, held: [0; 32], tag: [0; 32] };
                self.ask(leader, &Message::CatchUpRequest(request));
            }
        }
    }

    fn received(&mut self, from: Peer, bytes: &[u8]) {
        self.counters.answered();
        let header = match Message::<S>::decode(&self.messages.deployment, bytes) {
            Ok(Message::JoinChallenge(challenge)) => {
                let messages = &self.messages;
                let request = JoinRequest {
                    group: messages.group.clone(),
                    drone: messages.drone.clone(),
                    nonce: challenge.nonce,
                    challenge: challenge.challenge,
                    ephemeral: messages.ephemeral.clone(),
                    spare_q: 1,
                    spare_point: messages.spare.clone(),
                    spare_signature: messages.spare_signature.clone(),
                    signature: messages.signature.clone(),
                    kem: None,
                };
                return self.ask(from, &Message::JoinRequest(request));
            }
            Ok(message @ Message::Extension(_)) => {
                let step = self.messages.step.as_deref();
                if let Some(proof) = step.and_then(|step| admission::proof(&message, step)) {
                    self.ask(from, &proof);
                }
                return;
            }
            Ok(Message::Rekey(rekey)) => rekey.header,
            Ok(Message::CatchUpReply(reply)) => reply.header,
            _ => return,
        };
        let known = Message::Rekey(Rekey::new(header, None));
        self.header = Some(known.encode(&self.messages.deployment));
    }
}

impl<S: Suite> Machine for Attacker<S> {
    type Command = ();
    type Event = ();
    type Record = ();

    fn handle_input(&mut self, now: Now, input: Input<'_, ()>, _: &mut dyn CryptoRngCore) {
        match input {
            Input::Connected { peer, .. } => {
                (self.leader, self.next) = (Some(peer), Some(now.monotonic));
                self.connection.connected.store(true, Ordering::Relaxed);
            }
            Input::Disconnected { .. } => {
                (self.leader, self.next) = (None, None);
                self.connection.over.notify_one();
            }
            Input::Received { from, bytes, .. } => self.received(from, bytes),
            _ => {}
        }
        if let (Some(leader), Some(_)) = (self.leader, self.next.filter(|next| *next <= now.monotonic)) {
            self.attack(leader);
            // Missed sends are not made up for.
            self.next = Some(now.monotonic + self.every);
        }
    }

    fn poll_output(&mut self) -> Output<(), ()> {
        match self.out.pop_front() {
            Some((to, payload)) => Output::Transmit { to, payload },
            None => Output::Timeout(self.next),
        }
    }
}

/// The callback of an attacker, which ignores everything.
struct NullHost;

impl<S: Suite> Host<Attacker<S>> for NullHost {
    fn persist(&mut self, _: &[()]) -> std::result::Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, _: &Attacker<S>, (): ()) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_key_has_the_same_points_in_another_order() {
        let step: Vec<u8> = (0..=u8::MAX).cycle().take(33 + 4 * POINT).collect();
        let forged = swap_points(&step);
        assert_eq!(forged.len(), step.len());
        assert_eq!(forged[..33 + 2 * POINT], step[..33 + 2 * POINT]);
        assert_eq!(forged[33 + 2 * POINT..][..POINT], step[33 + 3 * POINT..]);
        assert_eq!(forged[33 + 3 * POINT..], step[33 + 2 * POINT..][..POINT]);
    }
}
