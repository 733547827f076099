/* Fails each call of the driver once, while command buffers and captures are made, run, updated and released: `faults LAYER STEP`. LAYER
 * is the library that fails calls; it is loaded between clgraph's layer and the driver. Of the calls of a function one in STEP is tried.
 *
 * Each step is done again if it failed, and then succeeds: a call that fails has changed nothing. In the end the results are right, and
 * nothing is left over. */
#define CL_TARGET_OPENCL_VERSION 300

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "update.h"

enum { LEN = 64, BYTES = LEN * sizeof(cl_uint), KINDS = 11 };

static const char *(*layer_function)(size_t);
static unsigned (*layer_calls)(const char *);
static void (*layer_reset)(void);
static void (*layer_fail)(const char *, unsigned, int);
static int (*layer_has_failed)(void); /* a `bool` of Rust */
static int64_t (*layer_live)(size_t);

static const char *failing = "nothing";
static int failures, use;

/* Where the program is, for what is not so. */
#define HOLDS(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "%s:%d: not so while %s fails in use %d: %s\n", __FILE__, __LINE__, failing, use, #condition); \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

/* A step that fails at most once. */
#define STEP(call)                                     \
    do {                                               \
        cl_int status_ = (call);                       \
        if (status_ != CL_SUCCESS) {                   \
            failures++;                                \
            HOLDS((layer_has_failed() & 1) != 0);      \
            status_ = (call);                          \
        }                                              \
        if (status_ != CL_SUCCESS) fprintf(stderr, "%d\n", (int)status_); \
        HOLDS(status_ == CL_SUCCESS);                  \
    } while (0)

/* A step that makes something. */
#define MAKE(place, call)        \
    do {                         \
        cl_int status = 1;       \
        place = (call);          \
        if (place == NULL) {     \
            failures++;          \
            HOLDS((layer_has_failed() & 1) != 0); \
            place = (call);      \
        }                        \
        HOLDS(place != NULL && status == CL_SUCCESS); \
    } while (0)

typedef cl_command_buffer_khr(CL_API_CALL *create_function)(cl_uint, const cl_command_queue *, const cl_ulong *, cl_int *);
typedef cl_int(CL_API_CALL *launch_function)(cl_command_buffer_khr, cl_command_queue, const cl_ulong *, cl_kernel, cl_uint,
                                             const size_t *, const size_t *, const size_t *, cl_uint, const cl_uint *, cl_uint *,
                                             cl_mutable_command_khr *);
typedef cl_int(CL_API_CALL *fill_function)(cl_command_buffer_khr, cl_command_queue, const cl_ulong *, cl_mem, const void *, size_t,
                                           size_t, size_t, cl_uint, const cl_uint *, cl_uint *, cl_mutable_command_khr *);
typedef cl_int(CL_API_CALL *copy_function)(cl_command_buffer_khr, cl_command_queue, const cl_ulong *, cl_mem, cl_mem, size_t, size_t,
                                           size_t, cl_uint, const cl_uint *, cl_uint *, cl_mutable_command_khr *);
typedef cl_int(CL_API_CALL *barrier_function)(cl_command_buffer_khr, cl_command_queue, const cl_ulong *, cl_uint, const cl_uint *,
                                              cl_uint *, cl_mutable_command_khr *);

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_program program;
static create_function create;
static buffer_function finalize, release;
static launch_function launch;
static fill_function fill;
static copy_function copy;
static barrier_function barrier;
static enqueue_function enqueue;
static update_function update;
static clBeginCaptureCLG_fn begin;
static clEndCaptureCLG_fn end;
static clGetCapturedCommandsCLG_fn captured;

static void *function(const char *name) {
    void *function = clGetExtensionFunctionAddressForPlatform(platform, name);
    CHECK(function != NULL);
    return function;
}

static void start(void) {
    const char *source = "kernel void scale(global const uint *a, global uint *to, uint by) {\n"
                         "    to[get_global_id(0)] = a[get_global_id(0)] * by;\n}\n";
    cl_int status;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    CHECK(status == CL_SUCCESS);
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    CHECK(status == CL_SUCCESS && clBuildProgram(program, 1, &device, "-cl-kernel-arg-info", NULL, NULL) == CL_SUCCESS);
    *(void **)&create = function("clCreateCommandBufferKHR");
    *(void **)&finalize = function("clFinalizeCommandBufferKHR");
    *(void **)&release = function("clReleaseCommandBufferKHR");
    *(void **)&launch = function("clCommandNDRangeKernelKHR");
    *(void **)&fill = function("clCommandFillBufferKHR");
    *(void **)&copy = function("clCommandCopyBufferKHR");
    *(void **)&barrier = function("clCommandBarrierWithWaitListKHR");
    *(void **)&enqueue = function("clEnqueueCommandBufferKHR");
    *(void **)&update = function("clUpdateMutableCommandsKHR");
    *(void **)&begin = function("clBeginCaptureCLG");
    *(void **)&end = function("clEndCaptureCLG");
    *(void **)&captured = function("clGetCapturedCommandsCLG");
}

static void is(cl_command_queue queue, cl_mem memory, cl_uint value) {
    cl_uint back[LEN];
    STEP(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, BYTES, back, 0, NULL, NULL));
    for (int i = 0; i < LEN; i++) {
        if (back[i] != value) fprintf(stderr, "%d is %u, not %u\n", i, back[i], value);
        HOLDS(back[i] == value);
    }
}

/* Runs what fills `a` with 3, and writes `by` times that to `b`, and copies it to `c`. A failure may leave some of it done. */
static void runs(cl_command_queue queue, cl_command_buffer_khr buffer, cl_mem c, cl_uint value) {
    cl_event event = NULL, before = NULL;
    STEP(clEnqueueMarkerWithWaitList(queue, 0, NULL, &before));
    STEP(enqueue(0, NULL, buffer, 1, &before, &event));
    STEP(clWaitForEvents(1, &event));
    cl_int type = 0, status = 1;
    STEP(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL));
    STEP(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    HOLDS(status == CL_COMPLETE);
    clReleaseEvent(event);
    clReleaseEvent(before);
    STEP(enqueue(0, NULL, buffer, 0, NULL, NULL));
    STEP(clFinish(queue));
    is(queue, c, value);
}

/* With `longer`, so long that PoCL holds all of it back until it is enqueued. */
static void one(cl_command_queue_properties bits, int captures, int longer) {
    cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, bits, 0};
    cl_command_queue queue;
    cl_mem a, b, c;
    cl_kernel scale;
    MAKE(queue, clCreateCommandQueueWithProperties(context, device, list, &status));
    MAKE(a, clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &status));
    MAKE(b, clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &status));
    MAKE(c, clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &status));
    MAKE(scale, clCreateKernel(program, "scale", &status));
    cl_uint three = 3, by = 5, other = 7, zero = 0;
    size_t global = LEN;
    STEP(clEnqueueFillBuffer(queue, c, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL));
    STEP(clFinish(queue));
    STEP(clSetKernelArg(scale, 0, sizeof a, &a));
    STEP(clSetKernelArg(scale, 1, sizeof b, &b));
    STEP(clSetKernelArg(scale, 2, sizeof by, &by));
    cl_command_buffer_khr buffer = NULL;
    cl_mutable_command_khr command = NULL;
    if (captures) {
        cl_event filled = NULL, scaled = NULL;
        cl_uint count = 0;
        STEP(begin(queue, NULL));
        STEP(clEnqueueFillBuffer(queue, a, &three, sizeof three, 0, BYTES, 0, NULL, &filled));
        STEP(clEnqueueNDRangeKernel(queue, scale, 1, NULL, &global, NULL, 1, &filled, &scaled));
        STEP(clEnqueueCopyBuffer(queue, b, c, 0, 0, BYTES, 1, &scaled, NULL));
        /* What is left of a command whose event could not be made would run, too: the commands can run again. */
        clReleaseEvent(filled);
        clReleaseEvent(scaled);
        STEP(end(queue, &buffer));
        STEP(captured(buffer, 1, &command, &count));
        HOLDS(count >= 1);
    } else {
        const cl_ulong mutable[] = {CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_MUTABLE_KHR, 0};
        cl_uint point = 0;
        MAKE(buffer, create(1, &queue, mutable, &status));
        for (int at = 0; at < longer; at++)
            STEP(fill(buffer, NULL, NULL, a, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL, NULL));
        STEP(fill(buffer, NULL, NULL, a, &three, sizeof three, 0, BYTES, 0, NULL, &point, NULL));
        STEP(launch(buffer, NULL, NULL, scale, 1, NULL, &global, NULL, 1, &point, NULL, &command));
        STEP(barrier(buffer, NULL, NULL, 0, NULL, NULL, NULL));
        STEP(copy(buffer, NULL, NULL, b, c, 0, 0, BYTES, 0, NULL, NULL, NULL));
        STEP(finalize(buffer));
    }
    is(queue, c, 0);
    runs(queue, buffer, c, 15);
    struct dispatch_argument argument = {2, sizeof other, &other};
    struct dispatch_config config = {.command = command, .num_args = 1, .arg_list = &argument};
    const void *configs[] = {&config};
    cl_uint kind = 0;
    STEP(update(buffer, 1, &kind, configs));
    runs(queue, buffer, c, 21);
    STEP(release(buffer));
    clReleaseKernel(scale);
    clReleaseMemObject(c);
    clReleaseMemObject(b);
    clReleaseMemObject(a);
    clReleaseCommandQueue(queue);
}

static void uses(void) {
    switch (use) {
    case 0: one(0, 0, 0); break;
    case 1: one(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0, 0); break;
    case 2: one(CL_QUEUE_PROFILING_ENABLE, 1, 0); break;
    case 3: one(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 1, 0); break;
    default: one(0, 0, 100);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    void *layer = dlopen(argv[1], RTLD_NOW);
    CHECK(layer != NULL);
    *(void **)&layer_function = dlsym(layer, "layer_function");
    *(void **)&layer_calls = dlsym(layer, "layer_calls");
    *(void **)&layer_reset = dlsym(layer, "layer_reset");
    *(void **)&layer_fail = dlsym(layer, "layer_fail");
    *(void **)&layer_has_failed = dlsym(layer, "layer_has_failed");
    *(void **)&layer_live = dlsym(layer, "layer_live");
    CHECK(layer_function && layer_calls && layer_reset && layer_fail && layer_has_failed && layer_live);
    start();
    unsigned step = (unsigned)atoi(argv[2]), chance = 0, places = 0;
    CHECK(step > 0);
    for (use = 0; use < 5; use++) {
        uses(); /* what is made once is made */
        int64_t before[KINDS], after[KINDS];
        for (size_t kind = 0; kind < KINDS; kind++) before[kind] = layer_live(kind);
        layer_reset();
        uses();
        CHECK(layer_calls("clEnqueueNDRangeKernel") > 0);
        static unsigned calls[512];
        size_t functions = 0;
        for (; functions < 512 && layer_function(functions) != NULL; functions++)
            calls[functions] = layer_calls(layer_function(functions));
        for (size_t at = 0; at < functions; at++) {
            failing = layer_function(at);
            for (unsigned skip = 0; skip < calls[at]; skip++) {
                if (chance++ % step != 0) continue;
                layer_reset();
                layer_fail(failing, skip, CL_OUT_OF_HOST_MEMORY);
                uses();
                places++;
                layer_reset();
                for (size_t kind = 0; kind < KINDS; kind++) after[kind] = layer_live(kind);
                for (size_t kind = 0; kind < KINDS; kind++) {
                    if (after[kind] != before[kind]) fprintf(stderr, "kind %zu: %lld, before %lld\n", kind, (long long)after[kind], (long long)before[kind]);
                    HOLDS(after[kind] == before[kind]);
                }
            }
        }
        failing = "nothing";
    }
    printf("%u places, %d steps failed\n", places, failures);
    CHECK(failures > 10);
    CHECK(clReleaseProgram(program) == CL_SUCCESS && clReleaseContext(context) == CL_SUCCESS);
    puts("ok");
    return 0;
}
