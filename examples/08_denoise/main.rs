//! Takes noise out of a photograph by non-local means: by a graph of images and a sampler, and by one of buffers. The
//! pictures agree within rounding, and come nearer to the photograph without noise.
//!
//! `cargo run --release --example 08_denoise [PICTURE]`

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clgraph::{
    Addressing, Buffer, Executable, Filter, Finalize, Graph, HostRead, Image, ImageFormat, ImageShape, Kernel,
    ProgramBuilder, Queue, Sampler,
};
use image::{GenericImage, RgbImage};

const SOURCE: &str = include_str!("../../kernels-cl/denoise.cl");
const OPTIONS: &str = "-DRADIUS=2 -DPATCH=1";
const STRENGTH: f32 = 0.12;
/// The largest change of a channel, of 1.
const NOISE: f32 = 0.15;
const ROUNDS: u32 = 3;

/// Red, green, blue and nothing, of 0 to 1.
type Pixel = [f32; 4];

fn main() -> ExitCode {
    env_logger::init();
    let picture = std::env::args().nth(1).map(PathBuf::from);
    match run(picture) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("08_denoise: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(picture: Option<PathBuf>) -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let picture = picture.unwrap_or_else(|| root.join("examples/data/rocket.jpg"));
    let photograph = image::open(&picture).map_err(|error| format!("{}: {error}", picture.display()))?.to_rgb8();
    let size = (photograph.width() as usize, photograph.height() as usize);
    let clean: Vec<Pixel> =
        photograph.pixels().map(|of| [of[0], of[1], of[2], 0].map(|byte| f32::from(byte) / 255.0)).collect();
    let mut random = fastrand::Rng::with_seed(3);
    let mut noisy = clean.clone();
    for channel in noisy.iter_mut().flat_map(|pixel| &mut pixel[..3]) {
        *channel = (*channel + (random.f32() * 2.0 - 1.0) * NOISE).clamp(0.0, 1.0);
    }

    let device = clgraph::best_device()?;
    println!("device     {} ({}, OpenCL {})", device.name(), device.caps().platform, device.caps().version);
    println!("picture    {} of {} x {} pixels", picture.display(), size.0, size.1);
    let queue = Queue::new(&device)?;
    let from_buffers = measure("buffers", &queue, &buffers(&queue, size, &noisy)?)?;
    let denoised = if device.caps().images.is_some() {
        let from_images = measure("images", &queue, &images(&queue, size, &noisy)?)?;
        let difference = largest_difference(&from_images, &from_buffers);
        println!("agreement  channels differ by {difference:.1e} at most");
        if difference > 1e-4 {
            return Err(format!("images and buffers differ by {difference:.1e}: at most 1e-4 is rounding").into());
        }
        from_images
    } else {
        println!("images     the device has none");
        from_buffers
    };
    let (before, after) = (noise_ratio(&clean, &noisy), noise_ratio(&clean, &denoised));
    println!("noise      {before:.1} dB below the picture before, {after:.1} dB after");
    let mut both = RgbImage::new(2 * photograph.width(), photograph.height());
    both.copy_from(&to_picture(size, &noisy), 0, 0)?;
    both.copy_from(&to_picture(size, &denoised), photograph.width(), 0)?;
    let folder = root.join("target/08_denoise");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("before_and_after.png");
    both.save(&file)?;
    println!("written    {}, before and after", file.display());
    let wrong = || format!("noise is {after:.1} dB below the picture, and was {before:.1}: 3 dB better are expected");
    (after >= before + 3.0).then_some(()).ok_or_else(|| wrong().into())
}

type Denoise = (Executable, HostRead<Pixel>);

fn kernel(queue: &Queue, memory: &str) -> clgraph::Result<Kernel> {
    ProgramBuilder::new(queue).options(OPTIONS).options(memory).source(SOURCE)?.kernel("denoise")
}

fn buffers(queue: &Queue, (width, height): (usize, usize), noisy: &[Pixel]) -> clgraph::Result<Denoise> {
    let (from, into) = (Buffer::new(queue, noisy.len())?, Buffer::<Pixel>::new(queue, noisy.len())?);
    let graph = Graph::new(queue)?;
    graph.write(&from, noisy).add()?;
    let kernel = kernel(queue, "")?;
    let node = graph.kernel(&kernel).read(&from).write(&into).arg(STRENGTH);
    // SAFETY: a work-item writes its own pixel, and reads only pixels that are there.
    unsafe { node.range([width, height]).add()? };
    let result = graph.read(&into).add()?;
    Ok((graph.finalize(Finalize::new())?, result))
}

fn images(queue: &Queue, (width, height): (usize, usize), noisy: &[Pixel]) -> clgraph::Result<Denoise> {
    let image = || Image::new(queue, ImageShape::image_2d(width, height), ImageFormat::RGBA_F32);
    let (from, into) = (image()?, image()?);
    // Beside the picture it reads the nearest pixel of it.
    let edge = Sampler::new(queue, false, Addressing::ClampToEdge, Filter::Nearest)?;
    let graph = Graph::new(queue)?;
    graph.write_image(&from, noisy).add()?;
    let kernel = kernel(queue, "-DIMAGES")?;
    let node = graph.kernel(&kernel).read(&from).arg(&edge).write(&into).arg(STRENGTH);
    // SAFETY: a work-item writes its own pixel.
    unsafe { node.range([width, height]).add()? };
    let result = graph.read_image(&into).add()?;
    Ok((graph.finalize(Finalize::new())?, result))
}

fn measure(what: &str, queue: &Queue, (executable, result): &Denoise) -> clgraph::Result<Vec<Pixel>> {
    let once = || -> clgraph::Result<Vec<Pixel>> {
        let run = executable.submit(queue)?;
        run.wait()?;
        Ok(run.get(result)?.to_vec())
    };
    // The first builds the kernel on some drivers.
    let pixels = once()?;
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        once()?;
    }
    println!("{what:<10} {:.1?}", begin.elapsed() / ROUNDS);
    Ok(pixels)
}

fn largest_difference(a: &[Pixel], b: &[Pixel]) -> f32 {
    let channels = a.iter().zip(b).flat_map(|(a, b)| a[..3].iter().zip(&b[..3]));
    channels.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// How far the noise is below the brightest, in decibels.
fn noise_ratio(clean: &[Pixel], other: &[Pixel]) -> f64 {
    let squares = clean.iter().zip(other).flat_map(|(a, b)| (0..3).map(move |at| f64::from(a[at] - b[at]).powi(2)));
    -10.0 * (squares.sum::<f64>() / (3 * clean.len()) as f64).log10()
}

fn to_picture((width, height): (usize, usize), pixels: &[Pixel]) -> RgbImage {
    RgbImage::from_fn(width as u32, height as u32, |x, y| {
        let [r, g, b, _] = pixels[y as usize * width + x as usize].map(|channel| (channel * 255.0).round() as u8);
        image::Rgb([r, g, b])
    })
}
