import HexlistModel

/// The state of a listener that starts on demand, with the callers that wait for the start. Owned by the actor that runs the listener.
struct ListenerState<Listener: Sendable> {
    private enum State {
        case closed
        /// The listener is starting; these callers wait for it.
        case opening([CheckedContinuation<Listener, any Error>])
        case open(Listener)
        case stopped
    }

    private var state = State.closed
    /// A stream with an element for each requested start. The actor starts the listener for each element.
    let startRequests: AsyncStream<Void>
    private let requests: AsyncStream<Void>.Continuation

    init() { (startRequests, requests) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1)) }

    var isClosed: Bool { if case .closed = state { true } else { false } }

    /// The listener while it is open.
    var open: Listener? { if case .open(let listener) = state { listener } else { nil } }

    /// Requests a start if the listener is closed; otherwise does nothing.
    mutating func requestStart() {
        guard isClosed else { return }
        state = .opening([])
        requests.yield()
    }

    /// Resumes a caller with the open listener. If the listener is closed, requests a start, and resumes the caller after it.
    mutating func wait(_ continuation: CheckedContinuation<Listener, any Error>) {
        requestStart()
        switch state {
        case .open(let listener): continuation.resume(returning: listener)
        case .opening(let others): state = .opening(others + [continuation])
        case .closed, .stopped: continuation.resume(throwing: Self.stopping)
        }
    }

    mutating func opened(_ listener: Listener) { become(.open(listener), .success(listener)) }

    mutating func failed(_ error: any Error) { become(.closed, .failure(error)) }

    /// Sets the state to closed, after the listener has ended.
    mutating func closed() { if case .open = state { state = .closed } }

    /// Handles a failed start. Requests another start if callers wait for the listener; otherwise sets the state to closed.
    mutating func startAgainIfAwaited() {
        if case .opening(let waiting) = state, !waiting.isEmpty { requests.yield() } else { state = .closed }
    }

    /// Sets the state to stopped, because the daemon ends. Waiting callers and later ones get an error.
    mutating func stopped() { become(.stopped, .failure(Self.stopping)) }

    private static var stopping: HexlistError { HexlistError(.gone, "hexlistd is stopping.") }

    private mutating func become(_ new: State, _ result: Result<Listener, any Error>) {
        if case .opening(let waiting) = state { for continuation in waiting { continuation.resume(with: result) } }
        state = new
    }
}
