//! Code of the program's that runs on a thread of clgraph's own, or at an end that clgraph decides: closures, and the `Drop` of
//! what a program has handed over. It may do anything, so it never runs on a thread that others wait for, and no panic of it
//! gets out.

use std::any::Any;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::watch;

thread_local!(static IS_OWN: Cell<bool> = const { Cell::new(false) });

/// From now on this thread is one on which no `Drop` of the program's runs: submissions of everybody wait for it.
pub(crate) fn this_thread_is_clgraphs() {
    // A thread that is about to end does not wait for anybody.
    let _ = IS_OWN.try_with(|own| own.set(true));
}

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

/// Drops what the program has given: here, or on the thread for callbacks where others wait for this one.
fn discard<T: Send + 'static>(given: T) {
    let discard = move || guarded("the drop of what a program has given", || drop(given));
    if IS_OWN.try_with(Cell::get).unwrap_or(false) { watch::call(discard) } else { discard() }
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
    fn what_is_given_is_dropped_on_another_thread_where_others_wait_for_this_one() {
        let (tell, told) = channel();
        let here = Given::new(Tells(tell));
        let there = Given::new(Tells(here.0.0.clone()));
        drop(here);
        assert_eq!(told.recv(), Ok(thread::current().id()));
        let own = thread::spawn(move || {
            this_thread_is_clgraphs();
            drop(there);
        });
        let id = own.thread().id();
        own.join().unwrap();
        let dropped = told.recv().unwrap();
        assert!(dropped != id && dropped != thread::current().id());
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
