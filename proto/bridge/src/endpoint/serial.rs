//! MAVLink on a serial line: an autopilot's telemetry port, or USB.

use std::time::Duration;

use tokio_serial::{FlowControl, SerialPortBuilderExt};

use super::Port;
use super::tcp::exchange;
use crate::pause::Pause;

/// The longest wait between attempts to open the device.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Opens the device again and again: it may be unplugged.
pub(super) async fn serve(port: Port, device: String, baud: u32, flow_control: bool) {
    let mut pause = Pause::new(format!("serial:{device}:{baud}"), LONGEST_WAIT);
    let flow = if flow_control { FlowControl::Hardware } else { FlowControl::None };
    while !port.events.is_closed() {
        pause.wait().await;
        match tokio_serial::new(device.as_str(), baud).flow_control(flow).open_native_async() {
            Ok(line) => {
                pause.opened();
                let Ok(link) = port.open().await else { return };
                pause.failed(&exchange(link, line).await);
            }
            Err(error) => pause.failed(&error.into()),
        }
    }
}
