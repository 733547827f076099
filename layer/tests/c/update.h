/* Updates of command buffers, and functions of these: the headers of a system may be older. */
#pragma once
#include "../../include/clgraph_layer.h"

/* As in the headers from 2024-09 on. */
struct dispatch_argument {
    cl_uint arg_index;
    size_t arg_size;
    const void *arg_value;
};

struct dispatch_exec_info {
    cl_uint param_name;
    size_t param_value_size;
    const void *param_value;
};

struct dispatch_config {
    void *command;
    cl_uint num_args, num_svm_args, num_exec_infos, work_dim;
    const struct dispatch_argument *arg_list, *arg_svm_list;
    const struct dispatch_exec_info *exec_info_list;
    const size_t *global_work_offset, *global_work_size, *local_work_size;
};

typedef cl_int(CL_API_CALL *update_function)(cl_command_buffer_khr, cl_uint, const cl_uint *, const void **);
typedef cl_int(CL_API_CALL *enqueue_function)(cl_uint, cl_command_queue *, cl_command_buffer_khr, cl_uint, const cl_event *,
                                              cl_event *);
typedef cl_int(CL_API_CALL *buffer_function)(cl_command_buffer_khr);
