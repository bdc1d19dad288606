//! The bridge's fields in the status of its drone, for people, and which of them are counters.

use quiver_bridge::BridgeStatus;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Field of a status that has the bridge's.
pub(crate) const STATUS: &str = "mavlink";

/// Numbers that grow all the time, below that field: a line for each would be a line for each question.
const COUNTERS: [&str; 11] = [
    "frames",
    "datagrams",
    "sent",
    "received",
    "dropped",
    "forwarded",
    "heard_ago",
    "written",
    "bytes",
    "lost",
    "withheld",
];

/// The row about the bridge in a status for people.
pub(crate) fn row(status: &Map<String, Value>) -> Option<(&'static str, String)> {
    Some((STATUS, BridgeStatus::deserialize(status.get(STATUS)?).ok()?.describe()))
}

/// Removes what grows all the time.
pub(crate) fn remove_counters(status: &mut Map<String, Value>) {
    if let Some(bridge) = status.get_mut(STATUS) {
        remove_from(bridge);
    }
}

fn remove_from(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !COUNTERS.contains(&key.as_str()));
            fields.values_mut().for_each(remove_from);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_from),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counters_are_no_change_and_everything_else_is() {
        let status = |frames: u64, open: bool, sent: u64| {
            json!({
                "synced": true,
                "sent": sent,
                "mavlink": {
                    "open": open,
                    "frames": { "to group: passed": frames },
                    "carriers": [{ "carrier": "udp", "sent": [frames, frames] }],
                    "senders": [{ "slot": 3, "heard_ago": frames }],
                },
            })
        };
        let settled = |status: &Value| {
            let mut status = status.clone();
            status.as_object_mut().map(remove_counters);
            status
        };
        let same = |one: &Value, other: &Value| settled(one) == settled(other);
        assert!(same(&status(1, true, 0), &status(2, true, 0)));
        assert!(!same(&status(1, true, 0), &status(1, false, 0)));
        // Outside of MAVLink everything counts.
        assert!(!same(&status(1, true, 0), &status(1, true, 1)));
        assert!(!same(&status(1, true, 0), &json!({ "unreachable": "gone" })));
    }
}
