/* What all uses of command_buffers.c need: checks, one device and its objects, a good command of each kind. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "functions.h"

enum { LEN = 256, BYTES = LEN * sizeof(cl_uint), WIDE = 16, HIGH = 16, THREADS = 4 };

/* Writes no more than it says: a wrong status does not hide the next one. */
static int wrong;

#define TEXT_OF(what) #what
#define TEXT(what) TEXT_OF(what)
#define HERE __FILE__ ":" TEXT(__LINE__)
#define OK(call) must_be(HERE, #call, (call))
#define IS(call, wanted) is_one_of(HERE, #call, (call), (wanted), (wanted))
/* The specification allows both. */
#define EITHER(call, one, other) is_one_of(HERE, #call, (call), (one), (other))
#define SO(condition) ((condition) ? (void)0 : not_so(HERE, #condition))
/* Each number of a buffer, of which `i` is the index. */
#define ALL(memory, wanted)                                              \
    do {                                                                 \
        cl_uint got_[LEN];                                               \
        read_all(memory, got_);                                          \
        for (cl_uint i = 0; i < LEN; i++)                                \
            if (got_[i] != (cl_uint)(wanted)) {                          \
                other_number(HERE, #memory, i, got_[i], (wanted));   \
                break;                                                   \
            }                                                            \
    } while (0)

static void must_be(const char *line, const char *call, cl_int status) {
    if (status == CL_SUCCESS) return;
    printf("%s: %s: %d\n", line, call, status);
    exit(1);
}

static void is_one_of(const char *line, const char *call, cl_int got, cl_int one, cl_int other) {
    if (got == one || got == other) return;
    __atomic_fetch_add(&wrong, 1, __ATOMIC_SEQ_CST);
    if (one == other) printf("%s: %s: %d, not %d\n", line, call, got, one);
    else printf("%s: %s: %d, not %d or %d\n", line, call, got, one, other);
}

static void not_so(const char *line, const char *condition) {
    __atomic_fetch_add(&wrong, 1, __ATOMIC_SEQ_CST);
    printf("%s: not so: %s\n", line, condition);
}

static void other_number(const char *line, const char *memory, cl_uint at, cl_uint got, cl_uint wanted) {
    __atomic_fetch_add(&wrong, 1, __ATOMIC_SEQ_CST);
    printf("%s: %s[%u] is %u, not %u\n", line, memory, at, got, wanted);
}

static const char *SOURCE =
    "kernel void scale(global uint *a, uint by) { a[get_global_id(0)] *= by; }\n"
    "kernel void add(global const uint *a, global uint *to) { to[get_global_id(0)] += a[get_global_id(0)]; }\n"
    "kernel void place(global uint *to, uint with) { to[get_global_id(0)] = with; }\n"
    "kernel void more(global uint *to, uint by) { to[get_global_id(0)] += by; }\n"
    "kernel void groups(global uint *to) { to[get_global_id(0)] = get_local_size(0); }\n"
    "kernel void maybe(global const uint *a, global uint *to) { to[get_global_id(0)] = a ? a[get_global_id(0)] : 7; }\n"
    "kernel void flip(local uint *room, global uint *to) {\n"
    "    uint at = get_local_id(0), size = get_local_size(0);\n"
    "    room[at] = get_global_id(0);\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    to[get_global_id(0)] = room[size - 1 - at];\n"
    "}\n"
    "kernel __attribute__((reqd_work_group_size(16, 1, 1))) void sixteen(global uint *to) { to[get_global_id(0)] = 16; }\n"
    "kernel void count(global uint *to) { atomic_inc(to + get_global_id(0)); }\n";

/* A context with one of each. */
typedef struct {
    cl_context context;
    cl_program program;
    cl_command_queue plain, loose, reader;
    cl_mem a, b, c, image, other_image;
    cl_uint *svm, *other_svm;
    cl_kernel scale;
} world;

static struct command_buffer_functions f;
static cl_platform_id platform;
static cl_device_id device;
static world here, there;
static bool has_images, has_svm, has_loose, has_mutable, has_multi, has_immutable;
static cl_bitfield capabilities, supported, required, fields;
static const size_t length = LEN, sixteen = 16;

static bool lists(const char *name) {
    static char all[65536];
    OK(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof all, all, NULL));
    size_t size = strlen(name);
    for (char *at = all; (at = strstr(at, name)) != NULL; at += size)
        if ((at == all || at[-1] == ' ') && (at[size] == ' ' || at[size] == 0)) return true;
    return false;
}

static cl_bitfield device_bits(cl_uint name) {
    cl_bitfield bits = 0;
    OK(clGetDeviceInfo(device, name, sizeof bits, &bits, NULL));
    return bits;
}

static cl_command_queue new_queue(cl_context context, cl_bitfield properties) {
    cl_int status;
    cl_command_queue queue = clCreateCommandQueue(context, device, properties, &status);
    OK(status);
    return queue;
}

static cl_mem new_memory(cl_context context, size_t size) {
    cl_int status;
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &status);
    OK(status);
    return memory;
}

static cl_mem new_image(cl_context context, cl_channel_type type, size_t wide) {
    cl_image_format format = {CL_RGBA, type};
    cl_image_desc shape = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = wide, .image_height = HIGH};
    cl_int status;
    cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &shape, NULL, &status);
    OK(status);
    return image;
}

static cl_kernel new_kernel(const char *name) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(here.program, name, &status);
    OK(status);
    return kernel;
}

static cl_event new_gate(void) {
    cl_int status;
    cl_event gate = clCreateUserEvent(here.context, &status);
    OK(status);
    return gate;
}

static void set_memory(cl_kernel kernel, cl_uint index, cl_mem memory) {
    OK(clSetKernelArg(kernel, index, sizeof memory, &memory));
}

static void set_number(cl_kernel kernel, cl_uint index, cl_uint number) {
    OK(clSetKernelArg(kernel, index, sizeof number, &number));
}

/* With its first argument a buffer and its second a number. */
static cl_kernel kernel_with(const char *name, cl_mem memory, cl_uint number) {
    cl_kernel kernel = new_kernel(name);
    set_memory(kernel, 0, memory);
    set_number(kernel, 1, number);
    return kernel;
}

static world new_world(void) {
    world it = {0};
    cl_int status;
    it.context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    OK(status);
    it.program = clCreateProgramWithSource(it.context, 1, &SOURCE, NULL, &status);
    OK(status);
    OK(clBuildProgram(it.program, 1, &device, NULL, NULL, NULL));
    it.scale = clCreateKernel(it.program, "scale", &status);
    OK(status);
    it.plain = new_queue(it.context, required);
    it.reader = new_queue(it.context, required);
    if (has_loose) it.loose = new_queue(it.context, required | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    it.a = new_memory(it.context, BYTES);
    it.b = new_memory(it.context, BYTES);
    it.c = new_memory(it.context, BYTES);
    if (has_images) {
        it.image = new_image(it.context, CL_UNSIGNED_INT8, WIDE);
        it.other_image = new_image(it.context, CL_UNSIGNED_INT8, WIDE);
    }
    if (has_svm) {
        CHECK((it.svm = clSVMAlloc(it.context, CL_MEM_READ_WRITE, BYTES, 128)) != NULL);
        CHECK((it.other_svm = clSVMAlloc(it.context, CL_MEM_READ_WRITE, BYTES, 128)) != NULL);
    }
    return it;
}

static void drop_world(world it) {
    if (has_svm) {
        clSVMFree(it.context, it.svm);
        clSVMFree(it.context, it.other_svm);
    }
    if (has_images) {
        OK(clReleaseMemObject(it.image));
        OK(clReleaseMemObject(it.other_image));
    }
    OK(clReleaseMemObject(it.a));
    OK(clReleaseMemObject(it.b));
    OK(clReleaseMemObject(it.c));
    OK(clReleaseKernel(it.scale));
    OK(clReleaseProgram(it.program));
    if (has_loose) OK(clReleaseCommandQueue(it.loose));
    OK(clReleaseCommandQueue(it.plain));
    OK(clReleaseCommandQueue(it.reader));
    OK(clReleaseContext(it.context));
}

static void start(void) {
    OK(clGetPlatformIDs(1, &platform, NULL));
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    CHECK(lists("cl_khr_command_buffer"));
    has_mutable = lists("cl_khr_command_buffer_mutable_dispatch");
    has_multi = lists("cl_khr_command_buffer_multi_device");
    has_immutable = lists("cl_ext_immutable_memory_objects");
    capabilities = device_bits(DEVICE_BUFFER_CAPABILITIES);
    supported = device_bits(DEVICE_SUPPORTED_QUEUE_PROPERTIES);
    required = device_bits(DEVICE_REQUIRED_QUEUE_PROPERTIES);
    fields = has_mutable ? device_bits(DEVICE_MUTABLE_CAPABILITIES) : 0;
    f = functions_of(platform, has_mutable);
    cl_bool images = CL_FALSE;
    OK(clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof images, &images, NULL));
    cl_bitfield svm = 0;
    has_images = images;
    has_svm = clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL) == CL_SUCCESS && svm != 0;
    has_loose = device_bits(CL_DEVICE_QUEUE_ON_HOST_PROPERTIES) & supported & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    if (!has_images) printf("no images\n");
    if (!has_svm) printf("no SVM\n");
    if (!has_loose) printf("no out-of-order queues\n");
    if (!has_mutable) printf("no mutable dispatch\n");
    here = new_world();
}

static void read_all(cl_mem memory, cl_uint *into) {
    OK(clEnqueueReadBuffer(here.reader, memory, CL_TRUE, 0, BYTES, into, 0, NULL, NULL));
}

static void fill_now(cl_mem memory, cl_uint with) {
    OK(clEnqueueFillBuffer(here.reader, memory, &with, sizeof with, 0, BYTES, 0, NULL, NULL));
    OK(clFinish(here.reader));
}

/* Numbers that are all different: from + index. */
static void number_now(cl_mem memory, cl_uint from) {
    cl_uint numbers[LEN];
    for (cl_uint i = 0; i < LEN; i++) numbers[i] = from + i;
    OK(clEnqueueWriteBuffer(here.reader, memory, CL_TRUE, 0, BYTES, numbers, 0, NULL, NULL));
}

static void fill_svm_now(cl_uint *memory, cl_uint with) {
    OK(clEnqueueSVMMemFill(here.reader, memory, &with, sizeof with, BYTES, 0, NULL, NULL));
    OK(clFinish(here.reader));
}

static bool svm_is(cl_uint *memory, cl_uint with) {
    OK(clEnqueueSVMMap(here.reader, CL_TRUE, CL_MAP_READ, memory, BYTES, 0, NULL, NULL));
    bool same = true;
    for (int i = 0; i < LEN; i++) same &= memory[i] == with;
    OK(clEnqueueSVMUnmap(here.reader, memory, 0, NULL, NULL));
    OK(clFinish(here.reader));
    return same;
}

static const size_t zeros[3] = {0, 0, 0}, whole_image[3] = {WIDE, HIGH, 1};

static void fill_image_now(cl_mem image, cl_uint with) {
    cl_uint colour[4] = {with, with, with, with};
    OK(clEnqueueFillImage(here.reader, image, colour, zeros, whole_image, 0, NULL, NULL));
    OK(clFinish(here.reader));
}

static void read_image(cl_mem image, cl_uchar (*into)[4]) {
    OK(clEnqueueReadImage(here.reader, image, CL_TRUE, zeros, whole_image, 0, 0, into, 0, NULL, NULL));
}

static bool image_is(cl_mem image, cl_uint with) {
    cl_uchar pixels[WIDE * HIGH][4];
    read_image(image, pixels);
    bool same = true;
    for (int i = 0; i < WIDE * HIGH; i++)
        for (int k = 0; k < 4; k++) same &= pixels[i][k] == with;
    return same;
}

static command_buffer new_buffer(cl_command_queue queue, cl_bitfield flags) {
    cl_properties properties[] = {BUFFER_FLAGS, flags, 0};
    cl_int status = 1;
    command_buffer buffer = f.create(1, &queue, properties, &status);
    OK(status);
    CHECK(buffer != NULL);
    memset(properties, 0xAA, sizeof properties);
    return buffer;
}

static void run_on(cl_command_queue queue, command_buffer buffer) {
    cl_event event = NULL;
    OK(f.enqueue(1, &queue, buffer, 0, NULL, &event));
    OK(clWaitForEvents(1, &event));
    OK(clReleaseEvent(event));
}

static cl_uint state_of(command_buffer buffer) {
    cl_uint state = 77;
    OK(f.info(buffer, BUFFER_STATE, sizeof state, &state, NULL));
    return state;
}

/* What all record calls have in common. */
typedef struct {
    command_buffer buffer;
    cl_command_queue queue;
    const cl_properties *properties;
    cl_uint count;
    const sync_point *list;
    sync_point *point;
    mutable_command *handle;
} where;

typedef enum {
    BARRIER, COPY, RECT, FILL, KERNEL, SVM_COPY, SVM_FILL, FILL_IMAGE, COPY_IMAGE, IMAGE_TO_BUFFER, BUFFER_TO_IMAGE, KINDS
} kind;

static const char *NAMES[] = {"barrier",    "copy",       "rect",            "fill",           "kernel", "svm copy", "svm fill",
                              "fill image", "copy image", "image to buffer", "buffer to image"};

static bool can(kind of) {
    return of < SVM_COPY || (of < FILL_IMAGE ? has_svm : has_images);
}

/* A good command of each kind. It reads `a`, and writes `b`, the other image or the other SVM memory. */
static cl_int record(kind of, where at) {
#define HEAD_AT at.buffer, at.queue, at.properties
#define TAIL_AT at.count, at.list, at.point, at.handle
    size_t origin[3] = {0, 0, 0}, region[3] = {64, 4, 4}, image[3] = {WIDE, HIGH, 1}, global = LEN;
    cl_uint pattern = 5, colour[4] = {5, 5, 5, 5};
    cl_int status = 1;
    switch (of) {
    case BARRIER: status = f.barrier(HEAD_AT, TAIL_AT); break;
    case COPY: status = f.copy(HEAD_AT, here.a, here.b, 0, 0, BYTES, TAIL_AT); break;
    case RECT: status = f.copy_rect(HEAD_AT, here.a, here.b, origin, origin, region, 0, 0, 0, 0, TAIL_AT); break;
    case FILL: status = f.fill(HEAD_AT, here.b, &pattern, sizeof pattern, 0, BYTES, TAIL_AT); break;
    case KERNEL: status = f.kernel(HEAD_AT, here.scale, 1, NULL, &global, NULL, TAIL_AT); break;
    case SVM_COPY: status = f.svm_copy(HEAD_AT, here.other_svm, here.svm, BYTES, TAIL_AT); break;
    case SVM_FILL: status = f.svm_fill(HEAD_AT, here.other_svm, &pattern, sizeof pattern, BYTES, TAIL_AT); break;
    case FILL_IMAGE: status = f.fill_image(HEAD_AT, here.other_image, colour, origin, image, TAIL_AT); break;
    case COPY_IMAGE:
        status = f.copy_image(HEAD_AT, here.image, here.other_image, origin, origin, image, TAIL_AT);
        break;
    case IMAGE_TO_BUFFER: status = f.image_to_buffer(HEAD_AT, here.image, here.b, origin, image, 0, TAIL_AT); break;
    case BUFFER_TO_IMAGE: status = f.buffer_to_image(HEAD_AT, here.a, here.other_image, 0, origin, image, TAIL_AT); break;
    case KINDS: break;
    }
    /* What a call was given may be used again at once. */
    memset(origin, 0xAA, sizeof origin);
    memset(region, 0xAA, sizeof region);
    memset(image, 0xAA, sizeof image);
    memset(colour, 0xAA, sizeof colour);
    global = 0;
    pattern = 0xAAAAAAAA;
    return status;
}

/* What good commands read has the number 2 and what they write has 9. */
static void reset(void) {
    set_memory(here.scale, 0, here.b);
    set_number(here.scale, 1, 3);
    fill_now(here.a, 2);
    fill_now(here.b, 9);
    fill_now(here.c, 9);
    if (has_svm) {
        fill_svm_now(here.svm, 2);
        fill_svm_now(here.other_svm, 9);
    }
    if (has_images) {
        fill_image_now(here.image, 2);
        fill_image_now(here.other_image, 9);
    }
}

static bool untouched(void) {
    cl_uint numbers[LEN];
    read_all(here.b, numbers);
    bool same = true;
    for (int i = 0; i < LEN; i++) same &= numbers[i] == 9;
    return same && (!has_svm || svm_is(here.other_svm, 9)) && (!has_images || image_is(here.other_image, 9));
}
