import Foundation
import TestSupport

/// The openssl command line as an independent peer.
enum OpenSSL {
    static let path = ["/usr/bin/openssl", "/usr/local/bin/openssl", "/opt/homebrew/bin/openssl"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }
    static var isThere: Bool { path != nil }

    struct Output: Sendable {
        var text: String
        var status: Int32
    }

    /// Runs openssl until it exits.
    /// - Parameter input: its standard input, which stays open until `until` was printed.
    static func run(_ arguments: [String], input: [UInt8] = []) async throws -> Output {
        let output = Pipe()
        let source = Pipe()
        let writer = output.fileHandleForWriting.fileDescriptor
        let child = try ChildProcess(
            path ?? "openssl", arguments, input: source.fileHandleForReading.fileDescriptor, output: writer, errors: writer)
        try output.fileHandleForWriting.close()
        return try await called(within: .seconds(300)) { done in
            Thread.detachNewThread {
                try? source.fileHandleForWriting.write(contentsOf: Data(input))
                let data = (try? output.fileHandleForReading.readToEnd()) ?? Data()
                let status = child.waitForEnd()
                // The input stays open until here, because s_client ends with its input.
                try? source.fileHandleForWriting.close()
                done(Output(text: String(decoding: data, as: UTF8.self), status: status))
            }
        }
    }
}
