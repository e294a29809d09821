import Foundation
import TestSupport

/// Stops a process until SIGCONT. Returns once all its threads have stopped: one thread takes the signal, and on a loaded machine the
/// others run on until that one was scheduled.
func stopProcess(_ pid: Int) async throws {
    guard kill(pid_t(pid), SIGSTOP) == 0 else { throw POSIXError(POSIXError.Code(rawValue: errno) ?? .ESRCH) }
    let tasks = "/proc/\(pid)/task"
    try await Patience.until(or: "process \(pid) did not stop") {
        try FileManager.default.contentsOfDirectory(atPath: tasks).allSatisfy { thread in
            guard let text = try? String(contentsOfFile: "\(tasks)/\(thread)/stat", encoding: .utf8) else { return false }
            // The state is the letter after the name, which is in parentheses and may contain any character.
            return text.split(separator: ")").last?.hasPrefix(" T") == true
        }
    }
}
