//! Addresses that penalised peers came from: each has an allowance of penalties; while it is spent, strangers
//! from there are refused.
//!
//! A transport identity costs nothing, an address costs something. But drones share addresses with strangers
//! (gateways, translation), so an address is judged behind the handshake, when it is known who comes: a peer
//! that has proven who it is to the machine is remembered, and admitted from everywhere. Connections that
//! this node dials are not looked at, nor are those without an address (the memory transport).

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};
use prometheus_client::metrics::counter::Counter;
use tokio::time::Instant;

use crate::config::NodeConfig;
use crate::metrics::NetMetrics;
use crate::recent::Recent;

/// Maximum number of penalties that the peers of one address may have at once.
const ALLOWANCE: u32 = 16;
/// Time until one more penalty is allowed.
const EACH: Duration = Duration::from_millis(37_500);
/// Time until the whole allowance is restored.
const WHOLE: Duration = EACH.saturating_mul(ALLOWANCE);
/// Offences on connections that were open already are charged as well, up to this debt.
const DEEPEST: Duration = WHOLE.saturating_mul(2);

/// Source of a peer's connection: an IPv4 address, or an IPv6 network of 64 bits, which is given to a host as
/// a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Prefix(IpAddr);

impl Prefix {
    pub(crate) fn of(address: &Multiaddr) -> Option<Self> {
        address.iter().find_map(|part| match part {
            Protocol::Ip4(address) => Some(Self(address.into())),
            Protocol::Ip6(address) => Some(Self(match address.to_canonical() {
                // §13.8: IPv6 by its /64.
                IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
                mapped @ IpAddr::V4(_) => mapped,
            })),
            _ => None,
        })
    }
}

/// Owner of a place in the lists of proven peers and their addresses: whoever makes ever new transport keys,
/// or comes from ever new addresses, takes its own places.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum PlaceOwner {
    /// Nothing is known of the peer.
    Unknown,
    /// Peers from there of which the machine knows no name.
    Address(Prefix),
    /// A member, by the name that the machine has for it.
    Member(String),
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => address.fmt(f),
            IpAddr::V6(network) => write!(f, "{network}/64"),
        }
    }
}

/// A token bucket for each address, so many at most.
struct Allowances {
    /// Time at which each allowance is whole again.
    whole_at: HashMap<Prefix, Instant>,
    capacity: usize,
}

impl Allowances {
    fn new(capacity: usize) -> Self {
        Self { whole_at: HashMap::new(), capacity }
    }

    /// Takes a penalty out of an address's allowance. Returns for how long strangers are refused, if that
    /// begins now.
    fn charge(&mut self, from: Prefix, now: Instant) -> Option<Duration> {
        self.whole_at.retain(|_, whole_at| now < *whole_at);
        let before = self.refused_until(from, now);
        if self.whole_at.len() >= self.capacity && !self.whole_at.contains_key(&from) {
            // The one that has most left.
            let fullest = self.whole_at.iter().min_by_key(|(prefix, whole_at)| (**whole_at, **prefix));
            if let Some(fullest) = fullest.map(|(prefix, _)| *prefix) {
                self.whole_at.remove(&fullest);
            }
        }
        let whole_at = self.whole_at.entry(from).or_insert(now);
        // §13.8: one of 16, which comes back after 37.5 s.
        *whole_at = (*whole_at + EACH).min(now + DEEPEST);
        let after = self.refused_until(from, now);
        after.filter(|_| before.is_none()).map(|until| until.saturating_duration_since(now))
    }

    /// End of the refusal of strangers from this address; `None` if they are accepted.
    fn refused_until(&self, from: Prefix, now: Instant) -> Option<Instant> {
        // §13.8: strangers are refused while the allowance is spent.
        let until = (*self.whole_at.get(&from)? + EACH).checked_sub(WHOLE)?;
        (now < until).then_some(until)
    }
}

/// Refuses strangers from addresses whose allowance is spent.
pub(crate) struct Addresses {
    allowances: Allowances,
    proven: Recent<PeerId, PlaceOwner>,
    /// Addresses that proven peers came from.
    familiar: Recent<Prefix, PlaceOwner>,
    /// KGCs of our quorum, which are pinned.
    members: HashSet<PeerId>,
    refused: Counter,
}

impl Addresses {
    pub(crate) fn new(config: &NodeConfig, metrics: &NetMetrics) -> Self {
        Self {
            allowances: Allowances::new(config.limits.blocked),
            proven: Recent::new(config.limits.proven),
            familiar: Recent::new(config.limits.proven),
            members: config.members.iter().map(|(_, id)| *id).collect(),
            refused: metrics.connections_refused.clone(),
        }
    }

    /// A peer that came from there is penalised, and is a stranger from now on.
    pub(crate) fn charge(&mut self, id: &PeerId, from: &[Prefix], now: Instant) {
        // §13.8: a penalised peer is known no more.
        self.proven.remove(id);
        for prefix in from {
            if let Some(pause) = self.allowances.charge(*prefix, now) {
                tracing::warn!(
                    address = %prefix,
                    seconds = pause.as_secs(),
                    "many peers from this address were penalised: strangers from there are refused for a while, peers that \
                     have proven who they are are not; if drones share the address, look for the forger behind it"
                );
            }
        }
    }

    /// The machine has verified this peer's identity.
    pub(crate) fn prove(&mut self, id: PeerId, owner: PlaceOwner) {
        // §13.8: a member takes no place of others, however many transport keys it makes.
        self.proven.add(id, owner);
    }

    /// The machine wants nothing to do with it any more.
    pub(crate) fn disown(&mut self, id: &PeerId) {
        self.proven.remove(id);
    }

    /// The machine has verified the identity of a peer that came from there.
    pub(crate) fn familiarize(&mut self, from: Prefix, owner: PlaceOwner) {
        let other = self.familiar.owner(&from).is_some_and(|before| *before != owner);
        // An address that members share goes with none of them.
        let owner = if other { PlaceOwner::Address(from) } else { owner };
        self.familiar.add(from, owner);
    }

    pub(crate) fn is_proven(&self, id: &PeerId) -> bool {
        self.proven.contains(id)
    }

    /// Returns true if proven peers came from there.
    pub(crate) fn is_familiar(&self, from: Prefix) -> bool {
        self.familiar.contains(&from)
    }

    /// Lets a peer in that came from there, behind its handshake, or counts that it does not.
    pub(crate) fn admit(&self, id: &PeerId, from: Option<Prefix>, now: Instant) -> Result<(), Spent> {
        // §13.8: after the handshake, because drones may share the address with a forger.
        self.admits(id, from, now).inspect_err(|_| {
            self.refused.inc();
        })
    }

    fn admits(&self, id: &PeerId, from: Option<Prefix>, now: Instant) -> Result<(), Spent> {
        let refused = from.filter(|from| self.allowances.refused_until(*from, now).is_some());
        match refused {
            // §13.8: known peers are accepted all the same, and the quorum's other KGCs.
            Some(from) if !self.proven.contains(id) && !self.members.contains(id) => Err(Spent { from }),
            _ => Ok(()),
        }
    }
}

/// Reason why a stranger is refused.
#[derive(Debug, derive_more::Display)]
#[display("the peer is a stranger, and many peers from {from} were penalised: it may come again later")]
pub(crate) struct Spent {
    from: Prefix,
}

impl std::error::Error for Spent {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Transport;
    use crate::key::NodeKey;

    const SECOND: Duration = Duration::from_secs(1);

    fn prefix(text: &str) -> Prefix {
        Prefix::of(&text.parse().unwrap()).unwrap()
    }

    fn numbered(number: u32) -> Prefix {
        Prefix(IpAddr::V4(number.into()))
    }

    fn addresses() -> Addresses {
        let mut config = NodeConfig::registry(NodeKey::from_seed([1; 32]).unwrap(), Transport::Tcp, 10);
        config.members = vec![(2, member())];
        Addresses::new(&config, &NetMetrics::default())
    }

    fn member() -> PeerId {
        NodeKey::from_seed([2; 32]).unwrap().peer_id()
    }

    #[test]
    fn an_ipv4_address_counts_as_a_whole_and_an_ipv6_address_with_its_network() {
        assert_eq!(prefix("/ip4/192.0.2.1/tcp/1"), prefix("/ip4/192.0.2.1/udp/2/quic-v1"));
        assert_ne!(prefix("/ip4/192.0.2.1/tcp/1"), prefix("/ip4/192.0.2.2/tcp/1"));
        assert_eq!(prefix("/ip6/2001:db8::1/tcp/1"), prefix("/ip6/2001:db8::ffff:2/tcp/2"));
        assert_ne!(prefix("/ip6/2001:db8::1/tcp/1"), prefix("/ip6/2001:db8:0:1::1/tcp/1"));
        assert_eq!(prefix("/ip6/::ffff:192.0.2.1/tcp/1"), prefix("/ip4/192.0.2.1/tcp/1"));
        assert_eq!(Prefix::of(&"/memory/7".parse().unwrap()), None);
        let shown = ["/ip4/192.0.2.1/tcp/1", "/ip6/2001:db8::1/tcp/1"].map(|text| prefix(text).to_string());
        assert_eq!(shown, ["192.0.2.1", "2001:db8::/64"]);
    }

    #[test]
    fn a_spent_allowance_refuses_until_one_more_penalty_is_allowed() {
        let (mut allowances, start, from) = (Allowances::new(8), Instant::now(), numbered(1));
        for _ in 1..ALLOWANCE {
            assert_eq!(allowances.charge(from, start), None);
            assert_eq!(allowances.refused_until(from, start), None);
        }
        assert_eq!(allowances.charge(from, start), Some(EACH), "the last one begins it");
        assert_eq!(allowances.refused_until(from, start + EACH - SECOND), Some(start + EACH));
        assert_eq!(allowances.refused_until(from, start + EACH), None);
        assert_eq!(allowances.refused_until(numbered(2), start), None, "nobody else");
        // The one that is allowed by then, and no more.
        assert_eq!(allowances.charge(from, start + EACH), Some(EACH));
        assert_eq!(allowances.charge(from, start + EACH), None, "it goes on");
        assert_eq!(allowances.refused_until(from, start + EACH), Some(start + EACH * 3));
    }

    #[test]
    fn an_allowance_is_whole_again_after_good_conduct_however_much_was_charged() {
        let (mut allowances, start, from) = (Allowances::new(8), Instant::now(), numbered(1));
        for _ in 0..1000 {
            allowances.charge(from, start);
        }
        let refused = DEEPEST - WHOLE + EACH;
        assert_eq!(allowances.refused_until(from, start), Some(start + refused));
        assert_eq!(allowances.refused_until(from, start + refused), None);
        let began: Vec<_> =
            (0..ALLOWANCE).map(|_| allowances.charge(from, start + DEEPEST).is_some()).collect();
        assert_eq!(began.iter().position(|began| *began), Some(ALLOWANCE as usize - 1));
    }

    #[test]
    fn no_more_addresses_are_remembered_than_there_is_room_for_and_the_fullest_goes_first() {
        let (mut allowances, start) = (Allowances::new(3), Instant::now());
        for _ in 0..ALLOWANCE {
            allowances.charge(numbered(0), start);
        }
        for number in 1..100 {
            allowances.charge(numbered(number), start);
            assert!(allowances.whole_at.len() <= 3);
        }
        assert!(allowances.refused_until(numbered(0), start).is_some());
        allowances.charge(numbered(1), start + DEEPEST);
        assert_eq!(allowances.whole_at.len(), 1, "those that are whole again");
    }

    #[test]
    fn who_has_proven_itself_is_let_in_from_a_spent_address_unless_it_is_penalised() {
        let (mut addresses, now, from) = (addresses(), Instant::now(), Some(numbered(1)));
        let [drone, deputy, stranger] = [(); 3].map(|()| PeerId::random());
        addresses.prove(drone, PlaceOwner::Member("drone".into()));
        addresses.prove(deputy, PlaceOwner::Unknown);
        assert!(addresses.admits(&stranger, from, now).is_ok());
        (0..ALLOWANCE).for_each(|_| addresses.charge(&PeerId::random(), &[numbered(1)], now));
        let let_in = |addresses: &Addresses| {
            [drone, deputy, member(), stranger].map(|id| addresses.admits(&id, from, now).is_ok())
        };
        assert_eq!(let_in(&addresses), [true, true, true, false]);
        assert!(addresses.admits(&stranger, Some(numbered(2)), now).is_ok());
        assert!(addresses.admits(&stranger, None, now).is_ok(), "without an address");
        addresses.charge(&drone, &[], now);
        addresses.disown(&deputy);
        assert_eq!(let_in(&addresses), [false, false, true, false]);
    }
}
