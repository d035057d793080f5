//! `samekey agents` with the real binary: a token is shown once, kept as its hash, and taken back once.

use crate::cli::Home;

#[test]
fn a_token_is_shown_once_and_kept_as_its_hash_i30() {
    let home = Home::new();
    let added = home.ok(0, &["agents", "add", "desk", "--tool", "issue_refund"]);
    let said = added.json();
    let token = said["token"].as_str().expect("a token").to_owned();
    assert_eq!(said["agent"], "desk");
    assert!(
        token.starts_with("skagt_") && token.len() == 6 + 16 + 1 + 64,
        "{token}"
    );
    assert!(added.stderr.contains("this once"), "{added:?}");
    assert!(home.ledger().exists(), "as submit does");
    let listed = home.json(&["agents", "list"]);
    assert_eq!(
        (&listed[0]["agent"], &listed[0]["tools"][0]),
        (&"desk".into(), &"issue_refund".into())
    );
    assert!(listed[0]["added_by"].is_string() && listed[0]["revoked_at"].is_null());
    let secret = token.rsplit('_').next().expect("its secret").to_owned();
    for path in [home.ledger(), home.ledger().with_extension("db-wal")] {
        let bytes = std::fs::read(path).unwrap_or_default();
        let held = bytes.windows(secret.len()).any(|w| w == secret.as_bytes());
        assert!(!held, "the token itself is nowhere");
    }
    assert!(!home.ok(0, &["agents", "list"]).stdout.contains(&secret));
    let again = home.ok(1, &["agents", "add", "desk", "--json"]);
    assert_eq!(again.error()["code"], "agent_exists");
    home.ok(0, &["agents", "revoke", "desk"]);
    let twice = home.ok(1, &["agents", "revoke", "desk", "--json"]);
    assert_eq!(twice.error()["code"], "no_such_agent");
    let other = home.json(&["agents", "add", "desk"]);
    assert_ne!(other["token"], said["token"]);
    let listed = home.json(&["agents", "list"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "what was is kept");
    assert!(listed[1]["revoked_by"].is_string());
    home.ok(0, &["verify"]);
}

/// The names of samekey itself, tools that are not there, and people who may not.
#[test]
fn only_a_lead_adds_agents_and_none_of_samekeys_own_names() {
    let home = Home::new();
    for name in ["samekey", "cli"] {
        let ran = home.ok(2, &["agents", "add", name, "--json"]);
        assert_eq!(ran.error()["code"], "reserved_agent");
    }
    let ran = home.ok(
        2,
        &["agents", "add", "desk", "--tool", "issue_refunds", "--json"],
    );
    assert_eq!(ran.error()["code"], "no_tool");
    home.config("[reviewers.rita]\nrole = \"reviewer\"\n[reviewers.lea]\nrole = \"lead\"\n");
    let refused = home.ok(
        4,
        &["agents", "add", "desk", "--reviewer", "rita", "--json"],
    );
    assert_eq!(refused.error()["code"], "not_permitted");
    home.ok(0, &["agents", "add", "desk", "--reviewer", "lea"]);
    let refused = home.ok(
        4,
        &["agents", "revoke", "desk", "--reviewer", "rita", "--json"],
    );
    assert_eq!(refused.error()["code"], "not_permitted");
    assert_eq!(home.json(&["agents", "list"])[0]["added_by"], "lea");
}
