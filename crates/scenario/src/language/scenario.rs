//! A scenario: a file that was read and found right, its model, and what is asked of its runs.

mod again;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use congestlab_sim::model::Model;
use miette::NamedSource;

use crate::judging::claims::CheckedClaim;
use crate::judging::figure::{Figure, Shown};
use crate::judging::grid::{Axis, Point, Sweep};
use crate::judging::metric::Elements;
use crate::judging::observation::Observation;
use crate::judging::seeds::SEEDS_MIN;
use crate::judging::tolerances::Tolerance;
use crate::judging::{figure, grid, metric, tolerances};
use crate::language::file::File;
use crate::language::measure::Measure;
use crate::language::{law, memory, resolve};
use congestlab_text::decode::{At, Language as _};
use congestlab_text::diagnostic::{DOCUMENT, Diagnostics, Findings, Sources};
use congestlab_text::files::{Files, text_of};
use congestlab_text::tree::Node;
use congestlab_text::{disk, path, tree};

/// A list of values for a path: an axis of a sweep's grid.
#[derive(Clone, Debug)]
pub struct Varied {
    origin: &'static str,
    path: String,
    values: Vec<String>,
}

impl Varied {
    /// `values` are TOML, and texts where they are no TOML; `origin` is what wrote it, for diagnostics.
    pub fn new(origin: &'static str, path: &str, values: Vec<String>) -> Self {
        Self { origin, path: path.to_owned(), values }
    }

    /// Returns what wrote it.
    pub fn origin(&self) -> &'static str {
        self.origin
    }

    /// Returns the path that it varies.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// A scenario that was read and found right, with every default filled in.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    files: Files,
    sources: Sources,
    /// The file with overrides.
    pub(crate) root: Node,
    /// The same without its plan, for the points of a sweep: what one is read from does not grow with their number.
    bare: OnceLock<Node>,
    pub(crate) file: File,
    model: Model,
    warnings: Diagnostics,
    /// Findings in sweep and claims.
    plan: Diagnostics,
    sweep: Option<Sweep>,
    claims: Arc<[CheckedClaim]>,
    figure: Option<Arc<At<Shown>>>,
    /// Paths of what overrides and a point of a sweep put into the file.
    pub(crate) changed: Vec<String>,
}

/// Size above which a file is refused as no scenario, bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

impl Scenario {
    /// Reads a scenario from a file. `overrides` are pairs of a path and a TOML value (`--set`); `seed`
    /// replaces the file's.
    ///
    /// # Errors
    /// Returns all errors of the file but those that a single run ignores: see [`Scenario::check`].
    pub fn load(path: &Path, overrides: &[(String, String)], seed: Option<u64>) -> Result<Self, Diagnostics> {
        Self::load_as(path, overrides, seed, &[], false)
    }

    /// As [`Scenario::load`], with what the command line of a sweep varies beside what the file does. A path that the
    /// file's grid has too has these values instead.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load_varied(
        path: &Path,
        overrides: &[(String, String)],
        seed: Option<u64>,
        grid: &[Varied],
    ) -> Result<Self, Diagnostics> {
        Self::load_as(path, overrides, seed, grid, false)
    }

    /// Reads a scenario for a run with real TCP, as [`Scenario::load`] does; refuses settings that can only be
    /// simulated.
    ///
    /// # Errors
    /// Returns all errors of the file.
    pub fn load_live(
        path: &Path,
        overrides: &[(String, String)],
        seed: Option<u64>,
    ) -> Result<Self, Diagnostics> {
        Self::load_as(path, overrides, seed, &[], true)
    }

    fn load_as(
        path: &Path,
        overrides: &[(String, String)],
        seed: Option<u64>,
        grid: &[Varied],
        is_live: bool,
    ) -> Result<Self, Diagnostics> {
        let shown = path.display().to_string();
        let text = text_of(path, FILE_BYTES_MAX, DOCUMENT)?;
        let base = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        Self::read(&shown, &stem(path), &text, base.as_path().into(), overrides, seed, grid, is_live)
    }

    /// Reads a scenario from a text. Diagnostics call it `name`; paths of traces are relative to `base`.
    ///
    /// # Errors
    /// Returns all errors of the text.
    pub fn parse(
        name: &str,
        text: &str,
        base: &Path,
        overrides: &[(String, String)],
        seed: Option<u64>,
    ) -> Result<Self, Diagnostics> {
        Self::parse_varied(name, text, base, overrides, seed, &[])
    }

    /// Reads a scenario from a text, with what a sweep varies beside what the text does: see [`Scenario::load_varied`].
    ///
    /// # Errors
    /// Returns all errors of the text.
    pub fn parse_varied(
        name: &str,
        text: &str,
        base: &Path,
        overrides: &[(String, String)],
        seed: Option<u64>,
        grid: &[Varied],
    ) -> Result<Self, Diagnostics> {
        Self::read(name, &stem(Path::new(name)), text, base.into(), overrides, seed, grid, false)
    }

    /// Reads a scenario from a text, as [`Scenario::parse`] does, and the files that it names from where they are said to lie.
    ///
    /// # Errors
    /// Returns all errors of the text.
    pub fn parse_with(
        name: &str,
        text: &str,
        files: Files,
        overrides: &[(String, String)],
        seed: Option<u64>,
    ) -> Result<Self, Diagnostics> {
        Self::read(name, &stem(Path::new(name)), text, files, overrides, seed, &[], false)
    }

    #[expect(clippy::too_many_arguments, reason = "each is what one of the public functions takes")]
    fn read(
        shown: &str,
        name: &str,
        text: &str,
        files: Files,
        overrides: &[(String, String)],
        seed: Option<u64>,
        grid: &[Varied],
        is_live: bool,
    ) -> Result<Self, Diagnostics> {
        // Editors on Windows begin a file with a mark of its byte order, which is no column.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut findings = Findings::new(vec![Arc::new(NamedSource::new(shown, text.to_owned()))]);
        findings.is_live = is_live;
        let mut root = tree::parse(text, &mut findings);
        if findings.has_errors() {
            return Err(findings.finish());
        }
        for (path, value) in overrides {
            tree::set(&mut root, "--set", path, value, &mut findings);
        }
        if let Some(seed) = seed {
            tree::set(&mut root, "--seed", "run.seed", &seed.to_string(), &mut findings);
        }
        for Varied { origin, path, values } in grid {
            tree::vary(&mut root, origin, path, values, &mut findings);
        }
        let mut scenario = Self::build(name.into(), files, root, findings, true)?;
        scenario.changed = overrides.iter().map(|(path, _)| path.clone()).collect();
        Ok(scenario)
    }

    fn build(
        name: String,
        files: Files,
        root: Node,
        mut findings: Findings,
        has_sweep: bool,
    ) -> Result<Self, Diagnostics> {
        let mut file = File::decode(&tree::without_none(&root), &mut findings).unwrap_or_default();
        let model = resolve::resolve(&mut file, &files, &mut findings);
        let sources = findings.sources.clone();
        let (Some(model), false) = (model, findings.has_errors()) else { return Err(findings.finish()) };
        let mut plan = Findings::new(sources.clone());
        plan.absorb(findings.take_plan());
        let (mut sweep, mut claims) = (None, Vec::new());
        // What could not be read is not judged as if it were not there.
        if !plan.has_errors() {
            sweep = file.sweep.as_ref().filter(|_| has_sweep).and_then(|sweep| Sweep::new(sweep, &mut plan));
            claims = check_claims(&mut file, &mut plan);
        }
        let (warnings, plan) = (findings.finish(), plan.finish());
        let figure = file.figure.clone().map(Arc::new);
        Ok(Self {
            name,
            files,
            sources,
            root,
            bare: OnceLock::new(),
            file,
            model,
            warnings,
            plan,
            sweep,
            claims: claims.into(),
            figure,
            changed: Vec::new(),
        })
    }

    /// Checks the parts that a single run ignores (docs/design/contract.md 1): `[sweep]` with every value in
    /// it, and `[[claims]]`. Returns their warnings, each once, without those of [`Scenario::warnings`].
    ///
    /// # Errors
    /// Returns all errors of these parts.
    pub fn check(&self) -> Result<Diagnostics, Diagnostics> {
        let mut seen = BTreeSet::new();
        // Every value once, beside the first of all other axes. Combinations are read by a sweep.
        let is_new = |point: &&Point| {
            point.settings.iter().filter(|setting| seen.insert((*setting).clone())).count() > 0
        };
        let points = self.sweep.iter().flat_map(|sweep| sweep.points());
        self.check_points(points.filter(is_new), Diagnostics::default(), &self.warnings)
    }

    /// Checks what [`Scenario::check`] does, with every point of the sweep. Returns the warnings of the runs to come, each once:
    /// those of the points, and those of [`Scenario::warnings`] if there is no sweep.
    ///
    /// # Errors
    /// Returns all errors of the points and of these parts.
    pub fn check_sweep(&self) -> Result<Diagnostics, Diagnostics> {
        let own = if self.sweep.is_none() { self.warnings.clone() } else { Diagnostics::default() };
        let points = self.sweep.iter().flat_map(|sweep| sweep.points());
        self.check_points(points, own, &Diagnostics::default())
    }

    fn check_points<'a>(
        &self,
        points: impl Iterator<Item = &'a Point>,
        own: Diagnostics,
        known: &Diagnostics,
    ) -> Result<Diagnostics, Diagnostics> {
        let mut findings = Findings::new(self.sources.clone());
        findings.absorb(own);
        findings.absorb(self.plan.clone());
        for point in points {
            match self.point(point) {
                Ok(scenario) => findings.absorb(scenario.warnings.without(known)),
                Err(diagnostics) => findings.absorb(diagnostics),
            }
        }
        self.check_assumed(&mut findings);
        self.check_controls(&mut findings);
        if findings.has_errors() { Err(findings.finish()) } else { Ok(findings.finish()) }
    }

    /// Reads the scenario with each other value that the figure's assumptions could have.
    fn check_assumed(&self, findings: &mut Findings) {
        let figure = self.figure.as_ref().and_then(|figure| figure.value.assumed.as_ref());
        for assumed in figure.iter().flat_map(|assumed| &assumed.value) {
            let figure::Assumption { paths, values, .. } = &assumed.value;
            for value in values.iter().flat_map(|values| &values.value) {
                let mut root = self.root.clone();
                let mut found = Findings::new(self.sources.clone());
                for path in paths.iter().flat_map(|paths| &paths.value) {
                    let node = tree::Node { value: value.value.0.clone(), span: value.span };
                    match path::parse(&path.value) {
                        Ok(steps) => {
                            tree::replace(&mut root, &path.value, &steps, node, path.span, &mut found)
                        }
                        Err(error) => {
                            let help = "such as links.bottleneck.queue";
                            found.error("scenario::unknown-path", path.span, error.message, help);
                        }
                    }
                }
                match Self::build(self.name.clone(), self.files.clone(), root, found, true) {
                    Ok(scenario) => findings.absorb(scenario.plan),
                    Err(diagnostics) => findings.absorb(diagnostics),
                }
            }
        }
    }

    /// Returns the file's name without its extension.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the seed of every random stream.
    pub fn seed(&self) -> u64 {
        self.model.seed
    }

    /// Returns the warnings: settings that are allowed but may surprise.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// Returns the errors of `[sweep]` and `[[claims]]` found so far, as warnings: a single run ignores them,
    /// [`Scenario::check`] finds all.
    pub fn ignored(&self) -> Diagnostics {
        self.plan.as_warnings()
    }

    /// Returns the model that the simulator runs, with the records that `measure` selects.
    pub fn model(&self, measure: &Measure) -> Model {
        let sample_every = self.model.sample_every.filter(|_| measure.series);
        Model { sample_every, record_events: measure.events, ..self.model.clone() }
    }

    /// Changes the model that runs, as a program does that has laws of its own, which no file can name. Elements keep
    /// their names and numbers. The normalised file, and with it [`Scenario::hash`], know nothing of the change.
    pub fn change_model(&mut self, change: impl FnOnce(&mut Model)) {
        change(&mut self.model);
    }

    /// Names and sizes, without a copy.
    pub(crate) fn base_model(&self) -> &Model {
        &self.model
    }

    /// Returns the text of the file, without overrides.
    pub fn written(&self) -> &str {
        self.sources.first().map_or("", |source| source.inner())
    }

    /// The law of each link of the model, if it has one.
    pub fn link_laws(&self) -> Vec<Option<&'static str>> {
        let name = |law: &At<law::LinkLaw>| law.value.0.name;
        let links = self.file.links.iter().flat_map(|links| &links.value.0);
        let both = links.flat_map(|(_, link)| {
            let back = link.value.reverse.as_ref().and_then(|reverse| reverse.value.0.law.as_ref());
            [link.value.law.as_ref().map(name), back.map(name)]
        });
        both.collect()
    }

    /// The law of each group of flows.
    pub fn flow_laws(&self) -> Vec<Option<&'static str>> {
        let flows = self.file.flows.iter().flat_map(|flows| &flows.value.0);
        flows.map(|(_, flow)| flow.value.law.as_ref().map(|law| law.value.name())).collect()
    }

    /// Returns the laws of the links and those of the groups of flows; `None` for one without a law.
    pub(crate) fn laws_by_name(&self) -> [Vec<Option<String>>; 2] {
        let owned =
            |laws: Vec<Option<&'static str>>| laws.into_iter().map(|law| law.map(str::to_owned)).collect();
        [self.link_laws(), self.flow_laws()].map(owned)
    }

    /// Returns the name of the router that each link of the model leaves; empty if the file names none.
    pub fn routers(&self) -> Vec<&str> {
        let links = self.file.links.iter().flat_map(|links| &links.value.0);
        let both = links.flat_map(|(_, link)| {
            let back = link.value.reverse.as_ref().and_then(|reverse| reverse.value.0.at.as_ref());
            [link.value.at.as_ref(), back]
        });
        both.map(|at| at.map_or("", |at| at.value.as_str())).collect()
    }

    /// Returns the scenario as TOML with every default written out; reading that gives the same scenario.
    pub fn normalised(&self) -> String {
        tree::to_file(&self.file.encode())
    }

    /// Returns a rough upper bound of the memory that a run takes beside that of the process, bytes.
    pub fn memory_needed(&self, measure: &Measure) -> u64 {
        self.needs(measure).sum()
    }

    fn needs(&self, measure: &Measure) -> memory::Needs {
        let characters = self.sources.iter().map(|source| source.inner().len()).sum();
        memory::needs(&self.model, measure, characters, self.claims.len())
    }

    /// Returns estimates of the work of a run and of the memory that its process takes, within a factor of two.
    pub fn estimate(&self, measure: &Measure) -> memory::Estimate {
        // The process is there already when a run is refused, and is in what the machine has no more.
        let bytes = self.memory_needed(measure).saturating_add(memory::PROCESS);
        memory::Estimate { hops: memory::hops(&self.model), bytes }
    }

    /// Checks that a run needs no more than `available` bytes of memory.
    ///
    /// # Errors
    /// Returns the part that needs most, where the file sets it, and how much of it would fit.
    pub fn require_memory(&self, measure: &Measure, available: u64) -> Result<(), Diagnostics> {
        let needs = self.needs(measure);
        if needs.sum() <= available {
            return Ok(());
        }
        let mut findings = Findings::new(self.sources.clone());
        memory::refuse(&needs, available, &self.file, &self.model, &mut findings);
        Err(findings.finish())
    }

    /// Returns the sweep with its points, if the file has `[sweep]`.
    pub fn sweep(&self) -> Option<&Sweep> {
        self.sweep.as_ref()
    }

    /// Returns the claims of `[[claims]]`.
    pub fn claims(&self) -> &[CheckedClaim] {
        &self.claims
    }

    /// Removes the claims that read nothing at all in these runs, and returns their texts: a law in the place
    /// of the paper's own may lack metrics that its claims are about.
    pub fn leave_out_unread(&mut self, runs: &[Observation]) -> Vec<String> {
        let (unread, read): (Vec<_>, Vec<_>) =
            self.claims.iter().cloned().partition(|claim| claim.reads_nothing(runs));
        self.claims = read.into();
        unread.iter().map(|claim| claim.that().to_owned()).collect()
    }

    /// Returns what `[[tolerances]]` allows between simulation and real TCP.
    pub fn tolerances(&self) -> impl Iterator<Item = Tolerance<'_>> {
        let all = self.file.tolerances.iter().flat_map(|all| &all.value);
        all.filter_map(|allowed| allowed.value.read())
    }

    /// Returns the figure of `[figure]`, if the file has it.
    pub fn figure(&self) -> Option<Figure<'_>> {
        self.figure.as_ref().map(|figure| Figure(&figure.value))
    }

    /// Checks that the figure's sweep has enough seeds for a confidence interval.
    ///
    /// # Errors
    /// If it has fewer than [`SEEDS_MIN`].
    pub fn require_seeds(&self) -> Result<(), Diagnostics> {
        let seeds = self.sweep.as_ref().map_or(1, Sweep::seeds);
        let Some(figure) = self.figure.as_ref().filter(|_| seeds < SEEDS_MIN) else {
            return Ok(());
        };
        let mut findings = Findings::new(self.sources.clone());
        let message =
            format!("the figure draws at random and has {seeds} seed{}", if seeds == 1 { "" } else { "s" });
        let help = format!("sweep \"run.seed\" over at least {} values", SEEDS_MIN);
        findings.error("scenario::figure", figure.span, message, help);
        Err(findings.finish())
    }

    /// Returns the scenario with another law in the place of those that its figure calls the paper's own: flows
    /// run it, links its link law, if it has one. Settings of the replaced laws that the sweep varies are
    /// dropped; `None` if the figure or a claim is about such a setting.
    ///
    /// # Errors
    /// Returns all errors of the changed scenario.
    pub fn with_law(&self, name: &str) -> Result<Option<Self>, Diagnostics> {
        let mut findings = Findings::new(self.sources.clone());
        let mut root = self.root.clone();
        let own: Vec<&str> = self.figure().into_iter().flat_map(Figure::own).collect();
        // TCP's laws by name are recoveries.
        let recoveries: Vec<String> = match name {
            "reno" | "newreno" | "sack" | "fack" => own
                .iter()
                .map(|own| format!("{}.recovery", own.strip_suffix(".law").unwrap_or(own)))
                .collect(),
            _ => Vec::new(),
        };
        let is_of_own = |path: &str| {
            own.iter().copied().chain(recoveries.iter().map(String::as_str)).any(|own| {
                path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        let axes = self.figure().map(|figure| figure.axis()).into_iter();
        if axes.chain(self.claims.iter().filter_map(CheckedClaim::axis)).any(is_of_own) {
            return Ok(None);
        }
        grid::drop_axes(&mut root, &is_of_own);
        // What is assumed may be of the paper's own law, and only `papers ranges` asks for it.
        let assumed = ["figure", "assumed"].map(|key| path::Step::Key(key.into()));
        tree::remove(&mut root, &assumed);
        for path in &recoveries {
            if let Ok(steps) = path::parse(path) {
                tree::remove(&mut root, &steps);
            }
        }
        for path in &own {
            let of_link = law::link_law_of(name);
            let law = if path.starts_with("links.") { of_link } else { Some(name) };
            match (path::parse(path), law) {
                (Ok(steps), None) => tree::remove(&mut root, &steps),
                (_, Some(law)) => tree::set(&mut root, "--law", path, &format!("\"{law}\""), &mut findings),
                (Err(_), None) => {}
            }
        }
        Self::build(self.name.clone(), self.files.clone(), root, findings, true).map(Some)
    }

    /// Returns the metrics that are read in each run: those of claims, and of a figure over an axis.
    pub fn metrics(&self) -> impl Iterator<Item = &metric::Metric> {
        let figure = self.figure.as_ref().filter(|figure| !figure.value.is_over_time());
        let claimed = self.claims.iter().flat_map(CheckedClaim::metrics);
        claimed.chain(figure.into_iter().flat_map(|figure| figure.value.metrics()))
    }

    /// Returns the metrics whose whole series is drawn.
    pub(crate) fn curves(&self) -> impl Iterator<Item = &metric::Metric> {
        let figure = self.figure.as_ref().filter(|figure| figure.value.is_over_time());
        figure.into_iter().flat_map(|figure| figure.value.metrics())
    }

    /// Returns true if claims or figure need the time series.
    pub fn wants_series(&self) -> bool {
        self.metrics().any(metric::Metric::needs_series) || self.curves().next().is_some()
    }

    /// Returns the scenario at one point of its sweep.
    ///
    /// # Errors
    /// Returns all errors of the scenario with the point's values.
    pub fn point(&self, point: &Point) -> Result<Self, Diagnostics> {
        let mut findings = Findings::new(self.sources.clone());
        let mut root = self.bare.get_or_init(|| grid::without_plan(&self.root)).clone();
        point.apply(&mut root, &mut findings);
        let scenario = Self::build(self.name.clone(), self.files.clone(), root, findings, false)?;
        let swept = point.settings.iter().map(|(path, _)| path.clone());
        Ok(Self {
            // Checked against all axes, which a single point has not.
            claims: Arc::clone(&self.claims),
            figure: self.figure.clone(),
            changed: self.changed.iter().cloned().chain(swept).collect(),
            ..scenario
        })
    }

    /// Returns the hash that names the run: equal for equal scenario, seed, traces and code version. `[sweep]`,
    /// `[[claims]]`, `[[tolerances]]` and `[figure]` do not change it.
    pub fn hash(&self, version: &str) -> String {
        let run = File { sweep: None, claims: None, tolerances: None, figure: None, ..self.file.clone() };
        let mut root = run.encode();
        // What is in a trace counts, below; where it lies does not.
        tree::rename_traces(&mut root, &mut |_| String::new());
        let text = tree::to_file(&root);
        let mut parts: Vec<Vec<u8>> = vec![version.as_bytes().to_vec(), text.into_bytes()];
        parts.extend(self.traces().into_iter().map(|(_, bytes)| bytes));
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        disk::hash(&parts)
    }

    /// Traces in the order of the model's links, as files.
    pub(crate) fn traces(&self) -> Vec<TraceFile> {
        use congestlab_net::service::Service;
        let mut traces = Vec::new();
        for (index, link) in self.model.links.iter().enumerate() {
            if let Service::Trace(trace) = &link.port.service {
                let text: String = trace.stamps().iter().map(|stamp| format!("{stamp}\n")).collect();
                traces.push((format!("link-{index}.trace"), text.into_bytes()));
            }
        }
        traces
    }

    /// The normalised scenario with the traces beside it, by the names that it then has for them.
    pub(crate) fn portable(&self) -> (String, Vec<TraceFile>) {
        let (mut root, traces) = (self.file.encode(), self.traces());
        // Both are in the order of the links, each way before the way back.
        let mut names = traces.iter().map(|(name, _)| name.clone());
        tree::rename_traces(&mut root, &mut |path| names.next().unwrap_or_else(|| path.to_owned()));
        (tree::to_file(&root), traces)
    }

    /// The scenario as somebody wrote it, with what the command line added and its sweep, and every trace that a point
    /// reads beside it. Defaults are not written out: some follow from what a sweep varies.
    ///
    /// # Errors
    /// A trace can not be read, by its path.
    pub(crate) fn portable_sweep(&self) -> Result<(String, Vec<TraceFile>), (PathBuf, std::io::Error)> {
        let mut root = self.root.value.clone();
        let mut traces: Vec<(String, String)> = Vec::new();
        tree::rename_traces(&mut root, &mut |path| {
            let known = traces.iter().find(|(other, _)| other == path).map(|(_, name)| name.clone());
            known.unwrap_or_else(|| {
                let name = format!("{}.trace", traces.len());
                traces.push((path.to_owned(), name.clone()));
                name
            })
        });
        let read = |(path, name): (String, String)| {
            let bytes = self.files.read(&path, resolve::TRACE_BYTES_MAX);
            bytes.map(|bytes| (name, bytes)).map_err(|error| (self.files.place(&path), error))
        };
        Ok((tree::to_file(&root), traces.into_iter().map(read).collect::<Result<_, _>>()?))
    }
}

/// The name of a file and what is in it.
pub(crate) type TraceFile = (String, Vec<u8>);

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy().into_owned())
}

/// The links and flows of which claims can be.
fn elements(file: &File) -> Elements {
    let axes = file.sweep.as_ref().map_or(Vec::new(), |sweep| Axis::all(&sweep.value));
    let duration = file.run.as_ref().and_then(|run| run.value.duration.as_ref()).map(|span| span.value.0);
    let duration = axes.iter().filter_map(Axis::duration).max().or(duration);
    let mut elements = Elements { duration, ..Elements::default() };
    for (name, _) in file.links.iter().flat_map(|links| &links.value.0) {
        elements.links.push((name.value.clone(), 1));
        elements.links.push((format!("{}.reverse", name.value), 1));
    }
    for (name, flow) in file.flows.iter().flat_map(|flows| &flows.value.0) {
        let count = flow.value.count.as_ref().map_or(1, |count| count.value.into());
        elements.flows.push((
            name.value.clone(),
            axes.iter().fold(count, |most, axis| most.max(axis.count_of(&name.value))),
        ));
    }
    elements
}

fn check_claims(file: &mut File, findings: &mut Findings) -> Vec<CheckedClaim> {
    let axes = file.sweep.as_ref().map_or(Vec::new(), |sweep| Axis::all(&sweep.value));
    let elements = elements(file);
    if let Some(all) = &file.tolerances {
        tolerances::check(&all.value, findings);
    }
    if let Some(figure) = &mut file.figure {
        figure.value.check(&elements, &axes, findings);
    }
    let claims = file.claims.iter_mut().flat_map(|claims| &mut claims.value);
    let mut names = std::collections::BTreeSet::new();
    let claims: Vec<_> = claims.collect();
    let has_figure = file.figure.is_some();
    for that in claims.iter().filter(|_| has_figure).filter_map(|claim| claim.value.that.as_ref()) {
        if !names.insert(that.value.clone()) {
            let message = format!("two claims say \"{}\"", that.value);
            findings.error("scenario::claim", that.span, message, "verdicts are written down by these words");
        }
    }
    let claims = claims.into_iter();
    claims.filter_map(|claim| CheckedClaim::new(claim, &elements, &axes, findings)).collect()
}
