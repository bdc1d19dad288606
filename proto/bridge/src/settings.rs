//! Endpoints and carriers of a bridge: from flags, or from a file in mavlink-router's format.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use quiver_mavlink::{
    Config, Endpoint, EndpointConfig, Filters, MAX_ENDPOINTS, MavlinkError, Resource, SignedMessages,
    SigningKey,
};
use zeroize::Zeroizing;

use crate::carrier::{self, Carrier};
use crate::endpoint;
use crate::error::BridgeError;
use crate::flight_log::FlightLogSettings;

/// Carriers of one bridge.
const MAX_CARRIERS: usize = 16;

/// Settings that an operator gave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// Endpoints, each as a text.
    pub endpoints: &'a [String],
    /// Carriers, each as a text.
    pub carriers: &'a [String],
    /// A file's path, for errors, and its text.
    pub file: Option<(&'a str, &'a str)>,
}

/// Settings of a bridge.
pub struct BridgeSettings {
    pub(crate) endpoints: Vec<EndpointConfig>,
    /// Keys for MAVLink signing towards the program of each endpoint.
    pub(crate) signing: Vec<Option<SigningKey>>,
    pub(crate) carriers: Vec<Carrier>,
    /// Filters of frames to and from the group.
    pub(crate) filters: Filters,
    pub(crate) signed: SignedMessages,
    pub(crate) manifest: bool,
    pub(crate) deduplication: Duration,
    pub(crate) sniffer: Option<u32>,
    /// Settings of the logs of flights, if they are written.
    pub(crate) flight_log: Option<FlightLogSettings>,
    /// Interval at which programs are told the security state as messages; `None` for never.
    pub(crate) state_every: Option<Duration>,
}

impl BridgeSettings {
    /// Finds out whether every port that is listened at can be had, without keeping any: before something is begun
    /// that a taken port would leave half done.
    ///
    /// # Errors
    /// [`BridgeError::Open`] of the first that cannot.
    pub async fn check_ports(&self) -> Result<(), BridgeError> {
        for carrier in &self.carriers {
            carrier::check(carrier).await?;
        }
        for config in &self.endpoints {
            endpoint::check(&config.endpoint).await?;
        }
        Ok(())
    }

    /// Reads what was given; `None` if nothing was. `read_key` reads a file with a key for MAVLink signing,
    /// whose text is 64 hexadecimal digits.
    ///
    /// # Errors
    /// Says what is wrong, where, and what to write.
    pub fn read(
        given: Given<'_>,
        read_key: impl Fn(&str) -> Result<Zeroizing<Vec<u8>>, String>,
    ) -> Result<Option<Self>, BridgeError> {
        let Given { endpoints, carriers, file } = given;
        // Without any of them no bridge is wanted.
        if endpoints.is_empty() && carriers.is_empty() && file.is_none() {
            return Ok(None);
        }
        let mut config = match file {
            Some((path, text)) => Config::parse(text, path)?,
            None => Config::default(),
        };
        for ignored in &config.ignored {
            tracing::info!("{}: {ignored}", file.map_or("", |(path, _)| path));
        }
        // Flags add to the file, so that one file serves several drones.
        for (number, text) in (1..).zip(endpoints) {
            let endpoint = text.parse::<Endpoint>()?;
            config.endpoints.push(EndpointConfig::new(format!("endpoint {number}"), endpoint));
        }
        let mut all = Vec::new();
        let quiver = config.quiver.take();
        for (text, line) in quiver.iter().flat_map(|quiver| &quiver.carriers) {
            all.push(text.parse().map_err(|error| at_line(file, *line, &error))?);
        }
        for text in carriers {
            all.push(text.parse()?);
        }
        let signing = config.endpoints.iter().map(|endpoint| signing_key(endpoint, &read_key));
        let settings = Self {
            signing: signing.collect::<Result<_, _>>()?,
            endpoints: config.endpoints,
            carriers: all,
            filters: quiver.as_ref().map(|quiver| quiver.filters.clone()).unwrap_or_default(),
            manifest: quiver.as_ref().is_some_and(|quiver| quiver.manifest),
            signed: quiver.map(|quiver| quiver.signed).unwrap_or_default(),
            deduplication: config.deduplication,
            sniffer: config.sniffer,
            flight_log: None,
            state_every: None,
        };
        settings.check()?;
        Ok(Some(settings))
    }

    /// The same with logs of flights.
    #[must_use]
    pub fn with_flight_log(self, flight_log: FlightLogSettings) -> Self {
        Self { flight_log: Some(flight_log), ..self }
    }

    /// The same with the security state told to local programs this often, as `NAMED_VALUE_INT` messages, and at most
    /// once a second.
    #[must_use]
    pub fn with_state_every(self, every: Duration) -> Self {
        Self { state_every: Some(every.max(Duration::from_secs(1))), ..self }
    }

    /// Refuses serial lines at paths where there is something else.
    fn check_lines(&self) -> Result<(), BridgeError> {
        let endpoints = self.endpoints.iter().filter_map(|endpoint| match &endpoint.endpoint {
            Endpoint::Serial { device, .. } => Some((endpoint.endpoint.to_string(), device)),
            _ => None,
        });
        let carriers = self.carriers.iter().filter_map(|carrier| match carrier {
            Carrier::Serial { device, .. } | Carrier::Tunnel { device, .. } => {
                Some((carrier.to_string(), device))
            }
            _ => None,
        });
        for (given, device) in endpoints.chain(carriers) {
            quiver_serial::check_path(Path::new(device))
                .map_err(|reason| BridgeError::NotALine { given, reason })?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), BridgeError> {
        self.check_lines()?;
        let incomplete = |what| Err(BridgeError::Incomplete(what));
        // Half a bridge would look as if it worked.
        if self.carriers.is_empty() {
            return incomplete("endpoints without a carrier: give --carrier as well, such as star:HOST:PORT");
        }
        let relays = self.carriers.iter().any(|carrier| matches!(carrier, Carrier::Relay(_)));
        // A relay needs no program: it forwards for others.
        if self.endpoints.is_empty() && !relays {
            return incomplete(
                "a carrier without an endpoint: give --mavlink as well, such as udpin:127.0.0.1:14550",
            );
        }
        if self.endpoints.len() > MAX_ENDPOINTS || self.carriers.len() > MAX_CARRIERS {
            return incomplete("too many: at most 64 endpoints and 16 carriers");
        }
        // Two endpoints of one port would each get a part of the frames.
        Endpoint::check_conflicts(self.endpoints.iter().map(|endpoint| &endpoint.endpoint))?;
        let endpoints = self.endpoints.iter().map(|endpoint| {
            let endpoint = &endpoint.endpoint;
            (endpoint.to_string(), endpoint.resource())
        });
        let carriers = self.carriers.iter().map(|carrier| (carrier.to_string(), carrier.resource()));
        let mut taken: Vec<(String, Resource)> = Vec::new();
        for (second, resource) in endpoints.chain(carriers) {
            let Some(resource) = resource else { continue };
            if let Some((first, _)) = taken.iter().find(|(_, held)| held.overlaps(&resource)) {
                let (first, what) = (first.clone(), resource.to_string());
                return Err(BridgeError::Conflict { first, second, what });
            }
            taken.push((second, resource));
        }
        self.check_loops(&taken)
    }

    /// Refuses what sends to a port that this process listens on itself: every frame would come back to it.
    fn check_loops(&self, listeners: &[(String, Resource)]) -> Result<(), BridgeError> {
        let endpoints = self.endpoints.iter().flat_map(|endpoint| {
            let endpoint = &endpoint.endpoint;
            endpoint.destination().map(|to| (endpoint.to_string(), to))
        });
        let carriers = self
            .carriers
            .iter()
            .flat_map(|carrier| carrier.destinations().into_iter().map(move |to| (carrier.to_string(), to)));
        for (sender, to) in endpoints.chain(carriers) {
            if let Some((listener, _)) = listeners.iter().find(|(_, at)| to.reaches(at)) {
                return Err(BridgeError::Loop { sender, listener: listener.clone() });
            }
        }
        Ok(())
    }
}

fn at_line(file: Option<(&str, &str)>, line: usize, error: &BridgeError) -> BridgeError {
    let path = file.map_or_else(String::new, |(path, _)| path.into());
    let (place, reason) = ("QuiverEndpoint: Carrier".into(), error.to_string());
    MavlinkError::Config { path, line, place, reason }.into()
}

fn signing_key(
    endpoint: &EndpointConfig,
    read_key: impl Fn(&str) -> Result<Zeroizing<Vec<u8>>, String>,
) -> Result<Option<SigningKey>, BridgeError> {
    let Some(path) = &endpoint.signing_key_file else { return Ok(None) };
    let failed = |reason: String| BridgeError::SigningKey { path: path.clone(), reason };
    let text = read_key(path).map_err(failed)?;
    // The text stays in zeroised memory; the error says nothing of it.
    let text = std::str::from_utf8(&text).map_err(|_| failed(MavlinkError::SigningKey.to_string()))?;
    SigningKey::from_hex(text).map(Some).map_err(|error| failed(error.to_string()))
}

impl fmt::Debug for BridgeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BridgeSettings")
            .field("endpoints", &self.endpoints)
            .field("carriers", &self.carriers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        endpoints: &[&str],
        carriers: &[&str],
        file: Option<&str>,
    ) -> Result<Option<BridgeSettings>, BridgeError> {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (endpoints, carriers) = (texts(endpoints), texts(carriers));
        let file = file.map(|text| ("m.conf", text));
        let key = |path: &str| match path {
            "good.key" => Ok(Zeroizing::new("ab".repeat(32).into_bytes())),
            "bad.key" => Ok(Zeroizing::new(b"secret words".to_vec())),
            _ => Err("there is no such file".to_owned()),
        };
        BridgeSettings::read(Given { endpoints: &endpoints, carriers: &carriers, file }, key)
    }

    #[test]
    fn nothing_given_is_no_bridge_and_half_of_one_is_refused() {
        assert!(read(&[], &[], None).unwrap().is_none());
        for (endpoints, carriers, part) in [
            (&["udpin:127.0.0.1:14550"][..], &[][..], "give --carrier"),
            (&[], &["star:h:1"], "give --mavlink"),
            (&["udpin:0.0.0.0:14800"], &["udp:127.0.0.1:14800+h:1"], "UDP port 14800"),
            (&["serial:/dev/a:57600"], &["serial:/dev/a:57600"], "/dev/a"),
            (&["udpin:127.0.0.1:1", "udpin:127.0.0.1:1"], &["star:h:1"], "UDP port 1"),
            (&["udpin:127.0.0.1:1", "udpout:127.0.0.1:1"], &["star:h:1"], "`udpout:127.0.0.1:1` sends to"),
            (&["tcpin::1", "tcp:localhost:1"], &["star:h:1"], "`tcp:localhost:1` sends to `tcpin:0.0.0.0:1`"),
            (&["udpin::1"], &["star:127.0.0.1:1"], "everything would come back"),
            (&["udpin::1"], &["relay:[::1]:2", "udp::3+[::1]:2"], "`udp:0.0.0.0:3+[::1]:2` sends to"),
            (&["serial:/dev/null"], &["star:h:1"], "which has no other end"),
        ] {
            let error = read(endpoints, carriers, None).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        // Neither another port nor another protocol comes back.
        assert!(read(&["tcpin::1", "udpout:127.0.0.1:1"], &["star:127.0.0.1:2"], None).unwrap().is_some());
        assert!(read(&[], &["relay:0.0.0.0:14800"], None).unwrap().is_some(), "a relay alone is of use");
    }

    #[test]
    fn file_and_flags_add_up_and_mistakes_name_file_and_line() {
        let file = "[UdpEndpoint ground]\nMode = Server\nAddress = 127.0.0.1\nPort = 14550\n\n\
                    [QuiverEndpoint group]\nCarrier = star:leader.example:14800\nManifest = true\n";
        let settings =
            read(&["tcpin:127.0.0.1:5760"], &["broadcast:10.0.0.255:1"], Some(file)).unwrap().unwrap();
        assert_eq!((settings.endpoints.len(), settings.carriers.len(), settings.manifest), (2, 2, true));
        let wrong = file.replace("star:leader.example:14800", "air:1");
        let error = read(&[], &[], Some(&wrong)).unwrap_err().to_string();
        assert!(error.starts_with("m.conf:7: QuiverEndpoint: Carrier: `air:1` is not a carrier"), "{error}");
    }

    #[test]
    fn keys_for_signing_are_read_and_never_shown() {
        let file = |key: &str| {
            format!(
                "[UartEndpoint fc]\nDevice = /dev/ttyACM0\nSigningKeyFile = {key}\n[QuiverEndpoint g]\nCarrier = star:h:1\n"
            )
        };
        let settings = read(&[], &[], Some(&file("good.key"))).unwrap().unwrap();
        assert!(settings.signing[0].is_some() && !format!("{settings:?}").contains("abab"));
        let error = read(&[], &[], Some(&file("bad.key"))).unwrap_err().to_string();
        assert!(error.starts_with("bad.key: ") && !error.contains("secret words"), "{error}");
        assert_eq!(
            read(&[], &[], Some(&file("no.key"))).unwrap_err().to_string(),
            "no.key: there is no such file"
        );
    }
}
