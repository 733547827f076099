//! Reading what C points to, and writing to where C points.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Arc;

use rust::HostData;

use crate::status::{self, Failure, Outcome};

/// Returns what a pointer points to.
///
/// # Safety
/// **caller**: null, or valid for reads meanwhile.
pub(crate) unsafe fn read<'a, T>(what: &str, pointer: *const T) -> Outcome<&'a T> {
    if !pointer.is_aligned() {
        return Err(Failure::invalid(format!("the pointer `{what}` is not aligned")));
    }
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// Returns the `count` elements that a pointer points to. Null is fine for none.
///
/// # Safety
/// **caller**: null, or valid for reads of that many elements meanwhile.
pub(crate) unsafe fn list<'a, T>(what: &str, pointer: *const T, count: usize) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    // Nodes are numbered by 32 bits. What more are is the result of a wrong calculation, and no memory would hold a copy.
    let is_too_long = (size_of::<T>() > 1 && count > u32::MAX as usize)
        || count.checked_mul(size_of::<T>()).is_none_or(|size| size > isize::MAX as usize);
    if !pointer.is_aligned() || is_too_long {
        return Err(Failure::invalid(format!("`{what}` is not a list of {count} elements")));
    }
    // SAFETY: not null and aligned, and the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Returns a text. Null is none.
///
/// # Safety
/// **caller**: null, or a text that ends with a zero byte.
pub(crate) unsafe fn text<'a>(what: &str, pointer: *const c_char) -> Outcome<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    text.map(Some).map_err(|_| Failure::invalid(format!("the text `{what}` is not UTF-8")))
}

/// Returns a text that says why something failed: what is not UTF-8 in it is replaced, as such texts come from anywhere.
/// Null is none.
///
/// # Safety
/// **caller**: null, or a text that ends with a zero byte.
pub(crate) unsafe fn reason(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// Returns where a result goes.
///
/// # Safety
/// **caller**: null, or valid for a write meanwhile.
pub(crate) unsafe fn place<'a, T>(what: &str, pointer: *mut T) -> Outcome<&'a mut Place<T>> {
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    if !pointer.is_aligned() {
        return Err(Failure::invalid(format!("the pointer `{what}` is not aligned")));
    }
    // SAFETY: not null and aligned, and the caller's promise; `Place` makes no claim about what is there.
    Ok(unsafe { &mut *pointer.cast::<Place<T>>() })
}

/// Returns where a result goes that C need not want: null is nowhere. It is looked at before anything is done.
///
/// # Safety
/// **caller**: null, or valid for a write meanwhile.
pub(crate) unsafe fn target<'a, T>(what: &str, pointer: *mut T) -> Outcome<Target<'a, T>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { place(what, pointer) }.map(Some)
}

/// Where a result goes, if C wants it.
pub(crate) type Target<'a, T> = Option<&'a mut Place<T>>;

/// Memory of C to which a result is written. What is there before may be anything.
#[repr(transparent)]
pub(crate) struct Place<T>(std::mem::MaybeUninit<T>);

impl<T> Place<T> {
    pub(crate) fn set(&mut self, value: T) {
        self.0.write(value);
    }
}

/// Copies a text to C, as OpenCL's queries do: `size` gets the number of bytes with the zero at the end, and `text` the
/// text if it has room for all of it.
///
/// # Safety
/// **caller**: `text` is null or has room for `room` bytes; `size` is null or valid for a write.
pub(crate) unsafe fn give_text(from: String, room: usize, text: *mut c_char, size: *mut usize) -> Outcome<()> {
    let from = CString::new(from.replace('\0', "\u{fffd}")).unwrap_or_default();
    let bytes = from.as_bytes_with_nul();
    if text.is_null() && size.is_null() {
        return Err(Failure::null("text"));
    }
    if !size.is_null() {
        // SAFETY: the caller's promise.
        unsafe { place("size", size) }?.set(bytes.len());
    }
    if !text.is_null() {
        if room < bytes.len() {
            return Err(Failure::invalid(format!("the text has {} bytes, and there is room for {room}", bytes.len())));
        }
        // SAFETY: the caller's promise; there is room.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), text, bytes.len()) };
    }
    Ok(())
}

/// Copies a list to C, as OpenCL's queries do: `count` gets how many elements there are, and `list` all of them if it has
/// room for them.
///
/// # Safety
/// **caller**: `list` is null or has room for `room` elements; `count` is null or valid for a write.
pub(crate) unsafe fn give_list<T>(
    what: &str,
    from: impl ExactSizeIterator<Item = T>,
    room: usize,
    list: *mut T,
    count: *mut usize,
) -> Outcome<()> {
    if list.is_null() && count.is_null() {
        return Err(Failure::null(what));
    }
    if !count.is_null() {
        // SAFETY: the caller's promise.
        unsafe { place("count", count) }?.set(from.len());
    }
    if list.is_null() {
        return Ok(());
    }
    if room < from.len() {
        return Err(Failure::invalid(format!("there are {} {what}, and there is room for {room}", from.len())));
    }
    for (index, one) in from.enumerate() {
        // SAFETY: the caller's promise; there is room.
        unsafe { place(what, list.add(index)) }?.set(one);
    }
    Ok(())
}

/// A `bool` in a structure of C. What is there may be any byte: all but 0 are true.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Flag(u8);

impl Flag {
    pub(crate) fn is_set(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Flag {
    fn from(is_set: bool) -> Self {
        Self(is_set.into())
    }
}

/// A function that gets the program's pointer back. clgraph calls it exactly once, also when the call fails.
pub(crate) type Release = Option<extern "C" fn(user: *mut c_void)>;

/// A pointer of the program, which it gets back when this is dropped.
pub(crate) struct UserData {
    pub(crate) pointer: *mut c_void,
    release: Release,
}

// SAFETY: the documentation says that the functions and their data are used on any thread, one at a time.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

impl UserData {
    pub(crate) fn new(pointer: *mut c_void, release: Release) -> Self {
        Self { pointer, release }
    }
}

impl Drop for UserData {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            release(self.pointer);
            status::end_child(0);
        }
    }
}

/// Bytes of the program, which it gets back when they are no longer used.
struct Lent {
    data: *const u8,
    size: usize,
    _user: UserData,
}

// SAFETY: the bytes do not change until they are given back.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `data` checked the pointer; the program promised that the bytes stay until `release`.
        unsafe { std::slice::from_raw_parts(self.data, self.size) }
    }
}

/// The most bytes of a value of a kernel. No device takes so many (CL_DEVICE_MAX_PARAMETER_SIZE).
const MOST_VALUE: usize = 1 << 20;

/// Returns the bytes of a value of a kernel, which are copied later.
///
/// # Safety
/// **caller**: null, or that many bytes.
pub(crate) unsafe fn value<'a>(what: &str, pointer: *const c_void, size: usize) -> Outcome<&'a [u8]> {
    if size > MOST_VALUE {
        return Err(Failure::invalid(format!(
            "`{what}` is a value of {size} bytes, and no kernel takes more than {MOST_VALUE}: put it into a buffer"
        )));
    }
    // SAFETY: the caller's promise.
    unsafe { list(what, pointer.cast::<u8>(), size) }
}

/// Returns the pattern of a fill of so many bytes.
///
/// # Safety
/// **caller**: null, or that many bytes.
pub(crate) unsafe fn pattern<'a>(pointer: *const c_void, size: usize, filled: usize) -> Outcome<&'a [u8]> {
    if size > filled {
        return Err(Failure::invalid(format!(
            "the pattern has {size} bytes, and the range {filled}: give a pattern whose size divides that of the range"
        )));
    }
    // SAFETY: the caller's promise.
    unsafe { list("pattern", pointer.cast::<u8>(), size) }
}

/// Copies bytes. Without memory for them it fails: the size comes from the program, and may be anything.
pub(crate) fn copy_of(bytes: &[u8]) -> Outcome<Vec<u8>> {
    let mut copy = Vec::new();
    if copy.try_reserve_exact(bytes.len()).is_err() {
        return Err(Failure::out_of_memory(format!("the host has no memory for a copy of {} bytes", bytes.len())));
    }
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Returns host data of the size that is expected: a copy, or, if there is a function to give it back, the bytes of the
/// program themselves. The sizes are compared before any byte is read.
///
/// # Safety
/// **caller**: null, or that many bytes; with a function to release them they stay valid and unchanged until then.
pub(crate) unsafe fn data(
    pointer: *const c_void,
    size: usize,
    expected: usize,
    user: UserData,
) -> Outcome<HostData<u8>> {
    if size != expected {
        return Err(Failure::invalid(format!(
            "the data has {size} bytes, and {expected} bytes are written: give exactly {expected} bytes"
        )));
    }
    // SAFETY: the caller's promise.
    let bytes: &[u8] = unsafe { list("data", pointer.cast::<u8>(), size) }?;
    if user.release.is_none() || size == 0 {
        return Ok(HostData::from(copy_of(bytes)?));
    }
    Ok(HostData::shared(Arc::new(Lent { data: bytes.as_ptr(), size, _user: user })))
}
