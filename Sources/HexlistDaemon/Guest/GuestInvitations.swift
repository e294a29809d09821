import HexlistAPI
import HexlistModel

/// The invitations of this machine with their guests and uploads. Decides what guests may do, and applies all limits. Performs no IO; time
/// and random values are passed in.
struct GuestInvitations {
    typealias Instant = ContinuousClock.Instant

    /// Maximum number of active invitations.
    static let limit = 4
    /// Maximum numbers of guests, hexes and files of one invitation.
    static let guestLimit = 8
    static let hexLimit = 60
    static let fileLimit = 200
    /// Maximum size of one file in bytes.
    static let largestFile: Int64 = 4 << 30
    /// Maximum total bytes of the files that guests have announced, for all invitations together.
    static let byteLimit: Int64 = 16 << 30
    /// Number of wrong keys from one IP address after which all its attempts to join are refused.
    static let wrongKeysOfAddress = 5
    /// Number of wrong keys from all addresses after which all invitations end.
    static let wrongKeys = 50
    /// Time after the deadline of an invitation in which files that were announced before the deadline may still arrive.
    static let finishingTime = Duration.seconds(30 * 60)
    /// Maximum number of ended invitations that are stored, so that their guests and the command line can be notified of the end.
    private static let endedLimit = 4

    typealias End = HexlistAPI.Invitation.End

    struct Options: Sendable {
        var time: Duration
        /// Whether the first hex ends the invitation.
        var isOnce = false
        /// Whether hexes of guests are held until the user accepts them.
        var isHeld = false
    }

    struct Invitation {
        let id: Int
        /// SHA-256 of the key in the URL of the invitation.
        fileprivate let key: [UInt8]
        let options: Options
        let ends: Instant
        fileprivate(set) var end: End?
        fileprivate(set) var guests: [Guest] = []
        fileprivate(set) var hexes = 0
        fileprivate var files = 0

        fileprivate var hasUploads: Bool { guests.contains { !$0.uploads.isEmpty } }

        /// Whether the invitation accepts new guests, files and hexes.
        func isActive(_ now: Instant) -> Bool { end == nil && now < ends }
        /// Whether the invitation accepts pieces of announced files. With unfinished uploads this stays true for `finishingTime` after the
        /// deadline.
        fileprivate func isOpen(_ now: Instant) -> Bool {
            isActive(now) || end == nil && hasUploads && now < ends + GuestInvitations.finishingTime
        }
    }

    /// A browser that joined an invitation.
    struct Guest {
        let peer: PeerID
        /// SHA-256 of the token that authorises the requests of this guest.
        fileprivate var token: [UInt8]
        let address: IPAddress
        fileprivate(set) var uploads: [Upload] = []
        /// The states of the guest's hexes, by the ids that the page gave to them.
        fileprivate var sends: [String: SendState] = [:]
    }

    /// A file that is being uploaded, or that was uploaded and belongs to no hex yet.
    struct Upload: Equatable, Sendable {
        var id: String
        var name: String
        var size: Int64
        /// The modification time in milliseconds since 1970. Name, size and this time identify the file after a reload of the page.
        var modified: Int64
        var isComplete = false
        /// Whether a hex with this file is being stored.
        var isTaken = false
    }

    fileprivate enum SendState { case storing, stored }

    /// Identifies a guest of an invitation.
    struct GuestID: Hashable, Sendable {
        var invitation: Int
        var guest: Int
    }

    private(set) var all: [Invitation] = []
    private var lastID = 0
    /// Number of wrong keys from each IP address since the newest invitation was made.
    private var wrongKeysByAddress: [IPAddress: Int] = [:]
    /// Total bytes of the files that guests have announced and not cancelled. Reset if an invitation is made while no other one is open.
    private var announcedBytes: Int64 = 0

    // MARK: Invitations

    /// Adds an invitation.
    /// - Parameter key: SHA-256 of its key.
    /// - Returns: the id of the invitation; `nil` if `limit` invitations are active already.
    mutating func invite(key: [UInt8], _ options: Options, now: Instant) -> Int? {
        guard all.count(where: { $0.isActive(now) }) < Self.limit else { return nil }
        wrongKeysByAddress = [:]
        if !isOpen(now) { announcedBytes = 0 }
        lastID += 1
        all.append(Invitation(id: lastID, key: key, options: options, ends: now + options.time))
        return lastID
    }

    func invitation(_ id: Int) -> Invitation? { all.first { $0.id == id } }

    /// Whether any invitation is open, so that the peer port has to answer guests.
    func isOpen(_ now: Instant) -> Bool { all.contains { $0.isOpen(now) } }

    /// Returns the time at which `update` has to be called next; `nil` if all invitations have ended.
    func nextDeadline(_ now: Instant) -> Instant? {
        all.filter { $0.end == nil }.map { now < $0.ends ? $0.ends : $0.ends + Self.finishingTime }.min()
    }

    /// Ends an invitation immediately.
    /// - Returns: the uploads to delete; `nil` if there is no such invitation, or it has already ended.
    mutating func end(_ id: Int, _ reason: End) -> [Upload]? {
        guard let index = all.firstIndex(where: { $0.id == id && $0.end == nil }) else { return nil }
        return end(at: index, reason)
    }

    mutating func endAll(_ reason: End) -> [Upload] { all.indices.flatMap { all[$0].end == nil ? end(at: $0, reason) : [] } }

    private mutating func end(at index: Int, _ reason: End) -> [Upload] {
        all[index].end = reason
        var uploads: [Upload] = []
        for guest in all[index].guests.indices {
            uploads += all[index].guests[guest].uploads.filter { !$0.isTaken }
            all[index].guests[guest].uploads = []
        }
        return uploads
    }

    /// Ends invitations whose time is over, and removes the oldest ended ones above `endedLimit`.
    /// - Returns: the uploads to delete.
    mutating func update(_ now: Instant) -> [Upload] {
        var uploads: [Upload] = []
        for index in all.indices where all[index].end == nil && !all[index].isOpen(now) { uploads += end(at: index, .time) }
        let ended = all.filter { $0.end != nil }.map(\.id)
        let forgotten = Set(ended.prefix(max(0, ended.count - Self.endedLimit)))
        all.removeAll { forgotten.contains($0.id) }
        return uploads
    }

    // MARK: Guests

    enum Joined: Equatable {
        case joined(GuestID, isNew: Bool)
        case refused(GuestRefusal)
        /// Too many wrong keys were tried, so all invitations ended. The caller has to delete the uploads.
        case allEnded([Upload])
    }

    /// Admits a browser that has the key of an invitation as a guest. If it also has the token of an earlier join from the same IP address,
    /// it is the same guest as before.
    /// - Parameters:
    ///   - key: SHA-256 of the key.
    ///   - token: SHA-256 of the token of an earlier join; `nil` for none.
    ///   - newToken: SHA-256 of the token for a new guest.
    mutating func join(
        key: [UInt8], token: [UInt8]?, newToken: [UInt8], peer: PeerID, from address: IPAddress, now: Instant
    ) -> Joined {
        guard isOpen(now) else { return .refused(.over) }
        let wrong = wrongKeysByAddress[address] ?? 0
        guard wrong < Self.wrongKeysOfAddress else {
            return .refused(GuestRefusal(status: 429, message: "Too many wrong addresses were tried from this device."))
        }
        guard let index = all.firstIndex(where: { $0.key == key }) else {
            wrongKeysByAddress[address] = wrong + 1
            guard wrongKeysByAddress.values.reduce(0, +) < Self.wrongKeys else { return .allEnded(endAll(.keys)) }
            return .refused(GuestRefusal(status: 403, message: "This is not the address of an invitation. Scan the QR code again."))
        }
        if let token, let guest = all[index].guests.firstIndex(where: { $0.token == token && $0.address == address }) {
            guard all[index].isOpen(now) else { return .refused(.over) }
            return .joined(GuestID(invitation: all[index].id, guest: guest), isNew: false)
        }
        guard all[index].isActive(now) else { return .refused(.over) }
        guard all[index].guests.count < Self.guestLimit else {
            return .refused(GuestRefusal(status: 429, message: "\(Self.guestLimit) devices have opened this invitation already."))
        }
        all[index].guests.append(Guest(peer: peer, token: newToken, address: address))
        return .joined(GuestID(invitation: all[index].id, guest: all[index].guests.count - 1), isNew: true)
    }

    /// Finds the guest with a token.
    /// - Parameter token: SHA-256 of the token.
    /// - Throws: a refusal with 403 for an unknown token or a token of another IP address; with 410 after the end of the guest's
    ///   invitation, or if no invitation is open.
    func guest(token: [UInt8], from address: IPAddress, now: Instant) throws(GuestRefusal) -> GuestID {
        for invitation in all {
            guard let index = invitation.guests.firstIndex(where: { $0.token == token && $0.address == address }) else { continue }
            guard invitation.isOpen(now) else { throw .over }
            return GuestID(invitation: invitation.id, guest: index)
        }
        guard isOpen(now) else { throw .over }
        throw GuestRefusal(status: 403, message: "This page has expired. Scan the QR code again.")
    }

    subscript(id: GuestID) -> Guest? { invitation(id.invitation)?.guests[id.guest] }

    // MARK: Files

    /// Adds an upload for a file that a guest announces.
    /// - Parameter upload: a new upload with a random id.
    /// - Returns: the upload; if the guest has announced the same file before and no hex uses it, the earlier upload.
    mutating func announce(_ upload: Upload, of id: GuestID, now: Instant) throws(GuestRefusal) -> (Upload, isNew: Bool) {
        guard let index = all.firstIndex(where: { $0.id == id.invitation }) else { throw .over }
        let known = all[index].guests[id.guest].uploads.first {
            !$0.isTaken && $0.size == upload.size && $0.modified == upload.modified && PeerTextComparison.areEqual($0.name, upload.name)
        }
        if let known { return (known, false) }
        guard all[index].isActive(now) else { throw .over }
        guard (0...Self.largestFile).contains(upload.size) else {
            throw GuestRefusal(status: 413, message: "A file can have at most \(Self.largestFile >> 30) GiB.")
        }
        guard all[index].files < Self.fileLimit else {
            throw GuestRefusal(status: 413, message: "At most \(Self.fileLimit) files can be sent with one invitation.")
        }
        guard upload.size <= Self.byteLimit - announcedBytes else {
            throw GuestRefusal(status: 413, message: "All files together can have at most \(Self.byteLimit >> 30) GiB.")
        }
        all[index].files += 1
        announcedBytes += upload.size
        all[index].guests[id.guest].uploads.append(upload)
        return (upload, true)
    }

    func upload(_ upload: String, of id: GuestID) -> Upload? { self[id]?.uploads.first { PeerTextComparison.areEqual($0.id, upload) } }

    mutating func completed(_ upload: String, of id: GuestID) {
        change(upload, of: id) { $0.isComplete = true }
    }

    /// Removes an upload that no hex uses yet. Called if the guest cancels it, or if its partial file could not be created.
    /// - Returns: whether there was such an upload.
    mutating func cancel(_ upload: String, of id: GuestID) -> Bool {
        guard let known = self.upload(upload, of: id), !known.isTaken, let index = all.firstIndex(where: { $0.id == id.invitation }) else {
            return false
        }
        all[index].guests[id.guest].uploads.removeAll { PeerTextComparison.areEqual($0.id, upload) }
        all[index].files -= 1
        announcedBytes -= known.size
        return true
    }

    private mutating func change(_ upload: String, of id: GuestID, _ change: (inout Upload) -> Void) {
        guard let index = all.firstIndex(where: { $0.id == id.invitation }),
            let uploadIndex = all[index].guests[id.guest].uploads.firstIndex(where: { PeerTextComparison.areEqual($0.id, upload) })
        else { return }
        change(&all[index].guests[id.guest].uploads[uploadIndex])
    }

    // MARK: Hexes

    enum Sending: Equatable {
        /// The hex has to be stored with these files, in order. The caller has to call `sent` or `notSent` afterwards.
        case store([Upload])
        /// The hex is stored already: the page repeats a request whose reply was lost.
        case alreadyStored
    }

    /// Begins to store a hex.
    /// - Parameters:
    ///   - send: the id that the page gave to the hex.
    ///   - files: the ids of the uploads that are its files.
    mutating func send(_ send: String, files: [String], of id: GuestID, now: Instant) throws(GuestRefusal) -> Sending {
        guard let index = all.firstIndex(where: { $0.id == id.invitation }) else { throw .over }
        switch all[index].guests[id.guest].sends[send] {
        case .stored: return .alreadyStored
        case .storing: throw GuestRefusal(status: 409, message: "This is being stored already.")
        case nil: break
        }
        var uploads: [Upload] = []
        for file in files {
            guard let upload = upload(file, of: id), !upload.isTaken, !uploads.contains(where: { $0.id == upload.id }) else {
                throw GuestRefusal.notFound
            }
            guard upload.isComplete else { throw GuestRefusal(status: 409, message: "A file has not arrived completely.") }
            uploads.append(upload)
        }
        guard all[index].isActive(now) || !uploads.isEmpty && all[index].isOpen(now) else { throw .over }
        guard !all[index].options.isOnce || all[index].hexes == 0 else { throw .over }
        guard all[index].hexes < Self.hexLimit else {
            throw GuestRefusal(status: 429, message: "This invitation was used \(Self.hexLimit) times. Ask for a new one.")
        }
        all[index].hexes += 1
        all[index].guests[id.guest].sends[send] = .storing
        for upload in uploads { change(upload.id, of: id) { $0.isTaken = true } }
        return .store(uploads)
    }

    /// Records that a hex was stored. Ends the invitation if it was for one hex.
    /// - Returns: the uploads to delete, because the invitation ended.
    mutating func sent(_ send: String, of id: GuestID) -> [Upload] {
        guard let index = all.firstIndex(where: { $0.id == id.invitation }) else { return [] }
        all[index].guests[id.guest].sends[send] = .stored
        all[index].guests[id.guest].uploads.removeAll(where: \.isTaken)
        return all[index].options.isOnce && all[index].end == nil ? end(at: index, .once) : []
    }

    /// Records that a hex could not be stored. Its uploads stay, so that the guest can send it again.
    /// - Returns: the uploads to delete, if the invitation has ended meanwhile.
    mutating func notSent(_ send: String, files: [Upload], of id: GuestID) -> [Upload] {
        guard let index = all.firstIndex(where: { $0.id == id.invitation }) else { return files }
        all[index].hexes -= 1
        all[index].guests[id.guest].sends[send] = nil
        guard all[index].end == nil else { return files }
        for upload in files { change(upload.id, of: id) { $0.isTaken = false } }
        return []
    }
}
