//! What a table is: columns, types, missing values, ranges, and how the file that holds it must be read.
//!
//! - [`ProfileOutcome`]: the exact profile. It is made inside the sandbox and only arrives here.
//! - [`render`]: that profile as text for models and people.
//! - [`live`]: the live profile of text in the editor, made here.
//!
//! Imports no edge.

pub mod live;
mod render;
mod types;

pub use render::{Detail, Language, render, render_with};
pub use types::{Column, Profile, ProfileError, ProfileOutcome, Sheet};
