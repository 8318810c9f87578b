//! The Docker backend against a real engine. An engine or a base image that is missing fails these tests.

mod isolation;
mod lifecycle;
mod resources;
mod support;
