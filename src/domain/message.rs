//! The sentence that may be said to the customer, in each language (R57).
//!
//! Owns: one text per result and class, and how an amount is written in a language. Never: says more
//! than the result (`checking` confirms nothing), names an id of ours, or quotes anybody but the call:
//! its order and its amount. The texts are code, so that the compiler finds a language without one.
//! Tests: below, and `tests/cli_submit.rs`.

use super::answer;
use super::ids::{OrderId, ToolName};
use super::money::Money;
use super::operation::{FailureClass, OperationRow};
use super::policy::Words;
use super::tool_call::{RefundArguments, RejectClass, ToolResult};

/// A language that customers are spoken to in.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::VariantNames,
    strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Language {
    #[default]
    En,
    Ru,
}

/// What a customer may hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Done,
    /// The stored result of an earlier equal call.
    DoneBefore,
    Unconfirmed,
    /// The provider has it, and it is not final.
    Accepted,
    Checking,
    Held,
    Failed(FailureClass),
    Rejected(RejectClass),
}

impl Heard {
    fn of(result: &ToolResult) -> Self {
        match result {
            ToolResult::Done { repeat: false, .. } => Self::Done,
            ToolResult::Done { repeat: true, .. } => Self::DoneBefore,
            ToolResult::Unconfirmed { object: None, .. } => Self::Unconfirmed,
            ToolResult::Unconfirmed {
                object: Some(_), ..
            } => Self::Accepted,
            ToolResult::Checking { .. } => Self::Checking,
            ToolResult::Held { .. } => Self::Held,
            ToolResult::Failed { class, .. } => Self::Failed(*class),
            ToolResult::Rejected { class, .. } => Self::Rejected(*class),
        }
    }
}

/// The tool whose sentences speak of a refund.
const REFUNDS: &str = "issue_refund";

/// What a call of `tool` gets to hear besides `result`. `arguments` are the call's own, JSON text: where
/// they cannot be read, neither amount nor order is named.
#[must_use]
pub fn of_call(
    result: &ToolResult,
    tool: &ToolName,
    arguments: &str,
    language: Language,
) -> String {
    let heard = Heard::of(result);
    if tool.as_str() != REFUNDS {
        return general(heard, language).to_owned();
    }
    let arguments = serde_json::from_str(arguments).unwrap_or_default();
    let asked = RefundArguments::parse(&arguments).ok();
    let about = asked.as_ref().map(|a| (a.money, &a.order));
    say(heard, about, language)
}

/// What everybody who asked for this row's effect may be told of it now.
#[must_use]
pub fn of_row(row: &OperationRow, language: Language) -> String {
    let heard = Heard::of(&answer::of(row, Words::REFUND));
    if row.tool.as_str() != REFUNDS {
        return general(heard, language).to_owned();
    }
    let about = row.money.zip(row.order_id.as_ref());
    say(heard, about, language)
}

fn general(heard: Heard, language: Language) -> &'static str {
    match language {
        Language::En => general_english(heard),
        Language::Ru => general_russian(heard),
    }
}

fn say(heard: Heard, about: Option<(Money, &OrderId)>, language: Language) -> String {
    let text = match language {
        Language::En => english(heard),
        Language::Ru => russian(heard),
    };
    let of = about.map_or(String::new(), |(money, order)| match language {
        Language::En => format!(" of {} for order {order}", amount(money, language)),
        Language::Ru => format!(" на сумму {} по заказу {order}", amount(money, language)),
    });
    // Once: the order may spell the mark, too.
    text.replacen("{of}", &of, 1)
}

/// Of any other tool than refunds: what it does has no name that fits every sentence.
fn general_english(heard: Heard) -> &'static str {
    match heard {
        Heard::Done => "Your request has been carried out.",
        Heard::DoneBefore => {
            "Your request was carried out earlier already. Nothing was done again."
        }
        Heard::Unconfirmed => {
            "We cannot confirm your request yet. Please ask again in a few minutes."
        }
        Heard::Accepted => "Your request was accepted, but it is not final yet.",
        Heard::Checking => {
            "We cannot confirm your request yet. A colleague is checking and will answer in this chat."
        }
        Heard::Held => "A colleague has to approve your request first. Nothing has been sent yet.",
        Heard::Failed(FailureClass::ValidationFailure) => "Your request was not carried out.",
        Heard::Failed(FailureClass::PermissionDenied) => {
            "Your request was not authorised, so it was not carried out."
        }
        Heard::Failed(FailureClass::EffectFailed) => "Your request did not go through.",
        Heard::Failed(FailureClass::Unavailable) => {
            "Your request could not be sent. Nothing was done; please ask again later."
        }
        Heard::Rejected(RejectClass::ValidationFailure) => {
            "We cannot carry out this request as it was asked for. Nothing was done."
        }
        Heard::Rejected(RejectClass::PermissionDenied) => {
            "This request is not permitted. Nothing was done."
        }
        Heard::Rejected(RejectClass::RateLimited) => {
            "There are too many requests right now. Nothing was done; please ask again in a minute."
        }
        Heard::Rejected(RejectClass::Unavailable) => {
            "We cannot carry out this request right now. Nothing was done; please ask again later."
        }
        Heard::Rejected(RejectClass::OrderBusy) => {
            "Another request for the same order is not settled yet. Nothing was done for this one; please ask again later."
        }
    }
}

/// The same in Russian.
fn general_russian(heard: Heard) -> &'static str {
    match heard {
        Heard::Done => "Ваш запрос выполнен.",
        Heard::DoneBefore => "Ваш запрос уже был выполнен раньше. Повторно ничего не сделано.",
        Heard::Unconfirmed => {
            "Мы пока не можем подтвердить ваш запрос. Пожалуйста, спросите ещё раз через несколько минут."
        }
        Heard::Accepted => "Ваш запрос принят, но ещё не завершён.",
        Heard::Checking => {
            "Мы пока не можем подтвердить ваш запрос. Наш сотрудник проверяет и ответит вам в этом чате."
        }
        Heard::Held => {
            "Ваш запрос сначала должен одобрить наш сотрудник. Пока ничего не отправлено."
        }
        Heard::Failed(FailureClass::ValidationFailure) => "Ваш запрос не был выполнен.",
        Heard::Failed(FailureClass::PermissionDenied) => {
            "Ваш запрос не был разрешён и не выполнен."
        }
        Heard::Failed(FailureClass::EffectFailed) => "Ваш запрос не прошёл.",
        Heard::Failed(FailureClass::Unavailable) => {
            "Ваш запрос не удалось отправить. Ничего не сделано; пожалуйста, обратитесь позже."
        }
        Heard::Rejected(RejectClass::ValidationFailure) => {
            "Мы не можем выполнить запрос в таком виде. Ничего не сделано."
        }
        Heard::Rejected(RejectClass::PermissionDenied) => {
            "Этот запрос не разрешён. Ничего не сделано."
        }
        Heard::Rejected(RejectClass::RateLimited) => {
            "Сейчас слишком много запросов. Ничего не сделано; пожалуйста, повторите через минуту."
        }
        Heard::Rejected(RejectClass::Unavailable) => {
            "Сейчас мы не можем выполнить этот запрос. Ничего не сделано; пожалуйста, обратитесь позже."
        }
        Heard::Rejected(RejectClass::OrderBusy) => {
            "Другой запрос по тому же заказу ещё не завершён. По этому запросу ничего не сделано; пожалуйста, обратитесь позже."
        }
    }
}

/// `{of}` stands for amount and order, or for nothing.
fn english(heard: Heard) -> &'static str {
    match heard {
        Heard::Done => {
            "Your refund{of} has been made. It can take some days to appear in your account."
        }
        Heard::DoneBefore => "Your refund{of} was made earlier already. Nothing further was sent.",
        Heard::Unconfirmed => {
            "We cannot confirm your refund{of} yet. Please ask again in a few minutes."
        }
        Heard::Accepted => {
            "Your refund{of} was accepted by the payment provider, but it is not final yet."
        }
        Heard::Checking => {
            "We cannot confirm your refund{of} yet. A colleague is checking and will answer in this chat."
        }
        Heard::Held => {
            "A colleague has to approve your refund{of} first. Nothing has been sent yet."
        }
        Heard::Failed(FailureClass::ValidationFailure) => "Your refund{of} was not made.",
        Heard::Failed(FailureClass::PermissionDenied) => {
            "Your refund{of} was not authorised, so it was not made."
        }
        Heard::Failed(FailureClass::EffectFailed) => "Your refund{of} did not go through.",
        Heard::Failed(FailureClass::Unavailable) => {
            "Your refund{of} could not be sent. Nothing was done; please ask again later."
        }
        Heard::Rejected(RejectClass::ValidationFailure) => {
            "We cannot make the refund{of} as it was asked for. Nothing was done for this request."
        }
        Heard::Rejected(RejectClass::PermissionDenied) => {
            "The refund{of} is not permitted. Nothing was done for this request."
        }
        Heard::Rejected(RejectClass::RateLimited) => {
            "There are too many requests right now, so we could not look at the refund{of}. Nothing was done for this request; please ask again in a minute."
        }
        Heard::Rejected(RejectClass::Unavailable) => {
            "We cannot make the refund{of} right now. Nothing was done for this request; please ask again later."
        }
        Heard::Rejected(RejectClass::OrderBusy) => {
            "Another refund of the same purchase is not settled yet, so we cannot start the refund{of}. Nothing was done for this request; please ask again later."
        }
    }
}

/// The same in Russian; what `{of}` stands for fits behind any case of "возврат".
fn russian(heard: Heard) -> &'static str {
    match heard {
        Heard::Done => {
            "Возврат{of} выполнен. Деньги могут поступить на ваш счёт через несколько дней."
        }
        Heard::DoneBefore => "Возврат{of} уже был выполнен раньше. Повторно ничего не отправлено.",
        Heard::Unconfirmed => {
            "Мы пока не можем подтвердить возврат{of}. Пожалуйста, спросите ещё раз через несколько минут."
        }
        Heard::Accepted => "Возврат{of} принят платёжной системой, но ещё не завершён.",
        Heard::Checking => {
            "Мы пока не можем подтвердить возврат{of}. Наш сотрудник проверяет и ответит вам в этом чате."
        }
        Heard::Held => {
            "Возврат{of} сначала должен одобрить наш сотрудник. Пока ничего не отправлено."
        }
        Heard::Failed(FailureClass::ValidationFailure) => "Возврат{of} не был выполнен.",
        Heard::Failed(FailureClass::PermissionDenied) => {
            "Возврат{of} не был разрешён и не выполнен."
        }
        Heard::Failed(FailureClass::EffectFailed) => "Возврат{of} не прошёл.",
        Heard::Failed(FailureClass::Unavailable) => {
            "Возврат{of} не удалось отправить. Ничего не сделано; пожалуйста, обратитесь позже."
        }
        Heard::Rejected(RejectClass::ValidationFailure) => {
            "Мы не можем выполнить возврат{of} так, как он запрошен. По этому запросу ничего не сделано."
        }
        Heard::Rejected(RejectClass::PermissionDenied) => {
            "Возврат{of} не разрешён. По этому запросу ничего не сделано."
        }
        Heard::Rejected(RejectClass::RateLimited) => {
            "Сейчас слишком много запросов, и мы не смогли рассмотреть возврат{of}. По этому запросу ничего не сделано; пожалуйста, повторите через минуту."
        }
        Heard::Rejected(RejectClass::Unavailable) => {
            "Сейчас мы не можем выполнить возврат{of}. По этому запросу ничего не сделано; пожалуйста, обратитесь позже."
        }
        Heard::Rejected(RejectClass::OrderBusy) => {
            "Другой возврат по той же покупке ещё не завершён, поэтому мы не можем начать возврат{of}. По этому запросу ничего не сделано; пожалуйста, обратитесь позже."
        }
    }
}

/// `USD 1,234.50`, and in Russian `1 234,50 USD` with spaces that do not break.
fn amount(money: Money, language: Language) -> String {
    let decimal = money.decimal();
    let (whole, fraction) = decimal.split_once('.').unwrap_or((&decimal, ""));
    let (between, point) = match language {
        Language::En => (',', '.'),
        Language::Ru => ('\u{a0}', ','),
    };
    let mut number = String::new();
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && whole.len().saturating_sub(n).is_multiple_of(3) {
            number.push(between);
        }
        number.push(digit);
    }
    if !fraction.is_empty() {
        number.push(point);
        number.push_str(fraction);
    }
    let code = money.currency().code();
    match language {
        Language::En => format!("{code} {number}"),
        Language::Ru => format!("{number}\u{a0}{code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::OperationId;
    use crate::domain::text::SafeText;
    use crate::domain::tool_call::Named;
    use strum::VariantArray as _;

    const ARGUMENTS: &str = r#"{"order_id":"4417","amount_cents":3800,"currency":"usd"}"#;

    fn refunds() -> ToolName {
        ToolName::parse(REFUNDS).expect("a name")
    }

    fn object() -> Option<Named> {
        let id = "re_1".parse().ok()?;
        let name = "refund_id".to_owned();
        Some(Named { name, id })
    }

    fn id() -> OperationId {
        OperationId::parse("op_5521").expect("an id")
    }

    /// Every result a call can get, with what belongs to us in it.
    fn results() -> Vec<ToolResult> {
        let (operation_id, note, object) = (id(), SafeText::new("note"), object());
        let mut all = vec![
            ToolResult::Held {
                operation_id: id(),
                note: note.clone(),
            },
            ToolResult::Checking {
                operation_id: operation_id.clone(),
                object: object.clone(),
                note: note.clone(),
            },
        ];
        for object in [None, object.clone()] {
            all.push(ToolResult::Unconfirmed {
                operation_id: id(),
                object,
                note: note.clone(),
            });
        }
        for repeat in [false, true] {
            all.push(ToolResult::Done {
                word: "refunded".into(),
                operation_id: id(),
                object: object.clone(),
                repeat,
            });
        }
        for class in [
            FailureClass::ValidationFailure,
            FailureClass::PermissionDenied,
            FailureClass::EffectFailed,
            FailureClass::Unavailable,
        ] {
            all.push(ToolResult::Failed {
                operation_id: id(),
                object: object.clone(),
                class,
                reason: "the provider said secret things".into(),
            });
        }
        for class in [
            RejectClass::ValidationFailure,
            RejectClass::PermissionDenied,
            RejectClass::RateLimited,
            RejectClass::Unavailable,
            RejectClass::OrderBusy,
        ] {
            all.push(ToolResult::rejected(class, "secret things"));
        }
        all
    }

    #[test]
    fn each_result_has_its_own_sentence_in_each_language_without_anything_of_ours() {
        for language in Language::VARIANTS {
            let mut heard: Vec<String> = Vec::new();
            for result in results() {
                let text = of_call(&result, &refunds(), ARGUMENTS, *language);
                assert!(text.contains("4417") && text.contains("38"), "{text}");
                for ours in ["op_", "re_", "secret", "note", "{", "}", "stripe", "key"] {
                    assert!(!text.contains(ours), "{text}");
                }
                assert!(text.ends_with('.') && !heard.contains(&text), "{text}");
                assert_eq!(SafeText::new(&text).as_str(), text);
                let latin = text.replace("USD", "");
                let latin = latin.contains(|c: char| c.is_ascii_alphabetic());
                assert_eq!(latin, *language == Language::En, "{text}");
                // Without readable arguments the sentence still stands.
                let bare = of_call(&result, &refunds(), "{}", *language);
                assert!(!bare.contains("{of}") && !bare.contains("  "), "{bare}");
                heard.push(text);
            }
        }
    }

    #[test]
    fn other_tools_have_sentences_of_their_own_that_name_no_refund() {
        let tickets = ToolName::parse("create_ticket").expect("a name");
        for language in Language::VARIANTS {
            let mut heard: Vec<String> = Vec::new();
            for result in results() {
                let text = of_call(&result, &tickets, ARGUMENTS, *language);
                for wrong in ["refund", "возврат", "Возврат", "{", "op_", "re_", "4417"]
                {
                    assert!(!text.contains(wrong), "{text}");
                }
                assert!(text.ends_with('.') && !heard.contains(&text), "{text}");
                heard.push(text);
            }
        }
    }

    #[test]
    fn only_a_success_is_told_as_one_and_checking_confirms_nothing_r57() {
        let told = |result: &ToolResult| of_call(result, &refunds(), ARGUMENTS, Language::En);
        for result in results() {
            let success = matches!(result, ToolResult::Done { .. });
            let text = told(&result);
            let claims = text.contains("has been made") || text.contains("was made earlier");
            assert_eq!(claims, success, "{text}");
        }
        let checking = ToolResult::Checking {
            operation_id: id(),
            object: None,
            note: SafeText::default(),
        };
        assert_eq!(
            told(&checking),
            "We cannot confirm your refund of USD 38.00 for order 4417 yet. \
             A colleague is checking and will answer in this chat."
        );
        assert_eq!(
            of_call(&checking, &refunds(), ARGUMENTS, Language::Ru),
            "Мы пока не можем подтвердить возврат на сумму 38,00\u{a0}USD по заказу 4417. \
             Наш сотрудник проверяет и ответит вам в этом чате."
        );
    }

    #[test]
    fn amounts_have_the_decimals_of_their_currency_i32() {
        let shown = |minor, code: &str, language| {
            let money = Money::from_minor(minor, code.parse().expect("a currency"));
            amount(money.expect("an amount"), language)
        };
        assert_eq!(shown(3800, "usd", Language::En), "USD 38.00");
        assert_eq!(shown(5, "usd", Language::En), "USD 0.05");
        assert_eq!(shown(123_456_789, "usd", Language::En), "USD 1,234,567.89");
        assert_eq!(shown(500_000, "jpy", Language::En), "JPY 500,000");
        assert_eq!(shown(1234, "kwd", Language::En), "KWD 1.234");
        let ru = |minor, code| shown(minor, code, Language::Ru);
        assert_eq!(ru(123_456_789, "usd"), "1\u{a0}234\u{a0}567,89\u{a0}USD");
        assert_eq!(ru(5000, "jpy"), "5\u{a0}000\u{a0}JPY");
    }

    #[test]
    fn an_order_that_spells_the_mark_stays_text() {
        let arguments = r#"{"order_id":"{of}{of}","amount_cents":100,"currency":"usd"}"#;
        let text = of_call(
            &ToolResult::rejected(RejectClass::Unavailable, ""),
            &refunds(),
            arguments,
            Language::En,
        );
        assert!(
            text.contains("refund of USD 1.00 for order {of}{of} right"),
            "{text}"
        );
    }
}
