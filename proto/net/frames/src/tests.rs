use std::collections::VecDeque;

use futures::executor::block_on;
use futures::task::noop_waker;
use futures::{SinkExt, StreamExt};
use proptest::prelude::*;

use super::*;

/// Frames of a length (2 bytes) and as many bytes. A length of 0 is none.
struct Lengths;

impl Decoder for Lengths {
    type Item = Vec<u8>;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Vec<u8>>> {
        let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if length == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok((rest.len() >= length).then(|| bytes.split_to(2 + length)[2..].to_vec()))
    }
}

impl Encoder for Lengths {
    type Item<'a> = &'a [u8];
    type Error = io::Error;

    fn encode(&mut self, item: &[u8], bytes: &mut BytesMut) -> io::Result<()> {
        let length = u16::try_from(item.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(item);
        Ok(())
    }
}

/// A stream that brings so much with each read, or nothing for now, and takes so much with each write.
#[derive(Default)]
struct Pipe {
    reads: VecDeque<Option<Vec<u8>>>,
    taken: Vec<u8>,
    takes: usize,
    flushes: usize,
    closed: bool,
}

impl AsyncRead for Pipe {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match self.reads.pop_front() {
            None => Poll::Ready(Ok(0)),
            Some(None) => Poll::Pending,
            Some(Some(mut bytes)) => {
                let length = bytes.len().min(buf.len());
                buf[..length].copy_from_slice(&bytes[..length]);
                if length < bytes.len() {
                    self.reads.push_front(Some(bytes.split_off(length)));
                }
                Poll::Ready(Ok(length))
            }
        }
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let length = self.takes.min(buf.len());
        self.taken.extend_from_slice(&buf[..length]);
        Poll::Ready(Ok(length))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flushes += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.closed = true;
        Poll::Ready(Ok(()))
    }
}

fn encoded(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    frames.iter().for_each(|frame| Lengths.encode(frame, &mut bytes).unwrap());
    bytes.to_vec()
}

/// Collects the frames that a stream gives until it ends, and polls again whenever nothing is there for now.
fn all(
    stream: &mut (impl Stream<Item = io::Result<Vec<u8>>> + Unpin),
) -> (Vec<Vec<u8>>, Option<io::ErrorKind>) {
    let waker = noop_waker();
    let (mut cx, mut frames) = (Context::from_waker(&waker), Vec::new());
    loop {
        match stream.poll_next_unpin(&mut cx) {
            Poll::Pending => {}
            Poll::Ready(None) => return (frames, None),
            Poll::Ready(Some(Ok(frame))) => frames.push(frame),
            Poll::Ready(Some(Err(error))) => return (frames, Some(error.kind())),
        }
    }
}

fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let frame = prop_oneof![1..40_usize, 1..20_000_usize];
    proptest::collection::vec(frame.prop_map(|length| (0..length).map(|byte| byte as u8).collect()), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn frames_are_read_however_their_bytes_come(
        frames in frames(),
        cuts in proptest::collection::vec((1..9000_usize, any::<bool>()), 1..20),
    ) {
        let mut bytes = encoded(&frames);
        let mut reads = VecDeque::new();
        for (length, pause) in cuts.into_iter().cycle() {
            if bytes.is_empty() {
                break;
            }
            let rest = bytes.split_off(length.min(bytes.len()));
            reads.push_back(Some(bytes));
            reads.extend(pause.then_some(None));
            bytes = rest;
        }
        let pipe = || Pipe { reads: reads.clone(), ..Pipe::default() };
        prop_assert_eq!(all(&mut Framed::new(pipe(), Lengths)), (frames.clone(), None));
        prop_assert_eq!(all(&mut FramedRead::new(pipe(), Lengths)), (frames, None));
    }

    #[test]
    fn frames_are_written_however_little_is_taken(frames in frames(), takes in 1..5000_usize) {
        let expected = encoded(&frames);
        let pipe = || Pipe { takes, ..Pipe::default() };
        let mut framed = Framed::new(pipe(), Lengths);
        let mut write = FramedWrite::new(pipe(), Lengths);
        for frame in &frames {
            block_on(framed.feed(frame)).unwrap();
            block_on(write.feed(frame)).unwrap();
        }
        block_on(framed.close()).unwrap();
        block_on(write.close()).unwrap();
        let FramedParts { io, write_buffer, .. } = framed.into_parts();
        prop_assert!(io.taken == expected && io.closed && io.flushes > 0 && write_buffer.is_empty());
        prop_assert!(write.io.taken == expected && write.io.closed);
    }
}

#[test]
fn an_idle_stream_holds_no_memory() {
    let reads = [Some(encoded(&[vec![1; 5000], vec![2; 300]])), None, None].into();
    let mut framed = Framed::new(Pipe { reads, takes: 100, ..Pipe::default() }, Lengths);
    assert_eq!((framed.read.capacity(), framed.written.capacity()), (0, 0));
    let waker = noop_waker();
    let mut cx = Context::from_waker(&waker);
    for _ in 0..2 {
        assert!(matches!(framed.poll_next_unpin(&mut cx), Poll::Ready(Some(Ok(_)))));
    }
    assert!(framed.poll_next_unpin(&mut cx).is_pending());
    assert_eq!(framed.read.capacity(), 0);
    block_on(framed.send(&[7; 3000])).unwrap();
    assert_eq!(framed.written.capacity(), 0);
    // The start of a frame is kept.
    framed.io.reads = [Some(vec![0, 2, 9]), None, Some(vec![9])].into();
    assert!(framed.poll_next_unpin(&mut cx).is_pending());
    assert_eq!(all(&mut framed), (vec![vec![9, 9]], None));
}

#[test]
fn what_is_no_frame_and_an_end_within_one_are_errors() {
    let read = |bytes: &[u8]| {
        all(&mut Framed::new(Pipe { reads: [Some(bytes.to_vec())].into(), ..Pipe::default() }, Lengths))
    };
    assert_eq!(read(&[0, 1, 5, 0, 0]), (vec![vec![5]], Some(io::ErrorKind::InvalidData)));
    assert_eq!(read(&[0, 1, 5, 0, 2, 1]), (vec![vec![5]], Some(io::ErrorKind::UnexpectedEof)));
    assert_eq!(read(&[]), (vec![], None));
    // A stream that takes nothing.
    let mut framed = Framed::new(Pipe::default(), Lengths);
    assert_eq!(block_on(framed.send(&[1])).unwrap_err().kind(), io::ErrorKind::WriteZero);
}

#[test]
fn no_more_is_taken_than_a_bound() {
    struct Full;
    impl AsyncWrite for Full {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Pending
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }
    let mut framed = Framed::new(Full, Lengths);
    let waker = noop_waker();
    let mut cx = Context::from_waker(&waker);
    let mut taken = 0;
    while framed.poll_ready_unpin(&mut cx).is_ready() {
        framed.start_send_unpin(&[0; 1000]).unwrap();
        taken += 1;
    }
    assert_eq!(taken, (128 * 1024_usize).div_ceil(1002));
    assert_eq!(framed.written.len(), taken * 1002);
}

#[test]
fn parts_keep_every_byte_under_another_codec() {
    let reads = [Some(encoded(&[vec![1], vec![2], vec![3]]))].into();
    let mut framed = Framed::new(Pipe { reads, takes: 9, ..Pipe::default() }, Lengths);
    assert_eq!(block_on(framed.next()).unwrap().unwrap(), [1]);
    block_on(framed.feed(&[4])).unwrap();
    let parts = framed.into_parts().map_codec(|Lengths| ((), Lengths)).map_codec(|(_, lengths)| lengths);
    assert_eq!((&parts.read_buffer[..], &parts.write_buffer[..]), (&[0, 1, 2, 0, 1, 3][..], &[0, 1, 4][..]));
    let mut framed = Framed::from_parts(parts);
    block_on(framed.flush()).unwrap();
    assert_eq!(all(&mut framed), (vec![vec![2], vec![3]], None));
    assert_eq!(framed.io.taken, [0, 1, 4]);
    let _: &Lengths = framed.codec();
    let _: &mut Lengths = framed.codec_mut();
}

#[test]
fn a_stream_that_reads_from_a_framed_one_has_a_buffer_of_its_own() {
    /// The frames of another stream as bytes.
    struct Inner(Framed<Pipe, Lengths>);
    impl AsyncRead for Inner {
        fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
            match std::task::ready!(self.get_mut().0.poll_next_unpin(cx)).transpose()? {
                None => Poll::Ready(Ok(0)),
                Some(bytes) => {
                    buf[..bytes.len()].copy_from_slice(&bytes);
                    Poll::Ready(Ok(bytes.len()))
                }
            }
        }
    }
    let outer = [vec![8; 700], vec![9; 30]];
    let inner: Vec<Vec<u8>> = encoded(&outer).chunks(100).map(<[u8]>::to_vec).collect();
    let reads = encoded(&inner).chunks(33).map(|bytes| Some(bytes.to_vec())).collect();
    let inner = Inner(Framed::new(Pipe { reads, ..Pipe::default() }, Lengths));
    assert_eq!(all(&mut FramedRead::new(inner, Lengths)), (outer.to_vec(), None));
}
