//! Values of every vector type in fused kernels: rule Z1. Each launch has another value, and all of them arrive.

mod common;

use std::fmt::Write;

use clgraph::{Buffer, Finalize, Fuse, Graph, Kernel, ProgramBuilder};
use common::Bench;

/// Work-items of a launch.
const LEN: usize = 64;

/// A type of values.
struct Type {
    /// As the kernel's parameter has it.
    name: String,
    /// Its components, with what stands before each, and the bytes of each.
    components: usize,
    before: &'static str,
    of: Number,
}

#[derive(Clone, Copy)]
enum Number {
    Unsigned(usize),
    Float,
}

impl Number {
    fn name(self) -> &'static str {
        match self {
            Self::Unsigned(1) => "uchar",
            Self::Unsigned(2) => "ushort",
            Self::Unsigned(4) => "uint",
            Self::Unsigned(_) => "ulong",
            Self::Float => "float",
        }
    }

    /// Returns the bytes of a number.
    fn bytes(self, number: usize) -> Vec<u8> {
        match self {
            Self::Unsigned(bytes) => (number as u64).to_le_bytes()[..bytes].to_vec(),
            Self::Float => (number as f32).to_le_bytes().to_vec(),
        }
    }
}

/// What gives names to types.
const NAMES: &str = "
    typedef uint3 triple;
    #define HIDDEN float3
    struct pair { ushort3 v; uint other; };
    typedef struct { uint3 v; } one;
    typedef struct { uint4 other; one of; } two;
";

fn types() -> Vec<Type> {
    use Number::{Float, Unsigned};
    let vector = |(of, components): (Number, usize)| {
        let name = format!("{}{components}", of.name());
        Type { name, components, before: "v.s", of }
    };
    // Where those of three are not fused, launches of the others are in chains between them.
    let of_number = |of| [3, 2, 4, 8, 16].map(|components| (of, components));
    let mut all: Vec<Type> = [Unsigned(1), Unsigned(2), Unsigned(4), Unsigned(8), Float]
        .into_iter()
        .flat_map(of_number)
        .map(vector)
        .collect();
    for (name, before, of) in [
        ("const struct pair", "v.v.s", Unsigned(2)),
        ("one", "v.v.s", Unsigned(4)),
        ("two", "v.of.v.s", Unsigned(4)),
        ("triple", "v.s", Unsigned(4)),
        ("HIDDEN", "v.s", Float),
    ] {
        all.push(Type { name: name.to_owned(), components: 3, before, of });
    }
    all
}

impl Type {
    /// Returns the value of a launch: its bytes, and its components.
    fn value(&self, launch: usize) -> (Vec<u8>, Vec<usize>) {
        let numbers: Vec<usize> = (0..self.components).map(|at| (launch * 31 + at * 7 + 1) % 251).collect();
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| self.of.bytes(*number)).collect();
        // A vector of three has the size of one of four.
        bytes.resize(bytes.len().next_power_of_two(), 0);
        match self.name.as_str() {
            "const struct pair" => bytes.resize(16, 0),
            "two" => bytes.splice(..0, [9; 16]).for_each(drop),
            _ => {}
        }
        (bytes, numbers)
    }

    fn kernel(&self, number: usize) -> String {
        let mut all = format!(
            "kernel void f{number}(global uint *to, {} v, uint by) {{\n    size_t i = get_global_id(0);\n",
            self.name
        );
        for at in 0..self.components {
            // An index has one digit, in hexadecimal.
            let _ = writeln!(all, "    to[i] = to[i] * 3u + (uint){}{at:x} * (uint)(i + by);", self.before);
        }
        all + "}\n"
    }
}

fn add(graph: &Graph, kernel: &Kernel, to: &Buffer<u32>, bytes: &[u8], by: u32) {
    let launch = graph.kernel(kernel).read_write(to);
    macro_rules! sized {
        ($($size:literal)*) => {
            match bytes.len() {
                $($size => launch.arg(<[u8; $size]>::try_from(bytes).unwrap()),)*
                other => panic!("{other} bytes"),
            }
        };
    }
    let launch = sized!(2 4 8 16 32 64 128).arg(by).range(LEN);
    // SAFETY: work-items write their own elements, inside the buffer.
    unsafe { launch.add() }.unwrap();
}

#[test]
fn values_of_every_vector_type_arrive_in_fused_kernels() {
    let (bench, types) = (Bench::new(), types());
    let kernels: String = types.iter().enumerate().map(|(number, of)| of.kernel(number)).collect();
    let program = ProgramBuilder::new(&bench.queue).source(&format!("{NAMES}{kernels}")).unwrap();
    let kernels: Vec<Kernel> = (0..types.len()).map(|number| program.kernel(&format!("f{number}")).unwrap()).collect();
    let caps = bench.queue.device().caps();
    let is_intel = caps.platform.starts_with("Intel") && !caps.gpu;
    // The driver does not pass them to functions rightly.
    let is_lost = |of: &Type| is_intel && of.components == 3 && of.before == "v.s";
    // Once, and as the turns of a loop.
    for turns in [1, 3] {
        let (graph, to) = (bench.graph(), bench.buffer(&[1; LEN]));
        let mut expected = vec![1_u32; LEN];
        for (launch, (of, kernel)) in (0..turns).flat_map(|_| types.iter().zip(&kernels)).enumerate() {
            let ((bytes, numbers), by) = (of.value(launch), launch as u32 % 5);
            add(&graph, kernel, &to, &bytes, by);
            for (i, of) in expected.iter_mut().enumerate() {
                let add = |sum: u32, number: &usize| {
                    sum.wrapping_mul(3).wrapping_add((*number as u32).wrapping_mul(i as u32 + by))
                };
                *of = numbers.iter().fold(*of, add);
            }
        }
        let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        let report = executable.report();
        assert_eq!(bench.content(&to), expected, "{report}");
        let fused: usize = report.fused.iter().map(|of| of.nodes.len()).sum();
        let lost = types.iter().filter(|of| is_lost(of)).count();
        assert_eq!(fused, turns * (types.len() - lost), "{report}");
        let named = report.not_fused.iter().filter(|of| of.why.to_string().contains("vector of three components"));
        assert_eq!(named.count(), turns * lost, "{report}");
    }
}

/// A function between, which is too long to be inlined, and has one caller in the program.
#[test]
fn vectors_of_three_arrive_in_long_functions_of_fused_kernels() {
    let bench = Bench::new();
    let lines: String = (0..150)
        .map(|at| {
            let (shift, odd) = (at % 13 + 1, 2_654_435_769_u32.wrapping_add(2 * at));
            format!("r = (r ^ (r >> {shift})) * {odd}u + v.y; for (uint k = 0; k < (r & 3); k++) r = r * 3 + v.z;\n")
        })
        .collect();
    let source = format!(
        "static inline uint long_one(uint3 v, uint r) {{ {lines} return r + v.x; }}
        kernel void work(global uint *to, global const uint *from) {{
            uint i = get_global_id(0);
            to[i] += long_one((uint3)(from[i], i, 7), to[i]);
        }}"
    );
    let work = ProgramBuilder::new(&bench.queue).source(&source).unwrap().kernel("work").unwrap();
    let from = bench.buffer(&(0..LEN as u32).collect::<Vec<_>>());
    let contents = [Fuse::Off, Fuse::Now].map(|fuse| {
        let (graph, to) = (bench.graph(), bench.buffer(&[1; LEN]));
        for _ in 0..3 {
            // SAFETY: work-items write their own elements, inside the buffer.
            unsafe { graph.kernel(&work).read_write(&to).read(&from).range(LEN).add() }.unwrap();
        }
        graph.finalize(Finalize::new().fuse(fuse)).unwrap().submit(&bench.queue).unwrap().wait().unwrap();
        bench.content(&to)
    });
    assert_eq!(contents[0], contents[1]);
}
