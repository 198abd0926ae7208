//! Room for state that few flows of a law need.

#[cfg(feature = "alloc")]
use alloc::boxed::Box;

/// State that few configurations of a law need, such as a meter: where there is an allocator it is made when it is first
/// changed, in a box, and all other flows are smaller by it; where there is none it is there from the beginning.
#[derive(Clone, Debug, Default)]
#[repr(transparent)]
pub(in crate::law) struct Apart<State>(
    #[cfg(feature = "alloc")] Option<Box<State>>,
    #[cfg(not(feature = "alloc"))] State,
);

#[cfg(feature = "alloc")]
impl<State: Default> Apart<State> {
    /// Returns the state; `None`: it is as it began.
    #[inline(always)]
    pub(in crate::law) fn get(&self) -> Option<&State> {
        self.0.as_deref()
    }

    /// Returns the state to change.
    #[inline]
    pub(in crate::law) fn get_mut(&mut self) -> &mut State {
        self.0.get_or_insert_default()
    }
}

#[cfg(not(feature = "alloc"))]
impl<State: Default> Apart<State> {
    /// Returns the state; never `None`.
    #[inline(always)]
    pub(in crate::law) fn get(&self) -> Option<&State> {
        Some(&self.0)
    }

    /// Returns the state to change.
    #[inline(always)]
    pub(in crate::law) fn get_mut(&mut self) -> &mut State {
        &mut self.0
    }
}
