//! The `rage` command and our plugin: what either makes, the other opens.
//!
//! `.ci/rage` installs `rage` and runs these tests; files that it has made are among `vectors`, for all others.
//! By hand:
//!
//! ```text
//! cargo install rage --version 0.12.1 --locked
//! cargo test -p quiver-age --test rage -- --ignored
//! ```

#[path = "support/kgc.rs"]
mod kgc;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kgc::Kgc;
use quiver_age::{Format, Identity, Recipient, SealedFile, encrypt, identity_file};
use tempfile::TempDir;

const PHASE: &str = "mission/alpha/phase-2";
const DAWN: &str = "not-before/2026-12-01T06:00:00Z";
const PLUGIN: &str = env!("CARGO_BIN_EXE_age-plugin-quiver");

/// A directory, and `rage` with our plugin in its path. The command is the one that the variable `RAGE`
/// names, or the first in `PATH`.
struct WorkingDirectory {
    directory: TempDir,
    path: OsString,
    rage: PathBuf,
}

impl WorkingDirectory {
    fn new() -> Self {
        let plugins = Path::new(PLUGIN).parent().expect("a directory").to_path_buf();
        let usual = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(std::iter::once(plugins).chain(env::split_paths(&usual))).expect("paths");
        let rage = env::var_os("RAGE").map_or_else(|| "rage".into(), PathBuf::from);
        let dir = Self { directory: tempfile::tempdir().expect("a directory"), path, rage };
        dir.rage(&["--version"]);
        dir
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.file(name), content).expect("written");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.file(name)).expect("it is there")
    }

    fn keys(&self, name: &str, identities: &[Identity]) {
        self.write(name, identity_file::render(identities).as_bytes());
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.rage);
        command.args(arguments).current_dir(self.directory.path()).env("PATH", &self.path);
        command.output().unwrap_or_else(|error| {
            panic!(
                "{}: {error}. Get it with: cargo install rage --version 0.12.1 --locked",
                self.rage.display()
            )
        })
    }

    /// Runs it; it must succeed.
    fn rage(&self, arguments: &[&str]) {
        let output = self.run(arguments);
        assert!(output.status.success(), "rage {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs it; it must refuse, and leave no file `out`. Returns its message.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success() && !self.file("out").exists(), "rage {arguments:?}");
        String::from_utf8(output.stderr).expect("text")
    }
}

fn content() -> Vec<u8> {
    (0..200_000u32).map(|index| (index % 251) as u8).collect()
}

fn opened(file: &[u8], identity: &Identity) -> Vec<u8> {
    let mut out = Vec::new();
    let sealed = SealedFile::read(file).expect("a header");
    sealed.open(identity).and_then(|plaintext| plaintext.copy_to(&mut out)).expect("it opens");
    out
}

#[test]
#[ignore = "needs the rage command: cargo install rage --version 0.12.1 --locked"]
fn what_rage_encrypts_to_conditions_we_open() {
    let (dir, kgc) = (WorkingDirectory::new(), Kgc::new(9));
    dir.write("plain", content());
    let [phase, dawn] = [PHASE, DAWN].map(|text| kgc.recipient(text).to_string());
    dir.rage(&["--encrypt", "-r", &phase, "-r", &dawn, "-o", "file.age", "plain"]);
    dir.rage(&["--encrypt", "--armor", "-r", &phase, "-o", "file.txt", "plain"]);
    for condition in [PHASE, DAWN] {
        assert_eq!(opened(&dir.read("file.age"), &kgc.identity(&[condition])), content());
    }
    assert_eq!(opened(&dir.read("file.txt"), &kgc.identity(&[PHASE])), content());
}

#[test]
#[ignore = "needs the rage command: cargo install rage --version 0.12.1 --locked"]
fn what_we_encrypt_rage_opens_with_our_identities() {
    let (dir, kgc, other) = (WorkingDirectory::new(), Kgc::new(9), Kgc::new(10));
    // The file's second condition; unrelated keys in the file come first.
    dir.keys("keys", &[other.identity(&[PHASE]), kgc.identity(&["mission/alpha/phase-1", DAWN])]);
    for format in [Format::Binary, Format::Armoured] {
        let mut file = Vec::new();
        let recipients = [kgc.recipient(PHASE), kgc.recipient(DAWN)];
        encrypt(&recipients, format, &content()[..], &mut file).expect("encrypted");
        dir.write("file.age", &file);
        dir.rage(&["--decrypt", "-i", "keys", "-o", "out", "file.age"]);
        assert!(dir.read("out") == content());
        fs::remove_file(dir.file("out")).expect("it is there");
    }
}

#[test]
#[ignore = "needs the rage command: cargo install rage --version 0.12.1 --locked"]
fn rage_encrypts_to_the_conditions_of_an_identity() {
    let (dir, kgc) = (WorkingDirectory::new(), Kgc::new(9));
    dir.write("plain", content());
    dir.keys("keys", &[kgc.identity(&[PHASE, DAWN])]);
    dir.rage(&["--encrypt", "-i", "keys", "-o", "file.age", "plain"]);
    assert_eq!(opened(&dir.read("file.age"), &kgc.identity(&[DAWN])), content());
}

#[test]
#[ignore = "needs the rage command: cargo install rage --version 0.12.1 --locked"]
fn rage_refuses_what_we_refuse_and_leaves_nothing_behind() {
    let (dir, kgc) = (WorkingDirectory::new(), Kgc::new(9));
    let mut file = Vec::new();
    encrypt(&[kgc.recipient(PHASE)], Format::Binary, &content()[..], &mut file).expect("encrypted");
    dir.write("file.age", &file);
    let decrypt = ["--decrypt", "-i", "keys", "-o", "out", "file.age"];
    dir.keys("keys", &[kgc.identity(&[DAWN])]);
    assert!(dir.refused(&decrypt).contains("No matching keys"));
    // The condition in the header is another than the one encrypted to, whose key is held.
    let altered = String::from_utf8_lossy(&file).find("phase-2").expect("in the header") + "phase-".len();
    file[altered] = b'3';
    dir.write("file.age", &file);
    dir.keys("keys", &[kgc.identity(&["mission/alpha/phase-3"])]);
    assert!(dir.refused(&decrypt).contains("the header was altered"));
    // A key that is not its condition's.
    let mut bytes = kgc.identity(&["mission/a"]).encode();
    let letter = bytes.len() - 97;
    bytes[letter] = b'b';
    let text =
        bech32::encode_upper::<bech32::Bech32>(bech32::Hrp::parse_unchecked("AGE-PLUGIN-QUIVER-"), &bytes);
    dir.write("keys", text.expect("short enough"));
    assert!(dir.refused(&decrypt).contains("does not fit the condition"));
    // A recipient whose condition is malformed.
    dir.write("plain", content());
    let garbled = [&kgc.recipient(PHASE).encode()[..49], b"weather/rain"].concat();
    let text = bech32::encode::<bech32::Bech32>(bech32::Hrp::parse_unchecked("age1quiver"), &garbled);
    let text = text.expect("short enough");
    assert!(
        dir.refused(&["--encrypt", "-r", &text, "-o", "out", "plain"])
            .contains("conditions are of the kinds")
    );
}

#[test]
#[ignore = "needs the rage command: cargo install rage --version 0.12.1 --locked"]
fn plugin_tells_people_recipients_and_what_a_file_is_for() {
    let (dir, kgc) = (WorkingDirectory::new(), Kgc::new(9));
    let ask = |arguments: &[&str]| {
        let output = Command::new(PLUGIN).args(arguments).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let master = hex::encode(kgc.master().encode());
    let told = ask(&["recipient", "--master", &master, PHASE, DAWN]);
    let recipients: Vec<Recipient> = told.lines().map(|line| line.parse().expect("a recipient")).collect();
    assert_eq!(recipients, [kgc.recipient(PHASE), kgc.recipient(DAWN)]);
    dir.write("plain", "orders");
    dir.rage(&["--encrypt", "-r", &recipients[0].to_string(), "-o", "file.age", "plain"]);
    let told = ask(&["inspect", dir.file("file.age").to_str().expect("text")]);
    assert_eq!(told, format!("{} {PHASE}\n", hex::encode(kgc.master().fingerprint())));
}

#[test]
fn results_that_cannot_be_printed_are_a_failure_and_a_reader_that_went_away_is_none() {
    let kgc = Kgc::new(9);
    let directory = tempfile::tempdir().expect("tempdir");
    let file = directory.path().join("file.age");
    let mut sealed = Vec::new();
    encrypt(&[kgc.recipient(PHASE)], Format::Binary, &content()[..], &mut sealed).expect("encrypted");
    fs::write(&file, sealed).expect("write");
    let file = file.to_str().expect("utf-8");
    for words in [&["--help"][..], &["--version"], &["inspect", file], &["inspect", "--help"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("open");
        let output = Command::new(PLUGIN).args(words).stdout(full).output().expect("run");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("cannot print the result: No space left"), "{words:?}: {told}");
        let (reader, writer) = std::io::pipe().expect("pipe");
        drop(reader);
        let output = Command::new(PLUGIN).args(words).stdout(writer).output().expect("run");
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
    }
}
