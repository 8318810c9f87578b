//! Entry of the binary `codeinterp`.

fn main() -> std::process::ExitCode {
    codeinterp::cli::main()
}
