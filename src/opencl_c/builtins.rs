//! The functions of OpenCL C and of its extensions, by name.
//!
//! A source may define one more function of such a name, whose parameters are others: most compilers choose by the arguments of a call. A
//! macro of the name would stand for all of them.

use super::words::is_type;

/// How the names of families begin, and those of what vendors add.
const FAMILIES: [&str; 32] = [
    "_",
    "amd_",
    "arm_",
    "as_",
    "async_work_group_",
    "atom",
    "bitfield_",
    "cl_",
    "clock_read_",
    "convert_",
    "dot_",
    "enqueue_",
    "get_enqueued_",
    "get_image_",
    "get_kernel_",
    "get_max_",
    "get_num_",
    "get_pipe_",
    "get_sub_group_",
    "half_",
    "img_",
    "intel_",
    "native_",
    "ndrange_",
    "nv_",
    "pocl_",
    "qcom_",
    "read_",
    "sub_group_",
    "vload",
    "vstore",
    "work_group_",
];

/// All others, in order.
const NAMES: &str = "abs abs_diff acos acosh acospi add_sat all any asin asinh asinpi atan atan2 atan2pi atanh atanpi barrier bit_reverse \
    bitselect capture_event_profiling_info cbrt ceil clamp clz commit_read_pipe commit_write_pipe copysign cos cosh cospi \
    create_user_event cross ctz degrees distance dot erf erfc exp exp10 exp2 expm1 fabs fast_distance fast_length fast_normalize fdim floor \
    fma fmax fmin fmod fract frexp get_default_queue get_fence get_global_id get_global_linear_id get_global_offset get_global_size \
    get_group_id get_local_id get_local_linear_id get_local_size get_work_dim hadd hypot ilogb is_valid_event is_valid_reserve_id isequal \
    isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan isnormal isnotequal isordered isunordered ldexp length \
    lgamma lgamma_r log log10 log1p log2 logb mad mad24 mad_hi mad_sat max maxmag mem_fence min minmag mix modf mul24 mul_hi nan \
    nextafter normalize popcount pow pown powr prefetch printf radians read_mem_fence release_event remainder remquo reserve_read_pipe \
    reserve_write_pipe retain_event rhadd rint rootn rotate round rsqrt select set_user_event_status shuffle shuffle2 sign signbit sin \
    sincos sinh sinpi smoothstep sqrt step sub_sat tan tanh tanpi tgamma to_global to_local to_private trunc upsample vec_step \
    wait_group_events write_imagef write_imageh write_imagei write_imageui write_mem_fence write_pipe";

/// Whether OpenCL C, or an extension, may have a function of this name.
pub(super) fn is_builtin(name: &str) -> bool {
    FAMILIES.iter().any(|begin| name.starts_with(begin)) || NAMES.split(' ').any(|known| known == name)
}

/// How the names of families begin whose functions are known. Those that wait, or that depend on an order, are told by their names elsewhere.
const KNOWN_FAMILIES: [&str; 16] = [
    "async_work_group_",
    "atom_",
    "atomic_",
    "bitfield_extract_",
    "dot_4x8packed_",
    "dot_acc_sat_4x8packed_",
    "get_enqueued_",
    "get_image_",
    "get_sub_group_",
    "read_image",
    "sub_group_",
    "vload",
    "vstore",
    "work_group_",
    "write_image",
    "wait_group_",
];

/// What comes behind `half_` and `native_`.
const OF_LESS_PRECISION: &str = "cos divide exp exp2 exp10 log log2 log10 powr recip rsqrt sin sqrt tan";

/// Whether it is known what a function of this name does, in OpenCL C 3.0 and the extensions of Khronos's that tell it by the name.
pub(super) fn is_known(name: &str) -> bool {
    let is_of_queues = ["event", "queue", "reserve", "commit"].iter().any(|part| name.contains(part));
    if NAMES.split(' ').any(|known| known == name) {
        return !is_of_queues;
    }
    let to_type = name.strip_prefix("as_").or_else(|| name.strip_prefix("convert_")?.split('_').next());
    let less = name.strip_prefix("half_").or_else(|| name.strip_prefix("native_"));
    KNOWN_FAMILIES.iter().any(|begin| name.starts_with(begin))
        || ["bitfield_insert", "get_num_groups", "get_num_sub_groups", "get_max_sub_group_size"].contains(&name)
        || to_type.is_some_and(is_type)
        || less.is_some_and(|less| OF_LESS_PRECISION.split(' ').any(|known| known == less))
}
