import Foundation
import TestSupport
import Testing

extension TroubledNetworks {
    /// The network, avahi-daemon or the other machine fails during a bulk send, and returns.
    @Suite("Network faults")
    struct NetworkFaults {
        private static func names(_ count: Int) -> [String] { (1...count).map { "hex \($0)" } }

        /// h1 sends to h2 at full speed during `fault`. Afterwards all hexes must arrive without help.
        private static func sending(
            _ count: Int, padding: Int = 500, _ lab: Lab, to peer: String, while fault: () async throws -> Void
        ) async throws {
            let sent = names(count)
            async let counts = lab.bulk("h1", to: peer, sent, padding: padding)
            // Some hexes have arrived, and some have not.
            try await lab.awaitEvent("h2", "hex.received")
            try await fault()
            #expect(try await counts.accepted == count)
            let healed = ContinuousClock.now
            try await lab.awaitDelivered("h1", seconds: 200)
            print("sending: all delivered \(healed.duration(to: .now)) after the fault was over")
            let inbox = try await lab.inbox("h2")
            #expect(inbox.count == count)
            #expect(inbox == sent, "the order, or a hex twice")
        }

        private static func withTrust(_ test: (Lab, (one: String, other: String)) async throws -> Void) async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                try await test(lab, uuid)
            }
        }

        /// Applies a fault until the sender has noticed it, plus 10 s. Queued hexes are sent afterwards.
        private static func interruption(_ lab: Lab, _ breaks: [String], _ mends: [String]) async throws {
            let before = try await lab.memory("h1")
            try await lab.run(breaks)
            let begin = ContinuousClock.now
            let rows = try await lab.awaitOutbox("h1") { $0.first?.lastError != nil || $0.first?.waitingFor == "peer" }
            print(
                "\(breaks): seen after \(begin.duration(to: .now)), \(rows.first?.lastError ?? "-"),",
                "memory \(before >> 20) MiB, then \(try await lab.memory("h1") >> 20) MiB")
            #expect(rows.allSatisfy { $0.state == "queued" || $0.state == "sending" })
            try await rest(10)
            try await lab.run(mends)
        }

        private static func rest(_ seconds: Int) async throws { try await Task.sleep(for: .seconds(seconds)) }

        @Test("the cable drops all packets for two seconds")
        func shortSilence() async throws {
            try await Self.withTrust { lab, uuid in
                try await Self.sending(4_000, lab, to: uuid.other) {
                    try await lab.run(["link", "h2", "silent"])
                    try await Self.rest(2)
                    try await lab.run(["link", "h2", "up"])
                }
            }
        }

        @Test(
            "the cable is unplugged, or drops all packets, longer than a session's timeout",
            .enabled(if: LongTests.areWanted, LongTests.reason), arguments: ["silent", "down"])
        func longSilence(how: String) async throws {
            try await Self.withTrust { lab, uuid in
                try await Self.sending(6_000, padding: 2_000, lab, to: uuid.other) {
                    try await Self.interruption(lab, ["link", "h2", how], ["link", "h2", "up"])
                }
            }
        }

        @Test("a receiver frozen longer than a session's timeout", .enabled(if: LongTests.areWanted, LongTests.reason))
        func stopped() async throws {
            try await Self.withTrust { lab, uuid in
                try await Self.sending(8_000, padding: 2_000, lab, to: uuid.other) {
                    try await Self.interruption(lab, ["signal", "h2", "STOP"], ["signal", "h2", "CONT"])
                }
            }
        }

        @Test(
            "avahi-daemon on either side is killed and restarted", .enabled(if: LongTests.areWanted, LongTests.reason),
            arguments: ["h1", "h2"])
        func avahi(host: String) async throws {
            try await Self.withTrust { lab, uuid in
                let before = try await lab.lastEvent("h1")
                try await Self.sending(6_000, padding: 2_000, lab, to: uuid.other) {
                    for _ in 0..<3 {
                        try await lab.run(["avahi", host, "kill"])
                        try await lab.run(["avahi", host, "start"])
                    }
                }
                // The session stayed open: no peer was away.
                let since: [EventRow] = try await lab.rows("h1", "events", "--since", "\(before)")
                #expect(!since.contains { $0.type == "peer.down" })
            }
        }

        @Test("a machine that is off gets 5 000 hexes, in order, when it is on again")
        func asleep() async throws {
            try await Self.withTrust { lab, uuid in
                try await lab.run(["power-cut", "h2"])
                let sent = Self.names(5_000)
                #expect(try await lab.bulk("h1", to: uuid.other, sent).accepted == 5_000)
                try await lab.run(["power-on", "h2"])
                try await lab.start("h2")
                let begin = ContinuousClock.now
                try await lab.awaitDelivered("h1")
                print("asleep: 5 000 delivered \(begin.duration(to: .now)) after it was ready")
                #expect(try await lab.inbox("h2") == sent)
                #expect(try await lab.outbox("h1").isEmpty)
            }
        }

        @Test("a receiver that returns on another port while 1 000 rows wait is found with few dials")
        func anotherPort() async throws {
            try await Self.withTrust { lab, uuid in
                try await lab.kill("h2")
                try await lab.awaitEvent("h1", "peer.down", peer: uuid.other)
                let sent = Self.names(1_000)
                try await lab.bulk("h1", to: uuid.other, sent)
                let waiting = try await lab.outbox("h1")
                #expect(waiting.count == 1_000)
                #expect(waiting.allSatisfy { $0.waitingFor == "peer" && $0.attempts == 0 }, "\(waiting.prefix(2))")
                try await lab.start("h2", arguments: ["--port", "25222"])
                let begin = ContinuousClock.now
                try await lab.awaitDelivered("h1")
                print("anotherPort: 1 000 delivered \(begin.duration(to: .now)) after it was ready")
                #expect(try await lab.inbox("h2") == sent)
            }
        }

        @Test(
            "a peer that disconnects each time is dialled with growing pauses: at most 12 times a minute",
            .enabled(if: LongTests.areWanted, LongTests.reason))
        func dials() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await FaultyPeer.with("fin", of: lab) { peer in
                    let address = try await lab.path("address", on: "h2")
                    try await lab.configure("h1", "name: h1\npeers: [\"\(address):25000\"]\n")
                    try await lab.start("h1")
                    try await lab.awaitPeers("h1")
                    try await lab.bulk("h1", to: peer.uuid, Self.names(1_000))
                    try await Self.rest(60)
                    let log = try String(contentsOfFile: try await lab.path("log", on: "h1"), encoding: .utf8)
                    let sessions = log.split(separator: "\n").count { $0.contains("session open") }
                    print("dials: \(sessions) sessions in a minute")
                    #expect(sessions <= 12)
                }
            }
        }
    }
}
