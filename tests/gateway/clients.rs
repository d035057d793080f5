//! Clients that are slow, idle, greedy or gone: each is answered or hung up on, and nobody else notices.

use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt as _;

use crate::client::{Ask, Talk};
use crate::hall::Hall;

/// One connection serves many requests, each for its own agent; an idle one ends by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_kept_between_requests_and_ends_when_idle() {
    let hall = Hall::idle().await;
    let (one, two) = (
        hall.agent("one", &[]).await,
        hall.agent("two", &["x"]).await,
    );
    let mut talk = Talk::to(hall.addr).await;
    for n in 0..50 {
        let ask = Ask::refund(&one, &format!("k{n}"), &n.to_string(), 100);
        assert_eq!(talk.ask(&ask).await.status, 202);
        // Whom a connection served says nothing about who speaks now.
        assert_eq!(talk.ask(&Ask::get("/v1/tools")).await.status, 401);
        let tools = talk.ask(&Ask::get("/v1/tools").by(&two)).await;
        assert_eq!(tools.json()["tools"].as_array().map(Vec::len), Some(0));
    }
    let began = Instant::now();
    assert_eq!(talk.read().await.status, 0, "hung up on");
    assert!(
        (3..20).contains(&began.elapsed().as_secs()),
        "{:?}",
        began.elapsed()
    );
    hall.end().await;
}

/// Heads that trickle, bodies that trickle, answers that nobody reads: bounded, and others are served.
#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_are_cut_off_and_others_served() {
    let hall = Hall::new("honest").await;
    let token = hall.agent("desk", &[]).await;
    let mut heads = Vec::new();
    for _ in 0..100 {
        let mut talk = Talk::to(hall.addr).await;
        talk.write(b"POST /v1/tool-calls HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            .await;
        heads.push(talk);
    }
    let mut half = Talk::to(hall.addr).await;
    let ask = Ask::refund(&token, "half", "1", 100);
    let bytes = ask.bytes();
    half.write(&bytes[..bytes.len() - 5]).await;
    let served = Ask::refund(&token, "k", "2", 100)
        .waiting(30)
        .send(hall.addr)
        .await;
    assert_eq!(served.status, 200, "served meanwhile");
    let late = half.read().await;
    assert_eq!((late.status, late.code()), (408, "too_slow".into()));
    assert!(hall.known("desk", "half").await.is_none());
    for talk in &mut heads {
        let ended = tokio::time::timeout(Duration::from_secs(20), talk.read()).await;
        assert!(matches!(ended.expect("in time").status, 0 | 408));
    }
    hall.end().await;
}

/// Whoever asks and never reads is hung up on once the system takes no more for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_never_reads_is_cut_off() {
    let hall = Hall::idle().await;
    let token = hall.agent("desk", &[]).await;
    let mut talk = Talk::to(hall.addr).await;
    let ask = Ask::get("/v1/openapi.json").by(&token).bytes();
    let began = Instant::now();
    // Requests one behind the other; answers pile up until nothing goes out any more.
    let cut = tokio::time::timeout(Duration::from_secs(60), async {
        while talk.write(&ask).await {
            tokio::task::yield_now().await;
        }
    });
    cut.await.expect("cut off within a minute");
    assert!(
        began.elapsed() >= Duration::from_secs(10),
        "not before its time"
    );
    let mut rest = Vec::new();
    let _ = talk.socket.read_to_end(&mut rest).await;
    assert_eq!(Ask::get("/healthz").send(hall.addr).await.status, 200);
    hall.end().await;
}

/// Too much of a head, and what is no HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn heads_are_bounded_i33() {
    let hall = Hall::idle().await;
    let mut many = "GET /v1/tools HTTP/1.1\r\nHost: x\r\n".to_owned();
    for n in 0..100 {
        many.push_str(&format!("X-{n}: 1\r\n"));
    }
    let long = format!(
        "GET /v1/tools HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "x".repeat(40_000)
    );
    let twice =
        "POST /v1/tool-calls HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
    for bytes in [
        many + "\r\n",
        long,
        twice.into(),
        "\u{16}\u{3}\u{1}".into(),
        "GET\r\n\r\n".into(),
    ] {
        let mut talk = Talk::to(hall.addr).await;
        talk.write(bytes.as_bytes()).await;
        let status = talk.read().await.status;
        assert!(matches!(status, 0 | 400 | 431), "{status}: {bytes:.40}");
    }
    let mut talk = Talk::to(hall.addr).await;
    talk.write(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let nowhere = talk.read().await;
    assert_eq!(
        (nowhere.status, nowhere.code()),
        (404, "no_such_path".into())
    );
    talk.write(b"DELETE /v1/tools HTTP/1.1\r\nHost: x\r\n\r\n")
        .await;
    let other = talk.read().await;
    assert_eq!(
        (other.status, other.code()),
        (405, "method_not_allowed".into())
    );
    hall.end().await;
}
