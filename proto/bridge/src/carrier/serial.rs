//! Datagrams on a serial line with a radio modem, which is opened again for as long as the bridge runs.
//!
//! On a transparent modem (SiK, RFD900) COBS marks where each ends. There is no check sum: a datagram's tag
//! stands in its place.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quiver_serial::{Device, FlowControl, LineReader, LineWriter, Sending};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

use super::{CarrierCommand, CarrierPort, Content, SERIAL_MTU};
use crate::pause::{Pause, closed};

/// Framing of datagrams on a line.
pub(super) trait Framing: Send + 'static {
    /// Bytes that are written first when the line was opened.
    const FIRST: &'static [u8];

    /// A datagram as it is on the line.
    fn encode(&mut self, datagram: &[u8]) -> Vec<u8>;

    /// Takes received bytes and hands over what they complete.
    fn decode(&mut self, bytes: &[u8], each: impl FnMut(Content));
}

/// Stands between datagrams.
const DELIMITER: u8 = 0;
/// Bytes of the longest datagram encoded.
const LONGEST: usize = SERIAL_MTU + SERIAL_MTU / 254 + 2;
/// The longest wait for a line that takes nothing.
const WRITE_TIME: Duration = Duration::from_secs(5);
/// The longest wait between attempts to open the line.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Datagrams between delimiters.
#[derive(Debug, Default)]
pub(super) struct Cobs {
    held: Vec<u8>,
    /// True if the bytes held are longer than any datagram: skips to the next delimiter.
    overrun: bool,
}

impl Framing for Cobs {
    /// Delimiter that ends what the modem got of an earlier datagram.
    const FIRST: &'static [u8] = &[DELIMITER];

    fn encode(&mut self, datagram: &[u8]) -> Vec<u8> {
        let mut line = cobs::encode_vec(datagram);
        line.push(DELIMITER);
        line
    }

    /// Damage costs the datagram that it is in, and the next one if it hit the delimiter.
    fn decode(&mut self, bytes: &[u8], mut each: impl FnMut(Content)) {
        for &byte in bytes {
            if byte != DELIMITER {
                // Noise has no delimiters: what is held stays bounded.
                self.overrun |= self.held.len() >= LONGEST;
                if !self.overrun {
                    self.held.push(byte);
                }
                continue;
            }
            // A piece that does not decode is noise, or a datagram that lost bytes: the next one begins
            // behind the delimiter.
            if !self.overrun
                && !self.held.is_empty()
                && let Ok(len) = cobs::decode_in_place(&mut self.held)
            {
                each(Content::Datagram(self.held.get(..len).unwrap_or_default().to_vec()));
            }
            self.held.clear();
            self.overrun = false;
        }
    }
}

/// Opens the line again and again, until the bridge is gone.
pub(super) async fn serve<F: Framing>(mut port: CarrierPort, device: String, baud: u32, mut framing: F) {
    let mut pause = Pause::new(format!("serial:{device}:{baud}"), LONGEST_WAIT);
    loop {
        tokio::select! {
            // Datagrams of before the first attempt wait for it.
            biased;
            () = pause.wait() => {}
            order = port.order() => match order {
                Some(_) => {
                    port.counters.dropped();
                    continue;
                }
                None => return,
            },
        }
        let line = match quiver_serial::open(&device, baud, FlowControl::None).await {
            Ok(line) => line,
            Err(error) => {
                pause.failed(&error);
                continue;
            }
        };
        pause.opened();
        match exchange(&mut port, line, &mut framing).await {
            Ok(()) => return,
            Err(error) => pause.failed(&error),
        }
    }
}

/// Reads and writes until the line ends, which is an error, or the bridge is gone. A radio that takes nothing is
/// still heard.
async fn exchange<F: Framing, D: Device>(
    port: &mut CarrierPort,
    (mut reader, mut writer): (LineReader<D>, LineWriter<D>),
    framing: &mut F,
) -> io::Result<()> {
    let mut buffer = [0; 512];
    let (outbound, mut leaving) = mpsc::channel::<(Vec<u8>, usize)>(1);
    let counters = Arc::clone(&port.counters);
    let mut writing = pin!(async move {
        // An earlier process's last datagram may have been cut off: the first datagram must not be joined to
        // it.
        writer.send(F::FIRST, WRITE_TIME).await?;
        while let Some((line, datagram)) = leaving.recv().await {
            match writer.send(&line, WRITE_TIME).await? {
                Sending::Sent => counters.sent(datagram),
                // The modem took nothing for seconds: what waits at it is stale.
                Sending::Discarded => counters.dropped(),
            }
        }
        Ok(())
    });
    loop {
        tokio::select! {
            read = reader.read(&mut buffer) => {
                let read = read?;
                if read == 0 {
                    return Err(closed());
                }
                framing.decode(buffer.get(..read).unwrap_or_default(), |content| match content {
                    Content::Datagram(datagram) => port.receive(None, &datagram),
                    status @ Content::RadioStatus(_) => port.hand_over(None, status),
                });
            }
            ended = &mut writing => return ended,
            // Nothing is taken that the line has no room for: it waits where it can still be dropped.
            (room, order) = async { (outbound.reserve().await, port.order().await) } => match (room, order) {
                (Ok(room), Some(CarrierCommand::Send(datagram))) => {
                    room.send((framing.encode(&datagram), datagram.len()));
                }
                (Ok(_), Some(_)) => {}
                (Err(_), _) => return Err(closed()),
                (_, None) => return Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncWriteExt, duplex};
    use tokio::time::{sleep, timeout};

    use super::super::CarrierContext;
    use super::*;
    use crate::uart::Uart;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Runs on one thread, as on a machine with one processor.
    #[tokio::test]
    async fn a_radio_that_takes_nothing_is_still_heard() {
        let (wire, mut radio) = duplex(4_096);
        let waiting = Arc::new(AtomicUsize::new(4_000));
        let line = quiver_serial::split(Uart { wire, waiting: Arc::clone(&waiting) }, 57_600);
        let (arrived, mut heard) = mpsc::channel(4);
        let shared = CarrierContext { arrived, room: Arc::default(), system: Arc::default() };
        let (mut port, opened) = shared.port(0, "serial:uart".into(), 1);
        let counters = Arc::clone(&opened.counters);
        let serving = tokio::spawn(async move { exchange(&mut port, line, &mut Cobs::default()).await });
        opened.orders.send(CarrierCommand::Send(b"ours".to_vec())).await.expect("it runs");
        radio.write_all(&encode(b"theirs")).await.expect("written");
        let arrived = timeout(PATIENCE, heard.recv()).await.expect("it is heard").expect("it runs");
        assert!(matches!(arrived.content, Content::Datagram(datagram) if datagram == b"theirs"));

        waiting.store(0, Ordering::SeqCst);
        let sent = async {
            while counters.sent.load(Ordering::SeqCst) == 0 {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, sent).await.expect("it is sent");
        drop(opened);
        let ended = timeout(PATIENCE, serving).await.expect("it ends").expect("no panic");
        ended.expect("the bridge is gone");
    }

    fn decode(bytes: &[u8]) -> Vec<Vec<u8>> {
        let (mut cobs, mut found) = (Cobs::default(), Vec::new());
        // Bytes come as the line delivers them.
        for piece in bytes.chunks(7) {
            cobs.decode(piece, |content| match content {
                Content::Datagram(datagram) => found.push(datagram),
                Content::RadioStatus(_) => unreachable!("a transparent modem says nothing"),
            });
        }
        found
    }

    fn encode(datagram: &[u8]) -> Vec<u8> {
        Cobs::default().encode(datagram)
    }

    #[test]
    fn datagrams_come_off_the_line_as_they_went_on_it() {
        let datagrams: Vec<Vec<u8>> =
            [&[0][..], &[0; 300], &[7; SERIAL_MTU], b"plain", &[0, 1, 0]].map(<[u8]>::to_vec).into();
        let line: Vec<u8> = datagrams.iter().flat_map(|datagram| encode(datagram)).collect();
        assert_eq!(decode(&line), datagrams);
        let longest = datagrams.iter().map(|datagram| encode(datagram).len() - datagram.len()).max();
        assert!(longest <= Some(4), "{longest:?}");
    }

    #[test]
    fn damage_costs_no_more_than_what_it_hit() {
        let mut line = [b"boot of the modem\r\n".to_vec(), vec![0]].concat();
        line.extend(vec![0x55; 5_000]);
        line.extend([0]);
        line.extend(encode(b"whole"));
        let damaged = line.len();
        line.extend(encode(b"damaged"));
        line.extend(encode(b"whole too"));
        line[damaged] = 200;
        let found = decode(&line);
        assert!(found.contains(&b"whole".to_vec()) && found.contains(&b"whole too".to_vec()), "{found:?}");
        assert!(!found.contains(&b"damaged".to_vec()));
    }
}
