//! What two runs of one drone have in common that runs of different drones have not.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::parties::Visit;

/// How many bytes make a stretch: none so long is the same twice by chance.
pub const STRETCH: usize = 12;
/// Of how many drones at most all runs are compared: of every stretch there is some memory.
pub const COMPARED: usize = 100;

/// So many bytes that different drones say are familiar: a stretch with such a part is the same twice by chance, when little of it is random.
const FAMILIAR: usize = 6;

/// Where a stretch was seen so far.
#[derive(Clone, Copy)]
enum Places {
    /// In one run.
    Once { drone: u32, run: u32 },
    /// In several runs of one drone.
    Again(u32),
    /// In runs of different drones: what everybody says tells nobody apart.
    Everywhere,
}

/// The drones that can be told again: of which two runs have a stretch of [`STRETCH`] bytes in common that no two runs of different drones have. Of
/// the first [`COMPARED`] drones, every byte that the leader saw is looked at. With fewer than two drones there is nothing to tell apart.
///
/// Of what everybody says and a random byte beside it, two runs of one drone in 256 have the same. So a stretch in which different drones have
/// six bytes in common counts only if more than half of the drones can be told by such ones.
pub fn linked(visits: &[Visit]) -> BTreeSet<u32> {
    let all: BTreeSet<u32> = visits.iter().map(|visit| visit.drone).collect();
    let drones: BTreeSet<u32> = all.into_iter().take(COMPARED).collect();
    if drones.len() < 2 {
        return BTreeSet::new();
    }
    let compared: Vec<&Visit> = visits.iter().filter(|visit| drones.contains(&visit.drone)).collect();
    let again = again(&compared);
    let told: BTreeSet<u32> = again.iter().map(|(_, drone)| *drone).collect();
    if told.len() * 2 > drones.len() {
        return told;
    }
    let familiar = familiar(&compared);
    let strange = |stretch: &[u8; STRETCH]| !stretch.windows(FAMILIAR).any(|part| familiar.contains(part));
    again.into_iter().filter(|(stretch, _)| strange(stretch)).map(|(_, drone)| drone).collect()
}

/// Stretches that several runs of one drone have in common, and no other's.
fn again(visits: &[&Visit]) -> Vec<([u8; STRETCH], u32)> {
    let mut places: HashMap<[u8; STRETCH], Places> = HashMap::new();
    for visit in visits {
        let (drone, run) = (visit.drone, visit.run);
        for stretch in visit.seen.iter().flat_map(|bytes| bytes.windows(STRETCH)) {
            let Ok(stretch) = <[u8; STRETCH]>::try_from(stretch) else { continue };
            let place = places.entry(stretch).or_insert(Places::Once { drone, run });
            *place = match *place {
                Places::Once { drone: other, run: before } if other == drone && before == run => *place,
                Places::Once { drone: other, .. } | Places::Again(other) if other == drone => {
                    Places::Again(drone)
                }
                _ => Places::Everywhere,
            };
        }
    }
    let again = places.into_iter().filter_map(|(stretch, place)| match place {
        Places::Again(drone) => Some((stretch, drone)),
        Places::Once { .. } | Places::Everywhere => None,
    });
    again.collect()
}

/// Parts that different drones have said.
fn familiar<'v>(visits: &[&'v Visit]) -> HashSet<&'v [u8]> {
    let (mut first, mut familiar) = (HashMap::new(), HashSet::new());
    for visit in visits {
        for part in visit.seen.iter().flat_map(|bytes| bytes.windows(FAMILIAR)) {
            if *first.entry(part).or_insert(visit.drone) != visit.drone {
                familiar.insert(part);
            }
        }
    }
    familiar
}

#[cfg(test)]
mod tests {
    use quiver_role::admission::AdmissionError;

    use super::*;

    fn visit(drone: u32, run: u32, seen: &[&[u8]]) -> Visit {
        let seen = seen.iter().map(|bytes| bytes.to_vec()).collect();
        Visit { drone, run, outcome: Err(AdmissionError::Silent), seen }
    }

    #[test]
    fn what_everybody_says_links_nobody() {
        let same: &[u8] = b"the same for everybody";
        let visits = [
            visit(1, 0, &[same, b"one thing, said once"]),
            visit(1, 1, &[same, b"another, said once too"]),
            visit(2, 0, &[same]),
            visit(2, 1, &[same]),
        ];
        assert!(linked(&visits).is_empty());
    }

    #[test]
    fn twelve_bytes_of_one_drone_in_two_runs_link_them_and_eleven_do_not() {
        let of = |length: usize| {
            let name = &b"drone-00017's name"[..length];
            let (first, second) = ([b"---", name, b"!!!"].concat(), [b"???", name, b"***"].concat());
            linked(&[visit(17, 0, &[&first]), visit(17, 1, &[&second]), visit(18, 0, &[b"something else"])])
        };
        assert_eq!(of(STRETCH), BTreeSet::from([17]));
        assert!(of(STRETCH - 1).is_empty());
    }

    #[test]
    fn one_random_byte_beside_what_everybody_says_links_nobody_unless_it_links_most() {
        let said = |byte: u8| [b"everybody's".as_slice(), &[byte]].concat();
        let of = |bytes: [[u8; 2]; 4]| {
            let runs = (0..).zip(bytes).flat_map(|(drone, runs)| {
                (0..).zip(runs).map(move |(run, byte)| visit(drone, run, &[&said(byte)]))
            });
            linked(&runs.collect::<Vec<_>>())
        };
        assert!(of([[1, 1], [2, 3], [4, 5], [6, 7]]).is_empty());
        assert_eq!(of([[1, 1], [2, 2], [4, 4], [6, 6]]).len(), 4);
    }

    #[test]
    fn what_is_said_twice_in_one_run_links_nothing() {
        let twice: &[u8] = b"again and again";
        assert!(
            linked(&[visit(1, 0, &[twice, twice]), visit(1, 1, &[b"no"]), visit(2, 0, &[b"no"])]).is_empty()
        );
    }

    #[test]
    fn order_of_the_runs_makes_no_difference() {
        let mut visits = vec![
            visit(1, 0, &[b"mine, all mine"]),
            visit(2, 0, &[b"shared by these two"]),
            visit(1, 1, &[b"mine, all mine", b"shared by these two"]),
            visit(2, 1, &[b"shared by these two"]),
        ];
        for _ in 0..visits.len() {
            visits.rotate_left(1);
            assert_eq!(linked(&visits), BTreeSet::from([1]));
        }
    }
}
