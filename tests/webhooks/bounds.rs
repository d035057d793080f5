//! Bounds of the server: sizes, times, connections; body limits and slow clients of `proof.md` (f).

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use samekey::gateway::{Gateway, GatewayError};
use samekey::ledger::EventCounts;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::scripted::{Room, SECRET, post, read, send};

const MAX: usize = 256 * 1024;

/// One byte too many is 413 and never read whole; a body of the largest size is taken (I33).
#[tokio::test]
async fn a_body_has_a_largest_size_i33() {
    let room = Room::new().await;
    let gateway = room.gateway(&[SECRET]).await;
    let (addr, refund) = (gateway.addr(), json!({"id": "re_1", "object": "refund"}));
    let mut event = room.event("evt_1", "refund.created", &refund);
    let missing = MAX - event.to_string().len() - "\"x\":\"\",".len();
    event["x"] = json!("x".repeat(missing));
    let body = event.to_string();
    assert_eq!(body.len(), MAX);
    let header = room.signed(SECRET, body.as_bytes());
    assert_eq!(
        post(addr, &[("Stripe-Signature", &header)], body.as_bytes())
            .await
            .0,
        200
    );
    let longer = body + " ";
    let header = room.signed(SECRET, longer.as_bytes());
    assert_eq!(
        post(addr, &[("Stripe-Signature", &header)], longer.as_bytes())
            .await
            .0,
        413
    );
    // Nothing at all is not too much.
    let header = room.signed(SECRET, b"");
    let (status, said) = post(addr, &[("Stripe-Signature", &header)], b"").await;
    assert!(
        status == 400 && said.contains("the body is empty"),
        "{said}"
    );
    // In pieces, without an end.
    let mut socket = TcpStream::connect(addr).await.expect("connected");
    let head = "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).await.expect("written");
    let piece = format!("8000\r\n{}\r\n", "x".repeat(0x8000)).into_bytes();
    for _ in 0..16 {
        if socket.write_all(&piece).await.is_err() {
            break;
        }
    }
    assert!(
        matches!(read(&mut socket).await.0, 413 | 0),
        "refused or cut off"
    );
    assert_eq!(room.counts().await.received, 1);
}

/// Compressed, deep or doubled: signed or not, bounded and never guessed.
#[tokio::test]
async fn bombs_are_bytes_and_doubled_keys_are_unreadable() {
    let room = Room::new().await;
    let gateway = room.gateway(&[SECRET]).await;
    let gzip = [("Content-Encoding", "gzip")];
    let unsigned = post(gateway.addr(), &gzip, &[0x1f, 0x8b, 8, 0]).await;
    assert_eq!(unsigned.0, 400, "it is never unpacked");
    let deep = format!("{{\"object\":\"event\",\"id\":{}", "[".repeat(10_000));
    let refund =
        r#"{"id":"re_1","object":"refund","amount":1,"amount":3800,"currency":"usd","created":1}"#;
    let twice = format!(
        r#"{{"id":"evt_1","id":"evt_2","object":"event","type":"refund.created","created":1,"livemode":false,"data":{{"object":{refund}}}}}"#
    );
    for body in [
        deep,
        twice,
        "{".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
    ] {
        let header = room.signed(SECRET, body.as_bytes());
        let sent = post(
            gateway.addr(),
            &[("Stripe-Signature", &header)],
            body.as_bytes(),
        )
        .await;
        assert_eq!(sent.0, 200, "signed, so it is kept and shown: {sent:?}");
    }
    room.reconcile().await;
    let counts = room.counts().await;
    assert_eq!((counts.quarantined, counts.processed), (5, 0));
    room.is_honest().await;
}

/// A head has a largest size, and other methods and paths are none of ours.
#[tokio::test]
async fn heads_are_bounded_and_other_routes_absent() {
    let room = Room::new().await;
    let gateway = room.gateway(&[SECRET]).await;
    let mut many = "GET /healthz HTTP/1.1\r\nHost: x\r\n".to_owned();
    for n in 0..100 {
        let _ = write!(many, "X-{n}: 1\r\n");
    }
    let long = format!(
        "GET /healthz HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "x".repeat(40_000)
    );
    for head in [many + "\r\n", long] {
        let (status, _) = send(gateway.addr(), head.as_bytes()).await;
        assert!(matches!(status, 431 | 0), "{status}");
    }
    let get = send(
        gateway.addr(),
        b"GET /webhooks/stripe HTTP/1.1\r\nHost: x\r\n\r\n",
    )
    .await;
    assert_eq!(get.0, 405);
    let other = send(
        gateway.addr(),
        b"GET /v2/tool-calls HTTP/1.1\r\nHost: x\r\n\r\n",
    )
    .await;
    assert_eq!(other.0, 404);
    assert_eq!(room.counts().await, EventCounts::default());
}

/// Slow clients are hung up on, and a healthy one is served meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_are_cut_off_and_others_served() {
    let room = Room::new().await;
    let gateway = room.gateway(&[SECRET]).await;
    let addr = gateway.addr();
    let mut slow = Vec::new();
    for n in 0..200 {
        let mut socket = TcpStream::connect(addr).await.expect("connected");
        if n % 2 == 0 {
            socket
                .write_all(b"POST /webhooks/st")
                .await
                .expect("written");
        }
        slow.push(socket);
    }
    let head = b"POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nfour";
    let mut half = TcpStream::connect(addr).await.expect("connected");
    half.write_all(head).await.expect("written");
    let refund = json!({"id": "re_1", "object": "refund"});
    let event = room.event("evt_1", "refund.created", &refund);
    assert_eq!(
        room.deliver(&gateway, &event).await,
        200,
        "served meanwhile"
    );
    let all = async {
        for socket in &mut slow {
            read(socket).await;
        }
        assert_eq!(read(&mut half).await.0, 408);
    };
    let ended = tokio::time::timeout(Duration::from_secs(25), all).await;
    ended.expect("every slow client was hung up on");
}

/// This machine only, as long as nobody has a token.
#[tokio::test]
async fn another_address_than_this_machine_is_refused() {
    let room = Room::new().await;
    let addr: SocketAddr = ([0, 0, 0, 0], 0).into();
    let (ledger, clock) = (room.world.ledger.clone(), room.world.clock.clone());
    let deps = crate::scripted::for_webhooks(ledger, Vec::new(), clock);
    let refused = Gateway::start(addr, deps).await;
    assert!(matches!(refused.err(), Some(GatewayError::NotLoopback(_))));
}

/// A store that does not take it means 503, so that the provider sends it again; M5, S57.
#[tokio::test]
async fn what_cannot_be_stored_is_not_acknowledged_m5_s57() {
    let room = Room::new().await;
    let gateway = room.gateway(&[SECRET]).await;
    let refund = json!({"id": "re_1", "object": "refund"});
    let event = room.event("evt_1", "refund.created", &refund);
    room.world.ledger.close().await;
    assert_eq!(room.deliver(&gateway, &event).await, 503);
}

/// A clean stop: no new connections, and those there are end.
#[tokio::test]
async fn it_stops_cleanly_l8() {
    let room = Room::new().await;
    let gateway = room.gateway(&[SECRET]).await;
    let addr = gateway.addr();
    let _idle = TcpStream::connect(addr).await.expect("connected");
    let stopped = gateway.stop(Duration::from_millis(200));
    let stopped = tokio::time::timeout(Duration::from_secs(10), stopped).await;
    stopped.expect("it ends");
    assert!(TcpStream::connect(addr).await.is_err());
}
