import HexlistJSON

/// The messages of the guest page, all JSON (Docs/Guests.md). Unknown members of requests are ignored.
enum GuestMessage {
    struct Join: JSONShape {
        var key: String
        /// The token of an earlier join, after a reload of the page.
        var token: String?
    }

    struct Joined: JSONShape {
        var token: String
        /// The name of this machine.
        var name: String
        /// The end of the invitation in milliseconds since 1970.
        var until: Int64
        /// Whether the invitation ends after one hex.
        var once: Bool
        var hexes: [Hex]
    }

    /// A hex that the guest may read.
    struct Hex: JSONShape {
        var description: String
        var links: [Link]
        var files: [File]
    }

    struct Link: JSONShape {
        var name: String
        /// `nil` for a link that the guest page must not open.
        var url: String?
        /// The host of the link, as browsers show it.
        var host: String?
    }

    struct File: JSONShape {
        var href: String
        var name: String
        var size: Int64
    }

    struct Announcement: JSONShape {
        var name: String
        var size: Int64
        /// Milliseconds since 1970.
        var modified: Int64?
    }

    struct Announced: JSONShape {
        var id: String
        var at: Int64
    }

    struct Position: JSONShape {
        var at: Int64
    }

    struct Send: JSONShape {
        /// 32 hexadecimal digits, drawn for each hex, so that a repeated request stores it once.
        var id: String
        var name: String?
        var text: String?
        /// The ids of files that arrived.
        var files: [String]?
    }

    struct Empty: JSONShape {}

    struct Fault: JSONShape {
        var message: String
        /// The offset of the next piece, if the request had another one.
        var at: Int64?
    }
}
