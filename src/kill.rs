//! Dying on purpose: named places at which a test makes this process end as `kill -9` ends it, or stand
//! still as SIGSTOP makes it, by `SAMEKEY_KILL_AT=PLACE[:N]` and `SAMEKEY_STOP_AT=PLACE[:N]` (the N-th
//! time it comes there).
//!
//! Owns: the two variables and the signals. Never: anything in a release build, where every function
//! here is empty; decides or writes anything by itself. Tests: `tests/torture/`.
//!
//! | place | between |
//! |---|---|
//! | `made`, `upgrading` | a new schema and its name; the lock and the migrations |
//! | `accepted` | the accepted call and its acknowledgement |
//! | `opened` | the committed row and everything after it |
//! | `connected` | the connection and the counted attempt |
//! | `authorised` | the counted attempt and its first byte |
//! | `mid-body`, `sent` | half of a POST's body and the rest; its last byte and the answer |
//! | `answered` | the answer and writing it down |
//! | `saved` | writing it down and answering the call |
//! | `finished`, `printed` | the call's stored answer and saying it; saying it and noting so |

#[cfg(debug_assertions)]
pub use armed::{point, share, wrote};
#[cfg(not(debug_assertions))]
pub use unarmed::{point, share, wrote};

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    use crate::config::Env;

    const MID_BODY: &str = "mid-body";

    struct Trap {
        place: String,
        /// How often the place is passed before.
        passes: AtomicU32,
        signal: Signal,
    }

    static TRAPS: OnceLock<Vec<Trap>> = OnceLock::new();

    fn traps() -> &'static [Trap] {
        TRAPS.get_or_init(|| {
            let set = |(name, signal)| {
                let text = Env::process().get(name)?;
                let (place, nth) = text.split_once(':').unwrap_or((&text, "1"));
                let nth: u32 = nth.parse().unwrap_or(1);
                Some(Trap {
                    place: place.to_owned(),
                    passes: AtomicU32::new(nth.saturating_sub(1)),
                    signal,
                })
            };
            let all = [
                ("SAMEKEY_KILL_AT", Signal::KILL),
                ("SAMEKEY_STOP_AT", Signal::STOP),
            ];
            all.into_iter().filter_map(set).collect()
        })
    }

    /// The process dies or stands still here, where a variable names this place.
    pub fn point(place: &str) {
        for trap in traps().iter().filter(|t| t.place == place) {
            let count = |left: u32| Some(left.wrapping_sub(1));
            let left = trap
                .passes
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, count);
            if left == Ok(0) {
                // To the whole process; until it arrives, this thread does nothing more.
                let _ = kill_process(getpid(), trap.signal);
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// How much of a request is written in one go: all of it, but half of its body where the process is
    /// to die amid it.
    pub fn share(request: &[u8]) -> &[u8] {
        let amid = is_post(request) && traps().iter().any(|t| t.place == MID_BODY);
        let head = request.windows(4).position(|w| w == b"\r\n\r\n");
        let Some(head) = head.filter(|_| amid) else {
            return request;
        };
        let half = request.len().saturating_add(head).saturating_add(4) / 2;
        request.get(..half).unwrap_or(request)
    }

    /// So many bytes of a request were handed to the system.
    pub fn wrote(request: &[u8], count: usize) {
        if !is_post(request) {
            return;
        }
        if count == request.len() {
            point("sent");
        } else {
            point(MID_BODY);
        }
    }

    fn is_post(request: &[u8]) -> bool {
        request.starts_with(b"POST ")
    }
}

#[cfg(not(debug_assertions))]
mod unarmed {
    /// Nothing.
    pub fn point(_place: &str) {}

    /// All of it.
    pub fn share(request: &[u8]) -> &[u8] {
        request
    }

    /// Nothing.
    pub fn wrote(_request: &[u8], _count: usize) {}
}
