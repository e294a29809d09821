import Foundation
import HexlistModel
import TestSupport
import Testing

extension StrangeMachines {
    /// A state folder on two machines, or on another machine than before.
    @Suite("Copied identities")
    struct CopiedIdentities {
        /// Copies h2's state to h3, as with a copied disk.
        private static func copyState(from one: String, to other: String, of lab: Lab) async throws {
            let (from, to) = (try await lab.path("state", on: one), try await lab.path("state", on: other))
            #expect(try await Command.run(["cp", "-a", "\(from)/.", "\(to)/"]).status == 0)
        }

        @Test("two machines with one identity: all three report it, hexes reach neither, and rotating one resolves it")
        func clone() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                try await lab.hexlist("h1", "send", "--to", uuid.other, "https://example.org/before")
                try await lab.stop("h2")
                try await Self.copyState(from: "h2", to: "h3", of: lab)
                try await lab.start("h2", "h3")
                try await Self.allAreTold(lab, uuid.other)
                try await Self.nothingIsDelivered(lab, to: uuid.other)
                let rotated = try await Self.rotate("h3", uuid.other, lab)
                // h3 still trusts the others. They had trusted its former key.
                try await lab.awaitList("h3") { list in
                    list.contains { $0.uuid == uuid.one && $0.state == "verified" && $0.trust == "trusted" }
                }
                try await lab.awaitList("h1") { list in
                    list.contains { $0.uuid == rotated && $0.state == "verified" && $0.trust == "stranger" }
                }
                guard LongTests.areWanted else { return }
                let begin = ContinuousClock.now
                try await lab.awaitDelivered("h1", seconds: 250)
                print("clone: delivered \(begin.duration(to: .now)) after one of the two had another identity")
                let inbox = try await Self.inbox("h2", lab)
                #expect(inbox.count == 2)
            }
        }

        private static func inbox(_ host: String, _ lab: Lab) async throws -> [Int64] {
            let hexes: [HexRow] = try await lab.rows(host, "inbox")
            return hexes.map { $0.id }
        }

        private static func allAreTold(_ lab: Lab, _ peer: String) async throws {
            for host in ["h1", "h2", "h3"] { try await lab.awaitEvent(host, "conflict.identity", peer: peer) }
            let list = try await lab.awaitList("h1") { list in list.contains { $0.uuid == peer && $0.reason == "conflict" } }
            let row = list.first { $0.uuid == peer }
            #expect(row?.state == "ghost" && row?.trust == "trusted")
            for host in ["h2", "h3"] {
                let identity = try await lab.status(host).identity
                #expect(identity.state == "conflict")
                #expect(identity.message?.contains("hexlist id rotate") == true)
            }
        }

        /// Expects that a send waits with the reason, and reaches neither machine.
        private static func nothingIsDelivered(_ lab: Lab, to peer: String) async throws {
            try await lab.hexlist("h1", "send", "--to", peer, "https://example.org/which", expecting: 3)
            let waiting = try await lab.outbox("h1")
            #expect(waiting.map { $0.waitingFor } == ["conflict"])
            for host in ["h2", "h3"] {
                let hexes = try await inbox(host, lab)
                #expect(hexes.count == 1)
            }
        }

        private static func rotate(_ host: String, _ before: String, _ lab: Lab) async throws -> String {
            let hexes = try await inbox(host, lab)
            try await lab.hexlist(host, "id", "rotate", expecting: 2)  // without a terminal, the prompt cannot be answered
            try await lab.hexlist(host, "id", "rotate", "--yes")
            let rotated = try await lab.uuid(host)
            #expect(rotated != before)
            let after = try await inbox(host, lab)
            #expect(after == hexes)
            let identity = try await lab.status(host).identity
            #expect(identity.state == "own")
            // A second start finds the same identity.
            try await lab.kill(host)
            try await lab.start(host)
            let again = try await lab.uuid(host)
            #expect(again == rotated)
            return rotated
        }

        @Test("a state folder on another machine is noticed at the start until its user confirms")
        func otherMachine() async throws {
            try await Lab.with("h1") { lab in
                func become(_ digit: String) async throws {
                    let file = try await lab.path("folder", on: "h1") + "/machine-\(digit)"
                    try Data((String(repeating: digit, count: 32) + "\n").utf8).write(to: URL(fileURLWithPath: file))
                    try await lab.exec("h1", "mount", "--bind", file, "/etc/machine-id")
                }
                try await become("a")
                try await lab.start("h1")
                #expect(try await lab.status("h1").identity.state == "own")
                let uuid = try await lab.uuid("h1")
                try await lab.stop("h1")
                try await become("b")
                for _ in 0..<2 {
                    try await lab.start("h1")
                    let identity = try await lab.status("h1").identity
                    #expect(identity.state == "foreign" && identity.message?.contains("id keep") == true)
                    #expect(try await lab.hexlist("h1", "status").out.contains("id rotate"))
                    try await lab.stop("h1")
                }
                try await lab.start("h1")
                try await lab.hexlist("h1", "id", "keep")
                #expect(try await lab.status("h1").identity.state == "own")
                try await lab.stop("h1")
                try await lab.start("h1")
                #expect(try await lab.status("h1").identity.state == "own")
                #expect(try await lab.uuid("h1") == uuid)
                // Instead of keeping the identity, the user can rotate it.
                try await lab.stop("h1")
                try await become("c")
                try await lab.start("h1")
                try await lab.hexlist("h1", "id", "rotate", "--yes")
                let status = try await lab.status("h1")
                #expect(status.identity.state == "own" && status.uuid != uuid)
            }
        }
    }
}
