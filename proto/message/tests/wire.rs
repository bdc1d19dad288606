//! The types of the messages are those of the `.proto`.

#[path = "../examples/compile_proto.rs"]
mod compile_proto;

#[test]
fn types_are_what_the_proto_says() {
    assert!(
        include_str!("../src/wire.rs") == compile_proto::compiled(),
        "cargo run -p quiver-message --example compile_proto > proto/message/src/wire.rs"
    );
}
