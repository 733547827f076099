//! Devices.

use pyo3::prelude::*;
use rust::Path;

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
