//! MAVLink on a serial line: an autopilot's telemetry port, or USB.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use quiver_serial::{Device, FlowControl, LineReader, LineWriter, Sending};
use tokio::io::AsyncReadExt;

use super::{CHUNK, EndpointPort, Gone, Inward, LinkHalves, Outward};
use crate::pause::{Pause, closed};

/// The longest wait between attempts to open the device.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Time limit for a line to take a frame. A frame that waits longer is dropped, because a command must not be
/// late. The line stays open: opening it anew would start some autopilots anew.
const WRITE_TIME: Duration = Duration::from_secs(5);

/// Opens the device again and again: it may be unplugged.
pub(super) async fn serve(port: EndpointPort, device: String, baud: u32, flow_control: bool) {
    let place = format!("serial:{device}:{baud}");
    let mut pause = Pause::new(place.clone(), LONGEST_WAIT);
    let flow = if flow_control { FlowControl::Hardware } else { FlowControl::None };
    while !port.events.is_closed() {
        pause.wait().await;
        match quiver_serial::open(&device, baud, flow).await {
            Ok((reader, writer)) => {
                pause.opened();
                let Ok(link) = port.open().await else { return };
                pause.failed(&exchange(&place, link, reader, writer).await);
            }
            Err(error) => pause.failed(&error),
        }
    }
}

/// Reads and writes, neither waiting for the other, until the line ends; says why.
async fn exchange<D: Device>(
    place: &str,
    link: LinkHalves,
    reader: LineReader<D>,
    writer: LineWriter<D>,
) -> io::Error {
    let LinkHalves { inward, mut outward } = link;
    // Reading and writing are apart, so that a held transmitter keeps nothing back that the autopilot sends.
    let Err(ended) = tokio::select! {
        ended = read(&inward, reader) => ended,
        ended = write(place, &mut outward, writer) => ended,
    };
    inward.close().await;
    ended
}

async fn read<D: Device>(inward: &Inward, mut line: LineReader<D>) -> io::Result<Infallible> {
    let mut buffer = [0; CHUNK];
    loop {
        let read = line.read(&mut buffer).await?;
        // The device is gone, such as a USB adapter that was pulled.
        if read == 0 {
            return Err(closed());
        }
        let bytes = buffer.get(..read).unwrap_or_default();
        inward.receive(bytes).await.map_err(|Gone| closed())?;
    }
}

async fn write<D: Device>(
    place: &str,
    outward: &mut Outward,
    mut line: LineWriter<D>,
) -> io::Result<Infallible> {
    let mut is_held = false;
    while let Some(frame) = outward.next_frame().await {
        match line.send(&frame, WRITE_TIME).await? {
            Sending::Sent if is_held => {
                is_held = false;
                tracing::info!(place, "it takes frames again");
            }
            Sending::Sent => {}
            Sending::Discarded => {
                if !std::mem::replace(&mut is_held, true) {
                    tracing::warn!(
                        place,
                        "it takes nothing, so frames to it are dropped: is flow control held there?"
                    );
                }
                // Frames that waited meanwhile are as old.
                outward.discard();
            }
        }
    }
    Err(closed())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncWriteExt, duplex};
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::super::LinkEvent;
    use super::*;
    use crate::uart::Uart;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Runs on one thread, as on a machine with one processor.
    #[tokio::test]
    async fn a_held_transmitter_keeps_no_telemetry_back_and_no_command_for_later() {
        let (wire, mut autopilot) = duplex(4_096);
        let waiting = Arc::new(AtomicUsize::new(4_000));
        let (reader, writer) = quiver_serial::split(Uart { wire, waiting: Arc::clone(&waiting) }, 57_600);
        let (events, mut bridge) = mpsc::channel(4);
        let (frames, out) = mpsc::channel(16);
        let outward = Outward { frames: out, drained: Arc::default() };
        let link = LinkHalves { inward: Inward { link: 1, events }, outward };
        let line = tokio::spawn(async move { exchange("serial:uart", link, reader, writer).await });
        for command in [b"first", b"later"] {
            frames.send(command.to_vec()).await.expect("it runs");
        }
        autopilot.write_all(b"telemetry").await.expect("written");
        let event = timeout(PATIENCE, bridge.recv()).await.expect("telemetry goes on").expect("it runs");
        assert!(matches!(event, LinkEvent::Bytes { bytes, .. } if bytes == b"telemetry"));

        // A frame that waited for as long as is allowed is dropped, and the next ones go out.
        let mut read = [0; 5];
        autopilot.read_exact(&mut read).await.expect("read");
        assert_eq!(&read, b"first", "the system had room for it");
        timeout(PATIENCE, async {
            while frames.capacity() < frames.max_capacity() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
        .expect("it is dropped");
        waiting.store(0, Ordering::SeqCst);
        frames.send(b"third".to_vec()).await.expect("it runs");
        timeout(PATIENCE, autopilot.read_exact(&mut read)).await.expect("in time").expect("read");
        assert_eq!(&read, b"third");
        drop(autopilot);
        let ended = timeout(PATIENCE, line).await.expect("it ends").expect("no panic");
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
        let event = timeout(PATIENCE, bridge.recv()).await.expect("in time").expect("told");
        assert!(matches!(event, LinkEvent::Closed { link: 1 }));
    }
}
