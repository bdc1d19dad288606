//! The endpoint over real connections.

use std::sync::atomic::{AtomicBool, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Unit;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

const ANY: &str = "127.0.0.1:0";

fn place(directory: &TempDir, address: Option<SocketAddr>) -> MonitorPlace<'_> {
    MonitorPlace { role: "edge", data_dir: directory.path(), address }
}

async fn started(registry: Registry) -> (TempDir, Monitor, SocketAddr) {
    started_with(registry, LOOK_TIME).await
}

async fn started_with(registry: Registry, look_time: Duration) -> (TempDir, Monitor, SocketAddr) {
    let directory = tempfile::tempdir().expect("tempdir");
    let address = ANY.parse().expect("address");
    let monitor = Monitor::start_with(place(&directory, Some(address)), registry, "starting", look_time)
        .await
        .expect("starts");
    let at = monitor.address().expect("serves");
    (directory, monitor, at)
}

async fn raw(at: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).await.expect("connect");
    stream.write_all(request).await.expect("write");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn get(at: SocketAddr, path: &str) -> String {
    raw(at, format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await
}

#[tokio::test]
async fn ready_or_not_with_the_reasons_and_alive_either_way() {
    let (directory, monitor, at) = started(registry("1.2.3")).await;
    assert!(
        matches!(ask(("edge", "run"), (directory.path(), Some(at)), false).await, Err(Error::NotReady(why)) if why == "starting")
    );
    assert_eq!(ask(("edge", "run"), (directory.path(), Some(at)), true).await.expect("alive"), "alive");
    let broken = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&broken);
    monitor.watch(move || {
        let mut readiness = Readiness::ready();
        if seen.load(Ordering::Relaxed) {
            readiness.add_reason("no leader is connected");
            readiness.add_reason("the disk is full");
        }
        Box::pin(async move { readiness })
    });
    let refused =
        ask(("edge", "run"), (directory.path(), Some(at)), false).await.expect_err("not ready").to_string();
    assert_eq!(refused, "not ready: no leader is connected; the disk is full");
    assert!(get(at, "/readyz").await.starts_with("HTTP/1.1 503"));
    broken.store(false, Ordering::Relaxed);
    assert_eq!(ask(("edge", "run"), (directory.path(), Some(at)), false).await.expect("ready"), "ready");
    assert!(get(at, "/readyz").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn service_that_hangs_is_told_from_one_that_does_not_run() {
    let directory = tempfile::tempdir().expect("tempdir");
    let ask =
        || health::ask_within(Duration::from_millis(50), ("edge", "run"), (directory.path(), None), false);
    assert!(matches!(ask().await, Err(Error::NotRunning { .. })));
    let _hangs = control::listen(&directory.path().join(SOCKET)).expect("listens");
    let error = ask().await.expect_err("hangs");
    assert_eq!(error.exit(), crate::Exit::TimedOut, "{error}");
}

#[tokio::test]
async fn metrics_have_prefix_unit_and_suffix_as_the_conventions_want_them() {
    let mut registry = registry("1.2.3");
    let counter = Counter::<u64>::default();
    registry.sub_registry_with_prefix("net").register_with_unit(
        "sent",
        "Bytes of messages sent",
        Unit::Bytes,
        counter.clone(),
    );
    counter.inc_by(42);
    let (_directory, _monitor, at) = started(registry).await;
    let text = get(at, "/metrics").await;
    assert!(text.contains("application/openmetrics-text"), "{text}");
    assert!(text.contains("\nquiver_net_sent_bytes_total 42\n"), "{text}");
    assert!(text.contains("quiver_build_info{version=\"1.2.3\"} 1\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[tokio::test]
async fn head_is_get_without_content_and_text_is_for_those_who_ask_for_it() {
    let (_directory, monitor, at) = started(registry("1.2.3")).await;
    monitor.watch(|| Box::pin(async { Readiness::ready() }));
    for path in ["/healthz", "/readyz", "/metrics", "/nothing"] {
        let whole = get(at, path).await;
        let (head, content) = whole.split_once("\r\n\r\n").expect("a head");
        assert!(!content.is_empty(), "{whole}");
        let of_head = raw(at, format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await;
        assert_eq!(of_head, format!("{head}\r\n\r\n"));
    }
    let refused = raw(at, b"DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 405") && refused.contains("\r\nAllow: GET, HEAD\r\n"), "{refused}");
    let through_a_proxy = raw(at, b"GET http://drone.example:9464/healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(through_a_proxy.ends_with("alive\n"), "{through_a_proxy}");

    let asked = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: text/plain;version=0.0.4\r\n\r\n";
    let text = raw(at, asked).await;
    assert!(text.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{text}");
    assert!(
        text.contains("# TYPE quiver_build_info gauge\nquiver_build_info{version=\"1.2.3\"} 1\n"),
        "{text}"
    );
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
}

#[tokio::test]
async fn service_whose_loop_is_stuck_is_not_alive() {
    let (_directory, monitor, at) = started_with(registry("1"), Duration::from_millis(50)).await;
    monitor.watch(|| Box::pin(std::future::pending()));
    assert!(get(at, "/healthz").await.starts_with("HTTP/1.1 503"));
    assert!(get(at, "/metrics").await.starts_with("HTTP/1.1 200"), "what was counted is still told");
}

#[tokio::test]
async fn other_paths_methods_and_garbage_are_refused_and_the_endpoint_goes_on() {
    let (_directory, _monitor, at) = started(registry("1")).await;
    assert!(get(at, "/secrets").await.starts_with("HTTP/1.1 404"));
    assert!(raw(at, b"POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.starts_with("HTTP/1.1 405"));
    assert!(raw(at, b"\x16\x03\x01 not http\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    let endless = [b"GET /".as_slice(), &vec![b'x'; endpoint::HEAD_LIMIT + 1]].concat();
    assert!(!raw(at, &endless).await.starts_with("HTTP/1.1 200"));
    assert!(get(at, "/metrics").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn connections_that_say_nothing_keep_nobody_out() {
    let (directory, _monitor, at) = started(registry("1")).await;
    let mut idle = Vec::new();
    for _ in 0..10 * CONNECTIONS {
        idle.push(TcpStream::connect(at).await.expect("connect"));
    }
    let answer = timeout(Duration::from_secs(30), get(at, "/healthz")).await.expect("it is served at once");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let asked = ask(("edge", "run"), (directory.path(), Some(at)), true);
    let said = timeout(Duration::from_secs(30), asked).await.expect("it is served at once");
    assert_eq!(said.expect("alive"), "alive");
    drop(idle);
}

#[tokio::test]
async fn service_that_listens_at_all_addresses_is_asked_at_its_socket() {
    let (directory, _monitor, _) = started(registry("1")).await;
    // It takes connections and answers none.
    let silent = TcpListener::bind("0.0.0.0:0").await.expect("bind");
    let at = silent.local_addr().expect("address");
    let asked = ask(("edge", "run"), (directory.path(), Some(at)), true);
    let said = timeout(Duration::from_secs(30), asked).await.expect("it is not asked there");
    assert_eq!(said.expect("alive"), "alive");
}

#[tokio::test]
async fn nobody_there_and_no_address_are_said_so() {
    let (directory, monitor, at) = started(registry("1")).await;
    monitor.close().await;
    let refused = ask(("leader", "serve"), (directory.path(), Some(at)), false).await.expect_err("nobody");
    assert!(refused.to_string().contains("no leader answers on 127.0.0.1"), "{refused}");
    assert!(refused.to_string().ends_with("check that it runs, and --metrics"), "{refused}");
    let nobody = ask(("leader", "serve"), (directory.path(), None), false).await.expect_err("nobody");
    assert!(nobody.to_string().contains("start it with `leader serve`"), "{nobody}");
}

#[tokio::test]
async fn without_an_address_the_service_is_asked_in_its_data_directory() {
    let directory = tempfile::tempdir().expect("tempdir");
    let silent = Monitor::start(place(&directory, None), registry("1"), "starting").await.expect("starts");
    assert_eq!(silent.address(), None);
    let asked = async |live| ask(("edge", "run"), (directory.path(), None), live).await;
    assert!(matches!(asked(false).await, Err(Error::NotReady(why)) if why == "starting"));
    silent.watch(|| Box::pin(async { Readiness::ready() }));
    assert_eq!(asked(false).await.expect("ready"), "ready");
    assert_eq!(asked(true).await.expect("alive"), "alive");
    drop(silent);
    assert!(!directory.path().join(SOCKET).exists());
    assert!(matches!(asked(false).await, Err(Error::NotRunning { .. })));
}

#[tokio::test]
async fn service_of_another_role_is_not_taken_for_the_one_that_is_asked() {
    let (directory, monitor, at) = started(registry("1")).await;
    monitor.watch(|| Box::pin(async { Readiness::ready() }));
    for address in [None, Some(at)] {
        let error = ask(("leader", "serve"), (directory.path(), address), false).await.expect_err("an edge");
        assert_eq!(error.exit(), crate::Exit::NotRunning);
        let told = error.to_string();
        let flag = if address.is_some() { "--metrics" } else { "--data-dir" };
        assert!(told.starts_with("an edge answers on "), "{told}");
        assert!(told.ends_with(&format!(", and not a leader: check {flag}")), "{told}");
        assert_eq!(ask(("edge", "run"), (directory.path(), address), false).await.expect("ready"), "ready");
    }
}

#[tokio::test]
async fn address_in_use_is_an_error_with_the_address() {
    let (_directory, _monitor, at) = started(registry("1")).await;
    let other = tempfile::tempdir().expect("tempdir");
    let error = Monitor::start(place(&other, Some(at)), registry("1"), "starting").await.expect_err("in use");
    assert_eq!(error.exit(), crate::Exit::Busy);
    assert!(error.to_string().contains(&at.to_string()), "{error}");
}
