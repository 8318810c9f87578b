//! Standard output. A closed pipe is the reader's choice and ends the printing; anything else that keeps the words from
//! being written is told, and makes the command fail.

use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Something could not be written.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Writes on standard output.
pub(super) fn write(data: &[u8]) {
    let mut out = std::io::stdout().lock();
    match out.write_all(data).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => {
            if !FAILED.swap(true, Ordering::Relaxed) {
                eprintln!("error: standard output can't be written: {error}");
            }
        }
    }
}

/// Whether something could not be written.
pub(super) fn failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// Prints a line on standard output, as `println!` does, but for the panic.
macro_rules! say {
    ($($words:tt)*) => { $crate::cli::output::write(format!("{}\n", format_args!($($words)*)).as_bytes()) };
}
pub(super) use say;
