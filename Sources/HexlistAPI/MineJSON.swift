public import HexlistJSON
public import HexlistModel

/// The body of `PATCH /v1/mine/{id}`: the changes of a hex of My Hexlist. A missing member stays unchanged.
public struct MineEditRequest: JSONShape, Sendable, Equatable {
    public var description: String?
    public var color: String?
    /// The new list of tags of the hex itself.
    public var tags: [String]?
    /// The new list of links, in order. Not together with `changes`.
    public var links: [LinkEdit]?
    /// Changes that name links by their nodes. Other links stay as they are.
    public var changes: [MineNodeChange]?
    /// `HexJSON.version` to which the request refers. If it is another one now, nothing is changed (`changed`). `nil` for no check: with
    /// `links`, links that were added since are deleted then.
    public var version: String?

    private enum CodingKeys: String, RequestKey {
        case description, color, tags, links, changes, version
    }

    public init(
        description: String? = nil, color: String? = nil, tags: [String]? = nil, links: [LinkEdit]? = nil,
        changes: [MineNodeChange]? = nil, version: String? = nil
    ) {
        self.description = description
        self.color = color
        self.tags = tags
        self.links = links
        self.changes = changes
        self.version = version
    }
}

/// One link in `MineEditRequest.links`: an existing link, possibly changed, or a new one.
public struct LinkEdit: JSONShape, Sendable, Equatable {
    /// The current number of the link, from 1; `nil` for a new link. Members of an existing link that are missing in the request keep their
    /// values, and so do its unknown members.
    public var from: Int?
    /// The new URL; required for a new link.
    public var url: String?
    public var linkDescription: String?
    public var service: String?
    /// The new list of tags of the link.
    public var tags: [String]?
    /// Whether the daemon reads the title of the linked page for a new link without a description; `nil` means yes. The page of `hexlist
    /// web` sends `false` for a moved link, because the link may be from a peer.
    public var title: Bool?

    private enum CodingKeys: String, RequestKey {
        case from, url, linkDescription, service, tags, title
    }

    public init(
        from: Int? = nil, url: String? = nil, linkDescription: String? = nil, service: String? = nil, tags: [String]? = nil,
        title: Bool? = nil
    ) {
        self.from = from
        self.url = url
        self.linkDescription = linkDescription
        self.service = service
        self.tags = tags
        self.title = title
    }
}

/// The body of `POST /v1/mine/{id}/move`: the destination of a hex of My Hexlist.
public struct MineMoveRequest: JSONShape, Sendable, Equatable {
    /// The id of the hex that contains the moved hex afterwards; `nil` for that of the hex `before` or `after`, or the top level.
    public var parent: Int64?
    /// The id of the hex before or after which the moved hex is inserted. At most one is given; without them, the moved hex is put at the
    /// end of `parent`, or before the next older hex of the top level.
    public var before: Int64?
    public var after: Int64?

    private enum CodingKeys: String, RequestKey {
        case parent = "in"
        case before, after
    }

    public init(into parent: Int64?, before: Int64? = nil, after: Int64? = nil) {
        (self.parent, self.before, self.after) = (parent, before, after)
    }
}

/// The body of `POST /v1/mine/save`: the ids of hexes to copy to My Hexlist.
public struct MineCopyRequest: JSONShape, Sendable, Equatable {
    public var ids: [Int64]
    /// The id of the hex of My Hexlist that contains the copies; `nil` for the top level.
    public var parent: Int64?

    private enum CodingKeys: String, RequestKey {
        case ids
        case parent = "in"
    }

    public init(_ ids: [Int64], into parent: Int64? = nil) {
        self.ids = ids
        self.parent = parent
    }
}

/// A hex that was deleted from My Hexlist and can be restored.
public struct BinnedHexJSON: JSONShape, Sendable, Equatable {
    /// The id that the hex had before its deletion.
    public var id: Int64
    public var subject: String
    /// Number of inner hexes and number of links, both at all levels.
    @OmittedIfEmpty public var hexesInside: Int
    public var links: Int
    public var deletedAt: Timestamp
    /// The time after which the daemon deletes the hex permanently.
    public var ends: Timestamp

    public init(id: Int64, subject: String, hexesInside: Int, links: Int, deletedAt: Timestamp, ends: Timestamp) {
        self.id = id
        self.subject = subject
        self.links = links
        self.deletedAt = deletedAt
        self.ends = ends
        self.hexesInside = hexesInside
    }
}

/// The reply to `POST /v1/mine/save`: the ids of the new hexes, and the number of copied hexes and links at all levels.
public struct MineSaveResult: JSONShape, Sendable, Equatable {
    public var ids: [Int64]
    public var hexes: Int
    public var links: Int

    public init(ids: [Int64], hexes: Int, links: Int) {
        self.ids = ids
        self.hexes = hexes
        self.links = links
    }
}

/// Numbers of hexes or links that a change of My Hexlist changed, at all levels.
public struct MineChangeCounts: JSONShape, Sendable, Equatable {
    @OmittedIfEmpty public var added: Int
    @OmittedIfEmpty public var deleted: Int
    @OmittedIfEmpty public var restored: Int
    @OmittedIfEmpty public var moved: Int
    @OmittedIfEmpty public var changed: Int

    public init(added: Int = 0, deleted: Int = 0, restored: Int = 0, moved: Int = 0, changed: Int = 0) {
        self.added = added
        self.deleted = deleted
        self.restored = restored
        self.moved = moved
        self.changed = changed
    }
}

/// A change of My Hexlist in the change log: everything that one request changed.
public struct MineChangeJSON: JSONShape, Sendable, Equatable {
    /// The number of the change, for `POST /v1/mine/undo`.
    public var number: Int64
    public var at: Timestamp
    /// `nil` if no hexes were changed; `links` likewise.
    public var hexes: MineChangeCounts?
    public var links: MineChangeCounts?
    /// The id of the first hex that was changed, or whose links were. The hex may be deleted.
    public var hex: Int64?
    /// The subject of that hex after the change.
    public var subject: String
    /// Number of further changed hexes, without those inside added or deleted hexes.
    @OmittedIfEmpty public var others: Int
    /// The machine that made the change; `nil` for this one.
    public var by: PeerID?
    @InlinedMembers public var tag: PeerSummary?
    /// Whether the change merged the collection of `by` with that of this machine.
    @OmittedIfEmpty public var joined: Bool
    /// Whether the change is itself an undo.
    @OmittedIfEmpty public var undo: Bool
    /// The number of the change that undid this one.
    public var undoneBy: Int64?
    /// Whether the change can be undone.
    public var undoable: Bool
    /// The first values that were changed.
    @OmittedIfEmpty public var values: [MineChangedValue]

    public init(
        number: Int64, at: Timestamp, hexes: MineChangeCounts?, links: MineChangeCounts?, hex: Int64?, subject: String, others: Int,
        by: PeerID? = nil, tag: PeerSummary? = nil, joined: Bool = false, undo: Bool, undoneBy: Int64?, undoable: Bool,
        values: [MineChangedValue]
    ) {
        self.number = number
        self.at = at
        self.hexes = hexes
        self.links = links
        self.hex = hex
        self.undoneBy = undoneBy
        self.undoable = undoable
        self.subject = subject
        self.others = others
        self.by = by
        self.tag = tag
        self.joined = joined
        self.undo = undo
        self.values = values
    }
}

/// A value of a hex or link that a change wrote.
public struct MineChangedValue: JSONShape, Sendable, Equatable {
    /// The URL of the link; `nil` for a hex.
    public var link: String?
    /// `title`, `color`, `note`, `tag NAME`, `other`, or for a link `deleted`.
    public var name: String
    /// The texts before and after the change, of at most 240 bytes.
    public var before: String
    public var after: String

    public init(link: String?, name: String, before: String, after: String) {
        self.link = link
        self.name = name
        self.before = before
        self.after = after
    }
}

/// The body of `POST /v1/mine/undo`: the numbers of changes.
public struct MineUndoRequest: JSONShape, Sendable, Equatable {
    public var changes: [Int64]

    private enum CodingKeys: String, RequestKey {
        case changes
    }

    public init(changes: [Int64]) { self.changes = changes }
}

/// The reply to `POST /v1/mine/undo`.
public struct MineUndoResult: JSONShape, Sendable, Equatable {
    /// The number of the undo in the change log.
    public var number: Int64
    /// The changes of which at least one value was reverted, ascending.
    @OmittedIfEmpty public var undone: [Int64]
    public var hexes: MineChangeCounts?
    public var links: MineChangeCounts?
    /// The first values that were not reverted, because they were changed again later, and the number of all of them.
    @OmittedIfEmpty public var kept: [MineKeptValue]
    @OmittedIfEmpty public var keptCount: Int

    public init(
        number: Int64, undone: [Int64], hexes: MineChangeCounts?, links: MineChangeCounts?, kept: [MineKeptValue], keptCount: Int
    ) {
        self.number = number
        self.undone = undone
        self.hexes = hexes
        self.links = links
        self.kept = kept
        self.keptCount = keptCount
    }
}

/// A value that an undo did not revert.
public struct MineKeptValue: JSONShape, Sendable, Equatable {
    /// The number of the change that was to be undone.
    public var change: Int64
    /// The id of the hex, or of the hex that contains the link.
    public var hex: Int64?
    /// The URL of the link; `nil` for a hex.
    public var link: String?
    /// As in `MineChangedValue`, or `place`; `added`, `deleted` and `restored` for the hex or link itself.
    public var name: String

    public init(change: Int64, hex: Int64?, link: String?, name: String) {
        self.change = change
        self.hex = hex
        self.link = link
        self.name = name
    }
}

/// A hex or link in the trash of My Hexlist.
public struct TrashedItemJSON: JSONShape, Sendable, Equatable {
    /// The number of the item, for `POST /v1/mine/restore`.
    public var number: Int64
    /// The id of the hex; `nil` for a link.
    public var hex: Int64?
    /// The subject of the hex, or the description of the link.
    public var subject: String
    /// The URL of the link; `nil` for a hex.
    public var url: String?
    /// The id and subject of the hex in which it was; `nil` for the top level. That hex may be deleted.
    public var parent: Int64?
    public var parentSubject: String?
    /// Numbers of inner hexes and links that were deleted together with the hex, at all levels; of a link, those of further ones in the same
    /// item.
    @OmittedIfEmpty public var hexesInside: Int
    @OmittedIfEmpty public var links: Int
    public var deletedAt: Timestamp
    /// The time after which the daemon removes the item permanently.
    public var ends: Timestamp

    private enum CodingKeys: String, CodingKey {
        case number, hex, subject, url
        case parent = "in"
        case parentSubject = "inSubject"
        case hexesInside, links, deletedAt, ends
    }

    public init(
        number: Int64, hex: Int64?, subject: String, url: String?, parent: Int64?, parentSubject: String?, hexesInside: Int, links: Int,
        deletedAt: Timestamp, ends: Timestamp
    ) {
        self.number = number
        self.hex = hex
        self.subject = subject
        self.url = url
        self.parent = parent
        self.parentSubject = parentSubject
        self.deletedAt = deletedAt
        self.ends = ends
        self.hexesInside = hexesInside
        self.links = links
    }
}

/// The body of `POST /v1/mine/restore`: numbers of items in the trash, or ids that deleted hexes had.
public struct MineRestoreRequest: JSONShape, Sendable, Equatable {
    public var numbers: [Int64]?
    public var hexes: [Int64]?

    private enum CodingKeys: String, RequestKey {
        case numbers, hexes
    }

    public init(numbers: [Int64]? = nil, hexes: [Int64]? = nil) { (self.numbers, self.hexes) = (numbers, hexes) }
}

/// The reply to `POST /v1/mine/restore`.
public struct MineRestoreResult: JSONShape, Sendable, Equatable {
    public var restored: [RestoredItemJSON]

    public init(restored: [RestoredItemJSON]) { self.restored = restored }
}

/// An item that was restored from the trash.
public struct RestoredItemJSON: JSONShape, Sendable, Equatable {
    /// The number that it had in the trash.
    public var number: Int64
    /// The id of the hex, or of the hex in which the link is.
    public var hex: Int64
    /// The number of the link in the hex, from 1; `nil` for a hex.
    public var link: Int?
    /// The id of the hex in which a restored hex is; `nil` for a link, and for a hex at the top level.
    public var parent: Int64?
    /// Whether the hex of a link was deleted, and is shown again with the restored links only.
    @OmittedIfEmpty public var hexRestored: Bool
    /// The ids of the hexes around that hex which were deleted too and are shown again for the same reason, the innermost first.
    @OmittedIfEmpty public var around: [Int64]
    /// Numbers of further hexes and links that were restored with a link, because they were one item.
    @OmittedIfEmpty public var otherHexes: Int
    @OmittedIfEmpty public var otherLinks: Int

    private enum CodingKeys: String, CodingKey {
        case number, hex, link, hexRestored, around, otherHexes, otherLinks
        case parent = "in"
    }

    public init(
        number: Int64, hex: Int64, link: Int?, parent: Int64?, hexRestored: Bool, around: [Int64] = [], otherHexes: Int = 0,
        otherLinks: Int = 0
    ) {
        self.number = number
        self.hex = hex
        self.link = link
        self.parent = parent
        self.hexRestored = hexRestored
        self.around = around
        self.otherHexes = otherHexes
        self.otherLinks = otherLinks
    }
}
