//! `CLGRAPH_DUMP`: writes what each finalize decided to files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::FinalizeError;
use crate::ir::Ir;
use crate::report::summary::Report;

/// Returns a graph as text: as it was built, and after each pass, which has a name and the graph that it made.
pub(crate) fn passes(graph: &Ir, passes: &[(&str, &Ir)]) -> String {
    let (mut text, mut last) = (graph.to_string(), graph.to_string());
    for (name, made) in passes {
        let now = made.to_string();
        text +=
            &if now == last { format!("\n(`{name}` changes nothing)\n") } else { format!("\nafter `{name}`:\n{now}") };
        last = now;
    }
    text
}

/// Writes the report to `PROCESS-NUMBER.txt`, the finalized graph to `PROCESS-NUMBER.dot`, if it is given, and the graph as built
/// and after each pass to `PROCESS-NUMBER.graph`. If a file or a link has one of the names, the next number is
/// taken, because a process in another container may have the same number.
pub(crate) fn write(folder: &Path, report: &Report, dot: Option<&str>, graph: &str) -> Result<(), FinalizeError> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let failed = |path: &Path, error: &io::Error| FinalizeError::Dump {
        path: path.display().to_string(),
        error: error.to_string(),
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let report = report.to_string();
    loop {
        let stem = format!("{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let all = [("txt", Some(&*report)), ("dot", dot), ("graph", Some(graph))];
        let all: Vec<_> = all.into_iter().filter_map(|(kind, content)| Some((kind, content?))).collect();
        let count = all.len();
        // `create_new` neither overwrites a file nor follows a link.
        let mut files = Vec::new();
        for (kind, content) in all {
            let path = folder.join(format!("{stem}.{kind}"));
            match File::create_new(&path) {
                Ok(file) => files.push((path, file, content)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => break,
                Err(error) => return Err(failed(&path, &error)),
            }
        }
        if files.len() < count {
            for (path, ..) in files {
                fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
            }
            continue;
        }
        for (path, mut file, content) in files {
            file.write_all(content.as_bytes()).map_err(|error| failed(&path, &error))?;
            log::info!("wrote {}", path.display());
        }
        return Ok(());
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::passes;
    use crate::command::Command;
    use crate::ir::{Access, AllocDecl, AllocId, ArenaId, ChildId, Ir, Mode, NodeId, RootId, View, ViewId, ViewKind};

    #[test]
    fn each_pass_shows_what_it_changes_or_that_it_changes_nothing() {
        let graph = |commands: &[Command<_>]| {
            let mut ir = Ir::default();
            let kind = ViewKind::Owned(AllocId(0));
            ir.views.push(View { root: RootId(0), root_size: 64, offset: 0, size: 64, kind });
            ir.allocs.push(AllocDecl { size: 64, zero: false, node: NodeId(0) });
            for command in commands {
                let access = Access { view: ViewId(0), range: 0..64, mode: Mode::Write };
                ir.push_node(command.clone(), [access].into_iter(), &mut Vec::new()).unwrap();
            }
            ir
        };
        let built = graph(&[Command::Alloc(AllocId(0)), Command::SubGraph(ChildId(0))]);
        let inlined = graph(&[Command::Alloc(AllocId(0)), Command::Empty, Command::Empty]);
        let mut placed = inlined.clone();
        placed.views[0].kind = ViewKind::Placed { arena: ArenaId(1), start: 128 };
        expect![[r#"
            m0: allocation 0, bytes 0..64
            n0: alloc 0, 64 bytes, writes m0[0..64]
            n1: sub-graph 0, writes m0[0..64]

            after `inline`:
            m0: allocation 0, bytes 0..64
            n0: alloc 0, 64 bytes, writes m0[0..64]
            n1: empty, writes m0[0..64]
            n2: empty, writes m0[0..64]

            after `place memory`:
            m0: placed, bytes 128..192 of arena 1
            n0: alloc 0, 64 bytes, writes m0[0..64]
            n1: empty, writes m0[0..64]
            n2: empty, writes m0[0..64]
        "#]]
        .assert_eq(&passes(&built, &[("inline", &inlined), ("place memory", &placed)]));
        expect![[r#"
            m0: allocation 0, bytes 0..64
            n0: alloc 0, 64 bytes, writes m0[0..64]
            n1: empty, writes m0[0..64]
            n2: empty, writes m0[0..64]

            (`inline` changes nothing)

            (`place memory` changes nothing)
        "#]]
        .assert_eq(&passes(&inlined, &[("inline", &inlined), ("place memory", &inlined)]));
    }
}
