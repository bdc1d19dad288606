//! Encodes frames of group messages as gossipsub does, and some that it does not.

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits");
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [vec![tag << 3 | 2], varint(bytes.len()), bytes.to_vec()].concat()
}

/// A group message; with a field that none of this group's has, if it is `wrong`.
#[must_use]
pub fn message(topic: &str, data: &[u8], wrong: bool) -> Vec<u8> {
    let from = if wrong { field(1, b"x") } else { Vec::new() };
    field(2, &[field(2, data), field(4, topic.as_bytes()), from].concat())
}

/// A subscription.
#[must_use]
pub fn subscription(topic: &str) -> Vec<u8> {
    field(1, &[vec![1 << 3, 1], field(2, topic.as_bytes())].concat())
}

/// All of it in one frame.
#[must_use]
pub fn rpc(parts: &[Vec<u8>]) -> Vec<u8> {
    let parts = parts.concat();
    [varint(parts.len()), parts].concat()
}

/// Announcement of a frame of so many bytes.
#[must_use]
pub fn announced(length: usize) -> Vec<u8> {
    varint(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_protobuf() {
        assert_eq!([0, 1, 127, 128, 300].map(varint).concat(), [0, 1, 127, 0x80, 1, 0xac, 2]);
        // RPC { publish: [Message { data: "d", topic: "t", from: "x" }] }, by the tags and wire types of protobuf.
        let wrong = [11, 18, 9, 18, 1, b'd', 34, 1, b't', 10, 1, b'x'];
        assert_eq!(rpc(&[message("t", b"d", true)]), wrong);
        assert_eq!(rpc(&[subscription("t")]), [7, 10, 5, 8, 1, 18, 1, b't']);
    }
}
