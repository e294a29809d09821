import ArgumentParser
import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistWire
import NIOCore

struct FrameCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "frame", abstract: "Decode or encode protocol frames. Needs no daemon.",
        subcommands: [FrameDecodeCommand.self, FrameEncodeCommand.self])
}

struct FrameDecodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decode", abstract: "Print one line of JSON per frame: its meaning, the data that was kept, and the repairs.",
        discussion: "A refused frame prints {\"ok\":false,…}; the command still succeeds.")

    @Flag(help: "Read binary frames, each after its length, instead of one wrapper per line.")
    var framed = false

    @Flag(help: "Accepted for scripts; the output is always JSON.")
    var json = false

    @Argument(help: ArgumentHelp("Files to read; by default standard input.", valueName: "file"))
    var files: [String] = []

    func run() throws {
        let output = Output(json: true)
        var decoder = WrapperDecoder(reportsRepairs: true)
        func show(_ frame: [UInt8]) throws {
            try output.bytes(FrameJSON.json(decoder.decode(frame)))
            try output.line()
        }
        for file in files.isEmpty ? ["-"] : files {
            if framed {
                try FrameInput.frames(file, output, show)
            } else {
                try FrameInput.lines(file, output, show)
            }
        }
        try output.flush()
    }
}

struct FrameEncodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "encode", abstract: "Make binary frames from wrappers, read one per line.",
        discussion: "Wrappers are read as tolerantly as those of a peer. A refused one is reported on standard error; exit code 2.")

    @Flag(help: "Print the bodies as JSON, one per line, without lengths.")
    var json = false

    @Argument(help: ArgumentHelp("Files to read; by default standard input.", valueName: "file"))
    var files: [String] = []

    func run() throws {
        let output = Output(json: true)
        guard json || !output.terminal.isInteractive else {
            throw HexlistError(
                .badRequest, "Frames are binary and not for a terminal.", hint: "Write them to a file or a pipe, or use --json."
            )
        }
        var line = 0
        var refused = 0
        for file in files.isEmpty ? ["-"] : files {
            try FrameInput.lines(file, output) { text in
                line += 1
                switch FrameJSON.frame(fromJSON: text) {
                case .success(let frame) where json:
                    var body = Array(frame.dropFirst(4))
                    JSONText.makePrintable(&body)
                    try output.bytes(body)
                    try output.line()
                case .success(let frame): try output.bytes(frame)
                case .failure(let refusal):
                    refused += 1
                    StandardError.note("wrapper \(line): \(refusal.code.rawValue): \(TerminalText.clean(refusal.message, columns: 120))")
                }
            }
        }
        try output.flush()
        if refused > 0 { throw SilentExit(status: .usage) }
    }
}

/// Reads wrappers from a file one at a time, so that memory does not limit the length of the file.
private enum FrameInput {
    /// Maximum bytes of a line, which fits the largest frame. A longer line is an error.
    private static let lineBytes = ProtocolLimits.largestFrameBytes + 1

    /// Reads lines and calls `body` with the wrapper on each. Skips blank lines.
    static func lines(_ file: String, _ output: Output, _ body: ([UInt8]) throws -> Void) throws {
        var line: [UInt8] = []
        func end() throws {
            defer { line.removeAll(keepingCapacity: true) }
            guard line.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }) else { return }
            guard line.count < lineBytes else {
                throw HexlistError(.badRequest, "\(InputFile.name(file)): a line is longer than any frame.")
            }
            try body(line)
        }
        try InputFile.stream(file) { chunk in
            for byte in chunk {
                if byte == UInt8(ascii: "\n") {
                    try end()
                } else if line.count < lineBytes {
                    line.append(byte)
                }
            }
            try output.flush()
        }
        try end()
    }

    /// Reads a stream of length-prefixed frames and calls `body` with each frame.
    static func frames(_ file: String, _ output: Output, _ body: ([UInt8]) throws -> Void) throws {
        var decoder = FrameDecoder(limit: ProtocolLimits.largestFrameBytes)
        var buffer = ByteBuffer()
        try InputFile.stream(file) { chunk in
            buffer.writeBytes(chunk)
            defer { buffer.discardReadBytes() }
            defer { try? output.flush() }  // also prints the frames before an invalid length
            while let frame = try next(&decoder, &buffer, file) { try body(frame) }
        }
        guard buffer.readableBytes == 0 else {
            throw HexlistError(
                .badRequest, "\(InputFile.name(file)) ends in the middle of a frame: \(buffer.readableBytes) bytes are left over.")
        }
    }

    private static func next(_ decoder: inout FrameDecoder, _ buffer: inout ByteBuffer, _ file: String) throws -> [UInt8]? {
        do {
            return try decoder.next(from: &buffer)
        } catch {
            switch error {
            case .length(let length):
                throw HexlistError(
                    .badRequest,
                    "\(InputFile.name(file)): \(length) is not a valid frame length (1 to \(ProtocolLimits.largestFrameBytes)).",
                    hint: "The rest cannot be read. For one wrapper per line, leave out --framed.")
            }
        }
    }
}
