//! Finds drivers that are registered with the loader and do not work. No loader reports them.

use std::ffi::{CStr, OsString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::{env, fs, io, mem};

use dlopen2::raw::Library;
use opencl_sys::{cl_int, cl_platform_id, cl_uint};

use crate::error::SetupError;

/// The folder in which drivers are registered, unless a variable names another.
const VENDORS: &str = "/etc/OpenCL/vendors";
/// The function by which loaders find the platforms of a driver (`cl_khr_icd`).
const PLATFORMS: &CStr = c"clIcdGetPlatformIDsKHR";

type GetAddress = unsafe extern "system" fn(name: *const c_char) -> *mut c_void;
type GetPlatforms = unsafe extern "system" fn(room: cl_uint, ids: *mut cl_platform_id, count: *mut cl_uint) -> cl_int;

/// Returns an error with the reason for each registered driver that does not work. The list is empty where drivers are
/// not registered by files, as on Windows and macOS.
pub(crate) fn broken() -> Vec<SetupError> {
    if cfg!(any(windows, target_vendor = "apple")) {
        return Vec::new();
    }
    let broken = |(file, library): (String, io::Result<String>)| {
        let (library, why) = match library {
            Ok(library) => (why_not(&library).map(|why| (library, why)))?,
            Err(error) => ("?".to_owned(), error.to_string()),
        };
        Some(SetupError::BrokenDriver { library, file, why })
    };
    listed(&|name| env::var_os(name)).into_iter().filter_map(broken).collect()
}

/// Returns what registers each library, and the library, as the common loaders (ocl-icd and Khronos') find them.
fn listed(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<(String, io::Result<String>)> {
    let names = ["OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"];
    let named = names.into_iter().find_map(|name| Some((name, variable(name).filter(|value| !value.is_empty())?)));
    let at = named.as_ref().map_or(Path::new(VENDORS), |(_, value)| Path::new(value));
    let is_list = |path: &Path| path.extension().is_some_and(|end| end == "icd");
    if let Some((name, value)) = named.as_ref().filter(|_| !at.is_dir() && !is_list(at)) {
        // The value is the name of a driver, not of a folder.
        return vec![((*name).to_owned(), Ok(value.to_string_lossy().into_owned()))];
    }
    let mut files: Vec<PathBuf> = if at.is_dir() {
        fs::read_dir(at).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    } else {
        vec![at.to_owned()]
    };
    files.retain(|path| is_list(path));
    files.sort();
    let first_line = |text: String| text.lines().next().unwrap_or_default().trim().to_owned();
    files.into_iter().map(|file| (file.display().to_string(), fs::read_to_string(&file).map(first_line))).collect()
}

/// Returns why a library is no working driver, or `None` if it is one.
fn why_not(name: &str) -> Option<String> {
    // The system's loader takes a C string.
    if name.is_empty() || name.contains('\0') {
        return Some("this is not the name of a library".to_owned());
    }
    let library = match Library::open(name) {
        Ok(library) => library,
        Err(error) => {
            // The text is "Could not open library: NAME: reason".
            let text = error.to_string();
            return Some(text.splitn(3, ": ").nth(2).unwrap_or(&text).to_owned());
        }
    };
    // SAFETY: **headers**.
    let exported = unsafe { library.symbol_cstr::<GetPlatforms>(PLATFORMS) }.ok();
    // SAFETY: **headers**.
    let address = unsafe { library.symbol_cstr::<GetAddress>(c"clGetExtensionFunctionAddress") };
    let why = match (address, exported) {
        (Err(_), _) => Some(
            "the library is not an OpenCL driver, because it has no function \
                             clGetExtensionFunctionAddress"
                .to_owned(),
        ),
        (Ok(address), exported) => {
            // SAFETY: **headers**; the name is a C string.
            let pointer = unsafe { address(PLATFORMS.as_ptr()) };
            // SAFETY: **headers**: null is `None`; otherwise it is the function of that name.
            let given = unsafe { mem::transmute::<*mut c_void, Option<GetPlatforms>>(pointer) };
            match given.or(exported) {
                None => Some(
                    "the library is not a driver for an OpenCL loader, because it has no function \
                              clIcdGetPlatformIDsKHR"
                        .to_owned(),
                ),
                Some(platforms) => {
                    let mut count = 0;
                    // SAFETY: **headers**: null and room for 0 handles, so the driver only writes the count.
                    let status = unsafe { platforms(0, std::ptr::null_mut(), &raw mut count) };
                    let nothing = status != 0 || count == 0;
                    nothing.then(|| {
                        "the library offers no platform (check that its device exists, and that you have \
                                     permission to open it)"
                            .to_owned()
                    })
                }
            }
        }
    };
    // The loader uses the library too, and a library that has started threads cannot be closed safely.
    mem::forget(library);
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_folder_or_one_file_list_drivers() {
        let folder = env::temp_dir().join(format!("clgraph-vendors-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let texts: [(&str, &[u8]); 5] = [
            ("b.icd", b"/no/b.so\n"),
            ("a.icd", b"  a.so  \nmore"),
            ("empty.icd", b""),
            ("c.txt", b"c.so"),
            ("d.icd", b"\xFF"),
        ];
        for (name, text) in texts {
            fs::write(folder.join(name), text).unwrap();
        }
        let of = |at: &Path, variable: &str| -> Vec<(String, Option<String>)> {
            let found = listed(&|name| (name == variable).then(|| at.as_os_str().to_owned()));
            let name = |file: String| Path::new(&file).file_name().unwrap().to_str().unwrap().to_owned();
            found.into_iter().map(|(file, library)| (name(file), library.ok())).collect()
        };
        let all = [("a.icd", Some("a.so")), ("b.icd", Some("/no/b.so")), ("d.icd", None), ("empty.icd", Some(""))];
        let all = all.map(|(file, library)| (file.to_owned(), library.map(str::to_owned)));
        assert_eq!(of(&folder, "OCL_ICD_VENDORS"), all);
        assert_eq!(of(&folder, "OPENCL_VENDOR_PATH"), all);
        assert_eq!(of(&folder.join("b.icd"), "OCL_ICD_VENDORS"), all[1..2]);
        assert_eq!(of(&folder.join("none.icd"), "OCL_ICD_VENDORS"), [("none.icd".to_owned(), None)]);
        let library = folder.join("libx.so");
        let named = [("OCL_ICD_VENDORS".to_owned(), Some(library.to_str().unwrap().to_owned()))];
        assert_eq!(of(&library, "OCL_ICD_VENDORS"), named);
        fs::remove_dir_all(&folder).unwrap();
        // An empty value counts as not set.
        assert_eq!(of(Path::new(""), "OCL_ICD_VENDORS"), of(Path::new(VENDORS), "OCL_ICD_VENDORS"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_library_is_told_why_it_is_no_driver() {
        assert!(why_not("").unwrap().contains("not the name") && why_not("a\0b").unwrap().contains("not the name"));
        assert!(why_not("/no/such.so").unwrap().contains("cannot open shared object file"));
        assert!(why_not("libm.so.6").unwrap().contains("clGetExtensionFunctionAddress"));
    }
}
