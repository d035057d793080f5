//! The real store under virtual time: every call is driven to its end while the simulated world stands
//! still (finding 3 of `traps.md`), on a runtime of its own that knows only real time.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use samekey::clock::Clock;
use samekey::domain::ids::ToolName;
use samekey::domain::policy::Terms;
use samekey::ledger::Ledger;
use samekey::ledger::sqlite::{OpenMode, SqliteLedger};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

pub type AllTerms = Arc<std::collections::BTreeMap<ToolName, Terms>>;

/// Where ledgers lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Shared memory where there is some.
    Memory,
    /// An ordinary file.
    File,
}

/// The store's runtime. One per thread that runs seeds.
pub struct Store(Runtime);

impl Store {
    pub fn new() -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        Self(runtime.expect("a runtime"))
    }

    /// Drives `future` to its end and blocks this thread, even inside another runtime.
    pub fn block<F: Future>(&self, future: F) -> F::Output {
        let _context = self.0.enter();
        // The caller's task has a budget of polls that would never be refilled in here.
        let mut future = pin!(tokio::task::unconstrained(future));
        let parked = Arc::new(Parked {
            thread: std::thread::current(),
            woken: AtomicBool::new(false),
        });
        let waker = Waker::from(Arc::clone(&parked));
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(out) = future.as_mut().poll(&mut cx) {
                return out;
            }
            while !parked.woken.swap(false, Ordering::AcqRel) {
                std::thread::park();
            }
        }
    }

    pub fn open(&self, path: &Path, terms: &AllTerms, clock: &Clock) -> Arc<SqliteLedger> {
        let location = path.display().to_string();
        let opened = SqliteLedger::open(
            &location,
            OpenMode::Engine,
            Arc::clone(terms),
            clock.clone(),
        );
        Arc::new(self.block(opened).expect("the ledger opens"))
    }

    /// A place with an empty ledger. Making one takes a hundred times longer than copying it.
    pub fn place(&self, disk: Disk) -> Place {
        static EMPTY: OnceLock<Vec<u8>> = OnceLock::new();
        let empty = EMPTY.get_or_init(|| {
            let dir = tempfile::tempdir().expect("a folder");
            let path = dir.path().join("ledger.db");
            let clock = Clock::manual(super::world::start());
            let ledger = self.open(&path, &AllTerms::default(), &clock);
            self.block(ledger.close());
            std::fs::read(&path).expect("an empty ledger")
        });
        let shared = Path::new("/dev/shm");
        let dir = if disk == Disk::Memory && shared.is_dir() {
            tempfile::tempdir_in(shared)
        } else {
            tempfile::tempdir()
        };
        let dir = dir.expect("a folder");
        let path = dir.path().join("ledger.db");
        std::fs::write(&path, empty).expect("a ledger");
        Place { path, _dir: dir }
    }
}

/// The folder of one world's ledger.
pub struct Place {
    pub path: PathBuf,
    _dir: TempDir,
}

struct Parked {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
