//! HTTP endpoint of metrics and health: one GET or HEAD per connection.

use std::time::Duration;

use prometheus_client::encoding::text::encode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::{Readiness, Watched, text_format};

/// Bytes of a request's head.
pub(super) const HEAD_LIMIT: usize = 8 * 1024;
/// Headers of a request.
const HEADERS: usize = 64;
/// Time for a request's head to come in, and for an answer to go out.
const TRANSFER_TIME: Duration = Duration::from_secs(5);

const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Beginning of the name that the endpoint gives itself; the service's role follows.
pub(super) const PRODUCT: &str = "quiver-";
/// Methods that are answered.
const METHODS: [&str; 2] = ["GET", "HEAD"];
const NOT_ALLOWED: &str = "405 Method Not Allowed";
const STUCK: &str = "the service does not answer: its loop is stuck";

/// An HTTP answer.
struct HttpResponse {
    status: &'static str,
    kind: &'static str,
    body: String,
}

/// A request of a client.
struct HttpRequest {
    method: String,
    path: String,
    /// Types of content that it accepts, if it says so.
    accept: Option<String>,
}

impl HttpRequest {
    fn of(request: &httparse::Request<'_, '_>) -> Option<Self> {
        let (method, target) = (request.method?, request.path?);
        // RFC 9112, 3.2.2: through a proxy the target is a whole URI.
        let path = match target.strip_prefix("http://") {
            Some(rest) => rest.find('/').map_or("/", |at| rest.get(at..).unwrap_or("/")),
            None => target,
        };
        let accepted = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
        let accepted: Vec<_> = accepted.filter_map(|header| std::str::from_utf8(header.value).ok()).collect();
        let accept = (!accepted.is_empty()).then(|| accepted.join(","));
        Some(Self { method: method.into(), path: path.into(), accept })
    }
}

/// Serves one connection to its end.
pub(super) async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, watched: &Watched) {
    let (answer, is_head) = match timeout(TRANSFER_TIME, read(&mut stream)).await {
        Ok(Some(request)) => (answer(watched, &request).await, request.method == "HEAD"),
        Ok(None) => (text("400 Bad Request", "not an HTTP request\n"), false),
        // A client that slow will not read an answer either.
        Err(_) => return,
    };
    let HttpResponse { status, kind, body } = answer;
    // RFC 9110, 15.5.6: a method that is not answered is told which are.
    let allow =
        if status == NOT_ALLOWED { format!("Allow: {}\r\n", METHODS.join(", ")) } else { String::new() };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nServer: {PRODUCT}{}\r\n{allow}Connection: close\r\n\r\n",
        body.len(),
        watched.role
    );
    // RFC 9110, 9.3.2: HEAD is GET without the content.
    let body = if is_head { "" } else { &body };
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
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<HttpRequest> {
    let mut head = Vec::with_capacity(1024);
    while head.len() < HEAD_LIMIT {
        let room = HEAD_LIMIT - head.len();
        if (&mut *stream).take(room as u64).read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        if request.parse(&head).ok()?.is_complete() {
            return HttpRequest::of(&request);
        }
    }
    None
}

async fn answer(watched: &Watched, request: &HttpRequest) -> HttpResponse {
    if !METHODS.contains(&request.method.as_str()) {
        return text(NOT_ALLOWED, "only GET and HEAD\n");
    }
    match request.path.split('?').next() {
        Some("/metrics") => metrics(watched, request.accept.as_deref()).await,
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
async fn metrics(watched: &Watched, accept: Option<&str>) -> HttpResponse {
    watched.look().await;
    let mut body = String::new();
    match encode(&mut body, &watched.registry) {
        Ok(()) if text_format::is_wanted(accept) => {
            HttpResponse { status: "200 OK", kind: text_format::CONTENT_TYPE, body: text_format::of(&body) }
        }
        Ok(()) => HttpResponse { status: "200 OK", kind: OPEN_METRICS, body },
        Err(error) => text("500 Internal Server Error", format!("{error}\n")),
    }
}

fn text(status: &'static str, body: impl Into<String>) -> HttpResponse {
    HttpResponse { status, kind: TEXT, body: body.into() }
}
