//! Configuration (placeholder until merged).
/// The OS user's name.
#[must_use]
pub fn os_user() -> String {
    std::env::var("USER").unwrap_or_else(|_| "unknown".into())
}
