//! Tests of the frames that their sender signs: all but those of messages on a list, which make nobody act.

use std::collections::BTreeMap;

use quiver_mavlink::{Frame, MessageClass, Priority, SignedMessages, message, priority};

use crate::vectors::{frame, frame_of, frames, messages};

/// Returns true if a frame of no ground station's system is signed unless configured otherwise.
fn is_signed(bytes: &[u8]) -> bool {
    let frame = Frame::parse(bytes).unwrap();
    assert!(frame.is_proven(), "message {}", frame.message_id());
    SignedMessages::default().contains(frame, false)
}

fn class(name: &str) -> MessageClass {
    let (id, _) = messages().into_iter().find(|message| message.1 == name).unwrap();
    MessageClass::of_message(id).unwrap().0
}

#[test]
fn every_message_of_the_standards_definitions_is_in_one_class_and_no_other_is() {
    let messages: BTreeMap<u32, &str> = messages().into_iter().collect();
    assert_eq!(messages.len(), 385, "a number stands twice");
    for id in (0..70_000).chain([1 << 23, (1 << 24) - 1]) {
        let class = MessageClass::of_message(id);
        assert_eq!(class.is_some(), messages.contains_key(&id), "message {id} {:?}", messages.get(&id));
        assert!(class.is_none_or(|(_, reason)| reason.len() > 10), "message {id}: why");
    }
    let count =
        |class| messages.keys().filter(|id| MessageClass::of_message(**id).unwrap().0 == class).count();
    let unsigned = [MessageClass::Report, MessageClass::Answer, MessageClass::Question].map(count);
    let signed = [MessageClass::Command, MessageClass::Input, MessageClass::Local].map(count);
    assert_eq!(unsigned.iter().chain(&signed).sum::<usize>(), 385);
    assert!(signed.iter().all(|count| *count > 0), "{signed:?}");
}

#[test]
fn what_moves_a_vehicle_is_signed_whether_it_is_a_command_or_poses_as_a_sensor() {
    let signed = "RADIO_RC_CHANNELS RC_CHANNELS_OVERRIDE MANUAL_CONTROL GPS_INPUT HIL_GPS GPS_RTCM_DATA GPS_INJECT_DATA \
        VISION_POSITION_ESTIMATE VICON_POSITION_ESTIMATE ATT_POS_MOCAP ODOMETRY CAN_FRAME CANFD_FRAME CAN_FILTER_MODIFY \
        GIMBAL_MANAGER_SET_ATTITUDE GIMBAL_DEVICE_SET_ATTITUDE GIMBAL_MANAGER_SET_PITCHYAW \
        GIMBAL_MANAGER_SET_MANUAL_CONTROL DIGICAM_CONTROL MOUNT_CONTROL WIFI_CONFIG_AP AUTH_KEY MANUAL_SETPOINT \
        HIL_CONTROLS HIL_ACTUATOR_CONTROLS COMMAND_INT_STAMPED COMMAND_LONG_STAMPED \
        TRAJECTORY_REPRESENTATION_WAYPOINTS TRAJECTORY_REPRESENTATION_BEZIER REQUEST_DATA_STREAM LOG_REQUEST_END \
        SET_MAG_OFFSETS ADSB_VEHICLE FOLLOW_TARGET LANDING_TARGET TERRAIN_DATA DISTANCE_SENSOR OBSTACLE_DISTANCE \
        OBSTACLE_DISTANCE_3D OSD_PARAM_CONFIG UAVIONIX_ADSB_OUT_CFG LED_CONTROL PLAY_TUNE COMMAND_CANCEL PARAM_SET \
        SETUP_SIGNING FILE_TRANSFER_PROTOCOL SERIAL_CONTROL TUNNEL PARAM_REQUEST_LIST";
    for name in signed.split_whitespace() {
        assert!(class(name).is_signed(), "{name}");
    }
    let unsigned = "HEARTBEAT SYS_STATUS ATTITUDE GLOBAL_POSITION_INT GPS_RAW_INT VFR_HUD STATUSTEXT COMMAND_ACK MISSION_ACK \
        PARAM_VALUE LOG_DATA MISSION_REQUEST_INT AUTOPILOT_VERSION HOME_POSITION BATTERY_STATUS EVENT TIMESYNC RC_CHANNELS";
    for name in unsigned.split_whitespace() {
        assert!(!class(name).is_signed(), "{name}");
    }
}

#[test]
fn frames_of_pymavlink_are_signed_by_what_they_make_a_vehicle_do() {
    let signed =
        ["COMMAND_LONG", "PARAM_SET", "MISSION_COUNT", "SET_MODE", "DEVICE_OP_WRITE", "MISSION_REQUEST_LIST"];
    for vector in frames() {
        let frame = Frame::parse(&vector.bytes).unwrap();
        // A radio's status stays on its side.
        let expected = signed.contains(&vector.name) || vector.name == "RADIO_STATUS";
        assert_eq!(is_signed(&vector.bytes), expected, "{}", vector.name);
        let is_telemetry = !signed.contains(&vector.name) && vector.name != "HEARTBEAT";
        assert_eq!(priority(frame) == Priority::Telemetry, is_telemetry, "{}", vector.name);
    }
    // Measurements for an estimator are signed, and displace no command.
    let gps = frame_of(232, 151, &[1; 63]);
    assert!(is_signed(&gps));
    assert_eq!(priority(Frame::parse(&gps).unwrap()), Priority::Telemetry);
}

#[test]
fn messages_of_other_dialects_are_signed() {
    for id in [187, 12_345, 0x00ff_ffff] {
        let unknown = frame_of(id, 7, &[1; 20]);
        let frame = Frame::parse(&unknown).unwrap();
        assert_eq!(MessageClass::of(frame), None, "{id}");
        assert!(SignedMessages::default().contains(frame, false), "{id}");
        assert_eq!(priority(frame), Priority::Telemetry);
    }
}

#[test]
fn answers_of_files_and_shells_are_told_from_requests_by_their_content() {
    // Target 0/1/1, sequence number, session, opcode: ACK, NAK, and requests from "none" to "burst".
    let file = |opcode: u8| frame_of(110, 84, &[0, 1, 1, 7, 0, 0, opcode, 4, 5, 1]);
    assert!(!is_signed(&file(128)) && !is_signed(&file(129)));
    for opcode in (0..128).chain(130..=255) {
        assert!(is_signed(&file(opcode)), "opcode {opcode}");
    }
    // Zeros at the payload's end are left away: no opcode is opcode 0.
    assert!(is_signed(&frame_of(110, 84, &[0, 1, 1, 7])));
    // Baud rate, timeout, device, flags: 1 is a reply.
    let serial = |flags: u8| frame_of(126, 220, &[0, 0, 0, 0, 0, 0, 10, flags, 3, b'l', b's', b'\n']);
    assert!(!is_signed(&serial(1)) && !is_signed(&serial(1 | 16)));
    for flags in [0, 2, 4, 6, 16] {
        assert!(is_signed(&serial(flags)), "flags {flags}");
    }
    // Either waits for nothing, as commands.
    assert_eq!(priority(Frame::parse(&file(128)).unwrap()), Priority::Command);
    // A frame that does not check is nobody's answer.
    let mut damaged = file(128);
    *damaged.last_mut().unwrap() ^= 1;
    assert!(SignedMessages::default().contains(Frame::parse(&damaged).unwrap(), false));
}

#[test]
fn a_ground_stations_heartbeat_is_signed_and_whatever_else_beats_under_its_number() {
    let beat = |kind: u8| frame_of(0, 50, &[0, 0, 0, 0, kind, 8, 0, 4, 3]);
    let (ground, vehicle) = (beat(6), beat(2));
    assert!(is_signed(&ground) && !is_signed(&vehicle));
    let [ground, vehicle] = [&ground, &vehicle].map(|bytes| Frame::parse(bytes).unwrap());
    assert!(message::is_ground_heartbeat(ground) && !message::is_ground_heartbeat(vehicle));
    assert!(SignedMessages::default().contains(vehicle, true));
    // Other telemetry of a ground station is telemetry.
    assert!(!SignedMessages::default().contains(Frame::parse(&frame("ATTITUDE")).unwrap(), true));
    // A list is taken at its word.
    for rule in [SignedMessages::only([76]), SignedMessages::all_but([0])] {
        assert!(!rule.contains(ground, true) && !rule.contains(vehicle, true));
    }
}

#[test]
fn channels_of_the_component_whose_channels_are_sticks_are_signed() {
    let mut channels = frame_of(65, 118, &[1; 42]);
    assert!(!is_signed(&channels));
    channels[6] = 140;
    crate::vectors::seal(&mut channels, 118);
    assert!(is_signed(&channels));
}

#[test]
fn other_lists_sign_what_they_name_or_all_but_what_they_name() {
    let frames = ["COMMAND_LONG", "ATTITUDE", "PARAM_SET"].map(frame);
    let [command, attitude, parameter] = frames.each_ref().map(|bytes| Frame::parse(bytes).unwrap());
    let signed =
        |rule: &SignedMessages| [command, attitude, parameter].map(|frame| rule.contains(frame, false));
    assert_eq!(signed(&SignedMessages::only([])), [false; 3]);
    assert_eq!(signed(&SignedMessages::only([30, 76])), [true, true, false]);
    assert_eq!(signed(&SignedMessages::default()), [true, false, true]);
    assert_eq!(signed(&SignedMessages::all_but([23])), [true, false, false]);
}
