//! Models: providers over HTTP, the models of the editor, and the built-in playbook. Implements `agent::ports::Model`.
