//! The control socket of a service, among programs that do not let go of it.

use std::time::Duration;

use quiver_service::control::{Call, Server, TimeLimit, call, socket_path};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;

#[derive(Debug, Serialize, Deserialize)]
struct Command(String);

impl TimeLimit for Command {}

#[tokio::test]
async fn programs_that_connect_and_say_nothing_keep_no_command_waiting() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_server, mut calls) = Server::start::<Command>(directory.path(), "leader").expect("it listens");
    tokio::spawn(async move {
        while let Some(Call { request, answer }) = calls.recv().await {
            let _ = answer.send(Ok(Value::String(request.0)));
        }
    });
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(UnixStream::connect(socket_path(directory.path())).await.expect("a connection"));
    }
    let command = Command("evict".into());
    let called = call::<_, String>(directory.path(), "leader", "serve", &command);
    // Each of them may take five seconds to say what it wants.
    let answer = timeout(Duration::from_secs(30), called).await.expect("long before their time is over");
    assert_eq!(answer.expect("an answer"), "evict");
    drop(silent);
}
