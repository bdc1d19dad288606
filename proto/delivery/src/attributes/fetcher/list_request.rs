//! The revocation list, which a drone may request beside its keys.

use quiver_ainq::{SignedRevocationList, Suite};
use quiver_machine::{Handled, Peer};
use quiver_message::{Message, RevocationQuery};

use super::interface::FetchEvent;
use super::{FetchContext, blame};

/// True where a drone may request lists. Boards request none, because their groups bring them, and the compiler leaves
/// out the code behind this constant.
const AT_SERVICES: bool = cfg!(feature = "services");

/// Number of the revocation list that is held, if newer ones are requested.
#[derive(Debug)]
pub(super) struct ListRequest(Option<u64>);

impl ListRequest {
    /// No request.
    pub(super) const fn none() -> Self {
        Self(None)
    }

    /// A request for lists newer than this number.
    pub(super) const fn newer_than(number: u64) -> Self {
        Self(Some(number))
    }

    const fn held(&self) -> Option<u64> {
        if AT_SERVICES { self.0 } else { None }
    }

    /// Sends it to a KGC.
    pub(super) fn send<S: Suite>(&self, cx: &mut FetchContext<'_, S>, kgc: Peer) {
        if let Some(number) = self.held() {
            cx.send(kgc, &Message::RevocationQuery(RevocationQuery { number, max_len: 0 }));
        }
    }

    /// Takes a list that was requested: any KGC may have signed it, and its number decides whether it is newer.
    pub(super) fn handle<S: Suite>(
        &mut self,
        cx: &mut FetchContext<'_, S>,
        from: Peer,
        message: &Message<S>,
    ) -> Handled {
        let (Some(held), Message::RevocationList(message)) = (self.held(), message) else {
            return Handled::No;
        };
        let list = &message.list;
        let verified = SignedRevocationList::<S>::decode(list).and_then(|list| list.verify(cx.deployment));
        match verified {
            Err(error) => blame(cx, from, error),
            Ok(verified) if verified.number > held => {
                self.0 = Some(verified.number);
                cx.out.event(FetchEvent::RevocationList { number: verified.number, list: list.clone() });
            }
            Ok(_) => {}
        }
        Handled::Yes
    }
}
