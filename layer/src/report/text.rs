//! The report as text.

use std::fmt::Write as _;

use super::advice::{advice, subject};
use super::call::Kind;
use super::limits;
use super::recorder::{Queue, Recorder};
use super::runs::{End, Run};

/// The most runs of a queue that are told of.
const TOLD: usize = 8;
/// The most queues.
const QUEUES: usize = 16;
/// The most calls of a run that are named.
const NAMED: usize = 12;

/// Writes the report of a process that ends.
pub(crate) fn report(recorder: &Recorder, program: &str, process: u32) -> String {
    let mut text = format!("clgraph_layer: what {program} (process {process}) enqueues again and again\n");
    text.push_str(
        "A run is what a thread enqueues between two of its waits. Captured in a graph, a run is enqueued by one call.\n",
    );
    let (mut told, mut others, mut calls) = (0, 0, 0);
    for (at, queue) in recorder.queues.iter().enumerate().filter(|(_, queue)| queue.calls > 0) {
        if told < QUEUES {
            told += 1;
            tell_queue(&mut text, at + 1, queue, &recorder.names);
        } else {
            others += 1;
            calls += queue.calls;
        }
    }
    if told == 0 {
        text.push_str("Nothing was enqueued.\n");
    }
    if others > 0 {
        let (others, calls) = (plural(others, "more queue", "more queues"), plural(calls, "call", "calls"));
        let _ = writeln!(text, "{others}: {calls}");
    }
    for note in notes(recorder) {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn tell_queue(text: &mut String, number: usize, queue: &Queue, names: &[String]) {
    let order = queue.properties.map_or("", |has| if has.out_of_order { " (out of order)" } else { " (in order)" });
    let runs = &queue.runs;
    let of_threads = match queue.threads() {
        0 | 1 => String::new(),
        4 => " by four threads or more".to_owned(),
        threads => format!(" by {threads} threads"),
    };
    let (calls, ended) = (plural(queue.calls, "call", "calls"), plural(runs.ended, "run", "runs"));
    let _ = writeln!(text, "queue {number}{order}: {calls} in {ended}{of_threads}");
    if queue.remade > 0 {
        let queues = plural(queue.remade + 1, "queue", "queues");
        let _ = writeln!(text, "  These are {queues}, one after another: a graph can be submitted to any of them.");
    }
    let all = runs.sorted();
    let mut again: Vec<&Run> = all.iter().copied().filter(|run| run.count > 1 || run.repeats.is_some()).collect();
    again.sort_by_key(|run| (std::cmp::Reverse(run.count * run.total), run.number));
    let left = again.len().saturating_sub(TOLD);
    again.truncate(TOLD);
    // Numbers for readers, in the order in which the program began the runs.
    again.sort_by_key(|run| run.number);
    // Runs of several threads come in an order that means nothing.
    let cycle = runs.cycle().filter(|_| queue.threads() == 1);
    for (at, run) in again.iter().enumerate() {
        let in_cycle = cycle.as_ref().is_some_and(|(cycle, _)| cycle.iter().any(|other| other.number == run.number));
        tell_run(text, at + 1, run, names, in_cycle);
    }
    if again.is_empty() {
        text.push_str("  Nothing comes again.\n");
    }
    if let Some((cycle, turns)) = &cycle {
        let called = |run: &Run| again.iter().position(|other| other.number == run.number).map(|at| at + 1);
        tell_cycle(text, cycle, *turns, called);
    }
    if left > 0 {
        let _ = writeln!(
            text,
            "  {} came again, and fewer calls are in them.",
            plural(left as u64, "more run", "more runs")
        );
    }
    let once = all.iter().filter(|run| run.count == 1 && run.repeats.is_none()).count() as u64 + runs.forgotten;
    if once > 0 && !again.is_empty() {
        let _ = writeln!(text, "  {} came once.", plural(once, "other run", "other runs"));
    }
    if runs.left_out > 0 {
        let _ = writeln!(text, "  {} found no place in the table.", plural(runs.left_out, "run", "runs"));
    }
}

fn tell_run(text: &mut String, number: usize, run: &Run, names: &[String], in_cycle: bool) {
    let all = plural(run.total, "call", "calls");
    let _ = writeln!(text, "  run {number}: {all} ({}), {}", kinds(run), end(run));
    if run.kept > 0 {
        let _ = writeln!(text, "    {}", calls(run, names));
    }
    let each = if run.count == 1 {
        format!("once; to enqueue it takes {}", microseconds(run.first))
    } else if run.first + run.others == 0 {
        format!("{} times", grouped(run.count))
    } else {
        let (times, others) = (grouped(run.count), microseconds(run.others / (run.count - 1)));
        format!("{times} times; to enqueue it takes {others} (the first time {})", microseconds(run.first))
    };
    let _ = writeln!(text, "    {each}");
    if run.kept < run.total {
        if run.kept == 0 {
            text.push_str("    There was no room to look at its calls one by one.\n");
            return;
        }
        let _ = writeln!(text, "    Its first {} were looked at one by one:", plural(run.kept, "call", "calls"));
    }
    if let Some(found) = run.repeats.as_ref().filter(|_| run.turns_are_same() || !run.is_same()) {
        let (first, last) = (found.places.start + 1, found.places.start + found.body);
        let (turns, more) = (grouped(found.turns() as u64), if run.kept < run.total { " or more" } else { "" });
        let which = if found.body == 1 {
            format!("Call {first} comes {turns} times{more} in a row: capture several of them.")
        } else {
            format!(
                "Calls {first} {} {last} come {turns} times{more} in a row: capture them once, or several turns of them.",
                if found.body == 2 { "and" } else { "to" }
            )
        };
        let _ = writeln!(text, "    {which}");
    }
    let advice = advice(run, names);
    let alone = run.total == 1 && advice.obstacles.is_empty();
    if alone {
        // In a cycle of runs it is told what is captured with it.
        text.push_str(if in_cycle { "" } else { "    It is one call: a graph saves nothing here.\n" });
        return;
    }
    let captured = match (advice.obstacles.is_empty(), advice.given.is_empty()) {
        (true, true) => "It can be captured as it is.",
        (true, false) => "It can be captured. Each submission has to give:",
        (false, _) => "It cannot be captured as it is:",
    };
    let _ = writeln!(text, "    {captured}");
    let list = |text: &mut String, things: &[String]| {
        for thing in things {
            let _ = writeln!(text, "    - {thing}");
        }
    };
    list(text, &advice.obstacles);
    if !advice.obstacles.is_empty() && !advice.given.is_empty() {
        text.push_str("    Then each submission has to give:\n");
    }
    list(text, &advice.given);
    for note in &advice.notes {
        let _ = writeln!(text, "    {note}");
    }
}

/// Several runs that come one after another are one for who does without the waits.
fn tell_cycle(text: &mut String, cycle: &[&Run], turns: usize, called: impl Fn(&Run) -> Option<usize>) {
    const LISTED: usize = 6;
    let mut at = 0;
    let waits: Vec<String> = cycle[..cycle.len() - 1]
        .iter()
        .map(|run| {
            at += run.total;
            let (wait, call) = (waits(run), grouped(at));
            if run.end == End::Blocking { format!("{wait}, call {call}") } else { format!("{wait} after call {call}") }
        })
        .collect();
    let total: u64 = cycle.iter().map(|run| run.total).sum();
    let numbers: Option<Vec<usize>> = cycle.iter().map(|run| called(run)).collect();
    let which = match numbers {
        Some(numbers) if numbers.len() <= 8 => {
            let mut words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            let last = words.pop().unwrap_or_default();
            format!("Runs {} and {last}", words.join(", "))
        }
        _ => format!("{} runs", cycle.len()),
    };
    let more = waits.len().saturating_sub(LISTED);
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    let listed = waits.iter().take(LISTED).cloned().collect::<Vec<_>>().join("; ");
    let _ = writeln!(
        text,
        "  {which} come one after another, {} times or more. They are one run of {} calls for a program that does without \
         {}: {listed}{more}.",
        grouped(turns as u64),
        grouped(total),
        if waits.len() == 1 { "this wait" } else { "these waits" },
    );
}

/// What of a run's end the program called.
fn waits(run: &Run) -> String {
    match run.end {
        End::Blocking => {
            let last = run.calls.last().map_or("a call", |call| call.function);
            format!("the blocking {last}")
        }
        End::Wait(function) => function.to_owned(),
        End::Elsewhere(function) => format!("{function} of another queue"),
        End::Released => "the release of the queue".to_owned(),
        End::Exit => "the end of the program".to_owned(),
    }
}

fn end(run: &Run) -> String {
    match run.end {
        End::Blocking if run.total == 1 => "which waits".to_owned(),
        End::Blocking if run.kept == run.total => {
            format!("of which the last, {}, waits", run.calls.last().map_or("a call", |call| call.function))
        }
        End::Blocking => "of which the last waits".to_owned(),
        _ => format!("then {}", waits(run)),
    }
}

/// How many calls of each kind a run has.
fn kinds(run: &Run) -> String {
    let counts = Kind::ALL.iter().zip(run.kinds).filter(|(_, count)| *count > 0);
    let words: Vec<String> = counts
        .map(|(kind, count)| {
            let [one, several] = kind.words();
            plural(count, one, several)
        })
        .collect();
    words.join(", ")
}

/// Names the first calls, so that readers find the place in their program.
fn calls(run: &Run, names: &[String]) -> String {
    let mut words: Vec<(&str, usize)> = Vec::new();
    for call in &run.calls {
        let name = subject(call, names);
        match words.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => words.push((name, 1)),
        }
    }
    let more = if words.len() > NAMED { ", ..." } else { "" };
    let named: Vec<String> = words
        .iter()
        .take(NAMED)
        .map(|(name, count)| if *count > 1 { format!("{name} x {count}") } else { (*name).to_owned() })
        .collect();
    named.join(", ") + more
}

fn notes(recorder: &Recorder) -> Vec<String> {
    let mut notes = Vec::new();
    if recorder.failed > 0 {
        notes.push(format!("{} failed: the runs are without them", plural(recorder.failed, "call", "calls")));
    }
    if recorder.times > 0 {
        let times = plural(recorder.times, "time", "times");
        notes.push(format!(
            "the times of single commands were asked for {times} (clGetEventProfilingInfo): a graph that profiles has them"
        ));
    }
    if !recorder.functions.is_empty() {
        let names = recorder.functions.join(", ");
        notes.push(format!("the program asked for functions by name, and calls of these are not seen: {names}"));
    }
    let left_out = &recorder.left_out;
    if left_out.calls > 0 {
        let calls = plural(left_out.calls, "call", "calls");
        notes.push(format!("{calls} are left out: there were too many queues, or too many threads at once"));
    }
    if left_out.handles > 0 {
        let times = plural(left_out.handles, "time", "times");
        notes.push(format!(
            "kernels and memory objects were too many to know all by their handles, {times}: changes may be told that were \
             none"
        ));
    }
    if left_out.names > 0 {
        let kernels = plural(left_out.names, "kernel is", "kernels are");
        notes.push(format!("{kernels} not told apart by name: there were too many names"));
    }
    if left_out.arguments > 0 {
        let times = plural(left_out.arguments, "time", "times");
        notes.push(format!(
            "arguments from {} on were set, {times}: whether they changed is not looked at",
            limits::ARGUMENTS
        ));
    }
    if recorder.refused {
        notes.push(
            "the layer is loaded once: a second OpenCL loader, or a second entry in OPENCL_LAYERS, goes without".into(),
        );
    }
    notes
}

/// Returns a number with its noun.
fn plural(count: u64, one: &str, several: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { several })
}

/// Writes a number in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

fn microseconds(nanoseconds: u64) -> String {
    if nanoseconds < 10_000 {
        format!("{:.1} us", nanoseconds as f64 / 1000.0)
    } else {
        format!("{} us", grouped((nanoseconds + 500) / 1000))
    }
}
