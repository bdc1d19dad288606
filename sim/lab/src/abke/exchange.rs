//! Measures the exchange step by step: table 10.1 of the publication.

use std::hint::black_box;

use quiver_abke::{AbkeCiphertext, Authority, AuthorityKey, PolicyCircuit, Randomness, UnverifiedCredential};
use quiver_crypto::Secret;
use quiver_report::{CellValue, Column, Experiment, Observer, Table, Unit};
use rand_chacha::ChaCha20Rng;

use super::exchange_setup::{ExchangeSetup, circuit};
use super::measured::MeasuredRuns;
use super::plan::{AbkePlan, PolicySize};
use super::published::{ExchangeSide, PublishedAbke};
use super::step::ExchangeStep;
use super::summary::method;
use crate::measure::{Effort, Timing, repeat, repeat_on};
use crate::{LabError, Result};

/// Measurements of one size.
pub(super) struct ExchangeTimings {
    pub(super) measured: MeasuredRuns,
    /// The part of the client's check that encrypts again.
    encrypting_again: Timing,
    beforehand: Vec<(&'static str, &'static str, &'static str, Timing)>,
}

pub(super) fn measure(plan: &AbkePlan, observer: &mut dyn Observer) -> Result<Vec<ExchangeTimings>> {
    observer.begin("the exchange", 3 * plan.exchanges.len());
    let mut exchanges = Vec::new();
    for size in &plan.exchanges {
        let exchange_setup = ExchangeSetup::of(*size, plan.seed)?;
        let measured = MeasuredRuns::take(&exchange_setup, plan.effort)?;
        observer.advance(1);
        let encrypting_again = encrypting_again(&exchange_setup, plan.effort)?;
        observer.advance(1);
        let beforehand = beforehand(&exchange_setup, plan.effort)?;
        observer.advance(1);
        exchanges.push(ExchangeTimings { measured, encrypting_again, beforehand });
    }
    Ok(exchanges)
}

/// The client's check that a ciphertext follows from its seed. The context makes no difference.
fn encrypting_again(exchange_setup: &ExchangeSetup, effort: Effort) -> Result<Timing> {
    let mut rng = exchange_setup.rng();
    let (attributes, context) = (exchange_setup.policy.attributes(), [3; 32]);
    let (seed, key) = (Secret::random(&mut rng), exchange_setup.credential.unlink(&mut rng));
    let public = quiver_abke::UnverifiedPublicKey::decode(key.encoded(), attributes)?;
    let public = exchange_setup.verifier.verify(public, &mut rng)?;
    let randomness = Randomness::derive(&seed, &context, attributes);
    let ciphertext = AbkeCiphertext::encrypt(&public, &randomness, &randomness.plaintexts())?;
    let check = |rng: &mut ChaCha20Rng, ()| {
        let randomness = Randomness::derive(&seed, &context, attributes);
        match ciphertext.follows_from(&randomness, &key, rng)? {
            true => Ok(()),
            false => Err(LabError::WrongKey("a ciphertext and its seed")),
        }
    };
    repeat_on(effort, &mut rng, |_| Ok(()), check)
}

/// Operations before any run, with their side and frequency.
fn beforehand(
    exchange_setup: &ExchangeSetup,
    effort: Effort,
) -> Result<Vec<(&'static str, &'static str, &'static str, Timing)>> {
    let mut rng = exchange_setup.rng();
    let (attributes, bits) =
        (exchange_setup.policy.attributes(), exchange_setup.credential.attributes().to_vec());
    let seed = Secret::random(&mut rng);
    let derive = repeat(effort, || Authority::derive(&seed, 1, attributes).is_ok());
    let certify = repeat(effort, || exchange_setup.authority.certify(&bits, &mut rng).is_ok());
    let slots = exchange_setup.authority.key().encode();
    let decode = repeat(effort, || AuthorityKey::decode(&slots).is_ok());
    let encoded = exchange_setup.credential.encode();
    let verify = repeat_on(
        effort,
        &mut rng,
        |_| Ok(()),
        |rng, ()| {
            UnverifiedCredential::decode(&encoded)?
                .verify(&exchange_setup.verifier, rng)
                .map(black_box)
                .map_err(LabError::from)
        },
    )?;
    let circuit = circuit(exchange_setup.size, &bits)?;
    let compile = repeat(effort, || PolicyCircuit::new(&circuit).is_ok());
    Ok(vec![
        ("derive the slot keys", "KGC", "period", derive),
        ("certify a drone", "KGC", "period and drone", certify),
        ("take in slot keys", "leader, drone", "period", decode),
        ("verify a credential", "drone", "period", verify),
        ("order a circuit for garbling", "leader, drone", "policy", compile),
    ])
}

pub(super) fn experiment(
    plan: &AbkePlan,
    published: &PublishedAbke,
    exchanges: &[ExchangeTimings],
) -> Experiment {
    let steps = exchanges.iter().map(|exchange| exchange.steps(published));
    let tables = steps.chain(exchanges.iter().map(ExchangeTimings::beforehand_table)).collect();
    Experiment {
        slug: "exchange".into(),
        title: "The exchange, step by step".into(),
        about: vec![
            "A client whose attributes the authority certified, and a server with a policy that they satisfy: from the first message \
             to the same key on both sides."
                .into(),
            "Beforehand is what a client can do before it knows whom it will talk to: a key that nobody can link to the next one. \
             All that a server does depends on the client's key, and on the run: what it garbles for one run says nothing in another."
                .into(),
        ],
        published: vec![
            "Times of one thread, over a Barreto-Naehrig curve of 254 bits. Optimised: ten keys verified in a batch. For 1,000 gates and \
             10 attributes there are the two totals."
                .into(),
            "The published steps do not add up to the published totals, by 12 ms and 16 ms.".into(),
        ],
        method: method(plan),
        differences: vec![
            "BLS12-381 has a field of 381 bits: a multiplication in it costs about twice as much as in one of 254, and the group is about \
             twenty bits stronger."
                .into(),
            "Our steps have more in them: every point that comes from the other side is checked to lie in its group, \
             the server signs and the client verifies, both agree on a Diffie-Hellman secret, everything is hashed into a \
             transcript, and the key is confirmed."
                .into(),
            "Verification is one product of pairings, of one for each attribute instead of two."
                .into(),
            "There is no coin toss: the server's seeds are opened after the commitment, and all that was sent must follow from them. The \
             client checks both halves of every ciphertext, not only the one that it cannot read."
                .into(),
            "Gates are ANDs here; beside them our circuits have twice as many XORs, which cost next to nothing. What a gate of the publication is it does \
             not say."
                .into(),
        ],
        tables,
        ..Experiment::default()
    }
}

impl ExchangeTimings {
    /// The name of a table about this size.
    fn slug(&self, of: &str) -> String {
        let PolicySize { gates, attributes } = self.measured.size;
        format!("{of}-{gates}-{attributes}")
    }

    fn steps(&self, published: &PublishedAbke) -> Table {
        let columns = vec![
            Column::text("step", "step"),
            Column::text("side", "side"),
            Column::text("when", "when"),
            Column::new("published_seconds", "published", Unit::Seconds),
            Column::new("ours_seconds", "here", Unit::Seconds).strong(),
            Column::new("published_over_ours", "published / here", Unit::Times).strong(),
            Column::new("published_batched_seconds", "published, optimised", Unit::Seconds),
            Column::new("ours_batched_seconds", "here, ten keys at once", Unit::Seconds),
            Column::new("published_over_ours_batched", "optimised / ten at once", Unit::Times),
            Column::new("samples", "samples", Unit::Count),
        ];
        let caption = format!("Every step at {}", size(self.measured.size));
        let mut table = Table::new(&self.slug("steps"), &caption, columns);
        for step in ExchangeStep::ALL {
            table.push(self.step(published, step));
            if step == ExchangeStep::Check {
                self.parts(published).into_iter().for_each(|row| table.push(row));
            }
        }
        for side in [ExchangeSide::Server, ExchangeSide::Client] {
            table.push(self.total(published, side));
        }
        table
    }

    fn step(&self, published: &PublishedAbke, step: ExchangeStep) -> Vec<CellValue> {
        let (timing, size) = (self.measured.timing(step), self.measured.size);
        let mut row =
            head(step.title(), step.side().name(), if step.beforehand() { "beforehand" } else { "online" });
        row.extend(pair(step.published(published, size), Some(timing.median)));
        row.extend(match step {
            ExchangeStep::Verify => {
                pair(published.optimized(size, ExchangeSide::Server, "verify"), Some(self.measured.batched))
            }
            _ => [CellValue::Missing, CellValue::Missing, CellValue::Missing],
        });
        row.push(timing.samples.into());
        row
    }

    /// Parts of the client's check.
    fn parts(&self, published: &PublishedAbke) -> [Vec<CellValue>; 2] {
        let again = self.encrypting_again.median;
        let rest = Some(self.measured.seconds(ExchangeStep::Check) - again).filter(|rest| *rest > 0.0);
        [
            ("of it: encrypt again", "check_reencrypt", Some(again)),
            ("of it: garble again, and all else", "check_regarble", rest),
        ]
        .map(|(title, operation, ours)| {
            let mut row = head(title, ExchangeSide::Client.name(), "online");
            row.extend(pair(published.seconds(self.measured.size, ExchangeSide::Client, operation), ours));
            row
        })
    }

    fn total(&self, published: &PublishedAbke, side: ExchangeSide) -> Vec<CellValue> {
        let ours = self.measured.beforehand(side) + self.measured.online(side);
        let mut row = head("total", side.name(), "both");
        row.extend(pair(published.seconds(self.measured.size, side, "total"), Some(ours)));
        if side == ExchangeSide::Server {
            row.extend(pair(None, Some(self.measured.server_batched())));
        }
        row
    }

    fn beforehand_table(&self) -> Table {
        let columns = vec![
            Column::text("step", "step"),
            Column::text("who", "who"),
            Column::text("once", "once for each"),
            Column::new("ours_seconds", "here", Unit::Seconds).strong(),
            Column::new("samples", "samples", Unit::Count),
        ];
        let caption = format!("Before any run, at {}", size(self.measured.size));
        let mut table = Table::new(&self.slug("beforehand"), &caption, columns);
        for (step, who, once, timing) in &self.beforehand {
            table.push(vec![
                (*step).into(),
                (*who).into(),
                (*once).into(),
                (*timing).into(),
                timing.samples.into(),
            ]);
        }
        let unlink = self.measured.timing(ExchangeStep::Unlink);
        table.push(vec!["unlink".into(), "drone".into(), "run".into(), unlink.into(), unlink.samples.into()]);
        table
    }
}

fn head(title: &str, side: &str, when: &str) -> Vec<CellValue> {
    vec![title.into(), side.into(), when.into()]
}

/// Published, ours, and their ratio.
fn pair(published: Option<f64>, ours: Option<f64>) -> [CellValue; 3] {
    [published.into(), ours.into(), CellValue::ratio(published, ours)]
}

/// A size for captions.
pub(super) fn size(PolicySize { gates, attributes }: PolicySize) -> String {
    format!("{} gates, {} attributes", Unit::Count.show(gates.into()), Unit::Count.show(attributes.into()))
}
