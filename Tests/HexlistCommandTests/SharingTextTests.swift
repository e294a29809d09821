import HexlistAPI
import HexlistJSON
import HexlistModel
import Testing

@testable import hexlist

/// The texts of `mine share`, `mine unshare` and `mine join`, and those about shared hexes of other commands.
@Suite("Texts about shared hexes") struct SharingTextTests {
    private static func id(_ number: UInt64) -> PeerID {
        PeerID(UUIDBytes(high: 0x1A2B_3C4D_0000_8000, low: 0x8000_0000_0000_0000 + number))
    }

    private func peer(
        _ alias: String, _ number: UInt64 = 2, _ access: ShareAccess = .read, _ state: SharedHexView.Peer.State = .joined,
        online: Bool = true, behind: Int = 0, message: String? = nil
    ) -> SharedHexView.Peer {
        SharedHexView.Peer(
            uuid: Self.id(number), tag: PeerSummary(name: alias, alias: alias, trust: .trusted), access: access, state: state,
            online: online, behind: behind, message: message)
    }

    private func hex(
        _ peers: [SharedHexView.Peer], _ title: String = "Reading", owned: Bool = true, access: ShareAccess = .write, hex: Int64? = 7,
        new: Int = 0
    ) -> SharedHexView {
        SharedHexView(list: "l", hex: hex, title: title, owned: owned, access: access, hexes: 0, links: 1_212, peers: peers, new: new)
    }

    private func offer(_ title: String = "Reading", _ number: Int64 = 3, alias: String = "ada", further: Bool = false) -> SharedHexOffer {
        SharedHexOffer(
            number: number, list: "l", uuid: Self.id(1), tag: PeerSummary(name: alias, alias: alias, trust: .trusted), title: title,
            access: .write, hexes: 0, links: 212, at: Timestamp(milliseconds: 0), further: further)
    }

    @Test("the sentences after sharing: new members, those who are away, and changes of access") func sharing() {
        let (bob, carol) = (peer("bob", 2, .write, .offered), peer("carol", 3, .write, .offered, online: false))
        #expect(
            SharingText.shared(hex([bob, carol]), with: [bob.uuid, carol.uuid], before: nil) == [
                "\"Reading\" (1 212 links) is now shared with bob and carol, who can edit it.", "bob is asked to join.",
                "carol will be asked to join when next online.",
            ])
        #expect(
            SharingText.shared(hex([peer("bob", 2, .read)]), with: [bob.uuid], before: hex([peer("bob", 2, .write)]))
                == ["bob can now only read \"Reading\"."])
        #expect(
            SharingText.shared(hex([peer("bob", 2, .write)]), with: [bob.uuid], before: hex([peer("bob", 2, .read)]))
                == ["bob can now edit \"Reading\"."])
        #expect(
            SharingText.shared(hex([peer("bob")]), with: [bob.uuid], before: hex([peer("bob")])) == ["bob can read \"Reading\" already."])
        // Somebody who had joined before follows again without a question.
        #expect(
            SharingText.shared(hex([peer("bob")]), with: [bob.uuid], before: hex([peer("bob", 2, .none)]))
                == ["\"Reading\" (1 212 links) is now shared with bob, who can read it.", "bob goes on with the copy from before."])
        #expect(
            SharingText.moved(hex([]), from: "Work")
                == "\"Reading\" moved from \"Work\" to the top level of My Hexlist. Shared hexes are always at the top level.")
    }

    @Test("the sentences after sharing has ended, and before and after a deletion") func ending() {
        let (bob, carol) = (peer("bob"), peer("carol", 3))
        #expect(SharingText.ended(hex([carol]), with: [bob]) == "\"Reading\" is no longer shared with bob. bob keeps a copy.")
        #expect(SharingText.ended(hex([]), with: [bob, carol]) == "\"Reading\" is no longer shared. bob and carol keep their copies.")
        #expect(SharingText.ended(hex([]), with: [peer("bob", 2, .read, .offered)]) == "\"Reading\" is no longer shared with bob.")
        let shared = hex([bob, carol, peer("dan", 4), peer("eve", 5, .none)])
        #expect(SharingText.deletion([shared]) == ["\"Reading\" is shared with bob and 2 others. They keep their copies."])
        #expect(SharingText.deletion([hex([bob])]) == ["\"Reading\" is shared with bob. bob keeps a copy."])
        #expect(SharingText.deletion([hex([peer("eve", 5, .none)])]).isEmpty)
        let joined = hex([peer("ada", 1)], owned: false)
        #expect(SharingText.deletion([joined]) == ["\"Reading\" belongs to ada: you stop following it, and nothing changes there."])
        #expect(SharingText.deleted([joined]) == ["You no longer follow \"Reading\" from ada."])
        #expect(SharingText.deleted([hex([peer("ada", 1)], owned: false, access: .none)]).isEmpty)
    }

    @Test("the question before a renewal, the sentences after it, and the advice to renew a hex") func renewal() {
        let (bob, carol) = (peer("bob", 2, .write, .offered), peer("carol", 3, .read, .offered))
        func renewed(_ removed: Int, _ peers: [SharedHexView.Peer]) -> String {
            SharingText.renewed(SharedHexRenewal(shared: hex(peers), removed: removed))
        }
        #expect(
            renewed(812, [bob, carol])
                == "\"Reading\" (1 212 links) was renewed. 812 deleted hexes and links are gone. bob and carol have to join it again: `hexlist mine join`."
        )
        #expect(
            renewed(1, [bob, peer("eve", 5, .none)])
                == "\"Reading\" (1 212 links) was renewed. 1 deleted hex or link is gone. bob has to join it again: `hexlist mine join`.")
        #expect(renewed(0, []) == "\"Reading\" (1 212 links) was renewed. It had no deleted hexes and links.")
        let question = SharingText.renewing(hex([peer("bob"), peer("dan", 4, .read, .left), peer("eve", 5, .none)]))
        #expect(
            question.question
                == "The deleted hexes and links of \"Reading\" leave the trash for good, and its changes cannot be undone. bob has to join it again, and changes that have not arrived yet are left out. Renew it?"
        )
        #expect(question.refusal.hint == "To do it without a question: `hexlist mine share 7 --renew --yes`.")
        #expect(SharingText.renewing(hex([])).question.hasSuffix("cannot be undone. Renew it?"))
        var full = hex([bob])
        #expect(SharingText.renewalAdvice(full) == nil)
        full.needsRenewal = true
        #expect(
            SharingText.renewalAdvice(full)
                == "\"Reading\" has nearly the maximum of hexes and links, including deleted ones. To leave those out: `hexlist mine share 7 --renew`."
        )
    }

    @Test("`--renew` is an operation of its own") func renewArguments() throws {
        #expect(try MineShareCommand.parse(["7", "--renew", "--yes"]).renew)
        for arguments in [
            ["7", "--renew", "--with", "bob"], ["7", "--renew", "--write"], ["--renew"], ["7", "--yes"], ["7", "--with", "bob", "--yes"],
        ] {
            #expect(throws: (any Error).self) { _ = try MineShareCommand.parse(arguments) }
        }
    }

    @Test("states of members, and the lines of `status`") func states() {
        let shared = hex([])
        #expect(SharingText.state(peer("bob"), of: shared) == "in sync")
        #expect(SharingText.state(peer("bob", behind: 3), of: shared) == "exchanging")
        #expect(SharingText.state(peer("bob", online: false), of: shared) == "away")
        #expect(SharingText.state(peer("bob", 2, .read, .offered), of: shared) == "not joined")
        #expect(SharingText.state(peer("bob", 2, .read, .left), of: shared) == "left")
        #expect(SharingText.state(peer("bob", 2, .none), of: shared) == "ended")
        #expect(SharingText.state(peer("bob", message: "The clocks differ."), of: shared) == "stopped")
        var indirect = peer("bob", online: false, behind: 3)
        indirect.indirect = true
        #expect(SharingText.state(indirect, of: shared) == "via another machine")
        let joined = hex([], owned: false, access: .read)
        #expect(SharingText.state(peer("ada", 1, .write, .offered, behind: 9), of: joined) == "in sync")
        #expect(SharingText.state(peer("ada", 1, .write, .offered), of: hex([], owned: false, access: .none)) == "ended")
        let lists = SharedHexes(
            shared: [
                hex([peer("bob"), peer("carol", 3, online: false)]), hex([peer("eve", 5, .none)]),
                hex([peer("ada", 1, message: "The clocks \u{1B}differ.")], "Recipes", owned: false),
            ], offers: [offer()])
        #expect(
            SharingText.summary(lists) == [
                "\"Recipes\" (not yours): ada stopped (The clocks \u{FFFD}differ)", "\"Reading\": bob in sync, carol away",
                "1 hex is offered: `hexlist mine join`",
            ])
        let many = SharedHexes(shared: Array(repeating: hex([peer("bob")]), count: 8), offers: [])
        #expect(SharingText.summary(many).count == 6 && SharingText.summary(many).last == "and 3 more shared hexes")
    }

    @Test("the line of `show`") func showLine() {
        #expect(
            SharingText.line(hex([peer("bob", 2, .write), peer("eve", 5, .none), peer("carol", 3)])) == "with bob (write) and carol (read)")
        let others = hex([peer("bob", 2, .write, .offered), peer("carol", 3, .read, .left)])
        #expect(SharingText.line(others) == "with bob (write, not joined) and carol (left)")
        #expect(SharingText.line(hex([peer("ada", 1)], owned: false, access: .read)) == "from ada (read)")
        #expect(SharingText.line(hex([peer("ada", 1)], owned: false, access: .none)) == "from ada (sharing has ended)")
    }

    @Test("marks in the list of My Hexlist") func marks() {
        #expect(SharingText.mark(hex([peer("bob"), peer("carol", 3), peer("eve", 5, .none)])) == "with 2")
        #expect(SharingText.mark(hex([peer("eve", 5, .none)])) == nil)
        #expect(SharingText.mark(hex([peer("ada", 1)], owned: false)) == "from ada")
        #expect(SharingText.mark(hex([peer("ada", 1)], owned: false, access: .none)) == "ended")
        #expect(SharingText.mark(hex([peer("bob")], new: 3)) == "with 1, 3 new")
        #expect(SharingText.mark(hex([peer("ada", 1)], owned: false, new: 1_000)) == "from ada, 1 000 or more new")
    }

    @Test("the notes of a shared hex and of one inside it") func notes() {
        func note(_ shared: SharedHexView, inside: Bool = false) -> String {
            var sharing = HexSharingJSON(list: "l", owned: shared.owned, access: shared.access.known ?? .read, members: 1, new: shared.new)
            if inside { sharing.hex = 7 }
            return SharingText.note(sharing, of: 9, shared)
        }
        let ada = [peer("ada", 1)]
        #expect(note(hex([peer("bob")], new: 2)) == "You share it with bob. It has 2 new links: `hexlist show 9`.")
        #expect(note(hex([peer("bob")], new: 2), inside: true) == "Hex 9 is inside \"Reading\", which you share with bob.")
        #expect(note(hex(ada, owned: false)) == "It belongs to ada. You can edit it.")
        #expect(
            note(hex(ada, owned: false, access: .read, new: 1))
                == "It belongs to ada. You can only read it. It has 1 new link: `hexlist show 9`.")
        let ended = note(hex(ada, owned: false, access: .none), inside: true)
        #expect(ended == "Hex 9 is inside \"Reading\", which belongs to ada. It cannot be changed, because the sharing has ended.")
        #expect(SharingText.line(inside: hex(ada, owned: false, access: .read)) == "inside \"Reading\", from ada (read)")
    }

    @Test("the question of `join`, and its result") func joining() {
        #expect(SharingText.joining(offer()).question == "ada wants to share \"Reading\" with you (212 links; you can edit it). Join?")
        #expect(
            SharingText.joining(offer(alias: "desk", further: true)).question.hasPrefix(
                "desk also offers \"Reading\", which you have joined."))
        var ada = peer("ada", 1)
        ada.receivedAt = Timestamp(milliseconds: 1)
        let joined = hex([ada], owned: false, hex: 41)
        #expect(SharingText.joined(joined, offer()) == "\"Reading\" from ada is now hex 41 in your My Hexlist.")
        let away = hex([peer("ada", 1, online: false)], "", owned: false, hex: nil)
        #expect(SharingText.joined(away, offer()) == "\"Reading\" is joined. Its contents arrive when ada is online.")
        let stopped = hex([peer("ada", 1, message: "The clocks differ.")], "", owned: false, hex: nil)
        #expect(SharingText.joined(stopped, offer()) == "\"Reading\" is joined, but nothing has arrived yet: The clocks differ.")
        #expect(SharingText.joined(joined, offer(further: true)) == "Changes of \"Reading\" are now exchanged with ada too.")
        let refusal = SharingText.joining(offer(alias: "desk", further: true)).refusal
        #expect(refusal.hint == "To do it without a question: `hexlist mine join 3 --yes`.")
    }

    @Test("an offer is found by its number, its title, or the peer") func named() throws {
        let offers = [offer("Reading", 3), offer("Recipes", 5), offer("5", 8, alias: "bob")]
        #expect(try SharingText.named("3", in: offers).number == 3)
        #expect(try SharingText.named("recipes", in: offers).number == 5)
        #expect(try SharingText.named("bob", in: offers).number == 8)
        // A number comes before a title.
        #expect(try SharingText.named("5", in: offers).number == 5)
        #expect { try SharingText.named("ada", in: offers) } throws: { ($0 as? HexlistError)?.code == .ambiguous }
        #expect { try SharingText.named("x\u{1B}", in: offers) } throws: {
            let error = $0 as? HexlistError
            return error?.code == .notFound && error?.message.contains("\u{1B}") == false
        }
        let joined = [hex([peer("ada", 1)], owned: false, hex: 41)]
        #expect(try SharingText.named("reading", in: offers, joined: joined).number == 3)
        #expect { try SharingText.named("reading", in: [], joined: joined) } throws: {
            ($0 as? HexlistError)?.message == "\"Reading\" is in your My Hexlist already."
        }
    }

    @Test("titles are cleaned, cut and quoted; an empty one is named") func titles() {
        #expect(SharingText.title("a\u{1B}[2J\nb") == "\"a\u{FFFD}[2J b\"" || !SharingText.title("a\u{1B}[2J\nb").contains("\u{1B}"))
        #expect(SharingText.title(" ") == "(no description)")
        #expect(TextWidth.of(SharingText.title(String(repeating: "x", count: 5_000))) <= 62)
        #expect(SharingText.names([]) == "nobody" && SharingText.names(["a"]) == "a" && SharingText.names(["a", "b"]) == "a and b")
        #expect(
            SharingText.names(["a", "b", "c"], limit: 1) == "a and 2 others" && SharingText.names(["a", "b"], limit: 1) == "a and 1 other")
    }

    private func event(_ data: String, type: String = "list.ended") throws -> EventJSON {
        EventJSON(
            number: 1, at: Timestamp(milliseconds: 0), type: type, peer: Self.id(1),
            tag: PeerSummary(name: "ada", alias: "ada", trust: .trusted), data: try JSONValue(parsing: Array(data.utf8)))
    }

    @Test("the events as notifications") func notifications() throws {
        let offered = NotificationText(try event(#"{"offer":"3","title":"Reading","access":"write","links":"212"}"#, type: "list.offered"))
        #expect(offered?.summary == "ada wants to share \"Reading\" with you")
        #expect(offered?.body == "212 links; you can edit it. To join: `hexlist mine join`")
        let ended = NotificationText(try event(#"{"title":"Reading","access":"none","hex":"41"}"#))
        #expect(ended?.summary == "ada stopped sharing \"Reading\"")
        #expect(ended?.body == "You keep it as it is. To remove it: `hexlist mine rm 41`")
        let rejected = NotificationText(try event(#"{"title":"Reading","access":"read","hex":"41","rejected":"3","copy":"44"}"#))
        #expect(rejected?.summary == "ada made \"Reading\" read-only")
        #expect(rejected?.body == "Your last 3 changes were not accepted. A copy is in hex 44.")
        #expect(NotificationText(try event(#"{"title":"R","access":"read","rejected":"0"}"#))?.body == "You can still read it.")
        let resumed = NotificationText(try event(#"{"title":"Reading","access":"write","hex":"41"}"#, type: "list.resumed"))
        #expect(resumed?.summary == "ada shares \"Reading\" with you again")
        #expect(resumed?.body == "You can edit it. To see it: `hexlist show 41`")
        #expect(SharingEnd(try event(#"{"title":"R","access":"read","rejected":"1","copy":"9","hex":"7"}"#)).command == "hexlist show 9")
    }

    @Test("the tables fit into a narrow terminal", arguments: [40, 80]) func tables(width: Int) {
        let terminal = Terminal(isInteractive: true, hasColor: false, width: width)
        let long = String(repeating: "Very long title ", count: 20)
        var shared = Table(SharingText.header)
        shared.add(SharingText.cells(hex([peer("bob"), peer(long, 3), peer("dan", 4), peer("eve", 5)], long)))
        shared.add(SharingText.cells(hex([peer("ada", 1)], owned: false, access: .none, hex: nil)))
        var members = Table(SharingText.peerHeader)
        for state in SharedHexView.Peer.State.allCases {
            members.add(
                SharingText.cells(
                    peer(long, 2, .write, state, behind: 7, message: state == .left ? "The clocks differ." : nil), of: hex([])))
        }
        var offers = Table(SharingText.offerHeader)
        offers.add(SharingText.cells(offer(long, alias: long, further: true)))
        for table in [shared, members, offers] {
            for line in table.lines(terminal) { #expect(TextWidth.of(line) <= width, "\(line)") }
        }
    }
}
