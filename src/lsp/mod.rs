//! The language server. The only module that names protocol types.
