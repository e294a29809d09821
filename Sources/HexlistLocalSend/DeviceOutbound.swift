public import HexlistModel

/// The delivery of one hex to a device, a state machine: a `prepare-upload`, which the user of the device answers, and an upload for each
/// accepted file. Performs no IO.
///
/// One request is in flight at a time. The same hex can be sent again later with the same IDs of files; a device does not recognise it.
public struct DeviceOutbound: Sendable {
    public typealias Instant = ContinuousClock.Instant

    public enum Action: Sendable, Equatable {
        /// Send `prepare-upload`, and call `prepared` with its reply.
        case prepare(pin: String?)
        /// Upload a file, named by its index, and call `uploaded` with the reply.
        case upload(Int, session: String, token: String)
        /// End the request in flight without a call of `prepared` or `uploaded`.
        case abort
        /// Send `cancel`, so that the device waits for no more files. The reply does not matter.
        case cancel(session: String)
        /// Delete the PIN of the device, because the device refused it.
        case forgetPIN
        /// Call `timePassed` at this instant.
        case wait(until: Instant)
        /// The delivery is over.
        case end(End)
    }

    public enum End: Sendable, Equatable {
        /// The app has the hex. `note` names the parts that it left out.
        case delivered(note: String?)
        case declined
        /// - Parameter message: a sentence for users.
        case failed(message: String)
        /// The device does not answer. The hex is to be sent again after the next proof of the device.
        case away(String)
        case otherCertificate(Fingerprint)
    }

    /// The reason why the hex is not delivered yet; `nil` while bytes are sent.
    public enum Wait: Sendable, Equatable {
        /// The user of the device has to answer.
        case answer
        /// The device requires a PIN.
        case pin
        /// - Parameter until: the next attempt.
        case retry(until: Instant)
    }

    private enum State: Sendable {
        case idle
        case asking
        case waitingForPIN
        case pausing(until: Instant)
        case uploading(Upload)
        case ended
    }

    private struct Upload: Sendable {
        var session: UploadSession
        /// Indices of the accepted files, in order.
        var accepted: [Int]
        /// The number of uploaded files.
        var done = 0
        /// Attempts to upload the current file.
        var attempts = 1
    }

    /// The time for an answer of the device's user. The connection is then closed, which the app interprets as a withdrawal.
    public static let answerTime = Duration.seconds(600)
    /// The pauses after the responses 409 (another transfer is in progress) and 429 (too many requests).
    static let busyPause = Duration.seconds(10)
    static let manyPause = Duration.seconds(60)
    /// Maximum attempts to upload a file whose checksum the device finds wrong. The app permits no more.
    static let checksumAttempts = 3
    /// The number of failures after which the hex fails.
    static let failureLimit = 8
    static let backoff = Backoff(from: .seconds(2), to: .seconds(300))
    static let shortestPause = Duration.seconds(1)

    private let files: [String]
    private var pin: String?
    private var state = State.idle
    private var failures = 0
    /// The last failure, a sentence for users.
    public private(set) var problem: String?

    /// - Parameters:
    ///   - files: the IDs of the files in the request, in order; a text has one ID.
    ///   - pin: the PIN of the device, if the user has set one.
    public init(files: [String], pin: String?) {
        self.files = files
        self.pin = pin
    }

    public var wait: Wait? {
        switch state {
        case .asking: .answer
        case .waitingForPIN: .pin
        case .pausing(let until): .retry(until: until)
        case .idle, .uploading, .ended: nil
        }
    }

    // MARK: Events

    public mutating func start() -> [Action] {
        state = .asking
        return [.prepare(pin: pin)]
    }

    /// Handles the reply to `prepare-upload`.
    public mutating func prepared(_ reply: DeviceReply, now: Instant, using random: inout some RandomNumberGenerator) -> [Action] {
        guard case .asking = state else { return [] }
        switch reply {
        case .response(204, _): return end(.delivered(note: nil))
        case .response(200, let body):
            guard let session = try? UploadSession(parsing: body) else {
                return failed("The device sent an invalid response", now, &random)
            }
            let accepted = files.indices.filter { session.token(of: files[$0]) != nil }
            guard !accepted.isEmpty else { return [.cancel(session: session.id)] + end(.declined) }
            return upload(Upload(session: session, accepted: accepted))
        case .response(401, _):
            guard pin != nil else {
                state = .waitingForPIN
                return []
            }
            pin = nil
            state = .waitingForPIN
            problem = "The device refused the PIN."
            return [.forgetPIN]
        case .response(403, _): return end(.declined)
        // The user did not answer; the closed connection withdraws the request.
        case .timeout: return end(.away("did not answer within 10 minutes"))
        default: return refused(reply, now, &random)
        }
    }

    /// Handles the reply to an upload.
    public mutating func uploaded(_ reply: DeviceReply, now: Instant, using random: inout some RandomNumberGenerator) -> [Action] {
        guard case .uploading(var upload) = state else { return [] }
        switch reply {
        case .response(200...204, _):
            upload.done += 1
            upload.attempts = 1
            guard upload.done == upload.accepted.count else { return self.upload(upload) }
            let isPartial = upload.done < files.count
            return end(.delivered(note: isPartial ? "\(upload.done) of \(files.count) files accepted" : nil))
        case .response(422, _) where upload.attempts < Self.checksumAttempts:
            upload.attempts += 1
            return self.upload(upload)
        case .response(422, _):
            return [.cancel(session: upload.session.id)] + failed("The device received a file with errors three times", now, &random)
        case .file(let why): return [.cancel(session: upload.session.id)] + end(.failed(message: why))
        case .unreachable, .otherCertificate: return refused(reply, now, &random)
        default: return [.cancel(session: upload.session.id)] + refused(reply, now, &random)
        }
    }

    /// Handles a PIN that the user set or deleted.
    public mutating func pinChanged(to pin: String?) -> [Action] {
        self.pin = pin
        guard case .waitingForPIN = state, pin != nil else { return [] }
        return start()
    }

    public mutating func timePassed(now: Instant) -> [Action] {
        guard case .pausing(let until) = state else { return [] }
        return now >= until ? start() : [.wait(until: until)]
    }

    /// Tries again now, at the user's request.
    public mutating func retryNow() -> [Action] {
        switch state {
        case .pausing, .waitingForPIN: start()
        case .idle, .asking, .uploading, .ended: []
        }
    }

    /// Ends the delivery without a result, because the hex is cancelled, or because this machine stops.
    public mutating func withdraw() -> [Action] {
        defer { state = .ended }
        return switch state {
        case .idle, .ended, .waitingForPIN, .pausing: []
        case .asking: [.abort]
        case .uploading(let upload): [.abort, .cancel(session: upload.session.id)]
        }
    }

    // MARK: States

    private mutating func upload(_ upload: Upload) -> [Action] {
        let file = upload.accepted[upload.done]
        state = .uploading(upload)
        return [.upload(file, session: upload.session.id, token: upload.session.token(of: files[file]) ?? "")]
    }

    /// Handles the replies that have the same meaning for all requests.
    private mutating func refused(_ reply: DeviceReply, _ now: Instant, _ random: inout some RandomNumberGenerator) -> [Action] {
        switch reply {
        case .response(409, _): return pause(Self.busyPause, "The device is busy with another transfer.", now)
        case .response(429, _): return pause(Self.manyPause, "The device refuses requests for a while.", now)
        case .response(let status, _): return failed("The device answered \(status)", now, &random)
        case .unreachable(let why): return end(.away(why))
        case .otherCertificate(let other): return end(.otherCertificate(other))
        case .closed: return failed("The device closed the connection", now, &random)
        case .timeout: return failed("The device stopped answering", now, &random)
        case .invalid(let why): return failed(why, now, &random)
        case .file(let why): return end(.failed(message: why))
        }
    }

    /// Pauses before the next attempt, or ends after too many.
    /// - Parameter why: a sentence without its period.
    private mutating func failed(_ why: String, _ now: Instant, _ random: inout some RandomNumberGenerator) -> [Action] {
        failures += 1
        guard failures < Self.failureLimit else {
            return end(.failed(message: "Failed \(failures) times. Last: \(why)."))
        }
        let pause = Self.backoff.jitteredPause(after: failures, shortest: Self.shortestPause, using: &random)
        return self.pause(pause, "\(why).", now)
    }

    private mutating func pause(_ pause: Duration, _ problem: String, _ now: Instant) -> [Action] {
        self.problem = problem
        state = .pausing(until: now + pause)
        return [.wait(until: now + pause)]
    }

    private mutating func end(_ end: End) -> [Action] {
        state = .ended
        return [.end(end)]
    }
}
