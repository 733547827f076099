//! Which parts of a message come from the program or from the driver, for libraries that give clgraph to other languages:
//! they put their own names in the place of Rust's, and must not change a label, a log or the text of a failure.

use super::{
    BuildCause, BuildError, Error, FinalizeError, GlobalError, MemoryError, ParameterError, ProgramError, RecordError,
    SetupError, SubmitError, UpdateError,
};

/// What stands for a foreign part while a message is translated: characters that no text has.
const PLACES: [&str; 8] =
    ["\u{e000}", "\u{e001}", "\u{e002}", "\u{e003}", "\u{e004}", "\u{e005}", "\u{e006}", "\u{e007}"];

/// The foreign parts that were taken out of an error.
#[derive(Default)]
struct Parts {
    texts: Vec<String>,
    /// Those that have one of [`PLACES`].
    names: Vec<&'static str>,
}

impl Parts {
    fn text(&mut self, text: &mut String) {
        // After the places of names.
        let place = u32::try_from(self.texts.len()).ok().and_then(|index| char::from_u32(0xe100 + index));
        // More than that no error has.
        if let Some(place) = place.filter(|place| ('\u{e100}'..='\u{f8ff}').contains(place)) {
            self.texts.push(std::mem::replace(text, place.to_string()));
        }
    }

    fn texts<const N: usize>(&mut self, texts: [&mut String; N]) {
        for text in texts {
            self.text(text);
        }
    }

    fn name(&mut self, name: &mut &'static str) {
        if let Some(place) = PLACES.get(self.names.len()) {
            self.names.push(std::mem::replace(name, place));
        }
    }

    /// Puts all parts back.
    fn put_back(&self, message: &str) -> String {
        let mut out = String::with_capacity(message.len());
        for char in message.chars() {
            let number = u32::from(char) as usize;
            let name = number.checked_sub(0xe000).and_then(|index| self.names.get(index)).copied();
            let text = number.checked_sub(0xe100).and_then(|index| self.texts.get(index)).map(String::as_str);
            match name.or(text) {
                Some(part) => out.push_str(part),
                None => out.push(char),
            }
        }
        out
    }
}

impl Error {
    /// Returns the message, with the words of clgraph changed by a function. Labels, names, paths, logs and texts of
    /// failures stay as they are.
    #[doc(hidden)]
    #[must_use]
    pub fn translated(&self, translate: impl FnOnce(&str) -> String) -> String {
        let (mut error, mut parts) = (self.clone(), Parts::default());
        of_error(&mut error, &mut parts);
        parts.put_back(&translate(&error.to_string()))
    }
}

fn of_error(error: &mut Error, to: &mut Parts) {
    match error {
        Error::Setup(error) => setup(error, to),
        Error::Memory(error) => memory(error, to),
        Error::Program(error) => program(error, to),
        Error::Global(error) => global(error, to),
        Error::Build(BuildError { subject, cause }) => {
            to.text(subject);
            build(cause, to);
        }
        Error::Finalize(error) => finalize(error, to),
        Error::Submit(error) => submit(error, to),
        Error::Parameter(error) => parameter(error, to),
        Error::Update(error) => update(error, to),
        Error::Record(error) => record(error, to),
        Error::Driver(_) => {}
    }
}

fn record(error: &mut RecordError, to: &mut Parts) {
    use RecordError as Is;
    match error {
        Is::NoLayer { platform: text } | Is::CaptureSpoilt { call: text } => to.text(text),
        // The name of a kernel, or the text of another error.
        Is::NotCapturable { why, .. } => to.text(why),
        _ => {}
    }
}

fn build(error: &mut BuildCause, to: &mut Parts) {
    use BuildCause as Is;
    match error {
        Is::ArgumentCount { signature: Some(signature), .. } => to.text(signature),
        Is::ArgumentKind { name, expected, .. } => to.texts([name, expected]),
        Is::ImageAccess { name, .. } => to.text(name),
        Is::ArgumentSize { name, type_name, .. } | Is::ArgumentType { name, type_name, .. } => {
            to.texts([name, type_name])
        }
        Is::OtherDevice { device, graph_device, .. } => to.texts([device, graph_device]),
        // The names of kernels. Other reasons are clgraph's.
        Is::Replace { why, .. } if why.contains("kernel `") => to.text(why),
        // The name of a parameter.
        Is::NotSupported { what, .. } => to.text(what),
        Is::File { path, why } => {
            to.text(why);
            let mut text = path.display().to_string();
            to.text(&mut text);
            *path = text.into();
        }
        Is::CopyKernel(error) => program(error, to),
        Is::Global(error) => global(error, to),
        Is::Memory(error) => memory(error, to),
        _ => {}
    }
}

fn global(error: &mut GlobalError, to: &mut Parts) {
    use GlobalError as Is;
    match error {
        Is::NameClash { name, first, first_type, second, second_type } => {
            for name in [name, first, first_type, second, second_type] {
                to.name(name);
            }
        }
        Is::Empty { name } | Is::InitialSize { name, .. } => to.text(name),
        Is::NotAName { c_name, name } => {
            to.text(c_name);
            to.name(name);
        }
        Is::ListedTwice { c_name, second, for_what } => {
            to.text(c_name);
            to.text(for_what);
            to.name(second);
        }
        Is::NotDeclared { c_name, name, log } | Is::NoParameter { c_name, name, log } => {
            to.text(c_name);
            to.text(log);
            to.name(name);
        }
        Is::Size { name, type_name, c_name, .. } => {
            to.text(c_name);
            to.name(name);
            to.name(type_name);
        }
        Is::NotInProgram { names, .. } => to.text(names),
        Is::HiddenArguments { kernel, .. } => to.text(kernel),
        Is::OtherArguments { kernel, name } => to.texts([kernel, name]),
        Is::OtherProgram { name } | Is::NoProgram { name, .. } => to.name(name),
        Is::NotListed { name, has } => {
            to.text(has);
            to.name(name);
        }
        _ => {}
    }
}

fn setup(error: &mut SetupError, to: &mut Parts) {
    use SetupError as Is;
    match error {
        Is::NoLibrary { tried: text, .. }
        | Is::MissingFunction { library: text, .. }
        | Is::NoDevice { platforms: text }
        | Is::QueueProperty { device: text, .. }
        | Is::Environment { given: text, .. }
        | Is::NoThread { error: text }
        | Is::CommandBufferAbi { device: text, .. } => to.text(text),
        Is::BrokenDriver { library, file, why } => to.texts([library, file, why]),
        Is::NoDriverWorks { broken } => broken.iter_mut().for_each(|error| setup(error, to)),
        Is::DeviceOutsideContext { device, of_context } => to.texts([device, of_context]),
        _ => {}
    }
}

fn memory(error: &mut MemoryError, to: &mut Parts) {
    use MemoryError as Is;
    match error {
        Is::TooLarge { device, .. } | Is::NoImages { device } => to.text(device),
        Is::ImageFormat { device, has: text, .. }
        | Is::ImageSize { device, shape: text, .. }
        | Is::NoSuchMemory { device, has: text, .. }
        | Is::NotHostReachable { device, has: text } => to.texts([device, text]),
        Is::PixelBytes { shape, .. } => to.text(shape),
        _ => {}
    }
}

fn program(error: &mut ProgramError, to: &mut Parts) {
    use ProgramError as Is;
    match error {
        Is::BuildFailed { device, options, log, .. } => to.texts([device, options, log]),
        Is::FormNotSupported { device, form: text, .. }
        | Is::BuiltInUnusable { device, names: text, .. }
        | Is::NotBuiltFor { device, kernel: text } => to.texts([device, text]),
        Is::BinaryRefused { device } | Is::NoBinary { device } => to.text(device),
        Is::NoSuchKernel { name, has } => to.texts([name, has]),
        Is::Argument { kernel, .. } => to.text(kernel),
        _ => {}
    }
}

fn finalize(error: &mut FinalizeError, to: &mut Parts) {
    use FinalizeError as Is;
    match error {
        Is::Memory { source, .. } => memory(source, to),
        Is::NotRunnable { what, device, .. } => to.texts([what, device]),
        Is::Argument { kernel, .. } => to.text(kernel),
        Is::Kernel { kernel, source, .. } => {
            to.text(kernel);
            program(source, to);
        }
        Is::Conflict { first_use, second_use, .. } => to.texts([first_use, second_use]),
        Is::Node { cause, .. } => build(cause, to),
        Is::Dump { path, error } => to.texts([path, error]),
        Is::NativeCommand { text, .. } | Is::Option { given: text, .. } => to.text(text),
        _ => {}
    }
}

fn submit(error: &mut SubmitError, to: &mut Parts) {
    use SubmitError as Is;
    match error {
        Is::OtherQueue { device, .. } => to.text(device),
        Is::EventFailed { cause, .. } | Is::DependencyFailed { cause } | Is::ExternalEvent { cause, .. } => {
            of_error(cause, to);
        }
        Is::HostTask { what, text, .. } => to.texts([what, text]),
        Is::NativeCommand { text, .. } | Is::UserEvent { text } | Is::BrokenPromise { kernel: text, .. } => {
            to.text(text)
        }
        _ => {}
    }
}

fn parameter(error: &mut ParameterError, to: &mut Parts) {
    match error {
        ParameterError::OutOfBound { given, bound: text } | ParameterError::Image { expected: given, given: text } => {
            to.texts([given, text])
        }
        _ => {}
    }
}

fn update(error: &mut UpdateError, to: &mut Parts) {
    use UpdateError as Is;
    match error {
        Is::Node { cause, .. } => build(cause, to),
        Is::Conflict { first_use, second_use, .. } => to.texts([first_use, second_use]),
        Is::Differs { difference: text } | Is::NativeCommand { text, .. } => to.text(text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A translation that changes every letter `a`, and everything between backquotes.
    fn changed(text: &str) -> String {
        text.replace('a', "A").replace("`label`", "`LABEL`")
    }

    /// Rule E1: what the program said stays as it said it.
    #[test]
    fn labels_names_logs_and_texts_of_failures_are_not_translated() {
        let foreign = "a `label` \u{e000}\u{e100}";
        let node = crate::handles::Node::from_raw(crate::handles::RawNode { graph: 1, index: 2, part: 0 });
        let text = || foreign.to_owned();
        let cause = Box::new(Error::from(SubmitError::UserEvent { text: text() }));
        let build = |cause| Error::from(BuildError::new(foreign, cause));
        let errors = [
            SubmitError::UserEvent { text: text() }.into(),
            SubmitError::DependencyFailed { cause }.into(),
            SubmitError::HostTask { node, what: text(), text: text() }.into(),
            UpdateError::Differs { difference: text() }.into(),
            build(BuildCause::NoRange),
            build(BuildCause::File { path: foreign.into(), why: text() }),
            build(BuildCause::Global(GlobalError::NotAName { c_name: text(), name: foreign })),
            SetupError::NoDriverWorks {
                broken: vec![SetupError::BrokenDriver { library: text(), file: text(), why: text() }; 3],
            }
            .into(),
        ];
        for error in errors {
            let message: String = error.to_string();
            let expected = message.split(foreign).map(changed).collect::<Vec<_>>().join(foreign);
            assert_eq!(error.translated(changed), expected);
            assert_eq!(error.translated(str::to_owned), message);
        }
    }

    /// A new field that may hold words of the program is either taken out, or listed here as clgraph's own.
    #[test]
    fn every_text_in_an_error_is_known_as_foreign_or_as_clgraphs() {
        let own = ["given", "src", "dst", "what", "parameter", "argument", "is", "why", "missing", "expected", "shape"];
        let (known, _) = include_str!("foreign.rs").split_once("#[cfg(test)]").unwrap();
        let files = [
            include_str!("build.rs"),
            include_str!("command.rs"),
            include_str!("global.rs"),
            include_str!("record.rs"),
            include_str!("run.rs"),
            include_str!("setup.rs"),
            include_str!("update.rs"),
        ];
        let mut count = 0;
        let mut variant = "";
        for line in files.iter().flat_map(|file| file.lines()).map(str::trim) {
            if let Some((name, "")) = line.split_once(" {").filter(|(name, _)| name.chars().all(char::is_alphanumeric))
            {
                variant = name;
            }
            let Some((field, kind)) = line.trim_start_matches("pub ").split_once(": ") else { continue };
            if !["String,", "Option<String>,", "std::path::PathBuf,"].contains(&kind) {
                continue;
            }
            count += 1;
            let taken = known.split("=>").any(|arm| arm.contains(&format!("::{variant} {{")) && arm.contains(field));
            assert!(
                taken || own.contains(&field) || field == "subject",
                "`{variant}.{field}`: take it out in src/error/foreign.rs if words of the program can be in it, or list it in this test"
            );
        }
        assert!(count > 90, "{count}");
    }
}
