//! A camera that sets its own exposure, while it pans over a photograph. A graph is a frame: the picture is exposed and measured on
//! the device, and a host task reads the statistics and sets the gain of the next frame. Submissions follow each other without the
//! program: it brings frames and takes pictures.
//!
//! It is profiled: a table, the graph as a drawing with times, and a trace of all frames for <https://ui.perfetto.dev>.
//!
//! `cargo run --release --example 07_camera_loop [PICTURE]`

mod camera;

use std::collections::VecDeque;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::time::Instant;

use camera::{Exposure, HEIGHT, Pixel, WIDTH, frame, on_the_cpu};
use clgraph::{Buffer, DrawingDetail, Finalize, Graph, Program, Queue, Trace};
use image::{GenericImage, RgbImage};

const KERNELS: &str = include_str!("../../kernels-cl/camera.cl");
const FRAMES: usize = 60;
/// Frames under way at a time.
const DEPTH: usize = 3;
/// Frames that are shown, one of so many.
const SHOWN: usize = 12;

fn main() -> ExitCode {
    env_logger::init();
    match run(std::env::args().nth(1).map(PathBuf::from)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("07_camera_loop: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(picture: Option<PathBuf>) -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = picture.unwrap_or_else(|| root.join("examples/data/rocket.jpg"));
    let scene = image::open(&path).map_err(|error| format!("{}: {error}", path.display()))?.to_rgb8();
    if scene.width() < WIDTH as u32 || scene.height() < HEIGHT as u32 {
        return Err(format!("{}: it has to have {WIDTH} x {HEIGHT} pixels at least", path.display()).into());
    }
    let device = clgraph::best_device()?;
    println!("device     {} ({}, OpenCL {})", device.name(), device.caps().platform, device.caps().version);
    let queue = Queue::new(&device)?;
    let program = Program::from_source(&queue, KERNELS)?;
    let (expose, measure) = (program.kernel("expose")?, program.kernel("measure")?);
    let (input, output) =
        (Buffer::<Pixel>::new(&queue, WIDTH * HEIGHT)?, Buffer::<Pixel>::new(&queue, WIDTH * HEIGHT)?);
    let (gain, rows) = (Buffer::from_slice(&queue, &[Exposure::START.gain])?, Buffer::<[u32; 2]>::new(&queue, HEIGHT)?);

    let graph = Graph::new(&queue)?;
    let camera = graph.write(&input, vec![[0; 4]; WIDTH * HEIGHT]).label("frame").add()?;
    // SAFETY: a work-item touches its own pixel of each; and its own row, of `WIDTH` pixels.
    unsafe {
        graph.kernel(&expose).read(&input).read(&gain).write(&output).range(WIDTH * HEIGHT).add()?;
        graph.kernel(&measure).read(&output).write(&rows).arg(WIDTH as u32).range(HEIGHT).add()?;
    }
    let (statistics, developed) =
        (graph.read(&rows).label("statistics").add()?, graph.read(&output).label("picture").add()?);
    let next = graph.write(&gain, [1.0]).label("next gain").add()?;
    let (tell, told) = channel();
    let mut exposure = Exposure::START;
    let expose = graph.host_task(move |submission| -> Result<(), Box<dyn Error + Send + Sync>> {
        exposure = exposure.next(&submission.get(&statistics)?);
        tell.send(exposure)?;
        Ok(submission.put(&next, vec![exposure.gain])?)
    });
    let node = expose.after(statistics).label("auto exposure").add()?;
    graph.add_edge(node, next)?;
    // The frames under way, and the one whose picture is looked at.
    let executable = graph.finalize(Finalize::new().profiling().result_slots(DEPTH + 1))?;

    let (mut under_way, mut trace, mut pictures, mut last) = (VecDeque::new(), Trace::new(), Vec::new(), None);
    let begin = Instant::now();
    for number in 0..FRAMES + DEPTH {
        if number < FRAMES {
            let seen = frame(&scene, number as f32 / (FRAMES - 1) as f32);
            under_way.push_back(executable.submit_to(&queue).with(&camera, seen).submit()?);
        }
        if number >= DEPTH
            && let Some(run) = under_way.pop_front()
        {
            run.wait()?;
            pictures.push(run.get(&developed)?.to_vec());
            trace.add(last.insert(run.profile()?));
        }
    }
    println!("camera     {FRAMES} frames in {:.1?}, {DEPTH} under way at a time", begin.elapsed());

    let told: Vec<Exposure> = told.try_iter().collect();
    let (mut exposure, mut strip) =
        (Exposure::START, RgbImage::new((FRAMES / SHOWN * WIDTH) as u32, 2 * HEIGHT as u32));
    println!("\n   frame    gain  brightness  clipped");
    for (number, (picture, told)) in pictures.iter().zip(&told).enumerate() {
        let seen = frame(&scene, number as f32 / (FRAMES - 1) as f32);
        let (expected, rows) = on_the_cpu(&seen, exposure.gain);
        let used = exposure.gain;
        exposure = exposure.next(&rows);
        if *picture != expected || *told != exposure {
            return Err(format!("frame {number} is not that of the host: {told:?} instead of {exposure:?}").into());
        }
        if number % SHOWN == 0 {
            let share = 100.0 * exposure.clipped as f32 / (WIDTH * HEIGHT) as f32;
            println!("{number:>8} {used:>7.2} {:>11.1} {share:>7.1}%", exposure.brightness);
            let place = (number / SHOWN * WIDTH) as u32;
            strip.copy_from(&to_picture(&seen), place, 0)?;
            strip.copy_from(&to_picture(picture), place, HEIGHT as u32)?;
        }
    }
    println!("agreement  all {} pictures and gains are those of the host, to the last bit\n", pictures.len());

    let profile = last.ok_or("no frame was taken")?;
    print!("{profile}");
    let folder = root.join("target/07_camera_loop");
    std::fs::create_dir_all(&folder)?;
    let files = ["frames.png", "graph.svg", "trace.json"].map(|name| folder.join(name));
    strip.save(&files[0])?;
    executable.print_graph(&files[1], DrawingDetail::Brief, Some(&profile))?;
    trace.write(&files[2])?;
    println!("\nwritten    {} (as seen, and as taken)", files[0].display());
    println!("           {} (the graph, with the times of the last frame)", files[1].display());
    println!("           {} (all frames: open it at https://ui.perfetto.dev)", files[2].display());
    Ok(())
}

fn to_picture(pixels: &[Pixel]) -> RgbImage {
    RgbImage::from_fn(WIDTH as u32, HEIGHT as u32, |x, y| {
        let [r, g, b, _] = pixels[y as usize * WIDTH + x as usize];
        image::Rgb([r, g, b])
    })
}
