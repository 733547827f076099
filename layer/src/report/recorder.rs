//! Takes what a program calls, one call after another, from all its threads.

use super::call::{Call, Kind, Map, What, mix, mix_bytes};
use super::limits;
use super::runs::{End, Open, Room, Runs};

/// A call that has enqueued something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enqueued<'a> {
    pub(crate) function: &'static str,
    pub(crate) kind: Kind,
    pub(crate) thread: usize,
    pub(crate) queue: usize,
    /// The kernel object, or 0.
    pub(crate) kernel: usize,
    /// The call waited until its command was done.
    pub(crate) blocking: bool,
    /// What is the same in all runs beside function and kernel: the dimensions of a range, for example.
    pub(crate) form: u64,
    /// Memory is given by its handle.
    pub(crate) parts: &'a [(What, u64)],
    pub(crate) wait_list: &'a [usize],
    /// The event that the call returned, or 0.
    pub(crate) event: usize,
    pub(crate) nanoseconds: u64,
}

/// What a queue was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Properties {
    pub(crate) out_of_order: bool,
    pub(crate) profiling: bool,
    pub(crate) device: usize,
}

/// A queue, or several that came one after another: a program may make one for each of its runs.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) properties: Option<Properties>,
    pub(crate) runs: Runs,
    pub(crate) calls: u64,
    /// The threads that enqueued to it; no more than a few are told apart.
    threads: Vec<usize>,
    /// How many came after the first.
    pub(crate) remade: u64,
}

impl Queue {
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }
}

/// The open runs of a thread, by the place of the queue.
#[derive(Debug, Default)]
struct Thread {
    runs: Vec<(usize, Open)>,
    /// Where it has enqueued last, among `runs`.
    last: usize,
}

#[derive(Clone, Debug, Default)]
struct Kernel {
    name: Option<u32>,
    program: usize,
    /// By index: whether it is memory, and a hash.
    arguments: Vec<Option<(bool, u64)>>,
}

/// Where a queue is, by its handle.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: usize,
    /// How many references the program has. `None` if its making was not seen.
    references: Option<u32>,
}

/// Where an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Program,
    Queue(usize),
}

/// What had no place.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    /// Calls to queues, and by threads, that were too many.
    pub(crate) calls: u64,
    /// How often handles were forgotten, because there were too many.
    pub(crate) handles: u64,
    /// Kernels without a name, because there were too many names.
    pub(crate) names: u64,
    /// How often arguments were set that are too many to look at.
    pub(crate) arguments: u64,
}

/// What is known of a process.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) queues: Vec<Queue>,
    places: Map<usize, Place>,
    /// Entries of queues that are gone, for such as are made alike.
    free: Vec<usize>,
    threads: Map<usize, Thread>,
    kernels: Map<usize, Kernel>,
    /// What tells memory objects apart that had one handle one after another.
    memory: Map<usize, u64>,
    made: u64,
    events: Map<usize, Source>,
    pub(crate) names: Vec<String>,
    /// By a hash of the whole name.
    by_name: Map<u64, u32>,
    room: Room,
    /// Of one call, so that each has memory.
    parts: Vec<(What, u32)>,
    pub(crate) left_out: LeftOut,
    /// Functions that enqueue, or set arguments, and are not in a loader's table: who asks for them gets the driver's.
    pub(crate) functions: Vec<String>,
    /// Calls that failed.
    pub(crate) failed: u64,
    /// Questions for the times of single commands.
    pub(crate) times: u64,
    /// Another loader, or the same one for a second time, was refused.
    pub(crate) refused: bool,
}

impl Recorder {
    /// Takes a call. Returns whether nothing is known of its queue: then [`Recorder::queue_has`] says what it was made with.
    pub(crate) fn enqueued(&mut self, call: &Enqueued<'_>) -> bool {
        let Some((place, new)) = self.place(call.queue) else {
            self.left_out.calls += 1;
            return false;
        };
        if self.threads.len() >= limits::THREADS && !self.threads.contains_key(&call.thread) {
            self.threads.retain(|_, thread| thread.runs.iter().any(|(_, open)| open.total > 0));
            if self.threads.len() >= limits::THREADS {
                self.left_out.calls += 1;
                return new;
            }
        }
        let (user_waits, foreign_waits) = self.waits_for(call.wait_list, place);
        let queue = &mut self.queues[place];
        queue.calls += 1;
        if queue.threads.len() < 4 && !queue.threads.contains(&call.thread) {
            queue.threads.push(call.thread);
        }
        let kernel = self.kernels.get(&call.kernel).filter(|_| call.kernel != 0);
        let name = kernel.and_then(|kernel| kernel.name);
        let mut identity = mix_bytes(call.form, call.function.as_bytes());
        identity = mix(identity, u64::from(call.blocking));
        if let Some(kernel) = kernel {
            identity = mix(mix(identity, kernel.name.map_or(0, |name| u64::from(name) + 1)), kernel.program as u64);
        }
        let memory = &self.memory;
        let given = call.parts.iter().map(|(what, value)| match what {
            What::Memory => (*what, narrow(object(memory, *value as usize))),
            _ => (*what, narrow(*value)),
        });
        let arguments = kernel.into_iter().flat_map(|kernel| kernel.arguments.iter().enumerate()).filter_map(
            |(index, argument)| {
                let (is_memory, hash) = (*argument)?;
                let index = index as u16;
                Some((if is_memory { What::Buffer(index) } else { What::Argument(index) }, narrow(hash)))
            },
        );
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        parts.extend(given.chain(arguments));
        let thread = self.threads.entry(call.thread).or_default();
        let at = thread.runs.iter().position(|(of, _)| *of == place).unwrap_or_else(|| {
            thread.runs.push((place, Open::default()));
            thread.runs.len() - 1
        });
        thread.last = at;
        let (function, kind) = (call.function, call.kind);
        let parsed = Call { function, kind, name, identity, parts: 0, user_waits, foreign_waits };
        // The time of a call that waits is not what it takes to enqueue.
        let time = if call.blocking { 0 } else { call.nanoseconds };
        thread.runs[at].1.push(parsed, &parts, time, &mut self.room);
        self.parts = parts;
        if call.event != 0 {
            self.knows_event(call.event, Source::Queue(place));
        }
        if call.blocking {
            self.ends(call.thread, place, End::Blocking, End::Elsewhere(call.function));
        }
        new
    }

    /// Returns where a queue is, and whether it is new.
    fn place(&mut self, handle: usize) -> Option<(usize, bool)> {
        match self.places.get(&handle) {
            Some(place) => Some((place.at, false)),
            None => Some((self.new_place(handle, None)?, true)),
        }
    }

    fn new_place(&mut self, handle: usize, references: Option<u32>) -> Option<usize> {
        if self.queues.len() == limits::QUEUES {
            return None;
        }
        let at = self.queues.len();
        self.places.insert(handle, Place { at, references });
        self.queues.push(Queue::default());
        Some(at)
    }

    fn waits_for(&self, events: &[usize], place: usize) -> (u32, u32) {
        let sources = events.iter().filter_map(|event| self.events.get(event));
        sources.fold((0, 0), |(user, foreign), source| match source {
            Source::Program => (user + 1, foreign),
            Source::Queue(of) => (user, foreign + u32::from(*of != place)),
        })
    }

    /// A queue that was not seen when it was made has this.
    pub(crate) fn queue_has(&mut self, handle: usize, properties: Option<Properties>) {
        if let Some(place) = self.places.get(&handle) {
            self.queues[place.at].properties = properties;
        }
    }

    /// A queue was made.
    pub(crate) fn queue_was_made(&mut self, handle: usize, properties: Option<Properties>) {
        // It has the handle of one whose end was not seen.
        self.forget_queue(handle);
        let alike = self.free.iter().position(|at| self.queues[*at].properties == properties);
        if let Some(at) = alike.map(|free| self.free.swap_remove(free)) {
            self.queues[at].remade += 1;
            self.places.insert(handle, Place { at, references: Some(1) });
        } else if let Some(at) = self.new_place(handle, Some(1)) {
            self.queues[at].properties = properties;
        }
    }

    pub(crate) fn queue_was_retained(&mut self, handle: usize) {
        if let Some(references) = self.places.get_mut(&handle).and_then(|place| place.references.as_mut()) {
            *references += 1;
        }
    }

    /// A reference will be given back: said before the call, because afterwards another queue may have the handle.
    pub(crate) fn queue_will_be_released(&mut self, handle: usize) {
        let Some(references) = self.places.get_mut(&handle).and_then(|place| place.references.as_mut()) else { return };
        *references = references.saturating_sub(1);
        if *references == 0 {
            self.forget_queue(handle);
        }
    }

    fn forget_queue(&mut self, handle: usize) {
        if let Some(place) = self.places.remove(&handle) {
            self.ends_of(place.at, End::Released);
            self.free.push(place.at);
        }
    }

    /// A thread has waited, for this queue if it is not 0, else for events.
    pub(crate) fn waited(&mut self, thread: usize, queue: usize, function: &'static str) {
        match self.places.get(&queue) {
            Some(place) if queue != 0 => self.ends(thread, place.at, End::Wait(function), End::Elsewhere(function)),
            // Of a queue to which nobody has enqueued.
            None if queue != 0 => self.ends(thread, usize::MAX, End::Wait(function), End::Elsewhere(function)),
            _ => self.ends(thread, usize::MAX, End::Wait(function), End::Wait(function)),
        }
    }

    /// Closes what a thread has open: on one queue with the first end, on all others with the second.
    fn ends(&mut self, thread: usize, place: usize, own: End, other: End) {
        let Some(thread) = self.threads.get_mut(&thread) else { return };
        for (of, open) in &mut thread.runs {
            let end = if *of == place { own } else { other };
            self.queues[*of].runs.close(open, end, &mut self.room);
        }
    }

    /// Closes what all threads have open on a queue.
    fn ends_of(&mut self, place: usize, end: End) {
        for (of, open) in self.threads.values_mut().flat_map(|thread| &mut thread.runs).filter(|(of, _)| *of == place) {
            self.queues[*of].runs.close(open, end, &mut self.room);
        }
    }

    /// Nothing comes any more.
    pub(crate) fn finish(&mut self) {
        (0..self.queues.len()).for_each(|place| self.ends_of(place, End::Exit));
    }

    pub(crate) fn callback_was_set(&mut self, thread: usize) {
        if let Some(thread) = self.threads.get_mut(&thread)
            && let Some((_, open)) = thread.runs.get_mut(thread.last).filter(|(_, open)| open.total > 0)
        {
            open.callback();
        }
    }

    pub(crate) fn user_event_was_made(&mut self, event: usize) {
        self.knows_event(event, Source::Program);
    }

    fn knows_event(&mut self, event: usize, source: Source) {
        // Events live shortly: who forgets old ones misses nothing that a report would have to tell.
        bounded(limits::HANDLES, &mut self.events, event, source, &mut 0);
    }

    pub(crate) fn memory_was_made(&mut self, memory: usize) {
        self.made += 1;
        bounded(limits::HANDLES, &mut self.memory, memory, self.made, &mut self.left_out.handles);
    }

    pub(crate) fn kernel_was_made(&mut self, kernel: usize, name: &[u8], program: usize) {
        // Long names may differ at their ends only.
        let (whole, next) = (mix_bytes(0, name), self.names.len());
        let known = self.by_name.get(&whole).copied();
        let name = known.or_else(|| {
            (next < limits::NAMES).then(|| {
                self.names.push(String::from_utf8_lossy(&name[..name.len().min(limits::NAME)]).into_owned());
                self.by_name.insert(whole, next as u32);
                next as u32
            })
        });
        self.left_out.names += u64::from(name.is_none());
        let made = Kernel { name, program, arguments: Vec::new() };
        bounded(limits::KERNELS, &mut self.kernels, kernel, made, &mut self.left_out.handles);
    }

    pub(crate) fn kernel_was_cloned(&mut self, from: usize, to: usize) {
        let made = self.kernels.get(&from).cloned().unwrap_or_default();
        bounded(limits::KERNELS, &mut self.kernels, to, made, &mut self.left_out.handles);
    }

    /// A kernel was given an argument: these bytes, or so many bytes of local memory.
    pub(crate) fn argument_was_set(&mut self, kernel: usize, index: u32, bytes: Result<&[u8], usize>) {
        let handle = bytes.ok().and_then(|bytes| <[u8; size_of::<usize>()]>::try_from(bytes).ok());
        let object = handle.and_then(|bytes| self.memory.get(&usize::from_ne_bytes(bytes)));
        let argument = match (object, bytes) {
            (Some(made), _) => (true, *made),
            (None, Ok(bytes)) => (false, mix_bytes(0, bytes)),
            (None, Err(len)) => (false, mix(1, len as u64)),
        };
        self.set(kernel, index, argument);
    }

    /// A kernel was given an address.
    pub(crate) fn pointer_was_set(&mut self, kernel: usize, index: u32, address: usize) {
        self.set(kernel, index, (true, mix(2, address as u64)));
    }

    fn set(&mut self, kernel: usize, index: u32, argument: (bool, u64)) {
        let index = index as usize;
        if index >= limits::ARGUMENTS {
            self.left_out.arguments += 1;
            return;
        }
        if !self.kernels.contains_key(&kernel) {
            bounded(limits::KERNELS, &mut self.kernels, kernel, Kernel::default(), &mut self.left_out.handles);
        }
        if let Some(kernel) = self.kernels.get_mut(&kernel) {
            if kernel.arguments.len() <= index {
                kernel.arguments.resize(index + 1, None);
            }
            kernel.arguments[index] = Some(argument);
        }
    }

    pub(crate) fn function_was_asked_for(&mut self, name: &[u8]) {
        let name = String::from_utf8_lossy(&name[..name.len().min(limits::NAME)]);
        let known = self.functions.len() >= limits::FUNCTIONS || self.functions.iter().any(|known| *known == name);
        if ["clEnqueue", "clSetKernelArg"].iter().any(|begin| name.starts_with(begin)) && !known {
            self.functions.push(name.into_owned());
        }
    }
}

/// Inserts into a map of handles. Nobody says when a handle is gone, so a full map begins anew.
fn bounded<T>(most: usize, map: &mut Map<usize, T>, handle: usize, value: T, forgotten: &mut u64) {
    if map.len() >= most && !map.contains_key(&handle) {
        map.clear();
        *forgotten += 1;
    }
    map.insert(handle, value);
}

fn object(memory: &Map<usize, u64>, handle: usize) -> u64 {
    // Numbers of objects are small, and handles are addresses.
    memory.get(&handle).copied().unwrap_or(handle as u64)
}

fn narrow(value: u64) -> u32 {
    let mixed = mix(3, value);
    (mixed >> 32) as u32 ^ mixed as u32
}
