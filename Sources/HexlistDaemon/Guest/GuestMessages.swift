import HexlistJSON

/// The JSON messages between the guest page and the daemon (Docs/Guests.md). Unknown members of requests are ignored.
enum GuestMessage {
    struct Join: JSONShape {
        var key: String
        /// The token of an earlier join, which the page sends after a reload.
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
        /// The URL of the link; `nil` if the guest page must not open it.
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
        /// The modification time of the file in milliseconds since 1970; `nil` if unknown.
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
        /// A random id for each hex, 32 hexadecimal digits. With it, a repeated request does not store the hex again.
        var id: String
        var name: String?
        var text: String?
        /// The ids of the uploaded files that the hex contains.
        var files: [String]?
    }

    struct Empty: JSONShape {}

    struct Fault: JSONShape {
        var message: String
        /// The offset at which the next piece has to begin; set if the piece in the request had another offset.
        var at: Int64?
    }
}
