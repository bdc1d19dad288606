//! Movements of nodes as ns-2's `setdest` writes them, and as BonnMotion does.
//!
//! ```text
//! ns-2        $node_(0) set X_ 83.4            where node 0 begins
//!             $node_(0) set Y_ 239.4
//!             $ns_ at 2.5 "$node_(0) setdest 89.6 283.4 1.37"    from then on to that place, at that speed
//!             $god_ …, set …, # …              ignored
//! BonnMotion  0.0 83.4 239.4 2.5 83.4 239.4 40.0 89.6 283.4     a line for each node: time, x, y, and so on
//! ```
//!
//! Times are seconds, places metres. A file's area has its origin at a corner; what is read has it in the middle of all
//! places, where leaders are.

use std::fmt::Write as _;
use std::time::Duration;

use super::FormatError;
use crate::trace::{DronePaths, DronePosition};

/// The most bytes of a file.
pub const MAX_FILE: usize = 256 << 20;
/// The most nodes.
pub const MAX_NODES: usize = 1 << 20;
/// The most places of all nodes together.
const MAX_PLACES: usize = 8 << 20;
/// The latest time in seconds: a year.
const MAX_SECONDS: f64 = 365.0 * 86_400.0;
/// The farthest place in metres.
const MAX_METRES: f64 = 1e9;
/// Letters of a word that an error shows.
const SHOWN: usize = 40;

/// A format of movements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovementFormat {
    /// The format of ns-2.
    Ns2,
    /// The format of BonnMotion.
    BonnMotion,
}

impl MovementFormat {
    /// The format that a file's name stands for: BonnMotion's is `.movements` or `.bm`, every other ns-2's.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        match name.rsplit('.').next() {
            Some("movements" | "bm") => Self::BonnMotion,
            _ => Self::Ns2,
        }
    }
}

/// Movements of nodes: straight lines from place to place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Movements {
    /// Paths by node, in order of time. At least one place each.
    paths: Vec<Vec<DronePosition>>,
}

struct Text<'a> {
    file: &'a str,
    line: usize,
    places: usize,
}

impl Text<'_> {
    fn at(&self, what: impl Into<String>) -> FormatError {
        FormatError::Line { file: self.file.into(), line: self.line, what: what.into() }
    }

    fn number(&self, word: &str, name: &str, most: f64) -> Result<f64, FormatError> {
        match word.parse::<f64>() {
            Ok(number) if number.abs() <= most => Ok(number),
            Ok(_) => Err(self.at(format!("{name} `{}` is not in -{most} to {most}", shown(word)))),
            Err(_) => Err(self.at(format!("{name} `{}` is no number", shown(word)))),
        }
    }

    fn time(&self, word: &str) -> Result<Duration, FormatError> {
        let seconds = self.number(word, "time", MAX_SECONDS)?;
        if seconds < 0.0 {
            return Err(self.at(format!("time `{}` is before the beginning", shown(word))));
        }
        Ok(Duration::from_secs_f64(seconds))
    }

    fn count(&mut self, places: usize) -> Result<(), FormatError> {
        self.places += places;
        if self.places > MAX_PLACES {
            return Err(self.at(format!("more than {MAX_PLACES} places")));
        }
        Ok(())
    }
}

fn shown(word: &str) -> String {
    word.chars().take(SHOWN).collect()
}

/// A node of ns-2 while its lines are read.
#[derive(Clone, Debug, Default)]
struct Ns2Node {
    /// Line that names it first.
    line: Option<usize>,
    x: Option<f64>,
    y: Option<f64>,
    /// Time, destination, speed.
    moves: Vec<(Duration, f64, f64, f64)>,
}

impl Movements {
    /// Reads a file of either format: a file of ns-2 has a `$` in it, one of BonnMotion has numbers alone.
    ///
    /// # Errors
    /// [`FormatError`] with the line and the word.
    pub fn read(file: &str, bytes: &[u8]) -> Result<Self, FormatError> {
        let whole = |what: String| FormatError::Whole { file: file.into(), what };
        if bytes.len() > MAX_FILE {
            return Err(whole(format!("{} bytes; at most {MAX_FILE} are read", bytes.len())));
        }
        if bytes.starts_with(&[0x1F, 0x8B]) {
            return Err(whole("is compressed: `gunzip` it first".into()));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line =
                bytes.get(..error.valid_up_to()).unwrap_or_default().split(|byte| *byte == b'\n').count();
            FormatError::Line { file: file.into(), line, what: "is no text".into() }
        })?;
        let source = Text { file, line: 0, places: 0 };
        let paths = if text.contains('$') { ns2(source, text)? } else { bonnmotion(source, text)? };
        if paths.is_empty() {
            return Err(whole("moves no node".into()));
        }
        Ok(Self { paths }.centred())
    }

    /// The places of a run; `None` if it has none.
    #[must_use]
    pub fn of_places(places: &DronePaths) -> Option<Self> {
        let paths: Vec<Vec<DronePosition>> =
            places.paths().iter().filter(|path| !path.is_empty()).cloned().collect();
        (!paths.is_empty()).then_some(Self { paths })
    }

    /// Movements along these paths, of which none is empty.
    #[must_use]
    pub(crate) fn of_paths(paths: Vec<Vec<DronePosition>>) -> Self {
        Self { paths: paths.into_iter().filter(|path| !path.is_empty()).collect() }.centred()
    }

    /// Paths by node, in order of time.
    #[must_use]
    pub fn paths(&self) -> &[Vec<DronePosition>] {
        &self.paths
    }

    /// The distance of the farthest place from the middle, along an axis.
    #[must_use]
    pub fn reach(&self) -> f64 {
        let all = self.paths.iter().flatten();
        all.map(|place| place.x.abs().max(place.y.abs())).fold(1.0, f64::max)
    }

    /// Time of the last place.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.paths.iter().filter_map(|path| path.last()).map(|place| place.at).max().unwrap_or_default()
    }

    /// Place of a node: it stays at its first place until it moves, and at its last place.
    #[must_use]
    pub fn at(&self, node: usize, time: Duration) -> Option<(f64, f64)> {
        let path = self.paths.get(node)?;
        let after = path.partition_point(|place| place.at <= time);
        let before = path.get(after.saturating_sub(1))?;
        let Some(next) = path.get(after).filter(|_| after > 0) else { return Some((before.x, before.y)) };
        let part =
            (time - before.at).as_secs_f64() / (next.at - before.at).as_secs_f64().max(f64::MIN_POSITIVE);
        Some((before.x + (next.x - before.x) * part, before.y + (next.y - before.y) * part))
    }

    /// The same with the middle of all places as its origin.
    fn centred(mut self) -> Self {
        let all = || self.paths.iter().flatten();
        let middle = |of: fn(&DronePosition) -> f64| {
            let (least, most) = all().map(of).fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
            f64::midpoint(least, most)
        };
        let (x, y) = (middle(|place| place.x), middle(|place| place.y));
        for place in self.paths.iter_mut().flatten() {
            (place.x, place.y) = (place.x - x, place.y - y);
        }
        self
    }

    /// The text of a file, its origin at a corner.
    #[must_use]
    pub fn write(&self, format: MovementFormat) -> String {
        let reach = self.reach();
        let corner = |place: &DronePosition| (place.x + reach, place.y + reach);
        let mut text = String::new();
        for (node, path) in self.paths.iter().enumerate() {
            match format {
                MovementFormat::BonnMotion => {
                    let words = path.iter().map(|place| {
                        let (x, y) = corner(place);
                        format!("{:.3} {x:.3} {y:.3}", place.at.as_secs_f64())
                    });
                    text.push_str(&words.collect::<Vec<_>>().join(" "));
                    text.push('\n');
                }
                MovementFormat::Ns2 => write_ns2(&mut text, node, path, corner),
            }
        }
        text
    }
}

fn write_ns2(
    text: &mut String,
    node: usize,
    path: &[DronePosition],
    corner: impl Fn(&DronePosition) -> (f64, f64),
) {
    let Some(first) = path.first() else { return };
    let (x, y) = corner(first);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "$node_({node}) set X_ {x:.3}\n$node_({node}) set Y_ {y:.3}\n$node_({node}) set Z_ 0.000"
    );
    for (from, to) in path.iter().zip(path.iter().skip(1)) {
        let (time, (x, y)) = ((to.at - from.at).as_secs_f64(), corner(to));
        let metres = (to.x - from.x).hypot(to.y - from.y);
        if metres > 0.0 && time > 0.0 {
            let (at, speed) = (from.at.as_secs_f64(), metres / time);
            let _ = writeln!(text, "$ns_ at {at:.6} \"$node_({node}) setdest {x:.3} {y:.3} {speed:.6}\"");
        }
    }
}

fn ns2(mut source: Text<'_>, text: &str) -> Result<Vec<Vec<DronePosition>>, FormatError> {
    let mut nodes: Vec<Ns2Node> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        source.line = number + 1;
        let line = line.trim();
        if line.starts_with("$node_(") {
            let (node, rest) = node_of(&source, line, &mut nodes)?;
            set_coordinate(&source, node, rest)?;
        } else if let Some(rest) = line.strip_prefix("$ns_ at ") {
            let (time, command) =
                rest.trim().split_once(' ').ok_or_else(|| source.at("`$ns_ at` has no command"))?;
            let command = command.trim();
            let command = match command.strip_prefix('"') {
                Some(quoted) => quoted.strip_suffix('"').ok_or_else(|| {
                    source.at(format!("`{}` is cut: its quotation mark has no end", shown(command)))
                })?,
                None => command,
            };
            let command = command.trim();
            if command.starts_with("$node_(") {
                source.count(2)?;
                let time = source.time(time)?;
                let (node, rest) = node_of(&source, command, &mut nodes)?;
                set_destination(&source, node, time, rest)?;
            } else if !command.starts_with("$god_") && !command.starts_with("$ns_") {
                return Err(source.at(format!("unknown command `{}`", shown(command))));
            }
        } else if !["", "#"].contains(&line)
            && !["$god_", "#", "set ", "$ns_ ", "puts "].iter().any(|known| line.starts_with(known))
        {
            return Err(source.at(format!("unknown line `{}`", shown(line))));
        }
    }
    let path = |(number, node): (usize, Ns2Node)| ns2_path(source.file, number, node);
    nodes.into_iter().enumerate().map(path).collect()
}

/// The node that `$node_(number)` names, and what follows.
fn node_of<'a, 'n>(
    source: &Text<'_>,
    text: &'a str,
    nodes: &'n mut Vec<Ns2Node>,
) -> Result<(&'n mut Ns2Node, &'a str), FormatError> {
    let named = text.strip_prefix("$node_(").and_then(|rest| rest.split_once(')'));
    let (number, rest) = named.ok_or_else(|| source.at(format!("`{}` names no node", shown(text))))?;
    let index = number.parse::<usize>().ok().filter(|index| *index < MAX_NODES);
    let index = index
        .ok_or_else(|| source.at(format!("node `{}` is not in 0 to {}", shown(number), MAX_NODES - 1)))?;
    if nodes.len() <= index {
        nodes.resize(index + 1, Ns2Node::default());
    }
    let node = nodes.get_mut(index).ok_or_else(|| source.at("no such node"))?;
    node.line.get_or_insert(source.line);
    Ok((node, rest.trim()))
}

fn set_coordinate(source: &Text<'_>, node: &mut Ns2Node, rest: &str) -> Result<(), FormatError> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let ["set", axis, value] = *words.as_slice() else {
        return Err(source.at(format!("`{}` is not `set X_ metres`", shown(rest))));
    };
    let metres = source.number(value, axis, MAX_METRES)?;
    match axis {
        "X_" => node.x = Some(metres),
        "Y_" => node.y = Some(metres),
        // Drones of the world have no height.
        "Z_" => {}
        other => return Err(source.at(format!("unknown axis `{}`", shown(other)))),
    }
    Ok(())
}

fn set_destination(
    source: &Text<'_>,
    node: &mut Ns2Node,
    time: Duration,
    rest: &str,
) -> Result<(), FormatError> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let ["setdest", x, y, speed] = *words.as_slice() else {
        return Err(source.at(format!("`{}` is not `setdest x y speed`", shown(rest))));
    };
    let (x, y) = (source.number(x, "x", MAX_METRES)?, source.number(y, "y", MAX_METRES)?);
    let metres_per_second = source.number(speed, "speed", MAX_METRES)?;
    if metres_per_second < 0.0 {
        return Err(source.at(format!("speed `{}` is negative", shown(speed))));
    }
    if node.moves.last().is_some_and(|(before, ..)| *before > time) {
        return Err(source.at("is earlier than the move of this node before it"));
    }
    node.moves.push((time, x, y, metres_per_second));
    Ok(())
}

/// Places of a node. A move that begins while another is under way begins where the node is then.
fn ns2_path(file: &str, number: usize, node: Ns2Node) -> Result<Vec<DronePosition>, FormatError> {
    let (Some(x), Some(y)) = (node.x, node.y) else {
        let (file, what) = (file.into(), format!("node {number} has no X_ and Y_ to begin with"));
        return Err(match node.line {
            Some(line) => FormatError::Line { file, line, what },
            // A node beyond it is named, and it is not.
            None => FormatError::Whole { file, what },
        });
    };
    let mut path = vec![DronePosition { at: Duration::ZERO, x, y }];
    let mut to: Option<DronePosition> = None;
    let mut here = DronePosition { at: Duration::ZERO, x, y };
    for (at, x, y, speed) in node.moves {
        here = match to.take() {
            Some(target) if target.at > at => {
                let part = (at - here.at).as_secs_f64() / (target.at - here.at).as_secs_f64();
                DronePosition {
                    at,
                    x: here.x + (target.x - here.x) * part,
                    y: here.y + (target.y - here.y) * part,
                }
            }
            Some(target) => {
                path.push(target);
                DronePosition { at, ..target }
            }
            None => DronePosition { at, ..here },
        };
        path.push(here);
        let seconds = (x - here.x).hypot(y - here.y) / speed;
        // Without speed it stands, and what lasts longer than any run never ends.
        if speed > 0.0 && seconds <= MAX_SECONDS {
            to = Some(DronePosition { at: at + Duration::from_secs_f64(seconds), x, y });
        }
    }
    path.extend(to);
    path.dedup();
    Ok(path)
}

fn bonnmotion(mut source: Text<'_>, text: &str) -> Result<Vec<Vec<DronePosition>>, FormatError> {
    let mut paths = Vec::new();
    for (number, line) in text.lines().enumerate() {
        source.line = number + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if paths.len() >= MAX_NODES {
            return Err(source.at(format!("more than {MAX_NODES} nodes")));
        }
        let mut path: Vec<DronePosition> = Vec::new();
        let mut words = line.split_whitespace();
        while let Some(time) = words.next() {
            let at = source.time(time)?;
            let mut metres = |name| {
                let word = words
                    .next()
                    .ok_or_else(|| source.at(format!("ends after time `{}`, without {name}", shown(time))))?;
                source.number(word, name, MAX_METRES)
            };
            let (x, y) = (metres("x")?, metres("y")?);
            if path.last().is_some_and(|before| before.at > at) {
                return Err(source.at(format!("time `{}` is before the one ahead of it", shown(time))));
            }
            path.push(DronePosition { at, x, y });
            source.count(1)?;
        }
        paths.push(path);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Movements as ns-2's manual has them, with an interrupted move.
    const NS2: &str = "#\n# nodes: 2, pause: 2.00, max speed: 10.00, max x: 100.00, max y: 100.00\n#\n\
        $node_(0) set X_ 0.0\n$node_(0) set Y_ 0.0\n$node_(0) set Z_ 0.0\n$node_(1) set X_ 100.0\n$node_(1) set Y_ 100.0\n\
        $node_(1) set Z_ 0.0\n$god_ set-dist 0 1 16777215\n$ns_ at 2.0 \"$node_(0) setdest 100.0 0.0 10.0\"\n\
        $ns_ at 7.0 \"$node_(0) setdest 50.0 50.0 25.0\"\n$ns_ at 3.0 \"$god_ set-dist 0 1 1\"\n";

    fn read(text: &str) -> Result<Movements, FormatError> {
        Movements::read("moves", text.as_bytes())
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn ns2_moves_are_followed_and_may_be_interrupted() {
        let moves = read(NS2).unwrap();
        assert_eq!(moves.paths().len(), 2);
        assert_eq!((moves.reach(), moves.end()), (50.0, seconds(9.0)));
        for (time, place) in [
            (0.0, (-50.0, -50.0)),
            (2.0, (-50.0, -50.0)),
            (4.5, (-25.0, -50.0)),
            (7.0, (0.0, -50.0)),
            (8.0, (0.0, -25.0)),
            (9.0, (0.0, 0.0)),
            (99.0, (0.0, 0.0)),
        ] {
            assert_eq!(moves.at(0, seconds(time)), Some(place), "{time}");
        }
        assert_eq!(moves.at(1, seconds(5.0)), Some((50.0, 50.0)));
        assert_eq!(moves.at(2, seconds(5.0)), None);
    }

    #[test]
    fn bonnmotion_lines_are_nodes() {
        let moves = read("0.0 0 0 10.0 0 100 20.0 200 100\n0 200 0\n").unwrap();
        assert_eq!(moves.at(0, seconds(5.0)), Some((-100.0, 0.0)));
        assert_eq!(moves.at(0, seconds(15.0)), Some((0.0, 50.0)));
        assert_eq!(moves.at(1, seconds(15.0)), Some((100.0, -50.0)));
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let moves = read(NS2).unwrap();
        for format in [MovementFormat::Ns2, MovementFormat::BonnMotion] {
            let again = read(&moves.write(format)).unwrap();
            for tenth in 0..120 {
                let time = seconds(f64::from(tenth) / 10.0);
                for node in [0, 1] {
                    let (a, b) = (moves.at(node, time).unwrap(), again.at(node, time).unwrap());
                    assert!((a.0 - b.0).hypot(a.1 - b.1) < 0.05, "{format:?} {time:?} {a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn wrong_files_are_refused_with_line_and_word() {
        for (text, expected) in [
            ("$node_(0) set X_ far", "moves:1: X_ `far` is no number"),
            ("$node_(0) set X_ 1\n$node_(0) set W_ 1", "moves:2: unknown axis `W_`"),
            ("\n$node_(0) set X_ 1", "moves:2: node 0 has no X_ and Y_ to begin with"),
            ("$node_(1) set X_ 1\n$node_(1) set Y_ 1", "moves: node 0 has no X_ and Y_ to begin with"),
            ("$node_(9999999) set X_ 1", "moves:1: node `9999999` is not in 0 to 1048575"),
            ("$node_(0 set X_ 1", "moves:1: `$node_(0 set X_ 1` names no node"),
            ("$ns_ at x \"$node_(0) setdest 1 1 1\"", "moves:1: time `x` is no number"),
            ("$ns_ at -1 \"$node_(0) setdest 1 1 1\"", "moves:1: time `-1` is before the beginning"),
            ("$ns_ at 1 \"$node_(0) setdest 1 1\"", "moves:1: `setdest 1 1` is not `setdest x y speed`"),
            ("$ns_ at 1 \"$node_(0) setdest 1 1 -1\"", "moves:1: speed `-1` is negative"),
            (
                "$ns_ at 2 \"$node_(0) setdest 1 1 1\"\n$ns_ at 1 \"$node_(0) setdest 1 1 1\"",
                "moves:2: is earlier than the move of this node before it",
            ),
            (
                "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$ns_ at 1 \"$node_(0) setdest 1 1 1",
                "moves:3: `\"$node_(0) setdest 1 1 1` is cut: its quotation mark has no end",
            ),
            ("$ns_ at 1 \"", "moves:1: `\"` is cut: its quotation mark has no end"),
            ("$ns_ at 1", "moves:1: `$ns_ at` has no command"),
            ("$ns_ at 1 \"finish\"", "moves:1: unknown command `finish`"),
            ("fly $away", "moves:1: unknown line `fly $away`"),
            ("0 1 1\n0 1", "moves:2: ends after time `0`, without y"),
            ("0 1 1 nan 2 2", "moves:1: time `nan` is not in -31536000 to 31536000"),
            ("5 1 1 4 2 2", "moves:1: time `4` is before the one ahead of it"),
            ("0 1 1e99", "moves:1: y `1e99` is not in -1000000000 to 1000000000"),
            ("", "moves: moves no node"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), expected, "{text}");
        }
        assert!(Movements::read("m", &[0x1F, 0x8B, 8]).unwrap_err().to_string().contains("gunzip"));
        assert_eq!(Movements::read("m", b"0 1 1\n\xFF").unwrap_err().to_string(), "m:2: is no text");
        assert!(Movements::read("m", &vec![b' '; MAX_FILE + 1]).unwrap_err().to_string().contains("at most"));
    }

    #[test]
    fn too_many_places_are_refused_with_the_line() {
        let mut source = Text { file: "moves", line: 7, places: MAX_PLACES - 1 };
        source.count(1).unwrap();
        assert_eq!(source.count(1).unwrap_err().to_string(), "moves:7: more than 8388608 places");
    }

    #[test]
    fn a_file_cut_anywhere_is_read_or_refused_with_a_line() {
        let bonnmotion = read(NS2).unwrap().write(MovementFormat::BonnMotion);
        for text in [NS2, &bonnmotion] {
            let mut refused = 0;
            for length in 1..text.len() {
                match read(&text[..length]) {
                    Ok(moves) => assert!(!moves.paths().is_empty()),
                    Err(FormatError::Line { line, .. }) => {
                        refused += 1;
                        assert!((1..=text.lines().count()).contains(&line));
                    }
                    Err(FormatError::Whole { what, .. }) => assert_eq!(what, "moves no node", "{length}"),
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(refused > text.len() / 4, "{refused} of {}", text.len());
        }
    }
}
