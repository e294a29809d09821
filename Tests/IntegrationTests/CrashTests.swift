import Foundation
import Synchronization
import TestSupport
import Testing

/// The programs of Tests/Faults for crashes and failing disks, with the real binaries. Each has its own control and prints its findings. By
/// default they run small; HEXLIST_LONG_TESTS=1 uses the figures of the reliability programme.
///
/// They run one at a time, because they need precise timing, which parallel programs disturb.
@Suite(
    "Crashes and failing disks", .serialized, .rigLimit(long: 60),
    .ifBuilt)
struct CrashTests {
    @Test("SIGKILL at random instants of a bulk send, on either side", .ifRuns("kill"))
    func kill() async throws {
        try await Rig.run("kill", long: ["--rounds", "200", "--hexes", "20000"])
    }

    @Test("SIGKILL between sending a hex and committing its row", .ifRuns("ahead"))
    func ahead() async throws {
        try await Rig.run("ahead", long: ["--rounds", "200"])
    }

    @Test("SIGKILL at the N-th system call, on either side", .ifRuns("kill-at-call"))
    func killAtCall() async throws {
        try await Rig.run("kill-at-call", long: ["--rounds", "500"])
    }

    @Test("power cuts of the receiver", .ifRuns("power-cut"))
    func powerCut() async throws {
        try await Rig.run("power-cut", long: ["--rounds", "500", "--controls", "50"])
    }

    @Test("a receipt is sent after the sync of its hexes", .ifRuns("ack-after-sync"))
    func ackAfterSync() async throws {
        try await Rig.run("ack-after-sync", long: ["--rounds", "500"])
    }

    @Test("full disks, then space again", .ifRuns("disk-full"))
    func diskFull() async throws {
        try await Rig.run("disk-full", long: ["--rounds", "50", "--patient"])
    }

    @Test("other programs that write to the store", .ifRuns("foreign-writer"))
    func foreignWriter() async throws {
        try await Rig.run("foreign-writer", long: ["--rounds", "200"])
    }

    @Test("failing, read-only and locked stores", .ifRuns("storage-errors"))
    func storageErrors() async throws {
        try await Rig.run("storage-errors", long: ["--rounds", "300", "--locked", "60"])
    }

    @Test("damaged stores", .ifRuns("bit-flips"))
    func bitFlips() async throws {
        try await Rig.run("bit-flips", long: ["--rounds", "1000"])
    }

    @Test("every hex three times", .ifRuns("repeat"))
    func repeats() async throws {
        try await Rig.run("repeat", long: ["--hexes", "10000"])
    }

    @Test("kills during first starts", .ifRuns("first-start"))
    func firstStart() async throws {
        try await Rig.run("first-start", long: ["--rounds", "200"])
    }

    @Test("wall clocks that change between starts", .ifRuns("clocks"))
    func clocks() async throws {
        try await Rig.run("clocks", long: ["--rounds", "40"])
    }

    @Test("kills during identity rotation", .ifRuns("rotate"))
    func rotate() async throws {
        try await Rig.run("rotate", long: ["--rounds", "200"])
    }
}

/// Runs the test if this machine can run that program of Tests/Faults. Otherwise the output has the reason. The program is asked when the test
/// is prepared, so that a run of other tests asks none.
struct RigTrait: TestTrait, SuiteTrait {
    let rig: String
    let arguments: [String]

    func prepare(for test: Test) async throws {
        let obstacle = Rig.obstacle(rig, arguments)
        try await ConditionTrait.enabled(if: obstacle == nil, "\(obstacle ?? "")").prepare(for: test)
    }
}

extension Trait where Self == RigTrait {
    static func ifRuns(_ rig: String, _ arguments: String...) -> Self { Self(rig: rig, arguments: arguments) }
}

extension Trait where Self == ConditionTrait {
    /// Runs the suite if its programs are built.
    static var ifBuilt: Self { .enabled(if: Checkout.hasPrograms, "hexlistd and hexlist are not built") }
}

extension Trait where Self == TimeLimitTrait {
    /// The time limit of a suite of Tests/Faults programs: the usual one, or the given minutes with HEXLIST_LONG_TESTS=1.
    static func rigLimit(long minutes: Int) -> Self { .timeLimit(.minutes(LongTests.areWanted ? minutes : Patience.test)) }
}

/// A program of Tests/Faults.
enum Rig {

    /// The reason why this machine cannot run the program. The program reports it (status 77) before doing anything.
    static func obstacle(_ name: String, _ arguments: [String] = []) -> String? {
        obstacles.withLock { known in
            let command = ([name] + arguments).joined(separator: " ")
            if let obstacle = known[command] { return obstacle }
            let obstacle = ask(name, arguments)
            known[command] = .some(obstacle)
            return obstacle
        }
    }

    /// For each program, the reason why this machine cannot run it. Each program is asked once.
    private static let obstacles = Mutex<[String: String?]>([:])

    private static func ask(_ name: String, _ arguments: [String]) -> String? {
        do {
            let environment = ProcessInfo.processInfo.environment.merging(["HEXLIST_BIN": Checkout.programs]) { $1 }
            let (said, status) = try ChildProcess.answer(
                "\(Checkout.root)/Tests/Faults/\(name)", arguments + ["--check"], environment: environment)
            return status == 77 ? said.split(separator: "\n").first.map(String.init) ?? "no reason given" : nil
        } catch {
            return "\(error)"
        }
    }

    /// Runs the program until it exits. Without `long`, it runs in its small default size.
    /// - Parameters:
    ///   - arguments: the arguments in every size.
    ///   - long: further ones, with HEXLIST_LONG_TESTS=1.
    static func run(_ name: String, _ arguments: [String] = [], long: [String]) async throws {
        let output = try await Command.run(
            ["\(Checkout.root)/Tests/Faults/\(name)"] + arguments + (LongTests.areWanted ? long : []),
            environment: ["HEXLIST_BIN": Checkout.programs],
            seconds: LongTests.areWanted ? 3_300 : 1_100)
        print("\(name): \(output.out)", terminator: "")
        #expect(output.status == 0, "\(output)")
    }
}
