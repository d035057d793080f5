//! Getting the peers: a Python and a Node package at these versions, each in a folder of its own under
//! `target/`, made once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Written last, so that a half-made folder is made again.
const READY: &str = ".ready";

/// A Python that has `packages` (`name==version`), or why there is none.
pub fn python(packages: &[&str]) -> Result<PathBuf, String> {
    let dir = folder(packages);
    let python = dir.join("bin/python");
    once(&dir, || {
        run(Command::new("python3").args(["-m", "venv"]).arg(&dir))?;
        let quiet = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        run(Command::new(&python).args(quiet).args(packages))
    })?;
    Ok(python)
}

/// A folder whose `node_modules` has `package` (`name@version`), or why there is none.
pub fn node(package: &str) -> Result<PathBuf, String> {
    run(Command::new("node").arg("--version"))?;
    let dir = folder(&[package]);
    once(&dir, || {
        std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
        let private = std::fs::write(dir.join("package.json"), "{\"private\":true}");
        private.map_err(|e| e.to_string())?;
        let quiet = [
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--no-save",
        ];
        run(Command::new("npm")
            .args(quiet)
            .arg(package)
            .current_dir(&dir))
    })?;
    Ok(dir)
}

fn folder(packages: &[&str]) -> PathBuf {
    let name = packages.join("+").replace(['=', '@'], "-");
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("peers")
        .join(name)
}

/// Makes the folder unless it is whole already; tests that need it at the same time wait for the first.
fn once(dir: &Path, make: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().map_err(|e| e.to_string())?;
    if dir.join(READY).exists() {
        return Ok(());
    }
    match std::fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.to_string()),
        _ => {}
    }
    make()?;
    std::fs::write(dir.join(READY), "").map_err(|e| e.to_string())
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ended = command.stdin(Stdio::null()).output();
    let ended = ended.map_err(|e| format!("{name} cannot be started: {e}"))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    let last = said.lines().rev().find(|l| !l.trim().is_empty());
    Err(format!(
        "{name} failed: {}",
        last.unwrap_or("without a word")
    ))
}
