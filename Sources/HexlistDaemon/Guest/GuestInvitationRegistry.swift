import Crypto
import HexlistAPI
import HexlistFiles
import HexlistJSON
import HexlistModel
import HexlistTransfers
import NIOCore
import Synchronization

/// The invitations of the daemon, with their uploads and tickets. They are in memory only, so a restart ends all invitations.
final class GuestInvitationRegistry: Sendable {
    /// The right of a guest to read one file of an invitation. The random key of a ticket is part of the URL, because a download link
    /// cannot send a token.
    private struct Ticket {
        var guest: GuestInvitations.GuestID
        var file: LocalFile
    }

    private struct State {
        var invitations = GuestInvitations()
        /// The invitations as the API shows them, by id.
        var views: [Int: Invitation] = [:]
        var contents: [Int: GuestReadableContent] = [:]
        /// The hexes that each guest may read, with the URLs of their files; sent to the guest at each join.
        var readable: [GuestInvitations.GuestID: [GuestMessage.Hex]] = [:]
        var tickets: [String: Ticket] = [:]
        var parts: [String: GuestUpload] = [:]
        var timer: Scheduled<Void>?
    }

    private let state = Mutex(State())
    private let loop: any EventLoop
    private let now: @Sendable () -> ContinuousClock.Instant
    /// The partial files to delete. `GuestService` deletes them, because deleting blocks.
    let discarded: AsyncStream<[GuestUpload]>
    private let discard: AsyncStream<[GuestUpload]>.Continuation
    /// Called when an invitation may have changed.
    private let changed: Mutex<@Sendable () -> Void> = Mutex({})

    /// - Parameter now: returns the current time. The timer of the event loop determines only when it is compared with the end of an
    ///   invitation.
    init(loop: any EventLoop, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.loop = loop
        self.now = now
        // The buffer is bounded by the number of uploads, because each is discarded once.
        (discarded, discard) = AsyncStream.makeStream(of: [GuestUpload].self)
    }

    func onChange(_ changed: @escaping @Sendable () -> Void) { self.changed.withLock { $0 = changed } }

    /// Whether any invitation is open, so that the peer port answers guests.
    var isOpen: Bool { state.withLock { $0.invitations.isOpen(now()) } }

    // MARK: Invitations

    /// Makes an invitation.
    /// - Parameters:
    ///   - hosts: the hosts for its URLs, best first; at least one.
    ///   - port: the peer port.
    ///   - qr: returns the QR code of a URL as an SVG image.
    /// - Throws: `alreadyRunning` if there are too many invitations.
    func invite(
        _ content: GuestReadableContent, _ options: GuestInvitations.Options, hosts: [String], port: Int, qr: (String) -> String
    ) throws(HexlistError) -> Invitation {
        let key = GuestKey.random()
        let urls = hosts.map { "http://\(HostPort.text($0, port))/#\(key)" }
        let until = Timestamp(milliseconds: Timestamp.now.milliseconds + options.time.components.seconds * 1_000)
        let view = state.withLock { state -> Invitation? in
            remove(state.invitations.update(now()), &state)
            guard let id = state.invitations.invite(key: GuestKey.hash(key), options, now: now()) else { return nil }
            let view = Invitation(
                id: id, url: urls[0], urls: Array(urls.dropFirst()), until: until, once: options.isOnce, held: options.isHeld,
                files: content.fileCount, qr: qr(urls[0]))
            state.views[id] = view
            state.contents[id] = content
            return view
        }
        guard let view else {
            throw HexlistError(
                .alreadyRunning, "There are \(GuestInvitations.limit) invitations already.",
                hint: "`hexlist invite --list` lists them, `hexlist invite --end ID` ends one.")
        }
        schedule()
        notify()
        return view
    }

    /// The active invitations, oldest first.
    var active: [Invitation] {
        state.withLock { state in state.invitations.all.filter { $0.isActive(now()) }.compactMap { state.views[$0.id] } }
    }

    /// Returns an invitation that is active or has ended recently; `nil` if there is no such invitation.
    func invitation(_ id: Int) -> Invitation? {
        state.withLock { state -> Invitation? in
            guard let invitation = state.invitations.invitation(id), var view = state.views[id] else { return nil }
            let end = invitation.end ?? (invitation.isActive(now()) ? nil : .time)
            view.ended = end.map { ForwardCompatibleEnum($0) }
            return view
        }
    }

    /// Ends an invitation immediately, because the user wants to.
    /// - Returns: the ended invitation; `nil` if there is no such invitation, or it has already ended.
    func end(_ id: Int) -> Invitation? {
        let isEnded = state.withLock { state in
            guard let uploads = state.invitations.end(id, .user) else { return false }
            remove(uploads, &state)
            return true
        }
        guard isEnded else { return nil }
        notify()
        return invitation(id)
    }

    /// Ends all invitations because the daemon stops.
    func stop() {
        state.withLock { state in
            remove(state.invitations.endAll(.stopped), &state)
            state.timer?.cancel()
            state.timer = nil
        }
        notify()
        discard.finish()
    }

    private func notify() { changed.withLock { $0 }() }

    /// Removes the given uploads, the tickets and contents of ended invitations, and the views of removed ones. Call with the lock held.
    private func remove(_ uploads: [GuestInvitations.Upload], _ state: inout State) {
        let parts = uploads.compactMap { state.parts.removeValue(forKey: $0.id) }
        if !parts.isEmpty { discard.yield(parts) }
        let ended = Set(state.invitations.all.filter { $0.end != nil }.map(\.id))
        state.tickets = state.tickets.filter { !ended.contains($0.value.guest.invitation) }
        state.readable = state.readable.filter { !ended.contains($0.key.invitation) }
        for id in ended { state.contents[id] = nil }
        let known = Set(state.invitations.all.map(\.id))
        state.views = state.views.filter { known.contains($0.key) }
    }

    private func schedule() {
        state.withLock { state in
            state.timer?.cancel()
            state.timer = nil
            guard let deadline = state.invitations.nextDeadline(now()) else { return }
            state.timer = loop.scheduleTask(in: TimeAmount(max(deadline - now(), .zero))) { [weak self] in self?.passDeadline() }
        }
    }

    private func passDeadline() {
        state.withLock { state in remove(state.invitations.update(now()), &state) }
        notify()
        schedule()
    }

    // MARK: Guests

    enum Joined {
        case joined(GuestMessage.Joined)
        case refused(GuestRefusal)
        /// Too many wrong keys were tried, so all invitations ended.
        case allEnded
    }

    func join(_ wanted: GuestMessage.Join, from address: IPAddress, device: String?, name: String) -> Joined {
        let token = GuestKey.random()
        let peer = PeerID(MessageID.random().uuid)
        let joined = state.withLock { state -> Joined in
            let result = state.invitations.join(
                key: GuestKey.hash(wanted.key), token: wanted.token.map(GuestKey.hash), newToken: GuestKey.hash(token), peer: peer,
                from: address, now: now())
            switch result {
            case .refused(let refusal): return .refused(refusal)
            case .allEnded(let uploads):
                remove(uploads, &state)
                return .allEnded
            case .joined(let guest, let isNew):
                guard let view = state.views[guest.invitation], let content = state.contents[guest.invitation] else {
                    return .refused(.over)
                }
                if isNew {
                    state.views[guest.invitation]?.guests.append(
                        InvitationGuest(address: "\(address)", device: device, at: Timestamp.now))
                    state.readable[guest] = Self.readable(content, for: guest, &state.tickets)
                }
                // After the deadline, a guest can only finish its uploads.
                let isReadable = Timestamp.now.milliseconds < view.until.milliseconds
                return .joined(
                    GuestMessage.Joined(
                        token: isNew ? token : wanted.token ?? "", name: name, until: view.until.milliseconds, once: view.once ?? false,
                        hexes: isReadable ? state.readable[guest] ?? [] : []))
            }
        }
        switch joined {
        case .joined, .allEnded: notify()
        case .refused: break  // watchers are not notified, because any host on the network could cause that
        }
        return joined
    }

    private static func readable(
        _ content: GuestReadableContent, for guest: GuestInvitations.GuestID, _ tickets: inout [String: Ticket]
    ) -> [GuestMessage.Hex] {
        content.hexes.map { hex in
            let files = hex.files.map { file in
                let ticket = GuestKey.random()
                tickets[ticket] = Ticket(guest: guest, file: file)
                let name = PercentEncoding.encode(file.name)
                return GuestMessage.File(href: "/g/d/\(ticket)/\(name)", name: file.name, size: file.size)
            }
            return GuestMessage.Hex(description: hex.description, links: hex.links, files: files)
        }
    }

    /// Finds the guest of a request by its token.
    func guest(token: String, from address: IPAddress) throws(GuestRefusal) -> GuestInvitations.GuestID {
        try state.withLock { state throws(GuestRefusal) in
            try state.invitations.guest(token: GuestKey.hash(token), from: address, now: now())
        }
    }

    func address(of guest: GuestInvitations.GuestID) throws(GuestRefusal) -> IPAddress {
        guard let address = state.withLock({ $0.invitations[guest]?.address }) else { throw GuestRefusal.over }
        return address
    }

    /// Returns the file of a ticket. Like a token, a ticket is valid only from the IP address to which it was issued, until the invitation
    /// ends.
    func file(ticket: String, from address: IPAddress) throws(GuestRefusal) -> LocalFile {
        try state.withLock { state throws(GuestRefusal) in
            guard ticket.utf8.count == GuestKey.length, let found = state.tickets[ticket],
                state.invitations[found.guest]?.address == address
            else { throw GuestRefusal.notFound }
            guard state.invitations.invitation(found.guest.invitation)?.isActive(now()) ?? false else { throw GuestRefusal.over }
            return found.file
        }
    }

    /// Whether the file of a ticket may still be read.
    func isReadable(ticket: String, from address: IPAddress) -> Bool { (try? file(ticket: ticket, from: address)) != nil }

    // MARK: Files

    /// Adds an upload for a file that a guest announces. If the guest has announced the same file before, the earlier upload continues.
    /// - Returns: the upload and its partial file; `nil` for a new file, whose partial file the caller has to create.
    func announce(
        _ upload: GuestInvitations.Upload, of guest: GuestInvitations.GuestID
    ) throws(GuestRefusal) -> (upload: GuestInvitations.Upload, part: GuestUpload?) {
        try state.withLock { state throws(GuestRefusal) in
            let (known, isNew) = try state.invitations.announce(upload, of: guest, now: now())
            guard !isNew else { return (known, nil) }
            guard let part = state.parts[known.id] else {
                throw GuestRefusal(status: 409, message: "This file is being created already.")
            }
            return (known, part)
        }
    }

    /// Adds the partial file of a new upload.
    /// - Returns: `false` if the invitation has ended meanwhile. The caller then has to discard the file.
    func add(_ part: GuestUpload, to upload: String, of guest: GuestInvitations.GuestID) -> Bool {
        state.withLock { state in
            guard state.invitations.upload(upload, of: guest) != nil else { return false }
            state.parts[upload] = part
            if part.finished != nil { state.invitations.completed(upload, of: guest) }
            return true
        }
    }

    func part(_ upload: String, of guest: GuestInvitations.GuestID) throws(GuestRefusal) -> GuestUpload {
        try state.withLock { state throws(GuestRefusal) in
            guard let known = state.invitations.upload(upload, of: guest), !known.isTaken, let part = state.parts[known.id] else {
                throw GuestRefusal.notFound
            }
            return part
        }
    }

    func completed(_ upload: String, of guest: GuestInvitations.GuestID) {
        state.withLock { $0.invitations.completed(upload, of: guest) }
    }

    /// Cancels an upload that no hex uses yet.
    /// - Returns: whether there was such an upload.
    func cancel(_ upload: String, of guest: GuestInvitations.GuestID) -> Bool {
        state.withLock { state in
            guard state.invitations.cancel(upload, of: guest) else { return false }
            if let part = state.parts.removeValue(forKey: upload) { discard.yield([part]) }
            return true
        }
    }

    // MARK: Hexes

    /// The sender and the files of a hex that is being stored.
    struct Storing {
        var peer: PeerID
        var isHeld: Bool
        var uploads: [(upload: GuestInvitations.Upload, part: GuestUpload)]
    }

    /// Begins to store a hex. The caller has to call `sent` or `notSent` afterwards.
    /// - Returns: `nil` if the hex is stored already, because the page repeats a request.
    func send(_ send: String, files: [String], of guest: GuestInvitations.GuestID) throws(GuestRefusal) -> Storing? {
        try state.withLock { state throws(GuestRefusal) in
            guard let sender = state.invitations[guest], let invitation = state.invitations.invitation(guest.invitation) else {
                throw GuestRefusal.over
            }
            switch try state.invitations.send(send, files: files, of: guest, now: now()) {
            case .alreadyStored: return nil
            case .store(let uploads):
                return Storing(
                    peer: sender.peer, isHeld: invitation.options.isHeld,
                    uploads: uploads.compactMap { upload in state.parts[upload.id].map { (upload, $0) } })
            }
        }
    }

    /// Records that a hex was stored. Its files belong to the pool of fetched files from now on.
    func sent(_ send: String, _ hex: InvitationHex, _ storing: Storing, of guest: GuestInvitations.GuestID) {
        state.withLock { state in
            for (upload, _) in storing.uploads { state.parts[upload.id] = nil }
            state.views[guest.invitation]?.hexes.append(hex)
            remove(state.invitations.sent(send, of: guest), &state)
        }
        notify()
    }

    func notSent(_ send: String, _ storing: Storing, of guest: GuestInvitations.GuestID) {
        state.withLock { state in
            remove(state.invitations.notSent(send, files: storing.uploads.map(\.upload), of: guest), &state)
        }
    }
}

/// Makes and hashes the keys, tokens and tickets of guests: 128 random bits each, in base64url.
enum GuestKey {
    /// Number of characters of a key.
    static let length = 22

    static func random() -> String {
        var random = SystemRandomNumberGenerator()
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var bits = [random.next(), random.next()]
        // 21 digits of 6 bits and one of 2 bits.
        var key: [UInt8] = []
        for index in 0..<length {
            let count: UInt64 = index == length - 1 ? 2 : 6
            let low = bits[0] & ((1 << count) - 1)
            key.append(digits[Int(low)])
            bits[0] = bits[0] >> count | bits[1] << (64 - count)
            bits[1] >>= count
        }
        return String(decoding: key, as: UTF8.self)
    }

    /// Returns the SHA-256 hash of a key. Keys are compared by their hashes, so that the time of a comparison reveals nothing about a key.
    static func hash(_ key: String) -> [UInt8] { Array(SHA256.hash(data: Array(key.utf8))) }
}
