//! The words of OpenCL C that matter to the reader.

use super::unreadable::Unreadable;

/// Words that have to mean what they mean in OpenCL C, because kernels are declared or guarded by them.
const KEYWORDS: [&str; 45] = [
    "kernel",
    "__kernel",
    "global",
    "__global",
    "local",
    "__local",
    "constant",
    "__constant",
    "private",
    "__private",
    "const",
    "void",
    "if",
    "for",
    "do",
    "while",
    "return",
    "static",
    "inline",
    "typedef",
    "struct",
    "union",
    "enum",
    "extern",
    "uchar",
    "int",
    "uint",
    "ulong",
    "ulong16",
    "uint4",
    "size_t",
    "sizeof",
    "__attribute__",
    "restrict",
    "sampler_t",
    "auto",
    "volatile",
    "__attribute",
    "aligned",
    "noinline",
    "always_inline",
    "reqd_work_group_size",
    "barrier",
    "CLK_GLOBAL_MEM_FENCE",
    "CLK_LOCAL_MEM_FENCE",
];

/// Functions that tell a work-item where it is.
pub(super) const IDS: [&str; 11] = [
    "get_work_dim",
    "get_global_id",
    "get_global_size",
    "get_global_offset",
    "get_global_linear_id",
    "get_local_id",
    "get_local_size",
    "get_enqueued_local_size",
    "get_local_linear_id",
    "get_group_id",
    "get_num_groups",
];

/// Returns whether a word has to mean what it means in OpenCL C.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word) || IDS.contains(&word)
}

/// Words that mean something else at another place in the source, or in another function.
pub(super) const PLACES: [&str; 12] = [
    "__LINE__",
    "__FILE__",
    "__FILE_NAME__",
    "__BASE_FILE__",
    "__TIMESTAMP__",
    "__TIME__",
    "__DATE__",
    "__COUNTER__",
    "__func__",
    "__FUNCTION__",
    "__PRETTY_FUNCTION__",
    "__INCLUDE_LEVEL__",
];

/// Those of them that may mean something else in each build, wherever they are.
pub(super) const BUILDS: [&str; 6] =
    ["__FILE__", "__FILE_NAME__", "__BASE_FILE__", "__TIMESTAMP__", "__TIME__", "__DATE__"];

/// Words by which a condition asks for files.
pub(super) const FILES: [&str; 3] = ["__has_include", "__has_include_next", "__has_embed"];

/// Words of the pragma before the loops of fused kernels, in which macros are replaced.
pub(super) const HINTS: [&str; 5] = ["clang", "loop", "vectorize", "interleave", "disable"];

/// Attributes of a kernel that do not change what a work-item does.
pub(super) const ATTRIBUTES: [&str; 9] = [
    "reqd_work_group_size",
    "work_group_size_hint",
    "vec_type_hint",
    "intel_reqd_sub_group_size",
    "__reqd_work_group_size__",
    "__work_group_size_hint__",
    "__vec_type_hint__",
    "nosvm",
    "uniform_work_group_size",
];

/// Attributes of a function that do not change what it does.
pub(super) const HARMLESS: [&str; 6] =
    ["always_inline", "__always_inline__", "noinline", "__noinline__", "unused", "__unused__"];

/// Attributes of a function that is called as it stands, besides those: calls of it mean the same in a fused kernel. (By `const` a compiler may
/// take one call for two, whatever is written between them.)
pub(super) const OF_CALLED: [&str; 18] = [
    "overloadable",
    "__overloadable__",
    "pure",
    "__pure__",
    "hot",
    "cold",
    "flatten",
    "nothrow",
    "__nothrow__",
    "deprecated",
    "used",
    "convergent",
    "optnone",
    "noduplicate",
    "__hot__",
    "__cold__",
    "__convergent__",
    "__deprecated__",
];

/// Attributes of variables, types and loops inside of functions.
pub(super) const OF_STATEMENTS: [&str; 10] = [
    "aligned",
    "__aligned__",
    "packed",
    "__packed__",
    "opencl_unroll_hint",
    "__opencl_unroll_hint__",
    "endian",
    "ext_vector_type",
    "fallthrough",
    "address_space",
];

/// Words before a function that are left out where it is written again.
pub(super) const LINKING: [&str; 4] = ["static", "inline", "__inline", "__inline__"];

/// Words for variables that only kernels may have.
pub(super) const OF_KERNELS: [&str; 3] = ["sampler_t", "opencl_constant", "__opencl_constant__"];

/// Parts of the names of functions by which a work-item waits for others of its group, or works with them.
const WAITING: [&str; 5] = ["barrier", "Barrier", "work_group", "sub_group", "wait_group"];

/// Functions by which all work-items of a group wait for each other.
pub(super) const BARRIERS: [&str; 2] = ["barrier", "work_group_barrier"];

/// Words for memory that the work-items of a group share, as kernels and functions have them.
pub(super) const HERE: [&str; 2] = ["local", "__local"];

/// All words for such memory.
pub(super) const LOCAL: [&str; 6] =
    ["local", "__local", "opencl_local", "__opencl_local__", "address_space", "__address_space__"];

/// Words that the body of a macro must not have: it could declare something.
pub(super) const DECLARING: [&str; 18] = [
    "static",
    "global",
    "__global",
    "constant",
    "__constant",
    "local",
    "__local",
    "kernel",
    "__kernel",
    "typedef",
    "struct",
    "union",
    "enum",
    "extern",
    "__attribute__",
    "__attribute",
    "return",
    "goto",
];

/// Words that do what this reader does not follow: types of other spellings, code of other languages.
pub(super) const UNKNOWN: [&str; 23] = [
    "asm",
    "__asm",
    "__asm__",
    "_Pragma",
    "__pragma",
    "typeof",
    "__typeof",
    "__typeof__",
    "_Alignas",
    "_Atomic",
    "__extension__",
    "_Generic",
    "_Static_assert",
    "alias",
    "__alias__",
    "ifunc",
    "__ifunc__",
    "weakref",
    "__weakref__",
    "cleanup",
    "__cleanup__",
    "constructor",
    "destructor",
];

/// Words before the name of a function that are no type.
pub(super) const QUALIFIERS: [&str; 20] = [
    "const",
    "static",
    "inline",
    "__inline",
    "__inline__",
    "extern",
    "volatile",
    "global",
    "__global",
    "local",
    "__local",
    "private",
    "__private",
    "constant",
    "__constant",
    "generic",
    "__generic",
    "struct",
    "union",
    "enum",
];

/// Whether a word is a name inside of a compiler, of a function that OpenCL C has by another name.
fn is_mangled(word: &str) -> bool {
    ["_Z", "_I", "__nvvm", "__spirv", "__builtin"].iter().any(|begin| word.starts_with(begin))
}

/// Whether a function makes work-items wait for each other, or may be one that does by another name.
pub(super) fn waits(word: &str) -> bool {
    // Names of members, and of constants.
    let is_plain = word.starts_with('.') || word.starts_with("memory_scope_");
    !is_plain && (WAITING.iter().any(|part| word.contains(part)) || is_mangled(word))
}

/// Whether a function tells how work-items are divided.
pub(super) fn divides(word: &str) -> bool {
    word.starts_with("get_") && (word.contains("local") || word.contains("group"))
}

/// Checks a word anywhere in the source.
pub(super) fn check_word(word: &str) -> Result<(), Unreadable> {
    if matches!(word, "enqueue_kernel" | "enqueue_marker") {
        return Err(Unreadable::Enqueues);
    }
    if UNKNOWN.contains(&word)
        || ["clgraph_loop_", "clgraph_guarded_", "clgraph_fuse"].iter().any(|own| word.starts_with(own))
    {
        return Err(Unreadable::Keyword(word.to_owned()));
    }
    Ok(())
}

pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether components of a vector may have a word as their name.
pub(super) fn is_component(word: &str) -> bool {
    let numbers = word.strip_prefix(['s', 'S']).filter(|numbers| !numbers.is_empty());
    matches!(word, "lo" | "hi" | "even" | "odd")
        || word.chars().all(|c| "xyzwrgba".contains(c))
        || numbers.is_some_and(|numbers| numbers.chars().all(|c| c.is_ascii_hexdigit()))
}

/// Whether a word is the name of a type of OpenCL C, with or without a number of components.
pub(super) fn is_type(word: &str) -> bool {
    const TYPES: [&str; 20] = [
        "void",
        "bool",
        "_Bool",
        "char",
        "uchar",
        "short",
        "ushort",
        "int",
        "uint",
        "long",
        "ulong",
        "half",
        "float",
        "double",
        "size_t",
        "signed",
        "unsigned",
        "ptrdiff_t",
        "intptr_t",
        "uintptr_t",
    ];
    let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
    TYPES.contains(&name) && ["", "2", "3", "4", "8", "16"].contains(&&word[name.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_widths_that_vectors_have() {
        for word in ["uint", "uint2", "float16", "size_t", "void"] {
            assert!(is_type(word), "{word}");
        }
        for word in ["uint128", "int32", "float1", "uint02", "4", "", "vector4"] {
            assert!(!is_type(word), "{word}");
        }
    }
}
