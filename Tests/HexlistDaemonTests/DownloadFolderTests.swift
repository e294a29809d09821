import Testing

@testable import HexlistDaemon

@Suite("The download folder") struct DownloadFolderTests {
    @Test(
        "is read from user-dirs.dirs",
        arguments: [
            ("XDG_DOWNLOAD_DIR=\"$HOME/Downloads\"\n", "/home/ada/Downloads"),
            ("# a comment\nXDG_DESKTOP_DIR=\"$HOME/Desktop\"\n  XDG_DOWNLOAD_DIR=\"/data/in\"\n", "/data/in"),
            ("XDG_DOWNLOAD_DIR=\"$HOME/a \\\"b\\\" \\\\ c\"", "/home/ada/a \"b\" \\ c"),
            ("XDG_DOWNLOAD_DIR=\"$HOME/\"", nil), ("XDG_DOWNLOAD_DIR=\"$HOME\"", nil), ("XDG_DOWNLOAD_DIR=\"/home/ada//\"", nil),
            ("XDG_DOWNLOAD_DIR=\"relative\"", nil), ("XDG_DOWNLOAD_DIR=$HOME/x", nil), ("", nil),
        ] as [(String, String?)]
    ) func configured(text: String, path: String?) { #expect(DownloadFolder.path(in: text, home: "/home/ada") == path) }

    @Test("is that of the environment, or ~/Downloads without any") func fallback() {
        func path(_ environment: [String: String]) -> String {
            DownloadFolder.path(environment: environment, configurationHome: "/nowhere")
        }
        #expect(path(["HOME": "/home/ada", "XDG_DOWNLOAD_DIR": "/in"]) == "/in")
        #expect(path(["HOME": "/home/ada", "XDG_DOWNLOAD_DIR": "in"]) == "/home/ada/Downloads")
        #expect(path(["HOME": "/home/ada", "XDG_DOWNLOAD_DIR": "/home/ada/"]) == "/home/ada/Downloads")
    }
}
