//! Parsing the command line; wrong usage as one clear sentence with exit code 2.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _};

use super::args::{Cli, Color};
use super::output::Output;
use crate::error::{Exit, Failure};

/// Parses. Help, version and mistakes are printed here; what remains is how to exit.
pub(super) fn parse(args: &[OsString]) -> Result<Cli, Exit> {
    let mut command = Cli::command().color(color(args));
    let parsed = command
        .try_get_matches_from_mut(args)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|error| report(args, &error))
}

fn report(args: &[OsString], error: &clap::Error) -> Exit {
    let asked_for_json = args
        .iter()
        .take_while(|a| *a != "--")
        .any(|a| a == "--json");
    let out = Output::new(asked_for_json, false);
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            match out.exact(&error.render().to_string()) {
                Ok(()) => Exit::Done,
                Err(failure) => failure.exit,
            }
        }
        _ => {
            out.failure(&sentence(error));
            Exit::Usage
        }
    }
}

/// clap's first paragraph on one line, and its advice behind it.
fn sentence(error: &clap::Error) -> Failure {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Failure::usage("usage", "a command is missing").hint("see --help");
    }
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(|p| {
        let words: Vec<_> = p.split_whitespace().collect();
        words.join(" ")
    });
    let first = paragraphs.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    let tip = paragraphs.find_map(|p| p.strip_prefix("tip: ").map(str::to_owned));
    Failure::usage("usage", message).hint(tip.unwrap_or_else(|| "see --help".to_owned()))
}

/// Colours of the help text, which is printed before the flags are parsed.
fn color(args: &[OsString]) -> clap::ColorChoice {
    let texts: Vec<_> = args.iter().filter_map(|a| a.to_str()).collect();
    let given = texts.iter().enumerate().find_map(|(i, a)| match *a {
        "--color" => texts.get(i.saturating_add(1)).copied(),
        other => other.strip_prefix("--color="),
    });
    let choice = given.and_then(|g| <Color as clap::ValueEnum>::from_str(g, true).ok());
    match choice {
        Some(Color::Always) => clap::ColorChoice::Always,
        Some(Color::Never) => clap::ColorChoice::Never,
        Some(Color::Auto) | None => clap::ColorChoice::Auto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(args: &[&str]) -> String {
        let error = Cli::command()
            .try_get_matches_from([&["samekey"], args].concat())
            .expect_err("a mistake");
        let failure = sentence(&error);
        format!("{}; {}", failure.message, failure.hint.unwrap_or_default())
    }

    #[test]
    fn a_mistake_is_one_sentence() {
        for (args, says) in [
            (&["ops", "list", "--limt", "3"][..], "--limt"),
            (&["ops", "close", "op_1"], "--note"),
            (&["ops"], "missing"),
            (&["ops", "list", "--limit", "x"], "'x'"),
            (&["ops", "list", "--status", "blue"], "choose one of"),
            (&["--snapshot", "80"], "columns x rows"),
            (&["frobnicate"], "frobnicate"),
        ] {
            let text = mistake(args);
            assert!(text.contains(says), "{text}");
            assert!(!text.contains('\n') && !text.contains("Usage:"), "{text}");
        }
    }

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }
}
