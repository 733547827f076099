// A photograph without its noise, and with its edges: 100 steps of diffusion that stops at edges (Perona and Malik). A graph of
// 200 kernels with the objects of opencl.hpp, and the same as a loop.
//
//     smooth PHOTO.jpg SMOOTH.jpg
#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#define CL_HPP_ENABLE_EXCEPTIONS
#include <CL/opencl.hpp>
#include <chrono>
#include <clgraph.hpp>
#include <iostream>
#include <vector>
extern "C" {
#include "photo.h"
}

static const char *SOURCE = R"(
kernel void to_float(global const uchar *in, global float *out) { out[get_global_id(0)] = in[get_global_id(0)]; }
kernel void to_bytes(global const float *in, global uchar *out) { out[get_global_id(0)] = convert_uchar_sat_rte(in[get_global_id(0)]); }
kernel void diffuse(global const float *in, global float *out, float edge) {
    int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);
    float here = in[y * w + x], sum = 0;
    int at[4] = {y * w + max(x - 1, 0), y * w + min(x + 1, w - 1), max(y - 1, 0) * w + x, min(y + 1, h - 1) * w + x};
    for (int i = 0; i < 4; i++) {
        float d = in[at[i]] - here;
        sum += d / (1 + d * d / (edge * edge));
    }
    out[y * w + x] = here + 0.2f * sum;
}
)";

int main(int argc, char **argv) {
    if (argc != 3) {
        std::cerr << "usage: " << argv[0] << " PHOTO.jpg SMOOTH.jpg\n";
        return 2;
    }
    try {
        photo of = photo_read(argv[1]);
        const std::size_t len = of.width * of.height;
        const int steps = 100;
        const cl_float edge = 12;
        std::vector<unsigned char> pixels(of.pixels, of.pixels + len), by_loop(len);
        std::free(of.pixels);

        cl::Platform platform = cl::Platform::get();
        std::vector<cl::Device> devices;
        platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
        cl::Context context(devices[0]);
        cl::CommandQueue command_queue(context, devices[0]);
        cl::Program program(context, SOURCE);
        program.build(devices[0], "-cl-kernel-arg-info");
        cl::Kernel to_float(program, "to_float"), diffuse(program, "diffuse"), to_bytes(program, "to_bytes");
        cl::Buffer bytes(context, CL_MEM_READ_WRITE, len);
        cl::Buffer ping(context, CL_MEM_READ_WRITE, len * sizeof(cl_float)), pong(context, CL_MEM_READ_WRITE, len * sizeof(cl_float));

        // The graph.
        clg::queue queue(command_queue);
        clg::memory photo_bytes(context, bytes), a(context, ping), b(context, pong);
        clg::graph graph(queue);
        graph.write(photo_bytes, pixels, {"the photograph"});
        graph.kernel(clg::kernel(context, to_float), len, {clg::in(photo_bytes), clg::out(a)});
        clg::kernel step(context, diffuse);
        clg::extent area(of.width, of.height);
        for (int i = 0; i < steps; i += 2) {
            graph.kernel(step, area, {clg::in(a), clg::out(b), edge});
            graph.kernel(step, area, {clg::in(b), clg::out(a), edge});
        }
        graph.kernel(clg::kernel(context, to_bytes), len, {clg::in(a), clg::out(photo_bytes)});
        auto smooth = graph.read(photo_bytes);
        auto executable = graph.finalize();
        executable.submit(queue).wait(); // the driver compiles the kernels when they first run
        using clock = std::chrono::steady_clock;
        auto start = clock::now();
        auto run = executable.submit(queue);
        run.wait();
        std::chrono::duration<double, std::milli> graph_time = clock::now() - start;
        auto by_graph = run.get<unsigned char>(smooth);

        // The same by hand.
        start = clock::now();
        command_queue.enqueueWriteBuffer(bytes, CL_FALSE, 0, len, pixels.data());
        to_float.setArg(0, bytes);
        to_float.setArg(1, ping);
        command_queue.enqueueNDRangeKernel(to_float, cl::NullRange, cl::NDRange(len));
        for (int i = 0; i < steps; i++) {
            diffuse.setArg(0, i % 2 ? pong : ping);
            diffuse.setArg(1, i % 2 ? ping : pong);
            diffuse.setArg(2, edge);
            command_queue.enqueueNDRangeKernel(diffuse, cl::NullRange, cl::NDRange(of.width, of.height));
        }
        to_bytes.setArg(0, ping);
        to_bytes.setArg(1, bytes);
        command_queue.enqueueNDRangeKernel(to_bytes, cl::NullRange, cl::NDRange(len));
        command_queue.enqueueReadBuffer(bytes, CL_TRUE, 0, len, by_loop.data());
        std::chrono::duration<double, std::milli> loop_time = clock::now() - start;

        const bool same = by_graph == by_loop;
        std::cout << of.width << " x " << of.height << " pixels, " << steps << " steps: " << graph_time.count()
                  << " ms by the graph, " << loop_time.count() << " ms by the loop of calls; the pictures are "
                  << (same ? "the same" : "different") << "\n";
        of.pixels = by_graph.data();
        photo_write(argv[2], of);
        std::cout << (same ? "ok" : "not ok") << "\n";
        return same ? 0 : 1;
    } catch (const std::exception &error) { // clg::error and cl::Error
        std::cerr << error.what() << "\n";
        return 1;
    }
}
