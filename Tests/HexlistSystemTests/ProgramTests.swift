import Testing

@testable import HexlistSystem

@Suite("Programs", .timeLimit(.minutes(5)))
struct ProgramTests {
    private static func shell(_ script: String, input: [UInt8] = [], folder: String? = nil, outputBytes: Int = 1 << 10) async
        -> Program.RunResult
    {
        await Program("/bin/sh", ["-c", script]).run(
            input: input, environment: ["A=1"], folder: folder, milliseconds: 60_000, outputBytes: outputBytes)
    }

    @Test("it gets its input, folder and environment, and nothing else; both outputs arrive in order")
    func surroundings() async {
        #expect(await Self.shell("cat", input: Array("in".utf8)) == Program.RunResult(end: .exited(0), output: Array("in".utf8)))
        let told = await Self.shell("pwd; echo $A $HOME >&2; ls /proc/self/fd | wc -l; exit 3", folder: "/")
        // The program has four descriptors: 0, 1, 2 and the one that `ls` opens for the folder.
        #expect(told == Program.RunResult(end: .exited(3), output: Array("/\n1\n4\n".utf8)))
    }

    @Test("results: ended by a signal, not ended, output over the limit")
    func ends() async {
        #expect(await Self.shell("kill -9 $$").end == .signalled(9))
        #expect(
            await Program("/nowhere").run(environment: [], milliseconds: 1, outputBytes: 1).end == .notStarted("No such file or directory"))
        let loud = await Self.shell("exec yes", outputBytes: 10)
        #expect(loud == Program.RunResult(end: .signalled(13), output: Array("y\ny\ny\ny\ny\n".utf8)))
        #expect(throws: SystemError.self) { try Program("/nowhere").runHere() }
        #expect((try? Program("true").runHere()) == .exited(0))
    }

    @Test("the status of a reply follows the shell's convention")
    func answers() async {
        #expect(await Program("/bin/sh", ["-c", "echo $LC_ALL; exit 2"]).answer() == Program.CommandOutput(status: 2, text: "C\n"))
        #expect(await Program("/bin/sh", ["-c", "kill -9 $$"]).answer()?.status == 137)
        #expect(await Program("/nowhere").answer() == nil)
        #expect(Program.path(ofSystem: "sh")?.hasSuffix("/sh") == true && Program.path(ofSystem: "no such program") == nil)
    }
}
