//! The revision of `cl_khr_command_buffer` that the layer reports, and lists of extensions that name it.

use std::fmt;

/// The number of bytes of `cl_name_version`: a number of 32 bits, and a name with room for 64 bytes.
pub(crate) const NAME_VERSION: usize = 68;

const COMMAND_BUFFER: &str = "cl_khr_command_buffer";
const MUTABLE_DISPATCH: &str = "cl_khr_command_buffer_mutable_dispatch";

/// A revision: major, minor, patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u32, u32, u32);

impl Version {
    /// The newest revision, and the one that is reported unless a variable says otherwise.
    pub(crate) const NEWEST: Self = Self(1, 0, 0);
    /// From here on record functions have the parameter `properties`.
    const WITH_PROPERTIES: Self = Self(0, 9, 5);
    /// Before, a capability said whether queues may be out of order.
    const WITH_QUEUE_PROPERTIES: Self = Self(0, 9, 6);

    /// The revisions that the layer can report.
    pub(crate) const ALL: [Self; 4] = [Self(0, 9, 4), Self(0, 9, 5), Self(0, 9, 8), Self::NEWEST];

    /// Returns the revision of that name, if the layer can report it.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.to_string() == name)
    }

    /// Returns the revision of mutable dispatch that belongs to it.
    fn mutable_dispatch(self) -> Self {
        match self {
            Self(0, 9, 4) => Self(0, 9, 2),
            Self(0, 9, 5) => Self(0, 9, 3),
            _ => Self(0, 9, 5),
        }
    }

    /// Whether record functions have the parameter `properties`.
    pub(crate) fn has_properties(self) -> bool {
        self >= Self::WITH_PROPERTIES
    }

    /// Whether a capability says that queues may be out of order.
    pub(crate) fn has_out_of_order_capability(self) -> bool {
        self < Self::WITH_QUEUE_PROPERTIES
    }

    /// As `CL_MAKE_VERSION`.
    pub(crate) fn packed(self) -> u32 {
        (self.0 << 22) | (self.1 << 12) | self.2
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Returns a driver's list of extensions with those of the layer in place of the driver's own.
pub(crate) fn extensions(list: &str) -> String {
    let mut names: Vec<&str> = list.split_ascii_whitespace().filter(|name| !is_replaced(name)).collect();
    names.extend([COMMAND_BUFFER, MUTABLE_DISPATCH]);
    names.join(" ")
}

/// As [`extensions`], for a list of `cl_name_version`.
pub(crate) fn extensions_with_version(list: &[u8], version: Version) -> Vec<u8> {
    let mut all = Vec::with_capacity(list.len() + 2 * NAME_VERSION);
    for entry in list.chunks_exact(NAME_VERSION).filter(|entry| !is_replaced(&name_of(entry))) {
        all.extend_from_slice(entry);
    }
    for (name, version) in [(COMMAND_BUFFER, version), (MUTABLE_DISPATCH, version.mutable_dispatch())] {
        let mut room = [0_u8; NAME_VERSION - 4];
        room[..name.len()].copy_from_slice(name.as_bytes());
        all.extend_from_slice(&version.packed().to_ne_bytes());
        all.extend_from_slice(&room);
    }
    all
}

/// What a driver has of its own, by its list of extensions (`cl_name_version`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Native {
    None,
    /// Its record functions have no parameter `properties`: programs are built for one form or the other.
    WithoutProperties,
    /// Command buffers, but no mutable dispatch.
    Partly,
    Both,
}

pub(crate) fn native(list: &[u8]) -> Native {
    let find = |name: &str| {
        let mut entries = list.chunks_exact(NAME_VERSION);
        entries.find(|entry| name_of(entry) == name).and_then(|entry| entry.first_chunk::<4>())
    };
    let Some(version) = find(COMMAND_BUFFER) else { return Native::None };
    if u32::from_ne_bytes(*version) < Version::WITH_PROPERTIES.packed() {
        Native::WithoutProperties
    } else if find(MUTABLE_DISPATCH).is_none() {
        Native::Partly
    } else {
        Native::Both
    }
}

/// Whether an extension of a driver's gives way. The layer has one queue a command buffer, so `_multi_device` goes too; and so do those of
/// vendors, such as `cl_pocl_command_buffer_svm`: their functions take command buffers of the driver's.
fn is_replaced(name: &str) -> bool {
    name.split_once("_command_buffer").is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with('_'))
}

/// Whether a function of a driver's takes its command buffers, by its name.
pub(crate) fn takes_command_buffers(function: &[u8]) -> bool {
    let has = |part: &[u8]| function.windows(part.len()).any(|window| window == part);
    function.starts_with(b"clCommand") || has(b"CommandBuffer") || has(b"MutableCommand")
}

fn name_of(entry: &[u8]) -> String {
    let name = entry.get(4..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, version: Version) -> Vec<u8> {
        let mut entry = version.packed().to_ne_bytes().to_vec();
        entry.extend_from_slice(name.as_bytes());
        entry.resize(NAME_VERSION, 0);
        entry
    }

    fn listed(list: &[u8]) -> Vec<(String, u32)> {
        let version = |entry: &[u8]| u32::from_ne_bytes(entry[..4].try_into().unwrap());
        list.chunks_exact(NAME_VERSION).map(|entry| (name_of(entry), version(entry))).collect()
    }

    #[test]
    fn a_version_is_known_by_its_name() {
        assert_eq!(Version::of("1.0.0"), Some(Version::NEWEST));
        assert_eq!(Version::of("0.9.8").map(Version::packed), Some((9 << 12) | 8));
        assert_eq!(["", "1", "0.9", "0.9.3", "2.0.0"].map(Version::of), [None; 5]);
        let forms = Version::ALL.map(|version| (version.has_properties(), version.has_out_of_order_capability()));
        assert_eq!(forms, [(false, true), (true, true), (true, false), (true, false)]);
    }

    /// Rule L1: what the driver lists gives way, and everything else stays.
    #[test]
    fn lists_name_the_layer_in_place_of_the_driver() {
        let ours = "cl_khr_command_buffer cl_khr_command_buffer_mutable_dispatch";
        assert_eq!(extensions(""), ours);
        assert_eq!(extensions("cl_khr_fp64 "), format!("cl_khr_fp64 {ours}"));
        let list = "cl_khr_command_buffer cl_khr_fp64 cl_khr_command_buffer_multi_device cl_khr_command_buffers \
                    cl_pocl_command_buffer_svm";
        assert_eq!(extensions(list), format!("cl_khr_fp64 cl_khr_command_buffers {ours}"));

        let old = [
            entry("cl_khr_command_buffer", Version(0, 9, 0)),
            entry("cl_khr_fp64", Version::NEWEST),
            entry("cl_khr_command_buffer_multi_device", Version(0, 9, 1)),
        ];
        for (version, mutable) in Version::ALL.into_iter().zip([2, 3, 5, 5]) {
            let new = listed(&extensions_with_version(&old.concat(), version));
            let expected = [
                ("cl_khr_fp64", Version::NEWEST),
                (COMMAND_BUFFER, version),
                (MUTABLE_DISPATCH, Version(0, 9, mutable)),
            ];
            assert_eq!(new, expected.map(|(name, version)| (name.to_owned(), version.packed())));
        }
    }

    #[test]
    fn a_driver_has_its_own_by_its_list() {
        let buffers = |patch| entry(COMMAND_BUFFER, Version(0, 9, patch));
        let mutable = entry(MUTABLE_DISPATCH, Version(0, 9, 3));
        assert_eq!(native(&[]), Native::None);
        assert_eq!(native(&entry("cl_khr_fp64", Version::NEWEST)), Native::None);
        assert_eq!(native(&buffers(4)), Native::WithoutProperties);
        assert_eq!(native(&buffers(5)), Native::Partly);
        assert_eq!(native(&[buffers(7), mutable.clone()].concat()), Native::Both);
        // Without command buffers it means nothing, and half an entry is none.
        assert_eq!(native(&mutable), Native::None);
        assert_eq!(native(&buffers(5)[..40]), Native::None);
    }
}
