/* Fails each call of the driver once, while command buffers and captures are made, run, updated and released: `faults LAYER STEP`. LAYER
 * is the library that fails calls; it is loaded between clgraph's layer and the driver. Of the calls of a function one in STEP is tried.
 *
 * Each step is done again if it failed, and then succeeds: a call that fails has changed nothing. In the end the results are right, and
 * nothing is left over. */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "command_buffers/functions.h"

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

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_program program;
static struct command_buffer_functions f;
/* Whether the device has images, and memory that it shares with the host: PoCL 7.1 does not survive that some is freed early. */
static cl_bool has_images;
static cl_uint *shared;
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
    f = functions_of(platform, 1);
    *(void **)&begin = function("clBeginCaptureCLG");
    *(void **)&end = function("clEndCaptureCLG");
    *(void **)&captured = function("clGetCapturedCommandsCLG");
    CHECK(clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof has_images, &has_images, NULL) == CL_SUCCESS);
    cl_device_svm_capabilities svm = 0;
    CHECK(clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL) == CL_SUCCESS);
    if (svm != 0) shared = clSVMAlloc(context, CL_MEM_READ_WRITE, 2 * BYTES, 0);
    CHECK(svm == 0 || shared != NULL);
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
static void runs(cl_command_queue queue, command_buffer buffer, cl_mem c, cl_uint value) {
    cl_event event = NULL, before = NULL;
    STEP(clEnqueueMarkerWithWaitList(queue, 0, NULL, &before));
    STEP(f.enqueue(0, NULL, buffer, 1, &before, &event));
    STEP(clWaitForEvents(1, &event));
    cl_int type = 0, status = 1;
    STEP(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL));
    STEP(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    HOLDS(status == CL_COMPLETE);
    clReleaseEvent(event);
    clReleaseEvent(before);
    STEP(f.enqueue(0, NULL, buffer, 0, NULL, NULL));
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
    command_buffer buffer = NULL;
    mutable_command command = NULL;
    if (captures) {
        cl_event filled = NULL, scaled = NULL;
        cl_uint count = 0;
        STEP(begin(queue, NULL));
        STEP(clEnqueueFillBuffer(queue, a, &three, sizeof three, 0, BYTES, 0, NULL, &filled));
        STEP(clEnqueueNDRangeKernel(queue, scale, 1, NULL, &global, NULL, 1, &filled, &scaled));
        STEP(clEnqueueCopyBuffer(queue, b, c, 0, 0, BYTES, 1, &scaled, NULL));
        /* What is left of a command whose event could not be made would run, too: the commands can run again. */
        clReleaseEvent(filled);
        STEP(end(queue, (cl_command_buffer_khr *)&buffer));
        /* The end completes it, whatever fails. */
        cl_int done = 1;
        STEP(clGetEventInfo(scaled, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof done, &done, NULL));
        HOLDS(done == CL_COMPLETE);
        clReleaseEvent(scaled);
        STEP(captured((cl_command_buffer_khr)buffer, 1, (cl_mutable_command_khr *)&command, &count));
        HOLDS(count >= 1);
    } else {
        const cl_properties mutable[] = {BUFFER_FLAGS, MUTABLE, 0};
        cl_uint point = 0;
        MAKE(buffer, f.create(1, &queue, mutable, &status));
        for (int at = 0; at < longer; at++)
            STEP(f.fill(buffer, NULL, NULL, a, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL, NULL));
        STEP(f.fill(buffer, NULL, NULL, a, &three, sizeof three, 0, BYTES, 0, NULL, &point, NULL));
        STEP(f.kernel(buffer, NULL, NULL, scale, 1, NULL, &global, NULL, 1, &point, NULL, &command));
        STEP(f.barrier(buffer, NULL, NULL, 0, NULL, NULL, NULL));
        STEP(f.copy(buffer, NULL, NULL, b, c, 0, 0, BYTES, 0, NULL, NULL, NULL));
        STEP(f.finalize(buffer));
    }
    is(queue, c, 0);
    runs(queue, buffer, c, 15);
    struct dispatch_argument argument = {2, sizeof other, &other};
    struct dispatch_config config = {.command = command, .num_args = 1, .arg_list = &argument};
    const void *configs[] = {&config};
    cl_uint kind = 0;
    STEP(f.update(buffer, 1, &kind, configs));
    runs(queue, buffer, c, 21);
    STEP(f.release(buffer));
    clReleaseKernel(scale);
    clReleaseMemObject(c);
    clReleaseMemObject(b);
    clReleaseMemObject(a);
    clReleaseCommandQueue(queue);
}

/* All kinds of copies and fills: 3 goes by a rectangle and two images to `c`, 9 by an image to `b`, and 5 through shared memory. */
static void all_kinds(cl_command_queue_properties bits, int captures) {
    cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, bits, 0};
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = LEN / 8, .image_height = 8};
    const size_t begins[3] = {0}, bytes[3] = {BYTES, 1, 1}, pixels[3] = {LEN / 8, 8, 1};
    const cl_uint zero = 0, three = 3, five = 5, nine[4] = {9, 0, 0, 0};
    cl_command_queue queue;
    cl_mem a, b, c, image = NULL, other = NULL;
    MAKE(queue, clCreateCommandQueueWithProperties(context, device, list, &status));
    MAKE(a, clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &status));
    MAKE(b, clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &status));
    MAKE(c, clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &status));
    if (has_images) MAKE(image, clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &status));
    if (has_images) MAKE(other, clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &status));
    STEP(clEnqueueFillBuffer(queue, b, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL));
    STEP(clEnqueueFillBuffer(queue, c, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL));
    STEP(clFinish(queue));
    command_buffer buffer = NULL;
    if (captures) {
        STEP(begin(queue, NULL));
        STEP(clEnqueueFillBuffer(queue, a, &three, sizeof three, 0, BYTES, 0, NULL, NULL));
        STEP(clEnqueueCopyBufferRect(queue, a, b, begins, begins, bytes, 0, 0, 0, 0, 0, NULL, NULL));
        if (has_images) {
            STEP(clEnqueueCopyBufferToImage(queue, b, image, 0, begins, pixels, 0, NULL, NULL));
            STEP(clEnqueueCopyImage(queue, image, other, begins, begins, pixels, 0, NULL, NULL));
            STEP(clEnqueueCopyImageToBuffer(queue, other, c, begins, pixels, 0, 0, NULL, NULL));
            STEP(clEnqueueFillImage(queue, other, nine, begins, pixels, 0, NULL, NULL));
            STEP(clEnqueueCopyImageToBuffer(queue, other, b, begins, pixels, 0, 0, NULL, NULL));
        }
        if (shared != NULL) {
            STEP(clEnqueueSVMMemFill(queue, shared, &five, sizeof five, BYTES, 0, NULL, NULL));
            STEP(clEnqueueSVMMemcpy(queue, CL_FALSE, shared + LEN, shared, BYTES, 0, NULL, NULL));
        }
        STEP(end(queue, (cl_command_buffer_khr *)&buffer));
    } else {
        MAKE(buffer, f.create(1, &queue, NULL, &status));
        STEP(f.fill(buffer, NULL, NULL, a, &three, sizeof three, 0, BYTES, 0, NULL, NULL, NULL));
        STEP(f.barrier(buffer, NULL, NULL, 0, NULL, NULL, NULL));
        STEP(f.copy_rect(buffer, NULL, NULL, a, b, begins, begins, bytes, 0, 0, 0, 0, 0, NULL, NULL, NULL));
        if (has_images) {
            sync_point points[4] = {0};
            STEP(f.barrier(buffer, NULL, NULL, 0, NULL, NULL, NULL));
            STEP(f.buffer_to_image(buffer, NULL, NULL, b, image, 0, begins, pixels, 0, NULL, &points[0], NULL));
            STEP(f.copy_image(buffer, NULL, NULL, image, other, begins, begins, pixels, 1, &points[0], &points[1], NULL));
            STEP(f.image_to_buffer(buffer, NULL, NULL, other, c, begins, pixels, 0, 1, &points[1], &points[2], NULL));
            STEP(f.fill_image(buffer, NULL, NULL, other, nine, begins, pixels, 1, &points[2], &points[3], NULL));
            STEP(f.image_to_buffer(buffer, NULL, NULL, other, b, begins, pixels, 0, 1, &points[3], NULL, NULL));
        }
        if (shared != NULL) {
            sync_point filled = 0;
            STEP(f.svm_fill(buffer, NULL, NULL, shared, &five, sizeof five, BYTES, 0, NULL, &filled, NULL));
            STEP(f.svm_copy(buffer, NULL, NULL, shared + LEN, shared, BYTES, 1, &filled, NULL, NULL));
        }
        STEP(f.finalize(buffer));
    }
    is(queue, c, 0);
    for (int turn = 0; turn < 2; turn++) {
        if (f.enqueue(0, NULL, buffer, 0, NULL, NULL) != CL_SUCCESS) {
            failures++;
            HOLDS((layer_has_failed() & 1) != 0);
            /* The commands before the failed one run, and must not run beside those of the next time. */
            STEP(clFinish(queue));
            STEP(f.enqueue(0, NULL, buffer, 0, NULL, NULL));
        }
        STEP(clFinish(queue));
        is(queue, b, has_images ? 9 : 3);
        is(queue, c, has_images ? 3 : 0);
        if (shared != NULL) {
            cl_uint back[LEN];
            STEP(clEnqueueSVMMemcpy(queue, CL_TRUE, back, shared + LEN, BYTES, 0, NULL, NULL));
            for (int i = 0; i < LEN; i++) HOLDS(back[i] == 5);
                        STEP(clEnqueueSVMMemFill(queue, shared, &zero, sizeof zero, 2 * BYTES, 0, NULL, NULL));
            STEP(clFinish(queue));
        }
    }
    STEP(f.release(buffer));
    if (has_images) clReleaseMemObject(other);
    if (has_images) clReleaseMemObject(image);
    clReleaseMemObject(c);
    clReleaseMemObject(b);
    clReleaseMemObject(a);
    clReleaseCommandQueue(queue);
}

enum { USES = 8 };

static void uses(void) {
    switch (use) {
    case 5: all_kinds(0, 0); break;
    case 6: all_kinds(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0); break;
    case 7: all_kinds(0, 1); break;
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
    for (use = 0; use < USES; use++) {
        uses(); /* what is made once is made */
        int64_t before[KINDS], after[KINDS];
        for (size_t kind = 0; kind < KINDS; kind++) before[kind] = layer_live(kind);
        layer_reset();
        uses();
        CHECK(layer_calls(use < 5 ? "clEnqueueNDRangeKernel" : "clEnqueueCopyBufferRect") > 0);
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
