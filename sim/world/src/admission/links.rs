//! Finds byte strings that two memberships of one drone share and memberships of different drones do not.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Length of the compared byte strings: none so long is the same twice by chance.
pub const STRETCH: usize = 12;
/// Number of drones whose memberships are compared: every string takes memory.
pub const COMPARED: usize = 32;

/// Number in place of a drone's: messages of leaders to the whole group, which distinguish nobody.
pub const EVERYBODY: u32 = u32::MAX;

/// Number of bytes that are familiar if different drones say them: a stretch with such a part is the same
/// twice by chance, when little of it is random.
const FAMILIAR: usize = 4;

/// All that leaders received from and sent to one drone in one of its lives, from the first hello of a
/// machine to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The drone.
    pub drone: u32,
    /// The how manyeth of this drone.
    pub life: u32,
    /// Messages, each as it was on the wire.
    pub seen: Vec<Vec<u8>>,
}

/// Memberships in which a string was seen so far.
#[derive(Clone, Copy)]
enum SeenMemberships {
    /// The string was in one membership.
    Once { drone: u32, life: u32 },
    /// The string was in several memberships of one drone.
    Again(u32),
    /// The string was in memberships of different drones: it distinguishes nobody.
    Everywhere,
}

/// The drones that can be linked, each with the evidence: a string of [`STRETCH`] bytes that two of its
/// memberships have in common and no two memberships of different drones have. Of the first [`COMPARED`]
/// drones, every byte is looked at. With fewer than two drones there is nothing to tell apart.
///
/// A common string beside a random byte or a small number (such as a slot) is soon the same in two
/// memberships of one drone. So a stretch in which different drones have four bytes in common counts only if
/// more than half of the drones can be told by such ones.
pub fn linked(sightings: &[Sighting]) -> BTreeMap<u32, [u8; STRETCH]> {
    let all: BTreeSet<u32> = sightings.iter().map(|sighting| sighting.drone).collect();
    let drones: BTreeSet<u32> = all.into_iter().filter(|drone| *drone != EVERYBODY).take(COMPARED).collect();
    if drones.len() < 2 {
        return BTreeMap::new();
    }
    let compared: Vec<&Sighting> =
        sightings.iter().filter(|it| it.drone == EVERYBODY || drones.contains(&it.drone)).collect();
    let again = again(&compared);
    let told: BTreeMap<u32, _> = again.iter().map(|(stretch, drone)| (*drone, *stretch)).collect();
    // Nothing was found, as it should be, or too much for chance.
    if told.is_empty() || told.len() * 2 > drones.len() {
        return told;
    }
    let familiar = familiar(&again, &compared);
    let strange = |stretch: &[u8; STRETCH]| !stretch.windows(FAMILIAR).any(|part| familiar.contains(part));
    again.iter().filter(|(it, _)| strange(it)).map(|(stretch, drone)| (*drone, *stretch)).collect()
}

/// Stretches that several lives of one drone have in common, and no other's.
fn again(sightings: &[&Sighting]) -> Vec<([u8; STRETCH], u32)> {
    let repeated = RepeatedStretches::of(sightings);
    let mut places: HashMap<[u8; STRETCH], SeenMemberships> = HashMap::new();
    for sighting in sightings {
        let (drone, life) = (sighting.drone, sighting.life);
        for stretch in sighting.seen.iter().flat_map(|bytes| repeated.stretches(bytes)) {
            let place = places.entry(stretch).or_insert(SeenMemberships::Once { drone, life });
            *place = match *place {
                SeenMemberships::Once { drone: other, life: before } if other == drone && before == life => {
                    *place
                }
                SeenMemberships::Once { drone: other, .. } | SeenMemberships::Again(other)
                    if other == drone =>
                {
                    SeenMemberships::Again(drone)
                }
                _ => SeenMemberships::Everywhere,
            };
        }
    }
    let again = places.into_iter().filter_map(|(stretch, place)| match place {
        SeenMemberships::Again(drone) => Some((stretch, drone)),
        SeenMemberships::Once { .. } | SeenMemberships::Everywhere => None,
    });
    again.collect()
}

/// Sightings by the sums of their stretches. Nearly all that is sent is random and seen once: it should cost a few
/// instructions for a byte, and no entry of a map.
struct RepeatedStretches {
    /// Number of the sighting that has stretches of a sum, or [`SEVERAL`]; a power of two of them.
    slots: Vec<u32>,
}

/// Slot whose sum no stretch has.
const NONE: u32 = 0;
/// Slot whose sum stretches of several sightings have.
const SEVERAL: u32 = u32::MAX;
/// Slots for each byte: with fewer, more stretches have the same sum by chance.
const SLOTS: usize = 8;
/// Weight of a byte in a sum, relative to the next byte's. Odd, because all bytes of a stretch must count.
const WEIGHT: u64 = 0x9e37_79b9_7f4a_7c15;

impl RepeatedStretches {
    fn of(sightings: &[&Sighting]) -> Self {
        let bytes: usize = sightings.iter().flat_map(|sighting| &sighting.seen).map(Vec::len).sum();
        let mut slots = vec![NONE; (SLOTS * bytes).next_power_of_two().max(2)];
        let bits = slots.len().ilog2();
        for (number, sighting) in (NONE + 1..SEVERAL).zip(sightings) {
            for bytes in &sighting.seen {
                each_stretch(bytes, bits, |slot, _| {
                    let slot = &mut slots[slot];
                    *slot = if *slot == NONE || *slot == number { number } else { SEVERAL };
                });
            }
        }
        Self { slots }
    }

    /// Stretches of these bytes that several sightings have, and the few others of the same sums.
    fn stretches(&self, bytes: &[u8]) -> Vec<[u8; STRETCH]> {
        let mut found = Vec::new();
        each_stretch(bytes, self.slots.len().ilog2(), |slot, end| {
            if self.slots[slot] == SEVERAL {
                found.extend(bytes[..end].last_chunk::<STRETCH>());
            }
        });
        found
    }
}

/// Calls `visit` with so many bits of each stretch's sum, and with the stretch's end.
fn each_stretch(bytes: &[u8], bits: u32, mut visit: impl FnMut(usize, usize)) {
    let first = WEIGHT.wrapping_pow(STRETCH as u32);
    let mut sum = 0_u64;
    for (at, byte) in bytes.iter().enumerate() {
        sum = sum.wrapping_mul(WEIGHT).wrapping_add(u64::from(*byte) + 1);
        if at >= STRETCH {
            sum = sum.wrapping_sub(first.wrapping_mul(u64::from(bytes[at - STRETCH]) + 1));
        }
        if at + 1 >= STRETCH {
            visit((sum.wrapping_mul(WEIGHT) >> (64 - bits)) as usize, at + 1);
        }
    }
}

/// Parts of these stretches that different drones have sent.
fn familiar<'s>(stretches: &'s [([u8; STRETCH], u32)], sightings: &[&Sighting]) -> HashSet<&'s [u8]> {
    // The drone that has sent a part, and whether another has.
    let mut senders: HashMap<&[u8], (Option<u32>, bool)> =
        stretches.iter().flat_map(|(it, _)| it.windows(FAMILIAR)).map(|part| (part, (None, false))).collect();
    // Nearly every string begins unlike all of them.
    let mut begins = vec![false; 1 << 16];
    for part in senders.keys() {
        begins[beginning(part)] = true;
    }
    for sighting in sightings {
        for part in sighting.seen.iter().flat_map(|bytes| bytes.windows(FAMILIAR)) {
            if !begins[beginning(part)] {
                continue;
            }
            if let Some((sender, several)) = senders.get_mut(part) {
                *several |= *sender.get_or_insert(sighting.drone) != sighting.drone;
            }
        }
    }
    senders.into_iter().filter(|(_, (_, several))| *several).map(|(part, _)| part).collect()
}

/// First two bytes of a part, as a number.
fn beginning(part: &[u8]) -> usize {
    (usize::from(part[0]) << 8) | usize::from(part[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lives: &[Sighting]) -> BTreeSet<u32> {
        linked(lives).into_keys().collect()
    }

    fn life(drone: u32, life: u32, seen: &[&[u8]]) -> Sighting {
        Sighting { drone, life, seen: seen.iter().map(|bytes| bytes.to_vec()).collect() }
    }

    #[test]
    fn what_everybody_says_links_nobody() {
        let same: &[u8] = b"the same for everybody";
        let lives = [
            life(1, 0, &[same, b"one thing, said once"]),
            life(1, 1, &[same, b"another, said once too"]),
            life(2, 0, &[same]),
            life(2, 1, &[same]),
        ];
        assert!(told(&lives).is_empty());
    }

    #[test]
    fn twelve_bytes_of_one_drone_in_two_lives_link_them_and_eleven_do_not() {
        let of = |length: usize| {
            let name = &b"drone-00017's name"[..length];
            let (first, second) = ([b"---", name, b"!!!"].concat(), [b"???", name, b"***"].concat());
            told(&[life(17, 0, &[&first]), life(17, 1, &[&second]), life(18, 0, &[b"something else"])])
        };
        assert_eq!(of(STRETCH), BTreeSet::from([17]));
        assert!(of(STRETCH - 1).is_empty());
    }

    #[test]
    fn one_random_byte_beside_what_everybody_says_links_nobody_unless_it_links_most() {
        let said = |byte: u8| [b"everybody's".as_slice(), &[byte]].concat();
        let of = |bytes: [[u8; 2]; 4]| {
            let lives = (0..).zip(bytes).flat_map(|(drone, lives)| {
                (0..).zip(lives).map(move |(number, byte)| life(drone, number, &[&said(byte)]))
            });
            told(&lives.collect::<Vec<_>>())
        };
        assert!(of([[1, 1], [2, 3], [4, 5], [6, 7]]).is_empty());
        assert_eq!(of([[1, 1], [2, 2], [4, 4], [6, 6]]).len(), 4);
    }

    #[test]
    fn what_is_said_to_the_whole_group_links_nobody() {
        let said: &[u8] = b"the name of a channel";
        let mut lives = vec![life(1, 0, &[said]), life(1, 1, &[said]), life(2, 0, &[b"nothing"])];
        assert_eq!(told(&lives), BTreeSet::from([1]));
        lives.push(life(EVERYBODY, 0, &[said]));
        assert!(told(&lives).is_empty());
    }

    #[test]
    fn what_is_said_twice_in_one_life_links_nothing() {
        let twice: &[u8] = b"again and again";
        assert!(told(&[life(1, 0, &[twice, twice]), life(1, 1, &[b"no"]), life(2, 0, &[b"no"])]).is_empty());
    }

    #[test]
    fn sum_of_a_stretch_is_of_its_bytes_alone() {
        let said = b"before, twelve bytes, and behind";
        let mut sums = Vec::new();
        each_stretch(said, 48, |sum, end| sums.push((said[..end].last_chunk::<STRETCH>().copied(), sum)));
        assert_eq!(sums.len(), said.len() - STRETCH + 1);
        for (stretch, sum) in sums {
            let alone = stretch.expect("a stretch is there");
            each_stretch(&alone, 48, |of_it, end| assert_eq!((of_it, end), (sum, STRETCH)));
        }
    }

    #[test]
    fn order_of_the_lives_makes_no_difference() {
        let mut lives = vec![
            life(1, 0, &[b"mine, all mine"]),
            life(2, 0, &[b"shared by these two"]),
            life(1, 1, &[b"mine, all mine", b"shared by these two"]),
            life(2, 1, &[b"shared by these two"]),
        ];
        for _ in 0..lives.len() {
            lives.rotate_left(1);
            assert_eq!(told(&lives), BTreeSet::from([1]));
        }
    }
}
