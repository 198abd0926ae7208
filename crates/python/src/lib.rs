//! The native half of the Python package: reads and runs scenarios without the GIL, hands tables out as Arrow.
//!
//! Names, defaults and documentation that a user sees are in `python/congestlab/`.

mod agent;
mod law;
mod run;
mod scenario;
mod sweep;
mod table;
mod trial;
mod wait;

use congestlab_scenario::diagnostic::Diagnostics;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(_native, ScenarioError, PyException, "Errors of a scenario: their text, and as JSON.");
create_exception!(
    _native,
    Refused,
    PyException,
    "A question without an answer: what is wrong, and what is allowed."
);

/// Names the program, as the command does: folders of other versions are read with a warning.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CONGESTLAB_COMMIT"), ")");
/// Names the code: points of a sweep that other code has run are not taken for complete.
pub(crate) const CODE: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("CONGESTLAB_CODE"));

/// Raises [`Refused`] with a message and what is allowed.
pub(crate) fn refused(message: impl ToString, help: impl ToString) -> PyErr {
    Refused::new_err((message.to_string(), help.to_string()))
}

/// Raises what is wrong with a scenario.
pub(crate) fn wrong(diagnostics: &Diagnostics) -> PyErr {
    ScenarioError::new_err((diagnostics.to_string(), diagnostics.to_json().to_string()))
}

/// Implementation; import `congestlab`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<law::Ack>()?;
    module.add_class::<law::Send>()?;
    module.add_class::<law::Packet>()?;
    module.add_class::<agent::Episode>()?;
    module.add_function(wrap_pyfunction!(run::load, module)?)?;
    module.add_function(wrap_pyfunction!(run::unpickled, module)?)?;
    module.add_function(wrap_pyfunction!(table::table, module)?)?;
    module.add_function(wrap_pyfunction!(run::style, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::link_law_of, module)?)?;
    module.add_function(wrap_pyfunction!(trial::check_law, module)?)?;
    module.add("ScenarioError", module.py().get_type::<ScenarioError>())?;
    module.add("Refused", module.py().get_type::<Refused>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("release", VERSION)?;
    module.add("code", CODE)
}
