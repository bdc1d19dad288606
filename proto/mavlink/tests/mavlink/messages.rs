//! The messages that an endpoint writes and reads itself, as pymavlink packs them.

use quiver_mavlink::{
    Frame, Origin,
    message::{self, GroundParameter, RadioStatus, Severity},
};

use crate::vectors::{frame, frame_of, frames};

fn origin(sequence: u8) -> Origin {
    Origin { system: 42, component: 191, sequence }
}

#[test]
fn status_texts_are_those_of_pymavlink() {
    let text = "Quiver: no valid group key, nothing passes";
    assert_eq!(message::status_text(origin(10), Severity::Critical, text), frame("STATUSTEXT"));
    // Cut between characters, at 50 bytes at most.
    let long = message::status_text(origin(0), Severity::Info, &"é".repeat(40));
    assert_eq!(&Frame::parse(&long).unwrap().payload()[1..], "é".repeat(25).as_bytes());
    let odd = message::status_text(origin(0), Severity::Info, &format!("x{}", "é".repeat(40)));
    assert_eq!(Frame::parse(&odd).unwrap().payload().len(), 1 + 49);
}

#[test]
fn a_radios_status_is_read_and_written_as_by_pymavlink() {
    let status = RadioStatus {
        rssi: 200,
        remote_rssi: 190,
        free_buffer: 73,
        noise: 40,
        remote_noise: 38,
        receive_errors: 5,
        corrected: 2,
    };
    let bytes = frame("RADIO_STATUS");
    assert_eq!(status.to_frame(origin(11)), bytes);
    assert_eq!(RadioStatus::from_frame(Frame::parse(&bytes).unwrap()), Some(status));
    for vector in frames().iter().filter(|vector| vector.name != "RADIO_STATUS") {
        assert_eq!(RadioStatus::from_frame(Frame::parse(&vector.bytes).unwrap()), None);
    }
    // MAVLink 2 leaves zeros away, down to one byte.
    let nothing = RadioStatus::default().to_frame(origin(0));
    assert_eq!(RadioStatus::from_frame(Frame::parse(&nothing).unwrap()), Some(RadioStatus::default()));
}

#[test]
fn what_a_modem_says_of_its_own_link_is_known_by_its_number() {
    for (id, seed, len) in [(109, 185, 9), (166, 21, 9), (60_047, 55, 7)] {
        assert!(message::is_of_radio(Frame::parse(&frame_of(id, seed, &vec![1; len])).unwrap()), "{id}");
    }
    for vector in frames() {
        let frame = Frame::parse(&vector.bytes).unwrap();
        assert_eq!(message::is_of_radio(frame), vector.name == "RADIO_STATUS", "{}", vector.name);
    }
}

#[test]
fn parameter_with_the_number_of_the_ground_station_is_read_and_no_other_one() {
    let value = |name: &str, value: f32| {
        let mut payload = vec![0; 25];
        payload[..4].copy_from_slice(&value.to_le_bytes());
        payload[8..8 + name.len()].copy_from_slice(name.as_bytes());
        payload[24] = 4;
        payload
    };
    let read =
        |payload: &[u8]| GroundParameter::from_frame(Frame::parse(&frame_of(22, 220, payload)).unwrap());
    assert_eq!(read(&value("SYSID_MYGCS", 254.0)), Some(GroundParameter::First(254)));
    assert_eq!(read(&value("MAV_GCS_SYSID", 255.0)), Some(GroundParameter::First(255)));
    // A name of 16 letters has no zero behind it.
    assert_eq!(read(&value("MAV_GCS_SYSID_HI", 0.0)), Some(GroundParameter::Last(0)));
    for (name, number) in [
        ("SYSID_MYGCS", 0.0),
        ("SYSID_MYGCS", -1.0),
        ("SYSID_MYGCS", f32::NAN),
        ("SYSID_MYGCS", f32::INFINITY),
        ("SYSID_MYGC", 255.0),
        ("SYSID_THISMAV", 255.0),
        ("", 255.0),
    ] {
        assert_eq!(read(&value(name, number)), None, "{name} {number}");
    }
    // Cut anywhere.
    for len in 1..12 {
        assert_eq!(read(&value("SYSID_MYGCS", 255.0)[..len]), None, "{len}");
    }
    let mut damaged = frame_of(22, 220, &value("SYSID_MYGCS", 255.0));
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(GroundParameter::from_frame(Frame::parse(&damaged).unwrap()), None);
    for vector in frames() {
        assert_eq!(
            GroundParameter::from_frame(Frame::parse(&vector.bytes).unwrap()),
            None,
            "{}",
            vector.name
        );
    }
}
