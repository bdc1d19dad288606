//! HTTP endpoint of metrics and health: one GET per connection.

use std::time::Duration;

use prometheus_client::encoding::text::encode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::{Readiness, Watched};

/// Bytes of a request's head.
pub(super) const HEAD_LIMIT: usize = 8 * 1024;
/// Headers of a request.
const HEADERS: usize = 64;
/// Time for a request's head to come in, and for an answer to go out.
const TRANSFER_TIME: Duration = Duration::from_secs(5);

const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const STUCK: &str = "the service does not answer: its loop is stuck";

/// An HTTP answer.
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

/// A request of a client.
struct Request {
    method: String,
    path: String,
}

/// Serves one connection to its end.
pub(super) async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, watched: &Watched) {
    let answer = match timeout(TRANSFER_TIME, read(&mut stream)).await {
        Ok(Some(request)) => answer(watched, &request).await,
        Ok(None) => text("400 Bad Request", "not an HTTP request\n"),
        // A client that slow will not read an answer either.
        Err(_) => return,
    };
    let Answer { status, kind, body } = answer;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let write = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    };
    match timeout(TRANSFER_TIME, write).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "metrics endpoint"),
        Err(_) => tracing::debug!("a client of the metrics endpoint does not read"),
    }
}

/// Reads the head of a request; `None` if it is no request, or too long.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Request> {
    let mut head = Vec::with_capacity(1024);
    while head.len() < HEAD_LIMIT {
        let room = HEAD_LIMIT - head.len();
        if (&mut *stream).take(room as u64).read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        if request.parse(&head).ok()?.is_complete() {
            return Some(Request { method: request.method?.into(), path: request.path?.into() });
        }
    }
    None
}

async fn answer(watched: &Watched, request: &Request) -> Answer {
    if request.method != "GET" {
        return text("405 Method Not Allowed", "only GET\n");
    }
    match request.path.split('?').next() {
        Some("/metrics") => metrics(watched).await,
        Some("/healthz") => match watched.look().await {
            Some(_) => text("200 OK", "alive\n"),
            None => text("503 Service Unavailable", format!("{STUCK}\n")),
        },
        Some("/readyz") => {
            let readiness = watched.look().await.unwrap_or_else(|| Readiness::not_ready(STUCK));
            let status = if readiness.is_ready() { "200 OK" } else { "503 Service Unavailable" };
            text(status, describe(&readiness))
        }
        _ => text("404 Not Found", "/metrics, /healthz, /readyz\n"),
    }
}

fn describe(readiness: &Readiness) -> String {
    if readiness.is_ready() {
        return "ready\n".into();
    }
    readiness.reasons.iter().map(|reason| format!("{reason}\n")).collect()
}

/// Metrics that could not be read are as old as the last reading.
async fn metrics(watched: &Watched) -> Answer {
    watched.look().await;
    let mut body = String::new();
    match encode(&mut body, &watched.registry) {
        Ok(()) => Answer { status: "200 OK", kind: OPEN_METRICS, body },
        Err(error) => text("500 Internal Server Error", format!("{error}\n")),
    }
}

fn text(status: &'static str, body: impl Into<String>) -> Answer {
    Answer { status, kind: TEXT, body: body.into() }
}
