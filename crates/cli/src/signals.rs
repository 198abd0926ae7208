//! The flag that signals raise, and what a command does with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use crate::failure::{Failure, Message};
use crate::machine::{self, Clock};
use crate::screen::Screen;
use crate::watch::or_exceeded;

/// A flag that Ctrl-C, SIGTERM and SIGHUP raise. One of them that finds it raised ends the process at once,
/// with the status of an interruption; nothing half-written has a name then.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// True while a command reads [`STOP`].
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Begins to listen for signals. Until a command asks for the flag, the first signal ends the process.
///
/// From then on, a file that exceeds the limit of the shell gives an error of writing, not a signal.
pub(crate) fn listen() -> Result<(), Failure> {
    if STOP.get().is_some() {
        return Ok(());
    }
    let stop = STOP.get_or_init(|| Arc::new(AtomicBool::new(true)));
    machine::listen(stop)
        .map_err(|error| Failure::Run(Message::new(format!("can not listen for signals: {error}"), "")))
}

/// A flag that Ctrl-C, SIGTERM and SIGHUP raise; the second of them ends the process at once.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    listen()?;
    let stop = STOP.get_or_init(Arc::default);
    if !IS_WATCHED.swap(true, Ordering::Relaxed) {
        stop.store(false, Ordering::Relaxed);
    }
    Ok(stop.clone())
}

/// Time, s, after which a signal has ended a command that computes: of the clock, and of the processor, because another
/// process may have it meanwhile.
const GRACE: [f64; 2] = [0.6, 0.4];
/// Time between two looks at the flag.
const LOOK: Duration = Duration::from_millis(20);

/// Returns [`stop_flag`] for a command that only computes, and sees to it that a signal ends the process soon: results of very
/// many flows that are still to be made then are given up. What is half-written has no name.
pub(crate) fn stop_flag_for_good(screen: &Screen) -> Result<Arc<AtomicBool>, Failure> {
    static LOOKER: OnceLock<()> = OnceLock::new();
    let flag = stop_flag()?;
    LOOKER.get_or_init(|| {
        let (stop, screen) = (flag.clone(), screen.clone());
        let look = move || {
            loop {
                thread::sleep(LOOK);
                if stop.load(Ordering::Relaxed) && IS_WATCHED.load(Ordering::Relaxed) {
                    end_soon(&stop, &screen);
                }
            }
        };
        // Without it the command ends when it can.
        let _ = thread::Builder::new().name("signals".into()).spawn(look);
    });
    Ok(flag)
}

/// Ends the process if it has not ended, and the flag is still up, after [`GRACE`].
fn end_soon(stop: &AtomicBool, screen: &Screen) {
    let clock = Clock::start();
    while clock.wall() < GRACE[0] || clock.cpu() < GRACE[1] {
        thread::sleep(LOOK);
        if !stop.load(Ordering::Relaxed) || !IS_WATCHED.load(Ordering::Relaxed) {
            return;
        }
    }
    let text = "interrupted; the results so far are too many to be made within a second";
    let failure = or_exceeded(Failure::Interrupted(text.into()));
    failure.tell(screen);
    std::process::exit(failure.exit_code().into());
}

/// Ends the reading of the flag before a step that cannot be interrupted. The next signal then ends the process; no file that is
/// half-written has its name yet. [`stop_flag`] begins the reading again.
///
/// # Errors
/// A signal came before.
pub(crate) fn unwatch(stop: &AtomicBool) -> Result<(), Failure> {
    IS_WATCHED.store(false, Ordering::Relaxed);
    match stop.swap(true, Ordering::Relaxed) {
        true => Err(Failure::Interrupted("interrupted before the results were written".into())),
        false => Ok(()),
    }
}
