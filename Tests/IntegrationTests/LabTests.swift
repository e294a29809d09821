import Foundation
import Testing

/// Without network namespaces a machine skips suites that need them, and names them. In CI such a message would go unnoticed.
@Suite("CI") struct LabInCI {
    @Test("CI has a lab, unless HEXLIST_SKIP_LAB=1 disables it", .enabled(if: Lab.isCI, "CI is not set"))
    func isThere() {
        #expect(
            Lab.isAvailable || Lab.isUnwanted,
            """
            This machine runs no lab, so the tests of the programs on a network were skipped. \(Lab.availability.reason)
            Give it network namespaces (root, or user namespaces), or set HEXLIST_SKIP_LAB=1 to do without those tests.
            """)
    }
}

extension TwoMachines {
    /// The basis of the other suites: hosts separated from each other and from this machine.
    @Suite("The lab")
    struct LabItself {
        @Test("a service published on one host is visible on the other, on both IP versions, until its host goes down")
        func hostsSeeEachOther() async throws {
            try await Lab.with("h1", "h2") { lab in
                let publisher = try lab.running(
                    ["exec", "h1", "avahi-publish", "--service", "Ada's; \"laptop\"", "_hexlist._tcp", "24391", "id=one", "txtvers=1"])
                let seen = try await Announcement.await(Lab.families, on: "h2", of: lab) { $0.txt["id"] == "one" }
                #expect(Set(seen.map(\.isIPv6)) == (Lab.families == 2 ? [true, false] : [false]))
                let h1 = [try await lab.path("address", on: "h1"), try await lab.path("address6", on: "h1")]
                #expect(seen.allSatisfy { $0.name == "Ada's; \"laptop\"" && $0.port == 24_391 && h1.contains($0.address) })

                let browser = try lab.running(["exec", "h2", "avahi-browse", "--parsable", "_hexlist._tcp"])
                _ = try await browser.first { $0.hasPrefix("+") ? true : nil }
                try await lab.run(["link", "h1", "down"])
                try await lab.run(["link", "h1", "up"])
                // avahi-daemon must first notice the cable. New announcements arrive after that.
                let another = try lab.running(["exec", "h1", "avahi-publish", "--service", "another", "_hexlist._tcp", "24392"])
                _ = try await browser.first { $0.hasPrefix("+") && $0.contains(";another;") ? true : nil }
                await publisher.stop()
                _ = try await browser.first { $0.hasPrefix("-") && $0.contains("laptop") ? true : nil }
                for running in [another, browser] { await running.stop() }
            }
        }

        @Test("a power cut ends a host's processes and takes it off the network; power restores it")
        func powerCut() async throws {
            try await Lab.with("h1", "h2") { lab in
                let publisher = try lab.running(["exec", "h1", "avahi-publish", "--service", "gone", "_hexlist._tcp", "24391", "id=one"])
                _ = try await Announcement.await(1, on: "h2", of: lab) { $0.name == "gone" }
                try await lab.run(["power-cut", "h1"])
                _ = await publisher.status()  // waits until the publisher has ended
                try await lab.run(["exec", "h1", "true"], expecting: 1)
                // The other host got no goodbye and still has the record.
                let cached = try await lab.run(["exec", "h2", "avahi-browse", "--cache", "--parsable", "_hexlist._tcp"])
                #expect(cached.out.contains("gone"))
                try await lab.run(["power-on", "h1"])
                let name = try await lab.run(["exec", "h1", "hostname"])
                #expect(name.out == "h1\n")
            }
        }

        @Test("usage errors are distinguished: an unknown host, an unknown command, no such lab")
        func wrongUse() async throws {
            try await Lab.with("h1") { lab in
                let host = try await lab.run(["exec", "h9", "true"], expecting: 2)
                #expect(host.err.contains("h9") && host.err.contains("h1"))
                try await lab.run(["dance"], expecting: 2)
                try await lab.run(["up"], expecting: 1)
                let status = try await lab.run(["--name", "no-such-lab", "status"], expecting: 1)
                #expect(status.err.contains("no-such-lab"))
                // The exit status of a command on a host is passed on.
                try await lab.run(["exec", "h1", "sh", "-c", "exit 42"], expecting: 42)
            }
        }
    }
}
