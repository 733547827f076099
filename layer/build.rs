//! The library stays in memory when a loader closes it: the end of the process still calls into it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let value = |name| std::env::var(name).unwrap_or_default();
    let is_elf = value("CARGO_CFG_TARGET_FAMILY") == "unix" && value("CARGO_CFG_TARGET_VENDOR") != "apple";
    if is_elf {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
