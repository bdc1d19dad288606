//! Telemetry logs (`.tlog`): of each frame the microseconds since 1970 as eight bytes, big-endian, and the frame.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use quiver_mavlink::Frame;

use super::FormatError;
use super::movements::Movements;
use crate::MavlinkSetup;
use crate::mavlink::stations::MAX_STATIONS;
use crate::trace::DronePosition;

/// The most bytes of a file.
pub const MAX_FILE: usize = 1 << 30;
/// Microseconds in front of each frame.
const STAMP: usize = 8;
/// GLOBAL_POSITION_INT: time since boot, latitude and longitude in 10⁻⁷ degrees, and more.
const GLOBAL_POSITION_INT: u32 = 33;
const HEARTBEAT: u32 = 0;
/// Offset of the type in a HEARTBEAT, and that of ground stations.
const TYPE: usize = 4;
const GROUND_STATION: u8 = 6;
/// Metres of a degree of latitude on a sphere of the mean radius.
const METRES_PER_DEGREE: f64 = 6_371_008.8 * std::f64::consts::PI / 180.0;
/// Lengths of frames that a scenario has, at most.
const MAX_LENGTHS: usize = 64;
/// The longest log that becomes a scenario.
const MAX_TIME: Duration = Duration::from_secs(86_400);

/// A frame of a log.
#[derive(Clone, Copy, Debug)]
pub struct TlogFrame<'a> {
    /// Microseconds since 1970.
    pub micros: u64,
    /// The frame.
    pub frame: Frame<'a>,
}

/// Reads a log.
///
/// # Errors
/// [`FormatError::Offset`] where no stamp and frame begin, or where the file is cut.
pub fn read<'a>(file: &str, bytes: &'a [u8]) -> Result<Vec<TlogFrame<'a>>, FormatError> {
    read_up_to(MAX_FILE, file, bytes)
}

/// Reads a log of so many bytes at most.
fn read_up_to<'a>(most: usize, file: &str, bytes: &'a [u8]) -> Result<Vec<TlogFrame<'a>>, FormatError> {
    if bytes.len() > most {
        let what = format!("{} bytes; at most {most} are read", bytes.len());
        return Err(FormatError::Whole { file: file.into(), what });
    }
    let mut entries = Vec::new();
    let mut left = bytes;
    while !left.is_empty() {
        let offset = bytes.len() - left.len();
        let at = |offset, what: String| FormatError::Offset { file: file.into(), offset, what };
        let Some((stamp, rest)) = left.split_first_chunk::<STAMP>() else {
            return Err(at(
                offset,
                format!("the file is cut within a time stamp ({} of 8 bytes)", left.len()),
            ));
        };
        let (frame, rest) =
            Frame::split(rest).map_err(|error| at(offset + STAMP, format!("no MAVLink frame: {error}")))?;
        entries.push(TlogFrame { micros: u64::from_be_bytes(*stamp), frame });
        left = rest;
    }
    if entries.is_empty() {
        return Err(FormatError::Whole { file: file.into(), what: "has no frames".into() });
    }
    Ok(entries)
}

/// Appends a frame to a log.
pub fn append(log: &mut Vec<u8>, micros: u64, frame: &[u8]) {
    log.extend(micros.to_be_bytes());
    log.extend(frame);
}

/// A flight as a scenario: its text, and where its vehicles were if they said so.
#[derive(Clone, Debug, PartialEq)]
pub struct Flight {
    /// The scenario, in TOML.
    pub scenario: String,
    /// Movements of the vehicles, in the order of their system ids; `None` without positions of all.
    pub movements: Option<Movements>,
}

/// Vehicles of a log: frames, their lengths and positions, by system id. Ground stations are none.
#[derive(Default)]
struct Vehicle {
    lengths: Vec<usize>,
    frames: u64,
    positions: Vec<(u64, f64, f64)>,
    is_ground: bool,
}

/// Makes a scenario of a log: as many drones as it has vehicles, each with telemetry of that rate and those lengths.
///
/// # Errors
/// [`FormatError`] of [`read`], and for a log without vehicles, of too many, or of more than a day.
pub fn flight(file: &str, bytes: &[u8]) -> Result<Flight, FormatError> {
    let entries = read(file, bytes)?;
    let whole = |what: String| FormatError::Whole { file: file.into(), what };
    let mut vehicles: BTreeMap<u32, Vehicle> = BTreeMap::new();
    let (mut first, mut last) = (u64::MAX, 0);
    for TlogFrame { micros, frame } in entries {
        (first, last) = (first.min(micros), last.max(micros));
        let vehicle = vehicles.entry(frame.system_id()).or_default();
        note(vehicle, micros, frame);
    }
    vehicles.retain(|_, vehicle| !vehicle.is_ground);
    let count = vehicles.len();
    if count == 0 {
        return Err(whole("has no frames of vehicles".into()));
    }
    // One more is the leader's.
    if count >= MAX_STATIONS {
        return Err(whole(format!("has {count} vehicles; at most {} fly in a world", MAX_STATIONS - 1)));
    }
    let lasted = Duration::from_micros(last - first);
    if lasted > MAX_TIME {
        return Err(whole(format!("lasts {} s; at most a day can be played", lasted.as_secs())));
    }
    let length = lasted.max(Duration::from_secs(10));
    let frames: u64 = vehicles.values().map(|vehicle| vehicle.frames).sum();
    #[expect(clippy::cast_precision_loss, reason = "a log of a gigabyte has far fewer than 2^52 frames")]
    let rate = frames as f64 / count as f64 / length.as_secs_f64();
    let lengths: Vec<String> = vehicles
        .values()
        .flat_map(|vehicle| &vehicle.lengths)
        .take(MAX_LENGTHS)
        .map(|len| (*len).clamp(MavlinkSetup::MIN_FRAME, MavlinkSetup::MAX_FRAME).to_string())
        .collect();
    let mut scenario = String::new();
    let stem = file.rsplit(['/', '\\']).next().unwrap_or(file).replace(['"', '\\', '\n', '\r'], "_");
    // Writing to a string cannot fail.
    let _ = write!(
        scenario,
        "title = \"The flight of {stem}\"\n\
         about = \"{count} vehicles of a telemetry log: {frames} frames in {} s. Longer frames than {} bytes are cut to that.\"\n\
         duration = \"{}s\"\n\n[fleet]\nmembers = {count}\n\n[mavlink]\nframes-per-second = {:.3}\nframe-bytes = [{}]\n",
        lasted.as_secs(),
        MavlinkSetup::MAX_FRAME,
        length.as_secs().max(10),
        rate.clamp(0.01, 1000.0),
        lengths.join(", ")
    );
    let all_have = vehicles.values().all(|vehicle| !vehicle.positions.is_empty());
    let movements = all_have.then(|| movements(&vehicles, first));
    Ok(Flight { scenario, movements })
}

fn note(vehicle: &mut Vehicle, micros: u64, frame: Frame<'_>) {
    vehicle.frames += 1;
    if vehicle.lengths.len() < MAX_LENGTHS {
        vehicle.lengths.push(frame.bytes().len());
    }
    // MAVLink 2 cuts zeros off the end.
    let payload = frame.payload();
    let byte = |index: usize| payload.get(index).copied().unwrap_or(0);
    let integer = |at: usize| i32::from_le_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)]);
    match frame.message_id() {
        HEARTBEAT => vehicle.is_ground |= byte(TYPE) == GROUND_STATION,
        GLOBAL_POSITION_INT => {
            let (latitude, longitude) = (f64::from(integer(4)) / 1e7, f64::from(integer(8)) / 1e7);
            // Without a fix both are zero.
            let is_valid = latitude.abs() <= 90.0 && longitude.abs() <= 180.0;
            let is_fix = latitude != 0.0 || longitude != 0.0;
            let is_later = vehicle.positions.last().is_none_or(|(before, ..)| *before <= micros);
            if is_valid && is_fix && is_later {
                vehicle.positions.push((micros, latitude, longitude));
            }
        }
        _ => {}
    }
}

/// Places on a plane that touches the earth at the first position.
fn movements(vehicles: &BTreeMap<u32, Vehicle>, first: u64) -> Movements {
    let origin = vehicles.values().find_map(|vehicle| vehicle.positions.first()).copied();
    let (_, north, east) = origin.unwrap_or_default();
    let narrow = north.to_radians().cos();
    let place = |(micros, latitude, longitude): &(u64, f64, f64)| DronePosition {
        at: Duration::from_micros(micros.saturating_sub(first)),
        // The shorter way around the earth.
        x: ((longitude - east + 540.0).rem_euclid(360.0) - 180.0) * METRES_PER_DEGREE * narrow,
        y: (latitude - north) * METRES_PER_DEGREE,
    };
    Movements::of_paths(
        vehicles.values().map(|vehicle| vehicle.positions.iter().map(place).collect()).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A MAVLink 1 frame. Its check sum is not looked at.
    fn frame(system: u8, message: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xFE, u8::try_from(payload.len()).unwrap(), 0, system, 1, message];
        bytes.extend(payload);
        bytes.extend([0, 0]);
        bytes
    }

    fn position(system: u8, latitude: i32, longitude: i32) -> Vec<u8> {
        let mut payload = [0; 28];
        payload[4..8].copy_from_slice(&latitude.to_le_bytes());
        payload[8..12].copy_from_slice(&longitude.to_le_bytes());
        frame(system, 33, &payload)
    }

    fn heartbeat(system: u8, kind: u8) -> Vec<u8> {
        frame(system, 0, &[0, 0, 0, 0, kind, 3, 0, 0, 3])
    }

    fn log() -> Vec<u8> {
        let mut log = Vec::new();
        let start = 1_700_000_000_000_000;
        for second in 0..30 {
            let at = start + second * 1_000_000;
            append(&mut log, at, &heartbeat(1, 2));
            append(&mut log, at, &heartbeat(255, 6));
            let east = i32::try_from(second).unwrap() * 1_000;
            append(&mut log, at + 10, &position(1, 471_234_567, 85_000_000 + east));
            append(&mut log, at + 20, &position(7, 471_234_567, 85_000_000));
        }
        log
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let log = log();
        let entries = read("f.tlog", &log).unwrap();
        assert_eq!(entries.len(), 120);
        assert_eq!(entries[0].micros, 1_700_000_000_000_000);
        let mut again = Vec::new();
        entries.iter().for_each(|entry| append(&mut again, entry.micros, entry.frame.bytes()));
        assert_eq!(again, log);
    }

    #[test]
    fn a_flight_becomes_a_scenario_with_places() {
        let flight = flight("logs/F1.tlog", &log()).unwrap();
        let scenario = crate::scenario::Scenario::parse(
            "F1.toml",
            &flight.scenario,
            crate::scenario::ReadOptions::default(),
        );
        let scenario = scenario.unwrap();
        assert_eq!(scenario.setup.members, 2);
        assert_eq!(scenario.title, "The flight of F1.tlog");
        assert!(scenario.setup.mavlink.is_some());
        let movements = flight.movements.unwrap();
        assert_eq!(movements.paths().len(), 2);
        // 29 steps of 10⁻⁴ degrees of longitude at 47.1 degrees of latitude.
        let (from, to) =
            (movements.at(0, Duration::ZERO).unwrap(), movements.at(0, movements.end()).unwrap());
        assert!(((to.0 - from.0) - 219.4).abs() < 0.5, "{from:?} {to:?}");
        assert!((to.1 - from.1).abs() < 1e-6);
    }

    #[test]
    fn cut_and_wrong_logs_are_refused_with_the_offset() {
        let log = log();
        let first = STAMP + heartbeat(1, 2).len();
        for (bytes, expected) in [
            (
                &log[..first + 3],
                format!("f: byte {first}: the file is cut within a time stamp (3 of 8 bytes)"),
            ),
            (&[][..], "f: has no frames".into()),
        ] {
            assert_eq!(read("f", bytes).unwrap_err().to_string(), expected);
        }
        let error = read("f", &log[..first + STAMP + 4]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("f: byte {}: no MAVLink frame: ", first + STAMP)), "{error}");
        let mut wrong = log.clone();
        wrong[first + STAMP] = 0;
        assert!(read("f", &wrong).unwrap_err().to_string().contains("no MAVLink frame"));
        let ground: Vec<u8> = [&1_u64.to_be_bytes()[..], &heartbeat(255, 6)].concat();
        assert_eq!(flight("f", &ground).unwrap_err().to_string(), "f: has no frames of vehicles");
        let mut long = ground;
        append(&mut long, 200_000_000_000, &heartbeat(1, 2));
        assert!(flight("f", &long).unwrap_err().to_string().contains("at most a day"));
        assert_eq!(
            read_up_to(100, "f", &[0; 101]).unwrap_err().to_string(),
            "f: 101 bytes; at most 100 are read"
        );
        let ends: Vec<usize> = {
            let entries = read("f", &log).unwrap();
            let lengths = entries.iter().map(|entry| STAMP + entry.frame.bytes().len());
            lengths
                .scan(0, |end, length| {
                    *end += length;
                    Some(*end)
                })
                .collect()
        };
        for length in 1..log.len().min(400) {
            // A log is whole after a frame, and nowhere else; the offset is in the part that is there.
            match read("f", &log[..length]) {
                Ok(_) => assert!(ends.contains(&length), "{length}"),
                Err(FormatError::Offset { offset, .. }) => {
                    assert!(offset <= length && !ends.contains(&length), "{offset} {length}");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}
