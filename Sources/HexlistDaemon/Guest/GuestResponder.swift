import HTTPTypes
import HexlistAPI
import HexlistFiles
import HexlistJSON
import HexlistModel
import HexlistNode
import HexlistPage
import HexlistStore
import HexlistSystem
import HexlistTransfers
import Hummingbird
import Logging
import NIOCore

/// Answers the plain HTTP requests of guests on the peer port. It serves the page and downloads, and receives the guests' files and hexes.
struct GuestResponder: Sendable {
    let api: APIContext

    private var guests: GuestInvitationRegistry { api.guests }

    func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
        var response: Response
        do {
            response = try await answer(request)
        } catch {
            guard let refusal = GuestRefusal(error, logger: api.logger) else { throw error }
            response = Self.fault(refusal)
            response.headers[.connection] = "close"
        }
        response.headers.append(contentsOf: Self.headers)
        return response
    }

    /// The headers of the page of `hexlist web`, without `Cross-Origin-Opener-Policy`: over plain HTTP, browsers ignore it with a warning.
    static let headers: HTTPFields = {
        var headers = PageGate.headers
        if let name = HTTPField.Name("cross-origin-opener-policy") { headers[name] = nil }
        return headers
    }()

    private func answer(_ request: Request) async throws -> Response {
        guard let address = CallerConnection.remoteAddress else { throw GuestRefusal.notFound }
        guard guests.isOpen else { throw GuestRefusal.over }
        let path = request.uri.path
        try await Self.gate(api).check(GuestRequestHead(request))
        if let file = PageFile.guest.first(where: { $0.path == path }) { return try Self.page(file, request) }
        if path.hasPrefix(Self.downloads) { return try await download(request, from: address) }
        if path == "/g/join" { return try await join(request, from: address) }
        let guest = try guest(request, from: address)
        switch path {
        case "/g/files": return try await announce(request, guest)
        case "/g/hexes": return try await send(request, guest)
        case let path where path.hasPrefix(Self.files): return try await upload(request, String(path.dropFirst(Self.files.count)), guest)
        default: throw GuestRefusal.notFound
        }
    }

    private static let downloads = "/g/d/"
    static let files = "/g/files/"

    static func gate(_ api: APIContext) async -> GuestGate {
        GuestGate(port: await api.node.nameAndPort().port, addresses: GuestAddresses.own(), hostName: hostName)
    }

    private static let hostName = MachineName.host()

    // MARK: Page and join

    private static func page(_ file: PageFile, _ request: Request) throws(GuestRefusal) -> Response {
        guard request.method == .get || request.method == .head else { throw wrongMethod }
        let bytes = request.method == .head ? [] : file.bytes
        return Response(status: .ok, headers: [.contentType: file.mediaType], body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    private func join(_ request: Request, from address: IPAddress) async throws -> Response {
        try require(request, .post)
        let wanted: GuestMessage.Join = try await Self.message(request, limit: Self.shortBody)
        let device = request.headers[.userAgent].flatMap(Self.device)
        switch guests.join(wanted, from: address, device: device, name: await api.node.nameAndPort().name) {
        case .joined(let joined):
            CallerConnection.markAuthenticated()
            return APIReply.json(joined)
        case .refused(let refusal): throw refusal
        case .allEnded:
            api.logger.warning("all invitations ended: too many wrong keys were tried")
            api.node.recordGuessedKeys()
            throw GuestRefusal.over
        }
    }

    /// Returns the kind of a device, if its `User-Agent` contains one of a few known words; otherwise `nil`. Other parts are not used.
    private static func device(_ userAgent: String) -> String? {
        let text = PeerName.cut(userAgent, bytes: 512)
        return ["iPhone", "iPad", "Android", "Windows", "Macintosh", "Linux"].first { text.utf8.firstRange(of: $0.utf8) != nil }
            .map { $0 == "Macintosh" ? "Mac" : $0 }
    }

    /// Finds the guest of a request.
    /// - Throws: a refusal with 403 if the request has no token, or if the token was not issued to this IP address.
    private func guest(_ request: Request, from address: IPAddress) throws(GuestRefusal) -> GuestInvitations.GuestID {
        guard let token = request.bearerToken else {
            throw GuestRefusal(status: 403, message: "This page has expired. Scan the QR code again.")
        }
        let guest = try guests.guest(token: token, from: address)
        CallerConnection.markAuthenticated()
        return guest
    }

    // MARK: Reading

    /// Sends a file of the invitation, or a range of the file. The ticket in the path authorises the request.
    private func download(_ request: Request, from address: IPAddress) async throws -> Response {
        guard request.method == .get || request.method == .head else { throw Self.wrongMethod }
        let ticket = request.uri.path.dropFirst(Self.downloads.count).prefix { $0 != "/" }
        let local = try guests.file(ticket: String(ticket), from: address)
        CallerConnection.markAuthenticated()
        let transfers = api.node.transfers
        let file: OfferedFile
        do {
            file = try await transfers.onFileThread { try local.open() }
        } catch is FileFault {
            throw GuestRefusal(status: 404, message: "This file is no longer there.")
        }
        var range = 0..<file.size
        var headers: HTTPFields = [
            .contentType: "application/octet-stream", .acceptRanges: "bytes",
            .contentDisposition: "attachment; filename*=UTF-8''\(PercentEncoding.encode(local.name))",
        ]
        var status = HTTPResponse.Status.ok
        if let wanted = request.headers[.range].flatMap({ FileRange($0) }) {
            guard let part = wanted.bytes(ofSize: file.size) else {
                headers[.contentRange] = "bytes */\(file.size)"
                return Response(status: .rangeNotSatisfiable, headers: headers)
            }
            range = part
            status = .partialContent
            headers[.contentRange] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(file.size)"
        }
        guard request.method == .get else {
            headers[.contentLength] = "\(range.count)"
            return Response(status: status, headers: headers)
        }
        let content = GuestDownload(
            file: file, range: range, ticket: String(ticket), address: address, guests: guests, transfers: transfers)
        let body = ResponseBody(contentLength: range.count) { writer in
            while let bytes = try await content.next() { try await writer.write(bytes) }
            try await writer.finish(nil)
        }
        return Response(status: status, headers: headers, body: body)
    }

    // MARK: Files

    private func announce(_ request: Request, _ guest: GuestInvitations.GuestID) async throws -> Response {
        try require(request, .post)
        let wanted: GuestMessage.Announcement = try await Self.message(request, limit: Self.shortBody)
        let id = OfferID.random
        let modified = wanted.modified ?? Timestamp.now.milliseconds
        let (upload, known) = try guests.announce(
            GuestInvitations.Upload(id: "\(id)", name: FileName(wanted.name).description, size: wanted.size, modified: modified), of: guest)
        if let known {
            return APIReply.json(GuestMessage.Announced(id: upload.id, at: try await interrupt(known, upload.id, guest, request)))
        }
        let (folder, reserve) = (api.node.transfers.guestFiles.folder, await api.node.diskReserve)
        do {
            let part = try await api.node.transfers.onFileThread {
                try GuestUpload(session: upload.id, size: upload.size, in: folder, modified: modified, minimumFree: reserve)
            }
            guard guests.add(part, to: upload.id, of: guest) else {
                await discard([part])
                throw GuestRefusal.over
            }
            return APIReply.json(GuestMessage.Announced(id: upload.id, at: 0))
        } catch {
            _ = guests.cancel(upload.id, of: guest)
            throw error
        }
    }

    private func upload(_ request: Request, _ id: String, _ guest: GuestInvitations.GuestID) async throws -> Response {
        switch request.method {
        case .get:
            return APIReply.json(GuestMessage.Position(at: try await interrupt(guests.part(id, of: guest), id, guest, request)))
        case .delete:
            guard guests.cancel(id, of: guest) else { throw GuestRefusal.notFound }
            return APIReply.json(GuestMessage.Empty())
        case .post: return try await piece(request, id, guest)
        default: throw Self.wrongMethod
        }
    }

    /// Ends the request in progress for a file. If that request was cut after its last byte was written, the file is complete.
    /// - Returns: the offset of the next byte.
    private func interrupt(
        _ part: GuestUpload, _ id: String, _ guest: GuestInvitations.GuestID, _ request: Request
    ) async throws -> Int64 {
        let sentAt = Self.sentAt(request) ?? .max
        let (at, isComplete) = try await api.node.transfers.onFileThread { try (part.interrupt(sentAt: sentAt), part.finished != nil) }
        if isComplete { guests.completed(id, of: guest) }
        return at
    }

    /// When the client sent a request, by its own clock in milliseconds; `nil` if it does not say.
    private static func sentAt(_ request: Request) -> Int64? {
        HTTPField.Name("Hexlist-Sent").flatMap { request.headers[$0] }.flatMap { Int64($0) }
    }

    /// Writes a piece of a file while it is received. If the connection is closed before the end of the piece, the written bytes are kept;
    /// at most `chunk` received bytes are lost.
    private func piece(_ request: Request, _ id: String, _ guest: GuestInvitations.GuestID) async throws -> Response {
        let part = try guests.part(id, of: guest)
        guard let query = request.uri.query, query.hasPrefix("at="), let offset = Int64(query.dropFirst(3)), offset >= 0,
            case let lengths = request.headers[values: .contentLength], lengths.count == 1, let length = Int64(lengths[0])
        else { throw GuestRefusal(status: 400, message: "A piece needs an offset and a length.") }
        let transfers = api.node.transfers
        let attempt: PieceSequence.Attempt
        let sentAt = Self.sentAt(request) ?? 0
        switch try await transfers.onFileThread({ try part.begin(at: offset, length: length, sentAt: sentAt) }) {
        case .accepted(let begun): attempt = begun
        case .elsewhere(let at): return Self.elsewhere(at)
        case .wrongLength: throw GuestRefusal(status: 413, message: "This piece is too long.")
        }
        func write(_ bytes: ByteBuffer) async throws -> Bool {
            try await transfers.onFileThread { try part.append(bytes, of: attempt) }
        }
        func refusal() async throws -> Response { Self.elsewhere(try await transfers.onFileThread { part.at }) }
        do {
            var (pending, writtenAt) = (ByteBuffer(), ContinuousClock.now)
            for try await bytes in request.body {
                pending.writeImmutableBuffer(bytes)
                // A slow upload is written as well, so that it ends with its invitation.
                guard pending.readableBytes >= Self.chunk || ContinuousClock.now - writtenAt >= Self.writeInterval else { continue }
                writtenAt = .now
                guard try await write(pending) else { return try await refusal() }
                pending.clear()
            }
            // After the last byte of the file, nothing more can be appended.
            if pending.readableBytes > 0 {
                guard try await write(pending) else { return try await refusal() }
            }
        } catch FileFault.partLost {
            guard (try? guests.part(id, of: guest)) != nil else { throw GuestRefusal.over }  // it was deleted with its invitation
            throw FileFault.partLost
        }
        if part.finished != nil { guests.completed(id, of: guest) }
        return APIReply.json(GuestMessage.Position(at: offset + length))
    }

    /// The reply to a piece that is not at the next offset, or whose attempt has ended. It ends the connection, because the rest of the piece
    /// may be long.
    private static func elsewhere(_ at: Int64) -> Response {
        var response = APIReply.json(GuestMessage.Fault(message: "The next piece has another offset.", at: at), status: .conflict)
        response.headers[.connection] = "close"
        return response
    }

    /// Deletes the partial files of uploads to an earlier process of the daemon.
    func removeLeftovers() async {
        let files = api.node.transfers.guestFiles
        try? await api.node.transfers.onFileThread { files.removeAll() }
    }

    func discard(_ parts: [GuestUpload]) async {
        try? await api.node.transfers.onFileThread { for part in parts { part.discard() } }
    }

    // MARK: Hexes

    private func send(_ request: Request, _ guest: GuestInvitations.GuestID) async throws -> Response {
        try require(request, .post)
        let wanted: GuestMessage.Send = try await Self.message(request, limit: Self.hexBody)
        let text = wanted.text ?? ""
        let files = wanted.files ?? []
        guard OfferID(wanted.id) != nil, !files.isEmpty || !text.allSatisfy(\.isWhitespace) else {
            throw GuestRefusal(status: 400, message: "There is nothing to send.")
        }
        guard text.utf8.count <= ProtocolLimits.stringBytes else {
            throw GuestRefusal(status: 413, message: "The text is longer than \(ProtocolLimits.stringBytes >> 10) KiB. Send it as a file.")
        }
        let address = try guests.address(of: guest)
        let send = wanted.id.lowercased()
        guard let storing = try guests.send(send, files: files, of: guest) else { return APIReply.json(GuestMessage.Empty()) }
        do {
            let hex = try Self.hex(storing, text: text, name: wanted.name ?? "", from: address)
            let id = try await api.node.receive(hex)
            let stored = InvitationHex(
                hex: id, peer: storing.peer, name: hex.name, files: hex.files.count, size: hex.files.map(\.file.size).clampedSum,
                at: Timestamp.now)
            guests.sent(send, stored, storing, of: guest)
        } catch {
            guests.notSent(send, storing, of: guest)
            throw error
        }
        return APIReply.json(GuestMessage.Empty())
    }

    private static func hex(
        _ storing: GuestInvitationRegistry.Storing, text: String, name: String, from address: IPAddress
    ) throws(GuestRefusal) -> KeylessHex {
        var files: [KeylessHex.File] = []
        for (upload, part) in storing.uploads {
            guard let finished = part.finished, let id = OfferID(upload.id) else { throw GuestRefusal.notFound }
            let file = ArrivedFile(
                session: upload.id, file: finished.name, name: upload.name, size: upload.size, sha256: finished.sha256)
            files.append(KeylessHex.File(id: id, file: file, modified: upload.modified))
        }
        return KeylessHex(from: storing.peer, name: name, address: address, isHeld: storing.isHeld, text: text, files: files)
    }

    // MARK: Messages

    /// Maximum bytes of the body of a request to join or to announce a file.
    private static let shortBody = 8 << 10
    /// Maximum bytes of a body with a hex. Escapes can make a text in JSON up to six times as long.
    private static let hexBody = 512 << 10
    /// Number of bytes that are buffered before they are written to the disk.
    private static let chunk = 512 << 10
    /// Maximum time for which received bytes are buffered while more arrive.
    private static let writeInterval = Duration.seconds(5)

    private static let wrongMethod = GuestRefusal(status: 405, message: "This method is not supported.")

    private func require(_ request: Request, _ method: HTTPRequest.Method) throws(GuestRefusal) {
        guard request.method == method else { throw Self.wrongMethod }
    }

    private static func message<Message: JSONDecodable>(_ request: Request, limit: Int) async throws -> Message {
        let bytes = try await RequestInput.body(request, limit: limit)
        do {
            return try Message(jsonBytes: bytes)
        } catch {
            throw GuestRefusal(status: 400, message: "The request is not valid.")
        }
    }

    private static func fault(_ refusal: GuestRefusal) -> Response {
        APIReply.json(GuestMessage.Fault(message: refusal.message), status: HTTPResponse.Status(code: refusal.status))
    }
}

extension GuestRequestHead {
    init(_ request: Request) {
        self.init(
            method: request.method.rawValue, path: request.uri.path, host: request.head.authority,
            origins: request.headers[values: .origin],
            sites: HTTPField.Name("sec-fetch-site").map { request.headers[values: $0] } ?? [])
    }
}

extension GuestRefusal {
    /// Converts an error of a request to a refusal; `nil` for an error of the connection, to which no reply is possible.
    init?(_ error: any Error, logger: Logger) {
        switch error {
        case let refusal as GuestRefusal: self = refusal
        case let error as HexlistError: self.init(status: APIReply.status(of: error.code).code, message: error.message)
        case FileFault.diskFull: self.init(status: 507, message: "There is no space for this file.")
        case let fault as FileFault:
            logger.warning("a file of a guest could not be written", metadata: ["error": "\(fault)"])
            self.init(status: 500, message: "This file cannot be written at the moment.")
        default: return nil
        }
    }
}
