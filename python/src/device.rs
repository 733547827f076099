//! Devices.

use pyo3::prelude::*;
use rust::{CommandKind, MemoryKind, Path};
use serde_json::{Map, Value, json};

use crate::gate::{Own, call, check};
use crate::interop;

/// An OpenCL device.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct Device(Own<rust::Device>);

impl Device {
    pub(crate) fn new(device: rust::Device) -> Self {
        Self(Own::new(device))
    }

    pub(crate) fn get(&self) -> rust::Device {
        (*self.0).clone()
    }
}

#[pymethods]
impl Device {
    /// The device's name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The platform's name.
    #[getter]
    fn platform(&self) -> &str {
        &self.0.caps().platform
    }

    /// Whether it is a GPU.
    #[getter]
    fn is_gpu(&self) -> bool {
        self.0.caps().gpu
    }

    /// By which path the device runs graphs if nothing else is asked for, "native" (command buffers) or "replay", and why.
    #[getter]
    fn path(&self) -> (&'static str, String) {
        let (path, why) = self.0.caps().path();
        (if path == Path::Native { "native" } else { "replay" }, why.to_string())
    }

    /// What clgraph has found out about the device, as a dictionary of plain values: the limits and extensions that the
    /// driver reports, and the kinds of command buffers, memory and device globals that it has.
    ///
    /// "commands" says for each kind of command why command buffers cannot have it, or None; "memory" lists the kinds of
    /// memory, "global_access" the ways in which kernels can reach device globals, best first, and "abi" has the
    /// signatures of the functions of command buffers.
    #[getter]
    fn caps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = call(py, || {
            let caps = self.0.caps();
            let why =
                |kind: CommandKind| (kind.to_string(), json!(caps.can_record(kind).err().map(|why| why.to_string())));
            let more = json!({
                "commands": CommandKind::ALL.map(why).into_iter().collect::<Map<_, _>>(),
                "memory": MemoryKind::ALL.into_iter().filter(|kind| caps.has_memory(*kind)).collect::<Vec<_>>(),
                "global_access": caps.global_access(),
                "abi": self.0.abi()?,
            });
            let all = [json!(caps), more].into_iter().filter_map(|part| match part {
                Value::Object(part) => Some(part),
                _ => None,
            });
            Ok(Value::Object(all.flatten().collect()).to_string())
        })?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// The same device as a pyopencl.Device.
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        check()?;
        // SAFETY: **live**: `self` has it.
        unsafe { interop::wrap(py, "Device", self.0.raw(), "`Device.device`") }
    }

    fn __repr__(&self) -> String {
        format!("Device({:?} of {:?})", self.name(), self.platform())
    }
}

/// The device that an object of clgraph or of pyopencl is.
pub(crate) fn find(object: &Bound<'_, PyAny>) -> PyResult<rust::Device> {
    match object.cast::<Device>() {
        Ok(device) => Ok(device.get().get()),
        Err(_) => interop::device(object),
    }
}

/// Returns the devices of all platforms.
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<Vec<Device>> {
    Ok(call(py, rust::devices)?.into_iter().map(Device::new).collect())
}

/// Adds the functions of this module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(devices, module)?)
}
