//! `kgc health` and its like: asks the running service's own endpoint, so that containers need no other
//! program for it.

use std::fmt::Display;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::SOCKET;
use super::endpoint::PRODUCT;
use crate::private_file::refuse_if_no_directory;
use crate::{Error, Result, control};

/// Time for everything.
const PATIENCE: Duration = Duration::from_secs(8);
/// Bytes of an answer.
const LIMIT: u64 = 64 * 1024;
/// Flag that names the address of a service.
const METRICS_FLAG: &str = "--metrics";
/// Flag that names the directory of its socket.
const DIRECTORY_FLAG: &str = "--data-dir";
/// Headers of an answer.
const HEADERS: usize = 32;

/// Asks a service whether it is ready, or merely alive: the one at this address if there is one, otherwise the
/// one that runs with this data directory, at its socket, which strangers cannot keep busy. An address that stands for
/// all of this machine is where that service listens: it is asked at its socket, too. Returns what it says.
///
/// # Errors
/// [`Error::NotReady`] with the reasons, [`Error::NotRunning`], [`Error::Hangs`] if nothing comes in time over a
/// connection, [`Error::NoAnswer`], also if there is no connection in time, [`Error::OtherRole`].
pub async fn ask(
    service: (&'static str, &'static str),
    place: (&Path, Option<SocketAddr>),
    live: bool,
) -> Result<String> {
    ask_within(PATIENCE, service, place, live).await
}

/// The same, with a limit of time.
pub(super) async fn ask_within(
    limit: Duration,
    (role, verb): (&'static str, &'static str),
    (data_dir, metrics): (&Path, Option<SocketAddr>),
    live: bool,
) -> Result<String> {
    let path = if live { "/healthz" } else { "/readyz" };
    let has_socket = data_dir.join(SOCKET).symlink_metadata().is_ok();
    let is_own = |address: &SocketAddr| address.ip().is_unspecified() && has_socket;
    let metrics = metrics.filter(|address| address.port() != 0 && !is_own(address));
    let (address, flag, answered) = match metrics.map(reachable) {
        Some(address) => {
            let no_answer = |reason: String| Error::NoAnswer {
                role: role.into(),
                address: address.to_string(),
                reason,
                flag: METRICS_FLAG,
            };
            let end = Instant::now() + limit;
            // A machine that is not there does not refuse a connection: nothing is known of a service that hangs.
            let stream = match timeout_at(end, TcpStream::connect(address)).await {
                Ok(connected) => connected.map_err(|error| no_answer(error.to_string()))?,
                Err(_) => return Err(no_answer(format!("no connection within {} s", limit.as_secs()))),
            };
            (address.to_string(), METRICS_FLAG, timeout_at(end, get(stream, &address, path)).await)
        }
        None => {
            let socket = data_dir.join(SOCKET);
            let no_answer = |error: io::Error| Error::NoAnswer {
                role: role.into(),
                address: socket.display().to_string(),
                reason: error.to_string(),
                flag: DIRECTORY_FLAG,
            };
            refuse_if_no_directory(data_dir)?;
            let Some(stream) = control::connect(&socket).await.map_err(no_answer)? else {
                return Err(Error::NotRunning {
                    role: role.into(),
                    directory: data_dir.into(),
                    socket,
                    verb,
                });
            };
            let answered = timeout(limit, get(stream, &"localhost", path)).await;
            (socket.display().to_string(), DIRECTORY_FLAG, answered)
        }
    };
    let no_answer =
        |reason: String| Error::NoAnswer { role: role.into(), address: address.clone(), reason, flag };
    let HealthAnswer { status, server, body } = answered
        .map_err(|_| Error::Hangs { place: address.clone(), seconds: limit.as_secs() })?
        .map_err(|error| no_answer(error.to_string()))?;
    if let Some(found) = server.filter(|found| found != role) {
        return Err(Error::OtherRole { role: role.into(), found, address, flag });
    }
    let said = body.lines().collect::<Vec<_>>().join("; ");
    match status {
        200 => Ok(said),
        503 => Err(Error::NotReady(said)),
        other => Err(no_answer(format!("HTTP status {other}"))),
    }
}

/// A service that listens on all addresses is reached on the loopback one.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// Answer of an endpoint.
struct HealthAnswer {
    status: u16,
    /// Role of the service, if it says so.
    server: Option<String>,
    body: String,
}

/// The answer to a GET. The endpoint closes the connection after it.
async fn get(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    host: &dyn Display,
    path: &str,
) -> io::Result<HealthAnswer> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LIMIT).read_to_end(&mut answer).await?;
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let garbled = || io::Error::new(io::ErrorKind::InvalidData, "what answers there does not speak HTTP");
    match response.parse(&answer) {
        Ok(httparse::Status::Complete(length)) => {
            let body = answer.get(length..).unwrap_or_default();
            let product = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("server"));
            let product = product.and_then(|header| std::str::from_utf8(header.value).ok());
            Ok(HealthAnswer {
                status: response.code.ok_or_else(garbled)?,
                server: product.and_then(|product| product.strip_prefix(PRODUCT)).map(String::from),
                body: String::from_utf8_lossy(body).into_owned(),
            })
        }
        _ => Err(garbled()),
    }
}
