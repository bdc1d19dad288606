//! Datagrams of a group: two members fed with anything by strangers, relays and a hostile member.

use std::collections::BTreeSet;
use std::time::Duration;

use aes::Aes128;
use ccm::consts::{U8, U13, U16};
use ccm::{AeadInOut, Ccm, KeyInit};
use quiver_ainq::traffic::Start;
use quiver_ainq::{
    Deployment, DroneKeypair, Epoch, EpochKeys, GroupContext, Identity, Label, Leadership, MasterSecret,
    Ristretto255 as S, Role, Roster, Slot, StrategyKind, Times, TrafficKey,
};
use quiver_datagram::{Config, Datagrams, Event, Payload, PayloadOrigin, Priority};
use quiver_testbed::{issue_keypair, name};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// The hostile member's slot.
const HOSTILE: Slot = 3;

/// Anything, from a stranger and from relays that repeat and alter what members send while the key changes:
/// nothing is received that was not sent, and nothing twice by one process.
pub fn input(bytes: &[u8]) {
    let mut pair = MemberPair::new();
    let mut script = bytes;
    let mut counter = 0_u16;
    while let Some((&step, rest)) = script.split_first() {
        script = rest;
        let member = usize::from(step >> 7);
        match step & 15 {
            0..=3 => {
                counter += 1;
                let priority = if step & 1 == 0 { Priority::Telemetry } else { Priority::Command };
                pair.send(member, &counter.to_be_bytes(), priority, step & 2 != 0);
            }
            4 | 5 => pair.collect(member),
            6..=8 => pair.repeat(member, usize::from(step >> 4 & 7), None),
            9 => {
                let (at, rest) = rest.split_first().unwrap_or((&0, &[]));
                script = rest;
                pair.repeat(member, usize::from(step >> 4 & 7), Some(*at));
            }
            10 => pair.pass(Duration::from_millis(u64::from(step >> 4 & 7) * 100)),
            11 => pair.rekey(member, step & 0x40 != 0),
            12 => pair.members[member].close(),
            13 => pair.restart(member),
            _ => {
                let (datagram, rest) = rest.split_at(usize::from(step >> 4 & 7) * 8.min(rest.len() / 8));
                script = rest;
                pair.deliver(member, datagram);
            }
        }
    }
    pair.check(true);
}

/// Feeds datagrams that a hostile member seals, who knows the key and the starts of all: nothing panics, and
/// nothing is received as signed by somebody who did not sign it.
pub fn member(bytes: &[u8]) {
    let mut pair = MemberPair::new();
    for member in 0..2 {
        pair.send(member, b"hello", Priority::Command, true);
        pair.collect(member);
    }
    (0..pair.air.len()).for_each(|place| (0..2).for_each(|to| pair.repeat(to, place, None)));
    let mut input = bytes;
    while let Some((&[step, len], rest)) = input.split_first_chunk() {
        let (body, rest) = rest.split_at(usize::from(len).min(rest.len()));
        input = rest;
        let slot = Slot::from(step >> 3 & 3);
        let datagram = pair.seal(step & 7, slot, body);
        (0..2).for_each(|to| pair.deliver(to, &datagram));
        if step & 0x80 != 0 {
            pair.pass(Duration::from_millis(300));
        }
    }
    pair.check(false);
}

/// Datagram received: by which member, after how many starts; from whom, what, and from where.
type ReceivedDatagram = ((usize, u32), Slot, Vec<u8>, PayloadOrigin);

struct MemberPair {
    deployment: Deployment<S>,
    keypairs: Vec<DroneKeypair<S>>,
    leadership: Leadership<S>,
    members: [Datagrams<S>; 2],
    boot_nos: [u32; 2],
    epochs: [u64; 2],
    now: Duration,
    /// Datagrams sent: by whom, and whether signed.
    sent: BTreeSet<(usize, Vec<u8>, bool)>,
    received: Vec<ReceivedDatagram>,
    air: Vec<Vec<u8>>,
    /// The hostile member's numbers.
    number: u32,
    rng: ChaCha20Rng,
}

impl MemberPair {
    fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("fuzz"), master.public());
        let roles = [Role::Edge, Role::Edge, Role::Leader { group: name("alpha"), ordinal: 0 }];
        let keypairs: Vec<_> = (0..)
            .zip(roles)
            .map(|(number, role)| {
                let (named, groups) = (name(&format!("drone-{number}")), vec![name("alpha")]);
                let identity =
                    Identity { serial: [number; 16], name: named, role, groups, not_after: 1 << 40 };
                issue_keypair(&master, &deployment, &identity, &mut rng)
            })
            .collect();
        let leader = keypairs[2].public().clone();
        let context = GroupContext { deployment: deployment.clone(), group: name("alpha"), leader };
        let times = Times { issued_at: 1, valid_until: 1_000, revocation_number: 0 };
        let (leadership, _) = Leadership::open_term(
            context,
            &keypairs[2],
            Roster::new(),
            &std::collections::BTreeMap::new(),
            Epoch::term_of(1, 0),
            [0; 32],
            &times,
            StrategyKind::Flat,
            &mut rng,
        )
        .expect("a term");
        let config = Config {
            manifest_every: Some(Duration::from_millis(500)),
            max_senders: 4,
            hold_datagrams: 8,
            ..Config::board()
        };
        let members = [0, 1].map(|_| Datagrams::new(config, deployment.clone()));
        let mut pair = Self {
            deployment,
            keypairs,
            leadership,
            members,
            boot_nos: [1; 2],
            epochs: [1; 2],
            now: Duration::from_secs(1),
            sent: BTreeSet::new(),
            received: Vec::new(),
            air: Vec::new(),
            number: 0,
            rng,
        };
        (0..2).for_each(|member| pair.open(member, None));
        pair
    }

    fn digest(epoch: u64) -> [u8; 32] {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&epoch.to_be_bytes());
        digest
    }

    fn traffic(&self, epoch: u64) -> TrafficKey {
        self.leadership.group_key().traffic(&Self::digest(epoch))
    }

    fn open(&mut self, member: usize, continues: Option<u64>) {
        let epoch = self.epochs[member];
        let keys = EpochKeys {
            epoch: Epoch { term: Epoch::term_of(1, 0), counter: epoch },
            digest: Self::digest(epoch),
            traffic: self.traffic(epoch),
            slot: member as Slot,
            boot_no: self.boot_nos[member],
            leader: self.keypairs[2].public().handle(),
            slots: 8,
            signer: Some(self.keypairs[member].public().clone()),
            continues: continues.map(Self::digest),
            valid_for: Duration::from_secs(1_000),
        };
        self.members[member].set_epoch(self.now, keys, &mut self.rng);
        self.drain(member);
    }

    fn rekey(&mut self, member: usize, removes: bool) {
        let before = self.epochs[member];
        self.epochs[member] += 1;
        self.open(member, (!removes).then_some(before));
    }

    fn restart(&mut self, member: usize) {
        self.boot_nos[member] += 1;
        // In a new epoch: a member that restarts has lost the key of the one that it was in.
        self.epochs[member] += 1;
        let config = Config { max_senders: 4, hold_datagrams: 8, ..Config::board() };
        self.members[member] = Datagrams::new(config, self.deployment.clone());
        self.open(member, None);
    }

    fn send(&mut self, member: usize, bytes: &[u8], priority: Priority, sign: bool) {
        let payload = Payload { bytes: bytes.to_vec(), priority, sign };
        if self.members[member].send(self.now, payload).is_ok() {
            self.sent.insert((member, bytes.to_vec(), sign));
        }
        self.drain(member);
    }

    fn collect(&mut self, member: usize) {
        while let Some(datagram) = self.members[member].poll_datagram(self.now) {
            assert!(datagram.len() <= Config::board().mtu);
            self.air.push(datagram);
            self.drain(member);
        }
        let surplus = self.air.len().saturating_sub(64);
        self.air.drain(..surplus);
    }

    fn repeat(&mut self, to: usize, back: usize, alter: Option<u8>) {
        let Some(place) = self.air.len().checked_sub(back + 1) else { return };
        let mut datagram = self.air[place].clone();
        if let Some(at) = alter {
            let at = usize::from(at) % datagram.len();
            datagram[at] ^= 1;
        }
        self.deliver(to, &datagram);
    }

    fn deliver(&mut self, to: usize, datagram: &[u8]) {
        self.members[to].handle_datagram(self.now, datagram);
        self.drain(to);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for member in 0..2 {
            self.members[member].handle_timeout(self.now);
            self.drain(member);
        }
    }

    fn drain(&mut self, member: usize) {
        while let Some(event) = self.members[member].poll_event() {
            match event {
                Event::Received { slot, bytes, source } => {
                    let process = (member, self.boot_nos[member]);
                    self.received.push((process, slot, bytes, source));
                }
                Event::SignatureWanted(request) => {
                    let signature = self.keypairs[member].sign(
                        &self.deployment,
                        Label::Datagram,
                        &request.statement,
                        &mut self.rng,
                    );
                    self.members[member].provide_signature(self.now, request.id, &signature);
                }
                Event::SignerAnnounced { slot, drone } => {
                    let known = self.keypairs.iter().any(|keypair| keypair.public() == &*drone);
                    assert!(known, "a signature of nobody");
                    self.members[member].allow_signer(self.now, slot, &drone.handle());
                }
                _ => {}
            }
        }
    }

    /// Seals what a member seals that knows the key of the first epoch and everybody's salt.
    fn seal(&mut self, kind: u8, slot: Slot, body: &[u8]) -> Vec<u8> {
        self.number += 1;
        let start = self.air.iter().find_map(|datagram| announced(datagram, slot));
        let start = start.unwrap_or(Start { slot: HOSTILE, boot_no: 1, salt: [3; 8] });
        let traffic = self.traffic(1);
        let mut bytes = vec![0x40 | kind << 3 | 1, start.slot as u8 + 1];
        let mut nonce = [0; 13];
        nonce[9..].copy_from_slice(&self.number.to_be_bytes());
        if kind == 7 {
            bytes.extend_from_slice(&start.boot_no.to_be_bytes());
            bytes.extend_from_slice(&start.salt);
            bytes.extend_from_slice(&self.number.to_be_bytes());
            let cipher = Ccm::<Aes128, U16, U13>::new(traffic.announcement_key(&start).expose().into());
            let mut sealed = body.to_vec();
            let tag = cipher.encrypt_inout_detached(&nonce.into(), &bytes, sealed.as_mut_slice().into());
            return [bytes, sealed, tag.expect("short").to_vec()].concat();
        }
        nonce[0] = u8::from([2, 3, 5, 6].contains(&kind));
        bytes.extend_from_slice(&(self.number as u16).to_be_bytes());
        let cipher = Ccm::<Aes128, U8, U13>::new(traffic.datagram_key(&start).expose().into());
        let mut sealed = body.to_vec();
        let tag = cipher.encrypt_inout_detached(&nonce.into(), &bytes, sealed.as_mut_slice().into());
        [bytes, sealed, tag.expect("short").to_vec()].concat()
    }

    /// Checks what was received: signed it is the signer's; `alone`: no member is hostile, and it is what was
    /// sent, once.
    fn check(&self, alone: bool) {
        let mut seen = BTreeSet::new();
        for (to, slot, bytes, source) in &self.received {
            if let PayloadOrigin::Signed { handle, .. } = source {
                let from = self.keypairs.iter().position(|keypair| keypair.public().handle() == *handle);
                let from = from.expect("a member");
                assert!(self.sent.contains(&(from, bytes.clone(), true)), "signed by nobody: {bytes:?}");
            }
            if alone {
                let signed = matches!(source, PayloadOrigin::Signed { .. });
                let from = *slot as usize;
                assert!(self.sent.contains(&(from, bytes.clone(), signed)), "never sent: {bytes:?}");
                assert!(seen.insert((to, bytes)), "twice: {bytes:?}");
            }
        }
    }
}

/// The start that an announcement from this slot is about.
fn announced(datagram: &[u8], slot: Slot) -> Option<Start> {
    let (&[first, at], rest) = datagram.split_first_chunk()?;
    let (boot_no, rest) = rest.split_first_chunk()?;
    let salt = *rest.first_chunk()?;
    let is = first >> 3 & 7 == 7 && Slot::from(at) == slot + 1;
    is.then(|| Start { slot, boot_no: u32::from_be_bytes(*boot_no), salt })
}

/// Members that talk, while the key changes and a relay repeats what they said.
pub fn input_seeds() -> Vec<Vec<u8>> {
    vec![
        vec![0, 1, 4, 0x86, 0x96, 0xa6, 0x80, 0x83, 0x84, 6, 0x16],
        vec![1, 3, 4, 0x86, 0x96, 0xa6, 11, 0x8b, 4, 0x86, 0x96, 0xa6, 0x1a, 4, 0x86],
        vec![3, 4, 0x86, 0x96, 13, 3, 4, 0x8b, 0x86, 0x96, 0x5a, 0x89, 7, 12, 11, 1, 4, 0x86],
    ]
}

/// Bodies of every kind.
pub fn member_seeds() -> Vec<Vec<u8>> {
    let signature = [0x40; 64];
    let signed = |kind: u8, body: &[u8]| {
        let bytes = [body, &signature].concat();
        [&[kind, bytes.len() as u8][..], &bytes].concat()
    };
    vec![
        vec![0, 3, 1, 2, 3, 1, 5, 1, 7, 2, 8, 9],
        signed(2, b"fire"),
        signed(3, &[1, 7, 2, 8, 9]),
        vec![4, 8, 0, 0, 0, 0, 0, 2, 8, 9],
        signed(6, &[0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]),
        vec![7, 11, 0, 0, 0, 0, 0, 9, 2, 1, 1, 0, 2],
        signed(7, &[1, 10, 0, 0, 0, 9, 0]),
    ]
}
