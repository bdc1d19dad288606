//! Compiles the `.proto` into `src/wire.rs` of this crate and of the crates of features, with a compiler written in Rust:
//!
//! ```text
//! cargo run -p quiver-message --example compile_proto > proto/message/src/wire.rs
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

/// Prefixes of the names of messages in `message.proto` whose bodies and fields a feature of this crate stands for. All
/// of `quorum.proto` is of `services`, which is all of the others, too.
const OPTIONAL: [(&str, &[&str]); 2] =
    [("services", &["StandBy", "Replica", "Seat", "EpochChanges", "Quorum"]), ("delivery", &["Delivery"])];
/// Those that can be chosen by themselves.
const FREE: [&str; 1] = ["delivery"];

/// The feature that a message of this name in this file takes, if any.
fn feature_of(file: &FileDescriptorProto, name: &str) -> Option<&'static str> {
    if file.name().ends_with("quorum.proto") {
        return Some("services");
    }
    let stands_for = |prefixes: &&[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    OPTIONAL.iter().find(|(_, prefixes)| stands_for(prefixes)).map(|(feature, _)| *feature)
}

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
/// the kernel.
fn part(file: &FileDescriptorProto, extension: Option<&[&str]>) -> FileDescriptorProto {
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
                !is_extension(own_name(field.type_name()))
            });
        }
    }
    file.source_code_info = Some(info);
    file
}

fn condition(feature: &str) -> String {
    format!("#[cfg(feature = \"{feature}\")]")
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
    let requests = vec![(own.clone(), part(&files[0], Some(names))), (others, part(&files[0], None))];
    let mut modules = prost_build::Config::new().generate(requests).expect("types for the messages");
    signed(&modules.remove(&own).expect("the feature's module"))
}

/// Names this program in the place of the library.
fn signed(types: &str) -> String {
    types.replacen("generated by prost-build", "generated by examples/compile_proto.rs of quiver-message", 1)
}

/// The kernel's types of both files, as `src/wire.rs` of this crate has them.
pub(crate) fn compiled() -> String {
    let mut files = described();
    files[0] = part(&files[0], None);
    let mut config = prost_build::Config::new();
    // A header's fields are parts of the message that was received, not copies of them: of all messages it
    // has the most.
    config.bytes([".quiver.v1.Header"]);
    // The numbers of the bodies that `Message` has. A type that no body and no field has takes nothing in an image,
    // so that only those are left out.
    let mut bodies = Vec::new();
    for file in &files {
        for message in &file.message_type {
            let own = feature_of(file, message.name());
            for field in &message.field {
                let of = feature_of(&files[0], own_name(field.type_name())).filter(|_| own.is_none());
                let choice = field.oneof_index.map_or("", |index| message.oneof_decl[index as usize].name());
                if let Some(feature) = of {
                    let path = format!(".quiver.v1.{}.{choice}.{}", message.name(), field.name());
                    config.field_attribute(path.replace("..", "."), condition(feature));
                }
                if message.name() == "Message" && !choice.is_empty() {
                    bodies.push((field.number(), of));
                }
            }
        }
    }
    let module = Module::from_protobuf_package_name("quiver.v1");
    let requests = files.into_iter().map(|file| (module.clone(), file)).collect();
    let mut modules = config.generate(requests).expect("types for the messages");
    let types = modules.remove(&module).expect("the package");
    only_bodies_that_are_compiled(&types, &mut bodies)
}

/// Names, for each choice of features, the numbers of the bodies that there are, because a message whose body
/// has no type must be refused as one of no known kind.
fn only_bodies_that_are_compiled(types: &str, bodies: &mut [(i32, Option<&'static str>)]) -> String {
    bodies.sort_unstable();
    let numbers = |taken: &dyn Fn(Option<&str>) -> bool| {
        let taken = bodies.iter().filter(|(_, feature)| taken(*feature));
        taken.map(|(number, _)| number.to_string()).collect::<Vec<_>>().join(", ")
    };
    let mut attributes = format!(
        "#[cfg_attr(feature = \"services\", prost(oneof = \"message::Body\", tags = \"{}\"))]",
        numbers(&|_| true)
    );
    for choice in 0..1_u32 << FREE.len() {
        let has = |index: usize| choice >> index & 1 == 1;
        let taken = |feature: Option<&str>| {
            feature.is_none_or(|name| FREE.iter().position(|free| *free == name).is_some_and(has))
        };
        let mut conditions = vec!["not(feature = \"services\")".to_string()];
        conditions.extend(FREE.iter().enumerate().map(|(index, feature)| {
            if has(index) {
                format!("feature = \"{feature}\"")
            } else {
                format!("not(feature = \"{feature}\")")
            }
        }));
        attributes += &format!(
            "\n    #[cfg_attr(all({}), prost(oneof = \"message::Body\", tags = \"{}\"))]",
            conditions.join(", "),
            numbers(&taken)
        );
    }
    let begins = types.find("#[prost(\n        oneof = \"message::Body\"").expect("the body of a message");
    let ends = begins + types[begins..].find("]\n").expect("an attribute ends") + 1;
    let (before, after) = (&types[..begins], &types[ends..]);
    signed(&format!("{before}{attributes}{after}"))
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
            let found = EXTENSIONS.iter().find(|(argument, ..)| *argument == name);
            let (_, _, names) = found.expect("the name of a feature that has messages");
            print!("{}", extension(names));
        }
    }
}
