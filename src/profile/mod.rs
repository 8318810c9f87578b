//! What a table is: columns, types, missing values, ranges, and how the file that holds it must be read.
//!
//! The exact profile is made inside the sandbox and arrives here as [`ProfileOutcome`]; the live profile of text in
//! the editor is made here. Imports no edge.

mod render;
mod types;

pub use render::{Detail, Language, render, render_with};
pub use types::{Column, Profile, ProfileError, ProfileOutcome, Sheet};
