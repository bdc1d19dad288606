//! Endpoints as people write them, and what is said when they write something else.

use proptest::prelude::*;
use quiver_mavlink::{Endpoint, HostPort, MavlinkError};

fn reason(given: &str) -> String {
    match given.parse::<Endpoint>() {
        Err(MavlinkError::Endpoint { reason, .. }) => reason,
        other => panic!("`{given}` is {other:?}"),
    }
}

#[test]
fn endpoints_are_spelled_as_in_pymavlink_and_mavsdk() {
    let at = |host: &str, port| HostPort { host: host.to_owned(), port };
    let serial = |device: &str, baud| Endpoint::Serial { device: device.to_owned(), baud };
    for (text, endpoint) in [
        ("udpin:127.0.0.1:14551", Endpoint::UdpIn(at("127.0.0.1", 14551))),
        ("udpin://0.0.0.0:14540", Endpoint::UdpIn(at("0.0.0.0", 14540))),
        ("udpin::14550", Endpoint::UdpIn(at("0.0.0.0", 14550))),
        ("udpin:", Endpoint::UdpIn(at("0.0.0.0", 14550))),
        ("udpin:[::1]:14550", Endpoint::UdpIn(at("::1", 14550))),
        ("udpout:192.168.1.7:18570", Endpoint::UdpOut(at("192.168.1.7", 18570))),
        ("udpout://gcs.example.org", Endpoint::UdpOut(at("gcs.example.org", 14550))),
        ("udpbcast:10.0.0.255:14550", Endpoint::UdpBroadcast(at("10.0.0.255", 14550))),
        ("tcp:127.0.0.1:5762", Endpoint::Tcp(at("127.0.0.1", 5762))),
        ("tcpout://127.0.0.1", Endpoint::Tcp(at("127.0.0.1", 5760))),
        ("tcpin:0.0.0.0:5760", Endpoint::TcpIn(at("0.0.0.0", 5760))),
        ("serial:/dev/ttyACM0:57600", serial("/dev/ttyACM0", 57_600)),
        ("serial:///dev/ttyUSB0:921600", serial("/dev/ttyUSB0", 921_600)),
        ("serial:/dev/ttyAMA0", serial("/dev/ttyAMA0", 57_600)),
        ("serial:////dev/ttyACM0:57600", serial("//dev/ttyACM0", 57_600)),
        (
            "serial:/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0-port0:115200",
            serial("/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0-port0", 115_200),
        ),
    ] {
        assert_eq!(text.parse::<Endpoint>(), Ok(endpoint.clone()), "{text}");
        assert_eq!(endpoint.to_string().parse::<Endpoint>(), Ok(endpoint), "{text}");
    }
}

#[test]
fn what_is_no_endpoint_is_refused_with_what_to_write() {
    for (given, expected) in [
        ("", "write udpin:127.0.0.1:14550"),
        ("14550", "write udpin:127.0.0.1:14550"),
        ("127.0.0.1:14550", "write udpin:127.0.0.1:14550"),
        ("http://127.0.0.1", "write udpin:127.0.0.1:14550"),
        ("udp:127.0.0.1:14550", "udpin: listens, udpout: sends"),
        ("/dev/ttyACM0", "write a serial device as serial:/dev/ttyACM0:57600"),
        ("/dev/ttyACM0:57600", "write a serial device as serial:/dev/ttyACM0:57600"),
        ("udpin:127.0.0.1:", "`` is not a port"),
        ("udpin:127.0.0.1:0", "`0` is not a port"),
        ("udpin:127.0.0.1:65536", "`65536` is not a port"),
        ("udpin:127.0.0.1:+80", "`+80` is not a port"),
        ("udpin:127.0.0.1:port", "`port` is not a port"),
        ("udpin:::1:14550", "IPv6 address in brackets"),
        ("udpin:[::1]14550", "`:PORT` is expected behind `]`"),
        ("udpin:[::1:14550", "`[` without `]`"),
        ("udpin:[127.0.0.1]:14550", "`127.0.0.1` is not an IPv6 address"),
        ("udpout:", "a host is missing"),
        ("udpout::14550", "a host is missing"),
        ("udpout:127.0.0:14550", "neither an address nor a host's name"),
        ("udpout:256.0.0.1:14550", "neither an address nor a host's name"),
        ("udpout:a b:14550", "neither an address nor a host's name"),
        ("udpout:0.0.0.0:14550", "this machine is 127.0.0.1"),
        ("udpout:[::]:14550", "this machine is [::1]"),
        ("udpbcast:0.0.0.0:14550", "nothing can be sent to `0.0.0.0`"),
        ("tcp:0.0.0.0:5760", "nothing can be sent to `0.0.0.0`"),
        ("udpout:0.1.2.3:14550", "nothing can be sent to `0.1.2.3`"),
        ("udpout:[::ffff:0.0.0.0]:14550", "nothing can be sent to"),
        ("udpout:[fe80::1]:14550", "needs an interface"),
        ("tcp:[::ffff:224.0.0.1]:5760", "no address of one machine"),
        ("tcp:255.255.255.255:5760", "no address of one machine"),
        ("tcp:5760", "`5760` is neither an address"),
        ("serial:", "a device is missing"),
        ("serial:/dev/ttyACM0:fast", "`fast` is not a rate"),
        ("serial:/dev/ttyACM0:57", "`57` is not a rate from 1200 to 4000000"),
        ("serial:/dev/tty ACM0:57600", "no white space"),
    ] {
        assert!(reason(given).contains(expected), "`{given}`: {}", reason(given));
    }
    // A megabyte is not repeated to the terminal.
    assert!("x".repeat(1 << 20).parse::<Endpoint>().unwrap_err().to_string().len() < 400);
}

#[test]
fn two_endpoints_do_not_share_a_port_or_device() {
    let check = |texts: &[&str]| {
        let endpoints: Vec<Endpoint> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Endpoint::check_conflicts(&endpoints).map_err(|error| error.to_string())
    };
    let conflict = check(&["udpin:127.0.0.1:14550", "tcpin::14550", "udpin::14550"]).unwrap_err();
    assert_eq!(
        conflict,
        "`udpin:127.0.0.1:14550` and `udpin:0.0.0.0:14550` both need UDP port 14550: give each its own"
    );
    assert!(check(&["tcpin::5760", "tcpin:[::1]:5760"]).unwrap_err().contains("TCP port 5760"));
    assert!(
        check(&["serial:/dev/ttyS0:9600", "serial:/dev/ttyS0"])
            .unwrap_err()
            .contains("the device /dev/ttyS0")
    );
    // Senders choose a port of their own; two addresses of one machine have a port each.
    let fine = [
        "udpout:127.0.0.1:14550",
        "udpout:127.0.0.1:14550",
        "udpin:127.0.0.1:14550",
        "udpin:127.0.0.2:14550",
    ];
    assert_eq!(check(&fine), Ok(()));
}

proptest! {
    #[test]
    fn any_text_is_an_endpoint_that_reads_as_itself_or_refused(text in "(udpin|udpout|udpbcast|tcp|tcpin|serial):[ -~]{0,40}") {
        if let Ok(endpoint) = text.parse::<Endpoint>() {
            prop_assert_eq!(endpoint.to_string().parse::<Endpoint>(), Ok(endpoint));
        }
    }
}
