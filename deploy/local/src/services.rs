//! Services of a folder: which programs run, with which arguments.

use crate::folder::FolderSettings;
use crate::ports::{Port, Transport};
use crate::programs::Program;

/// Name of the deployment.
pub(crate) const DEPLOYMENT: &str = "local";
/// The group.
pub(crate) const GROUP: &str = "alpha";
/// File with the key that opens the services' states.
pub(crate) const STATE_KEY: &str = "state.key";
/// MAVLink system id of the first leader, that of a ground station; a deputy has the one below.
const GROUND: u16 = 255;

/// A service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalService {
    /// Name of the service, which is also its data directory and its log.
    pub(crate) name: String,
    /// Program of the service.
    pub(crate) program: Program,
    /// The arguments, for a process that runs in the folder.
    pub(crate) args: Vec<String>,
    /// Addresses at which it listens, for people.
    pub(crate) listens: Vec<String>,
}

impl LocalService {
    /// The command line, as one types it in the folder. No word needs quotes.
    pub(crate) fn command_line(&self) -> String {
        format!("{} {}", self.program.name(), self.args.join(" "))
    }
}

/// All services of a folder, in the order in which they are started.
pub(crate) fn services(settings: &FolderSettings) -> Vec<LocalService> {
    let leaders = (1..=leaders(settings)).map(|ordinal| leader(settings, ordinal));
    let drones = (1..=settings.drones).map(|number| drone(settings, number));
    std::iter::once(kgc(settings)).chain(leaders).chain(drones).collect()
}

/// Number of leaders.
pub(crate) const fn leaders(settings: &FolderSettings) -> u16 {
    if settings.deputy { 2 } else { 1 }
}

/// Ports that the services listen on.
pub(crate) fn ports(settings: &FolderSettings) -> Vec<Port> {
    let port = |purpose: String, transport, number| Port { purpose, transport, number };
    let mut ports = vec![port("kgc".into(), Transport::Tcp, settings.port)];
    for ordinal in 1..=leaders(settings) {
        let number = leader_port(settings, ordinal);
        ports.push(port(format!("leader-{ordinal}"), Transport::Tcp, number));
        if settings.mavlink {
            ports.push(port(format!("leader-{ordinal}'s relay of MAVLink"), Transport::Udp, number));
        }
    }
    if settings.mavlink {
        let of_drone =
            |number| port(format!("edge-{number}'s MAVLink"), Transport::Udp, drone_port(settings, number));
        ports.extend((1..=settings.drones).map(of_drone));
    }
    ports
}

/// The KGC's address, which the deployment file names.
pub(crate) fn kgc_address(settings: &FolderSettings) -> String {
    tcp(settings.port)
}

fn tcp(port: u16) -> String {
    format!("/ip4/127.0.0.1/tcp/{port}")
}

const fn leader_port(settings: &FolderSettings, ordinal: u16) -> u16 {
    settings.port + ordinal
}

const fn drone_port(settings: &FolderSettings, number: u16) -> u16 {
    settings.mavlink_port + number
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.into()).collect()
}

fn kgc(settings: &FolderSettings) -> LocalService {
    let address = kgc_address(settings);
    let args = words(&["serve", "-d", "kgc", "--key-file", STATE_KEY, "--listen", &address]);
    let listens = vec![format!("127.0.0.1:{}", settings.port)];
    LocalService { name: "kgc".into(), program: Program::Kgc, args, listens }
}

/// Arguments that leaders and drones have in common: a data directory, and how they enrol.
fn enrolling(command: &str, name: &str, settings: &FolderSettings) -> Vec<String> {
    let token = token_file(name);
    let kgc = kgc_address(settings);
    let mut args = words(&[command, "-d", name, "--key-file", STATE_KEY, "--kgc", &kgc]);
    args.extend(words(&["--deployment", "kgc/deployment.toml", "--token", &token]));
    args
}

/// The token of a leader or drone.
pub(crate) fn token_file(name: &str) -> String {
    format!("tokens/{name}.token")
}

fn leader(settings: &FolderSettings, ordinal: u16) -> LocalService {
    let name = format!("leader-{ordinal}");
    let port = leader_port(settings, ordinal);
    let mut args = enrolling("serve", &name, settings);
    args.extend(["--listen".into(), tcp(port)]);
    for other in (1..=leaders(settings)).filter(|&other| other != ordinal) {
        args.extend(["--peer".into(), tcp(leader_port(settings, other))]);
    }
    let mut listens = vec![format!("127.0.0.1:{port}")];
    if settings.mavlink {
        let ground = format!("udpout:127.0.0.1:{}", settings.mavlink_port);
        listens.push(ground.clone());
        args.extend(["--mavlink".into(), ground]);
        args.extend(["--carrier".into(), format!("relay:127.0.0.1:{port}")]);
        for leader in 1..=leaders(settings) {
            args.extend(["--system-id".into(), format!("leader-{leader}={}", GROUND + 1 - leader)]);
        }
        for drone in 1..=settings.drones {
            args.extend(["--system-id".into(), format!("edge-{drone}={drone}")]);
        }
    }
    LocalService { name, program: Program::Leader, args, listens }
}

fn drone(settings: &FolderSettings, number: u16) -> LocalService {
    let name = format!("edge-{number}");
    let mut args = enrolling("run", &name, settings);
    for ordinal in 1..=leaders(settings) {
        args.extend(["--leader".into(), tcp(leader_port(settings, ordinal))]);
    }
    let mut listens = Vec::new();
    if settings.mavlink {
        let endpoint = format!("udpin:127.0.0.1:{}", drone_port(settings, number));
        listens.push(endpoint.clone());
        args.extend(["--mavlink".into(), endpoint]);
        for ordinal in 1..=leaders(settings) {
            args.extend(["--carrier".into(), format!("star:127.0.0.1:{}", leader_port(settings, ordinal))]);
        }
    }
    LocalService { name, program: Program::Edge, args, listens }
}
