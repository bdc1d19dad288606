//! Compiles the `.proto` into `src/wire.rs` of this crate and of the crates of features, with a compiler written in Rust:
//!
//! ```text
//! cargo run -p quiver-message --example compile_proto > proto/message/src/wire.rs
//! cargo run -p quiver-message --example compile_proto board > proto/message/src/wire/board.rs
//! cargo run -p quiver-message --example compile_proto delivery > proto/message/src/wire/delivery.rs
//! cargo run -p quiver-message --example compile_proto services > proto/message/src/wire/services.rs
//! cargo run -p quiver-message --example compile_proto admission > proto/admission/src/wire.rs
//! cargo run -p quiver-message --example compile_proto enrolment > proto/enrolment/src/threshold/wire.rs
//! cargo run -p quiver-message --example compile_proto envelope > proto/envelope/src/wire.rs
//! ```
//!
//! The result is kept, because a build script would have everybody compile the compiler first, some forty
//! crates. A test compares it with the `.proto`.

use prost_build::Module;
use prost_types::FileDescriptorProto;
use prost_types::source_code_info::Location;

/// Features whose crates have the types of their messages: the argument that names one, its file, and the names of its
/// messages in `message.proto`. The kernel's types have none of these, and `Message` no such body.
pub(crate) const EXTENSIONS: [(&str, &str, &[&str]); 3] = [
    (
        "admission",
        "proto/admission/src/wire.rs",
        &["AdmissionHello", "AdmissionChallenge", "AdmissionProof", "AdmissionStep", "AdmissionLeave"],
    ),
    (
        "enrolment",
        "proto/enrolment/src/threshold/wire.rs",
        &["EnrolCommitment", "EnrolSigning", "EnrolPart", "EnrolShare", "EnrolDone"],
    ),
    ("envelope", "proto/envelope/src/wire.rs", &["Envelope", "OpeningRequest"]),
];

/// Selections of bodies that builds have: the argument that names one, which is its file, and prefixes of the names of
/// messages in `message.proto` that are left out.
pub(crate) const BODIES: [(&str, &[&str]); 3] = [
    ("board", &["StandBy", "Replica", "EpochChanges", "Delivery"]),
    ("delivery", &["StandBy", "Replica", "EpochChanges"]),
    ("services", &[]),
];

/// The name of a type without its package.
fn own_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or_default()
}

/// Keeps the wanted items of a list, and the comments on them: the places of comments are paths of numbers, in which the
/// items of this list are counted behind `prefix`.
fn keep<T>(items: &mut Vec<T>, comments: &mut Vec<Location>, prefix: &[i32], wanted: impl Fn(&T) -> bool) {
    let mut count = 0;
    let places: Vec<Option<i32>> = items
        .iter()
        .map(|item| {
            count += i32::from(wanted(item));
            wanted(item).then_some(count - 1)
        })
        .collect();
    items.retain(wanted);
    comments.retain_mut(|comment| match comment.path.strip_prefix(prefix).and_then(|rest| rest.first()) {
        None => true,
        Some(place) => match places[*place as usize] {
            None => false,
            Some(new) => {
                comment.path[prefix.len()] = new;
                true
            }
        },
    });
}

/// The part of `message.proto` that is not of an extension; of `extension` if there is one, whose other types are those of
/// the kernel. `Message` has no bodies whose names begin with one of `left_out`.
fn part(file: &FileDescriptorProto, extension: Option<&[&str]>, left_out: &[&str]) -> FileDescriptorProto {
    let mut file = file.clone();
    let mut info = file.source_code_info.take().unwrap_or_default();
    let is_extension = |name: &str| EXTENSIONS.iter().any(|(_, _, names)| names.contains(&name));
    keep(&mut file.message_type, &mut info.location, &[4], |message| match extension {
        None => !is_extension(message.name()),
        Some(names) => names.contains(&message.name()),
    });
    if extension.is_some() {
        keep(&mut file.enum_type, &mut info.location, &[5], |_| false);
    }
    for (place, message) in file.message_type.iter_mut().enumerate() {
        if message.name() == "Message" {
            keep(&mut message.field, &mut info.location, &[4, place as i32, 2], |field| {
                let name = own_name(field.type_name());
                !is_extension(name) && !left_out.iter().any(|prefix| name.starts_with(prefix))
            });
        }
    }
    file.source_code_info = Some(info);
    file
}

/// Descriptions of both files.
fn described() -> Vec<FileDescriptorProto> {
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    let files = ["quiver/v1/message.proto", "quiver/v1/quorum.proto"];
    protox::compile(files, [proto]).expect("the .proto compiles").file
}

/// The types of a feature's messages, as `src/wire.rs` of its crate has them.
pub(crate) fn extension(names: &[&str]) -> String {
    let files = described();
    let own = Module::from_protobuf_package_name("quiver.v1.extension");
    let others = Module::from_protobuf_package_name("quiver.v1");
    // Those of the kernel's types that they have are looked up.
    let requests =
        vec![(own.clone(), part(&files[0], Some(names), &[])), (others, part(&files[0], None, &[]))];
    let mut modules = prost_build::Config::new().generate(requests).expect("types for the messages");
    signed(&modules.remove(&own).expect("the feature's module"))
}

/// Names this program in the place of the library.
fn signed(types: &str) -> String {
    types.replacen("generated by prost-build", "generated by examples/compile_proto.rs of quiver-message", 1)
}

/// The kernel's types of both files: `Message` with its bodies but for those that are left out, and all others.
fn kernel(left_out: &[&str]) -> (String, String) {
    let mut files = described();
    files[0] = part(&files[0], None, left_out);
    let mut config = prost_build::Config::new();
    // A header's fields are parts of the message that was received, not copies of them: of all messages it
    // has the most.
    config.bytes([".quiver.v1.Header"]);
    let module = Module::from_protobuf_package_name("quiver.v1");
    let requests = files.into_iter().map(|file| (module.clone(), file)).collect();
    let mut modules = config.generate(requests).expect("types for the messages");
    let types = signed(&modules.remove(&module).expect("the package"));
    let (head, types) = types.split_once('\n').expect("a line that names this program");
    let bodies = types.find("\npub mod message {").expect("the bodies of a message");
    let ends = bodies + types[bodies..].find("\n}\n").expect("a module ends") + 3;
    let (message, others) = types.split_at(ends);
    (format!("{head}\n{message}"), format!("{head}\n{others}"))
}

/// The kernel's types but for `Message`, as `src/wire.rs` of this crate has them. A type that no body and no field has takes
/// nothing in an image.
pub(crate) fn compiled() -> String {
    kernel(&[]).1
}

/// `Message` without the bodies that are left out, as a file in `src/wire` has it, because a message whose body has no type
/// must be refused as one of no known kind.
pub(crate) fn bodies(left_out: &[&str]) -> String {
    kernel(left_out).0
}

#[allow(
    dead_code,
    clippy::print_stdout,
    reason = "a program's output; the test that shares this has no program"
)]
fn main() {
    match std::env::args().nth(1) {
        None => print!("{}", compiled()),
        Some(name) => {
            let selection = BODIES.iter().find(|(argument, _)| *argument == name);
            let extended = EXTENSIONS.iter().find(|(argument, ..)| *argument == name);
            match (selection, extended) {
                (Some((_, left_out)), _) => print!("{}", bodies(left_out)),
                (None, Some((_, _, names))) => print!("{}", extension(names)),
                (None, None) => panic!("no selection of bodies and no feature that has messages: {name}"),
            }
        }
    }
}
