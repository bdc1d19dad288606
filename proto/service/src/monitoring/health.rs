//! `kgc health` and its like: asks the running service's own endpoint, so that containers need no other
//! program for it.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::{Error, Result};

/// Time for everything.
const PATIENCE: Duration = Duration::from_secs(8);
/// Bytes of an answer.
const LIMIT: u64 = 64 * 1024;
/// Headers of an answer.
const HEADERS: usize = 32;

/// Asks the service of this role whether it is ready, or merely alive. Returns what it says.
///
/// # Errors
/// [`Error::NotReady`] with the reasons, [`Error::NoAnswer`], [`Error::Config`] without an address.
pub async fn ask(role: &str, metrics: Option<SocketAddr>, live: bool) -> Result<String> {
    let address = metrics.filter(|address| address.port() != 0).ok_or_else(|| {
        Error::Config("`metrics`: health is asked where the service serves it: give --metrics ADDRESS".into())
    })?;
    let address = reachable(address);
    let no_answer = |reason: String| Error::NoAnswer { role: role.into(), address, reason };
    let path = if live { "/healthz" } else { "/readyz" };
    let (status, body) = timeout(PATIENCE, get(address, path))
        .await
        .map_err(|_| no_answer(format!("nothing came in {PATIENCE:?}")))?
        .map_err(|error| no_answer(error.to_string()))?;
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

/// The status and the body of the answer to a GET. The endpoint closes the connection after it.
async fn get(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LIMIT).read_to_end(&mut answer).await?;
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let garbled = || io::Error::new(io::ErrorKind::InvalidData, "what answers there does not speak HTTP");
    match response.parse(&answer) {
        Ok(httparse::Status::Complete(length)) => {
            let body = answer.get(length..).unwrap_or_default();
            Ok((response.code.ok_or_else(garbled)?, String::from_utf8_lossy(body).into_owned()))
        }
        _ => Err(garbled()),
    }
}
