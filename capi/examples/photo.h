/* Reads and writes photographs as brightness, one byte a pixel, with libjpeg. */
#ifndef PHOTO_H
#define PHOTO_H

#include <stdio.h>
#include <stdlib.h>
#include <jpeglib.h>

typedef struct {
    size_t width, height;
    unsigned char *pixels;
} photo;

static photo photo_read(const char *path) {
    photo read = {0, 0, NULL};
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    struct jpeg_decompress_struct from;
    struct jpeg_error_mgr errors;
    from.err = jpeg_std_error(&errors); /* which ends the program */
    jpeg_create_decompress(&from);
    jpeg_stdio_src(&from, file);
    jpeg_read_header(&from, TRUE);
    from.out_color_space = JCS_GRAYSCALE;
    jpeg_start_decompress(&from);
    read.width = from.output_width;
    read.height = from.output_height;
    read.pixels = (unsigned char *)malloc(read.width * read.height);
    while (from.output_scanline < from.output_height) {
        JSAMPROW row = read.pixels + from.output_scanline * read.width;
        jpeg_read_scanlines(&from, &row, 1);
    }
    jpeg_finish_decompress(&from);
    jpeg_destroy_decompress(&from);
    fclose(file);
    return read;
}

static void photo_write(const char *path, photo of) {
    FILE *file = fopen(path, "wb");
    if (!file) {
        fprintf(stderr, "%s cannot be written\n", path);
        exit(1);
    }
    struct jpeg_compress_struct to;
    struct jpeg_error_mgr errors;
    to.err = jpeg_std_error(&errors);
    jpeg_create_compress(&to);
    jpeg_stdio_dest(&to, file);
    to.image_width = (JDIMENSION)of.width;
    to.image_height = (JDIMENSION)of.height;
    to.input_components = 1;
    to.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&to);
    jpeg_start_compress(&to, TRUE);
    while (to.next_scanline < to.image_height) {
        JSAMPROW row = of.pixels + to.next_scanline * of.width;
        jpeg_write_scanlines(&to, &row, 1);
    }
    jpeg_finish_compress(&to);
    jpeg_destroy_compress(&to);
    fclose(file);
}

#endif
