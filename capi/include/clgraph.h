/* clgraph for C and C++: graphs of OpenCL commands that are built once and submitted often.
 *
 * Every function returns a clg_status. After anything but CLG_SUCCESS, clg_last_error() says what was wrong and what to do.
 * Objects are counted as OpenCL's are: functions that make one give one reference away, and *_release takes one back.
 * Handles that are null, released, of another type or made up are errors, and never crash.
 * OpenCL's own handles (cl_context, cl_command_queue, cl_kernel, cl_mem, cl_event, cl_device_id) are passed as they are. They
 * are declared here as CL/cl.h declares them, so this header needs none of OpenCL's.
 * All functions may be called from any thread. In the child of a process that has used clgraph every call fails, and no
 * `release` is called.
 * It is C11: C99 allows no type to be declared twice, as some of OpenCL's are where CL/cl.h is included too.
 */

#ifndef CLGRAPH_H
#define CLGRAPH_H

/* Generated from the crate clgraph-capi by cbindgen: change the crate, not this file. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* As the size of a range: all bytes from the offset on. */
#define CLG_WHOLE ((size_t)-1)


// The version of the header. The library must have the same major and minor number.
#define CLG_VERSION_MAJOR 0

// The minor number of the version.
#define CLG_VERSION_MINOR 1

// The third number of the version.
#define CLG_VERSION_PATCH 0

// The result of a call: what kind of error it was, or success.
typedef enum clg_status {
    // The call succeeded.
    CLG_SUCCESS = 0,
    // The call breaks a rule of clgraph or of OpenCL, or a handle or a pointer is wrong. Nothing changed.
    CLG_INVALID = 1,
    // The driver, the platform or the device does not support what was asked for.
    CLG_FEATURE_NOT_SUPPORTED = 2,
    // A kernel or a program cannot be used on this device.
    CLG_KERNEL_NOT_SUPPORTED = 3,
    // The host or the device is out of memory or of other resources.
    CLG_OUT_OF_MEMORY = 4,
    // An OpenCL call failed for another reason, or a command failed while it ran.
    CLG_DRIVER = 5,
    // The program's own code reported a failure: a host task, or a user event.
    CLG_FAILED = 6,
    // The call is not possible now, but can be later.
    CLG_NOT_READY = 7,
    // A defect of clgraph. Please report it.
    CLG_DEFECT = 8,
} clg_status;

// What waits do while a queue is captured.
typedef enum clg_capture_mode {
    // A call that waits fails, and spoils the capture.
    CLG_CAPTURE_STRICT = 0,
    // clFinish, and waits for events of captured commands, do not wait for captured commands, of which nothing has run.
    CLG_CAPTURE_RELAXED = 1,
} clg_capture_mode;

// Whether small launches become one: a kernel that does what they do, one after the other. Memory and results stay the same, to the
// last bit; signs of NaNs may differ, and on NVIDIA's driver and rusticl last bits of floating point.
typedef enum clg_fuse {
    // `CLG_FUSE_AUTO`, or `CLG_FUSE_OFF` on drivers where bits may differ, unless the environment variable CLGRAPH_FUSE says otherwise.
    CLG_FUSE_DEFAULT = 0,
    // Each launch is a launch.
    CLG_FUSE_OFF = 1,
    // Fused kernels are built when the graph is finalized. The report says what is not fused, and why.
    CLG_FUSE_NOW = 2,
    // Fused kernels are built on a thread in the background when submissions have taken twelve times as long as that takes, or as many
    // milliseconds as the environment variable CLGRAPH_FUSE_AFTER says. They are timed among the program's submissions, and stay
    // if they are faster.
    CLG_FUSE_AUTO = 3,
} clg_fuse;

// How a loop runs that a condition ends. But for `CLG_LOOPS_AUTO`, no fused kernel does the turns of any loop.
typedef enum clg_loops {
    // clgraph times both ways, and takes the faster one.
    CLG_LOOPS_AUTO = 0,
    // The host reads the condition before each turn.
    CLG_LOOPS_HOST_DECIDED = 1,
    // Several turns are enqueued before the host reads whether the loop goes on, where that can be done. The report says why if
    // it cannot.
    CLG_LOOPS_AHEAD = 2,
} clg_loops;

// How an executable runs.
typedef enum clg_path {
    // clgraph times the ways that may pay, and takes the fastest.
    CLG_PATH_AUTO = 0,
    // Command buffers (`cl_khr_command_buffer`), where the device has them.
    CLG_PATH_NATIVE = 1,
    // Commands are enqueued one by one.
    CLG_PATH_REPLAY = 2,
    // As CLG_PATH_REPLAY, behind an event that opens when all are enqueued.
    CLG_PATH_GATED = 3,
    // As CLG_PATH_REPLAY, on several queues.
    CLG_PATH_QUEUES = 4,
} clg_path;

// What an argument of a kernel is.
typedef enum clg_arg_kind {
    // A value: `data` points to `size` bytes.
    CLG_ARG_VALUE = 0,
    // Memory that the kernel only reads: `range`.
    CLG_ARG_READ = 1,
    // Memory that the kernel only writes: `range`. Bytes that it does not write keep their values.
    CLG_ARG_WRITE = 2,
    // Memory that the kernel reads and writes: `range`.
    CLG_ARG_READ_WRITE = 3,
    // Local memory of `size` bytes.
    CLG_ARG_LOCAL = 4,
    // A null pointer.
    CLG_ARG_NULL = 5,
    // A parameter of a value, of local memory or of a sampler: `parameter`.
    CLG_ARG_PARAMETER = 6,
    // A parameter of memory or of an image that the kernel only reads: `parameter`.
    CLG_ARG_PARAMETER_READ = 7,
    // A parameter of memory or of an image that the kernel only writes: `parameter`.
    CLG_ARG_PARAMETER_WRITE = 8,
    // A parameter of memory or of an image that the kernel reads and writes: `parameter`.
    CLG_ARG_PARAMETER_READ_WRITE = 9,
    // An image that the kernel only reads: `image`.
    CLG_ARG_IMAGE_READ = 10,
    // An image that the kernel only writes: `image`.
    CLG_ARG_IMAGE_WRITE = 11,
    // An image that the kernel reads and writes: `image`.
    CLG_ARG_IMAGE_READ_WRITE = 12,
    // A sampler: `sampler`.
    CLG_ARG_SAMPLER = 13,
    // No argument, but one more parameter of the argument before it: `parameter`. That argument then has the value of
    // whichever of its parameters was set last.
    CLG_ARG_ALSO_PARAMETER = 14,
} clg_arg_kind;

// Kinds of memory that clgraph allocates.
typedef enum clg_memory_kind {
    // Device memory of `cl_intel_unified_shared_memory` if the device has it, else coarse-grain SVM, else a buffer.
    CLG_MEMORY_BEST = 0,
    // The best memory that the host can use through its address too: see `clg_memory_access_host`.
    CLG_MEMORY_HOST_ACCESSIBLE = 1,
    // A `cl_mem`.
    CLG_MEMORY_BUFFER = 2,
    // Device memory of `cl_intel_unified_shared_memory`.
    CLG_MEMORY_USM_DEVICE = 3,
    // Host memory of `cl_intel_unified_shared_memory`.
    CLG_MEMORY_USM_HOST = 4,
    // Shared memory of `cl_intel_unified_shared_memory`.
    CLG_MEMORY_USM_SHARED = 5,
    // Coarse-grain SVM.
    CLG_MEMORY_SVM_COARSE = 6,
    // Fine-grain SVM.
    CLG_MEMORY_SVM_FINE = 7,
} clg_memory_kind;

// Whether the channels of a colour are floating-point numbers, signed or unsigned integers.
typedef enum clg_color_kind {
    // `cl_float`, for floating-point and normalized formats.
    CLG_COLOR_FLOAT = 0,
    // `cl_int`, for signed integer formats.
    CLG_COLOR_INT = 1,
    // `cl_uint`, for unsigned integer formats.
    CLG_COLOR_UINT = 2,
} clg_color_kind;

// What a driver is told about memory with an address.
typedef enum clg_hint {
    // The device uses it soon.
    CLG_HINT_TO_DEVICE = 0,
    // The host uses it soon.
    CLG_HINT_TO_HOST = 1,
    // The advice of the vendor's extension.
    CLG_HINT_ADVICE = 2,
} clg_hint;

// Which nodes of a graph are meant.
typedef enum clg_nodes {
    // All nodes, in the order in which they were added.
    CLG_NODES_ALL = 0,
    // The nodes that wait for no other node.
    CLG_NODES_ROOTS = 1,
    // The nodes that a node waits for.
    CLG_NODES_BEFORE = 2,
    // The nodes that wait for a node.
    CLG_NODES_AFTER = 3,
} clg_nodes;

// How much a drawing shows.
typedef enum clg_drawing_detail {
    // Edges, kinds, numbers and kernel names. In a large graph, SVG shows nodes that repeat once, with "x N".
    CLG_DRAWING_BRIEF = 0,
    // Every node, with edges, kinds, numbers and kernel names.
    CLG_DRAWING_FULL = 1,
    // Every node, with arguments, ranges and addresses too.
    CLG_DRAWING_VERBOSE = 2,
} clg_drawing_detail;

// What a node of an executable is, which is also an input, a result, an event, or a branch or loop of the sub-graph.
typedef enum clg_port {
    // A write: an input.
    CLG_PORT_WRITE = 0,
    // A read: a result.
    CLG_PORT_READ = 1,
    // A node that waits for an event.
    CLG_PORT_WAIT_EVENT = 2,
    // A node that completes a user event.
    CLG_PORT_SIGNAL_EVENT = 3,
    // A branch or a loop: for `clg_submission_turns`.
    CLG_PORT_CONTROL = 4,
} clg_port;

// How the host uses memory that is mapped for it.
typedef enum clg_map_mode {
    // It only reads.
    CLG_MAP_READ = 0,
    // It reads and writes.
    CLG_MAP_WRITE = 1,
    // It writes all of it; what was there before is undefined.
    CLG_MAP_WRITE_INVALIDATE = 2,
} clg_map_mode;

// How far a submission is.
typedef enum clg_progress {
    // Its first command has not started.
    CLG_PROGRESS_WAITING = 0,
    // Its first command has started.
    CLG_PROGRESS_RUNNING = 1,
    // All its commands are complete.
    CLG_PROGRESS_COMPLETE = 2,
    // It failed.
    CLG_PROGRESS_FAILED = 3,
} clg_progress;

// Of which type a value is.
typedef enum clg_value_type {
    // A vector, a struct, or any other bytes: only their number is compared with the kernel's parameter.
    CLG_TYPE_UNKNOWN = 0,
    // `cl_char`
    CLG_TYPE_CHAR = 1,
    // `cl_uchar`
    CLG_TYPE_UCHAR = 2,
    // `cl_short`
    CLG_TYPE_SHORT = 3,
    // `cl_ushort`
    CLG_TYPE_USHORT = 4,
    // `cl_int`
    CLG_TYPE_INT = 5,
    // `cl_uint`
    CLG_TYPE_UINT = 6,
    // `cl_long`
    CLG_TYPE_LONG = 7,
    // `cl_ulong`
    CLG_TYPE_ULONG = 8,
    // `cl_float`
    CLG_TYPE_FLOAT = 9,
    // `cl_double`
    CLG_TYPE_DOUBLE = 10,
} clg_value_type;

// What a `clg_command_group` names.
typedef struct clg_command_group_object clg_command_group_object;

// What a `clg_control` names.
typedef struct clg_control_object clg_control_object;

// What a `clg_event` names.
typedef struct clg_event_object clg_event_object;

// What a `clg_executable` names.
typedef struct clg_executable_object clg_executable_object;

// What a `clg_global` names.
typedef struct clg_global_object clg_global_object;

// What a `clg_graph` names.
typedef struct clg_graph_object clg_graph_object;

// What a `clg_host_access` names.
typedef struct clg_host_access_object clg_host_access_object;

// What a `clg_image` names.
typedef struct clg_image_object clg_image_object;

// What a `clg_kernel` names.
typedef struct clg_kernel_object clg_kernel_object;

// What a `clg_memory` names.
typedef struct clg_memory_object clg_memory_object;

// What a `clg_parameter` names.
typedef struct clg_parameter_object clg_parameter_object;

// What a `clg_pending_read` names.
typedef struct clg_pending_read_object clg_pending_read_object;

// What a `clg_program` names.
typedef struct clg_program_object clg_program_object;

// What a `clg_queue` names.
typedef struct clg_queue_object clg_queue_object;

// What a `clg_sampler` names.
typedef struct clg_sampler_object clg_sampler_object;

// What a `clg_sub_graph` names.
typedef struct clg_sub_graph_object clg_sub_graph_object;

// What a `clg_submission` names.
typedef struct clg_submission_object clg_submission_object;

// What a `clg_task` names.
typedef struct clg_task_object clg_task_object;

// What a `clg_user_event` names.
typedef struct clg_user_event_object clg_user_event_object;

// A command queue of the program.
typedef struct clg_queue_object *clg_queue;

// A kernel function. Arguments that were set on the program's `cl_kernel` are not used.
typedef struct clg_kernel_object *clg_kernel;

// Memory: a buffer of the program, memory that clgraph allocated, or memory of a graph.
typedef struct clg_memory_object *clg_memory;

// A command queue of OpenCL.
typedef struct _cl_command_queue *cl_command_queue;

// A context of OpenCL.
typedef struct _cl_context *cl_context;

// A kernel of OpenCL.
typedef struct _cl_kernel *cl_kernel;

// A buffer or an image of OpenCL.
typedef struct _cl_mem *cl_mem;

// The host's use of memory through its address, until it is released.
typedef struct clg_host_access_object *clg_host_access;

// An image of the program, or some layers of one.
typedef struct clg_image_object *clg_image;

// A sampler of the program.
typedef struct clg_sampler_object *clg_sampler;

// A sampler of OpenCL.
typedef struct _cl_sampler *cl_sampler;

// A graph of commands for one device of one context.
typedef struct clg_graph_object *clg_graph;

// A part of an image, in pixels, rows and slices or layers.
typedef struct clg_area {
    // The image.
    clg_image image;
    // The first pixel, row and slice.
    size_t origin[3];
    // The numbers of pixels, rows and slices. Zeros: the whole image, whatever the origin.
    size_t region[3];
} clg_area;

// A node of a graph, or a write, read, event, branch or loop inside a sub-graph or a body. It is a plain value and keeps nothing alive.
typedef struct clg_node {
    // The number of the graph.
    uint64_t graph;
    // The position of the node in the order in which nodes were added, from 0.
    uint32_t index;
    // Which write, read, event, branch or loop inside a node that has executables in it; 0 for all other nodes.
    uint32_t part;
} clg_node;

// What every node can have. Null in its place is nothing of it.
typedef struct clg_node_options {
    // Nodes that the node waits for, beside those that used the same memory before.
    const struct clg_node *after;
    // How many.
    size_t num_after;
    // A name for drawings, profiles and errors, or null.
    const char *label;
    // A node that gets this command in place of its own, or null. Then no node is added: edges and label stay, so the
    // other options are empty, and executables get the change when they are updated. Nodes that only order others,
    // allocations, sub-graphs and events cannot be replaced.
    const struct clg_node *replaces;
    // Whether the node also waits for every node that no other node waits for when it is added.
    bool after_all_leaves;
} clg_node_options;

// Some bytes of memory.
typedef struct clg_range {
    // The memory.
    clg_memory memory;
    // The first byte.
    size_t offset;
    // The number of bytes, or CLG_WHOLE for all bytes from the offset on.
    size_t size;
} clg_range;

// A value, a size of local memory, or memory, which several kernel nodes can use and which can change.
typedef struct clg_parameter_object *clg_parameter;

// The event of a command that was enqueued, or of a command that was recorded.
typedef struct clg_event_object *clg_event;

// An event of OpenCL.
typedef struct _cl_event *cl_event;

// An event that the program completes.
typedef struct clg_user_event_object *clg_user_event;

// A variable in device memory, which the kernels of several programs can use.
typedef struct clg_global_object *clg_global;

// A program whose kernels use device globals.
typedef struct clg_program_object *clg_program;

// A device global under the name that it has in a program.
typedef struct clg_program_global {
    // The name in OpenCL C, for `CLG_DEVICE_GLOBAL` and `CLG_GLOBAL`.
    const char *name;
    // The device global.
    clg_global global;
} clg_program_global;

// A program of OpenCL.
typedef struct _cl_program *cl_program;

// A device of OpenCL.
typedef struct _cl_device_id *cl_device_id;

// What a graph is like, for `clg_graph_create_for_device`. All false are the defaults.
typedef struct clg_graph_properties {
    // Edges are not checked for cycles when they are added. A cycle is then found by finalize.
    bool no_cycle_check;
    // The graph keeps no references to buffers: they live as long as the graph and its executables are used.
    bool assume_buffer_outlives_graph;
} clg_graph_properties;

// Two sides of a copy of a rectangle or a box. Origins and region: bytes, rows, slices.
typedef struct clg_rect {
    // Where the copy begins in the source.
    size_t src_origin[3];
    // Where it begins in the destination.
    size_t dst_origin[3];
    // How much is copied.
    size_t region[3];
    // The bytes from one row of the source to the next, or 0: rows are packed.
    size_t src_row_pitch;
    // The bytes from one slice of the source to the next, or 0: slices are packed.
    size_t src_slice_pitch;
    // The bytes from one row of the destination to the next, or 0.
    size_t dst_row_pitch;
    // The bytes from one slice of the destination to the next, or 0.
    size_t dst_slice_pitch;
} clg_rect;

// An argument of a kernel. Fields that its kind does not name are not looked at.
typedef struct clg_arg {
    // What it is: a `clg_arg_kind`.
    int32_t kind;
    // A size in bytes.
    size_t size;
    // A value, which is copied.
    const void *data;
    // Memory. A kernel gets the whole buffer; the range says which bytes it uses.
    struct clg_range range;
    // A parameter.
    clg_parameter parameter;
    // An image.
    clg_image image;
    // A sampler.
    clg_sampler sampler;
    // Of which type a value is, a `clg_value_type`: 0 if it is not said.
    int32_t value_type;
    // For memory: how many bytes belong to each work-item, or 0. The program then promises that the work-item with
    // `get_global_linear_id() == i` touches of this memory only the bytes from `i` times as many on, counted from the address that the
    // kernel gets. Launches with this promise for all memory that one of them writes can become one (`clg_finalize_options.fuse`).
    // If the environment variable CLGRAPH_CHECK_ELEMENTWISE is `1` when a graph is finalized, its submissions check the promise.
    size_t elementwise;
} clg_arg;

// Memory or an image that a command uses.
typedef struct clg_use {
    // The memory, if there is no image.
    struct clg_range range;
    // An image, or null.
    clg_image image;
    // Whether the command reads it.
    bool reads;
    // Whether the command writes it.
    bool writes;
} clg_use;

// How a kernel uses a device global of its program.
typedef struct clg_global_use {
    // The device global.
    clg_global global;
    // Whether the kernel reads it.
    bool reads;
    // Whether the kernel writes it.
    bool writes;
} clg_global_use;

// A launch of a kernel.
typedef struct clg_launch {
    // The kernel.
    clg_kernel kernel;
    // Its arguments, in order.
    const struct clg_arg *args;
    // How many.
    size_t num_args;
    // The number of dimensions, from 1 to 3.
    uint32_t work_dim;
    // The first work-item in each dimension.
    size_t offset[3];
    // The number of work-items in each dimension.
    size_t global[3];
    // The size of a work-group in each dimension, or zeros: the driver chooses.
    size_t local[3];
    // The largest number of work-items in each dimension that an update can set, or zeros: the number cannot change.
    size_t bound[3];
    // Memory that the kernel reaches by addresses in other memory, or null.
    const struct clg_use *indirect;
    // How many.
    size_t num_indirect;
    // The device globals of its program that the kernel uses, or null: all of them, for reading and writing.
    const struct clg_global_use *globals;
    // How many.
    size_t num_globals;
    // Whether the kernel uses none of the device globals of its program.
    bool no_globals;
    // Whether the kernel prints.
    bool prints;
} clg_launch;

// Several launches, or several host tasks, of which one is active.
typedef struct clg_command_group_object *clg_command_group;

// A host task that runs: the handle is valid until its function returns.
typedef struct clg_task_object *clg_task;

// A host task.
typedef struct clg_host_task {
    // The function. It runs once in each submission, on a thread of clgraph, and never twice at the same time. If it
    // returns anything but 0, the submission fails, with the text of `clg_fail`. No C++ exception may leave it.
    int (*function)(clg_task task, void *user);
    // What the function gets.
    void *user;
    // Called exactly once when `user` is no longer used, on any thread, also if the node is not added. May be null.
    void (*release)(void *user);
    // The memory that the function uses, so that nodes with the same memory wait for each other.
    const struct clg_use *uses;
    // How many.
    size_t num_uses;
} clg_host_task;

// One run of an executable.
typedef struct clg_submission_object *clg_submission;

// A function of the program that gets mapped memory.
typedef struct clg_map_task {
    // The function. It runs once in each submission, on a thread of clgraph, and never twice at the same time. `data`
    // is valid until it returns: `size` bytes, or for an image its rows, `row_pitch` bytes from one to the next, and
    // `slice_pitch` bytes from one slice to the next. If it returns anything but 0, the submission fails, with the
    // text of `clg_fail`. No C++ exception may leave it.
    int (*function)(clg_task task, void *data, size_t size, size_t row_pitch, size_t slice_pitch, void *user);
    // What the function gets.
    void *user;
    // Called exactly once when `user` is no longer used, on any thread, also if the node is not added. May be null.
    void (*release)(void *user);
} clg_map_task;

// Where mapped memory is.
typedef struct clg_mapped {
    // Its first byte.
    void *data;
    // How many bytes there are from the first to the last.
    size_t size;
    // The bytes from one row of an image to the next.
    size_t row_pitch;
    // The bytes from one slice of an image to the next.
    size_t slice_pitch;
} clg_mapped;

// A command buffer of OpenCL.
typedef struct _cl_command_buffer_khr *cl_command_buffer_khr;

// Memory that a native command declares, as its functions get it.
typedef struct clg_native_memory {
    // A `cl_mem` if `is_object`, else an address.
    void *pointer;
    // The first byte in the `cl_mem`; 0 for an address, which names the first byte itself.
    size_t offset;
    // The number of bytes.
    size_t size;
    // Whether it is a `cl_mem`.
    bool is_object;
} clg_native_memory;

// What the function of a native command gets: where its commands go.
typedef struct clg_native_target {
    // The in-order `cl_command_queue` to enqueue on; null for a function that records.
    cl_command_queue queue;
    // The `cl_command_buffer_khr` to record into; null for a function that enqueues.
    cl_command_buffer_khr command_buffer;
    // Whether functions that record have a `cl_command_properties_khr` argument: since version 0.9.5 of
    // `cl_khr_command_buffer`.
    bool with_properties;
    // The context.
    cl_context context;
    // The device.
    cl_device_id device;
    // The memory that the command declares, in the order of the declarations.
    const struct clg_native_memory *memory;
    // How many.
    size_t num_memory;
} clg_native_target;

// A function of a native command. If it returns anything but 0, the submission or finalize fails, with the text of
// `clg_fail`. No C++ exception may leave it. The functions of a command are called on any thread, one at a time.
typedef int (*clg_native_function)(const struct clg_native_target *target, void *user);

// A native command: at least one of the functions is not null.
typedef struct clg_native_command {
    // Enqueues the commands in each submission, or null: the command is recorded once.
    clg_native_function enqueue;
    // Records the commands once into a command buffer, where the device has them, or null.
    clg_native_function record;
    // What the functions get.
    void *user;
    // Called exactly once when `user` is no longer used, on any thread, also if the node is not added. May be null.
    void (*release)(void *user);
    // The memory that the commands use.
    const struct clg_use *uses;
    // How many.
    size_t num_uses;
} clg_native_command;

// A read that was enqueued, whose data is not there yet; or one that was recorded.
typedef struct clg_pending_read_object *clg_pending_read;

// A finalized graph, which can be submitted.
typedef struct clg_executable_object *clg_executable;

// Options of finalizing. All zeros are the defaults.
typedef struct clg_finalize_options {
    // How it runs: a `clg_path`.
    int32_t path;
    // Whether values can change between submissions: see `clg_executable_update`.
    bool updatable;
    // Whether submissions record times: see `clg_submission_profile`.
    bool profiling;
    // How many submissions can hold results at a time, or 0 for as many as the program likes.
    size_t result_slots;
    // Whether nodes may use the same memory without an order between them after updates; the program then keeps the
    // order.
    bool allow_conflicts;
    // Whether allocations of the graph share no bytes.
    bool separate_memory;
    // Whether the path is not found by timing submissions: the one that is known to be good on the driver is taken.
    bool no_autotune;
    // How many commands a command buffer holds at most, or 0 for the default.
    size_t commands_per_buffer;
    // A file that keeps what the automatic path has found, or null. The folder beside it, with the name and `.programs`, keeps
    // fused kernels.
    const char *tuning_cache;
    // How loops run: a `clg_loops`.
    int32_t loops;
    // Whether small launches become one: a `clg_fuse`.
    int32_t fuse;
} clg_finalize_options;

// Data of a write, for one submission.
typedef struct clg_input {
    // The write.
    struct clg_node write;
    // The data, of as many bytes as the node writes.
    const void *data;
    // The number of bytes.
    size_t size;
    // Null: the data is copied. Else the data is used where it is, until this is called with `user`; it is called
    // exactly once, on any thread, also if the submission fails.
    void (*release)(void *user);
    // What `release` gets.
    void *user;
} clg_input;

// An event of a node, for one submission: exactly one of `wait`, `event`, `submission` and `user_event` is not null.
typedef struct clg_event_input {
    // The node.
    struct clg_node node;
    // For a node of `clg_graph_wait_event`: a `cl_event` to wait for. That of a submission is complete also if the
    // submission has failed.
    cl_event wait;
    // For a node of `clg_graph_wait_event`: the event of a command of `clg_enqueue_...` to wait for.
    clg_event event;
    // For a node of `clg_graph_wait_event`: a submission to wait for. If it fails, this one fails too.
    clg_submission submission;
    // A user event: what a node of `clg_graph_wait_event` waits for, or a node of `clg_graph_signal_event` completes.
    clg_user_event user_event;
    // Whether the node is one of `clg_graph_signal_event`.
    bool signals;
} clg_event_input;

// What a submission is given. Null in its place is nothing of it.
typedef struct clg_submit_options {
    // Events of OpenCL that the submission waits for, beside what its queue says.
    const cl_event *wait_list;
    // How many.
    size_t num_waits;
    // Events of commands of `clg_enqueue_...` that it waits for.
    const clg_event *events;
    // How many.
    size_t num_events;
    // User events that it waits for.
    const clg_user_event *user_events;
    // How many.
    size_t num_user_events;
    // Submissions that it waits for.
    const clg_submission *submissions;
    // How many.
    size_t num_submissions;
    // Inputs.
    const struct clg_input *inputs;
    // How many.
    size_t num_inputs;
    // Events of nodes.
    const struct clg_event_input *node_events;
    // How many.
    size_t num_node_events;
} clg_submit_options;

// A node with all commands of an executable.
typedef struct clg_sub_graph_object *clg_sub_graph;

// A branch or a loop of a graph, which finds its bodies.
typedef struct clg_control_object *clg_control;

// A function that enqueues commands on the queue that it is given, and on no other. The queue is the library's, and is
// released when the function returns. If the function returns anything but 0, the call that has called it fails with
// CLG_FAILED and the text of `clg_fail`. No C++ exception may leave it.
typedef int (*clg_body_function)(clg_queue queue, void *user);

// The same for one of several cases, which are counted from 0.
typedef int (*clg_case_function)(clg_queue queue, size_t index, void *user);

// The times of a submission, in nanoseconds.
typedef struct clg_submission_times {
    // When it was submitted.
    uint64_t submit;
    // When its first node started.
    uint64_t start;
    // When its last node ended.
    uint64_t end;
} clg_submission_times;

// The times of a node, in nanoseconds.
typedef struct clg_node_times {
    // The node of the finalized graph.
    struct clg_node node;
    // For a node in a sub-graph or a body: its index, from 0, among the nodes that this was inlined to; otherwise `UINT64_MAX`.
    uint64_t inside;
    // For a node in a loop: in which turn of the innermost loop it ran, from 0 on; otherwise `UINT64_MAX`. A loop inside of another
    // one goes on counting in each turn of that.
    uint64_t turn;
    // When its command was enqueued.
    uint64_t queued;
    // When it started.
    uint64_t start;
    // When it ended.
    uint64_t end;
} clg_node_times;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns how many objects of the process have handles: 0 when a program has released all that it made.
size_t clg_live_objects(void);

// Fails if the library that was loaded is not for this header: pass CLG_VERSION_MAJOR and CLG_VERSION_MINOR, before any
// other call. `clgraph.hpp` does so itself.
enum clg_status clg_check_version(uint32_t major, uint32_t minor);

// Returns the version of the library that was loaded, for example "0.1.0".
const char *clg_version(void);

// Says why the function of the program that runs on this thread fails: the function of a host task, of mapped memory,
// of a native command, or of a branch or loop of a queue. Its submission, or the call of the queue, fails with this text
// when the function returns, whatever it returns.
//
// The caller's promise:
// `text` is null or a text.
enum clg_status clg_fail(const char *text);

// Returns what was wrong with the last call of this thread that failed, and what to do, as UTF-8. Never null: the text
// is empty if no call has failed. The text is valid until the next call of this thread fails. In destructors of the
// data of a thread that ends (`pthread_key_create`, `tss_create`) it may be empty after a failure too, and then the
// status of `clg_last_status` is CLG_SUCCESS: use what the call returned.
const char *clg_last_error(void);

// Returns the status of the last call of this thread that failed, or CLG_SUCCESS if none has.
enum clg_status clg_last_status(void);

// Returns the status of the OpenCL call that made the last call of this thread fail, or 0 if none did.
int clg_last_cl_status(void);

// Returns the name of a status, for example "CLG_INVALID". Never null.
const char *clg_status_name(int status);

// Adds a reference to the object.
enum clg_status clg_queue_retain(clg_queue object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_queue_release(clg_queue object);

// Adds a reference to the object.
enum clg_status clg_kernel_retain(clg_kernel object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_kernel_release(clg_kernel object);

// Adds a reference to the object.
enum clg_status clg_memory_retain(clg_memory object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_memory_release(clg_memory object);

// Wraps and retains a `cl_command_queue`.
//
// The caller's promise:
// `queue` is null or a live command queue.
enum clg_status clg_queue_from_cl(cl_command_queue queue, clg_queue *result);

// Waits until everything that was enqueued so far is complete.
enum clg_status clg_queue_finish(clg_queue queue);

// Wraps the function of a `cl_kernel` of a context. Arguments that were set on it are not used.
//
// The caller's promise:
// `context` is null or a live context; `kernel` is null or a live kernel, whose program is not built again meanwhile.
enum clg_status clg_kernel_from_cl(cl_context context, cl_kernel kernel, clg_kernel *result);

// Wraps and retains a buffer (`cl_mem`) of a context.
//
// The caller's promise:
// `context` is null or a live context; `buffer` is null or a live memory object.
enum clg_status clg_memory_from_cl(cl_context context, cl_mem buffer, clg_memory *result);

// Allocates memory for the device of a queue, with undefined content. `kind` is a `clg_memory_kind`.
enum clg_status clg_memory_allocate(clg_queue queue, size_t size, int32_t kind, clg_memory *result);

// Wraps memory with an address that the program has allocated: USM or SVM of the context of a queue. `kind` is a
// `clg_memory_kind` that names one kind of it.
//
// The caller's promise:
// `pointer` points to `size` bytes of that kind, which stay allocated until every object and command that uses the
// memory has ended.
enum clg_status clg_memory_from_pointer(clg_queue queue, void *pointer, size_t size, int32_t kind, clg_memory *result);

// Returns the size of memory in bytes.
enum clg_status clg_memory_size(clg_memory memory, size_t *result);

// Returns the address of memory that clgraph allocated, or null for memory without one. Kernels may follow it if they
// declare that: `clg_launch.indirect`.
enum clg_status clg_memory_address(clg_memory memory, void **result);

// Adds a reference to the object.
enum clg_status clg_host_access_retain(clg_host_access object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_host_access_release(clg_host_access object);

// Gives the host access to memory through its address: `data` gets it. The memory is of a kind that the host can use
// (`CLG_MEMORY_HOST_ACCESSIBLE`), and no command uses it: until the access is released, commands that would are
// refused. Only with `writes` may the host write, and then there is no other access.
//
// The caller's promise:
// `data` is not used after the release.
enum clg_status clg_memory_access_host(clg_memory memory, bool writes, void **data, clg_host_access *access);

// Adds a reference to the object.
enum clg_status clg_image_retain(clg_image object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_image_release(clg_image object);

// Adds a reference to the object.
enum clg_status clg_sampler_retain(clg_sampler object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_sampler_release(clg_sampler object);

// Wraps and retains an image (`cl_mem`) of a context.
//
// The caller's promise:
// `context` is null or a live context; `image` is null or a live memory object.
enum clg_status clg_image_from_cl(cl_context context, cl_mem image, clg_image *result);

// Returns some layers of an array of images, as arguments of kernels: so that kernels that use different layers need
// not wait for each other. A kernel gets the whole array.
enum clg_status clg_image_layers(clg_image image, size_t first, size_t count, clg_image *result);

// Wraps and retains a `cl_sampler` of a context.
//
// The caller's promise:
// `context` is null or a live context; `sampler` is null or a live sampler.
enum clg_status clg_sampler_from_cl(cl_context context, cl_sampler sampler, clg_sampler *result);

// Adds a copy of pixels between images of one format. The area of `to` counts only by its image and origin.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_copy_image(clg_graph graph,
                                     struct clg_area from,
                                     struct clg_area to,
                                     const struct clg_node_options *options,
                                     struct clg_node *node);

// Adds a copy of pixels of an image to memory, where they are packed.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_copy_image_to_buffer(clg_graph graph,
                                               struct clg_area from,
                                               struct clg_range to,
                                               const struct clg_node_options *options,
                                               struct clg_node *node);

// Adds a copy of packed pixels in memory to an image.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_copy_buffer_to_image(clg_graph graph,
                                               struct clg_range from,
                                               struct clg_area to,
                                               const struct clg_node_options *options,
                                               struct clg_node *node);

// Adds a fill of an image with one colour: four channels of the kind `color_kind`, a `clg_color_kind`.
//
// The caller's promise:
// `color` points to 16 bytes; the other pointers are null or point to what their types say.
enum clg_status clg_graph_fill_image(clg_graph graph,
                                     struct clg_area to,
                                     int32_t color_kind,
                                     const void *color,
                                     const struct clg_node_options *options,
                                     struct clg_node *node);

// Adds a write of packed pixels of the host to an image. As `clg_graph_write` otherwise.
//
// The caller's promise:
// `data` points to `data_size` bytes; the other pointers are null or point to what their types say.
enum clg_status clg_graph_write_image(clg_graph graph,
                                      struct clg_area to,
                                      const void *data,
                                      size_t data_size,
                                      void (*release)(void *user),
                                      void *user,
                                      const struct clg_node_options *options,
                                      struct clg_node *node);

// Adds a read of an image into host memory, where the pixels are packed. As `clg_graph_read` otherwise.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_read_image(clg_graph graph,
                                     struct clg_area from,
                                     const struct clg_node_options *options,
                                     struct clg_node *node);

// Adds a reference to the object.
enum clg_status clg_parameter_retain(clg_parameter object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_parameter_release(clg_parameter object);

// Makes a parameter of a value: a number, a vector or a struct, as many bytes as the kernel's parameter has. (A number
// with its type: `clg_parameter_create_number`.)
//
// The program promises that every value which it gives the parameter is fine for the kernels that use it.
//
// The caller's promise:
// `value` points to `size` bytes.
enum clg_status clg_parameter_create(const void *value, size_t size, clg_parameter *result);

// Makes a parameter of local memory, of a size in bytes. The program promises that every size which it sets is fine for
// the kernels that use it.
enum clg_status clg_parameter_create_local(size_t size, clg_parameter *result);

// Makes a parameter of memory. Kernels get the whole of it and use the bytes of the range, and so it must be with all
// memory that is set later. With `or_null` it can also become a null pointer.
enum clg_status clg_parameter_create_memory(struct clg_range range, bool or_null, clg_parameter *result);

// Makes a parameter of an image. Images that are set later have its shape and format.
enum clg_status clg_parameter_create_image(clg_image image, clg_parameter *result);

// Makes a parameter of a sampler.
enum clg_status clg_parameter_create_sampler(clg_sampler sampler, clg_parameter *result);

// Sets the value of a parameter, of as many bytes as before. Executables get it when they are updated.
//
// The caller's promise:
// `value` points to `size` bytes.
enum clg_status clg_parameter_set(clg_parameter parameter, const void *value, size_t size);

// Writes the value that a parameter has now, of as many bytes as it was made with; for a parameter of local memory its
// size, a `size_t`.
//
// The caller's promise:
// `value` has room for `size` bytes.
enum clg_status clg_parameter_get(clg_parameter parameter, void *value, size_t size);

// Sets the size of a parameter of local memory, in bytes.
enum clg_status clg_parameter_set_local(clg_parameter parameter, size_t size);

// Sets the memory of a parameter of memory. It holds the bytes that kernels use, in the same place.
enum clg_status clg_parameter_set_memory(clg_parameter parameter, struct clg_range range);

// Makes a parameter of memory that was created with `or_null` a null pointer.
enum clg_status clg_parameter_set_null(clg_parameter parameter);

// Sets the image of a parameter of an image.
enum clg_status clg_parameter_set_image(clg_parameter parameter, clg_image image);

// Sets the sampler of a parameter of a sampler.
enum clg_status clg_parameter_set_sampler(clg_parameter parameter, clg_sampler sampler);

// Makes a parameter of a number: of a `clg_value_type`, which is compared with the type of the kernel's parameter.
// `least` and `most` point to the smallest and the largest value that it may become; null is no bound. A value outside
// of them is refused by `clg_parameter_set`.
//
// The program promises that every value within the bounds is fine for the kernels that use it.
//
// The caller's promise:
// `value`, `least` and `most` are null or point to a number of the type.
enum clg_status clg_parameter_create_number(int32_t value_type,
                                            const void *value,
                                            const void *least,
                                            const void *most,
                                            clg_parameter *result);

// Adds a reference to the object.
enum clg_status clg_event_retain(clg_event object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_event_release(clg_event object);

// Wraps and retains a `cl_event`.
//
// The caller's promise:
// `event` is null or a live event.
enum clg_status clg_event_from_cl(cl_event event, clg_event *result);

// Returns the `cl_event` of a command that was enqueued, with a reference for the program, which it releases with
// clReleaseEvent. A recorded command has none.
enum clg_status clg_event_to_cl(clg_event event, cl_event *result);

// Blocks until the command has ended. Returns its error if it failed.
enum clg_status clg_event_wait(clg_event event);

// Returns the execution status of a command as OpenCL has it: CL_COMPLETE (0), CL_RUNNING (1), CL_SUBMITTED (2) for
// everything before, or the negative status of a command that failed.
enum clg_status clg_event_status(clg_event event, int32_t *result);

// Returns the node that a recorded command has become.
enum clg_status clg_event_node(clg_event event, clg_graph graph, struct clg_node *result);

// Adds a reference to the object.
enum clg_status clg_user_event_retain(clg_user_event object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_user_event_release(clg_user_event object);

// Makes an event that the program completes.
//
// The caller's promise:
// `context` is null or a live context.
enum clg_status clg_user_event_create(cl_context context, clg_user_event *result);

// Completes the event: what waits for it runs.
enum clg_status clg_user_event_complete(clg_user_event event);

// Fails the event: what waits for it does not run, and fails with this text.
//
// The caller's promise:
// `text` is null or a text.
enum clg_status clg_user_event_fail(clg_user_event event, const char *text);

// Blocks until the event has ended.
enum clg_status clg_user_event_wait(clg_user_event event);

// Blocks until the event has ended, but at most for a time, in nanoseconds. Then it returns CLG_NOT_READY.
enum clg_status clg_user_event_wait_for(clg_user_event event, uint64_t nanoseconds);

// Returns whether the event has ended, well or not.
enum clg_status clg_user_event_is_done(clg_user_event event, bool *result);

// Returns the event for wait lists of commands. It shows that the user event has ended, not that it succeeded.
enum clg_status clg_user_event_event(clg_user_event event, clg_event *result);

// Adds a reference to the object.
enum clg_status clg_global_retain(clg_global object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_global_release(clg_global object);

// Adds a reference to the object.
enum clg_status clg_program_retain(clg_program object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_program_release(clg_program object);

// Declares a device global of `size` bytes. Each device of each context has one instance of it, with the value
// `initial`, or zero if that is null. With `of_program` it belongs to one program: see `docs/guide/device_globals.md`.
// A declaration is never freed: declare each global once.
//
// The caller's promise:
// `name` is null or a text; `initial` is null or points to `size` bytes.
enum clg_status clg_global_create(const char *name,
                                  size_t size,
                                  const void *initial,
                                  bool of_program,
                                  clg_global *result);

// Returns the memory of a device global on the device of a queue, for all commands.
enum clg_status clg_global_memory(clg_global global, clg_queue queue, clg_memory *result);

// Builds OpenCL C source whose kernels use device globals. `options` are those of clBuildProgram, and may be null. For
// programs without device globals use clCreateProgramWithSource, and `clg_kernel_from_cl`.
//
// The caller's promise:
// `context` is null or a live context; `source` and `options` are null or texts; `globals` points to as many globals
// as `num_globals` says.
enum clg_status clg_program_build(cl_context context,
                                  const char *source,
                                  const char *options,
                                  const struct clg_program_global *globals,
                                  size_t num_globals,
                                  clg_program *result);

// Returns a kernel of a program.
//
// The caller's promise:
// `name` is null or a text.
enum clg_status clg_program_kernel(clg_program program, const char *name, clg_kernel *result);

// Returns the `cl_program`, without a reference for the program. It may be asked for its binaries, for example. Its kernels
// may have more arguments than in the source: clgraph sets these.
enum clg_status clg_program_to_cl(clg_program program,
                                  cl_program *result);

// Writes the names of the kernels of a program, with `;` between them.
//
// The caller's promise:
// `text` is null or has room for `room` bytes.
enum clg_status clg_program_kernel_names(clg_program program, size_t room, char *text, size_t *size);

// Writes how the kernels of a program reach each of its device globals, a line for each.
//
// The caller's promise:
// `text` is null or has room for `room` bytes.
enum clg_status clg_program_globals(clg_program program, size_t room, char *text, size_t *size);

// Adds a reference to the object.
enum clg_status clg_graph_retain(clg_graph object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_graph_release(clg_graph object);

// Makes a graph for the context and device of a queue.
enum clg_status clg_graph_create(clg_queue queue, clg_graph *result);

// Makes a graph for a device of a context. `properties` may be null.
//
// The caller's promise:
// `context` is null or a live context, and `device` is null or a device.
enum clg_status clg_graph_create_for_device(cl_context context,
                                            cl_device_id device,
                                            const struct clg_graph_properties *properties,
                                            clg_graph *result);

// Returns the number of nodes.
enum clg_status clg_graph_size(clg_graph graph, size_t *result);

// Makes a node wait for another one.
enum clg_status clg_graph_add_edge(clg_graph graph, struct clg_node before, struct clg_node after);

// Adds a node that does nothing, and only orders others.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_empty(clg_graph graph, const struct clg_node_options *options, struct clg_node *node);

// Adds a node that waits for an event, which each submission is given for it.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_wait_event(clg_graph graph, const struct clg_node_options *options, struct clg_node *node);

// Adds a node that completes a user event, which each submission is given for it.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_signal_event(clg_graph graph, const struct clg_node_options *options, struct clg_node *node);

// Adds a copy of bytes from memory to memory, of ranges of one size.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_copy(clg_graph graph,
                               struct clg_range from,
                               struct clg_range to,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds a fill of memory with a pattern, of a size that divides the size of the range.
//
// The caller's promise:
// `pattern` points to as many bytes as `pattern_size` says; the other pointers are null or point to what their types
// say.
enum clg_status clg_graph_fill(clg_graph graph,
                               struct clg_range to,
                               const void *pattern,
                               size_t pattern_size,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds a write of host data to memory. Each submission writes this data, or data of its own: the node is also the
// name of the input.
//
// Without `release` the data is copied. With `release` it is used where it is, until `release(user)` gives it back: it
// is called exactly once, on any thread, also if this call fails.
//
// The caller's promise:
// `data` points to as many bytes as the range has; the other pointers are null or point to what their types say.
enum clg_status clg_graph_write(clg_graph graph,
                                struct clg_range to,
                                const void *data,
                                size_t data_size,
                                void (*release)(void *user),
                                void *user,
                                const struct clg_node_options *options,
                                struct clg_node *node);

// Adds a read of memory into host memory. The node is also the name of the result of each submission.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_read(clg_graph graph,
                               struct clg_range from,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds an allocation of `size` bytes of memory that belongs to the graph. Each executable has memory of its own for it.
// With `zero_init` it is zero when the graph is finalized; submissions do not make it zero again.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_allocate(clg_graph graph,
                                   size_t size,
                                   bool zero_init,
                                   const struct clg_node_options *options,
                                   clg_memory *memory);

// Adds the end of the life of memory of the graph.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_free(clg_graph graph,
                               clg_memory memory,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds a copy of a rectangle or a box from memory to memory.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_copy_rect(clg_graph graph,
                                    struct clg_range from,
                                    struct clg_range to,
                                    const struct clg_rect *rect,
                                    const struct clg_node_options *options,
                                    struct clg_node *node);

// Adds a hint about memory: a `clg_hint`, and for CLG_HINT_ADVICE a number of the vendor's extension.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_hint(clg_graph graph,
                               struct clg_range range,
                               int32_t hint,
                               uint32_t advice,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds a launch of a kernel, or replaces one: arguments, ranges and, if the driver can, the kernel.
//
// The program promises what OpenCL leaves to it: the kernel stays inside its memory, uses it as declared, and has no
// data races, for all values that its parameters get.
//
// The caller's promise:
// The promise above. The pointers are null or point to what their types say.
enum clg_status clg_graph_kernel(clg_graph graph,
                                 const struct clg_launch *launch,
                                 const struct clg_node_options *options,
                                 struct clg_node *node);

// Gives a kernel node another argument, found by its index from 0. The other arguments, the range and all edges stay, and
// executables get the change when they are updated. It is for nodes whose launch the program has not written itself: those of a
// capture. An argument keeps its kind, and a value its size.
//
// The caller's promise:
// The promise of `clg_graph_kernel`, for the launch with the new argument. `arg` is null or points to what its type says.
enum clg_status clg_graph_set_arg(clg_graph graph,
                                  struct clg_node node,
                                  size_t index,
                                  const struct clg_arg *arg);

// Sets the range of a kernel node: up to the bound of its launch. Executables get it when they are updated. `offset`
// and `local` are as in `clg_launch`, and may be null.
//
// The caller's promise:
// `global`, `offset` and `local` are null or point to as many numbers as `work_dim` says. The promise of
// `clg_graph_kernel` holds for the range.
enum clg_status clg_graph_set_range(clg_graph graph,
                                    struct clg_node node,
                                    uint32_t work_dim,
                                    const size_t *global,
                                    const size_t *offset,
                                    const size_t *local);

// Adds a reference to the object.
enum clg_status clg_command_group_retain(clg_command_group object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_command_group_release(clg_command_group object);

// Makes a group of launches, of which the first is active. They use the same memory in the same ways. A node of it is
// added by `clg_graph_command_group_node`.
//
// The caller's promise:
// The promise of `clg_graph_kernel`, for each launch. `launches` points to as many launches as `num_launches` says.
enum clg_status clg_graph_command_group(clg_graph graph,
                                        const struct clg_launch *launches,
                                        size_t num_launches,
                                        clg_command_group *result);

// Adds a node of a group: it does what is active in the group.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_command_group_node(clg_graph graph,
                                             clg_command_group group,
                                             const struct clg_node_options *options,
                                             struct clg_node *node);

// Makes another launch or host task of a group active, by its index from 0. Executables get it when they are updated.
enum clg_status clg_command_group_set_active(clg_command_group group, size_t index);

// Returns which launch or host task of a group is active, by its index from 0.
enum clg_status clg_command_group_active(clg_command_group group, size_t *result);

// Adds a reference to the object.
enum clg_status clg_task_retain(clg_task object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_task_release(clg_task object);

// Adds a host task: a function that runs on the host between the nodes before and after it.
//
// The caller's promise:
// The function may be called on any thread. The pointers are null or point to what their types say.
enum clg_status clg_graph_host_task(clg_graph graph,
                                    const struct clg_host_task *task,
                                    const struct clg_node_options *options,
                                    struct clg_node *node);

// Makes a group of host tasks, of which the first is active. They use the same memory in the same ways. A node of it
// is added by `clg_graph_command_group_node`.
//
// The caller's promise:
// As of `clg_graph_host_task`. `tasks` points to as many tasks as `num_tasks` says.
enum clg_status clg_graph_host_task_group(clg_graph graph,
                                          const struct clg_host_task *tasks,
                                          size_t num_tasks,
                                          clg_command_group *result);

// Enqueues a host task, or records it. `submission` gets a handle of its run, or of what was recorded.
//
// The caller's promise:
// As of `clg_graph_host_task`. `event_wait_list` points to as many events as `num_events` says.
enum clg_status clg_enqueue_host_task(clg_queue queue,
                                      const struct clg_host_task *task,
                                      uint32_t num_events,
                                      const clg_event *event_wait_list,
                                      clg_submission *submission);

// Copies the result of a read that comes before the task. `size` is the size of the read.
//
// The caller's promise:
// `data` has room for `size` bytes.
enum clg_status clg_task_get(clg_task task, struct clg_node read, void *data, size_t size);

// Sets the data of a write that comes after the task, for this submission. The data is copied.
//
// The caller's promise:
// `data` points to `size` bytes.
enum clg_status clg_task_put(clg_task task, struct clg_node write, const void *data, size_t size);

// Adds a function that gets memory mapped, between the nodes before and after it. `mode` is a `clg_map_mode`.
//
// The caller's promise:
// The function may be called on any thread, writes only if the mode says so, and stays inside the memory. Nothing else
// uses the memory meanwhile that the graph does not know. The pointers are null or point to what their types say.
enum clg_status clg_graph_map(clg_graph graph,
                              struct clg_range range,
                              int32_t mode,
                              const struct clg_map_task *task,
                              const struct clg_node_options *options,
                              struct clg_node *node);

// Adds a function that gets a part of an image mapped. As `clg_graph_map` otherwise.
//
// The caller's promise:
// As of `clg_graph_map`.
enum clg_status clg_graph_map_image(clg_graph graph,
                                    struct clg_area area,
                                    int32_t mode,
                                    const struct clg_map_task *task,
                                    const struct clg_node_options *options,
                                    struct clg_node *node);

// Enqueues a function that gets memory mapped, or records it. `submission` gets a handle of its run, or of what was
// recorded.
//
// The caller's promise:
// As of `clg_graph_map`. `event_wait_list` points to as many events as `num_events` says.
enum clg_status clg_enqueue_map(clg_queue queue,
                                struct clg_range range,
                                int32_t mode,
                                const struct clg_map_task *task,
                                uint32_t num_events,
                                const clg_event *event_wait_list,
                                clg_submission *submission);

// Enqueues a function that gets a part of an image mapped, or records it. As `clg_enqueue_map` otherwise.
//
// The caller's promise:
// As of `clg_enqueue_map`.
enum clg_status clg_enqueue_map_image(clg_queue queue,
                                      struct clg_area area,
                                      int32_t mode,
                                      const struct clg_map_task *task,
                                      uint32_t num_events,
                                      const clg_event *event_wait_list,
                                      clg_submission *submission);

// Maps memory for the function of a host task, until that function returns. The task has declared that it uses the memory:
// that it reads for CLG_MAP_READ, that it writes for CLG_MAP_WRITE_INVALIDATE, and both for CLG_MAP_WRITE. `mode` is a
// `clg_map_mode`. If the memory cannot be unmapped, the task fails.
//
// The caller's promise:
// The memory is written only if the mode says so, nobody uses what is mapped after the function has returned, and nothing
// else uses the memory meanwhile that the graph does not know. `result` is null or valid for a write.
enum clg_status clg_task_map(clg_task task,
                             struct clg_range range,
                             int32_t mode,
                             struct clg_mapped *result);

// Maps a part of an image for the function of a host task, until that function returns. As `clg_task_map` otherwise.
//
// The caller's promise:
// As of `clg_task_map`.
enum clg_status clg_task_map_image(clg_task task, struct clg_area area, int32_t mode, struct clg_mapped *result);

// Adds a native command.
//
// The caller's promise:
// The commands go to the given queue or command buffer, or are complete before anything begins that is enqueued there
// next. The functions leave both as they found them, and use no handle that they were given after they return. The
// commands touch only the memory that is declared, as declared, and memory of their own that several of them may use
// at a time; what they use lives until `release` is called. The pointers are null or point to what their types say.
enum clg_status clg_graph_native_command(clg_graph graph,
                                         const struct clg_native_command *command,
                                         const struct clg_node_options *options,
                                         struct clg_node *node);

// Enqueues a native command, or records it. `submission` gets a handle of its run, or of what was recorded.
//
// The caller's promise:
// As of `clg_graph_native_command`. `event_wait_list` points to as many events as `num_events` says.
enum clg_status clg_enqueue_native_command(clg_queue queue,
                                           const struct clg_native_command *command,
                                           uint32_t num_events,
                                           const clg_event *event_wait_list,
                                           clg_submission *submission);

// Makes queues record: `clg_enqueue_...` and `clg_executable_submit` on them add nodes to the graph, and nothing runs.
// What the program enqueues with OpenCL itself still runs.
//
// The caller's promise:
// `queues` points to as many queues as `num_queues` says.
enum clg_status clg_graph_begin_recording(clg_graph graph, const clg_queue *queues, size_t num_queues);

// Makes queues execute again. `ended`, which may be null, gets how many of them recorded.
//
// The caller's promise:
// `queues` points to as many queues as `num_queues` says; `ended` is null or valid for a write.
enum clg_status clg_graph_end_recording(clg_graph graph, const clg_queue *queues, size_t num_queues, size_t *ended);

// Makes all queues that record into the graph execute again, also those that joined by waiting for an event of a
// recorded command. `ended`, which may be null, gets how many there were.
//
// The caller's promise:
// `ended` is null or valid for a write.
enum clg_status clg_graph_end_all_recording(clg_graph graph, size_t *ended);

// Begins a capture: until clg_graph_end_capture, what any code enqueues with OpenCL on the `cl_command_queue` of a queue
// (clg_queue_to_cl) is to become nodes of the graph, and does not run. `mode` is a `clg_capture_mode`.
//
// The calls are seen by clgraph's layer: start the program with OPENCL_LAYERS=libclgraph_layer.so, and with CLGRAPH_LAYER=always where
// the driver has command buffers of its own. docs/layer.md says which calls can be captured, and what spoils a capture. A capture that
// is not ended keeps its queue.
enum clg_status clg_graph_begin_capture(clg_graph graph,
                                        clg_queue queue,
                                        int32_t mode);

// Ends a capture of a queue, and drops what was captured. It fails, and has done so all the same, if a call has spoilt the capture.
enum clg_status clg_queue_drop_capture(clg_queue queue);

// Writes how many commands were captured since the capture of a queue began: 0 if it is not captured.
enum clg_status clg_queue_captured(clg_queue queue, size_t *result);

// Ends a capture. Its commands become nodes, in the order of the calls. `nodes`, which may be null, gets them; there is `room` for at
// least as many as clg_queue_captured says, or else the call fails and the capture goes on. `count`, which may be null, gets their
// number. If anything else fails, the queue executes again, and the graph has not changed.
//
// As long as the graph or an executable of it lives, the program promises for the captured kernels what clg_graph_kernel asks;
// that host memory which captured reads write to, and which buffers were made of, is there and is used by nothing else while a
// submission runs; and that nothing builds the programs of the kernels again.
//
// The caller's promise:
// The promise above. `nodes` is null or has room for `room` nodes; `count` is null or valid for a write.
enum clg_status clg_graph_end_capture(clg_graph graph,
                                      clg_queue queue,
                                      size_t room,
                                      struct clg_node *nodes,
                                      size_t *count);

// Returns whether a queue records.
enum clg_status clg_queue_is_recording(clg_queue queue, bool *result);

// Returns the graph that a queue records into, with a reference for the program.
enum clg_status clg_queue_recording_graph(clg_queue queue, clg_graph *result);

// Returns the `cl_command_queue`, without a reference for the program.
enum clg_status clg_queue_to_cl(clg_queue queue, cl_command_queue *result);

// Records a node that waits for an event, which each submission is given for it. The queue records.
//
// The caller's promise:
// `event_wait_list` points to as many events as `num_events` says; `event` and `node` are null or valid for a write.
enum clg_status clg_record_wait_event(clg_queue queue,
                                      uint32_t num_events,
                                      const clg_event *event_wait_list,
                                      clg_event *event,
                                      struct clg_node *node);

// Records a node that completes a user event, which each submission is given for it. The queue records.
//
// The caller's promise:
// As of `clg_record_wait_event`.
enum clg_status clg_record_signal_event(clg_queue queue,
                                        uint32_t num_events,
                                        const clg_event *event_wait_list,
                                        clg_event *event,
                                        struct clg_node *node);

// Copies bytes from memory to memory, of ranges of one size.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_copy_buffer(clg_queue queue,
                                        struct clg_range from,
                                        struct clg_range to,
                                        uint32_t num_events,
                                        const clg_event *event_wait_list,
                                        clg_event *event);

// Copies a rectangle or a box from memory to memory.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_copy_buffer_rect(clg_queue queue,
                                             struct clg_range from,
                                             struct clg_range to,
                                             const struct clg_rect *rect,
                                             uint32_t num_events,
                                             const clg_event *event_wait_list,
                                             clg_event *event);

// Fills memory with a pattern, of a size that divides the size of the range.
//
// The caller's promise:
// `pattern` points to as many bytes as `pattern_size` says; the other pointers are null or point to what their types say.
enum clg_status clg_enqueue_fill_buffer(clg_queue queue,
                                        struct clg_range to,
                                        const void *pattern,
                                        size_t pattern_size,
                                        uint32_t num_events,
                                        const clg_event *event_wait_list,
                                        clg_event *event);

// Writes host data to memory, and does not block. Without `release` the data is copied. With `release` it is used where
// it is, until `release(user)` gives it back: it is called exactly once, on any thread, also if this call fails.
//
// The caller's promise:
// `data` points to `data_size` bytes; the other pointers are null or point to what their types say.
enum clg_status clg_enqueue_write_buffer(clg_queue queue,
                                         struct clg_range to,
                                         const void *data,
                                         size_t data_size,
                                         void (*release)(void *user),
                                         void *user,
                                         uint32_t num_events,
                                         const clg_event *event_wait_list,
                                         clg_event *event);

// Copies pixels between images of one format. The area of `to` counts only by its image and origin.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_copy_image(clg_queue queue,
                                       struct clg_area from,
                                       struct clg_area to,
                                       uint32_t num_events,
                                       const clg_event *event_wait_list,
                                       clg_event *event);

// Copies pixels of an image to memory, where they are packed.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_copy_image_to_buffer(clg_queue queue,
                                                 struct clg_area from,
                                                 struct clg_range to,
                                                 uint32_t num_events,
                                                 const clg_event *event_wait_list,
                                                 clg_event *event);

// Copies packed pixels in memory to an image.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_copy_buffer_to_image(clg_queue queue,
                                                 struct clg_range from,
                                                 struct clg_area to,
                                                 uint32_t num_events,
                                                 const clg_event *event_wait_list,
                                                 clg_event *event);

// Fills an image with one colour: four channels of the kind `color_kind`, a `clg_color_kind`.
//
// The caller's promise:
// `color` points to 16 bytes; the other pointers are null or point to what their types say.
enum clg_status clg_enqueue_fill_image(clg_queue queue,
                                       struct clg_area to,
                                       int32_t color_kind,
                                       const void *color,
                                       uint32_t num_events,
                                       const clg_event *event_wait_list,
                                       clg_event *event);

// Writes packed pixels of the host to an image, and does not block. As `clg_enqueue_write_buffer` otherwise.
//
// The caller's promise:
// `data` points to `data_size` bytes; the other pointers are null or point to what their types say.
enum clg_status clg_enqueue_write_image(clg_queue queue,
                                        struct clg_area to,
                                        const void *data,
                                        size_t data_size,
                                        void (*release)(void *user),
                                        void *user,
                                        uint32_t num_events,
                                        const clg_event *event_wait_list,
                                        clg_event *event);

// Launches a kernel, or records the launch. The kernel uses its memory as declared, so that recorded nodes wait for
// each other.
//
// The caller's promise:
// The promise of `clg_graph_kernel`. The pointers are null or point to what their types say.
enum clg_status clg_enqueue_kernel(clg_queue queue,
                                   const struct clg_launch *launch,
                                   uint32_t num_events,
                                   const clg_event *event_wait_list,
                                   clg_event *event);

// Enqueues or records a marker: its event is complete when the wait list is, or everything before it if that is empty.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_marker(clg_queue queue,
                                   uint32_t num_events,
                                   const clg_event *event_wait_list,
                                   clg_event *event);

// Enqueues or records a barrier: everything after it waits for it.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_barrier(clg_queue queue,
                                    uint32_t num_events,
                                    const clg_event *event_wait_list,
                                    clg_event *event);

// Gives or records a hint about memory: a `clg_hint`, and for CLG_HINT_ADVICE a number of the vendor's extension.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_hint(clg_queue queue,
                                 struct clg_range range,
                                 int32_t hint,
                                 uint32_t advice,
                                 uint32_t num_events,
                                 const clg_event *event_wait_list,
                                 clg_event *event);

// Records a node of a group. The queue records into the graph of the group.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_command_group(clg_queue queue,
                                          clg_command_group group,
                                          uint32_t num_events,
                                          const clg_event *event_wait_list,
                                          clg_event *event);

// Records the end of the life of memory of the graph. The queue records into that graph.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_free(clg_queue queue,
                                 clg_memory memory,
                                 uint32_t num_events,
                                 const clg_event *event_wait_list,
                                 clg_event *event);

// Records an allocation of memory of the graph that the queue records into.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_allocate(clg_queue queue,
                                     size_t size,
                                     bool zero_init,
                                     uint32_t num_events,
                                     const clg_event *event_wait_list,
                                     clg_memory *memory);

// Adds a reference to the object.
enum clg_status clg_pending_read_retain(clg_pending_read object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_pending_read_release(clg_pending_read object);

// Enqueues or records a read of memory, and does not block.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_read_buffer(clg_queue queue,
                                        struct clg_range from,
                                        uint32_t num_events,
                                        const clg_event *event_wait_list,
                                        clg_pending_read *result);

// Enqueues or records a read of an image, and does not block. The pixels are packed.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_enqueue_read_image(clg_queue queue,
                                       struct clg_area from,
                                       uint32_t num_events,
                                       const clg_event *event_wait_list,
                                       clg_pending_read *result);

// Blocks until a read is complete, and copies its data. `size` is the size of the read.
//
// The caller's promise:
// `data` has room for `size` bytes.
enum clg_status clg_pending_read_wait(clg_pending_read read, void *data, size_t size);

// Returns the event of a read.
//
// The caller's promise:
// `event` is null or valid for a write.
enum clg_status clg_pending_read_event(clg_pending_read read, clg_event *event);

// Returns the node of a read that was recorded: the name of the result of each submission.
enum clg_status clg_pending_read_node(clg_pending_read read, struct clg_node *node);

// Adds a reference to the object.
enum clg_status clg_executable_retain(clg_executable object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_executable_release(clg_executable object);

// Plans the graph for its device and prepares everything that a submission needs. The graph does not change.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_finalize(clg_graph graph, const struct clg_finalize_options *options, clg_executable *result);

// Submits the executable to a queue. It runs after earlier commands of an in-order queue, and after what it is given to
// wait for.
//
// `event` gets a `cl_event` of the submission, which the program releases with clReleaseEvent: it is complete when the
// submission has ended, well or not. On a queue that records, or that waits for a command which was recorded, pass null:
// the call fails otherwise. `submission` gets a handle. Either may be null; if both are, the submission is detached: only
// the log knows whether it failed.
//
// The caller's promise:
// The pointers are null or point to what their types say, and events are live.
enum clg_status clg_executable_submit(clg_executable executable,
                                      clg_queue queue,
                                      const struct clg_submit_options *options,
                                      cl_event *event,
                                      clg_submission *submission);

// Applies the current values of nodes to the executable, for later submissions: values of parameters, ranges, and
// launches that replaced others. It applies all of them or, if it fails, none.
//
// The caller's promise:
// `nodes` points to as many nodes as `num_nodes` says.
enum clg_status clg_executable_update(clg_executable executable, const struct clg_node *nodes, size_t num_nodes);

// Applies the current values of all nodes of a graph that was built in the same way.
enum clg_status clg_executable_update_from(clg_executable executable, clg_graph graph);

// Writes what was decided for the executable, and why. `size` gets the number of bytes with the zero at the end.
//
// The caller's promise:
// `text` is null or has room for `room` bytes.
enum clg_status clg_executable_report(clg_executable executable, size_t room, char *text, size_t *size);

// Draws the executable as SVG, with the times of a submission that was profiled if one is given. `detail` is a
// `clg_drawing_detail`.
//
// The caller's promise:
// `text` is null or has room for `room` bytes.
enum clg_status clg_executable_to_svg(clg_executable executable,
                                      int detail,
                                      clg_submission submission,
                                      size_t room,
                                      char *text,
                                      size_t *size);

// Draws as SVG where the graph's own memory is, and when its bytes are needed.
//
// The caller's promise:
// `text` is null or has room for `room` bytes.
enum clg_status clg_executable_memory_map(clg_executable executable, size_t room, char *text, size_t *size);

// Returns how many bytes the graph's own memory takes.
enum clg_status clg_executable_required_memory(clg_executable executable, size_t *result);

// Lists the command buffers (`cl_command_buffer_khr`) of the executable, for queries: `count` gets how many there are,
// and `buffers` all of them if it has room. They stay the executable's.
//
// The caller's promise:
// `buffers` is null or has room for `room` handles; `count` is null or valid for a write.
enum clg_status clg_executable_command_buffers(clg_executable executable,
                                               size_t room,
                                               cl_command_buffer_khr *buffers,
                                               size_t *count);

// Adds a reference to the object.
enum clg_status clg_sub_graph_retain(clg_sub_graph object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_sub_graph_release(clg_sub_graph object);

// Adds all commands of an executable as one node. `node` and `sub_graph` may be null; `sub_graph` is for the inputs,
// results, events, branches and loops of the executable.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_sub_graph(clg_graph graph,
                                    clg_executable executable,
                                    const struct clg_node_options *options,
                                    struct clg_node *node,
                                    clg_sub_graph *sub_graph);

// Returns a write, a read, an event, or a branch or loop of the executable as one of the outer graph: for inputs, results,
// events and turns of its submissions. `port` is a `clg_port`.
enum clg_status clg_sub_graph_port(clg_sub_graph sub_graph,
                                   int32_t port,
                                   struct clg_node inner,
                                   struct clg_node *outer);

// Adds a reference to the object.
enum clg_status clg_control_retain(clg_control object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_control_release(clg_control object);

// Adds a branch: `then` runs if the number at the start of `condition` is not zero, and `otherwise`, which may be null, if it
// is.
//
// The number is a `cl_uint` or `cl_int`, and is read behind everything that the node waits for. The bodies are executables,
// as in sub-graphs, and the node keeps them: they can have inputs, results, host tasks, branches and loops, but no events
// that each submission is given. The node reads the number and uses all memory that its bodies use.
//
// `node` and `control` may be null; `control` is for the inputs, results, branches and loops of the bodies, and is released
// by the program. A node can be replaced by one of the same kind with the same bodies, with another condition; then
// `control` is null.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_graph_when(clg_graph graph,
                               struct clg_range condition,
                               clg_executable then,
                               clg_executable otherwise,
                               const struct clg_node_options *options,
                               struct clg_node *node,
                               clg_control *control);

// Adds a branch with several cases: the one runs whose index, from 0, is the number at the start of `index`, and none if
// there is no such case. Otherwise as `clg_graph_when`.
//
// The caller's promise:
// As of `clg_graph_when`. `cases` points to as many executables as `num_cases` says.
enum clg_status clg_graph_switch(clg_graph graph,
                                 struct clg_range index,
                                 const clg_executable *cases,
                                 size_t num_cases,
                                 const struct clg_node_options *options,
                                 struct clg_node *node,
                                 clg_control *control);

// Adds a loop: `body` runs as long as the number at the start of `condition` is not zero, which is read before each turn;
// with `at_least_once` not before the first one.
//
// A submission fails if the loop would go on after `at_most` turns; 0 is no bound, and then a loop can go on for ever, until
// `clg_submission_cancel`. Inputs are used in each turn, host tasks run in each turn, and a result is that of the last turn.
// Replacing changes the condition and the bounds. Otherwise as `clg_graph_when`.
//
// The caller's promise:
// As of `clg_graph_when`.
enum clg_status clg_graph_repeat_while(clg_graph graph,
                                       struct clg_range condition,
                                       clg_executable body,
                                       bool at_least_once,
                                       uint64_t at_most,
                                       const struct clg_node_options *options,
                                       struct clg_node *node,
                                       clg_control *control);

// Adds a loop with a known number of turns, which replacing changes. Otherwise as `clg_graph_repeat_while`.
//
// The caller's promise:
// As of `clg_graph_when`.
enum clg_status clg_graph_repeat(clg_graph graph,
                                 uint64_t turns,
                                 clg_executable body,
                                 const struct clg_node_options *options,
                                 struct clg_node *node,
                                 clg_control *control);

// Returns a body as a sub-graph of the node, for `clg_sub_graph_port`. `index` is 0 for the body of a loop and for `then`, 1
// for `otherwise`, and the case for `clg_graph_switch`. The program releases `result`.
enum clg_status clg_control_body(clg_control control,
                                 size_t index,
                                 clg_sub_graph *result);

// Returns how many turns a loop had so far; for a branch, how often it ran a body. Nothing is waited for. `of` is the node, or
// a branch or loop inside a sub-graph or a body, by `clg_sub_graph_port`: then it is all turns together.
enum clg_status clg_submission_turns(clg_submission submission,
                                     struct clg_node of,
                                     uint64_t *result);

// Stops a submission at the next decision of a branch or loop: it fails with CLG_FAILED. What is enqueued already still runs,
// so memory is as the last whole turn left it. A submission that decides nothing any more ends as it would have.
enum clg_status clg_submission_cancel(clg_submission submission);

// Calls `then` if the number at the start of `condition` is not zero, and `otherwise`, which may be null, if it is.
//
// Where the queue executes, this waits for the queue, reads the number, and calls one of the functions or none. Where the queue
// records, each function is called once, and the commands that it enqueues become a body of a node of `clg_graph_when`. In
// both cases the functions are called on this thread, before this returns. A function uses the queue that it is given: while a
// body is recorded, the queues that record into the graph around it refuse commands of this thread. After a failure of a function
// nothing was recorded.
//
// `node` and `control` may be null; they get the node, and its bodies as of `clg_graph_when`, or zeros and null where the
// queue executed.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_queue_when(clg_queue queue,
                               struct clg_range condition,
                               clg_body_function then,
                               clg_body_function otherwise,
                               void *user,
                               struct clg_node *node,
                               clg_control *control);

// Calls `function` with the number at the start of `index`, if that is less than `num_cases`. Where the queue records, it is
// called once for each index. Otherwise as `clg_queue_when`, with the node of `clg_graph_switch`.
//
// The caller's promise:
// As of `clg_queue_when`.
enum clg_status clg_queue_switch(clg_queue queue,
                                 struct clg_range index,
                                 size_t num_cases,
                                 clg_case_function function,
                                 void *user,
                                 struct clg_node *node,
                                 clg_control *control);

// Calls `body` as long as the number at the start of `condition` is not zero; with `at_least_once` the number is not read before
// the first turn. This fails if the loop would go on after `at_most` turns; 0 is no bound. Where the queue records, `body` is
// called once. Otherwise as `clg_queue_when`, with the node of `clg_graph_repeat_while`.
//
// The caller's promise:
// As of `clg_queue_when`.
enum clg_status clg_queue_repeat_while(clg_queue queue,
                                       struct clg_range condition,
                                       clg_body_function body,
                                       void *user,
                                       bool at_least_once,
                                       uint64_t at_most,
                                       struct clg_node *node,
                                       clg_control *control);

// Calls `body` so many times. Where the queue records, it is called once. Otherwise as `clg_queue_when`, with the node of
// `clg_graph_repeat`.
//
// The caller's promise:
// As of `clg_queue_when`.
enum clg_status clg_queue_repeat(clg_queue queue,
                                 uint64_t turns,
                                 clg_body_function body,
                                 void *user,
                                 struct clg_node *node,
                                 clg_control *control);

// Adds a reference to the object.
enum clg_status clg_submission_retain(clg_submission object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_submission_release(clg_submission object);

// Blocks until the submission has ended. Returns its error if it failed.
enum clg_status clg_submission_wait(clg_submission submission);

// Blocks until the submission has ended, but at most for a time, in nanoseconds. Then it returns CLG_NOT_READY.
enum clg_status clg_submission_wait_for(clg_submission submission, uint64_t nanoseconds);

// Returns whether the submission has ended, well or not.
enum clg_status clg_submission_is_done(clg_submission submission, bool *result);

// Copies the result of a read. `size` is the size of the read.
//
// The caller's promise:
// `data` has room for `size` bytes.
enum clg_status clg_submission_get(clg_submission submission, struct clg_node read, void *data, size_t size);

// Returns where the result of a read is. It stays there, and does not change, until the last reference to the
// submission is released.
//
// The caller's promise:
// The pointers are null or point to what their types say.
enum clg_status clg_submission_result(clg_submission submission, struct clg_node read, const void **data, size_t *size);

// Calls a function when the submission has ended: with CLG_SUCCESS and null, or with the kind and the text of its
// error. The text is valid during the call, and `clg_last_cl_status` has the status of the OpenCL call that failed, if one
// did, until another call fails. The function runs on a thread of clgraph, one such function after the
// other; it may call clgraph. `release` is called exactly once when `user` is no longer used.
//
// The caller's promise:
// The functions may be called on any thread. No C++ exception may leave them.
enum clg_status clg_submission_on_complete(clg_submission submission,
                                           void (*function)(enum clg_status status, const char *text, void *user),
                                           void *user,
                                           void (*release)(void *user));

// Writes the times of a submission and of its nodes as a table. The executable was finalized with `profiling`.
//
// The caller's promise:
// `text` is null or has room for `room` bytes.
enum clg_status clg_submission_profile(clg_submission submission, size_t room, char *text, size_t *size);

// Writes the times of submissions as a trace, which Perfetto and Chrome show.
//
// The caller's promise:
// `submissions` points to as many submissions as `num_submissions` says; `text` is null or has room for `room` bytes.
enum clg_status clg_submissions_trace(const clg_submission *submissions,
                                      size_t num_submissions,
                                      size_t room,
                                      char *text,
                                      size_t *size);

// Returns the times of a submission. The executable was finalized with `profiling`.
enum clg_status clg_submission_get_times(clg_submission submission, struct clg_submission_times *result);

// Lists the times of the nodes that ran, in the order of their starts: `count` gets how many there are, and `times`
// all of them if it has room.
//
// The caller's promise:
// `times` is null or has room for `room` of them; `count` is null or valid for a write.
enum clg_status clg_submission_node_times(clg_submission submission,
                                          size_t room,
                                          struct clg_node_times *times,
                                          size_t *count);

// Returns how far a submission is, without waiting: a `clg_progress`.
enum clg_status clg_submission_progress(clg_submission submission, int32_t *result);

// Returns an event that is complete when the submission has ended, well or not; or the event of a recorded command if
// the queue recorded.
enum clg_status clg_submission_event(clg_submission submission, clg_event *result);

// Returns the sub-graph that the submission stands for, if the queue recorded.
enum clg_status clg_submission_sub_graph(clg_submission submission, clg_sub_graph *result);

// Lists nodes of a graph: `which` is a `clg_nodes`, and `of` the node for CLG_NODES_BEFORE and CLG_NODES_AFTER.
//
// The caller's promise:
// `nodes` is null or has room for `room` nodes; `count` is null or valid for a write.
enum clg_status clg_graph_nodes(clg_graph graph,
                                int32_t which,
                                struct clg_node of,
                                size_t room,
                                struct clg_node *nodes,
                                size_t *count);

// Writes what kind of node a node is, for example "kernel".
//
// The caller's promise:
// `text` is null or has room for `room` bytes.
enum clg_status clg_graph_node_kind(clg_graph graph, struct clg_node node, size_t room, char *text, size_t *size);

// Writes the label of a node, which is empty if it has none.
//
// The caller's promise:
// `text` is null or has room for `room` bytes.
enum clg_status clg_graph_node_label(clg_graph graph, struct clg_node node, size_t room, char *text, size_t *size);

// Gives a node a label.
//
// The caller's promise:
// `label` is null or a text.
enum clg_status clg_graph_set_node_label(clg_graph graph, struct clg_node node, const char *label);

// Draws the graph in the DOT language. `detail` is a `clg_drawing_detail`. `size` gets the number of bytes with the
// zero at the end.
//
// The caller's promise:
// `text` is null or has room for `room` bytes.
enum clg_status clg_graph_to_dot(clg_graph graph, int detail, size_t room, char *text, size_t *size);

// Draws the graph as SVG. `detail` is a `clg_drawing_detail`. `size` gets the number of bytes with the zero at the
// end.
//
// The caller's promise:
// `text` is null or has room for `room` bytes.
enum clg_status clg_graph_to_svg(clg_graph graph, int detail, size_t room, char *text, size_t *size);

// Writes what clgraph has found out about a device, as JSON: the same as `clgraph devices --json`.
//
// The caller's promise:
// `device` is null or a device; `text` is null or has room for `room` bytes.
enum clg_status clg_device_caps(cl_device_id device, size_t room, char *text, size_t *size);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CLGRAPH_H */

/* Arguments of kernels, for initializers: clg_arg args[] = {CLG_READ(a), CLG_WRITE(b), CLG_VALUE(n)}; */
#ifndef __cplusplus
/* The clg_value_type of a number, or 0. */
#define CLG_TYPE_OF(value)                                                                                             \
    _Generic((value), signed char: CLG_TYPE_CHAR, unsigned char: CLG_TYPE_UCHAR, short: CLG_TYPE_SHORT,                \
        unsigned short: CLG_TYPE_USHORT, int: CLG_TYPE_INT, unsigned: CLG_TYPE_UINT,                                   \
        long: sizeof(long) == 8 ? CLG_TYPE_LONG : CLG_TYPE_INT,                                                        \
        unsigned long: sizeof(long) == 8 ? CLG_TYPE_ULONG : CLG_TYPE_UINT, long long: CLG_TYPE_LONG,                   \
        unsigned long long: CLG_TYPE_ULONG, float: CLG_TYPE_FLOAT, double: CLG_TYPE_DOUBLE, default: CLG_TYPE_UNKNOWN)
#if __STDC_VERSION__ >= 201112L
#define CLG_VALUE(value) {.kind = CLG_ARG_VALUE, .size = sizeof(value), .data = &(value), .value_type = CLG_TYPE_OF(value)}
#else
#define CLG_VALUE(value) {.kind = CLG_ARG_VALUE, .size = sizeof(value), .data = &(value)}
#endif
#define CLG_READ(of) {.kind = CLG_ARG_READ, .range = {(of), 0, CLG_WHOLE}}
#define CLG_WRITE(of) {.kind = CLG_ARG_WRITE, .range = {(of), 0, CLG_WHOLE}}
#define CLG_READ_WRITE(of) {.kind = CLG_ARG_READ_WRITE, .range = {(of), 0, CLG_WHOLE}}
#define CLG_LOCAL(bytes) {.kind = CLG_ARG_LOCAL, .size = (bytes)}
#define CLG_NULL {.kind = CLG_ARG_NULL}
#define CLG_PARAMETER(of) {.kind = CLG_ARG_PARAMETER, .parameter = (of)}
#define CLG_ALSO_PARAMETER(of) {.kind = CLG_ARG_ALSO_PARAMETER, .parameter = (of)}
#define CLG_IMAGE_READ(of) {.kind = CLG_ARG_IMAGE_READ, .image = (of)}
#define CLG_IMAGE_WRITE(of) {.kind = CLG_ARG_IMAGE_WRITE, .image = (of)}
#define CLG_SAMPLER(of) {.kind = CLG_ARG_SAMPLER, .sampler = (of)}
#define CLG_ALL(of) ((clg_range){(of), 0, CLG_WHOLE})
#define CLG_WHOLE_IMAGE(of) ((clg_area){(of), {0, 0, 0}, {0, 0, 0}})
#endif
