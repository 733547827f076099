/* Calls of which each breaks one rule: the status, and that nothing is recorded. */
#pragma once
#include "world.h"

enum { MARK = 0x5EED };
static sync_point mark;

#define HEAD buffer, NULL, NULL
#define TAIL 0, NULL, &mark, NULL
/* A record call that fails, and then writes no sync point. */
#define REFUSED(wanted, call) (mark = MARK, refused_call(HERE, #call, (call), (wanted), (wanted)))
#define REFUSED_AS(one, other, call) (mark = MARK, refused_call(HERE, #call, (call), (one), (other)))

static void refused_call(const char *line, const char *call, cl_int got, cl_int one, cl_int other) {
    is_one_of(line, call, got, one, other);
    if (mark == MARK) return;
    if (got != CL_SUCCESS) not_so(line, "no sync point is written");
}

/* The same for a good command of the kind `of`, with what is common to all as given. */
#define NO(wanted, ...) refused(HERE, #__VA_ARGS__, of, (where){__VA_ARGS__}, (wanted))

static void refused(const char *line, const char *with, kind of, where at, cl_int wanted) {
    mark = MARK;
    at.point = &mark;
    cl_int got = record(of, at);
    if (got == wanted && mark == MARK) return;
    __atomic_fetch_add(&wrong, 1, __ATOMIC_SEQ_CST);
    printf("%s: %s with %s: %d, not %d; sync point %s\n", line, NAMES[of], with, got, wanted,
           mark == MARK ? "not written" : "written");
}

/* A buffer of one command, which fills `c` with 4. Then come calls that are refused. */
static command_buffer begin_refused(sync_point *point) {
    reset();
    command_buffer buffer = new_buffer(here.plain, 0);
    cl_uint four = 4;
    OK(f.fill(buffer, NULL, NULL, here.c, &four, sizeof four, 0, BYTES, 0, NULL, point, NULL));
    return buffer;
}

static void finalize_and_run(command_buffer buffer) {
    OK(f.finalize(buffer));
    SO(state_of(buffer) == EXECUTABLE);
    run_on(here.plain, buffer);
}

/* It does what was recorded before them, and nothing else. */
static void end_refused(command_buffer buffer) {
    finalize_and_run(buffer);
    ALL(here.c, 4);
    SO(untouched());
    OK(f.release(buffer));
}

static void common_errors(kind of) {
    sync_point point, points[8], pair[2];
    command_buffer buffer = begin_refused(&point), other = new_buffer(here.plain, 0);
    cl_properties unknown[] = {0x7777, 0, 0}, of_kernels[] = {UPDATABLE_FIELDS, 0, 0}, of_buffers[] = {BUFFER_FLAGS, 0, 0};
    mutable_command handle = NULL;
    for (int i = 0; i < 8; i++) OK(f.barrier(other, NULL, NULL, 0, NULL, &points[i], NULL));

    NO(CL_INVALID_COMMAND_QUEUE, .buffer = buffer, .queue = here.reader);
    NO(CL_INVALID_COMMAND_QUEUE, .buffer = buffer, .queue = there.plain);
    if (!has_multi) NO(CL_INVALID_COMMAND_QUEUE, .buffer = buffer, .queue = here.plain);
    NO(CL_INVALID_VALUE, .buffer = buffer, .properties = unknown);
    NO(CL_INVALID_VALUE, .buffer = buffer, .properties = of_buffers);
    if (of != KERNEL || !has_mutable) {
        NO(CL_INVALID_VALUE, .buffer = buffer, .properties = of_kernels);
        NO(CL_INVALID_VALUE, .buffer = buffer, .handle = &handle);
    }
    sync_point nowhere = point ^ 0x5A5A5A5A;
    /* A point of another buffer may have a number that is one of this buffer's too. */
    sync_point elsewhere = points[7] != point ? points[7] : points[6];
    pair[0] = point;
    pair[1] = nowhere;
    NO(INVALID_SYNC_POINT_WAIT_LIST, .buffer = buffer, .count = 1);
    NO(INVALID_SYNC_POINT_WAIT_LIST, .buffer = buffer, .list = &point);
    NO(INVALID_SYNC_POINT_WAIT_LIST, .buffer = buffer, .count = 1, .list = &nowhere);
    NO(INVALID_SYNC_POINT_WAIT_LIST, .buffer = buffer, .count = 2, .list = pair);
    NO(INVALID_SYNC_POINT_WAIT_LIST, .buffer = buffer, .count = 1, .list = &elsewhere);

    finalize_and_run(buffer);
    NO(CL_INVALID_OPERATION, .buffer = buffer);
    NO(CL_INVALID_OPERATION, .buffer = buffer, .count = 1, .list = &point);
    fill_now(here.c, 9);
    run_on(here.plain, buffer);
    ALL(here.c, 4);
    SO(untouched());
    OK(f.release(buffer));
    OK(f.release(other));
}

static void errors_of_all(void) {
    for (kind of = 0; of < KINDS; of++)
        if (can(of)) common_errors(of);
}

/* An empty list is a list, and properties of kernels are for kernels. */
static void good_properties(void) {
    cl_properties none[] = {0};
    for (kind of = 0; of < KINDS; of++) {
        if (!can(of)) continue;
        reset();
        command_buffer buffer = new_buffer(here.plain, 0);
        OK(record(of, (where){.buffer = buffer, .properties = none}));
        finalize_and_run(buffer);
        SO(of == BARRIER || !untouched());
        OK(f.release(buffer));
    }
}

static void errors_of_copy(void) {
    command_buffer buffer = begin_refused(NULL);
    REFUSED(CL_INVALID_MEM_OBJECT, f.copy(HEAD, NULL, here.b, 0, 0, BYTES, TAIL));
    REFUSED(CL_INVALID_MEM_OBJECT, f.copy(HEAD, here.a, NULL, 0, 0, BYTES, TAIL));
    REFUSED(CL_INVALID_CONTEXT, f.copy(HEAD, there.a, here.b, 0, 0, BYTES, TAIL));
    REFUSED(CL_INVALID_CONTEXT, f.copy(HEAD, here.a, there.b, 0, 0, BYTES, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy(HEAD, here.a, here.b, 4, 0, BYTES, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy(HEAD, here.a, here.b, 0, 4, BYTES, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy(HEAD, here.a, here.b, 0, 0, BYTES + 1, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy(HEAD, here.a, here.b, SIZE_MAX - 3, 0, 8, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy(HEAD, here.a, here.b, 0, SIZE_MAX - 3, 8, TAIL));
    REFUSED(CL_MEM_COPY_OVERLAP, f.copy(HEAD, here.b, here.b, 0, 16, 64, TAIL));
    REFUSED(CL_MEM_COPY_OVERLAP, f.copy(HEAD, here.b, here.b, 16, 0, 64, TAIL));
    if (has_images) {
        REFUSED(CL_INVALID_MEM_OBJECT, f.copy(HEAD, here.image, here.b, 0, 0, 64, TAIL));
        REFUSED(CL_INVALID_MEM_OBJECT, f.copy(HEAD, here.a, here.other_image, 0, 0, 64, TAIL));
    }
    /* No bytes: an error up to OpenCL 2.2. */
    EITHER(f.copy(HEAD, here.a, here.b, 0, 0, 0, 0, NULL, NULL, NULL), CL_SUCCESS, CL_INVALID_VALUE);
    end_refused(buffer);
}

/* Two parts of a buffer which have the middle in common. */
static void errors_of_parts(void) {
    cl_uint bits;
    OK(clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL));
    size_t unit = bits / 8 < 64 ? 64 : bits / 8;
    cl_buffer_region first = {0, 2 * unit}, second = {unit, 2 * unit};
    cl_mem both = new_memory(here.context, 4 * unit);
    cl_int status;
    cl_mem one = clCreateSubBuffer(both, 0, CL_BUFFER_CREATE_TYPE_REGION, &first, &status);
    OK(status);
    cl_mem two = clCreateSubBuffer(both, 0, CL_BUFFER_CREATE_TYPE_REGION, &second, &status);
    OK(status);
    size_t origin[3] = {0, 0, 0}, region[3] = {unit, 2, 1}, out[3] = {unit, 3, 1};
    command_buffer buffer = begin_refused(NULL);
    REFUSED(CL_MEM_COPY_OVERLAP, f.copy(HEAD, one, two, 0, 0, 2 * unit, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy(HEAD, one, here.b, unit, 0, unit + 1, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy(HEAD, here.a, two, 0, unit, unit + 1, TAIL));
    REFUSED(CL_MEM_COPY_OVERLAP, f.copy_rect(HEAD, one, two, origin, origin, region, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, one, here.b, origin, origin, out, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.fill(HEAD, two, "abcd", 4, unit, unit + 4, TAIL));
    end_refused(buffer);
    OK(clReleaseMemObject(one));
    OK(clReleaseMemObject(two));
    OK(clReleaseMemObject(both));
}

static void errors_of_rect(void) {
    command_buffer buffer = begin_refused(NULL);
    size_t o[3] = {0, 0, 0}, r[3] = {16, 4, 2}, second[3] = {4, 1, 0}, flat[3] = {16, 0, 2}, last[3] = {1009, 0, 0};
    cl_mem a = here.a, b = here.b;
    REFUSED(CL_INVALID_MEM_OBJECT, f.copy_rect(HEAD, NULL, b, o, o, r, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_MEM_OBJECT, f.copy_rect(HEAD, a, NULL, o, o, r, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_CONTEXT, f.copy_rect(HEAD, there.a, b, o, o, r, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_CONTEXT, f.copy_rect(HEAD, a, there.b, o, o, r, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, NULL, o, r, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, o, NULL, r, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, o, o, NULL, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, o, o, flat, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, last, o, r, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, o, last, r, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, o, o, r, 15, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, o, o, r, 0, 0, 15, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, o, o, r, 16, 48, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, o, o, r, 0, 0, 16, 48, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, o, o, r, 16, 72, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, o, o, r, 0, 0, 16, 72, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, a, b, o, o, r, 512, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_rect(HEAD, b, b, o, (size_t[]){512, 0, 0}, r, 16, 64, 32, 128, TAIL));
    REFUSED(CL_MEM_COPY_OVERLAP, f.copy_rect(HEAD, b, b, o, second, r, 32, 256, 32, 256, TAIL));
    if (has_images) REFUSED(CL_INVALID_MEM_OBJECT, f.copy_rect(HEAD, a, here.other_image, o, o, r, 0, 0, 0, 0, TAIL));
    end_refused(buffer);
}

static void errors_of_fill(void) {
    command_buffer buffer = begin_refused(NULL);
    char p[256] = {0};
    cl_mem b = here.b;
    REFUSED(CL_INVALID_MEM_OBJECT, f.fill(HEAD, NULL, p, 4, 0, BYTES, TAIL));
    REFUSED(CL_INVALID_CONTEXT, f.fill(HEAD, there.b, p, 4, 0, BYTES, TAIL));
    REFUSED(CL_INVALID_VALUE, f.fill(HEAD, b, NULL, 4, 0, BYTES, TAIL));
    size_t sizes[] = {0, 3, 5, 12, 24, 96, 127, 129, 256};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        REFUSED(CL_INVALID_VALUE, f.fill(HEAD, b, p, sizes[i], 0, sizes[i], TAIL));
    REFUSED(CL_INVALID_VALUE, f.fill(HEAD, b, p, 256, 0, BYTES, TAIL));
    REFUSED(CL_INVALID_VALUE, f.fill(HEAD, b, p, 3, 0, 3, TAIL));
    REFUSED(CL_INVALID_VALUE, f.fill(HEAD, b, p, 4, 2, 4, TAIL));
    REFUSED(CL_INVALID_VALUE, f.fill(HEAD, b, p, 4, 0, 6, TAIL));
    REFUSED(CL_INVALID_VALUE, f.fill(HEAD, b, p, 4, 4, BYTES, TAIL));
    REFUSED(CL_INVALID_VALUE, f.fill(HEAD, b, p, 4, 0, BYTES + 4, TAIL));
    REFUSED(CL_INVALID_VALUE, f.fill(HEAD, b, p, 4, SIZE_MAX - 3, 8, TAIL));
    if (has_images) REFUSED(CL_INVALID_MEM_OBJECT, f.fill(HEAD, here.other_image, p, 4, 0, 4, TAIL));
    /* No bytes: an error up to OpenCL 2.2. */
    EITHER(f.fill(HEAD, b, p, 4, 0, 0, 0, NULL, NULL, NULL), CL_SUCCESS, CL_INVALID_VALUE);
    end_refused(buffer);
}

static void errors_of_svm(void) {
    if (!has_svm) {
        command_buffer buffer = begin_refused(NULL);
        cl_uint from[4] = {0}, to[4] = {0};
        REFUSED(CL_INVALID_OPERATION, f.svm_copy(HEAD, to, from, sizeof to, TAIL));
        REFUSED(CL_INVALID_OPERATION, f.svm_fill(HEAD, to, from, 4, sizeof to, TAIL));
        end_refused(buffer);
        return;
    }
    command_buffer buffer = begin_refused(NULL);
    char p[256] = {0}, *from = (char *)here.svm, *to = (char *)here.other_svm;
    REFUSED(CL_INVALID_VALUE, f.svm_copy(HEAD, NULL, from, BYTES, TAIL));
    REFUSED(CL_INVALID_VALUE, f.svm_copy(HEAD, to, NULL, BYTES, TAIL));
    REFUSED(CL_MEM_COPY_OVERLAP, f.svm_copy(HEAD, to, to + 16, 64, TAIL));
    REFUSED(CL_MEM_COPY_OVERLAP, f.svm_copy(HEAD, to + 16, to, 64, TAIL));
    REFUSED(CL_INVALID_VALUE, f.svm_fill(HEAD, NULL, p, 4, BYTES, TAIL));
    REFUSED(CL_INVALID_VALUE, f.svm_fill(HEAD, to, NULL, 4, BYTES, TAIL));
    size_t sizes[] = {0, 3, 12, 96, 127, 129, 256};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        REFUSED(CL_INVALID_VALUE, f.svm_fill(HEAD, to, p, sizes[i], sizes[i], TAIL));
    REFUSED(CL_INVALID_VALUE, f.svm_fill(HEAD, to + 2, p, 4, 4, TAIL));
    REFUSED(CL_INVALID_VALUE, f.svm_fill(HEAD, to + 64, p, 128, 128, TAIL));
    REFUSED(CL_INVALID_VALUE, f.svm_fill(HEAD, to, p, 4, 6, TAIL));
    end_refused(buffer);
}

static void errors_of_images(void) {
    command_buffer buffer = begin_refused(NULL);
    if (!has_images) {
        cl_uint none[4] = {0};
        REFUSED(CL_INVALID_OPERATION, f.fill_image(HEAD, here.b, none, zeros, whole_image, TAIL));
        REFUSED(CL_INVALID_OPERATION, f.copy_image(HEAD, here.a, here.b, zeros, zeros, whole_image, TAIL));
        REFUSED(CL_INVALID_OPERATION, f.image_to_buffer(HEAD, here.a, here.b, zeros, whole_image, 0, TAIL));
        REFUSED(CL_INVALID_OPERATION, f.buffer_to_image(HEAD, here.a, here.b, 0, zeros, whole_image, TAIL));
        end_refused(buffer);
        return;
    }
    cl_mem a = here.a, b = here.b, from = here.image, to = here.other_image;
    cl_mem small = new_image(here.context, CL_UNSIGNED_INT8, 4), numbers = new_image(here.context, CL_UNSIGNED_INT32, WIDE);
    size_t o[3] = {0, 0, 0}, r[3] = {8, 8, 1}, out[3] = {WIDE - 7, 0, 0}, deep[3] = {0, 0, 1}, flat[3] = {8, 0, 1},
           thick[3] = {8, 8, 2}, near[3] = {4, 4, 0};
    cl_uint colour[4] = {0};
    struct { const size_t *origin, *region; } bad[] = {{NULL, r}, {o, NULL}, {out, r}, {deep, r}, {o, flat}, {o, thick}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const size_t *origin = bad[i].origin, *region = bad[i].region;
        REFUSED(CL_INVALID_VALUE, f.fill_image(HEAD, to, colour, origin, region, TAIL));
        REFUSED(CL_INVALID_VALUE, f.copy_image(HEAD, from, to, origin, o, region, TAIL));
        REFUSED(CL_INVALID_VALUE, f.copy_image(HEAD, from, to, o, origin, region, TAIL));
        REFUSED(CL_INVALID_VALUE, f.image_to_buffer(HEAD, from, b, origin, region, 0, TAIL));
        REFUSED(CL_INVALID_VALUE, f.buffer_to_image(HEAD, a, to, 0, origin, region, TAIL));
    }
    REFUSED(CL_INVALID_VALUE, f.fill_image(HEAD, to, NULL, o, r, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_image(HEAD, small, to, o, o, r, TAIL));
    REFUSED(CL_INVALID_VALUE, f.copy_image(HEAD, from, small, o, o, r, TAIL));
    REFUSED(CL_INVALID_VALUE, f.image_to_buffer(HEAD, from, b, o, r, BYTES - 255, TAIL));
    REFUSED(CL_INVALID_VALUE, f.buffer_to_image(HEAD, a, to, BYTES - 255, o, r, TAIL));
    REFUSED(CL_IMAGE_FORMAT_MISMATCH, f.copy_image(HEAD, numbers, to, o, o, r, TAIL));
    REFUSED(CL_MEM_COPY_OVERLAP, f.copy_image(HEAD, to, to, o, near, r, TAIL));

    /* What a program gives for fields that a 2D image does not have means nothing. */
    cl_image_format bytes = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc odd = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = WIDE, .image_height = HIGH, .image_depth = 4, .image_array_size = 4};
    cl_int made;
    cl_mem flat_one = clCreateImage(here.context, CL_MEM_READ_WRITE, &bytes, &odd, NULL, &made);
    OK(made);
    REFUSED(CL_INVALID_VALUE, f.fill_image(HEAD, flat_one, colour, o, (size_t[]){8, 8, 4}, TAIL));
    OK(clReleaseMemObject(flat_one));
    cl_mem none[] = {NULL, here.c};
    for (int i = 0; i < 2; i++) {
        REFUSED(CL_INVALID_MEM_OBJECT, f.fill_image(HEAD, none[i], colour, o, r, TAIL));
        REFUSED(CL_INVALID_MEM_OBJECT, f.copy_image(HEAD, none[i], to, o, o, r, TAIL));
        REFUSED(CL_INVALID_MEM_OBJECT, f.copy_image(HEAD, from, none[i], o, o, r, TAIL));
        REFUSED(CL_INVALID_MEM_OBJECT, f.image_to_buffer(HEAD, none[i], b, o, r, 0, TAIL));
        REFUSED(CL_INVALID_MEM_OBJECT, f.buffer_to_image(HEAD, a, none[i], 0, o, r, TAIL));
    }
    cl_mem no_buffer[] = {NULL, here.image};
    for (int i = 0; i < 2; i++) {
        REFUSED(CL_INVALID_MEM_OBJECT, f.image_to_buffer(HEAD, from, no_buffer[i], o, r, 0, TAIL));
        REFUSED(CL_INVALID_MEM_OBJECT, f.buffer_to_image(HEAD, no_buffer[i], to, 0, o, r, TAIL));
    }
    REFUSED(CL_INVALID_CONTEXT, f.fill_image(HEAD, there.image, colour, o, r, TAIL));
    REFUSED(CL_INVALID_CONTEXT, f.copy_image(HEAD, there.image, to, o, o, r, TAIL));
    REFUSED(CL_INVALID_CONTEXT, f.copy_image(HEAD, from, there.image, o, o, r, TAIL));
    REFUSED(CL_INVALID_CONTEXT, f.image_to_buffer(HEAD, there.image, b, o, r, 0, TAIL));
    REFUSED(CL_INVALID_CONTEXT, f.image_to_buffer(HEAD, from, there.b, o, r, 0, TAIL));
    REFUSED(CL_INVALID_CONTEXT, f.buffer_to_image(HEAD, there.a, to, 0, o, r, TAIL));
    REFUSED(CL_INVALID_CONTEXT, f.buffer_to_image(HEAD, a, there.image, 0, o, r, TAIL));
    /* An image of the buffer itself. */
    cl_int status;
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc line = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 16, .buffer = a};
    cl_mem of_a = clCreateImage(here.context, CL_MEM_READ_WRITE, &format, &line, NULL, &status);
    if (of_a == NULL) {
        printf("no images of buffers\n");
    } else {
        size_t few[3] = {4, 1, 1};
        REFUSED(CL_INVALID_MEM_OBJECT, f.image_to_buffer(HEAD, of_a, a, o, few, 0, TAIL));
        REFUSED(CL_INVALID_MEM_OBJECT, f.buffer_to_image(HEAD, a, of_a, 0, o, few, TAIL));
        OK(clReleaseMemObject(of_a));
    }
    end_refused(buffer);
    OK(clReleaseMemObject(small));
    OK(clReleaseMemObject(numbers));
}

static void errors_of_immutable(void) {
    if (!has_immutable) {
        printf("no immutable memory\n");
        return;
    }
    static cl_uint host[LEN];
    size_t o[3] = {0, 0, 0}, r[3] = {16, 1, 1};
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc shape = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = WIDE, .image_height = HIGH};
    cl_int status;
    cl_mem fixed = clCreateBuffer(here.context, IMMUTABLE_MEMORY | CL_MEM_COPY_HOST_PTR, BYTES, host, &status);
    OK(status);
    command_buffer buffer = begin_refused(NULL);
    REFUSED(CL_INVALID_OPERATION, f.copy(HEAD, here.a, fixed, 0, 0, BYTES, TAIL));
    REFUSED(CL_INVALID_OPERATION, f.copy_rect(HEAD, here.a, fixed, o, o, r, 0, 0, 0, 0, TAIL));
    REFUSED(CL_INVALID_OPERATION, f.fill(HEAD, fixed, host, 4, 0, BYTES, TAIL));
    if (has_images) {
        cl_mem image =
            clCreateImage(here.context, IMMUTABLE_MEMORY | CL_MEM_COPY_HOST_PTR, &format, &shape, host, &status);
        OK(status);
        REFUSED(CL_INVALID_OPERATION, f.image_to_buffer(HEAD, here.image, fixed, o, r, 0, TAIL));
        REFUSED(CL_INVALID_OPERATION, f.fill_image(HEAD, image, host, o, r, TAIL));
        REFUSED(CL_INVALID_OPERATION, f.copy_image(HEAD, here.image, image, o, o, r, TAIL));
        REFUSED(CL_INVALID_OPERATION, f.buffer_to_image(HEAD, here.a, image, 0, o, r, TAIL));
        OK(clReleaseMemObject(image));
    }
    end_refused(buffer);
    OK(clReleaseMemObject(fixed));
}

static void errors_of_sizes(command_buffer buffer, cl_kernel kernel) {
    cl_uint dimensions;
    size_t group, most[16] = {0}, many[16];
    for (int i = 0; i < 16; i++) many[i] = 1;
    OK(clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, sizeof dimensions, &dimensions, NULL));
    OK(clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof most, most, NULL));
    OK(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof group, &group, NULL));
    REFUSED(CL_INVALID_WORK_DIMENSION, f.kernel(HEAD, kernel, 0, NULL, many, NULL, TAIL));
    REFUSED(CL_INVALID_WORK_DIMENSION, f.kernel(HEAD, kernel, dimensions + 1, NULL, many, NULL, TAIL));
    size_t far[1] = {SIZE_MAX - 1}, none = 0, big = 2 * group, item = 2 * most[0];
    REFUSED(CL_INVALID_GLOBAL_OFFSET, f.kernel(HEAD, kernel, 1, far, &length, NULL, TAIL));
    REFUSED(CL_INVALID_WORK_GROUP_SIZE, f.kernel(HEAD, kernel, 1, NULL, &length, &none, TAIL));
    /* Both limits may be passed at once. */
    REFUSED_AS(CL_INVALID_WORK_GROUP_SIZE, CL_INVALID_WORK_ITEM_SIZE, f.kernel(HEAD, kernel, 1, NULL, &big, &big, TAIL));
    REFUSED_AS(CL_INVALID_WORK_ITEM_SIZE, CL_INVALID_WORK_GROUP_SIZE, f.kernel(HEAD, kernel, 1, NULL, &item, &item, TAIL));
    /* A group that does not divide the range: whatever the driver says to it. */
    size_t seven = 7;
    cl_int plainly = clEnqueueNDRangeKernel(here.reader, kernel, 1, NULL, &length, &seven, 0, NULL, NULL);
    OK(clFinish(here.reader));
    EITHER(f.kernel(HEAD, kernel, 1, NULL, &length, &seven, 0, NULL, NULL, NULL), plainly, CL_INVALID_WORK_GROUP_SIZE);
    /* Nothing to do: an error up to OpenCL 2.0. */
    EITHER(f.kernel(HEAD, here.scale, 1, NULL, NULL, NULL, 0, NULL, NULL, NULL), CL_SUCCESS, CL_INVALID_GLOBAL_WORK_SIZE);
    EITHER(f.kernel(HEAD, here.scale, 1, NULL, &none, NULL, 0, NULL, NULL, NULL), CL_SUCCESS, CL_INVALID_GLOBAL_WORK_SIZE);
}

static void errors_of_kernel(void) {
    command_buffer buffer = begin_refused(NULL);
    cl_kernel unset = new_kernel("scale"), half = new_kernel("scale"), of_16 = new_kernel("sixteen"), one = new_kernel("scale");
    set_memory(half, 0, here.b);
    set_memory(of_16, 0, here.b);
    set_memory(one, 0, here.c);
    set_number(one, 1, 1);
    set_memory(there.scale, 0, there.b);
    set_number(there.scale, 1, 1);
    size_t eight = 8;
    cl_properties no_arguments[] = {UPDATABLE_FIELDS, fields & ~(cl_bitfield)ARGUMENTS, 0};
    const cl_properties *without = has_mutable ? no_arguments : NULL;
    REFUSED(CL_INVALID_KERNEL, f.kernel(HEAD, NULL, 1, NULL, &length, NULL, TAIL));
    REFUSED(CL_INVALID_CONTEXT, f.kernel(HEAD, there.scale, 1, NULL, &length, NULL, TAIL));
    REFUSED(CL_INVALID_KERNEL_ARGS, f.kernel(buffer, NULL, without, unset, 1, NULL, &length, NULL, TAIL));
    REFUSED(CL_INVALID_KERNEL_ARGS, f.kernel(buffer, NULL, without, half, 1, NULL, &length, NULL, TAIL));
    REFUSED(CL_INVALID_WORK_GROUP_SIZE, f.kernel(HEAD, of_16, 1, NULL, &length, &eight, TAIL));
    errors_of_sizes(buffer, one);
    end_refused(buffer);
    OK(clReleaseKernel(unset));
    OK(clReleaseKernel(half));
    OK(clReleaseKernel(of_16));
    OK(clReleaseKernel(one));
}

/* "The ARGUMENTS flag was not set in the properties parameter", and without properties it is set where the device has it: what
 * is said to missing arguments without properties is open. */
static void missing_arguments_by_default(void) {
    if (!(fields & ARGUMENTS)) return;
    command_buffer buffer = new_buffer(here.plain, MUTABLE);
    cl_kernel unset = new_kernel("scale");
    cl_int status = f.kernel(buffer, NULL, NULL, unset, 1, NULL, &length, NULL, 0, NULL, NULL, NULL);
    EITHER(status, CL_SUCCESS, CL_INVALID_KERNEL_ARGS);
    OK(f.finalize(buffer));
    SO(state_of(buffer) == (status == CL_SUCCESS ? FINALIZED : EXECUTABLE));
    OK(clReleaseKernel(unset));
    OK(f.release(buffer));
}

static void errors_of_printf(void) {
    if (capabilities & CAN_PRINTF) return;
    const char *source = "kernel void say(global uint *a) { printf(\"%u\\n\", a[get_global_id(0)]); }";
    cl_int status;
    cl_program program = clCreateProgramWithSource(here.context, 1, &source, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, NULL, NULL, NULL));
    cl_kernel say = clCreateKernel(program, "say", &status);
    OK(status);
    set_memory(say, 0, here.b);
    command_buffer buffer = begin_refused(NULL);
    REFUSED(CL_INVALID_OPERATION, f.kernel(HEAD, say, 1, NULL, &length, NULL, TAIL));
    end_refused(buffer);
    OK(clReleaseKernel(say));
    OK(clReleaseProgram(program));
}

static void errors_of_kernel_properties(void) {
    if (!has_mutable) return;
    command_buffer buffer = begin_refused(NULL);
    mutable_command handle;
    cl_properties unknown_field[] = {UPDATABLE_FIELDS, 1 << 20, 0}, unknown_assert[] = {DISPATCH_ASSERTS, 1 << 20, 0};
    cl_properties second_unknown[] = {UPDATABLE_FIELDS, 0, 0x7777, 0, 0};
    cl_properties fewer[] = {DISPATCH_ASSERTS, NO_ADDITIONAL_WORK_GROUPS, 0}, twice[] = {DISPATCH_ASSERTS, 0, DISPATCH_ASSERTS, 0, 0};
#define WITH(properties, local) f.kernel(buffer, NULL, properties, here.scale, 1, NULL, &length, local, 0, NULL, &mark, &handle)
    /* Not a value of the field, and not a field of the device. */
    REFUSED_AS(CL_INVALID_VALUE, CL_INVALID_OPERATION, WITH(unknown_field, NULL));
    REFUSED(CL_INVALID_VALUE, WITH(unknown_assert, NULL));
    REFUSED(CL_INVALID_VALUE, WITH(second_unknown, NULL));
    REFUSED(CL_INVALID_VALUE, WITH(fewer, NULL));
    for (cl_properties field = 1; field <= EXEC_INFO; field *= 2) {
        cl_properties lacks[] = {UPDATABLE_FIELDS, field, 0};
        if (!(fields & field)) REFUSED(CL_INVALID_OPERATION, WITH(lacks, NULL));
    }
    end_refused(buffer);

    cl_properties asserts[] = {BUFFER_FLAGS, MUTABLE, BUFFER_ASSERTS, NO_ADDITIONAL_WORK_GROUPS, 0};
    cl_int status;
    reset();
    buffer = f.create(1, &here.plain, asserts, &status);
    OK(status);
    REFUSED(CL_INVALID_VALUE, WITH(NULL, NULL));
    OK(WITH(NULL, &sixteen));
    OK(WITH(fewer, &sixteen));
    finalize_and_run(buffer);
    ALL(here.b, 81);
    OK(f.release(buffer));
    /* Only for a command buffer is it said that a property given twice is an error. */
    buffer = new_buffer(here.plain, MUTABLE);
    EITHER(WITH(twice, &sixteen), CL_SUCCESS, CL_INVALID_VALUE);
    OK(f.release(buffer));
#undef WITH
}

static void no_buffer(const char *line, cl_uint count, const cl_command_queue *queues, const cl_properties *properties, cl_int one,
                      cl_int other) {
    cl_int status = 1;
    command_buffer buffer = f.create(count, queues, properties, &status);
    is_one_of(line, "create", status, one, other);
    SO(buffer == NULL);
    SO(f.create(count, queues, properties, NULL) == NULL);
}

static void errors_of_create(void) {
#define NO_BUFFER(wanted, count, queues, properties) no_buffer(HERE, count, queues, properties, wanted, wanted)
#define LIST(...) ((cl_properties[]){__VA_ARGS__, 0})
    cl_command_queue queue = here.plain, none = NULL, two[2] = {here.plain, here.reader}, foreign[2] = {here.plain, there.plain};
    NO_BUFFER(CL_INVALID_VALUE, 0, &queue, NULL);
    NO_BUFFER(CL_INVALID_VALUE, 0, NULL, NULL);
    NO_BUFFER(CL_INVALID_VALUE, 1, NULL, NULL);
    if (!has_multi) {
        NO_BUFFER(CL_INVALID_VALUE, 2, two, NULL);
        no_buffer(HERE, 2, foreign, NULL, CL_INVALID_VALUE, CL_INVALID_CONTEXT);
    } else NO_BUFFER(CL_INVALID_CONTEXT, 2, foreign, NULL);
    NO_BUFFER(CL_INVALID_COMMAND_QUEUE, 1, &none, NULL);
    NO_BUFFER(CL_INVALID_VALUE, 1, &queue, LIST(0x7777, 0));
    NO_BUFFER(CL_INVALID_VALUE, 1, &queue, LIST(BUFFER_FLAGS, 0, 0x7777, 0));
    NO_BUFFER(CL_INVALID_VALUE, 1, &queue, LIST(BUFFER_FLAGS, 0, BUFFER_FLAGS, 0));
    NO_BUFFER(CL_INVALID_VALUE, 1, &queue, LIST(BUFFER_FLAGS, 1 << 20));
    NO_BUFFER(CL_INVALID_VALUE, 1, &queue, LIST(BUFFER_FLAGS, (cl_properties)1 << 40));
    /* A flag of another extension is not valid, or it is valid and not supported. */
    if (!has_multi) no_buffer(HERE, 1, &queue, LIST(BUFFER_FLAGS, DEVICE_SIDE_SYNC), CL_INVALID_VALUE, CL_INVALID_PROPERTY);
    if (!has_mutable) {
        no_buffer(HERE, 1, &queue, LIST(BUFFER_FLAGS, MUTABLE), CL_INVALID_VALUE, CL_INVALID_PROPERTY);
        no_buffer(HERE, 1, &queue, LIST(BUFFER_FLAGS, SIMULTANEOUS_USE), CL_INVALID_VALUE, CL_INVALID_PROPERTY);
    } else {
        NO_BUFFER(CL_INVALID_VALUE, 1, &queue, LIST(BUFFER_ASSERTS, 1 << 20));
        NO_BUFFER(CL_INVALID_VALUE, 1, &queue, LIST(BUFFER_ASSERTS, 0, BUFFER_FLAGS, MUTABLE, BUFFER_ASSERTS, 0));
        if (!(capabilities & CAN_SIMULTANEOUS_USE))
            NO_BUFFER(CL_INVALID_PROPERTY, 1, &queue, LIST(BUFFER_FLAGS, SIMULTANEOUS_USE));
    }
}

/* Steps of a life in the wrong order. */
static void errors_of_states(void) {
    reset();
    command_buffer buffer = new_buffer(here.plain, 0);
    SO(state_of(buffer) == RECORDING);
    IS(f.enqueue(0, NULL, buffer, 0, NULL, NULL), CL_INVALID_OPERATION);
    OK(record(COPY, (where){.buffer = buffer}));
    IS(f.enqueue(1, &here.plain, buffer, 0, NULL, NULL), CL_INVALID_OPERATION);
    OK(f.finalize(buffer));
    SO(state_of(buffer) == EXECUTABLE);
    IS(f.finalize(buffer), CL_INVALID_OPERATION);
    run_on(here.plain, buffer);
    SO(state_of(buffer) == EXECUTABLE);
    IS(f.finalize(buffer), CL_INVALID_OPERATION);
    ALL(here.b, 2);
    OK(f.release(buffer));
}

static void errors_of_enqueue(void) {
    reset();
    command_buffer buffer = new_buffer(here.plain, 0);
    OK(record(COPY, (where){.buffer = buffer}));
    OK(f.finalize(buffer));
    cl_command_queue queues[2] = {here.plain, here.plain}, none = NULL;
    cl_event gate = new_gate(), pair[2] = {gate, NULL};
    cl_int status;
    cl_event foreign = clCreateUserEvent(there.context, &status);
    OK(status);
    IS(f.enqueue(1, NULL, buffer, 0, NULL, NULL), CL_INVALID_VALUE);
    IS(f.enqueue(0, queues, buffer, 0, NULL, NULL), CL_INVALID_VALUE);
    IS(f.enqueue(2, queues, buffer, 0, NULL, NULL), CL_INVALID_VALUE);
    IS(f.enqueue(1, &none, buffer, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
    IS(f.enqueue(1, &there.plain, buffer, 0, NULL, NULL), CL_INVALID_CONTEXT);
    IS(f.enqueue(0, NULL, buffer, 1, &foreign, NULL), CL_INVALID_CONTEXT);
    IS(f.enqueue(0, NULL, buffer, 1, NULL, NULL), CL_INVALID_EVENT_WAIT_LIST);
    IS(f.enqueue(0, NULL, buffer, 0, &gate, NULL), CL_INVALID_EVENT_WAIT_LIST);
    IS(f.enqueue(0, NULL, buffer, 1, pair + 1, NULL), CL_INVALID_EVENT_WAIT_LIST);
    IS(f.enqueue(0, NULL, buffer, 2, pair, NULL), CL_INVALID_EVENT_WAIT_LIST);
    cl_bitfield host = device_bits(CL_DEVICE_QUEUE_ON_HOST_PROPERTIES);
    for (cl_bitfield bit = 1; bit <= CL_QUEUE_PROFILING_ENABLE; bit *= 2) {
        if (!(host & bit & ~supported)) continue;
        cl_command_queue queue = new_queue(here.context, bit | required);
        IS(f.enqueue(1, &queue, buffer, 0, NULL, NULL), INCOMPATIBLE_COMMAND_QUEUE);
        OK(clReleaseCommandQueue(queue));
    }
    if (required != 0) {
        cl_command_queue queue = new_queue(here.context, 0);
        IS(f.enqueue(1, &queue, buffer, 0, NULL, NULL), INCOMPATIBLE_COMMAND_QUEUE);
        OK(clReleaseCommandQueue(queue));
    }
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clSetUserEventStatus(foreign, CL_COMPLETE));
    OK(clFinish(here.plain));
    SO(untouched());
    run_on(here.plain, buffer);
    ALL(here.b, 2);
    OK(clReleaseEvent(gate));
    OK(clReleaseEvent(foreign));
    OK(f.release(buffer));
}

static cl_int of_buffer(void *object, cl_uint name, size_t size, void *value, size_t *size_ret) {
    return f.info(object, name, size, value, size_ret);
}

static cl_int of_command(void *object, cl_uint name, size_t size, void *value, size_t *size_ret) {
    return f.command_info(object, name, size, value, size_ret);
}

typedef cl_int query(void *, cl_uint, size_t, void *, size_t *);

/* A query has this answer, at its exact size. */
static void answers(const char *line, query *ask, void *object, cl_uint name, size_t size, const void *wanted) {
    unsigned char got[256];
    size_t exact = 12345;
    int before = __atomic_load_n(&wrong, __ATOMIC_SEQ_CST);
    IS(ask(object, name, 0, NULL, &exact), CL_SUCCESS);
    SO(exact == size);
    IS(ask(object, name, 0, NULL, NULL), CL_SUCCESS);
    memset(got, 0xEE, sizeof got);
    exact = 12345;
    IS(ask(object, name, size, size ? got : NULL, &exact), CL_SUCCESS);
    SO(exact == size);
    SO(memcmp(got, wanted, size) == 0);
    SO(got[size] == 0xEE);
    IS(ask(object, name, sizeof got, got, NULL), CL_SUCCESS);
    SO(memcmp(got, wanted, size) == 0);
    if (size > 0) IS(ask(object, name, size - 1, got, &exact), CL_INVALID_VALUE);
    if (before != __atomic_load_n(&wrong, __ATOMIC_SEQ_CST)) printf("%s: the query 0x%X\n", line, name);
}

#define ANSWERS(ask, object, name, type, wanted) answers(HERE, ask, object, name, sizeof(type), &(type){wanted})

static void queries(void) {
    /* Names of the extension for several devices are there with it only: 0x12AB to 0x12AC, and the platform's 0x0908. */
    if (!has_multi) {
        IS(clGetDeviceInfo(device, 0x12AB, 0, NULL, &(size_t){0}), CL_INVALID_VALUE);
        IS(clGetDeviceInfo(device, 0x12AC, 0, NULL, &(size_t){0}), CL_INVALID_VALUE);
        IS(clGetPlatformInfo(platform, 0x0908, 0, NULL, &(size_t){0}), CL_INVALID_VALUE);
    }
    cl_properties flags[] = {BUFFER_FLAGS, 0, 0}, empty[] = {0};
    cl_int status;
    command_buffer buffer = f.create(1, &here.plain, flags, &status);
    OK(status);
    ANSWERS(of_buffer, buffer, BUFFER_NUM_QUEUES, cl_uint, 1);
    ANSWERS(of_buffer, buffer, BUFFER_QUEUES, cl_command_queue, here.plain);
    ANSWERS(of_buffer, buffer, BUFFER_REFERENCE_COUNT, cl_uint, 1);
    ANSWERS(of_buffer, buffer, BUFFER_STATE, cl_uint, RECORDING);
    ANSWERS(of_buffer, buffer, BUFFER_CONTEXT, cl_context, here.context);
    answers(HERE, of_buffer, buffer, BUFFER_PROPERTIES_ARRAY, sizeof flags, flags);
    IS(f.info(buffer, 0x7777, 0, NULL, NULL), CL_INVALID_VALUE);
    IS(f.info(buffer, COMMAND_KERNEL, 0, NULL, NULL), CL_INVALID_VALUE);
    OK(f.retain(buffer));
    ANSWERS(of_buffer, buffer, BUFFER_REFERENCE_COUNT, cl_uint, 2);
    OK(f.release(buffer));
    ANSWERS(of_buffer, buffer, BUFFER_REFERENCE_COUNT, cl_uint, 1);
    OK(f.finalize(buffer));
    ANSWERS(of_buffer, buffer, BUFFER_STATE, cl_uint, EXECUTABLE);
    OK(f.release(buffer));

    buffer = f.create(1, &here.plain, empty, &status);
    OK(status);
    answers(HERE, of_buffer, buffer, BUFFER_PROPERTIES_ARRAY, sizeof empty, empty);
    OK(f.release(buffer));
    /* Without a list, none or an empty one. */
    buffer = f.create(1, &here.plain, NULL, &status);
    OK(status);
    cl_properties first = 0;
    size_t size = 12345;
    OK(f.info(buffer, BUFFER_PROPERTIES_ARRAY, sizeof first, &first, &size));
    SO((size == 0 || size == sizeof first) && first == 0);
    OK(f.release(buffer));
}

/* Every function with a handle that is none. */
static void bad_buffer(const char *name, command_buffer buffer) {
    int before = wrong;
    cl_uint value, type = DISPATCH_CONFIG;
    struct dispatch_config config = {0};
    const void *configs[] = {&config};
    for (kind of = 0; of < KINDS; of++)
        if (can(of)) NO(INVALID_COMMAND_BUFFER, .buffer = buffer);
    IS(f.retain(buffer), INVALID_COMMAND_BUFFER);
    IS(f.release(buffer), INVALID_COMMAND_BUFFER);
    IS(f.finalize(buffer), INVALID_COMMAND_BUFFER);
    IS(f.enqueue(0, NULL, buffer, 0, NULL, NULL), INVALID_COMMAND_BUFFER);
    IS(f.enqueue(1, &here.plain, buffer, 0, NULL, NULL), INVALID_COMMAND_BUFFER);
    IS(f.info(buffer, BUFFER_STATE, sizeof value, &value, NULL), INVALID_COMMAND_BUFFER);
    if (has_mutable) {
        IS(f.update(buffer, 0, NULL, NULL), INVALID_COMMAND_BUFFER);
        IS(f.update(buffer, 1, &type, configs), INVALID_COMMAND_BUFFER);
    }
    if (before != wrong) printf("with %s for a command buffer\n", name);
}

static void bad_command(const char *name, command_buffer buffer, mutable_command command) {
    int before = wrong;
    cl_uint value, type = DISPATCH_CONFIG;
    struct dispatch_config config = {.command = command};
    const void *configs[] = {&config};
    IS(f.command_info(command, COMMAND_DIMENSIONS, sizeof value, &value, NULL), INVALID_MUTABLE_COMMAND);
    IS(f.update(buffer, 1, &type, configs), INVALID_MUTABLE_COMMAND);
    if (before != wrong) printf("with %s for a command\n", name);
}

static void handles(void) {
    char local[512] = {0}, ones[512];
    memset(ones, 0xFF, sizeof ones);
    reset();
    command_buffer good = new_buffer(here.plain, has_mutable ? MUTABLE : 0), gone = new_buffer(here.plain, has_mutable ? MUTABLE : 0);
    mutable_command command = NULL, of_gone = NULL;
    OK(record(KERNEL, (where){.buffer = good, .handle = has_mutable ? &command : NULL}));
    OK(record(KERNEL, (where){.buffer = gone, .handle = has_mutable ? &of_gone : NULL}));
    OK(f.finalize(good));
    OK(f.finalize(gone));
    OK(f.release(gone));
    bad_buffer("null", NULL);
    bad_buffer("a released one", gone);
    bad_buffer("a local variable", (command_buffer)local);
    bad_buffer("a local variable of ones", (command_buffer)ones);
    bad_buffer("a number", (command_buffer)(uintptr_t)16);
    bad_buffer("a buffer", (command_buffer)here.a);
    bad_buffer("a queue", (command_buffer)here.plain);
    if (has_mutable) {
        bad_buffer("a command", (command_buffer)command);
        bad_command("null", good, NULL);
        bad_command("one of a released buffer", good, of_gone);
        bad_command("a local variable", good, (mutable_command)local);
        bad_command("a local variable of ones", good, (mutable_command)ones);
        bad_command("a number", good, (mutable_command)(uintptr_t)16);
        bad_command("a buffer", good, (mutable_command)here.a);
        bad_command("a kernel", good, (mutable_command)here.scale);
        bad_command("a command buffer", good, (mutable_command)good);
    }
    run_on(here.plain, good);
    ALL(here.b, 27);
    OK(f.release(good));
}
