//! The canonical encoding of policies: nodes in post-order, so that a decoder is a stack and no depth can
//! hurt it.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Malformed, Reader, Writer};

use crate::{AccessTree, Condition, Fault, MAX_NODES, PolicyError, PolicyNode};

/// First byte of the encoding.
const FORMAT: u8 = 1;
/// Byte before a leaf, and before a gate.
const LEAF: u8 = 0;
const GATE: u8 = 1;
/// Bytes of the shortest node, a gate: its byte, threshold, number of children.
const NODE_LEN: usize = 1 + 2 + 2;

impl AccessTree {
    /// The encoding: format ‖ count ‖ nodes in post-order, a leaf as 0 ‖ condition, a gate as 1 ‖ threshold ‖
    /// number of children (two bytes each), its children being the last nodes that no gate has claimed.
    /// Comparisons stand as such, with the kind of their integer, so no schema is needed to read it. A tree
    /// has one encoding.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(FORMAT).count(self.nodes().len());
        for node in self.nodes() {
            match node {
                PolicyNode::Leaf(number) => {
                    writer.u8(LEAF);
                    if let Some(condition) = self.leaves().get(*number) {
                        condition.encode(&mut writer);
                    }
                }
                PolicyNode::Gate(gate) => {
                    writer.u8(GATE).u16(short(gate.threshold())).u16(short(gate.children().len()));
                }
            }
        }
        writer.finish()
    }

    /// Reads an encoding. The tree returned passed every check that a parsed policy passes.
    ///
    /// # Errors
    /// [`Fault::Malformed`], or the mistake of the nodes.
    pub fn decode(bytes: &[u8]) -> Result<Self, PolicyError> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(Malformed("a policy of another format").into());
        }
        let (mut builder, mut unclaimed) = (Self::builder(), Vec::new());
        for _ in 0..reader.count(MAX_NODES, NODE_LEN)? {
            let node = match reader.u8()? {
                LEAF => builder.leaf(Condition::decode(&mut reader)?)?,
                GATE => {
                    let (threshold, count) = (reader.u16()?, reader.u16()?);
                    let first = unclaimed.len().checked_sub(usize::from(count));
                    let first = first.ok_or(Malformed("a gate without children"))?;
                    builder.gate(usize::from(threshold), unclaimed.split_off(first))?
                }
                _ => return Err(Malformed("neither leaf nor gate").into()),
            };
            unclaimed.push(node);
        }
        reader.end()?;
        match *unclaimed.as_slice() {
            [root] => Ok(builder.finish(root)?),
            _ => Err(Fault::Malformed("not one tree").into()),
        }
    }
}

/// Thresholds and children are bounded by the number of nodes, which two bytes hold.
fn short(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
