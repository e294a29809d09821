import Foundation
import Testing

extension StrangeMachines {
    @Suite("Temporary refusals")
    struct RefusedForNow {
        @Test("a peer refused for an hour retries at once when hexes are accepted again: after SIGHUP, freed space, trust")
        func triedAtOnce() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.configure("h2", "name: h2\nreceiveFrom: trusted\n")
                let uuid = try await lab.startAndMeet()
                for description in ["1", "2"] {
                    try await lab.hexlist(
                        "h1", "send", "--to", uuid.other, "--wait", "queued", "--description", description,
                        "https://example.org/\(description)")
                }
                try await refused("notAccepting", lab)

                var event = try await lab.lastEvent("h2")
                var begin = ContinuousClock.now
                try await lab.configure("h2", "name: h2\nlimits:\n  heldHexesPerPeer: 1\n")
                try await lab.run(["signal", "h2", "HUP"])
                event = try await lab.awaitEvent("h2", "hex.held", peer: uuid.one, after: event).number
                print("triedAtOnce: by SIGHUP after \(begin.duration(to: .now))")
                try await refused("quotaExceeded", lab)

                begin = .now
                let held: [HexRow] = try await lab.rows("h2", "inbox", "--held")
                try await lab.hexlist("h2", "accept", "\(try #require(held.first).id)")
                event = try await lab.awaitEvent("h2", "hex.held", peer: uuid.one, after: event).number
                print("triedAtOnce: by an accepted hex after \(begin.duration(to: .now))")

                for description in ["3", "4"] {
                    try await lab.hexlist(
                        "h1", "send", "--to", uuid.other, "--wait", "queued", "--description", description,
                        "https://example.org/\(description)")
                }
                try await refused("quotaExceeded", lab)
                begin = .now
                try await lab.hexlist("h2", "peer", "trust", uuid.one)
                try await lab.awaitDelivered("h1")
                print("triedAtOnce: by trust after \(begin.duration(to: .now))")
                #expect(try await lab.inbox("h2") == ["1", "2", "3", "4"])
            }
        }

        /// Waits until the first row of h1's outbox was refused with the code and has a time for its next attempt.
        private func refused(_ code: String, _ lab: Lab) async throws {
            let rows = try await lab.awaitOutbox("h1") { $0.first?.lastError?.hasPrefix(code) == true && $0.first?.nextAttemptAt != nil }
            #expect(rows.first?.state == "queued")
        }
    }
}
