//! Spreads the brightness of a photograph. One program counts how often each brightness occurs, another draws a curve by that
//! and applies it: the counters and the curve live in device globals, so neither is an argument of any kernel. The graph
//! clears the counters and reads them in between, as it would other memory.
//!
//! Then the same with globals that belong to one program, and by every way that the device has to get to them: the same
//! picture each time, which is that of the CPU.
//!
//! `cargo run --release --example 05_device_global [PICTURE]`

mod host;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clgraph::{
    Buffer, Finalize, GlobalAccess, GlobalSlice, Graph, Kernel, Program, ProgramBuilder, Queue, device_global,
    host_access,
};
use host::{Equalized, Pixel, check, on_the_cpu, to_picture};
use image::{GenericImage, RgbImage};

const HISTOGRAM_CL: &str = include_str!("../../kernels-cl/histogram.cl");
const EQUALIZE_CL: &str = include_str!("../../kernels-cl/equalize.cl");
const ROUNDS: u32 = 10;

/// What two programs share.
mod shared {
    clgraph::device_global! {
        /// How often each brightness occurs.
        pub static HISTOGRAM: [u32; 256];
        /// What each brightness becomes. The host never writes it.
        #[host_access(read)]
        pub static CURVE: [u8; 256];
    }
}

device_global! {
    /// The same, of one program.
    #[device_image_scope]
    static HISTOGRAM: [u32; 256];
    #[device_image_scope]
    #[host_access(read)]
    static CURVE: [u8; 256];
}

fn main() -> ExitCode {
    env_logger::init();
    let picture = std::env::args().nth(1).map(PathBuf::from);
    match run(picture) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("05_device_global: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(picture: Option<PathBuf>) -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let picture = picture.unwrap_or_else(|| root.join("examples/data/rocket.jpg"));
    let photograph = image::open(&picture).map_err(|error| format!("{}: {error}", picture.display()))?.to_rgb8();
    let size = (photograph.width(), photograph.height());
    let pixels: Vec<Pixel> = photograph.pixels().map(|of| [of[0], of[1], of[2], 255]).collect();
    let expected = on_the_cpu(&pixels);

    let device = clgraph::best_device()?;
    println!("device     {} ({}, OpenCL {})", device.name(), device.caps().platform, device.caps().version);
    println!("picture    {} of {} x {} pixels", picture.display(), size.0, size.1);
    for way in device.caps().global_access() {
        // A context of its own each, so that each starts with variables of its own.
        let queue = Queue::new(&device)?;
        println!("\ntwo programs that share them, by {way}");
        let counting = ProgramBuilder::new(&queue).global("histogram", &shared::HISTOGRAM).global_access(way);
        let curve = ProgramBuilder::new(&queue).global("histogram", &shared::HISTOGRAM).global("curve", &shared::CURVE);
        let counting = counting.source(HISTOGRAM_CL)?;
        let curve = curve.global_access(way).source(EQUALIZE_CL)?;
        let memory = (shared::HISTOGRAM.on(&queue)?, shared::CURVE.on(&queue)?);
        check(&expected, &equalize(&queue, &counting, &curve, &memory, &pixels)?)?;

        println!("one program that has them to itself");
        let both = one_program(&queue, way)?;
        let memory = (HISTOGRAM.on(&queue)?, CURVE.on(&queue)?);
        check(&expected, &equalize(&queue, &both, &both, &memory, &pixels)?)?;
    }

    let mut both = RgbImage::new(2 * size.0, size.1);
    both.copy_from(&photograph, 0, 0)?;
    both.copy_from(&to_picture(size, &expected.pixels), size.0, 0)?;
    let folder = root.join("target/05_device_global");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("before_and_after.png");
    both.save(&file)?;
    println!("\nwritten    {}, before and after", file.display());
    Ok(())
}

fn one_program(queue: &Queue, way: GlobalAccess) -> clgraph::Result<Program> {
    let list = ProgramBuilder::new(queue).global("histogram", &HISTOGRAM).global("curve", &CURVE);
    list.global_access(way).sources(&[HISTOGRAM_CL, EQUALIZE_CL])
}

type Memory = (GlobalSlice<u32, host_access::ReadWrite>, GlobalSlice<u8, host_access::Read>);

fn equalize(
    queue: &Queue,
    counting: &Program,
    drawing: &Program,
    (histogram, curve): &Memory,
    pixels: &[Pixel],
) -> Result<Equalized, Box<dyn Error>> {
    let kernel = |program: &Program, name| -> clgraph::Result<Kernel> { program.kernel(name) };
    let (count, draw, apply) = (kernel(counting, "count")?, kernel(drawing, "draw_curve")?, kernel(drawing, "apply")?);
    let (from, into) = (Buffer::from_slice(queue, pixels)?, Buffer::<Pixel>::new(queue, pixels.len())?);
    let graph = Graph::new(queue)?;
    graph.fill(histogram, 0).add()?;
    // SAFETY: a work-item reads its own pixel, and counts atomically.
    unsafe { graph.kernel(&count).read(&from).range(pixels.len()).add()? };
    let counted = graph.read(histogram).add()?;
    // SAFETY: there are as many work-items as brightnesses, each of which writes its own element of the curve.
    unsafe { graph.kernel(&draw).arg(pixels.len() as u32).range(256).add()? };
    // SAFETY: a work-item writes its own pixel.
    unsafe { graph.kernel(&apply).read(&from).write(&into).range(pixels.len()).add()? };
    let (drawn, result) = (graph.read(curve).add()?, graph.read(&into).add()?);
    let executable = graph.finalize(Finalize::new())?;
    for global in &executable.report().globals {
        println!("           {global}");
    }
    // The first builds the kernels on some drivers.
    executable.submit(queue)?.wait()?;
    let begin = Instant::now();
    for _ in 1..ROUNDS {
        executable.submit(queue)?;
    }
    let run = executable.submit(queue)?;
    run.wait()?;
    println!("           {:.1?} a picture, {} commands", begin.elapsed() / ROUNDS, executable.report().commands);
    let (histogram, curve) = (run.get(&counted)?.to_vec(), run.get(&drawn)?.to_vec());
    Ok(Equalized { histogram, curve, pixels: run.get(&result)?.to_vec() })
}
