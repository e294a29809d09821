import HexlistJSON
import HexlistModel

/// The `links` member of a hex, in any of the accepted forms.
struct LinksValue {
    enum Form {
        case absent
        case null
        case array
        /// An object that maps paths to links or URLs (rule T17).
        case map
        /// A string (rule T18). It is parsed after all members of the hex, because a later `links` member would replace it.
        case text
        /// A number or a boolean (rule T4).
        case scalar
    }

    var form: Form = .absent
    /// The range of the string without its quotes, if the form is `text`.
    var start = 0
    var end = 0
    var hasEscapes = false
    var isRepeated = false
}

/// The slices of the buffer `TextReader.arena` with the names of known services. Each is `nil` until the name was added.
struct KnownServices {
    var unknown: TextSlice?
    var dropbox: TextSlice?
    var box: TextSlice?
    var googleDrive: TextSlice?
}

extension HexReader {
    /// Reads the value of a `links` member.
    /// - Parameter open: the number of open containers around the value.
    /// - Returns: the position after the value.
    @inline(__always)
    mutating func links(
        _ json: JSONScanner, at position: Int, open: Int, into member: inout LinksValue
    ) throws(GrammarFault) -> Int {
        switch json.byte(position) {
        case UInt8(ascii: "["):
            member.form = .array
            return try array(json, at: position, open: open &+ 1)
        case UInt8(ascii: "{"):
            member.form = .map
            return try map(json, at: position, open: open &+ 1)
        case UInt8(ascii: "\""):
            let token = try json.string(from: position &+ 1)
            member.form = .text
            member.start = position &+ 1
            member.end = token.end
            member.hasEscapes = token.hasEscapes
            return token.end &+ 1
        case UInt8(ascii: "n"): member.form = .null
        default: member.form = .scalar
        }
        return try json.scalar(at: position)
    }

    /// Parses the string that is the value of `links` (rule T18). Called after all members of the hex were read, because a later `links`
    /// member would replace the string.
    mutating func finishLinks(_ json: JSONScanner, _ member: LinksValue) {
        guard member.start < member.end else { return }
        let mark = unknown.mark
        let repairMark = repairs.count
        if !member.hasEscapes {
            if isEmbedded(json.ending(at: member.end), from: member.start) { return }
        } else {
            var text: [UInt8] = []
            _ = json.appendText(member.start, member.end, to: &text)
            // The text is copied into the arena, because the slices of the links refer to the arena. It is parsed from its original place,
            // because the arena may be reallocated meanwhile.
            let origin = texts.arena.count
            texts.arena.append(contentsOf: text)
            let isRead = text.withUnsafeBufferPointer { bytes in
                guard let base = bytes.baseAddress else { return false }
                return isEmbedded(JSONScanner(base: base, end: bytes.count, inArenaAt: origin), from: 0)
            }
            if isRead { return }
        }
        clearLinks()
        unknown.truncate(to: mark)
        repairs.removeSubrange(repairMark...)
        addLink(url: texts.text(json, member.start, member.end, hasEscapes: member.hasEscapes))
    }

    /// Parses a text as an array or object of links.
    /// - Returns: `false` if the text is neither, or if something follows the closing bracket.
    private mutating func isEmbedded(_ json: JSONScanner, from start: Int) -> Bool {
        let position = json.skipSpace(start)
        do throws(GrammarFault) {
            switch json.byte(position) {
            case UInt8(ascii: "["): try json.finish(array(json, at: position, open: 1))
            case UInt8(ascii: "{"): try json.finish(map(json, at: position, open: 1))
            default: return false
            }
            return true
        } catch {
            return false
        }
    }

    mutating func report(_ member: LinksValue) {
        switch member.form {
        case .absent, .null: report("T2", "links")
        case .array: break
        case .map: report("T17", "links")
        case .text: report("T18", "links")
        case .scalar: report("T4", "links")
        }
        if member.isRepeated { report("T19", "links") }
    }

    /// Reads an array of links.
    /// - Parameter open: the number of open containers around an element.
    private mutating func array(_ json: JSONScanner, at start: Int, open: Int) throws(GrammarFault) -> Int {
        var position = json.enterArray(at: start)
        var index = 0
        if links.isEmpty { links.reserveCapacity(8) }
        while json.byte(position) != UInt8(ascii: "]") {
            if let end = try usualLink(json, at: position) {
                position = end
            } else {
                position = try element(json, at: position, open: open, index: index)
            }
            position = try json.nextElement(position)
            index &+= 1
        }
        return position &+ 1
    }

    /// Reads an element of any form. It is not inlined, so that the loop for ordinary links stays small.
    @inline(never)
    private mutating func element(_ json: JSONScanner, at start: Int, open: Int, index: Int) throws(GrammarFault) -> Int {
        switch json.byte(start) {
        case UInt8(ascii: "{"):
            return try link(json, at: start, open: open &+ 1, index: index, path: nil)
        case UInt8(ascii: "\""):
            let token = try json.string(from: start &+ 1)
            if token.end > start &+ 1 {
                let url = texts.text(json, start &+ 1, token.end, hasEscapes: token.hasEscapes)
                if url.form == .repaired { report("T20", "links[\(index)]") }
                report("T15", "links[\(index)]")
                addLink(url: url)
            } else {
                report("T16", "links[\(index)]")
            }
            return token.end &+ 1
        default:
            let end = try json.skipValue(at: start, open: open)
            report("T16", "links[\(index)]")
            return end
        }
    }

    /// The position of the name of a member that maps a path to a link (rule T17).
    private struct PathName {
        let start: Int
        let token: StringToken
    }

    /// Reads an object that maps paths to links (rule T17).
    /// - Parameter open: the number of open containers around a member's value.
    private mutating func map(_ json: JSONScanner, at start: Int, open: Int) throws(GrammarFault) -> Int {
        var position = try json.enterObject(at: start)
        var index = 0
        while json.byte(position) != UInt8(ascii: "}") {
            let name = PathName(start: position &+ 1, token: try json.string(from: position &+ 1))
            position = try json.value(behindName: name.token.end &+ 1)
            switch json.byte(position) {
            case UInt8(ascii: "{"):
                position = try link(json, at: position, open: open &+ 1, index: index, path: name)
            case UInt8(ascii: "\""):
                let token = try json.string(from: position &+ 1)
                if token.end > position &+ 1 {
                    addLink(
                        url: texts.text(json, position &+ 1, token.end, hasEscapes: token.hasEscapes),
                        linkDescription: texts.text(json, name.start, name.token.end, hasEscapes: name.token.hasEscapes))
                }
                position = token.end &+ 1
            default:
                position = try json.skipValue(at: position, open: open)
            }
            position = try json.nextMember(position)
            index &+= 1
        }
        return position &+ 1
    }

    /// Reads a link in the form that most senders write: three members in a fixed order, without white space, with a known service. A fast
    /// path.
    /// - Returns: the position after the `}`; `nil` for any other link, of which nothing was read.
    @inline(__always)
    private mutating func usualLink(_ json: JSONScanner, at start: Int) throws(GrammarFault) -> Int? {
        guard let urlStart = json.text(of: #"{"url":""#, at: start) else { return nil }
        let url = try json.string(from: urlStart)
        guard let descriptionStart = json.text(of: #"","linkDescription":""#, at: url.end) else { return nil }
        let description = try json.string(from: descriptionStart)
        guard let service = json.text(of: #"","service":""#, at: description.end), let end = json.spelledService(from: service),
            json.byte(end &+ 1) == UInt8(ascii: "}"), !reportsRepairs
        else { return nil }
        add(
            LinkContent(
                url: texts.text(json, urlStart, url.end, hasEscapes: url.hasEscapes).slice,
                linkDescription: texts.text(json, descriptionStart, description.end, hasEscapes: description.hasEscapes).slice,
                service: json.slice(service, end)))
        return end &+ 2
    }

    private struct PartialLink {
        var url = Text()
        var linkDescription = Text()
        var service = Text()
        var extra = TextSlice.empty
    }

    /// Reads a link.
    ///   - open: the number of open containers around a member's value.
    ///   - path: the name of the member in a map of links; it replaces a missing description (rule T17).
    @inline(never)
    private mutating func link(
        _ json: JSONScanner, at start: Int, open: Int, index: Int, path: PathName?
    ) throws(GrammarFault) -> Int {
        var link = PartialLink()
        let mark = unknown.mark
        var fileName: Int?
        var type: Int?
        var position = try json.enterObject(at: start)
        // Fast path for the usual members in the usual order. The loop below reads all others.
        try texts.read(json, usual: #""url":"#, at: &position, into: &link.url)
        try texts.read(json, usual: #""linkDescription":"#, at: &position, into: &link.linkDescription)
        try texts.read(json, usual: #""service":"#, at: &position, into: &link.service)
        while json.byte(position) != UInt8(ascii: "}") {
            let name = position &+ 1
            let token = try json.string(from: name)
            position = try json.value(behindName: token.end &+ 1)
            switch json.withName(name, token, &scratch, { LinkMember($0) }) {
            case .url: position = try texts.read(json, at: position, open: open, into: &link.url)
            case .linkDescription: position = try texts.read(json, at: position, open: open, into: &link.linkDescription)
            case .service: position = try texts.read(json, at: position, open: open, into: &link.service)
            case .fileName: position = try keep(json, name, token, at: position, open: open, insteadOf: &fileName)
            case .type: position = try keep(json, name, token, at: position, open: open, insteadOf: &type)
            case .unknown: position = try keep(json, name, token, at: position, open: open)
            }
            position = try json.nextMember(position)
        }
        if unknown.mark > mark {
            if link.linkDescription.isMissing, takeOlder(fileName, json, open, into: &link.linkDescription) {
                report("T12", "links[\(index)].linkDescription")
            }
            if link.service.isMissing, takeOlder(type, json, open, into: &link.service) {
                report("T12", "links[\(index)].service")
            }
            link.extra = close(from: mark, json) { "links[\(index)].\($0)" }
        }
        if let path, link.linkDescription.isMissing {
            link.linkDescription = texts.text(json, path.start, path.token.end, hasEscapes: path.token.hasEscapes)
        }
        if reportsRepairs {
            report(link.url, "links[\(index)].url")
            report(link.linkDescription, "links[\(index)].linkDescription")
            report(link.service, "links[\(index)].service")
        }
        let service = known(link.service, json, index)
        add(LinkContent(url: link.url.slice, linkDescription: link.linkDescription.slice, service: service, extra: link.extra))
        return position &+ 1
    }

    private mutating func addLink(url: Text, linkDescription: Text = Text()) {
        add(LinkContent(url: url.slice, linkDescription: linkDescription.slice, service: spelled(.unknown)))
    }

    @inline(__always)
    private mutating func add(_ link: LinkContent) {
        guard links.count < linkLimit else {
            violation = .links
            return
        }
        links.append(link)
        if max(link.url.count, link.linkDescription.count) > textLimit || link.service.count > textLimit {
            noteLongLink()
        }
    }

    @inline(never)
    private mutating func noteLongLink() { violation = .text("\(prefix)links[\(links.count - 1 - linkMark)]") }
}

// MARK: - Services

extension JSONScanner {
    /// Recognises the name of a known service in its canonical spelling, without branches.
    /// - Parameter start: the position after the opening quote.
    /// - Returns: the position of the closing quote; `nil` for any other text.
    @inline(__always)
    fileprivate func spelledService(from start: Int) -> Int? {
        guard start &+ 12 <= end else { return nil }
        let text = UnsafeRawPointer(base + start)
        let first = UInt64(littleEndian: text.loadUnaligned(as: UInt64.self))
        let last = UInt32(littleEndian: text.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
        // Each constant has the little-endian bytes of a name and of the closing quote. The result is 0 if the text is equal.
        let box = (first & 0xFFFF_FFFF) ^ 0x2278_6F42  // Box"
        let dropbox = first ^ 0x2278_6F62_706F_7244  // Dropbox"
        let unknown = first ^ 0x226E_776F_6E6B_6E55  // Unknown"
        let drive = (first ^ 0x7244_656C_676F_6F47) | UInt64(last ^ 0x2265_7669)  // GoogleDrive"
        let length = Self.isZero(box) &* 3 | Self.isZero(dropbox) &* 7 | Self.isZero(unknown) &* 7 | Self.isZero(drive) &* 11
        return length == 0 ? nil : start &+ length
    }

    /// Returns 1 if the word is 0, otherwise 0. It uses no comparison, because the compiler would make an unpredictable branch of it.
    @inline(__always)
    private static func isZero(_ word: UInt64) -> Int { Int(truncatingIfNeeded: ~(word | (0 &- word)) >> 63) }
}

extension HexReader {
    /// Returns the slice for the name of a service (rule T13). The name of a known service is changed to its canonical spelling.
    @inline(__always)
    private mutating func known(_ service: Text, _ json: JSONScanner, _ index: Int) -> TextSlice {
        switch service.slice.count {
        case 3, 7, 11, 12:
            let isSpelled = texts.withBytes(of: service.slice, in: json) { bytes in
                bytes.equals("Dropbox") || bytes.equals("GoogleDrive") || bytes.equals("Box") || bytes.equals("Unknown")
            }
            return isSpelled ? service.slice : respelled(service, json, index)
        case 0:
            if service.form == .plain { report("T13", "links[\(index)].service") }
            return spelled(.unknown)
        default:
            return service.slice
        }
    }

    @inline(never)
    private mutating func respelled(_ service: Text, _ json: JSONScanner, _ index: Int) -> TextSlice {
        let match = texts.withBytes(of: service.slice, in: json) { bytes in
            Service.allCases.first { bytes.matches($0.rawValue) }
                ?? (bytes.matches("google_drive") || bytes.matches("Google Drive") ? .googleDrive : nil)
        }
        guard let match else { return service.slice }
        report("T13", "links[\(index)].service")
        return spelled(match)
    }

    /// Returns the slice of the arena with the name of a known service.
    private mutating func spelled(_ service: Service) -> TextSlice {
        switch service {
        case .unknown: texts.known(service, &services.unknown)
        case .dropbox: texts.known(service, &services.dropbox)
        case .box: texts.known(service, &services.box)
        case .googleDrive: texts.known(service, &services.googleDrive)
        }
    }
}

extension TextReader {
    fileprivate mutating func known(_ service: Service, _ slice: inout TextSlice?) -> TextSlice {
        if let slice { return slice }
        let start = arena.count
        arena.append(contentsOf: service.rawValue.utf8)
        let spelled = TextSlice(arena: start..<arena.count)
        slice = spelled
        return spelled
    }
}
