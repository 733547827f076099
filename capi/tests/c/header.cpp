// The header alone, without OpenCL's, under the warnings that programs may ask for.
#include <clgraph.hpp>
#include <cstdio>

int main() {
    if (clg::version() != clg_version() || clg::live_objects() != 0) {
        return 1;
    }
    std::puts("ok");
}
