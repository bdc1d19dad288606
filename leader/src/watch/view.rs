//! Draws a leader's status on a terminal.

use quiver_ainq::Epoch;
use quiver_service::clock;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Table};

use crate::control::{LaggardRow, LeaderStatusReply};

/// The view of one status.
pub(super) struct View<'a> {
    /// The newest status.
    pub(super) status: &'a LeaderStatusReply,
    /// Reason why it did not answer since, if it did not.
    pub(super) trouble: Option<&'a str>,
    /// Seconds since 1970.
    pub(super) now: u64,
}

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

impl View<'_> {
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let rows =
            [Constraint::Length(1), Constraint::Length(4), Constraint::Length(3), Constraint::Length(4)];
        let [title, epoch, wave, members, laggards, foot] =
            Layout::vertical(rows.into_iter().chain([Constraint::Min(0), Constraint::Length(1)]))
                .areas(frame.area());
        let name = self.status.name.as_deref().unwrap_or("not enrolled");
        let heading = format!("{} in {}: {}", name, self.status.group, self.status.role());
        frame.render_widget(Line::styled(heading, BOLD), title);
        frame.render_widget(framed(" epoch ", self.epoch()), epoch);
        self.draw_wave(frame, wave);
        frame.render_widget(framed(" members ", self.members()), members);
        self.draw_laggards(frame, laggards);
        frame.render_widget(self.foot(), foot);
    }

    fn epoch(&self) -> Vec<Line<'static>> {
        let status = self.status;
        let Some((term, counter)) = status.term.zip(status.counter) else {
            return vec![Line::raw("none in force")];
        };
        let digest = status.epoch_digest.as_deref().unwrap_or("-");
        let valid = match status.valid_until {
            Some(until) if until > self.now => Line::raw(format!(
                "valid for {}; revocation list {}",
                clock::span(until - self.now),
                status.revocation_list
            )),
            Some(until) => Line::styled(format!("expired {} ago", clock::span(self.now - until)), ALARM),
            None => Line::default(),
        };
        vec![Line::raw(format!("{}, digest {digest}", Epoch { term, counter })), valid]
    }

    /// Draws how many members acknowledged the newest key.
    fn draw_wave(&self, frame: &mut Frame<'_>, area: Rect) {
        let (acknowledged, keyed) = (self.status.acknowledged, self.status.keyed);
        let age = self.status.issued_at.map(|at| clock::span(self.now.saturating_sub(at)));
        let (ratio, label) = match age {
            None => (0.0, "no epoch".to_owned()),
            Some(age) if keyed == 0 => (0.0, format!("nobody to tell, {age} old")),
            Some(age) => {
                let ratio = (acknowledged as f64 / keyed as f64).clamp(0.0, 1.0);
                (ratio, format!("{acknowledged} of {keyed} acknowledged, {age} old"))
            }
        };
        let colour = if acknowledged == keyed { Color::Green } else { Color::Yellow };
        let gauge = Gauge::default()
            .block(Block::bordered().title(" re-key wave "))
            .gauge_style(Style::new().fg(colour))
            .ratio(ratio)
            .label(label);
        frame.render_widget(gauge, area);
    }

    fn members(&self) -> Vec<Line<'static>> {
        let status = self.status;
        if status.term.is_none() {
            return vec![Line::raw(format!("{} on the roster held", status.members))];
        }
        let keyless = status.members.saturating_sub(status.keyed);
        vec![
            Line::raw(format!(
                "{} on the roster, {} connected, {} behind",
                status.members,
                status.connected,
                status.keyed.saturating_sub(status.acknowledged)
            )),
            Line::raw(format!(
                "{keyless} away since before this term, {} waiting to join, deputies: {}",
                status.pending_joins, status.deputies
            )),
        ]
    }

    fn draw_laggards(&self, frame: &mut Frame<'_>, area: Rect) {
        if self.status.term.is_none() {
            return;
        }
        let late = self.status.members.saturating_sub(self.status.acknowledged);
        // Two lines of frame, one of heading.
        let room = usize::from(area.height.saturating_sub(3));
        let shown = self.status.laggards.iter().take(room);
        let rows: Vec<_> = shown.map(|late| Row::new(late.cells(self.status.counter, self.now))).collect();
        let title = format!(" behind: the worst {} of {late} ", rows.len());
        let widths = [
            Constraint::Length(8),
            Constraint::Min(12),
            Constraint::Length(10),
            Constraint::Length(16),
            Constraint::Length(16),
        ];
        let table = Table::new(rows, widths)
            .header(Row::new(LaggardRow::HEADING).style(BOLD))
            .block(Block::bordered().title(title));
        frame.render_widget(table, area);
    }

    fn foot(&self) -> Line<'static> {
        match self.trouble {
            Some(trouble) => Line::styled(format!("no answer, the above is old: {trouble}"), ALARM),
            None => Line::raw(format!("{}   q: quit", clock::format(self.now))),
        }
    }
}

fn framed<'a>(title: &'a str, lines: Vec<Line<'a>>) -> Paragraph<'a> {
    Paragraph::new(lines).block(Block::bordered().title(title))
}

#[cfg(test)]
mod tests {
    use quiver_service::deployment_file::KemSetting;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    const NOW: u64 = 1_769_860_800;

    fn late(slot: u32, connected: bool, acknowledged: Option<u64>, last_heard: Option<u64>) -> LaggardRow {
        LaggardRow { slot, name: Some(format!("edge-{slot}")), connected, acknowledged, last_heard }
    }

    fn status() -> LeaderStatusReply {
        let laggards = vec![
            late(1700, true, None, None),
            late(3, true, Some(16), Some(NOW - 75)),
            late(12, false, Some(2), Some(NOW - 90_061)),
        ];
        LeaderStatusReply {
            name: Some("leader-1".into()),
            group: "alpha".into(),
            serving: true,
            stance: "leading".into(),
            stands_by_for: None,
            replica: None,
            deputies: 1,
            term: Some(Epoch::term_of(3, 1)),
            counter: Some(17),
            epoch_digest: Some("00112233aabbccdd".into()),
            issued_at: Some(NOW - 4),
            valid_until: Some(NOW + 596),
            members: 2000,
            anonymous: 0,
            keyed: 1998,
            connected: 1990,
            acknowledged: 1500,
            pending_joins: 7,
            relays: 0,
            relayed: 0,
            revocation_list: 2,
            revocations_next_update: None,
            roster: Vec::new(),
            laggards,
            listening: Vec::new(),
            stalled: None,
            duplicate: None,
            kem: KemSetting::default(),
            classical: 0,
            features: serde_json::Map::new(),
        }
    }

    fn draw(status: &LeaderStatusReply, trouble: Option<&str>, width: u16, height: u16) -> TestBackend {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        let view = View { status, trouble, now: NOW };
        terminal.draw(|frame| view.draw(frame)).expect("drawn");
        terminal.backend().clone()
    }

    fn drawn(status: &LeaderStatusReply, trouble: Option<&str>, width: u16, height: u16) -> String {
        draw(status, trouble, width, height).to_string()
    }

    #[test]
    fn wave_and_laggards_are_shown() {
        insta::assert_snapshot!(drawn(&status(), None, 80, 22));
    }

    #[test]
    fn leader_that_stands_by_has_no_wave() {
        let nobody = LeaderStatusReply {
            stance: "standing by".into(),
            stands_by_for: Some("leader-0".into()),
            replica: Some("3-1.17".into()),
            deputies: 0,
            term: None,
            counter: None,
            epoch_digest: None,
            issued_at: None,
            valid_until: None,
            keyed: 0,
            connected: 0,
            acknowledged: 0,
            laggards: Vec::new(),
            ..status()
        };
        insta::assert_snapshot!(drawn(&nobody, None, 80, 18));
    }

    #[test]
    fn trouble_is_said_and_what_was_known_stays() {
        let text = drawn(&status(), Some("no leader is running"), 80, 22);
        assert!(text.contains("no answer, the above is old: no leader is running"), "{text}");
        assert!(text.contains("3-1.17, digest"), "{text}");
    }

    #[test]
    fn of_many_laggards_as_many_are_shown_as_fit() {
        let many = LeaderStatusReply {
            laggards: (0..100).map(|slot| late(slot, true, Some(16), None)).collect(),
            ..status()
        };
        let text = drawn(&many, None, 80, 30);
        assert!(
            text.contains("the worst 14 of 500") && text.contains("edge-13 ") && !text.contains("edge-14 "),
            "{text}"
        );
    }

    #[test]
    fn no_terminal_is_too_small() {
        for (width, height) in [(0, 0), (1, 1), (20, 3), (300, 100)] {
            draw(&status(), None, width, height);
        }
    }
}
