/* Captures what CLBlast (https://github.com/CNugteren/CLBlast) and clFFT (https://github.com/clMathLibraries/clFFT) enqueue:
 * `captured_library gemm`, `asum`, `trsm`, `axpy` or `fft`. What runs later gives the bytes of what runs at once. */
#define CL_TARGET_OPENCL_VERSION 300

#include <string.h>

#include "check.h"
#include "update.h"

/* From clblast_c.h. */
enum { ROW_MAJOR = 101, PLAIN = 111, LOWER = 122, NOT_UNIT = 131, LEFT = 141 };
int CLBlastSgemm(int layout, int a_transposed, int b_transposed, size_t m, size_t n, size_t k, float alpha, cl_mem a,
                 size_t a_at, size_t a_row, cl_mem b, size_t b_at, size_t b_row, float beta, cl_mem c, size_t c_at,
                 size_t c_row, cl_command_queue *queue, cl_event *event);
int CLBlastStrsm(int layout, int side, int triangle, int transposed, int diagonal, size_t m, size_t n, float alpha,
                 cl_mem a, size_t a_at, size_t a_row, cl_mem b, size_t b_at, size_t b_row, cl_command_queue *queue,
                 cl_event *event);
int CLBlastSasum(size_t n, cl_mem sum, size_t sum_at, cl_mem x, size_t x_at, size_t x_step, cl_command_queue *queue,
                 cl_event *event);
int CLBlastSaxpy(size_t n, float alpha, cl_mem x, size_t x_at, size_t x_step, cl_mem y, size_t y_at, size_t y_step,
                 cl_command_queue *queue, cl_event *event);

/* From clFFT.h. */
typedef size_t fft;
struct setup {
    cl_uint major, minor, patch;
    cl_ulong flags;
};
int clfftSetup(const struct setup *setup);
int clfftCreateDefaultPlan(fft *plan, cl_context context, int dimensions, const size_t *lengths);
int clfftSetPlanPrecision(fft plan, int precision);
int clfftSetLayout(fft plan, int input, int output);
int clfftSetResultLocation(fft plan, int placeness);
int clfftBakePlan(fft plan, cl_uint count, cl_command_queue *queues, void (*callback)(fft, void *), void *data);
int clfftEnqueueTransform(fft plan, int direction, cl_uint queues_count, cl_command_queue *queues, cl_uint count,
                          const cl_event *list, cl_event *events, cl_mem *input, cl_mem *output, cl_mem room);
int clfftDestroyPlan(fft *plan);
int clfftTeardown(void);
enum { SINGLE = 1, COMPLEX_INTERLEAVED = 1, IN_PLACE = 1, FORWARD = -1, BACKWARD = 1 };

enum { SIZE = 64, COUNT = SIZE * SIZE, ALL = 3 };
typedef float memory_values[ALL][COUNT];

static cl_platform_id platform;
static cl_context context;
static cl_command_queue queue;
static cl_mem memory[ALL];
static memory_values inputs;
static fft transform;

static void *function(const char *name) {
    void *function = clGetExtensionFunctionAddressForPlatform(platform, name);
    CHECK(function != NULL);
    return function;
}

static void operation(const char *name, float number) {
    cl_event event;
    if (strcmp(name, "gemm") == 0) {
        CHECK(CLBlastSgemm(ROW_MAJOR, PLAIN, PLAIN, SIZE, SIZE, SIZE, number, memory[0], 0, SIZE, memory[1], 0, SIZE, 0.5f,
                           memory[2], 0, SIZE, &queue, &event) == 0);
        CHECK(clReleaseEvent(event) == CL_SUCCESS);
        CHECK(CLBlastSgemm(ROW_MAJOR, PLAIN, PLAIN, SIZE, SIZE, SIZE, number, memory[0], 0, SIZE, memory[2], 0, SIZE, 0.0f,
                           memory[1], 0, SIZE, &queue, NULL) == 0);
    } else if (strcmp(name, "asum") == 0) {
        CHECK(CLBlastSasum(COUNT, memory[1], 3, memory[2], 0, 1, &queue, NULL) == 0);
    } else if (strcmp(name, "axpy") == 0) {
        CHECK(CLBlastSaxpy(COUNT, number, memory[0], 0, 1, memory[2], 0, 1, &queue, NULL) == 0);
    } else if (strcmp(name, "trsm") == 0) {
        CHECK(CLBlastStrsm(ROW_MAJOR, LEFT, LOWER, PLAIN, NOT_UNIT, SIZE, SIZE, number, memory[0], 0, SIZE, memory[1], 0, SIZE,
                           &queue, NULL) == 0);
    } else {
        cl_event forward;
        CHECK(clfftEnqueueTransform(transform, FORWARD, 1, &queue, 0, NULL, &forward, &memory[0], NULL, NULL) == 0);
        CHECK(clfftEnqueueTransform(transform, FORWARD, 1, &queue, 1, &forward, NULL, &memory[1], NULL, NULL) == 0);
        CHECK(clReleaseEvent(forward) == CL_SUCCESS);
    }
}

static void reset(void) {
    for (int of = 0; of < ALL; of++)
        CHECK(clEnqueueWriteBuffer(queue, memory[of], CL_TRUE, 0, sizeof inputs[of], inputs[of], 0, NULL, NULL) == CL_SUCCESS);
}

static void read_all(memory_values values) {
    for (int of = 0; of < ALL; of++)
        CHECK(clEnqueueReadBuffer(queue, memory[of], CL_TRUE, 0, sizeof inputs[of], values[of], 0, NULL, NULL) == CL_SUCCESS);
}

static cl_command_buffer_khr captured(const char *name, float number) {
    cl_ulong relaxed[] = {CL_CAPTURE_MODE_CLG, CL_CAPTURE_RELAXED_CLG, 0};
    /* Only the triangular solver waits. */
    cl_ulong *mode = strcmp(name, "trsm") == 0 ? relaxed : NULL;
    clBeginCaptureCLG_fn begin = (clBeginCaptureCLG_fn)function("clBeginCaptureCLG");
    clEndCaptureCLG_fn end = (clEndCaptureCLG_fn)function("clEndCaptureCLG");
    cl_command_buffer_khr buffer = NULL;
    CHECK(begin(queue, mode) == CL_SUCCESS);
    operation(name, number);
    CHECK(end(queue, &buffer) == CL_SUCCESS);
    return buffer;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    cl_device_id device;
    cl_int status;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    CHECK(status == CL_SUCCESS);
    queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
    CHECK(status == CL_SUCCESS);
    for (int of = 0; of < ALL; of++) {
        for (int i = 0; i < COUNT; i++) inputs[of][i] = (float)((i * 7 + of) % 5) + (i % (SIZE + 1) == 0 ? 4 * SIZE : 0);
        memory[of] = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof inputs[of], NULL, &status);
        CHECK(status == CL_SUCCESS);
    }
    int is_fft = strcmp(argv[1], "fft") == 0;
    if (is_fft) {
        struct setup setup = {2, 12, 2, 0};
        size_t lengths[] = {32, 64};
        CHECK(clfftSetup(&setup) == 0 && clfftCreateDefaultPlan(&transform, context, 2, lengths) == 0);
        CHECK(clfftSetPlanPrecision(transform, SINGLE) == 0 && clfftSetResultLocation(transform, IN_PLACE) == 0);
        CHECK(clfftSetLayout(transform, COMPLEX_INTERLEAVED, COMPLEX_INTERLEAVED) == 0);
        CHECK(clfftBakePlan(transform, 1, &queue, NULL, NULL) == 0);
    }

    static memory_values plain, got;
    /* The first time libraries compile. */
    operation(argv[1], 0.25f);
    reset();
    operation(argv[1], 0.25f);
    read_all(plain);
    CHECK(memcmp(plain, inputs, sizeof plain) != 0);

    reset();
    cl_command_buffer_khr buffer = captured(argv[1], 0.25f);
    read_all(got);
    CHECK(memcmp(got, inputs, sizeof got) == 0);
    cl_int (*enqueue)(cl_uint, cl_command_queue *, cl_command_buffer_khr, cl_uint, const cl_event *, cl_event *);
    *(void **)&enqueue = function("clEnqueueCommandBufferKHR");
    for (int i = 0; i < 3; i++) {
        reset();
        CHECK(enqueue(0, NULL, buffer, 0, NULL, NULL) == CL_SUCCESS);
        read_all(got);
        CHECK(memcmp(got, plain, sizeof got) == 0);
    }
    cl_uint count = 0;
    cl_mutable_command_khr commands[200];
    clGetCapturedCommandsCLG_fn all = (clGetCapturedCommandsCLG_fn)function("clGetCapturedCommandsCLG");
    CHECK(all(buffer, 200, commands, &count) == CL_SUCCESS && count > 0);
    printf("%s: %u kernels\n", argv[1], count);

    cl_int (*update)(cl_command_buffer_khr, cl_uint, const cl_uint *, const void **);
    *(void **)&update = function("clUpdateMutableCommandsKHR");
    cl_uint kind = 0;
    struct dispatch_argument argument = {0};
    struct dispatch_config config = {.command = commands[0], .num_args = 1, .arg_list = &argument};
    const void *configs[] = {&config};
    if (strcmp(argv[1], "axpy") == 0) {
        /* XaxpyFastest(n, alpha, x, y) with another alpha. */
        float alpha = 3;
        argument = (struct dispatch_argument){1, sizeof alpha, &alpha};
        reset();
        operation(argv[1], alpha);
        read_all(plain);
        CHECK(update(buffer, 1, &kind, configs) == CL_SUCCESS);
        reset();
        CHECK(enqueue(0, NULL, buffer, 0, NULL, NULL) == CL_SUCCESS);
        read_all(got);
        CHECK(memcmp(got, plain, sizeof got) == 0);
        printf("updated\n");
    } else if (is_fft) {
        /* The first transform with other memory: its kernels are fft_fwd(numbers, from, room) and fft_fwd(numbers, room, to). */
        struct dispatch_argument last = {2, sizeof memory[2], &memory[2]};
        const void *two[] = {&config, &(struct dispatch_config){.command = commands[1], .num_args = 1, .arg_list = &last}};
        cl_uint kinds[] = {0, 0};
        argument = (struct dispatch_argument){1, sizeof memory[2], &memory[2]};
        CHECK(update(buffer, 2, kinds, two) == CL_SUCCESS);
        reset();
        CHECK(enqueue(0, NULL, buffer, 0, NULL, NULL) == CL_SUCCESS);
        read_all(got);
        CHECK(memcmp(got[0], inputs[0], sizeof got[0]) == 0 && memcmp(got[2], inputs[2], sizeof got[2]) != 0);
        reset();
        CHECK(clfftEnqueueTransform(transform, FORWARD, 1, &queue, 0, NULL, NULL, &memory[2], NULL, NULL) == 0);
        read_all(plain);
        CHECK(memcmp(got[2], plain[2], sizeof got[2]) == 0);
        printf("updated\n");
    }
    cl_int (*release)(cl_command_buffer_khr);
    *(void **)&release = function("clReleaseCommandBufferKHR");
    CHECK(release(buffer) == CL_SUCCESS);
    if (is_fft) CHECK(clfftDestroyPlan(&transform) == 0 && clfftTeardown() == 0);
    for (int of = 0; of < ALL; of++) CHECK(clReleaseMemObject(memory[of]) == CL_SUCCESS);
    CHECK(clReleaseCommandQueue(queue) == CL_SUCCESS && clReleaseContext(context) == CL_SUCCESS);
    printf("ok\n");
    return 0;
}
