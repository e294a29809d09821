import Foundation
import HexlistModel
import HexlistWire

/// Measures the tolerant decoder on one core, in seconds of processor time.
///
///     decode-bench make FILE [compact|python]    writes 20 000 frames, each preceded by its length (UInt32, big-endian)
///     decode-bench measure FILE [SECONDS]        decodes them repeatedly, prints {"framesPerSecond","bytesPerFrame"}
///     decode-bench bombs                         decodes the adversarial frames
@main
enum DecodeBench {
    static let frames = 20_000

    static func main() throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "make" where arguments.count >= 2:
            let style = arguments.count > 2 ? SampleFrames.Style(rawValue: arguments[2]) ?? .compact : .compact
            try make(at: URL(fileURLWithPath: arguments[1]), style: style)
        case "measure" where arguments.count >= 2:
            try measure(URL(fileURLWithPath: arguments[1]), seconds: arguments.count > 2 ? Double(arguments[2]) ?? 1 : 1)
        case "bombs": measureBombs()
        default:
            print("usage: decode-bench make FILE [compact|python] | measure FILE [SECONDS] | bombs")
            exit(2)
        }
    }

    private static func make(at file: URL, style: SampleFrames.Style) throws {
        var generator = SampleFrames(style: style)
        var bytes = Data()
        for number in 1...frames {
            let frame = generator.next(number)
            withUnsafeBytes(of: UInt32(frame.count).bigEndian) { bytes.append(contentsOf: $0) }
            bytes.append(contentsOf: frame)
        }
        try bytes.write(to: file)
    }

    private static func measure(_ file: URL, seconds: Double) throws {
        let frames = split([UInt8](try Data(contentsOf: file)))
        var decoder = WrapperDecoder()
        var links = 0
        for frame in frames { links += try check(decoder.decode(frame)) }
        let start = processorSeconds()
        var accepted = 0
        while processorSeconds() - start < seconds {
            for frame in frames {
                switch decoder.decode(frame) {  // the whole value is made, and dropped
                case .wrapper: accepted += 1
                case .refused: throw Unexpected()
                }
            }
        }
        let elapsed = processorSeconds() - start
        let bytesPerFrame = frames.reduce(0) { $0 + $1.count } / frames.count
        print(#"{"framesPerSecond":\#(Int(Double(accepted) / elapsed)),"bytesPerFrame":\#(bytesPerFrame),"links":\#(links)}"#)
    }

    /// Prints for each bomb: milliseconds of processor time for 1 MiB (median of five), the ratio to the time for 256 KiB (4 is linear), and
    /// the growth of the process in MiB.
    private static func measureBombs() {
        let small = Dictionary(Bombs.all(bytes: 1 << 18).map { ($0.0, $0.1) }) { first, _ in first }
        let names = Set(CommandLine.arguments.dropFirst(2))
        for (name, text) in Bombs.all(bytes: 1 << 20) where names.isEmpty || names.contains(name) {
            let before = peakMebibytes()
            let (time, isAccepted) = milliseconds(Array(text.utf8))
            let quarter = milliseconds(Array((small[name] ?? "").utf8)).0
            let ratio = (time / max(quarter, 0.001) * 10).rounded() / 10
            print(
                #"{"bomb":"\#(name)","milliseconds":\#((time * 100).rounded() / 100),"timesAQuarter":\#(ratio),"#
                    + #""grewMiB":\#(((peakMebibytes() - before) * 10).rounded() / 10),"accepted":\#(isAccepted)}"#)
        }
    }

    private static func milliseconds(_ frame: [UInt8]) -> (Double, isAccepted: Bool) {
        var times: [Double] = []
        var isAccepted = false
        for _ in 0..<5 {
            var decoder = WrapperDecoder()
            let start = processorSeconds()
            if case .wrapper = decoder.decode(frame) { isAccepted = true }
            times.append((processorSeconds() - start) * 1_000)
        }
        return (times.sorted()[2], isAccepted)
    }

    private static func peakMebibytes() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return Double(usage.ru_maxrss) / 1_024
    }

    /// The processor time of this process, which other load affects less than elapsed time.
    private static func processorSeconds() -> Double {
        Double(clock()) / Double(CLOCKS_PER_SEC)
    }

    private static func split(_ bytes: [UInt8]) -> [[UInt8]] {
        var frames: [[UInt8]] = []
        var position = 0
        while position + 4 <= bytes.count {
            let length = bytes[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
            frames.append(Array(bytes[position + 4..<position + 4 + length]))
            position += 4 + length
        }
        return frames
    }

    /// Fails if a frame is refused, because refusals are not the measured work.
    private static func check(_ frame: DecodedFrame) throws -> Int {
        guard case .wrapper(let wrapper) = frame, case .hex(let hex) = wrapper.object, hex.links.count == 5 else { throw Unexpected() }
        return hex.links.count
    }

    struct Unexpected: Error {}
}
