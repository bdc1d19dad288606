//! Formulas and selections worked out by hand.

use quiver_policy::{AccessTree, AttributeSet, Formula, IntegerType, PolicyNode, Schema};

fn schema() -> Schema {
    Schema::new().with_integer("x", IntegerType::unsigned(8).unwrap()).unwrap()
}

fn formula(policy: &str) -> Formula {
    AccessTree::parse(policy, &schema()).unwrap().formula()
}

fn set(list: &str) -> AttributeSet {
    AttributeSet::parse(list, &schema()).unwrap()
}

/// A formula as text: `&` for all, `|` for any, atoms as they are printed.
fn written(formula: &Formula) -> String {
    let mut parts: Vec<String> = Vec::new();
    for node in formula.nodes() {
        let part = match node {
            PolicyNode::Leaf(leaf) => formula.leaves()[*leaf].attribute().to_string(),
            PolicyNode::Gate(gate) => {
                let children: Vec<_> = gate.children().iter().map(|&child| parts[child].as_str()).collect();
                match (gate.is_and(), gate.is_or()) {
                    (true, _) => format!("({})", children.join(" & ")),
                    (_, true) => format!("({})", children.join(" | ")),
                    _ => format!("{}({})", gate.threshold(), children.join(", ")),
                }
            }
        };
        parts.push(part);
    }
    parts.pop().unwrap().replace("/8]", "]")
}

#[test]
fn comparisons_look_at_no_bit_that_decides_nothing() {
    // 120 = 0b0111_1000
    assert_eq!(written(&formula("x >= 120")), "(x[7]=1 | (x[6]=1 & x[5]=1 & x[4]=1 & x[3]=1))");
    assert_eq!(written(&formula("x < 120")), "(x[7]=0 & (x[6]=0 | x[5]=0 | x[4]=0 | x[3]=0))");
    assert_eq!(written(&formula("x >= 128")), "x[7]=1");
    assert_eq!(written(&formula("x > 127")), "x[7]=1");
    assert_eq!(written(&formula("x <= 127")), "x[7]=0");
    // 165 = 0b1010_0101, and x > 164 is x >= 165
    let above = "(x[7]=1 & (x[6]=1 | (x[5]=1 & (x[4]=1 | x[3]=1 | (x[2]=1 & (x[1]=1 | x[0]=1))))))";
    assert_eq!(written(&formula("x > 164")), above);
    assert_eq!(
        written(&formula("x = 240")),
        "(x[7]=1 & x[6]=1 & x[5]=1 & x[4]=1 & x[3]=0 & x[2]=0 & x[1]=0 & x[0]=0)"
    );
    assert_eq!(
        written(&formula("x != 240")),
        "(x[7]=0 | x[6]=0 | x[5]=0 | x[4]=0 | x[3]=1 | x[2]=1 | x[1]=1 | x[0]=1)"
    );
}

#[test]
fn gates_stay_as_they_are_and_gates_of_one_go() {
    assert_eq!(written(&formula("2 of (a, b, c and x > 127)")), "2(a, b, (c & x[7]=1))");
    assert_eq!(written(&formula("1 of (1 of (a))")), "a");
    assert_eq!(written(&formula("a or b and c or d")), "(a | (b & c) | d)");
}

#[test]
fn uses_are_counted_from_the_left() {
    let formula = formula("a and (b or a) and (x > 127 or x > 63) and (a or c)");
    assert_eq!(formula.uses(), 3);
    let uses: Vec<_> =
        formula.leaves().iter().map(|leaf| (leaf.attribute().to_string(), leaf.use_number())).collect();
    let expected =
        [("a", 0), ("b", 0), ("a", 1), ("x[7/8]=1", 0), ("x[7/8]=1", 1), ("x[6/8]=1", 0), ("a", 2), ("c", 0)];
    assert_eq!(uses, expected.map(|(atom, number)| (atom.to_owned(), number)));
    assert_eq!(formula.atoms().len(), 5);
}

#[test]
fn among_equals_the_leftmost_leaves_are_taken() {
    let formula = formula("2 of (a, b, c, d)");
    let selection = formula.select(&set("a, b, c, d"), |_, _| 1).unwrap();
    assert_eq!((selection.leaves(), selection.cost()), (&[0, 1][..], 2));
    let selection = formula.select(&set("d, b, c"), |_, _| 1).unwrap();
    assert_eq!(selection.leaves(), [1, 2]);
    let [gate] = selection.gates() else { panic!("one gate") };
    assert_eq!((gate.node(), gate.places()), (4, &[2, 3][..]));
}

#[test]
fn the_cheaper_way_is_taken_even_if_it_is_longer() {
    let formula = formula("(a and b and c) or d");
    let selection =
        formula.select(&set("a, b, c, d"), |atom, _| if atom.name().as_str() == "d" { 9 } else { 2 });
    let selection = selection.unwrap();
    assert_eq!((selection.leaves(), selection.cost()), (&[0, 1, 2][..], 6));
    let places: Vec<_> = selection.gates().iter().map(|gate| (gate.node(), gate.places().to_vec())).collect();
    assert_eq!(places, [(5, vec![1]), (3, vec![1, 2, 3])]);
}

#[test]
fn nothing_is_selected_for_whom_the_policy_excludes() {
    assert_eq!(formula("a and b").select(&set("a"), |_, _| 0), None);
    assert_eq!(formula("x >= 120").select(&set("x = 119"), |_, _| 0), None);
    assert_eq!(formula("a").select(&AttributeSet::new(), |_, _| 0), None);
}

#[test]
fn the_largest_costs_do_not_overflow() {
    let all: Vec<_> = (0..1024).map(|number| format!("a{number}")).collect();
    let selection = formula(&all.join(" and ")).select(&set(&all.join(",")), |_, _| u32::MAX).unwrap();
    assert_eq!(selection.cost(), 1024 * u64::from(u32::MAX));
}
