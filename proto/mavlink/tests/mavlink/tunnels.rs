//! Datagrams in `TUNNEL` messages, as pymavlink packs them.

use proptest::prelude::*;
use quiver_mavlink::{
    Frame, FrameReader, MAX_TUNNELLED, MavlinkError, Origin, TUNNEL_OVERHEAD, TUNNEL_PAYLOAD, TunnelReader,
    TunnelWriter,
};

use crate::vectors::{any_frame, frames, other_tunnels, tunnels};

fn writer(system: u32, sequence: u8) -> TunnelWriter {
    TunnelWriter::new(Origin { system, component: 191, sequence })
}

fn read(frame: &[u8]) -> Option<Vec<u8>> {
    TunnelReader::new().read(Frame::parse(frame).unwrap())
}

/// The frames of a line.
fn split(line: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    FrameReader::new().push(line, |frame| frames.push(frame.bytes().to_vec()));
    assert_eq!(frames.concat(), line);
    frames
}

fn read_all<'a>(reader: &mut TunnelReader, frames: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<Vec<u8>> {
    frames.into_iter().filter_map(|frame| reader.read(Frame::parse(frame).unwrap())).collect()
}

#[test]
fn tunnels_are_those_of_pymavlink() {
    for (datagram, frame) in tunnels() {
        assert_eq!(hex::encode(writer(42, 9).write(&datagram).unwrap()), hex::encode(&frame));
        assert_eq!(read(&frame), Some(datagram));
    }
}

#[test]
fn a_tunnel_costs_seventeen_bytes_a_part_and_carries_no_more_than_it_can() {
    for (len, parts) in [(128, 1), (129, 2), (256, 2), (257, 3), (MAX_TUNNELLED, 4)] {
        let line = writer(42, 0).write(&vec![1; len]).unwrap();
        assert_eq!((line.len(), split(&line).len()), (len + parts * TUNNEL_OVERHEAD, parts));
    }
    let refused = writer(42, 0).write(&[1; MAX_TUNNELLED + 1]);
    assert_eq!(refused, Err(MavlinkError::TooLong { len: 513, max: 512 }));
}

#[test]
fn parts_have_these_types() {
    let mut writer = writer(42, 250);
    writer.write(&[1; 300]).unwrap();
    let frames = split(&writer.write(&[1; 300]).unwrap());
    let kinds: Vec<_> = frames.iter().map(|frame| u16::from_le_bytes([frame[10], frame[11]])).collect();
    assert_eq!(kinds, [0xd192, 0xd196, 0xd19a]);
    assert_eq!(frames.iter().map(|frame| frame[4]).collect::<Vec<_>>(), [253, 254, 255]);
}

#[test]
fn tunnels_of_others_and_damaged_ones_carry_no_datagram() {
    for vector in frames() {
        assert_eq!(read(&vector.bytes), None);
    }
    for bytes in other_tunnels() {
        assert!(Frame::parse(&bytes).unwrap().is_proven());
        assert_eq!(read(&bytes), None, "{bytes:02x?}");
    }
    let good = writer(42, 9).write(b"datagram").unwrap();
    for at in 5..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 4;
        assert_eq!(Frame::parse(&bad).map(|frame| TunnelReader::new().read(frame)), Ok(None), "byte {at}");
    }
}

#[test]
fn a_part_that_is_lost_costs_its_datagram_alone() {
    let long = |byte: u8| vec![byte; 400];
    for lost in 0..4 {
        let (mut writer, mut reader) = (writer(42, 0), TunnelReader::new());
        let mut frames = split(&writer.write(&long(1)).unwrap());
        frames.remove(lost);
        frames.extend(split(&writer.write(&long(2)).unwrap()));
        frames.extend(split(&writer.write(b"short").unwrap()));
        assert_eq!(read_all(&mut reader, &frames), [long(2), b"short".to_vec()], "part {lost}");
    }
    // The last part of the one and the first of the next one.
    let (mut writer, mut reader) = (writer(42, 0), TunnelReader::new());
    let frames: Vec<_> = (1..4).flat_map(|byte| split(&writer.write(&long(byte)).unwrap())).collect();
    let heard = frames.iter().enumerate().filter(|(at, _)| ![3, 4].contains(at)).map(|(_, frame)| frame);
    assert_eq!(read_all(&mut reader, heard), [long(3)]);
}

#[test]
fn senders_do_not_get_into_each_others_way_and_their_number_is_bounded() {
    let of = |system: u8| split(&writer(system.into(), 0).write(&[system; 200]).unwrap());
    let mut reader = TunnelReader::new();
    let frames: Vec<_> = (1..=16).map(of).collect();
    assert!(read_all(&mut reader, frames.iter().map(|frames| &frames[0])).is_empty());
    assert_eq!(read_all(&mut reader, frames.iter().map(|frames| &frames[1])).len(), 16);
    // Of seventeen the first is forgotten.
    let frames: Vec<_> = (1..=17).map(of).collect();
    assert!(read_all(&mut reader, frames.iter().map(|frames| &frames[0])).is_empty());
    let whole = read_all(&mut reader, frames.iter().map(|frames| &frames[1]));
    assert_eq!(whole.iter().map(|datagram| datagram[0]).collect::<Vec<_>>(), (2..=17).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn what_is_tunnelled_comes_out(
        datagrams in prop::collection::vec(prop::collection::vec(0..2_u8, 1..=MAX_TUNNELLED), 1..12),
        sequence in any::<u8>(),
    ) {
        let (mut writer, mut reader) = (writer(42, sequence), TunnelReader::new());
        for datagram in datagrams {
            let line = writer.write(&datagram).unwrap();
            let parts = datagram.len().div_ceil(TUNNEL_PAYLOAD);
            prop_assert!(line.len() <= datagram.len() + parts * TUNNEL_OVERHEAD);
            prop_assert_eq!(read_all(&mut reader, &split(&line)), [datagram]);
        }
    }

    /// Readers yield no datagram that is longer than one that went in, whatever is lost, doubled or out of
    /// order.
    #[test]
    fn readers_hold_what_they_are_given(
        kinds in prop::collection::vec(0xd156..0xd210_u16, 0..80), frame in any_frame(),
    ) {
        let mut reader = TunnelReader::new();
        let _ = reader.read(Frame::parse(&frame).unwrap());
        for kind in kinds {
            let mut line = writer(42, 0).write(&[7; 128]).unwrap();
            line[10..12].copy_from_slice(&kind.to_le_bytes());
            crate::vectors::seal(&mut line, 147);
            let read = reader.read(Frame::parse(&line).unwrap());
            prop_assert!(read.is_none_or(|datagram| datagram.len() <= MAX_TUNNELLED));
        }
    }
}
