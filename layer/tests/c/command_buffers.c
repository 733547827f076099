/* Command buffers as the specification has them. `command_buffers USE` prints "ok", or what is not so; `command_buffers USE PART`
 * does one part of a use. What a device lacks is said, and left out. */
#define _GNU_SOURCE
#include "command_buffers/devices.h"

enum { TIMES = 300 };

typedef struct {
    cl_command_queue queue;
    cl_mem a, b, c;
    cl_kernel more;
    cl_uint by;
    command_buffer shared;
} thread_objects;

/* One turn adds 4 * by + 1 to what is in `c`. */
static void turn(thread_objects *of) {
    cl_bitfield flags = has_mutable ? MUTABLE : 0;
    bool change = fields & ARGUMENTS;
    command_buffer buffer = new_buffer(of->queue, flags);
    mutable_command command = NULL;
    cl_event events[2];
    OK(fill_with(buffer, of->a, of->by, 0, NULL, NULL));
    OK(f.copy(buffer, NULL, NULL, of->a, of->b, 0, 0, BYTES, 0, NULL, NULL, NULL));
    if (change) command = changeable(buffer, of->more, ARGUMENTS);
    else OK(launch(buffer, of->more, 0, NULL, NULL));
    OK(f.finalize(buffer));
    OK(f.enqueue(0, NULL, buffer, 0, NULL, &events[0]));
    if (change) OK(change_number(buffer, command, 1, 3 * of->by + 1));
    else OK(clEnqueueNDRangeKernel(of->queue, of->more, 1, NULL, &length, NULL, 0, NULL, NULL));
    OK(f.retain(buffer));
    OK(f.release(buffer));
    OK(f.enqueue(0, NULL, buffer, 1, &events[0], &events[1]));
    OK(clWaitForEvents(2, events));
    OK(clReleaseEvent(events[0]));
    OK(clReleaseEvent(events[1]));
    OK(f.release(buffer));
}

static void *of_its_own(void *given) {
    for (int i = 0; i < TIMES; i++) turn(given);
    return NULL;
}

static void *of_all(void *given) {
    thread_objects *of = given;
    cl_event event;
    for (int i = 0; i < TIMES; i++) {
        bool waits = i % 16 == 15;
        OK(f.enqueue(1, &of->queue, of->shared, 0, NULL, waits ? &event : NULL));
        if (!waits) continue;
        OK(clWaitForEvents(1, &event));
        OK(clReleaseEvent(event));
    }
    OK(clFinish(of->queue));
    return NULL;
}

static void run_threads(void *(*run)(void *), thread_objects *objects) {
    pthread_t ids[THREADS];
    for (int k = 0; k < THREADS; k++) CHECK(pthread_create(&ids[k], NULL, run, &objects[k]) == 0);
    for (int k = 0; k < THREADS; k++) CHECK(pthread_join(ids[k], NULL) == 0);
}

static void make_threads_objects(thread_objects *objects) {
    for (cl_uint k = 0; k < THREADS; k++) {
        objects[k] = (thread_objects){.queue = new_queue(here.context, required), .by = k + 1};
        objects[k].a = new_memory(here.context, BYTES);
        objects[k].b = new_memory(here.context, BYTES);
        objects[k].c = new_memory(here.context, BYTES);
        objects[k].more = kernel_with("more", objects[k].c, k + 1);
        fill_now(objects[k].c, 0);
    }
}

static void drop_threads_objects(thread_objects *objects) {
    for (int k = 0; k < THREADS; k++) {
        OK(clReleaseKernel(objects[k].more));
        OK(clReleaseMemObject(objects[k].a));
        OK(clReleaseMemObject(objects[k].b));
        OK(clReleaseMemObject(objects[k].c));
        OK(clReleaseCommandQueue(objects[k].queue));
    }
}

static void own_buffers(void) {
    thread_objects objects[THREADS];
    make_threads_objects(objects);
    run_threads(of_its_own, objects);
    for (cl_uint k = 0; k < THREADS; k++) {
        cl_uint each = fields & ARGUMENTS ? 4 * (k + 1) + 1 : 3 * (k + 1);
        ALL(objects[k].c, TIMES * each);
        ALL(objects[k].b, k + 1);
    }
    drop_threads_objects(objects);
}

static void one_buffer(void) {
    if (!(capabilities & CAN_SIMULTANEOUS_USE)) {
        printf("no simultaneous use\n");
        return;
    }
    thread_objects objects[THREADS];
    make_threads_objects(objects);
    cl_kernel count = new_kernel("count");
    set_memory(count, 0, here.c);
    fill_now(here.c, 0);
    command_buffer shared = new_buffer(here.plain, SIMULTANEOUS_USE);
    OK(launch(shared, count, 0, NULL, NULL));
    OK(f.finalize(shared));
    for (int k = 0; k < THREADS; k++) objects[k].shared = shared;
    run_threads(of_all, objects);
    ALL(here.c, THREADS * TIMES);
    cl_uint references = 0;
    OK(f.info(shared, BUFFER_REFERENCE_COUNT, sizeof references, &references, NULL));
    SO(references == 1);
    OK(f.release(shared));
    OK(clReleaseKernel(count));
    drop_threads_objects(objects);
}

#define PART(use, part) {use, #part, part}
static const struct { const char *use, *name; void (*part)(void); } PARTS[] = {
    PART("errors", errors_of_create),
    PART("errors", errors_of_all),
    PART("errors", good_properties),
    PART("errors", errors_of_copy),
    PART("errors", errors_of_parts),
    PART("errors", errors_of_rect),
    PART("errors", errors_of_fill),
    PART("errors", errors_of_svm),
    PART("errors", errors_of_images),
    PART("errors", errors_of_immutable),
    PART("errors", errors_of_kernel),
    PART("errors", missing_arguments_by_default),
    PART("errors", errors_of_kernel_properties),
    PART("errors", errors_of_printf),
    PART("errors", errors_of_states),
    PART("errors", errors_of_enqueue),
    PART("errors", other_device),
    PART("errors", programs_of_the_other_device),
    PART("errors", queues_of_other_kinds),
    PART("errors", sizes_beyond_the_device),
    PART("errors", memory_of_the_other_device),
    PART("errors", errors_of_update),
    PART("errors", types_that_are_not_told),
    PART("errors", queries),
    PART("errors", handles),
    PART("results", kinds),
    PART("results", places),
    PART("results", rects_of_one_slice),
    PART("results", patterns),
    PART("results", parts_of_images),
    PART("results", orders),
    PART("results", diamonds),
    PART("results", with_barriers),
    PART("results", again_and_again),
    PART("results", kept),
    PART("results", in_flight),
    PART("results", empties),
    PART("results", wait_lists),
    PART("results", wait_lists_of_long),
    PART("results", events),
    PART("long", long_ones),
    PART("failing", failing_in_order),
    PART("failing", failing_out_of_order),
    PART("updates", arguments),
    PART("updates", svm_arguments),
    PART("updates", image_arguments),
    PART("updates", ranges),
    PART("updates", many),
    PART("updates", updates_in_flight),
    PART("updates", declared),
    PART("updates", fewer_groups),
    PART("updates", deferred),
    PART("updates", command_queries),
    PART("threads", own_buffers),
    PART("threads", one_buffer),
};

/* Whether the driver survives a use in plain OpenCL calls. */
static bool survives(const char *use) {
    char name[256], version[256];
    OK(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL));
    OK(clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version, version, NULL));
    /* A user event with a negative status ends the process. */
    if (strcmp(use, "failing") == 0) return strncmp(name, "Intel", 5) != 0 && strstr(version, "PoCL 3.") == NULL;
    /* Two queues of one context crash. */
    if (strcmp(use, "threads") == 0) return strcmp(name, "rusticl") != 0;
    return true;
}

int main(int argc, char **argv) {
    CHECK(argc == 2 || argc == 3);
    /* A driver that crashes or hangs does not take along what was said before it. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    start();
    if (!survives(argv[1])) {
        printf("no %s: the driver does not survive it without command buffers\nok\n", argv[1]);
        return 0;
    }
    bool with_there = strcmp(argv[1], "errors") == 0;
    if (with_there) there = new_world();
    int done = 0;
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        if (strcmp(argv[1], PARTS[i].use) != 0 || (argc == 3 && strcmp(argv[2], PARTS[i].name) != 0)) continue;
        int before = wrong;
        PARTS[i].part();
        if (before != wrong) printf("in %s\n", PARTS[i].name);
        done++;
    }
    CHECK(done > 0);
    if (with_there) drop_world(there);
    drop_world(here);
    if (wrong > 0) printf("%d wrong\n", wrong);
    else printf("ok\n");
    return wrong > 0;
}
