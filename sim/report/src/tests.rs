//! Every form of one tiny report.

use std::fs;
use std::time::{Duration, SystemTime};

use roxmltree::{Document, Node};

use super::*;

fn table() -> Table {
    let columns = vec![
        Column::text("operation", "operation"),
        Column::new("drones", "drones", Unit::Count),
        Column::new("published_seconds", "published", Unit::Seconds),
        Column::new("ours_seconds", "ours", Unit::Seconds),
        Column::new("ratio", "published / ours", Unit::Times).strong(),
    ];
    let mut table = Table::new("tiny", "What <tiny> things take & why", columns);
    let ratio = CellValue::ratio(Some(59.386), Some(0.05));
    table.push(vec!["form".into(), 2000_u32.into(), 59.386.into(), 0.05.into(), ratio]);
    table.push(vec!["new \"thing\"".into(), 1_u32.into(), CellValue::Missing, 1.25e-5.into()]);
    table.notes.push("Medians of 5.".into());
    table
}

fn plot() -> Plot {
    let points = vec![(1.0, 0.043), (2000.0, 59.386)];
    let published = Series::new("published", Ink::Published, points).dashed();
    let ours = Series::new("ours", Ink::Flat, vec![(1.0, 1e-5), (2000.0, 0.05)]);
    let axes = (Axis::log("drones", Unit::Count), Axis::log("time", Unit::Seconds));
    Plot::single("tiny-growth", "How <tiny> things grow", axes.0, axes.1, vec![published, ours])
}

fn sample() -> Report {
    Report {
        slug: "tiny".into(),
        title: "A tiny report <script>alert(1)</script>".into(),
        lead: vec!["It has one of everything.".into()],
        highlights: vec![Highlight {
            what: "Forming a group".into(),
            figure: "1,190 ×".into(),
            beside: "59.4 s published, 50.0 ms here".into(),
        }],
        experiments: vec![Experiment {
            slug: "one".into(),
            title: "One experiment".into(),
            about: vec!["About it.".into()],
            published: vec!["Two figures.".into()],
            method: vec!["By hand.".into()],
            differences: vec!["Everything.".into()],
            plots: vec![plot()],
            tables: vec![table()],
        }],
        sources: vec![Publication {
            citation: "Somebody, 2021.".into(),
            link: "https://example.org/paper".into(),
        }],
        machine: Machine {
            cpu: "Test CPU".into(),
            cores: 2,
            memory: Some(24_000_000_000),
            system: "Test Linux, x86_64".into(),
            rustc: "rustc 1.0.0".into(),
            commit: "0123456789abcdef0123456789abcdef01234567".into(),
            optimised: true,
        },
        date: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000),
        version: "0.1.0".into(),
        command: "sim reproduce tiny".into(),
        passed: None,
        files: Vec::new(),
    }
}

#[test]
fn terminal_shows_every_figure_with_its_unit() {
    insta::assert_snapshot!(sample().terminal(), @r#"
    A tiny report <script>alert(1)</script>
      Forming a group: 1,190 × (59.4 s published, 50.0 ms here)

    What <tiny> things take & why
    ┌─────────────┬────────┬───────────┬─────────┬──────────────────┐
    │ operation   ┆ drones ┆ published ┆    ours ┆ published / ours │
    ╞═════════════╪════════╪═══════════╪═════════╪══════════════════╡
    │ form        ┆  2,000 ┆    59.4 s ┆ 50.0 ms ┆          1,190 × │
    │ new "thing" ┆      1 ┆         – ┆ 12.5 µs ┆                – │
    └─────────────┴────────┴───────────┴─────────┴──────────────────┘
      Medians of 5.

    Test CPU, 2 cores, Test Linux, x86_64, rustc 1.0.0
    "#);
}

#[test]
fn page_is_well_formed_and_escapes_what_it_is_given() {
    let xml = xml(&sample().page().unwrap());
    let page = Page::parse(&xml);
    assert_eq!(page.texts("h1"), ["A tiny report <script>alert(1)</script>"]);
    assert_eq!(page.texts("caption"), ["What <tiny> things take & why"]);
    assert_eq!(page.texts("figcaption"), ["How <tiny> things grow"]);
    let cells = page.texts("td");
    assert_eq!(cells[..5], ["form", "2,000", "59.4 s", "50.0 ms", "1,190 ×"]);
    assert_eq!(cells[5..], ["new \"thing\"", "1", "–", "12.5 µs", "–"]);
    assert!(page.texts("title").contains(&"How <tiny> things grow".into()));
    assert!(page.texts("p").contains(&"Quiver 0.1.0 · 2001-09-09 01:46:40 UTC".into()));
}

#[test]
fn page_needs_nothing_beside_it() {
    let text = sample().page().unwrap();
    let xml = xml(&text);
    let page = Page::parse(&xml);
    for name in ["script", "link", "iframe", "img", "image", "use", "object", "embed", "base"] {
        assert_eq!(page.texts(name), Vec::<String>::new(), "{name}");
    }
    assert!(!text.contains("url(") && !text.contains("@import"));
    let fetching = |attribute: &str| ["src", "srcset", "data", "href", "xlink:href"].contains(&attribute);
    let links: Vec<_> =
        page.attributes().into_iter().filter(|(_, attribute, _)| fetching(attribute)).collect();
    let link = |target: &str| ("a".to_string(), "href".to_string(), target.to_string());
    assert_eq!(links, [link("#one"), link("https://example.org/paper")]);
}

#[test]
fn every_colour_of_a_drawing_follows_the_paper() {
    let page = sample().page().unwrap();
    let drawing = svg::render(&plot(), svg::Format::Wide).unwrap();
    let document = Document::parse(&drawing).unwrap();
    let mut colours = 0;
    for node in document.descendants() {
        for property in ["fill", "stroke"] {
            let colour = node.attribute(property).filter(|colour| *colour != "none");
            let Some(colour) = colour else { continue };
            let rule = format!("figure svg [{property}=\"{colour}\"]{{{property}:var(");
            assert!(page.contains(&rule), "{rule}");
            colours += 1;
        }
    }
    assert!(colours > 20, "{colours}");
}

#[test]
fn page_has_each_drawing_for_wide_screens_and_for_narrow_ones() {
    let text = sample().page().unwrap();
    let xml = xml(&text);
    let page = Page::parse(&xml);
    let classes: Vec<String> = page
        .attributes()
        .into_iter()
        .filter(|(name, key, _)| name == "div" && key == "class")
        .map(|(_, _, class)| class)
        .filter(|class| class == "wide" || class == "narrow")
        .collect();
    assert_eq!(classes, ["wide", "narrow"]);
    // Neither demands more room than there is.
    assert!(!text.contains("min-width: 40rem"), "a drawing scrolls");
    let narrow = svg::render(&plot(), svg::Format::Narrow).unwrap();
    let document = Document::parse(&narrow).unwrap();
    let width: f64 = document.root_element().attribute("width").unwrap().parse().unwrap();
    assert!(width <= 480.0, "{width}");
    // All words begin and end within it, at 0.62 em for a letter.
    for node in document.descendants().filter(|node| is(*node, "text")) {
        let number = |name| node.attribute(name).and_then(|value| value.parse::<f64>().ok());
        let long = words(node).trim().chars().count() as f64 * 0.62 * number("font-size").unwrap();
        if node.attribute("transform").is_some() {
            continue;
        }
        let from = match node.attribute("text-anchor") {
            Some("middle") => number("x").unwrap() - long / 2.0,
            Some("end") => number("x").unwrap() - long,
            _ => number("x").unwrap(),
        };
        assert!(from >= 0.0 && from + long <= width, "{:?} from {from} to {}", words(node), from + long);
    }
}

#[test]
fn json_has_the_figures_unrounded() {
    let value: serde_json::Value = serde_json::from_str(&sample().json()).unwrap();
    assert_eq!(value["date"], "2001-09-09T01:46:40Z");
    let rows = &value["experiments"][0]["tables"][0]["rows"];
    assert_eq!(rows[0][2], 59.386);
    assert_eq!(rows[1][2], serde_json::Value::Null);
    assert_eq!(value["machine"]["cpu"], "Test CPU");
    assert_eq!(value["machine"]["commit"], "0123456789abcdef0123456789abcdef01234567");
}

#[test]
fn files_go_to_a_folder_of_their_own_every_time() {
    let results = tempfile::tempdir().unwrap();
    let first = sample().write_under(results.path()).unwrap();
    let second = sample().write_under(results.path()).unwrap();
    assert!(first.ends_with("2001-09-09T01-46-40Z-tiny"), "{first:?}");
    assert_ne!(first, second);
    let mut names: Vec<_> = fs::read_dir(&second)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["report.html", "report.json", "tiny-growth.svg", "tiny.csv"]);
    assert_eq!(fs::read_to_string(second.join("tiny.csv")).unwrap(), table().csv());
}

#[test]
fn report_takes_the_place_of_its_earlier_state_and_its_folder_the_new_name() {
    let results = tempfile::tempdir().unwrap();
    let unfinished = Report { slug: "tiny-unfinished".into(), ..sample() };
    let before = unfinished.write_under(results.path()).unwrap();
    let same = unfinished.write_over(results.path(), &before).unwrap();
    assert_eq!(same, before);
    let after = Report { title: "Whole".into(), ..sample() }.write_over(results.path(), &same).unwrap();
    assert!(!before.exists() && after.to_str().unwrap().ends_with("-tiny"), "{after:?}");
    assert!(fs::read_to_string(after.join("report.html")).unwrap().contains("Whole"));
    assert_eq!(results.path().join("latest").canonicalize().unwrap(), after.canonicalize().unwrap());
    let drafts = fs::read_dir(&after)
        .unwrap()
        .filter(|file| file.as_ref().unwrap().file_name().to_str().unwrap().starts_with('.'));
    assert_eq!(drafts.count(), 0);
    let index = fs::read_to_string(results.path().join("index.html")).unwrap();
    assert!(!index.contains("tiny-unfinished"), "{index}");
}

#[test]
fn runs_are_listed_the_newest_first_and_what_is_no_run_is_left_out() {
    let results = tempfile::tempdir().unwrap();
    for (name, content) in [("notes", None), ("2000-broken", Some("{\"title\": ")), ("2000-list", Some("[]"))]
    {
        fs::create_dir(results.path().join(name)).unwrap();
        if let Some(text) = content {
            fs::write(results.path().join(name).join("summary.json"), text).unwrap();
        }
    }
    let run = |title: &str, date, passed| {
        let report = Report { title: title.into(), date, passed, ..sample() };
        report.write_under(results.path()).unwrap().file_name().unwrap().to_str().unwrap().to_owned()
    };
    let date = sample().date;
    let old = run("Old", date, Some(false));
    let new = run("New <script>", date + Duration::from_secs(60), None);
    let index = fs::read_to_string(results.path().join("index.html")).unwrap();
    let xml = xml(&index);
    let page = Page::parse(&xml);
    assert_eq!(page.texts("a"), ["New <script>", "Old"]);
    let links: Vec<String> =
        page.attributes().into_iter().filter(|(_, key, _)| key == "href").map(|(_, _, to)| to).collect();
    assert_eq!(links, [format!("{new}/report.html"), format!("{old}/report.html")]);
    assert!(index.contains("FAILED") && !index.contains("broken") && !index.contains("<script>"), "{index}");
    assert_eq!(fs::read_link(results.path().join("latest")).unwrap().to_str(), Some(new.as_str()));
}

#[test]
fn run_whose_files_cannot_be_written_leaves_no_folder_and_stays_off_the_list() {
    let results = tempfile::tempdir().unwrap();
    let name = RunName { started: sample().date, what: "../a b", passed: Some(true) };
    let full = || ReportError::File { path: "x".into(), source: std::io::ErrorKind::StorageFull.into() };
    let failed = write_run(results.path(), name, |folder| write(folder, "a", "1").and(Err(full())));
    assert!(failed.is_err());
    assert_eq!(fs::read_dir(results.path()).unwrap().count(), 0);
    let folder = write_run::<ReportError>(results.path(), name, |_| Ok(())).unwrap();
    assert!(folder.ends_with("2001-09-09T01-46-40Z-..-a-b-passed"), "{folder:?}");
}

#[test]
fn things_are_counted_in_the_singular_and_the_plural() {
    let drones = [0_u32, 1, 2].map(|count| counted(count, "drone"));
    assert_eq!(drones, ["0 drones", "1 drone", "2 drones"]);
}

#[test]
fn unwritable_results_are_an_error_that_names_the_path() {
    let results = tempfile::tempdir().unwrap();
    let file = results.path().join("file");
    fs::write(&file, "").unwrap();
    let error = sample().write_under(&file).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
    let error = make_room(&file).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
}

#[test]
fn room_for_results_is_made_and_left_empty() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("deep/results");
    make_room(&results).unwrap();
    assert_eq!(fs::read_dir(&results).unwrap().count(), 0);
}

/// Elements that HTML writes without an end.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];
/// Elements that end a paragraph for a browser.
const BLOCKS: [&str; 20] = [
    "article",
    "aside",
    "blockquote",
    "details",
    "div",
    "dl",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "header",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "ul",
];

/// The page as XML, which is stricter than HTML: an element that is not closed, or closed twice, and a sign
/// that is not escaped are errors. Only elements that HTML never closes are closed.
fn xml(page: &str) -> String {
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a document type");
    let mut xml = String::with_capacity(page.len());
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("a tag ends");
        let name = rest[start + 1..].split([' ', '>', '/']).next().unwrap();
        xml.push_str(&rest[..end]);
        xml.push_str(if VOID.contains(&name) { "/>" } else { ">" });
        rest = &rest[end + 1..];
    }
    xml + rest
}

/// A page that holds to XML's rules, and to those of HTML on what may be within what.
struct Page<'a>(Document<'a>);

impl<'a> Page<'a> {
    fn parse(xml: &'a str) -> Self {
        let page = Document::parse(xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
        let all = |name: &'static str| page.descendants().filter(move |node| is(*node, name));
        let within =
            |parent: Node<'_, '_>, name: &str| parent.descendants().skip(1).any(|node| is(node, name));
        for paragraph in all("p") {
            let block = BLOCKS.iter().find(|block| within(paragraph, block));
            assert_eq!(block, None, "within <p>");
        }
        assert!(!all("a").any(|link| within(link, "a")), "a link within a link");
        for (child, parents) in [
            ("td", &["tr"][..]),
            ("th", &["tr"]),
            ("tr", &["thead", "tbody"]),
            ("thead", &["table"]),
            ("tbody", &["table"]),
            ("caption", &["table"]),
            ("li", &["ol", "ul"]),
            ("dt", &["dl", "div"]),
            ("dd", &["dl", "div"]),
            ("figcaption", &["figure"]),
        ] {
            for node in all(child) {
                let parent = node.parent().unwrap().tag_name().name();
                assert!(parents.contains(&parent), "<{child}> within <{parent}>");
            }
        }
        let top: Vec<_> = page.root_element().children().map(|node| node.tag_name().name()).collect();
        assert_eq!(top, ["head", "body"]);
        Self(page)
    }

    /// The words in every element of this name.
    fn texts(&self, name: &str) -> Vec<String> {
        self.0.descendants().filter(|node| is(*node, name)).map(words).collect()
    }

    /// Element, attribute, value.
    fn attributes(&self) -> Vec<(String, String, String)> {
        let of = |node: Node<'_, '_>| {
            let name = node.tag_name().name().to_string();
            let attributes = node.attributes();
            attributes.map(|it| (name.clone(), it.name().into(), it.value().into())).collect::<Vec<_>>()
        };
        self.0.descendants().flat_map(of).collect()
    }
}

fn is(node: Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

fn words(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|text| text.text()).collect()
}
