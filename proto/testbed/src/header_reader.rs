//! Reads the headers of all messages that a leader sends, short ones too, as an observer of everything can.

use std::collections::VecDeque;

use quiver_ainq::{Deployment, EpochPart, Header, Suite};
use quiver_crypto::Digest;
use quiver_message::{Message, Rekey, ShortRekey};

/// Number of headers that are remembered: the epochs of a few leaders on which short ones may build.
const KEPT: usize = 64;

/// The newest headers that were read, each with its D. Nothing is verified.
#[derive(Clone, Debug, Default)]
pub struct HeaderReader<S: Suite> {
    headers: VecDeque<(Digest, Header<S>)>,
}

impl<S: Suite> HeaderReader<S> {
    /// A reader that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same message with a whole header in place of a short one, if the header that it builds on was read; any other
    /// message as it is. Of both the header is remembered.
    #[must_use]
    pub fn read(&mut self, deployment: &Deployment<S>, message: Message<S>) -> Message<S> {
        let message = match message {
            Message::ShortRekey(short) => match self.rebuild(&short) {
                Some(header) => Message::Rekey(Rekey::new(header, Some(EpochPart::Delta(short.wraps)))),
                None => return Message::ShortRekey(short),
            },
            message => message,
        };
        let header = match &message {
            Message::Rekey(rekey) => &rekey.header,
            Message::Welcome(welcome) => &welcome.header,
            Message::CatchUpReply(reply) => &reply.header,
            _ => return message,
        };
        let digest = header.digest(deployment);
        if !self.headers.iter().any(|(known, _)| *known == digest) {
            self.headers.push_front((digest, header.clone()));
            self.headers.truncate(KEPT);
        }
        message
    }

    /// Reads an encoded message as [`read`](Self::read) does; `None` if it is none of this deployment.
    #[must_use]
    pub fn decode(&mut self, deployment: &Deployment<S>, bytes: &[u8]) -> Option<Message<S>> {
        Some(self.read(deployment, Message::decode(deployment, bytes).ok()?))
    }

    /// Notes the header of an encoded message, if it has one.
    pub fn note(&mut self, deployment: &Deployment<S>, bytes: &[u8]) {
        let _ = self.decode(deployment, bytes);
    }

    /// The bytes of a message, or of the same with a whole header.
    #[must_use]
    pub fn expanded(&mut self, deployment: &Deployment<S>, bytes: &[u8]) -> Vec<u8> {
        let read = self.decode(deployment, bytes);
        read.map_or_else(|| bytes.to_vec(), |message| message.encode(deployment))
    }

    /// The whole header of a short one, if the one that it builds on was read, or it was itself.
    fn rebuild(&self, short: &ShortRekey<S>) -> Option<Header<S>> {
        let header = &short.header;
        let built = self
            .headers
            .iter()
            .find_map(|(digest, before)| header.clone().rebuild(&before.core, digest, &short.wraps).ok());
        built.or_else(|| {
            let known = self.headers.iter().map(|(_, known)| known);
            let mut known = known.filter(|known| (known.core.epoch, known.tag) == (header.epoch, header.tag));
            known.find(|known| known.signature == header.signature).cloned()
        })
    }
}
