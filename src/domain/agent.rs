//! Agents that call over the gateway: their tokens, and which tools each may use.
//!
//! A token is 256 random bits that only the agent has. What is kept of it is a name to find it by and its
//! SHA-256; the two are compared in constant time. Never: draws lots (the caller does), or keeps a token.
//! Tests: below, `tests/gateway/agents.rs`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use subtle::ConstantTimeEq as _;

use super::ids::{AgentName, ToolName};
use super::key::hex_digest;
use super::policy::Rate;

/// Agents of samekey itself: whoever drives an approved row, and the command line. Nobody else may be
/// called so, or could answer for their calls.
pub const RESERVED: [&str; 2] = ["samekey", "cli"];

/// How every token begins, so that a leaked one is recognised (I30).
pub const TOKEN_MARK: &str = "skagt_";
/// Hexadecimal digits of a token's name and of its secret part.
const ID_DIGITS: usize = 16;
const SECRET_DIGITS: usize = 64;

/// Who calls, as the gateway knows it once the token was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub name: AgentName,
    /// The tools it may use; `None` is all of them.
    pub tools: Option<BTreeSet<ToolName>>,
}

impl Agent {
    /// Whether it may use this tool.
    #[must_use]
    pub fn may_use(&self, tool: &ToolName) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.contains(tool))
    }
}

/// How much may be submitted over the gateway. What is sent to a provider has limits of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmitLimits {
    /// Calls of one agent.
    pub rate: Rate,
    /// Calls of one tool, of all agents together (R97).
    pub tool_rate: Rate,
    /// Calls of one agent that have no answer yet.
    pub max_waiting: u32,
}

impl Default for SubmitLimits {
    fn default() -> Self {
        let per = Duration::from_secs(1);
        Self {
            rate: Rate { count: 200, per },
            tool_rate: Rate { count: 500, per },
            max_waiting: 1000,
        }
    }
}

/// Whether an agent may be called so.
#[must_use]
pub fn is_reserved(name: &AgentName) -> bool {
    RESERVED.contains(&name.as_str())
}

/// What is kept of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptToken {
    /// 16 hexadecimal digits, to find it by.
    pub id: String,
    /// SHA-256 of the whole token, 64 hexadecimal digits.
    pub hash: String,
}

/// A token of these random bytes, and what is kept of it. The text is shown once and then forgotten.
#[must_use]
pub fn issue(id: [u8; 8], secret: [u8; 32]) -> (String, KeptToken) {
    let id = hex(&id);
    let text = format!("{TOKEN_MARK}{id}_{}", hex(&secret));
    let hash = hex_digest(text.as_bytes());
    (text, KeptToken { id, hash })
}

/// The name in a token, where it has the form of one.
#[must_use]
pub fn token_id(token: &str) -> Option<&str> {
    let (id, secret) = token.strip_prefix(TOKEN_MARK)?.split_once('_')?;
    let fits = |part: &str, digits: usize| {
        let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        part.len() == digits && part.bytes().all(lower)
    };
    (fits(id, ID_DIGITS) && fits(secret, SECRET_DIGITS)).then_some(id)
}

/// Whether `token` is the one of which `kept` is kept, in constant time.
#[must_use]
pub fn is_right(token: &str, kept: &str) -> bool {
    let hash = hex_digest(token.as_bytes());
    hash.as_bytes().ct_eq(kept.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_hash_alone() {
        let (token, kept) = issue([0xab; 8], [7; 32]);
        assert_eq!(token_id(&token), Some(kept.id.as_str()));
        assert!(is_right(&token, &kept.hash));
        assert!(!token.contains(&kept.hash) && !kept.hash.contains(&hex(&[7; 32])));
        let (other, _) = issue([0xab; 8], [8; 32]);
        assert!(!is_right(&other, &kept.hash) && !is_right("", &kept.hash));
        assert!(!is_right(&token, ""));
    }

    #[test]
    fn what_is_no_token_has_no_name() {
        let (token, _) = issue([1; 8], [2; 32]);
        for bad in [
            "",
            "skagt_",
            token.trim_end_matches('2'),
            &token.to_uppercase(),
            &token.replace("skagt_", "skagt-"),
            &format!("{token}0"),
            &format!(" {token}"),
            &token.replacen('0', "g", 1),
        ] {
            assert_eq!(token_id(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_agent_may_use_what_it_was_given() {
        let name = AgentName::parse("desk").expect("a name");
        let tool = |name: &str| ToolName::parse(name).expect("a tool");
        let all = Agent { name, tools: None };
        assert!(all.may_use(&tool("issue_refund")));
        let one = Agent {
            tools: Some(BTreeSet::from([tool("create_ticket")])),
            ..all
        };
        assert!(one.may_use(&tool("create_ticket")) && !one.may_use(&tool("issue_refund")));
        for name in RESERVED {
            assert!(is_reserved(&AgentName::parse(name).expect("a name")));
        }
    }
}
