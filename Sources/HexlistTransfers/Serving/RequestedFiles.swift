import Crypto
import HexlistAPI
import HexlistFiles
import HexlistModel
import HexlistStore
import HexlistTransport
import NIOCore

/// The answers to requests of one peer for files, made on a thread for files: looked up in the store, opened, and read if the file is small.
struct RequestedFiles: Sendable {
    /// The answer to one request, with its origin.
    struct Reply: Sendable {
        var answer: FileAnswer
        /// The share that the file or the list is in.
        var share: ShareRow?
        /// Whether it is a list, which may be of a folder of any size.
        var isList = false
        /// The list that is to be the answer and is still to be read.
        var reading: FolderReading?
        /// The size of an offered file, and the first requested byte.
        var offered: (bytes: Int64, from: Int64)?
        /// Why an offered file cannot be sent, with the row of the outbox that brought the offer.
        var lost: (offer: OfferRow, problem: OfferProblem, outbox: Int64?)?
        /// Why this machine is at fault, for its log.
        var fault: String?

        static let notFound = Reply(answer: FileReply.notFound)
        static func broken(_ fault: any Error) -> Reply { Reply(answer: FileReply.broken, fault: "\(fault)") }

        /// Nobody learns why something cannot be opened.
        static func failed(_ fault: FileFault) -> Reply {
            guard case .system = fault else { return .notFound }
            return .broken(fault)
        }

        /// The answer with a list that was read.
        func with(_ listing: FolderListing) -> Reply { Reply(answer: FileReply.list(listing), share: share, isList: true) }
    }

    let peer: PeerID
    let store: HexStore
    let tagKey: SymmetricKey
    /// Called when all of an offer's file was sent.
    let sent: @Sendable (OfferRow) -> Void

    /// Answers the first of the requests, at least one: no more once there is a large file or a list, or `FileLimits.togetherBytes` are in memory.
    /// Blocks.
    func answers(to requests: [FileRequest]) -> [Reply] {
        let looked: [Result<LookupResult, any Error>]
        do {
            looked = try store.readSync { reader in
                var shares: [[UInt8]: ShareRow?] = [:]
                return requests.map { request in Result { try look(request, reader, &shares) } }
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
        case nothing
    }

    private func look(_ request: FileRequest, _ reader: StoreReader, _ shares: inout [[UInt8]: ShareRow?]) throws -> LookupResult {
        switch FileRequestTarget(request.target) {
        case .offer(let offer): return try reader.offer(offer.bytes, to: peer).map(LookupResult.offer) ?? .nothing
        case .shares: return .shares(try reader.shares(for: peer))
        case .entry(let name, let path, let query):
            let key = Array(name.utf8)
            let row = try shares[key] ?? reader.share(name, for: peer)
            shares[key] = .some(row)
            return row.map { .entry($0, path, query) } ?? .nothing
        case nil: return .nothing
        }
    }

    private func answer(_ request: FileRequest, _ found: Result<LookupResult, any Error>) -> Reply {
        do {
            switch try found.get() {
            case .nothing: return .notFound
            case .offer(let row): return try answer(request, row)
            case .shares(let rows): return made(.shares(rows), request, share: nil)
            case .entry(let row, let path, let query): return made(try SharedAnswer(row, path, query), request, share: row)
            }
        } catch let fault as FileFault {
            return .failed(fault)
        } catch {
            return .broken(error)
        }
    }

    private func made(_ answer: SharedAnswer, _ request: FileRequest, share: ShareRow?) -> Reply {
        switch answer {
        case .list(let listing): Reply(answer: FileReply.list(listing), share: share, isList: true)
        case .folder(let reading): Reply(answer: FileReply.notFound, share: share, isList: true, reading: reading)
        case .file(let source, let mediaType): Reply(answer: reply(request, source, mediaType, sent: nil), share: share)
        }
    }

    private func answer(_ request: FileRequest, _ row: OfferRow) throws -> Reply {
        let file: OfferedFile
        do throws(FileFault) {
            file = try OfferedFile(offered: row.path, row.identity)
        } catch {
            guard let problem = OfferProblem(error) else { throw error }
            var made = Reply(answer: FileReply.changed)
            if !request.isHead { made.lost = (row, problem, try store.readSync { try $0.outboxRow(ofOffer: row.id, to: peer) }) }
            return made
        }
        let sent = sent
        let answer = reply(request, OfferedSource(file), row.mediaType) { sent(row) }
        let from = request.range.flatMap { FileRange($0) }?.bytes(ofSize: file.size)?.lowerBound ?? 0
        return Reply(answer: answer, offered: (file.size, from))
    }

    private func reply(_ request: FileRequest, _ source: OfferedSource, _ mediaType: String?, sent: (@Sendable () -> Void)?) -> FileAnswer {
        let identity = source.file.identity
        var answer = FileReply.answer(
            request, size: identity.size, tag: EntityTag(of: identity, key: tagKey), mediaType: mediaType, source: source, sent: sent)
        // A file that cannot be read is tried again when it is sent, and then closes the connection.
        if !request.isHead, case .file(_, let range) = answer.body, range.count > 0, range.count <= FileLimits.heldBytes,
            let bytes = try? source.read(range.count, at: range.lowerBound, isLast: true)
        {
            answer.body = .bytes(bytes)
        }
        return answer
    }
}

extension OfferedFile {
    /// Opens a file on offer.
    /// - Parameters:
    ///   - path: absolute.
    ///   - identity: the file as it was when it was offered.
    /// - Throws: `changed` for another file; the faults of opening it.
    convenience init(offered path: String, _ identity: String) throws(FileFault) {
        guard let identity = FileIdentity(identity) else { throw .changed }
        try self.init(path: path, remembered: identity)
    }
}

extension OfferProblem {
    /// `nil` for a fault of this machine, which may pass.
    init?(_ fault: FileFault) {
        switch fault {
        case .notFound: self = .missing
        case .notAllowed: self = .notAllowed
        case .system: return nil
        default: self = .changed
        }
    }
}
