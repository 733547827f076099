//! What OpenCL C is given to reach device globals: definitions for the macros of `kernels-cl/device_global.h` before the
//! source, and behind it what the source only declares.

use std::fmt::Write;

/// The macros.
const HEADER: &str = include_str!("../../kernels-cl/device_global.h");

/// What a global is in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A pointer, in a variable of the program.
    Pointer,
    /// A pointer, as an argument behind those of the kernel.
    Argument,
    /// A variable of the program.
    Variable,
}

/// A global in a program.
#[derive(Clone, Debug)]
pub(crate) struct Named<'a> {
    pub(crate) c_name: &'a str,
    /// Bytes.
    pub(crate) size: usize,
    pub(crate) form: Form,
}

/// How the name of the type of a global begins.
pub(crate) const TYPE: &str = "clgraph_type_";

/// What kernels and functions call the parameter of a global.
pub(crate) const PARAMETER: &str = "clgraph_argument_";

/// The global of a hidden parameter, by the parameter's name.
pub(crate) fn hidden(parameter: &str) -> Option<&str> {
    parameter.strip_prefix(PARAMETER)
}

/// The variable of a program that has a global, or points to it.
pub(crate) fn variable(c_name: &str, form: Form) -> String {
    let what = if form == Form::Variable { "variable" } else { "pointer" };
    format!("clgraph_{what}_{c_name}")
}

/// How clgraph's own kernels begin.
const OWN: &str = "clgraph_globals";

/// The kernel by which a program tells which globals it was built with, and in which form; and which sets its pointers, where
/// it has some. Its parameters are those of [`pointers`], or one that plays no part.
pub(crate) fn marker(globals: &[Named<'_>]) -> String {
    let mut name = OWN.to_owned();
    for Named { c_name, form, .. } in sorted(globals) {
        let form = match form {
            Form::Pointer => 'p',
            Form::Argument => 'a',
            Form::Variable => 'v',
        };
        // With its length, so that no two lists have one name.
        let _ = write!(name, "_{form}{}{c_name}", c_name.len());
    }
    name
}

/// The globals that are pointers, in the order of the marker's parameters.
pub(crate) fn pointers<'a>(globals: &[Named<'a>]) -> Vec<&'a str> {
    sorted(globals).filter(|global| global.form == Form::Pointer).map(|global| global.c_name).collect()
}

/// In an order that does not depend on how they were listed.
fn sorted<'a, 'n>(globals: &'n [Named<'a>]) -> impl Iterator<Item = &'n Named<'a>> {
    let mut globals: Vec<_> = globals.iter().collect();
    globals.sort_unstable_by_key(|global| global.c_name);
    globals.into_iter()
}

/// Whether a kernel is one of clgraph's own.
pub(crate) fn is_own(kernel: &str) -> bool {
    kernel.starts_with(OWN)
}

/// Whether a name is one of C.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What comes before the source.
pub(crate) fn before(globals: &[Named<'_>]) -> String {
    let mut text = String::new();
    let (mut params, mut args) = (String::new(), String::new());
    for Named { c_name, size, form } in globals {
        let name = variable(c_name, *form);
        // What the user's semicolon ends.
        let (declare, lvalue) = match form {
            Form::Pointer => (format!("extern global clgraph_type_{c_name} *global {name}"), format!("*{name}")),
            Form::Variable => (format!("extern global clgraph_type_{c_name} {name}"), name),
            Form::Argument => {
                // Functions may come before the declaration of a global that they do not use.
                let _ = write!(params, ", global void *{PARAMETER}{c_name}");
                let _ = write!(args, ", {PARAMETER}{c_name}");
                let lvalue = format!("*(global clgraph_type_{c_name} *){PARAMETER}{c_name}");
                (format!("typedef clgraph_type_{c_name} clgraph_declared_{c_name}"), lvalue)
            }
        };
        let _ = writeln!(text, "#define CLGRAPH_SIZE_{c_name} {size}");
        let _ = writeln!(text, "#define CLGRAPH_DECLARE_{c_name} {declare}");
        let _ = writeln!(text, "#define CLGRAPH_LVALUE_{c_name} {lvalue}");
    }
    let only = |list: &str, none: &str| list.strip_prefix(", ").unwrap_or(none).to_owned();
    let _ = writeln!(text, "#define CLG_PARAMS {params}\n#define CLG_ARGS {args}");
    let _ =
        writeln!(text, "#define CLG_ONLY_PARAMS {}\n#define CLG_ONLY_ARGS {}", only(&params, "void"), only(&args, ""));
    format!("#define CLGRAPH_WRONG -1\n{HEADER}{text}")
}

/// What comes behind the source: the variables, and the marker. It names the type of every global, so that none goes undeclared
/// on any device.
pub(crate) fn behind(globals: &[Named<'_>]) -> String {
    let mut text = "\n#line 1 \"clgraph\"\n".to_owned();
    for Named { c_name, form, .. } in globals {
        let name = variable(c_name, *form);
        let _ = match form {
            Form::Pointer => writeln!(text, "global clgraph_type_{c_name} *global {name};"),
            Form::Variable => writeln!(text, "global clgraph_type_{c_name} {name};"),
            Form::Argument => writeln!(text, "typedef clgraph_type_{c_name} clgraph_known_{c_name};"),
        };
    }
    let names = pointers(globals);
    let list = |each: fn(&&str) -> String, by: &str| names.iter().map(each).collect::<Vec<_>>().join(by);
    let params = list(|name| format!("global clgraph_type_{name} *to_{name}"), ", ");
    let body = list(|name| format!("clgraph_pointer_{name} = to_{name};"), " ");
    // A kernel without parameters does not build everywhere.
    let params = if params.is_empty() { "global int *none" } else { &params };
    let _ = writeln!(text, "kernel void {}({params}) {{ {body} }}", marker(globals));
    text
}

/// A program that tells the sizes that OpenCL C gives to globals, as work-group sizes of kernels.
pub(crate) fn sizes(source: &str, globals: &[Named<'_>]) -> String {
    let mut text = before(globals).replacen("CLGRAPH_WRONG -1", "CLGRAPH_WRONG 2", 1);
    let _ = write!(text, "{source}\n{}", behind(globals));
    for Named { c_name, .. } in globals {
        let _ = writeln!(
            text,
            "__attribute__((reqd_work_group_size(sizeof(clgraph_type_{c_name}), 1, 1))) kernel void \
             clgraph_size__{c_name}(global int *none) {{ none[0] = 0; }}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(form: Form) -> [Named<'static>; 2] {
        [Named { c_name: "hits", size: 4, form }, Named { c_name: "table", size: 24, form }]
    }

    /// Rule G8
    #[test]
    fn the_three_forms_differ_in_what_the_macros_stand_for() {
        let of = |form| before(&named(form)).split_once(HEADER).unwrap().1.to_owned();
        let pointer = of(Form::Pointer);
        assert!(
            pointer.contains(
                "#define CLGRAPH_DECLARE_hits extern global clgraph_type_hits *global clgraph_pointer_hits\n"
            )
        );
        assert!(pointer.contains("#define CLGRAPH_LVALUE_table *clgraph_pointer_table\n"), "{pointer}");
        assert!(pointer.contains(
            "#define CLG_PARAMS \n#define CLG_ARGS \n#define CLG_ONLY_PARAMS void\n#define CLG_ONLY_ARGS \n"
        ));
        let variable = of(Form::Variable);
        assert!(variable.contains("#define CLGRAPH_LVALUE_hits clgraph_variable_hits\n"), "{variable}");
        let argument = of(Form::Argument);
        assert!(
            argument.contains("#define CLGRAPH_LVALUE_hits *(global clgraph_type_hits *)clgraph_argument_hits\n"),
            "{argument}"
        );
        assert!(argument.contains(
            "#define CLG_PARAMS , global void *clgraph_argument_hits, global void *clgraph_argument_table\n#define CLG_ARGS , clgraph_argument_hits, clgraph_argument_table\n"
        ));
        assert!(argument.contains("#define CLG_ONLY_ARGS clgraph_argument_hits, clgraph_argument_table\n"));
        assert_eq!(hidden("clgraph_argument_hits"), Some("hits"));
        assert_eq!(hidden("in"), None);
    }

    #[test]
    fn a_kernel_tells_what_a_program_was_built_with_and_sets_its_pointers() {
        let [hits, table] = named(Form::Pointer);
        let text = behind(&[table.clone(), hits.clone()]);
        assert!(text.contains("global clgraph_type_hits *global clgraph_pointer_hits;\n"));
        assert!(text.contains(
            "kernel void clgraph_globals_p4hits_p5table(global clgraph_type_hits *to_hits, global clgraph_type_table *to_table) \
             { clgraph_pointer_hits = to_hits; clgraph_pointer_table = to_table; }\n"
        ), "{text}");
        assert_eq!(pointers(&[table, hits]), ["hits", "table"]);
        assert!(
            behind(&named(Form::Variable))
                .contains("kernel void clgraph_globals_v4hits_v5table(global int *none) {  }\n")
        );
        let text = behind(&named(Form::Argument));
        assert!(text.contains("typedef clgraph_type_hits clgraph_known_hits;\n"));
        assert!(text.contains("kernel void clgraph_globals_a4hits_a5table(global int *none)"));
        assert!(is_own("clgraph_globals_p4hits") && !is_own("count"));
        let named = |names: &[&'static str]| {
            let of = |name: &&'static str| Named { c_name: name, size: 4, form: Form::Pointer };
            marker(&names.iter().map(of).collect::<Vec<_>>())
        };
        assert_ne!(named(&["a_p1b"]), named(&["a", "b"]));
    }

    #[test]
    fn names_in_c_are_known() {
        assert!(is_identifier("hits") && is_identifier("_1") && is_identifier("Hits_2"));
        assert!(!is_identifier("") && !is_identifier("2hits") && !is_identifier("a::b") && !is_identifier("ä"));
    }
}
