//! A run turned into documents: markdown, notebook, script, hints. Core: imports no edge.
