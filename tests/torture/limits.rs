//! Too few descriptors, too little memory: whatever cannot be had, nothing is sent uncounted, and with the
//! limit gone all goes on.

use crate::judge::judge;
use crate::place::{Place, leave};
use crate::tools::figure;

/// `sh` that sets a limit and becomes the program behind it.
fn limited<'a>(script: &'a str, limit: &'a str) -> [&'a str; 4] {
    ["sh", "-c", script, limit]
}

const DESCRIPTORS: &str = "ulimit -n \"$0\"; exec \"$@\"";
const KILOBYTES: &str = "ulimit -v \"$0\"; exec \"$@\"";

/// I5, I11, I26 (proof.md (c), "descriptors, memory"): single calls below the limits they need either work or
/// fail closed.
#[test]
fn below_the_limits_it_needs_a_call_works_or_fails_closed_i5() {
    let place = Place::new("honest");
    place.queue("1", "made");
    let few = [
        "4", "6", "8", "10", "12", "14", "16", "18", "20", "24", "32",
    ];
    let little = ["20000", "60000", "100000", "140000", "200000", "400000"];
    let all = few
        .iter()
        .map(|n| (DESCRIPTORS, *n))
        .chain(little.iter().map(|n| (KILOBYTES, *n)));
    let (mut worked, mut failed) = (0, 0);
    for (nth, (script, limit)) in all.enumerate() {
        let (order, call) = (format!("{}", 100 + nth), format!("call_{nth}"));
        let more = ["--run", "--json"];
        let mut submit = place.submit_under(&limited(script, limit), &order, &call, &more);
        let ended = place.ask(&call, &mut submit);
        if ended.word() == "refunded" {
            worked += 1;
        } else {
            failed += 1;
        }
    }
    figure(&format!(
        "with limits {worked} calls worked, {failed} failed closed"
    ));
    assert!(
        worked > 0 && failed > 0,
        "the limits are about what it needs"
    );
    place.come_to_rest();
    judge(&place);
}

/// I5, I26, L1: an engine with 32 descriptors and eight workers under load: what it cannot connect for is not
/// sent (connections that fail in a row also open the circuit), every call is answered, and what the limit left
/// undone is nobody's loss.
#[test]
fn an_engine_with_32_descriptors_answers_every_call_i5_l1() {
    let place = Place::new("honest");
    for n in 0..16 {
        place.queue(&(200 + n).to_string(), &format!("call_{n}"));
    }
    let engine = place.engine_under(&limited(DESCRIPTORS, "32"), &[]);
    let books = place.rests(&engine);
    leave(engine);
    assert_eq!(books.calls.len(), 16);
    let limited = judge(&place);
    for n in 0..16 {
        place.queue(&(200 + n).to_string(), &format!("again_{n}"));
    }
    place.come_to_rest();
    let sum = judge(&place);
    assert_eq!(sum.calls, 32);
    assert!(
        sum.effects >= limited.effects && sum.effects <= 16,
        "{sum:?}"
    );
}
