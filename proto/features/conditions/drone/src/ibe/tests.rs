use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use clap::Parser;
use quiver_ibe::{IdentityKey, IdentityPoint, KeyShare, MasterShare};
use quiver_service::drone::Error as DroneError;
use tempfile::TempDir;

use super::*;

const PHASE: &str = "mission/alpha/phase-2";
const DAWN: &str = "not-before/2026-12-01T06:00:00Z";

/// A KGC of one that releases the keys of these conditions.
struct Released {
    share: MasterShare,
    conditions: Vec<&'static str>,
    /// Error for other conditions.
    otherwise: fn(String) -> Error,
    /// Conditions whose keys a drone holds.
    held: Vec<&'static str>,
    asked: Vec<String>,
}

impl Released {
    fn new(secret: u8, conditions: &[&'static str]) -> Self {
        let scalar = [[0; 31].as_slice(), &[secret]].concat();
        let share = MasterShare::from_scalar_bytes(1, &scalar).expect("a scalar");
        let (held, asked) = (Vec::new(), Vec::new());
        Self { share, conditions: conditions.to_vec(), otherwise: Error::NotReleased, held, asked }
    }
}

impl KeySource for Released {
    async fn master(&mut self) -> Result<MasterPublicKey> {
        Ok(MasterPublicKey::new(self.share.public()).expect("not zero"))
    }

    async fn key(&mut self, condition: &Condition) -> Result<UnverifiedIdentityKey> {
        self.asked.push(condition.to_string());
        if !self.conditions.contains(&condition.as_str()) {
            return Err((self.otherwise)(format!("{condition}: its time has not come")));
        }
        let share = self.share.extract(&IdentityPoint::of(condition)).encode();
        let key = &share[KeyShare::LEN - IdentityKey::LEN..];
        Ok(UnverifiedIdentityKey::decode(key).expect("a point"))
    }

    async fn held(&mut self) -> Result<Vec<Condition>> {
        Ok(self.held.iter().map(|text| text.parse().expect("a condition")).collect())
    }
}

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: IbeArgs,
}

/// A directory, and a line as somebody types it, with names of files in it.
struct KeyClient(TempDir);

impl KeyClient {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.0.path())
            .expect("readable")
            .map(|entry| entry.expect("entry").file_name().into_string().expect("text"))
            .collect();
        names.sort();
        names
    }

    /// Words that start with `@` are names of files.
    async fn run(&self, line: &str, source: &mut impl KeySource) -> Result<Option<String>> {
        let words = line.split(' ').map(|word| match word.strip_prefix('@') {
            Some(name) => self.path(name).into_os_string(),
            None => word.into(),
        });
        let line = Line::try_parse_from(std::iter::once("ibe".into()).chain(words)).expect("a command");
        run(line.command, source).await
    }
}

fn content() -> Vec<u8> {
    (0..150_000u32).map(|index| (index % 251) as u8).collect()
}

async fn encrypted(client: &KeyClient, source: &mut Released) {
    fs::write(client.path("plain"), content()).expect("written");
    let line = format!("encrypt @plain --to {PHASE} --to {DAWN} --out @file.age");
    let told = client.run(&line, source).await.expect("encrypts").expect("something to tell");
    assert!(
        told.starts_with("encrypted 150000 bytes into ") && told.ends_with(&format!("for {PHASE}, {DAWN}")),
        "{told}"
    );
}

#[tokio::test]
async fn key_of_the_first_condition_that_is_met_decrypts() {
    let (client, mut source) = (KeyClient::new(), Released::new(5, &[DAWN]));
    encrypted(&client, &mut source).await;
    let told = client.run("decrypt @file.age --out @opened", &mut source).await.expect("decrypts");
    assert!(told.expect("something to tell").starts_with("decrypted 150000 bytes"));
    assert!(fs::read(client.path("opened")).expect("there") == content());
    let mode = fs::metadata(client.path("opened")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn conditions_that_are_not_met_are_named_with_their_reasons() {
    let (client, mut source) = (KeyClient::new(), Released::new(5, &[]));
    encrypted(&client, &mut source).await;
    let error = client.run("decrypt @file.age --out @opened", &mut source).await.expect_err("refused");
    assert_eq!(error.exit(), quiver_service::Exit::Refused);
    let text = error.to_string();
    for condition in [PHASE, DAWN] {
        assert!(text.contains(&format!("{condition}: its time has not come")), "{text}");
    }
    assert_eq!(client.names(), ["file.age", "plain"]);
}

#[tokio::test]
async fn key_that_is_held_is_taken_before_anybody_is_asked_for_another() {
    let (client, mut source) = (KeyClient::new(), Released::new(5, &[DAWN]));
    encrypted(&client, &mut source).await;
    source.otherwise = Error::TooFewShares;
    source.held = vec![DAWN];
    client.run("decrypt @file.age --out @opened", &mut source).await.expect("decrypts");
    assert_eq!(source.asked, [DAWN]);
}

#[tokio::test]
async fn where_nobody_answers_only_one_condition_is_asked_for() {
    let (client, mut source) = (KeyClient::new(), Released::new(5, &[DAWN]));
    encrypted(&client, &mut source).await;
    source.otherwise = Error::TooFewShares;
    let error = client.run("decrypt @file.age --out @opened", &mut source).await.expect_err("refused");
    assert_eq!(error.exit(), quiver_service::Exit::TimedOut);
    assert_eq!(source.asked, [PHASE]);
    assert_eq!(client.names(), ["file.age", "plain"]);
}

#[tokio::test]
async fn condition_that_is_named_often_is_asked_for_once() {
    let (client, mut source) = (KeyClient::new(), Released::new(5, &[]));
    fs::write(client.path("plain"), content()).expect("written");
    let line = format!("encrypt @plain --to {PHASE} --to {PHASE} --to {PHASE} --out @file.age");
    client.run(&line, &mut source).await.expect("encrypts");
    client.run("decrypt @file.age --out @opened", &mut source).await.expect_err("refused");
    assert_eq!(source.asked, [PHASE]);
}

#[tokio::test]
async fn file_of_another_deployment_is_told_apart() {
    let client = KeyClient::new();
    encrypted(&client, &mut Released::new(5, &[])).await;
    let line = "decrypt @file.age --out @opened";
    let error = client.run(line, &mut Released::new(6, &[PHASE])).await.expect_err("refused");
    assert!(matches!(&error, Error::AgeFile { error: quiver_age::Error::OtherMaster { .. }, .. }), "{error}");
    assert_eq!(error.exit(), quiver_service::Exit::Refused);
    assert_eq!(client.names(), ["file.age", "plain"]);
}

#[tokio::test]
async fn damaged_file_leaves_nothing_behind() {
    let (client, mut source) = (KeyClient::new(), Released::new(5, &[PHASE]));
    encrypted(&client, &mut source).await;
    let file = fs::read(client.path("file.age")).expect("there");
    let mut altered = file.clone();
    *altered.last_mut().expect("long") ^= 1;
    for damaged in [&file[..file.len() - 1], &altered] {
        fs::write(client.path("file.age"), damaged).expect("written");
        let error = client.run("decrypt @file.age --out @opened", &mut source).await.expect_err("refused");
        let genuine = 2 * 64 * 1024;
        assert!(
            matches!(&error, Error::AgeFile { error: quiver_age::Error::Damaged { genuine: g }, .. } if *g == genuine),
            "{error}"
        );
        assert_eq!(error.exit(), quiver_service::Exit::Failed);
        assert_eq!(client.names(), ["file.age", "plain"]);
    }
}

#[tokio::test]
async fn nothing_is_overwritten() {
    let (client, mut source) = (KeyClient::new(), Released::new(5, &[PHASE]));
    encrypted(&client, &mut source).await;
    let before = fs::read(client.path("file.age")).expect("there");
    let lines = [
        format!("encrypt @plain --to {PHASE} --out @file.age"),
        "decrypt @file.age --out @plain".into(),
        format!("identity {PHASE} --out @plain"),
    ];
    for line in lines {
        let error = client.run(&line, &mut source).await.expect_err("refused");
        assert!(
            matches!(error, Error::Drone(DroneError::Service(ServiceError::Exists { .. }))),
            "{line}: {error}"
        );
    }
    assert!(fs::read(client.path("file.age")).expect("there") == before);
    assert!(fs::read(client.path("plain")).expect("there") == content());
}

/// Asks nobody: recipients and keys are given.
struct Nobody;

impl KeySource for Nobody {
    async fn master(&mut self) -> Result<MasterPublicKey> {
        panic!("asked for the master public key")
    }

    async fn key(&mut self, condition: &Condition) -> Result<UnverifiedIdentityKey> {
        panic!("asked for the key of {condition}")
    }

    async fn held(&mut self) -> Result<Vec<Condition>> {
        panic!("asked for what is held")
    }
}

#[tokio::test]
async fn recipients_and_keys_once_written_need_nobody() {
    let (client, mut source) = (KeyClient::new(), Released::new(5, &[PHASE]));
    let recipient =
        client.run(&format!("recipient {PHASE}"), &mut source).await.expect("made").expect("text");
    let told = client.run(&format!("identity {PHASE} --out @keys"), &mut source).await.expect("made");
    assert!(told.expect("something to tell").contains(PHASE));
    let mode = fs::metadata(client.path("keys")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::write(client.path("plain"), content()).expect("written");
    for line in [
        format!("encrypt @plain --recipient {recipient} --armor --out @file.age"),
        "decrypt @file.age --identity @keys --out @opened".into(),
    ] {
        client.run(&line, &mut Nobody).await.expect("done");
    }
    assert!(
        fs::read(client.path("file.age")).expect("there").starts_with(b"-----BEGIN AGE ENCRYPTED FILE-----")
    );
    assert!(fs::read(client.path("opened")).expect("there") == content());
    fs::set_permissions(client.path("keys"), fs::Permissions::from_mode(0o644)).expect("chmod");
    let line = "decrypt @file.age --identity @keys --out @again";
    let error = client.run(line, &mut source).await.expect_err("refused");
    assert!(matches!(error, Error::Drone(DroneError::Service(ServiceError::TooOpen { .. }))), "{error}");
}

#[tokio::test]
async fn key_that_is_not_the_conditions_decrypts_nothing() {
    /// Has the master public key of one KGC and the keys of another.
    struct Lying(Released, Released);

    impl KeySource for Lying {
        async fn master(&mut self) -> Result<MasterPublicKey> {
            self.0.master().await
        }

        async fn key(&mut self, condition: &Condition) -> Result<UnverifiedIdentityKey> {
            self.1.key(condition).await
        }

        async fn held(&mut self) -> Result<Vec<Condition>> {
            self.1.held().await
        }
    }

    let client = KeyClient::new();
    encrypted(&client, &mut Released::new(5, &[])).await;
    let mut lying = Lying(Released::new(5, &[]), Released::new(6, &[PHASE]));
    let error = client.run("decrypt @file.age --out @opened", &mut lying).await.expect_err("refused");
    assert!(
        matches!(&error, Error::Age(quiver_age::Error::WrongKey { condition }) if condition == PHASE),
        "{error}"
    );
    assert_eq!(client.names(), ["file.age", "plain"]);
}

#[test]
fn conditions_that_are_none_are_wrong_usage() {
    for line in
        ["encrypt --to weather/rain", "encrypt", "recipient not-before/tomorrow", "identity mission/a"]
    {
        let words = std::iter::once("ibe").chain(line.split(' '));
        assert_eq!(Line::try_parse_from(words).expect_err("refused").exit_code(), 2, "{line}");
    }
}
