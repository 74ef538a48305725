//! Work on files that others wrote, bounded in memory and time.
//!
//! A chat template can double a text with every step, a normalizer can blow one up a million times,
//! each inside one call that no step counter sees; and a failed allocation ends a Rust process. So
//! such work runs on a thread of its own, whose allocations are counted. Where it passes its limit,
//! the thread is stopped inside the allocation, for good, and the caller goes on with an error. That
//! thread and what it holds (at most the limit) stay until the process ends, so whoever sees
//! `Stopped` must not try the same work again. After a timeout the thread runs on until it allocates
//! or ends.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::ffi::{caught, Outcome};

/// Deeply nested values are dropped by recursion; pages that are not touched cost nothing.
const STACK_BYTES: usize = 256 << 20;

#[derive(Clone, Copy)]
pub struct Limits {
    pub bytes: usize,
    pub seconds: u64,
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stopped {
    Memory(usize),
    Time(u64),
}

impl Display for Stopped {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Memory(bytes) => write!(out, "needs more than {} MiB of memory", bytes >> 20),
            Stopped::Time(seconds) => write!(out, "did not end within {seconds} s"),
        }
    }
}

const RUNNING: u8 = 0;
const DONE: u8 = 1;
const OVER: u8 = 2;

/// One piece of work, shared by its thread and its caller.
struct Scope {
    limit: isize,
    /// Touched by the thread alone.
    used: AtomicIsize,
    expired: AtomicBool,
    state: AtomicU8,
    caller: Thread,
}

impl Scope {
    fn charge(&self, bytes: usize) {
        let used = self.used.load(Ordering::Relaxed).saturating_add_unsigned(bytes);
        self.used.store(used, Ordering::Relaxed);
        if used > self.limit || self.expired.load(Ordering::Relaxed) {
            self.stop_here();
        }
    }

    fn credit(&self, bytes: usize) {
        let used = self.used.load(Ordering::Relaxed).saturating_sub_unsigned(bytes);
        self.used.store(used, Ordering::Relaxed);
    }

    fn stop_here(&self) -> ! {
        self.end(OVER);
        loop {
            thread::park();
        }
    }

    fn end(&self, state: u8) {
        self.state.store(state, Ordering::Release);
        self.caller.unpark();
    }
}

thread_local! {
    static SCOPE: Cell<*const Scope> = const { Cell::new(std::ptr::null()) };
}

/// The system's allocator, which counts for threads inside `within`.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn scope<'a>() -> Option<&'a Scope> {
    let scope = SCOPE.try_with(Cell::get).unwrap_or(std::ptr::null());
    // SAFETY: set by `within` on this thread, and the thread holds the scope for as long.
    unsafe { scope.as_ref() }
}

fn charge(bytes: usize) {
    if let Some(scope) = scope() {
        scope.charge(bytes);
    }
}

fn credit(bytes: usize) {
    if let Some(scope) = scope() {
        scope.credit(bytes);
    }
}

// SAFETY: everything is left to `System`; `charge` allocates nothing and never unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        charge(layout.size());
        System.alloc(layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        charge(layout.size());
        System.alloc_zeroed(layout)
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        charge(bytes); // both exist while the contents move
        let moved = System.realloc(memory, layout, bytes);
        credit(layout.size());
        moved
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        System.dealloc(memory, layout);
        credit(layout.size());
    }
}

/// The value of `body`, run on a thread of its own; the inner error is the body's, or its panic.
pub fn within<T: Send + 'static>(
    limits: Limits,
    body: impl FnOnce() -> Outcome<T> + Send + 'static,
) -> Result<Outcome<T>, Stopped> {
    let scope = Arc::new(Scope {
        limit: isize::try_from(limits.bytes).unwrap_or(isize::MAX),
        used: AtomicIsize::new(0),
        expired: AtomicBool::new(false),
        state: AtomicU8::new(RUNNING),
        caller: thread::current(),
    });
    let place = Arc::new(Mutex::new(None));
    let job = {
        let (scope, place) = (scope.clone(), place.clone());
        move || {
            SCOPE.set(Arc::as_ptr(&scope));
            let value =
                caught(body).unwrap_or_else(|panic| Err(format!("internal error: {panic}")));
            SCOPE.set(std::ptr::null());
            if let Ok(mut place) = place.lock() {
                *place = Some(value);
            }
            scope.end(DONE);
        }
    };
    if let Err(error) = thread::Builder::new().stack_size(STACK_BYTES).spawn(job) {
        return Ok(Err(format!("cannot start a thread: {error}")));
    }
    wait(&scope, limits)?;
    let value = place.lock().ok().and_then(|mut place| place.take());
    Ok(value.unwrap_or_else(|| Err("internal error: no result".into())))
}

fn wait(scope: &Scope, limits: Limits) -> Result<(), Stopped> {
    let end = Instant::now() + Duration::from_secs(limits.seconds);
    loop {
        match scope.state.load(Ordering::Acquire) {
            DONE => return Ok(()),
            OVER => return Err(Stopped::Memory(limits.bytes)),
            _ => {}
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            scope.expired.store(true, Ordering::Relaxed);
            return Err(Stopped::Time(limits.seconds));
        }
        thread::park_timeout(left);
    }
}
