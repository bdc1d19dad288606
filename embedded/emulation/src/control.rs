//! The control port of an nRF52840 model: commands and answers.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use quiver_service_testing::timeout::TIMEOUT;

/// A model's control connection. Its end ends the model.
#[derive(Debug)]
pub struct ControlPort {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl ControlPort {
    /// Makes the port on the connection that a model has made.
    ///
    /// # Panics
    /// If the system refuses.
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a socket option");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a socket option");
        let answers = BufReader::new(stream.try_clone().expect("clone"));
        Self { stream, answers }
    }

    /// Sends a command and returns the model's answer, without the `ok`.
    ///
    /// # Panics
    /// If the model refuses it or has ended.
    pub fn command(&mut self, order: &str) -> String {
        self.stream.write_all(format!("{order}\n").as_bytes()).expect("the model listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the model answers");
        let answer = answer.trim();
        let rest = answer.strip_prefix("ok").unwrap_or_else(|| panic!("{order}: {answer:?}"));
        rest.trim().into()
    }

    /// A number from the model's status: `resets`, `flash-operations`, `frames-sent`, `frames-received`,
    /// `frames-lost`, `overruns`, `watchdog-feeds`, `watchdog-longest` (in ms).
    ///
    /// # Panics
    /// If there is no such number.
    pub fn status(&mut self, name: &str) -> u64 {
        let status = self.command("status");
        let mut words = status.split(' ').skip_while(|word| *word != name);
        let number = words.nth(1).and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("no {name} in {status}"))
    }
}
