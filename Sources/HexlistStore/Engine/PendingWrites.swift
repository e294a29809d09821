/// The pieces of work that wait for the writer, in order of submission of each kind.
///
/// A transaction has a bound: if there are pieces with many rows, some wait for the next one, so that no piece waits for the rows of all sessions.
/// Pieces with few rows go first, and patient ones, which are as many as the windows of the sessions; one piece with many rows is always included, so
/// that none waits for ever.
struct WaitingPieces {
    typealias Instant = ContinuousClock.Instant

    /// The most rows of a piece that does not wait for its turn: more than a user's hex has, and than 20 hexes of a stream.
    private static let fewRows = 256
    /// The most rows of the pieces with many in one transaction, but always one piece: four full batches, a few hundredths of a second.
    private static let transactionRows = 16_384
    /// The time that a patient piece waits for company: several times what a sender that waits for each hex takes for one, so that what became of
    /// some is written at once, and the rest have less to write.
    private static let patience = Duration.milliseconds(3)
    /// The time after which it waits for no other transaction: so short that nobody sees the difference, and as long as many such hexes take, each of
    /// which has a transaction to share.
    private static let longestPatience = Duration.milliseconds(20)
    /// More rows than these of patient pieces are of a stream, and wait for nothing: their pages are used again by what comes.
    private static let patientRows = 64

    private var few: [WriteQueue.Piece] = []
    private var many: ArraySlice<WriteQueue.Piece> = []
    private var patient: [WriteQueue.Piece] = []
    private var patientRows = 0
    /// When the first of the patient was added.
    private var patientSince = Instant.now

    mutating func add(_ piece: WriteQueue.Piece, at now: Instant) {
        switch piece.turn {
        case .patient:
            if patient.isEmpty { patientSince = now }
            patient.append(piece)
            patientRows += piece.rows
        case .next where piece.rows <= Self.fewRows: few.append(piece)
        case .next: many.append(piece)
        }
    }

    /// Whether there are pieces that wait for nothing but the writer.
    var areDue: Bool { !few.isEmpty || !many.isEmpty || patientRows > Self.patientRows }
    /// The instant from which on the patient pieces wait for nothing else either; `nil` if there is none.
    var patientUntil: Instant? { patient.isEmpty ? nil : patientSince + Self.longestPatience }
    var isEmpty: Bool { few.isEmpty && many.isEmpty && patient.isEmpty }

    /// Takes the pieces of the next transaction. Patient ones come behind those with few rows: what they settle may be written by one of these.
    mutating func take(at now: Instant) -> [WriteQueue.Piece] {
        if !patient.isEmpty, patientRows > Self.patientRows || now >= patientSince + Self.patience { endPatience() }
        var rows = 0
        let next = many.prefix { piece in
            rows += piece.rows
            return rows == piece.rows || rows <= Self.transactionRows
        }
        many.removeFirst(next.count)
        defer { few.removeAll(keepingCapacity: true) }
        return few + next
    }

    /// Has the patient pieces go with the next transaction.
    mutating func endPatience() {
        few += patient
        patient.removeAll(keepingCapacity: true)
        patientRows = 0
    }
}
