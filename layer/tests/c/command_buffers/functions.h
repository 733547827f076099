/* cl_khr_command_buffer 0.9.8 and cl_khr_command_buffer_mutable_dispatch 0.9.5, with names of our own: the headers of a system
 * may be older, and have record functions without `properties`. */
#pragma once
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include "../check.h"
#include "../update.h"

typedef struct a_command_buffer *command_buffer;
typedef struct a_mutable_command *mutable_command;
typedef cl_uint sync_point;

/* Statuses. */
enum {
    INVALID_COMMAND_BUFFER = -1138,
    INVALID_SYNC_POINT_WAIT_LIST = -1139,
    INCOMPATIBLE_COMMAND_QUEUE = -1140,
    INVALID_MUTABLE_COMMAND = -1141,
};

/* Queries of a device, and the bits of the first and the last. */
enum {
    DEVICE_BUFFER_CAPABILITIES = 0x12A9,
    DEVICE_SUPPORTED_QUEUE_PROPERTIES = 0x129A,
    DEVICE_REQUIRED_QUEUE_PROPERTIES = 0x12AA,
    DEVICE_MUTABLE_CAPABILITIES = 0x12B0,
};
enum { CAN_PRINTF = 1 << 0, CAN_SIMULTANEOUS_USE = 1 << 2 };
enum {
    GLOBAL_OFFSET = 1 << 0,
    GLOBAL_SIZE = 1 << 1,
    LOCAL_SIZE = 1 << 2,
    ARGUMENTS = 1 << 3,
    EXEC_INFO = 1 << 4,
};

/* Properties of a command buffer. */
enum { BUFFER_FLAGS = 0x1293, BUFFER_ASSERTS = 0x12B7 };
enum { SIMULTANEOUS_USE = 1 << 0, MUTABLE = 1 << 1, DEVICE_SIDE_SYNC = 1 << 2 };
enum { NO_ADDITIONAL_WORK_GROUPS = 1 << 0 };

/* Properties of a kernel command. */
enum { UPDATABLE_FIELDS = 0x12B1, DISPATCH_ASSERTS = 0x12B8 };

/* Queries of a command buffer. */
enum {
    BUFFER_QUEUES = 0x1294,
    BUFFER_NUM_QUEUES = 0x1295,
    BUFFER_REFERENCE_COUNT = 0x1296,
    BUFFER_STATE = 0x1297,
    BUFFER_PROPERTIES_ARRAY = 0x1298,
    BUFFER_CONTEXT = 0x1299,
};
enum { RECORDING = 0, EXECUTABLE = 1, FINALIZED = 2 };

/* Queries of a command. */
enum {
    COMMAND_QUEUE = 0x12A0,
    COMMAND_COMMAND_BUFFER = 0x12A1,
    COMMAND_PROPERTIES_ARRAY = 0x12A2,
    COMMAND_KERNEL = 0x12A3,
    COMMAND_DIMENSIONS = 0x12A4,
    COMMAND_GLOBAL_OFFSET = 0x12A5,
    COMMAND_GLOBAL_SIZE = 0x12A6,
    COMMAND_LOCAL_SIZE = 0x12A7,
    COMMAND_TYPE = 0x12AD,
};

/* The type of a command buffer's event. */
enum { COMMAND_COMMAND_BUFFER_EVENT = 0x12A8 };

/* Of cl_ext_immutable_memory_objects. */
enum { IMMUTABLE_MEMORY = 1 << 6 };

/* Of an update. */
enum { DISPATCH_CONFIG = 0 };

/* What all record functions begin and end with. */
#define RECORD_HEAD command_buffer, cl_command_queue, const cl_properties *
#define RECORD_TAIL cl_uint, const sync_point *, sync_point *, mutable_command *

struct command_buffer_functions {
    command_buffer (*create)(cl_uint, const cl_command_queue *, const cl_properties *, cl_int *);
    cl_int (*retain)(command_buffer);
    cl_int (*release)(command_buffer);
    cl_int (*finalize)(command_buffer);
    cl_int (*enqueue)(cl_uint, cl_command_queue *, command_buffer, cl_uint, const cl_event *, cl_event *);
    cl_int (*info)(command_buffer, cl_uint name, size_t, void *, size_t *);

    cl_int (*barrier)(RECORD_HEAD, RECORD_TAIL);
    cl_int (*copy)(RECORD_HEAD, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t, RECORD_TAIL);
    cl_int (*copy_rect)(RECORD_HEAD, cl_mem from, cl_mem to, const size_t *from_origin, const size_t *to_origin,
                        const size_t *region, size_t from_row, size_t from_slice, size_t to_row, size_t to_slice,
                        RECORD_TAIL);
    cl_int (*fill)(RECORD_HEAD, cl_mem, const void *pattern, size_t pattern_size, size_t offset, size_t, RECORD_TAIL);
    cl_int (*kernel)(RECORD_HEAD, cl_kernel, cl_uint dimensions, const size_t *offset, const size_t *global,
                     const size_t *local, RECORD_TAIL);
    cl_int (*svm_copy)(RECORD_HEAD, void *to, const void *from, size_t, RECORD_TAIL);
    cl_int (*svm_fill)(RECORD_HEAD, void *, const void *pattern, size_t pattern_size, size_t, RECORD_TAIL);
    cl_int (*fill_image)(RECORD_HEAD, cl_mem, const void *colour, const size_t *origin, const size_t *region,
                         RECORD_TAIL);
    cl_int (*copy_image)(RECORD_HEAD, cl_mem from, cl_mem to, const size_t *from_origin, const size_t *to_origin,
                         const size_t *region, RECORD_TAIL);
    cl_int (*image_to_buffer)(RECORD_HEAD, cl_mem from, cl_mem to, const size_t *origin, const size_t *region,
                              size_t offset, RECORD_TAIL);
    cl_int (*buffer_to_image)(RECORD_HEAD, cl_mem from, cl_mem to, size_t offset, const size_t *origin,
                              const size_t *region, RECORD_TAIL);

    /* Null without mutable dispatch. */
    cl_int (*update)(command_buffer, cl_uint, const cl_uint *types, const void **configs);
    cl_int (*command_info)(mutable_command, cl_uint name, size_t, void *, size_t *);
};

static inline void *function_of(cl_platform_id platform, const char *name) {
    void *function = clGetExtensionFunctionAddressForPlatform(platform, name);
    if (function == NULL) printf("no %s\n", name);
    return function;
}

static inline struct command_buffer_functions functions_of(cl_platform_id platform, int with_mutable) {
    struct command_buffer_functions f = {
        .create = function_of(platform, "clCreateCommandBufferKHR"),
        .retain = function_of(platform, "clRetainCommandBufferKHR"),
        .release = function_of(platform, "clReleaseCommandBufferKHR"),
        .finalize = function_of(platform, "clFinalizeCommandBufferKHR"),
        .enqueue = function_of(platform, "clEnqueueCommandBufferKHR"),
        .info = function_of(platform, "clGetCommandBufferInfoKHR"),
        .barrier = function_of(platform, "clCommandBarrierWithWaitListKHR"),
        .copy = function_of(platform, "clCommandCopyBufferKHR"),
        .copy_rect = function_of(platform, "clCommandCopyBufferRectKHR"),
        .fill = function_of(platform, "clCommandFillBufferKHR"),
        .kernel = function_of(platform, "clCommandNDRangeKernelKHR"),
        .svm_copy = function_of(platform, "clCommandSVMMemcpyKHR"),
        .svm_fill = function_of(platform, "clCommandSVMMemFillKHR"),
        .fill_image = function_of(platform, "clCommandFillImageKHR"),
        .copy_image = function_of(platform, "clCommandCopyImageKHR"),
        .image_to_buffer = function_of(platform, "clCommandCopyImageToBufferKHR"),
        .buffer_to_image = function_of(platform, "clCommandCopyBufferToImageKHR"),
    };
    if (with_mutable) {
        f.update = function_of(platform, "clUpdateMutableCommandsKHR");
        f.command_info = function_of(platform, "clGetMutableCommandInfoKHR");
    }
    CHECK(f.create && f.retain && f.release && f.finalize && f.enqueue && f.info);
    CHECK(f.barrier && f.copy && f.copy_rect && f.fill && f.kernel && f.svm_copy && f.svm_fill);
    CHECK(f.fill_image && f.copy_image && f.image_to_buffer && f.buffer_to_image);
    CHECK(!with_mutable || (f.update && f.command_info));
    return f;
}
