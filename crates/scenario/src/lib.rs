//! Scenario files: read, checked and turned into runs; results of runs turned into tables, reports and verdicts.
//!
//! A [`Scenario`] is a file that was read, found right, and has every default filled in; its
//! [`Scenario::model`] is the input of `congestlab-sim`. [`result`] names the results, [`metric`] reads
//! them, [`claims`] judges them, [`sweep`] makes many runs of one file, [`store`] keeps them, [`folder`]
//! reads them again, [`report`] shows them, [`compare`] tells how far two agree, [`measured`] how far a run and what
//! other programs recorded. The language of the files
//! is described in `docs/scenario.md` and, for machines, by [`schema`].
//!
//! A text becomes a run, and the run a number:
//!
//! ```
//! use congestlab_scenario::metric::Metric;
//! use congestlab_scenario::result::{Meta, RunResult};
//! use congestlab_scenario::sim::{self, Engine};
//! use congestlab_scenario::{Measure, Scenario};
//!
//! let text = r#"
//!     [run]
//!     duration = "10 s"
//!     warmup = "2 s"
//!
//!     [links.bottleneck]
//!     rate = "10 Mbit/s"
//!     delay = "20 ms"
//!     queue = "1 BDP"
//!     law = "xcp"
//!
//!     [flows.ftp]
//!     law = "xcp"
//!     count = 2
//!     path = ["bottleneck"]
//! "#;
//! let scenario = Scenario::parse("two.toml", text, ".".as_ref(), &[], None)?;
//! let model = scenario.model(&Measure::default());
//! let engine = Engine::Window { threads: 1, divisor: 1 };
//! let outcome = sim::run(&model, engine, &false.into(), &mut |_| {});
//!
//! let result = RunResult::new(&scenario, &outcome, Meta::default()).to_json();
//! let utilization = Metric::parse("links.bottleneck.utilization")?.read(&result, None).number();
//! assert!(utilization > Some(0.9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod judging;
mod language;
mod results;
mod showing;

pub use congestlab_core::{law as laws, units};
pub use congestlab_net as net;
pub use congestlab_sim as sim;
pub use congestlab_text::diagnostic::{self, Diagnostics};
pub use congestlab_text::files::Files;
pub use congestlab_text::{cells, disk, number, printable};
pub use judging::{claims, fairness, figure, metric, seeds, sum};
pub use language::measure::Measure;
pub use language::scenario::{FILE_BYTES_MAX, Scenario, Varied};
pub use language::{law, memory, schema, wanted};
pub use results::{folder, paper, result, store, sweep, table, trial};
pub use showing::{capture, chart, compare, diff, explain, export, measured, qlog, recording, report, style};
