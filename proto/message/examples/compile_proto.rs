//! Compiles the `.proto` into `src/wire.rs`, with a compiler written in Rust:
//!
//! ```text
//! cargo run -p quiver-message --example compile_proto > proto/message/src/wire.rs
//! ```
//!
//! The result is kept, because a build script would have everybody compile the compiler first, some forty
//! crates. A test compares it with the `.proto`.

use prost_build::Module;
use prost_types::FileDescriptorProto;

/// Prefixes of the names of messages in `message.proto` whose bodies and fields a feature stands for. All of
/// `quorum.proto` is of `services`, which is all of the others, too.
const OPTIONAL: [(&str, &[&str]); 4] = [
    ("services", &["StandBy", "Replica", "Seat", "EpochChanges", "Quorum", "Admission"]),
    ("delivery", &["Delivery"]),
    ("envelopes", &["Envelope", "OpeningRequest"]),
    ("threshold", &["EnrolCommitment", "EnrolSigning", "EnrolPart", "EnrolShare", "EnrolDone"]),
];
/// Those that can be chosen by themselves.
const FREE: [&str; 3] = ["delivery", "envelopes", "threshold"];

/// The feature that a message of this name in this file takes, if any.
fn feature_of(file: &FileDescriptorProto, name: &str) -> Option<&'static str> {
    if file.name().ends_with("quorum.proto") {
        return Some("services");
    }
    let stands_for = |prefixes: &&[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    OPTIONAL.iter().find(|(_, prefixes)| stands_for(prefixes)).map(|(feature, _)| *feature)
}

fn condition(feature: &str) -> String {
    format!("#[cfg(feature = \"{feature}\")]")
}

/// The types of both files, as `src/wire.rs` has them.
pub(crate) fn compiled() -> String {
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    let files = ["quiver/v1/message.proto", "quiver/v1/quorum.proto"];
    let descriptors = protox::compile(files, [proto]).expect("the .proto compiles");
    let mut config = prost_build::Config::new();
    // A header's fields are parts of the message that was received, not copies of them: of all messages it
    // has the most.
    config.bytes([".quiver.v1.Header"]);
    // The numbers of the bodies that `Message` has. A type that no body and no field has takes nothing in an image,
    // so that only those are left out.
    let mut bodies = Vec::new();
    for file in &descriptors.file {
        for message in &file.message_type {
            let own = feature_of(file, message.name());
            for field in &message.field {
                let type_name = field.type_name().rsplit('.').next().unwrap_or_default();
                let of = feature_of(&descriptors.file[0], type_name).filter(|_| own.is_none());
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
    let requests = descriptors.file.into_iter().map(|file| (module.clone(), file)).collect();
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
    format!("{before}{attributes}{after}").replacen(
        "generated by prost-build",
        "generated by examples/compile_proto.rs",
        1,
    )
}

#[allow(
    dead_code,
    clippy::print_stdout,
    reason = "a program's output; the test that shares this has no program"
)]
fn main() {
    print!("{}", compiled());
}
