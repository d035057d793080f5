//! `completions` and `man`: both made from the command line's own definition, so that they agree with
//! it. Tests: `tests/cli_config.rs`.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::args::Cli;
use super::context::Context;
use crate::error::{Exit, Failure};

pub(super) fn completions(cx: &Context, shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "samekey", &mut out);
    cx.out.exact(&String::from_utf8_lossy(&out))?;
    Ok(Exit::Done)
}

/// One page for everything: there is nothing to install beside it.
pub(super) fn page(cx: &Context) -> Result<Exit, Failure> {
    let mut command = Cli::command();
    command.build();
    let mut out = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut out)
        .map_err(|e| Failure::unreachable("man", format!("the page cannot be made: {e}")))?;
    let mut page = String::from_utf8_lossy(&out).into_owned();
    for sub in command.get_subcommands_mut() {
        chapter(&mut page, "samekey", sub);
    }
    cx.out.exact(&page)?;
    Ok(Exit::Done)
}

/// A command's help, word for word, and that of its own commands behind it.
fn chapter(page: &mut String, above: &str, command: &mut Command) {
    let name = format!("{above} {}", command.get_name());
    // Writing to a String cannot fail.
    let _ = writeln!(page, ".SH {}\n.nf", name.to_uppercase());
    for line in command.render_long_help().to_string().lines() {
        // A line that begins with a point or a quote would be a request of the formatter.
        let guard = if line.starts_with(['.', '\'']) {
            "\\&"
        } else {
            ""
        };
        let _ = writeln!(page, "{guard}{}", line.replace('\\', "\\e"));
    }
    let _ = writeln!(page, ".fi");
    for sub in command.get_subcommands_mut() {
        chapter(page, &name, sub);
    }
}
