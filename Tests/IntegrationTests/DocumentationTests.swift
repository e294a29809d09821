import Foundation
import Testing

/// The DocC pages of the library products (`Sources/NAME/NAME.docc`).
@Suite("Pages of the library products") struct DocumentationTests {
    @Test("each library product has a page, whose Swift code is part of a test or of Examples/embedded-peer") func pages() throws {
        let products = try text("Package.swift").matches(of: /\.library\(name: "(\w+)"/).map { String($0.output.1) }
        #expect(!products.isEmpty)
        let sources = try ["Tests", "Examples/embedded-peer/Sources"].flatMap { folder in
            try FileManager.default.subpathsOfDirectory(atPath: "\(Checkout.root)/\(folder)").filter { $0.hasSuffix(".swift") }
                .map { Self.trimmed(try text("\(folder)/\($0)")) }
        }
        for product in products {
            let page = try text("Sources/\(product)/\(product).docc/\(product).md")
            #expect(page.hasPrefix("# ``\(product)``\n"))
            let examples = page.components(separatedBy: "```swift\n").dropFirst().compactMap { $0.components(separatedBy: "```").first }
            #expect(!examples.isEmpty, "\(product) has no example")
            for example in examples {
                #expect(sources.contains { $0.contains(Self.trimmed(example)) }, "\(product):\n\(example)")
            }
        }
    }

    /// The lines without their indentation.
    private static func trimmed(_ text: String) -> String {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: "\n")
    }

    private func text(_ path: String) throws -> String { try String(contentsOfFile: "\(Checkout.root)/\(path)", encoding: .utf8) }
}
