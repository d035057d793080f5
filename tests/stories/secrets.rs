//! What never reaches the terminal, however much is logged: secrets and the log itself.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::KEY;
use crate::pty::Pty;
use crate::stage::{LARGE, SOON, Stage};

/// The key, as itself and as it goes over the wire.
const SECRETS: [&str; 3] = [KEY, "Bearer ", "Basic "];

fn holds(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|w| w == part.as_bytes())
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).map(|all| all.map(|e| e.expect("an entry").path()));
    entries
        .into_iter()
        .flatten()
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// U36, U52, I30: with everything logged the log is in its file and in no cell of the screen, and
/// neither of them, nor any other file of the home, holds the provider's key.
#[test]
fn at_trace_level_the_log_is_in_its_file_and_no_secret_anywhere_u36_u52() {
    let stage = Stage::new("saved-500-with-effect");
    let mut command = stage.command(&[]);
    command.env("SAMEKEY_LOG", "trace");
    let mut pty = Pty::spawn(command, LARGE);
    pty.wait_for("1 Review 0");
    stage.queue("4417");
    pty.wait_for("3 Unknown 1");
    pty.keys("j L");
    pty.wait_for("ctrl-y confirm");
    pty.keys("ctrl-y");
    pty.wait_for("verdict: confirmed");
    pty.keys("q");
    assert!(pty.exit(SOON).success());
    let raw = pty.raw();
    for word in ["TRACE", "DEBUG", "samekey::", "hyper::"] {
        assert!(!holds(&raw, word), "{word} was written to the terminal");
    }
    for secret in SECRETS {
        assert!(!holds(&raw, secret), "{secret} was written to the terminal");
    }
    let mut logged = 0;
    for path in files(&stage.home.path("")) {
        let bytes = fs::read(&path).unwrap_or_default();
        let name = path.display();
        assert!(!holds(&bytes, KEY), "{name} holds the key");
        logged += usize::from(holds(&bytes, " INFO samekey::"));
    }
    assert_eq!(logged, 1, "the log is in one file");
}
