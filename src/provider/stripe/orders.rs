//! Which payment an order was paid with, where Stripe's own search does not serve: it lags, knows only
//! what carries `metadata.order_id`, and does not exist everywhere (S43).
//!
//! A *table* is a file of order → payment, read anew for every question: CSV (`order_id,payment` a line) or
//! TOML (`"4417" = "pi_…"`). A *command* is asked with the order in its environment and answers with one id
//! on standard output; no shell reads it. Owns: reading both, and that nothing but a payment's or charge's id
//! comes out: a table with one bad line and a command with one word too much name no payment at all.
//! Never: takes the answer on trust. It only says which payment to read; what that payment says of its
//! order, currency and sums decides. Tests: below and `tests/stripe/orders.rs`.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::wire;
use crate::clock::Clock;
use crate::config::{OrdersBy, open_file, plain};
use crate::domain::ids::{ChargeId, OrderId, PaymentId};
use crate::domain::text::SafeText;
use crate::program::Program;
use crate::provider::ResolveError;

/// Largest table, in bytes.
const MAX_TABLE: u64 = 16 * 1024 * 1024;
/// Longest id of a payment.
const MAX_ID: usize = 255;
/// What stands for the order in a command's words.
const PLACE: &str = "{order_id}";

/// Who knows which payment an order was paid with.
#[derive(Clone, Debug)]
pub struct Orders(By);

#[derive(Clone, Debug)]
enum By {
    Search,
    Table(PathBuf),
    Command(Program),
}

/// A payment by its intent or by its charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Paid {
    Intent(PaymentId),
    Charge(ChargeId),
}

impl Orders {
    /// Stripe's search.
    #[must_use]
    pub fn search() -> Self {
        Self(By::Search)
    }

    /// As configured; `lookup` reads a variable of the environment that a command may inherit.
    pub fn new(by: &OrdersBy, lookup: impl Fn(&str) -> Option<String>) -> Self {
        Self(match by {
            OrdersBy::Search => By::Search,
            OrdersBy::Table(path) => By::Table(path.clone()),
            OrdersBy::Command(words) => By::Command(Program::new(words.clone(), lookup)),
        })
    }

    /// The payment of an order; `None` where the provider's search is to be asked.
    ///
    /// # Errors
    /// No payment, several, or an answer that names none; one that could not be had is
    /// [`ResolveError::Unreadable`].
    pub(super) async fn find(
        &self,
        order: &OrderId,
        clock: &Clock,
        limit: Duration,
    ) -> Result<Option<Paid>, ResolveError> {
        match &self.0 {
            By::Search => Ok(None),
            By::Table(path) => table(path.clone(), order.clone()).await.map(Some),
            By::Command(program) => command(program, order, clock, limit).await.map(Some),
        }
    }
}

async fn table(path: PathBuf, order: OrderId) -> Result<Paid, ResolveError> {
    let looked = tokio::task::spawn_blocking(move || in_table(&path, &order));
    match looked.await {
        Ok(found) => found,
        Err(_) => Err(unreadable("the table of orders could not be read")),
    }
}

fn in_table(path: &Path, order: &OrderId) -> Result<Paid, ResolveError> {
    let text = read(path).map_err(|why| unreadable(&why))?;
    let is_toml = path.extension().is_some_and(|e| e == "toml");
    let all = if is_toml { toml(&text) } else { csv(&text) };
    let mut all = all.map_err(|why| unreadable(&format!("the table of orders {why}")))?;
    all.remove(order).ok_or_else(|| no_payment(order))
}

fn read(path: &Path) -> Result<String, String> {
    let failed = |why: &str| format!("the table of orders {} {why}", path.display());
    let (file, meta) =
        open_file(path).map_err(|e| failed(&format!("cannot be read: {}", plain(&e))))?;
    if meta.len() > MAX_TABLE {
        return Err(failed("is larger than 16 MiB"));
    }
    let mut text = String::new();
    file.take(MAX_TABLE)
        .read_to_string(&mut text)
        .map_err(|_| failed("is not UTF-8"))?;
    Ok(text)
}

/// `order_id,payment` a line; the first may be exactly these words. The id comes last and holds no comma,
/// so an order may hold some.
fn csv(text: &str) -> Result<BTreeMap<OrderId, Paid>, String> {
    let mut all = BTreeMap::new();
    let lines = text.trim_start_matches('\u{feff}').lines();
    for (number, line) in lines.enumerate() {
        if line.trim().is_empty() || number == 0 && line.trim() == "order_id,payment" {
            continue;
        }
        let place = || format!("line {}", number.saturating_add(1));
        let (order, id) = line
            .rsplit_once(',')
            .ok_or_else(|| format!("is not ORDER,PAYMENT in {}", place()))?;
        insert(&mut all, &unquoted(order), &unquoted(id), place)?;
    }
    Ok(all)
}

/// A field without its quotes, inside of which a quote is written twice.
fn unquoted(field: &str) -> String {
    let field = field.trim();
    let inner = field.strip_prefix('"').and_then(|f| f.strip_suffix('"'));
    inner.map_or_else(|| field.to_owned(), |inner| inner.replace("\"\"", "\""))
}

/// `"4417" = "pi_…"` a line.
fn toml(text: &str) -> Result<BTreeMap<OrderId, Paid>, String> {
    let read: BTreeMap<String, String> = toml::from_str(text).map_err(|e| {
        let why = SafeText::new(e.message().lines().next().unwrap_or_default());
        format!("is not ORDER = \"PAYMENT\": {why}")
    })?;
    let mut all = BTreeMap::new();
    for (order, id) in &read {
        insert(&mut all, order, id, || "an entry".to_owned())?;
    }
    Ok(all)
}

fn insert(
    all: &mut BTreeMap<OrderId, Paid>,
    order: &str,
    id: &str,
    place: impl Fn() -> String,
) -> Result<(), String> {
    let order =
        OrderId::parse(order).map_err(|e| format!("has an order in {} that {e}", place()))?;
    let paid = paid(id).ok_or_else(|| {
        format!(
            "has no id of a payment (pi_…) or charge (ch_…) in {}",
            place()
        )
    })?;
    match all.insert(order, paid.clone()) {
        Some(other) if other != paid => Err(format!(
            "names two payments of one order, the second in {}",
            place()
        )),
        Some(_) | None => Ok(()),
    }
}

async fn command(
    program: &Program,
    order: &OrderId,
    clock: &Clock,
    limit: Duration,
) -> Result<Paid, ResolveError> {
    let words = with_order(&program.words, order)?;
    let program = Program {
        words,
        ..program.clone()
    };
    let variables = [("SAMEKEY_ORDER_ID", order.to_string())];
    let ended = program.run(variables, clock, limit).await;
    let ended = ended.map_err(|why| unreadable(&format!("resolving the order: {why}")))?;
    if !ended.status.success() {
        // What it said goes to the log, not to the model that asked.
        tracing::warn!(stderr = %ended.err.shown(), "the command that resolves orders failed");
        let status = ended.status;
        return Err(unreadable(&format!(
            "resolving the order: the command ended with {status}"
        )));
    }
    let said = std::str::from_utf8(&ended.out.bytes).map(str::trim);
    match said {
        Ok("") if ended.out.whole => Err(no_payment(order)),
        Ok(one) if ended.out.whole => paid(one).ok_or_else(not_one_id),
        Ok(_) | Err(_) => Err(not_one_id()),
    }
}

/// The command's words with the order in its place. An order that looks like an option is no argument: the
/// program could obey it.
fn with_order(words: &[String], order: &OrderId) -> Result<Vec<String>, ResolveError> {
    let put = |word: &String| {
        if word.starts_with(PLACE) && order.as_str().starts_with('-') {
            return Err(refused(&format!(
                "order {order} cannot be looked up: it begins like an option of a command"
            )));
        }
        Ok(word.replace(PLACE, order.as_str()))
    };
    words.iter().map(put).collect()
}

/// An id of a payment intent or charge, and nothing else.
fn paid(id: &str) -> Option<Paid> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let (kind, rest) = id.split_once('_')?;
    if rest.is_empty() || id.len() > MAX_ID || !id.bytes().all(word) {
        return None;
    }
    match kind {
        "pi" => PaymentId::parse(id).ok().map(Paid::Intent),
        // Charges of other methods than cards begin with py_.
        "ch" | "py" => ChargeId::parse(id).ok().map(Paid::Charge),
        _ => None,
    }
}

fn no_payment(order: &OrderId) -> ResolveError {
    refused(&format!(
        "no payment of order {order} is known; name its payment_intent or charge"
    ))
}

fn not_one_id() -> ResolveError {
    refused(
        "the command that resolves orders did not answer with one id of a payment (pi_…) or charge (ch_…)",
    )
}

fn refused(why: &str) -> ResolveError {
    ResolveError::Refused(wire::shown(why, &[]))
}

fn unreadable(why: &str) -> ResolveError {
    ResolveError::Unreadable(wire::shown(why, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str, read: fn(&str) -> Result<BTreeMap<OrderId, Paid>, String>) -> Vec<String> {
        let all = read(text).expect("a table");
        let shown = all.into_iter().map(|(order, paid)| match paid {
            Paid::Intent(id) => format!("{order}={id}"),
            Paid::Charge(id) => format!("{order}={id}"),
        });
        shown.collect()
    }

    #[test]
    fn a_table_is_read_in_both_forms() {
        let text = "\u{feff}order_id,payment\n4417,pi_1\r\n\n \"a,\"\"b\"\"\" , ch_2\nx,y,py_3\n4417,pi_1\n";
        assert_eq!(ids(text, csv), ["4417=pi_1", "a,\"b\"=ch_2", "x,y=py_3"]);
        let text = "# orders\n4417 = \"pi_1\"\n\"a b\" = \"ch_2\"\n";
        assert_eq!(ids(text, toml), ["4417=pi_1", "a b=ch_2"]);
        assert!(ids("", csv).is_empty() && ids("", toml).is_empty());
    }

    #[test]
    fn a_table_with_one_bad_line_names_no_payment_at_all() {
        for (bad, says) in [
            ("4417", "line 2"),
            ("4417,", "no id of a payment"),
            (",pi_9", "that is empty"),
            ("4417,re_1", "no id of a payment"),
            ("4417,pi_", "no id of a payment"),
            ("4417,pi_1/../../v1/account", "no id of a payment"),
            ("4417,pi_1 pi_2", "no id of a payment"),
            ("44\u{202e}17,pi_1", "an order in line 2"),
            ("1,pi_2", "two payments of one order"),
            ("order_id,payment", "no id of a payment"),
        ] {
            let why = csv(&format!("1,pi_1\n{bad}\n")).expect_err(bad);
            assert!(why.contains(says), "{bad}: {why}");
        }
        for bad in [
            "4417 = 5",
            "4417 = \"pi_1\"\n4417 = \"pi_2\"",
            "[x]",
            "4417",
        ] {
            assert!(toml(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_order_is_never_an_option_of_the_command() {
        let words = |raw: &[&str]| raw.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let order = |raw| OrderId::parse(raw).expect("an order");
        let put = |raw: &[&str], o| with_order(&words(raw), &order(o));
        assert_eq!(
            put(&["/bin/x", "--order={order_id}", "{order_id}"], "a b; c"),
            Ok(words(&["/bin/x", "--order=a b; c", "a b; c"]))
        );
        assert!(put(&["/bin/x", "--order={order_id}"], "--all").is_ok());
        assert!(matches!(
            put(&["/bin/x", "{order_id}"], "--all"),
            Err(ResolveError::Refused(_))
        ));
    }
}
