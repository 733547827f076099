//! A machine without OpenCL, without a driver, or without a device: an error that says what to do.
//!
//! A process loads the OpenCL library once, so each case runs in a process of its own: this test starts itself.

mod common;

use std::process::Command;

use common::Reason;

const CHILD: &str = "CLGRAPH_TEST_CHILD";

/// Returns what `clgraph::best_device` reports in a process with these variables.
fn best_device_with(variables: &[(&str, &str)]) -> String {
    let this = std::env::current_exe().unwrap();
    let mut child = Command::new(this);
    child.args(["--exact", "the_child_prints_what_it_finds", "--nocapture"]).env(CHILD, "1");
    child.envs(variables.iter().copied());
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text.lines().find_map(|line| line.split_once("RESULT "));
    found.unwrap_or_else(|| panic!("the child said: {text}{}", String::from_utf8_lossy(&output.stderr))).1.to_owned()
}

/// The other half of the tests below; by itself it checks that this process finds a device.
#[test]
fn the_child_prints_what_it_finds() {
    let found = clgraph::best_device();
    if std::env::var_os(CHILD).is_some() {
        match found {
            Ok(device) => println!("RESULT device {}", device.name()),
            Err(error) => println!("RESULT {:?}: {}", error.kind(), common::shown(&error)),
        }
    } else {
        assert!(!found.unwrap().name().is_empty());
    }
}

#[test]
fn no_library_is_an_error_that_says_what_to_install() {
    let text = best_device_with(&[("OPENCL_DYLIB_PATH", "/no/such/libOpenCL.so;/nor/this.so")]);
    assert!(text.starts_with("FeatureNotSupported: NoLibrary { tried: \"/no/such/libOpenCL.so: "), "{text}");
    assert!(text.contains("/nor/this.so: "), "{text}");
}

#[test]
fn a_library_that_is_not_opencl_is_an_error_that_names_it() {
    let text = best_device_with(&[("OPENCL_DYLIB_PATH", "libm.so.6")]);
    let error = "MissingFunction { library: \"libm.so.6\", function: \"clGetPlatformIDs\", ";
    assert!(text.starts_with(&format!("FeatureNotSupported: {error}")), "{text}");
}

#[test]
fn no_driver_is_an_error_that_says_what_to_install() {
    let empty = std::env::temp_dir().join(format!("clgraph-no-drivers-{}", std::process::id()));
    std::fs::create_dir_all(&empty).unwrap();
    let text = best_device_with(&[("OCL_ICD_VENDORS", empty.to_str().unwrap())]);
    std::fs::remove_dir_all(&empty).unwrap();
    assert_eq!(text, "FeatureNotSupported: NoPlatform");
}

/// Only these systems list drivers in files.
#[cfg(target_os = "linux")]
#[test]
fn a_broken_driver_is_named_with_its_file_and_what_is_wrong() {
    let folder = std::env::temp_dir().join(format!("clgraph-broken-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("broken.icd"), "/no/such/libbroken.so\n").unwrap();
    std::fs::write(folder.join("other.icd"), "libm.so.6\n").unwrap();
    let text = best_device_with(&[("OCL_ICD_VENDORS", folder.to_str().unwrap())]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(text.starts_with("FeatureNotSupported: NoDriverWorks { broken: ["), "{text}");
    // What is wrong with the first is for the operating system to say.
    for (library, file, why) in
        [("/no/such/libbroken.so", "broken.icd", "No such file"), ("libm.so.6", "other.icd", "is not an OpenCL driver")]
    {
        let file = folder.join(file);
        let start = format!("BrokenDriver {{ library: {library:?}, file: {:?}, why: \"", file.to_str().unwrap());
        let (_, rest) = text.split_once(&start).unwrap_or_else(|| panic!("{start}: {text}"));
        assert!(rest.split_once('"').unwrap().0.contains(why), "{why}: {text}");
    }
}

#[test]
fn a_driver_without_a_device_is_named() {
    let platform = clgraph::best_device().unwrap().caps().platform.clone();
    let variable = match platform.as_str() {
        "Portable Computing Language" => "POCL_DEVICES",
        "rusticl" => "RUSTICL_ENABLE",
        _ => return common::skip(Reason::AlwaysHasDevice),
    };
    let text = best_device_with(&[(variable, "")]);
    assert_eq!(text, format!("FeatureNotSupported: NoDevice {{ platforms: {platform:?} }}"));
}
