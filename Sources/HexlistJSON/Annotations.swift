public import HexlistModel

/// The tags and the note of a link or hex. They are kept among its unknown members, as `"tags":["db","to read"]` and `"note":"…"`, so
/// that every version forwards and exports them.
public struct Annotations: Sendable, Equatable {
    public var tags: [String] = []
    /// Empty if there is none.
    public var note = ""

    /// Maximum number of tags that are read. Further ones are kept, but not shown or searched.
    public static let maximumTags = 100

    public init() {}

    /// Reads the members of a JSON object. Members of other types, blank tags, and texts longer than `ProtocolLimits.stringBytes` are
    /// ignored.
    /// - Parameter extra: a JSON object; empty for none.
    public init(extra: [UInt8]) {
        guard !extra.isEmpty, let members = (try? JSONValue(parsing: extra))?.members else { return }
        for member in members {
            if member.nameBytes.elementsEqual("tags".utf8) {
                let texts = (member.value.elements ?? []).lazy.compactMap(\.string).filter(Self.isTag)
                tags = Array(texts.prefix(Self.maximumTags))
            } else if member.nameBytes.elementsEqual("note".utf8), let text = member.value.string {
                note = text.utf8.count <= ProtocolLimits.stringBytes ? text : ""
            }
        }
    }

    /// Returns the unknown members with the given tags and note instead of the present ones; empty if no members are left. A new note is
    /// put after the other members, and tags are the last.
    /// - Parameters:
    ///   - extra: a JSON object; empty for none.
    ///   - tags: the new list of tags; `nil` for the present ones.
    ///   - note: the new note, empty for none; `nil` for the present one.
    public static func extra(_ extra: [UInt8], settingTags tags: [String]?, note: String? = nil) -> [UInt8] {
        let members = (try? JSONValue(parsing: extra))?.members ?? []
        let present = members.filter { $0.nameBytes.elementsEqual("tags".utf8) }
        let kept = members.filter {
            !$0.nameBytes.elementsEqual("tags".utf8) && (note == nil || !$0.nameBytes.elementsEqual("note".utf8))
        }
        let hasTags = tags.map { !$0.isEmpty } ?? !present.isEmpty
        guard !kept.isEmpty || hasTags || note.map({ !$0.isEmpty }) ?? false else { return [] }
        var json = JSONWriter()
        json.object { json in
            for member in kept { json.member(member.name, member.value) }
            if let note, !note.isEmpty { json.member("note", note) }
            if let tags {
                if hasTags { json.named("tags") { json in json.array(tags) { $0.string($1) } } }
            } else {
                for member in present { json.member(member.name, member.value) }
            }
        }
        return json.bytes
    }

    /// Whether a text is not blank and short enough for a tag.
    public static func isTag(_ text: String) -> Bool {
        text.utf8.count <= ProtocolLimits.stringBytes && text.unicodeScalars.contains { !$0.properties.isWhitespace }
    }
}

extension HexContent {
    /// Returns the annotations in the unknown members of a link or hex.
    public func annotations(_ extra: TextSlice) -> Annotations {
        extra.isEmpty ? Annotations() : Annotations(extra: withBytes(of: extra) { Array($0) })
    }
}
