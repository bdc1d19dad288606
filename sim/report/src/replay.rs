//! A replay as one HTML page: plays a trace on a canvas with a script of its own; fetches nothing.
//!
//! The trace is the last thing in the file, and a mark after it says how long it is: of a file that was cut
//! short the page shows that, and not a part as if it were the whole.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::page::{STYLE, metadata};

const REPLAY_STYLE: &str = include_str!("replay/style.css");
const PLAYER: &str = include_str!("replay/player.js");

/// States of a drone, as the player names them, with what they mean.
const STATES: [(&str, &str, &str); 5] = [
    ("current", "current", "has the newest key"),
    ("behind", "behind", "has an older key"),
    ("out", "out", "has no key"),
    ("captured", "captured", "adversary has a copy"),
    ("down", "off", "is not running"),
];

/// Icons of the buttons: paths in a square of 16.
const BACK: &str = "M3 2h2v12H3zM14 2v12L6 8z";
const PLAY: &str = "M4 2l10 6-10 6z";
const NEXT: &str = "M2 2l8 6-8 6zM11 2h2v12h-2z";

/// A run to be played again.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Title of the page.
    pub title: String,
    /// Description of the run, for readers.
    pub about: String,
    /// Version of the program that ran it.
    pub version: String,
    /// The command that makes the page again.
    pub command: String,
    /// Failures of the run.
    pub failures: Vec<String>,
    /// Parts that are left out.
    pub left_out: Vec<String>,
    /// The trace as JSON, as the player reads it.
    pub trace: String,
}

impl Replay {
    /// The page.
    #[must_use]
    pub fn page(&self) -> String {
        // The only sequence that could end the element early.
        let trace = self.trace.replace('<', "\\u003c");
        // As the browser counts.
        let length = trace.encode_utf16().count();
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    (metadata(&self.title))
                }
                body {
                    // Before all that can be cut off: stays unless everything is there.
                    p #notice role="alert" {
                        "This replay cannot be shown: its file was cut short, or scripts are off. It is made again by "
                        code { (self.command) }
                    }
                    style { (PreEscaped(STYLE)) (PreEscaped(REPLAY_STYLE)) }
                    header { (self.opening()) }
                    main #player hidden { (player()) }
                    footer { (self.closing()) }
                    script { (PreEscaped(PLAYER)) }
                    script #trace type="application/json" { (PreEscaped(trace)) }
                    p #end hidden data-length=(length) {}
                }
            }
        };
        page.into_string()
    }

    fn opening(&self) -> Markup {
        html! {
            p.kicker { "Quiver " (self.version) " · replay" }
            h1 { (self.title) }
            @if !self.about.is_empty() { p.about { (self.about) } }
            @if !self.failures.is_empty() {
                div.warning role="status" {
                    p { "FAILED. The replay goes until the run ended." }
                    ul { @for failure in &self.failures { li { (failure) } } }
                }
            }
            @for left_out in &self.left_out { p.warning { (left_out) } }
        }
    }

    fn closing(&self) -> Markup {
        html! {
            p {
                kbd { "Space" } " plays and pauses, " kbd { "←" } " " kbd { "→" } " go to the event before and after, "
                kbd { "↑" } " " kbd { "↓" } " change the speed, " kbd { "Home" } " " kbd { "End" } " go to either end. "
                "Click on a drone for its story. A message is drawn for four tenths of a second at least, however "
                "short it was under way. A captured drone is filled while it has the newest key; a broken ring is around one "
                "that hears no leader."
            }
            p { "Made by " code { (self.command) } ". One seed gives one page." }
        }
    }
}

fn icon(path: &str) -> Markup {
    html! { svg viewBox="0 0 16 16" width="15" height="15" aria-hidden="true" { path d=(path) fill="currentColor" {} } }
}

fn player() -> Markup {
    html! {
        div.stage {
            canvas #map role="img" aria-label="The swarm: drones by state of their key, and messages between them" {}
            p #clock { "0.000 s" }
            p #reign {}
            p #tip hidden {}
            p #drawn hidden {}
        }
        aside.side {
            h2 { "Drones" }
            ul #states {
                @for (state, name, meaning) in STATES {
                    li {
                        canvas data-state=(state) width="20" height="20" aria-hidden="true" {}
                        span.name { (name) } span.meaning { (meaning) } b #{ "count-" (state) } { "0" }
                    }
                }
            }
            h2 { "Messages" }
            ul #purposes {}
            h2 { label for="who" { "Story of" } }
            select #who { option value="" { "nobody: choose, or click on the map" } }
            ol #story aria-label="What befell it until now" {}
        }
        div.time {
            canvas #line aria-hidden="true" {}
            input #seek type="range" min="0" max="1000" value="0" step="any" aria-label="Time";
            div.controls {
                button #back type="button" aria-label="To the event before" { (icon(BACK)) }
                button #play type="button" aria-label="Play" { (icon(PLAY)) }
                button #next type="button" aria-label="To the next event" { (icon(NEXT)) }
                label { "Speed " select #speed {} }
                label { input #skip type="checkbox" checked; " skip quiet times" }
                output #now {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(trace: &str) -> String {
        let replay = Replay {
            title: "One & all".into(),
            about: "What happens.".into(),
            version: "0.0.0".into(),
            command: "sim scenario x".into(),
            failures: vec!["agreement at 3 s".into()],
            left_out: vec!["Much is left out.".into()],
            trace: trace.into(),
        };
        replay.page()
    }

    #[test]
    fn page_fetches_nothing_and_says_what_failed_and_what_is_left_out() {
        let page = sample("{}");
        for shown in ["One &amp; all", "agreement at 3 s", "Much is left out.", "sim scenario x"] {
            assert!(page.contains(shown), "{shown}");
        }
        for fetched in ["src=", "href=", "url(", "@import", "import(", "fetch(", "http"] {
            assert!(!page.contains(fetched), "{fetched}");
        }
    }

    #[test]
    fn trace_is_last_and_its_length_is_that_which_the_browser_counts() {
        let page = sample(r#"{"title":"</script> 🛸 é"}"#);
        let (_, rest) = page.split_once(r#"<script id="trace" type="application/json">"#).unwrap();
        let (trace, rest) = rest.split_once("</script>").unwrap();
        assert_eq!(trace, r#"{"title":"\u003c/script> 🛸 é"}"#);
        let length = trace.chars().map(char::len_utf16).sum::<usize>();
        assert_eq!(rest, format!(r#"<p id="end" hidden data-length="{length}"></p></body></html>"#));
    }
}
