//! A ledger's file is damaged between two processes (`traps.md`, finding 11).

use std::os::unix::fs::FileExt as _;

use crate::judge::judge;
use crate::place::{Place, leave};
use crate::tools::{SOON, each, figure, some};

const PAGE: u64 = 4096;

/// A ledger with a few refunds, one of which nobody knows the end of, at rest and closed.
fn filled() -> Place {
    let place = Place::new("timeout-after-effect:3");
    for n in 0..4 {
        place.drive(&format!("44{n}"), &format!("before_{n}"));
    }
    place
}

fn pages(place: &Place) -> u64 {
    std::fs::metadata(&place.ledger).expect("a file").len() / PAGE
}

/// Overwrites 200 bytes at the beginning of a page.
fn damage(place: &Place, page: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(&place.ledger);
    let file = file.expect("opened");
    file.write_all_at(&[0xa5; 200], page * PAGE)
        .expect("written");
}

/// I11 (finding 11 of `traps.md`): whichever page lost 200 bytes, a process either names the damage and sends nothing, or the page
/// held nothing that counts; in no case is anything paid twice.
#[test]
fn whichever_page_is_damaged_nothing_is_sent_on_a_broken_ledger_i11() {
    let all: Vec<u64> = (0..pages(&filled())).collect();
    let chosen = some(&all, 12);
    let count = chosen.len();
    let refused = std::sync::atomic::AtomicUsize::new(0);
    each(chosen, 4, |page| {
        let place = filled();
        let sent = place.posts();
        damage(&place, *page);
        let verified = place.home.run(&["verify"]).code == 0;
        let call = place.drive("4499", "after");
        assert!(!call.stderr.contains("panicked"), "{call:#?}");
        if verified {
            // A page that is not in use.
            assert_eq!(call.word(), "refunded", "page {page}: {call:#?}");
            place.come_to_rest();
            judge(&place);
            return;
        }
        refused.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        assert!(!call.status.success(), "page {page}: {call:#?}");
        assert_eq!(place.posts(), sent, "page {page}: nothing is sent");
        // Nor for what nobody knows the end of yet.
        let known = place.drive("440", "again");
        assert!(!known.status.success(), "page {page}: {known:#?}");
        assert_eq!(place.posts(), sent, "page {page}: nothing is sent again");
    });
    let refused = refused.into_inner();
    figure(&format!("{count} damaged pages, {refused} refused"));
    assert!(refused * 2 > count, "most pages count");
}

/// The same (finding 11): the engine behind the screen sends nothing on a damaged ledger and says so.
#[test]
fn an_engine_on_a_damaged_ledger_says_so_and_sends_nothing_i11() {
    let place = filled();
    place.queue("4499", "after");
    let sent = place.posts();
    let page = {
        let first = "SELECT rootpage FROM sqlite_schema WHERE name = 'evidence'";
        let page: i64 = crate::ledger::number(&place.ledger, first);
        u64::try_from(page).expect("a page") - 1
    };
    damage(&place, page);
    let mut engine = place.engine(&[]);
    let said = engine.wait("the damage", |s| s.contents().contains("nothing is sent"));
    assert!(said.contains("cannot be read"), "and why: {said}");
    assert_eq!(place.posts(), sent);
    engine.signal(rustix::process::Signal::TERM);
    engine.exit(SOON);
    // The same screen can be left and entered again; it changes nothing.
    let engine = place.engine(&[]);
    engine.wait("the damage", |s| s.contents().contains("nothing is sent"));
    leave(engine);
    assert_eq!(place.posts(), sent);
}
