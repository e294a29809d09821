internal import GRDB
internal import GRDBSQLite
internal import HexlistModel

/// Splits texts into words with the tokenizer of the search index.
struct SearchWords {
    struct Word {
        /// The word in lower case, without diacritics, and folded (`FoldedText`).
        var text: [UInt8]
        /// Byte range of the word in the original text.
        var range: Range<Int>
    }

    private let tokenizer: any FTS5Tokenizer

    init(on db: Database) throws {
        tokenizer = try db.makeTokenizer(FTS5TokenizerDescriptor(components: ["unicode61", "remove_diacritics", "2"]))
    }

    func of(_ text: [UInt8]) -> [Word] {
        let folded = FoldedText(text)
        let words = Words()
        folded.bytes.withUnsafeBytes { bytes in
            _ = tokenizer.tokenize(
                context: Unmanaged.passUnretained(words).toOpaque(), tokenization: .document,
                pText: bytes.baseAddress?.assumingMemoryBound(to: CChar.self), nText: CInt(clamping: bytes.count)
            ) { context, _, token, count, start, end in
                guard let context, let token, start >= 0, start <= end else { return SQLITE_OK }
                let text = UnsafeRawBufferPointer(start: token, count: Int(count))
                Unmanaged<Words>.fromOpaque(context).takeUnretainedValue().all.append(Word(text: Array(text), range: Int(start)..<Int(end)))
                return SQLITE_OK
            }
        }
        for index in words.all.indices { words.all[index].range = folded.original(words.all[index].range) }
        return words.all
    }

    private final class Words {
        var all: [Word] = []
    }
}

/// The words of a `SearchTerm.words`, which must be adjacent in a text.
struct WordSequence {
    let words: [[UInt8]]
    let isPrefix: Bool

    /// - Throws: `.badRequest` if the text has no words.
    init(_ text: String, isPrefix: Bool, _ tokenizer: SearchWords) throws {
        words = tokenizer.of(Array(text.utf8)).map(\.text)
        self.isPrefix = isPrefix
        guard !words.isEmpty else {
            throw HexlistError(
                .badRequest, "\"\(TerminalText.clean(text, columns: 40))\" has no letters or digits to search for.",
                hint: "Search for words.")
        }
    }

    /// Returns the byte range of the first occurrence of the words in a text; `nil` if the text does not have them.
    func range(in text: [SearchWords.Word]) -> Range<Int>? {
        guard text.count >= words.count else { return nil }
        for start in 0...(text.count - words.count) {
            let candidate = text[start..<start + words.count]
            let isHere = zip(candidate, words).enumerated().allSatisfy { index, pair in
                isPrefix && index == words.count - 1 ? pair.0.text.starts(with: pair.1) : pair.0.text == pair.1
            }
            if isHere, let first = candidate.first, let last = candidate.last { return first.range.lowerBound..<last.range.upperBound }
        }
        return nil
    }

    /// The words as a phrase in the language of FTS5. Quotation marks are doubled as a precaution, although the tokenizer never returns
    /// any.
    var phrase: String {
        let text = words.map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
        return "\"\(text.replacing("\"", with: "\"\""))\"\(isPrefix ? " *" : "")"
    }
}
