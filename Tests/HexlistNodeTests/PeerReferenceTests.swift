import HexlistAPI
import HexlistModel
import Testing

@testable import HexlistNode

@Suite("References to peers on the command line")
struct PeerReferenceTests {
    static func view(_ uuid: String, _ name: String, alias: String? = nil, state: PeerView.State = .verified, trust: Trust = .stranger)
        -> PeerView
    {
        PeerView(
            uuid: PeerID(uuid), name: name, alias: alias, state: state, reason: state == .ghost ? "stale" : nil, trust: trust,
            endpoints: [], unread: 0)
    }

    static let views = [
        view("AAAA0000-0000-8000-8000-000000000001", "Bob", alias: "Bob", trust: .trusted),
        view("AAAA0000-0000-8000-8000-000000000002", "bob"),  // uses the trusted peer's name
        view("BBBB0000-0000-8000-8000-000000000003", "phone"), view("CCCC0000-0000-8000-8000-000000000004", "PHONE"),
        view("DDDD0000-0000-8000-8000-000000000005", "Eva now", alias: "Eva", state: .away, trust: .trusted),
        view("EEEE0000-0000-8000-8000-000000000006", "old desk", state: .ghost),
        view("EEEE0000-0000-8000-8000-000000000007", "eva NOW"),  // uses a trusted peer's current name
        view("F0F00000-0000-8000-8000-000000000008", "pest", alias: "Pest", trust: .blocked),
        view("F1F10000-0000-8000-8000-000000000009", "Ex, renamed", alias: "Ex"),  // formerly trusted
        view("F2F20000-0000-8000-8000-00000000000a", "Größe"), view("F3F30000-0000-8000-8000-00000000000b", "nuisance", trust: .blocked),
        view("F4F40000-0000-8000-8000-00000000000c", "bare", trust: .trusted),  // its alias was removed
    ]

    @Test(
        "found",
        arguments: [
            ("Bob", 1), ("BOB", 1), ("aaaa0000-0000-8000-8000-000000000002", 2), ("bbbb", 3), ("CCCC0000-0000-8000-8000-000000000004", 4),
            ("dddd0000", 5), ("eva", 5), ("EEEE0000", 7), ("pest", 8), ("ex", 9), ("GRÖSSE", 10), ("Nuisance", 11), ("f4f4", 12),
        ])
    func found(text: String, last: Int) throws {
        let view = try PeerReference(text).resolve(among: Self.views)
        #expect(view.uuid?.uuid.low == 0x8000_0000_0000_0000 | UInt64(last))
    }

    @Test(
        "not found, or more than one",
        arguments: [
            ("phone", HexlistError.Code.ambiguous), ("AAAA", .ambiguous), ("AAA", .notFound), ("nobody", .notFound), ("", .notFound),
            ("EVA now", .ambiguous), ("Ex, renamed", .notFound), ("bare", .notFound), ("old desk", .notFound), ("  ", .notFound),
            (String(repeating: "bob", count: 100), .notFound), ("99990000-0000-8000-8000-000000000009", .notFound),
        ])
    func missing(text: String, code: HexlistError.Code) {
        #expect { try PeerReference(text).resolve(among: Self.views) } throws: { ($0 as? HexlistError)?.code == code }
    }

    @Test(
        "a typing error gets suggestions, aliases before names that peers chose themselves",
        arguments: [
            ("bbo", "Bob?"), ("Evaa", "Eva?"), ("pset", "Pest (blocked)?"), ("phon", "phone BBBB0000 (stranger)?"), ("nobody", nil),
            ("x", nil), ("ld desk", nil),
        ] as [(String, String?)])
    func meant(text: String, hint: String?) {
        let error = #expect(throws: HexlistError.self) { try PeerReference(text).resolve(among: Self.views) }
        #expect(error?.code == .notFound)
        if let hint { #expect(error?.hint?.hasPrefix("Did you mean \(hint) ") == true, "\(error?.hint ?? "")") }
        #expect(error?.hint?.contains("Did you mean") == (hint != nil))
    }

    @Test(
        "an address is not a peer's name: the advice is a line of the configuration",
        arguments: [
            "192.168.7.20", "192.168.7.20:24391", "fd00::20", "[fd00::20]", "[fd00::20]:24391", "fe80::20%eth0", "ada.corp.example",
            "ada.corp.example.", "ada.local:25000", "ada:25000",
        ])
    func address(text: String) {
        let error = #expect(throws: HexlistError.self) { try PeerReference(text).resolve(among: Self.views) }
        #expect(error?.code == .notFound)
        #expect(error?.hint?.contains("`peers: [\"\(text)\"]`") == true, "\(error?.hint ?? "")")
    }

    @Test("the address of a peer seen there leads to its name")
    func addressOfPeer() throws {
        var view = try #require(Self.views.first { $0.isPeer && $0.uuid != nil })
        view.endpoints = [
            EndpointView(host: "192.168.7.20", port: 24_391, via: "mdns"), EndpointView(host: "fe80::20%eth0", port: 1, via: "mdns"),
        ]
        for text in ["192.168.7.20", "192.168.7.20:1", "::ffff:192.168.7.20", "fe80::20", "[fe80::20%eth0]:24391"] {
            let error = #expect(throws: HexlistError.self) { try PeerReference(text).resolve(among: [view]) }
            #expect(error?.hint?.hasPrefix("\(view.label.text()) was seen at that address") == true, "\(text): \(error?.hint ?? "")")
        }
        let error = #expect(throws: HexlistError.self) { try PeerReference("192.168.7.21").resolve(among: [view]) }
        #expect(error?.hint?.contains("peers:") == true)
    }

    @Test("an ambiguous reference lists its candidates by full UUID and trust", arguments: ["phone", "EVA now", "AAAA"])
    func candidates(text: String) throws {
        let error = #expect(throws: HexlistError.self) { try PeerReference(text).resolve(among: Self.views) }
        let message = try #require(error).message
        for view in Self.views where [text.lowercased()].contains(view.name.lowercased()) || view.uuid?.begins(with: text) ?? false {
            #expect(message.contains("\(view.uuid?.description ?? "?") (\(view.trust.text))"), "\(message)")
        }
        // A peer found only by its alias is listed too.
        let bare = #expect(throws: HexlistError.self) { try PeerReference("bare").resolve(among: Self.views) }
        #expect(bare?.message.contains("F4F40000-0000-8000-8000-00000000000C (trusted)") == true)
    }

    @Test("a stranger's key made to begin like a trusted peer's name or alias gets no hex meant for that peer")
    func groundKeys() throws {
        let views = [
            Self.view("CAFE0000-0000-8000-8000-000000000001", "x"), Self.view("BEEF0000-0000-8000-8000-000000000002", "y"),
            Self.view("10000000-0000-8000-8000-000000000003", "cafe", alias: "cafe 10000000", trust: .trusted),
            Self.view("20000000-0000-8000-8000-000000000004", "z", alias: "beef", trust: .trusted),  // an alias of an earlier release
        ]
        #expect { try PeerReference("cafe").resolve(among: views) } throws: { ($0 as? HexlistError)?.code == .ambiguous }
        #expect(try PeerReference("beef").resolve(among: views).name == "z")
        #expect(try PeerReference("CAFE0000").resolve(among: views).name == "x")
        #expect(try PeerReference("Cafe 10000000").resolve(among: views).trust == .trusted)
    }

    @Test("a stranger named like another's UUID, or its prefix, is not found by that, and hides no full UUID")
    func namedLikeAnother() throws {
        let views =
            Self.views + [
                Self.view("99990000-0000-8000-8000-000000000001", "77770000-0000-8000-8000-000000000009"),
                Self.view("88880000-0000-8000-8000-000000000002", "BBBB"),
                Self.view("66660000-0000-8000-8000-000000000002", "F4F40000-0000-8000-8000-00000000000c"),
            ]
        #expect { try PeerReference("77770000-0000-8000-8000-000000000009").resolve(among: views) } throws: {
            ($0 as? HexlistError)?.code == .notFound
        }
        #expect { try PeerReference("BBBB").resolve(among: views) } throws: { ($0 as? HexlistError)?.code == .ambiguous }
        #expect(try PeerReference("F4F40000-0000-8000-8000-00000000000C").resolve(among: views).name == "bare")
    }

    @Test("a ghost is listed with its reason, and by its UUID")
    func ghost() {
        #expect { try PeerReference("old desk").resolve(among: Self.views) } throws: {
            "\($0)".contains("old desk EEEE0000-0000-8000-8000-000000000006 (stranger), stale")
        }
    }

    /// A stranger with the same name as an online peer, which is offline itself, as after a new installation of the same machine.
    @Test("a former installation does not make the present one ambiguous")
    func installedAnew() throws {
        let live = Self.view("11110000-0000-8000-8000-000000000001", "laptop")
        let dead = Self.view("11110000-0000-8000-8000-000000000002", "Laptop", state: .away)
        #expect(try PeerReference("laptop").resolve(among: [dead, live]).uuid == live.uuid)
        #expect(try PeerReference("laptop").resolve(among: [dead]).uuid == dead.uuid)
        // Both UUIDs begin with these digits, so the reference is ambiguous.
        #expect { try PeerReference("1111").resolve(among: [dead, live]) } throws: { ($0 as? HexlistError)?.code == .ambiguous }
        // The name is ambiguous if a second peer with it is trusted, has an alias, is blocked or is online.
        for other in [
            Self.view("22220000-0000-8000-8000-000000000002", "laptop", alias: "desk", state: .away),
            Self.view("22220000-0000-8000-8000-000000000002", "laptop", state: .away, trust: .trusted),
            Self.view("22220000-0000-8000-8000-000000000002", "laptop", state: .away, trust: .blocked),
            Self.view("22220000-0000-8000-8000-000000000002", "laptop"),
        ] {
            #expect { try PeerReference("laptop").resolve(among: [dead, live, other]) } throws: {
                ($0 as? HexlistError)?.code == .ambiguous
            }
        }
        let gone = [dead, Self.view("22220000-0000-8000-8000-000000000003", "laptop", state: .away)]
        #expect { try PeerReference("laptop").resolve(among: gone) } throws: { ($0 as? HexlistError)?.code == .ambiguous }
    }
}
