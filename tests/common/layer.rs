//! Where the layer is that stands between the loader and the driver (`tests/layer`).

use std::path::PathBuf;

/// Returns the layer that cargo has built beside the tests.
pub fn layer_file() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let file = deps.ancestors().nth(2).unwrap().join("examples/libfault_layer.so");
    assert!(file.exists(), "{}: `cargo build --example fault_layer` builds it", file.display());
    file
}
