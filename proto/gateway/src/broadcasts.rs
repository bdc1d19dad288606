//! Coded broadcasts of a line: what is published to several of its boards by radio goes out once for all.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use quiver_link::BROADCAST;
use quiver_link::erasure::{Broadcaster, BroadcasterLimits};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::LineAddress;
use crate::line::Leaving;

/// Notices of boards that wait; beyond, boards send in their sessions what is published.
const WAITING: usize = 256;

/// Notice of a board's task to the broadcasts of its line.
#[derive(Debug)]
pub(crate) enum Notice {
    /// The board takes broadcasts of at most so many bytes. Broadcasts that it did not confirm go to
    /// `missed`.
    Takes { board: u16, longest: usize, missed: mpsc::Sender<Vec<u8>> },
    /// The board's session has ended.
    Gone { board: u16 },
    /// A message was published to the board. Since the last time, its session sent so many fragments, and
    /// repeated so many of these.
    Published { board: u16, message: Vec<u8>, sent: u64, repeated: u64 },
    /// The board has a broadcast.
    Has { board: u16, digest: [u8; 4] },
}

/// Event that woke a line's broadcasts.
enum BroadcastWakeup {
    Notice(Option<Notice>),
    Room,
    Time,
}

/// Broadcasts of one line.
pub(crate) struct LineBroadcasts {
    line: LineAddress,
    notices: mpsc::Receiver<Notice>,
    leaving: mpsc::Sender<Leaving>,
    begun: Instant,
    broadcaster: Broadcaster,
    boards: HashMap<u16, mpsc::Sender<Vec<u8>>>,
    /// A frame that waits for the line.
    pending: Option<Vec<u8>>,
    /// Broadcasts that have been logged.
    reported: u64,
}

impl LineBroadcasts {
    /// Makes the broadcasts of a line whose datagrams go to `leaving`, and the channel to which its boards
    /// send their notices.
    pub(crate) fn new(line: LineAddress, leaving: mpsc::Sender<Leaving>) -> (Self, mpsc::Sender<Notice>) {
        let (sender, notices) = mpsc::channel(WAITING);
        let broadcasts = Self {
            line,
            notices,
            leaving,
            begun: Instant::now(),
            broadcaster: Broadcaster::new(BroadcasterLimits::radio()),
            boards: HashMap::new(),
            pending: None,
            reported: 0,
        };
        (broadcasts, sender)
    }

    /// Serves the boards for ever. Cancel-safe.
    pub(crate) async fn serve(&mut self) -> Infallible {
        loop {
            self.settle();
            match self.wait().await {
                BroadcastWakeup::Notice(Some(notice)) => self.take(notice),
                // The line's boards hold the other end for as long as it is served.
                BroadcastWakeup::Notice(None) => std::future::pending().await,
                BroadcastWakeup::Room => {}
                BroadcastWakeup::Time => {
                    let now = self.now();
                    self.broadcaster.handle_timeout(now);
                }
            }
        }
    }

    async fn wait(&mut self) -> BroadcastWakeup {
        let timeout = self.broadcaster.timeout().map(|at| self.begun + at);
        tokio::select! {
            notice = self.notices.recv() => BroadcastWakeup::Notice(notice),
            room = self.leaving.reserve(), if self.pending.is_some() => {
                if let (Ok(room), Some(frame)) = (room, self.pending.take()) {
                    room.send((BROADCAST, frame));
                }
                BroadcastWakeup::Room
            }
            () = sleep_until(timeout.unwrap_or(self.begun)), if timeout.is_some() => BroadcastWakeup::Time,
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Makes the next frame, and gives boards what they did not confirm.
    fn settle(&mut self) {
        // One frame at a time, so that frames of sessions take their turn on the line.
        if self.pending.is_none() {
            let now = self.now();
            self.pending = self.broadcaster.poll_frame(now);
        }
        while let Some(missed) = self.broadcaster.poll_missed() {
            for board in missed.boards {
                self.send_in_session(board, missed.message.clone());
            }
        }
        let counters = self.broadcaster.counters();
        if std::mem::replace(&mut self.reported, counters.broadcasts) != counters.broadcasts {
            let loss = self.broadcaster.loss();
            tracing::debug!(line = %self.line, ?counters, loss, "broadcast");
        }
    }

    fn take(&mut self, notice: Notice) {
        let now = self.now();
        match notice {
            Notice::Takes { board, longest, missed } => {
                self.broadcaster.add(board, longest);
                // A session that began anew takes the place of the one before.
                self.boards.insert(board, missed);
            }
            Notice::Gone { board } => {
                self.broadcaster.remove(now, board);
                self.boards.remove(&board);
            }
            Notice::Published { board, message, sent, repeated } => {
                self.broadcaster.note_fragments(sent, repeated);
                // Too few boards take it, or too many messages wait.
                if !self.broadcaster.publish(now, board, &message) {
                    self.send_in_session(board, message);
                }
            }
            Notice::Has { board, digest } => self.broadcaster.confirm(now, board, digest),
        }
    }

    fn send_in_session(&self, board: u16, message: Vec<u8>) {
        if let Some(missed) = self.boards.get(&board) {
            // A task that is behind has lost it, as a line may.
            let _ = missed.try_send(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use quiver_link::erasure::{Assembler, AssemblerLimits, CodedFrame};

    use super::*;

    const MESSAGE: [u8; 600] = [5; 600];

    struct Line {
        notices: mpsc::Sender<Notice>,
        left: mpsc::Receiver<Leaving>,
        missed: Vec<mpsc::Receiver<Vec<u8>>>,
    }

    /// A line with as many boards that take broadcasts, at the addresses from 1 on.
    async fn line(boards: u16) -> Line {
        let (leaving, left) = mpsc::channel(2);
        let address = "tcp:127.0.0.1:1".parse().unwrap();
        let (mut broadcasts, notices) = LineBroadcasts::new(address, leaving);
        tokio::spawn(async move { broadcasts.serve().await });
        let mut missed = Vec::new();
        for board in 1..=boards {
            let (sender, receiver) = mpsc::channel(4);
            notices.send(Notice::Takes { board, longest: 4096, missed: sender }).await.unwrap();
            missed.push(receiver);
        }
        Line { notices, left, missed }
    }

    impl Line {
        async fn publish(&self, board: u16) {
            let notice = Notice::Published { board, message: MESSAGE.to_vec(), sent: 100, repeated: 20 };
            self.notices.send(notice).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_broadcast_serves_all_boards_and_who_does_not_confirm_it_is_sent_it() {
        let mut line = line(3).await;
        for board in 1..=3 {
            line.publish(board).await;
        }
        let mut assembler = Assembler::new(AssemblerLimits::new(4096));
        let (mut whole, mut frames) = (None, 0);
        while whole.is_none() {
            let (to, frame) = line.left.recv().await.unwrap();
            assert_eq!(to, BROADCAST);
            frames += 1;
            let digest = CodedFrame::decode(&frame).unwrap().digest;
            // Every third is lost.
            if frames % 3 != 0 {
                let message = assembler.handle_frame(Duration::ZERO, 0, &frame, |_| true);
                whole = message.map(|message| (digest, message));
            }
        }
        let (digest, message) = whole.unwrap();
        assert_eq!(message, MESSAGE);
        for board in 1..=2 {
            line.notices.send(Notice::Has { board, digest }).await.unwrap();
        }
        let drain = async { while line.left.recv().await.is_some() {} };
        let mut others = line.missed.split_off(2);
        tokio::select! {
            () = drain => panic!("the line goes on"),
            missed = others[0].recv() => assert_eq!(missed.unwrap(), MESSAGE),
        }
        assert!(line.missed.iter_mut().all(|missed| missed.try_recv().is_err()), "they have it");
    }

    #[tokio::test]
    async fn board_that_is_alone_is_served_in_its_session() {
        let mut line = line(1).await;
        line.publish(1).await;
        assert_eq!(line.missed[0].recv().await.unwrap(), MESSAGE);
        assert!(line.left.try_recv().is_err());
    }
}
