/*
 * Finding galaxies in a photograph of the sky, in OpenCL C 1.2.
 *
 * Every value is an integer, and no result depends on the order in which the
 * work-items run. So every conforming driver gives the same bytes.
 *
 * All kernels have this in common:
 *
 *   - `width` and `height` are the size of the image in pixels. A plane is
 *     width * height values, row after row from the top; pixel (x, y) is value
 *     y * width + x, which is called its index. An image has fewer than
 *     2^32 - 1 pixels, and each of its sides is shorter than 2^31.
 *   - The work is two-dimensional, with one work-item for each pixel:
 *     dimension 0 is x and dimension 1 is y. The global size may be larger
 *     than the image (rounded up to whole work-groups, say); work-items
 *     outside of the image return at once.
 *   - `in` buffers are only read, `out` buffers are written at every pixel,
 *     `in out` buffers are changed at some pixels. No two arguments of a
 *     kernel may be the same buffer.
 *
 * The order of the launches:
 *
 *   luminance, median3x3, box_rows, box_columns, threshold, label_init
 *   repeat
 *     set `changed` to 0, and copy `labels` to `next`
 *     label_step, label_jump
 *   until `changed` is still 0 after label_step
 *   set all of `areas` to 0, and `count` to 0
 *   measure_areas, count_objects
 */

/* The index of pixel (x, y) in a plane. */
static size_t pixel_index(uint x, uint y, uint width)
{
    return (size_t)y * width + x;
}

/* A coordinate from outside of 0 .. size - 1 becomes the nearest one inside. */
static uint inside(long coordinate, uint size)
{
    return (uint)clamp(coordinate, 0L, (long)size - 1L);
}

/*
 * luminance: how bright each pixel looks, from its colour. The weights 77, 150
 * and 29 (of 256) are those of ITU-R BT.601; the result is rounded to nearest.
 *
 *   rgb     in   3 * width * height bytes: red, green and blue of each pixel
 *   light   out  plane of bytes, 0 (black) .. 255 (white)
 */
__kernel void luminance(
    __global const uchar *rgb,
    __global uchar *light,
    uint width,
    uint height)
{
    const uint x = get_global_id(0);
    const uint y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    const size_t i = pixel_index(x, y, width);
    const uint red = rgb[3 * i];
    const uint green = rgb[3 * i + 1];
    const uint blue = rgb[3 * i + 2];
    light[i] = (uchar)((77 * red + 150 * green + 29 * blue + 128) >> 8);
}

/* The middle one of three values. */
static uchar middle(uchar a, uchar b, uchar c)
{
    return max(min(a, b), min(max(a, b), c));
}

/*
 * median3x3: removes noise and keeps edges. Each pixel becomes the middle one
 * of the nine values in the 3 x 3 square around it. Beyond its border, the
 * image goes on with its border pixels.
 *
 *   light   in   plane of bytes
 *   smooth  out  plane of bytes
 */
__kernel void median3x3(
    __global const uchar *light,
    __global uchar *smooth,
    uint width,
    uint height)
{
    const uint x = get_global_id(0);
    const uint y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    const uint left = inside((long)x - 1, width);
    const uint right = inside((long)x + 1, width);

    /* Sort each row of the square. The median of the nine is then the middle
     * one of: the largest of the three minima, the middle one of the three
     * middle values, and the smallest of the three maxima. */
    uchar largest_minimum = 0;
    uchar smallest_maximum = 255;
    uchar middles[3];
    for (int row = 0; row < 3; row++) {
        const uint y_row = inside((long)y + row - 1, height);
        const uchar a = light[pixel_index(left, y_row, width)];
        const uchar b = light[pixel_index(x, y_row, width)];
        const uchar c = light[pixel_index(right, y_row, width)];
        largest_minimum = max(largest_minimum, min(min(a, b), c));
        smallest_maximum = min(smallest_maximum, max(max(a, b), c));
        middles[row] = middle(a, b, c);
    }
    smooth[pixel_index(x, y, width)] = middle(
        largest_minimum,
        middle(middles[0], middles[1], middles[2]),
        smallest_maximum);
}

/*
 * box_rows: the first half of the background estimate. For each pixel, the sum
 * of the 2 * radius + 1 values around it in its row. A value above `ceiling`
 * counts as `ceiling`, so that a bright galaxy hardly lifts the background
 * around it. Beyond its border, the image goes on with its border pixels.
 *
 *   smooth  in   plane of bytes
 *   sums    out  plane of uint
 *   radius       in pixels, 0 .. 2047
 *   ceiling      the largest value that counts in full, 0 .. 255
 */
__kernel void box_rows(
    __global const uchar *smooth,
    __global uint *sums,
    uint width,
    uint height,
    uint radius,
    uint ceiling)
{
    const uint x = get_global_id(0);
    const uint y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    const int reach = (int)radius;
    uint sum = 0;
    for (int d = -reach; d <= reach; d++) {
        const uint value = smooth[pixel_index(inside((long)x + d, width), y, width)];
        sum += min(value, ceiling);
    }
    sums[pixel_index(x, y, width)] = sum;
}

/*
 * box_columns: the second half of the background estimate. Adds the row sums
 * of the 2 * radius + 1 rows around each pixel and divides by the number of
 * values in that square, rounding to nearest. Beyond its border, the image
 * goes on with its border pixels.
 *
 *   sums        in   plane of uint, from box_rows with the same radius
 *   background  out  plane of bytes: the mean of the square around each pixel
 *   radius           in pixels, 0 .. 2047
 */
__kernel void box_columns(
    __global const uint *sums,
    __global uchar *background,
    uint width,
    uint height,
    uint radius)
{
    const uint x = get_global_id(0);
    const uint y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    const int reach = (int)radius;
    uint sum = 0;
    for (int d = -reach; d <= reach; d++)
        sum += sums[pixel_index(x, inside((long)y + d, height), width)];
    const uint side = 2 * radius + 1;
    const uint values = side * side;
    background[pixel_index(x, y, width)] = (uchar)((sum + values / 2) / values);
}

/*
 * threshold: separates the bright pixels (the foreground) from the others.
 *
 *   smooth      in   plane of bytes
 *   background  in   plane of bytes
 *   bright      out  plane of bytes: 1 where smooth > background + contrast,
 *                    0 elsewhere
 *   contrast         in the unit of luminance, 0 .. 255
 */
__kernel void threshold(
    __global const uchar *smooth,
    __global const uchar *background,
    __global uchar *bright,
    uint width,
    uint height,
    uint contrast)
{
    const uint x = get_global_id(0);
    const uint y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    const size_t i = pixel_index(x, y, width);
    bright[i] = (uint)smooth[i] > (uint)background[i] + contrast ? 1 : 0;
}

/*
 * label_init: the labels before the first iteration.
 *
 * In the end, all pixels of an object have the same label: 1 plus the smallest
 * index of its pixels. In the beginning, each pixel is an object of its own.
 *
 *   bright  in   plane of bytes, 0 or 1
 *   labels  out  plane of uint: 1 + the pixel's index where bright, 0 elsewhere
 */
__kernel void label_init(
    __global const uchar *bright,
    __global uint *labels,
    uint width,
    uint height)
{
    const uint x = get_global_id(0);
    const uint y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    const size_t i = pixel_index(x, y, width);
    labels[i] = bright[i] ? (uint)i + 1 : 0;
}

/*
 * label_step: the first half of an iteration. Each bright pixel takes the
 * smallest label of the bright pixels among its eight neighbours, if that is
 * smaller than its own. It also gives that label to the root, which is the pixel
 * that its own label names. So one step carries a label from the rim of a large
 * region to the pixel from which the whole region takes its label (label_jump).
 *
 * A label never names a pixel of another object, and labels only fall. So when
 * nothing changes, each object has one label: that of its first pixel, which
 * never changes.
 *
 *   labels   in      plane of uint
 *   next     in out  plane of uint; a copy of `labels` before the launch
 *   changed  in out  one int, 0 before the launch; 1 after it if any label fell
 */
__kernel void label_step(
    __global const uint *labels,
    volatile __global uint *next,
    volatile __global int *changed,
    uint width,
    uint height)
{
    const uint x = get_global_id(0);
    const uint y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    const size_t i = pixel_index(x, y, width);
    const uint own = labels[i];
    if (own == 0)
        return;

    const uint x_end = min(x + 2, width);
    const uint y_end = min(y + 2, height);
    uint smallest = own;
    for (uint v = y > 0 ? y - 1 : 0; v < y_end; v++) {
        for (uint u = x > 0 ? x - 1 : 0; u < x_end; u++) {
            const uint label = labels[pixel_index(u, v, width)];
            if (label != 0)
                smallest = min(smallest, label);
        }
    }
    if (smallest < own) {
        atomic_min(&next[i], smallest);
        atomic_min(&next[own - 1], smallest);
        atomic_or(changed, 1);
    }
}

/*
 * label_jump: the second half of an iteration. Each bright pixel takes the
 * label of the pixel that its label names, and so on, until a label names its
 * own pixel, or after 64 jumps.
 *
 *   next    in   plane of uint, from label_step
 *   labels  out  plane of uint
 */
__kernel void label_jump(
    __global const uint *next,
    __global uint *labels,
    uint width,
    uint height)
{
    const uint x = get_global_id(0);
    const uint y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    const size_t i = pixel_index(x, y, width);
    uint label = next[i];
    if (label != 0) {
        for (int jumps = 0; jumps < 64; jumps++) {
            const uint named = next[label - 1];
            if (named == label)
                break;
            label = named;
        }
    }
    labels[i] = label;
}

/*
 * measure_areas: how many pixels each object has, as a histogram of the labels.
 *
 *   labels  in      plane of uint, after the last iteration
 *   areas   in out  plane of uint, all 0 before the launch; after it, the area
 *                   of each object in pixels at the index of its first pixel
 *                   (its label - 1), 0 elsewhere
 */
__kernel void measure_areas(
    __global const uint *labels,
    volatile __global uint *areas,
    uint width,
    uint height)
{
    const uint x = get_global_id(0);
    const uint y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    const uint label = labels[pixel_index(x, y, width)];
    if (label != 0)
        atomic_add(&areas[label - 1], 1u);
}

/*
 * count_objects: how many objects are large enough.
 *
 *   areas     in      plane of uint, from measure_areas
 *   count     in out  one uint, 0 before the launch; after it, the number of
 *                     objects with an area of min_area or more
 *   min_area          in pixels; 0 means the same as 1
 */
__kernel void count_objects(
    __global const uint *areas,
    volatile __global uint *count,
    uint width,
    uint height,
    uint min_area)
{
    const uint x = get_global_id(0);
    const uint y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    if (areas[pixel_index(x, y, width)] >= max(min_area, 1u))
        atomic_inc(count);
}
