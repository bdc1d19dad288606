//! Events of features' machines. The world passes them on to its observers and knows only what it asks every event.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use quiver_ainq::KgcId;

use crate::step::StandInProgress;

/// An event of a feature's machine or part.
///
/// The `Debug` text enters the [digest](crate::Step::digest) of a traced step.
pub trait FeatureEvent: fmt::Debug + Eq + Send + Sync + 'static {
    /// Describes the event for a trace, without the node's name; `None` if it is no part of a story.
    fn describe(&self) -> Option<String> {
        None
    }

    /// The KGC that sent a wrong share, if the event reports one.
    fn culprit(&self) -> Option<KgcId> {
        None
    }

    /// Progress of a machine that stands in for an edge, if the event reports any.
    fn progress(&self) -> Option<StandInProgress> {
        None
    }

    /// True if the event reports the end of a membership whose time was over, whatever message came just then.
    fn is_expiry(&self) -> bool {
        false
    }
}

/// A [`FeatureEvent`] whose type is known to its feature alone.
#[derive(Clone)]
pub struct AnyFeatureEvent(Arc<dyn ErasedEvent>);

impl AnyFeatureEvent {
    /// The event, if it is of this type.
    pub fn read<E: FeatureEvent>(&self) -> Option<&E> {
        let event: &dyn Any = &*self.0;
        event.downcast_ref()
    }

    /// Describes the event, as [`FeatureEvent::describe`].
    pub(crate) fn describe(&self) -> Option<String> {
        self.0.describe()
    }

    /// The KGC that sent a wrong share, as [`FeatureEvent::culprit`].
    pub(crate) fn culprit(&self) -> Option<KgcId> {
        self.0.culprit()
    }

    /// Progress of a stand-in, as [`FeatureEvent::progress`].
    pub(crate) fn progress(&self) -> Option<StandInProgress> {
        self.0.progress()
    }

    /// True if it reports an expiry, as [`FeatureEvent::is_expiry`].
    pub(crate) fn is_expiry(&self) -> bool {
        self.0.is_expiry()
    }
}

impl<E: FeatureEvent> From<E> for AnyFeatureEvent {
    fn from(event: E) -> Self {
        Self(Arc::new(event))
    }
}

impl fmt::Debug for AnyFeatureEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for AnyFeatureEvent {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl Eq for AnyFeatureEvent {}

/// [`FeatureEvent`] behind a pointer, where `Eq` cannot be.
trait ErasedEvent: Any + fmt::Debug + Send + Sync {
    fn equals(&self, other: &dyn Any) -> bool;
    fn describe(&self) -> Option<String>;
    fn culprit(&self) -> Option<KgcId>;
    fn progress(&self) -> Option<StandInProgress>;
    fn is_expiry(&self) -> bool;
}

impl<E: FeatureEvent> ErasedEvent for E {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }

    fn describe(&self) -> Option<String> {
        FeatureEvent::describe(self)
    }

    fn culprit(&self) -> Option<KgcId> {
        FeatureEvent::culprit(self)
    }

    fn progress(&self) -> Option<StandInProgress> {
        FeatureEvent::progress(self)
    }

    fn is_expiry(&self) -> bool {
        FeatureEvent::is_expiry(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeEvent;

    #[derive(Debug, PartialEq, Eq)]
    enum Doorbell {
        Rang(u32),
    }

    #[derive(Debug, PartialEq, Eq)]
    struct Rang(u32);

    impl FeatureEvent for Doorbell {}
    impl FeatureEvent for Rang {}

    #[test]
    fn event_of_a_feature_is_equal_to_the_same_alone_and_prints_as_itself() {
        let event = NodeEvent::from(Doorbell::Rang(1));
        assert_eq!(event, event.clone());
        assert_eq!(event, NodeEvent::from(Doorbell::Rang(1)));
        assert_ne!(event, NodeEvent::from(Doorbell::Rang(2)));
        // Another type's event prints the same, and is another.
        assert_ne!(event, NodeEvent::from(Rang(1)));
        assert_eq!(format!("{event:?}"), "Rang(1)");
        assert_eq!(event.of_feature(), Some(&Doorbell::Rang(1)));
        assert_eq!(event.of_feature::<Rang>(), None);
    }
}
