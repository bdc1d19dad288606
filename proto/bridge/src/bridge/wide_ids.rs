//! Programs and system ids above 255: who knows them, who is told that others are not seen.
//!
//! MAVLink has no way to ask. A program shows that it knows wide ids by sending one. One that has sent MAVLink 1
//! alone does not know them, and neither does one of which the configuration says so: it is given no such frame.
//! All others are: what does not know the longer header drops the frame by its flags. Either way its operator is
//! told once, in words.

use quiver_mavlink::{Frame, MAX_NARROW_SYSTEM, Version};

/// Knowledge of a program's system ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knows {
    /// The program has sent nothing yet.
    New,
    /// The program has sent MAVLink 2 with ids up to 255.
    Unknown,
    /// The program has sent MAVLink 1, and nothing else.
    OnlyVersion1,
    /// The configuration says that it knows 8 bits alone.
    Narrow,
    /// The program has sent a wide id, or the configuration says that it knows them.
    Wide,
}

/// Knowledge of the program behind a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramIds {
    knows: Knows,
    is_told: bool,
}

/// Frames with system ids above 255 for the programs of an endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct WideFrames {
    /// Number given to programs of which it is not known whether they know such ids.
    pub(super) given: u64,
    /// Number kept from programs that do not.
    pub(super) kept: u64,
    /// Text that was told of the first.
    pub(super) told: Option<String>,
}

/// The first frame with a system id above 255 for a program that has shown none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    /// The system id.
    pub(super) system: u32,
    /// True if the frame is kept from the program.
    is_kept: bool,
}

impl ProgramIds {
    /// `configured`: whether the program knows wide ids, if the configuration says so.
    pub(super) const fn new(configured: Option<bool>) -> Self {
        let knows = match configured {
            None => Knows::New,
            Some(true) => Knows::Wide,
            Some(false) => Knows::Narrow,
        };
        Self { knows, is_told: false }
    }

    /// Notes what the program sent. A damaged frame shows nothing.
    pub(super) fn note(&mut self, frame: Frame<'_>) {
        self.knows = match self.knows {
            // A check sum proves that the program built it; a wrong one could be noise on the line.
            Knows::New | Knows::Unknown | Knows::OnlyVersion1 if frame.is_wide() && frame.is_proven() => {
                Knows::Wide
            }
            Knows::OnlyVersion1 if frame.version() == Version::V2 => Knows::Unknown,
            Knows::New if frame.version() == Version::V1 => Knows::OnlyVersion1,
            Knows::New => Knows::Unknown,
            same => same,
        };
    }

    /// Counts a frame for the program if it is wide and the program has shown no wide id. Returns what to tell, if
    /// it is the first.
    pub(super) fn meet(&mut self, frame: Frame<'_>, frames: &mut WideFrames) -> Option<Notice> {
        if !frame.is_wide() || self.knows == Knows::Wide {
            return None;
        }
        let is_kept = self.is_narrow();
        *(if is_kept { &mut frames.kept } else { &mut frames.given }) += 1;
        // Once for each program: its operator cannot do more about the next system.
        if std::mem::replace(&mut self.is_told, true) {
            return None;
        }
        let source = frame.system_id();
        let system =
            if source > MAX_NARROW_SYSTEM { source } else { frame.header_target().unwrap_or(source) };
        Some(Notice { system, is_kept })
    }

    /// Tells whether frames with wide ids are kept from the program.
    pub(super) const fn is_narrow(&self) -> bool {
        matches!(self.knows, Knows::Narrow | Knows::OnlyVersion1)
    }
}

impl Notice {
    /// Text for the program's operator: at most 50 bytes.
    pub(super) fn text(&self) -> String {
        let Self { system, is_kept } = self;
        if *is_kept {
            format!("Quiver: system {system} hidden: 8-bit program")
        } else {
            format!("Quiver: system {system} needs 32-bit ids")
        }
    }

    /// Text for the log and the status: endpoint, id and reason.
    pub(super) fn describe(&self, endpoint: &str) -> String {
        let Self { system, is_kept } = self;
        let what = if *is_kept {
            "is kept from the program there, which knows system ids of 8 bits alone"
        } else {
            "is dropped by the program there if it knows system ids of 8 bits alone, and it has shown no other"
        };
        format!(
            "{endpoint}: MAVLink of system {system} {what}: use a program that knows 32-bit system ids, or grant \
             an id up to 255"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEARTBEAT: &[u8] = b"\xfd\x09\0\0\0\x2a\xbf\0\0\0\x07\0\0\0\x02\x03\x51\x04\x03\x7f\x0a";

    fn wide(system: u32) -> Vec<u8> {
        let origin = quiver_mavlink::Origin { system, component: 1, sequence: 0 };
        quiver_mavlink::message::status_text(origin, quiver_mavlink::message::Severity::Info, "up")
    }

    fn meet(program: &mut ProgramIds, frame: &[u8], frames: &mut WideFrames) -> Option<Notice> {
        program.meet(Frame::parse(frame).unwrap(), frames)
    }

    #[test]
    fn a_program_that_shows_no_wide_id_is_told_once_and_counted_after_that() {
        let (mut program, mut frames) = (ProgramIds::new(None), WideFrames::default());
        assert_eq!(meet(&mut program, HEARTBEAT, &mut frames), None);
        let notice = meet(&mut program, &wide(u32::MAX), &mut frames).unwrap();
        assert_eq!(notice, Notice { system: u32::MAX, is_kept: false });
        assert!(notice.text().len() <= quiver_mavlink::message::MAX_STATUS_TEXT, "{}", notice.text());
        let said = notice.describe("udpin:127.0.0.1:14550");
        assert!(
            said.contains("udpin:127.0.0.1:14550") && said.contains("4294967295") && said.contains("8 bits")
        );
        assert_eq!(meet(&mut program, &wide(256), &mut frames), None);
        assert_eq!((frames.given, frames.kept), (2, 0));
        // It shows that it knows them.
        program.note(Frame::parse(&wide(70_000)).unwrap());
        assert_eq!(meet(&mut program, &wide(257), &mut frames), None);
        assert_eq!((frames.given, frames.kept), (2, 0));
    }

    #[test]
    fn a_damaged_frame_shows_no_wide_id() {
        let mut program = ProgramIds::new(None);
        let mut damaged = wide(70_000);
        *damaged.last_mut().unwrap() ^= 1;
        program.note(Frame::parse(&damaged).unwrap());
        assert!(meet(&mut program, &wide(70_001), &mut WideFrames::default()).is_some());
    }

    #[test]
    fn a_program_of_mavlink_1_or_one_that_is_configured_so_is_given_none() {
        let version_1 = b"\xfe\x09\x00\x2a\xbf\x00\x07\0\0\0\x02\x03\x51\x04\x03\x12\x3e";
        let mut of_version_1 = ProgramIds::new(None);
        of_version_1.note(Frame::parse(version_1).unwrap());
        for mut program in [of_version_1, ProgramIds::new(Some(false))] {
            let mut frames = WideFrames::default();
            let notice = meet(&mut program, &wide(u32::MAX), &mut frames).unwrap();
            assert!(notice.is_kept && program.is_narrow());
            assert!(notice.text().len() <= quiver_mavlink::message::MAX_STATUS_TEXT, "{}", notice.text());
            assert_eq!((frames.given, frames.kept), (0, 1));
        }
        // It sends MAVLink 2 after all.
        of_version_1.note(Frame::parse(HEARTBEAT).unwrap());
        assert!(!of_version_1.is_narrow());
        assert!(!ProgramIds::new(Some(true)).is_narrow());
    }
}
