//! `clgraph`: lists what the OpenCL devices of this machine can do for command graphs.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use clgraph::{
    Abi, Caps, CommandBufferCaps, CommandKind, DetectedBy, Device, GlobalAccess, Path, PathReason, QueueKinds,
};
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
    /// List every OpenCL device, its capabilities, and the path that clgraph would choose on it
    ///
    /// On devices with command buffers, clgraph records one to find the signatures of the driver's functions. It never
    /// runs that command buffer.
    Devices {
        /// Write JSON instead of a table
        #[arg(long)]
        json: bool,
    },
}

/// What the program prints about a platform.
#[derive(Serialize)]
struct PlatformReport<'a> {
    name: &'a str,
    vendor: &'a str,
    version: &'a str,
    devices: Vec<DeviceReport<'a>>,
    /// Why devices of the platform are not listed.
    left_out: Vec<String>,
}

/// What the program prints about a device.
#[derive(Serialize)]
struct DeviceReport<'a> {
    caps: &'a Caps,
    /// The signatures of its command-buffer functions.
    abi: Option<Abi>,
    /// Why the signatures are unknown, if the device has command buffers.
    abi_error: Option<String>,
    /// The path that kernels take unless a program sets one.
    path: Path,
    why: PathReason,
    /// The access methods of kernels to device globals, best first.
    globals: Vec<GlobalAccess>,
    /// For each command: why a command buffer cannot hold it, if it cannot.
    commands: Vec<Recordable>,
}

#[derive(Serialize)]
struct Recordable {
    command: CommandKind,
    native: bool,
    why_not: Option<PathReason>,
}

impl<'a> DeviceReport<'a> {
    fn of(device: &'a Device) -> clgraph::Result<Self> {
        let (abi, abi_error) = match device.abi() {
            Ok(abi) => (abi, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let (path, why) = device.path()?;
        let recordable = |command: CommandKind| {
            let known = device.caps().can_record(command);
            let why_not = known.err().or(abi_error.is_some().then_some(PathReason::Unusable));
            Recordable { command, native: why_not.is_none(), why_not }
        };
        let commands = CommandKind::ALL.map(recordable).into();
        let globals = device.caps().global_access();
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
    let reports = platforms
        .iter()
        .map(|platform| {
            let (mut devices, mut left_out) = (Vec::new(), Vec::new());
            left_out.extend(platform.left_out.iter().map(ToString::to_string));
            for device in &platform.devices {
                match DeviceReport::of(device) {
                    Ok(report) => devices.push(report),
                    // A wrong environment variable concerns all devices, and the user has to correct it.
                    Err(error @ clgraph::Error::Setup(clgraph::SetupError::Environment { .. })) => return Err(error),
                    // A device that cannot be examined must not hide the others.
                    Err(error) => left_out.push(format!("{}: {error}", device.name())),
                }
            }
            let (name, vendor, version) = (&platform.name, &platform.vendor, &platform.version);
            Ok(PlatformReport { name, vendor, version, devices, left_out })
        })
        .collect::<clgraph::Result<Vec<_>>>()?;
    // Programs that read the output do not need these errors, so they go to stderr.
    for error in clgraph::broken_drivers() {
        eprintln!("clgraph: ignored: {error}");
    }
    let text = if json { serde_json::to_string_pretty(&reports)? } else { tables(&reports) };
    match writeln!(io::stdout(), "{text}") {
        // The reader has closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// A heading and a table for each platform.
fn tables(reports: &[PlatformReport<'_>]) -> String {
    let platform = |report: &PlatformReport<'_>| {
        let mut lines = vec![format!("{} ({}), of {}", report.name, report.version, report.vendor)];
        lines.extend(report.left_out.iter().map(|why| format!("ignored: {why}")));
        lines.push(if report.devices.is_empty() {
            "no devices".to_owned()
        } else {
            table(&report.devices).to_string()
        });
        lines.join("\n")
    };
    reports.iter().map(platform).collect::<Vec<_>>().join("\n\n")
}

/// The name of a row, and the function that finds its value.
type Row<'a> = (&'a str, &'a dyn Fn(&DeviceReport<'_>) -> String);

/// Makes a table with one column for each device.
fn table(reports: &[DeviceReport<'_>]) -> Table {
    let rows: [Row<'_>; 20] = [
        ("device", &|report| report.caps.name.clone()),
        ("driver", &|report| report.caps.driver_version.clone()),
        ("OpenCL", &|report| report.caps.version.to_string()),
        ("compute units", &|report| {
            format!("{}{}", report.caps.compute_units, if report.caps.gpu { " of a GPU" } else { "" })
        }),
        ("queues", &|report| {
            let also = [(report.caps.out_of_order, "out of order"), (report.caps.profiling, "profiling")];
            all_of("in order", &also)
        }),
        ("intermediate languages", &|report| list(&report.caps.il_versions)),
        ("shared virtual memory", &|report| svm(report.caps)),
        ("unified shared memory", &|report| usm(report.caps)),
        ("program-scope variables", &|report| match report.caps.max_global_variable_size {
            0 => "none".to_owned(),
            size => format!("up to {size} bytes"),
        }),
        ("  access to them by name", &|report| yes(report.caps.named_global_access)),
        ("device globals", &|report| {
            let methods: Vec<_> = report.globals.iter().map(ToString::to_string).collect();
            methods.join("; ")
        }),
        ("command buffers", &|report| command_buffers(report.caps)),
        ("  functions record", &|report| match (&report.abi, &report.abi_error) {
            (Some(abi), _) => abi.record.to_string(),
            (None, Some(error)) => error.clone(),
            (None, None) => "-".to_owned(),
        }),
        ("  may run twice at once", &|report| of_buffers(report, |buffers| yes(buffers.simultaneous_use))),
        ("  kernels may print", &|report| of_buffers(report, |buffers| yes(buffers.kernel_printf))),
        ("  queues must be", &|report| of_buffers(report, |buffers| kinds("of any kind", buffers.required_queue))),
        ("  queues may be", &|report| {
            of_buffers(report, |buffers| {
                buffers.supported_queue.map_or("not reported".to_owned(), |also| kinds("in order", also))
            })
        }),
        ("  fields to update", &|report| of_buffers(report, |buffers| fields(buffers, report.abi))),
        ("cannot be recorded", &|report| {
            let cannot: Vec<_> = report.commands.iter().filter(|command| !command.native).collect();
            if cannot.len() == report.commands.len() {
                return "everything".to_owned();
            }
            cannot.iter().map(|cannot| cannot.command.to_string()).collect::<Vec<_>>().join(", ")
        }),
        ("clgraph chooses", &|report| format!("{}: {}", report.path, report.why)),
    ];
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    for (index, (name, value)) in rows.iter().enumerate() {
        let cells = reports.iter().map(|report| Cell::new(value(report)));
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

/// Joins the names of what exists; `always` comes first.
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
    let revision = buffers.version.map_or("revision not reported".to_owned(), |version| format!("revision {version}"));
    let missing: Vec<&str> = buffers.missing.iter().chain(&buffers.missing_commands).copied().collect();
    let lacks = if missing.is_empty() { String::new() } else { format!(", without {}", missing.join(", ")) };
    match buffers.detected_by {
        DetectedBy::Listed => format!("{revision}{lacks}"),
        DetectedBy::Assumed => format!("not listed, assumed by CLGRAPH_ASSUME{lacks}"),
        _ => format!("functions only, the device does not list them{lacks}"),
    }
}

fn of_buffers(report: &DeviceReport<'_>, value: impl Fn(&CommandBufferCaps) -> String) -> String {
    report.caps.command_buffers.as_ref().map_or("-".to_owned(), value)
}

fn fields(buffers: &CommandBufferCaps, abi: Option<Abi>) -> String {
    let Some(mutable) = &buffers.mutable else { return "none".to_owned() };
    let fields = mutable.fields().join(", ");
    let revision = mutable.version.map_or(String::new(), |version| format!("; revision {version}"));
    let abi = match abi.and_then(|abi| abi.update) {
        Some(abi) => format!(", by {abi}"),
        None => ", but the signature of its function is unknown".to_owned(),
    };
    format!("{}{revision}{abi}", if fields.is_empty() { "none" } else { &fields })
}
