//! Bytes that ranks exchange: numbers big-endian, byte strings with their length before them.

/// Writes a message.
#[derive(Debug, Default)]
pub(crate) struct RankWriter(pub(crate) Vec<u8>);

impl RankWriter {
    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub(crate) fn bool(&mut self, value: bool) -> &mut Self {
        self.u8(value.into())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn fixed(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.u64(bytes.len() as u64).fixed(bytes)
    }
}

/// Reads a message. Every method gives `None` at the end.
#[derive(Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.fixed().map(u8::from_be_bytes)
    }

    pub(crate) fn bool(&mut self) -> Option<bool> {
        Some(self.u8()? != 0)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.fixed().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.fixed().map(u64::from_be_bytes)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u64()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_a_cut_message_is_not() {
        let mut writer = RankWriter::default();
        writer.u8(1).bool(true).u32(2).u64(3).fixed(&[4; 3]).bytes(b"five");
        let read = |bytes: &[u8]| -> Option<()> {
            let mut reader = Reader(bytes);
            assert_eq!(reader.u8()?, 1);
            assert!(reader.bool()?);
            assert_eq!((reader.u32()?, reader.u64()?), (2, 3));
            assert_eq!(reader.fixed::<3>()?, [4; 3]);
            assert_eq!(reader.bytes()?, b"five");
            reader.is_empty().then_some(())
        };
        assert!(read(&writer.0).is_some());
        assert!((0..writer.0.len()).all(|cut| read(writer.0.get(..cut).unwrap()).is_none()));
        assert_eq!(Reader(&u64::MAX.to_be_bytes()).bytes(), None);
    }
}
