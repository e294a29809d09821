/// A file of a web page, with its URL path. The contents of all files are compiled into the program.
public struct PageFile: Sendable {
    public let path: String
    public let mediaType: String
    public let bytes: [UInt8]

    public static let all = [
        PageFile(path: "/", mediaType: "text/html; charset=utf-8", bytes: PackageResources.index_html),
        PageFile(path: "/style.css", mediaType: "text/css; charset=utf-8", bytes: PackageResources.style_css),
        PageFile(path: "/main.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.main_js),
        PageFile(path: "/api.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.api_js),
        PageFile(path: "/dom.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.dom_js),
        PageFile(path: "/list.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.list_js),
        PageFile(path: "/hexes.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.hexes_js),
        PageFile(path: "/files.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.files_js),
        PageFile(path: "/images.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.images_js),
        PageFile(path: "/peers.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.peers_js),
        PageFile(path: "/history.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.history_js),
        PageFile(path: "/invite.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.invite_js),
        PageFile(path: "/compose.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.compose_js),
        PageFile(path: "/outbox.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.outbox_js),
        PageFile(path: "/linktext.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.linktext_js),
        PageFile(path: "/mine.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.mine_js),
        PageFile(path: "/shares.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.shares_js),
        PageFile(path: "/sharing.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.sharing_js),
        PageFile(path: "/linkedits.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.linkedits_js),
        PageFile(path: "/uploads.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.uploads_js),
        PageFile(path: "/icon.svg", mediaType: "image/svg+xml", bytes: PackageResources.icon_svg),
    ]

    /// The files of the page for guests (folder `Guest`).
    public static let guest = [
        PageFile(path: "/", mediaType: "text/html; charset=utf-8", bytes: PackageResources.guest_html),
        PageFile(path: "/guest.css", mediaType: "text/css; charset=utf-8", bytes: PackageResources.guest_css),
        PageFile(path: "/guest.js", mediaType: "text/javascript; charset=utf-8", bytes: PackageResources.guest_js),
        PageFile(path: "/icon.svg", mediaType: "image/svg+xml", bytes: PackageResources.icon_svg),
    ]
}
