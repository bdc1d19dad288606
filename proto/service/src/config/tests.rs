//! Layers, lists, numbers and addresses: which wins, and what is refused with key and place.

use super::*;

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Sample {
    #[serde(deserialize_with = "list")]
    listen: Vec<String>,
    group: String,
    seconds: u32,
}

impl Default for Sample {
    fn default() -> Self {
        Self { listen: vec!["a".into()], group: "default".into(), seconds: 1 }
    }
}

#[derive(Serialize)]
struct Given {
    group: Option<String>,
    listen: Vec<String>,
    seconds: bool,
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("tempfile");
    std::fs::write(file.path(), text).expect("write");
    file
}

fn read_file(path: &Path, group: Option<&str>) -> Result<Sample> {
    let common = CommonArgs { config: Some(path.into()), ..CommonArgs::default() };
    let given = Given { group: group.map(String::from), listen: Vec::new(), seconds: false };
    let mut layers = Layers::read(&common, "unset")?.flags(&given)?;
    let sample = layers.part(Sample::default())?;
    layers.end()?;
    Ok(sample)
}

fn read(text: &str, group: Option<&str>) -> Result<Sample> {
    read_file(file(text).path(), group)
}

#[test]
fn flags_win_over_the_file_and_the_file_over_defaults() {
    let text = "group = \"file\"\nlisten = \"x, y\"";
    let found = read(text, None).expect("good");
    let lines = read("listen = \"x\\ny\\n\"", None).expect("good");
    assert_eq!(lines.listen, found.listen);
    assert_eq!(found, Sample { listen: vec!["x".into(), "y".into()], group: "file".into(), seconds: 1 });
    assert_eq!(read(text, Some("flag")).expect("good").group, "flag");
}

#[test]
fn unknown_key_is_refused_with_key_and_file_named() {
    let file = file("gruop = \"typo\"");
    let error = read_file(file.path(), None).expect_err("refused");
    let text = error.to_string();
    assert!(text.contains("gruop") && text.contains(&file.path().display().to_string()), "{text}");
}

#[test]
fn wrong_type_is_refused_with_the_key_named() {
    let text = read("seconds = \"soon\"", None).expect_err("refused").to_string();
    assert!(text.contains("seconds") && text.contains("expected a whole number"), "{text}");
}

#[test]
fn number_out_of_its_range_is_refused_with_the_range() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Numbers {
        #[serde(deserialize_with = "whole::<_, 2, 5>")]
        one: u32,
        #[serde(deserialize_with = "optional_whole::<_, 1, 9>")]
        other: Option<u32>,
    }
    let read = |text: &str| {
        let file = file(text);
        let common = CommonArgs { config: Some(file.path().into()), ..CommonArgs::default() };
        Layers::read(&common, "unset").expect("read").part(Numbers { one: 3, other: None })
    };
    for (text, key, range) in [
        ("one = 1", "one", "from 2 to 5"),
        ("one = -1", "one", "from 2 to 5"),
        ("one = 6", "one", "from 2 to 5"),
        ("one = 99999999999", "one", "from 2 to 5"),
        ("one = 3.5", "one", "from 2 to 5"),
        ("one = \"3\"", "one", "from 2 to 5"),
        ("other = 0", "other", "from 1 to 9"),
        ("other = 10", "other", "from 1 to 9"),
        ("other = \"\"", "other", "from 1 to 9"),
    ] {
        let told = read(text).expect_err("refused").to_string();
        let wanted = format!("expected a whole number {range}");
        assert!(told.contains(&format!("key `{key}`")) && told.contains(&wanted), "{text}: {told}");
    }
    assert_eq!(read("one = 5\nother = 9").expect("good"), Numbers { one: 5, other: Some(9) });
    assert_eq!(read("").expect("good"), Numbers { one: 3, other: None });
}

#[test]
fn text_that_stands_in_a_list_twice_is_refused_in_each_layer() {
    for text in ["listen = [\"x\", \"y\", \"x\"]", "listen = \"x, y, x\"", "listen = \"x\\nx\""] {
        let told = read(text, None).expect_err("refused").to_string();
        assert!(told.contains("key `listen`: x stands there twice"), "{text}: {told}");
    }
    let file = file("");
    let common = CommonArgs { config: Some(file.path().into()), ..CommonArgs::default() };
    let given = Given { group: None, listen: vec!["x".into(), "x".into()], seconds: false };
    let mut layers = Layers::read(&common, "unset").and_then(|layers| layers.flags(&given)).expect("read");
    let told = layers.part(Sample::default()).expect_err("refused").to_string();
    assert!(told.contains("x stands there twice"), "{told}");
}

#[test]
fn file_that_is_no_toml_is_refused_with_the_line_and_without_a_key() {
    let file = file("seconds = 1\ngroup");
    let text = read_file(file.path(), None).expect_err("refused").to_string();
    assert!(text.starts_with(&format!("configuration: {}: ", file.path().display())), "{text}");
    assert!(text.contains("line 2") && !text.contains("key ``"), "{text}");
}

#[test]
fn address_of_metrics_is_that_of_one_machine_in_a_file_too() {
    let read = |address: &str| {
        let file = file(&format!("metrics = \"{address}\""));
        let common = CommonArgs { config: Some(file.path().into()), ..CommonArgs::default() };
        Layers::read(&common, "unset").expect("read").part(ServiceSettings::of("unset"))
    };
    for (address, complaint) in [
        ("224.0.0.1:9464", "no address of one machine"),
        ("255.255.255.255:9464", "no address of one machine"),
        ("[ff02::1]:9464", "no address of one machine"),
        ("9464", "such as 127.0.0.1:9464"),
    ] {
        let text = read(address).expect_err("refused").to_string();
        assert!(text.contains("key `metrics`") && text.contains(complaint), "{address}: {text}");
    }
    assert_eq!(read("0.0.0.0:0").expect("good").metrics, Some(([0, 0, 0, 0], 0).into()));
}

#[test]
fn directory_is_refused_as_one() {
    let text = read_file(Path::new("/"), None).expect_err("refused").to_string();
    assert_eq!(text, "/ is a directory, not a file");
}

#[derive(Serialize, Deserialize, Debug, Default, PartialEq)]
struct Nested {
    inner: Inner,
    format: LogFormat,
}

#[derive(Serialize, Deserialize, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
struct Inner {
    addresses: Vec<String>,
}

#[test]
fn unknown_fields_and_words_are_told_in_one_pair_of_quotes_each() {
    let refused = |text: &str| {
        let file = file(text);
        let common = CommonArgs { config: Some(file.path().into()), ..CommonArgs::default() };
        let mut layers = Layers::read(&common, "unset").expect("read");
        layers.part(Nested::default()).expect_err("refused").to_string()
    };
    let field = refused("inner.adresses = []");
    assert!(field.ends_with("unknown field `adresses`, expected one of `addresses`"), "{field}");
    let word = refused("format = \"xml\"");
    assert!(word.ends_with("key `format`: `xml` is not one of `text`, `json`"), "{word}");
}

#[test]
fn place_of_a_key_is_told_if_it_is_set() {
    let file = file("group = \"alpha\"");
    let common = CommonArgs { config: Some(file.path().into()), ..CommonArgs::default() };
    let layers = Layers::read(&common, "unset").expect("read");
    assert_eq!(layers.place_of("group"), Some(format!("{}: key `group`", file.path().display())));
    assert_eq!(layers.place_of("listen"), None);
}

#[test]
fn missing_file_is_refused() {
    let error = read_file(Path::new("/nonexistent.toml"), None);
    assert!(error.expect_err("refused").to_string().contains("/nonexistent.toml"));
}

#[test]
fn address_in_another_form_is_told_the_form() {
    for (text, form) in [
        ("7302", "write HOST:PORT, /ip4/ADDRESS/tcp/PORT or /dns4/NAME/tcp/PORT"),
        ("/ip4/10.0.0.1/udp/7001/quic-v1", "write /ip4/10.0.0.1/tcp/7001"),
        ("/dns4/a/udp/7001/quic-v1/p2p/12D3", "write /dns4/a/tcp/7001"),
        ("tcp://a:1", "write HOST:PORT, /ip4/ADDRESS/tcp/PORT or /dns4/NAME/tcp/PORT"),
    ] {
        assert_eq!(address_form(text), form, "{text}");
    }
}
