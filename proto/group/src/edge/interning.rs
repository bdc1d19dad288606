//! What edges of one process may keep in memory once.

use alloc::sync::Arc;

use quiver_ainq::Suite;

use super::{Edge, Standing};

impl<S: Suite> Edge<S> {
    /// Lets the edge keep its newest header where others keep the same: all members of a group have an equal one of 400
    /// bytes and more, so a process that hosts thousands of them saves most of that.
    ///
    /// `shared` is shown the encoded header and gives one that is equal to keep in its place, or the same back. Any other is
    /// not taken. It is not called while the edge has no header. The leader's key, which the edge otherwise keeps decoded,
    /// is given up. How the edge behaves depends on neither.
    pub fn share_header(&mut self, shared: impl FnOnce(&Arc<[u8]>) -> Arc<[u8]>) {
        self.expected = None;
        let header = match &mut self.standing {
            Standing::Member(member) => Some(&mut member.header),
            _ => self.history.last_header(),
        };
        if let Some(header) = header {
            header.share(shared);
        }
    }
}
