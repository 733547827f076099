/* What command buffers do, checked against the host; and what waits for an event that fails. */
#pragma once
#include "errors.h"

/* Each way to record on one queue and run on another. */
static void each_way(void (*part)(cl_command_queue record_on, cl_command_queue run_on)) {
    part(here.plain, here.plain);
    if (!has_loose) return;
    part(here.loose, here.loose);
    part(here.plain, here.loose);
    part(here.loose, here.plain);
}

/* What a command of each kind does to what it writes. */
static void each_kind(cl_command_queue on, cl_command_queue to) {
    for (kind of = COPY; of < KINDS; of++) {
        if (!can(of)) continue;
        reset();
        command_buffer buffer = new_buffer(on, 0);
        OK(record(of, (where){.buffer = buffer}));
        OK(f.finalize(buffer));
        run_on(to, buffer);
        int before = wrong;
        switch (of) {
        case COPY: case RECT: ALL(here.b, 2); break;
        case FILL: ALL(here.b, 5); break;
        case KERNEL: ALL(here.b, 27); break;
        case SVM_COPY: SO(svm_is(here.other_svm, 2)); break;
        case SVM_FILL: SO(svm_is(here.other_svm, 5)); break;
        case FILL_IMAGE: SO(image_is(here.other_image, 5)); break;
        case COPY_IMAGE: SO(image_is(here.other_image, 2)); break;
        case IMAGE_TO_BUFFER: ALL(here.b, 0x02020202); break;
        case BUFFER_TO_IMAGE: SO(!image_is(here.other_image, 9)); break;
        case BARRIER: case KINDS: break;
        }
        if (before != wrong) printf("with %s\n", NAMES[of]);
        /* Again, which changes nothing but the kernel's numbers. */
        run_on(to, buffer);
        if (of == KERNEL) ALL(here.b, 81);
        OK(f.release(buffer));
    }
}

static void kinds(void) {
    each_way(each_kind);
}

/* Offsets, pitches and parts, all in one buffer: copies to `b`, rectangles to `c`. */
static void places(void) {
    number_now(here.a, 1000);
    fill_now(here.b, 0);
    fill_now(here.c, 0);
    command_buffer buffer = new_buffer(here.plain, 0);
    OK(f.copy(HEAD, here.a, here.b, 40, 400, 120, 0, NULL, NULL, NULL));
    OK(f.copy(HEAD, here.b, here.b, 400, 0, 40, 0, NULL, NULL, NULL));
    size_t from[3] = {8, 2, 1}, to[3] = {4, 1, 0}, region[3] = {12, 3, 2};
    OK(f.copy_rect(HEAD, here.a, here.c, from, to, region, 32, 256, 20, 120, 0, NULL, NULL, NULL));
    OK(f.finalize(buffer));
    run_on(here.plain, buffer);
    cl_uint wanted[LEN] = {0};
    for (size_t slice = 0; slice < 2; slice++)
        for (size_t row = 0; row < 3; row++)
            for (size_t byte = 0; byte < 12; byte += 4) {
                size_t source = (slice + 1) * 256 + (row + 2) * 32 + 8 + byte;
                wanted[(slice * 120 + (row + 1) * 20 + 4 + byte) / 4] = 1000 + source / 4;
            }
    ALL(here.b, i < 10 ? 1010 + i : i >= 100 && i < 130 ? 910 + i : 0);
    ALL(here.c, wanted[i]);
    OK(f.release(buffer));
}

/* Within one buffer: some drivers compare the pitches from slice to slice of a copy that has one slice. */
static void rects_of_one_slice(void) {
    number_now(here.b, 0);
    command_buffer buffer = new_buffer(here.plain, 0);
    size_t from[3] = {0, 0, 0}, to[3] = {512, 0, 0}, region[3] = {8, 2, 1};
    OK(f.copy_rect(HEAD, here.b, here.b, from, to, region, 16, 64, 16, 48, 0, NULL, NULL, NULL));
    OK(f.finalize(buffer));
    run_on(here.plain, buffer);
    ALL(here.b, i == 128 || i == 129 ? i - 128 : i == 132 || i == 133 ? i - 128 : i);
    OK(f.release(buffer));
}

/* Each size of pattern, in a place of its own, in memory and in SVM. */
static void patterns(void) {
    unsigned char pattern[128], wanted[BYTES], got[BYTES];
    for (int svm = 0; svm <= has_svm; svm++) {
        command_buffer buffer = new_buffer(here.plain, 0);
        memset(wanted, 0xEE, sizeof wanted);
        cl_uint none = 0xEEEEEEEE;
        if (svm) fill_svm_now(here.other_svm, none);
        else fill_now(here.b, none);
        size_t at = 0;
        for (size_t size = 128; size >= 1; size /= 2) {
            for (size_t i = 0; i < size; i++) pattern[i] = (unsigned char)(size + 3 * i);
            for (size_t i = 0; i < 3 * size; i++) wanted[at + i] = pattern[i % size];
            if (svm) OK(f.svm_fill(HEAD, (char *)here.other_svm + at, pattern, size, 3 * size, 0, NULL, NULL, NULL));
            else OK(f.fill(HEAD, here.b, pattern, size, at, 3 * size, 0, NULL, NULL, NULL));
            memset(pattern, 0xDD, sizeof pattern);
            at += 4 * size;
        }
        OK(f.finalize(buffer));
        for (int again = 0; again < 2; again++) {
            run_on(here.plain, buffer);
            if (svm) {
                OK(clEnqueueSVMMap(here.reader, CL_TRUE, CL_MAP_READ, here.other_svm, BYTES, 0, NULL, NULL));
                memcpy(got, here.other_svm, BYTES);
                OK(clEnqueueSVMUnmap(here.reader, here.other_svm, 0, NULL, NULL));
                OK(clFinish(here.reader));
            } else read_all(here.b, (cl_uint *)got);
            for (size_t i = 0; i < at; i++)
                if (got[i] != wanted[i]) {
                    printf("%s at byte %zu: %u, not %u\n", svm ? "SVM" : "memory", i, got[i], wanted[i]);
                    SO(!"the pattern");
                    break;
                }
        }
        OK(f.release(buffer));
    }
}

/* Parts of images, and the way of a pixel from a buffer over two images to a buffer. */
static void images(cl_command_queue on, cl_command_queue to) {
    if (!has_images) return;
    reset();
    number_now(here.a, 0x01020300);
    size_t o[3] = {0, 0, 0}, at[3] = {3, 5, 0}, to_at[3] = {1, 2, 0}, r[3] = {4, 2, 1};
    cl_uint colour[4] = {1, 2, 3, 4};
    sync_point p[5];
    command_buffer buffer = new_buffer(on, 0);
    OK(f.buffer_to_image(HEAD, here.a, here.image, 64, at, r, 0, NULL, &p[0], NULL));
    OK(f.fill_image(HEAD, here.other_image, colour, o, whole_image, 0, NULL, &p[1], NULL));
    OK(f.copy_image(HEAD, here.image, here.other_image, at, to_at, r, 2, p, &p[2], NULL));
    OK(f.image_to_buffer(HEAD, here.other_image, here.b, o, whole_image, 0, 1, &p[2], NULL, NULL));
    OK(f.image_to_buffer(HEAD, here.image, here.c, at, r, 32, 1, &p[0], NULL, NULL));
    OK(f.finalize(buffer));
    for (int again = 0; again < 3; again++) {
        fill_now(here.b, 0);
        run_on(to, buffer);
        cl_uchar fill[4] = {1, 2, 3, 4};
        cl_uint plain_colour;
        memcpy(&plain_colour, fill, 4);
#define INSIDE(i) (i % WIDE >= 1 && i % WIDE < 5 && i / WIDE >= 2 && i / WIDE < 4)
        ALL(here.b, INSIDE(i) ? 0x01020310 + (i % WIDE - 1) + 4 * (i / WIDE - 2) : plain_colour);
        ALL(here.c, i >= 8 && i < 16 ? 0x01020310 + i - 8 : 9);
    }
    OK(f.release(buffer));
}

static void parts_of_images(void) {
    each_way(images);
}

static cl_int launch(command_buffer buffer, cl_kernel kernel, cl_uint count, const sync_point *list, sync_point *point) {
    return f.kernel(buffer, NULL, NULL, kernel, 1, NULL, &length, NULL, count, list, point, NULL);
}

static cl_int fill_with(command_buffer buffer, cl_mem memory, cl_uint with, cl_uint count, const sync_point *list,
                        sync_point *point) {
    return f.fill(buffer, NULL, NULL, memory, &with, sizeof with, 0, BYTES, count, list, point, NULL);
}

/* Commands that are right in one order only, in which an in-order queue has them, or sync points, or barriers. */
static void one_order(cl_command_queue on, cl_command_queue to, bool points, bool barriers) {
    cl_kernel by3 = kernel_with("scale", here.a, 3), by5 = kernel_with("scale", here.a, 5), add = new_kernel("add");
    set_memory(add, 0, here.a);
    set_memory(add, 1, here.b);
    command_buffer buffer = new_buffer(on, 0);
    sync_point p[5];
#define AFTER(i) points ? 1 : 0, points ? &p[i] : NULL
#define BETWEEN() (barriers ? f.barrier(buffer, NULL, NULL, 0, NULL, NULL, NULL) : CL_SUCCESS)
    OK(fill_with(buffer, here.a, 1, 0, NULL, &p[0]));
    OK(BETWEEN());
    OK(launch(buffer, by3, AFTER(0), &p[1]));
    OK(BETWEEN());
    OK(f.copy(HEAD, here.a, here.b, 0, 0, BYTES, AFTER(1), &p[2], NULL));
    OK(BETWEEN());
    OK(launch(buffer, by5, AFTER(2), &p[3]));
    OK(BETWEEN());
    OK(launch(buffer, add, AFTER(3), &p[4]));
    OK(f.finalize(buffer));
    for (int again = 0; again < 5; again++) {
        fill_now(here.a, 77);
        fill_now(here.b, 77);
        run_on(to, buffer);
        ALL(here.a, 15);
        ALL(here.b, 18);
    }
    OK(f.release(buffer));
    OK(clReleaseKernel(by3));
    OK(clReleaseKernel(by5));
    OK(clReleaseKernel(add));
}

static void orders(void) {
    one_order(here.plain, here.plain, false, false);
    one_order(here.plain, here.plain, true, true);
    if (!has_loose) return;
    one_order(here.plain, here.loose, false, false);
    one_order(here.loose, here.loose, true, false);
    one_order(here.loose, here.loose, false, true);
    one_order(here.loose, here.plain, true, false);
    one_order(here.loose, here.plain, false, true);
}

/* One, then two beside each other, then one after both. */
static void diamond(cl_command_queue on, cl_command_queue to) {
    cl_kernel b3 = kernel_with("scale", here.b, 3), c5 = kernel_with("scale", here.c, 5), add = new_kernel("add");
    set_memory(add, 0, here.b);
    set_memory(add, 1, here.c);
    command_buffer buffer = new_buffer(on, 0);
    sync_point top, left, right, both[2];
    OK(fill_with(buffer, here.a, 2, 0, NULL, &top));
    OK(f.copy(HEAD, here.a, here.b, 0, 0, BYTES, 1, &top, &left, NULL));
    OK(f.copy(HEAD, here.a, here.c, 0, 0, BYTES, 1, &top, &right, NULL));
    OK(launch(buffer, b3, 1, &left, &both[0]));
    OK(launch(buffer, c5, 1, &right, &both[1]));
    SO(top != left && left != right && right != both[0] && both[0] != both[1]);
    OK(launch(buffer, add, 2, both, NULL));
    memset(both, 0xAA, sizeof both);
    OK(f.finalize(buffer));
    for (int again = 0; again < 5; again++) {
        fill_now(here.a, 77);
        run_on(to, buffer);
        ALL(here.c, 16);
    }
    OK(f.release(buffer));
    OK(clReleaseKernel(b3));
    OK(clReleaseKernel(c5));
    OK(clReleaseKernel(add));
}

static void diamonds(void) {
    each_way(diamond);
}

/* What comes after a barrier that waits for a list waits for the barrier. A barrier's sync point can be waited for. */
static void barriers(cl_command_queue on, cl_command_queue to) {
    cl_kernel a3 = kernel_with("scale", here.a, 3), a5 = kernel_with("scale", here.a, 5);
    command_buffer buffer = new_buffer(on, 0);
    sync_point filled, barrier, scaled;
    OK(fill_with(buffer, here.a, 2, 0, NULL, &filled));
    OK(f.barrier(HEAD, 1, &filled, &barrier, NULL));
    OK(launch(buffer, a3, 0, NULL, &scaled));
    OK(f.barrier(HEAD, 1, &scaled, &barrier, NULL));
    OK(launch(buffer, a5, 1, &barrier, NULL));
    OK(f.barrier(HEAD, 0, NULL, NULL, NULL));
    OK(f.copy(HEAD, here.a, here.b, 0, 0, BYTES, 0, NULL, NULL, NULL));
    OK(f.finalize(buffer));
    for (int again = 0; again < 5; again++) {
        fill_now(here.b, 77);
        run_on(to, buffer);
        ALL(here.b, 30);
    }
    OK(f.release(buffer));
    OK(clReleaseKernel(a3));
    OK(clReleaseKernel(a5));
}

static void with_barriers(void) {
    each_way(barriers);
}

/* Submissions one after the other, ordered by the queue, by events or by barriers between them. */
static void again_and_again(void) {
    cl_kernel by3 = kernel_with("scale", here.a, 3);
    command_buffer buffer = new_buffer(here.plain, 0);
    OK(launch(buffer, by3, 0, NULL, NULL));
    OK(f.finalize(buffer));
    fill_now(here.a, 1);
    for (int i = 0; i < 8; i++) OK(f.enqueue(0, NULL, buffer, 0, NULL, NULL));
    OK(clFinish(here.plain));
    ALL(here.a, 6561);
    cl_command_queue queue = has_loose ? here.loose : here.reader;
    fill_now(here.a, 1);
    cl_event events[8];
    for (int i = 0; i < 8; i++) OK(f.enqueue(1, &queue, buffer, i > 0 ? 1 : 0, i > 0 ? &events[i - 1] : NULL, &events[i]));
    OK(clWaitForEvents(1, &events[7]));
    ALL(here.a, 6561);
    for (int i = 0; i < 8; i++) OK(clReleaseEvent(events[i]));
    fill_now(here.a, 1);
    for (int i = 0; i < 8; i++) {
        OK(f.enqueue(1, &queue, buffer, 0, NULL, NULL));
        OK(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
    }
    OK(clFinish(queue));
    ALL(here.a, 6561);
    /* Between the queue's other commands, some recorded meanwhile. */
    command_buffer other = new_buffer(here.plain, 0);
    cl_uint two = 2;
    OK(clEnqueueFillBuffer(here.plain, here.a, &two, sizeof two, 0, BYTES, 0, NULL, NULL));
    OK(launch(other, by3, 0, NULL, NULL));
    OK(f.enqueue(0, NULL, buffer, 0, NULL, NULL));
    OK(launch(other, by3, 0, NULL, NULL));
    OK(clEnqueueCopyBuffer(here.plain, here.a, here.b, 0, 0, BYTES, 0, NULL, NULL));
    OK(f.enqueue(0, NULL, buffer, 0, NULL, NULL));
    OK(clFinish(here.plain));
    ALL(here.b, 6);
    ALL(here.a, 18);
    OK(f.finalize(other));
    run_on(here.plain, other);
    ALL(here.a, 162);
    OK(f.release(other));
    OK(f.release(buffer));
    OK(clReleaseKernel(by3));
}

/* A command keeps the arguments that its kernel had, and the objects that it was given. */
static void kept(void) {
    reset();
    cl_kernel by = kernel_with("scale", here.a, 3);
    cl_mem temporary = new_memory(here.context, BYTES);
    cl_command_queue queue = new_queue(here.context, required);
    command_buffer buffer = new_buffer(queue, 0);
    OK(launch(buffer, by, 0, NULL, NULL));
    set_number(by, 1, 5);
    OK(launch(buffer, by, 0, NULL, NULL));
    set_memory(by, 0, here.c);
    set_number(by, 1, 100);
    OK(fill_with(buffer, temporary, 70, 0, NULL, NULL));
    OK(f.copy(HEAD, temporary, here.b, 0, 0, BYTES, 0, NULL, NULL, NULL));
    OK(clReleaseMemObject(temporary));
    OK(clReleaseKernel(by));
    OK(f.finalize(buffer));
    OK(clReleaseCommandQueue(queue));
    for (int again = 0; again < 3; again++) {
        fill_now(here.a, 2);
        cl_event event;
        OK(f.enqueue(0, NULL, buffer, 0, NULL, &event));
        OK(clWaitForEvents(1, &event));
        OK(clReleaseEvent(event));
        ALL(here.a, 30);
        ALL(here.b, 70);
        ALL(here.c, 9);
    }
    OK(f.release(buffer));
}

/* Released while its submission cannot begin yet. */
static void released_in_flight(cl_command_queue on, cl_command_queue to) {
    reset();
    cl_kernel by3 = kernel_with("scale", here.a, 3);
    command_buffer buffer = new_buffer(on, 0);
    sync_point point;
    OK(launch(buffer, by3, 0, NULL, &point));
    OK(f.copy(HEAD, here.a, here.b, 0, 0, BYTES, 1, &point, NULL, NULL));
    OK(f.finalize(buffer));
    cl_event gate = new_gate(), done;
    OK(f.enqueue(1, &to, buffer, 1, &gate, &done));
    OK(f.release(buffer));
    OK(clReleaseKernel(by3));
    OK(clFlush(to));
    usleep(5000);
    SO(untouched());
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clWaitForEvents(1, &done));
    ALL(here.b, 6);
    OK(clReleaseEvent(gate));
    OK(clReleaseEvent(done));
}

static void in_flight(void) {
    each_way(released_in_flight);
    /* With no event, and nobody waits. */
    reset();
    command_buffer buffer = new_buffer(here.plain, 0);
    OK(record(COPY, (where){.buffer = buffer}));
    OK(f.finalize(buffer));
    OK(f.enqueue(0, NULL, buffer, 0, NULL, NULL));
    OK(f.release(buffer));
    OK(clFinish(here.plain));
    ALL(here.b, 2);
    /* Not finalized, not run. */
    OK(f.release(new_buffer(here.plain, 0)));
    buffer = new_buffer(here.plain, 0);
    OK(record(KERNEL, (where){.buffer = buffer}));
    OK(f.release(buffer));
}

static cl_int status_of(cl_event event) {
    cl_int status = 77;
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    return status;
}

static void empty(cl_command_queue on, cl_command_queue to) {
    command_buffer nothing = new_buffer(on, 0), barrier = new_buffer(on, 0);
    OK(f.barrier(barrier, NULL, NULL, 0, NULL, NULL, NULL));
    OK(f.finalize(nothing));
    OK(f.finalize(barrier));
    command_buffer both[] = {nothing, barrier};
    for (int i = 0; i < 2; i++) {
        run_on(to, both[i]);
        cl_event gate = new_gate(), done;
        OK(f.enqueue(1, &to, both[i], 1, &gate, &done));
        OK(f.release(both[i]));
        OK(clFlush(to));
        SO(status_of(done) > CL_COMPLETE);
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        OK(clWaitForEvents(1, &done));
        SO(status_of(done) == CL_COMPLETE);
        OK(clReleaseEvent(gate));
        OK(clReleaseEvent(done));
    }
}

static void empties(void) {
    each_way(empty);
}

/* How often a command is recorded that does the same each time. Long command buffers are held back until all of them is enqueued. */
static int repeats = 1;

/* Waits for all of a list: events of the program, of a plain command and of a command buffer. */
static void wait_list(cl_command_queue on, cl_command_queue to) {
    reset();
    command_buffer first = new_buffer(on, 0), second = new_buffer(on, 0);
    OK(fill_with(first, here.c, 4, 0, NULL, NULL));
    for (int i = 0; i < repeats; i++)
        OK(f.copy(second, NULL, NULL, here.a, here.b, 0, 0, BYTES, 0, NULL, NULL, NULL));
    OK(f.finalize(first));
    OK(f.finalize(second));
    cl_event list[4] = {new_gate(), NULL, new_gate(), NULL}, done;
    cl_uint three = 3;
    cl_command_queue another = new_queue(here.context, required);
    OK(clEnqueueFillBuffer(here.reader, here.a, &three, sizeof three, 0, BYTES, 0, NULL, &list[1]));
    OK(f.enqueue(1, &another, first, 1, &list[2], &list[3]));
    OK(f.enqueue(1, &to, second, 4, list, &done));
    OK(clFlush(here.reader));
    OK(clFlush(another));
    OK(clFlush(to));
    OK(clSetUserEventStatus(list[2], CL_COMPLETE));
    OK(clWaitForEvents(1, &list[3]));
    SO(status_of(done) > CL_COMPLETE);
    ALL(here.c, 4);
    ALL(here.b, 9);
    OK(clSetUserEventStatus(list[0], CL_COMPLETE));
    OK(clWaitForEvents(1, &done));
    ALL(here.b, 3);
    for (int i = 0; i < 4; i++) OK(clReleaseEvent(list[i]));
    OK(clReleaseEvent(done));
    OK(clReleaseCommandQueue(another));
    OK(f.release(first));
    OK(f.release(second));
}

static void wait_lists(void) {
    each_way(wait_list);
}

static void wait_lists_of_long(void) {
    repeats = 130;
    each_way(wait_list);
    repeats = 1;
}

/* Without a user event of the program's. */
static void long_one(cl_command_queue on, cl_command_queue to) {
    reset();
    command_buffer buffer = new_buffer(on, 0);
    for (int i = 0; i < 130; i++)
        OK(f.copy(buffer, NULL, NULL, here.a, here.b, 0, 0, BYTES, 0, NULL, NULL, NULL));
    OK(f.finalize(buffer));
    cl_uint three = 3;
    OK(clEnqueueFillBuffer(here.reader, here.a, &three, sizeof three, 0, BYTES, 0, NULL, NULL));
    OK(clFinish(here.reader));
    OK(f.enqueue(1, &to, buffer, 0, NULL, NULL));
    OK(clFinish(to));
    ALL(here.b, 3);
    OK(f.release(buffer));
}

static void long_ones(void) {
    /* The thread that would open a gate may be the one that hangs. */
    alarm(100);
    each_way(long_one);
    alarm(0);
}

static void CL_CALLBACK note(cl_event event, cl_int status, void *data) {
    (void)event;
    __atomic_store_n((cl_int *)data, status, __ATOMIC_SEQ_CST);
}

static cl_uint references(cl_event event) {
    cl_uint count = 0;
    OK(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof count, &count, NULL));
    return count;
}

/* Of an event of a plain command that has waited and was called back. */
static cl_uint references_of_a_fill(cl_command_queue queue) {
    cl_event event = NULL, gate = new_gate();
    cl_uint zero = 0, count;
    cl_int called = 77;
    OK(clEnqueueFillBuffer(queue, here.c, &zero, sizeof zero, 0, BYTES, 1, &gate, &event));
    OK(clSetEventCallback(event, CL_COMPLETE, note, &called));
    OK(clFlush(queue));
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clWaitForEvents(1, &event));
    for (int i = 0; i < 5000 && __atomic_load_n(&called, __ATOMIC_SEQ_CST) == 77; i++) usleep(1000);
    usleep(20000);
    count = references(event);
    OK(clReleaseEvent(event));
    OK(clReleaseEvent(gate));
    return count;
}

static void event_on(cl_command_queue creation, cl_command_queue to, bool by_list, bool profiling) {
    command_buffer buffer = new_buffer(creation, 0);
    OK(record(KERNEL, (where){.buffer = buffer}));
    OK(f.finalize(buffer));
    cl_event event = NULL, gate = new_gate();
    cl_int called = 77;
    OK(f.enqueue(by_list, by_list ? &to : NULL, buffer, 1, &gate, &event));
    OK(clSetEventCallback(event, CL_COMPLETE, note, &called));
    OK(clFlush(to));
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clWaitForEvents(1, &event));
    cl_command_type type = 0;
    cl_command_queue queue = NULL;
    cl_context context = NULL;
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL));
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL));
    OK(clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof context, &context, NULL));
    SO(type == COMMAND_COMMAND_BUFFER_EVENT);
    SO(queue == to);
    SO(context == here.context);
    SO(status_of(event) == CL_COMPLETE);
    for (int i = 0; i < 5000 && __atomic_load_n(&called, __ATOMIC_SEQ_CST) == 77; i++) usleep(1000);
    SO(__atomic_load_n(&called, __ATOMIC_SEQ_CST) == CL_COMPLETE);
    /* At most as many as the driver's own events have. Some have one for a moment longer. */
    cl_uint most = references_of_a_fill(to);
    for (int i = 0; i < 5000 && references(event) > most; i++) usleep(1000);
    SO(references(event) <= most);
    cl_ulong times[4] = {0};
    cl_profiling_info names[4] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT, CL_PROFILING_COMMAND_START,
                                  CL_PROFILING_COMMAND_END};
    for (int i = 0; i < 4; i++)
        IS(clGetEventProfilingInfo(event, names[i], sizeof times[i], &times[i], NULL),
           profiling ? CL_SUCCESS : CL_PROFILING_INFO_NOT_AVAILABLE);
    if (profiling) SO(times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3] && times[3] > 0);
    OK(clReleaseEvent(event));
    OK(clReleaseEvent(gate));
    OK(f.release(buffer));
}

static void events(void) {
    reset();
    event_on(here.plain, here.plain, false, false);
    event_on(here.plain, here.reader, true, false);
    if (has_loose) event_on(here.plain, here.loose, true, false);
    if (!(supported & CL_QUEUE_PROFILING_ENABLE)) {
        printf("no profiling\n");
        return;
    }
    cl_command_queue timed = new_queue(here.context, required | CL_QUEUE_PROFILING_ENABLE);
    event_on(timed, timed, false, true);
    event_on(here.plain, timed, true, true);
    event_on(timed, here.plain, true, false);
    OK(clReleaseCommandQueue(timed));
    if (!has_loose) return;
    timed = new_queue(here.context, required | CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    event_on(here.plain, timed, true, true);
    OK(clReleaseCommandQueue(timed));
}

static void wait_until_done(cl_event event) {
    for (int i = 0; i < 20000 && status_of(event) > CL_COMPLETE; i++) usleep(1000);
}

/* What waits for a failed event is not executed, and fails too, and what waits for that. */
static void failed_event(cl_command_queue on, cl_bitfield properties) {
    reset();
    cl_command_queue to = new_queue(here.context, required | properties), after = new_queue(here.context, required);
    command_buffer buffer = new_buffer(on, 0), next = new_buffer(on, 0), nothing = new_buffer(on, 0);
    for (int i = 0; i < repeats; i++) OK(record(COPY, (where){.buffer = buffer}));
    OK(record(FILL, (where){.buffer = next}));
    OK(f.finalize(buffer));
    OK(f.finalize(next));
    OK(f.finalize(nothing));
    cl_event gates[2] = {new_gate(), new_gate()}, failed[3];
    cl_int called = 77;
    OK(f.enqueue(1, &to, buffer, 2, gates, &failed[0]));
    OK(f.enqueue(1, &to, next, 1, &failed[0], &failed[1]));
    OK(f.enqueue(1, &to, nothing, 1, &failed[0], &failed[2]));
    OK(clSetEventCallback(failed[0], CL_COMPLETE, note, &called));
    OK(clFlush(to));
    SO(status_of(failed[0]) > CL_COMPLETE);
    OK(clSetUserEventStatus(gates[1], CL_COMPLETE));
    OK(clSetUserEventStatus(gates[0], -5));
    for (int i = 0; i < 3; i++) {
        wait_until_done(failed[i]);
        SO(status_of(failed[i]) < 0);
        IS(clWaitForEvents(1, &failed[i]), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    }
    /* Whether the callback is called, and with which status, is the driver's: PoCL calls it with 0, or never. */
    SO(__atomic_load_n(&called, __ATOMIC_SEQ_CST) == 77 || __atomic_load_n(&called, __ATOMIC_SEQ_CST) <= 0);
    SO(untouched());
    /* The command buffer is as good as before, on a queue that has seen no failure. */
    run_on(after, buffer);
    ALL(here.b, 2);
    /* An event that has failed before the call. */
    fill_now(here.b, 9);
    cl_event late = NULL;
    cl_int status = f.enqueue(1, &after, buffer, 1, &gates[0], &late);
    EITHER(status, CL_SUCCESS, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    if (status == CL_SUCCESS) {
        wait_until_done(late);
        SO(status_of(late) < 0);
        OK(clReleaseEvent(late));
    }
    SO(untouched());
    for (int i = 0; i < 3; i++) OK(clReleaseEvent(failed[i]));
    for (int i = 0; i < 2; i++) OK(clReleaseEvent(gates[i]));
    OK(f.release(buffer));
    OK(f.release(next));
    OK(f.release(nothing));
    OK(clReleaseCommandQueue(to));
    OK(clReleaseCommandQueue(after));
}

static void failing_in_order(void) {
    failed_event(here.plain, 0);
    repeats = 130;
    failed_event(here.plain, 0);
    repeats = 1;
}

static void failing_out_of_order(void) {
    if (has_loose) failed_event(here.loose, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}
