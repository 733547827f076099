//! Values of fused kernels that are in a table in memory.

use expect_test::expect;

use super::fused::{Dialect, Form, FusedKernel, FusedParam, Unit, ValueType, fused};
use super::fused_tests::{read, repeating};

/// Values for which there is no room among the arguments. Where they follow each other, a loop walks over them as they are.
#[test]
fn values_may_be_in_a_table_in_memory() {
    let (text, kernel) = repeating();
    // All numbers and sizes; and without the first numbers.
    let written = |tabled: usize, form: Form| {
        let kernel = FusedKernel { tabled, ..kernel.clone() };
        let dialect = Dialect { form, size_beyond: 1, vectorizes: true };
        let all = fused(&Unit::alone(text, &read(text)), dialect, &[kernel], true);
        let at = all.find("kernel void clgraph_fused_0(").unwrap();
        all[at..].to_owned()
    };
    expect![[r#"
        kernel void clgraph_fused_0(global void *clgraph_fuse_a0, global void *clgraph_fuse_a1, global void *clgraph_fuse_a2, global void *clgraph_fuse_a3, global void *clgraph_fuse_a4, global void *clgraph_fuse_a5, global const uchar *clgraph_fuse_table, const uint clgraph_fuse_go) {
            if (clgraph_fuse_go == 0 || get_local_id(0) != 0) return;
            global void *clgraph_fuse_t0[6] = {clgraph_fuse_a0, clgraph_fuse_a1, clgraph_fuse_a2, clgraph_fuse_a3, clgraph_fuse_a4, clgraph_fuse_a5};
            uint clgraph_fuse_t2[5] = {*(global const uint *)(clgraph_fuse_table + 20), *(global const uint *)(clgraph_fuse_table + 24), *(global const uint *)(clgraph_fuse_table + 20), *(global const uint *)(clgraph_fuse_table + 24), *(global const uint *)(clgraph_fuse_table + 20)};
            for (uint clgraph_fuse_turn = 0; clgraph_fuse_turn < 5; ++clgraph_fuse_turn) {
                clgraph_fuse_turn1_f(clgraph_fuse_t0[clgraph_fuse_turn], clgraph_fuse_t0[clgraph_fuse_turn + 1], *(global const clgraph_fuse_type0 *)(clgraph_fuse_table + 0 + clgraph_fuse_turn * 4), 1, 0, 0, 0, clgraph_fuse_t2[clgraph_fuse_turn], 1, 1, 1, 1, 1);
                clgraph_fuse_turn1_g(clgraph_fuse_t0[clgraph_fuse_turn + 1], 1, 0, 0, 0, *(global const uint *)(clgraph_fuse_table + 20), 1, 1, 1, 1, 1);
            }
            clgraph_fuse_run3_g(clgraph_fuse_a0, 2, 0, 0, 0, *(global const uint *)(clgraph_fuse_table + 24), 1, 1, 1, 1, 1);
            for (uint clgraph_fuse_turn = 0; clgraph_fuse_turn < 6; ++clgraph_fuse_turn) {
                clgraph_fuse_turn1_f(clgraph_fuse_a0, clgraph_fuse_a1, *(global const clgraph_fuse_type0 *)(clgraph_fuse_table + 0), 1, 0, 0, 0, *(global const uint *)(clgraph_fuse_table + 24), 1, 1, 1, 1, 1);
                clgraph_fuse_turn1_f(clgraph_fuse_a1, clgraph_fuse_a0, *(global const clgraph_fuse_type0 *)(clgraph_fuse_table + 0), 1, 0, 0, 0, *(global const uint *)(clgraph_fuse_table + 24), 1, 1, 1, 1, 1);
            }
        }
    "#]].assert_eq(&written(7, Form::OneItem));
    expect![[r#"
        kernel void clgraph_fused_0(global void *clgraph_fuse_a0, global void *clgraph_fuse_a1, global void *clgraph_fuse_a2, global void *clgraph_fuse_a3, global void *clgraph_fuse_a4, global void *clgraph_fuse_a5, clgraph_fuse_type0 clgraph_fuse_a6, clgraph_fuse_type0 clgraph_fuse_a7, clgraph_fuse_type0 clgraph_fuse_a8, global const uchar *clgraph_fuse_table, const uint clgraph_fuse_go) {
            if (clgraph_fuse_go == 0) return;
            global void *local clgraph_fuse_t0[6];
            local clgraph_fuse_type0 clgraph_fuse_t1[5];
            local uint clgraph_fuse_t2[5];
            if (get_local_id(0) == 0) {
                clgraph_fuse_t0[0] = clgraph_fuse_a0;
                clgraph_fuse_t0[1] = clgraph_fuse_a1;
                clgraph_fuse_t0[2] = clgraph_fuse_a2;
                clgraph_fuse_t0[3] = clgraph_fuse_a3;
                clgraph_fuse_t0[4] = clgraph_fuse_a4;
                clgraph_fuse_t0[5] = clgraph_fuse_a5;
                clgraph_fuse_t1[0] = clgraph_fuse_a6;
                clgraph_fuse_t1[1] = clgraph_fuse_a7;
                clgraph_fuse_t1[2] = clgraph_fuse_a8;
                clgraph_fuse_t1[3] = *(global const clgraph_fuse_type0 *)(clgraph_fuse_table + 0);
                clgraph_fuse_t1[4] = *(global const clgraph_fuse_type0 *)(clgraph_fuse_table + 4);
                clgraph_fuse_t2[0] = *(global const uint *)(clgraph_fuse_table + 8);
                clgraph_fuse_t2[1] = *(global const uint *)(clgraph_fuse_table + 12);
                clgraph_fuse_t2[2] = *(global const uint *)(clgraph_fuse_table + 8);
                clgraph_fuse_t2[3] = *(global const uint *)(clgraph_fuse_table + 12);
                clgraph_fuse_t2[4] = *(global const uint *)(clgraph_fuse_table + 8);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint clgraph_fuse_turn = 0; clgraph_fuse_turn < 5; ++clgraph_fuse_turn) {
                clgraph_fuse_turn1_f(clgraph_fuse_t0[clgraph_fuse_turn], clgraph_fuse_t0[clgraph_fuse_turn + 1], clgraph_fuse_t1[clgraph_fuse_turn], 1, 0, 0, 0, clgraph_fuse_t2[clgraph_fuse_turn], 1, 1, 1, 1, 1);
                barrier(CLK_GLOBAL_MEM_FENCE);
                clgraph_fuse_turn1_g(clgraph_fuse_t0[clgraph_fuse_turn + 1], 1, 0, 0, 0, *(global const uint *)(clgraph_fuse_table + 8), 1, 1, 1, 1, 1);
                barrier(CLK_GLOBAL_MEM_FENCE);
            }
            clgraph_fuse_run3_g(clgraph_fuse_a0, 2, 0, 0, 0, *(global const uint *)(clgraph_fuse_table + 12), 1, 1, 1, 1, 1);
            barrier(CLK_GLOBAL_MEM_FENCE);
            for (uint clgraph_fuse_turn = 0; clgraph_fuse_turn < 6; ++clgraph_fuse_turn) {
                clgraph_fuse_turn1_f(clgraph_fuse_a0, clgraph_fuse_a1, clgraph_fuse_a6, 1, 0, 0, 0, *(global const uint *)(clgraph_fuse_table + 12), 1, 1, 1, 1, 1);
                barrier(CLK_GLOBAL_MEM_FENCE);
                clgraph_fuse_turn1_f(clgraph_fuse_a1, clgraph_fuse_a0, clgraph_fuse_a6, 1, 0, 0, 0, *(global const uint *)(clgraph_fuse_table + 12), 1, 1, 1, 1, 1);
                barrier(CLK_GLOBAL_MEM_FENCE);
            }
        }
    "#]].assert_eq(&written(4, Form::OneGroup));
    let kernel = FusedKernel { tabled: 7, ..kernel.clone() };
    assert_eq!(kernel.table(), [0..4, 4..8, 8..12, 12..16, 16..20, 20..24, 24..28]);
    // Each is where its type may be.
    let sizes = [1, 2, 16, 3, 128, 12, 256, 4];
    let params = sizes.map(|size| FusedParam::Value(ValueType::Plain("t".to_owned()), size)).to_vec();
    let kernel = FusedKernel { params, tabled: 8, ..kernel };
    assert_eq!(kernel.table(), [0..1, 2..4, 16..32, 32..35, 128..256, 256..268, 384..640, 640..644]);
}
