//! Lines that flood their gateway.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use quiver_link::{BoardEndpoint, EndpointLimits, Wants, encode_line};

use quiver_service_testing::{eventually, now};

use crate::bench::Bench;
use crate::board;

/// The gateway's end of a line, once it has opened it.
fn opened(listener: &TcpListener) -> TcpStream {
    let (line, _) = listener.accept().expect("the gateway comes");
    line.set_read_timeout(Some(Duration::from_millis(1))).expect("timeout");
    line.set_write_timeout(Some(Duration::from_millis(50))).expect("timeout");
    line
}

/// Writes as fast as the gateway takes it, for a while; how many bytes it took.
fn flood(line: &mut TcpStream, bytes: &[u8], time: Duration) -> usize {
    let (end, mut taken, mut answers) = (now() + time, 0, [0; 65_536]);
    while now() < end {
        taken += line.write(bytes).unwrap_or(0);
        let _ = line.read(&mut answers);
    }
    taken
}

#[test]
fn flood_on_a_line_costs_neither_memory_nor_the_other_boards() {
    let bench = Bench::new();
    let honest = board(&bench, "board-1");
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let line = format!("tcp:{}", listener.local_addr().expect("address"));
    let leader = bench.leader(&[&line, &honest.line]);
    honest.synced(bench.epoch(1).0);
    let mut line = opened(&listener);
    let before = leader.resident();

    let garbage: Vec<u8> = (0..=255).cycle().take(1 << 16).collect();
    let taken = flood(&mut line, &garbage, Duration::from_secs(4));
    assert!(taken < 20 << 20, "read at a bounded rate, and yet {taken} bytes");
    // Every address says hello, again and again as another start.
    let mut hellos = Vec::new();
    for boot in 0..3000_u32 {
        let address = u16::try_from(boot % 300).expect("small");
        let wants = Wants::new(Some("alpha"), true).expect("wants");
        let mut board = BoardEndpoint::new(EndpointLimits::line(1 << 16), boot, wants);
        let hello = board.poll_datagram(Duration::ZERO).expect("a hello");
        hellos.extend(encode_line(address, &hello).expect("it fits"));
    }
    flood(&mut line, &hellos, Duration::from_secs(4));
    let after = leader.resident();
    assert!(after < before + (256 << 20), "{before} bytes before, {after} after");
    leader.logged("a board is ignored");

    bench.rekey();
    honest.synced(bench.epoch(1).0);
    honest.say("untouched");
    leader.line("untouched");

    // Once it is over, a board on the same line is served again.
    drop(line);
    let mut line = opened(&listener);
    let wants = Wants::new(Some("alpha"), false).expect("wants");
    let (start, mut decoder) = (now(), quiver_link::LineDecoder::new());
    let mut late = BoardEndpoint::new(EndpointLimits::line(4096), 1 << 30, wants);
    eventually("a session on the flooded line", || {
        while let Some(datagram) = late.poll_datagram(start.elapsed()) {
            let frame = encode_line(0, &datagram).expect("it fits");
            line.write_all(&frame).ok()?;
        }
        let mut chunk = [0; 4096];
        let read = line.read(&mut chunk).unwrap_or(0);
        let mut bytes = &chunk[..read];
        while let Some(frame) = decoder.next_frame(&mut bytes) {
            if frame.address == 0 {
                late.handle_datagram(start.elapsed(), frame.datagram);
            }
        }
        late.handle_timeout(start.elapsed());
        sleep(Duration::from_millis(5));
        late.has_session().then_some(())
    });
}
