//! Compiles the `.proto` with a compiler written in Rust, so that no system `protoc` is needed.

use prost_types::FileDescriptorSet;

/// Prefixes of the names of messages that each feature stands for.
const OPTIONAL: [(&str, &[&str]); 4] = [
    ("SERVICES", &["StandBy", "Replica", "Seat", "EpochChanges", "Quorum", "Admission"]),
    ("DELIVERY", &["Delivery"]),
    ("ENVELOPES", &["Envelope", "OpeningRequest"]),
    ("THRESHOLD", &["EnrolCommitment", "EnrolSigning", "EnrolPart", "EnrolShare", "EnrolDone"]),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let mut files = vec!["quiver/v1/message.proto"];
    if has("SERVICES") {
        files.push("quiver/v1/quorum.proto");
    }
    let mut descriptors = protox::compile(files, ["proto"])?;
    for (feature, names) in OPTIONAL {
        if !has(feature) {
            leave_out(&mut descriptors, names);
        }
    }
    // A header's fields are parts of the message that was received, not copies of them: of all messages it
    // has the most.
    prost_build::Config::new().bytes([".quiver.v1.Header"]).compile_fds(descriptors)?;
    Ok(())
}

fn has(feature: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
}

/// Removes the messages whose names begin like one of these, and the fields that hold them.
fn leave_out(descriptors: &mut FileDescriptorSet, names: &[&str]) {
    let named = |name: &str| names.iter().any(|start| name.starts_with(start));
    for file in &mut descriptors.file {
        // Comments are found by position, which is another now.
        file.source_code_info = None;
        file.message_type.retain(|message| !named(message.name()));
        for message in &mut file.message_type {
            message.field.retain(|field| !named(field.type_name().rsplit('.').next().unwrap_or_default()));
        }
    }
}
