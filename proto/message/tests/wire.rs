//! The types of the messages are those of the `.proto`.

#[path = "../examples/compile_proto.rs"]
mod compile_proto;

#[test]
fn types_are_what_the_proto_says() {
    assert!(
        include_str!("../src/wire.rs") == compile_proto::compiled(),
        "cargo run -p quiver-message --example compile_proto > proto/message/src/wire.rs"
    );
    for (argument, left_out) in compile_proto::BODIES {
        let place = format!("{}/src/wire/{argument}.rs", env!("CARGO_MANIFEST_DIR"));
        let types = std::fs::read_to_string(place).expect("bodies");
        assert!(
            types == compile_proto::bodies(left_out),
            "cargo run -p quiver-message --example compile_proto {argument} > proto/message/src/wire/{argument}.rs"
        );
    }
    for (argument, path, names) in compile_proto::EXTENSIONS {
        let place = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
        let types = std::fs::read_to_string(place).expect("types of a feature");
        assert!(
            types == compile_proto::extension(names),
            "cargo run -p quiver-message --example compile_proto {argument} > {path}"
        );
    }
}
