//! Exports requests to a collector of traces: OTLP, protobuf over HTTP.
//!
//! A request is the span `request` that `quiver-net` puts around everything that is done and logged about
//! one; its id is the trace's, so that a collector joins what all services did for it, and the log lines are
//! the span's events. Sent by a thread of its own, in batches; when the collector does not keep up or is
//! gone, spans are dropped and nothing waits.
//!
//! The connection is plain HTTP: the collector belongs on the same machine, or on a network that only
//! monitoring reaches.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use opentelemetry::trace::{Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event as LogEvent, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::{Error, Result};

/// Time for each step of handing a batch over.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer.
const LIMIT: u64 = 64 * 1024;
/// Headers of an answer.
const HEADERS: usize = 32;
/// Log lines kept of one span.
const EVENTS: usize = 64;
/// Bytes kept of one value.
const VALUE: usize = 1024;
/// The spans that are exported.
const REQUEST: &str = "request";

/// Exports until it is dropped, and then what is left.
#[derive(Debug)]
pub struct Export(Arc<BatchSpanProcessor>);

impl Drop for Export {
    fn drop(&mut self) {
        // The collector may be gone; nobody is left to tell.
        let _ = self.0.shutdown_with_timeout(PATIENCE);
    }
}

/// Begins to export for the service of this role to the collector at this URL, such as
/// `http://127.0.0.1:4318`.
///
/// # Errors
/// [`Error::Config`] if that is no address of a collector that is spoken to over HTTP.
pub(crate) fn export(role: &str, endpoint: &str) -> Result<(Spans, Export)> {
    let refused = |reason: &dyn fmt::Display| Error::Config(format!("`otlp`: {endpoint}: {reason}"));
    let Some(rest) = endpoint.strip_prefix("http://") else {
        return Err(refused(&"only http:// is spoken; put a collector on this machine for anything else"));
    };
    // Before anything repeats it: what stands before the @ would be a password, which is never sent.
    if rest.split('/').next().is_some_and(|authority| authority.contains('@')) {
        return Err(Error::Config(
            "`otlp`: a collector is spoken to without a user's name and password: leave out what stands before the @".into(),
        ));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (authority, "80"),
    };
    if host.is_empty() || !port.parse::<u16>().is_ok_and(|port| port != 0) {
        return Err(refused(&"write http://HOST:PORT, such as http://127.0.0.1:4318"));
    }
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>().map(|ip| ip.to_canonical());
    if address.is_ok_and(|ip| ip.is_unspecified() || ip.is_multicast() || ip == Ipv4Addr::BROADCAST) {
        return Err(refused(&"no collector can be reached there: this is no address of one machine"));
    }
    let path = if rest.trim_end_matches('/').contains('/') { "" } else { "/v1/traces" };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Plain)
        .with_endpoint(format!("{}{path}", endpoint.trim_end_matches('/')))
        .with_timeout(PATIENCE)
        .build()
        .map_err(|error| refused(&error))?;
    let mut processor = BatchSpanProcessor::builder(exporter).build();
    let service = KeyValue::new("service.name", format!("quiver-{role}"));
    processor.set_resource(&Resource::builder_empty().with_attribute(service).build());
    let processor = Arc::new(processor);
    let scope = InstrumentationScope::builder("quiver").with_version(env!("CARGO_PKG_VERSION")).build();
    Ok((Spans { processor: Arc::clone(&processor), scope }, Export(processor)))
}

/// Collects what spans and events of requests say.
pub(crate) struct Spans {
    processor: Arc<BatchSpanProcessor>,
    scope: InstrumentationScope,
}

/// A span that has not ended.
struct OpenSpan {
    trace: TraceId,
    start: SystemTime,
    events: Vec<Event>,
    dropped: u32,
}

#[expect(clippy::disallowed_methods, reason = "services are drivers; spans say when things were done")]
fn now() -> SystemTime {
    SystemTime::now()
}

impl<S> Layer<S> for Spans
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().name() != REQUEST {
            return;
        }
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        let trace = fields.value("id").and_then(|id| TraceId::from_hex(id).ok());
        if let (Some(trace), Some(span)) = (trace, context.span(id)) {
            span.extensions_mut().insert(OpenSpan { trace, start: now(), events: Vec::new(), dropped: 0 });
        }
    }

    fn on_event(&self, event: &LogEvent<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let mut extensions = span.extensions_mut();
        let Some(open) = extensions.get_mut::<OpenSpan>() else { return };
        if open.events.len() >= EVENTS {
            open.dropped = open.dropped.saturating_add(1);
            return;
        }
        let mut fields = SpanFields::default();
        event.record(&mut fields);
        let level = KeyValue::new("level", event.metadata().level().as_str());
        let target = KeyValue::new("target", event.metadata().target());
        let (message, mut attributes) = fields.split();
        attributes.extend([level, target]);
        open.events.push(Event::new(message, now(), attributes, 0));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let open = context.span(&id).and_then(|span| span.extensions_mut().remove::<OpenSpan>());
        let Some(OpenSpan { trace, start, events, dropped }) = open else { return };
        let mut told = SpanEvents::default();
        told.events = events;
        told.dropped_count = dropped;
        let own = SpanId::from_bytes(rand::random());
        self.processor.on_end(SpanData {
            span_context: SpanContext::new(trace, own, TraceFlags::SAMPLED, false, TraceState::default()),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: REQUEST.into(),
            start_time: start,
            end_time: now(),
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: told,
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        });
    }
}

/// The fields of a span or event, as text.
#[derive(Default)]
struct SpanFields(Vec<(&'static str, String)>);

impl SpanFields {
    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| *field == name).map(|(_, value)| value.as_str())
    }

    /// The message, and the rest.
    fn split(self) -> (String, Vec<KeyValue>) {
        let (message, rest): (Vec<_>, Vec<_>) = self.0.into_iter().partition(|(name, _)| *name == "message");
        let message = message.into_iter().map(|(_, text)| text).next().unwrap_or_default();
        (message, rest.into_iter().map(|(name, value)| KeyValue::new(name, value)).collect())
    }

    fn keep(&mut self, field: &Field, value: &str) {
        let end = value.floor_char_boundary(VALUE);
        self.0.push((field.name(), value[..end].to_owned()));
    }
}

impl Visit for SpanFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.keep(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.keep(field, &format!("{value:?}"));
    }
}

/// HTTP without encryption, a connection for each batch. It blocks, on the thread that does nothing else.
#[derive(Debug)]
struct Plain;

#[async_trait]
impl HttpClient for Plain {
    async fn send_bytes(&self, request: Request<Bytes>) -> std::result::Result<Response<Bytes>, HttpError> {
        Ok(post(&request)?)
    }
}

fn post(request: &Request<Bytes>) -> io::Result<Response<Bytes>> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    let uri = request.uri();
    let host = uri.host().ok_or_else(|| invalid("no host"))?;
    let port = uri.port_u16().unwrap_or(80);
    let address = (host.trim_matches(['[', ']']), port).to_socket_addrs()?.next();
    let mut stream = TcpStream::connect_timeout(&address.ok_or_else(|| invalid("no address"))?, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = format!("POST {} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\n", uri.path());
    for (name, value) in request.headers() {
        let value = value.to_str().map_err(|_| invalid("a header that is not text"))?;
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", request.body().len()));
    stream.write_all(head.as_bytes())?;
    stream.write_all(request.body())?;
    let mut answer = Vec::new();
    stream.take(LIMIT).read_to_end(&mut answer)?;
    let garbled = || io::Error::new(io::ErrorKind::InvalidData, "what answers there does not speak HTTP");
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(length)) = parsed.parse(&answer) else { return Err(garbled()) };
    let code = parsed.code.ok_or_else(garbled)?;
    let body = Bytes::copy_from_slice(answer.get(length..).unwrap_or_default());
    Response::builder().status(code).body(body).map_err(|_| garbled())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use prost::Message;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Takes one request, and returns its first line and its body.
    fn receive(listener: &TcpListener) -> (String, Vec<u8>) {
        let (mut stream, _) = listener.accept().expect("accept");
        let mut read = Vec::new();
        let mut bytes = [0; 4096];
        loop {
            let length = stream.read(&mut bytes).expect("read");
            read.extend_from_slice(&bytes[..length]);
            let mut headers = [httparse::EMPTY_HEADER; HEADERS];
            let mut request = httparse::Request::new(&mut headers);
            let Ok(httparse::Status::Complete(head)) = request.parse(&read) else { continue };
            let line = format!("{} {}", request.method.expect("method"), request.path.expect("path"));
            let announced = request.headers.iter().find(|header| header.name == "content-length");
            let announced = announced.and_then(|header| std::str::from_utf8(header.value).ok());
            let announced: usize = announced.expect("a length").parse().expect("a number");
            if read.len() >= head + announced {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("answer");
                return (line, read[head..].to_vec());
            }
        }
    }

    #[test]
    fn request_arrives_at_the_collector_under_its_own_id_with_its_log_lines() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let endpoint = format!("http://{}", listener.local_addr().expect("address"));
        let collector = thread::spawn(move || receive(&listener));
        let (spans, export) = export("kgc", &endpoint).expect("export");
        let subscriber = tracing_subscriber::registry().with(spans);
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("about no request");
            let span = tracing::info_span!("request", id = %"000102030405060708090a0b0c0d0eff");
            span.in_scope(|| tracing::info!(name = %"edge-1", "key issued"));
            tracing::info_span!("other", id = %"ff").in_scope(|| tracing::info!("not exported"));
        });
        drop(export);
        let (line, body) = collector.join().expect("collector");
        assert_eq!(line, "POST /v1/traces");
        let request = ExportTraceServiceRequest::decode(&*body).expect("OTLP");
        let [resource] = &request.resource_spans[..] else { panic!("{request:?}") };
        let about = format!("{:?}", resource.resource);
        assert!(about.contains("service.name") && about.contains("quiver-kgc"), "{about}");
        let [scope] = &resource.scope_spans[..] else { panic!("{request:?}") };
        let [span] = &scope.spans[..] else { panic!("{request:?}") };
        assert_eq!(hex::encode(&span.trace_id), "000102030405060708090a0b0c0d0eff");
        assert_eq!((span.name.as_str(), span.span_id.len()), ("request", 8));
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        let [event] = &span.events[..] else { panic!("{span:?}") };
        assert_eq!(event.name, "key issued");
        let attributes = format!("{:?}", event.attributes);
        assert!(attributes.contains("edge-1") && attributes.contains("INFO"), "{attributes}");
    }

    #[test]
    fn collector_that_is_gone_holds_nobody_up() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let endpoint = format!("http://{}", listener.local_addr().expect("address"));
        drop(listener);
        let (spans, export) = export("edge", &endpoint).expect("export");
        tracing::subscriber::with_default(tracing_subscriber::registry().with(spans), || {
            for _ in 0..10_000 {
                tracing::info_span!("request", id = %"000102030405060708090a0b0c0d0eff").in_scope(|| ());
            }
        });
        drop(export);
    }

    #[test]
    fn encrypted_collectors_are_refused_in_words() {
        let refused = export("edge", "https://collector:4318").err().expect("refused");
        assert!(refused.to_string().contains("only http:// is spoken"), "{refused}");
    }

    #[test]
    fn collector_that_can_never_be_reached_is_refused_and_no_password_is_repeated() {
        for endpoint in [
            "http://",
            "http://:4318",
            "http://collector:0",
            "http://collector:99999",
            "http://collector:x/y",
        ] {
            let refused = export("edge", endpoint).err().expect("refused").to_string();
            assert!(refused.contains("write http://HOST:PORT"), "{endpoint}: {refused}");
        }
        let refused = export("edge", "http://user:hush@collector:4318").err().expect("refused").to_string();
        assert!(!refused.contains("hush") && refused.contains("before the @"), "{refused}");
        for endpoint in ["http://collector", "http://[::1]:4318/v1/traces", "http://[::1]"] {
            assert!(export("edge", endpoint).is_ok(), "{endpoint}");
        }
    }
}
