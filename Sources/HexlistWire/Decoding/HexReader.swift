import HexlistJSON
import HexlistModel

/// The limit of the protocol that a hex exceeds (Docs/Protocol.md, "Tolerant decoding").
enum LimitViolation {
    case links
    case children
    case levels
    /// A text is too long. The value is the path of its member, such as `links[0].url`.
    case text(String)

    var code: RefusalCode {
        switch self {
        case .links, .children, .levels: .tooManyLinks
        case .text: .tooLarge
        }
    }

    var message: String {
        switch self {
        case .links: "the hex has more than \(ProtocolLimits.links) links"
        case .children: "the hex has more than \(ProtocolLimits.children) hexes in it"
        case .levels: "the hex has more than \(ProtocolLimits.levels) levels of hexes"
        case .text(let path): "`\(path)` has more than \(ProtocolLimits.stringBytes) bytes"
        }
    }
}

/// Parses a HexJM into slices of its bytes. It takes one pass for the hex, and one for each level of inner hexes (`HexReader+Children`).
///
/// Members may have any order and may be repeated. Each one is parsed at its position, and the last one of a name is used (rule T19). A
/// repeated member therefore costs only the reading of its own bytes.
struct HexReader {
    var texts = TextReader()
    var unknown = UnknownMembers()
    /// A buffer for unescaping member names.
    var scratch: [UInt8] = []
    let reportsRepairs: Bool
    var repairs: [Repair] = []

    var members = WrapperMembers()
    /// The object of a Hello, Ack or Pair.
    var object: WrapperObject?
    /// The string that contains the object, without escapes, if `jmObject` is a string with escapes (rule T5); otherwise `nil`.
    var text: [UInt8]?

    // The hex that was read last. Its texts are slices of the frame's bytes or of `TextReader.arena`.
    var senderUUID: TextSlice = .empty
    var senderName: TextSlice = .empty
    var hexDescription: TextSlice = .empty
    var hexColor: TextSlice = .empty
    var links: [LinkContent] = []
    var extra: TextSlice = .empty
    var violation: LimitViolation?
    /// The inner hexes, as in `HexContent.children`.
    var children: [ChildContent] = []
    var childPositions: [ChildPosition] = []
    /// The number of links that belong to the outermost hex. They come first in `links`; the others belong to inner hexes.
    var ownLinks = 0
    /// The index of the inner hex that is being read; `nil` for the outermost hex.
    var current: Int?
    /// The number of links before the current hex was read, to which `clearLinks` returns.
    var linkMark = 0
    /// The value of `violation` before the current hex was read, to which `clearLinks` returns.
    var violationMark: LimitViolation?
    /// The `packageUUID` of a link package (rule T14), if it is a valid message ID.
    var packageUUID: MessageID?
    /// The `key` of a hex in the local API; `nil` if there is none.
    var key: TextSlice?

    /// The slices with names of known services, so that each name is stored only once per hex.
    var services = KnownServices()
    let linkLimit = ProtocolLimits.links
    let textLimit = ProtocolLimits.stringBytes

    init(reportsRepairs: Bool) { self.reportsRepairs = reportsRepairs }

    /// Resets the reader for the next frame.
    mutating func begin() {
        texts.begin()
        services = KnownServices()
        unknown.removeAll()
        if !repairs.isEmpty { repairs = [] }
        members = WrapperMembers()
        if object != nil { object = nil }
        if text != nil { text = nil }
        packageUUID = nil
    }

    private mutating func clear() {
        senderUUID = .empty
        senderName = .empty
        hexDescription = .empty
        hexColor = .empty
        linkMark = 0
        violationMark = nil
        clearLinks()
        if !children.isEmpty { clearChildren() }
        extra = .empty
        packageUUID = nil
        key = nil
    }

    /// Removes the links of the current hex.
    mutating func clearLinks() {
        if links.count > linkMark { links.removeSubrange(linkMark...) }
        violation = violationMark
    }

    /// Creates the content of the hex. The links are moved; all other parts are copied.
    /// - Parameter frame: the bytes from which the hex was read.
    @inline(__always)
    mutating func content(frame: [UInt8]) -> HexContent {
        var content = HexContent()
        fill(&content, frame)
        return content
    }

    /// Sets the parts of the content in place. The function is not inlined: otherwise the compiler would copy the value once more, with a
    /// retain and a release of each part.
    @inline(never)
    private mutating func fill(_ content: inout HexContent, _ frame: [UInt8]) {
        content.frame = frame
        if !texts.arena.isEmpty { content.arena = texts.arena.withUnsafeBufferPointer { Array($0) } }
        content.senderUUID = senderUUID
        content.senderName = senderName
        content.hexDescription = hexDescription
        content.hexColor = hexColor
        content.extra = extra
        guard !children.isEmpty else {
            swap(&content.links, &links)
            return
        }
        content.links = Array(links[..<ownLinks])
        content.children = children.withUnsafeBufferPointer { Array($0) }
        content.childLinks = Array(links[ownLinks...])
    }

    @inline(__always)
    mutating func report(_ rule: String, _ path: @autoclosure () -> String) {
        if reportsRepairs { repairs.append(Repair(path: prefix + path(), rule: rule)) }
    }

    mutating func report(_ text: Text, _ path: @autoclosure () -> String) {
        guard reportsRepairs else { return }
        if let rule = text.form.rule { report(rule, path()) }
        if text.isRepeated { report("T19", path()) }
    }
}

// MARK: - The hex

/// The members of a hex while it is being read.
struct PartialHex {
    var senderUUID = Text()
    var senderName = Text()
    var hexDescription = Text()
    var hexColor = Text()
    var links = LinksValue()
    var children = ChildrenMember()
    var older = AliasMembers()
    var extra = TextSlice.empty

    /// The bytes of the longest text of the hex. Texts of links and inner hexes are not included.
    @inline(__always)
    var longestText: Int {
        max(max(senderUUID.slice.count, senderName.slice.count), max(hexDescription.slice.count, hexColor.slice.count))
    }
}

/// The members with names of older versions or of the local API. Each value is the index, among the unknown members, of the last member
/// with this name.
struct AliasMembers {
    var description: Int?
    var color: Int?
    var key: Int?
    var packageUUID: Int?
}

extension HexReader {
    /// Reads a hex, with its inner hexes.
    /// - Parameters:
    ///   - start: the position of the `{`.
    ///   - start: the position of the `{`.
    ///   - open: the number of open containers around the object.
    /// - Returns: the position after the `}`.
    mutating func object(
        _ json: JSONScanner, at start: Int, open: Int, dialect: HexMember.Dialect = .wire
    ) throws(GrammarFault) -> Int {
        clear()
        var hex = PartialHex()
        let end = try members(json, at: start, open: open, dialect, into: &hex)
        senderUUID = hex.senderUUID.slice
        senderName = hex.senderName.slice
        hexDescription = hex.hexDescription.slice
        hexColor = hex.hexColor.slice
        extra = hex.extra
        if hex.children.start > 0 { try readChildren(json, at: hex.children.start, open: open, dialect) }
        return end
    }

    /// Reads the members of a hex. The value of `children` is only checked for valid syntax; the inner hexes are read later.
    /// - Returns: the position after the `}`.
    @inline(__always)
    mutating func members(
        _ json: JSONScanner, at start: Int, open: Int, _ dialect: HexMember.Dialect, into hex: inout PartialHex
    ) throws(GrammarFault) -> Int {
        let repairMark = repairs.count
        let mark = unknown.mark
        var position = try json.enterObject(at: start)
        // Fast path for the usual members in the usual order. The loop below reads all others.
        try texts.read(json, usual: #""senderUUID":"#, at: &position, into: &hex.senderUUID)
        try texts.read(json, usual: #""senderName":"#, at: &position, into: &hex.senderName)
        try texts.read(json, usual: #""hexDescription":"#, at: &position, into: &hex.hexDescription)
        try texts.read(json, usual: #""hexColor":"#, at: &position, into: &hex.hexColor)
        if let value = json.value(of: #""links":"#, at: position) {
            position = try json.nextMember(links(json, at: value, open: open &+ 1, into: &hex.links))
        }
        while json.byte(position) != UInt8(ascii: "}") {
            let name = position &+ 1
            let token = try json.string(from: name)
            position = try json.value(behindName: token.end &+ 1)
            switch json.withName(name, token, &scratch, { HexMember($0, dialect) }) {
            case .links:
                if hex.links.form != .absent {
                    clearLinks()
                    if reportsRepairs { repairs.removeSubrange(repairMark...) }
                    hex.links.isRepeated = true
                }
                position = try links(json, at: position, open: open &+ 1, into: &hex.links)
            case .senderUUID: position = try texts.read(json, at: position, open: open &+ 1, into: &hex.senderUUID)
            case .senderName: position = try texts.read(json, at: position, open: open &+ 1, into: &hex.senderName)
            case .hexDescription: position = try texts.read(json, at: position, open: open &+ 1, into: &hex.hexDescription)
            case .hexColor: position = try texts.read(json, at: position, open: open &+ 1, into: &hex.hexColor)
            case .children: position = try children(json, name, token, at: position, open: open &+ 1, into: &hex.children)
            case .unknown: position = try keep(json, name, token, at: position, open: open &+ 1)
            case .localDescription:
                position = try keep(json, name, token, at: position, open: open &+ 1, insteadOf: &hex.older.description)
            case .localColor: position = try keep(json, name, token, at: position, open: open &+ 1, insteadOf: &hex.older.color)
            case .key: position = try keep(json, name, token, at: position, open: open &+ 1, insteadOf: &hex.older.key)
            case .packageUUID: position = try keep(json, name, token, at: position, open: open &+ 1, insteadOf: &hex.older.packageUUID)
            }
            position = try json.nextMember(position)
        }
        if hex.links.form == .text { finishLinks(json, hex.links) }
        if unknown.mark > mark {
            take(hex.older, json, open, &hex.hexDescription, &hex.hexColor)
            hex.extra = close(from: mark, json) { $0 }
        }
        if hex.longestText > textLimit { noteLongText(hex) }
        if reportsRepairs {
            report(hex.senderUUID, "senderUUID")
            report(hex.senderName, "senderName")
            report(hex.hexDescription, "hexDescription")
            report(hex.hexColor, "hexColor")
            report(hex.links)
            report(hex.children)
        }
        return position &+ 1
    }

    private mutating func take(
        _ older: AliasMembers, _ json: JSONScanner, _ open: Int, _ hexDescription: inout Text, _ hexColor: inout Text
    ) {
        if hexDescription.isMissing { _ = takeOlder(older.description, json, open, into: &hexDescription) }
        if hexColor.isMissing { _ = takeOlder(older.color, json, open, into: &hexColor) }
        var text = Text()
        if takeOlder(older.key, json, open, into: &text) { key = text.slice }
        if let index = older.packageUUID {
            var id = Text()
            _ = try? texts.read(json, at: unknown.members[index].value.lowerBound, open: open, into: &id)
            packageUUID = id.form == .plain ? messageID(id.slice, json) : nil
            if packageUUID != nil { unknown.drop(index) }
        }
    }

    @inline(never)
    private mutating func noteLongText(_ hex: PartialHex) {
        guard violation == nil else { return }
        let texts = [
            (hex.senderUUID, "senderUUID"), (hex.senderName, "senderName"), (hex.hexDescription, "hexDescription"),
            (hex.hexColor, "hexColor"),
        ]
        violation = texts.first { $0.0.slice.count > textLimit }.map { .text(prefix + $0.1) }
    }

    /// Parses a message ID (rule T21); `nil` if the text is not a UUID, or is the UUID of only zeros or only ones.
    @inline(__always)
    func messageID(_ slice: TextSlice, _ json: JSONScanner) -> MessageID? {
        guard slice.count == 36, let uuid = texts.withBytes(of: slice, in: json, { UUIDBytes(text: $0) }),
            uuid != .nil, uuid != .max
        else { return nil }
        return MessageID(uuid)
    }
}

// MARK: - Unknown members

extension HexReader {
    /// Records an unknown member, which is kept unchanged (rule T1).
    /// - Returns: the position after its value.
    mutating func keep(
        _ json: JSONScanner, _ name: Int, _ token: StringToken, at value: Int, open: Int
    ) throws(GrammarFault) -> Int {
        let end = try json.skipValue(at: value, open: open)
        _ = unknown.append(UnknownMember(name: name..<token.end, hasEscapedName: token.hasEscapes, value: value..<end))
        return end
    }

    /// Records a member with a name of an older version or of the local API. Its value is used if the member with the usual name is
    /// missing.
    /// - Parameter index: set to the index of the member among the unknown members.
    mutating func keep(
        _ json: JSONScanner, _ name: Int, _ token: StringToken, at value: Int, open: Int, insteadOf index: inout Int?
    ) throws(GrammarFault) -> Int {
        let end = try keep(json, name, token, at: value, open: open)
        if let index { unknown.drop(index) }
        index = unknown.mark - 1
        return end
    }

    /// Uses the value of the unknown member at `index` for `text`, unless the value is `null`. The member is then no longer kept.
    /// - Returns: whether the value was used.
    mutating func takeOlder(_ index: Int?, _ json: JSONScanner, _ open: Int, into text: inout Text) -> Bool {
        guard let index else { return false }
        let value = unknown.members[index].value.lowerBound
        guard json.byte(value) != UInt8(ascii: "n") else { return false }
        // The value was validated before, so reading it cannot fail.
        guard (try? texts.read(json, at: value, open: open, into: &text)) != nil else { return false }
        unknown.drop(index)
        return true
    }

    /// Appends the unknown members of an object to the arena, as a JSON object.
    /// - Parameter path: returns the path of a member with the given name.
    mutating func close(from mark: Int, _ json: JSONScanner, path: (String) -> String) -> TextSlice {
        if reportsRepairs {
            // A repeated name is reported for each member that a later one replaces.
            var repeated: [UnknownMember] = []
            let range = unknown.close(from: mark, in: json, appendingTo: &texts.arena) { repeated.append($0) }
            let kept = unknown.members[mark...].filter(\.isKept)
            let prefix = prefix
            repairs += kept.map { Repair(path: prefix + path(string($0, json)), rule: "T1") }
            repairs += repeated.map { Repair(path: prefix + path(string($0, json)), rule: "T19") }
            unknown.truncate(to: mark)
            return TextSlice(arena: range)
        }
        let range = unknown.close(from: mark, in: json, appendingTo: &texts.arena) { _ in }
        unknown.truncate(to: mark)
        return TextSlice(arena: range)
    }

    private func string(_ member: UnknownMember, _ json: JSONScanner) -> String {
        var name: [UInt8] = []
        _ = json.appendText(member.name.lowerBound, member.name.upperBound, to: &name)
        return String(decoding: name, as: UTF8.self)
    }
}
