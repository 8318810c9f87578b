//! One workspace folder: its sandbox, its queue of runs and its history.
