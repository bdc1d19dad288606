"""An edge of Quiver, written from docs/protocol.md: slow, readable, and without a line of the Rust code."""
