//! The link between a board and its gateway: frames, messages, and both endpoints fed with anything.

use std::time::Duration;

use quiver_link::erasure::{
    Assembler, AssemblerLimits, CODED_OVERHEAD, CodedFrame, Confirmation, code_broadcast,
};
use quiver_link::{
    BoardEndpoint, BoardReport, Destination, EndpointLimits, GatewayEndpoint, LineDecoder, MAX_LINE_FRAME,
    RadioFrame, Route, ToBoard, ToGateway, Via, Wants, encode_line,
};

/// The longest message of the endpoints here.
const MAX_MESSAGE: usize = 2048;

fn board() -> BoardEndpoint {
    let wants = Wants::new(Some("alpha"), true).expect("a name");
    BoardEndpoint::new(EndpointLimits::line(MAX_MESSAGE), 7, wants)
}

/// A stream of bytes: its frames are those that their encoder makes, and a frame after it is found.
pub fn line(bytes: &[u8]) {
    let (mut decoder, mut input) = (LineDecoder::new(), bytes);
    let mut taken = 0;
    while let Some(frame) = decoder.next_frame(&mut input) {
        let encoded = encode_line(frame.address, frame.datagram).expect("no longer than it came");
        assert!(encoded.len() <= MAX_LINE_FRAME);
        taken += encoded.len() - 2;
    }
    assert!(input.is_empty() && taken <= bytes.len(), "frames out of nothing");
    let good = encode_line(9, b"after it").expect("short");
    let (mut input, mut last) = (&good[..], None);
    // Its zero in front may end one that only lacked it.
    while let Some(frame) = decoder.next_frame(&mut input) {
        last = Some((frame.address, frame.datagram.to_vec()));
    }
    assert_eq!(last, Some((9, b"after it".to_vec())), "not found again");
}

/// Radio frames and messages: one encoding each.
pub fn message(bytes: &[u8]) {
    if let Ok(frame) = RadioFrame::parse(bytes) {
        assert_eq!(frame.encode().expect("no longer than it came"), bytes);
    }
    if let Ok(message) = ToBoard::decode(bytes) {
        assert_eq!(message.encode(), bytes);
    }
    if let Ok(confirmation) = Confirmation::decode(bytes) {
        assert_eq!(confirmation.encode(), bytes);
    }
    match ToGateway::decode(bytes) {
        // A shorter or longer one comes from another version.
        Ok(ToGateway::Report(report)) => {
            let _ = report.to_string();
        }
        Ok(message) => assert_eq!(message.encode(), bytes),
        Err(_) => {}
    }
}

/// Feeds both endpoints datagrams of anything, cut from the input by their lengths, in the middle of a
/// session. They come to rest, say nothing longer than the medium takes, and understand each other
/// afterwards.
pub fn endpoints(bytes: &[u8]) {
    let mut pair = EndpointPair { now: Duration::ZERO, board: board(), gateway: gateway() };
    pair.exchange();
    let _ = pair.board.send(&ToGateway::Transmit { to: Destination::Group, payload: vec![1; 1500] });
    let _ = pair.gateway.send(&ToBoard::Received { from: 1, via: Via::Peer, bytes: vec![2; 1500] });
    let mut input = bytes;
    while let Some((&head, rest)) = input.split_first() {
        let (datagram, rest) = rest.split_at(usize::from(head / 2).min(rest.len()));
        input = rest;
        if head % 2 == 0 {
            pair.board.handle_datagram(pair.now, datagram);
        } else {
            pair.gateway.handle_datagram(pair.now, datagram);
        }
        pair.exchange();
        pair.now += Duration::from_millis(100);
    }
    for _ in 0..200 {
        pair.now += Duration::from_secs(1);
        pair.exchange();
    }
    assert!(pair.board.has_session() && pair.gateway.has_session(), "they do not find each other again");
}

struct EndpointPair {
    now: Duration,
    board: BoardEndpoint,
    gateway: GatewayEndpoint,
}

impl EndpointPair {
    /// Carries datagrams until there are none.
    fn exchange(&mut self) {
        let limit = EndpointLimits::line(MAX_MESSAGE).mtu;
        self.board.handle_timeout(self.now);
        self.gateway.handle_timeout(self.now);
        for round in 0.. {
            assert!(round < 1000, "they do not come to rest");
            while self.board.poll_event().is_some() || self.gateway.poll_event().is_some() {}
            let to_gateway = self.board.poll_datagram(self.now);
            let to_board = self.gateway.poll_datagram(self.now, 1_700_000_000);
            if to_gateway.is_none() && to_board.is_none() {
                break;
            }
            if let Some(datagram) = to_gateway {
                assert!(datagram.len() <= limit);
                self.gateway.handle_datagram(self.now, &datagram);
            }
            if let Some(datagram) = to_board {
                assert!(datagram.len() <= limit);
                self.board.handle_datagram(self.now, &datagram);
            }
        }
    }
}

/// Frames of coded broadcasts from a few sources, cut from the input by their lengths. Each has one encoding;
/// what is held of them is bounded, and so is what is decoded of it; a broadcast from a source of its own is
/// assembled all the same, once, and nothing is that no frame is of.
pub fn coded_broadcast(bytes: &[u8]) {
    let genuine: Vec<u8> = (0..500u16).map(|number| number as u8).collect();
    let frames = code_broadcast(&genuine, 107, |_| 3).expect("short");
    let (mut genuine_frames, mut got) = (frames.iter().skip(3), 0);
    let limits = AssemblerLimits { retry_work: 100_000, ..AssemblerLimits::new(MAX_MESSAGE) };
    let mut assembler = Assembler::new(limits);
    let (mut input, mut taken) = (bytes, 0u64);
    while let Some((&[source, len], rest)) = input.split_first_chunk() {
        let (datagram, rest) = rest.split_at(usize::from(len).min(rest.len()));
        input = rest;
        taken += 1;
        if let Ok(frame) = CodedFrame::decode(datagram) {
            assert_eq!(frame.encode(), datagram);
            assert_eq!(datagram.len(), CODED_OVERHEAD + frame.piece.len());
        }
        let source = u64::from(source % 6);
        if let Some(message) = assembler.handle_frame(Duration::ZERO, source, datagram, |_| source == 0) {
            assert!(source == 0 && message.len() <= MAX_MESSAGE);
            let again = code_broadcast(&message, 255, |_| 0).expect("no longer than it came");
            assert!(!again.is_empty());
        }
        assert!(assembler.held_bytes() <= limits.sources * limits.source_bytes);
        if let Some(frame) = genuine_frames.next() {
            got += u32::from(assembler.handle_frame(Duration::ZERO, 6, frame, |_| true).is_some());
        }
    }
    for frame in genuine_frames {
        got += u32::from(assembler.handle_frame(Duration::ZERO, 6, frame, |_| true).is_some());
    }
    assert_eq!(got, 1, "the broadcast is spoilt");
    let counters = assembler.counters();
    assert!(counters.assembled + counters.spoilt <= (taken + 6) * u64::from(limits.attempts), "{counters:?}");
}

fn gateway() -> GatewayEndpoint {
    GatewayEndpoint::new(EndpointLimits::line(MAX_MESSAGE), 1)
}

/// Frames with garbage between them.
pub fn line_seeds() -> Vec<Vec<u8>> {
    let frames = [encode_line(0, b"one"), encode_line(7, &[0; 300]), encode_line(1, &[])];
    let frames: Vec<_> = frames.into_iter().flatten().collect();
    let mixed = frames.join(&b"\x05garbage\0"[..]);
    frames.into_iter().chain([mixed]).collect()
}

/// One of each.
pub fn message_seeds() -> Vec<Vec<u8>> {
    let radio = RadioFrame { sequence: 1, network: 2, destination: 0, source: 3, datagram: b"datagram" };
    vec![
        radio.encode().expect("short"),
        ToGateway::Transmit { to: Destination::Peer(1), payload: b"one".to_vec() }.encode(),
        ToGateway::Transmit { to: Destination::Group, payload: b"all".to_vec() }.encode(),
        ToGateway::Block { peer: 3 }.encode(),
        ToGateway::Report(BoardReport::default()).encode(),
        ToGateway::TakesBroadcasts { max_message: 8192 }.encode(),
        Confirmation { session: 1, digest: [1, 2, 3, 4] }.encode(),
        ToBoard::Connected { peer: 1, route: Route::Kgc }.encode(),
        ToBoard::Disconnected { peer: 1 }.encode(),
        ToBoard::Received { from: 1, via: Via::Peer, bytes: b"heard".to_vec() }.encode(),
    ]
}

/// A broadcast as it is, in another order with one frame false, and two in turn.
pub fn coded_broadcast_seeds() -> Vec<Vec<u8>> {
    let broadcast = |byte, len| code_broadcast(&vec![byte; len], 60, |_| 4).expect("short");
    let script = |frames: &[(u8, Vec<u8>)]| -> Vec<u8> {
        let put = |(source, frame): &(u8, Vec<u8>)| [&[*source, frame.len() as u8], &frame[..]].concat();
        frames.iter().flat_map(put).collect()
    };
    let mut jammed = broadcast(1, 300);
    jammed.reverse();
    jammed[1].truncate(9);
    jammed[2][20] ^= 1;
    let under = |source, frames: Vec<Vec<u8>>| frames.into_iter().map(move |frame| (source, frame));
    let (one, other) = (broadcast(2, 100), broadcast(3, 101));
    let in_turn: Vec<_> = under(1, one).zip(under(1, other)).flat_map(|(one, other)| [one, other]).collect();
    let jammed: Vec<_> = under(0, jammed).collect();
    vec![script(&under(0, broadcast(0, 400)).collect::<Vec<_>>()), script(&jammed), script(&in_turn)]
}

/// Messages that the two endpoints exchange by themselves.
pub fn endpoint_seeds() -> Vec<Vec<u8>> {
    let (mut board, mut gateway) = (board(), gateway());
    let mut script = Vec::new();
    let mut put = |to_gateway: bool, datagram: &[u8]| {
        script.push(u8::try_from(datagram.len().min(127) * 2).expect("a byte") + u8::from(to_gateway));
        script.extend(&datagram[..datagram.len().min(127)]);
    };
    let _ = gateway.send(&ToBoard::Disconnected { peer: 1 });
    for second in 0..40 {
        let now = Duration::from_secs(second);
        if second == 2 {
            let _ = board.send(&ToGateway::Block { peer: 1 });
            let _ = gateway.send(&ToBoard::Disconnected { peer: 1 });
        }
        if let Some(datagram) = board.poll_datagram(now) {
            put(true, &datagram);
            gateway.handle_datagram(now, &datagram);
        }
        if let Some(datagram) = gateway.poll_datagram(now, 1_700_000_000) {
            put(false, &datagram);
            board.handle_datagram(now, &datagram);
        }
    }
    vec![script]
}
