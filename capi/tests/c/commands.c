/* What graphs.c leaves: recording, mapped memory, native commands, device globals, groups, parameters of memory, lists. */
#include "common.h"
#include <pthread.h>

enum { LEN = 64 };

static clg_node filled(bench all, clg_memory memory, uint32_t value) {
    clg_node node;
    OK(clg_graph_fill(all.graph, CLG_ALL(memory), &value, sizeof value, NULL, &node));
    return node;
}

/* The same calls, on a queue that executes and on one that records. */
static clg_pending_read existing(bench all, clg_memory a, clg_memory b, clg_kernel scale) {
    uint32_t seven = 7, three = 3, ones[4] = {1, 1, 1, 1};
    clg_event filled, launched, written;
    OK(clg_enqueue_fill_buffer(all.queue, CLG_ALL(a), &seven, sizeof seven, 0, NULL, &filled));
    clg_arg args[] = {CLG_READ_WRITE(a), CLG_VALUE(three)};
    clg_launch launch = {.kernel = scale, .args = args, .num_args = 2, .work_dim = 1, .global = {LEN}};
    OK(clg_enqueue_kernel(all.queue, &launch, 1, &filled, &launched));
    OK(clg_enqueue_copy_buffer(all.queue, CLG_ALL(a), CLG_ALL(b), 1, &launched, NULL));
    OK(clg_enqueue_write_buffer(all.queue, (clg_range){b, 0, 16}, ones, sizeof ones, NULL, NULL, 0, NULL, &written));
    clg_rect rect = {.src_origin = {0, 1, 0}, .dst_origin = {0, 2, 0}, .region = {8, 1, 1}, .src_row_pitch = 16, .dst_row_pitch = 16};
    OK(clg_enqueue_copy_buffer_rect(all.queue, CLG_ALL(b), CLG_ALL(a), &rect, 1, &written, NULL));
    OK(clg_enqueue_barrier(all.queue, 0, NULL, NULL));
    clg_event marker;
    OK(clg_enqueue_marker(all.queue, 0, NULL, &marker));
    OK(clg_event_release(marker));
    clg_pending_read read;
    OK(clg_enqueue_read_buffer(all.queue, CLG_ALL(b), 0, NULL, &read));
    OK(clg_event_release(filled));
    OK(clg_event_release(launched));
    OK(clg_event_release(written));
    return read;
}

static void recording(void) {
    bench all = start();
    clg_memory a = buffer(all, 4 * LEN), b = buffer(all, 4 * LEN);
    clg_kernel scale = kernel(all, "scale");
    uint32_t now[LEN], later[LEN];
    clg_pending_read read = existing(all, a, b, scale);
    clg_event event;
    OK(clg_pending_read_event(read, &event));
    OK(clg_event_wait(event));
    int32_t status = 9;
    OK(clg_event_status(event, &status));
    CHECK(status == CL_COMPLETE);
    cl_event raw;
    OK(clg_event_to_cl(event, &raw));
    clg_event again;
    OK(clg_event_from_cl(raw, &again));
    CHECK(clReleaseEvent(raw) == CL_SUCCESS);
    OK(clg_event_wait(again));
    OK(clg_event_release(again));
    OK(clg_event_release(event));
    OK(clg_pending_read_wait(read, now, sizeof now));
    CHECK(now[0] == 1 && now[3] == 1 && now[4] == 21 && now[LEN - 1] == 21);
    OK(clg_pending_read_release(read));

    bool records;
    OK(clg_queue_is_recording(all.queue, &records));
    CHECK(!records);
    clg_graph none;
    FAILS(CLG_INVALID, "", clg_queue_recording_graph(all.queue, &none));
    OK(clg_graph_begin_recording(all.graph, &all.queue, 1));
    FAILS(CLG_INVALID, "", clg_graph_begin_recording(all.graph, &all.queue, 1));
    OK(clg_queue_is_recording(all.queue, &records));
    CHECK(records);
    clg_graph into;
    OK(clg_queue_recording_graph(all.queue, &into));
    size_t nodes;
    OK(clg_graph_size(into, &nodes));
    CHECK(nodes == 0);
    OK(clg_graph_release(into));
    read = existing(all, a, b, scale);
    FAILS(CLG_INVALID, "", clg_pending_read_wait(read, later, sizeof later));
    FAILS(CLG_INVALID, "", clg_queue_finish(all.queue));
    clg_node wait, result, kernel_node;
    OK(clg_record_wait_event(all.queue, 0, NULL, NULL, &wait));
    clg_memory scratch;
    OK(clg_enqueue_allocate(all.queue, 4 * LEN, true, 0, NULL, &scratch));
    OK(clg_enqueue_copy_buffer(all.queue, CLG_ALL(b), CLG_ALL(scratch), 0, NULL, &event));
    OK(clg_event_node(event, all.graph, &kernel_node));
    OK(clg_enqueue_free(all.queue, scratch, 0, NULL, NULL));
    OK(clg_pending_read_node(read, &result));
    size_t ended;
    OK(clg_graph_end_recording(all.graph, &all.queue, 1, &ended));
    CHECK(ended == 1);
    OK(clg_graph_end_all_recording(all.graph, &ended));
    CHECK(ended == 0);
    OK(clg_event_release(event));
    OK(clg_pending_read_release(read));
    FAILS(CLG_INVALID, "", clg_enqueue_allocate(all.queue, 4, false, 0, NULL, &scratch));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    clg_user_event go;
    OK(clg_user_event_create(all.context, &go));
    clg_event_input input = {.node = wait, .user_event = go};
    clg_submit_options options = {.node_events = &input, .num_node_events = 1};
    clg_submission run;
    OK(clg_executable_submit(executable, all.queue, &options, NULL, &run));
    bool done;
    OK(clg_user_event_is_done(go, &done));
    CHECK(!done);
    FAILS(CLG_NOT_READY, "", clg_user_event_wait_for(go, 1000));
    int32_t progress = 9;
    OK(clg_submission_progress(run, &progress));
    CHECK(progress == CLG_PROGRESS_WAITING || progress == CLG_PROGRESS_RUNNING);
    OK(clg_user_event_complete(go));
    OK(clg_submission_wait(run));
    OK(clg_submission_progress(run, &progress));
    CHECK(progress == CLG_PROGRESS_COMPLETE);
    OK(clg_submission_event(run, &event));
    OK(clg_event_wait(event));
    OK(clg_event_release(event));
    OK(clg_submission_get(run, result, later, sizeof later));
    CHECK(memcmp(now, later, sizeof now) == 0);
    OK(clg_submission_release(run));
    /* An executable is recorded as a sub-graph, whose result belongs to the outer graph. */
    clg_graph outer;
    OK(clg_graph_create(all.queue, &outer));
    OK(clg_graph_begin_recording(outer, &all.queue, 1));
    clg_submission recorded;
    OK(clg_executable_submit(executable, all.queue, NULL, NULL, &recorded));
    clg_sub_graph sub;
    OK(clg_submission_sub_graph(recorded, &sub));
    clg_node outer_result, outer_wait;
    OK(clg_sub_graph_port(sub, CLG_PORT_READ, result, &outer_result));
    OK(clg_sub_graph_port(sub, CLG_PORT_WAIT_EVENT, wait, &outer_wait));
    FAILS(CLG_INVALID, "", clg_sub_graph_port(sub, CLG_PORT_WRITE, result, &outer_wait));
    FAILS(CLG_INVALID, "clg_port", clg_sub_graph_port(sub, 9, result, &outer_wait));
    OK(clg_graph_end_all_recording(outer, NULL));
    clg_executable whole;
    OK(clg_graph_finalize(outer, NULL, &whole));
    input = (clg_event_input){.node = outer_wait, .user_event = go};
    OK(clg_executable_submit(whole, all.queue, &options, NULL, &run));
    OK(clg_submission_wait(run));
    OK(clg_submission_get(run, outer_result, later, sizeof later));
    CHECK(memcmp(now, later, sizeof now) == 0);
    OK(clg_submission_release(run));
    OK(clg_submission_release(recorded));
    OK(clg_sub_graph_release(sub));
    OK(clg_executable_release(whole));
    OK(clg_graph_release(outer));
    OK(clg_executable_release(executable));
    OK(clg_user_event_release(go));
    OK(clg_memory_release(scratch));
    OK(clg_memory_release(a));
    OK(clg_memory_release(b));
    OK(clg_kernel_release(scale));
    end(all);
}

static int counts_up(clg_task task, void *data, size_t size, size_t row, size_t slice, void *user) {
    (void)row;
    (void)slice;
    (void)task;
    uint32_t *numbers = data;
    if (*(int *)user == 1) {
        OK(clg_fail("no room for it"));
        return 1;
    }
    for (size_t i = 0; i < size / 4; i++) {
        numbers[i] += (uint32_t)i;
    }
    return 0;
}

/* Enqueues by OpenCL itself: a copy from the first memory to the second. */
static int copies(const clg_native_target *target, void *user) {
    CHECK(target->num_memory == 2 && target->queue != NULL && target->command_buffer == NULL && user == NULL);
    const clg_native_memory *from = &target->memory[0], *to = &target->memory[1];
    CHECK(from->is_object && to->is_object && from->size == to->size);
    return clEnqueueCopyBuffer(target->queue, from->pointer, to->pointer, from->offset, to->offset, from->size, 0, NULL, NULL);
}

static void mapped_and_native(void) {
    bench all = start();
    clg_memory a = buffer(all, 4 * LEN), b = buffer(all, 4 * LEN);
    int fails = 0;
    filled(all, a, 1000);
    clg_map_task task = {.function = counts_up, .user = &fails};
    OK(clg_graph_map(all.graph, CLG_ALL(a), CLG_MAP_WRITE, &task, NULL, NULL));
    FAILS(CLG_INVALID, "clg_map_mode", clg_graph_map(all.graph, CLG_ALL(a), 8, &task, NULL, NULL));
    clg_use uses[] = {{.range = CLG_ALL(a), .reads = true}, {.range = CLG_ALL(b), .writes = true}};
    clg_native_command command = {.enqueue = copies, .uses = uses, .num_uses = 2}, nothing = {.uses = uses, .num_uses = 2};
    clg_node native, read;
    OK(clg_graph_native_command(all.graph, &command, NULL, &native));
    FAILS(CLG_INVALID, "neither", clg_graph_native_command(all.graph, &nothing, NULL, NULL));
    OK(clg_graph_read(all.graph, CLG_ALL(b), NULL, &read));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    uint32_t result[LEN];
    for (fails = 0; fails < 2; fails++) {
        clg_submission run;
        OK(clg_executable_submit(executable, all.queue, NULL, NULL, &run));
        if (fails) {
            FAILS(CLG_FAILED, "no room for it", clg_submission_wait(run));
        } else {
            OK(clg_submission_wait(run));
            OK(clg_submission_get(run, read, result, sizeof result));
            CHECK(result[0] == 1000 && result[LEN - 1] == 1000 + LEN - 1);
        }
        OK(clg_submission_release(run));
    }
    OK(clg_executable_release(executable));
    /* On a queue. */
    fails = 0;
    clg_submission run;
    OK(clg_enqueue_map(all.queue, CLG_ALL(a), CLG_MAP_WRITE, &task, 0, NULL, &run));
    OK(clg_submission_wait(run));
    OK(clg_submission_release(run));
    OK(clg_enqueue_native_command(all.queue, &command, 0, NULL, &run));
    OK(clg_submission_wait(run));
    OK(clg_submission_release(run));
    clg_pending_read pending;
    OK(clg_enqueue_read_buffer(all.queue, CLG_ALL(b), 0, NULL, &pending));
    OK(clg_pending_read_wait(pending, result, sizeof result));
    CHECK(result[0] == 1000 && result[1] == 1001);
    OK(clg_pending_read_release(pending));
    OK(clg_memory_release(a));
    OK(clg_memory_release(b));
    end(all);
}

static void device_globals(void) {
    bench all = start();
    const char *source = "CLG_DEVICE_GLOBAL(uint, hits);\n"
                         "kernel void hit(CLG_ONLY_PARAMS) { atomic_inc(&CLG_GLOBAL(hits)); }\n";
    uint32_t hundred = 100, count = 0;
    clg_global hits, wrong;
    OK(clg_global_create("c::hits", sizeof hundred, &hundred, false, &hits));
    FAILS(CLG_INVALID, "0 bytes", clg_global_create("c::none", 0, NULL, false, &wrong));
    clg_program_global listed = {"hits", hits};
    clg_program program;
    OK(clg_program_build(all.context, source, NULL, &listed, 1, &program));
    clg_program broken;
    CHECK(clg_program_build(all.context, "kernel void broken(", NULL, NULL, 0, &broken) != CLG_SUCCESS);
    clg_kernel hit;
    OK(clg_program_kernel(program, "hit", &hit));
    FAILS(CLG_INVALID, "miss", clg_program_kernel(program, "miss", (clg_kernel *)&wrong));
    char text[256];
    OK(clg_program_kernel_names(program, sizeof text, text, NULL));
    CHECK(strcmp(text, "hit") == 0);
    OK(clg_program_globals(program, sizeof text, text, NULL));
    CHECK(strstr(text, "`hits` is c::hits (4 bytes)") == text);
    FAILS(CLG_INVALID, "there is room for 2", clg_program_globals(program, 2, text, NULL));
    cl_program raw;
    cl_context context;
    OK(clg_program_to_cl(program, &raw));
    CHECK(clGetProgramInfo(raw, CL_PROGRAM_CONTEXT, sizeof context, &context, NULL) == CL_SUCCESS && context == all.context);
    clg_global_use use = {hits, true, true};
    clg_launch launch = {.kernel = hit, .work_dim = 1, .global = {11}, .globals = &use, .num_globals = 1};
    OK(clg_graph_kernel(all.graph, &launch, NULL, NULL));
    clg_memory memory;
    OK(clg_global_memory(hits, all.queue, &memory));
    size_t size;
    OK(clg_memory_size(memory, &size));
    CHECK(size == 4);
    clg_node read;
    OK(clg_graph_read(all.graph, CLG_ALL(memory), NULL, &read));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    clg_submission run = submitted(all, executable);
    OK(clg_submission_get(run, read, &count, sizeof count));
    CHECK(count == 111);
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    OK(clg_memory_release(memory));
    OK(clg_kernel_release(hit));
    OK(clg_program_release(program));
    OK(clg_global_release(hits));
    end(all);
}

static void changes(void) {
    bench all = start();
    clg_memory a = buffer(all, 4 * LEN), b = buffer(all, 4 * LEN), c = buffer(all, 4 * LEN);
    clg_kernel scale = kernel(all, "scale"), add = kernel(all, "add");
    clg_node first = filled(all, a, 2), second = filled(all, b, 3), launched, read;
    OK(clg_graph_set_node_label(all.graph, first, "twos"));
    char text[64];
    OK(clg_graph_node_label(all.graph, first, sizeof text, text, NULL));
    CHECK(strcmp(text, "twos") == 0);
    OK(clg_graph_node_label(all.graph, second, sizeof text, text, NULL));
    CHECK(strcmp(text, "") == 0);
    OK(clg_graph_node_kind(all.graph, second, sizeof text, text, NULL));
    CHECK(strcmp(text, "fill") == 0);
    clg_parameter source;
    OK(clg_parameter_create_memory(CLG_ALL(a), true, &source));
    clg_arg args[] = {{.kind = CLG_ARG_PARAMETER_READ, .parameter = source}, CLG_READ(b), CLG_WRITE(c)};
    clg_launch adding = {.kernel = add, .args = args, .num_args = 3, .work_dim = 1, .global = {LEN}, .bound = {LEN}};
    OK(clg_graph_kernel(all.graph, &adding, NULL, &launched));
    /* A group: one of two launches. */
    uint32_t two = 2, ten = 10;
    clg_arg by_two[] = {CLG_READ_WRITE(c), CLG_VALUE(two)}, by_ten[] = {CLG_READ_WRITE(c), CLG_VALUE(ten)};
    clg_launch launches[] = {
        {.kernel = scale, .args = by_two, .num_args = 2, .work_dim = 1, .global = {LEN}},
        {.kernel = scale, .args = by_ten, .num_args = 2, .work_dim = 1, .global = {LEN}},
    };
    clg_command_group group;
    OK(clg_graph_command_group(all.graph, launches, 2, &group));
    clg_node member;
    OK(clg_graph_command_group_node(all.graph, group, NULL, &member));
    OK(clg_graph_read(all.graph, CLG_ALL(c), NULL, &read));
    size_t count;
    clg_node nodes[8], none = {0, 0, 0};
    OK(clg_graph_nodes(all.graph, CLG_NODES_ALL, none, 8, nodes, &count));
    CHECK(count == 5 && nodes[2].index == launched.index);
    OK(clg_graph_nodes(all.graph, CLG_NODES_ROOTS, none, 8, nodes, &count));
    CHECK(count == 2);
    OK(clg_graph_nodes(all.graph, CLG_NODES_BEFORE, launched, 8, nodes, &count));
    CHECK(count == 2 && nodes[0].index == first.index);
    OK(clg_graph_nodes(all.graph, CLG_NODES_AFTER, launched, 8, nodes, &count));
    CHECK(count == 1 && nodes[0].index == member.index);
    FAILS(CLG_INVALID, "room for 1", clg_graph_nodes(all.graph, CLG_NODES_ROOTS, none, 1, nodes, NULL));
    FAILS(CLG_INVALID, "", clg_graph_nodes(all.graph, CLG_NODES_AFTER, none, 8, nodes, &count));

    clg_executable executable;
    clg_finalize_options options = {.updatable = true, .no_autotune = true, .commands_per_buffer = 8};
    OK(clg_graph_finalize(all.graph, &options, &executable));
    uint32_t result[LEN];
    clg_submission run = submitted(all, executable);
    OK(clg_submission_get(run, read, result, sizeof result));
    CHECK(result[0] == 10 && result[LEN - 1] == 10);
    OK(clg_submission_release(run));
    /* Another launch, another memory, another fill, a shorter range. */
    OK(clg_command_group_set_active(group, 1));
    OK(clg_command_group_active(group, &count));
    CHECK(count == 1);
    FAILS(CLG_INVALID, "", clg_command_group_set_active(group, 2));
    OK(clg_parameter_set_memory(source, CLG_ALL(b)));
    FAILS(CLG_INVALID, "", clg_parameter_set_memory(source, (clg_range){b, 0, 16}));
    FAILS(CLG_INVALID, "", clg_parameter_set(source, &ten, sizeof ten));
    FAILS(CLG_INVALID, "", clg_parameter_set_local(source, 8));
    uint32_t four = 4;
    clg_node_options replaces = {.replaces = &second};
    OK(clg_graph_fill(all.graph, CLG_ALL(b), &four, sizeof four, &replaces, NULL));
    FAILS(CLG_INVALID, "cannot replace", clg_graph_empty(all.graph, &replaces, NULL));
    FAILS(CLG_INVALID, "", clg_graph_read(all.graph, CLG_ALL(c), &replaces, NULL));
    size_t half = LEN / 2;
    /* Zeros are as null: no offset, and the driver chooses the size of work-groups. */
    size_t zero = 0;
    OK(clg_graph_set_range(all.graph, launched, 1, &half, &zero, &zero));
    OK(clg_graph_set_range(all.graph, launched, 1, &half, NULL, NULL));
    size_t more = LEN + 1;
    FAILS(CLG_INVALID, "", clg_graph_set_range(all.graph, launched, 1, &more, NULL, NULL));
    clg_node changed[] = {second, launched, member};
    OK(clg_executable_update(executable, changed, 3));
    run = submitted(all, executable);
    OK(clg_submission_get(run, read, result, sizeof result));
    CHECK(result[0] == 80 && result[LEN / 2 - 1] == 80 && result[LEN - 1] == 100);
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    /* Times. */
    options = (clg_finalize_options){.profiling = true};
    OK(clg_graph_finalize(all.graph, &options, &executable));
    run = submitted(all, executable);
    clg_submission_times times;
    OK(clg_submission_get_times(run, &times));
    CHECK(times.start <= times.end);
    clg_node_times each[8];
    OK(clg_submission_node_times(run, 8, each, &count));
    CHECK(count == 5 && each[0].start <= each[0].end);
    OK(clg_submissions_trace(&run, 1, 0, NULL, &count));
    OK(clg_submission_profile(run, 0, NULL, &count));
    OK(clg_executable_to_svg(executable, CLG_DRAWING_FULL, run, 0, NULL, &count));
    OK(clg_executable_memory_map(executable, 0, NULL, &count));
    OK(clg_executable_required_memory(executable, &count));
    CHECK(count == 0);
    OK(clg_executable_command_buffers(executable, 0, NULL, &count));
    FAILS(CLG_INVALID, "`buffers` is null", clg_executable_command_buffers(executable, 0, NULL, NULL));
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    OK(clg_command_group_release(group));
    OK(clg_parameter_release(source));
    OK(clg_memory_release(a));
    OK(clg_memory_release(b));
    OK(clg_memory_release(c));
    OK(clg_kernel_release(scale));
    OK(clg_kernel_release(add));
    end(all);
}

static int adds_one(clg_task task, void *user) {
    (void)task;
    ++*(volatile int *)user;
    return 0;
}

static int adds_ten(clg_task task, void *user) {
    (void)task;
    *(volatile int *)user += 10;
    return 0;
}

/* A group of host tasks; a task on a queue; a copied rectangle; hints; parameters of local memory and of null. */
static void tasks_and_small_things(void) {
    bench all = start();
    static int sum;
    sum = 0;
    clg_memory a = buffer(all, 4 * LEN), b = buffer(all, 4 * LEN);
    uint32_t zero = 0, counted[LEN], result[LEN];
    for (uint32_t i = 0; i < LEN; i++) {
        counted[i] = i;
    }
    clg_host_task tasks[] = {{.function = adds_one, .user = &sum}, {.function = adds_ten, .user = &sum}};
    clg_command_group group;
    OK(clg_graph_host_task_group(all.graph, tasks, 2, &group));
    FAILS(CLG_INVALID, "", clg_graph_host_task_group(all.graph, tasks, 0, (clg_command_group *)&zero));
    clg_node member, read;
    OK(clg_graph_command_group_node(all.graph, group, NULL, &member));
    OK(clg_graph_write(all.graph, CLG_ALL(a), counted, sizeof counted, NULL, NULL, NULL, NULL));
    OK(clg_graph_fill(all.graph, CLG_ALL(b), &zero, sizeof zero, NULL, NULL));
    /* Two elements of each of three rows of eight, from the second column and row to the first. */
    clg_rect rect = {.src_origin = {4, 1, 0}, .region = {8, 3, 1}, .src_row_pitch = 32, .dst_row_pitch = 32};
    OK(clg_graph_copy_rect(all.graph, CLG_ALL(a), CLG_ALL(b), &rect, NULL, NULL));
    FAILS(CLG_INVALID, "`rect` is null", clg_graph_copy_rect(all.graph, CLG_ALL(a), CLG_ALL(b), NULL, NULL, NULL));
    FAILS(CLG_INVALID, "clg_hint", clg_graph_hint(all.graph, CLG_ALL(a), 9, 0, NULL, NULL));
    FAILS(CLG_INVALID, "clg_hint", clg_enqueue_hint(all.queue, CLG_ALL(a), 9, 0, 0, NULL, NULL));
    OK(clg_graph_read(all.graph, CLG_ALL(b), NULL, &read));
    clg_executable executable;
    clg_finalize_options updatable = {.updatable = true};
    OK(clg_graph_finalize(all.graph, &updatable, &executable));
    clg_submission run = submitted(all, executable);
    OK(clg_submission_get(run, read, result, sizeof result));
    CHECK(result[0] == 9 && result[1] == 10 && result[2] == 0 && result[8] == 17 && result[17] == 26 && sum == 1);
    OK(clg_submission_release(run));
    OK(clg_command_group_set_active(group, 1));
    OK(clg_executable_update(executable, &member, 1));
    OK(clg_submission_release(submitted(all, executable)));
    CHECK(sum == 11);
    OK(clg_enqueue_host_task(all.queue, &tasks[0], 0, NULL, &run));
    OK(clg_submission_wait(run));
    CHECK(sum == 12);
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    OK(clg_command_group_release(group));
    /* A kernel with local memory by a parameter. */
    clg_graph other;
    OK(clg_graph_create(all.queue, &other));
    clg_kernel total = kernel(all, "total");
    clg_parameter room, source;
    OK(clg_parameter_create_local(4 * LEN, &room));
    OK(clg_parameter_create_memory(CLG_ALL(a), false, &source));
    FAILS(CLG_INVALID, "", clg_parameter_set_null(source));
    FAILS(CLG_INVALID, "not one of memory", clg_parameter_set_null(room));
    FAILS(CLG_INVALID, "not one of an image", clg_parameter_set_image(room, NULL));
    FAILS(CLG_INVALID, "not one of a sampler", clg_parameter_set_sampler(room, NULL));
    clg_arg args[] = {{.kind = CLG_ARG_PARAMETER_READ, .parameter = source}, CLG_WRITE(b), CLG_PARAMETER(room)};
    clg_launch launch = {.kernel = total, .args = args, .num_args = 3, .work_dim = 1, .global = {LEN}, .local = {LEN}};
    OK(clg_graph_kernel(other, &launch, NULL, &member));
    OK(clg_graph_read(other, (clg_range){b, 0, 4}, NULL, &read));
    OK(clg_graph_finalize(other, &updatable, &executable));
    OK(clg_parameter_set_local(room, 8 * LEN));
    OK(clg_executable_update(executable, &member, 1));
    run = submitted(all, executable);
    OK(clg_submission_get(run, read, result, 4));
    CHECK(result[0] == LEN * (LEN - 1) / 2);
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    OK(clg_parameter_release(room));
    OK(clg_parameter_release(source));
    OK(clg_kernel_release(total));
    OK(clg_graph_release(other));
    cl_command_queue raw;
    OK(clg_queue_to_cl(all.queue, &raw));
    CHECK(raw == all.cl_queue);
    /* A user event in the wait list of a command, which sees its end only. */
    clg_user_event user;
    clg_event event, filled_event;
    OK(clg_user_event_create(all.context, &user));
    OK(clg_user_event_event(user, &event));
    OK(clg_enqueue_fill_buffer(all.queue, CLG_ALL(a), &zero, sizeof zero, 1, &event, &filled_event));
    OK(clg_user_event_fail(user, "not today"));
    OK(clg_event_wait(filled_event));
    OK(clg_event_release(filled_event));
    OK(clg_event_release(event));
    OK(clg_user_event_release(user));
    OK(clg_memory_release(a));
    OK(clg_memory_release(b));
    end(all);
}

/* A group and the signal of an event, recorded; memory that the program allocated; hints. */
static void recorded_and_given(void) {
    bench all = start();
    clg_memory a = buffer(all, 4 * LEN);
    clg_kernel scale = kernel(all, "scale");
    uint32_t two = 2, ten = 10, one = 1;
    clg_arg by_two[] = {CLG_READ_WRITE(a), CLG_VALUE(two)}, by_ten[] = {CLG_READ_WRITE(a), CLG_VALUE(ten)};
    clg_launch launches[] = {
        {.kernel = scale, .args = by_two, .num_args = 2, .work_dim = 1, .global = {LEN}},
        {.kernel = scale, .args = by_ten, .num_args = 2, .work_dim = 1, .global = {LEN}},
    };
    clg_command_group group;
    OK(clg_graph_command_group(all.graph, launches, 2, &group));
    OK(clg_command_group_set_active(group, 1));
    FAILS(CLG_INVALID, "", clg_enqueue_command_group(all.queue, group, 0, NULL, NULL));
    FAILS(CLG_INVALID, "", clg_record_signal_event(all.queue, 0, NULL, NULL, NULL));
    OK(clg_graph_begin_recording(all.graph, &all.queue, 1));
    clg_event grouped, signaled;
    OK(clg_enqueue_fill_buffer(all.queue, CLG_ALL(a), &one, sizeof one, 0, NULL, NULL));
    OK(clg_enqueue_command_group(all.queue, group, 0, NULL, &grouped));
    clg_node signal, of_event, read;
    OK(clg_record_signal_event(all.queue, 1, &grouped, &signaled, &signal));
    OK(clg_event_node(signaled, all.graph, &of_event));
    CHECK(of_event.index == signal.index);
    OK(clg_graph_end_recording(all.graph, &all.queue, 1, NULL));
    OK(clg_graph_read(all.graph, CLG_ALL(a), NULL, &read));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    clg_user_event heard;
    OK(clg_user_event_create(all.context, &heard));
    clg_event_input event = {.node = signal, .user_event = heard, .signals = true};
    clg_submit_options with = {.node_events = &event, .num_node_events = 1};
    /* It waits for a command of a queue. */
    clg_user_event go;
    OK(clg_user_event_create(all.context, &go));
    clg_event opens, marked;
    OK(clg_user_event_event(go, &opens));
    OK(clg_enqueue_marker(all.queue, 1, &opens, &marked));
    with.events = &marked;
    with.num_events = 1;
    clg_submission run;
    OK(clg_executable_submit(executable, all.queue, &with, NULL, &run));
    bool done = true;
    OK(clg_user_event_is_done(heard, &done));
    CHECK(!done);
    OK(clg_user_event_complete(go));
    OK(clg_user_event_wait(heard));
    OK(clg_submission_wait(run));
    uint32_t result[LEN];
    OK(clg_submission_get(run, read, result, sizeof result));
    CHECK(result[0] == 10 && result[LEN - 1] == 10);
    OK(clg_submission_release(run));
    OK(clg_event_release(opens));
    OK(clg_event_release(marked));
    OK(clg_event_release(grouped));
    OK(clg_event_release(signaled));
    OK(clg_user_event_release(go));
    OK(clg_user_event_release(heard));
    OK(clg_executable_release(executable));
    OK(clg_command_group_release(group));

    clg_memory given, wrong;
    FAILS(CLG_INVALID, "kind of memory", clg_memory_from_pointer(all.queue, result, sizeof result, CLG_MEMORY_BEST, &wrong));
    cl_device_svm_capabilities svm = 0;
    clGetDeviceInfo(all.device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL);
    if (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) {
        void *address = clSVMAlloc(all.context, CL_MEM_READ_WRITE, 4 * LEN, 0);
        CHECK(address != NULL);
        OK(clg_memory_from_pointer(all.queue, address, 4 * LEN, CLG_MEMORY_SVM_COARSE, &given));
        OK(clg_enqueue_fill_buffer(all.queue, CLG_ALL(given), &ten, sizeof ten, 0, NULL, NULL));
        OK(clg_enqueue_hint(all.queue, CLG_ALL(given), CLG_HINT_TO_DEVICE, 0, 0, NULL, NULL));
        OK(clg_enqueue_copy_buffer(all.queue, CLG_ALL(given), CLG_ALL(a), 0, NULL, NULL));
        clg_pending_read pending;
        OK(clg_enqueue_read_buffer(all.queue, CLG_ALL(a), 0, NULL, &pending));
        OK(clg_pending_read_wait(pending, result, sizeof result));
        CHECK(result[0] == 10 && result[LEN - 1] == 10);
        OK(clg_pending_read_release(pending));
        /* In a graph. */
        clg_graph hinted;
        OK(clg_graph_create(all.queue, &hinted));
        OK(clg_graph_hint(hinted, CLG_ALL(given), CLG_HINT_TO_DEVICE, 0, NULL, NULL));
        OK(clg_graph_hint(hinted, CLG_ALL(given), CLG_HINT_TO_HOST, 0, NULL, NULL));
        OK(clg_graph_finalize(hinted, NULL, &executable));
        OK(clg_submission_release(submitted(all, executable)));
        OK(clg_executable_release(executable));
        OK(clg_graph_release(hinted));
        OK(clg_memory_release(given));
        OK(clg_queue_finish(all.queue));
        clSVMFree(all.context, address);
    }
    OK(clg_kernel_release(scale));
    OK(clg_memory_release(a));
    end(all);
}

static int never(clg_task task, void *user) {
    (void)task;
    *(bool *)user = true;
    return 0;
}

static int refuses(const clg_native_target *target, void *user) {
    (void)target;
    (void)user;
    OK(clg_fail("the file is gone"));
    return 0;
}

/* Where a result would go is looked at before anything is done; and functions say why they fail. */
static void refused_before_anything_is_done(void) {
    bench all = start();
    clg_memory a = buffer(all, 4 * LEN);
    uint32_t seven = 7;
    char room[64];
    char *odd = (char *)(((uintptr_t)room + 15) / 8 * 8 + 1);
    bool called = false;
    clg_host_task task = {.function = never, .user = &called};
    FAILS(CLG_INVALID, "not aligned", clg_graph_fill(all.graph, CLG_ALL(a), &seven, sizeof seven, NULL, (clg_node *)odd));
    FAILS(CLG_INVALID, "not aligned", clg_graph_host_task(all.graph, &task, NULL, (clg_node *)odd));
    size_t nodes = 1;
    OK(clg_graph_size(all.graph, &nodes));
    CHECK(nodes == 0);
    FAILS(CLG_INVALID, "not aligned", clg_enqueue_host_task(all.queue, &task, 0, NULL, (clg_submission *)odd));
    FAILS(CLG_INVALID, "not aligned",
          clg_enqueue_fill_buffer(all.queue, CLG_ALL(a), &seven, sizeof seven, 0, NULL, (clg_event *)odd));
    OK(clg_queue_finish(all.queue));
    CHECK(!called);
    OK(clg_graph_begin_recording(all.graph, &all.queue, 1));
    FAILS(CLG_INVALID, "not aligned", clg_graph_end_recording(all.graph, &all.queue, 1, (size_t *)odd));
    bool records = false;
    OK(clg_queue_is_recording(all.queue, &records));
    CHECK(records);
    OK(clg_graph_end_all_recording(all.graph, NULL));
    clg_native_command command = {.enqueue = refuses};
    OK(clg_graph_native_command(all.graph, &command, NULL, NULL));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    clg_submission run;
    clg_status status = clg_executable_submit(executable, all.queue, NULL, NULL, &run);
    if (status == CLG_SUCCESS) {
        status = clg_submission_wait(run);
        OK(clg_submission_release(run));
    }
    CHECK(status == CLG_FAILED && strstr(clg_last_error(), "the file is gone") != NULL);
    OK(clg_executable_release(executable));
    OK(clg_memory_release(a));
    end(all);
}

static void memory_of_the_host(void) {
    bench all = start();
    clg_memory shared;
    clg_status status = clg_memory_allocate(all.queue, 4 * LEN, CLG_MEMORY_HOST_ACCESSIBLE, &shared);
    if (status == CLG_SUCCESS) {
        void *data, *address;
        clg_host_access access, second;
        OK(clg_memory_address(shared, &address));
        OK(clg_memory_access_host(shared, true, &data, &access));
        CHECK(data == address);
        memset(data, 1, 4 * LEN);
        FAILS(CLG_NOT_READY, "release that access first", clg_memory_access_host(shared, false, &data, &second));
        uint32_t seven = 7;
        FAILS(CLG_NOT_READY, "the access of `clg_memory_access_host` first",
              clg_enqueue_fill_buffer(all.queue, CLG_ALL(shared), &seven, sizeof seven, 0, NULL, NULL));
        OK(clg_host_access_release(access));
        OK(clg_enqueue_fill_buffer(all.queue, CLG_ALL(shared), &seven, sizeof seven, 0, NULL, NULL));
        OK(clg_queue_finish(all.queue));
        OK(clg_memory_access_host(shared, false, &data, &access));
        CHECK(((uint32_t *)data)[LEN - 1] == 7);
        OK(clg_host_access_release(access));
        OK(clg_memory_release(shared));
    } else {
        CHECK(status == CLG_FEATURE_NOT_SUPPORTED);
    }
    FAILS(CLG_INVALID, "clg_memory_kind", clg_memory_allocate(all.queue, 4, 99, &shared));
    size_t size;
    OK(clg_device_caps(all.device, 0, NULL, &size));
    CHECK(size > 100);
    end(all);
}

/* The data of a thread ends after that of Rust: clgraph has no text there, and works. */
static pthread_key_t at_end;
static int enqueued;

static int enqueues(const clg_native_target *target, void *user) {
    (void)target;
    enqueued++;
    return *(int *)user;
}

static void thread_ends(void *of) {
    bench all = *(bench *)of;
    CHECK(clg_fail("nobody") == CLG_INVALID);
    for (int status = 0; status < 2; status++) {
        clg_native_command command = {.enqueue = enqueues, .user = &status};
        clg_status expected = status ? CLG_FAILED : CLG_SUCCESS;
        CHECK(clg_enqueue_native_command(all.queue, &command, 0, NULL, NULL) == expected);
    }
    OK(clg_queue_finish(all.queue));
}

static void *uses_and_ends(void *of) {
    bench all = *(bench *)of;
    int status = 0;
    clg_native_command command = {.enqueue = enqueues, .user = &status};
    CHECK(pthread_setspecific(at_end, of) == 0);
    FAILS(CLG_INVALID, "no function", clg_fail("nobody"));
    // The thread has data of clgraph now, which end before its own.
    OK(clg_enqueue_native_command(all.queue, &command, 0, NULL, NULL));
    return NULL;
}

static void ends_of_threads(void) {
    bench all = start();
    pthread_t thread;
    CHECK(pthread_key_create(&at_end, thread_ends) == 0);
    CHECK(pthread_create(&thread, NULL, uses_and_ends, &all) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(pthread_key_delete(at_end) == 0 && enqueued == 3);
    end(all);
}

int main(void) {
    recording();
    mapped_and_native();
    ends_of_threads();
    device_globals();
    changes();
    tasks_and_small_things();
    memory_of_the_host();
    recorded_and_given();
    refused_before_anything_is_done();
    CHECK(clg_live_objects() == 0);
    puts("ok");
    return 0;
}
