import Foundation

/// The openssl command line, as a peer somebody else wrote.
enum OpenSSL {
    static let path = ["/usr/bin/openssl", "/usr/local/bin/openssl", "/opt/homebrew/bin/openssl"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }
    static var isThere: Bool { path != nil }

    struct Output: Sendable {
        var text: String
        var status: Int32
    }

    /// Runs to the end.
    /// - Parameter input: its standard input, which then stays open until it has said `until`.
    static func run(_ arguments: [String], input: [UInt8] = []) async throws -> Output {
        let process = Process()
        process.executableURL = URL(filePath: path ?? "openssl")
        process.arguments = arguments
        let output = Pipe()
        let source = Pipe()
        process.standardOutput = output
        process.standardError = output
        process.standardInput = source
        return try await withCheckedThrowingContinuation { continuation in
            do {
                try process.run()
            } catch {
                return continuation.resume(throwing: error)
            }
            DispatchQueue.global().async {
                try? source.fileHandleForWriting.write(contentsOf: Data(input))
                let data = (try? output.fileHandleForReading.readToEnd()) ?? Data()
                process.waitUntilExit()
                // Held open until here: s_client ends with its input.
                try? source.fileHandleForWriting.close()
                continuation.resume(
                    returning: Output(text: String(decoding: data, as: UTF8.self), status: process.terminationStatus))
            }
        }
    }
}
