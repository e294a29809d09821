public import HexlistLists
public import HexlistModel

/// Changes of a hex of My Hexlist that name links by their nodes. Links that are not named stay as they are, so changes that others made
/// since the hex was read stay too.
public struct MineNodeEdit: Sendable {
    /// New values of a link or hex. Properties that are `nil` leave the value unchanged.
    public struct Values: Sendable, Equatable {
        /// URL and service of a link. If one of them differs, a new link takes over the place and the other values.
        public var url: String?
        public var service: String?
        public var title: String?
        /// The color of a hex.
        public var color: String?
        /// The complete new list of tags.
        public var tags: [String]?
        public var note: String?

        public init(
            url: String? = nil, service: String? = nil, title: String? = nil, color: String? = nil, tags: [String]? = nil,
            note: String? = nil
        ) {
            self.url = url
            self.service = service
            self.title = title
            self.color = color
            self.tags = tags
            self.note = note
        }
    }

    /// A new link.
    public struct NewLink: Sendable, Equatable {
        public var url: String
        public var title: String
        public var service: String
        public var tags: [String]
        public var note: String
        /// Whether a title is read if it has none.
        public var wantsTitle: Bool

        public init(
            url: String, title: String = "", service: String = "", tags: [String] = [], note: String = "", wantsTitle: Bool = true
        ) {
            self.url = url
            self.title = title
            self.service = service
            self.tags = tags
            self.note = note
            self.wantsTitle = wantsTitle
        }
    }

    /// One change. `after` is the link behind which a link is put, or the hex itself for its beginning; `nil` for the end of the hex. If
    /// the link `after` was deleted, its former place counts.
    public enum Change: Sendable, Equatable {
        /// Changes values of a link, or of the hex itself. A link that was deleted meanwhile is restored, as if both changes had been made
        /// on machines that were apart.
        case set(ListNode.ID, Values)
        /// Deletes a link. No effect on a deleted one.
        case remove(ListNode.ID)
        case add(NewLink, after: ListNode.ID?)
        /// Moves a link within the hex. Restores a deleted one, as `set` does.
        case move(ListNode.ID, after: ListNode.ID?)

        /// Whether it puts a link at the same place as another change.
        func isPlaced(like other: Change) -> Bool {
            switch (self, other) {
            case (.add(_, let place), .add(_, let otherPlace)), (.add(_, let place), .move(_, let otherPlace)),
                (.move(_, let place), .add(_, let otherPlace)), (.move(_, let place), .move(_, let otherPlace)):
                place == otherPlace
            case (.set, _), (.remove, _), (_, .set), (_, .remove): false
            }
        }
    }

    /// New values of the hex itself.
    public var values: Values
    /// The changes, which take effect one after the other. Links that consecutive changes put at one place are there in the order of the
    /// changes.
    public var changes: [Change]
    /// The version that the links of the hex must have (`MineLinks`); `nil` for no check.
    public var version: String?

    /// Maximum number of changes: two of each link that a hex can show, such as a value and a place.
    public static let maximumChanges = 2 * HexInserter.maximumLinks

    public init(values: Values = Values(), changes: [Change], version: String? = nil) {
        self.values = values
        self.changes = changes
        self.version = version
    }

    /// Parses the id of a node.
    /// - Parameter name: the name of the value, for an error.
    /// - Throws: `.badRequest`.
    public static func node(_ text: String, named name: String) throws(HexlistError) -> ListNode.ID {
        guard let id = ListNode.ID(base64url: text.utf8) else {
            throw HexlistError(
                .badRequest, "`\(name)`: `\(TerminalText.clean(text, columns: 40))` is not the id of a link or hex.",
                hint: "`GET /v1/hexes/ID` has them, as `node`.")
        }
        return id
    }
}

extension HexStore {
    /// Changes links of a hex of My Hexlist, and the hex itself, by their nodes. All changes are made, or none.
    /// - Parameter wantsTitles: as for `addMine`, for new links.
    /// - Returns: the number of the change in the change log; `nil` if nothing changed.
    /// - Throws: `.notFound` if there is no such hex, or it never had one of the links; `.badRequest` if the hex is not in My Hexlist, or
    ///   the changes are not valid; `.changed` if the version is another one now.
    @discardableResult
    public func editMine(_ id: Int64, by edit: MineNodeEdit, wantsTitles: Bool = false, at now: Int64) async throws -> Int64? {
        try await write(rows: 1 + edit.changes.count) { writer in
            try writer.numberOfChange {
                try writer.editMine(id, by: edit, at: now)
                guard wantsTitles else { return }
                let new = edit.changes.compactMap { if case .add(let link, _) = $0, link.wantsTitle { link } else { nil } }
                try writer.enqueueTitles(of: new.map { (url: $0.url, description: $0.title) }, in: id)
            }
        }
    }
}

extension StoreWriter {
    func editMine(_ id: Int64, by edit: MineNodeEdit, at now: Int64) throws {
        try change {
            try checkIsMine(id)
            try checkVersion(edit.version, ofLinksOf: id)
            guard let node = try node(ofHex: id) else { throw HexlistError.noHex(id) }
            try edit.check(node.id, number: id)
            let before = try linkCount(aroundMine: id)
            try changeMine(at: now, in: node.list) { try $0.apply(edit, to: node.id, number: id) }
            // Changes of several machines together may have exceeded the bounds. Other changes than additions are possible then.
            if try linkCount(aroundMine: id) > before { try checkBounds(ofTop: id) }
        }
    }

    /// Returns the number of links in the topmost hex that contains a hex, at all levels.
    private func linkCount(aroundMine id: Int64) throws -> Int { try summary(ofTop: id).map { $0.linkCount + $0.linksInside } ?? 0 }
}

extension MineNodeEdit {
    /// Throws `.badRequest` for changes that are not possible in any hex.
    /// - Parameters:
    ///   - hex: the hex that is changed.
    ///   - number: its id in the table `hex`.
    fileprivate func check(_ hex: ListNode.ID, number: Int64) throws {
        guard !changes.isEmpty else { throw HexlistError(.badRequest, "There are no changes.", hint: "Name at least one link.") }
        guard changes.count <= Self.maximumChanges else {
            throw HexlistError(
                .badRequest, "\(changes.count) changes are too many for one request; the maximum is \(Self.maximumChanges).",
                hint: "Split them.")
        }
        try Self.check(values, ofLink: false)
        var (changed, moved, removed): (Set<ListNode.ID>, Set<ListNode.ID>, Set<ListNode.ID>) = ([], [], [])
        if values != Values() { changed.insert(hex) }
        for change in changes {
            switch change {
            case .set(let id, let values):
                if id != hex { try Self.checkIsLink(id) }
                guard changed.insert(id).inserted else {
                    throw HexlistError(
                        .badRequest, id == hex ? "The values of hex \(number) are given twice." : "Link \(id) is changed twice.",
                        hint: "Give all its values in one change.")
                }
                guard values != Values() else {
                    throw HexlistError(
                        .badRequest, "The change of `\(id)` has no value.", hint: "Give a `title`, `url`, `color`, `tags` or `note`.")
                }
                try Self.check(values, ofLink: id != hex)
            case .remove(let id):
                try Self.checkIsLink(id)
                guard removed.insert(id).inserted else { throw HexlistError(.badRequest, "Link \(id) is removed twice.") }
            case .move(let id, let after):
                try Self.checkIsLink(id)
                guard moved.insert(id).inserted else { throw HexlistError(.badRequest, "Link \(id) is moved twice.") }
                guard id != after else { throw HexlistError(.badRequest, "Link \(id) cannot be put after itself.") }
                if let after, after != hex { try Self.checkIsLink(after) }
            case .add(let link, let after):
                let values = Values(url: link.url, service: link.service, title: link.title, tags: link.tags, note: link.note)
                try Self.check(values, ofLink: true)
                if let after, after != hex { try Self.checkIsLink(after) }
            }
        }
        if let id = removed.first(where: { changed.contains($0) || moved.contains($0) }) {
            throw HexlistError(.badRequest, "Link \(id) is both removed and \(changed.contains(id) ? "changed" : "moved").")
        }
    }

    private static func check(_ values: Values, ofLink isLink: Bool) throws {
        try StoreWriter.check(texts: [values.url, values.service, values.title, values.color, values.note])
        try StoreWriter.check(tags: values.tags ?? [])
        guard isLink else {
            guard values.url == nil, values.service == nil else { throw HexlistError(.badRequest, "A hex has no `url` and no `service`.") }
            return
        }
        guard values.color == nil else { throw HexlistError(.badRequest, "A link has no `color`.") }
        if let url = values.url, HexSubject.isBlank(url) { throw HexlistError(.badRequest, "The `url` of a link cannot be empty.") }
    }

    private static func checkIsLink(_ id: ListNode.ID) throws {
        guard id.kind != .link else { return }
        throw HexlistError(
            .badRequest, "`\(id)` is not a link of this hex.",
            hint: id.kind != .hex
                ? nil : "To change another hex: `PATCH /v1/mine/ID` with its id. To move it: `POST /v1/mine/ID/move`.")
    }
}
