//! Secrets: read from the environment or a private file, never printed (I30).

use std::fmt;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{Env, open_file, plain};

/// A secret. Prints as a stand-in, whatever asks.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes it over.
    #[must_use]
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("‹secret›")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("‹secret›")
    }
}

/// Where a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The environment variable of this name.
    Env(String),
    /// A file that only its owner can read.
    File(PathBuf),
}

/// Why there is no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error("the environment variable {0} is not set")]
    NotSet(String),
    #[error("the secret file {} cannot be read: {why}", .path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("the secret file {} has mode {mode:04o}; others could read it", .path.display())]
    Mode { path: PathBuf, mode: u32 },
    #[error("the secret from {0} is empty or holds a space or control character")]
    Malformed(String),
    #[error("{0} holds more than {MOST_SECRETS} secrets")]
    TooMany(String),
}

impl SecretError {
    /// What to do.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NotSet(name) => {
                format!("set {name}, or name a file of mode 0600 instead of a variable")
            }
            Self::Unreadable { path, .. } => format!("put the secret into {}", path.display()),
            Self::Mode { path, .. } => format!("run `chmod 600 {}`", path.display()),
            Self::Malformed(_) => "store the secret alone on one line".to_owned(),
            Self::TooMany(_) => "keep those that are in use".to_owned(),
        }
    }
}

/// Longest secret, in bytes.
const MAX_SECRET: u64 = 4096;
/// Most secrets that are good at the same time.
const MOST_SECRETS: usize = 8;

impl KeySource {
    /// Reads the secret.
    ///
    /// # Errors
    /// Not there, readable by others, or not a key.
    pub fn read(&self, env: &Env) -> Result<Secret, SecretError> {
        let (raw, from) = self.raw(env)?;
        let key = raw.trim();
        if key.is_empty() || !key.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(SecretError::Malformed(from));
        }
        Ok(Secret::new(key))
    }

    /// Reads one or several secrets, with commas or white space between them: while one is being exchanged
    /// for another, both are good (S54).
    ///
    /// # Errors
    /// As [`KeySource::read`], or none at all.
    pub fn read_several(&self, env: &Env) -> Result<Vec<Secret>, SecretError> {
        let (raw, from) = self.raw(env)?;
        let between = |c: char| c == ',' || c.is_whitespace();
        let keys: Vec<&str> = raw.split(between).filter(|k| !k.is_empty()).collect();
        let graphic = |key: &&str| key.bytes().all(|b| b.is_ascii_graphic());
        if keys.len() > MOST_SECRETS {
            return Err(SecretError::TooMany(from));
        }
        if keys.is_empty() || !keys.iter().all(graphic) {
            return Err(SecretError::Malformed(from));
        }
        Ok(keys.into_iter().map(Secret::new).collect())
    }

    /// What is there, and where that is.
    fn raw(&self, env: &Env) -> Result<(String, String), SecretError> {
        Ok(match self {
            Self::Env(name) => {
                let raw = env.get(name);
                (
                    raw.ok_or_else(|| SecretError::NotSet(name.clone()))?,
                    name.clone(),
                )
            }
            Self::File(path) => (read_private(path)?, path.display().to_string()),
        })
    }
}

fn read_private(path: &Path) -> Result<String, SecretError> {
    let unreadable = |why: String| SecretError::Unreadable {
        path: path.to_owned(),
        why,
    };
    // The mode is taken from the open file, so that it cannot be swapped in between.
    let (file, meta) = open_file(path).map_err(|e| unreadable(plain(&e)))?;
    let mode = meta.mode() & 0o7777;
    if mode & 0o177 != 0 {
        return Err(SecretError::Mode {
            path: path.to_owned(),
            mode,
        });
    }
    let mut text = String::new();
    file.take(MAX_SECRET)
        .read_to_string(&mut text)
        .map_err(|e| unreadable(plain(&e)))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_secret_prints_as_a_stand_in_i30() {
        let secret = Secret::new("sk_test_abc");
        assert_eq!(format!("{secret} {secret:?}"), "‹secret› ‹secret›");
        assert_eq!(secret.expose(), "sk_test_abc");
    }

    #[test]
    fn several_secrets_are_good_while_one_is_exchanged_s54() {
        let env = Env::fixed([
            ("ONE", "whsec_a"),
            ("TWO", "whsec_a, whsec_b"),
            ("NONE", " , "),
            ("MANY", "a,b,c,d,e,f,g,h,i"),
        ]);
        let of = |name: &str| KeySource::Env(name.to_owned()).read_several(&env);
        assert_eq!(of("ONE").expect("one").len(), 1);
        let two = of("TWO").expect("two");
        assert_eq!(
            two.iter().map(Secret::expose).collect::<Vec<_>>(),
            ["whsec_a", "whsec_b"]
        );
        assert_eq!(of("NONE"), Err(SecretError::Malformed("NONE".to_owned())));
        assert_eq!(of("MANY"), Err(SecretError::TooMany("MANY".to_owned())));
        assert_eq!(of("GONE"), Err(SecretError::NotSet("GONE".to_owned())));
    }

    #[test]
    fn a_key_comes_from_the_environment_or_a_private_file() {
        let env = Env::fixed([("KEY", "sk_test_1"), ("BAD", "two words")]);
        let of = |name: &str| KeySource::Env(name.to_owned()).read(&env);
        assert_eq!(of("KEY").expect("set").expose(), "sk_test_1");
        assert_eq!(of("NONE"), Err(SecretError::NotSet("NONE".to_owned())));
        assert!(matches!(of("BAD"), Err(SecretError::Malformed(_))));

        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("key");
        std::fs::write(&path, "sk_test_2\n").expect("written");
        let set = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("mode");
            KeySource::File(path.clone()).read(&env)
        };
        assert!(matches!(
            set(0o644),
            Err(SecretError::Mode { mode: 0o644, .. })
        ));
        assert_eq!(set(0o600).expect("private").expose(), "sk_test_2");

        // A pipe that nobody writes to is refused, not waited for.
        let pipe = dir.path().join("pipe");
        let made = rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR);
        made.expect("a pipe");
        assert!(matches!(
            KeySource::File(pipe).read(&env),
            Err(SecretError::Unreadable { .. })
        ));
    }
}
