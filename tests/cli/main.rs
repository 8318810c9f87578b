//! The command line as a person and a program use it: the binary itself, on real sandboxes.

mod analyze;
mod bad_input;
mod runs;
mod support;
