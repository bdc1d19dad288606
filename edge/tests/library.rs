//! A drone within another program, with real services on loopback: enrols, joins, talks, leaves and joins again,
//! is evicted, restarts; and what wrong tokens and passphrases get.

use std::fs;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use quiver_edge::{
    Edge, ErrorKind, Event, MembershipStanding, MessageSender, Options, ReceivedMessage, RemoteService,
    Token, Unlock,
};
use quiver_service_testing::deployment::{ANY, PASSPHRASE};
use quiver_service_testing::{Process, TestDeployment, eventually};

const MINUTE: Duration = Duration::from_secs(60);
const NOW: Duration = Duration::ZERO;

struct Group {
    bench: TestDeployment,
    kgc: Process,
    leader: Process,
}

impl Group {
    fn new() -> Self {
        Self::of(TestDeployment::new())
    }

    fn of(bench: TestDeployment) -> Self {
        let kgc = bench.kgc(ANY);
        let token = bench.token("leader-1", &["--leads", "alpha"]);
        let leader = bench.leader(&kgc.address(), ANY, Some(&token), &[]);
        leader.address();
        Self { bench, kgc, leader }
    }

    /// Options of a drone that has enrolled.
    fn options(&self, name: &str) -> Options {
        let data_dir = self.bench.path(&format!("{name}-data"));
        let mut options = Options::new(data_dir, unlock(&self.bench));
        (options.leaders, options.kgcs) = (vec![self.leader.address()], vec![self.kgc.address()]);
        options
    }

    /// Options at the first start.
    fn first(&self, name: &str) -> Options {
        let token = self.bench.token(name, &["--group", "alpha"]);
        Options {
            deployment: Some(self.bench.path("kgc-data/deployment.toml")),
            token: Some(Token::File(self.bench.path(&token))),
            ..self.options(name)
        }
    }

    fn joined(&self, name: &str) -> Edge {
        let edge = Edge::open(self.first(name)).expect("it opens");
        edge.join(MINUTE).expect("it joins");
        edge
    }
}

fn unlock(bench: &TestDeployment) -> Unlock {
    if bench.has_passphrase() {
        Unlock::passphrase(PASSPHRASE.as_bytes())
    } else {
        Unlock::KeyFile(bench.key_file())
    }
}

fn next(edge: &Edge, wanted: impl Fn(&Event) -> bool) -> Event {
    loop {
        let event = edge.next_event(MINUTE).expect("it runs").expect("in time");
        if wanted(&event) {
            return event;
        }
    }
}

fn message(edge: &Edge) -> ReceivedMessage {
    match next(edge, |event| matches!(event, Event::Message(_))) {
        Event::Message(message) => message,
        _ => unreachable!("a message was wanted"),
    }
}

fn is_readable(edge: &Edge) -> bool {
    let mut polled = [PollFd::new(edge.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::ZERO).expect("poll") == 1
}

#[test]
fn drones_within_a_program_enrol_join_talk_and_leave() {
    let group = Group::new();
    let (one, two) = (group.joined("edge-1"), group.joined("edge-2"));
    group.bench.served(2, (0, 0));
    let told =
        [one.next_event(MINUTE), one.next_event(MINUTE)].map(|event| event.expect("runs").expect("one"));
    assert_eq!(told[0], Event::Connected { service: RemoteService::Kgc });
    assert_eq!(told[1], Event::Enrolled { name: "edge-1".into() });
    assert!(is_readable(&two));
    while two.next_event(NOW).expect("it runs").is_some() {}
    assert!(!is_readable(&two));
    one.send("chat", b"hello", true, MINUTE).expect("sent");
    one.flush(MINUTE).expect("confirmed");
    one.flush(NOW).expect("nothing is left to confirm");
    let heard = message(&two);
    assert_eq!((heard.channel.as_str(), heard.data.as_slice()), ("chat", &b"hello"[..]));
    assert_eq!(heard.sender, MessageSender::Signed { name: "edge-1".into(), leader: false });
    one.send("map", &[0xff; 65_536], false, MINUTE).expect("sent");
    let heard = message(&two);
    let slot = one.status().expect("status").slot.expect("a slot");
    assert_eq!((heard.data.len(), heard.sender), (65_536, MessageSender::Unauthenticated { slot }));
    let keys = [&one, &two].map(|edge| edge.export_key("map", MINUTE).expect("a key"));
    assert_eq!((keys[0].key.expose(), keys[0].counter), (keys[1].key.expose(), keys[1].counter));
    assert_ne!(one.export_key("chat", MINUTE).expect("a key").key.expose(), keys[0].key.expose());
    one.leave(MINUTE).expect("left");
    next(&one, |event| *event == Event::Left);
    assert_eq!(one.status().expect("status").standing, MembershipStanding::Left);
    assert_eq!(one.send("chat", b"?", true, MINUTE).expect_err("left").kind(), ErrorKind::NotJoined);
    let before = group.bench.served(1, (0, 0));
    assert_ne!(two.export_key("map", MINUTE).expect("a key").key.expose(), keys[1].key.expose());
    one.join(MINUTE).expect("it joins again");
    group.bench.served(2, before);
    // The subcommands ask it as they ask `edge run`.
    assert_eq!(group.bench.edge_status("edge-1").expect("status")["synced"], true);
}

#[test]
fn drone_goes_on_after_a_restart_and_hears_that_it_is_evicted() {
    let group = Group::new();
    let edge = group.joined("edge-1");
    let before = edge.status().expect("status");
    edge.close();
    assert_eq!(edge.status().expect_err("closed").kind(), ErrorKind::Closed);
    assert_eq!(edge.next_event(MINUTE).expect_err("closed").kind(), ErrorKind::Closed);
    assert!(is_readable(&edge));
    drop(edge);
    let edge = Edge::open(group.options("edge-1")).expect("it opens again");
    edge.join(MINUTE).expect("in step");
    let after = edge.status().expect("status");
    assert_eq!(
        (after.standing, &after.name, after.slot),
        (MembershipStanding::Member, &before.name, before.slot)
    );
    assert!(after.epoch >= before.epoch);
    let leader = group.leader.address();
    group.leader.kill();
    next(&edge, |event| *event == Event::Disconnected { service: RemoteService::Leader });
    assert_eq!(edge.status().expect("status").leaders, 0);
    let socket = leader.split("/p2p/").next().expect("an address");
    let _leader = group.bench.leader(&group.kgc.address(), socket, None, &[]);
    next(&edge, |event| *event == Event::Connected { service: RemoteService::Leader });
    next(&edge, |event| matches!(event, Event::Epoch { .. }));
    // Its request after the return is answered once it hears messages: a member hears of its eviction, a
    // drone that joins is refused. The new leader's first messages may come before it follows the group's.
    eventually("it hears the new leader", || {
        // It may not have said yet that it takes messages.
        let _ = group.bench.run("leader", &["send", "--channel", "chat", "back"]);
        let event = edge.next_event(Duration::from_secs(1)).expect("it runs");
        matches!(event, Some(Event::Message(message)) if *message.data == b"back").then_some(())
    });
    group.bench.ok("leader", &["evict", "edge-1"]);
    next(&edge, |event| *event == Event::Evicted);
    assert_eq!(edge.join(MINUTE).expect_err("evicted").kind(), ErrorKind::Refused);
    assert_eq!(edge.status().expect("status").standing, MembershipStanding::Evicted);
    // A drone that is revoked learns it, and knows it from its start the next time.
    let revoked = group.joined("edge-2");
    group.bench.ok("kgc", &["drone", "revoke", "edge-2"]);
    eventually("it learns that it is revoked", || {
        (revoked.status().expect("status").standing == MembershipStanding::Revoked).then_some(())
    });
    drop(revoked);
    let revoked = Edge::open(group.options("edge-2")).expect("it opens");
    let error = revoked.join(MINUTE).expect_err("revoked");
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Refused, "this drone was revoked by the KGC".into())
    );
}

#[test]
fn wrong_tokens_passphrases_and_files_are_told_apart() {
    let (group, other) = (Group::of(TestDeployment::with_passphrase()), TestDeployment::new());
    let (token, foreign) = (group.bench.token("edge-1", &["--group", "alpha"]), other.token("edge-1", &[]));
    let deployment = Some(group.bench.path("kgc-data/deployment.toml"));
    let options = |token| Options { deployment: deployment.clone(), token, ..group.options("edge-1") };
    let refused = |options, kind, part: &str| {
        let error = Edge::open(options).expect_err("refused");
        assert!(error.kind() == kind && error.to_string().contains(part), "{:?}: {error}", error.kind());
    };
    let file = |path| Some(Token::File(path));
    refused(options(file(other.path(&foreign))), ErrorKind::Usage, "another deployment");
    refused(options(file(group.bench.path("none"))), ErrorKind::Usage, "none");
    refused(options(Some(Token::text(b"hello"))), ErrorKind::Usage, "the token given");
    refused(options(None), ErrorKind::Usage, "--token");
    refused(Options { deployment: None, ..options(None) }, ErrorKind::Usage, "no deployment");
    let text = fs::read(group.bench.path(&token)).expect("read");
    let edge = Edge::open(options(Some(Token::text(&text)))).expect("it opens");
    edge.join(MINUTE).expect("it joins");
    refused(options(None), ErrorKind::Busy, "in use");
    drop(edge);
    let wrong = Unlock::passphrase(b"wrong");
    refused(Options { unlock: wrong, ..options(None) }, ErrorKind::Locked, "wrong passphrase");
    let missing = Unlock::KeyFile(group.bench.path("none"));
    refused(Options { unlock: missing, ..options(None) }, ErrorKind::Locked, "none");
    let copy = Options { data_dir: group.bench.path("copy"), ..options(Some(Token::text(&text))) };
    let edge = Edge::open(copy).expect("it opens");
    let error = edge.join(MINUTE).expect_err("the KGC knows the token");
    assert!(error.kind() == ErrorKind::Refused && error.to_string().contains("already used"), "{error}");
    let told = next(&edge, |event| matches!(event, Event::Refused { .. }));
    let reason = "the enrolment token was already used with another key".to_string();
    assert_eq!(told, Event::Refused { service: RemoteService::Kgc, reason, transient: false });
    let over = edge.next_event(MINUTE);
    assert!(matches!(over, Ok(Some(Event::Disconnected { .. }))) || over == Err(error), "{over:?}");
}

#[test]
fn drone_without_a_kgc_waits_no_longer_than_it_was_told() {
    let bench = TestDeployment::new();
    let token = bench.token("edge-1", &["--group", "alpha"]);
    let nobody = "/ip4/127.0.0.1/tcp/9".to_string();
    let open = |data: &str, enrol_timeout| {
        Edge::open(Options {
            deployment: Some(bench.path("kgc-data/deployment.toml")),
            token: Some(Token::File(bench.path(&token))),
            leaders: vec![nobody.clone()],
            kgcs: vec![nobody.clone()],
            enrol_timeout,
            ..Options::new(bench.path(data), unlock(&bench))
        })
        .expect("it opens")
    };
    let patient = open("patient", MINUTE);
    assert_eq!(
        patient.join(Duration::from_millis(100)).expect_err("no KGC answers").kind(),
        ErrorKind::TimedOut
    );
    assert_eq!(patient.status().expect("status").standing, MembershipStanding::Enrolling);
    drop(patient);
    let edge = open("data", Duration::from_secs(2));
    let error = edge.join(MINUTE).expect_err("nobody answers");
    assert!(error.to_string().contains("not enrolled within 2s"), "{error}");
    assert_eq!(edge.status().expect_err("it is over"), error);
}
