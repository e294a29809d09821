import TestSupport
import Testing

@testable import HexlistSystem

@Suite("The autostart entry", .timeLimit(.minutes(5))) struct AutostartEntryTests {
    @Test func `it lies in the configuration folder`() {
        #expect(AutostartEntry(configurationHome: "/c").path == "/c/autostart/hexlist.desktop")
    }

    @Test func `it is written with its folders, and removed`() async throws {
        try await TemporaryFolder.with { folder in
            let entry = AutostartEntry(configurationHome: "\(folder.path)/.config")
            #expect(!entry.exists)
            try entry.write(program: "/usr/bin/hexlistd")
            try entry.write(program: "/usr/bin/hexlistd")
            #expect(entry.exists)
            try entry.remove()
            try entry.remove()
            #expect(!entry.exists)
        }
    }

    @Test func `the program's path is escaped as the specification says`() {
        #expect(AutostartEntry.text(program: "/opt/a b/hexlistd").contains("Exec=\"/opt/a b/hexlistd\"\n"))
        #expect(AutostartEntry.text(program: "/a$b`c%d").contains("Exec=\"/a\\\\$b\\\\`c%%d\"\n"))
    }
}
