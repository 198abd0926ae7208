//! Many points of one scenario: all cores, what is complete is kept, and only what is missing is run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use congestlab_sim::outcome::Outcome;
use rayon::prelude::*;
use serde_json::{Value as Json, json};
use thiserror::Error;

pub use crate::judging::grid::{Point, Sweep};
use crate::judging::metric::{Reading, Series};
pub use crate::judging::observation::PointResult;
pub use crate::judging::seeds::SEEDS_MIN;
use crate::language::measure::Measure;
use crate::language::scenario::{FILE_BYTES_MAX, Scenario};
use crate::results::origin::run_name;
pub use crate::results::origin::settings_json;
use crate::results::records::Records;
use crate::results::result::{Meta, RunResult};
pub use crate::results::standing::POINTS;
pub use crate::results::standing::{Standing, standing};
use crate::results::{folder, records, standing, store};
use congestlab_text::diagnostic::Diagnostics;
use congestlab_text::disk;

/// Why a sweep ended early.
#[derive(Debug, Error)]
pub enum SweepError {
    /// A point is no valid scenario.
    #[error("{0}")]
    Scenario(Diagnostics),
    /// A file of the sweep can not be written.
    #[error("can not write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// What was kept can not be read.
    #[error("can not read {}: {error}", path.display())]
    Read {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A folder has points, and none of this sweep.
    #[error("{} has points of another sweep, and none of this one", .0.display())]
    Foreign(PathBuf),
    /// Somebody stopped it. What is complete is kept.
    #[error("interrupted with {done} of {all} points complete")]
    Interrupted {
        /// Complete points.
        done: usize,
        /// All points.
        all: usize,
    },
}

/// Says that a table is whole, and of what.
pub(crate) const CONTENT: &str = "sweep.json";

/// Takes back that a folder has a table, if it has that of another sweep: the folder is this one's from now on. The points of
/// the other stay.
///
/// # Errors
/// A file can not be read or removed.
fn leave_out_other(of: &Path, scenario: &Scenario) -> Result<(), SweepError> {
    let path = of.join(CONTENT);
    if !path.is_file() {
        return Ok(());
    }
    let (own, _) = scenario.portable_sweep().map_err(|(path, error)| SweepError::Read { path, error })?;
    let written = disk::read_file(&of.join(folder::SCENARIO), FILE_BYTES_MAX);
    if written.is_ok_and(|text| text == own.as_bytes()) {
        return Ok(());
    }
    fs::remove_file(&path).map_err(|error| SweepError::Write { path, error })
}

/// What a sweep tells while it goes.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// So many points are to be complete in the end.
    Begun(usize),
    /// This point was complete before, or somebody else completes it.
    Kept(&'a Point),
    /// This point begins.
    Started(&'a Point),
    /// This point is complete.
    Finished(&'a Point),
    /// This point says in other words what one that is complete says.
    Equal(&'a Point),
}

impl PointResult {
    fn new(
        scenario: &Scenario,
        point: &Point,
        run: String,
        model: &congestlab_sim::model::Model,
        outcome: &Outcome,
        result: &RunResult<'_>,
    ) -> Self {
        let result = result.to_json();
        let series = Series::new(outcome, model);
        let readings = scenario
            .metrics()
            .map(|metric| (metric.text().to_owned(), metric.read(&result, Some(&series))))
            .collect();
        let curves =
            scenario.curves().map(|metric| (metric.text().to_owned(), metric.curves(&series))).collect();
        let (index, settings, laws) = (point.index, point.settings.clone(), scenario.laws_by_name());
        Self { index, run, settings, result, readings, curves, laws }
    }

    /// What is kept of it: all but its place in the sweep, which another sweep has in another place.
    fn to_record(&self) -> Json {
        let metrics: serde_json::Map<String, Json> =
            self.readings.iter().map(|(text, reading)| (text.clone(), reading.to_json())).collect();
        let curves: serde_json::Map<String, Json> =
            self.curves.iter().map(|(text, curves)| (text.clone(), json!(curves))).collect();
        json!({ "metrics": metrics, "curves": curves, "laws": self.laws, "result": folded(&self.result) })
    }
}

/// The result with each group of flows as a table of columns: keys are there once, and not for each flow.
fn folded(result: &Json) -> Json {
    let mut result = result.clone();
    for flows in result["flows"].as_object_mut().into_iter().flat_map(|groups| groups.values_mut()) {
        let Json::Array(list) = flows else { continue };
        let mut columns = serde_json::Map::new();
        for flow in std::mem::take(list) {
            let Json::Object(flow) = flow else { continue };
            for (key, value) in flow {
                if let Json::Array(column) = columns.entry(key).or_insert_with(|| json!([])) {
                    column.push(value);
                }
            }
        }
        *flows = columns.into();
    }
    result
}

/// What [`folded`] was made of.
fn unfolded(mut result: Json) -> Option<Json> {
    for flows in result.get_mut("flows")?.as_object_mut()?.values_mut() {
        let Json::Object(columns) = flows.take() else { return None };
        let mut list: Vec<serde_json::Map<String, Json>> = Vec::new();
        for (key, column) in columns {
            let Json::Array(column) = column else { return None };
            list.resize_with(column.len().max(list.len()), serde_json::Map::new);
            for (flow, value) in list.iter_mut().zip(column) {
                flow.insert(key.clone(), value);
            }
        }
        *flows = list.into_iter().map(Json::Object).collect();
    }
    Some(result)
}

/// Writes what was read at each point of a scenario as Parquet: `settings` (a JSON object, without the seed), `seed`,
/// `metric`, `index` in a list, `value`; `run`, `scenario`, `label`, and a column for each setting.
///
/// # Errors
/// The file can not be written.
pub fn write_points(path: &Path, scenario: &str, points: &[PointResult]) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    crate::results::tables::write_points(&mut bytes, scenario, points)?;
    disk::write_atomically(path, &bytes)
}

/// One of so many parts of a sweep: points are dealt out by a hash of what they are, whatever else the sweep has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    pub number: u64,
    /// Of how many.
    pub of: u64,
}

impl Shard {
    fn has(self, hash: u64) -> bool {
        // The hash of similar texts differs little in some of its bits; this mixes them (MurmurHash3's finaliser).
        let mix = |hash: u64, factor: u64| (hash ^ (hash >> 33)).wrapping_mul(factor);
        let mixed = mix(mix(hash, 0xff51_afd7_ed55_8ccd), 0xc4ce_b9fe_1a85_ec53);
        (mixed ^ (mixed >> 33)) % self.of + 1 == self.number
    }
}

/// What is to be done for a sweep.
#[derive(Clone, Debug, Default)]
pub enum Work {
    /// Every point that is missing.
    #[default]
    All,
    /// Those of a part.
    Shard(Shard),
    /// Nothing is run. What is missing is taken over from the folders of the same sweep elsewhere.
    Merge(Vec<PathBuf>),
}

/// How to run a sweep.
pub struct Options<'a> {
    /// What is complete is kept here, in `points/`.
    pub folder: &'a Path,
    /// Names the code: results of other code are not taken for complete.
    pub version: &'a str,
    /// Runs at once.
    pub threads: usize,
    /// Which points.
    pub work: Work,
    /// Names the program, as in the folders of runs.
    pub release: &'a str,
    /// Keep the folder of each run too, in `runs/`.
    pub folders: bool,
    /// Set by somebody who wants it to end; running points are given up.
    pub stop: &'a AtomicBool,
}

impl<'a> Options<'a> {
    /// Every point, and nothing beside.
    pub fn new(folder: &'a Path, version: &'a str, threads: usize, stop: &'a AtomicBool) -> Self {
        Self { folder, version, threads, work: Work::All, release: version, folders: false, stop }
    }
}

/// Simulates one point.
pub type Simulate<'a> = dyn Fn(&Scenario, &congestlab_sim::model::Model) -> (Outcome, Meta) + Sync + 'a;

/// Where the folders of runs are, below the folder of a sweep.
const RUNS: &str = "runs";

/// Whether points of a sweep are kept there.
pub fn is_folder(folder: &Path) -> bool {
    folder.join(POINTS).is_dir()
}

/// The points of a sweep that are complete. They stay on disk: there can be many.
#[derive(Debug)]
pub struct Results<'a> {
    scenario: &'a Scenario,
    folder: PathBuf,
    points: Cow<'a, [Point]>,
    tasks: Vec<Task>,
    /// The task of each point.
    task_of: Vec<usize>,
    records: Records,
    missing: usize,
}

/// One run, and the points that it answers: several may say the same in other words.
#[derive(Clone, Debug)]
struct Task {
    hash: u64,
    run: String,
    points: Vec<usize>,
}

impl Results<'_> {
    /// How many points the sweep has.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// How many points are not complete: others have them, or nobody yet.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// A point by its place in the sweep.
    ///
    /// # Errors
    /// It is not complete, or what was complete is there no more.
    pub fn get(&self, index: usize) -> Result<PointResult, SweepError> {
        let (point, task) = (&self.points[index], &self.tasks[self.task_of[index]]);
        complete(&self.records, task, point, self.scenario).ok_or_else(|| {
            let error = std::io::Error::other(format!("there is no point {}", point.label));
            SweepError::Read { path: self.folder.clone(), error }
        })
    }

    /// All of them at once, in order.
    ///
    /// # Errors
    /// As [`Results::get`].
    pub fn all(&self) -> Result<Vec<PointResult>, SweepError> {
        (0..self.points.len()).map(|index| self.get(index)).collect()
    }

    /// Returns the keys of the records, point by point.
    pub(crate) fn keys(&self) -> impl Iterator<Item = u64> {
        self.task_of.iter().map(|&task| self.tasks[task].hash)
    }

    /// The scenario that was swept.
    pub(crate) fn scenario(&self) -> &Scenario {
        self.scenario
    }

    /// Path, and what each point has there.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &[(String, String)]> {
        self.points.iter().map(|point| point.settings.as_slice())
    }
}

/// Runs the points that are missing in the folder. Others may do the same at the same time: each point is run by one of
/// them, and all return with all. A scenario without `[sweep]` has one point.
///
/// # Errors
/// [`SweepError`]; complete points stay on disk.
pub fn run<'a>(
    scenario: &'a Scenario,
    options: &Options<'_>,
    simulate: &Simulate<'_>,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Results<'a>, SweepError> {
    let Laid { points, tasks, task_of } = Laid::out(scenario, options)?;
    let folder = options.folder.join(POINTS);
    let read =
        |path: &Path| Records::open(path).map_err(|error| SweepError::Read { path: path.to_owned(), error });
    let job = Job {
        scenario,
        options,
        points: &points,
        folder: &folder,
        records: Mutex::new(read(&folder)?),
        simulate,
        progress,
    };
    if !matches!(options.work, Work::Merge(_)) {
        leave_out_other(options.folder, scenario)?;
        let records = job.records.lock().unwrap_or_else(PoisonError::into_inner);
        plan(&folder, scenario, &tasks, &records)?;
    }
    match &options.work {
        Work::All => job.run(tasks.iter().collect())?,
        Work::Shard(shard) => job.run(tasks.iter().filter(|task| shard.has(task.hash)).collect())?,
        Work::Merge(folders) => {
            for folder in folders {
                let others = read(&folder.join(POINTS))?;
                let has_none = tasks.iter().all(|task| others.find(task.hash).is_none());
                if has_none && !others.is_empty() {
                    return Err(SweepError::Foreign(folder.clone()));
                }
                job.take(&others, &tasks)?;
            }
        }
    }
    let mut records = job.records.into_inner().unwrap_or_else(PoisonError::into_inner);
    records.refresh().map_err(|error| SweepError::Read { path: folder.clone(), error })?;
    let is_missing = |task: &&Task| complete(&records, task, &points[task.points[0]], scenario).is_none();
    let missing = match options.work {
        Work::All => 0,
        _ => tasks.par_iter().filter(is_missing).map(|task| task.points.len()).sum(),
    };
    Ok(Results { scenario, folder, points, tasks, task_of, records, missing })
}

/// Returns the points that a sweep kept in the folder, by the keys of its table ([`crate::table::Table::keys`]), whichever
/// version made them. Their runs have no names.
///
/// # Errors
/// The folder cannot be read.
pub fn kept_by<'a>(scenario: &'a Scenario, folder: &Path, keys: &[u64]) -> Result<Results<'a>, SweepError> {
    let points = match scenario.sweep() {
        Some(sweep) => Cow::Borrowed(sweep.points()),
        None => Cow::Owned(vec![Point::only()]),
    };
    let folder = folder.join(POINTS);
    let records = Records::open(&folder).map_err(|error| SweepError::Read { path: folder.clone(), error })?;
    let task = |(index, &hash)| Task { hash, run: String::new(), points: vec![index] };
    let tasks: Vec<Task> = keys.iter().enumerate().map(task).take(points.len()).collect();
    let is_there = |task: &&Task| complete(&records, task, &points[task.points[0]], scenario).is_some();
    let missing = points.len() - tasks.par_iter().filter(is_there).count();
    let task_of = (0..tasks.len()).collect();
    Ok(Results { scenario, folder, points, tasks, task_of, records, missing })
}

/// Says in the folder, for those who look on, how many runs there are to be, and how many of the records are of none of them.
fn plan(folder: &Path, scenario: &Scenario, tasks: &[Task], records: &Records) -> Result<(), SweepError> {
    let own = tasks.iter().filter(|task| records.find(task.hash).is_some()).count();
    standing::plan(folder, scenario.name(), tasks.len(), records.len() - own)
        .map_err(|error| SweepError::Write { path: folder.to_owned(), error })
}

/// The points of a sweep, all read and found right.
struct Laid<'a> {
    points: Cow<'a, [Point]>,
    tasks: Vec<Task>,
    task_of: Vec<usize>,
}

impl<'a> Laid<'a> {
    fn out(scenario: &'a Scenario, options: &Options<'_>) -> Result<Self, SweepError> {
        scenario.check().map_err(SweepError::Scenario)?;
        let points = match scenario.sweep() {
            Some(sweep) => Cow::Borrowed(sweep.points()),
            None => Cow::Owned(vec![Point::only()]),
        };
        let (mut tasks, mut task_of): (Vec<Task>, _) = (Vec::new(), Vec::with_capacity(points.len()));
        let mut by_hash = BTreeMap::new();
        // All are read before the first runs, so that a mistake in the last costs no time. None is kept: they are many.
        for (index, point) in points.iter().enumerate() {
            if options.stop.load(Ordering::Relaxed) {
                return Err(SweepError::Interrupted { done: 0, all: points.len() });
            }
            let scenario = scenario.point(point).map_err(SweepError::Scenario)?;
            let hash = scenario.hash(options.version);
            let task = *by_hash.entry(records::key(&hash)).or_insert_with(|| {
                let run = run_name(&scenario, &scenario.hash(options.release));
                tasks.push(Task { hash: records::key(&hash), run, points: Vec::new() });
                tasks.len() - 1
            });
            tasks[task].points.push(index);
            task_of.push(task);
        }
        Ok(Self { points, tasks, task_of })
    }
}

/// A sweep whose points are run by others, who need not see its folder: [`run_point`] makes of a point what
/// [`Elsewhere::keep`] takes. What is complete in the folder is not run again, whoever made it. Nobody is told which points
/// are under way: [`run`] in the same folder at the same time may run one twice, which changes no result.
pub struct Elsewhere<'a> {
    scenario: &'a Scenario,
    folder: PathBuf,
    laid: Laid<'a>,
    records: Records,
    is_complete: Vec<bool>,
}

impl<'a> Elsewhere<'a> {
    /// Opens the folder of a sweep, which need not be there yet.
    ///
    /// # Errors
    /// As [`run`].
    pub fn open(scenario: &'a Scenario, options: &Options<'_>) -> Result<Self, SweepError> {
        let laid = Laid::out(scenario, options)?;
        let folder = options.folder.join(POINTS);
        let records =
            Records::open(&folder).map_err(|error| SweepError::Read { path: folder.clone(), error })?;
        leave_out_other(options.folder, scenario)?;
        plan(&folder, scenario, &laid.tasks, &records)?;
        let point = |task: &Task| &laid.points[task.points[0]];
        let is_complete = |task: &Task| complete(&records, task, point(task), scenario).is_some();
        let is_complete = laid.tasks.par_iter().map(is_complete).collect();
        Ok(Self { scenario, folder, laid, records, is_complete })
    }

    /// How many points the sweep has.
    pub fn points(&self) -> usize {
        self.laid.points.len()
    }

    /// The places of the points to run: of points that say the same in other words, the first.
    pub fn missing(&self) -> Vec<usize> {
        let tasks = self.laid.tasks.iter().zip(&self.is_complete);
        tasks.filter(|(_, is_complete)| !**is_complete).map(|(task, _)| task.points[0]).collect()
    }

    /// Keeps what became of points, by their places: all of it is on disk when it returns, or none. Whoever has run them has
    /// the same code; a record does not say whose it is.
    ///
    /// # Errors
    /// As [`run`].
    pub fn keep(&mut self, done: &[(usize, Vec<u8>)]) -> Result<(), SweepError> {
        let refuse = |reason: String| SweepError::Write {
            path: self.folder.clone(),
            error: std::io::Error::other(reason),
        };
        let mut packed = Vec::with_capacity(done.len());
        for (place, record) in done {
            let Some(&task) = self.laid.task_of.get(*place) else {
                return Err(refuse(format!("the sweep has no point {place}")));
            };
            let Task { hash, run, .. } = &self.laid.tasks[task];
            let answers = records::unpack(record)
                .and_then(|record| kept(record, run, &self.laid.points[*place], self.scenario));
            if answers.is_none() {
                return Err(refuse(format!("what came back for point {place} is no result of it")));
            }
            packed.push((*hash, record.clone()));
        }
        let written = self.records.append_all(packed);
        written.map_err(|error| SweepError::Write { path: self.folder.clone(), error })?;
        for (place, _) in done {
            self.is_complete[self.laid.task_of[*place]] = true;
        }
        Ok(())
    }

    /// Returns the results, of all points or of those that there are.
    pub fn finish(self) -> Results<'a> {
        let missing = self.laid.tasks.iter().zip(&self.is_complete);
        let missing =
            missing.filter(|(_, is_complete)| !**is_complete).map(|(task, _)| task.points.len()).sum();
        let Laid { points, tasks, task_of } = self.laid;
        let (scenario, folder, records) = (self.scenario, self.folder, self.records);
        Results { scenario, folder, points, tasks, task_of, records, missing }
    }
}

/// Runs a point of a sweep, by its place, for an [`Elsewhere`] of equal scenario and code; `None`: it was stopped.
///
/// # Errors
/// The point is no valid scenario, or the sweep has none of this place.
pub fn run_point(
    scenario: &Scenario,
    place: usize,
    release: &str,
    simulate: &Simulate<'_>,
) -> Result<Option<Vec<u8>>, SweepError> {
    let Some(done) = see_point(scenario, place, release, simulate)? else { return Ok(None) };
    records::pack(&done.to_record()).map(Some).map_err(unreadable)
}

fn unreadable(error: std::io::Error) -> SweepError {
    SweepError::Read { path: PathBuf::new(), error }
}

/// Runs a point of a sweep, by its place, and keeps it nowhere; `None`: it was stopped. A scenario without `[sweep]` has one.
///
/// # Errors
/// As [`run_point`].
pub fn see_point(
    scenario: &Scenario,
    place: usize,
    release: &str,
    simulate: &Simulate<'_>,
) -> Result<Option<PointResult>, SweepError> {
    let point = match scenario.sweep() {
        Some(sweep) => sweep.at(place),
        None => (place == 0).then(Point::only),
    };
    let point =
        point.ok_or_else(|| unreadable(std::io::Error::other(format!("the sweep has no point {place}"))))?;
    let scenario = scenario.point(&point).map_err(SweepError::Scenario)?;
    let run = run_name(&scenario, &scenario.hash(release));
    let model = scenario.model(&Measure { series: scenario.wants_series(), events: false });
    let (outcome, meta) = simulate(&scenario, &model);
    if !outcome.complete {
        return Ok(None);
    }
    let result = RunResult::new(&scenario, &outcome, meta);
    Ok(Some(PointResult::new(&scenario, &point, run, &model, &outcome, &result)))
}

/// What the threads of a sweep share.
struct Job<'a> {
    scenario: &'a Scenario,
    options: &'a Options<'a>,
    points: &'a [Point],
    folder: &'a Path,
    records: Mutex<Records>,
    simulate: &'a Simulate<'a>,
    progress: &'a (dyn Fn(Progress<'_>) + Sync),
}

/// What became of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Done {
    Yes,
    /// Somebody else is at it.
    Elsewhere,
    /// Somebody wants it to end.
    Stopped,
}

/// How long to wait before looking again for what others are at.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(200);

impl Job<'_> {
    /// Runs what is missing of these, and waits for what others are at.
    fn run(&self, mut tasks: Vec<&Task>) -> Result<(), SweepError> {
        fs::create_dir_all(self.folder).map_err(|error| self.cannot_write(error))?;
        congestlab_text::disk::clear(&self.folder.join(RUNS));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.options.threads.max(1)).build();
        let mut done = 0;
        let all = tasks.iter().map(|task| task.points.len()).sum();
        (self.progress)(Progress::Begun(all));
        while !tasks.is_empty() {
            let one = |task| Ok((task, self.task(task)?));
            // The first error ends it: on a full disk no further point can be kept.
            let ran: Result<Vec<(&Task, Done)>, SweepError> = match &pool {
                // One task at a time for each thread, in order.
                Ok(pool) => pool.install(|| tasks.into_par_iter().with_max_len(1).map(one).collect()),
                // A machine that gives no threads still has this one.
                Err(_) => tasks.into_iter().map(one).collect(),
            };
            let ran = ran?;
            let of = |what: Done| ran.iter().filter(move |(_, done)| *done == what).map(|(task, _)| *task);
            let now: usize = of(Done::Yes).map(|task| task.points.len()).sum();
            done += now;
            if of(Done::Stopped).next().is_some() {
                return Err(SweepError::Interrupted { done, all });
            }
            tasks = of(Done::Elsewhere).collect();
            if now == 0 {
                std::thread::sleep(PATIENCE);
            }
        }
        Ok(())
    }

    fn task(&self, task: &Task) -> Result<Done, SweepError> {
        if self.options.stop.load(Ordering::Relaxed) {
            return Ok(Done::Stopped);
        }
        let point = &self.points[task.points[0]];
        let is_kept = || {
            // Not in one expression, in which the lock would be held while it is read.
            let found = self.records().find(task.hash);
            let record = found.filter(|_| self.has_folder(task)).and_then(|found| found.read());
            record.and_then(|record| kept(record, &task.run, point, self.scenario)).is_some()
        };
        if is_kept() {
            self.tell(Progress::Kept(point), task);
            return Ok(Done::Yes);
        }
        let Some(claim) = self.records().claim(task.hash).map_err(|error| self.cannot_write(error))? else {
            // What they have finished meanwhile is found the next time.
            self.refresh()?;
            return Ok(Done::Elsewhere);
        };
        // It may have been finished before it was claimed.
        self.refresh()?;
        if is_kept() {
            drop(claim);
            self.tell(Progress::Kept(point), task);
            return Ok(Done::Yes);
        }
        (self.progress)(Progress::Started(point));
        let scenario = self.scenario.point(point).map_err(SweepError::Scenario)?;
        let Some(done) = self.simulate(&scenario, task, point)? else { return Ok(Done::Stopped) };
        self.append(task, &done.to_record())?;
        drop(claim);
        self.tell(Progress::Finished(point), task);
        Ok(Done::Yes)
    }

    /// `None`: somebody wants it to end.
    fn simulate(
        &self,
        scenario: &Scenario,
        task: &Task,
        point: &Point,
    ) -> Result<Option<PointResult>, SweepError> {
        let Options { folder, release, folders, .. } = *self.options;
        let measure = Measure { series: folders || scenario.wants_series(), events: folders };
        let model = scenario.model(&measure);
        let (outcome, meta) = (self.simulate)(scenario, &model);
        if !outcome.complete {
            return Ok(None);
        }
        let result = RunResult::new(scenario, &outcome, meta);
        if folders {
            let path = folder.join(RUNS);
            store::write_run(&path, release, scenario, &outcome, &result)
                .map_err(|error| SweepError::Write { path: path.join(&task.run), error })?;
        }
        Ok(Some(PointResult::new(scenario, point, task.run.clone(), &model, &outcome, &result)))
    }

    /// Takes over what is complete elsewhere and not here.
    fn take(&self, others: &Records, tasks: &[Task]) -> Result<(), SweepError> {
        for task in tasks {
            let point = &self.points[task.points[0]];
            let answers = |record: &Json| kept(record.clone(), &task.run, point, self.scenario).is_some();
            let found = self.records().find(task.hash).and_then(|found| found.read());
            if found.is_some_and(|record| answers(&record)) {
                continue;
            }
            if let Some(record) = others.find(task.hash).and_then(|found| found.read()).filter(answers) {
                self.append(task, &record)?;
            }
        }
        Ok(())
    }

    fn append(&self, task: &Task, record: &Json) -> Result<(), SweepError> {
        let packed = records::pack(record);
        packed
            .and_then(|packed| self.records().append(task.hash, packed))
            .map_err(|error| self.cannot_write(error))
    }

    fn refresh(&self) -> Result<(), SweepError> {
        let refreshed = self.records().refresh();
        refreshed.map_err(|error| SweepError::Read { path: self.folder.to_owned(), error })
    }

    /// The folder of the run is there, if it is wanted.
    fn has_folder(&self, task: &Task) -> bool {
        let folder = || self.options.folder.join(RUNS).join(&task.run);
        !self.options.folders || folder().join(folder::SUMMARY).is_file()
    }

    fn tell(&self, progress: Progress<'_>, task: &Task) {
        (self.progress)(progress);
        for &equal in &task.points[1..] {
            (self.progress)(Progress::Equal(&self.points[equal]));
        }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        // What is there is on disk, whoever panicked.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cannot_write(&self, error: std::io::Error) -> SweepError {
        SweepError::Write { path: self.folder.to_owned(), error }
    }
}

/// The point of a task, if a record of it is complete and answers.
fn complete(records: &Records, task: &Task, point: &Point, scenario: &Scenario) -> Option<PointResult> {
    kept(records.find(task.hash)?.read()?, &task.run, point, scenario)
}

/// A point that is complete and answers all claims and the figure.
fn kept(mut record: Json, run: &str, point: &Point, scenario: &Scenario) -> Option<PointResult> {
    let result = unfolded(record.get_mut("result")?.take())?;
    if result.get("complete") != Some(&Json::Bool(true)) {
        return None;
    }
    let known = record.get("metrics")?;
    let mut readings = Vec::new();
    for metric in scenario.metrics() {
        let reading = match known.get(metric.text()) {
            Some(json) => Reading::from_json(json),
            None if metric.needs_series() => return None,
            None => metric.read(&result, None),
        };
        readings.push((metric.text().to_owned(), reading));
    }
    let mut curves = Vec::new();
    for metric in scenario.curves() {
        let known = record.get("curves")?.get(metric.text())?;
        curves.push((metric.text().to_owned(), serde_json::from_value(known.clone()).ok()?));
    }
    let laws = serde_json::from_value(record.get("laws")?.clone()).ok()?;
    let (run, settings) = (run.to_owned(), point.settings.clone());
    Some(PointResult { index: point.index, run, settings, result, readings, curves, laws })
}
