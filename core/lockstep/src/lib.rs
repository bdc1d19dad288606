//! One secret scalar times thousands of points, in lock-step on the lanes of a vector unit.
