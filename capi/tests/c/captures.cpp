// Captures: what is enqueued with OpenCL itself becomes nodes. Only runs with clgraph's layer, but for `captures without`.
#include "common.hpp"

static cl_mem made(const bench &all) {
    cl_int status;
    const cl_mem memory = clCreateBuffer(all.context, CL_MEM_READ_WRITE, 64, nullptr, &status);
    CHECK(status == CL_SUCCESS);
    return memory;
}

// As a library would: nothing of this knows of clgraph.
static void library(const bench &all, cl_mem memory, cl_uint by) {
    cl_int status;
    cl_kernel scale = clCreateKernel(all.program, "scale", &status);
    CHECK(status == CL_SUCCESS);
    const size_t len = 16;
    CHECK(clSetKernelArg(scale, 0, sizeof memory, &memory) == CL_SUCCESS);
    CHECK(clSetKernelArg(scale, 1, sizeof by, &by) == CL_SUCCESS);
    CHECK(clEnqueueNDRangeKernel(all.cl_queue, scale, 1, nullptr, &len, nullptr, 0, nullptr, nullptr) == CL_SUCCESS);
    CHECK(clReleaseKernel(scale) == CL_SUCCESS);
}

static void of_cpp(const bench &all) {
    clg::queue queue(all.cl_queue);
    clg::commands on(queue);
    const size_t len = 16;
    const cl_mem memory = made(all), other = made(all);
    clg::memory a(all.context, memory), b(all.context, other);
    on.fill(a, uint32_t{3}).wait();
    on.fill(b, uint32_t{5}).wait();
    clg::graph graph(queue);
    auto nodes = graph.capture(queue, [&] {
        library(all, memory, 2);
        library(all, memory, 7);
    });
    CHECK(nodes.size() == 2 && graph.size() == 2 && graph.kind(nodes[1]) == "kernel");
    CHECK(on.read(a).wait<uint32_t>() == std::vector<uint32_t>(len, 3));
    auto result = graph.read(a);
    clg_finalize_options options = {};
    options.updatable = true;
    auto executable = graph.finalize(options);
    auto run = executable.submit(queue);
    run.wait();
    CHECK(run.get<uint32_t>(result)[len - 1] == 42);
    graph.set_arg(nodes[0], 1, clg::arg(uint32_t{10}));
    graph.set_arg(nodes[1], 0, clg::in_out(b));
    executable.update(nodes);
    executable.submit(queue).wait();
    CHECK(on.read(a).wait<uint32_t>() == std::vector<uint32_t>(len, 420));
    CHECK(on.read(b).wait<uint32_t>() == std::vector<uint32_t>(len, 35));
    throws(CLG_INVALID, "there is no argument 2", [&] { graph.set_arg(nodes[0], 2, clg::arg(uint32_t{1})); });
    // A promise of work-items comes with its argument, or is refused and changes nothing.
    graph.set_arg(nodes[1], 0, clg::in_out(b).elementwise(4));
    throws(CLG_INVALID, "`elementwise` of argument 1", [&] { graph.set_arg(nodes[0], 1, clg::arg(uint32_t{1}).elementwise(4)); });
    executable.update(nodes);
    executable.submit(queue).wait();
    CHECK(on.read(b).wait<uint32_t>() == std::vector<uint32_t>(len, 245));

    // What spoils a capture is named, and an exception adds nothing.
    throws(CLG_INVALID, "clFinish spoilt the capture", [&] { graph.capture(queue, [&] { clFinish(all.cl_queue); }); });
    CHECK(graph.capture(queue, [&] { CHECK(clFinish(all.cl_queue) == CL_SUCCESS); }, CLG_CAPTURE_RELAXED).empty());
    try {
        graph.capture(queue, [&] {
            library(all, memory, 2);
            throw 5;
        });
        CHECK(!"it throws");
    } catch (int five) {
        CHECK(five == 5);
    }
    throws(CLG_INVALID, "clFinish spoilt the capture", [&] {
        graph.capture(queue, [&] {
            clFinish(all.cl_queue);
            throw 5;
        });
    });
    CHECK(graph.size() == 3);
    CHECK(clReleaseMemObject(memory) == CL_SUCCESS && clReleaseMemObject(other) == CL_SUCCESS);
}

static void of_c(const bench &all) {
    const cl_mem memory = made(all);
    size_t count = 9;
    clg_node nodes[2];
    FAILS(CLG_INVALID, "7 is no mode of a capture", clg_graph_begin_capture(all.graph, all.queue, 7));
    FAILS(CLG_INVALID, "not captured", clg_graph_end_capture(all.graph, all.queue, 0, nullptr, nullptr));
    FAILS(CLG_INVALID, "not captured", clg_queue_drop_capture(all.queue));
    OK(clg_queue_captured(all.queue, &count));
    CHECK(count == 0);
    OK(clg_graph_begin_capture(all.graph, all.queue, CLG_CAPTURE_STRICT));
    FAILS(CLG_INVALID, "captured already", clg_graph_begin_capture(all.graph, all.queue, CLG_CAPTURE_STRICT));
    library(all, memory, 2);
    library(all, memory, 2);
    OK(clg_queue_captured(all.queue, &count));
    CHECK(count == 2);
    FAILS(CLG_INVALID, "there are 2 nodes, and there is room for 1", clg_graph_end_capture(all.graph, all.queue, 1, nodes, &count));
    OK(clg_graph_end_capture(all.graph, all.queue, 2, nodes, &count));
    CHECK(count == 2 && nodes[1].index == 1);
    OK(clg_graph_begin_capture(all.graph, all.queue, CLG_CAPTURE_STRICT));
    library(all, memory, 2);
    OK(clg_queue_drop_capture(all.queue));
    FAILS(CLG_INVALID, "arg", clg_graph_set_arg(all.graph, nodes[0], 1, nullptr));
    CHECK(clReleaseMemObject(memory) == CL_SUCCESS);
}

int main(int count, char **) {
    bench all = start();
    if (count > 1) {
        FAILS(CLG_FEATURE_NOT_SUPPORTED, "OPENCL_LAYERS", clg_graph_begin_capture(all.graph, all.queue, CLG_CAPTURE_STRICT));
    } else {
        of_c(all);
        of_cpp(all);
    }
    end(all);
    CHECK(clg_live_objects() == 0);
    puts("ok");
}
