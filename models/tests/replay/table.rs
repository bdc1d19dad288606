//! The tables of the models: what is hashed, derived and signed, and what messages have.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::{Label, Suite};
use quiver_crypto::{Digest, Hasher, Secret, prf};

use crate::suite::Overheard as S;

/// Every kind of signed message.
const LABELS: [Label; 17] = [
    Label::Header,
    Label::Welcome,
    Label::Join,
    Label::Spare,
    Label::Leave,
    Label::Evict,
    Label::Envelope,
    Label::Command,
    Label::Datagram,
    Label::StandBy,
    Label::Replica,
    Label::Attributes,
    Label::IbeRelease,
    Label::Abke,
    Label::Admission,
    Label::Clock,
    Label::Enrolled,
];

/// Values of a term's fields, by the name that the table has for each.
pub(crate) type Values<'a> = &'a [(&'a str, &'a [u8])];

/// A line of `terms.tsv`: the label, and the fields in their order.
#[derive(Clone)]
struct Term {
    label: String,
    fields: Vec<String>,
    /// True if anybody has asked for it.
    used: Cell<bool>,
}

/// A line of `messages.tsv`.
#[derive(Clone)]
pub(crate) struct MessageRow {
    pub(crate) name: String,
    pub(crate) number: Option<u64>,
    pub(crate) from: String,
    pub(crate) to: String,
    /// Name, number, and whether something binds it.
    pub(crate) fields: Vec<(String, u64, bool)>,
}

#[derive(Clone)]
pub(crate) struct Table {
    terms: BTreeMap<(String, String), Term>,
    messages: Vec<MessageRow>,
}

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

impl Table {
    pub(crate) fn read() -> Self {
        let term = |line: Vec<&str>| {
            let [operation, name, label, _, fields, _] = line[..] else { panic!("six columns: {line:?}") };
            let field = |field: &str| field.split(':').next().unwrap_or_default().to_string();
            let fields = fields.split(' ').filter(|field| *field != "-").map(field).collect();
            (
                (operation.to_string(), name.to_string()),
                Term { label: label.to_string(), fields, used: Cell::new(false) },
            )
        };
        let message = |line: Vec<&str>| {
            let [name, number, from, to, fields] = line[..] else { panic!("five columns: {line:?}") };
            let field = |field: &str| {
                let (name, number) = field.trim_end_matches('!').split_once('=').expect("name=number");
                (name.to_string(), number.parse().expect("a number"), field.ends_with('!'))
            };
            let fields = fields.split(' ').map(field).collect();
            let (name, from, to) = (name.to_string(), from.to_string(), to.to_string());
            MessageRow { name, number: number.parse().ok(), from, to, fields }
        };
        Self {
            terms: lines(include_str!("../../terms.tsv")).map(term).collect(),
            messages: lines(include_str!("../../messages.tsv")).map(message).collect(),
        }
    }

    pub(crate) fn message(&self, name: &str) -> Option<&MessageRow> {
        self.messages.iter().find(|row| row.name == name)
    }

    /// The row of a body of `Message`.
    pub(crate) fn body(&self, number: u64) -> Option<&MessageRow> {
        self.messages.iter().find(|row| row.number == Some(number))
    }

    fn term(&self, operation: &str, name: &str) -> &Term {
        let key = (operation.to_string(), name.to_string());
        let term =
            self.terms.get(&key).unwrap_or_else(|| panic!("models/terms.tsv has no {operation} {name}"));
        term.used.set(true);
        term
    }

    /// Input of a term: its fields one after the other.
    fn input(term: &Term, values: Values<'_>) -> Vec<u8> {
        assert_eq!(term.fields.len(), values.len(), "{} has {:?}", term.label, term.fields);
        let value = |field: &String| {
            let found = values.iter().find(|(name, _)| name == field);
            found.unwrap_or_else(|| panic!("no value of {field} for {}", term.label)).1
        };
        term.fields.iter().flat_map(|field| value(field).iter().copied()).collect()
    }

    pub(crate) fn prf(&self, name: &str, key: &Secret<32>, values: Values<'_>) -> Secret<32> {
        self.prf_in(S::ID, name, key, values)
    }

    /// The same with another name in the suite's place.
    pub(crate) fn prf_in(&self, suite: &str, name: &str, key: &Secret<32>, values: Values<'_>) -> Secret<32> {
        let term = self.term("prf", name);
        prf(key, suite, &term.label, &[&Self::input(term, values)])
    }

    pub(crate) fn hash(&self, name: &str, values: Values<'_>) -> Digest {
        let term = self.term("hash", name);
        Hasher::new(&term.label).fixed(&Self::input(term, values)).finish()
    }

    /// The label and the bytes of a statement. The signer's key is in every signature's hash.
    pub(crate) fn statement(&self, name: &str, values: Values<'_>) -> (Label, Vec<u8>) {
        let term = self.term("sign", name);
        let label = LABELS.into_iter().find(|label| label.as_str() == term.label);
        let label = label.unwrap_or_else(|| panic!("nothing is signed with the label {}", term.label));
        (label, Self::input(term, values))
    }

    /// The label and the bytes of what somebody else than a drone signs, or proves to hold.
    pub(crate) fn labelled(&self, operation: &str, name: &str, values: Values<'_>) -> (String, Vec<u8>) {
        let term = self.term(operation, name);
        (term.label.clone(), Self::input(term, values))
    }

    /// The table with one term altered, for each of them: its fields in reverse, or another label if it has
    /// one at most. A signature's label is one of the code's.
    pub(crate) fn alterations(&self) -> impl Iterator<Item = (String, Self)> {
        self.terms.iter().map(|((operation, name), term)| {
            let mut term = term.clone();
            if term.fields.len() > 1 {
                term.fields.reverse();
            } else if operation == "sign" {
                term.label = Label::Welcome.as_str().to_string();
            } else {
                term.label.push('?');
            }
            let mut table = self.clone();
            table.terms.insert((operation.clone(), name.clone()), term);
            (format!("{operation} {name}"), table)
        })
    }

    /// Terms that were asked for, by the names that [`alterations`](Self::alterations) has for them.
    pub(crate) fn used(&self) -> BTreeSet<String> {
        let used = self.terms.iter().filter(|(_, term)| term.used.get());
        used.map(|((operation, name), _)| format!("{operation} {name}")).collect()
    }

    /// Labels of signatures that the table has, and those that it lacks.
    pub(crate) fn labels(&self) -> (Vec<&str>, Vec<&'static str>) {
        let signs = self.terms.iter().filter(|((operation, _), _)| operation == "sign");
        let listed: Vec<&str> = signs.map(|(_, term)| term.label.as_str()).collect();
        let lacking = LABELS.iter().map(|label| label.as_str()).filter(|label| !listed.contains(label));
        let lacking = lacking.collect();
        (listed, lacking)
    }
}
