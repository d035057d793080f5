//! The world of the model, in small numbers: rows, engines, calls, requests on their way, the provider's
//! keys and objects, people, the time. Rows are whole operations of the domain, named by [`OpId`].

use std::fmt;

use crate::rows::OpId;

/// Five minutes since the first authorise; nothing depends on the time before.
pub type Tick = u8;
/// Beyond every deadline: 36 days.
pub const MONTH: Tick = u8::MAX;
/// Three hours: lookups have been given up, keys of a day are still kept.
pub const HOURS: Tick = MONTH - 1;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub now: Tick,
    pub rows: Vec<Row>,
    pub engines: Vec<Engine>,
    pub calls: Vec<Call>,
    /// Requests that the provider has not dealt with, or whose answer nobody has read yet. Sorted.
    pub wires: Vec<Wire>,
    /// What the provider keeps of keys. Sorted.
    pub keys: Vec<Key>,
    pub objects: Vec<Object>,
    pub people: [Look; 2],
    /// A list of the payment's objects that is being read.
    pub reading: Option<Reading>,
    pub left: Left,
    /// Laws that steps broke, one bit each.
    pub broken: u32,
}

/// One operation, and who drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    pub op: OpId,
    /// The engine whose lease on it holds.
    pub driver: Option<u8>,
    /// Requests that left for it.
    pub sent: u8,
    /// How often it was closed, corrections apart.
    pub closings: u8,
    /// Closed or corrected on the word of two people.
    pub by_two: bool,
}

/// Where an engine stands in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    Idle,
    /// Step 3 found no row; the provider is to be read.
    Got0,
    /// The provider was read: what was refunded, and the rows of the order as they were.
    Read {
        refunded: u16,
        mark: u32,
    },
    /// Drives the row under a lease.
    Leased,
    /// The attempt is committed.
    Authorised {
        attempt: u8,
        since: Tick,
    },
    /// Checked once more; the bytes are next.
    Cleared {
        attempt: u8,
        since: Tick,
    },
    /// The bytes have left.
    Waiting {
        attempt: u8,
    },
    /// Something came back, or nothing.
    Result {
        attempt: u8,
        reply: Reply,
    },
    /// The call is to be answered from the row.
    Done,
}

/// An engine and its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Engine {
    pub at: At,
    pub call: u8,
    pub row: u8,
}

impl Engine {
    pub const IDLE: Self = Self {
        at: At::Idle,
        call: 0,
        row: 0,
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The amount, minor units.
    pub amount: u16,
    pub row: Option<u8>,
    pub state: CallAt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallAt {
    /// Not asked yet.
    Ahead,
    Queued,
    /// With the engine of that number.
    Taken(u8),
    Joined,
    Answered(Said),
}

/// What a call heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Said {
    Refunded,
    Repeat,
    Unconfirmed,
    Checking,
    Held,
    Failed,
    Rejected,
    Busy,
}

/// A request on its way to, in, or back from the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wire {
    pub row: u8,
    pub attempt: u8,
    pub key: u8,
    pub sent: Tick,
    /// The engine that waits for the answer.
    pub listener: Option<u8>,
    /// A copy of it has been let in.
    pub twin_in: bool,
    pub at: WireAt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WireAt {
    Underway,
    Running,
    Replied(Reply),
}

/// What the provider keeps of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub number: u8,
    pub first_seen: Tick,
    /// Empty while its first request runs.
    pub saved: Option<Reply>,
}

/// What an attempt brings back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reply {
    /// 2xx with an object, as it was then.
    Object { thing: Thing, replayed: bool },
    /// 5xx.
    Broken,
    /// 402 after execution began: no effect, saved under the key.
    Refused { replayed: bool },
    /// 400 before anything; not saved.
    Invalid,
    /// `charge_already_refunded`; not saved.
    AlreadyRefunded,
    /// 401 before anything; not saved.
    Denied,
    /// 429 of a limiter; not saved.
    Limited,
    /// 409: the key is being worked on.
    Busy,
    /// 400 idempotency error: somebody else used the key.
    OtherParameters,
    /// No answer, or one that cannot be read.
    Nothing,
    /// No byte left.
    NotSent,
}

/// An object at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    pub mark: Mark,
    pub fate: Fate,
    /// One of our requests made it.
    pub by_us: bool,
    /// Its status was told before it moved on.
    pub was: Option<Fate>,
}

/// An object as somebody saw it. Its name is its place in [`World::objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thing {
    pub id: u8,
    pub mark: Mark,
    pub fate: Fate,
}

/// Whose an object says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// Carries the operation id of that row, and agrees with it.
    Row(u8),
    /// Carries the operation id of that row, with another amount.
    OtherAmount(u8),
    /// Carries no operation id; the amount is that of the row.
    Unmarked(u8),
    /// Somebody else's.
    Foreign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fate {
    Pending,
    Succeeded,
    Lost,
}

/// What a person has on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Look {
    Away,
    /// The row as it is.
    Fresh(u8),
    /// The row as it was; which one it was is kept only where it is written back blindly.
    Stale(u8, Option<OpId>),
}

/// A list being read: from when, by whom, and what it will say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reading {
    pub row: u8,
    pub began: Tick,
    pub by: Reader,
    pub list: Vec<Thing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reader {
    Reviewer,
    Reconciler,
    Engine,
}

/// How much of what makes trouble may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Left {
    pub crashes: u8,
    pub copies: u8,
    pub lookups: u8,
    pub looks: u8,
    pub webhooks: u8,
    pub strangers: u8,
}

impl World {
    /// Sorts what has no order.
    pub fn tidy(mut self) -> Self {
        // An answer that nobody waits for is gone.
        self.wires
            .retain(|w| w.listener.is_some() || !matches!(w.at, WireAt::Replied(_)));
        self.wires.sort_unstable();
        self.keys.sort_unstable();
        self
    }

    /// Whether `engine`'s lease on its row holds.
    pub fn holds(&self, engine: u8) -> bool {
        let e = self.engines[usize::from(engine)];
        self.rows
            .get(usize::from(e.row))
            .is_some_and(|r| r.driver == Some(engine))
    }

    pub fn key(&self, key: u8) -> Option<usize> {
        self.keys.iter().position(|k| k.number == key)
    }

    /// Objects that our requests made for row `row`.
    pub fn effects(&self, row: u8) -> impl Iterator<Item = &Object> {
        self.objects
            .iter()
            .filter(move |o| o.by_us && o.mark == Mark::Row(row))
    }

    pub fn row_numbers(&self) -> impl Iterator<Item = u8> + use<> {
        (0..).take(self.rows.len())
    }

    pub fn object_numbers(&self) -> impl Iterator<Item = u8> + use<> {
        (0..).take(self.objects.len())
    }

    /// The object of that number as it is now.
    pub fn thing(&self, id: u8) -> Thing {
        let object = self.objects[usize::from(id)];
        Thing {
            id,
            mark: object.mark,
            fate: object.fate,
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object { thing, replayed } => {
                let again = if *replayed { ", replayed" } else { "" };
                write!(f, "200 re_{} {:?}{again}", thing.id, thing.fate)
            }
            other => write!(f, "{other:?}"),
        }
    }
}
