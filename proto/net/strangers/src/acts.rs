//! Acts of strangers with a stream.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{AsyncReadExt as _, AsyncWriteExt as _};
use libp2p::Stream;

use crate::group_frame::{announced, message, rpc};

/// Act of a stranger with each stream that it opens.
pub type Act = Arc<dyn Fn(Stream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// An act of a function.
pub fn act<F, O>(act: F) -> Act
where
    F: Fn(Stream) -> O + Send + Sync + 'static,
    O: Future<Output = ()> + Send + 'static,
{
    Arc::new(move |stream| Box::pin(act(stream)))
}

/// Does nothing for as long as the stream stays open: it is not even told to the peer.
#[must_use]
pub fn nothing() -> Act {
    act(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
}

/// Opens the stream, and sends and reads nothing.
#[must_use]
pub fn opens() -> Act {
    act(|mut stream| async move {
        let _ = stream.flush().await;
        std::future::pending::<()>().await;
        drop(stream);
    })
}

/// Sends group messages of so many bytes, each another one, and so many in a frame, without end; counts their bytes.
#[must_use]
pub fn publishes(topic: String, length: usize, at_once: usize, sent: Arc<AtomicU64>) -> Act {
    act(move |mut stream| {
        let (topic, sent) = (topic.clone(), sent.clone());
        async move {
            let mut number: u64 = 0;
            let fresh: [u8; 8] = rand::random();
            loop {
                let messages = (0..at_once).map(|_| {
                    number += 1;
                    let data = [&fresh[..], &number.to_be_bytes(), &vec![7; length]].concat();
                    message(&topic, &data, false)
                });
                let bytes = rpc(&messages.collect::<Vec<_>>());
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
                sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
        }
    })
}

/// Sends group messages that no node of a group sends, so many in a frame, without end.
#[must_use]
pub fn publishes_wrongly(topic: String, at_once: usize) -> Act {
    act(move |mut stream| {
        let bytes = rpc(&vec![message(&topic, b"", true); at_once]);
        async move { while stream.write_all(&bytes).await.is_ok() {} }
    })
}

/// Sends a message of so many bytes to one node, but for its last byte.
#[must_use]
pub fn stalls(length: usize) -> Act {
    act(move |mut stream| async move {
        let announced = u32::try_from(length).expect("a message is short");
        let bytes = [announced.to_be_bytes().to_vec(), vec![7; 16 + length - 1]].concat();
        // The node may stop reading.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.flush().await;
        let _ = stream.read(&mut [0]).await;
        std::future::pending::<()>().await;
    })
}

/// Sends a question of these bytes, reads what comes back, and is done.
#[must_use]
pub fn asks(question: Vec<u8>) -> Act {
    act(move |mut stream| {
        let question = question.clone();
        async move {
            if stream.write_all(&question).await.is_ok() && stream.close().await.is_ok() {
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        }
    })
}

/// Tells the node by libp2p's identify of so many addresses at which this one is not, and is done.
#[must_use]
pub fn introduces(addresses: u16) -> Act {
    let mut introduction = Vec::new();
    for port in 0..addresses {
        // Field 2, 8 bytes: `/ip4/192.0.2.1/tcp/PORT`.
        introduction.extend_from_slice(&[0x12, 8, 4, 192, 0, 2, 1, 6]);
        introduction.extend_from_slice(&port.to_be_bytes());
    }
    asks([announced(introduction.len()), introduction].concat())
}
