//! Fills and copies of whole words as functions of one work-item.

// Bytes, because compilers take it that they may be of any type.
pub(super) const FILL_PARAMS: &str = "global uchar *clgraph_fuse_to, uint clgraph_fuse_word";
pub(super) const COPY_PARAMS: &str =
    "global const uchar *clgraph_fuse_from, global uchar *clgraph_fuse_to, uint clgraph_fuse_behind";

pub(super) const FILL_BODY: &str = "{
    size_t clgraph_fuse_at = 4 * (size_t)clgraph_fuse_x;
    for (uint clgraph_fuse_i = 0; clgraph_fuse_i < 4; ++clgraph_fuse_i)
        clgraph_fuse_to[clgraph_fuse_at + clgraph_fuse_i] = ((private uchar *)&clgraph_fuse_word)[clgraph_fuse_i];
}";

pub(super) const COPY_BODY: &str = "{
    size_t clgraph_fuse_at = 4 * (size_t)clgraph_fuse_x;
    size_t clgraph_fuse_src = 4 * (size_t)(uint)(clgraph_fuse_x + clgraph_fuse_behind);
    for (uint clgraph_fuse_i = 0; clgraph_fuse_i < 4; ++clgraph_fuse_i)
        clgraph_fuse_to[clgraph_fuse_at + clgraph_fuse_i] = clgraph_fuse_from[clgraph_fuse_src + clgraph_fuse_i];
}";
