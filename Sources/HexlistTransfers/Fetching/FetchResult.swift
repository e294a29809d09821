import HexlistFiles

/// The result of an attempt, in the form in which it is stored.
struct FetchResult {
    var outcome: TransferQueue.AttemptResult
    /// The reason, as a code of the API; `nil` if the file is complete.
    var reason: String?
    /// The reason, as a message for users; `nil` if the file is complete.
    var message: String?
}

extension FetchResult {
    /// The result of an attempt whose complete file could not be renamed to its final name.
    init(ofPlacing error: any Error) {
        guard let fault = error as? FileFault, fault == .noFreeName else {
            self.init(of: error)
            return
        }
        self.init(outcome: .interrupted(progressed: false), reason: "taken", message: "Another file took its name.")
    }

    /// The result of an attempt whose file could not be opened, written or verified.
    init(of error: any Error) { self = Self.of(error) }

    private static func of(_ error: any Error) -> Self {
        if error is DailyLimitReached {
            return Self(
                outcome: .final, reason: "limit",
                message: "Today's limit for files of its sender that nobody asked for is used up. A retry fetches it all the same.")
        }
        guard let fault = error as? FileFault else {
            // The store could not be written, or the node is stopping.
            return Self(outcome: .interrupted(progressed: false), reason: "internal", message: "\(error)")
        }
        let message = "It \(fault)."
        switch fault {
        case .diskFull: return Self(outcome: .diskFull, reason: "diskFull", message: "There is no room for it on the disk.")
        case .otherBytes: return Self(outcome: .sourceFault, reason: "otherBytes", message: message)
        case .partInUse, .cancelled: return Self(outcome: .interrupted(progressed: false), reason: "taken", message: message)
        case .tooLong, .tooShort: return Self(outcome: .sourceFault, reason: "answer", message: message)
        case .partLost: return Self(outcome: .sourceFault, reason: "partLost", message: "What was there of it was deleted meanwhile.")
        case .notFound, .notFolder, .notAllowed, .notRegular:
            return Self(outcome: .final, reason: "folder", message: "The folder it goes to \(fault).")
        case .changed, .protected, .tooManyFiles, .tooDeep, .noFreeName, .system:
            return Self(outcome: .final, reason: "folder", message: message)
        }
    }
}
