import HexlistAPI
import HexlistFiles
import HexlistJSON
import HexlistModel
import Testing

@testable import HexlistRclone

@Suite("rclone's output") struct AnswerTests {
    private static func entry(_ name: String, _ size: Int64?, _ time: Int64? = nil) -> FileEntry {
        FileEntry(name: name, kind: size == nil ? .folder : .file, size: size, modified: time.map { Timestamp(milliseconds: $0) })
    }

    @Test("pages continue after the last entry, in each order", arguments: [FolderSortOrder.name, .size, .time]) func pages(
        _ order: FolderSortOrder
    )
        throws
    {
        let entries = (0..<250).map { (number: Int64) -> FileEntry in
            let size: Int64? = number % 9 == 0 ? nil : number % 5
            return Self.entry("f\(number * 7 % 250)", size, number % 11)
        }
        let listing = RemoteListing(entries, by: order, leftOut: 1)
        var names: [String] = []
        var after: String?
        repeat {
            let page = try #require(listing.page(after: after, limit: 40))
            #expect(page.items.count <= 40 && page.leftOut == 1)
            names += page.items.map(\.name)
            after = page.next
        } while after != nil
        #expect(names.count == 250 && Set(names).count == 250)
        #expect(names == listing.entries.map(\.name))
        if order == .size { #expect(listing.entries.first?.size == 4 && listing.entries.last?.size == nil) }
        if order == .time { #expect(listing.entries.first?.modified?.milliseconds == 10) }
        #expect(listing.page(after: "nonsense", limit: 1) == nil)
    }

    @Test("few listings are cached, and briefly") func cache() {
        let cache = ListingCache()
        let now = ContinuousClock.now
        for number in 0..<10 { cache.keep(RemoteListing([Self.entry("a", 1)], by: .name, leftOut: 0), "r", "\(number)", now: now) }
        #expect(cache.entryCount == 4)
        #expect(cache.listing("r", "9", .name, now: now) != nil && cache.listing("r", "9", .size, now: now) == nil)
        #expect(cache.listing("r", "0", .name, now: now) == nil)
        #expect(cache.listing("r", "9", .name, now: now + .seconds(61)) == nil && cache.entryCount == 0)
        let large = (0..<60_000).map { Self.entry("\($0)", 1) }
        for number in 0..<3 { cache.keep(RemoteListing(large, by: .name, leftOut: 0), "r", "\(number)", now: now) }
        #expect(cache.entryCount == 60_000)
    }

    @Test(
        "implausible values of an entry are dropped; an entry with an invalid name is omitted",
        arguments: [
            (#"{"Name":"a.txt","Size":3,"MimeType":"text/plain","ModTime":"2026-11-23T00:00:37Z","IsDir":false}"#, "a.txt" as String?),
            (#"{"Name":"..","Size":3,"IsDir":false}"#, nil), (#"{"Name":"a/b","Size":3,"IsDir":false}"#, nil),
            (#"{"Name":"","Size":3,"IsDir":false}"#, nil), (#"{"Name":"a\u0000b","IsDir":true}"#, nil), (#"{"Name":"a","Size":3}"#, nil),
            (#"[]"#, nil), (#"{"Name":"d","Size":-1,"IsDir":true}"#, "d"),
            (#"{"Name":"x","Size":-5,"MimeType":"\u0007","IsDir":false}"#, "x"),
        ]) func entries(_ json: String, _ name: String?) throws
    {
        let entry = FileEntry(rclone: try JSONValue(parsing: json))
        #expect(entry?.name == name)
        #expect(entry?.size.map { $0 >= 0 } ?? true && entry?.mediaType != "\u{7}")
        if name == "a.txt" { #expect(entry?.modified?.description == "2026-11-23T00:00:37.000Z" && entry?.size == 3) }
    }

    @Test(
        "times in Go's format",
        arguments: [
            ("2026-11-23T00:00:37Z", "2026-11-23T00:00:37.000Z" as String?), ("2026-11-23T00:00:37.5Z", "2026-11-23T00:00:37.500Z"),
            ("2026-11-23T00:00:37.123456789Z", "2026-11-23T00:00:37.123Z"), ("2026-11-23T00:30:00+01:00", "2026-11-22T23:30:00.000Z"),
            ("2026-11-22T20:00:00.25-03:30", "2026-11-22T23:30:00.250Z"), ("2026-11-23", nil), ("2026-11-23T00:00:37", nil),
            ("2026-11-23T00:00:37+1:00", nil), ("2026-11-23T00:00:37.5+99:99", nil),
        ]) func times(_ text: String, _ time: String?)
    { #expect(Timestamp(rfc3339: text)?.description == time) }

    @Test("the port comes from the line that announces it; the reason of an exit is the last error logged") func words() {
        var words = StderrTail()
        let announced = "2026/11/23 00:00:37 NOTICE: Serving remote control on http://127.0.0.1:46073/\n"
        #expect(Array(announced.utf8).compactMap { words.read([$0]) } == [46_073])
        #expect(words.read(Array(announced.utf8)[...]) == nil, "once")
        _ = words.read(Array("2026/11/23 00:03:33 Failed to load config file \"/x\": no\n".utf8)[...])
        #expect(words.reason == "Failed to load config file \"/x\": no" && words.fault == .notStarted(words.reason))
        _ = words.read(Array("Failed to load: unable to decrypt configuration and not allowed to ask for password\n".utf8)[...])
        #expect(words.fault == .encrypted)
        _ = words.read([UInt8](repeating: 0x41, count: 1 << 20)[...])
        for _ in 0..<100 { _ = words.read(Array("noise\n".utf8)[...]) }
        #expect(words.reason == "noise")
    }

    @Test(
        "an error is classified by its message",
        arguments: [
            (404, "error in ListJSON: directory not found", RcloneFault.Cause.notFound as RcloneFault.Cause?),
            (404, "object not found", .notFound), (500, "webdav root '' doesn't support public links", .noLinks),
            (500, "Local file system at /tmp doesn't support public links", .noLinks),
            (500, "couldn't fetch token - maybe it has expired? - refresh with \"rclone config reconnect box:\"", .signIn),
            (500, "expired_access_token/", .signIn), (500, "too_many_requests/.", .temporary),
            (500, "dial tcp: connection refused", .temporary), (500, "lookup cloud.example on 9.9.9.9:53: no such host", .temporary),
            (500, "429 Too Many Requests", .temporary), (500, "read: connection reset by peer", .temporary),
            (500, "failed to decrypt password: base64 decode failed when revealing password - is it obscured?", .settings),
            (500, "couldn't decrypt password: input too short when revealing password - is it obscured?", .settings),
            (500, "config name contains invalid characters - may only contain `0-9`, `A-Z`, `a-z`, `_`, `-`, `.` and space", .settings),
            (500, "didn't find backend called \"nosuch\"", .settings), (500, "didn't find section in config file", .settings),
            (500, "alias can't point to an empty remote - check the value of the remote setting", .settings),
            (500, "parse \"://x/\": missing protocol scheme", .settings), (500, "password must be set", .settings),
            (500, "exec: \"ssh\": executable file not found in $PATH", nil), (500, "something nobody has heard of", nil),
            (400, "expecting string value", nil),
        ]) func meanings(_ status: Int, _ message: String, _ cause: RcloneFault.Cause?)
    {
        let fault = RcloneFault.refused(status: status, message: message)
        #expect(fault.cause == cause)
        // The program also repeats unknown errors. Only known temporary errors have the hint that the user should try again later.
        #expect(fault.isTemporary == (cause == .temporary || cause == nil && status == 500))
        #expect((fault.error("r", "p").hint?.hasPrefix("Try again later") == true) == (cause == .temporary))
    }

    @Test("a sign-in hint fits the kind of remote and names the configuration in use") func signIns() throws {
        let fault = RcloneFault.refused(status: 500, message: "401 Unauthorized")
        var settings = RcloneSettings(configuration: "/etc/rclone.conf", environment: [:])
        #expect(
            fault.error("box", kind: "box", command: settings.command).hint
                == "`rclone --config /etc/rclone.conf config reconnect box:` signs in again.")
        #expect(try #require(fault.error("dav", kind: "webdav").hint).hasPrefix("Check its user, password or keys"))
        settings.configuration = nil
        #expect(settings.command == "rclone")
    }

    @Test("a remote named like this machine's shares gets another service name, which no remote has") func reservedNames() {
        let names = ["shares", "Shares", "rclone.shares", "rclone"]
        #expect(names.map { Rclone.serviceName(of: $0, among: names) } == ["rclone.rclone.shares", "Shares", "rclone.shares", "rclone"])
    }

    @Test(
        "valid names of remotes",
        arguments: [
            ("dropbox", true), ("my files", true), ("ünï", true), ("", false), (":local", false), ("a:b", false), ("a,b=c", false),
            ("a/b", false),
            ("-f", false), ("a\u{1b}b", false), ("\"a", false),
        ]) func names(_ name: String, _ isName: Bool)
    { #expect(Rclone.isName(name) == isName) }

    @Test("rclone's environment lacks RCLONE variables, and each login is new") func environment() {
        var settings = RcloneSettings(environment: [
            "HOME": "/h", "RCLONE_RC_NO_AUTH": "true", "RCLONE_RC_SERVE": "true", "RCLONE_CONFIG_X_TYPE": "local", "NOTIFY_SOCKET": "/x",
            "HEXLIST_SOCKET": "/y", "https_proxy": "http://p",
        ])
        settings.configuration = "/c"
        let login = RcloneServerCredentials()
        let variables = settings.childEnvironment(login)
        #expect(variables.contains("HOME=/h") && variables.contains("https_proxy=http://p") && variables.contains("RCLONE_CONFIG=/c"))
        #expect(
            !variables.contains {
                ["RCLONE_RC_NO", "RCLONE_RC_SERVE=", "RCLONE_CONFIG_X", "NOTIFY", "HEXLIST"].contains(where: $0.hasPrefix)
            })
        #expect(variables.contains("RCLONE_RC_PASS=\(login.password)") && login.password != RcloneServerCredentials().password)
    }
}

@Suite("Service names on the command line") struct TypedServiceTests {
    @Test(
        "a link's host selects the service",
        arguments: [
            ("https://www.dropbox.com/s/x/a.jpg?dl=0", Service.dropbox as Service?), ("https://dropbox.com/s", .dropbox),
            ("https://app.box.com/s/1", .box), ("https://drive.google.com/open?id=1", .googleDrive),
            ("http://docs.google.com/document/d/1", .googleDrive), ("https://mydropbox.com/", nil), ("https://google.com/", nil),
            ("https://dropbox.com.example.net/", nil), ("https://dropbox.com@example.net/", nil), ("ftp://dropbox.com/", nil),
            ("https://inbox.com/", nil), ("HTTPS://WWW.DROPBOX.COM/x", .dropbox), ("dropbox.com/x", nil),
        ]) func hosts(_ url: String, _ service: Service?)
    { #expect(Service(ofLink: url) == service) }
}
