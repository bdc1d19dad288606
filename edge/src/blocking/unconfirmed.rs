//! Messages that were handed to the leader's connection and are not confirmed yet.

use quiver_service::drone::send::Handed;

use super::{Error, ErrorKind, Result};

/// All messages since the last confirmation.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    newest: Option<Handed>,
    /// True if earlier ones went over another connection, which can confirm nothing any more.
    elsewhere: bool,
    /// True if earlier ones were sealed under another key. Of those nobody can say any more whether they were
    /// read.
    rekeyed: bool,
}

impl Unconfirmed {
    /// A message was handed over.
    pub(super) fn note(&mut self, handed: Handed) {
        self.elsewhere |= self.newest.is_some_and(|newest| newest.leader != handed.leader);
        self.rekeyed |= self.newest.is_some_and(|newest| newest.epoch != handed.epoch);
        self.newest = Some(handed);
    }

    /// Takes the messages that are to be confirmed, if there are any.
    ///
    /// # Errors
    /// If some of it cannot be.
    pub(super) fn take(&mut self) -> Result<Option<Handed>> {
        let Self { newest, elsewhere, rekeyed } = std::mem::take(self);
        if elsewhere {
            let text = "the connection to the leader has changed: messages sent before that may be lost";
            return Err(Error::new(ErrorKind::Failed, text));
        }
        if rekeyed {
            let text = "the group's key has changed: messages sent before that may be lost";
            return Err(Error::new(ErrorKind::Failed, text));
        }
        Ok(newest)
    }
}

#[cfg(test)]
mod tests {
    use quiver_machine::Peer;

    use super::*;

    const fn handed(leader: u64) -> Handed {
        Handed { connections: 1, leader: Some(Peer(leader)), epoch: None }
    }

    #[test]
    fn newest_message_stands_for_all_over_its_connection_and_for_none_over_another() {
        let mut unconfirmed = Unconfirmed::default();
        assert_eq!(unconfirmed.take().expect("nothing"), None);
        unconfirmed.note(handed(1));
        unconfirmed.note(handed(1));
        assert_eq!(unconfirmed.take().expect("one connection"), Some(handed(1)));
        assert_eq!(unconfirmed.take().expect("nothing"), None, "it was taken");
        unconfirmed.note(handed(1));
        unconfirmed.note(handed(2));
        assert_eq!(unconfirmed.take().expect_err("lost").kind(), ErrorKind::Failed);
        assert_eq!(unconfirmed.take().expect("nothing"), None, "it was told");
    }

    #[test]
    fn newest_message_stands_for_none_under_another_key() {
        let mut unconfirmed = Unconfirmed::default();
        for epoch in [[1; 32], [2; 32], [2; 32]] {
            unconfirmed.note(Handed { epoch: Some(epoch), ..handed(1) });
        }
        assert_eq!(unconfirmed.take().expect_err("lost").kind(), ErrorKind::Failed);
        unconfirmed.note(Handed { epoch: Some([2; 32]), ..handed(1) });
        let kept = unconfirmed.take().expect("one key").and_then(|newest| newest.epoch);
        assert_eq!(kept, Some([2; 32]), "the leader is to prove this one");
    }
}
