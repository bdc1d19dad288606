//! The example of docs/contenders.md runs, and the document shows its traits.

#[path = "../examples/own_scheme.rs"]
mod own_scheme;

#[test]
fn the_example_takes_part_and_no_fault_is_found() {
    own_scheme::main().unwrap();
}

#[test]
fn the_document_names_what_the_example_implements() {
    let document = include_str!("../../../../docs/contenders.md");
    let example = include_str!("../examples/own_scheme.rs");
    for line in document
        .lines()
        .skip_while(|line| *line != "```rust ignore")
        .skip(1)
        .take_while(|line| *line != "```")
    {
        assert!(example.lines().any(|of| of == line), "not in the example: {line}");
    }
    assert!(document.contains("```rust ignore"));
    assert!(document.contains("own_scheme.rs"));
}
