//! The types that the package declares are those of the extension module, and the module is built without an
//! interpreter. Python's tests, which `.ci/libraries` runs, call it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Names that follow a keyword at the beginning of a line of this part of a source.
fn names(source: &str, keyword: &str) -> BTreeSet<String> {
    let declared = source.lines().filter_map(|line| line.trim_start().strip_prefix(keyword));
    declared
        .map(|line| line.chars().take_while(|sign| sign.is_alphanumeric() || *sign == '_').collect())
        .collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file of this package")
}

#[test]
fn every_method_of_a_drone_has_its_types_declared_and_no_other_has() {
    let (module, types) = (read("src/lib.rs"), read("python/quiver/_quiver.pyi"));
    let methods = module.split_once("#[pymethods]").expect("methods").1;
    let methods = methods.split_once("\n}").expect("their end").0;
    let declared = types.split_once("class Edge:").expect("the class").1;
    let declared = declared.split("\nclass ").next().expect("a part");
    let mut methods = names(methods, "fn ");
    assert!(methods.remove("new") && methods.len() > 5, "{methods:?}");
    methods.insert("__init__".into());
    let mut declared = names(declared, "def ");
    if declared.remove("__new__") {
        declared.insert("__init__".into());
    }
    assert_eq!(methods, declared);
}

#[test]
fn library_beside_this_test_is_a_module_of_python() {
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.with_file_name("lib_quiver.so");
    let bytes = fs::read(&library).expect("cargo builds it for this test");
    let exported = b"PyInit__quiver\0";
    assert!(bytes.windows(exported.len()).any(|part| part == exported));
}
