//! What keeps a run from being captured, and what a submission of it would have to be given.

use std::collections::BTreeMap;

use super::call::{Call, Kind, What};
use super::runs::Run;

/// The most calls, and things, that are listed.
const LISTED: usize = 4;
const GIVEN: usize = 8;

/// What can be said of a run, as text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Advice {
    /// What has to change before it can be captured.
    pub(crate) obstacles: Vec<String>,
    /// What is not the same each time.
    pub(crate) given: Vec<String>,
    /// What has to be known.
    pub(crate) notes: Vec<String>,
}

/// Looks at a run.
pub(crate) fn advice(run: &Run, names: &[String]) -> Advice {
    let mut at = BTreeMap::<(Topic, &str), Vec<u64>>::new();
    let mut given = BTreeMap::<(What, &str), Vec<u64>>::new();
    let mut same_memory = Vec::new();
    let mut parts = run.parts.iter();
    for (place, call) in run.calls.iter().enumerate() {
        let number = run.number_of(place);
        for topic in topics(call) {
            at.entry((topic, call.function)).or_default().push(number);
        }
        let subject = subject(call, names);
        let mut host_changed = None;
        for part in parts.by_ref().take(call.parts as usize) {
            if part.what == What::Host {
                host_changed = Some(run.changes(part));
            }
            if run.changes(part) {
                let calls = given.entry((part.what, subject)).or_default();
                if calls.last() != Some(&number) {
                    calls.push(number);
                }
            }
        }
        if call.kind == Kind::Write && host_changed == Some(false) {
            same_memory.push(number);
        }
    }
    let mut advice = Advice::default();
    for ((topic, function), calls) in at {
        advice.obstacles.push(topic.text(function, &list(&calls)));
    }
    if run.callbacks > 0 {
        let each = run.callbacks.div_ceil(run.count);
        let more = if each > 1 { format!(", {each} times a run") } else { String::new() };
        advice.obstacles.push(format!(
            "clSetEventCallback after call {}{more}: set it for the event of the whole submission",
            run.first_callback
        ));
    }
    let mut things: Vec<String> = given.iter().map(|((what, of), calls)| thing(*what, of, &list(calls))).collect();
    if things.len() > GIVEN {
        let more = things.len() - GIVEN;
        things.truncate(GIVEN);
        things.push(format!("{more} more"));
    }
    advice.given = things;
    if !same_memory.is_empty() && run.count > 1 {
        let (calls, is_one) = (list(&same_memory), same_memory.len() == 1);
        let (begin, verb) = (calls.replacen('c', "C", 1), if is_one { "reads" } else { "read" });
        advice.notes.push(format!(
            "{begin} {verb} the same memory of the program each time: it has to stay, or each submission gives the data."
        ));
    }
    advice
}

/// What cannot be in a graph as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    Map,
    Unmap,
    Native,
    Share,
    Free,
    UserEvent,
    OtherQueue,
}

fn topics(call: &Call) -> impl Iterator<Item = Topic> + use<> {
    let kind = match call.kind {
        Kind::Map => Some(Topic::Map),
        Kind::Unmap => Some(Topic::Unmap),
        Kind::Native => Some(Topic::Native),
        Kind::Share => Some(Topic::Share),
        Kind::Free => Some(Topic::Free),
        _ => None,
    };
    let user = (call.user_waits > 0).then_some(Topic::UserEvent);
    let other = (call.foreign_waits > 0).then_some(Topic::OtherQueue);
    kind.into_iter().chain(user).chain(other)
}

impl Topic {
    fn text(self, function: &str, calls: &str) -> String {
        let what = match self {
            Self::Map => "the host works on mapped memory: enqueue a read or a write, or make it a host task",
            Self::Unmap => "it goes with the map",
            Self::Native => "make the function a host task",
            Self::Share => "take and give back the objects before and after the graph",
            Self::Free => "free the memory when the graph is not needed any more",
            Self::UserEvent => {
                return format!(
                    "{function} ({calls}) waits for an event that the program completes: make it an external event"
                );
            }
            Self::OtherQueue => {
                return format!(
                    "{function} ({calls}) waits for another queue: record both queues into one graph, or give the event \
                     to the submission"
                );
            }
        };
        format!("{function} ({calls}): {what}")
    }
}

/// What a call is called.
pub(crate) fn subject<'a>(call: &Call, names: &'a [String]) -> &'a str {
    call.name.and_then(|name| names.get(name as usize)).map_or(call.function, String::as_str)
}

fn thing(what: What, of: &str, calls: &str) -> String {
    match what {
        What::Argument(index) => format!("argument {index} of {of} ({calls})"),
        What::Buffer(index) => format!("the memory in argument {index} of {of} ({calls})"),
        What::Memory => format!("the memory of {of} ({calls})"),
        What::Bytes => format!("the offsets and sizes of {of} ({calls})"),
        What::Host => format!("the program's memory of {of} ({calls})"),
        What::Range => format!("the work-items of {of} ({calls})"),
        What::Pattern => format!("the pattern of {of} ({calls})"),
    }
}

/// Names calls by their numbers.
fn list(calls: &[u64]) -> String {
    let some: Vec<String> = calls.iter().take(LISTED).map(ToString::to_string).collect();
    let more = calls.len().saturating_sub(LISTED);
    match (&*some, more) {
        ([one], 0) => format!("call {one}"),
        ([first @ .., last], 0) => format!("calls {} and {last}", first.join(", ")),
        (some, more) => format!("calls {} and {more} more", some.join(", ")),
    }
}
