//! While the screen runs its engine, people outside are told.

use crate::pty::Pty;
use crate::stage::{SMALL, Stage, wait_until};

#[test]
fn an_unknown_row_runs_the_command_while_the_screen_is_up() {
    let settings = "[notify]\ncommand = [\"/bin/sh\", \"-c\", \"env > $HOME/new && mv $HOME/new $HOME/told\"]\n";
    let stage = Stage::with("saved-500-with-effect", settings);
    let pty = Pty::spawn(stage.command(&[]), SMALL);
    pty.wait_for("0/8");
    stage.queue("4417");
    let told = wait_until("it is told", || {
        std::fs::read_to_string(stage.home.path("told")).ok()
    });
    assert!(told.contains("SAMEKEY_EVENT=unknown\n"), "{told}");
    assert!(told.contains("SAMEKEY_ORDER_ID=4417\n"), "{told}");
    assert!(!told.contains("STRIPE_API_KEY"), "I30: {told}");
    pty.wait_for("? unknown");
}

#[test]
fn a_webhook_without_its_secret_is_told_on_the_screen_and_stops_nothing() {
    let stage = Stage::with("honest", "[notify]\nwebhook_env = \"HOOK\"\n");
    let pty = Pty::spawn(stage.command(&[]), SMALL);
    pty.wait_for("telling others fails");
    stage.queue("4417");
    pty.wait_for("0 unknown, 1 in all");
}
