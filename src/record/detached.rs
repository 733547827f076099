//! Queues whose commands return no event, and the macro that declares each command with and without an event.

use super::queue::Queue;

/// A queue whose commands return no events, which is cheaper. See [`Queue::detached`].
#[derive(Clone, Copy, Debug)]
pub struct Detached<'q>(pub(super) &'q Queue);

impl Queue {
    /// Returns the same queue, but its commands return no events.
    ///
    /// While the queue records, the commands still become nodes: [`Graph::nodes`](crate::Graph::nodes) lists them.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # let queue = clgraph::Queue::new(&clgraph::best_device()?)?;
    /// # let buffer = clgraph::Buffer::<u32>::new(&queue, 4)?;
    /// queue.detached().enqueue_fill_buffer(&buffer, &[0], 0, 16, &[])?;
    /// queue.finish()?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn detached(&self) -> Detached<'_> {
        Detached(self)
    }
}

/// Declares commands that return an event on a [`Queue`] and nothing on a [`Detached`] queue.
macro_rules! commands {
    ($(
        $(#[$doc:meta])*
        fn $name:ident $(< $T:ident $(: $bound:path)? >)? ( $($arg:ident: $ty:ty),* $(,)? )
        $call:literal => |$queue:ident, $want:ident, $waits:ident| $made:expr;
    )*) => {
        impl Queue {
            $(
                $(#[$doc])*
                #[allow(clippy::too_many_arguments)] // As in OpenCL.
                pub fn $name $(<$T $(: $bound)?>)? (&self, $($arg: $ty,)* event_wait_list: &[&Event]) -> Result<Event> {
                    let ($queue, $want, $waits) = (self, true, event_wait_list);
                    let event: Option<Event> = $made?;
                    Ok(event.ok_or(no_event($call))?)
                }
            )*
        }

        impl Detached<'_> {
            $(
                #[doc = concat!("[`Queue::", stringify!($name), "`] without an event.")]
                ///
                /// # Errors
                /// Those of the method of [`Queue`] with the same name.
                #[allow(clippy::too_many_arguments)] // As in OpenCL.
                pub fn $name $(<$T $(: $bound)?>)? (&self, $($arg: $ty,)* event_wait_list: &[&Event]) -> Result<()> {
                    let ($queue, $want, $waits) = (self.0, false, event_wait_list);
                    let event: Result<Option<Event>> = $made;
                    event.map(|_| ())
                }
            )*
        }
    };
}

pub(super) use commands;
