//! Errors of endpoints and carriers, as those of the program, with exit codes.

use quiver_bridge::BridgeError;
use quiver_service::Exit;
use quiver_service::drone::Error;

/// Makes the program's error of one of a bridge.
pub(crate) fn failed(error: BridgeError) -> Error {
    let exit = if error.is_in_use() { Exit::Busy } else { Exit::Usage };
    Error::Feature { error: Box::new(error), exit }
}
