//! The program: a runtime around [`samekey::cli`], and its exit code.

use std::process::ExitCode;

use samekey::cli;
use samekey::error::Exit;

fn main() -> ExitCode {
    let args = std::env::args_os().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(cli::main(args));
            // Nothing that still runs may hold the exit up.
            runtime.shutdown_background();
            exit.into()
        }
        // Without threads there is not even a door to say so.
        Err(_) => Exit::Unreachable.into(),
    }
}
