//! Values of fused kernels that are in a table in memory.

use super::fused::{Dialect, Form, FusedKernel, FusedParam, Unit, ValueType, fused};
use super::fused_tests::{is_kept, read, repeating};

/// Values for which there is no room among the arguments. Where they follow each other, a loop walks over them as they are.
#[test]
fn values_may_be_in_a_table_in_memory() {
    let (text, kernel) = repeating();
    // All numbers and sizes; and without the first numbers.
    for (name, tabled, form) in [("table_one_item", 7, Form::OneItem), ("table_one_group", 4, Form::OneGroup)] {
        let kernel = FusedKernel { tabled, ..kernel.clone() };
        let dialect = Dialect {
            form,
            part: None,
            size_beyond: 1,
            vectorizes: true,
            joins_items: false,
            copies_behind_loops: false,
        };
        is_kept(name, &fused(&Unit::alone(text, &read(text)), dialect, &[kernel], true));
    }
    let kernel = FusedKernel { tabled: 7, ..kernel.clone() };
    assert_eq!(kernel.table(), [0..4, 4..8, 8..12, 12..16, 16..20, 20..24, 24..28]);
    // Each is where its type may be.
    let sizes = [1, 2, 16, 3, 128, 12, 256, 4];
    let params = sizes.map(|size| FusedParam::Value(ValueType::Plain("t".to_owned()), size)).to_vec();
    let kernel = FusedKernel { params, tabled: 8, ..kernel };
    assert_eq!(kernel.table(), [0..1, 2..4, 16..32, 32..35, 128..256, 256..268, 384..640, 640..644]);
}
