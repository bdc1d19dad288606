//! Counts bytes that came and that nobody has read yet, and stops reading from connections that have too many.
//!
//! A peer decides what it sends, and how slowly. Its bytes wait in a stream that no handler reads yet, or in
//! a message of which the end is missing. Each connection has an [`UnreadBytes`] of such bytes, and a node has a
//! [`UnreadBudget`] for all connections of strangers and one for all others, so that strangers use up nothing that
//! drones need. A connection without room is not read from: the peer's own system then holds what it sends.
//! Some bytes of each connection need no room, so that short messages pass whatever others do.
//!
//! A peer that holds room for long while others wait for it loses the connection: a sender of all of a
//! message but its end would keep the room otherwise.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use libp2p::PeerId;
use tokio::time::Instant;

use crate::config::UnreadLimits;

/// Bytes that a stream takes, with the tasks and buffers that belong to it.
const STREAM_COST: usize = 4096;
/// Bytes that a piece of a stream takes beside its content.
const PIECE_COST: usize = 80;
/// Time for which a connection may hold room that others wait for: longer than any message takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two searches for those who hold room for too long.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);

tokio::task_local! {
    /// Keeper of what is read from streams: a message that is not complete. It counts what is written, too.
    pub(crate) static KEEPER: Arc<Keeper>;
}

/// Room for unread bytes of a node's connections.
#[derive(Clone)]
pub(crate) struct UnreadBudget(Arc<UnreadRoom>);

struct UnreadRoom {
    limits: UnreadLimits,
    /// Time for which a connection may hold room that others wait for.
    patience: Duration,
    room: Mutex<Room>,
}

#[derive(Default)]
struct Room {
    /// Bytes that strangers hold beyond what is free, and those that others do.
    strangers: usize,
    proven: usize,
    /// Peers that are no strangers.
    trusted: HashSet<PeerId>,
    accounts: HashMap<u64, (PeerId, Weak<UnreadBytes>)>,
    next: u64,
    /// Connections that are not read from until there is room again.
    waiting: HashMap<u64, Waker>,
    searched: Option<Instant>,
}

impl Room {
    fn held(&mut self, trusted: bool) -> &mut usize {
        if trusted { &mut self.proven } else { &mut self.strangers }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Numbers, which a panic leaves as they are.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl UnreadBudget {
    pub(crate) fn new(limits: UnreadLimits) -> Self {
        Self::with_patience(limits, PATIENCE)
    }

    fn with_patience(limits: UnreadLimits, patience: Duration) -> Self {
        Self(Arc::new(UnreadRoom { limits, patience, room: Mutex::default() }))
    }

    /// The account of a new connection with this peer, which this node dialled or not.
    pub(crate) fn account(&self, peer: PeerId, dialled: bool) -> Arc<UnreadBytes> {
        let mut room = lock(&self.0.room);
        let number = room.next;
        // 2^64 connections do not happen.
        room.next = room.next.wrapping_add(1);
        let trusted = dialled || room.trusted.contains(&peer);
        let state = Mutex::new(UnreadState { trusted, ..UnreadState::default() });
        let account = Arc::new(UnreadBytes { budget: self.clone(), number, dialled, state });
        room.accounts.insert(number, (peer, Arc::downgrade(&account)));
        account
    }

    /// The peer is no stranger any more, or is one again.
    pub(crate) fn trust(&self, peer: PeerId, trusted: bool) {
        let mut room = lock(&self.0.room);
        let changed = if trusted { room.trusted.insert(peer) } else { room.trusted.remove(&peer) };
        if !changed {
            return;
        }
        let accounts: Vec<_> = room.accounts.values().filter(|(of, _)| *of == peer).cloned().collect();
        drop(room);
        // Without the lock: an account locks its own state, and then the room.
        for account in accounts.iter().filter_map(|(_, account)| account.upgrade()) {
            account.trust(trusted || account.dialled);
        }
    }

    /// Takes room. `None`: it must be taken, because the bytes are here already. Otherwise returns whether there was
    /// enough; if not, the connection is woken when there may be.
    fn take(&self, trusted: bool, bytes: usize, waiting: Option<(u64, &Waker)>) -> bool {
        let limits = self.0.limits;
        let most = if trusted { limits.proven } else { limits.strangers };
        let mut room = lock(&self.0.room);
        let held = room.held(trusted);
        let after = held.saturating_add(bytes);
        // §16: of a connection beyond its room nothing is read; its peer's system holds what it sends.
        if let Some((number, waker)) = waiting
            && after > most
        {
            room.waiting.insert(number, waker.clone());
            self.search(room, trusted);
            return false;
        }
        *held = after;
        true
    }

    fn give_back(&self, trusted: bool, bytes: usize) {
        let mut room = lock(&self.0.room);
        let held = room.held(trusted);
        *held = held.saturating_sub(bytes);
        let waiting = std::mem::take(&mut room.waiting);
        drop(room);
        // All of them: who has room now is found out when each tries again.
        waiting.into_values().for_each(Waker::wake);
    }

    /// Ends connections that have held room for too long, now that others wait for it.
    fn search(&self, mut room: MutexGuard<'_, Room>, trusted: bool) {
        let now = Instant::now();
        // Once a second: the search looks at every connection.
        if room.searched.is_some_and(|at| now < at + SEARCH_PAUSE) {
            return;
        }
        room.searched = Some(now);
        let accounts: Vec<_> = room.accounts.values().map(|(_, account)| account.clone()).collect();
        drop(room);
        for account in accounts {
            // An account that is locked is the one that waits, or is in use: it is looked at next time.
            if let Some(account) = account.upgrade()
                && let Ok(mut state) = account.state.try_lock()
                && state.trusted == trusted
                && state.since.is_some_and(|since| now >= since + self.0.patience)
            {
                state.fail("its bytes were not read for long, and others need the room");
            }
        }
    }
}

/// Unread bytes of one connection.
pub(crate) struct UnreadBytes {
    budget: UnreadBudget,
    number: u64,
    dialled: bool,
    state: Mutex<UnreadState>,
}

#[derive(Default)]
struct UnreadState {
    trusted: bool,
    /// Unread bytes, and what streams take.
    unread: usize,
    /// Unread bytes for which room was taken from the budget.
    taken: usize,
    /// Time since which room is taken.
    since: Option<Instant>,
    streams: HashMap<u32, Stream>,
    reader: Option<Waker>,
    failure: Option<&'static str>,
}

/// Pieces of a stream that wait in it.
#[derive(Default)]
struct Stream {
    /// Length of each, and what is left of it.
    pieces: VecDeque<(u32, u32)>,
    cost: usize,
}

impl UnreadState {
    fn fail(&mut self, reason: &'static str) {
        // The first reason counts: later ones follow from it.
        self.failure.get_or_insert(reason);
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl UnreadBytes {
    /// Reason why the connection has to end.
    pub(crate) fn failure(&self) -> Option<&'static str> {
        lock(&self.state).failure
    }

    /// Returns true if the peer is no stranger.
    pub(crate) fn is_trusted(&self) -> bool {
        lock(&self.state).trusted
    }

    /// Ends the connection.
    pub(crate) fn fail(&self, reason: &'static str) {
        lock(&self.state).fail(reason);
    }

    /// The connection waits for the peer: it is woken if it has to end.
    pub(crate) fn park(&self, reader: &Waker) {
        lock(&self.state).reader = Some(reader.clone());
    }

    /// A frame of a stream is about to come: takes room for its body, and for the stream if it begins one. If there is
    /// none, `reader` is woken when there may be.
    pub(crate) fn begin_frame(&self, frame: &FrameHeader, reader: &Waker) -> bool {
        let mut state = lock(&self.state);
        let begins = frame.opens && !state.streams.contains_key(&frame.stream);
        // §16: a stream takes memory even if nothing comes over it.
        let cost = frame.cost() + if begins { STREAM_COST } else { 0 };
        if !self.charge(&mut state, cost, Some(reader)) {
            return false;
        }
        if begins {
            state.streams.insert(frame.stream, Stream { cost: STREAM_COST, ..Stream::default() });
        }
        true
    }

    /// The whole frame is here. It waits in its stream, unless that is gone.
    pub(crate) fn end_frame(&self, frame: &FrameHeader) {
        let mut state = lock(&self.state);
        match state.streams.get_mut(&frame.stream).filter(|_| !frame.resets) {
            Some(stream) => stream.pieces.push_back((frame.length, frame.length)),
            // Nobody will read it: yamux drops the body of a stream that is gone.
            None => self.discharge(&mut state, frame.cost()),
        }
    }

    /// Notes that this node has opened a stream, on which the peer may answer.
    pub(crate) fn opened(&self, stream: u32) {
        lock(&self.state).streams.entry(stream).or_default();
    }

    /// Notes that this number of bytes of a stream was read.
    pub(crate) fn read(&self, stream: u32, bytes: usize) {
        let mut state = lock(&self.state);
        let Some(waiting) = state.streams.get_mut(&stream) else { return };
        let (mut left, mut free) = (u32::try_from(bytes).unwrap_or(u32::MAX), 0);
        while left > 0
            && let Some((length, unread)) = waiting.pieces.front_mut()
        {
            let part = left.min(*unread);
            (left, *unread) = (left - part, *unread - part);
            if *unread == 0 {
                // A piece is kept as a whole until its last byte was read.
                free += *length as usize + PIECE_COST;
                waiting.pieces.pop_front();
            }
        }
        self.discharge(&mut state, free);
    }

    /// A stream is gone, with what waited in it.
    pub(crate) fn closed(&self, stream: u32) {
        let mut state = lock(&self.state);
        let Some(gone) = state.streams.remove(&stream) else { return };
        // The unread bytes of a stream that is dropped go with it.
        let waited: usize = gone.pieces.iter().map(|(length, _)| *length as usize + PIECE_COST).sum();
        self.discharge(&mut state, waited + gone.cost);
    }

    /// Takes room for bytes: with a reader, returns false if there is none; without one, the bytes are here
    /// already.
    fn charge(&self, state: &mut UnreadState, bytes: usize, reader: Option<&Waker>) -> bool {
        let limits = self.budget.0.limits;
        let after = state.unread.saturating_add(bytes);
        // §16: 2 MiB and 128 KiB for each connection: two of the longest messages, and the streams.
        if let Some(reader) = reader
            && bytes > 0
            && after > limits.connection
        {
            state.reader = Some(reader.clone());
            return false;
        }
        // §16: 16 KiB of each connection need no room, so that short messages pass whatever others do.
        let taken = after.saturating_sub(limits.free).max(state.taken);
        let more = taken - state.taken;
        if more > 0 {
            let waiting = reader.map(|reader| (self.number, reader));
            if !self.budget.take(state.trusted, more, waiting) {
                state.reader = reader.cloned();
                return false;
            }
            // A peer that holds room for 30 s that others wait for is disconnected.
            state.since.get_or_insert_with(Instant::now);
        }
        (state.unread, state.taken) = (after, taken);
        true
    }

    fn discharge(&self, state: &mut UnreadState, bytes: usize) {
        if bytes == 0 {
            return;
        }
        state.unread = state.unread.saturating_sub(bytes);
        let taken = state.unread.saturating_sub(self.budget.0.limits.free).min(state.taken);
        let back = state.taken - taken;
        state.taken = taken;
        // It holds no room any more: its time begins anew with the next byte.
        if taken == 0 {
            state.since = None;
        }
        if back > 0 {
            self.budget.give_back(state.trusted, back);
        }
        state.wake();
    }

    fn trust(&self, trusted: bool) {
        let mut state = lock(&self.state);
        if state.trusted != trusted {
            let taken = state.taken;
            self.budget.give_back(state.trusted, taken);
            state.trusted = trusted;
            // The bytes are here, whichever budget they count in.
            self.budget.take(trusted, taken, None);
            state.wake();
        }
    }
}

impl Drop for UnreadBytes {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (trusted, taken) = (state.trusted, state.taken);
        let mut room = lock(&self.budget.0.room);
        room.accounts.remove(&self.number);
        room.waiting.remove(&self.number);
        drop(room);
        self.budget.give_back(trusted, taken);
    }
}

/// Header of yamux' frames: version, type, flags (2 bytes), stream (4), length of the body or a window's change (4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    stream: u32,
    /// Length of the body that follows.
    length: u32,
    opens: bool,
    resets: bool,
}

impl FrameHeader {
    /// Length in bytes.
    pub(crate) const LEN: usize = 12;
    /// The longest body: nodes send no more than 16 KiB in one frame. Room for a body is taken when it is announced.
    const MOST: u32 = 64 << 10;

    /// Reads a header. yamux finds its other faults.
    pub(crate) fn read(bytes: [u8; Self::LEN]) -> io::Result<Self> {
        const DATA: u8 = 0;
        const WINDOW_UPDATE: u8 = 1;
        let [_, kind, f0, f1, s0, s1, s2, s3, l0, l1, l2, l3] = bytes;
        let flags = u16::from_be_bytes([f0, f1]);
        let of_stream = kind == DATA || kind == WINDOW_UPDATE;
        let length = if kind == DATA { u32::from_be_bytes([l0, l1, l2, l3]) } else { 0 };
        // §16: frames of at most 64 KiB, because room is taken when a frame is announced.
        if length > Self::MOST {
            let reason = format!("a frame of {length} bytes is longer than the {} allowed", Self::MOST);
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        Ok(Self {
            stream: u32::from_be_bytes([s0, s1, s2, s3]),
            length,
            opens: of_stream && flags & 1 != 0,
            resets: of_stream && flags & 8 != 0,
        })
    }

    /// Number of bytes of the body.
    pub(crate) const fn length(&self) -> usize {
        self.length as usize
    }

    /// Bytes that the body takes once it is here.
    const fn cost(&self) -> usize {
        if self.length == 0 { 0 } else { self.length as usize + PIECE_COST }
    }
}

/// Bytes that were read from streams and are kept, because a message is not complete; and how many were
/// written.
#[derive(Default)]
pub(crate) struct Keeper {
    kept: Mutex<Kept>,
    written: AtomicU64,
}

#[derive(Default)]
struct Kept {
    account: Option<Arc<UnreadBytes>>,
    bytes: usize,
}

impl Keeper {
    /// Notes that this number of bytes of a connection was read, and is kept from now on.
    pub(crate) fn keep(&self, account: &Arc<UnreadBytes>, bytes: usize) {
        let mut kept = lock(&self.kept);
        let account = kept.account.get_or_insert_with(|| account.clone());
        // The bytes were read from the stream, and wait in an incomplete message now.
        account.charge(&mut lock(&account.state), bytes, None);
        kept.bytes = kept.bytes.saturating_add(bytes);
    }

    /// The message is complete, or given up.
    pub(crate) fn clear(&self) {
        let mut kept = lock(&self.kept);
        let bytes = std::mem::take(&mut kept.bytes);
        if let Some(account) = &kept.account {
            account.discharge(&mut lock(&account.state), bytes);
        }
    }

    /// Ends the connection that was read from.
    pub(crate) fn fail(&self, reason: &'static str) {
        if let Some(account) = &lock(&self.kept).account {
            account.fail(reason);
        }
    }

    /// So many bytes were written to streams.
    pub(crate) fn note_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes that were written since this was asked last.
    pub(crate) fn take_written(&self) -> u64 {
        self.written.swap(0, Ordering::Relaxed)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    const LIMITS: UnreadLimits =
        UnreadLimits { connection: 64 << 10, free: 8 << 10, strangers: 64 << 10, proven: 64 << 10 };

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Woken {
        fn times(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    fn frame(stream: u32, length: u32, flags: u16) -> FrameHeader {
        let ([f0, f1], [s0, s1, s2, s3], [l0, l1, l2, l3]) =
            (flags.to_be_bytes(), stream.to_be_bytes(), length.to_be_bytes());
        FrameHeader::read([0, 0, f0, f1, s0, s1, s2, s3, l0, l1, l2, l3]).unwrap()
    }

    fn receive(account: &UnreadBytes, stream: u32, length: u32) -> bool {
        let woken = Arc::new(Woken::default());
        let header = frame(stream, length, 1);
        let room = account.begin_frame(&header, &woken.into());
        if room {
            account.end_frame(&header);
        }
        room
    }

    fn unread(account: &UnreadBytes) -> (usize, usize) {
        let state = lock(&account.state);
        (state.unread, state.taken)
    }

    fn held(budget: &UnreadBudget) -> (usize, usize) {
        let room = lock(&budget.0.room);
        (room.strangers, room.proven)
    }

    #[test]
    fn a_connection_has_room_for_no_more_than_its_limit_and_goes_on_when_some_was_read() {
        let budget = UnreadBudget::new(LIMITS);
        let account = budget.account(PeerId::random(), true);
        let mut frames = 0;
        while receive(&account, 1, 1000) {
            frames += 1;
        }
        assert_eq!(frames, (LIMITS.connection - STREAM_COST) / (1000 + PIECE_COST));
        let woken = Arc::new(Woken::default());
        assert!(!account.begin_frame(&frame(1, 1000, 0), &woken.clone().into()));
        // A piece is kept until its last byte was read.
        account.read(1, 999);
        assert_eq!(woken.times(), 0);
        account.read(1, 1);
        assert_eq!(woken.times(), 1);
        assert!(receive(&account, 1, 1000) && !receive(&account, 1, 1000));
        account.closed(1);
        assert_eq!((unread(&account), held(&budget)), ((0, 0), (0, 0)));
    }

    #[test]
    fn streams_and_tiny_pieces_count_what_they_take() {
        let account = UnreadBudget::new(LIMITS).account(PeerId::random(), false);
        for stream in 0..4 {
            assert!(receive(&account, 2 * stream + 1, 0));
        }
        assert_eq!(unread(&account).0, 4 * STREAM_COST);
        for _ in 0..10 {
            assert!(receive(&account, 1, 1));
        }
        assert_eq!(unread(&account).0, 4 * STREAM_COST + 10 * (1 + PIECE_COST));
    }

    #[test]
    fn strangers_use_up_nothing_that_others_need_and_what_is_free_is_free() {
        let budget = UnreadBudget::new(LIMITS);
        let strangers: Vec<_> = (0..50).map(|_| budget.account(PeerId::random(), false)).collect();
        for stranger in &strangers {
            while receive(stranger, 1, 1000) {}
        }
        assert!(held(&budget).0 <= LIMITS.strangers && held(&budget).1 == 0);
        let total: usize = strangers.iter().map(|stranger| unread(stranger).0).sum();
        assert!(total <= LIMITS.strangers + strangers.len() * LIMITS.free, "{total}");
        let newcomer = budget.account(PeerId::random(), false);
        assert!(receive(&newcomer, 1, 1000), "a short message passes");
        let drone = budget.account(PeerId::random(), true);
        for _ in 0..40 {
            assert!(receive(&drone, 1, 1000));
        }
        drop(strangers);
        assert_eq!(held(&budget).0, 0, "what connections had goes with them");
    }

    #[test]
    fn a_peer_that_proves_itself_moves_over_with_what_it_holds() {
        let budget = UnreadBudget::new(LIMITS);
        let peer = PeerId::random();
        let account = budget.account(peer, false);
        while receive(&account, 1, 1000) {}
        let (_, taken) = unread(&account);
        assert_eq!(held(&budget), (taken, 0));
        budget.trust(peer, true);
        assert_eq!(held(&budget), (0, taken));
        let second = budget.account(peer, false);
        while receive(&second, 1, 1000) {}
        assert_eq!(held(&budget).0, 0);
        budget.trust(peer, false);
        assert_eq!(held(&budget).1, 0);
    }

    #[test]
    fn whoever_waits_for_room_is_woken_when_there_is_some() {
        let budget = UnreadBudget::new(UnreadLimits { proven: 8 << 10, ..LIMITS });
        let [first, second] = [(); 2].map(|()| budget.account(PeerId::random(), true));
        while receive(&first, 1, 1000) {}
        while receive(&second, 1, 1000) {}
        let woken = Arc::new(Woken::default());
        assert!(!second.begin_frame(&frame(1, 4000, 0), &woken.clone().into()));
        first.closed(1);
        assert_eq!(woken.times(), 1);
        assert!(second.begin_frame(&frame(1, 4000, 0), &woken.into()));
    }

    #[test]
    fn whoever_holds_room_for_long_loses_its_connection_once_others_wait_for_it() {
        for (patience, ends) in [(Duration::ZERO, true), (PATIENCE, false)] {
            let budget = UnreadBudget::with_patience(LIMITS, patience);
            let [hoarder, other] = [(); 2].map(|()| budget.account(PeerId::random(), false));
            while receive(&hoarder, 1, 1000) {}
            assert_eq!(hoarder.failure(), None, "nobody waits yet");
            while receive(&other, 1, 1000) {}
            assert_eq!((hoarder.failure().is_some(), other.failure()), (ends, None));
        }
    }

    #[test]
    fn what_is_kept_of_a_message_counts_until_it_is_complete() {
        let account = UnreadBudget::new(LIMITS).account(PeerId::random(), false);
        assert!(receive(&account, 1, 10_000));
        let keeper = Keeper::default();
        account.read(1, 10_000);
        keeper.keep(&account, 10_000);
        assert_eq!(unread(&account).0, STREAM_COST + 10_000);
        keeper.clear();
        assert_eq!(unread(&account).0, STREAM_COST);
        keeper.keep(&account, 500);
        drop(keeper);
        assert_eq!(unread(&account).0, STREAM_COST);
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_any_room_is_taken_for_it() {
        let header = |length: u32| {
            let [l0, l1, l2, l3] = length.to_be_bytes();
            FrameHeader::read([0, 0, 0, 1, 0, 0, 0, 1, l0, l1, l2, l3])
        };
        assert_eq!(header(64 << 10).unwrap().length(), 64 << 10);
        assert_eq!(header((64 << 10) + 1).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(header(u32::MAX).unwrap_err().kind(), io::ErrorKind::InvalidData);
        // A window's change has no body.
        let update = FrameHeader::read([0, 1, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]).unwrap();
        assert_eq!((update.length(), update.opens), (0, true));
    }
}
