//! MAVLink over TCP: connecting (`tcp`) and listening (`tcpin`).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quiver_mavlink::HostPort;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{CHUNK, Gone, Link, Port};
use crate::pause::{Pause, closed};

/// Clients of one listening endpoint.
const MAX_CLIENTS: usize = 32;
/// Time limit for a server's answer.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Time limit for a program to take what is sent: one that hangs is disconnected.
const WRITE_TIME: Duration = Duration::from_secs(10);
/// Pause after an error of the listener.
const AFTER_ERROR: Duration = Duration::from_millis(100);

pub(super) async fn listen(at: &HostPort) -> io::Result<TcpListener> {
    TcpListener::bind((at.host.as_str(), at.port)).await
}

/// Serves clients, each a link.
pub(super) async fn serve_in(port: Port, listener: TcpListener) {
    let room = Arc::new(Semaphore::new(MAX_CLIENTS));
    let mut clients = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = clients.join_next() => continue,
        };
        let Ok((stream, from)) = accepted else {
            sleep(AFTER_ERROR).await;
            continue;
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            tracing::warn!(%from, "refused: {MAX_CLIENTS} programs are connected there already");
            continue;
        };
        let port = port.clone();
        clients.spawn(async move {
            let _place = place;
            let _ = stream.set_nodelay(true);
            if let Ok(link) = port.open().await {
                exchange(link, stream).await;
            }
        });
    }
}

/// Connects again and again; once only without `retry_after`.
pub(super) async fn serve_out(port: Port, to: HostPort, retry_after: Option<Duration>) {
    let mut pause = Pause::new(format!("tcp:{to}"), retry_after.unwrap_or_default());
    loop {
        pause.wait().await;
        match connect(&to).await {
            Ok(stream) => {
                pause.opened();
                let Ok(link) = port.open().await else { return };
                pause.failed(&exchange(link, stream).await);
            }
            Err(error) => pause.failed(&error),
        }
        if retry_after.is_none() || port.events.is_closed() {
            return;
        }
    }
}

async fn connect(to: &HostPort) -> io::Result<TcpStream> {
    let connecting = timeout(CONNECT_TIME, TcpStream::connect((to.host.as_str(), to.port)));
    let stream = connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Reads and writes a stream until it ends; says why.
async fn exchange(mut link: Link, mut stream: TcpStream) -> io::Error {
    let (mut reading, mut writing) = stream.split();
    let mut buffer = [0; CHUNK];
    let ended = loop {
        tokio::select! {
            read = reading.read(&mut buffer) => match read {
                Ok(0) => break closed(),
                Ok(len) => {
                    if let Err(Gone) = link.receive(buffer.get(..len).unwrap_or_default(), false).await {
                        break closed();
                    }
                }
                Err(error) => break error,
            },
            frame = link.next_frame() => {
                let Some(frame) = frame else { break closed() };
                match timeout(WRITE_TIME, writing.write_all(&frame)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => break error,
                    Err(_) => break io::Error::new(io::ErrorKind::TimedOut, "it takes nothing"),
                }
            }
        }
    };
    link.close().await;
    ended
}
