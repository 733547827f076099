//! Lists of names and values, ended by a name of 0.

use opencl_sys::{
    CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_MUTABLE_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR,
    CL_INVALID_OPERATION, CL_INVALID_PROPERTY, CL_INVALID_VALUE, CL_MUTABLE_DISPATCH_ARGUMENTS_KHR,
    CL_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS_KHR, CL_MUTABLE_DISPATCH_ASSERTS_KHR,
    CL_MUTABLE_DISPATCH_EXEC_INFO_KHR, CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR, CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR,
    CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR, CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR, cl_ulong,
};

use super::{Checked, ensure};

/// opencl-sys 0.6.5 has another number, which no header ever had.
const CL_COMMAND_BUFFER_MUTABLE_DISPATCH_ASSERTS_KHR: cl_ulong = 0x12B7;

/// Flags that are in the headers and belong to an extension that the layer does not have.
const DEVICE_SIDE_SYNC: cl_ulong = 1 << 2;

/// What of a launch can be updated: all of it.
pub(crate) const FIELDS: cl_ulong = CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR
    | CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR
    | CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR
    | CL_MUTABLE_DISPATCH_ARGUMENTS_KHR
    | CL_MUTABLE_DISPATCH_EXEC_INFO_KHR;

/// A list as the program gave it, with the 0 at its end; empty if the program gave none.
pub(crate) type List = Vec<cl_ulong>;

/// Reads a list. `next` returns one number after another; none is read behind a name that is not `known`.
///
/// # Errors
/// `CL_INVALID_VALUE` for a name that is not known, or that comes twice.
pub(crate) fn read(mut next: impl FnMut() -> cl_ulong, known: &[cl_ulong]) -> Checked<List> {
    let mut list = List::new();
    loop {
        let name = next();
        if name == 0 {
            list.push(0);
            return Ok(list);
        }
        ensure(known.contains(&name) && value(&list, name).is_none(), CL_INVALID_VALUE)?;
        list.extend([name, next()]);
    }
}

fn value(list: &List, name: cl_ulong) -> Option<cl_ulong> {
    list.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| pair[1])
}

/// What a command buffer was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub(crate) is_mutable: bool,
    /// No launch gets more work-groups than it was recorded with.
    pub(crate) no_more_groups: bool,
}

impl Buffer {
    /// The names that [`Buffer::of`] knows.
    pub(crate) const NAMES: [cl_ulong; 2] =
        [CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_MUTABLE_DISPATCH_ASSERTS_KHR];

    /// The list of what captures make: it can be updated.
    pub(crate) fn mutable_list() -> List {
        vec![CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_MUTABLE_KHR, 0]
    }

    /// # Errors
    /// `CL_INVALID_VALUE` for bits that no revision has, `CL_INVALID_PROPERTY` for those that the layer does not have.
    pub(crate) fn of(list: &List) -> Checked<Self> {
        let flags = value(list, CL_COMMAND_BUFFER_FLAGS_KHR).unwrap_or(0);
        let has = CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR | CL_COMMAND_BUFFER_MUTABLE_KHR;
        ensure(flags & !(has | DEVICE_SIDE_SYNC) == 0, CL_INVALID_VALUE)?;
        let no_more_groups = asserts(value(list, CL_COMMAND_BUFFER_MUTABLE_DISPATCH_ASSERTS_KHR))?;
        ensure(flags & DEVICE_SIDE_SYNC == 0, CL_INVALID_PROPERTY)?;
        Ok(Self { is_mutable: flags & CL_COMMAND_BUFFER_MUTABLE_KHR != 0, no_more_groups })
    }
}

/// What a launch was recorded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// What updates may change: bits of `CL_MUTABLE_DISPATCH_..._KHR`.
    pub(crate) fields: cl_ulong,
    pub(crate) no_more_groups: bool,
}

impl Launch {
    /// The names that [`Launch::of`] knows.
    pub(crate) const NAMES: [cl_ulong; 2] = [CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR, CL_MUTABLE_DISPATCH_ASSERTS_KHR];

    /// # Errors
    /// `CL_INVALID_OPERATION` for fields that the device has not, `CL_INVALID_VALUE` for unknown asserts.
    pub(crate) fn of(list: &List) -> Checked<Self> {
        let fields = value(list, CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR).unwrap_or(FIELDS);
        let no_more_groups = asserts(value(list, CL_MUTABLE_DISPATCH_ASSERTS_KHR))?;
        ensure(fields & !FIELDS == 0, CL_INVALID_OPERATION)?;
        Ok(Self { fields, no_more_groups })
    }
}

fn asserts(value: Option<cl_ulong>) -> Checked<bool> {
    let bits = value.unwrap_or(0);
    ensure(bits & !CL_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS_KHR == 0, CL_INVALID_VALUE)?;
    Ok(bits != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(numbers: &[cl_ulong], known: &[cl_ulong]) -> Checked<List> {
        let mut numbers = numbers.iter().copied();
        read(|| numbers.next().expect("a number behind the end was read"), known)
    }

    #[test]
    fn lists_end_with_0_and_have_each_name_once() {
        assert_eq!(list(&[0], &[7]), Ok(vec![0]));
        assert_eq!(list(&[7, 1, 8, 2, 0], &[7, 8]), Ok(vec![7, 1, 8, 2, 0]));
        // A value may be equal to a name.
        assert_eq!(list(&[7, 8, 8, 7, 0], &[7, 8]), Ok(vec![7, 8, 8, 7, 0]));
        assert_eq!(list(&[7, 1, 7, 1, 0], &[7]), Err(CL_INVALID_VALUE));
        // Nothing is read behind what is not known.
        assert_eq!(list(&[9], &[7]), Err(CL_INVALID_VALUE));
        assert_eq!(list(&[0], &[]), Ok(vec![0]));
    }

    #[test]
    fn flags_of_a_buffer() {
        let of = |flags: cl_ulong, asserts: cl_ulong| {
            let [flags_name, asserts_name] = Buffer::NAMES;
            Buffer::of(&vec![flags_name, flags, asserts_name, asserts, 0])
        };
        let buffer = |is_mutable, no_more_groups| Ok(Buffer { is_mutable, no_more_groups });
        assert_eq!(Buffer::of(&Vec::new()), buffer(false, false));
        assert_eq!(of(0, 0), buffer(false, false));
        assert_eq!(of(1, 0), buffer(false, false));
        assert_eq!(of(3, 1), buffer(true, true));
        assert_eq!(of(4, 0), Err(CL_INVALID_PROPERTY));
        assert_eq!(of(8, 0), Err(CL_INVALID_VALUE));
        assert_eq!(of(0, 2), Err(CL_INVALID_VALUE));
    }

    #[test]
    fn fields_of_a_launch() {
        let of = |fields: cl_ulong, asserts: cl_ulong| {
            let [fields_name, asserts_name] = Launch::NAMES;
            Launch::of(&vec![fields_name, fields, asserts_name, asserts, 0])
        };
        assert_eq!(Launch::of(&Vec::new()), Ok(Launch { fields: FIELDS, no_more_groups: false }));
        assert_eq!(of(0, 1), Ok(Launch { fields: 0, no_more_groups: true }));
        assert_eq!(of(32, 0), Err(CL_INVALID_OPERATION));
        assert_eq!(of(0, 2), Err(CL_INVALID_VALUE));
    }
}
