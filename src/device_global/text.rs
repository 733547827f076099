//! The OpenCL C text through which programs use device globals. Before the source come definitions for the macros of
//! `kernels-cl/device_global.h`. After the source come the definitions of what the source only declares.

use std::fmt::Write;

/// The text of the macros.
const HEADER: &str = include_str!("../../kernels-cl/device_global.h");

/// How a program holds a device global.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A pointer in [`POINTERS`], a program-scope variable.
    Pointer,
    /// A pointer that is an argument after the arguments of the kernel.
    Argument,
    /// A program-scope variable.
    Variable,
}

/// A device global in a program.
#[derive(Clone, Debug)]
pub(crate) struct Named<'a> {
    pub(crate) c_name: &'a str,
    /// Size in bytes.
    pub(crate) size: usize,
    pub(crate) form: Form,
}

/// The prefix of the name of a device global's type.
pub(crate) const TYPE: &str = "clgraph_type_";

/// The prefix of the parameter for a device global, in kernels and functions.
pub(crate) const PARAMETER: &str = "clgraph_argument_";

/// Returns the name in OpenCL C of the device global that a hidden parameter belongs to.
pub(crate) fn hidden(parameter: &str) -> Option<&str> {
    parameter.strip_prefix(PARAMETER)
}

/// Returns the name of the program-scope variable that is the device global.
pub(crate) fn variable(c_name: &str) -> String {
    format!("clgraph_variable_{c_name}")
}

/// The name of the program-scope variable that has all the program's pointers to device globals, in the order of [`pointers`]. It is
/// one variable, because a driver may place several in another order in each process, and run what another process compiled
/// (PoCL 6.0: see `docs/drivers.md`).
pub(crate) const POINTERS: &str = "clgraph_pointers";

/// The prefix of the names of clgraph's own kernels.
const OWN: &str = "clgraph_globals";

/// Returns the name of the marker kernel of a program. The name lists the device globals that the program was built
/// with, and their forms. The kernel also sets the program's pointers, if it has any. Its parameters are those of
/// [`pointers`], or one unused parameter.
pub(crate) fn marker(globals: &[Named<'_>]) -> String {
    let mut name = OWN.to_owned();
    for Named { c_name, form, .. } in sorted(globals) {
        let form = match form {
            Form::Pointer => 'm',
            Form::Argument => 'a',
            Form::Variable => 'v',
        };
        // The length makes the name unique for each list.
        let _ = write!(name, "_{form}{}{c_name}", c_name.len());
    }
    name
}

/// Returns the device globals that are pointers, in the order of the marker's parameters and of the members of [`POINTERS`].
pub(crate) fn pointers<'a>(globals: &[Named<'a>]) -> Vec<&'a str> {
    sorted(globals).filter(|global| global.form == Form::Pointer).map(|global| global.c_name).collect()
}

/// Sorts the device globals, so that the order does not depend on how they were listed.
fn sorted<'a, 'n>(globals: &'n [Named<'a>]) -> impl Iterator<Item = &'n Named<'a>> {
    let mut globals: Vec<_> = globals.iter().collect();
    globals.sort_unstable_by_key(|global| global.c_name);
    globals.into_iter()
}

/// Returns whether a kernel is one of clgraph's own.
pub(crate) fn is_own(kernel: &str) -> bool {
    kernel.starts_with(OWN)
}

/// Returns whether a name is an identifier of C.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the text before the source.
pub(crate) fn before(globals: &[Named<'_>]) -> String {
    let mut text = String::new();
    let (mut params, mut args) = (String::new(), String::new());
    let own_declaration = |c_name| format!("typedef clgraph_type_{c_name} clgraph_declared_{c_name}");
    for Named { c_name, size, form } in globals {
        // The declaration without its semicolon, which the user writes.
        let (declare, lvalue) = match form {
            Form::Pointer => {
                (own_declaration(c_name), format!("*(global clgraph_type_{c_name} *){POINTERS}.clgraph_to_{c_name}"))
            }
            Form::Variable => {
                let name = variable(c_name);
                (format!("extern global clgraph_type_{c_name} {name}"), name)
            }
            Form::Argument => {
                // `void *`, because a function may stand before the declaration of a device global that it does not
                // use.
                let _ = write!(params, ", global void *{PARAMETER}{c_name}");
                let _ = write!(args, ", {PARAMETER}{c_name}");
                let lvalue = format!("*(global clgraph_type_{c_name} *){PARAMETER}{c_name}");
                (own_declaration(c_name), lvalue)
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
    let members = pointers(globals);
    if !members.is_empty() {
        let members =
            members.iter().fold(String::new(), |list, name| list + &format!(" global void *clgraph_to_{name};"));
        let _ = writeln!(text, "struct {POINTERS} {{{members} }};\nextern global struct {POINTERS} {POINTERS};");
    }
    format!("#define CLGRAPH_WRONG -1\n{HEADER}{text}")
}

/// Returns the text after the source: the variables and the marker kernel. It names the type of each device global, so
/// that a missing declaration fails to build on every device.
pub(crate) fn appended(globals: &[Named<'_>]) -> String {
    let mut text = "\n#line 1 \"clgraph\"\n".to_owned();
    for Named { c_name, form, .. } in globals {
        let _ = match form {
            Form::Variable => writeln!(text, "global clgraph_type_{c_name} {};", variable(c_name)),
            Form::Pointer | Form::Argument => writeln!(text, "typedef clgraph_type_{c_name} clgraph_known_{c_name};"),
        };
    }
    let names = pointers(globals);
    if !names.is_empty() {
        let _ = writeln!(text, "global struct {POINTERS} {POINTERS};");
    }
    let list = |each: fn(&&str) -> String, by: &str| names.iter().map(each).collect::<Vec<_>>().join(by);
    let params = list(|name| format!("global clgraph_type_{name} *clgraph_to_{name}"), ", ");
    let body = list(|name| format!("{POINTERS}.clgraph_to_{name} = clgraph_to_{name};"), " ");
    // Some drivers cannot build a kernel without parameters.
    let params = if params.is_empty() { "global int *none" } else { &params };
    let _ = writeln!(text, "kernel void {}({params}) {{ {body} }}", marker(globals));
    text
}

/// Returns the text of a program that reports the sizes of device globals in OpenCL C, as required work-group sizes of
/// kernels.
pub(crate) fn sizes(source: &str, globals: &[Named<'_>]) -> String {
    let mut text = before(globals).replacen("CLGRAPH_WRONG -1", "CLGRAPH_WRONG 2", 1);
    let _ = write!(text, "{source}\n{}", appended(globals));
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
        let lvalue = "#define CLGRAPH_LVALUE_table *(global clgraph_type_table *)clgraph_pointers.clgraph_to_table\n";
        assert!(pointer.contains(lvalue), "{pointer}");
        assert!(
            pointer.ends_with(
                "struct clgraph_pointers { global void *clgraph_to_hits; global void *clgraph_to_table; };\nextern global struct \
             clgraph_pointers clgraph_pointers;\n"
            ),
            "{pointer}"
        );
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
            "#define CLG_PARAMS , global void *clgraph_argument_hits, global void *clgraph_argument_table\n#define \
             CLG_ARGS , clgraph_argument_hits, clgraph_argument_table\n"
        ));
        assert!(argument.contains("#define CLG_ONLY_ARGS clgraph_argument_hits, clgraph_argument_table\n"));
        assert_eq!(hidden("clgraph_argument_hits"), Some("hits"));
        assert_eq!(hidden("in"), None);
    }

    #[test]
    fn a_kernel_tells_what_a_program_was_built_with_and_sets_its_pointers() {
        let [hits, table] = named(Form::Pointer);
        let text = appended(&[table.clone(), hits.clone()]);
        assert!(text.contains("\nglobal struct clgraph_pointers clgraph_pointers;\n"));
        assert!(text.contains(
            "kernel void clgraph_globals_m4hits_m5table(global clgraph_type_hits *clgraph_to_hits, global clgraph_type_table \
             *clgraph_to_table) { clgraph_pointers.clgraph_to_hits = clgraph_to_hits; clgraph_pointers.clgraph_to_table = clgraph_to_table; }\n"
        ), "{text}");
        assert_eq!(pointers(&[table, hits]), ["hits", "table"]);
        assert!(
            appended(&named(Form::Variable))
                .contains("kernel void clgraph_globals_v4hits_v5table(global int *none) {  }\n")
        );
        let text = appended(&named(Form::Argument));
        assert!(text.contains("typedef clgraph_type_hits clgraph_known_hits;\n"));
        assert!(text.contains("kernel void clgraph_globals_a4hits_a5table(global int *none)"));
        assert!(is_own("clgraph_globals_m4hits") && !is_own("count"));
        let named = |names: &[&'static str]| {
            let of = |name: &&'static str| Named { c_name: name, size: 4, form: Form::Pointer };
            marker(&names.iter().map(of).collect::<Vec<_>>())
        };
        assert_ne!(named(&["a_m1b"]), named(&["a", "b"]));
    }

    #[test]
    fn names_in_c_are_known() {
        assert!(is_identifier("hits") && is_identifier("_1") && is_identifier("Hits_2"));
        assert!(!is_identifier("") && !is_identifier("2hits") && !is_identifier("a::b") && !is_identifier("ä"));
    }
}
