//! Layouts of messages: the seed of their check sum and where their target stands.
//!
//! Frames of every dialect pass, known or not. This table only proves what a frame is: a check sum that fits
//! a known message's seed (`CRC_EXTRA`, a hash of its fields) says that its fields stand where the table has
//! them.

mod table;

use self::table::LAYOUTS;

/// Says that a message has no such field.
const NONE: u8 = 255;

/// Layout of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageLayout {
    /// Seed of the check sum.
    pub(crate) crc_extra: u8,
    /// Offset of `target_system` in the payload.
    pub(crate) target_system: Option<usize>,
    /// Offset of `target_component` in the payload.
    pub(crate) target_component: Option<usize>,
}

impl MessageLayout {
    /// The layout of message `id`, unless it is of a dialect that is not known.
    pub(crate) fn of(id: u32) -> Option<Self> {
        let index = LAYOUTS.binary_search_by_key(&id, |row| row.0).ok()?;
        let &(_, crc_extra, system, component) = LAYOUTS.get(index)?;
        let offset = |at: u8| (at != NONE).then_some(usize::from(at));
        Some(Self { crc_extra, target_system: offset(system), target_component: offset(component) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_so_that_every_row_is_found() {
        for row in LAYOUTS {
            assert_eq!(
                MessageLayout::of(row.0).map(|layout| layout.crc_extra),
                Some(row.1),
                "message {}",
                row.0
            );
        }
        assert_eq!(MessageLayout::of(0xff_ffff), None);
    }

    #[test]
    fn layouts_are_those_of_the_published_definitions() {
        // mavlink.io: HEARTBEAT has no target, COMMAND_LONG's stand behind seven floats and a number.
        assert_eq!(
            MessageLayout::of(0),
            Some(MessageLayout { crc_extra: 50, target_system: None, target_component: None })
        );
        assert_eq!(
            MessageLayout::of(76),
            Some(MessageLayout { crc_extra: 152, target_system: Some(30), target_component: Some(31) })
        );
    }
}
