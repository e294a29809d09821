import HexlistAPI
import HexlistModel
import HexlistNode
import Testing

@testable import HexlistDaemon

@Suite("Configuration")
struct ConfigurationTests {
    private func load(
        _ yaml: String = "", environment: [String: String] = [:], commandLine: [String: String] = [:]
    ) throws -> Settings {
        let loader = ConfigurationLoader(
            commandLine: commandLine, environment: environment, path: "config.yaml", isNamed: true, machineName: "machine")
        return try loader.settings(file: ConfigurationFile(path: "config.yaml", text: yaml))
    }

    @Test("an empty file gives the defaults", arguments: ["", "# nothing\n", "limits:\n", "peers:\n# - one\nname: ~\n", "{}"])
    func defaults(yaml: String) throws {
        let settings = try load(yaml)
        #expect(settings.node.name == "machine")
        #expect(settings.node.port == nil)
        #expect(settings.node.peers == [])
        #expect(settings.node.limits == NodeConfiguration.Limits())
        #expect(settings.domains == ["local"])
        #expect(settings.log == Settings.Log())
        #expect(settings.readsTitles)
        #expect(settings.given.isEmpty)
    }

    @Test("the download folder has a default, and changes without a restart") func downloadFolder() throws {
        let loader = ConfigurationLoader(
            commandLine: [:], environment: [:], path: "config.yaml", isNamed: true, machineName: "machine",
            downloadFolder: "/home/a/Downloads")
        func load(_ yaml: String) throws -> Settings { try loader.settings(file: ConfigurationFile(path: "config.yaml", text: yaml)) }
        let (old, new) = (try load(""), try load("files.downloads: /srv/files\nfiles.copyBelow: 9\n"))
        #expect(old.node.files.downloads == "/home/a/Downloads" && new.node.files.downloads == "/srv/files")
        #expect(old.needingRestart(comparedWith: new).isEmpty)
        let inForce = EffectiveConfiguration(path: "", old)
        #expect(inForce.downloadFolder == "/home/a/Downloads" && inForce.took(new).isEmpty && inForce.downloadFolder == "/srv/files")
        #expect(inForce.shape(port: 1).items.first { $0.key == "files.downloads" }?.value == "/srv/files")
    }

    @Test("each key sets its own value")
    func values() throws {
        let settings = try load(
            """
            name: Ada's laptop
            listen: [127.0.0.1, "::1"]
            port: 25000
            transport: tls+plain
            announce: false
            receiveFrom: everyone
            peers: [ada.example, "192.168.7.20:25001", "[fd00::20]:25002", "fd00::21"]
            routes: [home=/srv/hexlist, "office=mqtts://ada@broker.example:8884?password=/etc/p"]
            domains: [local, example.org]
            log: {level: debug, format: json}
            limits:
              frameBytes: 2097152
              inboxHexes: 10
              heldDays: 3
            send.windowFrames: 5
            outbox: {rows: 7}
            discovery.instances: 100
            api: {connections: 3}
            titles: off
            """)
        #expect(!settings.readsTitles)
        #expect(settings.node.name == "Ada's laptop")
        #expect(settings.node.listen == ["127.0.0.1", "::1"])
        #expect(settings.node.port == 25_000)
        #expect(settings.node.acceptsPlain)
        #expect(settings.node.receiveFrom == .everyone)
        #expect(!settings.node.announce)
        #expect(
            settings.node.peers == [
                StaticPeer(host: "ada.example"), StaticPeer(host: "192.168.7.20", port: 25_001), StaticPeer(host: "fd00::20", port: 25_002),
                StaticPeer(host: "fd00::21"),
            ])
        #expect(settings.node.routes.list.map(\.text) == ["home=/srv/hexlist", "office=mqtts://ada@broker.example:8884?password=/etc/p"])
        #expect(settings.node.routes.list.first?.place == .folder("/srv/hexlist"))
        #expect(settings.domains == ["local", "example.org"])
        #expect(settings.log == Settings.Log(level: .debug, format: .json))
        #expect(settings.node.limits.frameBytes == 2_097_152)
        #expect(settings.node.limits.inboxHexes == 10)
        #expect(settings.node.limits.heldDays == 3)
        #expect(settings.node.send.windowFrames == 5)
        #expect(settings.node.outbox.rows == 7)
        #expect(settings.node.discovery.instances == 100)
        #expect(settings.api.connections == 3)
    }

    @Test(
        "an unknown key is reported with its line and the nearest known key",
        arguments: [
            ("name: a\nrecieveFrom: held", "config.yaml, line 2", "recieveFrom", "receiveFrom"),
            ("limits:\n  heldHexPerPeer: 3", "line 2", "limits.heldHexPerPeer", "limits.heldHexesPerPeer"),
            ("limit: {connections: 3}", "line 1", "limit.connections", "limits.connections"),
            ("logs.level: info", "line 1", "logs.level", "log.level"),
            ("Port: 1", "line 1", "Port", "port"),
            ("peer:", "line 1", "peer", "peers"),
        ])
    func unknownKeys(yaml: String, place: String, key: String, nearest: String) throws {
        let error = try #require(throws: HexlistError.self) { try load(yaml) }
        #expect(error.code == .configuration)
        #expect(error.message.contains(place))
        #expect(error.message.contains("`\(key)`"))
        #expect(error.hint == "Did you mean `\(nearest)`?")
    }

    @Test("a key that resembles no known key gets no suggestion", arguments: ["x: 1", "banana: 2", "limits.zebra: 3"])
    func sillyKeys(yaml: String) throws {
        let error = try #require(throws: HexlistError.self) { try load(yaml) }
        #expect(error.hint?.contains("Did you mean") == false)
    }

    @Test("each key shows its value in configuration syntax, and its source")
    func inForce() throws {
        let settings = try load(
            "name: a\npeers: [bob.example, 'fd00::1']\n", environment: ["HEXLIST_TRANSPORT": "tls+plain"], commandLine: ["port": "0"])
        let shape = EffectiveConfiguration(path: "config.yaml", settings).shape(port: 31_000)
        func item(_ key: String) -> SettingJSON? { shape.items.first { $0.key == key } }
        #expect(shape.items.map(\.key) == SettingKey.all.map(\.name))
        #expect(item("name") == SettingJSON(key: "name", value: "a", source: .file, line: 1, variable: "HEXLIST_NAME"))
        #expect(item("peers")?.value == "bob.example:24391,[fd00::1]:24391" && item("peers")?.line == 2)
        #expect(item("transport")?.value == "tls+plain" && item("transport")?.source == .environment)
        #expect(item("port")?.value == "31000" && item("port")?.source == .commandLine)
        #expect(item("limits.heldDays")?.value == "7" && item("limits.heldDays")?.source == .default)
        #expect(item("limits.inboxHexes")?.value == "none")
        // The shown values can be read back as configuration.
        var environment: [String: String] = [:]
        for item in shape.items { environment[item.variable] = item.value }
        let again = try load(environment: environment)
        for key in SettingKey.all where key.name != "port" { #expect(key.texts(again) == key.texts(settings), "\(key.name)") }
    }

    @Test(
        "an invalid value is reported with the allowed ones",
        arguments: [
            ("port: 99999", "port", "99999"), ("port: -1", "port", "-1"), ("port: 80", "port", "80"), ("port: ' 7'", "port", " 7"),
            ("port: [1]", "port", "a list"), ("receiveFrom: nobody", "receiveFrom", "nobody"), ("announce: no", "announce", "no"),
            ("transport: plain", "transport", "plain"),
            ("name: ''", "name", "``"), ("peers: ada", "peers", "ada"), ("peers: ['ada:0']", "peers", "ada:0"),
            ("peers: ['[fd00::1']", "peers", "[fd00::1"), ("peers: ['ada:x']", "peers", "ada:x"),
            ("peers: [192.168.7]", "peers", "192.168.7"), ("peers: ['010.0.0.1:80']", "peers", "010.0.0.1"),
            ("listen: [localhost]", "listen", "localhost"),
            ("domains: []", "domains", "``"), ("log.level: loud", "log.level", "loud"),
            ("limits.frameBytes: 1000", "limits.frameBytes", "1000"), ("limits.inboxHexes: 0", "limits.inboxHexes", "0"),
            ("limits.heldDays: 99999999999999999999", "limits.heldDays", "99999999999999999999"),
            ("send.windowFrames: 65537", "send.windowFrames", "65537"), ("api.connections: many", "api.connections", "many"),
        ])
    func values(yaml: String, key: String, value: String) throws {
        let error = try #require(throws: HexlistError.self) { try load(yaml) }
        #expect(error.code == .configuration)
        #expect(error.message.contains("`\(key)`"))
        #expect(error.message.contains(value))
        #expect(error.message.contains("config.yaml, line 1"))
        #expect(error.hint?.hasPrefix("It takes ") == true)
    }

    @Test(
        "invalid YAML and duplicate keys are reported with their line",
        arguments: [
            ("name: a\nport: [", "line"), ("- a\n- b", "line 1"), ("just text", "line 1"), ("name: a\nname: b", "`name`"),
            ("log: {level: info}\nlog.level: debug", "twice"), ("a: &x [*x]", "config.yaml"), ("limits: 3", "there is no key `limits`"),
            ("listen: [[a]]", "list of texts"), ("a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}", "too deep"),
        ])
    func syntax(yaml: String, word: String) throws {
        let error = try #require(throws: HexlistError.self) { try load(yaml) }
        #expect(error.code == .configuration)
        #expect(error.message.contains(word), "\(error)")
        #expect(error.message.contains("config.yaml"))
    }

    @Test("contradicting keys are refused")
    func contradictions() throws {
        #expect(throws: HexlistError.self) { try load("limits: {frameBytes: 1048576, strangerFrameBytes: 1048577}") }
        #expect(throws: HexlistError.self) { try load("limits: {connections: 16}") }
    }

    @Test("precedence: command line, environment, file, default")
    func layers() throws {
        let yaml = "name: file\nport: 25000\nreceiveFrom: trusted\n"
        let environment = [
            "HEXLIST_NAME": "environment", "HEXLIST_PORT": "25001", "HEXLIST_LIMITS_HELD_HEXES_PER_PEER": "5", "HEXLIST_DOMAINS": "",
        ]
        let settings = try load(yaml, environment: environment, commandLine: ["port": "0"])
        #expect(settings.node.name == "environment")
        #expect(settings.node.port == 0)
        #expect(settings.node.receiveFrom == .trusted)
        #expect(settings.node.limits.heldHexesPerPeer == 5)
        #expect(settings.domains == ["local"])
    }

    @Test("a list in one text is comma-separated; errors name the variable or the option")
    func places() throws {
        #expect(try load(environment: ["HEXLIST_LISTEN": "127.0.0.1, ::1"]).node.listen == ["127.0.0.1", "::1"])
        let variable = try #require(throws: HexlistError.self) { try load(environment: ["HEXLIST_PORT": "x"]) }
        #expect(variable.message.contains("HEXLIST_PORT"))
        let option = try #require(throws: HexlistError.self) { try load(commandLine: ["log.format": "xml"]) }
        #expect(option.message.contains("the command line"))
        #expect(option.hint?.contains("`text`, `json`") == true)
    }

    @Test("unknown HEXLIST variables are reported")
    func unknownVariables() {
        let loader = ConfigurationLoader(
            commandLine: [:], environment: ["HEXLIST_PORTS": "1", "HEXLIST_STATE_DIR": "x", "HEXLIST_NAME": "y", "PATH": "z"],
            path: "config.yaml", isNamed: false, machineName: "machine")
        let unknown = loader.unknownVariables()
        #expect(unknown.map(\.name) == ["HEXLIST_PORTS"])
        #expect(unknown.map(\.nearest) == ["HEXLIST_PORT"])
    }

    @Test("keys that a running daemon cannot change are reported")
    func restart() throws {
        let old = try load("name: a\nport: 25000\n")
        let new = try load("name: b\nport: 25001\napi.connections: 9\nlimits.heldDays: 2\n")
        #expect(old.needingRestart(comparedWith: new) == ["port", "api.connections"])
        #expect(new.needingRestart(comparedWith: new) == [])
    }

    @Test("a file named on the command line must exist; the default one may be missing")
    func missingFile() throws {
        let path = "/nonexistent/config.yaml"
        func load(isNamed: Bool) throws -> Settings {
            try ConfigurationLoader(commandLine: [:], environment: [:], path: path, isNamed: isNamed, machineName: "machine").load()
        }
        #expect(try load(isNamed: false).node.name == "machine")
        let error = try #require(throws: HexlistError.self) { try load(isNamed: true) }
        #expect(error.message.contains(path))
        #expect(error.hint?.contains("--config") == true)
    }

    @Test(
        "the machine's pretty name",
        arguments: [
            ("PRETTY_HOSTNAME=\"Ada's laptop\"\n", "Ada's laptop"), ("ICON=x\nPRETTY_HOSTNAME=plain\n", "plain"),
            ("PRETTY_HOSTNAME='q'", "q"), ("PRETTY_HOSTNAME=\"", "\""), ("PRETTY_HOSTNAME=\u{1B}[31m", "\u{FFFD}[31m"),
        ])
    func machineName(info: String, name: String) {
        #expect(MachineName.pretty(in: info) == name)
    }

    @Test("no key hides another, and each has its own variable")
    func table() {
        let names = SettingKey.all.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(Set(SettingKey.all.map(\.variable)).count == names.count)
        #expect(SettingKey.named("limits.connectionsPerAddress")?.variable == "HEXLIST_LIMITS_CONNECTIONS_PER_ADDRESS")
        #expect(SettingKey.named("receiveFrom")?.variable == "HEXLIST_RECEIVE_FROM")
    }
}
