//! What calls and command buffers cost, with the layer and without it: `cargo bench --package clgraph-layer`.
//! `./ci/with DRIVER -- target/release/deps/costs-...` does it on another driver.

#[path = "../../tests/common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
mod submissions;

fn main() {
    #[cfg(target_os = "linux")]
    costs();
}

#[cfg(target_os = "linux")]
fn costs() {
    use std::process::Command;

    use common::{SERVES, compiled, layer, run};

    if std::env::args().any(|argument| argument == "submissions") {
        return submissions::compare();
    }
    if std::env::args().any(|argument| argument == "native") {
        return submissions::native();
    }
    let program = compiled("costs.c", &["-l:libOpenCL.so.1"]);
    for (serves, is_plain) in [(None, true), (Some("never"), true), (Some("always"), true), (Some("always"), false)] {
        let mut command = Command::new(&program);
        command.env_remove("OPENCL_LAYERS");
        if let Some(serves) = serves {
            command.env("OPENCL_LAYERS", layer()).env(SERVES, serves);
        }
        command.args(Some("plain").filter(|_| is_plain));
        let head = serves.map_or_else(|| "without the layer".to_owned(), |serves| format!("{SERVES}={serves}"));
        let head = head + if is_plain { ", a program without command buffers" } else { ", a program with them" };
        println!("{head}, nanoseconds (median, and the middle half of 61 rounds):");
        for line in run(&mut command).out.lines() {
            println!("  {line}");
        }
    }
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.arg("submissions").env("OPENCL_LAYERS", layer()).env(SERVES, "always");
    println!("captured kernels as a command buffer and as a graph of clgraph, microseconds (medians of 101 rounds):");
    print!("{}", run(&mut command).out);
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.arg("native").env_remove("OPENCL_LAYERS");
    println!("the same kernels in the driver's own command buffers, without the layer, microseconds:");
    print!("{}", run(&mut command).out);
}
