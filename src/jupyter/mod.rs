//! Jupyter messages, their framing on the sandbox's pipe, and MIME bundles turned into outputs.
