//! The layer between the loader and the driver (`tests/layer`), as the tests see it.

use std::ffi::{CStr, CString, c_char};
use std::time::{Duration, Instant};

use dlopen2::raw::Library;

use crate::layer_place::layer_file;

/// The layer's functions for tests.
pub struct Layer {
    function: extern "C" fn(usize) -> *const c_char,
    calls: extern "C" fn(*const c_char) -> u32,
    reset: extern "C" fn(),
    fail: extern "C" fn(*const c_char, u32, i32),
    has_failed: extern "C" fn() -> bool,
    hangs: extern "C" fn() -> bool,
    slows_fused: extern "C" fn(bool),
    live: extern "C" fn(usize) -> i64,
    kind: extern "C" fn(usize) -> *const c_char,
    _library: Library,
}

impl Layer {
    pub fn open() -> Self {
        let library = Library::open(layer_file()).unwrap();
        // SAFETY: the layer's own signatures.
        unsafe {
            Self {
                function: library.symbol("layer_function").unwrap(),
                calls: library.symbol("layer_calls").unwrap(),
                reset: library.symbol("layer_reset").unwrap(),
                fail: library.symbol("layer_fail").unwrap(),
                has_failed: library.symbol("layer_has_failed").unwrap(),
                hangs: library.symbol("layer_hangs").unwrap(),
                slows_fused: library.symbol("layer_slows_fused").unwrap(),
                live: library.symbol("layer_live").unwrap(),
                kind: library.symbol("layer_kind").unwrap(),
                _library: library,
            }
        }
    }

    /// The functions that can be made to fail.
    pub fn functions(&self) -> Vec<CString> {
        self.names(self.function)
    }

    /// How often a function was called since the last [`Self::reset`].
    pub fn calls(&self, function: &CStr) -> u32 {
        (self.calls)(function.as_ptr())
    }

    /// Sets the counts of calls to zero, and lets nothing fail.
    pub fn reset(&self) {
        (self.reset)();
    }

    /// Makes a call of a function fail, after `skip` more calls that do not.
    pub fn fail(&self, function: &CStr, skip: u32, status: i32) {
        (self.fail)(function.as_ptr(), skip, status);
    }

    /// Makes the next call of a function never return.
    pub fn hang(&self, function: &CStr) {
        self.fail(function, 0, i32::MAX);
    }

    /// Returns whether a call hangs.
    pub fn hangs(&self) -> bool {
        (self.hangs)()
    }

    /// From now on launches of fused kernels take long, or do not.
    pub fn slow_fused(&self, slows: bool) {
        (self.slows_fused)(slows);
    }

    /// Returns whether the call that was to fail has failed.
    pub fn has_failed(&self) -> bool {
        (self.has_failed)()
    }

    fn names(&self, of: extern "C" fn(usize) -> *const c_char) -> Vec<CString> {
        // SAFETY: the layer's names end with zero and live as long as it.
        let name = |raw: *const c_char| (!raw.is_null()).then(|| unsafe { CStr::from_ptr(raw) }.to_owned());
        (0..).map_while(|index| name(of(index))).collect()
    }

    /// References by kind.
    pub fn live(&self) -> Vec<(String, i64)> {
        let kinds = self.names(self.kind);
        kinds.iter().enumerate().map(|(at, kind)| (kind.to_str().unwrap().to_owned(), (self.live)(at))).collect()
    }

    /// Waits until the numbers of references are those of before: other threads release some.
    pub fn wait_for(&self, before: &[(String, i64)]) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            let now = self.live();
            if now == before {
                return Ok(());
            }
            if begin.elapsed() > Duration::from_secs(3) {
                return Err(format!("{now:?} are alive, {before:?} were before"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The layer passes on words without knowing types, so a missing parameter would not be noticed.
#[test]
fn the_layer_passes_on_as_many_arguments_as_the_functions_have() {
    let layer = include_str!("../layer/lib.rs");
    let core = include_str!("../../src/ffi/core.rs");
    let parameters = |name: &str| {
        let (_, rest) = core.split_once(&format!("fn {name}("))?;
        Some(rest.split(") ->").next()?.split(':').count() - 1)
    };
    let list = layer.split_once("\nwrappers! {").unwrap().1.split_once("\n}").unwrap().0;
    let (mut section, mut checked) = ("", 0);
    for line in list.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "}") {
        if let Some(name) = line.strip_suffix(" {") {
            section = name;
            continue;
        }
        let name = line.split(' ').nth(1).unwrap().trim_end_matches(';');
        let alone = match section {
            "device" => 5,
            "free" => 2,
            _ => 1,
        };
        let words = line.split_once('(').map_or(alone, |(_, words)| words.split_whitespace().count());
        let last = match section {
            "create" | "enqueue" | "unmap" => 1,
            "map" => 2,
            _ => 0,
        };
        if let Some(parameters) = parameters(name) {
            assert_eq!(words + last, parameters, "{line}");
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}
