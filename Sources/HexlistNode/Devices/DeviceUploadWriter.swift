import HexlistFiles
import HexlistTransport
import NIOCore

/// Writes the body of one `upload` request to a partial file, on the file threads, one write at a time. The connection is read at most
/// `waitingBytes` ahead. Confined to its event loop; that makes it `Sendable`.
final class DeviceUploadWriter: @unchecked Sendable {
    /// Maximum number of received bytes that wait to be written; above it, the connection is not read.
    private static let waitingBytes = 1 << 20

    enum End: Sendable {
        /// The file is durable in the folder of its upload session, with this name and this SHA-256.
        case stored(name: String, sha256: [UInt8])
        case otherDigest
        case failed(String)
        /// The connection closed, or the session ended.
        case aborted
    }

    private let exchange: IncomingDeviceRequest
    private let part: PartFile
    private let threads: FileThreads
    private let eventLoop: any EventLoop
    private let progressed: () -> Bool
    private var completion: ((End) -> Void)?
    private var waiting = ByteBuffer()
    private var received: Int64 = 0
    private var isWriting = false
    private var isWhole: Bool?

    /// - Parameters:
    ///   - progressed: called after each chunk; returns whether to continue.
    ///   - completion: called once.
    init(
        _ exchange: IncomingDeviceRequest, into part: PartFile, _ threads: FileThreads, on eventLoop: any EventLoop,
        progressed: @escaping () -> Bool, completion: @escaping (End) -> Void
    ) {
        self.exchange = exchange
        self.part = part
        self.threads = threads
        self.eventLoop = eventLoop
        self.progressed = progressed
        self.completion = completion
    }

    func start() {
        exchange.stream(
            { self.take($0) },
            ended: { isWhole in
                self.isWhole = isWhole
                self.write()
            })
    }

    private func take(_ bytes: ByteBuffer) {
        guard completion != nil else { return }
        received += Int64(bytes.readableBytes)
        guard progressed() else { return end(.aborted) }
        guard received <= part.specification.size else { return end(.failed("It is longer than announced.")) }
        waiting.writeImmutableBuffer(bytes)
        if waiting.readableBytes >= Self.waitingBytes { exchange.setPaused(true) }
        write()
    }

    private func write() {
        guard completion != nil, !isWriting else { return }
        guard waiting.readableBytes > 0 else {
            if let isWhole { isWhole ? finish() : end(.aborted) }
            return
        }
        let bytes = waiting
        waiting = ByteBuffer()
        isWriting = true
        threads.run(on: eventLoop) { [part] in try bytes.withUnsafeReadableBytes { bytes throws in try part.append(bytes) } }
            .assumeIsolated().whenComplete { result in
                self.isWriting = false
                guard self.completion != nil else { return self.part.discardOn(self.threads, self.eventLoop) }
                if case .failure(let error) = result { return self.end(.failed(Self.text(of: error))) }
                self.exchange.setPaused(false)
                self.write()
            }
    }

    private func finish() {
        guard received == part.specification.size else { return end(.failed("It is shorter than announced.")) }
        isWriting = true
        threads.run(on: eventLoop) { [part] in
            let placement = try part.finish()
            return (placement.name, part.digest)
        }.assumeIsolated().whenComplete { result in
            self.isWriting = false
            switch result {
            case .success(let (name, digest)): self.end(.stored(name: name, sha256: digest))
            case .failure(FileFault.otherBytes): self.end(.otherDigest)
            case .failure(let error): self.end(.failed(Self.text(of: error)))
            }
        }
    }

    private func end(_ end: End) {
        guard let completion else { return }
        self.completion = nil
        if case .stored = end {} else if !isWriting { part.discardOn(threads, eventLoop) }
        completion(end)
    }

    private static func text(of error: any Error) -> String {
        (error as? FileFault) == .diskFull ? "The disk is full." : "It could not be written."
    }
}

extension PartFile {
    /// Deletes the partial file on the file threads.
    fileprivate func discardOn(_ threads: FileThreads, _ eventLoop: any EventLoop) {
        _ = threads.run(on: eventLoop) { self.discard() }
    }
}
