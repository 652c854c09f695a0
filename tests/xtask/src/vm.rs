// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask vm`: brings kernel, module and tools up to date and runs one command in the guest with them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use clap::Args;

use crate::guest::{self, Accelerator, Guest};
use crate::kernel::stock::Stock;
use crate::kernel::{self, Build, Kernel, Variant, Which};
use crate::mutants::{self, sources, Entry};
use crate::toolchain::Toolchain;
use crate::{module, packages, tools};

/// In the environment of tests: packages and tools are up to date, which takes as long to find out as a guest to boot.
pub const READY: &str = "KUTRACE_READY";
/// Memory of a guest that asks for no other: to begin with twice as much takes its kernel 0.1 s more.
const MEGABYTES: u32 = 1536;

#[derive(Args, Clone)]
pub struct VmArgs {
    /// Virtual CPUs
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub cpus: u32,
    /// Count instructions: one CPU, whose time stamp counter advances by one per instruction
    #[arg(long, conflicts_with = "cpus")]
    pub icount: bool,
    /// The same with several CPUs, one at a time, and 2^SHIFT ns for an instruction: a load of the host is not seen in the
    /// guest
    #[arg(
        long,
        conflicts_with = "icount",
        value_name = "SHIFT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = guest::PACE,
        value_parser = clap::value_parser!(u8).range(0..=10)
    )]
    pub paced: Option<u8>,
    /// Memory of the guest in MiB
    #[arg(long, value_name = "MB", default_value_t = MEGABYTES)]
    pub mem: u32,
    /// The host's folder at /mnt/share; a temporary one when absent
    #[arg(long, value_name = "DIR")]
    pub share: Option<PathBuf>,
    /// The kernel to boot: one that is built here, which has no module if it is without hooks, or `stock[=VERSION]`,
    /// one of Debian's
    #[arg(long, value_name = "KERNEL", value_parser = Which::parse, default_value = "small")]
    pub kernel: Which,
    /// More words for the kernel's command line
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub append: String,
    /// An ACPI table, in addition to the machine's own
    #[arg(long, value_name = "FILE")]
    pub acpi_table: Option<PathBuf>,
    /// A socket for QEMU's monitor, by which machine checks and the like can be raised
    #[arg(long, value_name = "SOCKET")]
    pub monitor: Option<PathBuf>,
    /// A file for the kernel's messages
    #[arg(long, value_name = "FILE")]
    pub console: Option<PathBuf>,
    /// A file for the guest's memory when its kernel panics: an ELF core, or as makedumpfile compresses it where the name
    /// ends in `.kdump`; may be repeated
    #[arg(long, value_name = "FILE")]
    pub dump: Vec<PathBuf>,
    /// Keep memory free for a second kernel, which CMD loads from /mnt/share/second; when the first panics, CMD runs again
    /// in the second
    #[arg(long)]
    pub second: bool,
    /// Let the guest boot again, with its memory as it was, after a shutdown or a panic; CMD runs again then, until it
    /// ends
    #[arg(long)]
    pub reboot: bool,
    /// Make a guest of the guest: `/mnt/share/inside/run` boots this kernel, the small one when none is named, with 2 CPUs
    /// by KVM, loads the module and runs `bash /mnt/share/inside/job.sh` there
    #[arg(long, value_name = "KERNEL", value_parser = Which::parse, num_args = 0..=1, require_equals = true, default_missing_value = "small")]
    pub inside: Option<Which>,
    /// A cable to another guest: the socket at this end and the one at the other; may be repeated
    #[arg(long, value_name = "OWN:OTHER", value_parser = cable)]
    pub cable: Vec<(PathBuf, PathBuf)>,
    /// An own disk of this size in MiB, /dev/vda, empty at the start
    #[arg(long, value_name = "MB", default_value_t = 0, hide_default_value = true)]
    pub disk: u32,
    /// Build the module so that it counts its records
    #[arg(long)]
    pub count: bool,
    /// Replaced expression of the module
    #[arg(skip)]
    pub mutant: Option<Box<Entry>>,
    /// Leave the module for CMD to load: its path is in $KUTRACE_MODULE
    #[arg(long)]
    pub no_load: bool,
    /// Load the module in the first file system already, before anything else there, with these parameters
    #[arg(long, value_name = "PARAMETERS", conflicts_with = "no_load")]
    pub early: Option<String>,
    /// Build the modules of tests/vm/modules as well: they are in the folder $KUTRACE_BESIDE
    #[arg(long)]
    pub beside: bool,
    /// CPU time of the host from the start of the VM to the end of CMD; three times as long by the clock
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub timeout: u64,
    /// Runs as root in /tmp of the guest, with the tools on its PATH; not through a shell
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

impl VmArgs {
    /// CMD in a guest of the usual kind.
    pub fn new(command: Vec<OsString>) -> Self {
        Self {
            cpus: 4,
            icount: false,
            paced: None,
            mem: MEGABYTES,
            share: None,
            kernel: Variant::USUAL.into(),
            append: String::new(),
            acpi_table: None,
            monitor: None,
            console: None,
            dump: Vec::new(),
            second: false,
            reboot: false,
            inside: None,
            cable: Vec::new(),
            disk: 0,
            count: false,
            mutant: None,
            no_load: false,
            early: None,
            beside: false,
            timeout: 600,
            command,
        }
    }
}

fn cable(text: &str) -> Result<(PathBuf, PathBuf), String> {
    let (own, other) = text.split_once(':').ok_or("expected OWN:OTHER")?;
    Ok((own.into(), other.into()))
}

/// Runs the command and returns its status; with a hook skipped, or another module, if the environment requests that.
pub fn run(args: &VmArgs) -> Result<u8> {
    let Some((kind, number, broken)) = mutants::asked()? else { return run_in(args) };
    let result = mutated(args, kind, number).and_then(|args| run_in(&args));
    if let Err(error) = &result {
        fs::write(&broken, format!("{error:#}")).with_context(|| format!("{}", broken.display()))?;
    }
    result
}

/// The same with the mutant of this number.
fn mutated(args: &VmArgs, kind: mutants::Kind, number: usize) -> Result<VmArgs> {
    Ok(match (kind, &args.kernel) {
        (mutants::Kind::Hook, Which::Built(build)) => VmArgs {
            kernel: Which::Built(build.mutated().context("vm: this kernel has no mutants")?),
            append: format!("{} kutrace_mutant={number}", args.append),
            ..args.clone()
        },
        (mutants::Kind::Hook, Which::Stock(_)) => bail!("vm: this kernel has no hooks"),
        _ if number == 0 => args.clone(),
        _ => VmArgs { mutant: Some(Box::new(sources::find(kind, number)?)), ..args.clone() },
    })
}

fn run_in(args: &VmArgs) -> Result<u8> {
    let is_ready = std::env::var_os(READY).is_some();
    if !is_ready {
        packages::ensure()?;
    }
    let parts = parts(args)?;
    let tools = if is_ready { tools::folder().join("release") } else { tools::ensure()? };
    let inside = args.inside.as_ref().map(|kernel| inner(kernel, args, &tools)).transpose()?;

    // Dropped, and so removed, after the guest has ended.
    let temporary = tempfile::tempdir().context("vm: share")?;
    let share = match &args.share {
        Some(dir) => dir.canonicalize().with_context(|| format!("vm: share: {}", dir.display()))?,
        None => temporary.path().to_path_buf(),
    };
    if !share.is_dir() {
        bail!("vm: share: {}: not a folder", share.display());
    }
    let mut guest = Guest {
        image: parts.image,
        first: parts.first,
        accelerator: Accelerator::Counted,
        cpus: if args.icount { 1 } else { args.cpus },
        memory: args.mem,
        append: format!("{} {}", parts.append, args.append),
        acpi_table: args.acpi_table.clone(),
        monitor: args.monitor.clone(),
        console: args.console.clone(),
        dump: args.dump.iter().map(std::path::absolute).collect::<Result<_, _>>().context("vm: dump")?,
        second: args.second,
        reboot: args.reboot,
        inside: inside.map(Box::new),
        cables: args.cable.clone(),
        disk: u64::from(args.disk) << 20,
        share,
        load: parts.module.clone().filter(|_| !args.no_load && args.early.is_none()),
        early: parts.module.clone().zip(args.early.clone()),
        variables: variables(&tools, parts.module.as_deref(), parts.beside.as_deref(), parts.modules.as_deref()),
        command: args.command.clone(),
        timeout: Duration::from_secs(args.timeout),
    };
    if let Some(shift) = args.paced {
        guest.accelerator = Accelerator::Paced { shift };
    } else if !args.icount {
        guest.accelerator = match (guest::accelerator(&guest)?, &args.kernel) {
            (Accelerator::Tcg, Which::Stock(_)) => Accelerator::Interleaved,
            (found, _) => found,
        };
    }
    guest::run(&guest)
}

/// Parts of a guest that depend on its kernel.
struct Parts {
    image: PathBuf,
    /// More words for the kernel's command line.
    append: &'static str,
    /// Modules that the first file system loads.
    first: Vec<PathBuf>,
    module: Option<PathBuf>,
    beside: Option<PathBuf>,
    /// The root below which the kernel's own modules are, for modprobe.
    modules: Option<PathBuf>,
}

impl VmArgs {
    fn recorder(&self) -> module::Kind {
        if self.count {
            module::Kind::Counting
        } else {
            module::Kind::Plain
        }
    }
}

fn parts(args: &VmArgs) -> Result<Parts> {
    match &args.kernel {
        Which::Built(build) => built(*build, args),
        Which::Stock(version) => stock(version, args),
    }
}

fn built(build: Build, args: &VmArgs) -> Result<Parts> {
    let toolchain = Toolchain::ensure(kernel::compiler()?)?;
    let kernel = Kernel::new(build, &toolchain)?;
    let image = kernel.image(&toolchain)?;
    let recorder = || match &args.mutant {
        None => module::ensure(&kernel, args.recorder(), &toolchain),
        Some(mutant) => module::ensure_mutant(&kernel, args.recorder(), &toolchain, mutant),
    };
    let module = build.variant.has_hooks().then(recorder).transpose()?;
    let beside = args.beside.then(|| module::build(&kernel, module::Kind::Beside, &toolchain)).transpose()?;
    Ok(Parts { image, append: "", first: Vec::new(), module, beside, modules: None })
}

fn stock(version: &str, args: &VmArgs) -> Result<Parts> {
    let kernel = Stock::ensure(version, std::env::var_os(READY).is_some())?;
    let module = Some(match &args.mutant {
        None => module::ensure_stock(&kernel, args.recorder())?,
        Some(mutant) => module::ensure_stock_mutant(&kernel, args.recorder(), mutant)?,
    });
    let beside = args.beside.then(|| module::build_stock(&kernel, module::Kind::Beside)).transpose()?;
    // Where the host is busy the kernel would think that its timer does not tick, and panic. Nothing here wants its
    // ciphers tested, its random bits from jitter, its certificates or what BPF may call: two thirds of the boot.
    let append = "no_timer_check cryptomgr.notests initcall_blacklist=jent_mod_init,load_system_certificate_list,\
        bpf_dummy_struct_ops_init,bpf_tcp_ca_kfunc_init";
    let modules = Some(kernel.root().to_path_buf());
    Ok(Parts { image: kernel.image(), append, first: kernel.modules()?, module, beside, modules })
}

/// A guest of the guest, of this kernel. A module that is changed is so in both.
fn inner(kernel: &Which, outer: &VmArgs, tools: &Path) -> Result<Guest> {
    let args = VmArgs { kernel: kernel.clone(), mutant: outer.mutant.clone(), ..VmArgs::new(Vec::new()) };
    let Parts { image, append, first, module, modules, .. } = parts(&args)?;
    let load = module.context("vm: the guest of the guest: this kernel has no hooks")?;
    let variables = variables(tools, Some(&load), None, modules.as_deref());
    Ok(guest::inside::guest(image, append, first, load, variables))
}

/// CMD's environment.
fn variables(
    tools: &Path,
    module: Option<&Path>,
    beside: Option<&Path>,
    modules: Option<&Path>,
) -> Vec<(&'static str, OsString)> {
    let mut path = tools.as_os_str().to_owned();
    path.push(":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let mut variables = vec![
        ("PATH", path),
        ("HOME", "/tmp".into()),
        ("USER", "root".into()),
        // Of a whole locale each program would open fifteen files.
        ("LC_CTYPE", "C.UTF-8".into()),
        ("TERM", "dumb".into()),
    ];
    for (name, path) in [("KUTRACE_MODULE", module), ("KUTRACE_BESIDE", beside), ("KUTRACE_MODULES", modules)] {
        variables.extend(path.map(|path| (name, path.as_os_str().to_owned())));
    }
    variables
}
