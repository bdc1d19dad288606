//! The messages of the standard's definitions, each in one class, with the reason. Written by hand; a test
//! compares it with the definitions in `tests/vectors/messages.txt`.

use super::MessageClass::{self, Answer, Command, Input, Local, Question, Report};

/// Messages of one class for one reason.
pub(super) struct ClassifiedMessages {
    pub(super) class: MessageClass,
    /// Completes the sentence "the message …".
    pub(super) reason: &'static str,
    pub(super) ids: &'static [u32],
}

#[rustfmt::skip]
pub(super) const GROUPS: [ClassifiedMessages; 28] = [
    ClassifiedMessages {
        class: Report,
        reason: "says who is there",
        ids: &[
            // HEARTBEAT
            0,
        ],
    },
    ClassifiedMessages {
        class: Report,
        reason: "says how a system, its parts, power, memory and links are",
        ids: &[
            // SYS_STATUS, LINK_NODE_STATUS, DATA_STREAM, SIM_STATE, POWER_STATUS, BATTERY_STATUS, MEMINFO
            1, 8, 67, 108, 125, 147, 152,
            // AP_ADC, SIMSTATE, HWSTATUS, BATTERY2, UALBERTA_SYS_STATUS, EFI_STATUS, RPM, HIGH_LATENCY
            153, 164, 165, 181, 222, 225, 226, 234,
            // HIGH_LATENCY2, VIBRATION, EXTENDED_SYS_STATE, ESC_INFO, ESC_STATUS, UAVCAN_NODE_STATUS
            235, 241, 245, 290, 291, 310,
            // UAVCAN_NODE_INFO, CELLULAR_STATUS, ISBD_LINK_STATUS, RAW_RPM, BATTERY_STATUS_V2
            311, 334, 335, 339, 369,
            // SMART_BATTERY_INFO, FUEL_STATUS, BATTERY_INFO, GENERATOR_STATUS, ACTUATOR_OUTPUT_STATUS
            370, 371, 372, 373, 375,
            // RELAY_STATUS, ONBOARD_COMPUTER_STATUS, ILLUMINATOR_STATUS, GNSS_INTEGRITY, SENS_POWER, SENS_MPPT
            376, 390, 440, 441, 8002, 8003,
            // ASLUAV_STATUS, SENS_BATMON, SENSORPOD_STATUS, SENS_POWER_BOARD, GSM_LINK_STATUS
            8006, 8010, 8012, 8013, 8014,
            // SATCOM_LINK_STATUS, WINCH_STATUS, UAVIONIX_ADSB_OUT_STATUS, ESC_TELEMETRY_1_TO_4
            8015, 9005, 10_008, 11_030,
            // ESC_TELEMETRY_5_TO_8, ESC_TELEMETRY_9_TO_12, MCU_STATUS, ESC_TELEMETRY_13_TO_16
            11_031, 11_032, 11_039, 11_040,
            // ESC_TELEMETRY_17_TO_20, ESC_TELEMETRY_21_TO_24, ESC_TELEMETRY_25_TO_28, ESC_TELEMETRY_29_TO_32
            11_041, 11_042, 11_043, 11_044,
            // ICAROUS_HEARTBEAT, HERELINK_TELEM, MLRS_RADIO_LINK_STATS, MLRS_RADIO_LINK_INFORMATION
            42_000, 50_003, 60_045, 60_046,
            // AVSS_PRS_SYS_STATUS
            60_050,
        ],
    },
    ClassifiedMessages {
        class: Report,
        reason: "says where a system is, how it stands and moves, as it estimates itself",
        ids: &[
            // ATTITUDE, ATTITUDE_QUATERNION, LOCAL_POSITION_NED, GLOBAL_POSITION_INT, GLOBAL_POSITION_INT_COV
            30, 31, 32, 33, 63,
            // VFR_HUD, LOCAL_POSITION_NED_SYSTEM_GLOBAL_OFFSET, ALTITUDE, CONTROL_SYSTEM_STATE, AHRS, WIND
            74, 89, 141, 146, 163, 168,
            // AHRS2, AHRS3, EKF_STATUS_REPORT, NAV_FILTER_BIAS, ESTIMATOR_STATUS, WIND_COV, HOME_POSITION
            178, 182, 193, 220, 230, 231, 242,
            // ESTIMATOR_SENSOR_FUSION_STATUS, EKF_EXT, AOA_SSA
            514, 8007, 11_020,
        ],
    },
    ClassifiedMessages {
        class: Report,
        reason: "says what sensors measured; no autopilot takes it from another system as its own",
        ids: &[
            // GPS_RAW_INT, GPS_STATUS, SCALED_IMU, RAW_IMU, RAW_PRESSURE, SCALED_PRESSURE, HIGHRES_IMU
            24, 25, 26, 27, 28, 29, 105,
            // SCALED_IMU2, GPS2_RAW, GPS_RTK, GPS2_RTK, SCALED_IMU3, SCALED_PRESSURE2, SCALED_PRESSURE3
            116, 124, 127, 128, 129, 137, 143,
            // SENSOR_OFFSETS, RANGEFINDER, AIRSPEED_AUTOCAL, SENS_ATMOS, SENSOR_AIRFLOW_ANGLES, WHEEL_DISTANCE
            150, 173, 174, 8009, 8016, 9000,
            // WATER_DEPTH, HYGROMETER_SENSOR
            11_038, 12_920,
        ],
    },
    ClassifiedMessages {
        class: Report,
        reason: "says what a system does, aims at and has reached",
        ids: &[
            // RC_CHANNELS_SCALED, RC_CHANNELS_RAW, SERVO_OUTPUT_RAW, MISSION_CURRENT, MISSION_ITEM_REACHED
            34, 35, 36, 42, 46,
            // MISSION_CHECKSUM, SAFETY_ALLOWED_AREA, NAV_CONTROLLER_OUTPUT, RC_CHANNELS, ATTITUDE_TARGET
            53, 55, 62, 65, 83,
            // POSITION_TARGET_LOCAL_NED, POSITION_TARGET_GLOBAL_INT, TERRAIN_REPORT, ACTUATOR_CONTROL_TARGET
            85, 87, 136, 140,
            // FENCE_STATUS, LIMITS_STATUS, COMPASSMOT_STATUS, MAG_CAL_PROGRESS, MAG_CAL_REPORT, PID_TUNING
            162, 167, 177, 191, 192, 194,
            // DEEPSTALL, BUTTON_CHANGE, FLIGHT_INFORMATION, VELOCITY_LIMITS, ORBIT_EXECUTION_STATUS
            195, 257, 264, 355, 360,
            // FIGURE_EIGHT_EXECUTION_STATUS, TIME_ESTIMATE_TO_TARGET, GROUP_START, GROUP_END, CURRENT_MODE
            361, 380, 414, 415, 436,
            // AVAILABLE_MODES_MONITOR, CONTROL_STATUS, ASLCTRL_DATA, ASLCTRL_DEBUG, FW_SOARING_DATA, ADAP_TUNING
            437, 512, 8004, 8005, 8011, 11_010,
            // ICAROUS_KINEMATIC_BANDS, QSHOT_STATUS
            42_001, 60_020,
        ],
    },
    ClassifiedMessages {
        class: Report,
        reason: "says how cameras, gimbals and mounts are, and what they took",
        ids: &[
            // MOUNT_STATUS, CAMERA_STATUS, CAMERA_FEEDBACK, GIMBAL_TORQUE_CMD_REPORT, GOPRO_HEARTBEAT
            158, 179, 180, 214, 215,
            // CAMERA_INFORMATION, CAMERA_SETTINGS, STORAGE_INFORMATION, CAMERA_CAPTURE_STATUS
            259, 260, 261, 262,
            // CAMERA_IMAGE_CAPTURED, MOUNT_ORIENTATION, VIDEO_STREAM_INFORMATION, VIDEO_STREAM_STATUS
            263, 265, 269, 270,
            // CAMERA_FOV_STATUS, CAMERA_TRACKING_IMAGE_STATUS, CAMERA_TRACKING_GEO_STATUS, CAMERA_THERMAL_RANGE
            271, 275, 276, 277,
            // GIMBAL_MANAGER_INFORMATION, GIMBAL_MANAGER_STATUS, GIMBAL_DEVICE_INFORMATION
            280, 281, 283,
            // GIMBAL_DEVICE_ATTITUDE_STATUS, HERELINK_VIDEO_STREAM_INFORMATION
            285, 50_002,
            // STORM32_GIMBAL_MANAGER_INFORMATION, STORM32_GIMBAL_MANAGER_STATUS
            60_010, 60_011,
        ],
    },
    ClassifiedMessages {
        class: Report,
        reason: "is text or a number for people to read",
        ids: &[
            // MEMORY_VECT, DEBUG_VECT, NAMED_VALUE_FLOAT, NAMED_VALUE_INT, STATUSTEXT, DEBUG, DEBUG_FLOAT_ARRAY
            249, 250, 251, 252, 253, 254, 350,
            // EVENT, CURRENT_EVENT_SEQUENCE, NAMED_VALUE_STRING, FRSKY_PASSTHROUGH_ARRAY
            410, 411, 11_060, 60_040,
        ],
    },
    ClassifiedMessages {
        class: Report,
        reason: "is a part of a log that was asked for or started by a command",
        ids: &[
            // LOG_ENTRY, LOG_DATA, REMOTE_LOG_DATA_BLOCK, LOGGING_DATA, LOGGING_DATA_ACKED
            118, 120, 184, 266, 267,
        ],
    },
    ClassifiedMessages {
        class: Report,
        reason: "says or asks the time",
        ids: &[
            // SYSTEM_TIME, PING, TIMESYNC
            2, 4, 111,
        ],
    },
    ClassifiedMessages {
        class: Answer,
        reason: "acknowledges or refuses what was asked",
        ids: &[
            // CHANGE_OPERATOR_CONTROL_ACK, MISSION_ACK, COMMAND_ACK, GOPRO_SET_RESPONSE, LOGGING_ACK
            6, 47, 77, 219, 268,
            // PARAM_EXT_ACK, PARAM_ERROR, RESPONSE_EVENT_ERROR, DEVICE_OP_WRITE_REPLY, SECURE_COMMAND_REPLY
            324, 345, 413, 11_003, 11_005,
            // OSD_PARAM_CONFIG_REPLY, AIRLINK_AUTH_RESPONSE
            11_034, 52_001,
        ],
    },
    ClassifiedMessages {
        class: Answer,
        reason: "is what was asked for: a parameter, a version, an interval, a register",
        ids: &[
            // PARAM_VALUE, AUTOPILOT_VERSION, GOPRO_GET_RESPONSE, MESSAGE_INTERVAL, PROTOCOL_VERSION
            22, 148, 217, 244, 300,
            // PARAM_EXT_VALUE, COMPONENT_INFORMATION, COMPONENT_INFORMATION_BASIC, COMPONENT_METADATA
            322, 395, 396, 397,
            // SUPPORTED_TUNES, AVAILABLE_MODES, DEVICE_OP_READ_REPLY, OSD_PARAM_SHOW_CONFIG_REPLY
            401, 435, 11_001, 11_036,
            // PARAM_VALUE_ARRAY
            60_041,
        ],
    },
    ClassifiedMessages {
        class: Question,
        reason: "is answered by one frame of a like size and changes nothing",
        ids: &[
            // PARAM_REQUEST_READ, MISSION_REQUEST, MISSION_REQUEST_INT, TERRAIN_CHECK, FENCE_FETCH_POINT
            20, 40, 51, 135, 161,
            // RALLY_FETCH_POINT, AUTOPILOT_VERSION_REQUEST, GOPRO_GET_REQUEST, PARAM_EXT_REQUEST_READ
            176, 183, 216, 320,
            // UAVIONIX_ADSB_GET, OSD_PARAM_SHOW_CONFIG
            10_006, 11_035,
        ],
    },
    ClassifiedMessages {
        class: Command,
        reason: "commands, sets a mode, or takes or gives control",
        ids: &[
            // CHANGE_OPERATOR_CONTROL, SET_MODE, COMMAND_INT, COMMAND_LONG, COMMAND_CANCEL, COMMAND_INT_STAMPED
            5, 11, 75, 76, 80, 223,
            // COMMAND_LONG_STAMPED, SET_VELOCITY_LIMITS, SECURE_COMMAND
            224, 354, 11_004,
        ],
    },
    ClassifiedMessages {
        class: Command,
        reason: "moves sticks",
        ids: &[
            // MANUAL_CONTROL, RC_CHANNELS_OVERRIDE, MANUAL_SETPOINT, HIL_RC_INPUTS_RAW, RADIO_RC_CHANNELS
            69, 70, 81, 92, 420,
            // RC_CHANNELS_OVERRIDE_V2, CUBEPILOT_RAW_RC
            421, 50_001,
        ],
    },
    ClassifiedMessages {
        class: Command,
        reason: "sets where to fly, how to stand, or what an actuator does",
        ids: &[
            // SET_ATTITUDE_TARGET, SET_POSITION_TARGET_LOCAL_NED, SET_POSITION_TARGET_GLOBAL_INT, HIL_CONTROLS
            82, 84, 86, 91,
            // HIL_ACTUATOR_CONTROLS, SET_ACTUATOR_CONTROL_TARGET, TRAJECTORY_REPRESENTATION_WAYPOINTS
            93, 139, 332,
            // TRAJECTORY_REPRESENTATION_BEZIER, ASL_OBCTRL
            333, 8008,
        ],
    },
    ClassifiedMessages {
        class: Command,
        reason: "writes a parameter, a setting, a calibration, the origin or home",
        ids: &[
            // PARAM_SET, SET_GPS_GLOBAL_ORIGIN, GPS_GLOBAL_ORIGIN, PARAM_MAP_RC, SET_MAG_OFFSETS
            23, 48, 49, 50, 151,
            // RADIO_CALIBRATION, SET_HOME_POSITION, ESC_EEPROM, PARAM_EXT_SET, CELLULAR_CONFIG, OSD_PARAM_CONFIG
            221, 243, 292, 323, 336, 11_033,
        ],
    },
    ClassifiedMessages {
        class: Command,
        reason: "writes a mission, a fence, rally points or an area",
        ids: &[
            // MISSION_WRITE_PARTIAL_LIST, MISSION_ITEM, MISSION_SET_CURRENT, MISSION_COUNT, MISSION_CLEAR_ALL
            38, 39, 41, 44, 45,
            // SAFETY_SET_ALLOWED_AREA, MISSION_ITEM_INT, FENCE_POINT, RALLY_POINT
            54, 73, 160, 175,
        ],
    },
    ClassifiedMessages {
        class: Command,
        reason: "makes a vehicle send much for a short question, or begins a transfer",
        ids: &[
            // PARAM_REQUEST_LIST, MISSION_REQUEST_PARTIAL_LIST, MISSION_REQUEST_LIST, REQUEST_DATA_STREAM
            21, 37, 43, 66,
            // LOG_REQUEST_LIST, LOG_REQUEST_DATA, LOG_REQUEST_END, TERRAIN_REQUEST, RESOURCE_REQUEST
            117, 119, 122, 133, 142,
            // REMOTE_LOG_BLOCK_STATUS, PARAM_EXT_REQUEST_LIST, REQUEST_EVENT
            185, 321, 412,
        ],
    },
    ClassifiedMessages {
        class: Command,
        reason: "reaches files, shells, registers, buses, logs or firmware",
        ids: &[
            // FILE_TRANSFER_PROTOCOL, LOG_ERASE, SERIAL_CONTROL, CAN_FRAME, CANFD_FRAME, CAN_FILTER_MODIFY
            110, 121, 126, 386, 387, 388,
            // DEVICE_OP_READ, DEVICE_OP_WRITE, CUBEPILOT_FIRMWARE_UPDATE_START, CUBEPILOT_FIRMWARE_UPDATE_RESP
            11_000, 11_002, 50_004, 50_005,
        ],
    },
    ClassifiedMessages {
        class: Command,
        reason: "gives a key, a password or a name to be known by",
        ids: &[
            // AUTH_KEY, SETUP_SIGNING, WIFI_CONFIG_AP, AIRLINK_AUTH
            7, 256, 299, 52_000,
        ],
    },
    ClassifiedMessages {
        class: Command,
        reason: "moves or sets a gimbal, mount, camera, light or buzzer",
        ids: &[
            // CAMERA_TRIGGER, DATA_TRANSMISSION_HANDSHAKE, DIGICAM_CONFIGURE, DIGICAM_CONTROL, MOUNT_CONFIGURE
            112, 130, 154, 155, 156,
            // MOUNT_CONTROL, LED_CONTROL, GIMBAL_CONTROL, GOPRO_SET_REQUEST, PLAY_TUNE
            157, 186, 201, 218, 258,
            // GIMBAL_MANAGER_SET_ATTITUDE, GIMBAL_DEVICE_SET_ATTITUDE, GIMBAL_MANAGER_SET_PITCHYAW
            282, 284, 287,
            // GIMBAL_MANAGER_SET_MANUAL_CONTROL, PLAY_TUNE_V2, STORM32_GIMBAL_MANAGER_CONTROL
            288, 400, 60_012,
            // STORM32_GIMBAL_MANAGER_CONTROL_PITCHYAW, STORM32_GIMBAL_MANAGER_CORRECT_ROLL
            60_013, 60_014,
        ],
    },
    ClassifiedMessages {
        class: Input,
        reason: "is taken into an estimate of position, attitude or speed",
        ids: &[
            // ATTITUDE_QUATERNION_COV, LOCAL_POSITION_NED_COV, OPTICAL_FLOW, GLOBAL_VISION_POSITION_ESTIMATE
            61, 64, 100, 101,
            // VISION_POSITION_ESTIMATE, VISION_SPEED_ESTIMATE, VICON_POSITION_ESTIMATE, OPTICAL_FLOW_RAD
            102, 103, 104, 106,
            // GPS_INJECT_DATA, ATT_POS_MOCAP, GPS_INPUT, GPS_RTCM_DATA, AIRSPEED, GLOBAL_POSITION_SENSOR
            123, 138, 232, 233, 295, 296,
            // ODOMETRY, RANGING_BEACON, VISION_POSITION_DELTA
            331, 513, 11_011,
        ],
    },
    ClassifiedMessages {
        class: Input,
        reason: "takes the place of sensors, in simulations",
        ids: &[
            // HIL_STATE, HIL_SENSOR, HIL_GPS, HIL_OPTICAL_FLOW, HIL_STATE_QUATERNION
            90, 107, 113, 114, 115,
        ],
    },
    ClassifiedMessages {
        class: Input,
        reason: "is followed, landed on, avoided or flown over",
        ids: &[
            // DISTANCE_SENSOR, TERRAIN_DATA, FOLLOW_TARGET, LANDING_TARGET, ADSB_VEHICLE, COLLISION, AIS_VESSEL
            132, 134, 144, 149, 246, 247, 301,
            // OBSTACLE_DISTANCE, UTM_GLOBAL_POSITION, TARGET_ABSOLUTE, TARGET_RELATIVE, OBSTACLE_DISTANCE_3D
            330, 340, 510, 511, 11_037,
        ],
    },
    ClassifiedMessages {
        class: Input,
        reason: "steers a gimbal, a transponder, a parachute, a generator, or what a remote id broadcasts",
        ids: &[
            // GIMBAL_REPORT, AUTOPILOT_STATE_FOR_GIMBAL_DEVICE, UAVIONIX_ADSB_OUT_CFG, UAVIONIX_ADSB_OUT_DYNAMIC
            200, 286, 10_001, 10_002,
            // UAVIONIX_ADSB_TRANSCEIVER_HEALTH_REPORT, UAVIONIX_ADSB_OUT_CFG_REGISTRATION
            10_003, 10_004,
            // UAVIONIX_ADSB_OUT_CFG_FLIGHTID, UAVIONIX_ADSB_OUT_CONTROL, LOWEHEISER_GOV_EFI
            10_005, 10_007, 10_151,
            // OPEN_DRONE_ID_BASIC_ID, OPEN_DRONE_ID_LOCATION, OPEN_DRONE_ID_AUTHENTICATION
            12_900, 12_901, 12_902,
            // OPEN_DRONE_ID_SELF_ID, OPEN_DRONE_ID_SYSTEM, OPEN_DRONE_ID_OPERATOR_ID, OPEN_DRONE_ID_MESSAGE_PACK
            12_903, 12_904, 12_905, 12_915,
            // OPEN_DRONE_ID_ARM_STATUS, OPEN_DRONE_ID_SYSTEM_UPDATE, AUTOPILOT_STATE_FOR_GIMBAL_DEVICE_EXT
            12_918, 12_919, 60_000,
            // AVSS_DRONE_POSITION, AVSS_DRONE_IMU, AVSS_DRONE_OPERATION_MODE
            60_051, 60_052, 60_053,
        ],
    },
    ClassifiedMessages {
        class: Input,
        reason: "carries anything, firmware and other protocols among it",
        ids: &[
            // ENCAPSULATED_DATA, DATA16, DATA32, DATA64, DATA96, V2_EXTENSION, TUNNEL
            131, 169, 170, 171, 172, 248, 385,
        ],
    },
    ClassifiedMessages {
        class: Input,
        reason: "is of tests of the format, and nothing sends it in flight",
        ids: &[
            // TEST_TYPES, ARRAY_TEST_0, ARRAY_TEST_1, ARRAY_TEST_3, ARRAY_TEST_4, ARRAY_TEST_5, ARRAY_TEST_6
            17_000, 17_150, 17_151, 17_153, 17_154, 17_155, 17_156,
            // ARRAY_TEST_7, ARRAY_TEST_8
            17_157, 17_158,
        ],
    },
    ClassifiedMessages {
        class: Local,
        reason: "is a modem's word about its own link, by which an autopilot sends less",
        ids: &[
            // RADIO_STATUS, RADIO, MLRS_RADIO_LINK_FLOW_CONTROL
            109, 166, 60_047,
        ],
    },
];
