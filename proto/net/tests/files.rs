//! A hub that few files may be open in, and a crowd of strangers: files can be opened all the same.

#[expect(dead_code, reason = "the other tests' nodes; few are needed here")]
#[path = "net/toy.rs"]
mod toy;

use std::fs::File;
use std::io::{BufRead as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use quiver_machine::Route;
use quiver_net::{Multiaddr, Transport};
use quiver_strangers::acts::nothing;
use quiver_strangers::{MESSAGES, Stranger, StrangerLine};
use rlimit::Resource;
use tokio::time::sleep;

use crate::toy::{Order, hub, spoke, start};

/// Files that the process may open.
const ALLOWED: u64 = 600;
/// Files that it can open whatever strangers do.
const RESERVED: usize = 100;
/// Pause before a disconnected stranger reconnects. The strangers share a thread, which needs time for their handshakes.
const PAUSE: Duration = Duration::from_millis(500);

struct Crowd(Child);

impl Drop for Crowd {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Program of the crowd: a process with files of its own.
#[test]
#[ignore = "the other test runs it"]
fn crowd() {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    let target: Multiaddr = line.trim().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let line = StrangerLine::default();
    runtime.block_on(async {
        let _strangers: Vec<_> = (0..600)
            .map(|_| Stranger::over(&line, &target, &[(MESSAGES, 0, &nothing())], Some(PAUSE)))
            .collect();
        std::future::pending::<()>().await;
    });
}

#[test]
fn a_crowd_of_strangers_leaves_files_to_open() {
    let program = std::env::current_exe().unwrap();
    // Before the limit is lowered, which it would inherit.
    let mut crowd = Crowd(
        Command::new(program)
            .args(["--ignored", "--exact", "crowd"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    Resource::NOFILE.set(ALLOWED, ALLOWED).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut config = hub(Transport::Tcp, 1000);
        config.reserve_files().unwrap();
        assert!(config.limits.inbound < 300, "{:?}", config.limits);
        // The machine of this test passes on everybody's messages: nobody makes room for others.
        let mut leader = start(&config).unwrap();
        let address = leader.address().await;
        let mut drone = start(&spoke(Transport::Tcp, &address)).unwrap();
        drone.connects(Route::Leader).await;
        writeln!(crowd.0.stdin.as_mut().unwrap(), "{address}").unwrap();
        let (mut looks, mut most) = (0, 0);
        while looks < 50 || most <= 50 {
            assert!(looks < 500, "they are not there: {most}");
            let files: Result<Vec<_>, _> = (0..RESERVED).map(|_| File::open("/dev/null")).collect();
            files.expect("files can be opened");
            sleep(Duration::from_millis(200)).await;
            looks += 1;
            most = most.max(leader.handle.inspect(|toy| toy.peers.len()).await.unwrap());
        }
        drone.order(Order::Tell(Route::Leader, b"hello".to_vec())).await;
        leader.receives_message(b"hello").await;
    });
}
