//! Garbling computes the circuit, and its output reveals nothing else.

use proptest::prelude::*;
use quiver_garble::{
    Circuit, Error, Evaluator, Garbler, GarblingProgram, GarblingScheme, Gate, HalfGates, Label, Operand,
    PrivacyFree, ScheduledGate,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

const RUN: [u8; 16] = [9; 16];

fn circuit() -> impl Strategy<Value = Circuit> {
    (1_usize..12, prop::collection::vec((0_u8..3, any::<u32>(), any::<u32>()), 0..300)).prop_flat_map(
        |(inputs, raw)| {
            let gates: Vec<Gate> = raw
                .iter()
                .enumerate()
                .map(|(at, &(kind, a, b))| {
                    let wires = (inputs + at) as u32;
                    match kind {
                        0 => Gate::Xor(a % wires, b % wires),
                        1 => Gate::And(a % wires, b % wires),
                        _ => Gate::Not(a % wires),
                    }
                })
                .collect();
            let wires = (inputs + gates.len()) as u32;
            prop::collection::vec(0..wires, 0..8)
                .prop_map(move |outputs| Circuit::new(inputs, gates.clone(), outputs).unwrap())
        },
    )
}

fn garbler<S: GarblingScheme>(program: &GarblingProgram, seed: u8) -> Garbler<S> {
    Garbler::new(program, &RUN, &mut ChaCha20Rng::from_seed([seed; 32]))
}

/// Garbles, evaluates with labels for these inputs, decodes.
fn run<S: GarblingScheme>(circuit: &Circuit, inputs: &[bool]) -> Vec<Option<bool>> {
    let program = GarblingProgram::new(circuit);
    let mut garbler = garbler::<S>(&program, 1);
    let labels: Vec<Label> =
        inputs.iter().enumerate().map(|(at, &bit)| garbler.input(at).unwrap().of(bit)).collect();
    let one = garbler.one();
    let mut tables = Vec::new();
    garbler.garble(program.steps(), |table| tables.push(table)).unwrap();
    assert_eq!(tables.len(), program.ands() * S::CIPHERTEXTS);
    let mut evaluator = Evaluator::<S>::new(&program, &RUN, one, &labels).unwrap();
    evaluator.evaluate(program.steps(), &mut tables.into_iter()).unwrap();
    let output = |&operand: &Operand| {
        let label = evaluator.output(operand).unwrap();
        let bit = garbler.output(operand).unwrap().decode(label);
        assert!(!S::TRANSPARENT || bit == Some(label.colour()));
        bit
    };
    program.outputs().iter().map(output).collect()
}

proptest! {
    #[test]
    fn garbled_circuit_computes_what_the_circuit_does(circuit in circuit(), bits: u16) {
        let inputs: Vec<bool> = (0..circuit.inputs()).map(|at| bits >> at & 1 == 1).collect();
        let wanted: Vec<_> = circuit.evaluate(&inputs).unwrap().into_iter().map(Some).collect();
        prop_assert_eq!(&run::<PrivacyFree>(&circuit, &inputs), &wanted);
        prop_assert_eq!(&run::<HalfGates>(&circuit, &inputs), &wanted);
    }

    #[test]
    fn program_has_no_more_slots_than_wires_and_no_more_ands(circuit in circuit()) {
        let program = GarblingProgram::new(&circuit);
        prop_assert!(program.slots() <= circuit.inputs() + circuit.gates().len());
        prop_assert!(program.ands() <= circuit.statistics().and);
    }

    #[test]
    fn steps_may_come_in_pieces(circuit in circuit(), cut in 0_usize..300) {
        let program = GarblingProgram::new(&circuit);
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        garbler::<PrivacyFree>(&program, 3).garble(program.steps(), |table| whole.push(table)).unwrap();
        let mut in_pieces = garbler::<PrivacyFree>(&program, 3);
        let (first, second) = program.steps().split_at(cut.min(program.steps().len()));
        in_pieces.garble(first, |table| pieces.push(table)).unwrap();
        in_pieces.garble(second, |table| pieces.push(table)).unwrap();
        prop_assert_eq!(whole, pieces);
    }
}

/// Slots of steps that come from elsewhere.
const SLOTS: u32 = 24;

/// Steps that read and set whatever slots: also those that another gate of the batch sets, or read just before.
fn any_steps() -> impl Strategy<Value = Vec<ScheduledGate>> {
    let operand = || (0..SLOTS, any::<bool>()).prop_map(|(slot, inverted)| Operand::new(slot, inverted));
    let step = (0_u8..4, operand(), operand(), 0..SLOTS, any::<bool>());
    prop::collection::vec(step, 0..600).prop_map(|raw| {
        let mut last = 0;
        let step = |(kind, a, b, to, onwards): (u8, Operand, Operand, u32, bool)| {
            // Half of the gates read what the one before sets, as in a long sum.
            let a = if onwards { Operand::new(last, a.is_inverted()) } else { a };
            last = to;
            if kind == 0 { ScheduledGate::And { a, b, to } } else { ScheduledGate::Xor { a, b, to } }
        };
        raw.into_iter().map(step).collect()
    })
}

/// ANDs, of which few depend on each other: batches become as large as they may.
fn wide_steps() -> impl Strategy<Value = Vec<ScheduledGate>> {
    let operand = || (0..SLOTS, any::<bool>()).prop_map(|(slot, inverted)| Operand::new(slot, inverted));
    prop::collection::vec((operand(), operand(), 0_u32..100), 0..400).prop_map(|raw| {
        let step = |(a, b, to): (Operand, Operand, u32)| {
            // Most set a slot that nothing reads, many of them the same.
            let to = if to < 97 { SLOTS - 1 } else { to % SLOTS };
            let below = |operand: Operand| Operand::new(operand.slot() % (SLOTS - 1), operand.is_inverted());
            ScheduledGate::And { a: below(a), b: below(b), to }
        };
        raw.into_iter().map(step).collect()
    })
}

/// All slots after these steps, garbled and evaluated.
fn run_steps<S: GarblingScheme>(steps: &[ScheduledGate], inputs: &[bool]) -> Vec<Option<bool>> {
    let slots = inputs.len();
    let mut garbler = Garbler::<S>::with_slots(slots, slots, &RUN, &mut ChaCha20Rng::from_seed([6; 32]));
    let labels: Vec<Label> =
        inputs.iter().enumerate().map(|(at, &bit)| garbler.input(at).unwrap().of(bit)).collect();
    let mut evaluator = Evaluator::<S>::with_slots(slots, &RUN, garbler.one(), &labels);
    let mut tables = Vec::new();
    garbler.garble(steps, |table| tables.push(table)).unwrap();
    let mut tables = tables.into_iter();
    evaluator.evaluate(steps, &mut tables).unwrap();
    assert_eq!(tables.next(), None);
    let bit = |slot| {
        let operand = Operand::new(slot, false);
        garbler.output(operand).unwrap().decode(evaluator.output(operand).unwrap())
    };
    (0..slots as u32).map(bit).collect()
}

/// The same by the truth tables, one step after the other.
fn plain_steps(steps: &[ScheduledGate], inputs: &[bool]) -> Vec<Option<bool>> {
    let mut slots = inputs.to_vec();
    for &step in steps {
        let read = |operand: Operand| slots[operand.slot() as usize] ^ operand.is_inverted();
        let (to, value) = match step {
            ScheduledGate::Xor { a, b, to } => (to, read(a) ^ read(b)),
            ScheduledGate::And { a, b, to } => (to, read(a) & read(b)),
        };
        slots[to as usize] = value;
    }
    slots.into_iter().map(Some).collect()
}

proptest! {
    #[test]
    fn steps_compute_in_order_whatever_slots_they_share(
        steps in prop_oneof![any_steps(), wide_steps()],
        bits: u32,
    ) {
        let inputs: Vec<bool> = (0..SLOTS).map(|at| bits >> at & 1 == 1).collect();
        let wanted = plain_steps(&steps, &inputs);
        prop_assert_eq!(&run_steps::<PrivacyFree>(&steps, &inputs), &wanted);
        prop_assert_eq!(&run_steps::<HalfGates>(&steps, &inputs), &wanted);
    }

    #[test]
    fn program_inverts_no_operand_of_a_xor(circuit in circuit()) {
        let inverted = |step: &ScheduledGate| match step {
            ScheduledGate::Xor { a, b, .. } => a.is_inverted() | b.is_inverted(),
            ScheduledGate::And { .. } => false,
        };
        prop_assert!(!GarblingProgram::new(&circuit).steps().iter().any(inverted));
    }
}

/// a₀ ∧ a₁ ∧ … over this many inputs, one after the other.
fn conjunction(inputs: u32) -> Circuit {
    let gates = (1..inputs).map(|at| Gate::And(if at == 1 { 0 } else { inputs + at - 2 }, at)).collect();
    Circuit::new(inputs as usize, gates, vec![2 * inputs - 2]).unwrap()
}

fn authenticity<S: GarblingScheme>() {
    let circuit = conjunction(8);
    let program = GarblingProgram::new(&circuit);
    let mut garbler = garbler::<S>(&program, 4);
    let mut labels: Vec<Label> = (0..8).map(|at| garbler.input(at).unwrap().of(at != 5)).collect();
    let one = garbler.one();
    let mut tables = Vec::new();
    garbler.garble(program.steps(), |table| tables.push(table)).unwrap();
    let pair = garbler.output(program.outputs()[0]).unwrap();
    let evaluate = |labels: &[Label], tables: &[[u8; 16]]| {
        let mut evaluator = Evaluator::<S>::new(&program, &RUN, one, labels).unwrap();
        evaluator.evaluate(program.steps(), &mut tables.iter().copied()).unwrap();
        pair.decode(evaluator.output(program.outputs()[0]).unwrap())
    };
    assert_eq!(evaluate(&labels, &tables), Some(false));
    // Neither a label of one's own nor a changed ciphertext makes a 1 of it.
    for byte in [0x01, 0x80] {
        let mut forged = labels.clone();
        let mut bytes = forged[5].to_bytes();
        bytes[0] ^= byte;
        forged[5] = Label::from_bytes(bytes);
        assert_ne!(evaluate(&forged, &tables), Some(true));
    }
    labels[5] = garbler.one();
    assert_ne!(evaluate(&labels, &tables), Some(true));
    for changed in 0..tables.len() {
        let mut tables = tables.clone();
        tables[changed][3] ^= 1;
        assert_ne!(evaluate(&labels, &tables), Some(true));
    }
}

#[test]
fn label_of_one_cannot_be_made_from_inputs_that_give_zero() {
    authenticity::<PrivacyFree>();
    authenticity::<HalfGates>();
}

#[test]
fn garbling_is_determined_by_run_and_randomness() {
    let program = GarblingProgram::new(&conjunction(5));
    let tables = |run: u8, seed: u8| {
        let mut tables = Vec::new();
        Garbler::<PrivacyFree>::new(&program, &[run; 16], &mut ChaCha20Rng::from_seed([seed; 32]))
            .garble(program.steps(), |table| tables.push(table))
            .unwrap();
        tables
    };
    assert_eq!(tables(1, 1), tables(1, 1));
    assert_ne!(tables(1, 1), tables(2, 1));
    assert_ne!(tables(1, 1), tables(1, 2));
}

#[test]
fn garbled_circuit_that_ends_early_is_an_error() {
    let program = GarblingProgram::new(&conjunction(4));
    let garbler = garbler::<PrivacyFree>(&program, 1);
    let labels: Vec<Label> = (0..4).map(|at| garbler.input(at).unwrap().zero).collect();
    let mut evaluator = Evaluator::<PrivacyFree>::new(&program, &RUN, garbler.one(), &labels).unwrap();
    let ended = evaluator.evaluate(program.steps(), &mut [[0; 16]; 2].into_iter());
    assert_eq!(ended, Err(Error::TablesEnd { gate: 2 }));
    assert!(matches!(
        Evaluator::<PrivacyFree>::new(&program, &RUN, garbler.one(), &labels[1..]),
        Err(Error::InputCount { wanted: 4, found: 3 })
    ));
}

#[test]
fn side_that_failed_still_ends_what_it_is_asked_for() {
    let operand = |slot| Operand::new(slot, false);
    let good = [
        ScheduledGate::And { a: operand(0), b: operand(1), to: 0 },
        ScheduledGate::And { a: operand(0), b: operand(1), to: 1 },
    ];
    let bad = [good[0], ScheduledGate::And { a: operand(1), b: operand(2), to: 0 }];
    let mut garbler = Garbler::<HalfGates>::with_slots(2, 2, &RUN, &mut ChaCha20Rng::from_seed([1; 32]));
    let labels = [0, 1].map(|at| garbler.input(at).unwrap().one);
    let mut evaluator = Evaluator::<HalfGates>::with_slots(2, &RUN, garbler.one(), &labels);
    for _ in 0..3 {
        assert!(garbler.garble(&bad, |_| ()).is_err());
        garbler.garble(&good, |_| ()).unwrap();
        assert!(evaluator.evaluate(&good, &mut std::iter::empty()).is_err());
        evaluator.evaluate(&good, &mut std::iter::repeat([7; 16])).unwrap();
    }
}

#[test]
fn step_that_names_a_slot_that_is_not_there_is_an_error() {
    let operand = |slot| Operand::new(slot, false);
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    for step in [
        ScheduledGate::And { a: operand(2), b: operand(0), to: 0 },
        ScheduledGate::Xor { a: operand(0), b: operand(9), to: 0 },
        ScheduledGate::And { a: operand(0), b: operand(0), to: 2 },
        ScheduledGate::Xor { a: operand(0), b: operand(0), to: u32::MAX },
    ] {
        let mut garbler = Garbler::<HalfGates>::with_slots(1, 2, &RUN, &mut rng);
        let refused = garbler.garble(&[step], |_| ());
        assert!(matches!(refused, Err(Error::Slot { slots: 2, .. })), "{step:?}");
        let one = [garbler.one()];
        let mut evaluator = Evaluator::<HalfGates>::with_slots(2, &RUN, one[0], &one);
        let refused = evaluator.evaluate(&[step], &mut std::iter::repeat([0; 16]));
        assert!(matches!(refused, Err(Error::Slot { slots: 2, .. })), "{step:?}");
    }
}

#[test]
fn nothing_secret_is_shown() {
    let garbler = garbler::<HalfGates>(&GarblingProgram::new(&conjunction(2)), 1);
    assert_eq!(format!("{:?}", garbler.input(0).unwrap()), "LabelPair { zero: Label(…), one: Label(…) }");
}
