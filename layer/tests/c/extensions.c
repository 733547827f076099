/* Prints what devices say of their extensions, and which functions of command buffers there are. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

#define OK(call) CHECK((call) == CL_SUCCESS)

int main(void) {
    cl_platform_id platforms[16];
    cl_uint num_platforms;
    OK(clGetPlatformIDs(16, platforms, &num_platforms));
    for (cl_uint i = 0; i < num_platforms && i < 16; i++) {
        cl_device_id devices[16];
        cl_uint num_devices;
        OK(clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 16, devices, &num_devices));
        for (cl_uint j = 0; j < num_devices && j < 16; j++) {
            size_t size;
            OK(clGetDeviceInfo(devices[j], CL_DEVICE_EXTENSIONS, 0, NULL, &size));
            char *text = malloc(size);
            OK(clGetDeviceInfo(devices[j], CL_DEVICE_EXTENSIONS, size, text, NULL));
            printf("%s\n", text);
            free(text);
        }
        const char *names[] = {"clCreateCommandBufferKHR", "clUpdateMutableCommandsKHR", "clGetCommandBufferInfoKHR"};
        for (int j = 0; j < 3; j++) {
            void *found = clGetExtensionFunctionAddressForPlatform(platforms[i], names[j]);
            printf("%s: %s\n", names[j], found ? "there" : "none");
        }
    }
    return 0;
}
