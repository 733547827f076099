/* Updates of commands, with their errors, and queries of commands. */
#pragma once
#include "results.h"

static cl_int change(command_buffer buffer, const struct dispatch_config *configs, cl_uint count) {
    cl_uint types[16] = {0};
    const void *list[16];
    CHECK(count <= 16);
    for (cl_uint i = 0; i < count; i++) list[i] = &configs[i];
    return f.update(buffer, count, types, list);
}

/* One argument of one command. */
static cl_int change_argument(command_buffer buffer, mutable_command command, cl_uint index, size_t size, const void *value) {
    struct dispatch_argument argument = {index, size, value};
    struct dispatch_config config = {.command = command, .num_args = 1, .arg_list = &argument};
    cl_int status = change(buffer, &config, 1);
    memset(&argument, 0xAA, sizeof argument);
    return status;
}

static cl_int change_number(command_buffer buffer, mutable_command command, cl_uint index, cl_uint number) {
    return change_argument(buffer, command, index, sizeof number, &number);
}

static cl_int change_memory(command_buffer buffer, mutable_command command, cl_uint index, cl_mem memory) {
    return change_argument(buffer, command, index, sizeof memory, &memory);
}

static cl_int change_range(command_buffer buffer, mutable_command command, const size_t *offset, const size_t *global,
                           const size_t *local) {
    struct dispatch_config config = {
        .command = command, .global_work_offset = offset, .global_work_size = global, .local_work_size = local};
    return change(buffer, &config, 1);
}

/* With groups of 16, and everything that the device can update. */
static mutable_command changeable(command_buffer buffer, cl_kernel kernel, cl_bitfield what) {
    cl_properties properties[] = {UPDATABLE_FIELDS, fields & what, 0};
    mutable_command command = NULL;
    OK(f.kernel(buffer, NULL, properties, kernel, 1, NULL, &length, &sixteen, 0, NULL, NULL, &command));
    CHECK(command != NULL);
    return command;
}

static bool can_change(cl_bitfield what) {
    if ((fields & what) == what) return true;
    if (has_mutable) printf("no updates of 0x%x\n", (unsigned)(what & ~fields));
    return false;
}

/* Numbers, memory, no memory, and local memory with the group that it is for. */
static void arguments(void) {
    if (!can_change(ARGUMENTS)) return;
    number_now(here.a, 100);
    number_now(here.c, 200);
    cl_kernel scale = kernel_with("scale", here.b, 3), maybe = new_kernel("maybe"), flip = new_kernel("flip");
    set_memory(maybe, 0, here.a);
    set_memory(maybe, 1, here.b);
    command_buffer buffer = new_buffer(here.plain, MUTABLE);
    mutable_command first = changeable(buffer, maybe, ARGUMENTS), second = changeable(buffer, scale, ARGUMENTS);
    OK(f.finalize(buffer));
    run_on(here.plain, buffer);
    ALL(here.b, 3 * (100 + i));
    OK(change_number(buffer, second, 1, 5));
    run_on(here.plain, buffer);
    ALL(here.b, 5 * (100 + i));
    OK(change_memory(buffer, first, 0, here.c));
    run_on(here.plain, buffer);
    ALL(here.b, 5 * (200 + i));
    OK(change_memory(buffer, first, 0, NULL));
    run_on(here.plain, buffer);
    ALL(here.b, 35);
    OK(change_memory(buffer, first, 0, here.a));
    run_on(here.plain, buffer);
    ALL(here.b, 5 * (100 + i));
    OK(change_argument(buffer, first, 0, sizeof(cl_mem), NULL));
    run_on(here.plain, buffer);
    ALL(here.b, 35);
    /* The kernel object keeps its own. */
    fill_now(here.b, 1);
    OK(clEnqueueNDRangeKernel(here.plain, scale, 1, NULL, &length, NULL, 0, NULL, NULL));
    OK(clFinish(here.plain));
    ALL(here.b, 3);
    /* What no command uses any more may go. */
    cl_mem temporary = new_memory(here.context, BYTES);
    fill_now(temporary, 1);
    OK(change_memory(buffer, first, 0, temporary));
    run_on(here.plain, buffer);
    ALL(here.b, 5);
    OK(change_memory(buffer, first, 0, here.c));
    OK(clReleaseMemObject(temporary));
    run_on(here.plain, buffer);
    ALL(here.b, 5 * (200 + i));
    OK(f.release(buffer));

    buffer = new_buffer(here.plain, MUTABLE);
    OK(clSetKernelArg(flip, 0, 16 * sizeof(cl_uint), NULL));
    set_memory(flip, 1, here.b);
    first = changeable(buffer, flip, ARGUMENTS | LOCAL_SIZE);
    OK(f.finalize(buffer));
    run_on(here.plain, buffer);
    ALL(here.b, i / 16 * 16 + 15 - i % 16);
    OK(change_argument(buffer, first, 0, 64 * sizeof(cl_uint), NULL));
    run_on(here.plain, buffer);
    ALL(here.b, i / 16 * 16 + 15 - i % 16);
    if (can_change(LOCAL_SIZE)) {
        size_t of_64 = 64;
        OK(change_range(buffer, first, NULL, NULL, &of_64));
        run_on(here.plain, buffer);
        ALL(here.b, i / 64 * 64 + 63 - i % 64);
    }
    OK(f.release(buffer));
    OK(clReleaseKernel(scale));
    OK(clReleaseKernel(maybe));
    OK(clReleaseKernel(flip));
}

/* PoCL takes any of these. */
static void image_arguments(void) {
    if (!has_images || !can_change(ARGUMENTS)) return;
    const char *source = "kernel void look(read_only image2d_t from, sampler_t by, write_only image2d_t into, global uint *to) {\n"
                         "    to[0] = read_imageui(from, by, (int2)(0, 0)).x;\n    write_imageui(into, (int2)(0, 0), (uint4)(to[0]));\n}\n";
    cl_int status;
    cl_program program = clCreateProgramWithSource(here.context, 1, &source, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "-cl-kernel-arg-info", NULL, NULL));
    cl_kernel look = clCreateKernel(program, "look", &status);
    OK(status);
    cl_sampler sampler = clCreateSampler(here.context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST, &status);
    OK(status);
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc flat = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = WIDE, .image_height = HIGH};
    cl_image_desc deep = {.image_type = CL_MEM_OBJECT_IMAGE3D, .image_width = WIDE, .image_height = HIGH, .image_depth = 2};
    cl_mem read_only = clCreateImage(here.context, CL_MEM_READ_ONLY, &format, &flat, NULL, &status);
    OK(status);
    cl_mem write_only = clCreateImage(here.context, CL_MEM_WRITE_ONLY, &format, &flat, NULL, &status);
    OK(status);
    cl_mem volume = clCreateImage(here.context, CL_MEM_READ_WRITE, &format, &deep, NULL, &status);
    OK(status);
    set_memory(look, 0, here.image);
    OK(clSetKernelArg(look, 1, sizeof sampler, &sampler));
    set_memory(look, 2, here.other_image);
    set_memory(look, 3, here.b);
    reset();
    fill_image_now(here.image, 3);
    command_buffer buffer = new_buffer(here.plain, MUTABLE);
    cl_properties properties[] = {UPDATABLE_FIELDS, ARGUMENTS, 0};
    size_t one = 1;
    mutable_command command = NULL;
    OK(f.kernel(buffer, NULL, properties, look, 1, NULL, &one, NULL, 0, NULL, NULL, &command));
    OK(f.finalize(buffer));
    cl_sampler none = NULL;
    IS(change_argument(buffer, command, 1, sizeof none, &none), CL_INVALID_SAMPLER);
    IS(change_argument(buffer, command, 1, sizeof none, NULL), CL_INVALID_SAMPLER);
    IS(change_argument(buffer, command, 1, 4, &sampler), CL_INVALID_ARG_SIZE);
    IS(change_memory(buffer, command, 1, here.a), CL_INVALID_SAMPLER);
    IS(change_argument(buffer, command, 0, sizeof sampler, &sampler), CL_INVALID_MEM_OBJECT);
    IS(change_memory(buffer, command, 0, here.a), CL_INVALID_MEM_OBJECT);
    IS(change_memory(buffer, command, 0, write_only), CL_INVALID_ARG_VALUE);
    IS(change_memory(buffer, command, 0, volume), CL_INVALID_ARG_VALUE);
    IS(change_memory(buffer, command, 2, read_only), CL_INVALID_ARG_VALUE);
    run_on(here.plain, buffer);
    ALL(here.b, i == 0 ? 3 : 9);
    /* Good ones. */
    OK(change_memory(buffer, command, 2, write_only));
    OK(change_argument(buffer, command, 1, sizeof sampler, &sampler));
    OK(change_memory(buffer, command, 0, here.other_image));
    fill_image_now(here.other_image, 5);
    run_on(here.plain, buffer);
    ALL(here.b, i == 0 ? 5 : 9);
    OK(f.release(buffer));
    OK(clReleaseKernel(look));
    OK(clReleaseProgram(program));
    OK(clReleaseSampler(sampler));
    OK(clReleaseMemObject(read_only));
    OK(clReleaseMemObject(write_only));
    OK(clReleaseMemObject(volume));
}

static void svm_arguments(void) {
    if (!has_svm || !can_change(ARGUMENTS)) return;
    cl_kernel place = new_kernel("place");
    OK(clSetKernelArgSVMPointer(place, 0, here.svm));
    set_number(place, 1, 3);
    fill_svm_now(here.svm, 9);
    fill_svm_now(here.other_svm, 9);
    command_buffer buffer = new_buffer(here.plain, MUTABLE);
    mutable_command command = changeable(buffer, place, ARGUMENTS | EXEC_INFO);
    OK(f.finalize(buffer));
    run_on(here.plain, buffer);
    SO(svm_is(here.svm, 3) && svm_is(here.other_svm, 9));
    cl_uint four = 4;
    void *used[] = {here.svm, here.other_svm};
    struct dispatch_argument pointer = {0, 0, here.other_svm}, number = {1, sizeof four, &four};
    struct dispatch_exec_info pointers = {CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof used, used};
    struct dispatch_config config = {
        .command = command, .num_args = 1, .arg_list = &number, .num_svm_args = 1, .arg_svm_list = &pointer};
    OK(change(buffer, &config, 1));
    run_on(here.plain, buffer);
    SO(svm_is(here.svm, 3) && svm_is(here.other_svm, 4));
    /* The number is no address, and there is no third argument. Nothing of the update is done. */
    struct dispatch_argument wrong_pointers[] = {{0, 0, here.svm}, {1, 0, here.svm}};
    struct dispatch_config wrong_config = {.command = command, .num_svm_args = 2, .arg_svm_list = wrong_pointers};
    IS(change(buffer, &wrong_config, 1), CL_INVALID_ARG_VALUE);
    wrong_pointers[1].arg_index = 2;
    IS(change(buffer, &wrong_config, 1), CL_INVALID_ARG_INDEX);
    run_on(here.plain, buffer);
    SO(svm_is(here.svm, 3) && svm_is(here.other_svm, 4));
    if (can_change(EXEC_INFO)) {
        pointer.arg_value = here.svm;
        config.num_exec_infos = 1;
        config.exec_info_list = &pointers;
        OK(change(buffer, &config, 1));
        run_on(here.plain, buffer);
        SO(svm_is(here.svm, 4));
    }
    /* From SVM to a buffer and back. */
    OK(change_memory(buffer, command, 0, here.b));
    fill_svm_now(here.svm, 9);
    fill_now(here.b, 9);
    run_on(here.plain, buffer);
    SO(svm_is(here.svm, 9));
    ALL(here.b, 4);
    OK(f.release(buffer));
    OK(clReleaseKernel(place));
    /* What had no value keeps the one that an update gave. */
    cl_kernel late = new_kernel("place");
    OK(clSetKernelArg(late, 0, sizeof(cl_mem), NULL));
    set_number(late, 1, 3);
    fill_svm_now(here.other_svm, 9);
    buffer = new_buffer(here.plain, MUTABLE);
    command = changeable(buffer, late, ARGUMENTS);
    OK(f.finalize(buffer));
    struct dispatch_argument there_now = {0, 0, here.other_svm};
    config = (struct dispatch_config){.command = command, .num_svm_args = 1, .arg_svm_list = &there_now};
    OK(change(buffer, &config, 1));
    OK(change_number(buffer, command, 1, 5));
    run_on(here.plain, buffer);
    SO(svm_is(here.other_svm, 5));
    OK(f.release(buffer));
    OK(clReleaseKernel(late));
}

static void ranges(void) {
    if (!can_change(GLOBAL_SIZE | GLOBAL_OFFSET | LOCAL_SIZE)) return;
    cl_kernel groups = new_kernel("groups");
    set_memory(groups, 0, here.b);
    command_buffer buffer = new_buffer(here.plain, MUTABLE);
    mutable_command command = changeable(buffer, groups, GLOBAL_SIZE | GLOBAL_OFFSET | LOCAL_SIZE);
    OK(f.finalize(buffer));
    size_t global = 64, offset = 96, local = 32;
    fill_now(here.b, 0);
    OK(change_range(buffer, command, NULL, &global, NULL));
    run_on(here.plain, buffer);
    ALL(here.b, i < 64 ? 16 : 0);
    OK(change_range(buffer, command, &offset, NULL, NULL));
    run_on(here.plain, buffer);
    ALL(here.b, i < 64 || (i >= 96 && i < 160) ? 16 : 0);
    fill_now(here.b, 0);
    OK(change_range(buffer, command, NULL, NULL, &local));
    run_on(here.plain, buffer);
    ALL(here.b, i >= 96 && i < 160 ? 32 : 0);
    fill_now(here.b, 0);
    offset = 0;
    global = 256;
    local = 8;
    OK(change_range(buffer, command, &offset, &global, &local));
    offset = global = local = 77;
    run_on(here.plain, buffer);
    ALL(here.b, 8);
    /* With the number of dimensions that it has, and with nothing to change. */
    struct dispatch_config same = {.command = command, .work_dim = 1};
    OK(change(buffer, &same, 1));
    OK(f.update(buffer, 0, NULL, NULL));
    run_on(here.plain, buffer);
    ALL(here.b, 8);
    OK(f.release(buffer));
    OK(clReleaseKernel(groups));
}

/* One call for sixteen commands, on any queue. */
static void many_on(cl_command_queue on, cl_command_queue to) {
    cl_kernel place = kernel_with("place", here.b, 0);
    command_buffer buffer = new_buffer(on, MUTABLE);
    mutable_command commands[16];
    cl_properties properties[] = {UPDATABLE_FIELDS, ARGUMENTS | GLOBAL_OFFSET, 0};
    for (cl_uint k = 0; k < 16; k++) {
        size_t offset = 16 * k;
        set_number(place, 1, k);
        OK(f.kernel(buffer, NULL, properties, place, 1, &offset, &sixteen, NULL, 0, NULL, NULL, &commands[k]));
    }
    OK(f.finalize(buffer));
    run_on(to, buffer);
    ALL(here.b, i / 16);
    cl_uint numbers[16];
    struct dispatch_argument arguments[16];
    struct dispatch_config configs[16];
    for (cl_uint round = 1; round < 4; round++) {
        for (cl_uint k = 0; k < 16; k++) {
            numbers[k] = 100 * round + k;
            arguments[k] = (struct dispatch_argument){1, sizeof numbers[k], &numbers[k]};
            configs[k] = (struct dispatch_config){.command = commands[15 - k], .num_args = 1, .arg_list = &arguments[k]};
        }
        OK(change(buffer, configs, 16));
        memset(numbers, 0xAA, sizeof numbers);
        run_on(to, buffer);
        ALL(here.b, 100 * round + 15 - i / 16);
    }
    OK(f.release(buffer));
    OK(clReleaseKernel(place));
}

static void many(void) {
    if (can_change(ARGUMENTS | GLOBAL_OFFSET)) each_way(many_on);
}

/* An earlier submission that has not begun keeps what it was submitted with. */
static void in_flight_on(cl_command_queue on, cl_command_queue to) {
    cl_kernel place = kernel_with("place", here.a, 1);
    command_buffer buffer = new_buffer(on, MUTABLE);
    mutable_command command = changeable(buffer, place, ARGUMENTS);
    OK(f.finalize(buffer));
    fill_now(here.a, 9);
    fill_now(here.b, 9);
    cl_event gate = new_gate(), first, second;
    OK(f.enqueue(1, &to, buffer, 1, &gate, &first));
    OK(clFlush(to));
    OK(change_number(buffer, command, 1, 2));
    OK(change_memory(buffer, command, 0, here.b));
    OK(f.enqueue(1, &to, buffer, 1, &first, &second));
    OK(change_number(buffer, command, 1, 3));
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clWaitForEvents(1, &second));
    ALL(here.a, 1);
    ALL(here.b, 2);
    run_on(to, buffer);
    ALL(here.a, 1);
    ALL(here.b, 3);
    OK(clReleaseEvent(gate));
    OK(clReleaseEvent(first));
    OK(clReleaseEvent(second));
    OK(f.release(buffer));
    OK(clReleaseKernel(place));
}

static void updates_in_flight(void) {
    if (can_change(ARGUMENTS)) each_way(in_flight_on);
}

/* What was not declared at record is refused; without a declaration it is all that the device has. */
static void declared(void) {
    if (!has_mutable) return;
    cl_kernel place = kernel_with("place", here.b, 1);
    command_buffer buffer = new_buffer(here.plain, MUTABLE);
    mutable_command commands[7];
    cl_bitfield what[7] = {0, GLOBAL_OFFSET, GLOBAL_SIZE, LOCAL_SIZE, ARGUMENTS, EXEC_INFO, 0x1F};
    for (int k = 0; k < 6; k++) commands[k] = changeable(buffer, place, what[k]);
    OK(f.kernel(buffer, NULL, NULL, place, 1, NULL, &length, &sixteen, 0, NULL, NULL, &commands[6]));
    OK(f.finalize(buffer));
    size_t none = 0;
    void *used[] = {here.svm};
    struct dispatch_argument number = {1, 4, "ABC"}, pointer = {0, 0, here.svm};
    struct dispatch_exec_info info = {CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof used, used};
    for (int k = 0; k < 7; k++) {
        cl_bitfield can = what[k] & fields;
        struct dispatch_config config = {.command = commands[k]};
#define ALLOWED(field) can & field ? CL_SUCCESS : CL_INVALID_OPERATION
        IS(change(buffer, &config, 1), CL_SUCCESS);
        IS(change_range(buffer, commands[k], &none, NULL, NULL), ALLOWED(GLOBAL_OFFSET));
        IS(change_range(buffer, commands[k], NULL, &length, NULL), ALLOWED(GLOBAL_SIZE));
        IS(change_range(buffer, commands[k], NULL, NULL, &sixteen), ALLOWED(LOCAL_SIZE));
        config.num_args = 1;
        config.arg_list = &number;
        IS(change(buffer, &config, 1), ALLOWED(ARGUMENTS));
        if (!has_svm) continue;
        config = (struct dispatch_config){.command = commands[k], .num_svm_args = 1, .arg_svm_list = &pointer};
        IS(change(buffer, &config, 1), ALLOWED(ARGUMENTS));
        config = (struct dispatch_config){.command = commands[k], .num_exec_infos = 1, .exec_info_list = &info};
        IS(change(buffer, &config, 1), ALLOWED(EXEC_INFO));
    }
    OK(f.release(buffer));
    OK(clReleaseKernel(place));
}

/* What is refused, changes nothing, whatever came before it in the same call. */
static void errors_of_update(void) {
    if (!can_change(0x1F)) return;
    reset();
    cl_kernel place = kernel_with("place", here.b, 1), of_16 = new_kernel("sixteen"), groups = new_kernel("groups"),
              aside = kernel_with("place", here.a, 1);
    set_memory(of_16, 0, here.a);
    set_memory(groups, 0, here.c);
    command_buffer buffer = new_buffer(here.plain, MUTABLE), other = new_buffer(here.plain, MUTABLE), fixed = new_buffer(here.plain, 0);
    mutable_command command = changeable(buffer, place, 0x1F), second = changeable(buffer, groups, 0x1F),
                    third = changeable(buffer, of_16, 0x1F), elsewhere = changeable(other, place, 0x1F),
                    none = changeable(buffer, aside, 0), of_fixed = NULL;
    /* A handle is allowed wherever mutable dispatch is. */
    IS(f.kernel(fixed, NULL, NULL, place, 1, NULL, &length, &sixteen, 0, NULL, NULL, &of_fixed), CL_SUCCESS);
    cl_uint two = 2, type = DISPATCH_CONFIG, no_type = 0x7777;
    size_t group, zero = 0, far = SIZE_MAX - 1, eight = 8, odd = 24, range[2] = {LEN, 1};
    OK(clGetKernelWorkGroupInfo(place, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof group, &group, NULL));
    size_t big = 2 * group;
    struct dispatch_argument number = {1, sizeof two, &two};
    struct dispatch_config good = {.command = command, .num_args = 1, .arg_list = &number}, config;
    const void *list[1] = {&good}, *nothing[1] = {NULL};

    IS(change(buffer, &good, 1), CL_INVALID_OPERATION);
    OK(f.finalize(buffer));
    OK(f.finalize(other));
    OK(f.finalize(fixed));
    config = good;
    config.command = of_fixed;
    if (of_fixed != NULL) IS(change(fixed, &config, 1), CL_INVALID_OPERATION);
    IS(f.update(fixed, 0, NULL, NULL), CL_INVALID_OPERATION);
    IS(f.update(buffer, 1, NULL, list), CL_INVALID_VALUE);
    IS(f.update(buffer, 1, &type, NULL), CL_INVALID_VALUE);
    IS(f.update(buffer, 1, NULL, NULL), CL_INVALID_VALUE);
    IS(f.update(buffer, 0, &type, list), CL_INVALID_VALUE);
    IS(f.update(buffer, 0, &type, NULL), CL_INVALID_VALUE);
    IS(f.update(buffer, 0, NULL, list), CL_INVALID_VALUE);
    IS(f.update(buffer, 1, &no_type, list), CL_INVALID_VALUE);
    IS(f.update(buffer, 1, &type, nothing), CL_INVALID_VALUE);

    cl_mem foreign = there.a, image = here.image;
    struct dispatch_argument bad_index = {2, 4, &two}, bad_size = {1, 3, &two}, bad_memory_size = {0, 4, &here.a},
                             of_there = {0, sizeof foreign, &foreign}, an_image = {0, sizeof image, &image};
    struct dispatch_argument svm_index = {2, 0, here.svm};
    struct dispatch_exec_info no_value = {CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(void *), NULL},
                              of_three_bytes = {CL_KERNEL_EXEC_INFO_SVM_PTRS, 3, &here.svm},
                              of_no_name = {CL_KERNEL_EXEC_INFO_SVM_PTRS - 1, sizeof(void *), &here.svm};
#define ARGUMENT(argument) {.command = command, .num_args = 1, .arg_list = &argument}
    struct { const char *what; cl_int one, other; struct dispatch_config config; } bad[] = {
        {"a command of another buffer", INVALID_MUTABLE_COMMAND, INVALID_MUTABLE_COMMAND, {.command = elsewhere}},
        {"no command", INVALID_MUTABLE_COMMAND, INVALID_MUTABLE_COMMAND, {.command = NULL}},
        {"two dimensions", CL_INVALID_OPERATION, CL_INVALID_OPERATION, {.command = command, .work_dim = 2}},
        {"two dimensions and sizes", CL_INVALID_OPERATION, CL_INVALID_OPERATION,
         {.command = command, .work_dim = 2, .global_work_size = range}},
        {"an undeclared field", CL_INVALID_OPERATION, CL_INVALID_OPERATION, {.command = none, .num_args = 1, .arg_list = &number}},
        {"arguments without list", CL_INVALID_VALUE, CL_INVALID_VALUE, {.command = command, .num_args = 1}},
        {"a list without arguments", CL_INVALID_VALUE, CL_INVALID_VALUE, {.command = command, .arg_list = &number}},
        {"SVM without list", CL_INVALID_VALUE, CL_INVALID_VALUE, {.command = command, .num_svm_args = 1}},
        {"a list without SVM", CL_INVALID_VALUE, CL_INVALID_VALUE, {.command = command, .arg_svm_list = &number}},
        {"infos without list", CL_INVALID_VALUE, CL_INVALID_VALUE, {.command = command, .num_exec_infos = 1}},
        {"a list without infos", CL_INVALID_VALUE, CL_INVALID_VALUE, {.command = command, .exec_info_list = &no_value}},
        {"an index beyond", CL_INVALID_ARG_INDEX, CL_INVALID_ARG_INDEX, ARGUMENT(bad_index)},
        {"a size of three", CL_INVALID_ARG_SIZE, CL_INVALID_ARG_SIZE, ARGUMENT(bad_size)},
        {"memory of four bytes", CL_INVALID_ARG_SIZE, CL_INVALID_ARG_SIZE, ARGUMENT(bad_memory_size)},
        /* Drivers of earlier versions have no status of its own for it. */
        {"memory of another context", CL_INVALID_CONTEXT, CL_INVALID_MEM_OBJECT, ARGUMENT(of_there)},
        {"an offset beyond", CL_INVALID_GLOBAL_OFFSET, CL_INVALID_GLOBAL_OFFSET, {.command = command, .global_work_offset = &far}},
        {"a group of zero", CL_INVALID_WORK_GROUP_SIZE, CL_INVALID_WORK_GROUP_SIZE, {.command = command, .local_work_size = &zero}},
        {"too big a group", CL_INVALID_WORK_GROUP_SIZE, CL_INVALID_WORK_ITEM_SIZE,
         {.command = command, .global_work_size = &big, .local_work_size = &big}},
        {"a group that is not the kernel's", CL_INVALID_WORK_GROUP_SIZE, CL_INVALID_WORK_GROUP_SIZE,
         {.command = third, .local_work_size = &eight}},
        /* Two sentences have a status for it. */
        {"groups that are not uniform any more", CL_INVALID_OPERATION, CL_INVALID_WORK_GROUP_SIZE,
         {.command = command, .local_work_size = &odd}},
        {"an image for memory", CL_INVALID_MEM_OBJECT, CL_INVALID_ARG_VALUE, ARGUMENT(an_image)},
        {"an SVM index beyond", CL_INVALID_ARG_INDEX, CL_INVALID_ARG_INDEX,
         {.command = command, .num_svm_args = 1, .arg_svm_list = &svm_index}},
        {"an info without value", CL_INVALID_VALUE, CL_INVALID_VALUE,
         {.command = command, .num_exec_infos = 1, .exec_info_list = &no_value}},
        {"an info of three bytes", CL_INVALID_VALUE, CL_INVALID_VALUE,
         {.command = command, .num_exec_infos = 1, .exec_info_list = &of_three_bytes}},
        {"an info of no name", CL_INVALID_VALUE, CL_INVALID_VALUE,
         {.command = command, .num_exec_infos = 1, .exec_info_list = &of_no_name}},
    };
    size_t last = sizeof bad / sizeof *bad - (has_svm ? 0 : 4);
    for (size_t k = 0; k < last; k++) {
        if (bad[k].config.arg_list == &an_image && !has_images) continue;
        int before = wrong;
        struct dispatch_config three[3] = {good, bad[k].config, {.command = second, .local_work_size = &eight}};
        EITHER(change(buffer, &bad[k].config, 1), bad[k].one, bad[k].other);
        EITHER(change(buffer, three, 3), bad[k].one, bad[k].other);
        EITHER(change(buffer, three + 1, 2), bad[k].one, bad[k].other);
        run_on(here.plain, buffer);
        ALL(here.b, 1);
        ALL(here.c, 16);
        /* The good ones of it in a call of their own, and back. */
        struct dispatch_config alone[2] = {three[0], three[2]};
        OK(change(buffer, alone, 2));
        two = 7;
        run_on(here.plain, buffer);
        ALL(here.b, 2);
        ALL(here.c, 8);
        two = 2;
        alone[1].local_work_size = &sixteen;
        OK(change_number(buffer, command, 1, 1));
        OK(change(buffer, alone + 1, 1));
        if (before != wrong) printf("with %s\n", bad[k].what);
    }
    OK(f.release(buffer));
    OK(f.release(other));
    OK(f.release(fixed));
    OK(clReleaseKernel(place));
    OK(clReleaseKernel(of_16));
    OK(clReleaseKernel(groups));
    OK(clReleaseKernel(aside));
}

/* Drivers may not tell the types of arguments: then the values of the recorded command do. */
static void types_that_are_not_told(void) {
    if (!can_change(ARGUMENTS)) return;
    reset();
    const char *source = "typedef struct { uint by; ushort more[3]; } three; "
                         "typedef struct { uint one, other; } pair; "
                         "kernel void sum(global uint *a, uint by, three more, ulong big, global uint *none, pair both) "
                         "{ a[get_global_id(0)] = by + more.by + more.more[2] + (uint)(big >> 40) + (none ? 5000 : 0) + both.other; }";
    struct three { cl_uint by; cl_ushort more[3]; } more = {10, {0, 0, 100}}, other = {20, {0, 0, 200}};
    cl_int status;
    cl_program program = clCreateProgramWithSource(here.context, 1, &source, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel sum = clCreateKernel(program, "sum", &status);
    OK(status);
    set_memory(sum, 0, here.b);
    set_number(sum, 1, 1);
    OK(clSetKernelArg(sum, 2, sizeof more, &more));
    cl_ulong big = 1000ull << 40, bigger = 2000ull << 40;
    OK(clSetKernelArg(sum, 3, sizeof big, &big));
    OK(clSetKernelArg(sum, 4, sizeof(cl_mem), NULL));
    cl_uint both[2] = {0, 0};
    OK(clSetKernelArg(sum, 5, sizeof both, both));
    command_buffer buffer = new_buffer(here.plain, MUTABLE);
    mutable_command command = changeable(buffer, sum, ARGUMENTS);
    OK(f.finalize(buffer));
    cl_ulong many[4] = {0};
    cl_uint two = 2;
    cl_mem foreign = there.a;
    struct { cl_int one, other; struct dispatch_argument argument; } bad[] = {
        {CL_INVALID_ARG_SIZE, CL_INVALID_ARG_SIZE, {1, 3, many}},
        {CL_INVALID_ARG_SIZE, CL_INVALID_ARG_SIZE, {1, 8, many}},
        {CL_INVALID_ARG_VALUE, CL_INVALID_ARG_VALUE, {1, 4, NULL}},
        {CL_INVALID_ARG_SIZE, CL_INVALID_ARG_SIZE, {2, 8, many}},
        {CL_INVALID_ARG_SIZE, CL_INVALID_ARG_SIZE, {2, 16, many}},
        {CL_INVALID_ARG_SIZE, CL_INVALID_ARG_SIZE, {0, 4, &here.a}},
        {CL_INVALID_CONTEXT, CL_INVALID_MEM_OBJECT, {0, sizeof foreign, &foreign}},
        {CL_INVALID_ARG_SIZE, CL_INVALID_ARG_SIZE, {5, 4, both}},
        /* Nothing of it is read. */
        {CL_INVALID_ARG_SIZE, CL_INVALID_ARG_SIZE, {3, SIZE_MAX / 2, &bigger}},
        {CL_INVALID_ARG_SIZE, CL_INVALID_ARG_SIZE, {4, (size_t)1 << 40, &here.a}},
        {CL_INVALID_ARG_SIZE, CL_INVALID_ARG_SIZE, {5, 1 << 16, both}},
        {CL_INVALID_ARG_SIZE, CL_INVALID_ARG_SIZE, {5, (size_t)1 << 40, both}},
    };
    struct dispatch_argument good[2] = {{1, sizeof two, &two}, {2, sizeof other, &other}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        struct dispatch_argument both[2] = {good[0], bad[k].argument};
        struct dispatch_config config = {.command = command, .num_args = 2, .arg_list = both};
        EITHER(change(buffer, &config, 1), bad[k].one, bad[k].other);
    }
    run_on(here.plain, buffer);
    ALL(here.b, 1111);
    struct dispatch_config config = {.command = command, .num_args = 2, .arg_list = good};
    OK(change(buffer, &config, 1));
    OK(change_memory(buffer, command, 0, here.c));
    run_on(here.plain, buffer);
    ALL(here.c, 1222);
    /* Again, and values of eight bytes: a number, memory where there was none, and none again. */
    struct dispatch_argument eight[3] = {{3, sizeof bigger, &bigger}, {4, sizeof here.a, &here.a}, {1, sizeof two, &two}};
    config = (struct dispatch_config){.command = command, .num_args = 3, .arg_list = eight};
    OK(change(buffer, &config, 1));
    run_on(here.plain, buffer);
    ALL(here.c, 7222);
    eight[1] = (struct dispatch_argument){4, sizeof(cl_mem), NULL};
    OK(change(buffer, &config, 1));
    run_on(here.plain, buffer);
    ALL(here.c, 2222);
    OK(f.release(buffer));
    OK(clReleaseKernel(sum));
    OK(clReleaseProgram(program));
}

/* Fewer groups are no more groups, of a buffer and of a command that promise no more. */
static void fewer_groups(void) {
    if (!can_change(GLOBAL_SIZE | LOCAL_SIZE)) return;
    cl_properties of_all[] = {BUFFER_FLAGS, MUTABLE, BUFFER_ASSERTS, NO_ADDITIONAL_WORK_GROUPS, 0};
    cl_properties of_one[] = {UPDATABLE_FIELDS, GLOBAL_SIZE | LOCAL_SIZE, DISPATCH_ASSERTS, NO_ADDITIONAL_WORK_GROUPS, 0};
    cl_kernel groups = new_kernel("groups");
    set_memory(groups, 0, here.b);
    for (int way = 0; way < 2; way++) {
        cl_int status;
        command_buffer buffer = way ? new_buffer(here.plain, MUTABLE) : f.create(1, &here.plain, of_all, &status);
        CHECK(buffer != NULL);
        mutable_command command;
        OK(f.kernel(buffer, NULL, way ? of_one : NULL, groups, 1, NULL, &length, &sixteen, 0, NULL, NULL, &command));
        OK(f.finalize(buffer));
        size_t global = 128, local = 8;
        fill_now(here.b, 0);
        OK(change_range(buffer, command, NULL, &global, &local));
        run_on(here.plain, buffer);
        ALL(here.b, i < 128 ? 8 : 0);
        OK(change_range(buffer, command, NULL, &length, &sixteen));
        run_on(here.plain, buffer);
        ALL(here.b, 16);
        OK(f.release(buffer));
    }
    OK(clReleaseKernel(groups));
}

/* Recorded without arguments, which come later. */
static void deferred(void) {
    if (!can_change(ARGUMENTS)) return;
    cl_kernel unset = new_kernel("place"), half = new_kernel("place");
    set_memory(half, 0, here.c);
    command_buffer buffer = new_buffer(here.plain, MUTABLE);
    mutable_command first = changeable(buffer, unset, ARGUMENTS), second = changeable(buffer, half, ARGUMENTS);
    SO(state_of(buffer) == RECORDING);
    OK(f.finalize(buffer));
    fill_now(here.b, 9);
    fill_now(here.c, 9);
    SO(state_of(buffer) == FINALIZED);
    IS(f.enqueue(0, NULL, buffer, 0, NULL, NULL), CL_INVALID_OPERATION);
    IS(f.finalize(buffer), CL_INVALID_OPERATION);
    OK(change_memory(buffer, first, 0, here.b));
    OK(change_number(buffer, first, 1, 3));
    SO(state_of(buffer) == FINALIZED);
    IS(f.enqueue(1, &here.plain, buffer, 0, NULL, NULL), CL_INVALID_OPERATION);
    /* The last one, in a call that is refused. */
    cl_uint four = 4;
    struct dispatch_argument number = {1, sizeof four, &four}, beyond = {2, sizeof four, &four};
    struct dispatch_config both[2] = {{.command = second, .num_args = 1, .arg_list = &number},
                                      {.command = first, .num_args = 1, .arg_list = &beyond}};
    IS(change(buffer, both, 2), CL_INVALID_ARG_INDEX);
    SO(state_of(buffer) == FINALIZED);
    IS(f.enqueue(0, NULL, buffer, 0, NULL, NULL), CL_INVALID_OPERATION);
    OK(clFinish(here.plain));
    ALL(here.b, 9);
    OK(change(buffer, both, 1));
    SO(state_of(buffer) == EXECUTABLE);
    run_on(here.plain, buffer);
    ALL(here.b, 3);
    ALL(here.c, 4);
    /* The kernel objects have none still. */
    IS(clEnqueueNDRangeKernel(here.reader, half, 1, NULL, &length, NULL, 0, NULL, NULL), CL_INVALID_KERNEL_ARGS);
    OK(f.release(buffer));
    OK(clReleaseKernel(unset));
    OK(clReleaseKernel(half));
}

static void command_queries(void) {
    if (!has_mutable) return;
    cl_kernel groups = new_kernel("groups");
    set_memory(groups, 0, here.b);
    cl_properties properties[] = {UPDATABLE_FIELDS, fields & (GLOBAL_OFFSET | GLOBAL_SIZE | LOCAL_SIZE), DISPATCH_ASSERTS, 0, 0};
    command_buffer buffer = new_buffer(here.plain, MUTABLE);
    size_t offset[2] = {1, 2}, global[2] = {32, 8}, local[2] = {4, 2}, none[2] = {0, 0};
    mutable_command command, simple;
    OK(f.kernel(buffer, NULL, properties, groups, 2, offset, global, local, 0, NULL, NULL, &command));
    OK(f.kernel(buffer, NULL, NULL, groups, 1, NULL, &length, NULL, 0, NULL, NULL, &simple));
    SO(command != simple);
    for (int finalized = 0; finalized < 2; finalized++) {
        ANSWERS(of_command, command, COMMAND_QUEUE, cl_command_queue, here.plain);
        ANSWERS(of_command, command, COMMAND_COMMAND_BUFFER, command_buffer, buffer);
        ANSWERS(of_command, command, COMMAND_TYPE, cl_command_type, CL_COMMAND_NDRANGE_KERNEL);
        ANSWERS(of_command, command, COMMAND_KERNEL, cl_kernel, groups);
        ANSWERS(of_command, command, COMMAND_DIMENSIONS, cl_uint, 2);
        answers(HERE, of_command, command, COMMAND_GLOBAL_OFFSET, sizeof offset, offset);
        answers(HERE, of_command, command, COMMAND_GLOBAL_SIZE, sizeof global, global);
        answers(HERE, of_command, command, COMMAND_LOCAL_SIZE, sizeof local, local);
        answers(HERE, of_command, command, COMMAND_PROPERTIES_ARRAY, sizeof properties, properties);
        ANSWERS(of_command, simple, COMMAND_KERNEL, cl_kernel, groups);
        ANSWERS(of_command, simple, COMMAND_DIMENSIONS, cl_uint, 1);
        answers(HERE, of_command, simple, COMMAND_GLOBAL_OFFSET, sizeof *none, none);
        answers(HERE, of_command, simple, COMMAND_GLOBAL_SIZE, sizeof length, &length);
        answers(HERE, of_command, simple, COMMAND_LOCAL_SIZE, sizeof *none, none);
        answers(HERE, of_command, simple, COMMAND_PROPERTIES_ARRAY, 0, none);
        IS(f.command_info(command, 0x7777, 0, NULL, NULL), CL_INVALID_VALUE);
        IS(f.command_info(command, BUFFER_STATE, 0, NULL, NULL), CL_INVALID_VALUE);
        if (!finalized) OK(f.finalize(buffer));
    }
    if (can_change(GLOBAL_OFFSET | GLOBAL_SIZE | LOCAL_SIZE)) {
        size_t new_offset[2] = {3, 4}, new_global[2] = {16, 4}, new_local[2] = {2, 2};
        OK(change_range(buffer, command, NULL, new_global, NULL));
        answers(HERE, of_command, command, COMMAND_GLOBAL_OFFSET, sizeof offset, offset);
        answers(HERE, of_command, command, COMMAND_GLOBAL_SIZE, sizeof global, new_global);
        answers(HERE, of_command, command, COMMAND_LOCAL_SIZE, sizeof local, local);
        OK(change_range(buffer, command, new_offset, NULL, new_local));
        answers(HERE, of_command, command, COMMAND_GLOBAL_OFFSET, sizeof offset, new_offset);
        answers(HERE, of_command, command, COMMAND_GLOBAL_SIZE, sizeof global, new_global);
        answers(HERE, of_command, command, COMMAND_LOCAL_SIZE, sizeof local, new_local);
        /* Refused, and so not told. */
        struct dispatch_config bad = {.command = command, .work_dim = 1, .global_work_size = global};
        IS(change(buffer, &bad, 1), CL_INVALID_OPERATION);
        answers(HERE, of_command, command, COMMAND_GLOBAL_SIZE, sizeof global, new_global);
        answers(HERE, of_command, command, COMMAND_PROPERTIES_ARRAY, sizeof properties, properties);
    }
    OK(f.release(buffer));
    OK(clReleaseKernel(groups));
}
