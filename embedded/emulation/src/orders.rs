//! Orders to a model of the nRF52840, and its answers.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::patience::PATIENCE;

/// The connection on which a model takes orders. Its end ends the model.
#[derive(Debug)]
pub struct Orders {
    orders: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Orders {
    /// On the connection that a model has made.
    ///
    /// # Panics
    /// If the system refuses.
    pub(crate) fn new(orders: TcpStream) -> Self {
        orders.set_nodelay(true).expect("a socket option");
        orders.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        let answers = BufReader::new(orders.try_clone().expect("clone"));
        Self { orders, answers }
    }

    /// Gives an order and returns what the model answers to it, without the `ok`.
    ///
    /// # Panics
    /// If the model refuses it or has ended.
    pub fn give(&mut self, order: &str) -> String {
        self.orders.write_all(format!("{order}\n").as_bytes()).expect("the model listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the model answers");
        let answer = answer.trim();
        let rest = answer.strip_prefix("ok").unwrap_or_else(|| panic!("{order}: {answer:?}"));
        rest.trim().into()
    }

    /// A number from the model's status: `resets`, `flash-operations`, `frames-sent`, `frames-received`, `frames-lost`,
    /// `overruns`, `watchdog-feeds`, `watchdog-longest` (in ms).
    ///
    /// # Panics
    /// If there is no such number.
    pub fn status(&mut self, name: &str) -> u64 {
        let status = self.give("status");
        let mut words = status.split(' ').skip_while(|word| *word != name);
        let number = words.nth(1).and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("no {name} in {status}"))
    }
}
