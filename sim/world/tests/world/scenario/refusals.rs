//! Files that are refused, with the place of the fault.

use quiver_world::scenario::{ReadOptions, Scenario};

use super::{read, with};

/// The complaint about a small scenario with these lines from line 8 on.
fn complaint(lines: &str) -> String {
    read(&with(lines)).unwrap_err().to_string()
}

#[test]
fn unknown_keys_are_refused_with_file_line_and_key() {
    let complaint = complaint("colour = \"red\"\n");
    assert!(
        complaint.starts_with("dir/test.toml:8:1: fleet.colour: unknown field `colour`, expected one of"),
        "{complaint}"
    );
    let complaint = self::complaint("[[event]]\nat = \"5s\"\nexplode = [\"edge-3\"]\n");
    assert!(
        complaint.starts_with("dir/test.toml:10:1: event.explode: unknown field `explode`"),
        "{complaint}"
    );
    let complaint = self::complaint(
        "[[event]]\nat = \"5s\"\ncrash = { nodes = [\"edge-3\"], down = \"1s\", up = \"2s\" }\n",
    );
    assert!(complaint.starts_with("dir/test.toml:10:44: event.crash.up: unknown field `up`"), "{complaint}");
    let complaint = self::complaint("[weather]\nwind = 3\n");
    assert!(complaint.starts_with("dir/test.toml:8:2: weather: unknown field `weather`"), "{complaint}");
}

#[test]
fn impossible_values_are_refused_with_file_line_and_key() {
    for (lines, expected) in [
        ("[links]\nloss = 1.5\n", "dir/test.toml:9:8: links.loss: 1.5 is not a probability from 0 to 1"),
        ("[links]\nloss = nan\n", "dir/test.toml:9:8: links.loss: NaN is not a probability from 0 to 1"),
        (
            "[radio]\npreset = \"zigbee\"\n",
            "dir/test.toml:9:10: radio.preset: unknown radio \"zigbee\": expected",
        ),
        ("[radio]\npreset = \"ble\"\nrounds = 0\n", "dir/test.toml:10:10: radio.rounds: 0 is not in 1 to 16"),
        (
            "[radio]\npreset = \"ble\"\nspread = 2.5\n",
            "dir/test.toml:10:10: radio.spread: 2.5 is not in 1 to 2",
        ),
        (
            "[radio]\npreset = \"ble\"\nrepeats = { imin = \"1s\", doublings = 1, k = 1, intervals = 1 }\n",
            "dir/test.toml:10:11: radio.repeats: nobody is out of range without `spread`",
        ),
        (
            "[radio]\npreset = \"ble\"\nspread = 1.5\nrepeats = { imin = \"1s\", doublings = 1, k = 0, intervals = 1 }\n",
            "dir/test.toml:11:11: radio.repeats: not an interval from a millisecond to a day",
        ),
        (
            "[links]\nburst = { rate = 0.9, length = 1.0 }\n",
            "dir/test.toml:9:9: links.burst: no channel loses 0.9 of its frames in bursts of 1 frames",
        ),
        ("[[event]]\nat = \"3m\"\nrekey = true\n", "dir/test.toml:9:6: event.at: 3m is not in 0s to 2m"),
        (
            "[[event]]\nat = \"soon\"\nrekey = true\n",
            "dir/test.toml:9:6: event.at: \"soon\" is not a length of time",
        ),
        (
            "[[event]]\nat = \"5s\"\nleave = [\"edge-10\"]\n",
            "dir/test.toml:10:10: event.leave: edge-10: there are 10 edges, numbered from 0",
        ),
        (
            "[[event]]\nat = \"5s\"\nleave = [\"leader-1\"]\n",
            "dir/test.toml:10:9: event.leave: leader-1 is not an edge",
        ),
        (
            "[[event]]\nat = \"5s\"\nstop = [\"leader-2\"]\n",
            "dir/test.toml:10:9: event.stop: leader-2: there are 2 leaders",
        ),
        (
            "[[event]]\nat = \"5s\"\nstop = [\"bob\"]\n",
            "dir/test.toml:10:9: event.stop: unknown node \"bob\"",
        ),
        ("[[event]]\nat = \"5s\"\nstop = []\n", "dir/test.toml:10:8: event.stop: names no node"),
        ("[[event]]\nat = \"5s\"\n", "dir/test.toml:8:1: event: does nothing"),
        (
            "[[event]]\nat = \"5s\"\nrekey = true\nheal = true\n",
            "dir/test.toml:8:1: event: does several things",
        ),
        (
            "[[event]]\nat = \"90s\"\nrepeat = { every = \"20s\", times = 3 }\nrekey = true\n",
            "dir/test.toml:10:10: event.repeat: continues after the duration of 2m",
        ),
        (
            "[[event]]\nat = \"9s\"\nrepeat = { every = \"0s\", times = 3000000 }\nrekey = true\n",
            "dir/test.toml:10:20: event.repeat.every: 0s is not in 1ms to 2m",
        ),
        (
            "[[event]]\nat = \"9s\"\ncrash = { nodes = [\"edge-3\"], down = \"1000years\" }\n",
            "dir/test.toml:10:38: event.crash.down: 365250days is not in 0s to 30days",
        ),
        (
            "[[event]]\nat = \"5s\"\nleave = [\"edge-3..1\"]\n",
            "dir/test.toml:10:10: event.leave: edge-3..1: the smaller number comes first; say edge-1..3",
        ),
        (
            "[mavlink]\nframes-per-second = 0.0\n",
            "dir/test.toml:9:21: mavlink.frames-per-second: 0 is not in 0.01 to 1000",
        ),
        (
            "[mavlink]\nframe-bytes = [21, 64]\n",
            "dir/test.toml:9:15: mavlink.frame-bytes: are not 1 to 64 lengths from 21 to 63",
        ),
        (
            "[mavlink]\nbit-rate = 99\n",
            "dir/test.toml:9:12: mavlink.bit-rate: 99 is not in 100 to 1000000000",
        ),
        (
            "[radio]\npreset = \"lora-sf12\"\n[mavlink]\n",
            "dir/test.toml:10:1: mavlink: lora-sf12 carries 51 bytes in a frame; the longest of these in a",
        ),
        (
            "strangers = 239\n[mavlink]\n",
            "dir/test.toml:9:1: mavlink: 251 edges and leaders: MAVLink has 250",
        ),
        (
            "[admission]\n[mavlink]\n",
            "dir/test.toml:9:1: mavlink: drones that join anonymously have no system ids",
        ),
        (
            "[expect.mavlink]\nmax-unopened = 0\n",
            "dir/test.toml:8:1: expect.mavlink: there is no table [mavlink]",
        ),
        (
            "[[event]]\nat = \"5s\"\ndisk = { nodes = [\"kgc\"], state = \"failing\" }\n",
            "dir/test.toml:10:35: event.disk.state: how many writes fail?",
        ),
    ] {
        let complaint = complaint(lines);
        assert!(complaint.starts_with(expected), "{complaint}\n(expected {expected})");
    }
}

#[test]
fn missing_and_mistyped_things_are_refused_with_their_line() {
    let complaint = read("title = \"x\"\nabout = \"\"\nduration = \"1m\"\nsettle = \"1m\"\n").unwrap_err();
    assert!(complaint.to_string().contains("missing field `fleet`"), "{complaint}");
    let complaint = self::complaint("strangers = \"many\"\n");
    assert!(complaint.starts_with("dir/test.toml:8:13: fleet.strangers: invalid type"), "{complaint}");
    let complaint = self::complaint("off = [\"edge-1\"\n");
    assert!(complaint.starts_with("dir/test.toml:"), "{complaint}");
    assert!(read("").unwrap_err().to_string().starts_with("dir/test.toml:1:1: "));
}

#[test]
fn fleets_too_large_for_memory_or_the_protocol_are_refused_at_their_number() {
    let text = with("").replace("members = 10", "members = 1000000");
    let small = ReadOptions { memory: Some(1 << 30), ..ReadOptions::default() };
    let complaint = Scenario::parse("big.toml", &text, small).unwrap_err().to_string();
    assert!(complaint.starts_with("big.toml:6:11: fleet.members: 1000000 drones need about"), "{complaint}");
    assert!(complaint.ends_with("there are 1024 MB"), "{complaint}");
    let large = ReadOptions { memory: Some(1 << 40), ..ReadOptions::default() };
    assert_eq!(Scenario::parse("big.toml", &text, large).unwrap().setup.members, 1_000_000);
    for (members, place) in [("0", "6:11"), ("2000000", "6:11"), ("-1", "6:11"), ("1e9", "6:11")] {
        let text = with("").replace("members = 10", &format!("members = {members}"));
        let complaint = read(&text).unwrap_err().to_string();
        assert!(complaint.starts_with(&format!("dir/test.toml:{place}: fleet.members: ")), "{complaint}");
    }
}

#[test]
fn places_count_characters_and_not_bytes() {
    let complaint = complaint("# ü\n[links]\nburst = { rate = 0.5, länge = 3 }\n");
    assert!(complaint.starts_with("dir/test.toml:10:"), "{complaint}");
    let text = with("").replace("\"Test\"", "\"Täuschung\"").replace("members = 10", "members = 0");
    assert!(read(&text).unwrap_err().to_string().starts_with("dir/test.toml:6:11: "));
}

/// Each of these asks for more than fits into memory, so that a count that is checked too late ends the process.
#[test]
fn counts_beyond_all_bounds_are_refused_before_there_are_as_many() {
    let month = with("").replace("duration = \"2m\"", "duration = \"30days\"");
    for (lines, expected) in [
        (
            "[[event]]\nat = \"5s\"\nreplay = { nodes = [\"edge-1\"], messages = 4294967295 }\n",
            "dir/test.toml:10:10: event.replay: makes more than 5000000 actions, the most of a file",
        ),
        (
            "[[event]]\nat = \"5s\"\nrepeat = { every = \"1ms\", times = 600000 }\ntalk = { nodes = [\"edges\"] }\n",
            "dir/test.toml:8:1: event: makes more than 5000000 actions, the most of a file",
        ),
        (
            "[churn]\nfrom = \"0s\"\nuntil = \"30days\"\nedges = [\"edges\"]\nleaves-per-minute = 100000.0\n",
            "dir/test.toml:8:1: churn: makes more than 5000000 actions, the most of a file",
        ),
        (
            "[mobility]\nfrom = \"0s\"\nuntil = \"30days\"\nedges = [\"edges\"]\nside-metres = 100.0\nrange-metres = 50.0\n\
             metres-per-second = 5.0\nstep = \"10ms\"\n",
            "dir/test.toml:8:1: mobility: moves 10 drones 259200000 times: at most 49",
        ),
    ] {
        let complaint = read(&format!("{month}{lines}")).unwrap_err().to_string();
        assert!(complaint.starts_with(expected), "{complaint}\n(expected {expected})");
    }
}

#[test]
fn lengths_of_time_are_shown_in_days_and_not_in_months_of_no_fixed_length() {
    for (duration, shown) in [
        ("31days", "31days is not in 1s to 30days"),
        ("750h 1m", "31days 6h 1m is not in 1s to 30days"),
        ("10ms", "10ms is not in 1s to 30days"),
    ] {
        let text = with("").replace("duration = \"2m\"", &format!("duration = \"{duration}\""));
        let complaint = read(&text).unwrap_err().to_string();
        assert!(complaint.ends_with(shown), "{complaint}");
    }
}
