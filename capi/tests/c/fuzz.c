/* Random calls from many threads, with handles that are null, dead, of another type or made up: some succeed, none may crash, none is a
 * defect of clgraph, and one on a null handle is an error. Calls that would wait for what nobody does are left out. */
#include "common.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 1000, CALLS = 128, EACH = 4, CASES = 140 };

enum type {
    QUEUE, KERNEL, MEMORY, PARAMETER, USER_EVENT, GRAPH, TASK, EXECUTABLE, SUBMISSION, EVENT, IMAGE, SAMPLER, PENDING, PROGRAM, GLOBAL, GROUP,
    ACCESS, SUB_GRAPH, CONTROL, TYPES
};

static bench all;
/* Of each type: the first is never released, if there is one. (Graphs are: see below.) */
static void *pool[TYPES][EACH];
static clg_node recent[16];
/* How often each call succeeded. */
static atomic_size_t succeeded[CASES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A handle: mostly of a type, live or dead; or of another type, or none at all. */
static void *any(uint64_t *state, enum type type) {
    uint64_t choice = next(state);
    if (choice % 8 == 0) {
        return NULL;
    }
    if (choice % 8 == 1) {
        return (void *)(uintptr_t)next(state);
    }
    pthread_mutex_lock(&lock);
    void *found = pool[choice % 8 == 2 ? choice / 256 % TYPES : type][choice / 8 % EACH];
    pthread_mutex_unlock(&lock);
    /* Perhaps another place or another number of uses. */
    return choice % 8 == 3 ? (void *)((uintptr_t)found ^ (uintptr_t)1 << (choice / 256 % 48)) : found;
}

/* The same but the first, without which most calls would fail. */
static void *but(uint64_t *state, enum type type) {
    void *handle = any(state, type);
    for (int i = 0; i < TYPES; i++) {
        if (handle == pool[i][0]) {
            return NULL;
        }
    }
    return handle;
}

static void keep(uint64_t *state, enum type type, void *handle) {
    pthread_mutex_lock(&lock);
    pool[type][1 + next(state) % (EACH - 1)] = handle;
    pthread_mutex_unlock(&lock);
}

static clg_node any_node(uint64_t *state) {
    pthread_mutex_lock(&lock);
    clg_node node = recent[next(state) % 16];
    pthread_mutex_unlock(&lock);
    return node;
}

/* What is so of every call. */
static void look(clg_status status, const void *on) {
    CHECK(status != CLG_DEFECT && clg_last_status() != CLG_DEFECT);
    CHECK(on != NULL || status == CLG_INVALID);
}

static clg_range any_range(uint64_t *state) {
    return (clg_range){any(state, MEMORY), next(state) % 8, next(state) % 3 ? CLG_WHOLE : next(state) % 128};
}

static clg_area any_area(uint64_t *state) {
    clg_area area = {any(state, IMAGE), {0, 0, 0}, {0, 0, 0}};
    if (next(state) % 2) {
        area.origin[next(state) % 3] = next(state) % 5;
        area.region[0] = next(state) % 5, area.region[1] = next(state) % 5, area.region[2] = next(state) % 2;
    }
    return area;
}

/* The calls of a task, also by threads that have found its handle. */
static clg_status of_a_task(uint64_t *state, void *task) {
    uint32_t number = 0;
    clg_mapped at;
    switch (next(state) % 5) {
    case 0: return clg_task_get(task, any_node(state), &number, 4);
    case 1: return clg_task_put(task, any_node(state), &number, 4);
    case 2: return clg_task_map(task, any_range(state), (int32_t)(next(state) % 4), &at);
    case 3: return clg_task_map_image(task, any_area(state), (int32_t)(next(state) % 4), &at);
    default: return clg_task_retain(task);
    }
}

static int task(clg_task task, void *user) {
    uint64_t state = (uint64_t)(uintptr_t)task * 0x9e3779b97f4a7c15u + 1;
    keep(&state, TASK, task);
    for (int i = 0; i < 4; i++) {
        look(of_a_task(&state, task), task);
    }
    /* Some fail. */
    return user == NULL && next(&state) % 8 == 0 ? clg_fail("this time") != CLG_SUCCESS : 0;
}

static int mapped(clg_task of, void *data, size_t size, size_t row_pitch, size_t slice_pitch, void *user) {
    (void)data;
    (void)size;
    (void)row_pitch;
    (void)slice_pitch;
    return task(of, user);
}

static int native(const clg_native_target *target, void *user) {
    (void)user;
    return target->num_memory > 5;
}

/* A body of a queue. Some calls fail, so that loops end. */
static int of_case(clg_queue queue, size_t index, void *user) {
    static atomic_size_t calls;
    uint64_t state = (uint64_t)atomic_fetch_add(&calls, 1) * 0x9e3779b97f4a7c15u + index;
    uint32_t number = (uint32_t)next(&state) % 2;
    (void)user;
    look(clg_enqueue_fill_buffer(queue, any_range(&state), &number, 4, 0, NULL, NULL), queue);
    return next(&state) % 4 == 0;
}

static int body(clg_queue queue, void *user) { return of_case(queue, 0, user); }

static void told(clg_status status, const char *text, void *user) {
    (void)text;
    (void)user;
    CHECK(status != CLG_DEFECT);
}

static void *misuse(void *seed) {
    static const char *const sources[] = {NULL, "", "kernel void broken(", "kernel void one(global uint *a, uint by) { if (a) a[0] = by; }"};
    uint64_t state = (uint64_t)(uintptr_t)seed * 0x9e3779b97f4a7c15u + 1;
    clg_node nodes[4] = {{0, 0, 0}};
    /* Graphs that live long grow, and are parts of each other: then finalizing takes all the time. */
    clg_graph fresh, old;
    OK(clg_graph_create(all.queue, &fresh));
    pthread_mutex_lock(&lock);
    void **place = &pool[GRAPH][next(&state) % EACH];
    old = *place;
    *place = fresh;
    pthread_mutex_unlock(&lock);
    clg_graph_release(old);
    for (int i = 0; i < CALLS; i++) {
        clg_node *node = &nodes[next(&state) % 4];
        uint32_t number = (uint32_t)next(&state), n = (uint32_t)next(&state) % 3;
        void *made = NULL;
        enum type type = TYPES;
        clg_range range = any_range(&state), other = any_range(&state);
        clg_area area = any_area(&state), area2 = any_area(&state);
        clg_node_options options = {.after = nodes, .num_after = next(&state) % 4, .replaces = next(&state) % 8 ? NULL : node,
                                    .label = next(&state) % 4 ? NULL : "some", .after_all_leaves = next(&state) % 8 == 0};
        clg_event waits[2] = {any(&state, EVENT), any(&state, EVENT)};
        clg_event *made_event = next(&state) % 2 ? NULL : (clg_event *)&made;
        clg_use uses[2] = {{range, next(&state) % 4 ? NULL : any(&state, IMAGE), next(&state) % 2, next(&state) % 2}, {other, NULL, true, true}};
        clg_host_task host = {.function = next(&state) % 8 ? task : NULL, .uses = uses, .num_uses = n};
        clg_map_task map = {.function = next(&state) % 8 ? mapped : NULL};
        clg_native_command command = {.enqueue = next(&state) % 4 ? native : NULL, .record = next(&state) % 4 ? NULL : native, .uses = uses, .num_uses = n};
        int32_t mode = (int32_t)(next(&state) % 4);
        clg_global_use global = {any(&state, GLOBAL), next(&state) % 2, next(&state) % 2};
        clg_arg args[3] = {{(int32_t)(next(&state) % 16), 4, &number, range, any(&state, PARAMETER), any(&state, IMAGE), any(&state, SAMPLER),
                            (int32_t)(next(&state) % 12), next(&state) % 8 == 0 ? 4 : 0},
                           {.kind = CLG_ARG_VALUE, .size = 4, .data = &number},
                           {.kind = CLG_ARG_ALSO_PARAMETER, .parameter = any(&state, PARAMETER)}};
        clg_launch launch = {.kernel = any(&state, KERNEL), .args = args, .num_args = next(&state) % 4, .work_dim = (uint32_t)(next(&state) % 5),
                             .global = {1, 1, 1}, .bound = {next(&state) % 2}, .globals = &global, .num_globals = next(&state) % 8 == 0,
                             .no_globals = next(&state) % 8 == 0, .prints = next(&state) % 8 == 0};
        clg_rect rect = {.region = {next(&state) % 9, 1 + next(&state) % 2, 1}, .src_row_pitch = next(&state) % 16};
        size_t sizes[3] = {next(&state) % 3, next(&state) % 2, next(&state) % 2}, size = 0;
        char text[4096];
        void *on = &on; /* Not null, where a call is on no handle. */
        clg_status status = CLG_SUCCESS;
#define ON(of) (on = any(&state, of))
#define MAKES(of) ((type = of), (void *)&made)
        size_t function = next(&state) % CASES;
        switch (function) {
        case 0: status = clg_graph_create(ON(QUEUE), MAKES(GRAPH)); break;
        case 1: status = clg_graph_empty(ON(GRAPH), &options, node); break;
        case 2: status = clg_graph_fill(ON(GRAPH), range, &number, 1 + next(&state) % 4, &options, node); break;
        case 3: status = clg_graph_copy(ON(GRAPH), range, other, NULL, node); break;
        case 4: status = clg_graph_read(ON(GRAPH), range, &options, node); break;
        case 5: status = clg_graph_write(ON(GRAPH), range, &number, 4, NULL, NULL, NULL, node); break;
        case 6: status = clg_graph_allocate(ON(GRAPH), 4 * (next(&state) % 16), true, NULL, MAKES(MEMORY)); break;
        case 7: status = clg_graph_free(ON(GRAPH), any(&state, MEMORY), NULL, node); break;
        case 8: status = clg_graph_finalize(ON(GRAPH), &(clg_finalize_options){.updatable = n, .profiling = number % 2, .loops = (int32_t)(number / 2 % 4)}, MAKES(EXECUTABLE)); break;
        case 9: status = clg_executable_submit(ON(EXECUTABLE), any(&state, QUEUE), NULL, NULL, MAKES(SUBMISSION)); break;
        case 10: status = clg_submission_wait_for(ON(SUBMISSION), 1000); break;
        case 11: status = clg_submission_get(ON(SUBMISSION), *node, &number, 4); break;
        case 12: status = clg_executable_update(ON(EXECUTABLE), nodes, next(&state) % 4); break;
        case 13: status = clg_executable_update_from(ON(EXECUTABLE), any(&state, GRAPH)); break;
        case 14: status = clg_graph_sub_graph(ON(GRAPH), any(&state, EXECUTABLE), NULL, node, MAKES(SUB_GRAPH)); break;
        case 15: status = clg_graph_add_edge(ON(GRAPH), nodes[0], nodes[1]); break;
        case 16: status = clg_graph_release(on = but(&state, GRAPH)); break;
        case 17: status = clg_executable_release(on = but(&state, EXECUTABLE)); break;
        case 18: status = clg_submission_release(on = but(&state, SUBMISSION)); break;
        case 19: status = clg_memory_release(on = but(&state, MEMORY)); break;
        case 20: status = clg_parameter_create(&number, 4, MAKES(PARAMETER)); break;
        case 21: status = clg_parameter_set(ON(PARAMETER), &number, next(&state) % 6); break;
        case 22: status = clg_parameter_release(on = but(&state, PARAMETER)); break;
        case 23: status = clg_user_event_create(all.context, MAKES(USER_EVENT)); break;
        case 24: status = clg_user_event_complete(ON(USER_EVENT)); break;
        case 25: status = clg_user_event_release(on = but(&state, USER_EVENT)); break;
        case 26: status = clg_image_release(on = but(&state, IMAGE)); break;
        case 27:
        case 28: status = clg_graph_kernel(ON(GRAPH), &launch, &options, node); break;
        case 29: status = clg_submission_on_complete(ON(SUBMISSION), n ? told : NULL, NULL, NULL); break;
        case 30:
        case 31: status = clg_graph_host_task(ON(GRAPH), &host, &options, node); break;
        case 32: status = clg_graph_wait_event(ON(GRAPH), NULL, node); break;
        case 33: status = clg_queue_finish(ON(QUEUE)); break;
        case 34: status = clg_enqueue_fill_buffer(ON(QUEUE), range, &number, 4, n, waits, made_event); type = EVENT; break;
        case 35: status = clg_enqueue_copy_buffer(ON(QUEUE), range, other, n, waits, made_event); type = EVENT; break;
        case 36: status = clg_enqueue_read_buffer(ON(QUEUE), range, n, waits, MAKES(PENDING)); break;
        case 37: status = clg_pending_read_wait(ON(PENDING), &number, 4); break;
        case 38: status = clg_parameter_create_memory(range, next(&state) % 2, MAKES(PARAMETER)); break;
        case 39: status = clg_parameter_set_memory(ON(PARAMETER), range); break;
        case 40: status = clg_graph_copy_image(ON(GRAPH), area, area2, &options, node); break;
        case 41: status = clg_image_layers(ON(IMAGE), next(&state) % 2, n, MAKES(IMAGE)); break;
        case 42: status = clg_global_memory(ON(GLOBAL), any(&state, QUEUE), MAKES(MEMORY)); break;
        case 43: status = clg_event_wait(ON(EVENT)); break;
        case 44: status = clg_submission_event(ON(SUBMISSION), MAKES(EVENT)); break;
        case 45: status = clg_command_group_set_active(ON(GROUP), n); break;
        case 46: status = clg_sub_graph_port(ON(SUB_GRAPH), (int32_t)(next(&state) % 6), *node, node); break;
        case 47: status = clg_graph_nodes(ON(GRAPH), (int32_t)(next(&state) % 5), *node, 4, nodes, &size); break;
        case 48: status = clg_command_group_release(on = but(&state, GROUP)); break;
        case 49: status = clg_event_release(on = but(&state, EVENT)); break;
        case 50: status = clg_global_release(on = but(&state, GLOBAL)); break;
        case 51: status = clg_host_access_release(on = but(&state, ACCESS)); break;
        case 52: status = clg_kernel_release(on = but(&state, KERNEL)); break;
        case 53: status = clg_pending_read_release(on = but(&state, PENDING)); break;
        case 54: status = clg_program_release(on = but(&state, PROGRAM)); break;
        case 55: status = clg_queue_release(on = but(&state, QUEUE)); break;
        case 56: status = clg_sampler_release(on = but(&state, SAMPLER)); break;
        case 57: status = clg_sub_graph_release(on = but(&state, SUB_GRAPH)); break;
        case 58: status = clg_task_release(on = but(&state, TASK)); break;
        case 59: status = clg_memory_allocate(ON(QUEUE), 4 + 4 * (next(&state) % 16), (int32_t)(next(&state) % 9), MAKES(MEMORY)); break;
        case 60: {
            void *data;
            status = clg_memory_access_host(ON(MEMORY), next(&state) % 2, &data, MAKES(ACCESS));
            break;
        }
        case 61: status = clg_graph_map(ON(GRAPH), range, mode, &map, &options, node); break;
        case 62: status = clg_enqueue_map(ON(QUEUE), range, mode, &map, n, waits, MAKES(SUBMISSION)); break;
        case 63: {
            clg_queue queues[2] = {any(&state, QUEUE), any(&state, QUEUE)};
            status = clg_graph_begin_recording(ON(GRAPH), queues, n);
            break;
        }
        case 64: {
            clg_queue queue = any(&state, QUEUE);
            status = clg_graph_end_recording(ON(GRAPH), &queue, next(&state) % 2, &size);
            break;
        }
        /* More often than recordings begin: commands are to run too. */
        case 65:
        case 66:
        case 67: status = clg_graph_end_all_recording(ON(GRAPH), NULL); break;
        case 68: status = clg_record_wait_event(ON(QUEUE), n, waits, MAKES(EVENT), node); break;
        case 69: status = clg_queue_recording_graph(ON(QUEUE), MAKES(GRAPH)); break;
        case 70: status = clg_graph_retain(ON(GRAPH)); break;
        case 71: status = clg_memory_retain(ON(MEMORY)); break;
        case 72: status = clg_kernel_retain(ON(KERNEL)); break;
        case 73: status = clg_queue_retain(ON(QUEUE)); break;
        case 74: status = clg_executable_retain(ON(EXECUTABLE)); break;
        case 75: status = clg_submission_retain(ON(SUBMISSION)); break;
        case 76: status = clg_event_retain(ON(EVENT)); break;
        case 77: status = clg_image_retain(ON(IMAGE)); break;
        case 78: status = clg_sampler_retain(ON(SAMPLER)); break;
        case 79: status = clg_global_retain(ON(GLOBAL)); break;
        case 80: status = clg_program_retain(ON(PROGRAM)); break;
        case 81: status = clg_command_group_retain(ON(GROUP)); break;
        case 82: status = clg_parameter_retain(ON(PARAMETER)); break;
        case 83: status = clg_user_event_retain(ON(USER_EVENT)); break;
        case 84: status = clg_sub_graph_retain(ON(SUB_GRAPH)); break;
        case 85: status = clg_pending_read_retain(ON(PENDING)); break;
        case 86: status = clg_host_access_retain(ON(ACCESS)); break;
        case 87:
        case 88: status = of_a_task(&state, ON(TASK)); break;
        case 89: {
            const void *data;
            status = clg_submission_result(ON(SUBMISSION), any_node(&state), &data, &size);
            break;
        }
        case 90: status = clg_graph_copy_rect(ON(GRAPH), range, other, &rect, &options, node); break;
        case 91: status = clg_enqueue_copy_buffer_rect(ON(QUEUE), range, other, &rect, n, waits, made_event); type = EVENT; break;
        case 92: status = clg_graph_set_range(ON(GRAPH), *node, (uint32_t)(next(&state) % 5), sizes, n ? sizes + 0 : NULL, NULL); break;
        case 93: {
            /* What compiles takes long. */
            clg_program_global listed = {next(&state) % 4 ? "count" : NULL, any(&state, GLOBAL)};
            const char *source = sources[next(&state) % (next(&state) % 32 ? 2 : 4)];
            status = clg_program_build(all.context, source, n ? NULL : "-DX", &listed, next(&state) % 2, MAKES(PROGRAM));
            break;
        }
        case 94: status = clg_program_kernel(ON(PROGRAM), n ? "count" : number % 2 ? "one" : NULL, MAKES(KERNEL)); break;
        case 95: status = clg_program_globals(ON(PROGRAM), number % sizeof text, text, &size); break;
        case 96: status = clg_program_kernel_names(ON(PROGRAM), number % sizeof text, text, &size); break;
        case 97: status = clg_graph_native_command(ON(GRAPH), &command, &options, node); break;
        case 98: status = clg_enqueue_native_command(ON(QUEUE), &command, n, waits, MAKES(SUBMISSION)); break;
        case 99: {
            clg_host_task both[2] = {host, host};
            status = clg_graph_host_task_group(ON(GRAPH), both, n, MAKES(GROUP));
            break;
        }
        case 100: {
            clg_launch both[2] = {launch, launch};
            status = clg_graph_command_group(ON(GRAPH), both, n, MAKES(GROUP));
            break;
        }
        case 101: status = clg_graph_command_group_node(ON(GRAPH), any(&state, GROUP), &options, node); break;
        case 102: status = clg_enqueue_command_group(ON(QUEUE), any(&state, GROUP), n, waits, made_event); type = EVENT; break;
        case 103: status = clg_command_group_active(ON(GROUP), &size); break;
        case 104: host.num_uses = 0; status = clg_enqueue_host_task(ON(QUEUE), &host, n, waits, MAKES(SUBMISSION)); break;
        case 105: status = clg_enqueue_kernel(ON(QUEUE), &launch, n, waits, made_event); type = EVENT; break;
        case 106: status = clg_enqueue_write_buffer(ON(QUEUE), range, &number, 4, NULL, NULL, n, waits, made_event); type = EVENT; break;
        case 107: status = clg_graph_fill_image(ON(GRAPH), area, mode, nodes, &options, node); break;
        case 108: status = clg_graph_copy_image_to_buffer(ON(GRAPH), area, range, &options, node); break;
        case 109: status = clg_graph_copy_buffer_to_image(ON(GRAPH), range, area, &options, node); break;
        case 110: status = clg_graph_read_image(ON(GRAPH), area, &options, node); break;
        case 111: status = clg_graph_write_image(ON(GRAPH), area, &number, 4, NULL, NULL, &options, node); break;
        case 112: status = clg_graph_map_image(ON(GRAPH), area, mode, &map, &options, node); break;
        case 113: status = clg_enqueue_copy_image(ON(QUEUE), area, area2, n, waits, made_event); type = EVENT; break;
        case 114: status = clg_enqueue_fill_image(ON(QUEUE), area, mode, nodes, n, waits, made_event); type = EVENT; break;
        case 115: status = clg_enqueue_read_image(ON(QUEUE), area, n, waits, MAKES(PENDING)); break;
        case 116: status = clg_parameter_create_image(ON(IMAGE), MAKES(PARAMETER)); break;
        case 117: status = clg_parameter_create_sampler(ON(SAMPLER), MAKES(PARAMETER)); break;
        case 118: status = clg_parameter_set_image(ON(PARAMETER), any(&state, IMAGE)); break;
        case 119: status = clg_parameter_create_number((int32_t)(next(&state) % 12), sizes, n ? NULL : sizes, NULL, MAKES(PARAMETER)); break;
        case 120: status = clg_graph_signal_event(ON(GRAPH), &options, node); break;
        case 121:
        case 122: {
            clg_input input = {.write = *node, .data = &number, .size = 4 * (next(&state) % 2)};
            clg_submission before = any(&state, SUBMISSION);
            clg_event_input events[2] = {
                {.node = nodes[0], .event = any(&state, EVENT), .submission = next(&state) % 4 ? NULL : before},
                {.node = nodes[1], .user_event = any(&state, USER_EVENT), .signals = true}};
            clg_submit_options given = {.inputs = &input, .num_inputs = next(&state) % 2, .events = waits, .num_events = n, .submissions = &before,
                                        .num_submissions = next(&state) % 2, .node_events = events, .num_node_events = next(&state) % 3};
            cl_event raw = NULL;
            status = clg_executable_submit(ON(EXECUTABLE), any(&state, QUEUE), &given, number % 2 ? &raw : NULL, MAKES(SUBMISSION));
            if (raw != NULL) clReleaseEvent(raw);
            break;
        }
        case 123: status = clg_submission_profile(ON(SUBMISSION), number % sizeof text, text, &size); break;
        case 124: status = clg_executable_report(ON(EXECUTABLE), number % sizeof text, text, &size); break;
        case 125: status = clg_event_node(ON(EVENT), any(&state, GRAPH), node); break;
        case 126: status = clg_fail("no task"); break;
        /* Loops have few turns: there is nobody who ends them. */
        case 127: status = clg_graph_when(ON(GRAPH), range, any(&state, EXECUTABLE), n ? NULL : any(&state, EXECUTABLE), &options, node, MAKES(CONTROL)); break;
        case 128: {
            clg_executable cases[2] = {any(&state, EXECUTABLE), any(&state, EXECUTABLE)};
            status = clg_graph_switch(ON(GRAPH), range, cases, n, &options, node, MAKES(CONTROL));
            break;
        }
        case 129: status = clg_graph_repeat_while(ON(GRAPH), range, any(&state, EXECUTABLE), number % 2, 1 + n, &options, node, n ? MAKES(CONTROL) : NULL); break;
        case 130: status = clg_graph_repeat(ON(GRAPH), n, any(&state, EXECUTABLE), &options, node, n ? MAKES(CONTROL) : NULL); break;
        case 131: status = clg_control_body(ON(CONTROL), n, MAKES(SUB_GRAPH)); break;
        case 132: status = clg_control_release(on = but(&state, CONTROL)); break;
        case 133: {
            uint64_t turns;
            status = clg_submission_turns(ON(SUBMISSION), any_node(&state), &turns);
            break;
        }
        case 134: status = clg_submission_cancel(ON(SUBMISSION)); break;
        case 135: status = clg_queue_when(ON(QUEUE), range, body, n ? body : NULL, NULL, node, MAKES(CONTROL)); break;
        case 136: status = n ? clg_queue_switch(ON(QUEUE), range, n, of_case, NULL, node, MAKES(CONTROL)) : clg_control_retain(ON(CONTROL)); break;
        case 137: status = clg_queue_repeat(ON(QUEUE), n, body, NULL, node, MAKES(CONTROL)); break;
        case 138: status = clg_queue_repeat_while(ON(QUEUE), range, body, NULL, n % 2 == 0, 1 + n, node, MAKES(CONTROL)); break;
        default: status = clg_graph_to_dot(ON(GRAPH), CLG_DRAWING_BRIEF, 0, NULL, &size);
        }
        look(status, on);
        if (status == CLG_SUCCESS) {
            atomic_fetch_add(&succeeded[function], 1);
        }
        if (made) {
            CHECK(status == CLG_SUCCESS);
            keep(&state, type, made);
        }
        if (next(&state) % 4 == 0) {
            pthread_mutex_lock(&lock);
            recent[next(&state) % 16] = *node;
            pthread_mutex_unlock(&lock);
        }
    }
    return NULL;
}

/* An image and a sampler, where the device has them. */
static void images(void) {
    cl_bool has = CL_FALSE;
    CHECK(clGetDeviceInfo(all.device, CL_DEVICE_IMAGE_SUPPORT, sizeof has, &has, NULL) == CL_SUCCESS);
    if (has != CL_TRUE) {
        return;
    }
    cl_int status;
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4};
    cl_mem raw = clCreateImage(all.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &status);
    CHECK(status == CL_SUCCESS);
    OK(clg_image_from_cl(all.context, raw, (clg_image *)&pool[IMAGE][0]));
    CHECK(clReleaseMemObject(raw) == CL_SUCCESS);
    cl_sampler sampler = clCreateSampler(all.context, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, &status);
    CHECK(status == CL_SUCCESS);
    OK(clg_sampler_from_cl(all.context, sampler, (clg_sampler *)&pool[SAMPLER][0]));
    CHECK(clReleaseSampler(sampler) == CL_SUCCESS);
}

int main(void) {
    static pthread_t threads[THREADS];
    all = start();
    pool[QUEUE][0] = all.queue;
    pool[MEMORY][0] = buffer(all, 64);
    images();
    OK(clg_global_create("fuzz::count", 4, NULL, false, (clg_global *)&pool[GLOBAL][0]));
    clg_program_global count = {"count", pool[GLOBAL][0]};
    /* Null is a fine argument, and the first bytes are those of every memory here: the kernels keep the program's promise. */
    const char *source = "CLG_DEVICE_GLOBAL(uint, count);\n"
                         "kernel void count(CLG_ONLY_PARAMS) { CLG_GLOBAL(count) = 1; }\n"
                         "kernel void one(global uint *a, uint by) { if (a) a[0] = by; }\n";
    OK(clg_program_build(all.context, source, NULL, &count, 1, (clg_program *)&pool[PROGRAM][0]));
    OK(clg_program_kernel(pool[PROGRAM][0], "one", (clg_kernel *)&pool[KERNEL][0]));
    OK(clg_program_kernel(pool[PROGRAM][0], "count", (clg_kernel *)&pool[KERNEL][1]));
    clg_host_task some = {.function = task};
    OK(clg_graph_host_task_group(all.graph, &some, 1, (clg_command_group *)&pool[GROUP][0]));
    /* Under valgrind a call takes a hundred times as long. */
    uintptr_t count_of_threads = getenv("CLGRAPH_TEST_MEMCHECK") == NULL ? THREADS : THREADS / 4;
    for (uintptr_t i = 0; i < count_of_threads; i++) {
        CHECK(pthread_create(&threads[i], NULL, misuse, (void *)(i + 1)) == 0);
    }
    for (uintptr_t i = 0; i < count_of_threads; i++) {
        pthread_join(threads[i], NULL);
    }
    /* Without calls that succeed, this test would say nothing: about a tenth does, and two thirds of the functions. */
    size_t all_good = 0, functions = 0;
    for (int i = 0; i < CASES; i++) {
        size_t good = atomic_load(&succeeded[i]);
        all_good += good;
        functions += good > 0;
    }
    CHECK(all_good > count_of_threads * CALLS / 40 && functions > CASES / 2);
    puts("ok");
    fflush(stdout);
    /* Submissions may still run that nobody holds. PoCL may compile their kernels, with what `exit` would destroy before. */
    _exit(0);
}
