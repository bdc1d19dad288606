//! Positions of records: one behind the other in a ring of pages.

/// A run of bytes in the ring, which may go on at the ring's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Offset of the first byte, counted from the ring's beginning; a multiple of 4.
    pub(super) start: u32,
    /// Bytes used.
    pub(super) len: u32,
}

impl Span {
    /// Bytes taken: whole words.
    pub(super) const fn padded(self) -> usize {
        self.len.next_multiple_of(4) as usize
    }
}

/// The ring: where the next record goes, and which pages must not be erased.
#[derive(Debug)]
pub(super) struct Ring {
    /// Address of the ring in the region.
    base: u32,
    size: u32,
    page: u32,
    /// Position of the next record.
    head: u32,
    /// The record that must stay.
    kept: Option<Span>,
}

impl Ring {
    /// A ring of `size` bytes at `base`, both multiples of `page`.
    pub(super) const fn new(base: u32, size: u32, page: u32) -> Self {
        Self { base, size, page, head: 0, kept: None }
    }

    /// The longest record that fits wherever one of the same length is kept.
    ///
    /// A record of p pages touches at most p + 1 of the n pages. The next one may begin in the last of these,
    /// and erases at most p others.
    pub(super) const fn longest(&self) -> usize {
        ((self.size / self.page - 1) / 2 * self.page) as usize
    }

    /// Addresses of all pages.
    pub(super) fn pages(&self) -> impl Iterator<Item = u32> + use<> {
        (self.base..self.base + self.size).step_by(self.page as usize)
    }

    /// Returns true if there can be such a span.
    pub(super) fn holds(&self, span: Span) -> bool {
        span.start < self.size && span.start.is_multiple_of(4) && span.len <= self.size - self.page
    }

    /// The span in pieces that do not cross pages: address and whole words in bytes.
    pub(super) fn parts(&self, span: Span) -> impl Iterator<Item = (u32, usize)> + use<> {
        let (base, size, page) = (self.base, self.size, self.page);
        let mut at = span.start;
        let mut left = span.len.next_multiple_of(4);
        core::iter::from_fn(move || {
            let len = left.min(page - at % page);
            let part = (base + at % size, len as usize);
            (at, left) = (at + len, left - len);
            (len > 0).then_some(part)
        })
    }

    /// The next record's position; `None` if it would reach a page of the one that is kept.
    pub(super) fn reserve(&mut self, len: usize) -> Option<Span> {
        let len = u32::try_from(len).ok().filter(|len| *len <= self.size)?;
        let span = Span { start: self.head, len };
        let end = (self.head + len).next_multiple_of(self.page);
        let free = match self.kept {
            Some(kept) => (self.size + kept.start - kept.start % self.page - self.head) % self.size,
            None => self.size - self.page,
        };
        if end - self.head > free {
            return None;
        }
        self.head = self.end(span);
        Some(span)
    }

    /// Keeps this record from now on.
    pub(super) const fn keep(&mut self, span: Span) {
        self.kept = Some(span);
    }

    /// Goes on behind this record, which must stay. Returns the address behind it.
    pub(super) fn resume(&mut self, span: Span) -> u32 {
        self.kept = Some(span);
        self.head = self.end(span);
        self.base + self.head
    }

    /// The next record starts with a page of its own.
    pub(super) const fn skip_page(&mut self) {
        self.head = self.head.next_multiple_of(self.page) % self.size;
    }

    /// Tries again from behind the record that is kept.
    pub(super) fn rewind(&mut self) {
        if let Some(kept) = self.kept {
            self.head = self.end(kept);
        }
        self.skip_page();
    }

    /// Forgets the span that was kept.
    pub(super) const fn forget(&mut self) {
        self.kept = None;
        self.head = 0;
    }

    fn end(&self, span: Span) -> u32 {
        (span.start + span.len.next_multiple_of(4)) % self.size
    }
}
