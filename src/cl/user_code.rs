//! Code of the program's that clgraph calls, or whose end clgraph decides: closures, wakers, and the `Drop` of what a program has
//! handed over. It may do anything, wait for anybody, and panic. So it runs on the thread for callbacks, where nobody waits for
//! it and no lock is held, and no panic of it gets out.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::watch;

/// Calls a function that may panic, and gives the text of a panic. What it panicked with may panic too when it is dropped.
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

/// The same for who can only log it.
pub(crate) fn guarded(what: &str, function: impl FnOnce()) {
    if let Err(text) = catch(function) {
        // A logger is the program's too.
        let _ = catch(|| log::error!("{what} panicked: {text}; the submission itself is unaffected"));
    }
}

/// Drops what the program has given, on the thread for callbacks.
pub(super) fn discard<T: Send + 'static>(given: T) {
    watch::call(move || guarded("the drop of what a program has given", || drop(given)));
}

/// Something that the program has given and whose `Drop` is the program's.
pub(crate) struct Given<T: Send + 'static>(ManuallyDrop<T>);

impl<T: Send + 'static> Given<T> {
    pub(crate) fn new(given: T) -> Self {
        Self(ManuallyDrop::new(given))
    }
}

impl<T: Send + 'static> Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + 'static> DerefMut for Given<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Send + 'static> Drop for Given<T> {
    fn drop(&mut self) {
        // SAFETY: this is the only place that takes it, and the last use of it.
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
        let (tell, told) = channel();
        let (one, other) = (Given::new(Tells(tell.clone())), Given::new(Tells(tell)));
        drop(one);
        drop(other);
        let threads = [told.recv().unwrap(), told.recv().unwrap()];
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
