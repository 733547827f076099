/* The submissions of bench.py, by calls of OpenCL as a program in C makes them: what of a time is the driver's. bench.py compiles it, and
   gives it the loader that pyopencl uses. It needs no headers, because those of a machine may be older than command buffers. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t status;
typedef void *handle;

static status (*enqueue)(handle, handle, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const handle *, handle *);
static status (*finish)(handle);
static handle (*create)(uint32_t, const handle *, const uint64_t *, status *);
static status (*add)(handle, handle, const uint64_t *, handle, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const uint32_t *, uint32_t *, handle *);
static status (*finalize)(handle);
static status (*submit)(uint32_t, handle *, handle, uint32_t, const handle *, handle *);

static const size_t one = 1;

/* Returns whether the loader and the platform have all that is called: 2 with command buffers, 1 without, 0 for neither. */
int by_hand_open(const char *loader, handle platform) {
    void *library = dlopen(loader, RTLD_NOW);
    void *(*extension)(handle, const char *);
    if (library == NULL)
        return 0;
    *(void **)&enqueue = dlsym(library, "clEnqueueNDRangeKernel");
    *(void **)&finish = dlsym(library, "clFinish");
    *(void **)&extension = dlsym(library, "clGetExtensionFunctionAddressForPlatform");
    if (enqueue == NULL || finish == NULL || extension == NULL)
        return 0;
    *(void **)&create = extension(platform, "clCreateCommandBufferKHR");
    *(void **)&add = extension(platform, "clCommandNDRangeKernelKHR");
    *(void **)&finalize = extension(platform, "clFinalizeCommandBufferKHR");
    *(void **)&submit = extension(platform, "clEnqueueCommandBufferKHR");
    return create != NULL && add != NULL && finalize != NULL && submit != NULL ? 2 : 1;
}

/* Without `waits` it only enqueues. */
status by_hand_loop(handle queue, handle kernel, int count, int waits) {
    for (int i = 0; i < count; ++i) {
        status error = enqueue(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
        if (error != 0)
            return error;
    }
    return waits ? finish(queue) : 0;
}

/* One command buffer, in which each kernel comes after the one before. NULL if the driver makes none. */
handle by_hand_record(handle queue, handle kernel, int count) {
    status error = 0;
    handle buffer = create(1, &queue, NULL, &error);
    uint32_t last = 0;
    if (buffer == NULL || error != 0)
        return NULL;
    for (int i = 0; i < count; ++i)
        if (add(buffer, NULL, NULL, kernel, 1, NULL, &one, &one, i > 0, i > 0 ? &last : NULL, &last, NULL) != 0)
            return NULL;
    return finalize(buffer) == 0 ? buffer : NULL;
}

status by_hand_submit(handle queue, handle buffer, int waits) {
    status error = submit(1, &queue, buffer, 0, NULL, NULL);
    return error != 0 || !waits ? error : finish(queue);
}
