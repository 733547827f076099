//! `clgraph`: what the OpenCL devices of this machine can do for command graphs.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use clgraph::{Abi, Caps, Claim, Command, CommandBufferCaps, Device, GlobalWay, Path, QueueKinds, Why};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Attribute, Cell, ContentArrangement, Table};
use serde::Serialize;

/// Command graphs for every OpenCL
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List every OpenCL device, with what it can do and which path clgraph would choose on it
    ///
    /// To find out how the driver's functions are to be called, a command buffer is made on devices that have them; it is
    /// never run.
    Devices {
        /// Write JSON instead of a table
        #[arg(long)]
        json: bool,
    },
}

/// All that is told of a platform.
#[derive(Serialize)]
struct ToldPlatform<'a> {
    name: &'a str,
    vendor: &'a str,
    version: &'a str,
    devices: Vec<Told<'a>>,
    /// Why devices are not among them.
    left_out: Vec<String>,
}

/// All that is told of a device.
#[derive(Serialize)]
struct Told<'a> {
    caps: &'a Caps,
    /// The signatures of its command-buffer functions.
    abi: Option<Abi>,
    /// Why they are not known, if they should be.
    abi_error: Option<String>,
    /// The path that kernels take where a program leaves it to clgraph.
    path: Path,
    why: Why,
    /// How kernels can get to device globals, best first.
    globals: Vec<GlobalWay>,
    /// For each command, why a command buffer cannot hold it, if it cannot.
    commands: Vec<Recordable>,
}

#[derive(Serialize)]
struct Recordable {
    command: Command,
    native: bool,
    why_not: Option<Why>,
}

impl<'a> Told<'a> {
    fn of(device: &'a Device) -> clgraph::Result<Self> {
        let (abi, abi_error) = match device.abi() {
            Ok(abi) => (abi, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let (path, why) = device.path()?;
        let recordable = |command: Command| {
            let known = device.caps().can_record(command);
            let why_not = known.err().or(abi_error.is_some().then_some(Why::Unusable));
            Recordable { command, native: why_not.is_none(), why_not }
        };
        let commands = Command::ALL.map(recordable).into();
        let globals = device.caps().global_ways();
        Ok(Self { caps: device.caps(), abi, abi_error, path, why, globals, commands })
    }
}

fn main() -> ExitCode {
    env_logger::init();
    let Action::Devices { json } = Arguments::parse().action;
    match devices(json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("clgraph: {error}");
            ExitCode::FAILURE
        }
    }
}

fn devices(json: bool) -> Result<(), Box<dyn Error>> {
    let platforms = clgraph::platforms()?;
    let told = platforms
        .iter()
        .map(|platform| {
            let (mut devices, mut left_out) = (Vec::new(), Vec::new());
            left_out.extend(platform.left_out.iter().map(ToString::to_string));
            for device in &platform.devices {
                match Told::of(device) {
                    Ok(told) => devices.push(told),
                    // The program's user has to put that right, for all of them.
                    Err(error @ clgraph::Error::Setup(clgraph::SetupError::Environment { .. })) => return Err(error),
                    // One that cannot be told of does not hide the others.
                    Err(error) => left_out.push(format!("{}: {error}", device.name())),
                }
            }
            let (name, vendor, version) = (&platform.name, &platform.vendor, &platform.version);
            Ok(ToldPlatform { name, vendor, version, devices, left_out })
        })
        .collect::<clgraph::Result<Vec<_>>>()?;
    // Beside what programs read: nobody else tells of these.
    for error in clgraph::broken_drivers() {
        eprintln!("clgraph: left out: {error}");
    }
    let text = if json { serde_json::to_string_pretty(&told)? } else { tables(&told) };
    match writeln!(io::stdout(), "{text}") {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// A heading and a table for each platform.
fn tables(told: &[ToldPlatform<'_>]) -> String {
    let platform = |told: &ToldPlatform<'_>| {
        let mut lines = vec![format!("{} ({}), of {}", told.name, told.version, told.vendor)];
        lines.extend(told.left_out.iter().map(|why| format!("left out: {why}")));
        lines.push(if told.devices.is_empty() { "no devices".to_owned() } else { table(&told.devices).to_string() });
        lines.join("\n")
    };
    told.iter().map(platform).collect::<Vec<_>>().join("\n\n")
}

/// A row's name, and how its value is found.
type Row<'a> = (&'a str, &'a dyn Fn(&Told<'_>) -> String);

/// One column a device.
fn table(told: &[Told<'_>]) -> Table {
    let rows: [Row<'_>; 20] = [
        ("device", &|told| told.caps.name.clone()),
        ("driver", &|told| told.caps.driver_version.clone()),
        ("OpenCL", &|told| told.caps.version.to_string()),
        ("compute units", &|told| {
            format!("{}{}", told.caps.compute_units, if told.caps.gpu { " of a GPU" } else { "" })
        }),
        ("queues", &|told| {
            let also = [(told.caps.out_of_order, "out of order"), (told.caps.profiling, "profiling")];
            all_of("in order", &also)
        }),
        ("intermediate languages", &|told| list(&told.caps.il_versions)),
        ("shared virtual memory", &|told| svm(told.caps)),
        ("unified shared memory", &|told| usm(told.caps)),
        ("program-scope variables", &|told| match told.caps.max_global_variable_size {
            0 => "none".to_owned(),
            size => format!("up to {size} bytes"),
        }),
        ("  access to them by name", &|told| yes(told.caps.named_global_access)),
        ("device globals", &|told| {
            let ways: Vec<_> = told.globals.iter().map(ToString::to_string).collect();
            ways.join("; ")
        }),
        ("command buffers", &|told| command_buffers(told.caps)),
        ("  functions record", &|told| match (&told.abi, &told.abi_error) {
            (Some(abi), _) => abi.record.to_string(),
            (None, Some(error)) => error.clone(),
            (None, None) => "-".to_owned(),
        }),
        ("  may run twice at once", &|told| of_buffers(told, |buffers| yes(buffers.simultaneous_use))),
        ("  kernels may print", &|told| of_buffers(told, |buffers| yes(buffers.kernel_printf))),
        ("  queues must be", &|told| of_buffers(told, |buffers| kinds("as they like", buffers.required_queue))),
        ("  queues may be", &|told| {
            of_buffers(told, |buffers| {
                buffers.supported_queue.map_or("not told".to_owned(), |also| kinds("in order", also))
            })
        }),
        ("  fields to update", &|told| of_buffers(told, |buffers| fields(buffers, told.abi))),
        ("cannot be recorded", &|told| {
            let cannot: Vec<_> = told.commands.iter().filter(|command| !command.native).collect();
            if cannot.len() == told.commands.len() {
                return "everything".to_owned();
            }
            cannot.iter().map(|cannot| cannot.command.to_string()).collect::<Vec<_>>().join(", ")
        }),
        ("clgraph chooses", &|told| format!("{}: {}", told.path, told.why)),
    ];
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    for (index, (name, value)) in rows.iter().enumerate() {
        let cells = told.iter().map(|told| Cell::new(value(told)));
        let row: Vec<Cell> = std::iter::once(Cell::new(name)).chain(cells).collect();
        if index == 0 {
            table.set_header(row.into_iter().map(|cell| cell.add_attribute(Attribute::Bold)));
        } else {
            table.add_row(row);
        }
    }
    table
}

fn yes(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// A list of what there is, beginning with what there always is.
fn all_of(always: &str, also: &[(bool, &str)]) -> String {
    let also = also.iter().filter(|(has, _)| *has).map(|(_, name)| *name);
    let all: Vec<&str> = Some(always).filter(|always| !always.is_empty()).into_iter().chain(also).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

fn kinds(otherwise: &str, kinds: QueueKinds) -> String {
    all_of(otherwise, &[(kinds.out_of_order, "out of order"), (kinds.profiling, "profiling")])
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn svm(caps: &Caps) -> String {
    let kinds = [
        (caps.svm.coarse_grain_buffer, "coarse-grain buffers"),
        (caps.svm.fine_grain_buffer, "fine-grain buffers"),
        (caps.svm.fine_grain_system, "fine-grain system"),
        (caps.svm.atomics, "atomics"),
    ];
    all_of("", &kinds)
}

fn usm(caps: &Caps) -> String {
    let usm = caps.usm.unwrap_or_default();
    let kinds = [
        (usm.host, "host"),
        (usm.device, "device"),
        (usm.shared, "shared"),
        (usm.cross_device, "cross-device shared"),
        (usm.system, "system"),
    ];
    all_of("", &kinds)
}

fn command_buffers(caps: &Caps) -> String {
    let Some(buffers) = &caps.command_buffers else { return "none".to_owned() };
    let revision = buffers.version.map_or("revision not told".to_owned(), |version| format!("revision {version}"));
    let missing: Vec<&str> = buffers.missing.iter().chain(&buffers.missing_commands).copied().collect();
    let lacks = if missing.is_empty() { String::new() } else { format!(", without {}", missing.join(", ")) };
    match buffers.claim {
        Claim::Listed => format!("{revision}{lacks}"),
        Claim::Assumed => format!("not listed, assumed by CLGRAPH_ASSUME{lacks}"),
        _ => format!("functions only, the device does not list them{lacks}"),
    }
}

fn of_buffers(told: &Told<'_>, value: impl Fn(&CommandBufferCaps) -> String) -> String {
    told.caps.command_buffers.as_ref().map_or("-".to_owned(), value)
}

fn fields(buffers: &CommandBufferCaps, abi: Option<Abi>) -> String {
    let Some(mutable) = &buffers.mutable else { return "none".to_owned() };
    let fields = mutable.fields().join(", ");
    let revision = mutable.version.map_or(String::new(), |version| format!("; revision {version}"));
    let abi = match abi.and_then(|abi| abi.update) {
        Some(abi) => format!(", by {abi}"),
        None => ", which cannot be called with confidence".to_owned(),
    };
    format!("{}{revision}{abi}", if fields.is_empty() { "none" } else { &fields })
}
