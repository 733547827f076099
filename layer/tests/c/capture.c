/* Captures a queue: `capture USE` prints what it computes, or `ok`. Only runs with the layer. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "update.h"

#define OK(call)                                                                         \
    do {                                                                                 \
        cl_int status_ = (call);                                                         \
        if (status_ != CL_SUCCESS) {                                                     \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, (int)status_); \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

enum { LEN = 256, BYTES = LEN * sizeof(cl_uint) };

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_program program;
static clBeginCaptureCLG_fn begin;
static clEndCaptureCLG_fn end;
static clGetCaptureInfoCLG_fn info;
static clGetCapturedCommandsCLG_fn captured;
static enqueue_function enqueue;
static buffer_function release;
static update_function update;

static const char *SOURCE =
    "kernel void scale(global uint *a, uint by) { a[get_global_id(0)] *= by; }\n"
    "kernel void add(global const uint *a, global uint *to) { to[get_global_id(0)] += a[get_global_id(0)]; }\n";

static void *function(const char *name) {
    void *function = clGetExtensionFunctionAddressForPlatform(platform, name);
    CHECK(function != NULL);
    return function;
}

static void start(void) {
    cl_int status;
    OK(clGetPlatformIDs(1, &platform, NULL));
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    OK(status);
    program = clCreateProgramWithSource(context, 1, &SOURCE, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    *(void **)&begin = function("clBeginCaptureCLG");
    *(void **)&end = function("clEndCaptureCLG");
    *(void **)&info = function("clGetCaptureInfoCLG");
    *(void **)&captured = function("clGetCapturedCommandsCLG");
    *(void **)&enqueue = function("clEnqueueCommandBufferKHR");
    *(void **)&release = function("clReleaseCommandBufferKHR");
    *(void **)&update = function("clUpdateMutableCommandsKHR");
}

static cl_command_queue new_queue(cl_command_queue_properties bits) {
    cl_int status;
    cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, bits, 0};
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, list, &status);
    OK(status);
    return queue;
}

static cl_mem new_buffer(void) {
    cl_int status;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &status);
    OK(status);
    return buffer;
}

static cl_kernel new_kernel(const char *name) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, name, &status);
    OK(status);
    return kernel;
}

static cl_uint status_of(cl_command_queue queue) {
    cl_uint status = 99;
    size_t size = 0;
    OK(info(queue, CL_CAPTURE_STATUS_CLG, sizeof status, &status, &size));
    CHECK(size == sizeof status);
    return status;
}

static cl_uint count_of(cl_command_queue queue) {
    cl_uint count = 99;
    OK(info(queue, CL_CAPTURE_COMMAND_COUNT_CLG, sizeof count, &count, NULL));
    return count;
}

static const char *fault_of(cl_command_queue queue) {
    static char name[100];
    OK(info(queue, CL_CAPTURE_FAULT_CLG, sizeof name, name, NULL));
    return name;
}

/* Ends a capture that went well. */
static cl_command_buffer_khr ended(cl_command_queue queue) {
    CHECK(status_of(queue) == CL_CAPTURE_ACTIVE_CLG);
    cl_command_buffer_khr buffer = NULL;
    OK(end(queue, &buffer));
    CHECK(buffer != NULL && status_of(queue) == CL_CAPTURE_NONE_CLG);
    return buffer;
}

/* Ends one that a call has spoilt. */
static void spoilt(cl_command_queue queue, const char *call) {
    CHECK(status_of(queue) == CL_CAPTURE_INVALID_CLG);
    CHECK(strcmp(fault_of(queue), call) == 0);
    CHECK(clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL) == CL_INVALID_OPERATION);
    cl_command_buffer_khr buffer = (cl_command_buffer_khr)&queue;
    CHECK(end(queue, &buffer) == CL_INVALID_OPERATION && buffer == NULL);
    CHECK(status_of(queue) == CL_CAPTURE_NONE_CLG && strcmp(fault_of(queue), "") == 0);
    OK(clFinish(queue));
}

static void is(cl_command_queue queue, cl_mem buffer, cl_uint (*value)(cl_uint), int line) {
    cl_uint values[LEN];
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    for (cl_uint i = 0; i < LEN; i++)
        if (values[i] != value(i)) {
            fprintf(stderr, "line %d: %u is %u\n", line, i, values[i]);
            exit(1);
        }
}
#define IS(queue, buffer, value) is(queue, buffer, value, __LINE__)

static cl_uint nothing(cl_uint i) { return 0 * i; }
static cl_uint first_run(cl_uint i) { return 2 * (i + 3) + 5; }
static cl_uint third_run(cl_uint i) { return 3 * first_run(i); }
static cl_uint updated(cl_uint i) { return 7 * (i + 3) + 5; }

/* to = by * (write + 3) + 5, and the sum of all runs. What is given is changed and freed at once, as libraries do. */
static void calls(cl_command_queue queue, int in_order, cl_mem to, cl_mem sum, cl_uint *read) {
    cl_event events[6];
    cl_kernel scale = new_kernel("scale"), add = new_kernel("add");
    cl_mem three = new_buffer(), five = new_buffer();
    size_t global = LEN;
    cl_uint by = 2, number = 3;
    cl_uint *written = malloc(BYTES);
    for (cl_uint i = 0; i < LEN; i++) written[i] = i;
    OK(clEnqueueWriteBuffer(queue, to, CL_FALSE, 0, BYTES, written, 0, NULL, &events[0]));
    memset(written, 0xFF, BYTES);
    free(written);
    OK(clEnqueueFillBuffer(queue, three, &number, sizeof number, 0, BYTES, 0, NULL, &events[1]));
    number = 5;
    OK(clEnqueueFillBuffer(queue, five, &number, sizeof number, 0, BYTES, 0, NULL, &events[2]));
    OK(clSetKernelArg(add, 0, sizeof three, &three));
    OK(clSetKernelArg(add, 1, sizeof to, &to));
    OK(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, in_order ? 0 : 2, in_order ? NULL : events, &events[3]));
    OK(clSetKernelArg(scale, 0, sizeof to, &to));
    OK(clSetKernelArg(scale, 1, sizeof by, &by));
    OK(clEnqueueNDRangeKernel(queue, scale, 1, NULL, &global, NULL, 1, &events[3], &events[4]));
    by = 1000;
    OK(clSetKernelArg(scale, 1, sizeof by, &by));
    OK(clReleaseKernel(scale));
    OK(clSetKernelArg(add, 0, sizeof five, &five));
    if (!in_order) OK(clEnqueueMarkerWithWaitList(queue, 2, (cl_event[]){events[2], events[4]}, &events[5]));
    OK(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, in_order ? 0 : 1, in_order ? NULL : &events[5], NULL));
    if (!in_order) OK(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
    OK(clSetKernelArg(add, 0, sizeof to, &to));
    OK(clSetKernelArg(add, 1, sizeof sum, &sum));
    OK(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, to, CL_FALSE, 0, BYTES, read, 0, NULL, NULL));
    OK(clFlush(queue));
    OK(clReleaseKernel(add));
    OK(clReleaseMemObject(five));
    OK(clReleaseMemObject(three));
    for (int i = 0; i < (in_order ? 5 : 6); i++) OK(clReleaseEvent(events[i]));
}

static void runs(cl_command_queue_properties bits) {
    cl_command_queue queue = new_queue(bits);
    cl_mem to = new_buffer(), sum = new_buffer();
    cl_uint zero = 0, read[LEN] = {0};
    OK(clEnqueueFillBuffer(queue, to, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL));
    OK(clEnqueueFillBuffer(queue, sum, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL));
    OK(clFinish(queue));
    OK(begin(queue, NULL));
    calls(queue, bits == 0, to, sum, read);
    CHECK(count_of(queue) == (bits == 0 ? 8 : 10));
    cl_command_buffer_khr buffer = ended(queue);
    /* Nothing has run. */
    IS(queue, to, nothing);
    IS(queue, sum, nothing);
    OK(enqueue(0, NULL, buffer, 0, NULL, NULL));
    OK(clFinish(queue));
    IS(queue, to, first_run);
    for (cl_uint i = 0; i < LEN; i++) CHECK(read[i] == first_run(i));
    for (int i = 0; i < 2; i++) {
        cl_event event;
        OK(enqueue(0, NULL, buffer, 0, NULL, &event));
        OK(clWaitForEvents(1, &event));
        OK(clReleaseEvent(event));
    }
    IS(queue, sum, third_run);
    /* The second kernel scales. */
    cl_uint count = 0, kind = 0, by = 7;
    cl_mutable_command_khr commands[4] = {NULL};
    OK(captured(buffer, 0, NULL, &count));
    CHECK(count == 4);
    OK(captured(buffer, 2, commands, &count));
    CHECK(count == 4 && commands[1] != NULL && commands[2] == NULL);
    struct dispatch_argument argument = {1, sizeof by, &by};
    struct dispatch_config config = {.command = commands[1], .num_args = 1, .arg_list = &argument};
    const void *configs[] = {&config};
    OK(update(buffer, 1, &kind, configs));
    OK(enqueue(0, NULL, buffer, 0, NULL, NULL));
    OK(clFinish(queue));
    IS(queue, to, updated);
    OK(release(buffer));
    CHECK(release(buffer) == CL_INVALID_COMMAND_BUFFER_KHR);
    OK(clReleaseMemObject(sum));
    OK(clReleaseMemObject(to));
    OK(clReleaseCommandQueue(queue));
}

/* What writes and reads rectangles, images and addresses does the same as it does at once. */
static void transfers(void) {
    cl_command_queue queue = new_queue(0);
    cl_uint zero = 0;
    cl_bool has_images = CL_FALSE;
    OK(clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof has_images, &has_images, NULL));
    cl_device_svm_capabilities svm = 0;
    OK(clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL));
    cl_uchar host[512], back[2][3][512];
    memset(back, 0, sizeof back);
    for (int run = 0; run < 2; run++) {
        cl_mem buffer = new_buffer(), image = NULL;
        cl_int status;
        if (has_images) {
            cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
            cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
            image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &status);
            OK(status);
        }
        cl_uchar *shared = svm ? clSVMAlloc(context, CL_MEM_READ_WRITE, 512, 0) : NULL;
        OK(clEnqueueFillBuffer(queue, buffer, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL));
        OK(clFinish(queue));
        for (int i = 0; i < 512; i++) host[i] = (cl_uchar)(i * 7 + 1);
        if (run == 1) OK(begin(queue, NULL));
        size_t at[] = {4, 2, 1}, from[] = {3, 1, 0}, region[] = {9, 3, 2};
        OK(clEnqueueWriteBufferRect(queue, buffer, CL_FALSE, at, from, region, 32, 256, 20, 120, host, 0, NULL, NULL));
        OK(clEnqueueReadBufferRect(queue, buffer, CL_FALSE, at, from, region, 32, 256, 24, 0, back[run][0], 0, NULL, NULL));
        if (image != NULL) {
            cl_uint colour[4] = {9, 8, 7, 6};
            size_t origin[] = {1, 2, 0}, all[] = {8, 8, 1}, none[] = {0, 0, 0}, part[] = {3, 4, 1};
            OK(clEnqueueFillImage(queue, image, colour, none, all, 0, NULL, NULL));
            OK(clEnqueueWriteImage(queue, image, CL_FALSE, origin, part, 16, 0, host, 0, NULL, NULL));
            OK(clEnqueueReadImage(queue, image, CL_FALSE, none, all, 40, 0, back[run][1], 0, NULL, NULL));
        }
        if (shared != NULL) {
            OK(clEnqueueSVMMemFill(queue, shared, &host[5], 1, 512, 0, NULL, NULL));
            OK(clEnqueueSVMMemcpy(queue, CL_FALSE, shared + 8, shared + 100, 50, 0, NULL, NULL));
        }
        OK(clEnqueueMigrateMemObjects(queue, 1, &buffer, 0, 0, NULL, NULL));
        if (run == 0) OK(clFinish(queue));
        memset(host, 0xEE, sizeof host);
        if (run == 1) {
            cl_command_buffer_khr commands = ended(queue);
            for (int i = 0; i < 512; i++) CHECK(back[1][0][i] == 0 && back[1][1][i] == 0);
            OK(enqueue(0, NULL, commands, 0, NULL, NULL));
            OK(clFinish(queue));
            OK(release(commands));
        }
        OK(clFinish(queue));
        if (shared != NULL) {
            OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, shared, 512, 0, NULL, NULL));
            memcpy(back[run][2], shared, 512);
            OK(clEnqueueSVMUnmap(queue, shared, 0, NULL, NULL));
            OK(clFinish(queue));
            clSVMFree(context, shared);
        }
        if (image != NULL) OK(clReleaseMemObject(image));
        OK(clReleaseMemObject(buffer));
        CHECK(back[run][0][24 + 3] != 0);
    }
    CHECK(memcmp(back[0], back[1], sizeof back[0]) == 0);
    OK(clReleaseCommandQueue(queue));
}

/* The layers of arrays: drivers go from one layer of a 1D array to the next by the pitch of rows. */
static void arrays(void) {
    cl_command_queue queue = new_queue(0);
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    for (int flat = 0; flat < 2; flat++) {
        cl_image_desc desc = {
            .image_type = flat ? CL_MEM_OBJECT_IMAGE2D_ARRAY : CL_MEM_OBJECT_IMAGE1D_ARRAY, .image_width = 5, .image_height = flat ? 2 : 0,
            .image_array_size = 3};
        cl_uchar host[512], back[2][512];
        memset(back, 0, sizeof back);
        for (int run = 0; run < 2; run++) {
            cl_int status;
            cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &status);
            if (status == CL_INVALID_OPERATION || status == CL_IMAGE_FORMAT_NOT_SUPPORTED || status == CL_INVALID_VALUE) {
                printf("no arrays of images\n");
                break;
            }
            OK(status);
            for (int i = 0; i < 512; i++) host[i] = (cl_uchar)(i * 7 + 1);
            size_t none[] = {0, 0, 0}, all[] = {5, flat ? 2 : 3, flat ? 3 : 1}, slice = flat ? 60 : 28;
            if (run == 1) OK(begin(queue, NULL));
            OK(clEnqueueWriteImage(queue, image, CL_FALSE, none, all, 20 + 4 * flat, slice, host, 0, NULL, NULL));
            OK(clEnqueueReadImage(queue, image, CL_FALSE, none, all, 0, 0, back[run], 0, NULL, NULL));
            if (run == 1) {
                cl_command_buffer_khr commands = ended(queue);
                memset(host, 0xEE, sizeof host);
                OK(enqueue(0, NULL, commands, 0, NULL, NULL));
                OK(clFinish(queue));
                OK(release(commands));
            }
            OK(clFinish(queue));
            OK(clReleaseMemObject(image));
            CHECK(back[run][59] != 0);
        }
        CHECK(memcmp(back[0], back[1], sizeof back[0]) == 0);
    }
    OK(clReleaseCommandQueue(queue));
}

static void *ends_elsewhere(void *given) {
    return ended(given);
}

/* A capture is of a queue, and not of a thread: another thread may end it. Another queue may not. */
static void other_threads(void) {
    cl_command_queue queue = new_queue(0), other = new_queue(0);
    cl_mem memory = new_buffer();
    cl_uint seven = 7, values[LEN];
    OK(begin(queue, NULL));
    OK(clEnqueueFillBuffer(queue, memory, &seven, sizeof seven, 0, BYTES, 0, NULL, NULL));
    cl_command_buffer_khr none = NULL;
    CHECK(end(other, &none) == CL_INVALID_OPERATION && none == NULL);
    pthread_t thread;
    void *commands = NULL;
    CHECK(pthread_create(&thread, NULL, ends_elsewhere, queue) == 0);
    CHECK(pthread_join(thread, &commands) == 0);
    CHECK(end(queue, &none) == CL_INVALID_OPERATION && none == NULL);
    OK(enqueue(0, NULL, commands, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    CHECK(values[0] == 7 && values[LEN - 1] == 7);
    OK(release(commands));
    OK(clReleaseMemObject(memory));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseCommandQueue(other));
}

static void CL_CALLBACK counts(cl_event event, cl_int status, void *data) {
    CHECK(event != NULL && status == CL_COMPLETE);
    __atomic_add_fetch((int *)data, 1, __ATOMIC_SEQ_CST);
}

static void wrong(void) {
    cl_command_queue queue = new_queue(0), other = new_queue(0);
    cl_mem memory = new_buffer();
    cl_kernel scale = new_kernel("scale");
    cl_uint zero = 0, values[LEN], by = 1;
    size_t global = LEN;
    cl_int status;
    cl_command_buffer_khr buffer;
    OK(clSetKernelArg(scale, 0, sizeof memory, &memory));
    OK(clSetKernelArg(scale, 1, sizeof by, &by));

    /* Begin and end. */
    cl_ulong unknown[] = {1, 1, 0}, twice[] = {CL_CAPTURE_MODE_CLG, 0, CL_CAPTURE_MODE_CLG, 0, 0};
    cl_ulong mode[] = {CL_CAPTURE_MODE_CLG, 2, 0}, relaxed[] = {CL_CAPTURE_MODE_CLG, CL_CAPTURE_RELAXED_CLG, 0};
    CHECK(begin(NULL, NULL) == CL_INVALID_COMMAND_QUEUE);
    CHECK(begin(queue, unknown) == CL_INVALID_VALUE && begin(queue, twice) == CL_INVALID_VALUE);
    CHECK(begin(queue, mode) == CL_INVALID_VALUE);
    CHECK(end(queue, &buffer) == CL_INVALID_OPERATION && end(queue, NULL) == CL_INVALID_VALUE);
    CHECK(status_of(queue) == CL_CAPTURE_NONE_CLG && count_of(queue) == 0);
    CHECK(info(NULL, CL_CAPTURE_STATUS_CLG, 0, NULL, NULL) == CL_INVALID_COMMAND_QUEUE);
    CHECK(info(queue, 0, 0, NULL, NULL) == CL_INVALID_VALUE);
    CHECK(info(queue, CL_CAPTURE_STATUS_CLG, 3, values, NULL) == CL_INVALID_VALUE);
    OK(begin(queue, NULL));
    CHECK(begin(queue, NULL) == CL_INVALID_OPERATION && begin(queue, relaxed) == CL_INVALID_OPERATION);
    CHECK(end(other, &buffer) == CL_INVALID_OPERATION);
    /* Another queue is not concerned. */
    OK(clEnqueueFillBuffer(other, memory, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL));
    OK(clFinish(other));
    /* Two at once. */
    OK(begin(other, NULL));
    OK(clEnqueueMarkerWithWaitList(other, 0, NULL, NULL));
    OK(release(ended(other)));
    buffer = ended(queue);
    CHECK(captured(NULL, 0, NULL, &by) == CL_INVALID_COMMAND_BUFFER_KHR);
    CHECK(captured(buffer, 0, NULL, NULL) == CL_INVALID_VALUE);
    CHECK(captured(buffer, 1, NULL, &by) == CL_INVALID_VALUE);
    OK(captured(buffer, 0, NULL, &by));
    CHECK(by == 0);
    OK(enqueue(0, NULL, buffer, 0, NULL, NULL));
    OK(clFinish(queue));

    /* Calls that are wrong themselves leave the capture as it is. */
    cl_event event = NULL;
    OK(begin(queue, NULL));
    CHECK(clEnqueueFillBuffer(queue, memory, &zero, 3, 0, BYTES, 0, NULL, &event) == CL_INVALID_VALUE);
    CHECK(clEnqueueFillBuffer(queue, NULL, &zero, 4, 0, BYTES, 0, NULL, &event) == CL_INVALID_MEM_OBJECT);
    CHECK(clEnqueueNDRangeKernel(queue, scale, 4, NULL, &global, NULL, 0, NULL, &event) == CL_INVALID_WORK_DIMENSION);
    CHECK(clEnqueueMarkerWithWaitList(queue, 1, NULL, &event) == CL_INVALID_EVENT_WAIT_LIST);
    CHECK(clEnqueueMigrateMemObjects(queue, 0, NULL, 0, 0, NULL, &event) == CL_INVALID_VALUE);
    CHECK(clEnqueueMigrateMemObjects(queue, 1, &(cl_mem){NULL}, 0, 0, NULL, &event) == CL_INVALID_MEM_OBJECT);
    CHECK(clEnqueueMigrateMemObjects(queue, 1, &memory, 1 << 10, 0, NULL, &event) == CL_INVALID_VALUE);
    CHECK(event == NULL && count_of(queue) == 0);
    cl_kernel without = new_kernel("scale");
    CHECK(clEnqueueNDRangeKernel(queue, without, 1, NULL, &global, NULL, 0, NULL, NULL) == CL_INVALID_KERNEL_ARGS);
    OK(clReleaseKernel(without));
    OK(release(ended(queue)));

    /* Calls that spoil it. */
#define SPOILS(name, call, status)              \
    do {                                        \
        OK(begin(queue, NULL));                 \
        CHECK((call) == (status));              \
        spoilt(queue, name);                    \
    } while (0)
    const cl_int no = CL_INVALID_OPERATION;
    SPOILS("clFinish", clFinish(queue), no);
    SPOILS("clEnqueueReadBuffer", clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, 4, values, 0, NULL, NULL), no);
    SPOILS("clEnqueueWriteBuffer", clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, 4, values, 0, NULL, NULL), no);
    status = 1;
    SPOILS("clEnqueueMapBuffer",
           clEnqueueMapBuffer(queue, memory, CL_FALSE, CL_MAP_READ, 0, 4, 0, NULL, NULL, &status) == NULL ? status : 0, no);
    SPOILS("clEnqueueNativeKernel", clEnqueueNativeKernel(queue, NULL, NULL, 0, 0, NULL, NULL, 0, NULL, NULL), no);
    SPOILS("clEnqueueUnmapMemObject", clEnqueueUnmapMemObject(queue, memory, values, 0, NULL, NULL), no);
    size_t none[3] = {0}, bytes[3] = {4, 1, 1};
    SPOILS("clEnqueueReadBufferRect",
           clEnqueueReadBufferRect(queue, memory, CL_TRUE, none, none, bytes, 0, 0, 0, 0, values, 0, NULL, NULL), no);
    SPOILS("clEnqueueWriteBufferRect",
           clEnqueueWriteBufferRect(queue, memory, CL_TRUE, none, none, bytes, 0, 0, 0, 0, values, 0, NULL, NULL), no);
    void *addresses[1] = {values};
    SPOILS("clEnqueueSVMMemcpy", clEnqueueSVMMemcpy(queue, CL_TRUE, values, values + 1, 4, 0, NULL, NULL), no);
    SPOILS("clEnqueueSVMMap", clEnqueueSVMMap(queue, CL_FALSE, CL_MAP_READ, values, 4, 0, NULL, NULL), no);
    SPOILS("clEnqueueSVMUnmap", clEnqueueSVMUnmap(queue, values, 0, NULL, NULL), no);
    SPOILS("clEnqueueSVMFree", clEnqueueSVMFree(queue, 1, addresses, NULL, NULL, 0, NULL, NULL), no);
    SPOILS("clEnqueueCommandBufferKHR", enqueue(0, NULL, buffer, 0, NULL, NULL), no);
    cl_event ordinary;
    OK(clEnqueueMarkerWithWaitList(other, 0, NULL, &ordinary));
    OK(clFinish(other));
    SPOILS("clEnqueueMarkerWithWaitList", clEnqueueMarkerWithWaitList(queue, 1, &ordinary, NULL), CL_INVALID_EVENT_WAIT_LIST);
    OK(clReleaseEvent(ordinary));
    OK(release(buffer));

    /* Captured events. */
    int called = 0;
    cl_int over = 1;
    OK(begin(queue, NULL));
    OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
    OK(clSetEventCallback(event, CL_COMPLETE, counts, &called));
    CHECK(clSetUserEventStatus(event, CL_COMPLETE) == CL_INVALID_EVENT);
    CHECK(__atomic_load_n(&called, __ATOMIC_SEQ_CST) == 0);
    CHECK(clEnqueueMarkerWithWaitList(other, 1, &event, NULL) == CL_INVALID_EVENT_WAIT_LIST);
    spoilt(queue, "clEnqueueMarkerWithWaitList");
    /* It is complete whatever became of the capture. */
    OK(clWaitForEvents(1, &event));
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof over, &over, NULL));
    CHECK(over == CL_COMPLETE);
    while (__atomic_load_n(&called, __ATOMIC_SEQ_CST) == 0) {}
    OK(clReleaseEvent(event));
    OK(begin(queue, NULL));
    OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
    CHECK(clWaitForEvents(1, &event) == CL_INVALID_OPERATION);
    spoilt(queue, "clWaitForEvents");
    OK(clReleaseEvent(event));
    OK(begin(queue, NULL));
    OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
    CHECK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof over, &over, NULL) == CL_INVALID_OPERATION);
    spoilt(queue, "clGetEventInfo");
    OK(clReleaseEvent(event));

    /* Relaxed: waits return at once. */
    cl_event done;
    OK(clEnqueueMarkerWithWaitList(other, 0, NULL, &done));
    OK(begin(queue, relaxed));
    OK(clEnqueueNDRangeKernel(queue, scale, 1, NULL, &global, NULL, 0, NULL, &event));
    OK(clFinish(queue));
    OK(clWaitForEvents(1, &event));
    OK(clWaitForEvents(2, (cl_event[]){event, done}));
    over = 1;
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof over, &over, NULL));
    CHECK(over == CL_COMPLETE);
    CHECK(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, 4, values, 0, NULL, NULL) == CL_INVALID_OPERATION);
    spoilt(queue, "clEnqueueReadBuffer");
    OK(clReleaseEvent(done));
    OK(clReleaseEvent(event));

    /* The queue is kept as long as it is captured, and the command buffer keeps it. */
    OK(begin(queue, NULL));
    OK(clEnqueueNDRangeKernel(queue, scale, 1, NULL, &global, NULL, 0, NULL, NULL));
    OK(clReleaseCommandQueue(queue));
    buffer = ended(queue);
    OK(enqueue(0, NULL, buffer, 0, NULL, &event));
    OK(clWaitForEvents(1, &event));
    OK(clReleaseEvent(event));
    OK(release(buffer));
    OK(clReleaseKernel(scale));
    OK(clReleaseMemObject(memory));
    OK(clReleaseCommandQueue(other));
}

/* A number that is what a memory object's handle was. */
static void numbers(void) {
    cl_command_queue queue = new_queue(0);
    cl_int status;
    const char *source = "kernel void first(global uint *a) { a[0] += 1; }\n"
                         "kernel void second(ulong number, global ulong *to) { to[0] = number; }\n";
    cl_program both = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    OK(status);
    OK(clBuildProgram(both, 1, &device, "", NULL, NULL));
    cl_kernel first = clCreateKernel(both, "first", &status);
    OK(status);
    cl_kernel second = clCreateKernel(both, "second", &status);
    OK(status);
    cl_mem gone = new_buffer(), to = new_buffer();
    size_t one = 1;
    OK(clSetKernelArg(first, 0, sizeof gone, &gone));
    OK(begin(queue, NULL));
    OK(clEnqueueNDRangeKernel(queue, first, 1, NULL, &one, NULL, 0, NULL, NULL));
    cl_command_buffer_khr buffer = ended(queue);
    cl_ulong number = (cl_ulong)(uintptr_t)gone, got = 0;
    /* Held twice and released twice, and held by the command buffer to the end. */
    OK(clRetainMemObject(gone));
    OK(clReleaseMemObject(gone));
    OK(clReleaseMemObject(gone));
    OK(enqueue(0, NULL, buffer, 0, NULL, NULL));
    OK(clFinish(queue));
    OK(release(buffer));
    OK(clSetKernelArg(second, 0, sizeof number, &number));
    OK(clSetKernelArg(second, 1, sizeof to, &to));
    OK(begin(queue, NULL));
    OK(clEnqueueNDRangeKernel(queue, second, 1, NULL, &one, NULL, 0, NULL, NULL));
    buffer = ended(queue);
    OK(enqueue(0, NULL, buffer, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof got, &got, 0, NULL, NULL));
    CHECK(got == number);
    OK(release(buffer));
    OK(clReleaseMemObject(to));
    OK(clReleaseKernel(first));
    OK(clReleaseKernel(second));
    OK(clReleaseProgram(both));
    OK(clReleaseCommandQueue(queue));
}

static void other_samplers(cl_sampler *samplers, int count) {
    for (int i = 0; i < count; i++) {
        cl_int status;
        samplers[i] = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &status);
        OK(status);
    }
}

/* A sampler that is released before the capture runs, and a type of the program's that is called like an image's. */
static void samplers(void) {
    cl_bool has_images = CL_FALSE;
    OK(clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof has_images, &has_images, NULL));
    if (!has_images) {
        printf("no images\n");
        return;
    }
    cl_command_queue queue = new_queue(0);
    cl_int status;
    const char *source = "typedef struct { int a, b, c, d; } image_t;\n"
                         "kernel void sample(read_only image2d_t image, sampler_t sampler, image_t four, global float4 *to) {\n"
                         "    to[0] = read_imagef(image, sampler, (float2)(1.25f, -0.75f)) + four.d;\n"
                         "}\n";
    cl_program sampling = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    OK(status);
    OK(clBuildProgram(sampling, 1, &device, "-cl-kernel-arg-info", NULL, NULL));
    cl_kernel kernel = clCreateKernel(sampling, "sample", &status);
    OK(status);
    cl_float pixels[64], got[4], plain[4];
    for (int i = 0; i < 64; i++) pixels[i] = (cl_float)i;
    cl_image_format format = {CL_RGBA, CL_FLOAT};
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4};
    cl_mem image = clCreateImage(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &format, &desc, pixels, &status);
    OK(status);
    cl_mem to = new_buffer();
    cl_int four[4] = {1, 2, 3, 4}, ten[4] = {1, 2, 3, 10};
    size_t one = 1;
    cl_sampler others[32];
    cl_command_buffer_khr buffer = NULL;
    for (int run = 0; run < 2; run++) {
        cl_sampler_properties list[] = {CL_SAMPLER_NORMALIZED_COORDS, CL_TRUE, CL_SAMPLER_ADDRESSING_MODE, CL_ADDRESS_REPEAT,
                                        CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR, 0};
        cl_sampler sampler = clCreateSamplerWithProperties(context, list, &status);
        OK(status);
        OK(clSetKernelArg(kernel, 0, sizeof image, &image));
        OK(clSetKernelArg(kernel, 1, sizeof sampler, &sampler));
        OK(clSetKernelArg(kernel, 2, sizeof four, four));
        OK(clSetKernelArg(kernel, 3, sizeof to, &to));
        if (run == 1) OK(begin(queue, NULL));
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
        if (run == 1) buffer = ended(queue);
        OK(clFinish(queue));
        OK(clReleaseSampler(sampler));
        if (run == 0) OK(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof plain, plain, 0, NULL, NULL));
    }
    other_samplers(others, 32);
    OK(enqueue(0, NULL, buffer, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL));
    CHECK(memcmp(got, plain, sizeof got) == 0);
    cl_mutable_command_khr command = NULL;
    OK(captured(buffer, 1, &command, NULL));
    cl_uint kind = 0;
    struct dispatch_argument argument = {2, sizeof ten, ten};
    struct dispatch_config config = {.command = command, .num_args = 1, .arg_list = &argument};
    const void *configs[] = {&config};
    OK(update(buffer, 1, &kind, configs));
    OK(enqueue(0, NULL, buffer, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL));
    for (int i = 0; i < 4; i++) CHECK(got[i] == plain[i] + 6);
    for (int i = 0; i < 32; i++) OK(clReleaseSampler(others[i]));
    OK(release(buffer));
    OK(clReleaseMemObject(to));
    OK(clReleaseMemObject(image));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(sampling));
    OK(clReleaseCommandQueue(queue));
}

struct enqueues {
    cl_command_queue queue;
    int stop, count;
    cl_event events[20000];
    cl_mem memory;
};

static void *enqueues_always(void *data) {
    struct enqueues *of = data;
    while (!__atomic_load_n(&of->stop, __ATOMIC_SEQ_CST) && of->count < 20000)
        if (clEnqueueMarkerWithWaitList(of->queue, 0, NULL, &of->events[of->count]) == CL_SUCCESS) of->count++;
    return NULL;
}

/* Whatever a thread enqueues while captures begin and end is complete in the end. */
static void ends(void) {
    static struct enqueues of;
    of.queue = new_queue(0);
    pthread_t other;
    CHECK(pthread_create(&other, NULL, enqueues_always, &of) == 0);
    for (int i = 0; i < 300; i++) {
        OK(begin(of.queue, NULL));
        OK(release(ended(of.queue)));
    }
    __atomic_store_n(&of.stop, 1, __ATOMIC_SEQ_CST);
    CHECK(pthread_join(other, NULL) == 0);
    OK(clFinish(of.queue));
    for (int i = 0; i < of.count; i++) {
        OK(clWaitForEvents(1, &of.events[i]));
        OK(clReleaseEvent(of.events[i]));
    }
    OK(clReleaseCommandQueue(of.queue));
}

static void *fills_always(void *data) {
    struct enqueues *of = data;
    cl_uint two = 2;
    while (!__atomic_load_n(&of->stop, __ATOMIC_SEQ_CST)) {
        OK(clEnqueueFillBuffer(of->queue, of->memory, &two, sizeof two, 0, BYTES, 0, NULL, NULL));
        if (++of->count % 64 == 0) OK(clFinish(of->queue));
    }
    return NULL;
}

static cl_uint ones(cl_uint i) { return 1 + 0 * i; }

/* A command buffer is one command of a queue: what another thread enqueues comes before it or after it. */
static void between(void) {
    static struct enqueues of;
    of.queue = new_queue(0);
    of.memory = new_buffer();
    cl_mem to = new_buffer();
    cl_uint one = 1;
    OK(begin(of.queue, NULL));
    OK(clEnqueueFillBuffer(of.queue, of.memory, &one, sizeof one, 0, BYTES, 0, NULL, NULL));
    OK(clEnqueueCopyBuffer(of.queue, of.memory, to, 0, 0, BYTES, 0, NULL, NULL));
    cl_command_buffer_khr buffer = ended(of.queue);
    pthread_t other;
    CHECK(pthread_create(&other, NULL, fills_always, &of) == 0);
    for (int i = 0; i < 500; i++) {
        OK(enqueue(0, NULL, buffer, 0, NULL, NULL));
        IS(of.queue, to, ones);
    }
    __atomic_store_n(&of.stop, 1, __ATOMIC_SEQ_CST);
    CHECK(pthread_join(other, NULL) == 0);
    OK(release(buffer));
    OK(clReleaseMemObject(to));
    OK(clReleaseMemObject(of.memory));
    OK(clReleaseCommandQueue(of.queue));
}

static void *captures(void *data) {
    cl_command_queue queue = new_queue(0);
    cl_mem memory = new_buffer(), sum = new_buffer();
    cl_uint zero = 0, read[LEN];
    (void)data;
    for (int i = 0; i < 50; i++) {
        OK(begin(queue, NULL));
        OK(clEnqueueFillBuffer(queue, sum, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL));
        calls(queue, 1, memory, sum, read);
        cl_command_buffer_khr buffer = ended(queue);
        OK(enqueue(0, NULL, buffer, 0, NULL, NULL));
        OK(release(buffer));
        IS(queue, sum, first_run);
    }
    OK(clReleaseMemObject(sum));
    OK(clReleaseMemObject(memory));
    OK(clReleaseCommandQueue(queue));
    return NULL;
}

static void threads(void) {
    char name[256];
    OK(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL));
    if (strcmp(name, "rusticl") == 0) {
        /* Two queues of one context crash in plain OpenCL, too. */
        printf("no threads: the driver does not survive them without captures\n");
        return;
    }
    pthread_t all[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&all[i], NULL, captures, NULL) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(all[i], NULL) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    start();
    if (strcmp(argv[1], "runs") == 0) {
        runs(0);
        runs(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        runs(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE);
    } else if (strcmp(argv[1], "transfers") == 0) {
        transfers();
        cl_bool has_images = CL_FALSE;
        OK(clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof has_images, &has_images, NULL));
        if (has_images) arrays();
    } else if (strcmp(argv[1], "wrong") == 0) {
        wrong();
    } else if (strcmp(argv[1], "numbers") == 0) {
        numbers();
    } else if (strcmp(argv[1], "samplers") == 0) {
        samplers();
    } else if (strcmp(argv[1], "between") == 0) {
        between();
    } else if (strcmp(argv[1], "ends") == 0) {
        ends();
        other_threads();
    } else if (strcmp(argv[1], "threads") == 0) {
        threads();
    } else {
        CHECK(!"something that there is");
    }
    OK(clReleaseProgram(program));
    OK(clReleaseContext(context));
    printf("ok\n");
    return 0;
}
