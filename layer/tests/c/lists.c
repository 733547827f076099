/* Prints what the first device has of command buffers: `lists`; or records with functions that have no parameter `properties`, as
 * before revision 0.9.5: `lists old`. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <string.h>

#include "check.h"

typedef void *object;
typedef object (*create_function)(cl_uint, const cl_command_queue *, const cl_ulong *, cl_int *);
typedef cl_int (*object_function)(object);
typedef cl_int (*enqueue_function)(cl_uint, cl_command_queue *, object, cl_uint, const cl_event *, cl_event *);
/* The form of revisions 0.9.0 to 0.9.4. */
typedef cl_int (*fill_function)(object, cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, cl_uint,
                                const cl_uint *, cl_uint *, object *);
typedef cl_int (*copy_function)(object, cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_uint *,
                                cl_uint *, object *);
typedef cl_int (*barrier_function)(object, cl_command_queue, cl_uint, const cl_uint *, cl_uint *, object *);

static cl_platform_id platform;
static cl_device_id device;

static void with_versions(const char *of, size_t size, const cl_name_version *list) {
    printf("%s:", of);
    for (size_t i = 0; i < size / sizeof *list; i++)
        if (strstr(list[i].name, "command_buffer") != NULL)
            printf(" %s %u.%u.%u", list[i].name + 7, CL_VERSION_MAJOR(list[i].version), CL_VERSION_MINOR(list[i].version),
                   CL_VERSION_PATCH(list[i].version));
    printf("\n");
}

static void names(const char *of, char *list) {
    printf("%s:", of);
    for (char *name = strtok(list, " "); name != NULL; name = strtok(NULL, " "))
        if (strstr(name, "command_buffer") != NULL) printf(" %s", name + 7);
    printf("\n");
}

static void lists(void) {
    static char text[1 << 16];
    static cl_name_version list[1 << 10];
    size_t size, again;
    CHECK(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &size) == CL_SUCCESS);
    CHECK(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, size, text, &again) == CL_SUCCESS && size == again);
    CHECK(strlen(text) + 1 == size && clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, size - 1, text, NULL) == CL_INVALID_VALUE);
    names("device", text);
    CHECK(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof list, list, &size) == CL_SUCCESS);
    with_versions("device", size, list);
    CHECK(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof text, text, &size) == CL_SUCCESS);
    names("platform", text);
    CHECK(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS_WITH_VERSION, sizeof list, list, &size) == CL_SUCCESS);
    with_versions("platform", size, list);
    static const cl_uint QUERIES[] = {0x12A9, 0x129A, 0x12AA, 0x12B0};
    printf("queries:");
    for (int i = 0; i < 4; i++) {
        cl_ulong bits = 0;
        size = 0;
        if (clGetDeviceInfo(device, QUERIES[i], sizeof bits, &bits, &size) == CL_SUCCESS) printf(" 0x%llx", (unsigned long long)bits);
        else printf(" -");
    }
    static const char *const FUNCTIONS[] = {"clCreateCommandBufferKHR", "clUpdateMutableCommandsKHR", "clBeginCaptureCLG"};
    printf("\nfunctions:");
    for (int i = 0; i < 3; i++) printf(" %d", clGetExtensionFunctionAddressForPlatform(platform, FUNCTIONS[i]) != NULL);
    CHECK(clGetExtensionFunctionAddressForPlatform(platform, "clNoSuchFunctionKHR") == NULL);
    /* Those of drivers that take command buffers of drivers. */
    static const char *const OTHERS[] = {"clRemapCommandBufferKHR", "clCommandSVMMemcpyPOCL", "clCommandReadBufferPOCL"};
    printf("\nothers:");
    for (int i = 0; i < 3; i++) printf(" %d", clGetExtensionFunctionAddressForPlatform(platform, OTHERS[i]) != NULL);
    printf("\n");
}

static void *function(const char *name) {
    void *function = clGetExtensionFunctionAddressForPlatform(platform, name);
    CHECK(function != NULL);
    return function;
}

static void old(void) {
    cl_int status;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    CHECK(status == CL_SUCCESS);
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
    CHECK(status == CL_SUCCESS);
    cl_mem from = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &status), to;
    CHECK(status == CL_SUCCESS);
    to = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &status);
    CHECK(status == CL_SUCCESS);
    object buffer = ((create_function)function("clCreateCommandBufferKHR"))(1, &queue, NULL, &status);
    CHECK(status == CL_SUCCESS && buffer != NULL);
    cl_uint seven = 7, point = 0, values[16] = {0};
    CHECK(((fill_function)function("clCommandFillBufferKHR"))(buffer, NULL, from, &seven, 4, 0, 64, 0, NULL, &point, NULL) == CL_SUCCESS);
    CHECK(((barrier_function)function("clCommandBarrierWithWaitListKHR"))(buffer, NULL, 1, &point, NULL, NULL) == CL_SUCCESS);
    CHECK(((copy_function)function("clCommandCopyBufferKHR"))(buffer, NULL, from, to, 0, 0, 64, 0, NULL, NULL, NULL) == CL_SUCCESS);
    CHECK(((object_function)function("clFinalizeCommandBufferKHR"))(buffer) == CL_SUCCESS);
    CHECK(((enqueue_function)function("clEnqueueCommandBufferKHR"))(0, NULL, buffer, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, 64, values, 0, NULL, NULL) == CL_SUCCESS);
    for (int i = 0; i < 16; i++) CHECK(values[i] == 7);
    CHECK(((object_function)function("clReleaseCommandBufferKHR"))(buffer) == CL_SUCCESS);
    CHECK(clReleaseMemObject(from) == CL_SUCCESS && clReleaseMemObject(to) == CL_SUCCESS);
    CHECK(clReleaseCommandQueue(queue) == CL_SUCCESS && clReleaseContext(context) == CL_SUCCESS);
    printf("ok\n");
}

int main(int argc, char **argv) {
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    if (argc > 1 && strcmp(argv[1], "old") == 0) old();
    else lists();
    return 0;
}
