//! Names the library for the loader: before 1.0 each minor version has an interface of its own, so a program never runs
//! with the library of another one.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let value = |name| std::env::var(name).unwrap_or_default();
    let version = format!("{}.{}", value("CARGO_PKG_VERSION_MAJOR"), value("CARGO_PKG_VERSION_MINOR"));
    let has_soname = value("CARGO_CFG_TARGET_FAMILY") == "unix" && value("CARGO_CFG_TARGET_VENDOR") != "apple";
    if has_soname {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libclgraph.so.{version}");
    }
}
