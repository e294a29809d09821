import Foundation
import TestSupport
import Testing

extension StrangeMachines {
    /// A peer that violates the protocol (Tests/Faults/faulty-peer), with an unmodified hexlistd.
    @Suite("A faulty peer")
    struct Faulty {
        /// h1 knows the addresses of the faulty peers on h2.
        private static func configure(_ lab: Lab, ports: [Int] = [25_000]) async throws {
            let address = try await lab.path("address", on: "h2")
            let peers = ports.map { "\"\(address):\($0)\"" }.joined(separator: ", ")
            try await lab.configure("h1", "name: h1\npeers: [\(peers)]\n")
            try await lab.start("h1")
            try await lab.awaitPeers("h1", ports.count)
        }

        private static func send(_ lab: Lab, to peer: FaultyPeer, _ description: String, _ more: String...) async throws -> Command.Output {
            try await lab.run(
                ["hexlist", "h1", "send", "--json", "--to", peer.uuid, "--description", description, "https://example.org/\(description)"]
                    + (more.contains("--timeout") ? [] : ["--timeout", "\(Patience.state)s"]) + more, expecting: nil)
        }

        /// The number of failures after which a hex fails.
        private static let attempts = 5

        /// Retries the first row of h1's outbox until it fails. Automatic retries happen too. If one of them was the last attempt, a later
        /// manual retry begins again, so attempts are five or a multiple of it.
        private static func retryUntilFailed(_ lab: Lab) async throws {
            var rows: [OutboxRowShape] = []
            try await Patience.until(or: "the outbox stayed \(rows)") {
                rows = try await lab.outbox("h1")
                let row = try #require(rows.first)
                guard row.state != "failed" else { return true }
                #expect(rows.allSatisfy { $0.state == "queued" || $0.state == "sending" }, "\(rows)")
                if row.attempts > 0 { try await lab.hexlist("h1", "outbox", "retry", "\(row.outboxID)") }
                return false
            }
        }

        // MARK: Impossible receipts

        @Test("an impossible receipt settles nothing: the row waits with the reason, and is delivered once the peer behaves")
        func falseReceipts() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await FaultyPeer.with("honest", of: lab) { peer in
                    try await Self.configure(lab)
                    var sent: [String] = []
                    for behaviour in ["future", "outside", "falling"] {
                        try peer.behave(behaviour)
                        let hexes = (1...4).map { "\(behaviour)-\($0)" }
                        sent += hexes
                        try await lab.bulk("h1", to: peer.uuid, hexes)
                        try await peer.nextBye("receiptFault")
                        let rows = try await lab.awaitOutbox("h1") { $0.first?.lastError?.contains("receiptFault") == true }
                        #expect(rows.allSatisfy { $0.state == "queued" || $0.state == "sending" }, "\(rows)")
                        // This machine ended the session, so the end of the session is not counted as a failure of a hex.
                        try peer.behave("honest")
                        for row in rows { try await lab.hexlist("h1", "outbox", "retry", "\(row.outboxID)", expecting: nil) }
                        try await lab.awaitDelivered("h1")
                    }
                    // A receipt that arrived before the impossible one is valid. In "falling" it acknowledges hexes that the faulty peer did not
                    // keep, so these are not sent again.
                    let stored = try peer.stored()
                    #expect(stored == sent.filter { stored.contains($0) })
                    #expect(Set(sent).subtracting(stored).allSatisfy { $0.hasPrefix("falling") })

                    // The second receipt for one number ends the session. The first one counts.
                    try peer.behave("twice")
                    #expect(try await Self.send(lab, to: peer, "twice").status == 0)
                    try await peer.nextBye("receiptFault")
                    try peer.behave("honest")
                    #expect(try await Self.send(lab, to: peer, "after").status == 0)
                    #expect(try peer.stored().last == "after")
                }
            }
        }

        // MARK: Refusals

        @Test("permanent refusals among accepted hexes, and duplicates, are recorded for the right rows")
        func refusalsAndDuplicates() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await FaultyPeer.with("picky", of: lab) { peer in
                    try await Self.configure(lab)
                    let sent = (1...40).map { $0 % 5 == 0 ? "long \($0)" : "short \($0)" }
                    let counts = try await lab.bulk("h1", to: peer.uuid, sent, wait: "stored")
                    #expect((counts.accepted, counts.stored, counts.rejected, counts.queued) == (40, 32, 8, 0))
                    #expect(try peer.stored() == sent.filter { $0.hasPrefix("short") })
                    let rejected = try await lab.outbox("h1")
                    #expect(rejected.map(\.state) == Array(repeating: "rejected", count: 8))
                    let first = try #require(rejected.first?.outboxID)
                    #expect(rejected.map { $0.outboxID - first } == (0..<8).map { Int64($0 * 5) })

                    let one = try await Self.send(lab, to: peer, "long one")
                    #expect(one.status == 4)
                    #expect(try JSONLines.decode(one.out, as: SendRow.self).map { "\($0.state) \($0.code ?? "")" } == ["rejected tooLarge"])

                    try peer.behave("again-held")
                    let held = try await Self.send(lab, to: peer, "held before")
                    #expect(held.status == 3)
                    #expect(try JSONLines.decode(held.out, as: SendRow.self).map(\.state) == ["held"])
                    try peer.behave("again-stored")
                    let stored = try await Self.send(lab, to: peer, "stored before")
                    #expect(stored.status == 0)
                    #expect(try JSONLines.decode(stored.out, as: SendRow.self).map(\.state) == ["stored"])
                }
            }
        }

        @Test("a temporary refusal shows its next attempt, never counts as a failure, and ends without help")
        func temporaryRefusal() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await FaultyPeer.with("full", of: lab) { peer in
                    try await Self.configure(lab)
                    let sent = (1...20).map { "hex \($0)" }
                    try await lab.bulk("h1", to: peer.uuid, sent)
                    // Some rows are in flight during refusals and retries.
                    let rows = try await lab.awaitOutbox("h1") { rows in
                        rows.count == sent.count && rows[0].lastError != nil
                            && rows.allSatisfy { $0.waitingFor == "retry" && $0.nextAttemptAt != nil }
                    }
                    #expect(rows.first?.lastError?.contains("storageFull") == true)
                    // The row is retried more often than it may fail.
                    let first = try #require(rows.first?.outboxID)
                    for attempt in 2...7 {
                        try await lab.hexlist("h1", "outbox", "retry", "\(first)")
                        try await lab.awaitOutbox("h1") { ($0.first?.attempts ?? 0) >= attempt }
                    }
                    let waiting = try await lab.outbox("h1")
                    #expect(
                        waiting.count == sent.count && waiting.allSatisfy { $0.state == "queued" || $0.state == "sending" }, "\(waiting)")
                    try peer.behave("honest")
                    try await lab.awaitDelivered("h1")
                    #expect(try peer.stored() == sent)
                }
            }
        }

        @Test("a refusal outlives its session: rows continue when its time is over, whatever was attempted in between")
        func refusalOutlivesSession() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await FaultyPeer.with("full-fin", of: lab) { peer in
                    try await Self.configure(lab)
                    let sent = (1...5).map { "hex \($0)" }
                    try await lab.bulk("h1", to: peer.uuid, sent)
                    try await peer.next("end")
                    try peer.behave("honest")
                    try await lab.awaitDelivered("h1")
                    #expect(try peer.stored() == sent)
                }
            }
        }

        @Test("a peer that refuses one hex temporarily and disconnects at the next gets single hexes from then on: none fails")
        func blame() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await FaultyPeer.with("full-fin", of: lab) { peer in
                    try await Self.configure(lab)
                    try await lab.bulk("h1", to: peer.uuid, ["refused", "unanswered", "behind"])
                    for attempt in 1...7 {
                        let rows = try await lab.awaitOutbox("h1") { $0.count == 3 && $0[0].attempts >= attempt && $0[1].attempts >= 1 }
                        // The first row is also retried automatically.
                        #expect(rows.map { $0.state == "sending" ? "queued" : $0.state } == ["queued", "queued", "queued"])
                        #expect(rows[1].state == "queued" && rows[2].state == "queued", "\(rows)")
                        #expect(rows[0].lastError?.contains("storageFull") == true, "\(rows[0])")
                        // The disconnect counts once, against the hex that was not answered. That hex was not sent again together with the
                        // refused one.
                        #expect(rows[1].attempts == 1, "\(rows[1])")
                        try await lab.hexlist("h1", "outbox", "retry", "\(rows[0].outboxID)")
                    }
                    try peer.behave("honest")
                    try await lab.hexlist("h1", "outbox", "retry", "--to", peer.uuid)
                    try await lab.awaitDelivered("h1")
                    #expect(try peer.stored() == ["refused", "unanswered", "behind"])
                }
            }
        }

        @Test("a hex that crashes the peer fails after five attempts; those around it arrive, in order")
        func poison() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await FaultyPeer.with("poison", of: lab) { peer in
                    try await Self.configure(lab)
                    let sent = ["one", "two", "poison", "three", "four", "five"]
                    try await lab.bulk("h1", to: peer.uuid, sent)
                    let rows = try await lab.awaitOutbox("h1") { ($0.first?.attempts ?? 0) >= 1 }
                    #expect(rows.first?.lastError?.contains("internal") == true)
                    // The row is retried manually, because automatic retries take four times retryAfter.
                    try await Self.retryUntilFailed(lab)
                    try await lab.awaitEvent("h1", "hex.failed", peer: peer.uuid)
                    try await lab.awaitDelivered("h1")
                    let left = try await lab.outbox("h1")
                    #expect(left.map(\.state) == ["failed"])
                    #expect(left.map { $0.attempts % Self.attempts } == [0], "\(left)")
                    #expect(left.first?.lastError?.contains("internal") == true)
                    #expect(try peer.stored() == sent.filter { $0 != "poison" })
                }
            }
        }

        // MARK: A peer that disconnects

        @Test("a hex fails after five disconnects; retry and --force send it again", arguments: ["fin", "rst"])
        func hangsUp(how: String) async throws {
            try await Lab.with("h1", "h2") { lab in
                try await FaultyPeer.with(how, of: lab) { peer in
                    try await Self.configure(lab)
                    #expect(try await Self.send(lab, to: peer, "first", "--wait", "queued").status == 0)
                    try await lab.awaitOutbox("h1") { ($0.first?.attempts ?? 0) >= 1 && $0.first?.lastError != nil }
                    // The row is retried manually, because the back-off takes up to 30 s in all.
                    try await Self.retryUntilFailed(lab)
                    try await lab.awaitEvent("h1", "hex.failed", peer: peer.uuid)
                    let row = try #require(try await lab.outbox("h1").first)
                    #expect(row.state == "failed" && row.attempts % Self.attempts == 0 && row.lastError?.isEmpty == false, "\(row)")

                    let again = try await Self.send(lab, to: peer, "first")
                    #expect(again.status == 1)
                    #expect(again.err.contains("--force"), "\(again)")
                    try peer.behave("honest")
                    // The hex is accepted at once, and delivered when the retry ends the pause.
                    #expect([0, 3].contains(try await Self.send(lab, to: peer, "first", "--force", "--timeout", "1s").status))
                    try await lab.hexlist("h1", "outbox", "retry", "\(row.outboxID)")
                    try await lab.awaitDelivered("h1")
                    // Two hexes now: the one sent with --force, and the manually retried one.
                    #expect(try peer.stored() == ["first", "first"])
                    #expect(try await lab.outbox("h1").isEmpty)
                }
            }
        }

        @Test(
            "hexes after one that makes the peer disconnect are not blamed: they arrive once the peer behaves",
            .enabled(if: LongTests.areWanted, LongTests.reason))
        func hangsUpAlone() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await FaultyPeer.with("fin", of: lab) { peer in
                    try await Self.configure(lab)
                    let begin = ContinuousClock.now
                    try await lab.bulk("h1", to: peer.uuid, ["first", "second"])
                    try await lab.awaitEvent("h1", "hex.failed", peer: peer.uuid)
                    print("hangsUpAlone: given up after \(begin.duration(to: .now))")
                    try peer.behave("honest")
                    try await lab.awaitDelivered("h1")
                    #expect(try peer.stored() == ["second"])
                    #expect(try await lab.outbox("h1").map(\.state) == ["failed"])
                }
            }
        }

        // MARK: Peers that do not answer, or read slowly

        @Test(
            "a peer that never acknowledges: no row fails, the reason is shown, and all arrive once it behaves",
            .enabled(if: LongTests.areWanted, LongTests.reason))
        func neverAcknowledges() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await FaultyPeer.with("mute", of: lab) { peer in
                    try await Self.configure(lab)
                    let sent = (1...50).map { "hex \($0)" }
                    try await lab.bulk("h1", to: peer.uuid, sent)
                    try await peer.nextBye("receiptTimeout")
                    let rows = try await lab.awaitOutbox("h1") { $0.first?.lastError != nil }
                    #expect(rows.count == 50)
                    #expect(rows.allSatisfy { $0.state == "queued" || $0.state == "sending" })
                    #expect(rows.first?.lastError?.contains("30 s") == true)
                    let second = try await lab.awaitOutbox("h1") {
                        $0.allSatisfy { $0.state == "sending" } || $0.first?.nextAttemptAt != nil
                    }
                    #expect(second.count == 50)
                    try peer.behave("honest")
                    // A session that is still open times out before the rows are sent again.
                    try await lab.awaitDelivered("h1")
                    #expect(try peer.stored() == sent)
                }
            }
        }

        @Test("a peer that reads a byte a second delays no other peer, and uses little memory")
        func reader() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await FaultyPeer.with("trickle", of: lab) { slow in
                    try await FaultyPeer.with("honest", port: 25_001, of: lab) { fast in
                        try await Self.configure(lab, ports: [25_000, 25_001])
                        // 24 MB: three times the bytes in flight, and six times one load.
                        try await lab.bulk("h1", to: slow.uuid, (1...3_000).map { "slow \($0)" }, padding: 8_000)
                        let before = try await lab.memory("h1")
                        let sent = (1...20).map { "fast \($0)" }
                        for description in sent { #expect(try await Self.send(lab, to: fast, description).status == 0) }
                        #expect(try fast.stored() == sent)
                        let after = try await lab.memory("h1")
                        print("reader: memory \(before >> 20) MiB, then \(after >> 20) MiB")
                        #expect(after - before < 24 << 20)
                        #expect(try await lab.outbox("h1").allSatisfy { $0.state == "queued" || $0.state == "sending" })
                    }
                }
            }
        }

        @Test(
            "four unresponsive peers lose their slots after 30 s, and the fifth is served",
            .enabled(if: LongTests.areWanted, LongTests.reason), arguments: ["trickle", "mute", "chatty"])
        func turnsComeBack(how: String) async throws {
            try await Lab.with("h1", "h2") { lab in
                try await Self.withFour(lab, Array(repeating: how, count: 4), []) { slow in
                    try await FaultyPeer.with("honest", port: 25_004, of: lab) { fast in
                        try await Self.configure(lab, ports: Array(25_000...25_004))
                        for peer in slow { try await lab.bulk("h1", to: peer.uuid, (1...50).map { "slow \($0)" }) }
                        let begin = ContinuousClock.now
                        #expect(try await Self.send(lab, to: fast, "fifth", "--wait", "queued").status == 0)
                        let waiting = try await lab.outbox("h1", to: fast.uuid)
                        #expect(waiting.map(\.waitingFor) == ["turn"], "\(waiting)")
                        try await lab.awaitEvent("h1", "hex.delivered", peer: fast.uuid)
                        print("turnsComeBack \(how): the fifth was served after \(begin.duration(to: .now))")
                        #expect(try fast.stored() == ["fifth"])
                        for peer in slow { try peer.behave("honest") }
                    }
                }
            }
        }

        private static func withFour(
            _ lab: Lab, _ behaviours: [String], _ peers: [FaultyPeer], test: ([FaultyPeer]) async throws -> Void
        ) async throws {
            guard let behaviour = behaviours.first else { return try await test(peers) }
            try await FaultyPeer.with(behaviour, port: 25_000 + peers.count, of: lab) { peer in
                try await withFour(lab, Array(behaviours.dropFirst()), peers + [peer], test: test)
            }
        }

        // MARK: Faulty senders

        @Test("a sender that repeats itself, skips a number, or ignores the window")
        func sender() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.start("h1")
                let folder = try TemporaryFolder()
                defer { folder.remove() }
                // A stranger that leaves nothing is forgotten when it disconnects, so it leaves a hex.
                let met = try await FaultyPeer.send("one", folder: folder, of: lab)
                let uuid = try #require(met.first?.uuid)
                try await lab.hexlist("h1", "peer", "trust", uuid)
                try await lab.hexlist("h1", "delete", "1")

                let repeated = try await FaultyPeer.send("repeat", folder: folder, of: lab)
                #expect(repeated.last?.statuses == ["stored": 1, "duplicate": 9])
                #expect(try await lab.inbox("h1") == ["1"])

                let jumped = try await FaultyPeer.send("jump", folder: folder, of: lab)
                #expect(jumped.contains { $0.message?.hasPrefix("sequenceFault") == true }, "\(jumped)")
                // Hexes received before the fault are kept.
                #expect(try await lab.inbox("h1") == ["1", "1"])

                let before = try await lab.memory("h1")
                let flood = try await FaultyPeer.send("flood", folder: folder, "--count", "20000", "--padding", "2000", of: lab)
                #expect(flood.last?.statuses == ["stored": 20_000], "\(flood)")
                let after = try await lab.memory("h1")
                print("sender: memory \(before >> 20) MiB, after 40 MB past the window \(after >> 20) MiB")
                #expect(after - before < 48 << 20)
                #expect(try await lab.inbox("h1").dropFirst(2).elementsEqual((1...20_000).lazy.map { "\($0)" }))
            }
        }
    }
}
