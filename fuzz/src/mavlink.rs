//! MAVLink: streams of frames, batches, configuration files, endpoints, tables of system ids.

use std::sync::Arc;
use std::time::Duration;

use quiver_crypto::Secret;
use quiver_mavlink::{
    Config, Endpoint, Filters, Frame, FrameBatch, FrameReader, IssuedSystemIds, MAX_TUNNELLED, MavlinkError,
    MessageClass, Origin, Router, SignedMessages, Signing, SigningKey, SystemIds, TableIssuer, TableMessage,
    TableOutcome, TableReceiver, TunnelReader, TunnelWriter, batch, message, priority,
};

/// A heartbeat, a command and a tunnel, as pymavlink packs them.
const HEARTBEAT: &[u8] = b"\xfd\x09\0\0\0\x2a\xbf\0\0\0\x07\0\0\0\x02\x03\x51\x04\x03\x7f\x0a";
const RADIO_STATUS: &[u8] = b"\xfe\x09\x0b\x2a\xbf\x6d\x05\0\x02\0\xc8\xbe\x49\x28\x26\x9f\x5e";
const TUNNEL: &[u8] = b"\xfd\x06\0\0\x09\x2a\xbf\x81\x01\0\x56\xd1\0\0\x01\x01\x6f\x37";
/// 2026, for signatures.
const NOW: Duration = Duration::from_secs(1_780_000_000);
/// Length of the longest frame in bytes.
const LONGEST: usize = 287;

/// Signs with a key of its own: those of the seeds' key are of nobody here.
fn signing(key: u8) -> Signing {
    Signing::new(SigningKey::new(Secret::new([key; 32])), 1)
}

/// A stream of bytes: frames are parts of it, survive everything that is done with frames, and a frame after it is
/// found.
pub fn stream(bytes: &[u8]) {
    let mut reader = FrameReader::new();
    let mut router = Router::new(Duration::from_millis(100), Some(254));
    let endpoints = [router.add(Filters::default(), None), router.add(Filters::default(), None)];
    let (mut taken, mut signing, mut tunnels) = (0, signing(7), TunnelReader::new());
    let (head, tail) = bytes.split_at(bytes.len() / 3);
    for part in [head, tail] {
        reader.push(part, |frame| {
            taken += frame.bytes().len();
            use_frame(frame, &mut signing);
            assert!(tunnels.read(frame).is_none_or(|datagram| datagram.len() <= MAX_TUNNELLED));
            let routed = router.route(NOW, endpoints[taken % 2], frame);
            assert!(!routed.unwrap_or_default().contains(&endpoints[taken % 2]), "sent back");
        });
    }
    // The bytes held may be the start of a frame that ends behind them: as many bytes as the longest has end
    // it.
    let mut after = Vec::new();
    reader.push(&[0; LONGEST], |frame| taken += frame.bytes().len());
    reader.push(HEARTBEAT, |frame| after.push(frame.bytes().to_vec()));
    reader.reset();
    assert!(after.iter().any(|frame| frame == HEARTBEAT), "not found again");
    let all = bytes.len() + LONGEST + HEARTBEAT.len();
    let found: usize = after.iter().map(Vec::len).sum();
    assert_eq!(taken + found + reader.counters().skipped_bytes as usize, all, "bytes lost or doubled");
}

fn use_frame(frame: Frame<'_>, signing: &mut Signing) {
    assert_eq!(Frame::parse(frame.bytes()), Ok(frame));
    let _ = (priority(frame), message::RadioStatus::from_frame(frame));
    assert!(SignedMessages::default().contains(frame, false) || MessageClass::of(frame).is_some(), "unknown");
    assert!(!(frame.is_proven() && frame.is_damaged()));
    assert!(frame.is_proven() == frame.target().is_some());
    if let Ok(plain) = signing.verify(Some(NOW), frame) {
        assert!(frame.message_id() == 109 && plain == frame.bytes(), "a signature of nobody");
    }
    let signed = signing.sign(Some(NOW), frame).expect("the clock is set");
    let signed = Frame::parse(&signed).expect("a frame");
    assert_eq!(signed.is_proven(), frame.is_proven(), "signing proves nothing");
    assert_eq!(signed.without_signature(), frame.without_signature());
    let mut one = FrameBatch::new();
    assert!(one.push(frame, usize::MAX));
    assert_eq!(one.bytes().len(), batch::encoded_len(frame));
    assert_eq!(batch::decode(one.bytes(), frame.system_id()).expect("a batch"), [frame.bytes()]);
}

/// A datagram's payload: frames that are encoded to the very same bytes.
pub fn batch(bytes: &[u8]) {
    for system in [42, 70_000] {
        let Ok(frames) = batch::decode(bytes, system) else { continue };
        let mut again = FrameBatch::new();
        for frame in &frames {
            let frame = Frame::parse(frame).expect("a frame");
            assert_eq!(frame.system_id(), system);
            assert!(again.push(frame, usize::MAX));
        }
        assert_eq!(again.bytes(), bytes);
    }
}

/// A configuration file: an error names a line of it.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Config::parse(text, "quiver.conf") {
        Ok(config) => config.endpoints.iter().for_each(|one| reads_as_itself(&one.endpoint)),
        Err(MavlinkError::Config { line, .. }) => assert!((1..=text.lines().count()).contains(&line)),
        Err(other) => panic!("without a line: {other}"),
    }
}

/// An endpoint: it reads as it is written.
pub fn endpoint(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match text.parse::<Endpoint>() {
        Ok(endpoint) => reads_as_itself(&endpoint),
        Err(error) => assert!(error.to_string().len() < 1_000, "repeats what it was given"),
    }
}

fn reads_as_itself(endpoint: &Endpoint) {
    assert_eq!(endpoint.to_string().parse::<Endpoint>().as_ref(), Ok(endpoint));
}

/// A table of system ids, and a message about one: one encoding, each id and slot once.
pub fn system_ids(bytes: &[u8]) {
    if let Ok(message) = TableMessage::decode(bytes) {
        assert_eq!(message.encode(), bytes);
    }
    let mut receiver = TableReceiver::new();
    if let Ok(TableOutcome::Taken(table)) = receiver.receive(Some(65_537), bytes) {
        assert_eq!(receiver.wanted(), None);
        assert_eq!(SystemIds::decode(&table.encode()), Ok(table));
    }
    if let Ok(issued) = IssuedSystemIds::decode(bytes) {
        assert_eq!(issued.encode(), bytes);
    }
    let Ok(table) = SystemIds::decode(bytes) else { return };
    assert_eq!(table.encode(), bytes);
    for (name, grant) in table.iter() {
        assert_eq!(table.holder(grant.system_id), Some(name));
        assert!(grant.slot.is_none_or(|slot| table.of_slot(slot) == Some(grant.system_id)));
    }
}

/// Frames with garbage between them, signed ones, of no known dialect, and parts of a datagram.
pub fn stream_seeds() -> Vec<Vec<u8>> {
    let mut unknown = HEARTBEAT.to_vec();
    unknown[9] = 0x55;
    let heartbeat = Frame::parse(HEARTBEAT).expect("a frame");
    let signed = signing(8).sign(Some(NOW), heartbeat).expect("the clock is set");
    let origin = Origin { system: 42, component: 191, sequence: 0 };
    let parts = TunnelWriter::new(origin).write(&[7; 300]).expect("short");
    let wide = TunnelWriter::new(Origin { system: 70_000, ..origin }).write(&[7; 3]).expect("short");
    let frames = [HEARTBEAT, RADIO_STATUS, TUNNEL, &parts, &unknown, &signed, &wide];
    let mixed = frames.join(&b"\xfdgarbage"[..]);
    frames.into_iter().map(<[u8]>::to_vec).chain([mixed]).collect()
}

/// One frame, and several.
pub fn batch_seeds() -> Vec<Vec<u8>> {
    let frames = stream_seeds();
    let mut all = FrameBatch::new();
    let mut seeds = Vec::new();
    for frame in frames.iter().filter_map(|bytes| Frame::parse(bytes).ok()) {
        let mut one = FrameBatch::new();
        assert!(one.push(frame, usize::MAX) && all.push(frame, usize::MAX));
        seeds.push(one.take());
    }
    seeds.push(all.take());
    seeds
}

/// A file with everything in it.
pub fn config_seeds() -> Vec<Vec<u8>> {
    let whole = "[General]\nTcpServerPort = 5760\nDeduplicationPeriod = 1000\nSnifferSysid = 254\nLog = x\n\
                 [UartEndpoint a]\nDevice = /dev/ttyACM0\nBaud = 57600\nFlowControl = true\nSigningKeyFile = k\n\
                 [UdpEndpoint b]\nMode = Server\nAddress = [::1]\nPort = 14550\nAllowMsgIdOut = 0,30\nGroup = g\n\
                 [UdpEndpoint c]\nMode = Normal\nAddress = 127.0.0.1\nBlockSrcSysIn = 7\n\
                 [TcpEndpoint d]\nAddress = 127.0.0.1\nPort = 5761\nRetryTimeout = 0\n\
                 [QuiverEndpoint e]\nCarrier = star\nSignMsgId = 76\nManifest = 1\n";
    whole
        .split_inclusive("\n[")
        .map(|section| format!("[{section}").into_bytes())
        .chain([whole.into()])
        .collect()
}

/// One of each spelling.
pub fn endpoint_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "udpin:127.0.0.1:14550",
        "udpout://[::1]:14550",
        "udpbcast:10.0.0.255",
        "tcp:host:5760",
        "tcpin:",
        "serial:/dev/serial/by-path/pci-0000:00:14.0-port0:57600",
        "serial:////dev/ttyACM0",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

/// Empty, of two names, and the same as it is spread.
pub fn system_id_seeds() -> Vec<Vec<u8>> {
    let mut table = SystemIds::new();
    let empty = table.encode();
    table.grant("edge-1", 1).expect("free");
    table.grant("gcs", 255).expect("free");
    table.set_slot("edge-1", Some(7));
    let stored = table.encode();
    let mut issuer = TableIssuer::new(2);
    let narrow = IssuedSystemIds { term: 65_537, number: 2, table: table.clone() }.encode();
    table.grant("edge-2", 70_000).expect("free");
    issuer.set(65_537, &Arc::new(table.clone()));
    let mut seeds = vec![empty, stored, narrow, table.encode()];
    seeds.extend([issuer.announcement(), issuer.whole()].concat());
    table.withdraw("gcs");
    table.set_slot("edge-2", Some(8));
    issuer.set(65_537, &Arc::new(table));
    seeds.extend(issuer.change());
    seeds
}
