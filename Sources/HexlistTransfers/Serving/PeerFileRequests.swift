import Crypto
import HexlistAPI
import HexlistFiles
import HexlistLists
import HexlistModel
import HexlistStore
import HexlistTransport
import NIOCore

/// Answers requests of a peer for files, on a file thread: looks them up in the store, opens the files, and reads small files.
struct PeerFileRequests: Sendable {
    /// The answer to one request, and data for the log and for statistics.
    struct Reply: Sendable {
        var answer: FileAnswer
        /// The share with the file or folder; `nil` if the request is for an offer.
        var share: ShareRow?
        /// Whether the answer is a listing, which may be long.
        var isList = false
        /// The listing that has to be read before it can be sent; `nil` if there is none.
        var reading: FolderPageReader?
        /// For an offered file: its size, and the offset of the first requested byte.
        var offered: (bytes: Int64, from: Int64)?
        /// For an offered file that cannot be sent: the offer, the reason, and the id of the outbox row with the offer.
        var lost: (offer: OfferRow, problem: OfferProblem, outbox: Int64?)?
        /// The reason why this machine could not answer, for the log.
        var fault: String?

        static let notFound = Reply(answer: FileAnswers.notFound)
        static func broken(_ fault: any Error) -> Reply { Reply(answer: FileAnswers.broken, fault: "\(fault)") }

        /// Answers with 404 in most cases, so that the peer does not learn why the file cannot be opened.
        static func failed(_ fault: FileFault) -> Reply {
            guard case .system = fault else { return .notFound }
            return .broken(fault)
        }

        /// Returns this reply with a listing that was read.
        func with(_ listing: FolderListing) -> Reply { Reply(answer: FileAnswers.list(listing), share: share, isList: true) }
    }

    let peer: PeerID
    let store: HexStore
    let tagKey: SymmetricKey
    /// Milliseconds since 1970.
    let now: Int64
    /// Called when the last byte of an offered file was sent.
    let sent: @Sendable (OfferRow) -> Void

    /// Answers the first requests, at least one. Stops after a large file or a listing, and when the small files in memory have
    /// `FileLimits.togetherBytes`. Blocks.
    func answers(to requests: [FileRequest]) -> [Reply] {
        let looked: [Result<LookupResult, any Error>]
        do {
            looked = try store.readSync { reader in
                var shares: [[UInt8]: ShareRow?] = [:]
                return requests.map { request in Result { try lookUp(request, reader, &shares) } }
            }
        } catch {
            return [.broken(error)]
        }
        var made: [Reply] = []
        var room = FileLimits.togetherBytes
        for (request, found) in zip(requests, looked) {
            let answer = self.answer(request, found)
            made.append(answer)
            if case .file(_, let range) = answer.answer.body, !range.isEmpty { break }
            room -= answer.answer.length
            if answer.isList || room <= 0 { break }
        }
        return made
    }

    private enum LookupResult {
        case offer(OfferRow)
        case shares([ShareRow])
        case entry(ShareRow, SharePath, FileRequestTarget.EntryQuery)
        case lists(ListRequestTarget)
        case nothing
    }

    private func lookUp(_ request: FileRequest, _ reader: StoreReader, _ shares: inout [[UInt8]: ShareRow?]) throws -> LookupResult {
        switch FileRequestTarget(request.target) {
        case .offer(let offer): return try reader.offer(offer.bytes, to: peer).map(LookupResult.offer) ?? .nothing
        case .shares: return .shares(try reader.shares(for: peer))
        case .entry(let name, let path, let query):
            let key = Array(name.utf8)
            let row = try shares[key] ?? reader.share(name, for: peer)
            shares[key] = .some(row)
            return row.map { .entry($0, path, query) } ?? .nothing
        case nil: return ListRequestTarget(request.target).map(LookupResult.lists) ?? .nothing
        }
    }

    private func answer(_ request: FileRequest, _ found: Result<LookupResult, any Error>) -> Reply {
        do {
            switch try found.get() {
            case .nothing: return .notFound
            case .offer(let row): return try answer(request, row)
            case .shares(let rows): return made(.shares(rows), request, share: nil)
            case .entry(let row, let path, let query): return made(try ShareAnswer(row, path, query), request, share: row)
            case .lists(let target): return try answer(target)
            }
        } catch let fault as FileFault {
            return .failed(fault)
        } catch {
            return .broken(error)
        }
    }

    private func made(_ answer: ShareAnswer, _ request: FileRequest, share: ShareRow?) -> Reply {
        switch answer {
        case .list(let listing): Reply(answer: FileAnswers.list(listing), share: share, isList: true)
        case .folder(let reading): Reply(answer: FileAnswers.notFound, share: share, isList: true, reading: reading)
        case .file(let source, let mediaType): Reply(answer: reply(request, source, mediaType, sent: nil), share: share)
        }
    }

    private func answer(_ target: ListRequestTarget) throws -> Reply {
        switch target {
        case .overview:
            return Reply(answer: FileAnswers.json(try store.readSync { try $0.listOverview(for: peer, at: now) }.json), isList: true)
        case .page(let list, let request):
            switch try store.listPageSync(list, request, for: peer, at: now) {
            case .page(let json): return Reply(answer: FileAnswers.json(json), isList: true)
            case .notFound: return .notFound
            case .busy: return Reply(answer: FileAnswers.broken)
            }
        }
    }

    private func answer(_ request: FileRequest, _ row: OfferRow) throws -> Reply {
        let file: OfferedFile
        do throws(FileFault) {
            file = try OfferedFile(offered: row.path, row.identity)
        } catch {
            guard let problem = OfferProblem(error) else { throw error }
            var made = Reply(answer: FileAnswers.changed)
            if !request.isHead { made.lost = (row, problem, try store.readSync { try $0.outboxRow(ofOffer: row.id, to: peer) }) }
            return made
        }
        let sent = sent
        let answer = reply(request, FileBody(file), row.mediaType) { sent(row) }
        let from = request.range.flatMap { FileRange($0) }?.bytes(ofSize: file.size)?.lowerBound ?? 0
        return Reply(answer: answer, offered: (file.size, from))
    }

    private func reply(_ request: FileRequest, _ source: FileBody, _ mediaType: String?, sent: (@Sendable () -> Void)?) -> FileAnswer {
        let identity = source.file.identity
        var answer = FileAnswers.answer(
            request, size: identity.size, tag: EntityTag(of: identity, key: tagKey), mediaType: mediaType, source: source, sent: sent)
        // If a small file cannot be read here, it is read again when it is sent. If that fails as well, the connection is closed.
        if !request.isHead, case .file(_, let range) = answer.body, range.count > 0, range.count <= FileLimits.heldBytes,
            let bytes = try? source.read(range.count, at: range.lowerBound, isLast: true)
        {
            answer.body = .bytes(bytes)
        }
        return answer
    }
}

extension OfferedFile {
    /// Opens an offered file, if it has not changed.
    /// - Parameters:
    ///   - path: the absolute path.
    ///   - identity: the identity of the file when it was offered.
    /// - Throws: `changed` if the file was replaced or modified; the faults of opening it.
    convenience init(offered path: String, _ identity: String) throws(FileFault) {
        guard let identity = FileIdentity(identity) else { throw .changed }
        try self.init(path: path, remembered: identity)
    }
}

extension OfferProblem {
    /// Converts a fault of an offered file; `nil` if the fault concerns this machine and may be temporary.
    init?(_ fault: FileFault) {
        switch fault {
        case .notFound: self = .missing
        case .notAllowed: self = .notAllowed
        case .system: return nil
        default: self = .changed
        }
    }
}
