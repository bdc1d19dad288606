//! Configuration files: what mavlink-router reads is read, and every wrong line is named.

use std::time::Duration;

use proptest::prelude::*;
use quiver_mavlink::{Config, Endpoint, HostPort, MAX_CONFIG_LEN, MavlinkError, SignedMessages};

/// Configuration in the manner of mavlink-router's own example, with the group's datagrams added.
const WHOLE: &str = "\u{feff}\
# A file with everything.\r
[General]
TcpServerPort=5760
ReportStats=false
MavlinkDialect=auto
DeduplicationPeriod = 1000
SnifferSysid = 254

[UdpEndpoint alfa]
Mode = Eavesdropping
Address = 0.0.0.0
Port = 10000
AllowMsgIdOut = 0, 30,33
BlockMsgIdOut = 33
AllowSrcSysIn = 1
Group = ground

[uartendpoint bravo]
device = /dev/ttyACM0
BAUD = 921600
FlowControl = 1
BlockSrcCompOut = 100,101
SigningKeyFile = /etc/quiver/mavlink.key

[UartEndpoint bravo2]
Device = /dev/ttyS1

[UdpEndpoint charlie]
Mode = Normal
Address = [::1]

[UdpEndpoint charlie2]
Mode = normal
Address = gcs.example.org

[TcpEndpoint delta]
Address = 127.0.0.1
Port = 25790
RetryTimeout=10

[TcpEndpoint echo]
Address = 127.0.0.1
Port = 5762
RetryTimeout=0

[QuiverEndpoint group]
Carrier = serial:/dev/ttyUSB0:57600
Carrier = udp:239.0.0.1:7400
Manifest = true
BlockMsgIdOut = 253
";

fn parse(text: &str) -> Config {
    Config::parse(text, "quiver.conf").unwrap()
}

#[test]
fn a_file_of_mavlink_router_says_what_it_says_there() {
    let config = parse(WHOLE);
    assert_eq!((config.deduplication, config.sniffer), (Duration::from_secs(1), Some(254)));
    let endpoints: Vec<_> =
        config.endpoints.iter().map(|one| format!("{} {} {}", one.line, one.name, one.endpoint)).collect();
    assert_eq!(
        endpoints,
        [
            "3 TcpServerPort tcpin:127.0.0.1:5760",
            "9 alfa udpin:0.0.0.0:10000",
            "18 bravo serial:/dev/ttyACM0:921600",
            "25 bravo2 serial:/dev/ttyS1:115200",
            "28 charlie udpout:[::1]:14550",
            "32 charlie2 udpout:gcs.example.org:14551",
            "36 delta tcp:127.0.0.1:25790",
            "41 echo tcp:127.0.0.1:5762",
        ]
    );
    assert_eq!(
        config.ignored,
        [
            "line 4: [General] ReportStats has no meaning here",
            "line 5: [General] MavlinkDialect has no meaning here"
        ]
    );
    let [_, alfa, bravo, .., delta, echo] = &config.endpoints[..] else { panic!() };
    let messages = &alfa.filters.outgoing.messages;
    assert!(messages.passes(30) && !messages.passes(33) && !messages.passes(1));
    assert!(alfa.filters.incoming.systems.passes(1) && !alfa.filters.incoming.systems.passes(2));
    assert_eq!(alfa.group.as_deref(), Some("ground"));
    assert!(bravo.flow_control && !bravo.filters.outgoing.components.passes(100));
    assert_eq!(bravo.signing_key_file.as_deref(), Some("/etc/quiver/mavlink.key"));
    assert_eq!((delta.retry_after, echo.retry_after), (Some(Duration::from_secs(10)), None));
    let quiver = config.quiver.unwrap();
    assert_eq!((quiver.name.as_str(), quiver.line, quiver.manifest), ("group", 46, true));
    assert_eq!(
        quiver.carriers,
        [("serial:/dev/ttyUSB0:57600".to_owned(), 47), ("udp:239.0.0.1:7400".to_owned(), 48)]
    );
    assert_eq!(quiver.signed, SignedMessages::default());
    assert!(!quiver.filters.outgoing.messages.passes(253));
}

#[test]
fn nothing_listens_that_the_file_does_not_name() {
    for text in ["", "[General]\n", "[General]\nTcpServerPort = 0\n"] {
        assert_eq!(parse(text), Config::default(), "{text}");
    }
}

#[test]
fn which_messages_are_signed_can_be_said() {
    let signed = |line: &str| {
        let config = parse(&format!("[QuiverEndpoint q]\nCarrier = star\n{line}\n"));
        config.quiver.unwrap().signed
    };
    assert_eq!(signed("SignMsgId = 76, 75"), SignedMessages::only([75, 76]));
    assert_eq!(signed("SignMsgId ="), SignedMessages::only([]));
    assert_eq!(signed("UnsignedMsgId = 331,12345"), SignedMessages::all_but([331, 12_345]));
    assert_eq!(signed("UnsignedMsgId ="), SignedMessages::default());
}

#[test]
fn every_wrong_line_is_named_with_what_to_write() {
    let uart = "[UartEndpoint a]\nDevice = /dev/ttyS0\n";
    let udp = "[UdpEndpoint a]\nMode = Server\nAddress = 0.0.0.0\nPort = 14550\n";
    let tcp = "[TcpEndpoint a]\nAddress = 127.0.0.1\nPort = 1\n";
    for (text, expected) in [
        // Lines.
        ("Baud = 1\n".to_owned(), "q.conf:1: line: a key stands before the first section"),
        ("\n[General\n".to_owned(), "q.conf:2: line: `[General` does not end in `]`"),
        ("[General]\nfast\n".to_owned(), "q.conf:2: line: `fast` is neither [Section name] nor Key = Value"),
        // Sections.
        ("[Uart a]\n".to_owned(), "q.conf:1: [Uart a]: no such section: write General, UartEndpoint"),
        ("[]\n".to_owned(), "q.conf:1: []: no such section"),
        ("[General x]\n".to_owned(), "q.conf:1: [General x]: this section has no name: write [General]"),
        (
            "[UartEndpoint]\n".to_owned(),
            "q.conf:1: [UartEndpoint]: this section needs a name: write [UartEndpoint NAME]",
        ),
        ("[UdpEndpoint a b]\n".to_owned(), "q.conf:1: [UdpEndpoint a b]: a name is one word"),
        ("[QuiverEndpoint]\n".to_owned(), "q.conf:1: [QuiverEndpoint]: this section needs a name"),
        // Keys.
        (
            format!("{uart}Bauds = 9600\n"),
            "q.conf:3: [UartEndpoint a] Bauds: no such key in this section: did you mean Baud?",
        ),
        (
            format!("{uart}Buad = 9600\n"),
            "q.conf:3: [UartEndpoint a] Buad: no such key in this section: did you mean Baud?",
        ),
        (
            format!("{uart}AllowMsgOut = 1\n"),
            "q.conf:3: [UartEndpoint a] AllowMsgOut: no such key in this section",
        ),
        (
            format!("{uart}Baud = 9600\nbaud = 9600\n"),
            "q.conf:4: [UartEndpoint a] baud: the key stands twice in this section",
        ),
        ("[General]\nBaud = 1\n".to_owned(), "q.conf:2: [General] Baud: no such key in this section"),
        (
            "[UdpEndpoint a]\nMode = Normal\nAddress = ::1\nCarrier = x\n".to_owned(),
            "q.conf:3: [UdpEndpoint a] Address: write an IPv6 address in brackets",
        ),
        // General.
        (
            "[General]\nTcpServerPort = 70000\n".to_owned(),
            "q.conf:2: [General] TcpServerPort: `70000` is not a port from 1 to 65535",
        ),
        (
            "[General]\nDeduplicationPeriod = 1s\n".to_owned(),
            "q.conf:2: [General] DeduplicationPeriod: `1s` is not a number of milliseconds from 0 to 60000",
        ),
        (
            "[General]\nSnifferSysid = 4294967296\n".to_owned(),
            "q.conf:2: [General] SnifferSysid: `4294967296` is not a system id from 0 to 4294967295",
        ),
        // UART.
        (
            "[UartEndpoint a]\nBaud = 9600\n".to_owned(),
            "q.conf:1: [UartEndpoint a]: Device is missing: write for instance Device = /dev/ttyACM0",
        ),
        ("[UartEndpoint a]\nDevice =\n".to_owned(), "q.conf:2: [UartEndpoint a] Device: a device is missing"),
        (
            format!("{uart}Baud = quick\n"),
            "q.conf:3: [UartEndpoint a] Baud: `quick` is not a rate from 1200 to 4000000 bits a second",
        ),
        (format!("{uart}Baud = 9600,57600\n"), "q.conf:3: [UartEndpoint a] Baud: one rate"),
        (format!("{uart}FlowControl = yes\n"), "q.conf:3: [UartEndpoint a] FlowControl: write true or false"),
        // UDP.
        ("[UdpEndpoint a]\nAddress = 0.0.0.0\n".to_owned(), "q.conf:1: [UdpEndpoint a]: Mode is missing"),
        (
            "[UdpEndpoint a]\nMode = Client\nAddress = 0.0.0.0\n".to_owned(),
            "q.conf:2: [UdpEndpoint a] Mode: write Normal or Server",
        ),
        ("[UdpEndpoint a]\nMode = Normal\n".to_owned(), "q.conf:1: [UdpEndpoint a]: Address is missing"),
        (
            "[UdpEndpoint a]\nMode = Server\nAddress = 0.0.0.0\n".to_owned(),
            "q.conf:1: [UdpEndpoint a]: Port is missing: a server listens on one",
        ),
        (
            "[UdpEndpoint a]\nMode = Server\nAddress = 0.0.0.0\nPort = 0\n".to_owned(),
            "q.conf:4: [UdpEndpoint a] Port: `0` is not a port",
        ),
        (
            "[UdpEndpoint a]\nMode = Normal\nAddress = 0.0.0.0\n".to_owned(),
            "q.conf:1: [UdpEndpoint a]: nothing can be sent to `0.0.0.0`",
        ),
        (
            "[UdpEndpoint a]\nMode = Normal\nAddress = 1.2.3\n".to_owned(),
            "q.conf:3: [UdpEndpoint a] Address: `1.2.3` is neither an address nor a host's name",
        ),
        (
            format!("{udp}AllowMsgIdOut = 1,,2\n"),
            "q.conf:5: [UdpEndpoint a] AllowMsgIdOut: `` is not a message id from 0 to 16777215",
        ),
        (
            format!("{udp}BlockMsgIdIn = -1\n"),
            "q.conf:5: [UdpEndpoint a] BlockMsgIdIn: `-1` is not a message id",
        ),
        (
            format!("{udp}AllowSrcSysOut = 0\n"),
            "q.conf:5: [UdpEndpoint a] AllowSrcSysOut: `0` is not a system id from 1 to 4294967295",
        ),
        (
            format!("{udp}BlockSrcCompIn = 256\n"),
            "q.conf:5: [UdpEndpoint a] BlockSrcCompIn: `256` is not a component id from 0 to 255",
        ),
        (
            format!("{udp}AllowMsgIdOut = {}\n", "1,".repeat(2_000)),
            "q.conf:5: [UdpEndpoint a] AllowMsgIdOut: more than 1024 numbers",
        ),
        (format!("{udp}SigningKeyFile =\n"), "q.conf:5: [UdpEndpoint a] SigningKeyFile: a value is missing"),
        // TCP.
        ("[TcpEndpoint a]\nPort = 1\n".to_owned(), "q.conf:1: [TcpEndpoint a]: Address is missing"),
        ("[TcpEndpoint a]\nAddress = 127.0.0.1\n".to_owned(), "q.conf:1: [TcpEndpoint a]: Port is missing"),
        (
            format!("{tcp}RetryTimeout = never\n"),
            "q.conf:4: [TcpEndpoint a] RetryTimeout: `never` is not a number of seconds from 0 to 86400",
        ),
        // The group.
        ("[QuiverEndpoint q]\n".to_owned(), "q.conf:1: [QuiverEndpoint q]: Carrier is missing"),
        (
            "[QuiverEndpoint q]\nCarrier =\n".to_owned(),
            "q.conf:2: [QuiverEndpoint q] Carrier: a value is missing",
        ),
        (
            "[QuiverEndpoint q]\nCarrier = star\nSignMsgId = 76\nUnsignedMsgId = 331\n".to_owned(),
            "q.conf:4: [QuiverEndpoint q] UnsignedMsgId: SignMsgId names all that is signed",
        ),
        (
            "[QuiverEndpoint q]\nCarrier = star\nSignMsgId = all\n".to_owned(),
            "q.conf:3: [QuiverEndpoint q] SignMsgId: `all` is not a message id",
        ),
        (
            "[QuiverEndpoint q]\nCarrier = star\nManifest = 2\n".to_owned(),
            "q.conf:3: [QuiverEndpoint q] Manifest: write true or false",
        ),
        (
            "[QuiverEndpoint q]\nCarrier = star\n[QuiverEndpoint r]\nCarrier = star\n".to_owned(),
            "q.conf:3: [QuiverEndpoint r]: there is one already, in line 1",
        ),
        // Between endpoints.
        (
            format!("{uart}[UartEndpoint a]\nDevice = /dev/ttyS1\n"),
            "q.conf:3: endpoint a: the name is taken in line 1",
        ),
        (
            format!("{uart}[UartEndpoint b]\nDevice = /dev/ttyS0\n"),
            "q.conf:3: endpoint b: endpoint a in line 1 needs the device /dev/ttyS0 too",
        ),
        (
            format!("{udp}[UdpEndpoint b]\nMode = Server\nAddress = 127.0.0.1\nPort = 14550\n"),
            "q.conf:5: endpoint b: endpoint a in line 1 needs UDP port 14550 too",
        ),
    ] {
        let error = Config::parse(&text, "q.conf").unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}\n{error}");
    }
}

#[test]
fn files_of_mavlink_router_are_read_as_they_are() {
    let text = "; a comment\n[UartEndpoint a]\n;another\nDevice = /dev/ttyS0\n\
                [UdpEndpoint a]\nMode = Normal\nAddress = 192.168.8.255\nPort = 14550\nAllowMsgIdOut = 0,1,\n\
                [TcpEndpoint a]\nAddress = 127.0.0.1\nPort = 5790\n";
    let config = Config::parse(text, "q.conf").expect("it is read");
    let names: Vec<_> = config.endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect();
    assert_eq!(names, ["a", "a", "a"], "one of each kind");
    let twice = format!("{text}[UdpEndpoint a]\nMode = Normal\nAddress = 127.0.0.1\n");
    let error = Config::parse(&twice, "q.conf").unwrap_err().to_string();
    assert!(error.contains("endpoint a: the name is taken in line 5"), "{error}");
    for wrong in ["0,,1", ",", "0,1,,"] {
        let text = format!("[UdpEndpoint a]\nMode = Normal\nAddress = 127.0.0.1\nAllowMsgIdOut = {wrong}\n");
        let error = Config::parse(&text, "q.conf").unwrap_err().to_string();
        assert!(error.contains("`` is not a message id"), "{wrong}: {error}");
    }
}

#[test]
fn a_file_is_bounded() {
    let error = Config::parse(&"#".repeat(MAX_CONFIG_LEN + 1), "q.conf").unwrap_err();
    assert!(error.to_string().contains("longer than 262144 bytes"), "{error}");
    assert_eq!(parse(&"#".repeat(MAX_CONFIG_LEN)), Config::default());
    let many: String = (0..65).map(|n| format!("[UartEndpoint e{n}]\nDevice = /dev/ttyS{n}\n")).collect();
    let error = Config::parse(&many, "q.conf").unwrap_err();
    assert_eq!(error.to_string(), "q.conf:129: [UartEndpoint e64]: more than 64 endpoints");
    // A name of a megabyte is not repeated.
    let long = format!("[{}]\n", "x".repeat(1 << 17));
    assert!(Config::parse(&long, "q.conf").unwrap_err().to_string().len() < 400);
}

#[test]
fn an_error_is_a_value_with_its_parts() {
    let error = Config::parse("\n[Nothing]\n", "dir/q.conf").unwrap_err();
    let MavlinkError::Config { path, line, place, .. } = error else { panic!("{error}") };
    assert_eq!((path.as_str(), line, place.as_str()), ("dir/q.conf", 2, "[Nothing]"));
}

#[test]
fn a_serial_line_has_the_rate_of_mavlink_router_unless_set() {
    let config = parse("[UartEndpoint a]\nDevice = /dev/ttyS0\n");
    assert_eq!(
        config.endpoints[0].endpoint,
        Endpoint::Serial { device: "/dev/ttyS0".to_owned(), baud: 115_200 }
    );
    let config = parse("[UdpEndpoint a]\nMode = Server\nAddress = [::]\nPort = 1\n");
    assert_eq!(config.endpoints[0].endpoint, Endpoint::UdpIn(HostPort { host: "::".to_owned(), port: 1 }));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(\\[?(General|UartEndpoint|UdpEndpoint|QuiverEndpoint) ?[a-z]?\\]?\n|[ -~]{0,20}=[ -~]{0,20}\n|\\PC{0,20}){0,12}") {
        let _ = Config::parse(&text, "q.conf");
    }

    #[test]
    fn a_file_with_a_line_less_is_read_or_refused_with_a_line_of_it(cut in 0..48_usize) {
        let text: String = WHOLE.lines().enumerate().filter(|(at, _)| *at != cut).map(|(_, line)| format!("{line}\n")).collect();
        if let Err(error) = Config::parse(&text, "q.conf") {
            let MavlinkError::Config { line, .. } = error else { panic!("{error}") };
            prop_assert!((1..=text.lines().count()).contains(&line));
        }
    }
}

#[test]
fn the_files_that_are_shipped_are_read() {
    let vehicle = parse(include_str!("../../../../deploy/mavlink/quiver.conf"));
    assert_eq!(vehicle.endpoints.len(), 2);
    let to_autopilot = &vehicle.endpoints[0].filters.outgoing.systems;
    assert!(to_autopilot.passes(255) && !to_autopilot.passes(7));
    let quiver = vehicle.quiver.unwrap();
    assert_eq!(quiver.carriers[0].0, "serial:/dev/ttyUSB0:57600");
    assert!(!quiver.filters.outgoing.messages.passes(110) && quiver.filters.outgoing.messages.passes(0));
    let ground = parse(include_str!("../../../../deploy/mavlink/ground.conf"));
    assert_eq!(ground.endpoints[1].endpoint.to_string(), "udpout:127.0.0.1:14550");
    assert!(ground.quiver.is_some() && ground.ignored.is_empty());
}
