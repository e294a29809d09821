/// A file of the page that `hexlist web` opens, as it is served. The files are in `Files`, and in the program: one file to install.
public struct PageFile: Sendable {
    /// The path of its address.
    public let path: String
    /// The media type.
    public let type: String
    public let bytes: [UInt8]

    public static let all = [
        PageFile(path: "/", type: "text/html; charset=utf-8", bytes: PackageResources.index_html),
        PageFile(path: "/style.css", type: "text/css; charset=utf-8", bytes: PackageResources.style_css),
        PageFile(path: "/main.js", type: "text/javascript; charset=utf-8", bytes: PackageResources.main_js),
        PageFile(path: "/api.js", type: "text/javascript; charset=utf-8", bytes: PackageResources.api_js),
        PageFile(path: "/dom.js", type: "text/javascript; charset=utf-8", bytes: PackageResources.dom_js),
        PageFile(path: "/list.js", type: "text/javascript; charset=utf-8", bytes: PackageResources.list_js),
        PageFile(path: "/hexes.js", type: "text/javascript; charset=utf-8", bytes: PackageResources.hexes_js),
        PageFile(path: "/peers.js", type: "text/javascript; charset=utf-8", bytes: PackageResources.peers_js),
        PageFile(path: "/compose.js", type: "text/javascript; charset=utf-8", bytes: PackageResources.compose_js),
        PageFile(path: "/outbox.js", type: "text/javascript; charset=utf-8", bytes: PackageResources.outbox_js),
        PageFile(path: "/mine.js", type: "text/javascript; charset=utf-8", bytes: PackageResources.mine_js),
        PageFile(path: "/icon.svg", type: "image/svg+xml", bytes: PackageResources.icon_svg),
    ]
}
