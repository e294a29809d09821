import Foundation
import HexlistModel
import TestSupport
import Testing

@testable import HexlistDaemon

@Suite("The desktop session", .timeLimit(.minutes(5))) struct DesktopSessionTests {
    /// A program that writes its arguments, one per line, to the file `NAME.arguments` beside it.
    private func install(_ name: String, in folder: TemporaryFolder) throws {
        try folder.write("#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$0.new\" && mv \"$0.new\" \"$0.arguments\"\n", to: name)
        chmod("\(folder.path)/\(name)", 0o755)
    }

    @Test("shows a file by its URI, whatever its name contains") func show() async throws {
        try await TemporaryFolder.with { folder in
            try install("gdbus", in: folder)
            try folder.write("", to: "it's 100% [new].txt")
            let desktop = DesktopSession(environment: ["PATH": "\(folder.path):/usr/bin:/bin"])
            try await desktop.show("\(folder.path)/it's 100% [new].txt")
            let arguments = try String(contentsOfFile: "\(folder.path)/gdbus.arguments", encoding: .utf8).split(separator: "\n")
            #expect(arguments.contains("org.freedesktop.FileManager1.ShowItems"))
            #expect(arguments.contains { $0.hasPrefix("['file:///") && $0.hasSuffix("/it%27s%20100%25%20%5Bnew%5D.txt']") }, "\(arguments)")
            await #expect(throws: HexlistError.self) { try await desktop.show("\(folder.path)/gone") }
        }
    }

    @Test("opens a link by the portal, and shows texts without markup") func link() async throws {
        try await TemporaryFolder.with { folder in
            for name in ["gdbus", "notify-send"] { try install(name, in: folder) }
            let desktop = DesktopSession(environment: ["PATH": "\(folder.path):/usr/bin:/bin"])
            func arguments(_ name: String) throws -> [String] {
                try String(contentsOfFile: "\(folder.path)/\(name).arguments", encoding: .utf8).split(separator: "\n").map(String.init)
            }
            try await desktop.open(link: "https://a.example/it's?x=%20&y=\u{e4}#'}")
            let call = try arguments("gdbus")
            let uri = "'https://a.example/it%27s?x=%20&y=%C3%A4#%27}'"
            #expect(call.suffix(4) == ["org.freedesktop.portal.OpenURI.OpenURI", "''", uri, "@a{sv} {}"])
            #expect(call.contains("org.freedesktop.portal.Desktop") && call.contains("/org/freedesktop/portal/desktop"))
            try await desktop.notify("--version", "Opened <b>a</b> & c")
            #expect(try arguments("notify-send") == ["--app-name=Hexlist", "--", "--version", "Opened &lt;b&gt;a&lt;/b&gt; &amp; c"])
            let none = DesktopSession(environment: ["PATH": "/nowhere"])
            await #expect(throws: HexlistError.self) { try await none.open(link: "https://a.example/") }
            await #expect(throws: HexlistError.self) { try await none.notify("a", "b") }
        }
    }

    @Test("opens files whose name and content agree, in a desktop session only") func open() async throws {
        try await TemporaryFolder.with { folder in
            try install("xdg-open", in: folder)
            for (name, text) in [("note.txt", "a note"), ("note.pdf", "not a PDF"), ("run.sh", "#!/bin/sh")] {
                try folder.write(text, to: name)
            }
            let path = "\(folder.path):/usr/bin:/bin"
            let desktop = DesktopSession(environment: ["PATH": path, "DISPLAY": ":9"])
            try await desktop.open("\(folder.path)/note.txt")
            try await eventually {
                (try? String(contentsOfFile: "\(folder.path)/xdg-open.arguments", encoding: .utf8)) == "\(folder.path)/note.txt\n"
            }
            for name in ["note.pdf", "run.sh"] {
                let error = await #expect(throws: HexlistError.self) { try await desktop.open("\(folder.path)/\(name)") }
                #expect(error?.code == .forbidden)
            }
            let error = await #expect(throws: HexlistError.self) {
                try await DesktopSession(environment: ["PATH": path]).open("\(folder.path)/note.txt")
            }
            #expect(error?.code == .notSupported)
        }
    }
}
