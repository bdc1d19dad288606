//! The services under attack and their drones, each a process.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use quiver_net::Multiaddr;
use quiver_service_testing::deployment::ANY;
use quiver_service_testing::timeout::Deadline;
use quiver_service_testing::{Process, TestDeployment, eventually, now, text};

use crate::attack::AttackedService;

/// The group.
pub(crate) const GROUP_NAME: &str = "alpha";
/// Members that leader and relay have room for: few, so that strangers take all places.
pub(crate) const MEMBERS: u32 = 64;
/// Time limit of a single step under attack.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks at what drones say.
const LOOK: Duration = Duration::from_millis(2);

/// Bytes of a drone's output that hold its last lines.
const END: i64 = 4096;

/// An epoch: term and counter.
type EpochNumber = (u64, u64);

/// A drone.
pub(crate) struct DroneProcess {
    name: String,
    process: Process,
    leader: String,
    behind_relay: bool,
}

impl DroneProcess {
    /// The newest epoch whose key it says it holds.
    fn epoch(&self) -> Option<EpochNumber> {
        newest_key(&end_of(&self.process.out))
    }
}

/// The last lines of a file, the first of them cut.
fn end_of(path: &Path) -> String {
    let mut end = Vec::new();
    if let Ok(mut file) = File::open(path) {
        // A shorter file is read from its start.
        let _ = file.seek(SeekFrom::End(-END));
        let _ = file.read_to_end(&mut end);
    }
    String::from_utf8_lossy(&end).into_owned()
}

fn newest_key(said: &str) -> Option<EpochNumber> {
    let keys = said.lines().rev().filter(|line| line.contains("\"key\""));
    keys.filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|said| said["event"] == "key")
        .find_map(|said| Some((said["term"].as_u64()?, said["counter"].as_u64()?)))
}

/// A KGC, a leader, a relay, and drones that follow: some at the leader, some behind the relay.
pub(crate) struct FloodSite {
    deployment: TestDeployment,
    kgc: Process,
    leader: Process,
    relay: Process,
    drones: Vec<DroneProcess>,
    /// Members that are evicted, one under each attack.
    spares: Vec<DroneProcess>,
    /// Tokens of drones that enrol under an attack.
    newcomers: u32,
}

impl FloodSite {
    /// Starts everything, with so many drones, every other one behind the relay, and so many to evict.
    pub(crate) fn start(drones: u32, spares: u32) -> Self {
        let deployment = TestDeployment::new().logging("");
        let token = deployment.token("leader-1", &["--leads", GROUP_NAME]);
        let kgc = deployment.kgc(ANY);
        let made = deployment.ok("edge", &["relay-keys", "--out", "relay-data", "--json", "relay"]);
        let made: serde_json::Value = serde_json::from_str(&made).expect("json");
        let members = MEMBERS.to_string();
        let identity = made[0]["identity"].as_str().expect("an identity");
        let serve = ["--relay", identity, "--max-members", &members];
        let leader = deployment.leader(&kgc.address(), ANY, Some(&token), &serve);
        let at = leader.address();
        let run = ["relay", "-d", "relay-data", "--group", GROUP_NAME, "--leader", &at, "--listen", ANY];
        let relay = deployment.start("edge", &[&run[..], &["--max-drones", &members]].concat());
        let mut site =
            Self { deployment, kgc, leader, relay, drones: Vec::new(), spares: Vec::new(), newcomers: 0 };
        site.drones =
            (0..drones).map(|number| site.drone(&format!("edge-{number}"), number % 2 == 1)).collect();
        site.spares = (0..spares).map(|number| site.drone(&format!("spare-{number}"), false)).collect();
        site.settle();
        site
    }

    pub(crate) fn process(&self, target: AttackedService) -> &Process {
        match target {
            AttackedService::Kgc => &self.kgc,
            AttackedService::Leader => &self.leader,
            AttackedService::Relay => &self.relay,
        }
    }

    pub(crate) fn address(&self, target: AttackedService) -> Multiaddr {
        self.process(target).address().parse().expect("an address")
    }

    /// A new drone.
    fn drone(&self, name: &str, behind_relay: bool) -> DroneProcess {
        self.deployment.token(name, &["--group", GROUP_NAME]);
        let leader = if behind_relay { &self.relay } else { &self.leader }.address();
        let process = self.deployment.edge(name, &self.kgc.address(), &leader);
        DroneProcess { name: name.into(), process, leader, behind_relay }
    }

    /// Waits until everybody holds one epoch, and nothing follows for a while.
    fn settle(&self) {
        let all = || self.drones.iter().chain(&self.spares).map(DroneProcess::epoch);
        let first =
            eventually("all drones hold a key", || all().collect::<Option<Vec<_>>>()?.into_iter().max());
        let mut newest = first;
        eventually("all drones hold one key", || {
            sleep(Duration::from_secs(1));
            let before = newest;
            newest = all().flatten().max().unwrap_or(newest);
            (newest == before && all().all(|epoch| epoch == Some(newest))).then_some(())
        });
    }

    /// Re-keys so often; times from the command until each drone that this target serves holds the new key.
    pub(crate) fn rekeys(&self, target: AttackedService, count: u32) -> Rekeys {
        let watched: Vec<_> = self
            .drones
            .iter()
            .filter(|drone| target != AttackedService::Relay || drone.behind_relay)
            .collect();
        let (mut times, mut missing, mut refused) = (Vec::new(), 0, 0);
        for _ in 0..count {
            let before = watched.iter().filter_map(|drone| drone.epoch()).max().unwrap_or_default();
            let start = now();
            let mut command = self.deployment.command("leader", &["rekey"]);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut command = command.spawn().expect("leader rekey");
            let (deadline, mut waiting) = (Deadline::after(PATIENCE), watched.clone());
            while !waiting.is_empty() && !deadline.left().is_zero() {
                sleep(LOOK);
                waiting.retain(|drone| {
                    let holds = drone.epoch().is_some_and(|epoch| epoch > before);
                    if holds {
                        times.push(start.elapsed());
                    }
                    !holds
                });
            }
            missing += waiting.len() as u64;
            if !command.wait().expect("leader rekey").success() {
                refused += 1;
            }
            sleep(Duration::from_millis(200));
        }
        Rekeys { missing, refused, ..Rekeys::of(times) }
    }

    /// Evicts a member; time until it is out and all others hold the key that it has not. `None` if that takes too long.
    pub(crate) fn evict(&mut self) -> Option<Duration> {
        let evicted = self.spares.pop().expect("a spare for each attack");
        let before = self.drones.iter().filter_map(DroneProcess::epoch).max().unwrap_or_default();
        let start = now();
        let output = self.deployment.run("leader", &["evict", &evicted.name]);
        if !output.status.success() {
            return None;
        }
        within(start, || {
            let out = text(&evicted.process.out).contains("\"evicted\"");
            let rekeyed = self.drones.iter().all(|drone| drone.epoch().is_some_and(|epoch| epoch > before));
            (out && rekeyed).then_some(())
        })
    }

    /// Kills a drone that the target serves and starts it again; time until it holds a key. At a KGC: a new drone
    /// enrols, and joins.
    pub(crate) fn return_of_a_drone(&mut self, target: AttackedService) -> Option<Duration> {
        let (start, process) = if target == AttackedService::Kgc {
            self.newcomers += 1;
            let name = format!("newcomer-{}", self.newcomers);
            let start = now();
            let newcomer = self.drone(&name, false);
            let process = newcomer.process.clone();
            // It is a member from now on, and may be evicted in the end.
            self.spares.insert(0, newcomer);
            (start, process)
        } else {
            let position =
                self.drones.iter().position(|drone| drone.behind_relay == (target == AttackedService::Relay));
            let drone = self.drones.get_mut(position.expect("a drone of each kind")).expect("it is there");
            drone.process.kill();
            let start = now();
            let kgc = self.kgc.address();
            drone.process = self.deployment.edge(&drone.name, &kgc, &drone.leader);
            (start, drone.process.clone())
        };
        within(start, || newest_key(&end_of(&process.out)).map(|_| ()))
    }

    /// Returns true if all processes, which must run after an attack, still run.
    pub(crate) fn is_whole(&self) -> bool {
        [&self.kgc, &self.leader, &self.relay].iter().all(|process| process.is_running())
            && self.drones.iter().all(|drone| drone.process.is_running())
    }
}

fn within(start: Instant, mut look: impl FnMut() -> Option<()>) -> Option<Duration> {
    let deadline = Deadline::after(PATIENCE);
    while !deadline.left().is_zero() {
        if look().is_some() {
            return Some(start.elapsed());
        }
        sleep(LOOK);
    }
    None
}

/// Times of re-keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rekeys {
    /// Times from the command until one drone holds the key, in ascending order.
    times: Vec<Duration>,
    /// Keys that a drone did not get in time.
    pub(crate) missing: u64,
    /// Commands that the leader did not confirm.
    pub(crate) refused: u64,
}

impl Rekeys {
    /// Re-keys whose keys took these times, in any order.
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { times, ..Self::default() }
    }

    /// The time within which this share of keys, in hundredths, was there.
    pub(crate) fn percentile(&self, share: usize) -> Duration {
        let at = (self.times.len() * share).div_ceil(100).saturating_sub(1);
        self.times.get(at).copied().unwrap_or(PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let rekeys = Rekeys::of((1..=200).rev().map(Duration::from_millis).collect());
        assert_eq!([50, 99, 100].map(|share| rekeys.percentile(share).as_millis()), [100, 198, 200]);
        assert_eq!(Rekeys::default().percentile(99), PATIENCE, "no key at all is no fast one");
    }

    #[test]
    fn the_newest_key_is_the_last_one_that_a_drone_tells_of() {
        let said = "{\"event\":\"key\",\"term\":1,\"counter\":2}\n{\"event\":\"key\",\"term\":1,\"counter\":3}\n\
                    {\"event\":\"message\",\"text\":\"\\\"key\\\"\"}\n{\"event\":\"key\",\"ter";
        assert_eq!((newest_key(said), newest_key("")), (Some((1, 3)), None));
    }
}
