//! Attacks of strangers on a service.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use quiver_machine::MAX_MESSAGE_LEN;
use quiver_net::{Multiaddr, group_topic};
use quiver_strangers::acts::{asks, introduces, nothing, opens, publishes, publishes_wrongly, stalls};
use quiver_strangers::{Act, CLOCK, GROUP, INTRODUCTION, MESSAGES, Stranger, StrangerLine};

use crate::site::{GROUP_NAME, MEMBERS};

/// A protocol that nobody speaks: the one who is asked says so and waits for another proposal.
const UNKNOWN: &str = "/quiver/1/nothing";
/// Addresses that the strangers of an attack come from. The first is the drones' own.
const ADDRESSES: u8 = 8;

/// A service that is attacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub(crate) enum AttackedService {
    Kgc,
    Leader,
    Relay,
}

impl AttackedService {
    pub(crate) const ALL: [Self; 3] = [Self::Leader, Self::Relay, Self::Kgc];

    /// Handshakes that go on at a time (`NodeLimits::served`); a KGC has places for 4,096 drones.
    pub(crate) fn handshakes(self) -> u32 {
        match self {
            Self::Kgc => 4096,
            Self::Leader | Self::Relay => 512,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kgc => "KGC",
            Self::Leader => "leader",
            Self::Relay => "relay",
        }
    }
}

/// A kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Attack {
    /// Small group messages of another topic
    Foreign,
    /// Small group messages of the group's own topic
    Own,
    /// Group messages that are invalid
    Invalid,
    /// Connections that do nothing
    Idle,
    /// Messages of 1 MiB, 31 at a time over each connection, of which the last byte is missing
    Stalled,
    /// Streams that are opened, and streams of a protocol that nobody speaks
    HalfOpen,
    /// Connections that say nothing at all, so that their handshakes never end
    Mute,
    /// Short questions without end, each over a stream of its own: for the time, and introductions with many
    /// addresses
    Asking,
}

impl Attack {
    pub(crate) const ALL: [Self; 8] = [
        Self::Foreign,
        Self::Own,
        Self::Invalid,
        Self::Idle,
        Self::Stalled,
        Self::HalfOpen,
        Self::Mute,
        Self::Asking,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Foreign => "foreign topic",
            Self::Own => "own topic",
            Self::Invalid => "invalid messages",
            Self::Idle => "idle",
            Self::Stalled => "stalled frames",
            Self::HalfOpen => "half-open streams",
            Self::Mute => "mute connections",
            Self::Asking => "questions",
        }
    }

    /// Returns true if the attack can be made on this service: KGCs have no group.
    pub(crate) fn suits(self, target: AttackedService) -> bool {
        target != AttackedService::Kgc || !matches!(self, Self::Foreign | Self::Own | Self::Invalid)
    }

    /// Number of strangers. Idle ones are several times as many as a leader of the site has places.
    pub(crate) fn strangers(self, target: AttackedService) -> u32 {
        match self {
            Self::Foreign | Self::Own | Self::Invalid | Self::Asking => 8,
            Self::Stalled | Self::HalfOpen => 32,
            Self::Idle => 6 * MEMBERS,
            // Of each address half as many again as may be in their handshake, because some pause.
            Self::Mute => u32::from(ADDRESSES) * target.handshakes() * 3 / 8,
        }
    }

    /// Bytes a second of each: together they have as much as a fast radio link, and leave the processor to others.
    fn rate(self) -> u32 {
        match self {
            Self::Foreign
            | Self::Own
            | Self::Invalid
            | Self::Idle
            | Self::HalfOpen
            | Self::Mute
            | Self::Asking => 128 << 10,
            // Each has sent all of its 31 MiB within half a minute.
            Self::Stalled => 1 << 20,
        }
    }

    /// Pause before a stranger that is cut off comes back under another identity.
    fn returns(self) -> Duration {
        match self {
            Self::Idle | Self::Mute => Duration::from_secs(4),
            _ => Duration::from_millis(500),
        }
    }

    fn streams(self) -> Vec<(&'static str, usize, Act)> {
        match self {
            Self::Foreign => vec![(GROUP, 1, publishes("x".into(), 0, 8, Arc::default()))],
            Self::Own => vec![(GROUP, 1, publishes(group_topic(GROUP_NAME), 0, 8, Arc::default()))],
            Self::Invalid => vec![(GROUP, 1, publishes_wrongly(group_topic(GROUP_NAME), 8))],
            Self::Idle => vec![(MESSAGES, 0, nothing())],
            Self::Stalled => vec![(MESSAGES, 31, stalls(MAX_MESSAGE_LEN))],
            Self::HalfOpen => vec![(MESSAGES, 30, opens()), (UNKNOWN, 30, opens())],
            Self::Mute => Vec::new(),
            Self::Asking => vec![(CLOCK, 4, asks(vec![7; 16])), (INTRODUCTION, 1, introduces(300))],
        }
    }
}

/// An attack on a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttackRun {
    pub(crate) target: AttackedService,
    pub(crate) attack: Attack,
    /// Tells it from other attacks.
    pub(crate) number: u8,
}

impl AttackRun {
    /// Number of strangers.
    pub(crate) fn strangers(self) -> u64 {
        self.attack.strangers(self.target).into()
    }
}

/// An attack under way, until it is dropped.
pub(crate) struct Attackers {
    lines: Vec<StrangerLine>,
    strangers: Vec<Stranger>,
}

impl Attackers {
    /// Begins an attack. Its strangers come from 127.0.0.1, as the drones do, and from seven addresses that no attack
    /// of another number comes from.
    pub(crate) fn begin(run: AttackRun, at: &Multiaddr) -> Self {
        let AttackRun { target, attack, number } = run;
        let lines: Vec<_> = (0..ADDRESSES)
            .map(|host| match host {
                0 => Ipv4Addr::LOCALHOST,
                _ => Ipv4Addr::new(127, 1, number, host),
            })
            .map(|address| StrangerLine::default().bound_to(address).limited(attack.rate()))
            .collect();
        let streams = attack.streams();
        let streams: Vec<_> = streams.iter().map(|(protocol, count, act)| (*protocol, *count, act)).collect();
        let strangers = (0..attack.strangers(target)).zip(lines.iter().cycle());
        let returns = Some(attack.returns());
        let strangers = strangers.map(|(_, line)| match attack {
            Attack::Mute => Stranger::mute(line, at, returns),
            Attack::Asking => Stranger::repeating(line, at, &streams, returns),
            _ => Stranger::over(line, at, &streams, returns),
        });
        let strangers = strangers.collect();
        Self { lines, strangers }
    }

    /// Bytes that they have sent.
    pub(crate) fn sent(&self) -> u64 {
        self.lines.iter().map(StrangerLine::sent).sum()
    }

    /// Connections that they have made.
    pub(crate) fn connections(&self) -> u64 {
        self.lines.iter().map(StrangerLine::connections).sum()
    }

    /// Strangers that are connected right now.
    pub(crate) fn connected(&self) -> usize {
        self.strangers.iter().filter(|stranger| stranger.is_connected()).count()
    }
}
