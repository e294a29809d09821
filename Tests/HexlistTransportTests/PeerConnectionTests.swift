import Foundation
import HexlistModel
import NIOCore
import Synchronization
import Testing

@testable import HexlistTransport

@Suite(.timeLimit(.minutes(5))) struct PeerConnectionTests {
    private func body(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) }
    }

    @Test("frames of each size travel both ways, complete and in order")
    func bothWays() async throws {
        let pair = try await Endpoint.pair()
        let bodies = [1, 2, 100, 8_192, 16_384, 16_385, 65_536, 1 << 20, 3].enumerated().map { body($0.offset, $0.element) }
        try await pair.accepted.on { $0.frameLimit = 1 << 20 }
        try await pair.dialled.on { $0.frameLimit = 1 << 20 }
        let left = try await pair.dialled.record()
        let right = try await pair.accepted.record()
        try await pair.dialled.send(bodies)
        try await pair.accepted.send(bodies.reversed())
        #expect(try await right.frames(bodies.count) == bodies)
        #expect(try await left.frames(bodies.count) == bodies.reversed())
        await pair.shutdown()
    }

    @Test("many small frames written at once arrive in order, in few bursts")
    func manyFrames() async throws {
        let pair = try await Endpoint.pair()
        let recorder = try await pair.accepted.record(Recorder(recordsBursts: true))
        try await pair.dialled.on { connection in
            for number in UInt32(0)..<20_000 {
                connection.write {
                    $0.writeInteger(UInt32(4)); $0.writeInteger(number)
                }
            }
        }
        var seen: UInt32 = 0
        var bursts = 0
        while seen < 20_000 {
            switch try await recorder.events.next() {
            case .frame(let body):
                #expect(body == withUnsafeBytes(of: seen.bigEndian) { Array($0) })
                seen += 1
            case .readCompleted: bursts += 1
            case .fault, .writable, .closed: throw Unexpected("the connection ended")
            }
        }
        // 160 kB in reads of 16 KiB, not in 20 000 reads.
        #expect(bursts < 100)
        await pair.shutdown()
    }

    @Test("frames that arrive byte by byte are decoded")
    func byteByByte() async throws {
        let pair = try await Endpoint.pair()
        let recorder = try await pair.accepted.record()
        var stream = ByteBuffer()
        for size in [1, 5, 300] { stream.writeFrame(body(size, size)) }
        for byte in stream.readableBytesView {
            // Each loop tick writes one byte, so each byte is a record and a packet of its own.
            try await pair.dialled.on { $0.write(ByteBuffer(bytes: [byte])) }
        }
        #expect(try await recorder.frames(3) == [1, 5, 300].map { body($0, $0) })
        await pair.shutdown()
    }

    @Test("no frame is lost while there is no delegate")
    func lateDelegate() async throws {
        let pair = try await Endpoint.pair()
        try await pair.dialled.send([[1], [2]])
        try await pair.dialled.on { $0.close() }
        #expect(try await pair.dialled.record().end() == .closed(nil))
        let recorder = try await pair.accepted.record()
        #expect(try await recorder.frames(2) == [[1], [2]])
        #expect(try await recorder.end() == .closed(nil))
        await pair.shutdown()
    }

    // MARK: Lengths

    @Test("a length outside the bounds is a fault before any byte of the body", arguments: [0, 8_193, 1 << 24, UInt32.max])
    func lengthFault(length: UInt32) async throws {
        let pair = try await Endpoint.pair()
        let right = try await pair.accepted.record(Recorder(onFault: { $0.write { $0.writeFrame([9]) } }))
        let left = try await pair.dialled.record()
        try await pair.dialled.on { connection in
            connection.write {
                $0.writeFrame([1])
                $0.writeInteger(length)
                $0.writeBytes([UInt8](repeating: 0, count: 70))
                $0.writeFrame([2])
            }
        }
        #expect(try await right.events.next() == .frame([1]))
        #expect(try await right.events.next() == .fault(length))
        #expect(try await right.events.next() == .closed(nil))
        // The final Bye still arrives, then the end.
        #expect(try await left.events.next() == .frame([9]))
        #expect(try await left.events.next() == .closed(nil))
        await pair.shutdown()
    }

    @Test("after a fault a sender that continues is cut off, and its bytes are not buffered")
    func faultAndFlood() async throws {
        let pair = try await Endpoint.pair()
        let right = try await pair.accepted.record()
        let left = try await pair.dialled.record(Recorder(onWritable: { $0.write(ByteBuffer(repeating: 1, count: 1 << 20)) }))
        try await pair.dialled.on { connection in
            connection.write(ByteBuffer(bytes: [0xFF, 0xFF, 0xFF, 0xFF]))
            connection.write(ByteBuffer(repeating: 1, count: 1 << 20))
        }
        #expect(try await right.events.next() == .fault(.max))
        #expect(try await right.events.next() == .closed(nil))
        guard case .closed = try await left.end() else { throw Unexpected("not closed") }
        await pair.shutdown()
    }

    @Test("the limit in effect when a header is read applies to its frame")
    func raisedLimit() async throws {
        let pair = try await Endpoint.pair()
        #expect(pair.accepted.frameLimit == 8 << 10)
        let recorder = try await pair.accepted.record(
            Recorder(onFrame: { connection, frame in connection.frameLimit = frame == [1] ? 20_000 : 100 }))
        try await pair.dialled.send([[1], body(2, 20_000), body(3, 101)])
        #expect(try await recorder.events.next() == .frame([1]))
        #expect(try await recorder.events.next() == .frame(body(2, 20_000)))
        #expect(try await recorder.events.next() == .fault(101))
        await pair.shutdown()
    }

    // MARK: Back-pressure

    @Test("a peer that is not read becomes unwritable, with bounded memory on both sides, and resumes without loss")
    func backPressure() async throws {
        let pair = try await Endpoint.pair()
        try await pair.accepted.on {
            $0.frameLimit = 1 << 20
            $0.isReading = false
        }
        let right = try await pair.accepted.record()
        let frame = body(1, 60_000)
        // The dialled connection sends until the kernel buffers at both ends are full.
        var sent = 0
        var largest = 0
        var isMoving = true
        while sent < 1_000, isMoving {
            let (written, pending) = try await Self.fill(pair, with: frame)
            sent += written
            largest = max(largest, pending)
            isMoving = try await Self.moves(pair)
        }
        #expect(sent < 1_000, "60 MB went into a receiver that reads nothing")
        // At most the water marks of the connection and of its channel, and one frame, are pending.
        #expect(largest < (512 << 10) + 65_000)
        #expect(right.events.now.isEmpty)
        try await pair.accepted.on { $0.isReading = true }
        #expect(try await right.frames(sent).allSatisfy { $0 == frame })
        await pair.shutdown()
    }

    @Test("small replies to a peer that does not read are coalesced into few buffers before they reach the channel")
    func fewRecords() async throws {
        let pair = try await Endpoint.pair()
        try await pair.accepted.on {
            $0.frameLimit = 1 << 20
            $0.isReading = false
        }
        let right = try await pair.accepted.record()
        let frame = body(1, 60_000)
        var sent = 0
        repeat { sent += try await Self.fill(pair, with: frame).written } while try await Self.moves(pair)
        let before = try await pair.dialled.on { $0.channelBytes }
        #expect(before > 0)
        // One frame per loop tick, like replies to frames of separate ticks.
        for _ in 0..<500 {
            try await pair.dialled.on { $0.write { $0.writeFrame([1, 2, 3]) } }
            try await pair.dialled.on { _ in }
        }
        #expect(try await pair.dialled.on { $0.channelBytes } == before)
        try await pair.accepted.on { $0.isReading = true }
        let frames = try await right.frames(sent + 500)
        #expect(frames.prefix(sent).allSatisfy { $0 == frame } && frames.dropFirst(sent).allSatisfy { $0 == [1, 2, 3] })
        await pair.shutdown()
    }

    /// Writes a frame repeatedly until the dialled side is not writable.
    private static func fill(_ pair: Pair, with frame: [UInt8]) async throws -> (written: Int, pending: Int) {
        try await pair.dialled.on { connection in
            var written = 0
            while connection.isWritable {
                connection.write { $0.writeFrame(frame) }
                written += 1
            }
            return (written, connection.pendingWriteBytes)
        }
    }

    /// Whether the kernels still accept bytes; false if nothing moves for many ticks of both loops.
    private static func moves(_ pair: Pair) async throws -> Bool {
        let before = try await pair.dialled.on { $0.pendingWriteBytes }
        for _ in 0..<200 {
            try await pair.accepted.on { _ in }
            let (isWritable, pending) = try await pair.dialled.on { ($0.isWritable, $0.pendingWriteBytes) }
            if isWritable || pending < before { return true }
        }
        return false
    }

    @Test("reading stops within a burst at the exact frame, and no frame is lost")
    func pauseInBurst() async throws {
        let pair = try await Endpoint.pair()
        let recorder = try await pair.accepted.record(
            Recorder(recordsBursts: true, onFrame: { connection, _ in connection.isReading = false }))
        try await pair.dialled.send((0..<50).map { [UInt8($0)] })
        for number in 0..<50 {
            #expect(try await recorder.events.next() == .frame([UInt8(number)]))
            #expect(try await recorder.events.next() == .readCompleted)
            #expect(recorder.events.now.isEmpty)
            try await pair.accepted.on { $0.isReading = true }
        }
        await pair.shutdown()
    }

    @Test("frames received before the end are delivered before it, however late")
    func endWhilePaused() async throws {
        let pair = try await Endpoint.pair()
        let recorder = try await pair.accepted.record(Recorder(onFrame: { connection, _ in connection.isReading = false }))
        try await pair.dialled.send((0..<10).map { [UInt8($0)] })
        try await pair.dialled.on { $0.close() }
        _ = try await pair.dialled.record().end()
        for number in 0..<10 {
            #expect(try await recorder.events.next() == .frame([UInt8(number)]))
            #expect(recorder.events.now.isEmpty)
            try await pair.accepted.on { $0.isReading = true }
        }
        #expect(try await recorder.events.next() == .closed(nil))
        #expect(try await pair.accepted.on { $0.isOpen } == false)
        await pair.shutdown()
    }

    @Test("a session that closes while frames are queued gets the end once")
    func closeWhilePaused() async throws {
        let pair = try await Endpoint.pair()
        let recorder = try await pair.accepted.record(Recorder(onFrame: { connection, _ in connection.isReading = false }))
        try await pair.dialled.send([[1], [2], [3]])
        #expect(try await recorder.events.next() == .frame([1]))
        try await pair.dialled.on { $0.abort() }
        _ = try await pair.dialled.record().end()
        try await pair.right.reaches([0, 0])
        try await pair.accepted.on {
            $0.close()
            $0.close()
            $0.abort()
        }
        #expect(try await recorder.events.next() == .closed(nil))
        try await pair.accepted.on { $0.abort() }
        #expect(recorder.events.now.isEmpty)
        await pair.shutdown()
    }

    @Test("a writer is notified that it may continue, once per stop")
    func writability() async throws {
        let pair = try await Endpoint.pair()
        try await pair.accepted.on { $0.frameLimit = 1 << 20 }
        let right = try await pair.accepted.record()
        let frame = body(3, 100_000)
        let count = Mutex(0)
        let fill: @Sendable (PeerConnection) -> Void = { connection in
            while connection.isWritable, count.withLock({ $0 }) < 400 {
                connection.write { $0.writeFrame(frame) }
                count.withLock { $0 += 1 }
            }
        }
        _ = try await pair.dialled.record(Recorder(onWritable: fill))
        try await pair.dialled.on(fill)
        #expect(try await right.frames(400).allSatisfy { $0 == frame })
        #expect(try await pair.dialled.on { $0.pendingWriteBytes } == 0)
        await pair.shutdown()
    }

    @Test("flush sends immediately; otherwise the loop tick does")
    func flush() async throws {
        let pair = try await Endpoint.pair()
        let right = try await pair.accepted.record()
        let bodies = [body(1, 1_000), body(2, 2_000)]
        let waiting = try await pair.dialled.on { connection in
            bodies.map { body in
                connection.write { $0.writeFrame(body) }
                defer { connection.flush() }
                return connection.pendingWriteBytes
            } + [connection.pendingWriteBytes]
        }
        #expect(waiting == [1_004, 2_004, 0])
        #expect(try await right.frames(2) == bodies)
        await pair.shutdown()
    }

    @Test("flush on a broken connection reports the end afterwards")
    func flushBroken() async throws {
        let pair = try await Endpoint.pair()
        let left = try await pair.dialled.record()
        let port = pair.accepted.remotePort
        try await pair.dialled.on { connection in
            breakSocket(of: port)
            connection.write { $0.writeFrame([7]) }
            left.during { connection.flush() }
        }
        guard case .closed = try await left.end() else { throw Unexpected("no end") }
        await pair.shutdown()
    }

    // MARK: End

    @Test("bytes written before close arrive, both sides end without error, and later calls do nothing")
    func orderlyClose() async throws {
        let pair = try await Endpoint.pair()
        let left = try await pair.dialled.record()
        let right = try await pair.accepted.record()
        try await pair.accepted.on { $0.frameLimit = 1 << 20 }
        let big = body(1, 900_000)
        try await pair.dialled.on { connection in
            connection.write { $0.writeFrame(big) }
            connection.close()
            #expect(!connection.isOpen)
            #expect(!connection.isWritable)
            connection.write { $0.writeFrame([7]) }
            connection.flush()
            connection.close()
        }
        #expect(try await right.events.next() == .frame(big))
        #expect(try await right.events.next() == .closed(nil))
        #expect(try await left.events.next() == .closed(nil))
        try await pair.right.reaches([0, 0])
        await pair.shutdown()
    }

    @Test("both sides close at once")
    func bothClose() async throws {
        let pair = try await Endpoint.pair()
        let left = try await pair.dialled.record()
        let right = try await pair.accepted.record()
        async let one: Void = pair.dialled.on { $0.close() }
        async let other: Void = pair.accepted.on { $0.close() }
        _ = try await (one, other)
        #expect(try await left.events.next() == .closed(nil))
        #expect(try await right.events.next() == .closed(nil))
        await pair.shutdown()
    }

    @Test("close waits for a peer that does not read, at most for its timeout")
    func closeUnread() async throws {
        let pair = try await Endpoint.pair()
        try await pair.accepted.on { $0.isReading = false }
        _ = try await pair.accepted.record()
        let left = try await pair.dialled.record()
        let begin = ContinuousClock.now
        try await pair.dialled.on { connection in
            connection.write(ByteBuffer(repeating: 0, count: 20 << 20))
            connection.close()
        }
        #expect(try await left.end() == .closed(nil))
        let took = begin.duration(to: .now)
        #expect(.milliseconds(1_900) < took, "\(took)")
        await pair.shutdown()
    }

    @Test("an aborted connection is an error at the other side")
    func abort() async throws {
        let pair = try await Endpoint.pair()
        let left = try await pair.dialled.record()
        let right = try await pair.accepted.record()
        try await pair.dialled.on { connection in
            connection.write { $0.writeFrame([1]) }
            connection.abort()
        }
        #expect(try await left.events.next() == .closed(nil))
        guard case .closed(.some) = try await right.end() else { throw Unexpected("no error") }
        await pair.shutdown()
    }

    @Test("an end within a frame is an error")
    func truncated() async throws {
        let pair = try await Endpoint.pair()
        let right = try await pair.accepted.record()
        try await pair.dialled.on { connection in
            connection.write(ByteBuffer(bytes: [0, 0, 0, 9, 1, 2, 3]))
            connection.close()
        }
        #expect(try await right.events.next() == .closed("\(ConnectionFault.truncatedFrame)"))
        await pair.shutdown()
    }

    @Test("a session that closes while handling a frame gets no further one")
    func closeInBurst() async throws {
        let pair = try await Endpoint.pair()
        let right = try await pair.accepted.record(
            Recorder(onFrame: { connection, _ in
                connection.write { $0.writeFrame([8]) }
                connection.close()
            }))
        let left = try await pair.dialled.record()
        try await pair.dialled.send((0..<500).map { [UInt8(truncatingIfNeeded: $0)] })
        #expect(try await right.events.next() == .frame([0]))
        #expect(try await right.events.next() == .closed(nil))
        #expect(try await left.events.next() == .frame([8]))
        #expect(try await left.events.next() == .closed(nil))
        await pair.shutdown()
    }
}

/// Closes the socket of this process with the given local port, so that the next write fails.
private func breakSocket(of port: UInt16) {
    for descriptor in Int32(3)..<1_024 {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
        }
        guard result == 0, address.sin_family == sa_family_t(AF_INET), UInt16(bigEndian: address.sin_port) == port else { continue }
        shutdown(descriptor, Int32(SHUT_RDWR))
    }
}
