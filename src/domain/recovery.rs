//! The recovery branch of each outcome class, decided beforehand (R90–R94).
//!
//! Owns: the protocol's own branches, and that a tool's table may only be stricter and has no hole. Never:
//! carries a branch out; [`super::transition`] asks here. Tests: below, `tests/protocol/recovery.rs`.

use super::outcome::OutcomeClass;
use super::profile::ProviderKind;

/// What follows an outcome. Ordered: each is stricter than the one before.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Branch {
    /// Wait, then the same key and the same bytes.
    RetrySameKey,
    /// The provider is asked what exists before anything more is sent (R76, R77).
    LookUp,
    /// The row closes as failed: the provider says that nothing happened.
    Stop,
    /// Nothing more is sent; the row is unknown until a person settles it (R78, R79).
    AskPerson,
}

impl Branch {
    /// The word in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The classes that a table has to name, all of them: what succeeded needs no recovery, and what was not
/// sent has nothing to recover from.
pub const CLASSES: [OutcomeClass; 8] = [
    OutcomeClass::SideEffectUnknown,
    OutcomeClass::KeyInProgress,
    OutcomeClass::RetryableFailure,
    OutcomeClass::ServerError,
    OutcomeClass::ValidationFailure,
    OutcomeClass::PermissionDenied,
    OutcomeClass::KeyMismatch,
    OutcomeClass::ReplyMismatch,
];

/// The protocol's branch ("Outcome classes" and "Tools differ in what their provider can do").
#[must_use]
pub fn default_branch(class: OutcomeClass, kind: ProviderKind) -> Branch {
    match class {
        OutcomeClass::SideEffectUnknown | OutcomeClass::KeyInProgress => match kind {
            ProviderKind::Keyed => Branch::RetrySameKey,
            ProviderKind::Lookup => Branch::LookUp,
            ProviderKind::None => Branch::AskPerson,
        },
        OutcomeClass::RetryableFailure => match kind {
            ProviderKind::Keyed | ProviderKind::Lookup => Branch::RetrySameKey,
            ProviderKind::None => Branch::AskPerson,
        },
        OutcomeClass::NotSent => Branch::RetrySameKey,
        OutcomeClass::Pending => Branch::LookUp,
        OutcomeClass::Succeeded
        | OutcomeClass::EffectFailed
        | OutcomeClass::ValidationFailure
        | OutcomeClass::PermissionDenied => Branch::Stop,
        OutcomeClass::ReplyMismatch | OutcomeClass::ServerError | OutcomeClass::KeyMismatch => {
            Branch::AskPerson
        }
    }
}

/// A tool's own table; empty where the protocol's branches hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery(Vec<(OutcomeClass, Branch)>);

impl Recovery {
    /// Reads a table of class and branch.
    ///
    /// # Errors
    /// One sentence: an unknown word, a hole, a branch that is laxer than the protocol's, or one that the
    /// class cannot have.
    pub fn new<'t>(
        table: impl IntoIterator<Item = (&'t String, &'t String)>,
        kind: ProviderKind,
        searchable: bool,
    ) -> Result<Self, String> {
        let mut found = Vec::new();
        for (class, branch) in table {
            let known = class.parse().ok().filter(|c| CLASSES.contains(c));
            let class: OutcomeClass = known.ok_or_else(|| {
                format!("recovery names {class}, which is no class with a branch")
            })?;
            let branch: Branch = branch
                .parse()
                .map_err(|_| format!("recovery.{class} is {branch:?}, which is no branch"))?;
            let ours = default_branch(class, kind);
            let fits = match branch {
                Branch::LookUp => searchable && class.is_undetermined(),
                Branch::Stop => ours == Branch::Stop,
                Branch::RetrySameKey | Branch::AskPerson => true,
            };
            if branch < ours || !fits {
                return Err(format!(
                    "recovery.{class} is {}, which is laxer than {} or cannot be done",
                    branch.as_str(),
                    ours.as_str()
                ));
            }
            found.push((class, branch));
        }
        let hole = CLASSES
            .iter()
            .find(|c| !found.iter().any(|(named, _)| named == *c));
        match hole {
            Some(class) if !found.is_empty() => Err(format!(
                "recovery says nothing of {class}; name its branch, which may be {}",
                default_branch(*class, kind).as_str()
            )),
            Some(_) | None => Ok(Self(found)),
        }
    }

    /// The branch of a class.
    #[must_use]
    pub fn branch(&self, class: OutcomeClass, kind: ProviderKind) -> Branch {
        let own = self.0.iter().find(|(named, _)| *named == class);
        own.map_or_else(|| default_branch(class, kind), |(_, branch)| *branch)
    }

    /// Whether the protocol's own branches hold.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const KINDS: [ProviderKind; 3] = [
        ProviderKind::Keyed,
        ProviderKind::Lookup,
        ProviderKind::None,
    ];

    fn table(kind: ProviderKind) -> BTreeMap<String, String> {
        let of = |c: &OutcomeClass| default_branch(*c, kind).as_str().to_owned();
        CLASSES.iter().map(|c| (c.to_string(), of(c))).collect()
    }

    #[test]
    fn a_table_may_only_be_stricter_and_has_no_hole_r90_r91_r94() {
        for kind in KINDS {
            let whole = table(kind);
            let read = Recovery::new(&whole, kind, true).expect("the protocol's own");
            for class in CLASSES {
                assert_eq!(read.branch(class, kind), default_branch(class, kind));
                let mut hole = whole.clone();
                hole.remove(class.as_str());
                let why = Recovery::new(&hole, kind, true).expect_err("a hole");
                assert!(why.contains(class.as_str()), "{why}");
                for branch in [
                    Branch::RetrySameKey,
                    Branch::LookUp,
                    Branch::Stop,
                    Branch::AskPerson,
                ] {
                    let mut other = whole.clone();
                    other.insert(class.to_string(), branch.as_str().to_owned());
                    let taken = Recovery::new(&other, kind, true).is_ok();
                    let ours = default_branch(class, kind);
                    assert!(!taken || branch >= ours, "{class} {branch:?} on {kind:?}");
                    assert!(
                        branch != Branch::AskPerson || taken,
                        "a person may always be asked"
                    );
                }
            }
        }
        let empty = Recovery::new(&BTreeMap::new(), ProviderKind::Keyed, false).expect("none");
        assert!(empty.is_default());
    }

    #[test]
    fn words_that_nobody_knows_are_refused() {
        for (class, branch) in [
            ("magic", "stop"),
            ("succeeded", "stop"),
            ("server_error", "hope"),
            ("side_effect_unknown", "stop"),
        ] {
            let mut other = table(ProviderKind::Keyed);
            other.insert(class.to_owned(), branch.to_owned());
            assert!(
                Recovery::new(&other, ProviderKind::Keyed, true).is_err(),
                "{class} {branch}"
            );
        }
        let mut looked = table(ProviderKind::Keyed);
        looked.insert("side_effect_unknown".into(), "look_up".into());
        assert!(Recovery::new(&looked, ProviderKind::Keyed, true).is_ok());
        assert!(
            Recovery::new(&looked, ProviderKind::Keyed, false).is_err(),
            "without a search there is nothing to look up"
        );
    }
}
