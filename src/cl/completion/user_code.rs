//! Calls code of the program: closures, wakers, and the `Drop` of values that the program has handed over.
//!
//! Such code may do anything: it may block or panic. So it runs on the callback thread, where nothing waits for it and
//! no lock is held, and its panics are caught.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::cl::completion::event_reaper;

/// Calls a function and catches its panic. The error is the text of the panic. Dropping the payload of the panic may
/// panic too.
pub(crate) fn catch<R>(function: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(function)).map_err(|panic| {
        let text = text_of(&*panic).to_owned();
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
        text
    })
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("with something that is no text")
}

/// Calls a function and logs its panic.
pub(crate) fn guarded(what: &'static str, function: impl FnOnce()) {
    if let Err(text) = catch(function) {
        log_later!(Error, "{what} panicked: {text}; the panic does not affect the submission");
    }
}

/// Logs on the callback thread. The first argument is the level, as a variant of [`log::Level`].
///
/// A logger is code of the program: it may call clgraph, block or panic. So what may be called under a lock, on a thread
/// of clgraph or of a driver, or in a `Drop`, logs in this way.
macro_rules! log_later {
    ($level:ident, $($text:tt)+) => {
        $crate::cl::completion::user_code::log_later!(log::Level::$level => $($text)+)
    };
    ($level:expr => $($text:tt)+) => {{
        let level = $level;
        if level <= log::STATIC_MAX_LEVEL && level <= log::max_level() {
            let text = format!($($text)+);
            // A panic of the logger is not logged.
            $crate::cl::completion::event_reaper::call(move || {
                drop($crate::cl::completion::user_code::catch(|| log::log!(level, "{text}")));
            });
        }
    }};
}
pub(crate) use log_later;

/// Drops a value of the program on the callback thread.
pub(in crate::cl) fn discard<T: Send + 'static>(given: T) {
    event_reaper::call(move || guarded("the drop of a value of the program", || drop(given)));
}

/// A value of the program, whose `Drop` is code of the program.
pub(crate) struct UserOwned<T: Send + 'static>(ManuallyDrop<T>);

impl<T: Send + 'static> UserOwned<T> {
    pub(crate) fn new(given: T) -> Self {
        Self(ManuallyDrop::new(given))
    }
}

impl<T: Send + 'static> Deref for UserOwned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + 'static> DerefMut for UserOwned<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Send + 'static> Drop for UserOwned<T> {
    fn drop(&mut self) {
        // SAFETY: only this call takes the value, and nothing uses it afterwards.
        discard(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    use super::*;

    struct Tells(Sender<thread::ThreadId>);

    impl Drop for Tells {
        fn drop(&mut self) {
            self.0.send(thread::current().id()).unwrap();
            panic!("and panics besides");
        }
    }

    #[test]
    fn what_is_given_is_dropped_on_the_thread_for_callbacks_and_may_panic() {
        let (sender, receiver) = channel();
        let (one, other) = (UserOwned::new(Tells(sender.clone())), UserOwned::new(Tells(sender)));
        drop(one);
        drop(other);
        let threads = [receiver.recv().unwrap(), receiver.recv().unwrap()];
        assert!(threads[0] == threads[1] && threads[0] != thread::current().id());
    }

    #[test]
    fn a_panic_whose_payload_panics_too_stays_inside() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                std::panic::panic_any(Bomb);
            }
        }
        let text = catch(|| std::panic::panic_any(Bomb)).unwrap_err();
        assert_eq!(text, "with something that is no text");
    }
}
