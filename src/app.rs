//! The composition root: the only place that wires edges together.
