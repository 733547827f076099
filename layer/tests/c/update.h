/* Updates of command buffers, and the functions of these that programs with captures use: the headers of a system may be older. */
#pragma once
#include "../../include/clgraph_layer.h"

/* As in the headers from 2024-09 on. */
struct argument {
    cl_uint index;
    size_t size;
    const void *value;
};
struct config {
    cl_mutable_command_khr command;
    cl_uint args, svm_args, exec_infos, work_dim;
    const struct argument *arg_list, *svm_list;
    const void *exec_info_list;
    const size_t *offset, *global, *local;
};

typedef cl_int(CL_API_CALL *update_function)(cl_command_buffer_khr, cl_uint, const cl_uint *, const void **);
typedef cl_int(CL_API_CALL *enqueue_function)(cl_uint, cl_command_queue *, cl_command_buffer_khr, cl_uint, const cl_event *,
                                              cl_event *);
typedef cl_int(CL_API_CALL *buffer_function)(cl_command_buffer_khr);
