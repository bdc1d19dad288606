//! Compares the table of messages that the models' tests read with the `.proto`.

use std::collections::BTreeMap;

use prost_types::DescriptorProto;

/// A row: number among the bodies of `Message`, and the fields by name and number.
type Row = (Option<i32>, Vec<(String, i32)>);

fn table() -> BTreeMap<String, Row> {
    let lines = include_str!("../../../models/messages.tsv").lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let [message, number, _, _, fields] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("five columns: {line}")
        };
        let field = |field: &str| {
            let (name, number) = field.trim_end_matches('!').split_once('=').expect("name=number");
            (name.to_string(), number.parse().expect("a number"))
        };
        (message.to_string(), (number.parse().ok(), fields.split(' ').map(field).collect()))
    };
    lines.map(row).collect()
}

/// The messages of the `.proto`, which have a number if a `Message` can have them as its body.
fn proto() -> BTreeMap<String, Row> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    let files = protox::compile(["quiver/v1/message.proto"], [folder]).expect("the .proto compiles").file;
    let messages: Vec<DescriptorProto> = files.into_iter().flat_map(|file| file.message_type).collect();
    let envelope = messages.iter().find(|message| message.name() == "Message").expect("the envelope");
    let numbers: BTreeMap<_, _> =
        envelope.field.iter().map(|field| (field.type_name(), field.number())).collect();
    let row = |message: &DescriptorProto| {
        let fields = message.field.iter().map(|field| (field.name().to_string(), field.number()));
        let number = numbers.get(format!(".quiver.v1.{}", message.name()).as_str()).copied();
        (message.name().to_string(), (number, fields.collect()))
    };
    messages.iter().filter(|message| message.name() != "Message").map(row).collect()
}

#[test]
fn messages_of_the_models_are_those_of_the_proto() {
    let (table, proto) = (table(), proto());
    for name in table.keys().chain(proto.keys()) {
        assert_eq!(table.get(name), proto.get(name), "models/messages.tsv and message.proto on {name}");
    }
    assert!(table.values().filter(|(number, _)| number.is_some()).count() > 30);
}
