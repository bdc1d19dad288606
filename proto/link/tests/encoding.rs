//! Encoding of datagrams and messages, byte for byte, and refusal of all others.

use std::fmt::Write;
use std::time::Duration;

use proptest::prelude::*;
use quiver_link::{
    BoardEndpoint, BoardReport, Counter, Destination, EndpointLimits, GatewayEndpoint, LineDecoder,
    MAX_DATAGRAM, MAX_LINE_FRAME, RadioFrame, Route, ToBoard, ToGateway, Via, Wants, encode_line,
};

/// Messages that a board and its gateway send on the way to a message in each direction, in order.
fn conversation() -> Vec<(&'static str, Vec<u8>)> {
    let limits = EndpointLimits { mtu: 96, ..EndpointLimits::line(1024) };
    let wants = Wants::new(Some("alpha"), true).unwrap();
    let mut board = BoardEndpoint::new(limits, 0x0102_0304, wants);
    let mut gateway = GatewayEndpoint::new(limits, 0x0A0B_0C0D);
    let (mut said, mut now) = (Vec::new(), Duration::ZERO);
    for step in 0..6 {
        if step == 1 {
            board.send(&ToGateway::Block { peer: 1 }).unwrap();
            gateway.send(&ToBoard::Received { from: 7, via: Via::Peer, bytes: vec![0xEE; 100] }).unwrap();
        }
        loop {
            let before = said.len();
            while let Some(datagram) = board.poll_datagram(now) {
                gateway.handle_datagram(now, &datagram);
                said.push(("board", datagram));
            }
            while let Some(datagram) = gateway.poll_datagram(now, 1_700_000_000) {
                board.handle_datagram(now, &datagram);
                said.push(("gateway", datagram));
            }
            if said.len() == before {
                break;
            }
        }
        now += Duration::from_secs(3);
    }
    let ping = said.iter().find(|(_, datagram)| datagram[0] == 3).unwrap().1.clone();
    said.push(("other gateway", quiver_link::refusal(&ping).unwrap()));
    said
}

#[test]
fn datagrams_of_a_conversation_keep_their_encoding() {
    let mut text = String::new();
    for (who, datagram) in conversation() {
        writeln!(text, "{who}: {}", hex::encode(datagram)).unwrap();
    }
    insta::assert_snapshot!(text);
}

fn messages() -> (Vec<ToGateway>, Vec<ToBoard>) {
    let mut report = BoardReport::default();
    report.set(Counter::Uptime, 3600);
    report.add(Counter::StackPeak);
    report.set(Counter::HeapPeak, u64::MAX);
    let to_gateway = vec![
        ToGateway::Transmit { to: Destination::Peer(0x0102), payload: b"one".to_vec() },
        ToGateway::Transmit { to: Destination::Group, payload: b"all".to_vec() },
        ToGateway::Block { peer: 3 },
        ToGateway::Report(report),
        ToGateway::TakesBroadcasts { max_message: 0x0102_0304 },
    ];
    let to_board = vec![
        ToBoard::Connected { peer: 1, route: Route::Kgc },
        ToBoard::Connected { peer: u64::MAX, route: Route::Leader },
        ToBoard::Disconnected { peer: 1 },
        ToBoard::Received { from: 1, via: Via::Peer, bytes: b"heard".to_vec() },
        ToBoard::Received { from: 1, via: Via::Group, bytes: b"heard".to_vec() },
    ];
    (to_gateway, to_board)
}

#[test]
fn messages_keep_their_encoding() {
    let (to_gateway, to_board) = messages();
    let mut text = String::new();
    for message in &to_gateway {
        let bytes = message.encode();
        assert_eq!(ToGateway::decode(&bytes).as_ref(), Ok(message));
        writeln!(text, "{}", hex::encode(bytes)).unwrap();
    }
    for message in &to_board {
        let bytes = message.encode();
        assert_eq!(ToBoard::decode(&bytes).as_ref(), Ok(message));
        writeln!(text, "{}", hex::encode(bytes)).unwrap();
    }
    insta::assert_snapshot!(text);
}

#[test]
fn frames_keep_their_encoding() {
    let line = encode_line(0x0102, b"datagram\0with zeros\0").unwrap();
    let radio =
        RadioFrame { sequence: 1, network: 0x1234, destination: 0, source: 0x00F1, datagram: b"datagram" };
    let radio = radio.encode().unwrap();
    insta::assert_snapshot!(format!("line: {}\nradio: {}", hex::encode(line), hex::encode(radio)));
}

#[test]
fn nothing_is_read_from_a_message_cut_short_or_with_a_byte_too_many() {
    let (to_gateway, to_board) = messages();
    for bytes in to_gateway.iter().filter(|m| !matches!(m, ToGateway::Transmit { .. })).map(ToGateway::encode)
    {
        assert!(ToGateway::decode(&bytes[..bytes.len() - 1]).is_err());
        assert!(ToGateway::decode(&[&bytes[..], &[0]].concat()).is_err());
    }
    for bytes in to_board.iter().filter(|m| !matches!(m, ToBoard::Received { .. })).map(ToBoard::encode) {
        assert!(ToBoard::decode(&bytes[..bytes.len() - 1]).is_err());
        assert!(ToBoard::decode(&[&bytes[..], &[0]].concat()).is_err());
    }
    for empty in [&[1, 0, 0, 0, 0, 0, 0, 0, 1][..], &[2], &[9], &[]] {
        assert!(ToGateway::decode(empty).is_err(), "{empty:?}");
    }
}

#[test]
fn report_of_a_later_version_is_read_as_far_as_it_is_known() {
    let mut bytes = vec![4];
    bytes.extend((0..64_u32).flat_map(u32::to_be_bytes));
    let Ok(ToGateway::Report(report)) = ToGateway::decode(&bytes) else { panic!("a report") };
    assert_eq!(report.value(Counter::Starts), 1);
    bytes.extend([0; 4]);
    assert!(ToGateway::decode(&bytes).is_err(), "more than any version will have");
    assert_eq!(BoardReport::default().to_string(), "");
    let mut few = BoardReport::default();
    few.add(Counter::Starts);
    few.set(Counter::GivenUp, 9);
    assert_eq!(few.to_string(), "starts=1 given_up=9");
}

#[test]
fn group_names_are_checked() {
    for good in ["a", "alpha-1_x.Y", &"n".repeat(64)] {
        assert_eq!(Wants::new(Some(good), false).unwrap().group(), Some(good));
    }
    for bad in ["", "two words", "ä", &"n".repeat(65)] {
        assert!(Wants::new(Some(bad), false).is_err(), "{bad}");
    }
}

/// All datagrams that are found in a stream of bytes.
fn found(stream: &[u8], chunk: usize) -> (Vec<(u16, Vec<u8>)>, u64) {
    let (mut decoder, mut found) = (LineDecoder::new(), Vec::new());
    for mut part in stream.chunks(chunk) {
        while let Some(frame) = decoder.next_frame(&mut part) {
            found.push((frame.address, frame.datagram.to_vec()));
        }
    }
    (found, decoder.counters().refused())
}

/// Garbage that cannot end in the beginning of a frame: the sender's zero comes after it.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..2 * MAX_LINE_FRAME)
}

proptest! {
    #[test]
    fn garbage_between_frames_costs_no_frame(
        parts in prop::collection::vec((garbage(), any::<u16>(), prop::collection::vec(any::<u8>(), 0..=MAX_DATAGRAM)), 1..6),
        chunk in 1..3000usize,
    ) {
        let mut stream = Vec::new();
        for (garbage, address, datagram) in &parts {
            stream.extend(garbage);
            stream.extend(encode_line(*address, datagram).unwrap());
        }
        let expected: Vec<_> = parts.into_iter().map(|(_, address, datagram)| (address, datagram)).collect();
        prop_assert_eq!(found(&stream, chunk).0, expected);
    }

    #[test]
    fn altered_frame_is_refused_and_the_next_one_found(
        datagram in prop::collection::vec(any::<u8>(), 0..=MAX_DATAGRAM), place: prop::sample::Index, bit in 0..8_u8,
    ) {
        let good = encode_line(1, &datagram).unwrap();
        let mut bad = good.clone();
        // The zeros in front and at the end are not the frame itself.
        let at = 1 + place.index(bad.len() - 2);
        bad[at] ^= 1_u8 << bit;
        let stream = [bad, good].concat();
        let (found, refused) = found(&stream, 100);
        prop_assert_eq!(found, [(1, datagram)]);
        prop_assert!(refused >= 1);
    }

    #[test]
    fn any_radio_frame_is_read_as_it_is_written_or_not_at_all(bytes in prop::collection::vec(any::<u8>(), 0..140)) {
        if let Ok(frame) = RadioFrame::parse(&bytes) {
            prop_assert_eq!(frame.encode().unwrap(), bytes);
        }
    }

    #[test]
    fn any_message_is_read_as_it_is_written_or_not_at_all(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(message) = ToBoard::decode(&bytes) {
            prop_assert_eq!(message.encode(), &bytes[..]);
        }
        match ToGateway::decode(&bytes) {
            Ok(ToGateway::Report(_)) | Err(_) => {}
            Ok(message) => prop_assert_eq!(message.encode(), bytes),
        }
    }
}
