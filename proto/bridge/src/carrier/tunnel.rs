//! Datagrams in `TUNNEL` messages on a serial line, for radio modems that take nothing but MAVLink: SiK and RFD900
//! with MAVLink framing, mLRS. Such a modem's own status (`RADIO_STATUS`) goes to the programs at this end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_mavlink::message::{BRIDGE_COMPONENT, is_radio_status};
use quiver_mavlink::{FrameReader, MAX_NARROW_SYSTEM, Origin, TunnelReader, TunnelWriter};

use super::Content;
use super::serial::Framing;

/// Stands for the system id of an end to which none is granted: it says nothing but announcements.
const NO_SYSTEM: u32 = 255;

/// `TUNNEL` messages of one end.
#[derive(Debug)]
pub(super) struct Tunnel {
    system: Arc<AtomicU32>,
    writer: TunnelWriter,
    frames: FrameReader,
    reader: TunnelReader,
    /// True if the log has said that the modem may not know this end's system id.
    told: bool,
}

impl Tunnel {
    /// `system`: the system id of this end, 0 while none is granted.
    pub(super) fn new(system: Arc<AtomicU32>) -> Self {
        let origin = Origin { system: NO_SYSTEM, component: BRIDGE_COMPONENT, sequence: 0 };
        let (frames, reader) = (FrameReader::new(), TunnelReader::new());
        Self { system, writer: TunnelWriter::new(origin), frames, reader, told: false }
    }
}

impl Framing for Tunnel {
    const FIRST: &'static [u8] = &[];

    fn encode(&mut self, datagram: &[u8]) -> Vec<u8> {
        let system = self.system.load(Ordering::Relaxed);
        if system > MAX_NARROW_SYSTEM && !self.told {
            self.told = true;
            tracing::warn!(
                system,
                "TUNNEL messages of system {system} have the longer header of 32-bit system ids: a modem with older \
                 firmware does not know it; grant an id up to 255, or set the modem to pass bytes as they are and \
                 use serial: in place of tunnel:"
            );
        }
        // Without a system id only announcements leave, and their frames need some id.
        self.writer.set_system(if system == 0 { NO_SYSTEM } else { system });
        // No datagram is longer than the carrier takes.
        self.writer.write(datagram).unwrap_or_default()
    }

    fn decode(&mut self, bytes: &[u8], mut each: impl FnMut(Content)) {
        let reader = &mut self.reader;
        self.frames.push(bytes, |frame| {
            // The modem's own word, which is for the programs at this end.
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
        let system = Arc::new(AtomicU32::new(0));
        let mut tunnel = Tunnel::new(Arc::clone(&system));
        let from = |line: &[u8]| Frame::split(line).map(|(frame, _)| frame.system_id());
        let status = RadioStatus { rssi: 180, ..RadioStatus::default() };
        let status = status.to_frame(Origin { system: 51, component: 68, sequence: 1 });
        let first = tunnel.encode(b"announcement");
        system.store(7, Ordering::Relaxed);
        let longest = tunnel.encode(&[9; MAX_TUNNELLED]);
        assert_eq!((from(&first), from(&longest)), (Ok(255), Ok(7)));
        system.store(70_000, Ordering::Relaxed);
        let wide = tunnel.encode(b"of a wide system");
        assert_eq!(from(&wide), Ok(70_000));
        let line = [&b"boot of the modem"[..], &first, &status, &longest, &wide].concat();
        let (mut datagrams, mut words) = (Vec::new(), Vec::new());
        for piece in line.chunks(7) {
            tunnel.decode(piece, |content| match content {
                Content::Datagram(datagram) => datagrams.push(datagram),
                Content::RadioStatus(frame) => words.push(frame),
            });
        }
        assert_eq!(
            datagrams,
            [b"announcement".to_vec(), vec![9; MAX_TUNNELLED], b"of a wide system".to_vec()]
        );
        assert_eq!(words, [status]);
    }
}
