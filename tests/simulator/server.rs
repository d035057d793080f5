//! The server itself: limits, stopping, its own state.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use super::*;

#[tokio::test]
async fn state_can_be_read_and_unknown_paths_are_404() {
    let (sim, _) = start("honest").await;
    refund(&sim, "K", PAYMENT).await;
    let state = get(&sim, "/_sim/state").await.json();
    assert_eq!(state["refunds"][0]["_sim"]["source"], "api");
    assert_eq!(state["requests"][0]["order_id"], "4417");
    assert_eq!(state["requests"][0]["nth"], 1);
    assert_eq!(state["keys"][0]["key"], "K");
    for path in ["/", "/v1/refunds/", "/v1/balance", "/v1/charges/ch_%FF"] {
        assert_eq!(get(&sim, path).await.status, 404, "{path}");
    }
}

/// What is the simulator's own is for this machine's programs: through any other address it is not
/// there, and the clock stays.
#[tokio::test]
async fn its_own_doors_open_on_loopback_only() {
    let route = std::net::UdpSocket::bind("0.0.0.0:0").expect("bind");
    // Nothing is sent: the system only says by which address it would.
    let own = route
        .connect("192.0.2.1:9")
        .and_then(|()| route.local_addr());
    let Some(own) = own.ok().filter(|a| !a.ip().is_loopback()) else {
        eprintln!("SKIPPED: this machine has no address but loopback");
        return;
    };
    let clock = clock();
    let cfg = SimConfig {
        listen: "0.0.0.0:0".parse().expect("an address"),
        ..SimConfig::new(clock.clone())
    };
    let sim = Simulator::start(cfg).await.expect("start");
    for text in [
        post_text("/_sim/advance", None, "{\"seconds\":86400}"),
        format!("GET /_sim/state HTTP/1.1\r\nHost: s\r\nConnection: close\r\n{AUTH}\r\n"),
    ] {
        let mut socket = TcpStream::connect((own.ip(), sim.addr().port()))
            .await
            .expect("connect");
        socket.write_all(text.as_bytes()).await.expect("write");
        let mut reply = String::new();
        socket.read_to_string(&mut reply).await.expect("a reply");
        assert!(reply.starts_with("HTTP/1.1 404"), "{reply}");
    }
    let mut state = TcpStream::connect(("127.0.0.1", sim.addr().port()))
        .await
        .expect("connect");
    let text = "GET /_sim/state HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n";
    state.write_all(text.as_bytes()).await.expect("write");
    let mut reply = String::new();
    state.read_to_string(&mut reply).await.expect("a reply");
    let now = clock.now().format("%Y-%m-%dT%H:%M").to_string();
    assert!(reply.contains(&now), "{reply}");
}

#[tokio::test]
async fn hostile_clients_are_bounded() {
    let (sim, _) = start("honest").await;
    let huge = "x".repeat(1024 * 1024 + 1);
    let answer = post(&sim, Some("K"), &huge).await;
    // The reply may be lost when the rest of the body meets the closed connection.
    assert!(answer.is_none_or(|a| a.status == 413));
    let head = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let answer = raw_lossy(&sim, &head).await;
    assert!(answer.is_none_or(|status| status == 431));
    assert_eq!(
        raw_lossy(&sim, "\x16\x03\x01 not http\r\n\r\n").await,
        Some(400)
    );
    assert_eq!(get(&sim, "/v1/account").await.status, 200, "still there");
}

/// Like [`raw`], for servers that close while we are still writing.
async fn raw_lossy(sim: &Simulator, text: &str) -> Option<u16> {
    let mut socket = TcpStream::connect(sim.addr()).await.expect("connect");
    let _ = socket.write_all(text.as_bytes()).await;
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.split(' ').nth(1)?.parse().ok()
}

#[tokio::test]
async fn stopping_cuts_held_replies_and_frees_the_port() {
    let (sim, _) = start("timeout-after-effect").await;
    let addr = sim.addr();
    let mut held = sim.held();
    let mut socket = TcpStream::connect(addr).await.expect("connect");
    let text = post_text("/v1/refunds", Some("K"), PAYMENT);
    socket.write_all(text.as_bytes()).await.expect("write");
    held.key("K", 1).await;
    sim.stop().await;
    held.none().await;
    held.key("never", 1).await;
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes).await;
    assert!(bytes.is_empty());
    assert!(TcpStream::connect(addr).await.is_err());
}
