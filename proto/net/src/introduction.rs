//! Introductions of nodes (over identify, as the agent version), and the reason why a node is not the one
//! that was looked for. Nobody vouches for it: it is for messages to people, and decides at most that a
//! connection which this node opened is of no use.

use std::fmt;

use quiver_machine::Route;

/// Agent version of a node that says no more.
pub(crate) const AGENT: &str = concat!("quiver/", env!("CARGO_PKG_VERSION"));
/// The longest agent version that is looked at, in bytes.
const LONGEST: usize = 256;

/// Service that runs behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// A key generation centre.
    Kgc,
    /// A leader or deputy.
    Leader,
    /// An edge drone.
    Edge,
}

impl Service {
    const ALL: [Self; 3] = [Self::Kgc, Self::Leader, Self::Edge];

    const fn word(self) -> &'static str {
        match self {
            Self::Kgc => "kgc",
            Self::Leader => "leader",
            Self::Edge => "edge",
        }
    }

    fn of(route: Route) -> Option<Self> {
        match route {
            Route::Kgc | Route::Member(_) => Some(Self::Kgc),
            Route::Leader => Some(Self::Leader),
            Route::Inbound | Route::Relay => None,
        }
    }

    /// The option with which others are told its address.
    const fn option(self) -> &'static str {
        match self {
            Self::Kgc => "--kgc",
            Self::Leader | Self::Edge => "--leader",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kgc => "a KGC",
            Self::Leader => "a leader",
            Self::Edge => "an edge",
        })
    }
}

/// Introduction of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    service: Service,
    /// First bytes of its deployment's fingerprint.
    deployment: [u8; 8],
}

/// Introduction that another node sent.
struct Said {
    introduction: Introduction,
    /// Services that the node looks for.
    seeks: Vec<Service>,
}

impl Introduction {
    /// Introduces a service in the deployment with this fingerprint, of which 8 bytes are told.
    #[must_use]
    pub const fn new(service: Service, fingerprint: &[u8; 32]) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *fingerprint;
        Self { service, deployment: [a, b, c, d, e, f, g, h] }
    }

    /// Agent version of a node that dials these routes.
    pub(crate) fn agent(&self, dialled: impl Iterator<Item = Route>) -> String {
        let dialled: Vec<_> = dialled.filter_map(Service::of).collect();
        let seeks: Vec<_> = Service::ALL.into_iter().filter(|service| dialled.contains(service)).collect();
        let seeks: Vec<_> = seeks.into_iter().map(Service::word).collect();
        // §16.3: 8 bytes tell deployments apart; nobody vouches for them.
        let deployment = u64::from_be_bytes(self.deployment);
        format!("{AGENT} {} {deployment:016x} {}", self.service.word(), seeks.join(","))
    }

    /// Explains why a node that was dialled as `route` is the wrong one; `None` if it is not.
    pub(crate) fn objection(&self, route: Route, agent: &str) -> Option<String> {
        let (wanted, other) = (Service::of(route)?, parse(agent)?.introduction);
        if other.deployment != self.deployment {
            return Some(format!("{} of another deployment answers there", other.service));
        }
        (other.service != wanted).then(|| format!("{} answers there, not {wanted}", other.service))
    }

    /// Explains why a node that dialled this one looked for another; `None` if it did not.
    pub(crate) fn astray(&self, agent: &str) -> Option<String> {
        let Said { introduction: other, seeks } = parse(agent)?;
        if other.deployment != self.deployment {
            return Some(format!(
                "{} of another deployment dials this one: it has the wrong address, or the wrong deployment file",
                other.service
            ));
        }
        // §16.3: an address may serve several roles, so that only a missing one is a mistake.
        if seeks.is_empty() || seeks.contains(&self.service) {
            return None;
        }
        let seeks: Vec<_> =
            seeks.into_iter().map(|service| (service.to_string(), service.option())).collect();
        let (what, options): (Vec<_>, Vec<_>) = seeks.into_iter().unzip();
        Some(format!(
            "{} that looks for {} dials {}: check its {}",
            other.service,
            what.join(" or "),
            self.service,
            options.join(" and ")
        ))
    }
}

fn parse(agent: &str) -> Option<Said> {
    // Another program's name, or one that is too long, says nothing.
    let rest = agent.strip_prefix("quiver/").filter(|_| agent.len() <= LONGEST)?;
    let mut words = rest.split(' ').skip(1);
    let service = |word: &str| Service::ALL.into_iter().find(|service| service.word() == word);
    let (own, deployment) = (service(words.next()?)?, u64::from_str_radix(words.next()?, 16).ok()?);
    let seeks = words.next().unwrap_or_default().split(',').filter_map(service).collect();
    let introduction = Introduction { service: own, deployment: deployment.to_be_bytes() };
    Some(Said { introduction, seeks })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KGC: Introduction = Introduction { service: Service::Kgc, deployment: [1; 8] };
    const LEADER: Introduction = Introduction { service: Service::Leader, deployment: [1; 8] };
    const EDGE: Introduction = Introduction { service: Service::Edge, deployment: [1; 8] };

    fn agent(node: Introduction, dials: &[Route]) -> String {
        node.agent(dials.iter().copied())
    }

    #[test]
    fn who_finds_another_role_or_deployment_says_what_answers_there() {
        assert_eq!(EDGE.objection(Route::Leader, &agent(LEADER, &[])), None);
        let kgc = agent(KGC, &[]);
        let told = EDGE.objection(Route::Leader, &kgc).unwrap();
        assert_eq!(told, "a KGC answers there, not a leader");
        let other = Introduction { deployment: [2; 8], ..LEADER };
        let told = EDGE.objection(Route::Leader, &agent(other, &[])).unwrap();
        assert_eq!(told, "a leader of another deployment answers there");
    }

    #[test]
    fn who_is_found_by_mistake_says_by_whom_and_what_to_check() {
        let edge = agent(EDGE, &[Route::Leader]);
        assert_eq!(LEADER.astray(&edge), None);
        let told = KGC.astray(&edge).unwrap();
        assert_eq!(told, "an edge that looks for a leader dials a KGC: check its --leader");
        let leader = agent(LEADER, &[Route::Kgc, Route::Leader]);
        assert_eq!((KGC.astray(&leader), LEADER.astray(&leader)), (None, None));
        let other = Introduction { deployment: [2; 8], ..EDGE };
        assert!(LEADER.astray(&agent(other, &[Route::Leader])).unwrap().contains("another deployment"));
        let enrolling = agent(EDGE, &[Route::Kgc]);
        assert!(
            LEADER.astray(&enrolling).unwrap().contains("looks for a KGC dials a leader: check its --kgc")
        );
    }

    #[test]
    fn who_says_nothing_or_nonsense_is_left_alone() {
        let long = format!("{} kgc {} leader", AGENT, "0".repeat(300));
        for agent in
            ["", AGENT, "rust-libp2p/1", "quiver/9", "quiver/9 kgc", "quiver/9 kgc zz", long.as_str()]
        {
            assert_eq!((EDGE.objection(Route::Leader, agent), LEADER.astray(agent)), (None, None), "{agent}");
        }
        assert_eq!(EDGE.objection(Route::Inbound, &agent(KGC, &[])), None);
    }
}
