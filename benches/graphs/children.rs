//! Measurements that need a process of their own: the time from the start of a process to its first result, and the
//! memory that graphs take. The bench starts itself as a child.

use std::process::Command;
use std::time::Duration;

use clgraph::{Buffer, Device, Finalize, Graph, Kernel, Program, Queue};

use crate::Failure;
use crate::raw::{self, Kernels};
use crate::rounds::{Times, Variant, resident, timed};

const SOURCE: &str = "
    kernel void cold(global float *a) { a[get_global_id(0)] += 1.0f; }
    kernel void scale(global const uint *from, global uint *into, uint by) { into[0] = from[0] * 3u + by; }";
const LEN: usize = 1024;

/// Does the work with this name, and prints what was measured.
pub fn work(name: &str, device: &Device) -> Result<(), Failure> {
    match name.split(' ').collect::<Vec<_>>()[..] {
        ["cold", variant] => cold(variant, device),
        ["life", variant, len] => {
            let (time, bytes) = life(variant, len.parse()?, device)?;
            println!("{} {bytes}", time.as_nanos());
            Ok(())
        }
        _ => Err(format!("no work is called `{name}`").into()),
    }
}

/// Everything from finding the device to the bytes of the result.
fn cold(variant: &str, device: &Device) -> Result<(), Failure> {
    let queue = Queue::new(device)?;
    let kernel = Program::from_source(&queue, SOURCE)?.kernel("cold")?;
    let buffer = Buffer::from_slice(&queue, &[1.0_f32; LEN])?;
    let mut result = vec![0.0_f32; LEN];
    if variant == "loop" {
        let kernels = Kernels::with_args(&kernel, &[vec![raw::Arg::Memory(buffer.raw())]])?;
        raw::enqueue_over(&queue, kernels.iter(), LEN)?;
        let event = raw::read(&queue, buffer.raw(), &mut result)?;
        raw::wait(event)?;
    } else {
        let graph = Graph::new(&queue)?;
        // SAFETY: a work-item reads and writes its own element.
        unsafe { graph.kernel(&kernel).read_write(&buffer).range(LEN).add()? };
        let read = graph.read(&buffer).add()?;
        let run = graph.finalize(Finalize::new())?.submit(&queue)?;
        run.wait()?;
        result.copy_from_slice(&run.get(&read)?);
    }
    if result.iter().all(|element| *element == 2.0) { Ok(()) } else { Err("the result is wrong".into()) }
}

/// All phases of a chain of kernels, each with its own arguments: the time of all phases, and by how many bytes the
/// process has grown after the submission.
fn life(variant: &str, len: usize, device: &Device) -> Result<(Duration, usize), Failure> {
    let queue = Queue::new(device)?;
    let kernel = Program::from_source(&queue, SOURCE)?.kernel("scale")?;
    let buffers = [Buffer::<u32>::new(&queue, 64)?, Buffer::new(&queue, 64)?];
    let live = if variant == "loop" { live_by_hand } else { live_as_graph };
    // What a process allocates only once.
    live(&queue, &kernel, &buffers, 1)?;
    let before = resident();
    let (bytes, time) = timed(|| live(&queue, &kernel, &buffers, len))?;
    Ok((time, bytes.saturating_sub(before)))
}

fn live_by_hand(queue: &Queue, kernel: &Kernel, buffers: &[Buffer<u32>; 2], len: usize) -> Result<usize, Failure> {
    let kernels = Kernels::with_numbers(kernel, buffers.each_ref().map(|buffer| buffer.raw()), len)?;
    raw::enqueue(queue, kernels.iter())?;
    raw::finish(queue)?;
    Ok(resident())
}

fn live_as_graph(queue: &Queue, kernel: &Kernel, buffers: &[Buffer<u32>; 2], len: usize) -> Result<usize, Failure> {
    let graph = Graph::new(queue)?;
    for number in 0..len {
        let (from, into) = (&buffers[number % 2], &buffers[(number + 1) % 2]);
        // SAFETY: its one work-item touches the first elements.
        unsafe { graph.kernel(kernel).read(from).write(into).arg(number as u32).range(1).add()? };
    }
    let executable = graph.finalize(Finalize::new())?;
    executable.submit(queue)?.wait()?;
    Ok(resident())
}

/// Runs a child, and returns what it printed.
fn child(driver: &str, work: &str) -> Result<String, Failure> {
    let output = Command::new(std::env::current_exe()?).args(["--child", work, "--driver", driver]).output()?;
    if !output.status.success() {
        return Err(format!("a child failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

const VARIANTS: [(&str, &str); 3] = [("loop", "loop"), ("loop_again", "loop"), ("auto", "graph")];

/// A process that launches by hand, and one that makes a graph.
pub fn cold_starts<'a>(driver: &str) -> Vec<Variant<'a>> {
    let make = |(variant, what): (&'static str, &'static str)| {
        let driver = driver.to_owned();
        let run = move || {
            let (_, total) = timed(|| child(&driver, &format!("cold {what}")))?;
            Ok(Times { total, ..Times::default() })
        };
        Variant { name: variant, run: Box::new(run) as Box<_> }
    };
    VARIANTS.map(make).into_iter().collect()
}

/// Launches by hand with their own kernel objects, and a graph: made, submitted once, and dropped, each in its own
/// process.
pub fn lives<'a>(driver: &str, len: usize) -> Vec<Variant<'a>> {
    let make = |(variant, what): (&'static str, &'static str)| {
        let driver = driver.to_owned();
        let run = move || {
            let output = child(&driver, &format!("life {what} {len}"))?;
            let (nanos, bytes) = output.trim().split_once(' ').ok_or("a child output nothing")?;
            let (total, resident) = (Duration::from_nanos(nanos.parse()?), Some(bytes.parse()?));
            Ok(Times { total, resident, ..Times::default() })
        };
        Variant { name: variant, run: Box::new(run) as Box<_> }
    };
    VARIANTS.map(make).into_iter().collect()
}
