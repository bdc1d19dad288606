//! Datagrams in `TUNNEL` messages on a serial line, for radio modems that take nothing but MAVLink: SiK and RFD900
//! with MAVLink framing, mLRS. What such a modem says of itself (`RADIO_STATUS`) goes to the programs at this end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use quiver_mavlink::message::{BRIDGE_COMPONENT, is_radio_status};
use quiver_mavlink::{FrameReader, Origin, TunnelReader, TunnelWriter};

use super::Content;
use super::serial::Framing;

/// Stands for the system id of an end to which none is granted: it says nothing but announcements.
const NO_SYSTEM: u8 = 255;

/// `TUNNEL` messages of one end.
#[derive(Debug)]
pub(super) struct Tunnel {
    system: Arc<AtomicU8>,
    writer: TunnelWriter,
    frames: FrameReader,
    reader: TunnelReader,
}

impl Tunnel {
    /// `system`: the system id of this end, 0 while none is granted.
    pub(super) fn new(system: Arc<AtomicU8>) -> Self {
        let origin = Origin { system: NO_SYSTEM, component: BRIDGE_COMPONENT, sequence: 0 };
        let (frames, reader) = (FrameReader::new(), TunnelReader::new());
        Self { system, writer: TunnelWriter::new(origin), frames, reader }
    }
}

impl Framing for Tunnel {
    const FIRST: &'static [u8] = &[];

    fn encode(&mut self, datagram: &[u8]) -> Vec<u8> {
        let system = self.system.load(Ordering::Relaxed);
        self.writer.set_system(if system == 0 { NO_SYSTEM } else { system });
        // No datagram is longer than the carrier takes.
        self.writer.write(datagram).unwrap_or_default()
    }

    fn decode(&mut self, bytes: &[u8], mut each: impl FnMut(Content)) {
        let reader = &mut self.reader;
        self.frames.push(bytes, |frame| {
            if is_radio_status(frame) {
                each(Content::RadioStatus(frame.bytes().to_vec()));
            } else if let Some(datagram) = reader.read(frame) {
                each(Content::Datagram(datagram));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use quiver_mavlink::message::RadioStatus;
    use quiver_mavlink::{Frame, MAX_TUNNELLED};

    use super::*;

    #[test]
    fn datagrams_and_the_modems_word_come_off_the_line_as_they_went_on_it() {
        let system = Arc::new(AtomicU8::new(0));
        let mut tunnel = Tunnel::new(Arc::clone(&system));
        let from = |line: &[u8]| Frame::split(line).map(|(frame, _)| frame.system_id());
        let status = RadioStatus { rssi: 180, ..RadioStatus::default() };
        let status = status.to_frame(Origin { system: 51, component: 68, sequence: 1 });
        let first = tunnel.encode(b"announcement");
        system.store(7, Ordering::Relaxed);
        let longest = tunnel.encode(&[9; MAX_TUNNELLED]);
        assert_eq!((from(&first), from(&longest)), (Ok(255), Ok(7)));
        let line = [&b"boot of the modem"[..], &first, &status, &longest].concat();
        let (mut datagrams, mut words) = (Vec::new(), Vec::new());
        for piece in line.chunks(7) {
            tunnel.decode(piece, |content| match content {
                Content::Datagram(datagram) => datagrams.push(datagram),
                Content::RadioStatus(frame) => words.push(frame),
            });
        }
        assert_eq!(datagrams, [b"announcement".to_vec(), vec![9; MAX_TUNNELLED]]);
        assert_eq!(words, [status]);
    }
}
