//! The one function of CLBlast that the example needs, found when it runs: <https://github.com/CNugteren/CLBlast>.

use std::error::Error;
use std::ffi::c_void;
use std::ptr;

use clgraph::NativeQueue;
use dlopen2::raw::Library;

const LIBRARIES: [&str; 3] = ["libclblast.so.1", "libclblast.dylib", "clblast.dll"];
const ROW_MAJOR: i32 = 101;
const NOT_TRANSPOSED: i32 = 111;
const TRANSPOSED: i32 = 112;

/// `CLBlastSgemm` of `clblast_c.h`.
type Sgemm = unsafe extern "C" fn(
    i32,
    i32,
    i32,
    usize,
    usize,
    usize,
    f32,
    *mut c_void,
    usize,
    usize,
    *mut c_void,
    usize,
    usize,
    f32,
    *mut c_void,
    usize,
    usize,
    *mut *mut c_void,
    *mut *mut c_void,
) -> i32;

pub struct Clblast {
    sgemm: Sgemm,
    /// Keeps the function there.
    _library: Library,
}

impl Clblast {
    pub fn load() -> Result<Self, Box<dyn Error>> {
        let library = LIBRARIES.iter().find_map(|name| Library::open(name).ok()).ok_or_else(|| {
            let names = LIBRARIES.join(", ");
            format!(
                "CLBlast is missing (none of {names} can be loaded): on Debian or Ubuntu, `apt-get install libclblast1`"
            )
        })?;
        // SAFETY: the function of that name has had this type since CLBlast 0.10.
        let sgemm = unsafe { library.symbol("CLBlastSgemm") }?;
        Ok(Self { sgemm, _library: library })
    }

    /// Enqueues `c = a x bᵀ`, where `a` is `m` x `k`, `b` is `n` x `k` and `c` is `m` x `n`, row by row, and they are the memory of a
    /// native command, in this order.
    pub fn product(&self, to: &NativeQueue<'_>, [m, n, k]: [usize; 3]) -> Result<(), String> {
        let [a, b, c] = [0, 1, 2].map(|at| to.memory(at));
        let [a_at, b_at, c_at] = [a, b, c].map(|of| of.offset() / size_of::<f32>());
        let mut queue = to.raw();
        // SAFETY: live objects; the matrices are as large as `m`, `n` and `k` say; no event is wanted.
        let status = unsafe {
            (self.sgemm)(
                ROW_MAJOR,
                NOT_TRANSPOSED,
                TRANSPOSED,
                m,
                n,
                k,
                1.0,
                a.pointer(),
                a_at,
                k,
                b.pointer(),
                b_at,
                k,
                0.0,
                c.pointer(),
                c_at,
                n,
                &raw mut queue,
                ptr::null_mut(),
            )
        };
        if status == 0 { Ok(()) } else { Err(format!("CLBlastSgemm gave status {status} (see clblast_c.h)")) }
    }
}
