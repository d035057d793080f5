//! What was set aside: it stays in sight until a person says they have seen it, by the gate alone; and what
//! the provider does not know yet is asked about again, for a bounded time.

use std::time::Duration;

use samekey::domain::guard::Role;
use samekey::domain::ids::EventId;
use samekey::domain::operation::Status;
use samekey::ledger::{EventLine, EventSource, NewEvent, NotAcknowledged};
use samekey::review::{Gate, GateError};
use serde_json::json;

use crate::cli::{Home, simulator};
use crate::ledger::{ann, person};
use crate::scripted::{Room, SECRET, with};

fn gate(room: &Room) -> Gate {
    let deps = room.deps();
    let os_user = ann().name;
    Gate::new(
        deps.ledger,
        deps.providers,
        deps.terms,
        std::sync::Arc::default(),
        os_user,
        deps.clock,
    )
}

/// A room with one event of real money in a ledger of the simulator.
async fn set_aside() -> (Room, EventId) {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    let event = room.event("evt_live", "refund.created", &refund);
    let gateway = room.gateway(&[SECRET]).await;
    let live = with(&event, &json!({"livemode": true}));
    assert_eq!(room.deliver(&gateway, &live).await, 200);
    room.work_off().await;
    assert_eq!(room.counts().await.quarantined, 1);
    (room, EventId::parse("evt_live").expect("an id"))
}

async fn lines(room: &Room) -> Vec<EventLine> {
    let lines = room.world.ledger.recovery().event_lines(10).await;
    lines.expect("lines")
}

/// R50, M5: seen once, by somebody who may, with a note; counted no more, and kept for good.
#[tokio::test]
async fn a_quarantined_event_is_acknowledged_once_by_a_person_with_a_note_m5() {
    let (room, id) = set_aside().await;
    let gate = gate(&room);
    let viewer = person("vic", Role::Viewer);
    let refused = gate.acknowledge_event(&id, None, &viewer, "seen").await;
    assert!(matches!(refused, Err(GateError::NotPermitted { .. })));
    let refused = gate.acknowledge_event(&id, None, &ann(), "  ").await;
    assert!(matches!(refused, Err(GateError::Refused(_))), "{refused:?}");
    let nobody = EventId::parse("evt_none").expect("an id");
    let refused = gate.acknowledge_event(&nobody, None, &ann(), "seen").await;
    assert!(refused.is_err_and(|e| e.to_string().contains("there is no such event")));
    assert_eq!(room.counts().await.quarantined, 1, "nothing was changed");

    room.world.wait(Duration::from_secs(60));
    let note = "the live endpoint pointed here\u{1b}[2J";
    gate.acknowledge_event(&id, None, &ann(), note)
        .await
        .expect("seen");
    let counts = room.counts().await;
    assert_eq!((counts.quarantined, counts.acknowledged), (0, 1));
    let all = lines(&room).await;
    let seen = all[0].acknowledged.as_ref().expect("it is there");
    assert_eq!((seen.by.as_str(), seen.at), ("ann", room.world.clock.now()));
    assert!(!seen.note.as_str().contains('\u{1b}'), "I31");
    assert_eq!(
        all[0].reason.as_ref().map(ToString::to_string),
        Some("wrong_mode".into())
    );
    let again = gate.acknowledge_event(&id, None, &ann(), "again").await;
    assert!(again.is_err_and(|e| e.to_string().contains("ann has acknowledged it already")));
    // Nothing followed from it, and it is not worked on again.
    room.reconcile().await;
    assert_eq!(room.counts().await.acknowledged, 1);
    room.is_honest().await;
}

/// M5: what waits or was taken in is nothing to acknowledge.
#[tokio::test]
async fn only_what_was_set_aside_is_acknowledged_m5() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    let gateway = room.gateway(&[SECRET]).await;
    let event = room.event("evt_1", "refund.created", &refund);
    assert_eq!(room.deliver(&gateway, &event).await, 200);
    let evt: EventId = "evt_1".parse().expect("an id");
    let gate = gate(&room);
    for state in ["received", "processed"] {
        let refused = gate.acknowledge_event(&evt, None, &ann(), "seen").await;
        let why = refused.expect_err(state).to_string();
        assert!(why.contains(&format!("the event is {state}")), "{why}");
        room.work_off().await;
    }
    room.is_honest().await;
}

/// F62: two providers may use the same id; each has its event, and a person says which one they mean.
#[tokio::test]
async fn an_event_id_is_the_providers_own_f62() {
    let room = Room::new().await;
    let recovery = room.world.ledger.recovery();
    let event = |provider: &str| NewEvent {
        id: "evt_1".parse().expect("an id"),
        provider: provider.parse().expect("a name"),
        kind: "unreadable",
        object: None,
        digest: "0".repeat(64),
        source: EventSource::Webhook,
        payload: b"{".to_vec(),
        created_at: None,
        names: None,
    };
    for provider in ["stripe", "other"] {
        assert!(
            recovery
                .accept_event(event(provider))
                .await
                .expect("stored"),
            "{provider}"
        );
        assert!(
            !recovery.accept_event(event(provider)).await.expect("known"),
            "{provider}"
        );
    }
    let (id, by) = ("evt_1".parse().expect("an id"), ann().name);
    let which = recovery
        .acknowledge_event(&id, None, &by, &"seen".into())
        .await;
    let which = which.expect("answered");
    assert_eq!(
        which,
        Err(NotAcknowledged::Several("other and stripe".into()))
    );
    room.is_honest().await;
}

/// M5, S57: a refund that the provider does not know yet is asked about again, at growing distances.
#[tokio::test]
async fn a_refund_that_is_not_known_yet_is_asked_about_again_m5_s57() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    room.shown().refunds.push(refund);
    room.shown().hidden = vec!["re_1"];
    let gateway = room.gateway(&[SECRET]).await;
    let strange = json!({"id": "re_1", "object": "refund", "amount": "38.00"});
    let event = room.event("evt_1", "refund.created", &strange);
    assert_eq!(room.deliver(&gateway, &event).await, 200);
    for wait in [0, 11, 21, 41] {
        room.world.wait(Duration::from_secs(wait));
        room.work_off().await;
        let counts = room.counts().await;
        assert_eq!(
            (counts.waiting, counts.ignored),
            (1, 0),
            "after {wait} s more"
        );
    }
    let fetches = |room: &Room| {
        let all = room.server.requests();
        all.iter()
            .filter(|r| r.line == "GET /v1/refunds/re_1")
            .count()
    };
    assert_eq!(fetches(&room), 4);
    room.shown().hidden.clear();
    room.world.wait(Duration::from_secs(81));
    room.work_off().await;
    assert_eq!(room.row(&id).await.status, Status::Succeeded);
    room.is_honest().await;
}

/// M5, S55: after three days it is set aside, where a person sees it.
#[tokio::test]
async fn a_refund_that_is_never_known_ends_in_sight_m5_s55() {
    let room = Room::new().await;
    room.world.unknown("toolu_01", "4417", 3800).await;
    let gateway = room.gateway(&[SECRET]).await;
    let strange = json!({"id": "re_gone", "object": "refund", "amount": "38.00"});
    let event = room.event("evt_1", "refund.created", &strange);
    assert_eq!(room.deliver(&gateway, &event).await, 200);
    for _ in 0..80 {
        room.work_off().await;
        room.world.wait(Duration::from_secs(3601));
    }
    let all = lines(&room).await;
    assert_eq!(all[0].state.as_str(), "quarantined");
    assert_eq!(
        all[0].reason.as_ref().map(ToString::to_string),
        Some("refund_not_known".into())
    );
    room.is_honest().await;
}

/// The commands: `events list` names it, `events acknowledge` takes it off what `doctor` counts.
#[tokio::test(flavor = "multi_thread")]
async fn the_commands_list_and_acknowledge() {
    let provider = simulator("refused:1").await;
    let home = Home::with_provider(&provider.base_url(), "");
    let args = r#"{"order_id":"4417","amount_cents":3800,"currency":"usd"}"#;
    home.run(&["submit", "issue_refund", "--json-args", args, "--run"]);
    let conn = sqlx::sqlite::SqliteConnectOptions::new().filename(home.ledger());
    let mut conn = sqlx::ConnectOptions::connect(&conn)
        .await
        .expect("a connection");
    let sql = "INSERT INTO provider_events (event_id, provider, type, digest, source, payload, received_at, next_at)
               VALUES ('evt_1', 'stripe', 'unreadable', printf('%064d', 0), 'webhook', x'7b', 1, 1);
               UPDATE provider_events SET state = 'quarantined', reason = 'unreadable', settled_at = 2;";
    sqlx::raw_sql(sql)
        .execute(&mut conn)
        .await
        .expect("set aside");
    let doctor = home.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("1 quarantined") && doctor.contains("samekey events list"),
        "{doctor}"
    );
    let all = home.json(&["events", "list"]);
    assert_eq!(
        (all[0]["event_id"].as_str(), all[0]["state"].as_str()),
        (Some("evt_1"), Some("quarantined"))
    );
    home.ok(2, &["events", "acknowledge", "evt_1"]);
    let none = home.ok(
        1,
        &["events", "acknowledge", "evt_2", "--note", "x", "--json"],
    );
    assert!(none.stderr.contains("there is no such event"), "{none:?}");
    home.ok(
        0,
        &["events", "acknowledge", "evt_1", "--note", "sent by hand"],
    );
    home.ok(
        1,
        &["events", "acknowledge", "evt_1", "--note", "sent by hand"],
    );
    let doctor = home.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("0 quarantined") && !doctor.contains("samekey events list"),
        "{doctor}"
    );
    let shown = home.ok(0, &["events", "list"]).stdout;
    assert!(
        shown.contains("acknowledged") && shown.contains("sent by hand"),
        "{shown}"
    );
    assert_eq!(
        home.json(&["events", "list"])[0]["acknowledged"]["note"],
        "sent by hand"
    );
    let told = home.json(&["reconcile", "--once"]);
    assert_eq!(
        (
            told["events"]["quarantined"].as_u64(),
            told["events"]["acknowledged"].as_u64()
        ),
        (Some(0), Some(1))
    );
    home.ok(0, &["verify"]);
    provider.stop().await;
}
