//! A reader that keeps a snapshot while others write: the log grows, and shrinks again when it leaves.

use std::time::{Duration, Instant};

use samekey::ledger::sqlite::{OpenMode, SqliteLedger};
use samekey::ledger::{Ledger as _, NewCall};

use crate::judge::judge;
use crate::ledger::{Held, block};
use crate::place::{Place, leave};
use crate::tools::figure;

/// What the log is cut back to (L7).
const BOUND: u64 = 16 * 1024 * 1024;
const WRITES: usize = 2_000;

/// L7, F76: while a snapshot is held, two thousand calls are accepted and the engine goes on working; within a
/// minute after the reader has left the log is back at its bound.
#[test]
fn the_log_returns_to_its_bound_once_a_long_reader_leaves_l7_f76() {
    let place = Place::new("honest");
    place.drive("1", "made");
    let engine = place.engine(&[]);
    let reader = Held::begin(
        &place.ledger,
        &[
            "PRAGMA query_only = ON",
            "BEGIN",
            "SELECT count(*) FROM operations",
        ],
    );
    // Calls of a tool that no engine here knows: they are left alone (F49) and cost a commit each.
    block(async {
        let clock = samekey::clock::Clock::system();
        let at = format!("sqlite:{}", crate::cli::text(&place.ledger));
        let ledger = SqliteLedger::open(&at, OpenMode::Submit, std::sync::Arc::default(), clock);
        let ledger = ledger.await.expect("opened");
        for n in 0..WRITES {
            let call = NewCall {
                id: format!("other_{n}").parse().expect("an id"),
                agent: "other".parse().expect("a name"),
                tool: "create_ticket".parse().expect("a name"),
                arguments: format!("{{\"subject\":\"{}\"}}", "x".repeat(4_000)),
                session: None,
            };
            ledger.accept_call(call).await.expect("accepted");
        }
        ledger.close().await;
    });
    place.queue("2", "meanwhile");
    place.rests(&engine);
    let wal = format!("{}-wal", crate::cli::text(&place.ledger));
    let size = || std::fs::metadata(&wal).map_or(0, |m| m.len());
    let grown = size();
    assert!(
        grown > BOUND,
        "the snapshot kept the log from being cut: {grown}"
    );
    reader.let_go();
    let left = Instant::now();
    while size() > BOUND {
        assert!(
            left.elapsed() < Duration::from_secs(60),
            "L7: still {} bytes",
            size()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    figure(&format!(
        "a log of {grown} bytes is back at {} bytes {:.1} s after its reader left",
        size(),
        left.elapsed().as_secs_f64()
    ));
    leave(engine);
    assert_eq!(judge(&place).effects, 2);
}
