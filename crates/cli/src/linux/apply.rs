//! `congestlab apply`: routers and the host of this machine as a file has them, once or for as long as it runs.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use congestlab_linux::host::{self, Prefix};
use congestlab_linux::router::{self, Config, Feeder, Follower, Law, Source, Weights};
use congestlab_linux::sys::command::{self, Mode};
use congestlab_linux::sys::links::LinkEvents;
use congestlab_scenario::units::{BitRate, Ratio};
use congestlab_scenario::wanted::{Host, Place, Placed, Router, Wanted};
use congestlab_scenario::{Diagnostics, store};
use serde_json::json;

use super::args::{ApplyArguments, AttachArguments, HostEnableArguments, RouterEncoding};
use super::host::patiently;
use super::{args, metrics};
use crate::failure::{Failure, Message, tell_diagnostics};
use crate::output::{Screen, print};
use crate::signals;

/// Between two looks at the file, and between two at all that sends no news of itself: qdiscs, programs, hosts.
const STEP: Duration = Duration::from_secs(1);
const STEPS: u32 = 10;

/// Exit code 2 for what the file has wrong, 4 where the machine can not.
pub(crate) fn apply(arguments: &ApplyArguments, screen: &Screen) -> Result<(), Failure> {
    if screen.verbose {
        command::set_mode(Mode::Tell);
    }
    let Some(file) = &arguments.file else {
        let _waits = signals::stop_flag()?;
        let items = all_others(&[], false);
        return tell(&items, screen).and_then(|()| failures(&items, None));
    };
    // Judge the path before the file is read: a user who can change the path could exchange the file in between.
    if !arguments.check {
        trust(file)?;
    }
    let wanted = load(file).map_err(Failure::Scenario)?;
    if arguments.check {
        let (routers, has_host) = (wanted.routers.len(), wanted.host.is_some());
        let file = file.display().to_string();
        return print(&if screen.json {
            store::pretty(&json!({ "valid": true, "file": file, "routers": routers, "host": has_host }))
        } else {
            format!("{file}: valid, {routers} routers, {}\n", if has_host { "a host" } else { "no host" })
        });
    }
    // Half of a change would be hard to find: a signal waits for its end.
    let stop = signals::stop_flag()?;
    if arguments.watch {
        return watch(file, wanted, arguments, &stop, screen);
    }
    // Somebody has to stay and read it.
    let sources = wanted.routers.iter().filter_map(|router| router.capacity_from.as_ref());
    let sources = sources.map(|source| (source, format!("the capacity can not follow {}", source.value)));
    let flows = wanted.routers.iter().filter(|router| follows(router));
    let flows = flows.filter_map(|router| router.beside_tcp.as_ref());
    let flows = flows.map(|weights| (weights, "weights can not follow flows".to_owned()));
    let wrong: Vec<Wrong> = sources
        .chain(flows)
        .map(|(placed, text)| {
            (placed.place, format!("{text} when nobody stays"), "congestlab apply --watch".to_owned())
        })
        .collect();
    if !wrong.is_empty() {
        return Err(Failure::Scenario(wanted.refuse(wrong)));
    }
    let items = all(&wanted, &mut Feeders::new(file), &stop, screen);
    tell(&items, screen)?;
    failures(&items, Some(&wanted))?;
    if stop.load(Ordering::Relaxed) { Err(Failure::Interrupted("interrupted".into())) } else { Ok(()) }
}

/// The weights of two classes that somebody has to stay for.
const FLOWS: &str = "flows";

/// Refuses a file that another user than root can change: it names commands and laws of the machine.
fn trust(file: &Path) -> Result<(), Failure> {
    // Others change nothing here anyway.
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let refused = |path: &Path, what: &str| {
        let text = format!("{} {what}, and {} says what root does", path.display(), file.display());
        Failure::Input(Message::new(text, format!("chown root {0} && chmod go-w {0}", path.display())))
    };
    let failed = |error: std::io::Error| {
        Failure::Input(Message::new(format!("can not read {}: {error}", file.display()), ""))
    };
    // Judge each part of the path, links included: the owner of a link can change its target.
    let mut left: Vec<PathBuf> = parts(&std::path::absolute(file).map_err(failed)?);
    let (mut at, mut links) = (PathBuf::new(), 0);
    while let Some(part) = left.pop() {
        if part == Path::new("..") {
            at.pop();
            continue;
        }
        at.push(&part);
        let data = std::fs::symlink_metadata(&at).map_err(failed)?;
        if data.uid() != 0 {
            return Err(refused(&at, "does not belong to root"));
        }
        if data.is_symlink() {
            links += 1;
            if links > LINKS_MAX {
                return Err(refused(&at, "is a link to a link without end"));
            }
            let to = std::fs::read_link(&at).map_err(failed)?;
            at.pop();
            left.extend(parts(&to));
            continue;
        }
        // In a folder with the sticky bit each user can replace its own files alone.
        let is_sticky = data.is_dir() && data.mode() & 0o1000 != 0;
        if data.mode() & 0o022 != 0 && !is_sticky {
            return Err(refused(&at, "can be written by other users than root"));
        }
    }
    Ok(())
}

/// Links that are followed on the way to a file, as the kernel has it.
const LINKS_MAX: usize = 40;

/// The parts of a path, the last first.
fn parts(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// Reads the file, and judges what needs no machine for it.
fn load(file: &Path) -> Result<Wanted, Diagnostics> {
    let wanted = Wanted::load(file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut wrong: Vec<Wrong> =
        wanted.routers.iter().flat_map(|router| wrong_router(router, folder)).collect();
    wrong.extend(wanted.host.iter().flat_map(wrong_host));
    if wrong.is_empty() { Ok(wanted) } else { Err(wanted.refuse(wrong)) }
}

/// Place, what is wrong, and what is allowed.
type Wrong = (Place, String, String);

/// What a failure says of a place.
fn wrong(place: Place, failure: impl Into<Failure>) -> Wrong {
    match failure.into() {
        Failure::Input(message) | Failure::Missing(message) | Failure::Run(message) => {
            // It names the option of the command line; the place names the key.
            let text = message.text.strip_prefix("--set ").and_then(|text| text.split_once(": "));
            (place, text.map_or(message.text.clone(), |(_, text)| text.into()), message.help)
        }
        other => (place, format!("{other:?}"), String::new()),
    }
}

/// The constants that laws with a program of their own have as options, with their places.
const CONSTANTS: [&str; 7] = ["alpha", "beta", "gamma", "k", "r_max", "release", "give_back"];

/// As the arguments of `router attach`, with these settings.
fn attach_arguments<'a>(
    router: &Router,
    settings: impl IntoIterator<Item = &'a Placed<(String, String)>>,
) -> Result<AttachArguments, Wrong> {
    let mut arguments = AttachArguments {
        interface: router.interface.value.clone(),
        law: router.law.value.clone(),
        object: None,
        set: vec![],
        rate: router.rate.as_ref().map(|rate| rate.value),
        capacity_from: router.capacity_from.as_ref().map(|source| source.value.clone()),
        capacity_user: router.capacity_user.as_ref().map(|user| user.value.clone()),
        beside_tcp: None,
        encoding: router.encoding.as_ref().map(|encoding| match encoding.value {
            "shim" => RouterEncoding::Shim,
            "both" => RouterEncoding::Both,
            _ => RouterEncoding::Option,
        }),
        alpha: None,
        beta: None,
        gamma: None,
        k: None,
        r_max: None,
        average_queue: false,
        remember_grants: false,
        release: None,
        give_back: None,
        police: None,
        no_shape: !router.shape,
        queue: None,
        replace: false,
        dry_run: false,
    };
    if let Some(weights) = &router.beside_tcp {
        // The law's place is not where this is wrong.
        if router.law.value != "xcp" {
            let text = format!("{} has no class of its own beside TCP's", router.law.value);
            return Err((weights.place, text, "allowed: law = \"xcp\"".into()));
        }
        Weights::parse(&weights.value).map_err(|error| wrong(weights.place, error))?;
        arguments.beside_tcp = Some(weights.value.clone());
    }
    if let Some(queue) = &router.queue {
        let read = args::queue(&queue.value);
        let wrong = |help| (queue.place, format!("\"{}\" is no limit of a queue", queue.value), help);
        arguments.queue = Some(read.map_err(wrong)?);
    }
    for Placed { value: (key, value), place } in settings {
        let is_own = super::router::OWN.contains(&&*router.law.value);
        if !is_own {
            arguments.set.push(format!("{key}={value}"));
            continue;
        }
        if key == "police" {
            let records = args::records(value);
            arguments.police = Some(records.map_err(|help| (*place, format!("`{key}` is {value}"), help))?);
            continue;
        }
        let switch = match &**key {
            "average_queue" => Some(&mut arguments.average_queue),
            "remember_grants" => Some(&mut arguments.remember_grants),
            _ => None,
        };
        if let Some(switch) = switch {
            let read = value.parse();
            *switch = read.map_err(|_| {
                (*place, format!("`{key}` is {value}"), String::from("allowed: true or false"))
            })?;
            continue;
        }
        let AttachArguments { alpha, beta, gamma, k, r_max, release, give_back, .. } = &mut arguments;
        let Some((_, to)) = CONSTANTS
            .iter()
            .zip([alpha, beta, gamma, k, r_max, release, give_back])
            .find(|(name, _)| *name == key)
        else {
            let text = format!("{} has no such setting as `{key}`", router.law.value);
            return Err((
                *place,
                text,
                "allowed: alpha, beta, gamma, average_queue and remember_grants of XCP and P-XCP, k and r_max of \
                 P-XCP, release and give_back of XCP-i, police of XCP"
                    .into(),
            ));
        };
        let ratio: Ratio =
            args::ratio(value).map_err(|help| (*place, format!("`{key}` is {value}"), help))?;
        *to = Some(ratio);
    }
    Ok(arguments)
}

/// What is wrong with a router, whatever the machine.
fn wrong_router(router: &Router, folder: &Path) -> Vec<Wrong> {
    // That of the shaper that is there says nothing of the law.
    let rate = router.rate.as_ref().map_or(BitRate(1_000_000_000), |rate| rate.value);
    let law = |settings: &[&Placed<(String, String)>], place| -> Result<Law, Wrong> {
        let arguments = attach_arguments(router, settings.iter().copied())?;
        super::router::law(&arguments, rate).map_err(|failure| wrong(place, failure))
    };
    let mut found = vec![];
    if let Some(rate) = &router.rate {
        found.extend(router::check_rate(rate.value).err().map(|error| wrong(rate.place, error)));
    }
    if let Err(other) = law(&[], router.law.place) {
        found.push(other);
        return found;
    }
    let alone = router.set.iter().filter_map(|setting| law(&[setting], setting.place).err());
    found.extend(alone.collect::<Vec<_>>());
    let all: Vec<&Placed<(String, String)>> = router.set.iter().collect();
    if let (true, Some(first)) = (found.is_empty(), all.first()) {
        found.extend(law(&all, first.place).err());
    }
    if !found.is_empty() {
        return found;
    }
    let checked = |place,
                   check: &dyn Fn(&Config) -> Result<(), congestlab_linux::Error>|
     -> Result<(), Wrong> {
        let arguments = attach_arguments(router, [])?;
        let config = super::router::config_at(&arguments, rate).map_err(|failure| wrong(place, failure))?;
        check(&config).map_err(|error| wrong(place, error))
    };
    let source = router.capacity_from.as_ref().map(|Placed { value, place }| {
        checked(*place, &|config| Source::parse(value, folder, user(router))?.check(config))
    });
    let weights = router.beside_tcp.as_ref().map(|told| checked(told.place, &router::check_beside));
    let encoding = router.encoding.as_ref().map(|told| checked(told.place, &router::check_encoding));
    [source, weights, encoding].into_iter().flatten().find_map(Result::err).into_iter().collect()
}

/// As the arguments of `host enable`.
fn enable_arguments(host: &Host) -> HostEnableArguments {
    HostEnableArguments {
        law: host.law.value.into(),
        to: host.to.iter().map(|prefix| prefix.value.clone()).collect(),
        opt_in: host.opt_in,
        encoding: host.encoding.as_ref().map(|encoding| encoding.value.into()),
        interface: host.interfaces.iter().map(|interface| interface.value.clone()).collect(),
        loss: host.loss.as_ref().map_or("tcp", |loss| loss.value).into(),
        initial_window: host.initial_window,
        fallback: host.fallback.as_ref().map_or("cubic", |fallback| &fallback.value).into(),
        dry_run: false,
    }
}

/// What is wrong with the host, whatever the machine.
fn wrong_host(host: &Host) -> Vec<Wrong> {
    let mut found = vec![];
    for prefix in &host.to {
        found.extend(prefix.value.parse::<Prefix>().err().map(|error| wrong(prefix.place, error)));
    }
    let arguments = enable_arguments(host);
    if let Some(loss) = &host.loss {
        found.extend(
            super::host::sender(&arguments.law, &arguments.loss).err().map(|other| wrong(loss.place, other)),
        );
    }
    let is_coded = !host.law.value.starts_with(host::NAME);
    if let Some(encoding) = &host.encoding {
        let law = host.law.value;
        if is_coded {
            let text = format!("{law} tells the load in the ECN field, and has no other encoding");
            found.push((encoding.place, text, "leave it out; option and shim are XCP's".into()));
        } else if law == "xcp-r" && encoding.value == "shim" {
            let text = format!("{law} tells windows in a TCP option, not in a shim");
            found.push((encoding.place, text, "leave it out; shim is XCP's".into()));
        }
    }
    let is_option = !is_coded && host.encoding.as_ref().is_none_or(|encoding| encoding.value == "option");
    if let Some(interface) = host.interfaces.first().filter(|_| is_option) {
        let text = format!("the encoding option needs no interface such as {}", interface.value);
        found.push((interface.place, text, "leave `interfaces` out, or `encoding = \"shim\"`".into()));
    }
    found
}

/// What came of a router or of the host.
struct Item {
    /// Name of the interface, or `host`.
    what: String,
    result: Result<Done, (Option<Place>, Failure)>,
}

/// What was done.
enum Done {
    /// It was as wanted.
    Nothing,
    /// In words.
    Changed(String),
}

impl Item {
    fn new(what: impl Into<String>, place: Place, result: Result<Done, Failure>) -> Self {
        Self { what: what.into(), result: result.map_err(|failure| (Some(place), failure)) }
    }

    fn change(&self) -> Option<&str> {
        match &self.result {
            Ok(Done::Changed(words)) => Some(words),
            _ => None,
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        match &self.result {
            Ok(Done::Nothing) => write!(out, "{what}: as wanted"),
            Ok(Done::Changed(words)) => write!(out, "{what}: {words}"),
            Err((_, failure)) => write!(out, "{what}: failed: {}", words(failure)),
        }
    }
}

/// A failure in a line.
fn words(failure: &Failure) -> String {
    match failure {
        Failure::Input(Message { text, help })
        | Failure::Missing(Message { text, help })
        | Failure::Run(Message { text, help })
            if !help.is_empty() =>
        {
            format!("{text}; {help}")
        }
        Failure::Input(message) | Failure::Missing(message) | Failure::Run(message) => message.text.clone(),
        other => format!("{other:?}"),
    }
}

/// Makes everything as the file has it, each for itself: what fails keeps nothing else from being applied.
fn all(wanted: &Wanted, feeders: &mut Feeders, stop: &AtomicBool, screen: &Screen) -> Vec<Item> {
    let names: Vec<&str> = wanted.routers.iter().map(|router| &*router.interface.value).collect();
    feeders.keep(wanted);
    // First what the file no longer names: a law that is another may need its place.
    let mut items = all_others(&names, wanted.host.is_some());
    for router in &wanted.routers {
        if stop.load(Ordering::Relaxed) {
            return items;
        }
        let done = apply_router(router, feeders, screen);
        items.push(Item::new(&router.interface.value, router.interface.place, done));
    }
    if let Some(host) = wanted.host.as_ref().filter(|_| !stop.load(Ordering::Relaxed)) {
        items.push(Item::new("host", host.law.place, apply_host(host, screen)));
    }
    items
}

/// Takes away what `apply` has made and nobody wants any more.
fn all_others(routers: &[&str], has_host: bool) -> Vec<Item> {
    let mut items = vec![];
    let mut note = |what: &str, result: Result<String, congestlab_linux::Error>| {
        let result = result.map(Done::Changed).map_err(|error| (None, error.into()));
        items.push(Item { what: what.into(), result });
    };
    match router::ensured() {
        Ok(names) => {
            for name in names.iter().filter(|name| !routers.contains(&name.as_str())) {
                note(name, router::detach(name).map(|()| "detached, for nobody wants it any more".into()));
            }
        }
        Err(error) => note("routers", Err(error)),
    }
    match host::ensured() {
        Ok(Some(name)) if !has_host => {
            let done =
                host::disable_named(name).map(|()| format!("{name} disabled, for nobody wants it any more"));
            note("host", done);
        }
        Ok(_) => {}
        Err(error) => note("host", Err(error)),
    }
    items
}

/// Who reads the sources of capacities, by interface, with the source as it is written and the rate that holds without it; and who
/// counts flows.
struct Feeders<'a> {
    folder: &'a Path,
    all: BTreeMap<String, (Told, BitRate, Feeder)>,
    followers: BTreeMap<String, Follower>,
}

impl<'a> Feeders<'a> {
    fn new(file: &'a Path) -> Self {
        let folder = file.parent().unwrap_or(Path::new(""));
        Self { folder, all: BTreeMap::new(), followers: BTreeMap::new() }
    }

    /// Ends those that nobody wants any more: the fixed rate holds then.
    fn keep(&mut self, wanted: &Wanted) {
        self.all.retain(|interface, (told, _, _)| {
            let router = wanted.routers.iter().find(|router| router.interface.value == *interface);
            router.is_some_and(|router| source_of(router) == *told)
        });
        self.followers.retain(|interface, _| {
            let router = wanted.routers.iter().find(|router| router.interface.value == *interface);
            router.is_some_and(follows)
        });
    }

    /// Begins to count flows that nobody counts yet.
    fn follow(&mut self, router: &Router, screen: &Screen) -> Result<(), Failure> {
        let interface = &router.interface.value;
        if follows(router) && !self.followers.contains_key(interface) {
            let told = Screen { quiet: false, ..screen.clone() };
            let follower = Follower::start(interface, move |line| told.note(line))?;
            self.followers.insert(interface.clone(), follower);
        }
        Ok(())
    }

    /// Makes an interface have this law, at the rate that its source said last if there is one. Returns the rate, too.
    fn ensure(&mut self, config: &Config, interface: &str) -> Result<(router::Change, BitRate), Failure> {
        // With another rate to fall back to somebody else has to read.
        self.all.retain(|name, (_, fixed, _)| name != interface || *fixed == config.rate);
        let ensure = |rate: BitRate| {
            let at_rate = Config { rate, ..config.clone() };
            Ok((router::ensure(interface, &at_rate)?, rate))
        };
        match self.all.get(interface) {
            Some((_, _, feeder)) => feeder.hold(ensure),
            None => ensure(config.rate),
        }
    }

    /// Begins to read a source that nobody reads yet.
    fn feed(&mut self, router: &Router, fixed: BitRate, screen: &Screen) -> Result<(), Failure> {
        let interface = &router.interface.value;
        let Some(source) = router.capacity_from.as_ref().filter(|_| !self.all.contains_key(interface)) else {
            return Ok(());
        };
        let (read, told) = (
            Source::parse(&source.value, self.folder, user(router))?,
            Screen { quiet: false, ..screen.clone() },
        );
        let feeder = Feeder::start(interface, &read, fixed, move |line| told.note(line))?;
        self.all.insert(interface.clone(), (source_of(router), fixed, feeder));
        Ok(())
    }
}

/// A source as it is written, and the user of its command.
type Told = (Option<String>, Option<String>);

fn source_of(router: &Router) -> Told {
    let text = |placed: &Option<Placed<String>>| placed.as_ref().map(|placed| placed.value.clone());
    (text(&router.capacity_from), text(&router.capacity_user))
}

/// The user that the command of a router's source runs as, if the file names one.
fn user(router: &Router) -> Option<&str> {
    router.capacity_user.as_ref().map(|user| &*user.value)
}

/// True if somebody has to count the flows of a router's classes.
fn follows(router: &Router) -> bool {
    router.beside_tcp.as_ref().is_some_and(|weights| weights.value == FLOWS)
}

fn apply_router(router: &Router, feeders: &mut Feeders<'_>, screen: &Screen) -> Result<Done, Failure> {
    let failed = |(_, text, help): Wrong| Failure::Input(Message::new(text, help));
    let arguments = attach_arguments(router, &router.set).map_err(failed)?;
    // Its shaper may state another rate than a moment ago: that is the source, and no other rate to hold without it.
    let fixed = match feeders.all.get(&arguments.interface) {
        Some((_, fixed, _)) if arguments.rate.is_none() => super::router::config_at(&arguments, *fixed)?,
        _ => super::router::config(&arguments)?,
    };
    // Before anything changes.
    if let Some(source) = &router.capacity_from {
        Source::parse(&source.value, feeders.folder, user(router))?.require(&arguments.interface)?;
    }
    let (done, rate) = feeders.ensure(&fixed, &arguments.interface)?;
    super::router::share(&arguments)?;
    feeders.feed(router, fixed.rate, screen)?;
    feeders.follow(router, screen)?;
    let law = &router.law.value;
    Ok(Done::Changed(match done {
        router::Change::None => return Ok(Done::Nothing),
        router::Change::Attached => format!("attached {law} at {rate}"),
        router::Change::Replaced(state) => {
            format!("{law} at {rate} in place of what was there; its queue stayed, and {state}")
        }
        router::Change::Again => format!("attached {law} at {rate} again, with another shaper"),
        router::Change::Set(parts) => {
            let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
            format!("{law} at {rate} has a new {}", parts.join("; "))
        }
    }))
}

fn apply_host(host: &Host, screen: &Screen) -> Result<Done, Failure> {
    let config = super::host::config(&enable_arguments(host))?;
    let list = |prefixes: &[Prefix]| prefixes.iter().map(Prefix::to_string).collect::<Vec<_>>().join(", ");
    let law = host.law.value;
    Ok(Done::Changed(match patiently(screen, || host::ensure(&config))? {
        host::Change::None => return Ok(Done::Nothing),
        host::Change::Enabled => format!("{law} enabled for new connections"),
        host::Change::Again => format!("{law} disabled and enabled again"),
        host::Change::Set { added, removed, interfaces } => {
            let parts = [
                ("peers added: ", list(&added)),
                ("peers removed: ", list(&removed)),
                ("headers or codes at: ", interfaces.join(", ")),
            ];
            let parts: Vec<String> = parts
                .iter()
                .filter(|(_, names)| !names.is_empty())
                .map(|(what, names)| format!("{what}{names}"))
                .collect();
            format!("{law}, {}", parts.join("; "))
        }
    }))
}

/// Prints a line for each.
fn tell(items: &[Item], screen: &Screen) -> Result<(), Failure> {
    if screen.json {
        let items = items.iter().map(|item| {
            let state = match &item.result {
                Ok(Done::Nothing) => "as-wanted",
                Ok(Done::Changed(_)) => "changed",
                Err(_) => "failed",
            };
            json!({ "what": item.what, "state": state, "change": item.change() })
        });
        return print(&store::pretty(&json!({ "applied": items.collect::<Vec<_>>() })));
    }
    if items.is_empty() {
        return print("nothing was applied here\n");
    }
    let done = items.iter().filter(|item| item.result.is_ok());
    print(&done.map(|item| format!("{item}\n")).collect::<String>())
}

/// Fails with all that failed, each with its place.
fn failures(items: &[Item], wanted: Option<&Wanted>) -> Result<(), Failure> {
    let failed: Vec<(Option<Place>, &Failure)> = items
        .iter()
        .filter_map(|item| item.result.as_ref().err().map(|(place, failure)| (*place, failure)))
        .collect();
    let Some((_, worst)) = failed.iter().max_by_key(|(_, failure)| failure.exit_code()) else {
        return Ok(());
    };
    let lines = failed.iter().map(|(place, failure)| match (wanted, place) {
        (Some(wanted), Some(place)) => wanted.refuse([(*place, words(failure), String::new())]).to_string(),
        _ => words(failure),
    });
    let message = Message::new(lines.collect::<Vec<_>>().join("\n"), "");
    Err(match worst.exit_code() {
        2 => Failure::Input(message),
        4 => Failure::Missing(message),
        _ => Failure::Run(message),
    })
}

/// Applies again and again, and says every change in a line.
fn watch(
    file: &Path,
    mut wanted: Wanted,
    arguments: &ApplyArguments,
    stop: &AtomicBool,
    screen: &Screen,
) -> Result<(), Failure> {
    let events = LinkEvents::open()?;
    let counts = Arc::new(Mutex::new(metrics::Counts::default()));
    if let Some(address) = arguments.metrics {
        let bound = metrics::serve(address, counts.clone())?;
        screen.note(&format!("metrics are at http://{bound}/metrics"));
    }
    let mut text = std::fs::read(file).ok();
    let mut refused = None;
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    let mut feeders = Feeders::new(file);
    let mut is_first = true;
    // What it waits for is no change.
    let silent = Screen { quiet: true, ..screen.clone() };
    while !stop.load(Ordering::Relaxed) {
        let items = all(&wanted, &mut feeders, stop, &silent);
        // Who may not change anything now may not later.
        let has_no_right = |item: &Item| matches!(&item.result, Err((_, Failure::Missing(_))));
        if is_first && !items.is_empty() && items.iter().all(has_no_right) {
            return failures(&items, Some(&wanted));
        }
        is_first = false;
        if let Ok(mut counts) = counts.lock() {
            counts.changes += items.iter().filter(|item| item.change().is_some()).count() as u64;
            counts.failing = items.iter().filter(|item| item.result.is_err()).count() as u64;
            counts.passes += 1;
        }
        let mut failing = BTreeMap::new();
        for item in &items {
            let line = item.to_string();
            let before = told.get(&item.what);
            match &item.result {
                Err(_) if before != Some(&line) => screen.note(&line),
                Ok(Done::Nothing) if before.is_some() => screen.note(&line),
                Ok(Done::Changed(_)) => screen.note(&line),
                _ => {}
            }
            if item.result.is_err() {
                failing.insert(item.what.clone(), line);
            }
        }
        told = failing;
        for _ in 0..STEPS {
            if events.wait(STEP)? || stop.load(Ordering::Relaxed) {
                break;
            }
            if let Err(failure) = trust(file) {
                let said = words(&failure);
                if refused.as_ref() != Some(&said) {
                    screen.note(&said);
                }
                refused = Some(said);
                continue;
            }
            refused = None;
            let now = std::fs::read(file).ok();
            if now == text {
                continue;
            }
            text = now;
            match load(file) {
                Ok(read) => {
                    screen.note(&format!("{} has changed", file.display()));
                    wanted = read;
                    break;
                }
                // What was applied stays as it is.
                Err(found) => tell_diagnostics(&found, screen),
            }
        }
    }
    drop(feeders);
    screen.note("what was applied stays; congestlab apply --undo takes it away");
    Ok(())
}
