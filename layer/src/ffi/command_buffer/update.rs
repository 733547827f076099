//! Changing launches of a command buffer, and what programs can ask of them.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

use opencl_sys::{
    CL_INVALID_ARG_INDEX, CL_INVALID_ARG_SIZE, CL_INVALID_MUTABLE_COMMAND_KHR, CL_INVALID_OPERATION, CL_INVALID_VALUE,
    CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, CL_MUTABLE_COMMAND_COMMAND_BUFFER_KHR,
    CL_MUTABLE_COMMAND_COMMAND_QUEUE_KHR, CL_MUTABLE_COMMAND_COMMAND_TYPE_KHR, CL_MUTABLE_COMMAND_PROPERTIES_ARRAY_KHR,
    CL_MUTABLE_DISPATCH_ARGUMENTS_KHR, CL_MUTABLE_DISPATCH_DIMENSIONS_KHR, CL_MUTABLE_DISPATCH_EXEC_INFO_KHR,
    CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR, CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR,
    CL_MUTABLE_DISPATCH_GLOBAL_WORK_OFFSET_KHR, CL_MUTABLE_DISPATCH_GLOBAL_WORK_SIZE_KHR,
    CL_MUTABLE_DISPATCH_KERNEL_KHR, CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR, CL_MUTABLE_DISPATCH_LOCAL_WORK_SIZE_KHR,
    CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR, CL_SUCCESS, cl_bool, cl_command_buffer_khr, cl_int,
    cl_mutable_command_khr, cl_mutable_dispatch_arg_khr, cl_mutable_dispatch_config_khr,
    cl_mutable_dispatch_exec_info_khr, cl_uint, cl_ulong,
};

use super::buffer::{Buffer, command, recorded};
use super::command::{Command, Launch};
use super::kernels::Kept;
use super::make::places;
use super::prepared::{Prepared, clone};
use super::{calls, enter, kernels, query};
use crate::command_buffer::arguments::{self, Kind, Value};
use crate::command_buffer::launch::Change;
use crate::command_buffer::{Checked, ensure};

/// # Safety
/// As for the C function.
pub(super) unsafe extern "system" fn update(
    buffer: cl_command_buffer_khr,
    count: cl_uint,
    kinds: *const cl_uint,
    configs: *const *const c_void,
) -> cl_int {
    enter(|| {
        let buffer = Buffer::find(buffer)?;
        let is_finalized = buffer.is_recording().is_err();
        ensure(is_finalized && buffer.properties.is_mutable, CL_INVALID_OPERATION)?;
        ensure(kinds.is_null() == (count == 0) && configs.is_null() == (count == 0), CL_INVALID_VALUE)?;
        let mut all = Vec::new();
        for at in 0..count as usize {
            // SAFETY: within the lists.
            let (kind, config) = unsafe { (kinds.add(at).read(), configs.add(at).read()) };
            let is_known = kind == CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR;
            ensure(is_known && !config.is_null(), CL_INVALID_VALUE)?;
            // SAFETY: the type that its entry of `kinds` says.
            all.push(unsafe { config.cast::<cl_mutable_dispatch_config_khr>().read_unaligned() });
        }
        buffer.change(|commands| {
            // A launch may be named several times: each entry changes what the one before has left.
            let mut new: BTreeMap<usize, Launch> = BTreeMap::new();
            for config in &all {
                let (of, place) = command(config.command)?;
                ensure(Arc::ptr_eq(&of, &buffer), CL_INVALID_MUTABLE_COMMAND_KHR)?;
                let Some(Command::Launch(old)) = commands.get(place).map(|command| &**command) else {
                    return Err(CL_INVALID_MUTABLE_COMMAND_KHR);
                };
                // SAFETY: what the program gave.
                let changed = unsafe { changed(&buffer, new.get(&place).unwrap_or(old), config) }?;
                new.insert(place, changed);
            }
            Ok(new.into_iter().map(|(place, launch)| (place, Command::Launch(Box::new(launch)))).collect())
        })
    })
}

/// Returns a launch with what an entry changes. The launch itself stays.
///
/// # Safety
/// `config` is as the specification says.
unsafe fn changed(buffer: &Buffer, old: &Launch, config: &cl_mutable_dispatch_config_khr) -> Checked<Launch> {
    let dimensions = old.range.dimensions;
    ensure(config.work_dim == 0 || config.work_dim as usize == dimensions, CL_INVALID_OPERATION)?;
    let lists = [
        (config.num_args, config.arg_list.is_null()),
        (config.num_svm_args, config.arg_svm_list.is_null()),
        (config.num_exec_infos, config.exec_info_list.is_null()),
    ];
    ensure(lists.iter().all(|(count, is_null)| *is_null == (*count == 0)), CL_INVALID_VALUE)?;
    // SAFETY: null, or as many numbers as the launch has dimensions.
    let change = unsafe {
        Change {
            offset: places(config.global_work_offset, dimensions, 0),
            global: places(config.global_work_size, dimensions, 0),
            local: places(config.local_work_size, dimensions, 1),
        }
    };
    let has_arguments = config.num_args > 0 || config.num_svm_args > 0;
    let fields: [(bool, cl_ulong); 5] = [
        (change.offset.is_some(), CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR),
        (change.global.is_some(), CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR),
        (change.local.is_some(), CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR),
        (has_arguments, CL_MUTABLE_DISPATCH_ARGUMENTS_KHR),
        (config.num_exec_infos > 0, CL_MUTABLE_DISPATCH_EXEC_INFO_KHR),
    ];
    let may = |(is_changed, field): &(bool, cl_ulong)| !is_changed || old.properties.fields & field != 0;
    ensure(fields.iter().all(may), CL_INVALID_OPERATION)?;
    let range = change.of(old.range);
    range.check(&buffer.device.launches, &old.prepared.facts)?;
    ensure(old.range.is_uniform() == range.is_uniform(), CL_INVALID_OPERATION)?;
    let prepared = if has_arguments || config.num_exec_infos > 0 {
        // SAFETY: values of the program's.
        Arc::new(unsafe { prepared(buffer, &old.prepared, config) }?)
    } else {
        Arc::clone(&old.prepared)
    };
    Ok(Launch { prepared, range, properties: old.properties, given: old.given.clone() })
}

/// Returns a kernel with other arguments.
///
/// # Safety
/// `config` is as the specification says, and its lists have the lengths that it says.
unsafe fn prepared(buffer: &Buffer, old: &Prepared, config: &cl_mutable_dispatch_config_khr) -> Checked<Prepared> {
    let mut values = old.values.map(|object| object.again().ok());
    let mut has_exec_info = old.has_exec_info;
    let kinds = old.kinds()?;
    let kind_of = |index: cl_uint| kinds.get(index as usize).copied().ok_or(CL_INVALID_ARG_INDEX);
    // SAFETY: live kernels, and values of the program's.
    let kernel = unsafe {
        let kernel = clone(old.kernel.raw(), &old.values)?;
        for at in 0..config.num_args as usize {
            let cl_mutable_dispatch_arg_khr { arg_index, arg_size, arg_value } =
                config.arg_list.add(at).read_unaligned();
            let kind = kind_of(arg_index)?.or_as(old.values.list().get(arg_index as usize));
            query::value(buffer.facts.context(), kind, arg_size, arg_value)?;
            // What may have any size is read if the driver takes it; not every driver looks.
            let is_small = arg_value.is_null() || arg_size <= buffer.device.argument_bytes;
            let is_told = !matches!(kind, Kind::Any | Kind::Own);
            ensure(is_told || is_small, CL_INVALID_ARG_SIZE)?;
            let value = || kernels::value(arg_size, arg_value);
            let known = is_told.then(value);
            if let (Kind::Object, Some(Value::Object(Kept::Memory(memory)))) = (kind, &known) {
                // It is held by `known`.
                query::is_of(memory.raw(), buffer.facts.context())?;
            }
            let status = calls::clSetKernelArg(kernel.raw(), arg_index, arg_size, arg_value);
            ensure(status == CL_SUCCESS, status)?;
            values.set(arg_index, known.unwrap_or_else(value));
        }
        for at in 0..config.num_svm_args as usize {
            let cl_mutable_dispatch_arg_khr { arg_index, arg_value, .. } = config.arg_svm_list.add(at).read_unaligned();
            kind_of(arg_index)?.or_as(old.values.list().get(arg_index as usize)).check_address()?;
            let status = calls::clSetKernelArgSVMPointer(kernel.raw(), arg_index, arg_value);
            ensure(status == CL_SUCCESS, status)?;
            values.set(arg_index, Value::Pointer(arg_value.addr()));
        }
        for at in 0..config.num_exec_infos as usize {
            let cl_mutable_dispatch_exec_info_khr { param_name, param_value_size, param_value } =
                config.exec_info_list.add(at).read_unaligned();
            ensure(!param_value.is_null(), CL_INVALID_VALUE)?;
            arguments::exec_info(param_name, param_value_size)?;
            if param_name == CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM {
                let wants = param_value.cast::<cl_bool>().read_unaligned() != 0;
                ensure(!wants || buffer.device.may_have_system_svm(), CL_INVALID_OPERATION)?;
            }
            let status = calls::clSetKernelExecInfo(kernel.raw(), param_name, param_value_size, param_value);
            ensure(status == CL_SUCCESS, status)?;
            has_exec_info = true;
        }
        kernel
    };
    let (named, kinds) = (Arc::clone(&old.named), Arc::clone(&old.kinds));
    let prepared = Prepared { named, kernel, values, has_exec_info, kinds, facts: old.facts };
    prepared.check_on(&buffer.target())?;
    Ok(prepared)
}

/// # Safety
/// As for the C function.
pub(super) unsafe extern "system" fn info(
    handle: cl_mutable_command_khr,
    name: cl_uint,
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
) -> cl_int {
    enter(|| {
        let (buffer, place) = command(handle)?;
        let recorded = recorded(&buffer, place)?;
        let Command::Launch(launch) = &*recorded else { return Err(CL_INVALID_MUTABLE_COMMAND_KHR) };
        let range = &launch.range;
        let dimensions = range.dimensions;
        // SAFETY: the caller's places.
        let status = unsafe {
            match name {
                CL_MUTABLE_COMMAND_COMMAND_QUEUE_KHR => query::answer(&[buffer.queue.raw()], size, value, size_ret),
                CL_MUTABLE_COMMAND_COMMAND_BUFFER_KHR => query::answer(&[buffer.raw()], size, value, size_ret),
                CL_MUTABLE_COMMAND_COMMAND_TYPE_KHR => query::answer(&[recorded.kind()], size, value, size_ret),
                CL_MUTABLE_COMMAND_PROPERTIES_ARRAY_KHR => query::answer(&launch.given, size, value, size_ret),
                CL_MUTABLE_DISPATCH_KERNEL_KHR => query::answer(&[launch.prepared.named.raw()], size, value, size_ret),
                CL_MUTABLE_DISPATCH_DIMENSIONS_KHR => query::answer(&[dimensions as cl_uint], size, value, size_ret),
                CL_MUTABLE_DISPATCH_GLOBAL_WORK_OFFSET_KHR => {
                    query::answer(&range.offset[..dimensions], size, value, size_ret)
                }
                CL_MUTABLE_DISPATCH_GLOBAL_WORK_SIZE_KHR => {
                    query::answer(&range.global[..dimensions], size, value, size_ret)
                }
                CL_MUTABLE_DISPATCH_LOCAL_WORK_SIZE_KHR => {
                    query::answer(&range.local.unwrap_or([0; 3])[..dimensions], size, value, size_ret)
                }
                _ => CL_INVALID_VALUE,
            }
        };
        ensure(status == CL_SUCCESS, status)
    })
}
