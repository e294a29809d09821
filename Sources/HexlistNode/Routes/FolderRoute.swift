import HexlistEnvelope
import HexlistFiles
import HexlistModel
import HexlistSystem

/// A shared folder with a mailbox for each peer. Files are read and written on the file threads.
final class FolderRoute: Route, @unchecked Sendable {
    /// The pause between two rounds of reading, because the kernel may not report each change.
    private static let localInterval = Duration.seconds(300)
    /// The pause between two rounds on a network file system, because the kernel does not report changes by other machines.
    private static let networkInterval = Duration.seconds(30)

    let configuration: RouteConfiguration
    let mailbox: FolderMailboxes
    private var watch: FolderWatch?
    private(set) var fault: RouteFault?
    private(set) var interval = FolderRoute.localInterval
    let envelopeBytes = Envelope.sizes.upperBound

    /// - Parameter path: an absolute path.
    init(_ configuration: RouteConfiguration, path: String, _ coder: EnvelopeCoder) {
        self.configuration = configuration
        mailbox = FolderMailboxes(path: path, coder)
    }

    func start(_ node: isolated Node) {}

    func stop() {
        watch?.cancel()
        watch = nil
    }

    func open(
        _ trusts: [Fingerprint: Trust], leavingOut postponed: PostponedEnvelopes, _ node: isolated Node,
        then completion: @escaping @Sendable (Result<MailboxRoundResult, any Error>, isolated Node) -> Void
    ) {
        let now = node.clocks.milliseconds
        let instant = node.clocks.now
        node.onFileThreads { [mailbox] in
            try mailbox.create()
            var arrivals = try mailbox.arrivals(
                now: now, keepsIncomplete: !postponed.isFull, leavingOut: { postponed.contains($0, now: instant) }
            ) { trusts[$0] ?? .stranger }
            // The next round would read the same files, because they cannot be postponed.
            if postponed.isFull, arrivals.letters.isEmpty, arrivals.dropped.isEmpty { arrivals.hasMore = false }
            return (arrivals, mailbox.isOfNetwork)
        } then: { [weak self] (result: Result<(MailboxRoundResult, Bool), any Error>, node) in
            guard let self else { return }
            switch result {
            case .success((let arrivals, let isOfNetwork)):
                interval = isOfNetwork ? Self.networkInterval : Self.localInterval
                if fault != nil {
                    fault = nil
                    node.routes.worksAgain(self, node)
                }
                watchMailbox(node)
                completion(.success(arrivals), node)
            case .failure(let error):
                fail(error, node)
                completion(.failure(error), node)
            }
        }
    }

    /// Watches the mailbox, which exists after the first round.
    private func watchMailbox(_ node: isolated Node) {
        guard watch == nil else { return }
        watch = try? FolderWatch.additions(in: mailbox.ownPath) { [weak node, name] in
            node?.onLoop { $0.routes.reader(name)?.envelopeArrived($0) }
        }
    }

    private func fail(_ error: any Error, _ node: isolated Node) {
        fault = RouteFault(text: Self.text(of: error))
        // The folder may have been replaced.
        watch?.cancel()
        watch = nil
    }

    private static func text(of error: any Error) -> String {
        switch error as? FileFault {
        case .notFound?: "the folder does not exist"
        case .notFolder?, .notRegular?: "it is not a folder"
        case let fault?: "\(fault)"
        case nil: "\(error)"
        }
    }

    func remove(
        _ envelopes: [String], _ node: isolated Node, then completion: @escaping @Sendable ([String], isolated Node) -> Void
    ) {
        node.onFileThreads { [mailbox] in
            envelopes.filter { !mailbox.remove($0) }
        } then: { result, node in
            if case .success(let left) = result { completion(left, node) }
        }
    }

    func post(
        _ letters: [[[UInt8]]], to key: Fingerprint, card: Card?, _ node: isolated Node,
        then completion: @escaping @Sendable (PostResult, isolated Node) -> Void
    ) {
        let now = node.clocks.milliseconds
        node.onFileThreads { [mailbox] in
            try mailbox.check()
            guard let recipient = mailbox.card(of: key, known: card) else { return PostResult(obstacle: .noMailbox) }
            var result = PostResult()
            for (index, frames) in letters.enumerated() {
                do {
                    result.posted[index] = try mailbox.post(frames, to: recipient, at: now)
                } catch {
                    // The fault concerns only this recipient, because other programs can replace its mailbox and card.
                    result.obstacle = .fault(RouteFault(text: Self.text(of: error)))
                    break
                }
            }
            return result
        } then: { [weak self] (result: Result<PostResult, any Error>, node) in
            switch result {
            case .success(let posted): completion(posted, node)
            case .failure(let error):
                self?.fail(error, node)
                // Starts a round of the reader, which detects when the folder works again.
                if let self { node.routes.reader(name)?.envelopeArrived(node) }
                completion(PostResult(obstacle: .fault(RouteFault(text: Self.text(of: error)))), node)
            }
        }
    }

    func present(
        _ files: [EnvelopeFileName], of peer: PeerID, _ node: isolated Node,
        then completion: @escaping @Sendable (Set<EnvelopeFileName>, isolated Node) -> Void
    ) {
        node.onFileThreads { [mailbox] in
            Set(files.filter { mailbox.contains($0, of: peer) })
        } then: { result, node in
            // If the folder cannot be read, the files count as present, so that nothing is posted twice.
            completion((try? result.get()) ?? Set(files), node)
        }
    }

    func withdraw(_ files: [EnvelopeFileName], of peer: PeerID, _ node: isolated Node) {
        node.onFileThreads { [mailbox] in
            for file in files { mailbox.withdraw(file, of: peer) }
        } then: { _, _ in
        }
    }
}
