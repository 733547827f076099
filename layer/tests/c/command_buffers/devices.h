/* Contexts of two devices: what the one has is not always for the other. */
#pragma once
#include "updates.h"

/* The device of the tests, and another one of its platform or a part of it. */
typedef struct {
    cl_context context;
    cl_device_id other, parts[64];
    cl_uint count;
    cl_command_queue queue, other_queue;
    /* PoCL takes a part of a device for the whole: its context has one device. */
    bool has_two;
} pair;

static bool new_pair(pair *of) {
    *of = (pair){0};
    cl_device_id both[2] = {NULL, NULL};
    cl_uint devices = 0, count = 0;
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, both, &devices));
    if (devices == 1) {
        cl_device_partition_property by_counts[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
        cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
        if (clCreateSubDevices(device, by_counts, 64, of->parts, &of->count) != CL_SUCCESS) {
            of->count = 0;
            if (clCreateSubDevices(device, equally, 64, of->parts, &of->count) != CL_SUCCESS) of->count = 0;
        }
        both[1] = of->count > 0 ? of->parts[0] : NULL;
    }
    if (both[1] == NULL) {
        printf("no second device\n");
        return false;
    }
    of->other = both[1];
    cl_int status;
    of->context = clCreateContext(NULL, 2, both, NULL, NULL, &status);
    OK(status);
    of->queue = new_queue(of->context, required);
    of->other_queue = clCreateCommandQueue(of->context, of->other, required, &status);
    OK(status);
    OK(clGetContextInfo(of->context, CL_CONTEXT_NUM_DEVICES, sizeof count, &count, NULL));
    of->has_two = count == 2;
    if (!of->has_two) printf("no context of two devices\n");
    return true;
}

static void drop_pair(pair of) {
    OK(clReleaseCommandQueue(of.queue));
    OK(clReleaseCommandQueue(of.other_queue));
    OK(clReleaseContext(of.context));
    for (cl_uint i = 0; i < of.count; i++) OK(clReleaseDevice(of.parts[i]));
}

/* A queue of another device of the same context. */
static void other_device(void) {
    pair of;
    if (!new_pair(&of)) return;
    command_buffer buffer = new_buffer(of.queue, 0);
    OK(f.barrier(buffer, NULL, NULL, 0, NULL, NULL, NULL));
    OK(f.finalize(buffer));
    IS(f.enqueue(1, &of.other_queue, buffer, 0, NULL, NULL), CL_INVALID_DEVICE);
    run_on(of.queue, buffer);
    OK(f.release(buffer));
    drop_pair(of);
}

/* Queues to which only kernels enqueue, and queues with properties that the layer does not know: Intel's runtime has some that run commands
 * in the thread that enqueues, so nothing may hold them back. */
static void queues_of_other_kinds(void) {
    cl_queue_properties lists[][3] = {
        {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_ON_DEVICE, 0}, {CL_QUEUE_PROPERTIES, 1u << 31, 0}};
    for (int i = 0; i < 2; i++) {
        cl_int status = CL_INVALID_VALUE;
        cl_command_queue queue = NULL;
        /* PoCL 3.1 ends the process. */
        if (i == 1 || device_bits(CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES) != 0)
            queue = clCreateCommandQueueWithProperties(here.context, device, lists[i], &status);
        if (queue == NULL) {
            printf("no queues %s\n", i == 0 ? "on the device" : "of other kinds");
            continue;
        }
        reset();
        command_buffer buffer = new_buffer(i == 0 ? here.plain : queue, 0);
        for (int j = 0; j < 200; j++) OK(f.copy(buffer, NULL, NULL, here.a, here.b, 0, 0, BYTES, 0, NULL, NULL, NULL));
        OK(f.finalize(buffer));
        if (i == 0) {
            CHECK(f.create(1, &queue, NULL, &status) == NULL);
            SO(status == CL_INVALID_COMMAND_QUEUE);
            IS(f.enqueue(1, &queue, buffer, 0, NULL, NULL), INCOMPATIBLE_COMMAND_QUEUE);
            SO(untouched());
        } else {
            run_on(queue, buffer);
            ALL(here.b, 2);
        }
        OK(f.release(buffer));
        OK(clReleaseCommandQueue(queue));
    }
}

/* More work-items than the device's `size_t` counts. */
static void sizes_beyond_the_device(void) {
    cl_uint bits = 0;
    OK(clGetDeviceInfo(device, CL_DEVICE_ADDRESS_BITS, sizeof bits, &bits, NULL));
    if (bits != 32 || sizeof(size_t) == 4) {
        printf("no 32 bits\n");
        return;
    }
    command_buffer buffer = begin_refused(NULL);
    size_t large = (size_t)1 << 32, last = large - 16, few = 32;
    REFUSED(CL_INVALID_GLOBAL_WORK_SIZE, f.kernel(HEAD, here.scale, 1, NULL, &large, NULL, TAIL));
    REFUSED(CL_INVALID_GLOBAL_OFFSET, f.kernel(HEAD, here.scale, 1, &last, &few, NULL, TAIL));
    end_refused(buffer);
}

static cl_program built_for(pair of, cl_device_id device, const char *source) {
    cl_int status;
    cl_program program = clCreateProgramWithSource(of.context, 1, &source, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, NULL, NULL, NULL));
    return program;
}

/* A program that is built for one device, on a queue of the other: drivers that take plain launches of it take recorded ones. PoCL ends
 * the process for a plain one. */
static void programs_of_the_other_device(void) {
    pair of;
    if (!new_pair(&of)) return;
    char version[256];
    OK(clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version, version, NULL));
    bool survives = !of.has_two || strstr(version, "PoCL") == NULL;
    if (!survives && strstr(version, "PoCL 3.") != NULL) {
        printf("no way to know for which devices a program is built\n");
        drop_pair(of);
        return;
    }
    cl_mem memory = new_memory(of.context, BYTES);
    for (int i = 0; i < 2; i++) {
        cl_program program = built_for(of, i ? device : of.other, "kernel void seven(global uint *to) { to[get_global_id(0)] = 7; }\n");
        cl_int status;
        cl_kernel kernel = clCreateKernel(program, "seven", &status);
        OK(status);
        set_memory(kernel, 0, memory);
        cl_command_queue queue = i ? of.other_queue : of.queue;
        cl_int plain = CL_INVALID_PROGRAM_EXECUTABLE;
        if (survives) plain = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &length, NULL, 0, NULL, NULL);
        OK(clFinish(queue));
        EITHER(plain, CL_SUCCESS, CL_INVALID_PROGRAM_EXECUTABLE);
        command_buffer buffer = new_buffer(queue, 0);
        IS(f.kernel(buffer, NULL, NULL, kernel, 1, NULL, &length, NULL, 0, NULL, NULL, NULL), plain);
        OK(f.finalize(buffer));
        run_on(queue, buffer);
        OK(f.release(buffer));
        OK(clReleaseKernel(kernel));
        OK(clReleaseProgram(program));
    }
    OK(clReleaseMemObject(memory));
    drop_pair(of);
}

enum { APART = 4096 };

/* Memory that one device may not take. The devices of the tests are alike. A library between the layer and the driver lets them say that
 * they are not: `CLGRAPH_LAYER_IS_NARROW`. */
static void memory_of_the_other_device(void) {
    pair of;
    if (!new_pair(&of)) return;
    cl_uint bits;
    size_t width = 0;
    OK(clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL));
    OK(clGetDeviceInfo(device, CL_DEVICE_IMAGE2D_MAX_WIDTH, sizeof width, &width, NULL));
    cl_int crooked = !of.has_two || APART % (bits / 8) == 0 ? CL_SUCCESS : CL_MISALIGNED_SUB_BUFFER_OFFSET;
    cl_int large = !of.has_two || width >= WIDE ? CL_SUCCESS : CL_INVALID_IMAGE_SIZE;

    cl_buffer_region region = {APART, BYTES};
    cl_mem parent = new_memory(of.context, APART + BYTES), other = new_memory(of.context, BYTES);
    cl_int status;
    cl_mem memory = clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    OK(status);
    cl_program program = built_for(of, device, SOURCE);
    cl_kernel scale = clCreateKernel(program, "scale", &status);
    OK(status);
    set_memory(scale, 0, memory);
    set_number(scale, 1, 3);

    cl_bitfield flags = has_mutable ? MUTABLE : 0;
    cl_uint pattern = 5;
    size_t rect[3] = {64, 4, 4};
    command_buffer buffer = new_buffer(of.queue, flags);
    IS(f.fill(buffer, NULL, NULL, memory, &pattern, sizeof pattern, 0, BYTES, 0, NULL, NULL, NULL), crooked);
    IS(f.copy(buffer, NULL, NULL, memory, other, 0, 0, BYTES, 0, NULL, NULL, NULL), crooked);
    IS(f.copy(buffer, NULL, NULL, other, memory, 0, 0, BYTES, 0, NULL, NULL, NULL), crooked);
    IS(f.copy_rect(buffer, NULL, NULL, memory, other, zeros, zeros, rect, 0, 0, 0, 0, 0, NULL, NULL, NULL), crooked);
    IS(f.copy_rect(buffer, NULL, NULL, other, memory, zeros, zeros, rect, 0, 0, 0, 0, 0, NULL, NULL, NULL), crooked);
    IS(f.kernel(buffer, NULL, NULL, scale, 1, NULL, &length, NULL, 0, NULL, NULL, NULL), crooked);
    if (has_images) {
        cl_mem image = new_image(of.context, CL_UNSIGNED_INT8, WIDE), same = new_image(of.context, CL_UNSIGNED_INT8, WIDE);
        cl_program look_in = built_for(of, device, "kernel void look(read_only image2d_t a, global uint *to) {\n"
                                                   "    to[get_global_id(0)] = get_image_width(a);\n}\n");
        cl_kernel look = clCreateKernel(look_in, "look", &status);
        OK(status);
        set_memory(look, 0, image);
        set_memory(look, 1, other);
        cl_uint colour[4] = {0};
        IS(f.fill_image(buffer, NULL, NULL, image, colour, zeros, whole_image, 0, NULL, NULL, NULL), large);
        IS(f.copy_image(buffer, NULL, NULL, image, same, zeros, zeros, whole_image, 0, NULL, NULL, NULL), large);
        IS(f.image_to_buffer(buffer, NULL, NULL, image, other, zeros, whole_image, 0, 0, NULL, NULL, NULL), large);
        IS(f.buffer_to_image(buffer, NULL, NULL, other, image, 0, zeros, whole_image, 0, NULL, NULL, NULL), large);
        IS(f.kernel(buffer, NULL, NULL, look, 1, NULL, &length, NULL, 0, NULL, NULL, NULL), large);
        OK(clReleaseKernel(look));
        OK(clReleaseProgram(look_in));
        OK(clReleaseMemObject(image));
        OK(clReleaseMemObject(same));
    }
    /* An update is refused as a whole, and what was recorded stays. */
    set_memory(scale, 0, other);
    pattern = 2;
    OK(clEnqueueFillBuffer(of.queue, other, &pattern, sizeof pattern, 0, BYTES, 0, NULL, NULL));
    OK(clFinish(of.queue));
    mutable_command command = fields & ARGUMENTS ? changeable(buffer, scale, ARGUMENTS) : NULL;
    OK(f.finalize(buffer));
    if (command != NULL) IS(change_memory(buffer, command, 0, memory), crooked);
    if (crooked != CL_SUCCESS && large != CL_SUCCESS) {
        run_on(of.queue, buffer);
        cl_uint numbers[LEN];
        OK(clEnqueueReadBuffer(of.queue, other, CL_TRUE, 0, BYTES, numbers, 0, NULL, NULL));
        bool is_right = true;
        for (int i = 0; i < LEN; i++) is_right &= numbers[i] == (command == NULL ? 2 : 6);
        SO(is_right);
    }
    OK(f.release(buffer));
    OK(clReleaseKernel(scale));
    OK(clReleaseProgram(program));
    OK(clReleaseMemObject(memory));
    OK(clReleaseMemObject(parent));
    OK(clReleaseMemObject(other));
    drop_pair(of);
}
