import HexlistTransport
import HexlistWire
import NIOCore
import Synchronization
import Testing

/// A session that records the calls of its connection.
final class Recorder: PeerConnectionDelegate, Sendable {
    enum Event: Sendable, Equatable {
        case frame([UInt8])
        case readCompleted
        case fault(UInt32)
        case writable
        /// The end of the connection, with the text of the error.
        case closed(String?)
    }

    let events = Inbox<Event>()
    /// Called for each frame, on the loop and inside the delegate call.
    private let onFrame: @Sendable (PeerConnection, [UInt8]) -> Void
    private let onFault: @Sendable (PeerConnection) -> Void
    private let onWritable: @Sendable (PeerConnection) -> Void
    private let recordsBursts: Bool
    private let isInside = Mutex(false)

    init(
        recordsBursts: Bool = false, onFrame: @escaping @Sendable (PeerConnection, [UInt8]) -> Void = { _, _ in },
        onFault: @escaping @Sendable (PeerConnection) -> Void = { _ in },
        onWritable: @escaping @Sendable (PeerConnection) -> Void = { _ in }
    ) {
        self.recordsBursts = recordsBursts
        self.onFrame = onFrame
        self.onFault = onFault
        self.onWritable = onWritable
    }

    /// Runs `work` as a delegate call, and expects that no other one is in progress.
    private func inside(_ connection: PeerConnection, _ work: () -> Void) {
        connection.eventLoop.preconditionInEventLoop()
        #expect(!isInside.withLock { $0 }, "called from within another call of the delegate, or of a method of the connection")
        isInside.withLock { $0 = true }
        work()
        isInside.withLock { $0 = false }
    }

    /// Expects that no delegate call happens during a call to the connection.
    func during(_ work: () -> Void) {
        isInside.withLock { $0 = true }
        work()
        isInside.withLock { $0 = false }
    }

    func received(frame: [UInt8], on connection: PeerConnection) {
        inside(connection) {
            onFrame(connection, frame)
            events.put(.frame(frame))
        }
    }

    func readCompleted(on connection: PeerConnection) {
        inside(connection) { if recordsBursts { events.put(.readCompleted) } }
    }

    func frameFault(_ length: UInt32, on connection: PeerConnection) {
        inside(connection) {
            onFault(connection)
            events.put(.fault(length))
        }
    }

    func writabilityChanged(on connection: PeerConnection) {
        inside(connection) {
            onWritable(connection)
            events.put(.writable)
        }
    }

    func closed(on connection: PeerConnection, error: (any Error)?) {
        inside(connection) { events.put(.closed(error.map { "\($0)" })) }
    }

    /// The bodies of the next frames.
    func frames(_ count: Int) async throws -> [[UInt8]] {
        var frames: [[UInt8]] = []
        while frames.count < count {
            switch try await events.next() {
            case .frame(let body): frames.append(body)
            case .readCompleted, .writable: continue
            case .fault, .closed: return frames
            }
        }
        return frames
    }

    /// The next end of the connection; events before it are discarded.
    func end() async throws -> Event {
        while true {
            let event = try await events.next()
            if case .closed = event { return event }
        }
    }
}

extension PeerConnection {
    /// Runs `work` on the connection's loop.
    @discardableResult
    func on<Result: Sendable>(_ work: @escaping @Sendable (PeerConnection) -> Result) async throws -> Result {
        try await eventLoop.submit { work(self) }.get()
    }

    func record(_ recorder: Recorder = Recorder()) async throws -> Recorder {
        try await on { $0.delegate = recorder }
        return recorder
    }

    func send(_ bodies: [[UInt8]]) async throws {
        try await on { connection in for body in bodies { connection.write { $0.writeFrame(body) } } }
    }
}

extension ByteBuffer {
    mutating func writeFrame(_ body: [UInt8]) {
        writeInteger(UInt32(body.count))
        writeBytes(body)
    }
}
