//! The main example against a computation on the CPU, bit for bit.

#[path = "../examples/01_deep_field/cpu.rs"]
mod cpu;
#[path = "../examples/01_deep_field/graph.rs"]
mod graph;
#[path = "../examples/01_deep_field/objects.rs"]
mod objects;
#[path = "../examples/01_deep_field/picture.rs"]
#[allow(dead_code)] // Nothing is drawn here.
mod picture;

use std::path::Path;
use std::sync::Arc;

use clgraph::Queue;
use graph::DeepField;
use objects::Parameters;
use picture::Picture;

fn check(queue: &Queue, rgb: Vec<u8>, width: usize, height: usize) -> u32 {
    let parameters = Parameters::default();
    let deep_field = DeepField::new(queue, width, height, &parameters).unwrap();
    let rgb = Arc::new(rgb);
    let expected = cpu::find_objects(&rgb, width, height, &parameters);
    for _ in 0..3 {
        let (objects, turns) = deep_field.run(&rgb).unwrap();
        assert!(objects == expected, "{width} x {height}, after {turns} turns");
    }
    let report = deep_field.report();
    assert_eq!(report.commands, 18, "{report}");
    expected.count
}

/// The photograph: the same labels, areas and count as on the CPU, again and again.
#[test]
fn the_photograph_gives_the_objects_that_the_cpu_finds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/hubble_deep_field.jpg");
    let photo = Picture::load(&path).unwrap();
    let queue = Queue::new(&clgraph::best_device().unwrap()).unwrap();
    let count = check(&queue, photo.rgb, photo.width, photo.height);
    assert!((100..2000).contains(&count), "{count} objects are not what the photograph shows");
}

/// Sizes that are no multiple of anything, with noise and with stripes that wind.
#[test]
fn odd_pictures_give_the_objects_that_the_cpu_finds() {
    let queue = Queue::new(&clgraph::best_device().unwrap()).unwrap();
    let mut seed = 1_u32;
    let mut random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as u8
    };
    for (width, height) in [(1, 1), (1, 7), (33, 17), (64, 3), (101, 57)] {
        let noise = (0..width * height * 3).map(|_| random()).collect();
        check(&queue, noise, width, height);
        let stripes = (0..width * height)
            .flat_map(|at| {
                let (x, y) = (at % width, at / width);
                let gap = if (y / 4) % 2 == 0 { width - 1 } else { 0 };
                let bright = (y / 2) % 2 == 0 || x == gap;
                [if bright { 250 } else { 0 }; 3]
            })
            .collect();
        check(&queue, stripes, width, height);
    }
}
