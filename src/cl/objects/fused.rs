//! Fused kernels of a program: see [`crate::opencl_c::fused`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use opencl_sys::{CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES};

use crate::cl::completion::user_code::log_later;
use crate::cl::objects::context::InContext;
use crate::cl::objects::device::Device;
use crate::cl::objects::guarded::THREES;
use crate::cl::objects::kept_programs::{KeptPrograms, MadeProgram};
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::program::Program;
use crate::cl::objects::program_builder::ProgramBuilder;
use crate::cl::objects::program_source::{NotRewritten, ProgramSource};
use crate::error::{Error, ProgramError};
use crate::files;
use crate::opencl_c::fused::{FUSED, FusedKernel, Unit, Way, each_item, fused};
use crate::opencl_c::options::Options;
use crate::opencl_c::source::{Barriers, KernelText, Loops, NotItem, ParamText};
use crate::quirks;

/// Why a launch is not fused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NotFused {
    Program(NotRewritten),
    Item(NotItem),
    /// The driver computes other bits where one work-item does what many do.
    Rounds(&'static str),
    /// The driver's compiler contracts a product in a fused kernel that it does not contract in a launch.
    Contracts(String),
    /// The driver does not survive some fused kernels with functions that ask for ids.
    Function(String),
    /// The driver loses vectors of three components on their way to functions.
    Threes,
    /// The driver's compiler gets some fused kernels with barriers wrong.
    Waits,
    /// The driver's compiler gets some barriers under conditions wrong, as the turns of a loop are.
    WaitsInTurns,
    /// The driver's compiler takes minutes for barriers that may be left out.
    WaitsUnderConditions,
    /// The driver does not say how much local memory a kernel has.
    Local,
    /// The driver's compiler leaves out what work-items do before a loop.
    Loops,
    /// The driver's compiler contracts products of other kernels with what it stores.
    Stores,
    /// The driver's compiler does not survive functions with so many parameters.
    Arguments(usize),
    /// The compiler does not build the program with the fused kernel.
    NotBuilt,
    /// The driver refused something.
    Driver,
}

impl fmt::Display for NotFused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(why) => why.fmt(f),
            Self::Item(why) => why.fmt(f),
            Self::Rounds(word) => write!(f, "the driver computes other bits for `{word}` in a fused kernel"),
            Self::Contracts(product) => write!(
                f,
                "the driver may round `{product}` otherwise in a fused kernel, where work-items are not constants (`#pragma OPENCL FP_CONTRACT OFF` ends that)"
            ),
            Self::Function(name) => write!(
                f,
                "function `{name}`, which it calls, asks for ids, and the driver crashes on some fused kernels with such functions"
            ),
            Self::Threes => f.write_str(THREES),
            Self::Waits => f.write_str(
                "its work-items wait for each other, or share local memory, and the driver's compiler gets some fused kernels with barriers wrong",
            ),
            Self::WaitsInTurns => f.write_str(
                "its work-items wait for each other, or share local memory, which the driver's compiler gets wrong under the condition of a loop",
            ),
            Self::WaitsUnderConditions => f.write_str(
                "it has a barrier under a condition or beside a jump, or several loops whose number of turns its text does not say, for which the driver's compiler takes minutes",
            ),
            Self::Local => f.write_str("the driver does not say how much local memory its variables take, and crashes if it is too much"),
            Self::Loops => f.write_str(
                "it has a loop, and the driver's compiler leaves out what some work-items do before it where each does its part of several launches",
            ),
            Self::Stores => f.write_str(
                "it stores what may be a constant, for which the driver may round a product of the next launch otherwise where each work-item does its part of both (`#pragma OPENCL FP_CONTRACT OFF` ends that)",
            ),
            Self::Arguments(count) => {
                write!(f, "the driver's compiler crashes on functions with its {count} arguments")
            }
            Self::NotBuilt => f.write_str("the driver's compiler does not build the fused kernel"),
            Self::Driver => f.write_str("the driver refused something that the fused kernel needs"),
        }
    }
}

/// What is fused already, so that graphs of the same programs share it.
#[derive(Default)]
pub(in crate::cl) struct FusedPrograms(Vec<FusedProgram>);

struct FusedProgram {
    way: Way,
    /// What the compiler is told beside the programs' options.
    option: Option<String>,
    kernels: Vec<FusedKernel>,
    /// The programs whose kernels it launches too.
    others: Vec<Arc<ProgramSource>>,
    /// None if the compiler refuses it.
    program: Option<Known>,
    /// Whether it was to be kept for the next process.
    is_kept: bool,
}

/// A program that was built.
#[derive(Clone)]
struct Known {
    program: Program,
    rolls: Rolls,
    /// The names of its fused kernels.
    names: Names,
}

/// Whether launches that come again are written as loops.
type Rolls = bool;

/// How kernels are written, and what the compiler is told beside the programs' options.
type Written<'a> = (Way, Option<&'a str>);

/// How many of a program are kept.
const KEPT: usize = 16;

impl FusedPrograms {
    /// Returns a program, and whether it is to be kept now. `keeps`: programs are.
    fn find(
        &mut self,
        ((way, option), kernels, others): (Written<'_>, &[FusedKernel], &[Arc<ProgramSource>]),
        keeps: bool,
    ) -> Option<(Option<Known>, bool)> {
        let is_it = |of: &&mut FusedProgram| {
            (of.way, of.option.as_deref()) == (way, option) && of.kernels == kernels && are_same(&of.others, others)
        };
        let found = self.0.iter_mut().find(is_it)?;
        let is_new = keeps && !found.is_kept;
        found.is_kept |= keeps;
        Some((found.program.clone(), is_new))
    }

    /// Keeps a program. Returns one that goes, which the caller drops where no lock is held.
    fn keep(&mut self, new: FusedProgram) -> Option<FusedProgram> {
        let gone = (self.0.len() >= KEPT).then(|| self.0.remove(0));
        self.0.push(new);
        gone
    }
}

fn are_same(some: &[Arc<ProgramSource>], others: &[Arc<ProgramSource>]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(one, other)| one.is_same(other))
}

/// A kernel that can be written as a function of one work-item.
pub(crate) struct Item<'a> {
    pub(crate) text: &'a KernelText,
    /// Whether it may ask how its range is divided into work-groups.
    pub(crate) may_see_groups: bool,
    /// Whether its work-items may wait for each other, or share local memory: then it is a function of one work-item of a work-group.
    pub(crate) is_group: bool,
    /// Whether each work-item may do its part of this launch and of others.
    pub(crate) is_own: bool,
    /// Why it may not, if no work-items wait for each other.
    pub(crate) not_own: NotFused,
    /// Whether it computes little.
    pub(crate) is_light: bool,
    /// Whether the compiler makes vectors of a loop over its work-items.
    pub(crate) vectorizes_in_loops: bool,
    /// Whether the kernel may touch memory by another type than that of the parameter.
    hides_types: bool,
}

impl Item<'_> {
    /// Returns the type by which the kernel touches the memory that a parameter is given, as text; None if there may be several.
    pub(crate) fn element(&self, param: &ParamText) -> Option<String> {
        (!self.hides_types).then(|| param.element())
    }
}

impl Kernel {
    /// Returns how the kernel can be written as a function of one work-item.
    pub(crate) fn item(&self, device: &Device) -> Result<Item<'_>, NotFused> {
        let of = self.program().source().map_err(|why| NotFused::Program(why.clone()))?;
        let (text, helpers) = of.source.item_with_helpers(self.name()).map_err(NotFused::Item)?;
        if let Some(rounds) = quirks::rounds_otherwise_in_fused_kernels(device.caps())
            && let Some(word) =
                rounds.iter().find(|part| of.source.reaches(self.name(), |word| word.starts_with(**part)))
        {
            return Err(NotFused::Rounds(word));
        }
        if let Some(name) = helpers.keys().next().filter(|_| !quirks::writes_functions_again(device.caps())) {
            return Err(NotFused::Function((*name).to_owned()));
        }
        let counts = helpers.values().map(|helper| helper.each().len());
        let count = counts.fold(text.each().len() + text.locals().len(), usize::max);
        if quirks::most_arguments_of_functions(device.caps()).is_some_and(|most| count > most) {
            return Err(NotFused::Arguments(count));
        }
        let effects = of.source.effects(self.name());
        if effects.may_pass_threes && quirks::loses_vectors_of_three(device.caps()) {
            return Err(NotFused::Threes);
        }
        let (may_see_groups, is_group) = (effects.may_see_groups, effects.may_wait);
        let may_lose_stores = effects.may_loop && quirks::leaves_out_what_is_before_loops(device.caps());
        let (is_own, not_own) = (!is_group && !may_lose_stores, NotFused::Loops);
        let (is_light, hides_types) = (of.source.is_light(self.name()), of.source.hides_types(self.name()));
        let vectorizes_in_loops =
            quirks::vectorizes_loops_rightly(device.caps()) || of.source.wraps_no_index(self.name());
        Ok(Item { text, may_see_groups, is_group, is_own, not_own, is_light, vectorizes_in_loops, hides_types })
    }

    /// Returns the same for a launch that is to be fused, where the driver must not round otherwise than in a launch of its own.
    pub(crate) fn fused_item(&self, device: &Device) -> Result<Item<'_>, NotFused> {
        let item = self.item(device)?;
        let Some(of) =
            self.program().source().ok().filter(|_| quirks::contracts_otherwise_in_fused_kernels(device.caps()))
        else {
            return Ok(item);
        };
        if let Some(product) = of.source.open_product(self.name()) {
            return Err(NotFused::Contracts(product.to_owned()));
        }
        Ok(match of.source.stores_known(self.name()) {
            true => Item { is_own: false, not_own: NotFused::Stores, ..item },
            false => item,
        })
    }

    /// Returns where the barriers of the kernel are.
    pub(crate) fn barriers(&self) -> Barriers {
        self.program().source().map_or(Barriers::Conditional, |of| of.source.barriers(self.name()))
    }

    /// Returns about how many barriers the kernel has, with the functions that it reaches.
    pub(crate) fn waits(&self) -> usize {
        self.program().source().map_or(0, |of| of.source.waits(self.name()))
    }

    /// Returns what loops the kernel has, with the functions that it reaches.
    pub(crate) fn loops(&self) -> Loops {
        self.program().source().map_or(Loops::Others, |of| of.source.loops(self.name()))
    }
}

impl Program {
    /// Returns what differs between programs whose texts cannot become one. None if this one cannot be a part of such a text.
    pub(crate) fn dialect(&self) -> Option<&str> {
        Some(&self.source().ok()?.source.joining()?.dialect)
    }

    /// Returns the program's source and options: programs with the same ones are the same.
    pub(crate) fn parts(&self) -> Option<(&str, &str)> {
        self.source().ok().map(|of| (of.text.as_str(), of.options.as_str()))
    }

    /// Returns whether the text of a type means the same in other programs.
    pub(crate) fn is_plain(&self, type_text: &str) -> bool {
        self.source().is_ok_and(|of| of.source.is_plain(type_text))
    }
}

/// Builds fused kernels, whose launches are of kernels of these programs that [are items](Kernel::item). Returns them in order, with their
/// program if it is one to keep or was kept. If there are several programs, their [dialects](Program::dialect) are one. `option` is told the
/// compiler beside the programs' options.
pub(crate) fn fuse(
    programs: &[&Program],
    (way, option): Written<'_>,
    kernels: &[FusedKernel],
    kept: Option<&KeptPrograms>,
) -> Result<(Vec<Kernel>, Option<MadeProgram>), NotFused> {
    let sources = programs.iter().map(|program| program.source());
    let sources: Vec<Arc<ProgramSource>> =
        sources.map(|of| of.cloned().map_err(|why| NotFused::Program(why.clone()))).collect::<Result<_, _>>()?;
    let (Some(first), Some(others)) = (programs.first(), sources.get(1..)) else { return Ok((Vec::new(), None)) };
    // The parts of a long chain are often equal.
    let mut numbers: BTreeMap<&FusedKernel, usize> = BTreeMap::new();
    let mut unlike: Vec<FusedKernel> = Vec::new();
    for kernel in kernels {
        numbers.entry(kernel).or_insert_with(|| {
            unlike.push(kernel.clone());
            unlike.len() - 1
        });
    }
    let known = first.fused_programs().find(((way, option), &unlike, others), kept.is_some());
    let (known, made) = match known {
        Some((Some(known), true)) => {
            let Text { options, text, .. } = written(&sources, (way, option), &unlike, known.rolls);
            let program = known.program.clone();
            (Some(known), Some(MadeProgram { program, options, text, was_kept: false }))
        }
        Some((known, _)) => (known, None),
        None => {
            let build = |rolls| {
                let text = written(&sources, (way, option), &unlike, rolls);
                let names = text.names;
                build(*first, text, unlike.len(), kept).map(|made| (made, rolls, names))
            };
            let built = match build(true) {
                // A type may hide what its values in a table must not be.
                Err(NotFused::NotBuilt) if matches!(way, Way::InTurn(_)) => build(false),
                built => built,
            };
            let built = match built {
                Ok(built) => Some(built),
                Err(NotFused::NotBuilt) => None,
                Err(why) => return Err(why),
            };
            let known = built.as_ref().map(|(made, rolls, names)| Known {
                program: made.program.clone(),
                rolls: *rolls,
                names: *names,
            });
            let program = known.clone();
            let (others, is_kept) = (others.to_vec(), kept.is_some());
            let gone = first.fused_programs().keep(FusedProgram {
                way,
                option: option.map(str::to_owned),
                kernels: unlike,
                others,
                program,
                is_kept,
            });
            drop(gone);
            (known, built.map(|(made, ..)| made).filter(|_| is_kept))
        }
    };
    let Known { program, names, .. } = known.ok_or(NotFused::NotBuilt)?;
    let kernel = |kernel| program.kernel(&names.of(numbers[kernel])).map_err(|_| NotFused::Driver);
    Ok((kernels.iter().map(kernel).collect::<Result<_, _>>()?, made))
}

/// The names of the fused kernels of one text with its options. No two have the same: where PoCL 7.1 cannot link a kernel, it runs another one of the
/// same name.
#[derive(Clone, Copy)]
struct Names(u64);

impl Names {
    fn of(self, number: usize) -> String {
        format!("{}{number}", self.begin())
    }

    fn begin(self) -> String {
        format!("{FUSED}{:016x}_", self.0)
    }
}

/// What a compiler gets.
struct Text {
    options: String,
    text: String,
    names: Names,
}

fn written(sources: &[Arc<ProgramSource>], (way, option): Written<'_>, kernels: &[FusedKernel], rolls: Rolls) -> Text {
    let units = sources.iter().map(|of| Unit { text: &of.text, source: &of.source, options: &of.options });
    let units: Vec<Unit<'_>> = units.collect();
    let text = match way {
        Way::InTurn(dialect) => fused(&units, dialect, kernels, rolls),
        Way::EachItem { in_range } => each_item(&units, kernels, in_range),
    };
    let mut options = match units.as_slice() {
        [one] => one.options.to_owned(),
        // The macros are in the text.
        units => units
            .first()
            .map(|first| Options::read(first.options).unwrap_or_default().others.join(" "))
            .unwrap_or_default(),
    };
    if let Some(option) = option {
        options.push(' ');
        options.push_str(option);
    }
    let names = Names(files::fingerprint(options.bytes().chain([0]).chain(text.bytes())));
    // No word of a source begins as these names do.
    let text = text.replace(&format!("void {FUSED}"), &format!("void {}", names.begin()));
    Text { options, text, names }
}

/// Builds a program with so many fused kernels.
fn build(
    context: &impl InContext,
    Text { options, text, names }: Text,
    count: usize,
    kept: Option<&KeptPrograms>,
) -> Result<MadeProgram, NotFused> {
    let is_good = |program: &Program| (0..count).all(|number| program.kernel(&names.of(number)).is_ok());
    if let Some(program) = kept.and_then(|kept| kept.find(context.context(), (&options, &text), is_good)) {
        return Ok(MadeProgram { program, options, text, was_kept: true });
    }
    let program = ProgramBuilder::new(context.context()).options(&options).source(&text).map_err(|error| {
        log_later!(Debug, "a program with fused kernels cannot be built: {error}");
        // Without memory a driver refuses a text that it may build later.
        const NO_MEMORY: [i32; 3] = [CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY];
        match error {
            Error::Program(ProgramError::BuildFailed { status, .. }) if !NO_MEMORY.contains(&status.0) => {
                NotFused::NotBuilt
            }
            _ => NotFused::Driver,
        }
    })?;
    Ok(MadeProgram { program, options, text, was_kept: false })
}
